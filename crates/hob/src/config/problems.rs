//! Reports all mistakes in a configuration, and not only the first.
//! The parser stops at an error. Its line is then removed, and the rest is parsed again.

use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use super::{ConfigFile, expected, keys, position};
use crate::failure::Failure;

/// Maximum number of problems that are reported for one file.
const PROBLEMS_MAX: usize = 20;

/// Maximum number of other servers. hob keeps a client for each, and asks each for its list.
const UPSTREAMS_MAX: usize = 256;

/// The result of parsing, as far as the file can be read.
#[derive(Debug, Default)]
pub(super) struct ParsedFile {
    pub(super) config: ConfigFile,
    /// In the order of the file.
    pub(super) problems: Vec<Failure>,
}

/// Looks for unknown keys first, because "did you mean" helps more than a type error that follows from one.
pub(super) fn parse(text: &str, path: &Path) -> ParsedFile {
    let mut problems = keys::unknown(text, path, PROBLEMS_MAX);
    let mut rest = text.to_owned();
    problems.iter().for_each(|(start, _)| rest = without(&rest, *start..*start));
    let config = loop {
        let error = match toml::from_str(&rest) {
            Ok(config) => break config,
            Err(error) => error,
        };
        // Removing a line from the middle of a value may leave invalid TOML. That is not a mistake of the file.
        let is_parsed = DeTable::parse(&rest).is_ok();
        let span = error.span();
        if (is_parsed && problems.len() < PROBLEMS_MAX) || problems.is_empty() {
            let start = span.as_ref().map_or(0, |span| span.start);
            problems.push((start, refusal(text, path, &error)));
        }
        match span.filter(|_| is_parsed && problems.len() < PROBLEMS_MAX) {
            Some(span) => {
                let less = without(&rest, span);
                if less == rest {
                    break ConfigFile::default();
                }
                rest = less;
            }
            None => break ConfigFile::default(),
        }
    };
    problems.extend(too_many_upstreams(&config, text, path));
    problems.sort_by_key(|(start, _)| *start);
    let problems = problems.into_iter().map(|(_, failure)| failure).collect();
    ParsedFile { config, problems }
}

fn refusal(text: &str, path: &Path, error: &toml::de::Error) -> Failure {
    let position = position::of(text, path, error.span());
    let message = expected::for_people(&error.message().replace('\n', "; "));
    Failure::usage(format!("{position}: {message}"))
        .hint("`hob config schema` and docs/reference/config.md say what each key takes")
}

fn too_many_upstreams(config: &ConfigFile, text: &str, path: &Path) -> Option<(usize, Failure)> {
    let count = config.upstream.len();
    if count <= UPSTREAMS_MAX {
        return None;
    }
    let span = keys::span(text, "upstream");
    let start = span.as_ref().map_or(0, |span| span.start);
    let position = position::of(text, path, span);
    let sentence =
        format!("{position}: the file has {count} upstreams and the limit is {UPSTREAMS_MAX}");
    Some((start, Failure::usage(sentence)))
}

/// Removes the lines of `span`, or a whole table if `span` is its head. All other bytes keep their positions.
fn without(text: &str, span: Range<usize>) -> String {
    let start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = |from: usize| text[from..].find('\n').map_or(text.len(), |end| from + end);
    let is_head = text[start..].trim_start().starts_with('[');
    let next_head = || text[line_end(start)..].find("\n[").map(|at| line_end(start) + at);
    let end = match is_head {
        true => next_head().unwrap_or(text.len()),
        false => line_end(span.end.max(start)),
    };
    let blank = text[start..end].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' });
    format!("{}{}{}", &text[..start], blank.collect::<String>(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<String> {
        let parsed = parse(text, Path::new("h.toml"));
        parsed.problems.into_iter().map(|failure| failure.sentence).collect()
    }

    #[test]
    fn every_problem_is_found_and_no_other() {
        let text = "[server]\nlisen = \"x\"\nlisten = 8484\ntext_chars_max = -1\n\n[sever]\nx = 1\n\n\
            [alias.a]\nto = [\n  \"b\",\n  5,\n]\nstrategy = \"best\"\n\n[chat]\nkv_type = \"q5\"\n";
        let sentences = sentences(text);
        let positions = ["2:1", "3:10", "4:18", "6:2", "12:3", "14:12", "17:11"];
        assert_eq!(sentences.len(), positions.len(), "{sentences:#?}");
        for (sentence, position) in sentences.iter().zip(positions) {
            assert!(
                sentence.starts_with(&format!("h.toml:{position}: ")),
                "{position}: {sentence}"
            );
        }
    }

    #[test]
    fn a_text_that_is_no_toml_is_one_problem() {
        assert_eq!(sentences("[server]\nlisten = \n[chat]\n").len(), 1);
        assert_eq!(sentences("[server]\nlisten = \"1\"\n"), Vec::<String>::new());
    }

    #[test]
    fn no_more_problems_are_reported_than_the_limit_allows() {
        for (known, unknown) in [("", PROBLEMS_MAX + 5), ("[server]\nlisten = 1\n", PROBLEMS_MAX)] {
            let text = (0..unknown).map(|number| format!("x{number} = 1\n")).collect::<String>();
            assert_eq!(sentences(&(text + known)).len(), PROBLEMS_MAX);
        }
    }

    #[test]
    fn upstreams_have_a_limit() {
        let upstream = |number: usize| format!("[upstream.u{number}]\nurl = \"http://a\"\n");
        let text = |count: usize| (0..count).map(upstream).collect::<String>();
        assert_eq!(sentences(&text(UPSTREAMS_MAX)), Vec::<String>::new());
        let said = "h.toml:1:2: the file has 257 upstreams and the limit is 256";
        assert_eq!(sentences(&text(UPSTREAMS_MAX + 1)), [said]);
    }

    #[test]
    fn removing_a_line_moves_no_other_byte() {
        let text = "a = 1\n[b]\nü = 2\n[c]\nd = 3\n";
        assert_eq!(without(text, 0..1), "     \n[b]\nü = 2\n[c]\nd = 3\n");
        assert_eq!(without(text, 7..8), "a = 1\n   \n      \n[c]\nd = 3\n");
        assert_eq!(without(text, 21..22), "a = 1\n[b]\nü = 2\n[c]\n     \n");
    }
}
