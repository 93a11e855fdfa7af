//! The names of letters, for acronyms, initials, and words without another reading.
//! They are phonemes and not words, because a dictionary would read "A" as the article.

use crate::accent::Accent;
use crate::word_table::{find, forms};

/// The name of each letter in phonemes. With two names, the American one comes first, the British one after the slash.
const LETTER_NAMES: &str = "
    A A, B bi/biː, C si/siː, D di/diː, E i/iː, F ɛf, G ʤi/ʤiː, H Aʧ, I I, J ʤA, K kA, L ɛl, M ɛm,
    N ɛn, O O/Q, P pi/piː, Q kju/kjuː, R ɑɹ/ɑː, S ɛs, T ti/tiː, U ju/juː, V vi/viː,
    W dʌbᵊlju/dʌbᵊljuː, X ɛks, Y wI, Z zi/zɛd";

/// The name of a letter; `None` if it is not a Latin letter.
pub(crate) fn letter_name(letter: char, accent: Accent) -> Option<&'static str> {
    let names = find(LETTER_NAMES, letter.to_ascii_uppercase().encode_utf8(&mut [0; 4]))?;
    let (american, british) = forms(names);
    Some(if accent == Accent::American { american } else { british })
}

/// Spells an acronym: primary stress on the last letter, secondary stress on all others. A final lower-case `s` is
/// a plural or a possessive, not a letter.
pub(crate) fn spell(acronym: &str, accent: Accent) -> String {
    let (letters, ending) = match acronym.strip_suffix("'s").or(acronym.strip_suffix('s')) {
        Some(letters) if letters.chars().any(|c| c.is_ascii_uppercase()) => (letters, true),
        _ => (acronym, false),
    };
    let names: Vec<&str> = letters.chars().filter_map(|c| letter_name(c, accent)).collect();
    let mut out = String::new();
    for (index, name) in names.iter().enumerate() {
        let stress = if index + 1 == names.len() { 'ˈ' } else { 'ˌ' };
        push_stressed(&mut out, name, stress);
    }
    if ending { plural(out, accent) } else { out }
}

/// Adds a name with its stress mark directly before the vowel, as misaki writes it.
fn push_stressed(out: &mut String, name: &str, stress: char) {
    let vowel = name.find(is_vowel).unwrap_or(0);
    out.push_str(&name[..vowel]);
    out.push(stress);
    out.push_str(&name[vowel..]);
}

pub(crate) fn is_vowel(symbol: char) -> bool {
    "AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ".contains(symbol)
}

/// Adds the sound of a plural or possessive `s` to `stem`.
pub(crate) fn plural(stem: String, accent: Accent) -> String {
    let ending = match stem.chars().last() {
        Some('p' | 't' | 'k' | 'f' | 'θ') => "s",
        Some('s' | 'z' | 'ʃ' | 'ʒ' | 'ʧ' | 'ʤ') if accent == Accent::American => "ᵻz",
        Some('s' | 'z' | 'ʃ' | 'ʒ' | 'ʧ' | 'ʤ') => "ɪz",
        _ => "z",
    };
    stem + ending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acronyms_are_stressed_on_their_last_letter() {
        assert_eq!(spell("GPU", Accent::American), "ʤˌipˌijˈu");
        assert_eq!(spell("GPUs", Accent::American), "ʤˌipˌijˈuz");
        assert_eq!(spell("EHR", Accent::British), "ˌiːˌAʧˈɑː");
        assert_eq!(spell("Z", Accent::American), "zˈi");
        assert_eq!(spell("Z", Accent::British), "zˈɛd");
        assert_eq!(spell("OS's", Accent::American), "ˌOˈɛsᵻz");
        assert_eq!(spell("s", Accent::American), "ˈɛs");
    }
}
