//! Reads small files that the user names: regular files of bounded size only.
//! A FIFO would block hob, and `/dev/zero` would fill its memory.

use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Where the files are that are open already, such as the pipe of `<(…)`.
const OPEN_FILES: [&str; 3] = ["/dev/fd", "/dev/stdin", "/proc/self/fd"];

/// The text of a regular file of at most `bytes_max` bytes, without a byte order mark.
///
/// # Errors
/// The file cannot be read, is not a regular file, is too large, or is not UTF-8.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text(path, read_bytes(path, bytes_max)?)
}

/// Like [`read_text`], for a file that is read one time only. It may also be a pipe that is open already.
///
/// # Errors
/// See [`read_text`].
pub(crate) fn read_text_once(path: &Path, bytes_max: u64) -> io::Result<String> {
    text(path, read_bytes_once(path, bytes_max)?)
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
    read(path, bytes_max)
}

/// Like [`read_bytes`], for a file that is read one time only. It may also be a pipe that is open already.
///
/// # Errors
/// See [`read_bytes`].
pub(crate) fn read_bytes_once(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    match is_open_pipe(path) {
        true => read(path, bytes_max),
        false => read_bytes(path, bytes_max),
    }
}

/// Such a pipe has had a writer, so opening it does not wait for one.
fn is_open_pipe(path: &Path) -> bool {
    OPEN_FILES.iter().any(|folder| path.starts_with(folder))
        && std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The size that a file says is not always the size that it has.
    fs_err::File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(refused(path, &format!("it has more than {bytes_max} bytes")));
    }
    Ok(bytes)
}

fn text(path: &Path, bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes).map_err(|_| refused(path, "it is not a text in UTF-8"))?;
    // Editors of Windows write a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn refused(path: &Path, reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_pipe_that_is_open_already_is_read_one_time() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"1234").expect("written");
        drop(writer);
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        let refused = read_text(Path::new(&path), 4).expect_err("no file").to_string();
        assert!(refused.ends_with("it is not a regular file"), "{refused}");
        assert_eq!(read_text_once(Path::new(&path), 4).expect("a text"), "1234");
    }

    #[test]
    fn only_a_regular_file_of_bounded_size_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "1234").expect("written");
        assert_eq!(read_text(&file, 4).expect("a text"), "1234");
        std::fs::write(&file, "\u{feff}1234").expect("written");
        assert_eq!(read_text(&file, 7).expect("a text"), "1234", "without its byte order mark");
        let refused = read_text(&file, 3).expect_err("too large").to_string();
        assert!(refused.ends_with("it has more than 3 bytes"), "{refused}");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        for special in [Path::new("/dev/zero"), folder.path(), &pipe] {
            for result in [read_text(special, 4), read_text_once(special, 4)] {
                let refused = result.expect_err("no file").to_string();
                assert!(refused.ends_with("it is not a regular file"), "{refused}");
            }
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
