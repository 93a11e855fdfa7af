//! Fetches wheels through the installed Python client, from the index that it is set up for.
//! Proxies, mirrors, certificates and passwords are handled by that client.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::Arrived;
use super::program::Run;
use super::{DownloadFolder, FetchError, FetchLimits};
use crate::catalog::{Package, WheelTag};
use crate::disk::DiskError;
use crate::progress::Watch;

/// Output of `python3 -m pip` if Python has no pip.
const NO_PIP: &str = "No module named pip";

/// A program that fetches wheels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonClient {
    /// The program and its first arguments: `pip`, or `python3 -m pip`.
    Pip(Vec<OsString>),
    /// `uv` has no download command; hob lets it install into a folder.
    Uv(OsString),
}

impl PythonClient {
    pub(super) fn usual() -> Vec<PythonClient> {
        let pip = |words: &[&str]| PythonClient::Pip(words.iter().map(OsString::from).collect());
        let uv = PythonClient::Uv("uv".into());
        vec![pip(&["pip"]), pip(&["pip3"]), pip(&["python3", "-m", "pip"]), uv]
    }

    fn name(&self) -> String {
        match self {
            PythonClient::Pip(words) => {
                let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                words.join(" ")
            }
            PythonClient::Uv(program) => program.to_string_lossy().into_owned(),
        }
    }

    fn is_pip(&self) -> bool {
        matches!(self, PythonClient::Pip(_))
    }
}

/// Uses the first client that works. A second pip is not tried after the first one failed, but `uv` is: it may be set
/// up for another index.
pub(super) fn bring(
    clients: &[PythonClient],
    package: &Package,
    folder: &DownloadFolder,
    limits: FetchLimits,
    watch: &mut Watch<'_>,
) -> Result<Arrived, FetchError> {
    let mut failed: Option<(FetchError, bool)> = None;
    for client in clients {
        if failed.as_ref().is_some_and(|(_, pip)| *pip && client.is_pip()) {
            continue;
        }
        match ask(client, package, folder, limits, watch) {
            Err(error) if is_missing(&error) => {}
            Err(error) if error.is_the_sources() => failed = Some((error, client.is_pip())),
            settled => return settled,
        }
    }
    let programs = || clients.iter().map(PythonClient::name).collect();
    Err(failed
        .map_or_else(|| FetchError::ProgramMissing { programs: programs() }, |(error, _)| error))
}

fn is_missing(error: &FetchError) -> bool {
    match error {
        FetchError::ProgramMissing { .. } => true,
        FetchError::ProgramFailed { stderr, .. } => stderr.contains(NO_PIP),
        _ => false,
    }
}

fn ask(
    client: &PythonClient,
    package: &Package,
    folder: &DownloadFolder,
    limits: FetchLimits,
    watch: &mut Watch<'_>,
) -> Result<Arrived, FetchError> {
    let scratch = folder.fresh_work("python")?;
    let (into, temporary) = (scratch.join("into"), scratch.join("temporary"));
    for folder in [&into, &temporary] {
        std::fs::create_dir(folder).map_err(DiskError::at(folder))?;
    }
    let command = match client {
        PythonClient::Pip(words) => pip(words, package, &into, &temporary),
        PythonClient::Uv(program) => uv(program, package, &into, &temporary),
    };
    let name = client.name();
    let grows_in: &[&Path] = &[&scratch];
    Run { program: &name, command, grows_in, silence: limits.silence }.wait(watch)?;
    match client {
        PythonClient::Pip(_) => {
            let wheel = only_file(&into, package)?;
            Ok(Arrived::Archive(folder.keep_archive(package, &wheel, watch)?))
        }
        PythonClient::Uv(_) => keep_unpacked(&into, package, folder),
    }
}

/// Wheels only: a source package would run its own code.
fn pip(words: &[OsString], package: &Package, into: &Path, temporary: &Path) -> Command {
    let mut command = Command::new(words.first().map_or("pip".as_ref(), OsString::as_os_str));
    command.args(words.iter().skip(1));
    command.args(["download", "--no-deps", "--only-binary=:all:", "--no-input"]);
    command.args(["--progress-bar=off", "--disable-pip-version-check", "--dest"]);
    command.arg(into);
    if let Some(WheelTag { python, machine, libc }) = &package.wheel {
        let abi = format!("cp{}", python.replace('.', ""));
        command.args(["--python-version", python, "--implementation", "cp", "--abi", &abi]);
        command.arg("--platform").arg(format!("{libc}_{machine}"));
    }
    command.arg(pinned(package));
    // pip downloads here and moves the complete wheel, so this folder shows the growth.
    command.env("TMPDIR", temporary);
    // Many users require a virtual environment, so that nothing is installed outside of one. This installs nothing.
    command.env("PIP_REQUIRE_VIRTUALENV", "0");
    command
}

fn uv(program: &OsString, package: &Package, into: &Path, temporary: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["pip", "install", "--no-deps", "--only-binary=:all:", "--no-progress"]);
    command.arg("--target").arg(into);
    if let Some(WheelTag { python, machine, libc }) = &package.wheel {
        command.args(["--python-version", python]);
        command.arg("--python-platform").arg(format!("{machine}-{libc}"));
    }
    command.arg(pinned(package));
    // A cache of its own, so that growth can be measured. Copies, because that cache is deleted.
    command.env("UV_CACHE_DIR", temporary).env("UV_LINK_MODE", "copy");
    command
}

fn pinned(package: &Package) -> String {
    format!("{}=={}", package.name, package.version)
}

fn only_file(folder: &Path, package: &Package) -> Result<PathBuf, FetchError> {
    let entries = std::fs::read_dir(folder).map_err(DiskError::at(folder))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files.next().ok_or_else(|| FetchError::NotThere {
        folder: folder.to_path_buf(),
        file: package.to_string(),
    })
}

/// Moves the files out of the temporary folder, which the next package empties.
fn keep_unpacked(
    into: &Path,
    package: &Package,
    folder: &DownloadFolder,
) -> Result<Arrived, FetchError> {
    let kept = folder.fresh_work(&format!("unpacked-{}-{}", package.name, package.version))?;
    std::fs::rename(into, &kept).map_err(DiskError::at(&kept))?;
    Ok(Arrived::Unpacked(kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Pin;

    fn words(command: &Command) -> String {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn a_wheel_of_one_system_is_fetched_on_every_system() {
        let wheel = WheelTag {
            python: "3.11".to_owned(),
            machine: "x86_64".to_owned(),
            libc: "manylinux_2_28".to_owned(),
        };
        let plain = Package {
            name: "demo".to_owned(),
            version: "2.0".to_owned(),
            pin: Pin { bytes: 1, sha256: None },
            wheel: None,
        };
        let tagged = Package { wheel: Some(wheel), ..plain.clone() };
        let (into, temporary) = (Path::new("into"), Path::new("temporary"));
        let pip_words = |package| words(&pip(&["pip".into()], package, into, temporary));
        assert!(pip_words(&plain).ends_with("--dest into demo==2.0"));
        let expect = "--dest into --python-version 3.11 --implementation cp --abi cp311 \
                      --platform manylinux_2_28_x86_64 demo==2.0";
        assert!(pip_words(&tagged).ends_with(expect));
        let uv_words = words(&uv(&"uv".into(), &tagged, into, temporary));
        let expect = "--python-version 3.11 --python-platform x86_64-manylinux_2_28 demo==2.0";
        assert!(uv_words.ends_with(expect), "{uv_words}");
    }
}
