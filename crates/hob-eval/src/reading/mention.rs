//! Finds values in the prose of an answer, and whether the answer denies them.
//! Every search is linear in the answer's length.

/// Words that deny the value that follows: "not 1874", "rather than 1874".
const DENIALS: &[&str] =
    &["not", "no", "nor", "never", "neither", "unlike", "instead", "rather", "without"];
/// How many words before a value can deny it.
const DENIAL_WORDS: usize = 4;

/// Lower case, plain hyphens and apostrophes, no emphasis, no commas inside numbers, "n't" as "not".
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().flat_map(char::to_lowercase).peekable();
    while let Some(letter) = letters.next() {
        let inside_number = plain.ends_with(|last: char| last.is_ascii_digit())
            && letters.peek().is_some_and(char::is_ascii_digit);
        match letter {
            '*' | '`' | '_' | '"' | '“' | '”' => {}
            ',' | '\u{a0}' | '\u{202f}' if inside_number => {}
            '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
            '’' | 'ʼ' => plain.push('\''),
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            other => plain.push(other),
        }
    }
    plain.replace("n't", " not").replace("cannot", "can not")
}

/// Where the value occurs as a whole word. `text` and `value` are plain.
pub(crate) fn places<'a>(text: &'a str, value: &'a str) -> impl Iterator<Item = usize> + 'a {
    let whole = move |&(at, _): &(usize, &str)| {
        let (before, after) = (&text[..at], &text[at + value.len()..]);
        let mut next = after.chars();
        let joined = match next.next() {
            Some('.') => next.next().is_some_and(|letter| letter.is_ascii_digit()),
            letter => letter.is_some_and(char::is_alphanumeric),
        };
        let decimals = before.ends_with('.')
            && before[..before.len() - 1].ends_with(|last: char| last.is_ascii_digit());
        !joined && !decimals && !before.ends_with(char::is_alphanumeric)
    };
    let value_or_nothing = Some(value).filter(|value| !value.is_empty());
    value_or_nothing
        .into_iter()
        .flat_map(move |value| text.match_indices(value).filter(whole))
        .map(|(at, _)| at)
}

/// Whether the words before a place deny what stands there.
pub(crate) fn denied(text: &str, at: usize) -> bool {
    let clause = text[..at].rsplit([',', ';', ':', '.', '(', '\n']).next().unwrap_or_default();
    clause
        .rsplit(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take_while(|word| *word != "but")
        .take(DENIAL_WORDS)
        .any(|word| DENIALS.contains(&word))
}

/// Whether the text names the value at all.
pub(crate) fn names(text: &str, value: &str) -> bool {
    places(text, &plain(value)).next().is_some()
}

/// Whether the text names the value at least once without denying it.
pub(crate) fn says(text: &str, value: &str) -> bool {
    places(text, &plain(value)).any(|at| !denied(text, at))
}

/// The last sentence that says one of the values. `text` is plain.
pub(crate) fn last_statement<'a>(text: &'a str, values: &[&str]) -> Option<&'a str> {
    let last_of = |value: &&str| {
        let value = plain(value);
        places(text, &value).filter(|&at| !denied(text, at)).last()
    };
    let at = values.iter().filter_map(last_of).max()?;
    let ends = |text: &'a str| text.find(['\n', '!', '?']).into_iter().chain(text.find(". ")).min();
    let start = ["\n", ". ", "! ", "? "]
        .iter()
        .filter_map(|mark| text[..at].rfind(mark).map(|place| place + mark.len()))
        .max()
        .unwrap_or(0);
    let end = ends(&text[at..]).map_or(text.len(), |length| at + length);
    Some(&text[start..end])
}

/// The first letters of a text, for a reason that stays short.
pub(crate) fn shortened(text: &str) -> String {
    const LETTERS_MAX: usize = 120;
    let mut short: String = text.trim().chars().take(LETTERS_MAX).collect();
    if text.trim().chars().nth(LETTERS_MAX).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_as_whole_words_and_denials_are_seen() {
        let cases = [
            ("It is **K7-4821**.", "K7-4821", true),
            ("It is k7‑4821", "K7-4821", true),
            ("It is 1,874.", "1874", true),
            ("It is 11874", "1874", false),
            ("It is 12.5 m", "12", false),
            ("It is 0.12", "12", false),
            ("It isn't 1874.", "1874", false),
            ("Not in 1874 but in 1882", "1882", true),
            ("Not in 1874 but in 1882", "1874", false),
            ("1882 rather than 1874", "1874", false),
            ("", "1874", false),
            ("anything", "", false),
        ];
        for (text, value, expect) in cases {
            assert_eq!(says(&plain(text), value), expect, "{text} {value}");
        }
    }

    #[test]
    fn the_last_statement_is_one_sentence() {
        let text = plain("First I saw 12. Then it was 14! So: 14, I think. Not 12.");
        assert_eq!(last_statement(&text, &["12", "14"]), Some("so: 14, i think"));
        assert_eq!(last_statement(&text, &["99"]), None);
    }
}
