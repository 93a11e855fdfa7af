//! Turns one syllable of pinyin into the symbols that the Mandarin voices of the speech model have learned.
//! A tone mark follows the vowel: → for the first tone, ↗ ↓ ↘ for the others, and none for a neutral one.

use crate::word_table::{find, rows};

/// A syllable: its letters in ASCII, with `v` for ü, and its tone from 1 to 5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Syllable {
    pub(super) letters: String,
    pub(super) tone: u8,
}

/// The neutral tone.
pub(super) const NEUTRAL: u8 = 5;

/// Initials and their symbols. Longer initials come first.
const INITIALS: &str = "
    zh ꭧ, ch ꭧʰ, sh ʂ, b p, p pʰ, m m, f f, d t, t tʰ, n n, l l, g k, k kʰ, h x, j ʨ, q ʨʰ, x ɕ,
    r ɻ, z ʦ, c ʦʰ, s s";

/// Finals and their symbols. The tone mark stands in place of the slash, or at the end.
const FINALS: &str = "
    a a, ai ai, an a/n, ang a/ŋ, ao au, e ɤ, ei ei, en ə/n, eng ə/ŋ, i i, ia ja, iai jai, ian jɛ/n,
    iang ja/ŋ, iao jau, ie je, in i/n, ing i/ŋ, iong jʊ/ŋ, iou jou, o wo, ong ʊ/ŋ, ou ou, u u,
    ua wa, uai wai, uan wa/n, uang wa/ŋ, uei wei, uen wə/n, ueng wə/ŋ, uo wo, v y, van ɥɛ/n, ve ɥe,
    vn y/n";

/// Syllables without the usual parts, mostly of interjections.
const WHOLE: &str = "er ɚ, o ɔ, yo jɔ, eh ɛ, m m, n n, ng ŋ, hm hm, hng hŋ";

impl Syllable {
    /// The syllable for a character that no table has: short and without a tone, but heard.
    pub(super) fn unknown() -> Syllable {
        Syllable { letters: "en".to_owned(), tone: NEUTRAL }
    }

    /// Reads `zhong1`. `None` if it is not a syllable of Mandarin.
    pub(crate) fn parse(written: &str) -> Option<Syllable> {
        let tone = written.chars().next_back()?.to_digit(10)?;
        let tone = u8::try_from(tone).ok().filter(|tone| (1..=NEUTRAL).contains(tone))?;
        let letters = written[..written.len() - 1].to_owned();
        let syllable = Syllable { letters, tone };
        syllable.parts().is_some().then_some(syllable)
    }

    /// The symbols of the speech model.
    pub(crate) fn symbols(&self) -> String {
        let Some((initial, vowel, coda)) = self.parts() else { return String::new() };
        let tone = match self.tone {
            1 => "→",
            2 => "↗",
            3 => "↓",
            4 => "↘",
            _ => "",
        };
        format!("{initial}{vowel}{tone}{coda}")
    }

    /// The symbols of the initial, those of the final up to the tone mark, and those after the tone mark.
    fn parts(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let letters = self.letters.as_str();
        if let Some((vowel, coda)) = find(WHOLE, letters).map(around_tone) {
            return Some(("", vowel, coda));
        }
        let (initial, symbols) =
            rows(INITIALS).find(|(initial, _)| letters.starts_with(initial)).unwrap_or_default();
        let rest = &letters[initial.len()..];
        if rest == "i" && matches!(initial, "zh" | "ch" | "sh" | "r" | "z" | "c" | "s") {
            return Some((symbols, "ɨ", ""));
        }
        let full = full_final(initial, rest);
        let (vowel, coda) = around_tone(find(FINALS, &full)?);
        Some((symbols, vowel, coda))
    }
}

/// The symbols before the tone mark, and those after it.
fn around_tone(symbols: &'static str) -> (&'static str, &'static str) {
    symbols.split_once('/').unwrap_or((symbols, ""))
}

/// The final in full, where pinyin abbreviates it: that of "liu" is "iou", of "ju" "v", of "wen" "uen".
fn full_final(initial: &str, rest: &str) -> String {
    match (initial, rest) {
        ("j" | "q" | "x", rest) if rest.starts_with('u') => format!("v{}", &rest[1..]),
        ("", rest) if rest.starts_with("yu") => format!("v{}", &rest[2..]),
        ("", rest) if rest.starts_with("yi") => rest[1..].to_owned(),
        ("", rest) if rest.starts_with('y') => format!("i{}", &rest[1..]),
        ("", "wu") => "u".to_owned(),
        ("", rest) if rest.starts_with('w') => format!("u{}", &rest[1..]),
        (_, "iu") => "iou".to_owned(),
        (_, "ui") => "uei".to_owned(),
        (_, "un") => "uen".to_owned(),
        (_, "ue") => "ve".to_owned(),
        (_, rest) => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expect: &str) {
        let symbols = Syllable::parse(written).map(|syllable| syllable.symbols());
        assert_eq!(symbols.as_deref(), Some(expect), "{written}");
    }

    #[test]
    fn each_kind_of_syllable_has_its_symbols() {
        check("zhong1", "ꭧʊ→ŋ");
        check("guo2", "kwo↗");
        check("ni3", "ni↓");
        check("hao3", "xau↓");
        check("shi4", "ʂɨ↘");
        check("zi5", "ʦɨ");
        check("liu2", "ljou↗");
        check("gui4", "kwei↘");
        check("lun2", "lwə↗n");
        check("wen2", "wə↗n");
        check("weng1", "wə→ŋ");
        check("ju2", "ʨy↗");
        check("xuan3", "ɕɥɛ↓n");
        check("yuan2", "ɥɛ↗n");
        check("yun4", "y↘n");
        check("yue4", "ɥe↘");
        check("lve4", "lɥe↘");
        check("nv3", "ny↓");
        check("you3", "jou↓");
        check("ying1", "i→ŋ");
        check("yong4", "jʊ↘ŋ");
        check("yan2", "jɛ↗n");
        check("bo1", "pwo→");
        check("er4", "ɚ↘");
        check("o1", "ɔ→");
        check("yo1", "jɔ→");
        check("cuo4", "ʦʰwo↘");
        check("qiong2", "ʨʰjʊ↗ŋ");
        check("re4", "ɻɤ↘");
    }

    #[test]
    fn what_is_no_syllable_is_refused() {
        for written in ["", "zhong", "zhong0", "zhong6", "xyz1", "hello2"] {
            assert_eq!(Syllable::parse(written), None, "{written}");
        }
    }

    #[test]
    fn every_symbol_is_a_phoneme_of_the_speech_model() {
        for (written, symbols) in [INITIALS, FINALS, WHOLE].into_iter().flat_map(rows) {
            let mut symbols = symbols.chars().filter(|symbol| *symbol != '/');
            assert!(symbols.all(crate::alphabet::is_phoneme), "{written}");
        }
    }
}
