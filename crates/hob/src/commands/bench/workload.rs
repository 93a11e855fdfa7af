//! Options that several measuring verbs share: what a model is asked, and by how many users.
//! Each verb has its own defaults.

use std::io::{self, Read};
use std::path::Path;

use clap::Args;
use hob_bench::chat::{SHAPES, Shape, ThinkingChoice};
use hob_bench::drive::{Arrivals, CONNECTIONS_MAX};
use hob_bench::experiment::{Axis, RunSize};
use hob_bench::speech::{Formats, SpeechWorkload, Streaming, TEXTS, Text};
use hob_bench::timeline::SoundFormat;

use crate::bounded_file::read_text_once;
use crate::failure::{CliResult, Failure};

/// The longest text that hob speaks.
const TEXT_CHARS_MAX: usize = 100_000;
/// Maximum bytes that are read of a text. More than the longest text has.
const TEXT_BYTES_MAX: u64 = 1 << 20;

pub(super) const THINKING: [(&str, &str, ThinkingChoice); 3] = [
    ("auto", "", ThinkingChoice::Auto),
    ("on", "", ThinkingChoice::On),
    ("off", "", ThinkingChoice::Off),
];

/// Options of measuring speech: formats and voices.
#[derive(Clone, Debug, Args)]
pub(super) struct VoiceArgs {
    /// Formats: pcm, wav, mp3; without it those that the server offers
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = format)]
    format: Vec<SoundFormat>,
    /// Voices; without it the first that the server lists
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    voice: Vec<String>,
}

impl VoiceArgs {
    /// These texts, in `usual` formats where none was typed.
    pub(super) fn speech(
        &self,
        texts: &[Text],
        usual: Formats,
        streaming: &[Streaming],
    ) -> SpeechWorkload {
        SpeechWorkload {
            texts: texts.to_vec(),
            formats: match &self.format[..] {
                [] => usual,
                typed => Formats::All(typed.to_vec()),
            },
            voices: self.voice.clone(),
            streaming: streaming.to_vec(),
        }
    }
}

/// The requests of one run.
///
/// # Errors
/// There are none.
pub(super) fn run_size(rounds: usize, duration_s: u16) -> CliResult<RunSize> {
    if rounds == 0 {
        return Err(Failure::usage("each user must send at least 1 request in a run, not 0"));
    }
    Ok(RunSize { rounds, span_s: duration_s.into() })
}

/// Users of whom each waits for its answer.
pub(super) fn waiting_users(counts: &[usize]) -> CliResult<Axis> {
    let closed = users(counts)?.into_iter().map(|users| Arrivals::Closed { users });
    Ok(Axis::Load(closed.collect()))
}

/// Checks numbers of users.
pub(super) fn users(users: &[usize]) -> CliResult<Vec<usize>> {
    match users.iter().find(|users| !(1..=CONNECTIONS_MAX).contains(*users)) {
        Some(users) => {
            Err(Failure::usage(format!("{users} users; from 1 to {CONNECTIONS_MAX} are possible")))
        }
        None => Ok(users.to_vec()),
    }
}

pub(super) fn shape(name: &str) -> Result<Shape, String> {
    let known = SHAPES.map(|shape| shape.name).join(", ");
    Shape::by_name(name.trim()).ok_or_else(|| format!("known shapes: {known}"))
}

pub(super) fn text(name: &str) -> Result<Text, String> {
    let known = TEXTS.map(|text| text.name).join(", ");
    Text::by_name(name.trim()).ok_or_else(|| format!("known texts: {known}"))
}

/// The text is named by its file, because records keep the command line and no text.
pub(super) fn own_text(file: &str) -> Result<Text, String> {
    let words = match file {
        "-" => piped_text(io::stdin()).map_err(|error| format!("stdin: {error}"))?,
        file => {
            read_text_once(Path::new(file), TEXT_BYTES_MAX).map_err(|error| error.to_string())?
        }
    };
    match words.trim() {
        "" => Err("the text is empty".to_owned()),
        long if long.chars().count() > TEXT_CHARS_MAX => {
            let chars = long.chars().count();
            Err(format!("the text has {chars} characters, and the limit is {TEXT_CHARS_MAX}"))
        }
        words => Ok(Text::custom(words)),
    }
}

fn piped_text(input: impl Read) -> io::Result<String> {
    let text = io::read_to_string(input.take(TEXT_BYTES_MAX + 1))?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        let reason = format!("it has more than {TEXT_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    Ok(text)
}

fn format(name: &str) -> Result<SoundFormat, String> {
    let known = SoundFormat::ALL.map(SoundFormat::name).join(", ");
    SoundFormat::by_name(name.trim()).ok_or_else(|| format!("known formats: {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_ones_own_is_spoken_unless_it_is_empty_or_too_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("own.txt");
        let spoken = |words: &str| {
            std::fs::write(&file, words).expect("written");
            own_text(&file.display().to_string())
        };
        assert_eq!(spoken("\nHello there.\n").expect("a text").words, "Hello there.");
        assert_eq!(spoken(" \n").expect_err("no words"), "the text is empty");
        let long = spoken(&"a".repeat(TEXT_CHARS_MAX + 1)).expect_err("too long");
        assert_eq!(long, "the text has 100001 characters, and the limit is 100000");
        assert!(own_text(&folder.path().join("none").display().to_string()).is_err());
        let endless = own_text("/dev/zero").expect_err("no end");
        assert_eq!(endless, "/dev/zero: it is not a regular file");
        assert_eq!(piped_text(&b"Hello."[..]).expect("a text"), "Hello.");
        let endless = piped_text(io::repeat(b'a')).expect_err("no end").to_string();
        assert_eq!(endless, "it has more than 1048576 bytes");
    }
}
