//! Reads small files that the user names: regular files of bounded size only.
//! A FIFO would block hob, and `/dev/zero` would fill its memory.

use std::io::{self, Read};
use std::path::Path;

/// The text of a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// The file cannot be read, is not a regular file, is too large, or is not UTF-8.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read_bytes(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| refused(path, "it is not a text in UTF-8"))
}

/// The bytes of a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is too large.
pub(crate) fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a FIFO waits for a writer.
    let metadata = std::fs::metadata(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    if !metadata.is_file() {
        return Err(refused(path, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    // The size that a file says is not always the size that it has.
    fs_err::File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(refused(path, &format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

fn refused(path: &Path, reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_of_bounded_size_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "1234").expect("written");
        assert_eq!(read_text(&file, 4).expect("a text"), "1234");
        let refused = read_text(&file, 3).expect_err("too large").to_string();
        assert!(refused.ends_with("it has more than 3 bytes"), "{refused}");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        for special in [Path::new("/dev/zero"), folder.path(), &pipe] {
            let refused = read_text(special, 4).expect_err("no file").to_string();
            assert!(refused.ends_with("it is not a regular file"), "{refused}");
        }
        std::fs::write(&file, [0xff]).expect("written");
        assert_eq!(read_bytes(&file, 1).expect("bytes"), [0xff]);
        let refused = read_text(&file, 4).expect_err("no text").to_string();
        assert!(refused.ends_with("file: it is not a text in UTF-8"), "{refused}");
        let missing = read_text(&folder.path().join("other"), 4).expect_err("no file");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(missing.to_string().contains("other: No such file"), "{missing}");
    }
}
