//! The files of a page into a folder. What is there under the same names is replaced; what else is there stays.
//! Nothing is flushed: a page can be built again.

use std::io;
use std::path::Path;

use fs_err as fs;

use super::PageFile;

/// # Errors
/// The disk refuses; the error names the file.
pub fn write(folder: &Path, files: &[PageFile]) -> io::Result<()> {
    for inner in ["", "model", "rig", "run"] {
        fs::create_dir_all(folder.join(inner))?;
    }
    files.iter().try_for_each(|file| fs::write(folder.join(&file.path), &file.bytes))
}
