//! Recognises the language of a text by its frequent words.
//! Works for texts of a sentence or more, in four languages.

use hob_core::enum_table;
use serde::{Deserialize, Serialize};

enum_table! {
    /// A language in which an item can ask for an answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TextLanguage: name {
        English = "English",
        German = "German",
        French = "French",
        Spanish = "Spanish",
    }
}

/// At least one word in this many must be a frequent one; in prose it is about one in three.
const FREQUENT_WORD_EVERY: usize = 10;

impl TextLanguage {
    /// The language of a text. `None` if it has too few frequent words, or two languages tie.
    pub fn of(text: &str) -> Option<TextLanguage> {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphabetic())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let count = |language: TextLanguage| {
            let frequent = language.frequent_words();
            words.iter().filter(|word| frequent.contains(&word.as_str())).count()
        };
        let mut counts = TextLanguage::ALL.map(|language| (count(language), language));
        counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let [(most, language), (next, _), ..] = counts;
        let is_enough = most > 0 && most * FREQUENT_WORD_EVERY >= words.len();
        (is_enough && most > next).then_some(language)
    }

    fn frequent_words(self) -> &'static [&'static str] {
        match self {
            TextLanguage::English => &[
                "the", "and", "of", "to", "in", "is", "that", "it", "was", "for", "with", "as",
                "on", "are", "this", "be", "at", "by", "not", "have", "from", "they", "you", "a",
                "an", "he", "she", "his", "her", "had", "but", "or", "we", "i", "my", "your",
            ],
            TextLanguage::German => &[
                "der", "die", "das", "und", "ist", "nicht", "ein", "eine", "einen", "einem", "zu",
                "den", "mit", "von", "auf", "für", "im", "in", "dem", "des", "sich", "auch", "es",
                "an", "als", "wir", "ich", "er", "sie", "war", "aber", "wie", "am", "aus", "sind",
            ],
            TextLanguage::French => &[
                "le", "la", "les", "et", "est", "un", "une", "des", "du", "de", "dans", "pour",
                "que", "qui", "ne", "pas", "sur", "avec", "il", "elle", "nous", "je", "au", "ce",
                "cette", "se", "son", "sa", "en", "plus", "vous", "mais", "par", "l", "d",
            ],
            TextLanguage::Spanish => &[
                "el", "la", "los", "las", "y", "es", "un", "una", "de", "que", "en", "no", "se",
                "por", "con", "para", "su", "lo", "como", "más", "del", "al", "pero", "está",
                "muy", "mi", "sus", "fue", "son", "cuando", "hay", "este", "esta", "ya",
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_is_known_by_its_words() {
        use TextLanguage::{English, French, German, Spanish};
        let rows = [
            ("The train was late, and no one at the station knew why.", Some(English)),
            ("Bread is made from flour.", Some(English)),
            ("Der Zug war zu spät, und am Bahnhof wusste niemand, warum.", Some(German)),
            ("Im Garten wachsen die Tomaten.", Some(German)),
            ("- **Tomaten** in der Sonne\n- ein Eimer mit Wasser", Some(German)),
            ("Le train était en retard, et personne ne savait pourquoi.", Some(French)),
            ("C'est l'histoire d'un vieux phare dans la brume.", Some(French)),
            ("El tren llegó tarde y nadie en la estación sabía por qué.", Some(Spanish)),
            ("Los tomates crecen muy bien en el balcón.", Some(Spanish)),
            ("Tomato tomato tomato.", None),
            ("42", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(TextLanguage::of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_foreign_name_or_a_quotation_does_not_change_the_language() {
        let german = "Die Rue de la Paix ist eine Straße in Paris, und sie ist nicht lang. \
                      Der Platz am Ende ist schön, aber im Sommer auch voll.";
        assert_eq!(TextLanguage::of(german), Some(TextLanguage::German));
    }
}
