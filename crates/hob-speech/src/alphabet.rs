//! The symbols of the speech model: misaki's phonemes, stress marks and punctuation.
//! Every other symbol must be mapped or dropped before the model gets it.

/// All 114 symbols, in the order of the model's vocabulary. One character is one token.
pub const ALPHABET: &str = concat!(
    ";:,.!?—…\"()“” \u{303}ʣʥʦʨᵝꭧAIOQSTWYᵊ",
    "abcdefhijklmnopqrstuvwxyzɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔ",
    "ˈˌːʰʲ↓→↗↘ᵻ",
);

/// The longest unit that the model accepts, in symbols.
pub const UNIT_PHONEMES_MAX: usize = 510;

pub fn is_phoneme(symbol: char) -> bool {
    ALPHABET.contains(symbol)
}

/// Symbols without a sound of their own. The symbols that remain without them are heard.
fn is_silent(symbol: char) -> bool {
    matches!(symbol, ' ' | 'ˈ' | 'ˌ' | 'ː' | '↓' | '→' | '↗' | '↘') || is_punctuation(symbol)
}

/// Whether anything of these symbols is heard.
pub(crate) fn is_heard(symbols: &str) -> bool {
    symbols.chars().any(|symbol| is_phoneme(symbol) && !is_silent(symbol))
}

pub(crate) fn is_punctuation(symbol: char) -> bool {
    matches!(symbol, ';' | ':' | ',' | '.' | '!' | '?' | '—' | '…' | '"' | '(' | ')' | '“' | '”')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_114_different_symbols() {
        assert_eq!(ALPHABET.chars().count(), 114);
        assert_eq!(ALPHABET.chars().collect::<BTreeSet<_>>().len(), 114);
    }

    #[test]
    fn similar_symbols_are_distinguished() {
        assert!(is_phoneme('ɡ'), "the phonetic g is in");
        for outside in ['g', '❓', '\'', '-', '1', 'N', 'é'] {
            assert!(!is_phoneme(outside), "{outside} is not in");
        }
    }
}
