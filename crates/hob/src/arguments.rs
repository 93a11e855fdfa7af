//! Parsers of option values.
//! They give the types with which a command works, so that it needs no enum for the command line alone.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

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
