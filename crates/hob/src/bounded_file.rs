//! Reads small text files that the user names: regular files of bounded size only.
//! A FIFO would block hob, and `/dev/zero` would fill its memory.

use std::io::{self, Read};
use std::path::Path;

/// The text of a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// The file cannot be read, is not a regular file, is too large, or is not UTF-8.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let refused = |reason: String| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {reason}", path.display()))
    };
    // Before it is opened: opening a FIFO waits for a writer.
    let metadata = std::fs::metadata(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file".to_owned()));
    }
    let mut text = String::new();
    // The size that a file says is not always the size that it has.
    let read = fs_err::File::open(path)?.take(bytes_max + 1).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => refused("it is not a text in UTF-8".to_owned()),
        _ => error,
    })?;
    if text.len() as u64 > bytes_max {
        return Err(refused(format!("it has more than {bytes_max} bytes")));
    }
    Ok(text)
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
        for special in [Path::new("/dev/zero"), folder.path()] {
            let refused = read_text(special, 4).expect_err("no file").to_string();
            assert!(refused.ends_with("it is not a regular file"), "{refused}");
        }
        std::fs::write(&file, [0xff]).expect("written");
        let refused = read_text(&file, 4).expect_err("no text").to_string();
        assert!(refused.ends_with("file: it is not a text in UTF-8"), "{refused}");
        let missing = read_text(&folder.path().join("other"), 4).expect_err("no file");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(missing.to_string().contains("other: No such file"), "{missing}");
    }
}
