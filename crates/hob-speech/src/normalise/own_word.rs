//! Words of the user's lexicon, before all other readers.
//! A possessive and the parts of a compound are found too: "Kubernetes's", "SQL-like".

use std::ops::Range;

use super::View;
use crate::accent::Accent;
use crate::ipa::written_to_misaki;
use crate::lexicon::SaidPart;
use crate::reading::Reading;
use crate::scripts::is_vowel_sign;
use crate::spelling::plural;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word().filter(|_| !view.lexicon.is_empty())?;
    if say(view, word.span(), &word.text, out) {
        return Some(1);
    }
    let parts: Vec<&str> = word.text.split('-').collect();
    let is_own = |part: &str| entry(view, part).is_some();
    let is_letter = |c: char| c.is_alphabetic() || is_vowel_sign(c);
    let is_plain = |part: &str| !part.is_empty() && part.chars().all(is_letter);
    let is_known = |part: &&str| is_plain(part) || is_own(part);
    if !parts.iter().any(|part| is_own(part)) || !parts.iter().all(is_known) {
        return None;
    }
    let mut at = 0;
    for part in parts {
        let span = word.span_of(at..at + part.len());
        if !say(view, span.clone(), part, out) {
            out.say(span, part);
        }
        at += part.len() + 1;
    }
    Some(1)
}

/// How a word is said, and whether it is a possessive.
fn entry<'a>(view: View<'a>, word: &str) -> Option<(&'a [SaidPart], bool)> {
    if let Some(parts) = view.lexicon.get(word) {
        return Some((parts, false));
    }
    let stem = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s"))?;
    Some((view.lexicon.get(stem)?, true))
}

/// Says a word of the lexicon. False: it is not in the lexicon.
fn say(view: View<'_>, span: Range<usize>, word: &str, out: &mut Reading) -> bool {
    let Some((parts, is_possessive)) = entry(view, word) else { return false };
    let accent = Accent::of(view.language);
    // The dictionary only learns from this text that a word stands here.
    let shown = if word.chars().all(char::is_alphabetic) { word } else { "name" };
    for (at, part) in parts.iter().enumerate() {
        let has_ending = is_possessive && at + 1 == parts.len();
        match part {
            SaidPart::Words(words) if has_ending => out.say(span.clone(), &format!("{words}'s")),
            SaidPart::Words(words) => out.say(span.clone(), words),
            SaidPart::Ipa(ipa) => {
                let sounds = written_to_misaki(ipa, view.language);
                let sounds = if has_ending { plural(sounds, accent) } else { sounds };
                out.pronounce(span.clone(), shown, &sounds);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use hob_core::Language;

    use super::*;
    use crate::lexicon::Lexicon;
    use crate::normalise::read_with;
    use crate::reading::Voicing;

    fn reading(text: &str, language: Language) -> Reading {
        let rows = [
            ("SQL", "sequel"),
            ("kubernetes", "/kuːbərˈnɛtiːz/"),
            ("C++", "see plus plus"),
            ("Ọ\u{300}ṣun", "oshun"),
            ("नमस्ते", "नमस्कार"),
            ("\u{95b}रूर", "zaroor"),
        ];
        let rows = rows.map(|(word, said)| (word.to_owned(), said.to_owned()));
        let lexicon = Lexicon::new(rows.into()).expect("a lexicon");
        read_with(text, 0, language, &lexicon)
    }

    fn check(text: &str, expect: &str) {
        assert_eq!(reading(text, Language::AmericanEnglish).text, expect, "{text}");
    }

    #[test]
    fn words_are_said_as_the_lexicon_says() {
        check("Use SQL, not C++.", "Use sequel, not see plus plus.");
        check("An SQL-like query", "An sequel like query");
        check("SQL's and “SQL”", "sequel's and “sequel”");
        check("Pay $5 for [SQL](/x/) 3.", "Pay five dollars for SQL three.");
        check("Ask [**SQL**](/x/) now.", "Ask SQL now.");
        check("The Ọ\u{300}ṣun river", "The oshun river");
        // Other capitals, and letters of a longer word, are not the word.
        assert!(!reading("sql NoSQL", Language::AmericanEnglish).text.contains("sequel"));
    }

    #[test]
    fn words_of_hindi_are_found_with_all_their_signs() {
        let said = |text| reading(text, Language::Hindi).text;
        assert_eq!(said("नमस्ते, \u{95b}रूर।"), "नमस्कार, zaroor.");
        assert_eq!(said("नमस्ते, ज\u{93c}रूर।"), "नमस्कार, zaroor.");
        assert_eq!(said("नमस्ते-मित्र"), "नमस्कार मित्र");
    }

    #[test]
    fn ipa_becomes_the_sounds_of_the_accent_and_keeps_the_user_s_bytes() {
        let sounds = |language: Language, text: &str| -> Vec<(Range<usize>, Voicing)> {
            let words = reading(text, language).words;
            words.into_iter().map(|word| (word.span, word.voicing)).collect()
        };
        let own = |sounds: &str| Voicing::Phonemes(sounds.to_owned());
        let american = sounds(Language::AmericanEnglish, "é Kubernetes’s");
        assert_eq!(american[1], (3..17, own("kubəɹˈnɛtizᵻz")));
        let british = sounds(Language::BritishEnglish, "KUBERNETES!");
        assert_eq!(british, [(0..10, own("kuːbəɹˈnɛtiːz"))]);
    }
}
