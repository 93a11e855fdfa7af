//! Letter-to-sound rules for English: they give every word a reading, even if nothing else is installed.
//! The result must be understandable and must never fail. Dictionaries come before these rules.

mod rules;

use self::rules::{RULES, Rule};
use crate::accent::Accent;
use crate::ipa::weakened;
use crate::spelling::{is_vowel, spell};

/// Longer words are read in pieces of this length, so that each piece stays cheap.
const PIECE_CHARS: usize = 48;

/// Returns the sounds of `word`, without letters other than a to z. Never empty if `word` has such a letter: a word
/// without a vowel is spelled.
pub(crate) fn sounds(word: &str, accent: Accent) -> String {
    let letters: Vec<char> =
        word.chars().map(|c| c.to_ascii_lowercase()).filter(char::is_ascii_lowercase).collect();
    letters.chunks(PIECE_CHARS).map(|piece| piece_sounds(piece, accent)).collect()
}

fn piece_sounds(letters: &[char], accent: Accent) -> String {
    let spelled: String = letters.iter().collect();
    if !letters.iter().any(|&c| is_vowel_letter(c)) {
        return spell(&spelled.to_uppercase(), accent);
    }
    let sounds = stressed(&apply_rules(letters));
    if sounds.chars().any(is_vowel) {
        in_accent(&sounds, accent)
    } else {
        spell(&spelled.to_uppercase(), accent)
    }
}

fn apply_rules(letters: &[char]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < letters.len() {
        let rule = RULES.iter().find(|rule| fits(rule, letters, at));
        out.push_str(rule.map_or("", |rule| rule.sounds));
        at += rule.map_or(1, |rule| rule.letters.len());
    }
    out
}

fn fits(rule: &Rule, letters: &[char], at: usize) -> bool {
    let end = at + rule.letters.len();
    end <= letters.len()
        && rule.letters.chars().eq(letters[at..end].iter().copied())
        && fits_left(rule.left, &letters[..at])
        && fits_right(rule.right, &letters[end..])
}

/// Matches context symbols from the one nearest to the letters; each takes as many letters as it can.
fn fits_left(context: &str, before: &[char]) -> bool {
    let mut rest = before.len();
    for symbol in context.chars().rev() {
        match symbol {
            '_' if rest != 0 => return false,
            '_' => {}
            '#' => {
                let vowels = before[..rest].iter().rev().take_while(|c| is_vowel_letter(**c));
                let count = vowels.count();
                if count == 0 {
                    return false;
                }
                rest -= count;
            }
            ':' => {
                rest -= before[..rest].iter().rev().take_while(|c| is_consonant(**c)).count();
            }
            _ => {
                if rest == 0 || !is_one(symbol, before[rest - 1]) {
                    return false;
                }
                rest -= 1;
            }
        }
    }
    true
}

fn fits_right(context: &str, after: &[char]) -> bool {
    let mut at = 0;
    for symbol in context.chars() {
        match symbol {
            '_' if at != after.len() => return false,
            '_' => {}
            '#' => {
                let count = after[at..].iter().take_while(|c| is_vowel_letter(**c)).count();
                if count == 0 {
                    return false;
                }
                at += count;
            }
            '%' => match ending(&after[at..]) {
                Some(length) => at += length,
                None => return false,
            },
            _ => {
                if after.get(at).is_none_or(|&letter| !is_one(symbol, letter)) {
                    return false;
                }
                at += 1;
            }
        }
    }
    true
}

/// Length of the ending `after`, before which a vowel is long. `None` if it is not such an ending.
fn ending(after: &[char]) -> Option<usize> {
    ["e", "ed", "er", "ers", "es", "ely", "ing", "ings"]
        .into_iter()
        .find(|ending| ending.chars().eq(after.iter().copied()))
        .map(str::len)
}

fn is_one(symbol: char, letter: char) -> bool {
    match symbol {
        '^' => is_consonant(letter),
        '.' => "bdvgjlmnrwz".contains(letter),
        '+' => matches!(letter, 'e' | 'i' | 'y'),
        _ => symbol == letter,
    }
}

