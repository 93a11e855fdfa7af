//! Books that are interrupted, changed, damaged, or spoken by two processes at the same time.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hob_core::{ModelError, Speed};

use super::*;
use crate::printer::Volume;

const TEXT: &str = "# One\n\nFirst.\n\n* * *\n\n# Two\n\nSecond.\n\n# Three\n\nThird.\n";
const PARTS: [&str; 3] = ["# One\n\nFirst.\n\n* * *", "# Two\n\nSecond.", "# Three\n\nThird."];

fn book(text: &str) -> Book {
    Book::of(text.to_owned(), "A Book".to_owned(), BookFormat::Mp3).expect("a book")
}

static NO_LEXICON: BTreeMap<String, String> = BTreeMap::new();

fn recipe(voice: &str) -> Recipe<'_> {
    Recipe { engine: "scripted", voice, speed: Speed::NORMAL, lexicon: &NO_LEXICON }
}

/// A tenth of a second of sound, as an engine sends it.
fn sound() -> Vec<Result<SpeechEvent, ModelError>> {
    vec![Ok(SpeechEvent::Audio(vec![0.1; 2_400]))]
}

/// A user's folder, and the texts that the engine got.
struct Stage {
    folder: tempfile::TempDir,
    asked: Mutex<Vec<String>>,
}

impl Stage {
    fn new() -> Stage {
        Stage { folder: tempfile::tempdir().expect("a folder"), asked: Mutex::default() }
    }

    /// The engine breaks when it has spoken `limit` parts in all.
    async fn speak(&self, book: &Book, voice: &str, limit: usize) -> CliResult<String> {
        let printer = Printer::new(Volume::ErrorsOnly);
        let output = self.output();
        let folder = PartFolder::open(&output, book, recipe(voice), &printer)?;
        let speak = |text: String| {
            let mut asked = self.asked.lock().expect("no panic");
            let is_broken = asked.len() >= limit;
            if !is_broken {
                asked.push(text);
            }
            async move {
                if is_broken {
                    return Err(Failure::engine("killed"));
                }
                Ok(SpeechStream::new(24_000, stream::iter(sound())))
            }
        };
        book.speak(&output, folder, (1.0, &printer), speak).await
    }

    fn output(&self) -> std::path::PathBuf {
        self.folder.path().join("book.mp3")
    }

