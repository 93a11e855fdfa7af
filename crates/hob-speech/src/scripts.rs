//! Words in other writing systems inside English text.
//! Alphabets with a plain romanisation (Cyrillic, Greek, kana, Hangul) become Latin letters; for others the script's
//! name is said.

use std::fmt::Write;

use crate::word_table::find;

/// What an English voice says for a word that is not in Latin letters. `None` if it is in Latin letters.
pub(crate) fn romanised(word: &str) -> Option<String> {
    let script = word.chars().filter(|c| c.is_alphanumeric()).find_map(script_of)?;
    match script {
        Script::Romanised => match romanise(word) {
            latin if latin.is_empty() => Some("foreign letter".to_owned()),
            latin => Some(latin),
        },
        Script::Named(name) => Some(name.to_owned()),
    }
}

/// A word that espeak-ng would spell letter by letter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnspokenWord {
    Latin(String),
    /// A script that neither espeak-ng nor hob can read among other words.
    Unreadable,
}

/// How a word is given to espeak-ng. `None`: as it is. espeak-ng reads the scripts of India, Armenia and Georgia, and
/// changes its language for them.
pub(crate) fn unspoken(word: &str) -> Option<UnspokenWord> {
    let first = word.chars().filter(|c| c.is_alphanumeric()).find(|c| script_of(*c).is_some())?;
    match (script_of(first)?, first as u32) {
        (_, 0x0530..=0x058f | 0x0900..=0x0dff | 0x10a0..=0x10ff) => None,
        (Script::Named(_), _) => Some(UnspokenWord::Unreadable),
        (Script::Romanised, _) => match romanise(word) {
            latin if latin.is_empty() => Some(UnspokenWord::Unreadable),
            latin => Some(UnspokenWord::Latin(latin)),
        },
    }
}

/// Whether two letters can belong to one word: a new script starts a new word.
pub(crate) fn same_script(a: char, b: char) -> bool {
    script_of(a) == script_of(b)
}