fn is_vowel_letter(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

fn is_consonant(letter: char) -> bool {
    !is_vowel_letter(letter)
}

/// Puts the main stress where English words of unknown origin mostly have it. This is the syllable before an ending
/// such as -tion or -ic, otherwise the first of two, otherwise the third from the end.
fn stressed(sounds: &str) -> String {
    let nuclei: Vec<usize> =
        sounds.char_indices().filter(|(_, symbol)| is_vowel(*symbol)).map(|(at, _)| at).collect();
    if nuclei.is_empty() {
        return sounds.to_owned();
    }
    let draws_stress = ["ʃən", "ʒən", "ɪk", "ɪks", "ʃəs", "ʃəl"];
    let count = nuclei.len();
    let index = if count >= 2 && draws_stress.iter().any(|ending| sounds.ends_with(ending)) {
        count - 2
    } else {
        count.saturating_sub(3)
    };
    // A weak vowel cannot carry the stress; the next full vowel does.
    let weak = |at: usize| sounds[at..].starts_with(['ə', 'ᵻ']);
    let strong = (index..count).chain(0..index).find(|&i| !weak(nuclei[i])).unwrap_or(index);
    let (before, after) = sounds.split_at(nuclei[strong]);
    format!("{before}ˈ{after}")
}

/// The rules are for American English. British drops an r that no vowel follows, and keeps length marks.
fn in_accent(sounds: &str, accent: Accent) -> String {
    if accent == Accent::American {
        return weakened(sounds);
    }
    let mut out = String::new();
    let symbols: Vec<char> = sounds.chars().collect();
    for (index, &symbol) in symbols.iter().enumerate() {
        let next = symbols.get(index + 1).copied();
        let r_follows = next == Some('ɹ') && !symbols.get(index + 2).is_some_and(|c| is_vowel(*c));
        match symbol {
            'ɹ' if index > 0 && is_vowel(symbols[index - 1]) && !next.is_some_and(is_vowel) => {}
            'ɑ' | 'ɔ' | 'ɜ' if r_follows => out.extend([symbol, 'ː']),
            'ɔ' | 'i' | 'u' | 'ɜ' => out.extend([symbol, 'ː']),
            'ɑ' => out.push('ɒ'),
            'ɛ' if r_follows => out.push_str("ɛː"),
            'ɪ' if r_follows => out.push_str("ɪə"),
            'O' => out.push('Q'),
            'æ' => out.push('a'),
            'ᵻ' => out.push('ɪ'),
            _ => out.push(symbol),
        }
    }
    weakened(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, us: &str) {
        assert_eq!(sounds(word, Accent::American), us, "{word}");
    }

    #[test]
    fn plain_words() {
        check("cat", "kˈæt");
        check("make", "mˈAk");
        check("making", "mˈAkɪŋ");
        check("phone", "fˈOn");
        check("night", "nˈIt");
        check("quick", "kwˈɪk");
        check("station", "stˈAʃən");
        check("blorkable", "blˈɔɹkAbᵊl");
    }

    #[test]
    fn no_vowel_is_spelled() {
        check("xzq", "ˌɛksˌzikjˈu".replace("ˌzi", "zˌi").as_str());
        check("b", "bˈi");
    }

    #[test]
    fn british_has_no_r_at_the_end() {
        assert_eq!(sounds("blarker", Accent::British), "blˈɑːkə");
        assert_eq!(sounds("zote", Accent::British), "zˈQt");
    }

    #[test]
    fn every_letter_and_any_length_is_read() {
        for letter in 'a'..='z' {
            let word = format!("{letter}{letter}o{letter}");
            assert!(!sounds(&word, Accent::American).is_empty(), "{word}");
        }
        assert!(!sounds(&"a".repeat(5_000), Accent::American).is_empty());
        assert!(!sounds("e", Accent::American).is_empty());
        assert_eq!(sounds("жук", Accent::American), "");
    }
}
