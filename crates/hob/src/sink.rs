//! Files that hob writes for the user. Encoded sound goes to stdout, or to a file that appears complete or not at all.
//! So a full disk cannot leave half a sound file that looks complete.

use std::io::{self, IsTerminal, Seek as _, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{CliResult, Failure};

#[derive(Debug)]
pub(crate) enum Sink {
    /// Written under a temporary name in the same folder, and renamed when complete; deleted if dropped before.
    File {
        temporary: NamedTempFile,
        place: PathBuf,
    },
    /// A device or a pipe, which cannot be replaced by a rename.
    Device {
        file: fs_err::File,
    },
    Stdout,
}

/// Whether the program that reads the output still reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PipeState {
    Open,
    Closed,
}

impl Sink {
    /// `-` is stdout.
    ///
    /// # Errors
    /// The file cannot be created, or sound would be written to a terminal.
    pub(crate) fn open(place: &Path) -> CliResult<Sink> {
        if place == Path::new("-") {
            return Sink::stdout();
        }
        // Follows links, so that the target of a link is replaced and not the link itself.
        let place = fs_err::canonicalize(place).unwrap_or_else(|_| place.to_path_buf());
        let found = fs_err::metadata(&place).map(|metadata| metadata.file_type());
        match found {
            Ok(kind) if kind.is_dir() => {
                Err(Failure::usage(format!("{} is a folder", place.display()))
                    .hint("give a file name in it, such as hello.mp3"))
            }
            Ok(kind) if !kind.is_file() => device(&place),
            _ => file(place),
        }
    }

    pub(crate) fn stdout() -> CliResult<Sink> {
        if io::stdout().is_terminal() {
            return Err(Failure::usage("hob does not write sound to a terminal")
                .hint("write a file with -o, or pipe the output"));
        }
        Ok(Sink::Stdout)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> CliResult<PipeState> {
        let written = match self {
            Sink::File { temporary, .. } => temporary.write_all(bytes),
            Sink::Device { file } => file.write_all(bytes),
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
        };
        match written {
            Ok(()) => Ok(PipeState::Open),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(PipeState::Closed),
            Err(error) => Err(Failure::io(format!("cannot write {}", self.name()), &error)),
        }
    }

    /// Writes over the first bytes of a file. A device and a pipe keep what they have.
    pub(crate) fn begin_with(&mut self, bytes: &[u8]) -> CliResult<()> {
        let Sink::File { temporary, .. } = self else { return Ok(()) };
        let written = temporary.rewind().and_then(|()| temporary.write_all(bytes));
        written.map_err(|error| Failure::io(format!("cannot write {}", self.name()), &error))
    }

    /// Renames the file to its final name.
    pub(crate) fn finish(self) -> CliResult<()> {
        if let Sink::File { temporary, place } = self {
            let name = place.display().to_string();
            temporary
                .persist(&place)
                .map_err(|error| Failure::io(format!("cannot write {name}"), &error.error))?;
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self {
            Sink::File { place, .. } => place.display().to_string(),
            Sink::Device { file } => file.path().display().to_string(),
            Sink::Stdout => "stdout".to_owned(),
        }
    }
}

/// Whether a file under one of these names would take the place of one under the other. Devices and pipes take no place.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    match [one, other].map(|path| fs_err::canonicalize(path).ok()) {
        [Some(one), Some(other)] => one == other && one.is_file(),
        [None, None] => std::path::absolute(one).ok() == std::path::absolute(other).ok(),
        _ => false,
    }
}

fn device(place: &Path) -> CliResult<Sink> {
    let file = fs_err::OpenOptions::new().write(true).open(place);
    let file = file.map_err(|error| Failure::io("cannot open the output", &error))?;
    Ok(Sink::Device { file })
}

fn file(place: PathBuf) -> CliResult<Sink> {
    let temporary = draft_of(&place)
        .map_err(|error| Failure::io(format!("cannot create {}", place.display()), &error))?;
    Ok(Sink::File { temporary, place })
}

/// A hidden file in the folder of `place`, which takes that place when it is complete. Readable as the user's umask
/// allows, like files of other programs.
pub(crate) fn draft_of(place: &Path) -> io::Result<NamedTempFile> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut draft = tempfile::Builder::new();
    draft.prefix(".hob-").suffix(".part").permissions(mode).tempfile_in(folder_of(place))
}

/// Writes a text as a new file.
///
/// # Errors
/// The file exists already, with the hint `if_taken`, or it cannot be written.
pub(crate) fn write_new(place: &Path, text: &str, if_taken: &str) -> CliResult<()> {
    let file = fs_err::OpenOptions::new().write(true).create_new(true).open(place);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} already exists", place.display())).hint(if_taken)
        }
        _ => Failure::io("cannot write the file", &error),
    })
}

/// The folder in which a file has its place.
pub(crate) fn folder_of(place: &Path) -> &Path {
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(folder).expect("a folder");
        let name = |entry: io::Result<fs_err::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("a.wav");
        let mut sink = Sink::open(&place).expect("a sink");
        assert_eq!(sink.write(b"half"), Ok(PipeState::Open));
        assert!(!place.exists());
        drop(sink);
        assert_eq!(names(folder.path()), Vec::<String>::new());
        let mut sink = Sink::open(&place).expect("a sink");
        assert_eq!(sink.write(b"whole"), Ok(PipeState::Open));
        sink.finish().expect("in its place");
        assert_eq!(fs_err::read(&place).expect("a file"), b"whole");
        assert_eq!(names(folder.path()), ["a.wav"]);
    }

    #[test]
    fn links_are_followed_and_devices_are_written_directly() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real.wav"), folder.path().join("link.wav"));
        fs_err::write(&real, "old").expect("a file");
        fs_err::os::unix::fs::symlink(&real, &link).expect("a link");
        let mut sink = Sink::open(&link).expect("a sink");
        sink.write(b"new").expect("written");
        sink.finish().expect("in its place");
        assert!(link.is_symlink());
        assert_eq!(fs_err::read(&real).expect("a file"), b"new");
        let sink = Sink::open(Path::new("/dev/null")).expect("a sink");
        assert!(matches!(sink, Sink::Device { .. }));
    }

    #[test]
    fn a_file_that_cannot_be_written_gives_an_error_with_its_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let is_folder = Sink::open(folder.path()).expect_err("a folder");
        assert!(is_folder.sentence.ends_with("is a folder"), "{is_folder}");
        let nowhere = Sink::open(&folder.path().join("no/such.wav")).expect_err("no folder");
        assert!(nowhere.sentence.starts_with("cannot create "), "{nowhere}");
        let full = Sink::open(Path::new("/dev/full"));
        if let Ok(mut full) = full {
            let failure = full.write(b"x").expect_err("full");
            assert_eq!(failure.hint.as_deref(), Some("free some space, or write to another disk"));
        }
    }

    #[test]
    fn one_file_has_several_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link, new] = ["file", "link", "new"].map(|name| folder.path().join(name));
        fs_err::write(&file, "a").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let dotted = |name: &str| folder.path().join(".").join(name);
        for (one, other, expected) in [
            (&file, &file, true),
            (&file, &link, true),
            (&file, &dotted("file"), true),
            (&new, &dotted("new"), true),
            (&file, &new, false),
            (&PathBuf::from("/dev/null"), &PathBuf::from("/dev/null"), false),
        ] {
            assert_eq!(is_same_file(one, other), expected, "{one:?} {other:?}");
        }
    }
}
