//! Fetches tarballs through the installed `npm`, from the registry that it is set up for.
//! hob contacts no registry itself, so proxies and mirrors work as they do for the user's `npm`.

use std::path::Path;
use std::process::Command;

use super::packages::Arrived;
use super::program::Run;
use super::{DownloadFolder, FetchError, FetchLimits};
use crate::catalog::Package;
use crate::disk::DiskError;
use crate::progress::Watch;

/// Uses `npm pack`: it downloads the package, and runs none of its scripts.
pub(super) fn bring(
    npm: &Path,
    package: &Package,
    folder: &DownloadFolder,
    limits: FetchLimits,
    watch: &mut Watch<'_>,
) -> Result<Arrived, FetchError> {
    let scratch = folder.fresh_work("npm")?;
    let into = scratch.join("into");
    std::fs::create_dir(&into).map_err(DiskError::at(&into))?;
    let name = npm.to_string_lossy();
    let command = pack(npm, package, &into, &scratch.join("cache"));
    let grows_in: &[&Path] = &[&scratch];
    Run { program: &name, command, grows_in, silence: limits.silence }.wait(watch)?;
    let tarball = into.join(tarball_name(package));
    if !tarball.is_file() {
        return Err(FetchError::NotThere { folder: into, file: tarball_name(package) });
    }
    Ok(Arrived::Archive(folder.keep_archive(package, &tarball, watch)?))
}

/// A cache of its own, so that the growth of the download can be measured.
fn pack(npm: &Path, package: &Package, into: &Path, cache: &Path) -> Command {
    let mut command = Command::new(npm);
    command.arg("pack").arg(format!("{}@{}", package.name, package.version));
    command.args(["--ignore-scripts", "--loglevel=error", "--no-update-notifier"]);
    command.arg("--pack-destination").arg(into).arg("--cache").arg(cache);
    command
}

/// File name that `npm pack` chooses; a scope becomes a prefix.
pub(super) fn tarball_name(package: &Package) -> String {
    let name = package.name.trim_start_matches('@').replace('/', "-");
    format!("{name}-{}.tgz", package.version)
}
