//! espeak-ng's IPA → misaki's alphabet, for American and British English and for the languages of espeak-ng.
//! Sounds that English or the model does not have become the nearest sound; every sound is mapped.

use hob_core::Language;
use unicode_normalization::UnicodeNormalization;

use crate::accent::Accent;
use crate::alphabet::is_phoneme;
use crate::espeak::voice_of;
use crate::spelling::is_vowel;
use crate::word_table::{find, forms, rows};

/// Longest first; the first match is used. American and British symbols stand apart where misaki's variants differ:
/// American has no length marks, British keeps them.
const SOUNDS: &str = "
    ɜːɹ ɜɹ/ɜːɹ, n\u{329} ᵊn, l\u{329} ᵊl, m\u{329} ᵊm, aɪ I, aʊ W, eɪ A, ɔɪ Y, oʊ O/Q, əʊ O/Q,
    dʒ ʤ, tʃ ʧ, ts ts, iə iə/ɪə, ɪə iə/ɪə, eə ɛɹ/ɛː, ɛə ɛɹ/ɛː, ɜː ɜɹ/ɜː, iː i/iː, uː u/uː, ɔː ɔ/ɔː,
    ɑː ɑ/ɑː, oː ɔ/ɔː, ɛː ɛ/ɛː, eː A, aː ɑ/ɑː, ɚ əɹ/ə, ɝ ɜɹ/ɜː, ɐ ə, æ æ/a, a ɑ/a, e A/ɛ, o O/Q,
    ɒ ɑ/ɒ, ɾ T/t, ʔ t, r ɹ, ʁ ɹ, x k, ç k, ɣ ɡ, g ɡ, ɬ l, ɫ l, ʎ lj, ɲ nj, y u/uː, ʏ ʊ, ø ɜ/ɜː,
    œ ɜ/ɜː, ɨ ᵻ/ɪ, ɯ u/uː, ɪ\u{308} ɪ, β b, ɸ f, ʋ v, ʲ, ʰ, ː";

/// One symbol of misaki for two that espeak-ng ties together, in every language except English.
const TIED: &str = "a^ɪ I, a^ʊ W, d^z ʣ, d^ʒ ʤ, e^ɪ A, o^ʊ O, ə^ʊ Q, s^s S, t^s ʦ, t^ʃ ʧ, ɔ^ɪ Y";

/// The nearest sound of the model for those that it has no symbol for.
const NEAREST: &str = "
    g ɡ, ɠ ɡ, ɢ ɡ, ɫ l, ɬ l, ɮ l, ɭ l, ʏ y, ɵ ø, ɶ œ, ʉ u, ʀ ʁ, ɦ h, ħ h, ʍ w, ɱ m, ɓ b, ɗ d, ɘ ə,
    ɞ ɜ, ɝ ɜɹ, ʐ ʒ, ʑ ʒ, ʱ ʰ";

/// Converts words of a language that is read through espeak-ng. The model was trained with the symbols that misaki makes
/// of them, which keep more of espeak-ng's own spelling than in English.
pub(crate) fn foreign_to_misaki(ipa: &str) -> String {
    let mut tied = without_language_marks(ipa.trim());
    for (pair, symbol) in rows(TIED) {
        tied = tied.replace(pair, symbol);
    }
    let mut out = String::with_capacity(tied.len());
    for symbol in tied.chars() {
        if is_sound(symbol) {
            out.push(symbol);
        } else if let Some(near) = find(NEAREST, symbol.encode_utf8(&mut [0; 4])) {
            out.push_str(near);
        } else {
            // A nasal vowel in one character becomes the vowel and its tilde.
            out.extend(std::iter::once(symbol).nfd().filter(|part| is_sound(*part)));
        }
    }
    out
}

/// Converts IPA that a person wrote.
pub(crate) fn written_to_misaki(ipa: &str, language: Language) -> String {
    if voice_of(language).is_none() {
        return to_misaki(ipa, Accent::of(language));
    }
    let pairs = ["tʃ", "dʒ", "ts", "dz"];
    let mut tied = ipa.replace('\u{361}', "");
    for pair in pairs {
        let (first, second) = pair.split_at(1);
        tied = tied.replace(pair, &format!("{first}^{second}"));
    }
    foreign_to_misaki(&tied)
}

/// Converts one word from espeak-ng's spelling to the model's symbols. When espeak-ng switches to another language,
/// it wraps the words in marks such as `(hi)` … `(en-us)`, which are not sounds.
pub(crate) fn to_misaki(ipa: &str, accent: Accent) -> String {
    let bare = without_language_marks(ipa.trim());
    let mut rest = bare.as_str();
    let mut out = String::with_capacity(rest.len());
    while let Some(symbol) = rest.chars().next() {
        if let Some((from, sounds)) = rows(SOUNDS).find(|(from, _)| rest.starts_with(from)) {
            let (us, gb) = forms(sounds);
            out.push_str(if accent == Accent::American { us } else { gb });
            rest = &rest[from.len()..];
        } else {
            if is_sound(symbol) {
                out.push(symbol);
            }
            rest = &rest[symbol.len_utf8()..];
        }
    }
    weakened(&out)
}

