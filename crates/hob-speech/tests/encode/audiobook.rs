//! Audiobooks, read by ffmpeg: chapters at their times, and all of the sound.

use std::path::{Path, PathBuf};
use std::process::Command;

use hob_speech::audiobook::{BookFile, BookFormat};
use hob_speech::encode::Length;

use crate::{RATE_HZ, encode};

/// Each part is a second of a tone.
const PARTS: [usize; 3] = [2, 1, 3];

fn book(format: BookFormat, chapters: &[(String, usize)]) -> Vec<u8> {
    let tone: Vec<f32> = (0..RATE_HZ).map(|n| (n as f32 * 0.1).sin() * 0.25).collect();
    let part = encode(format.sound(), Length::Unknown, &[&tone[..]]).unwrap();
    let mut book = BookFile::new(format, "A Book");
    for (title, parts) in chapters {
        book.begin_chapter(title);
        (0..*parts).for_each(|_| book.measure(&part).unwrap());
    }
    let count = chapters.iter().map(|(_, parts)| parts).sum();
    let sound = vec![book.part(&part).unwrap(); count].concat();
    [book.head(), sound, book.tail()].concat()
}

/// The formats that this build can write, with the ending of their files.
fn built() -> Vec<(BookFormat, &'static str)> {
    let built = crate::built();
    let all = [(BookFormat::M4b, "m4b"), (BookFormat::Mp3, "mp3")];
    all.into_iter().filter(|(format, _)| built.contains(&format.sound())).collect()
}

/// In a file, because ffmpeg goes back and forth in it to find the chapters.
fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, bytes).unwrap();
    file
}

/// What ffmpeg prints, without any complaint.
fn ffmpeg(file: &Path, output: &[&str]) -> Vec<u8> {
    let command = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(file)
        .args(output)
        .arg("pipe:1")
        .output()
        .expect("these tests decode with ffmpeg: install the package 'ffmpeg'");
    assert_eq!(String::from_utf8_lossy(&command.stderr), "", "{}", file.display());
    command.stdout
}

/// Title and start of each chapter.
fn chapters(file: &Path) -> Vec<(String, f64)> {
    let listed = String::from_utf8(ffmpeg(file, &["-f", "ffmetadata"])).unwrap();
    let value = |part: &str, key: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.to_owned()
    };
    let chapter = |part: &str| {
        let base = value(part, "TIMEBASE=1/").parse::<f64>().unwrap();
        (value(part, "title="), value(part, "START=").parse::<f64>().unwrap() / base)
    };
    listed.split("[CHAPTER]").skip(1).map(chapter).collect()
}

#[test]
fn chapters_begin_where_their_parts_begin() {
    for (format, ending) in built() {
        let titles = ["One", "Zwei — ü", "Three"].map(str::to_owned);
        let all: Vec<(String, usize)> = titles.clone().into_iter().zip(PARTS).collect();
        let file = written(&format!("chapters.{ending}"), &book(format, &all));
        let found = chapters(&file);
        let names: Vec<&String> = found.iter().map(|(title, _)| title).collect();
        assert_eq!(names, titles.iter().collect::<Vec<_>>(), "{ending}");
        for ((_, start_s), expected_s) in found.iter().zip([0.0, 2.0, 3.0]) {
            // Each part is up to three frames longer than its sound.
            assert!((0.0..0.4).contains(&(start_s - expected_s)), "{ending}: {found:?}");
        }
        let pcm = ffmpeg(&file, &["-map", "0:a", "-f", "s16le", "-ar", "24000", "-ac", "1"]);
        let sound_s = pcm.len() as f64 / 2.0 / f64::from(RATE_HZ);
        assert!((6.0..7.0).contains(&sound_s), "{ending}: {sound_s} s");
    }
}

#[test]
fn more_chapters_than_a_list_can_count_have_their_marks() {
    for (format, ending) in built() {
        let all: Vec<(String, usize)> = (0..300).map(|n| (format!("Chapter {n}"), 1)).collect();
        let file = written(&format!("many.{ending}"), &book(format, &all));
        let found = chapters(&file);
        assert_eq!(found.len(), 300, "{ending}");
        assert_eq!(found[299].0, "Chapter 299", "{ending}");
    }
}

#[test]
fn a_damaged_part_is_refused() {
    for (format, ending) in built() {
        let part = encode(format.sound(), Length::Unknown, &[&[0.1; 24_000][..]]).unwrap();
        let mut book = BookFile::new(format, "A Book");
        let cut = book.measure(&part[..part.len() - 1]).unwrap_err();
        assert!(cut.at > 0 && cut.at < part.len(), "{ending}: {cut}");
        assert!(book.part(b"no sound").is_err(), "{ending}");
    }
}
