//! Parsers of option values.
//! They return the types that a command works with, so that no enum exists for the command line alone.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::bounded_file::read_text_once;
use crate::failure::{CliResult, Failure};

/// Maximum bytes of a file of sentences.
const SENTENCES_BYTES_MAX: u64 = 16 << 20;

/// Parses one of these words. Each has its help, which may be empty, and its value.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let known = words.each_ref().map(|(word, help, _)| match *help {
        "" => PossibleValue::new(*word),
        help => PossibleValue::new(*word).help(help),
    });
    PossibleValuesParser::new(known).try_map(move |typed| {
        let found = words.iter().find(|(word, _, _)| *word == typed);
        found.map(|(_, _, value)| value.clone()).ok_or("an unknown word")
    })
}

/// Parses a number for which `suits` holds. The error says what was expected.
pub(crate) fn number<T: FromStr>(
    text: &str,
    suits: impl FnOnce(&T) -> bool,
    expected: impl Display,
) -> Result<T, String> {
    text.trim().parse().ok().filter(suits).ok_or_else(|| format!("expected {expected}"))
}

/// The lines of a file of the user, without empty ones.
///
/// # Errors
/// The file is not a regular file or cannot be read, or has no line or too many.
pub(crate) fn sentences(file: &Path, count_max: usize) -> CliResult<Vec<String>> {
    let text = read_text_once(file, SENTENCES_BYTES_MAX).map_err(Failure::usage)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    if !(1..=count_max).contains(&lines.len()) {
        let (file, count) = (file.display(), lines.len());
        return Err(Failure::usage(format!(
            "{file} has {count} sentences (expected 1 to {count_max}, each in a line of its own)"
        )));
    }
    Ok(lines)
}
