//! The languages that a voice can belong to. hob reads all of them aloud, if it has the programs and dictionaries.
//! A closed list: each language needs a person who can check how it is read.

use std::fmt;

use crate::enum_table;

/// The months as they are written in English.
pub const ENGLISH_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

enum_table! {
    /// The language of a voice. Kokoro's voices carry it in their first letter.
    /// `tag` gives the BCP 47 tag, as the voice list shows it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub enum Language: tag {
        AmericanEnglish = "en-US",
        BritishEnglish = "en-GB",
        Spanish = "es",
        French = "fr",
        Hindi = "hi",
        Italian = "it",
        Japanese = "ja",
        BrazilianPortuguese = "pt-BR",
        Mandarin = "zh",
    }
}

impl Language {
    /// The first letter of a Kokoro voice's name.
    pub fn voice_letter(self) -> char {
        match self {
            Language::AmericanEnglish => 'a',
            Language::BritishEnglish => 'b',
            Language::Spanish => 'e',
            Language::French => 'f',
            Language::Hindi => 'h',
            Language::Italian => 'i',
            Language::Japanese => 'j',
            Language::BrazilianPortuguese => 'p',
            Language::Mandarin => 'z',
        }
    }

    pub fn from_voice_letter(letter: char) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.voice_letter() == letter)
    }

    /// Whether both are the same language, perhaps with another accent.
    pub fn is_kin(self, other: Language) -> bool {
        let base = |language: Language| language.tag().split('-').next();
        base(self) == base(other)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Language::AmericanEnglish => "American English",
            Language::BritishEnglish => "British English",
            Language::Spanish => "Spanish",
            Language::French => "French",
            Language::Hindi => "Hindi",
            Language::Italian => "Italian",
            Language::Japanese => "Japanese",
            Language::BrazilianPortuguese => "Brazilian Portuguese",
            Language::Mandarin => "Mandarin Chinese",
        })
    }
}

/// Whether this is a full stop of another script than Latin, which needs no space after it.
pub fn is_full_stop(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '．' | '।' | '॥' | '؟' | '۔' | '։' | '።')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_of_one_language_are_kin() {
        assert!(Language::AmericanEnglish.is_kin(Language::BritishEnglish));
        assert!(Language::Hindi.is_kin(Language::Hindi));
        assert!(!Language::Spanish.is_kin(Language::Italian));
    }
}