/// A sign that is not a letter but belongs to its word: Indian and Thai vowels.
pub(crate) fn is_vowel_sign(c: char) -> bool {
    matches!(c as u32, 0x0900..=0x0e7f) && unicode_normalization::char::is_combining_mark(c)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Script {
    Romanised,
    /// The script's name, said once for a whole run of words.
    Named(&'static str),
}

/// `None` for Latin letters, digits, marks and symbols.
fn script_of(c: char) -> Option<Script> {
    Some(match c as u32 {
        0x0370..=0x03ff | 0x1f00..=0x1fff | 0x0400..=0x052f => Script::Romanised,
        0x3041..=0x30ff | 0xac00..=0xd7a3 => Script::Romanised,
        0x0530..=0x058f => Script::Named("Armenian word"),
        0x0590..=0x05ff => Script::Named("Hebrew word"),
        0x0600..=0x06ff | 0x0750..=0x077f => Script::Named("Arabic word"),
        0x0900..=0x097f => Script::Named("Hindi word"),
        0x0980..=0x0dff => Script::Named("Indian word"),
        0x0e00..=0x0e7f => Script::Named("Thai word"),
        0x10a0..=0x10ff => Script::Named("Georgian word"),
        0x1100..=0x11ff | 0x3130..=0x318f => Script::Named("Korean letter"),
        0x2e80..=0x2fdf | 0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff => {
            Script::Named("Chinese word")
        }
        0x0250..=0x02af => return None,
        0x1d00..=0x1eff => return None,
        0x0700..=0xffff | 0x10000.. if c.is_alphabetic() => Script::Named("foreign word"),
        _ => return None,
    })
}

fn romanise(word: &str) -> String {
    let mut out = String::new();
    for c in word.chars().flat_map(char::to_lowercase) {
        match c as u32 {
            0xac00..=0xd7a3 => hangul(c, &mut out),
            0x3041..=0x30ff => kana(c, &mut out),
            _ => out.push_str(letter(c)),
        }
    }
    out
}

fn letter(c: char) -> &'static str {
    find(LETTERS, c.encode_utf8(&mut [0; 4])).unwrap_or_default()
}

/// Cyrillic and Greek.
const LETTERS: &str = "
    а a, α a, ά a, б b, в v, β v, г g, ґ g, γ g, д d, δ d, е e, э e, є e, ε e, έ e, ё yo, ж zh,
    з z, ζ z, и i, ы i, і i, ι i, ί i, η i, ή i, υ i, ύ i, й y, ј y, ї yi, к k, κ k, л l, λ l, м m,
    μ m, н n, ν n, о o, ο o, ό o, ω o, ώ o, п p, π p, р r, ρ r, с s, σ s, ς s, т t, τ t, у u, ў u,
    ф f, φ f, х h, χ h, ц ts, ч ch, ш sh, щ shch, ю yu, я ya, θ th, ξ ks, ψ ps, ћ ch, ђ j, љ ly,
    њ ny";

/// Composes Hangul syllables by arithmetic (Unicode, chapter 3.12): 21 × 28 per initial.
fn hangul(c: char, out: &mut String) {
    const INITIALS: [&str; 19] = [
        "g", "kk", "n", "d", "tt", "r", "m", "b", "pp", "s", "ss", "", "j", "jj", "ch", "k", "t",
        "p", "h",
    ];
    const VOWELS: [&str; 21] = [
        "a", "ae", "ya", "yae", "eo", "e", "yeo", "ye", "o", "wa", "wae", "oe", "yo", "u", "wo",
        "we", "wi", "yu", "eu", "ui", "i",
    ];
    const FINALS: [&str; 28] = [
        "", "k", "k", "k", "n", "n", "n", "t", "l", "k", "m", "l", "l", "l", "p", "l", "m", "p",
        "p", "t", "t", "ng", "t", "t", "k", "t", "p", "t",
    ];
    let index = (c as usize) - 0xac00;
    out.push_str(INITIALS[index / 588]);
    out.push_str(VOWELS[index % 588 / 28]);
    out.push_str(FINALS[index % 28]);
}

/// Unicode has kana in the order of this table; katakana are 0x60 after hiragana.
fn kana(c: char, out: &mut String) {
    const FROM_SMALL_A: [&str; 86] = [
        "a", "a", "i", "i", "u", "u", "e", "e", "o", "o", "ka", "ga", "ki", "gi", "ku", "gu", "ke",
        "ge", "ko", "go", "sa", "za", "shi", "ji", "su", "zu", "se", "ze", "so", "zo", "ta", "da",
        "chi", "ji", "", "tsu", "zu", "te", "de", "to", "do", "na", "ni", "nu", "ne", "no", "ha",
        "ba", "pa", "hi", "bi", "pi", "fu", "bu", "pu", "he", "be", "pe", "ho", "bo", "po", "ma",
        "mi", "mu", "me", "mo", "ya", "ya", "yu", "yu", "yo", "yo", "ra", "ri", "ru", "re", "ro",
        "wa", "wa", "i", "e", "o", "n", "vu", "ka", "ke",
    ];
    let code = c as usize;
    let index = if code >= 0x30a1 { code - 0x30a1 } else { code - 0x3041 };
    let small_y = matches!(index, 66 | 68 | 70);
    if small_y && out.ends_with('i') {
        out.pop();
        if !out.ends_with(['h', 'j']) {
            out.push('y');
        }
        let vowel = FROM_SMALL_A[index].trim_start_matches('y');
        // Writing to a string cannot fail.
        write!(out, "{vowel}").ok();
    } else if let Some(syllable) = FROM_SMALL_A.get(index) {
        out.push_str(syllable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expect: Option<&str>) {
        assert_eq!(romanised(word).as_deref(), expect, "{word}");
    }

    #[test]
    fn alphabets_become_latin() {
        check("Привет", Some("privet"));
        check("Ελλάδα", Some("ellada"));
        check("안녕", Some("annyeong"));
        check("こんにちは", Some("konnichiha"));
        check("トーキョー", Some("tokyo"));
        check("きゃく", Some("kyaku"));
        check("しゃ", Some("sha"));
    }

    #[test]
    fn espeak_gets_what_it_can_read() {
        assert_eq!(unspoken("Привет"), Some(UnspokenWord::Latin("privet".to_owned())));
        assert_eq!(unspoken("世界"), Some(UnspokenWord::Unreadable));
        for word in ["नमस्ते", "niño", "42", "გამარჯობა"] {
            assert_eq!(unspoken(word), None, "{word}");
        }
    }

    #[test]
    fn other_scripts_are_named_and_latin_is_left_alone() {
        check("世界", Some("Chinese word"));
        check("مرحبا", Some("Arabic word"));
        check("नमस्ते", Some("Hindi word"));
        check("café", None);
        check("42", None);
        check("", None);
    }
}