/// Whether [`to_misaki`] knows the symbol, as a sound or as a mark that is not heard.
pub(crate) fn is_ipa(symbol: char) -> bool {
    let is_in_table = || rows(SOUNDS).any(|(from, _)| from.contains(symbol));
    let is_near = || rows(NEAREST).any(|(from, _)| from.contains(symbol));
    is_phoneme(symbol) || is_in_table() || is_near() || matches!(symbol, '\u{361}' | '‿' | '.')
}

/// misaki writes the weak vowel of "bottle" small if no vowel follows the l.
pub(crate) fn weakened(sounds: &str) -> String {
    let mut out = String::with_capacity(sounds.len());
    let mut symbols = sounds.chars().peekable();
    let mut schwa = false;
    while let Some(symbol) = symbols.next() {
        let open = symbols.peek().is_some_and(|next| is_vowel(*next) || matches!(next, 'ˈ' | 'ˌ'));
        if schwa && symbol == 'l' && !open {
            out.pop();
            out.push('ᵊ');
        }
        out.push(symbol);
        schwa = symbol == 'ə';
    }
    out
}

fn is_sound(symbol: char) -> bool {
    is_phoneme(symbol) && !crate::alphabet::is_punctuation(symbol)
}

fn without_language_marks(ipa: &str) -> String {
    let mut out = String::with_capacity(ipa.len());
    let mut inside = false;
    for symbol in ipa.chars() {
        match symbol {
            '(' => inside = true,
            ')' => inside = false,
            // Joiners and tie bars say that two letters are one sound, which the table knows.
            '\u{200d}' | '\u{200c}' | '\u{361}' | '_' => {}
            _ if !inside => out.push(symbol),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ipa: &str, us: &str, gb: &str) {
        assert_eq!(to_misaki(ipa, Accent::American), us, "{ipa} in American");
        assert_eq!(to_misaki(ipa, Accent::British), gb, "{ipa} in British");
    }

    #[test]
    fn diphthongs_affricates_and_lengths() {
        check("kæfˈeɪ", "kæfˈA", "kafˈA");
        check("həlˈoʊ", "həlˈO", "həlˈQ");
        check("dʒˈʌdʒ", "ʤˈʌʤ", "ʤˈʌʤ");
        check("kjˈuːbɚnˌiːts", "kjˈubəɹnˌits", "kjˈuːbənˌiːts");
        check("bˈɜːd", "bˈɜɹd", "bˈɜːd");
        check("bˈɑːtəl", "bˈɑtᵊl", "bˈɑːtᵊl");
    }

    #[test]
    fn other_languages_keep_the_symbols_that_the_model_was_trained_with() {
        for (ipa, symbols) in [
            ("mˈut^ʃo", "mˈuʧo"),
            ("be^ɪntjˈun", "bAntjˈun"),
            ("kˌoɾasˈɐ\u{303}^ʊ\u{303}", "kˌoɾasˈɐ\u{303}ʊ\u{303}"),
            ("le-z ɑ\u{303}fˈɑ\u{303}", "lez ɑ\u{303}fˈɑ\u{303}"),
            ("(^e^n)həlˈə^ʊ wˈɜːld(^h^i) nəmˈʌsteː", "həlˈQ wˈɜːld nəmˈʌsteː"),
            ("bʱˈaː g ã", "bʰˈaː ɡ a\u{303}"),
            ("pˈit^sːa e d^ʒˈorno d^zˈɛro", "pˈiʦːa e ʤˈorno ʣˈɛro"),
        ] {
            assert_eq!(foreign_to_misaki(ipa), symbols, "{ipa}");
        }
    }

    #[test]
    fn ipa_of_a_person_fits_the_language_of_the_voice() {
        assert_eq!(written_to_misaki("ˈt\u{361}ʃaːo", Language::Italian), "ˈʧaːo");
        assert_eq!(written_to_misaki("ˈtʃao", Language::Italian), "ˈʧao");
        assert_eq!(written_to_misaki("ˈtʃao", Language::AmericanEnglish), "ˈʧɑO");
    }

    #[test]
    fn marks_joiners_and_foreign_sounds() {
        check("(hi)nəmˈʌsteː(en-us)\n", "nəmˈʌstA", "nəmˈʌstA");
        check("t\u{361}ʃaɪ", "ʧI", "ʧI");
        check("bax", "bɑk", "bak");
        check("?!q'", "q", "q");
    }
}
