//! The folder next to an audiobook that keeps its finished parts. A part appears whole or not at all.
//! A file in it says what the parts were made of, so that parts of another text or voice are never mixed.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use hob_core::Speed;
use hob_speech::audiobook::{BookFormat, DamagedPart};
use sha2::{Digest as _, Sha256};

use super::Book;
use crate::failure::{CliResult, Failure};
use crate::printer::Printer;
use crate::sink::Sink;

/// The file that says what the parts were made of. It is locked while they are made.
const RECIPE: &str = "hob-audiobook";

/// What the sound depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe<'a> {
    /// A model, or a server.
    pub(crate) engine: &'a str,
    pub(crate) voice: &'a str,
    pub(crate) speed: Speed,
    /// The user's pronunciations. Those of a server are not known, so this is empty.
    pub(crate) lexicon: &'a BTreeMap<String, String>,
}

/// The folder, which is locked until this is dropped.
#[derive(Debug)]
pub(crate) struct PartFolder {
    folder: PathBuf,
    ending: &'static str,
    locked: std::fs::File,
}

impl PartFolder {
    /// Opens the folder of `output`. Deletes its parts if they are of another recipe or text, and says so.
    ///
    /// # Errors
    /// The folder cannot be made, is not hob's, or another hob uses it.
    pub(crate) fn open(
        output: &Path,
        book: &Book,
        recipe: Recipe<'_>,
        printer: &Printer,
    ) -> CliResult<PartFolder> {
        let folder = place(output);
        let broken = |error| Failure::io("cannot use the folder of parts", &error);
        fs_err::create_dir_all(&folder).map_err(broken)?;
        let recipe_file = folder.join(RECIPE);
        let has_other_files =
            !recipe_file.exists() && fs_err::read_dir(&folder).map_err(broken)?.next().is_some();
        if has_other_files {
            let failure = Failure::usage(format!("{} holds other files", folder.display()));
            return Err(failure.hint("move them away: hob keeps the parts of the book there"));
        }
        let mut options = std::fs::File::options();
        let options = options.create(true).truncate(false).read(true).write(true);
        let mut locked = options.open(&recipe_file).map_err(broken)?;
        match locked.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = format!("another hob speaks {} now", output.display());
                return Err(Failure::usage(text).hint("wait for it, or choose another output"));
            }
            Err(TryLockError::Error(error)) => return Err(broken(error)),
        }
        let mut before = String::new();
        locked.read_to_string(&mut before).map_err(broken)?;
        let ending = book.format.sound().name();
        let now = fingerprint(book, recipe);
        let folder = PartFolder { folder, ending, locked };
        if before != now {
            if !before.is_empty() {
                printer.note(
                    "the text, voice, speed, lexicon, engine or hob's version has changed: hob starts from the beginning",
                );
            }
            folder.start_again(&now).map_err(broken)?;
        }
        Ok(folder)
    }

    /// The parts go first: a crash in between leaves no part with another recipe.
    fn start_again(&self, recipe: &str) -> std::io::Result<()> {
        for entry in fs_err::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name() != RECIPE {
                fs_err::remove_file(entry.path())?;
            }
        }
        let mut file = &self.locked;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(recipe.as_bytes())
    }

    fn part(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{number:05}.{}", self.ending))
    }

    /// The numbers of the parts that are not finished. After a crash of the whole machine, a file may be there without its
    /// bytes.
    pub(super) fn missing(&self, parts: usize) -> Vec<usize> {
        let is_finished =
            |number: &usize| fs_err::metadata(self.part(*number)).is_ok_and(|file| file.len() > 0);
        (0..parts).filter(|number| !is_finished(number)).collect()
    }

    pub(super) fn sink(&self, number: usize) -> CliResult<Sink> {
        Sink::open(&self.part(number))
    }

    pub(super) fn read(&self, number: usize) -> CliResult<Vec<u8>> {
        fs_err::read(self.part(number))
            .map_err(|error| Failure::io("cannot read a part of the book", &error))
    }

    pub(super) fn damaged(&self, number: usize, damage: &DamagedPart) -> Failure {
        let part = self.part(number);
        Failure::internal(format!("{}: {damage}", part.display()))
            .hint("delete this file, and run the same command again")
    }

    /// Removes the folder, when the book is complete.
    pub(super) fn remove(self) -> CliResult<()> {
        fs_err::remove_dir_all(&self.folder)
            .map_err(|error| Failure::io("cannot remove the folder of parts", &error))
    }
}

/// `book.m4b.parts`.
fn place(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".parts");
    PathBuf::from(name)
}

/// A hash of everything that the parts depend on.
fn fingerprint(book: &Book, recipe: Recipe<'_>) -> String {
    let Recipe { engine, voice, speed, lexicon } = recipe;
    let speed = speed.rate().to_string();
    let format = match book.format {
        BookFormat::M4b => "m4b",
        BookFormat::Mp3 => "mp3",
    };
    let sound = [env!("CARGO_PKG_VERSION"), engine, voice, &speed, format, &book.text];
    let words = lexicon.iter().flat_map(|(word, said)| [word.as_str(), said.as_str()]);
    let mut hash = Sha256::new();
    for part in &book.parts {
        hash.update((part.range.end as u64).to_be_bytes());
    }
    for value in sound.into_iter().chain(words) {
        // With its length, so that no two lists of values are written alike.
        hash.update((value.len() as u64).to_be_bytes());
        hash.update(value.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
