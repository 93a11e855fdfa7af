//! Detects damage in stored files when a model loads, without reading them each time.
//! `checked.json` next to the manifest records the time of each file that matched its checksum.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::UNIX_EPOCH;

use super::StoreError;
use super::manifest::{Manifest, StoredFile};
use crate::Sha256;
use crate::disk::DiskError;
use crate::progress::Watch;

const FILE: &str = "checked.json";

/// The modification time of each file when it matched its checksum. Whole seconds since 1970, because
/// archives and some file systems keep no fractions.
type Checked = BTreeMap<String, u64>;

/// Compares the checksum of each file that was not compared since it changed. `path` is a stored model's folder or a
/// file in it; any other path passes. The first check after a change reads whole files, the others read one small file.
///
/// # Errors
/// [`StoreError::Damaged`] names the first file that is missing or differs.
pub fn check_changed(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.ancestors().take(3).find(|folder| Manifest::file(folder).is_file())
    else {
        return Ok(());
    };
    let Ok(manifest) = Manifest::read(folder) else { return Ok(()) };
    let damaged = |detail| StoreError::Damaged { name: manifest.name.clone(), detail };
    manifest.check_sizes(folder).map_err(damaged)?;
    let before = read(folder);
    let mut checked = Checked::new();
    for file in &manifest.files {
        let modified = modified_s(&folder.join(&file.path))?;
        if before.get(&file.path) != Some(&modified) {
            compare(folder, file, &manifest.name)?;
        }
        checked.insert(file.path.clone(), modified);
    }
    if checked != before {
        write(folder, &checked);
    }
    Ok(())
}

/// Records that all files match, when a pull has just computed their checksums.
pub(super) fn record(folder: &Path, manifest: &Manifest) -> Result<(), DiskError> {
    let times = manifest.files.iter().map(|file| {
        let modified = modified_s(&folder.join(&file.path))?;
        Ok((file.path.clone(), modified))
    });
    write(folder, &times.collect::<Result<Checked, DiskError>>()?);
    Ok(())
}

/// Compares a file with the checksum in its manifest.
fn compare(folder: &Path, file: &StoredFile, name: &str) -> Result<(), StoreError> {
    let (cancel, mut ignore) = (AtomicBool::new(false), |_| {});
    let mut watch = Watch::new(&mut ignore, &cancel);
    let got = Sha256::of_file::<StoreError>(&folder.join(&file.path), &mut watch)?;
    if got == file.sha256 {
        return Ok(());
    }
    let detail = format!("{} has the SHA-256 {got} instead of {}", file.path, file.sha256);
    Err(StoreError::Damaged { name: name.to_owned(), detail })
}

fn modified_s(path: &PathBuf) -> Result<u64, DiskError> {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let modified = modified.map_err(DiskError::at(path))?;
    Ok(modified.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()))
}

/// Empty where there is no valid record: all files are compared then.
fn read(folder: &Path) -> Checked {
    let text = fs::read(folder.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// A folder that cannot be written keeps no record, and its files are compared at each load.
fn write(folder: &Path, checked: &Checked) {
    if let Ok(text) = serde_json::to_vec_pretty(checked) {
        // Renamed, because several workers may write at the same time.
        let new = folder.join(format!(".{FILE}.{}", std::process::id()));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, folder.join(FILE)));
        if written.is_err() {
            drop(fs::remove_file(&new));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// A stored model with one file.
    fn stored() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let text = serde_json::json!({
            "format": 1, "name": "toy", "title": "Toy", "version": "1", "licences": [],
            "sources": [], "transform_version": 1,
            "files": [{"path": "weights.gguf", "bytes": 5, "sha256": Sha256::of(b"hello")}],
        });
        fs::write(folder.path().join("weights.gguf"), b"hello").expect("written");
        fs::write(Manifest::file(folder.path()), text.to_string()).expect("written");
        folder
    }

    /// Writes `bytes` into the file, with a modification time of `age_s` seconds ago.
    fn overwrite(folder: &Path, bytes: &[u8], age_s: u64) {
        let path = folder.join("weights.gguf");
        fs::write(&path, bytes).expect("written");
        let time = SystemTime::now() - Duration::from_secs(age_s);
        File::options().write(true).open(&path).expect("open").set_modified(time).expect("set");
    }

    #[test]
    fn a_changed_byte_is_found_once_the_file_s_time_changed() {
        let folder = stored();
        let file = folder.path().join("weights.gguf");
        check_changed(&file).expect("the first check reads the file");
        assert!(folder.path().join(FILE).is_file());
        overwrite(folder.path(), b"hellO", 3600);
        let error = check_changed(&file).expect_err("damaged").to_string();
        assert!(error.contains("weights.gguf has the SHA-256 "), "{error}");
        assert!(check_changed(folder.path()).is_err(), "damage is not recorded as checked");
        overwrite(folder.path(), b"hello", 7200);
        check_changed(folder.path()).expect("repaired");
    }

    #[test]
    fn a_file_with_the_recorded_time_is_not_read_again() {
        let folder = stored();
        overwrite(folder.path(), b"hello", 3600);
        check_changed(folder.path()).expect("whole");
        let path = folder.path().join("weights.gguf");
        let time = fs::metadata(&path).and_then(|metadata| metadata.modified()).expect("a time");
        fs::write(&path, b"hellO").expect("written");
        File::options().write(true).open(&path).expect("open").set_modified(time).expect("set");
        check_changed(folder.path()).expect("its time says that it is unchanged");
    }

    #[test]
    fn a_cut_file_is_damaged_and_a_file_outside_the_store_passes() {
        let folder = stored();
        fs::write(folder.path().join("weights.gguf"), b"hell").expect("written");
        assert!(check_changed(folder.path()).is_err());
        let other = tempfile::tempdir().expect("a folder");
        check_changed(&other.path().join("model.gguf")).expect("not in a store");
    }
}