    fn parts(&self) -> std::path::PathBuf {
        self.folder.path().join("book.mp3.parts")
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

#[tokio::test]
async fn an_interrupted_book_goes_on_and_speaks_nothing_twice() {
    let stage = Stage::new();
    let killed = stage.speak(&book(TEXT), "ada", 2).await.expect_err("it broke");
    assert_eq!(killed.sentence, "killed");
    assert!(!stage.output().exists() && stage.parts().join("00001.mp3").exists());
    let said = stage.speak(&book(TEXT), "ada", 9).await.expect("the rest");
    let length = said.strip_prefix("3 chapters, ").expect("the chapters");
    assert_eq!(length.split(' ').nth(1), Some("s"), "{said}");
    assert_eq!(stage.asked(), PARTS);
    assert!(fs_err::read(stage.output()).expect("a file").starts_with(b"ID3"));
    assert!(!stage.parts().exists());
}

#[tokio::test]
async fn two_parts_are_spoken_at_the_same_time() {
    let (stage, printer) = (Stage::new(), Printer::new(Volume::ErrorsOnly));
    let (book, output) = (book(TEXT), stage.output());
    let folder = PartFolder::open(&output, &book, recipe("ada"), &printer).expect("a folder");
    let counts = [Cell::new(0), Cell::new(0)];
    let [speaking, most] = &counts;
    let speak = |_: String| async move {
        speaking.set(speaking.get() + 1);
        most.set(most.get().max(speaking.get()));
        tokio::task::yield_now().await;
        speaking.set(speaking.get() - 1);
        Ok::<_, Failure>(SpeechStream::new(24_000, stream::iter(sound())))
    };
    book.speak(&output, folder, (1.0, &printer), speak).await.expect("a book");
    assert_eq!(most.get(), 2);
}

#[tokio::test]
async fn a_server_that_takes_one_request_at_a_time_gets_one_after_the_other() {
    let (stage, printer) = (Stage::new(), Printer::new(Volume::ErrorsOnly));
    let (book, output) = (book(TEXT), stage.output());
    let folder = PartFolder::open(&output, &book, recipe("ada"), &printer).expect("a folder");
    let (key, refused) = (Arc::new(()), &Cell::new(0));
    let speak = |_: String| {
        let place = (Arc::strong_count(&key) == 1).then(|| Arc::clone(&key));
        async move {
            let Some(place) = place else {
                refused.set(refused.get() + 1);
                return Err(Failure::server("this key may have one answer at a time"));
            };
            tokio::task::yield_now().await;
            // The place is free again when the sound has been read.
            let sound = stream::iter(sound()).map(move |event| {
                let _held = &place;
                event
            });
            Ok(SpeechStream::new(24_000, sound))
        }
    };
    book.speak(&output, folder, (1.0, &printer), speak).await.expect("a book");
    assert_eq!(refused.get(), 1, "of three parts");
}

#[tokio::test]
async fn another_voice_or_text_starts_from_the_beginning() {
    let stage = Stage::new();
    let changed = TEXT.replace("Third", "Last");
    for (text, voice, limit, is_whole) in
        [(TEXT, "ada", 2, false), (TEXT, "bob", 4, false), (&*changed, "bob", 9, true)]
    {
        let spoken = stage.speak(&book(text), voice, limit).await;
        assert_eq!(spoken.is_ok(), is_whole, "{voice}");
    }
    let [one, two, _] = PARTS;
    assert_eq!(stage.asked(), [one, two, one, two, one, two, "# Three\n\nLast."]);
}

#[test]
fn another_lexicon_starts_from_the_beginning() {
    let stage = Stage::new();
    let printer = Printer::new(Volume::ErrorsOnly);
    let missing = |said: &str| {
        let lexicon = BTreeMap::from([("First".to_owned(), said.to_owned())]);
        let recipe = Recipe { lexicon: &lexicon, ..recipe("ada") };
        let folder = PartFolder::open(&stage.output(), &book(TEXT), recipe, &printer);
        folder.expect("a folder").missing(PARTS.len())
    };
    assert_eq!(missing("foremost"), [0, 1, 2]);
    fs_err::write(stage.parts().join("00000.mp3"), "sound").expect("written");
    assert_eq!(missing("foremost"), [1, 2]);
    assert_eq!(missing("primary"), [0, 1, 2]);
}

#[test]
fn another_division_starts_from_the_beginning() {
    let stage = Stage::new();
    let printer = Printer::new(Volume::ErrorsOnly);
    let missing = |book: &Book| {
        let folder = PartFolder::open(&stage.output(), book, recipe("ada"), &printer);
        folder.expect("a folder").missing(PARTS.len())
    };
    let mut book = book(TEXT);
    assert_eq!(missing(&book), [0, 1, 2]);
    fs_err::write(stage.parts().join("00000.mp3"), "sound").expect("written");
    assert_eq!(missing(&book), [1, 2]);
    book.parts[0].range.end -= 1;
    assert_eq!(missing(&book), [0, 1, 2]);
}

#[tokio::test]
async fn a_part_without_its_bytes_is_spoken_again() {
    let stage = Stage::new();
    stage.speak(&book(TEXT), "ada", 2).await.expect_err("it broke");
    fs_err::write(stage.parts().join("00000.mp3"), "").expect("written");
    stage.speak(&book(TEXT), "ada", 9).await.expect("whole");
    let [one, two, three] = PARTS;
    assert_eq!(stage.asked(), [one, two, one, three]);
}

#[tokio::test]
async fn a_damaged_part_is_named() {
    let stage = Stage::new();
    stage.speak(&book(TEXT), "ada", 2).await.expect_err("it broke");
    let part = stage.parts().join("00000.mp3");
    fs_err::write(&part, "no sound").expect("written");
    let failure = stage.speak(&book(TEXT), "ada", 9).await.expect_err("a damaged part");
    assert!(failure.sentence.contains("00000.mp3: the sound is damaged at byte 0"), "{failure}");
    fs_err::remove_file(&part).expect("removed");
    stage.speak(&book(TEXT), "ada", 9).await.expect("whole");
    let [one, two, three] = PARTS;
    assert_eq!(stage.asked(), [one, two, three, one]);
}

#[tokio::test]
async fn a_folder_is_used_by_one_hob_and_never_taken_from_the_user() {
    let stage = Stage::new();
    let printer = Printer::new(Volume::ErrorsOnly);
    let open = || PartFolder::open(&stage.output(), &book(TEXT), recipe("ada"), &printer);
    fs_err::create_dir(stage.parts()).expect("a folder");
    fs_err::write(stage.parts().join("notes.txt"), "mine").expect("written");
    let refused = open().expect_err("other files");
    assert!(refused.sentence.ends_with("book.mp3.parts holds other files"), "{refused}");
    fs_err::remove_file(stage.parts().join("notes.txt")).expect("it is still there");
    let first = open().expect("a folder");
    let refused = open().expect_err("it is in use");
    assert!(refused.sentence.starts_with("another hob speaks "), "{refused}");
    drop(first);
    open().expect("free");
}

#[test]
fn a_text_without_words_is_no_book() {
    let empty = Book::of(" \n\n".to_owned(), String::new(), BookFormat::Mp3);
    assert_eq!(empty.expect_err("nothing to speak").exit, Exit::Usage);
}

#[test]
fn a_length_is_said_in_the_units_that_matter() {
    for (sound_s, expect) in [
        (8.24, "8.2 s"),
        (59.4, "59.4 s"),
        (200.0, "3 min 20 s"),
        (3_599.0, "59 min 59 s"),
        (39_910.0, "11 h 5 min"),
    ] {
        assert_eq!(length_text(sound_s), expect);
    }
}
