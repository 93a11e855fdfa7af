//! Translates serde's type names into words: users do not know what `u16` is.
//! Only the types of the configuration are translated; other messages stay as they are.

const WORDS: [(&str, &str); 6] = [
    ("expected a nonzero u64", "expected a number from 1"),
    ("expected a nonzero u16", "expected a number from 1 to 65535"),
    ("expected a nonzero u32", "expected a number from 1 to 4294967295"),
    ("expected u16", "expected a number from 0 to 65535"),
    ("expected u32", "expected a number from 0 to 4294967295"),
    ("expected path string", "expected a path, as text"),
];

/// One of serde's messages, with the types in words.
pub(super) fn for_people(message: &str) -> String {
    let ends_with = |(theirs, ours): &(&str, &str)| {
        message.strip_suffix(theirs).map(|before| format!("{before}{ours}"))
    };
    WORDS.iter().find_map(ends_with).unwrap_or_else(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigFile, known_keys};
    use super::*;

    #[test]
    fn no_key_answers_a_wrong_value_with_a_word_of_programmers() {
        for key in known_keys().iter().filter(|key| key.kind != "table") {
            for value in ["-1", "0", "1.5", "true", "[1]", "{}"] {
                let written = format!("{} = {value}", key.path);
                let Err(error) = toml::from_str::<ConfigFile>(&written) else { continue };
                let message = for_people(error.message());
                let words = message.split(|c: char| !c.is_alphanumeric());
                let types: Vec<&str> = words
                    .filter(|word| ["u16", "u32", "u64", "nonzero", "usize"].contains(word))
                    .collect();
                assert_eq!(types, Vec::<&str>::new(), "{written} gave {message}");
            }
        }
    }

    #[test]
    fn numbers_are_said_with_their_bounds() {
        let rows = [
            (
                "invalid value: integer `-1`, expected u16",
                "invalid value: integer `-1`, expected a number from 0 to 65535",
            ),
            (
                "invalid value: integer `0`, expected a nonzero u32",
                "invalid value: integer `0`, expected a number from 1 to 4294967295",
            ),
            ("unclosed table", "unclosed table"),
        ];
        for (theirs, ours) in rows {
            assert_eq!(for_people(theirs), ours);
        }
    }
}
