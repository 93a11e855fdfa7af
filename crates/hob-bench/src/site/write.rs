//! Writes the files of a page into a folder. It replaces files of the same name and keeps all others.
//! Nothing is flushed to the disk: a page can be built again.

use std::io;
use std::path::Path;

use fs_err as fs;

use super::PageFile;

/// # Errors
/// A folder or file cannot be written. The error names it.
pub fn write(folder: &Path, files: &[PageFile]) -> io::Result<()> {
    fs::create_dir_all(folder.join("run"))?;
    files.iter().try_for_each(|file| fs::write(folder.join(&file.path), &file.bytes))
}
