//! Whether connections are encrypted, and whose certificate is used.
//! A certificate without its key is a mistake, so it is rejected before anything starts.

use std::path::PathBuf;

use super::Overrides;
use super::environment::Environment;
use crate::config::LoadedConfig;
use crate::failure::{CliResult, Failure};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TlsSettings {
    #[default]
    Off,
    /// hob makes certificates of its own.
    LocalAuthority,
    Files {
        certificate: PathBuf,
        key: PathBuf,
    },
}

impl TlsSettings {
    /// # Errors
    /// One of the two files is missing.
    pub(crate) fn resolve(
        flags: &Overrides,
        environment: &Environment,
        written: &LoadedConfig,
    ) -> CliResult<TlsSettings> {
        let (file, folders) = (&written.config.server, &environment.folders);
        let typed = |path: &Option<PathBuf>| path.as_ref().map(|path| folders.working.join(path));
        let in_file =
            |path: &Option<PathBuf>| path.as_ref().map(|path| written.resolve(path, folders));
        let certificate = typed(&flags.tls_certificate).or(in_file(&file.tls_certificate));
        let key = typed(&flags.tls_key).or(in_file(&file.tls_key));
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(TlsSettings::Files { certificate, key }),
            (None, None) if flags.tls || file.tls == Some(true) => Ok(TlsSettings::LocalAuthority),
            (None, None) => Ok(TlsSettings::Off),
            (Some(_), None) => Err(incomplete("--tls-key", "tls_key")),
            (None, Some(_)) => Err(incomplete("--tls-certificate", "tls_certificate")),
        }
    }
}

fn incomplete(flag: &str, key: &str) -> Failure {
    Failure::usage("a certificate and its key are needed together")
        .hint(format_args!("add {flag} FILE, or server.{key} in hob.toml"))
}
