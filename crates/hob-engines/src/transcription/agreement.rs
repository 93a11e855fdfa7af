//! Decides which text of live sound is final: the words on which two successive passes agree. Final text is never changed.
//! This is the LocalAgreement policy (Liu et al., Interspeech 2020).

/// The words of one part of live sound while it is heard again and again.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// Words that were returned and are never taken back.
    kept: Vec<String>,
    /// The words of the last pass that follow them.
    last: Vec<String>,
}

/// What a pass adds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Agreed {
    /// Text that follows everything returned before.
    pub(super) delta: String,
    /// Text after it, which the next pass may change.
    pub(super) interim: String,
}

impl Agreement {
    /// Takes the text of a pass over an unfinished part. The last word may be incomplete, so it is never final.
    pub(super) fn pass(&mut self, text: &str) -> Agreed {
        let mut new = self.after_kept(text);
        let agreed = new.iter().zip(&self.last).take_while(|(new, old)| same(new, old)).count();
        let interim = new.split_off(agreed.min(new.len().saturating_sub(1)));
        let agreed = Agreed { delta: new.concat(), interim: interim.concat() };
        self.kept.append(&mut new);
        self.last = interim;
        agreed
    }

    /// Takes the text of the whole part, and returns what follows the kept words. Starts a new part.
    pub(super) fn finish(&mut self, text: &str) -> String {
        let rest = self.after_kept(text).concat();
        *self = Agreement::default();
        rest
    }

    /// The words that follow the kept ones. A pass may have heard a word more or less among those.
    fn after_kept(&self, text: &str) -> Vec<String> {
        let mut words = words(text);
        let distances = distances(&self.kept, &words);
        let ends_alike = |end: usize| match (self.kept.last(), end.checked_sub(1)) {
            (Some(kept), Some(at)) => same(kept, &words[at]),
            _ => false,
        };
        let usual = self.kept.len();
        let end = (0..=words.len())
            .min_by_key(|end| (distances[*end], !ends_alike(*end), usual.abs_diff(*end)));
        words.split_off(end.unwrap_or_default())
    }
}

/// How many words must be changed, added or left out to make each beginning of `words` of `kept`.
fn distances(kept: &[String], words: &[String]) -> Vec<usize> {
    let mut row: Vec<usize> = (0..=words.len()).collect();
    for (at, kept) in kept.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (at, word) in words.iter().enumerate() {
            let changed = diagonal + usize::from(!same(kept, word));
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row
}

/// The text in words with the white space before them. A character of a script without spaces is a word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for c in text.chars() {
        let begins = c.is_whitespace() && is_open || is_own_word(c);
        match words.last_mut() {
            Some(word) if !begins && (is_open || !word.chars().any(is_own_word)) => word.push(c),
            _ => words.push(c.to_string()),
        }
        is_open = !c.is_whitespace() && !is_own_word(c);
    }
    words
}

/// Chinese, Japanese, Thai, Lao, Tibetan, Burmese and Khmer characters.
fn is_own_word(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{9FFF}')
}

/// Whether two passes heard the same word. Case and punctuation change when more is heard.
fn same(one: &str, other: &str) -> bool {
    let letters = |word: &str| -> String {
        word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_spaces_and_around_characters_of_scripts_without_them() {
        for (text, expected) in [
            ("", vec![]),
            (" Hello, my  friend.", vec![" Hello,", " my", "  friend."]),
            ("こん ok", vec!["こ", "ん", " ok"]),
            ("ကသ ខគ", vec!["က", "သ", " ", "ខ", "គ"]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
            assert_eq!(words(text).concat(), text);
        }
    }

    #[test]
    fn text_grows_by_the_words_on_which_two_passes_agree() {
        let mut agreement = Agreement::default();
        let mut check = |text: &str, delta: &str, interim: &str| {
            let expected = Agreed { delta: delta.to_owned(), interim: interim.to_owned() };
            assert_eq!(agreement.pass(text), expected, "{text:?}");
        };
        check(" I saw", "", " I saw");
        check(" I saw the", " I saw", " the");
        check(" I saw a", "", " a");
        check(" I saw a cat", " a", " cat");
        // A pass that hears less takes nothing back.
        check(" I", "", "");
        assert_eq!(agreement.finish(" I saw a cat there."), " cat there.");
        assert_eq!(agreement.finish(" Then it left."), " Then it left.");
    }

    #[test]
    fn a_word_more_or_less_among_the_kept_ones_moves_no_other() {
        for (last, rest) in [
            (" Well, I saw the cat.", " the cat."),
            (" Well, yes, I saw the cat.", " the cat."),
            (" saw the cat.", " the cat."),
        ] {
            let mut agreement = Agreement::default();
            agreement.pass(" I saw");
            assert_eq!(agreement.pass(" I saw the").delta, " I saw");
            assert_eq!(agreement.finish(last), rest, "{last}");
        }
        let mut agreement = Agreement::default();
        agreement.pass(" I saw the cat");
        agreement.pass(" I saw the cat sit");
        assert_eq!(agreement.pass(" Well, I saw the cat sit there").interim, " there");
        assert_eq!(agreement.pass(" Well, I saw the cat sit there now").delta, " there");
    }
}
