//! Words that no dictionary has: other scripts, accents, stretched letters, names, inventions.
//! Every word gets sounds: from espeak-ng if it is installed, otherwise from the letter rules.

use std::collections::HashMap;
use std::path::Path;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::accent::Accent;
use crate::alphabet::is_heard;
use crate::espeak::{Espeak, EspeakError};
use crate::ipa::to_misaki;
use crate::letters;
use crate::scripts::romanised;
use crate::spelling::{plural, spell};

/// Maximum number of cached words. A full cache is emptied, and each word then costs a few milliseconds again.
const REMEMBERED_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct UnknownWords {
    accent: Accent,
    espeak: Option<Espeak>,
    remembered: HashMap<String, String>,
}

impl UnknownWords {
    pub(crate) fn new(accent: Accent, espeak: Option<&Path>) -> UnknownWords {
        if espeak.is_none() {
            tracing::warn!(
                "espeak-ng is not installed: words missing from the dictionary are read by \
                 letter-to-sound rules"
            );
        }
        let espeak = espeak.map(|program| Espeak::new(program, accent));
        UnknownWords { accent, espeak, remembered: HashMap::new() }
    }

    /// Returns the sounds of `word`. `lookup` is the dictionary for the forms that the word is reduced to.
    pub(crate) fn sounds(&mut self, word: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
        if let Some(sounds) = self.remembered.get(word) {
            return sounds.clone();
        }
        let sounds = self.work_out(word, &lookup);
        if self.remembered.len() >= REMEMBERED_MAX {
            self.remembered.clear();
        }
        self.remembered.insert(word.to_owned(), sounds.clone());
        sounds
    }

    fn work_out(&mut self, word: &str, lookup: &impl Fn(&str) -> Option<String>) -> String {
        if let Some(latin) = romanised(word) {
            return self.words(&latin, lookup);
        }
        if let Some(stem) = word.strip_suffix("'s").filter(|stem| !stem.is_empty()) {
            let sounds = lookup(stem).unwrap_or_else(|| self.work_out(stem, lookup));
            return plural(sounds, self.accent);
        }
        if let Some(sounds) = unstretched(word).and_then(|word| lookup(&word)) {
            return sounds;
        }
        if let Some(sounds) = self.ask_espeak(word) {
            return sounds;
        }
        let plain = without_accents(word);
        if let Some(sounds) = Some(&plain).filter(|plain| *plain != word).and_then(|p| lookup(p)) {
            return sounds;
        }
        match letters::sounds(&plain, self.accent) {
            sounds if sounds.is_empty() => spell(&plain, self.accent),
            sounds => sounds,
        }
    }

    fn words(&mut self, words: &str, lookup: &impl Fn(&str) -> Option<String>) -> String {
        let sounds: Vec<String> = words
            .split(' ')
            .map(|word| lookup(word).unwrap_or_else(|| self.work_out(word, lookup)))
            .collect();
        sounds.join(" ")
    }

    fn ask_espeak(&mut self, word: &str) -> Option<String> {
        let espeak = self.espeak.as_mut()?;
        match espeak.ipa(word) {
            Ok(ipa) => {
                let sounds = to_misaki(&ipa, self.accent);
                is_heard(&sounds).then_some(sounds)
            }
            // The failure was logged when espeak-ng was given up, and is not logged again for every word.
            Err(EspeakError::GivenUp) => None,
            Err(error) => {
                tracing::warn!(%error, "espeak-ng failed: a word is read by letter-to-sound rules");
                None
            }
        }
    }
}

/// "Noooo" → "No", "yesss" → "yes"; `None` if no letter occurs three times in a row.
fn unstretched(word: &str) -> Option<String> {
    let letters: Vec<char> = word.chars().collect();
    let stretched = letters.windows(3).any(|w| w[0] == w[1] && w[1] == w[2]);
    stretched.then(|| {
        let mut short = letters;
        short.dedup();
        short.into_iter().collect()
    })
}

/// Latin letters without their accents, as an English reader says them.
fn without_accents(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.nfkd().filter(|c| !is_combining_mark(*c)) {
        match c {
            'ß' => out.push_str("ss"),
            'æ' | 'Æ' => out.push_str("ae"),
            'œ' | 'Œ' => out.push_str("oe"),
            'ø' | 'Ø' => out.push('o'),
            'ł' | 'Ł' => out.push('l'),
            'đ' | 'Đ' | 'ð' | 'Ð' => out.push('d'),
            'þ' | 'Þ' => out.push_str("th"),
            'ı' => out.push('i'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dictionary of two words.
    fn dictionary(word: &str) -> Option<String> {
        match word {
            "no" => Some("nˈO".to_owned()),
            "cafe" => Some("kæfˈA".to_owned()),
            "Chinese" => Some("ʧˌInˈiz".to_owned()),
            _ => None,
        }
    }

    fn check(word: &str, expect: &str) {
        let mut unknown = UnknownWords::new(Accent::American, None);
        assert_eq!(unknown.sounds(word, dictionary), expect, "{word}");
    }

    #[test]
    fn words_are_found_behind_their_spelling() {
        check("nooooo", "nˈO");
        check("café", "kæfˈA");
        check("cafe's", "kæfˈAz");
        check("да", "dˈɑ");
    }

    #[test]
    fn scripts_without_letters_are_named() {
        let mut unknown = UnknownWords::new(Accent::American, None);
        assert!(unknown.sounds("世界", dictionary).starts_with("ʧˌInˈiz "));
    }

    #[test]
    fn a_broken_espeak_is_no_reason_for_silence() {
        let mut unknown = UnknownWords::new(Accent::American, Some(Path::new("no-such-program")));
        for word in ["blork", "blork", "zote", "brillig", "slithy"] {
            assert!(!unknown.sounds(word, dictionary).is_empty(), "{word}");
        }
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut unknown = UnknownWords::new(Accent::American, None);
        for number in 0..=REMEMBERED_MAX {
            let word: String = format!("{number:05}")
                .bytes()
                .map(|digit| char::from(digit - b'0' + b'a'))
                .collect();
            unknown.sounds(&word, dictionary);
        }
        assert_eq!(unknown.remembered.len(), 1);
    }
}
