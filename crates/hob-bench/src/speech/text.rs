//! The texts to be spoken: fixed texts of known length, each pinned by its hash.
//! A changed text needs a new version, because figures of different texts are not comparable.

use crate::record::sha256_hex;

/// Version of all texts.
pub const VERSION: u32 = 1;

/// A text to be spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    pub name: &'static str,
    pub words: &'static str,
    pub sentences: Sentences,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sentences {
    One,
    Several,
}

/// A greeting, a sentence and a paragraph, which give the tier. Then a sentence for the first sound, two sentences, and
/// an article.
pub const TEXTS: [Text; 6] = [
    Text { name: "short", words: "Hello there.", sentences: Sentences::One },
    Text {
        name: "medium",
        words: "The train to the coast leaves from platform nine.",
        sentences: Sentences::One,
    },
    Text {
        name: "long",
        words: "The old bridge was closed for most of the winter. Now the new one is open, and the road along the river is calm again. If you leave before noon, you will be there in time for a walk, a meal, and the last ferry.",
        sentences: Sentences::Several,
    },
    Text {
        name: "first_sound",
        words: "The shop on the corner opens at nine and closes when its last loaf of bread has been sold.",
        sentences: Sentences::One,
    },
    Text {
        name: "two_sentences",
        words: "I found your keys on the stairs. They are on the table by the door.",
        sentences: Sentences::Several,
    },
    Text {
        name: "article",
        words: include_str!("article.txt").trim_ascii_end(),
        sentences: Sentences::Several,
    },
];

/// The mean of the times of these texts gives the tier.
const OF_TIERS: [&str; 3] = ["short", "medium", "long"];

/// The name of a user's own text. Its hash identifies it.
const OWN: &str = "own";

impl Text {
    /// A user's own text. It stays in memory until the program ends, because a command line has at most one.
    pub fn custom(words: &str) -> Text {
        let ends = words.trim_end_matches(['.', '?', '!']).contains(['.', '?', '!']);
        let sentences = if ends { Sentences::Several } else { Sentences::One };
        Text { name: OWN, words: Box::leak(words.into()), sentences }
    }

    pub fn by_name(name: &str) -> Option<Text> {
        TEXTS.into_iter().find(|text| text.name == name)
    }

    /// SHA-256 of its words, which identifies the text in a record.
    pub fn sha256(self) -> String {
        sha256_hex(self.words.as_bytes())
    }

    pub fn chars(self) -> usize {
        self.words.chars().count()
    }

    pub fn is_of_tiers(self) -> bool {
        OF_TIERS.contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sha256_hex;

    #[test]
    fn each_text_has_its_documented_length_and_hash() {
        let rows = [
            ("short", 12, "23ea498e82f4435b1c135324eedef4ba64061600897077bf76082a50b41a9c13"),
            ("medium", 49, "6ff573b819a3414308828ff7c859afb485bc81638fa476f8ac3df81181574d05"),
            ("long", 210, "76d0341ef45f3ab4397351a296db59dffd59f8d80055f2d76d426c9dee17b738"),
            ("first_sound", 90, "baa2744aa4a5ad48067d39788e894a4ec599c019a511a704c0162969f7648fff"),
            (
                "two_sentences",
                67,
                "02e1005249f75fd5177099e085b9c4f2e1648c2a2cecdfb8efa6dbb2e659c4d1",
            ),
            ("article", 8700, "b0faf76c75a918d5eea7105cd6c228162afa1787d11439a43715a25072ba6447"),
        ];
        for (text, (name, chars, sha256)) in TEXTS.into_iter().zip(rows) {
            let got = (text.name, text.chars(), sha256_hex(text.words.as_bytes()));
            assert_eq!(got, (name, chars, sha256.to_owned()));
        }
    }

    #[test]
    fn a_users_own_text_is_identified_by_its_hash() {
        let text = Text::custom("One. Two?");
        assert_eq!((text.name, text.chars(), text.sentences), ("own", 9, Sentences::Several));
        assert_eq!(Text::custom("One?!").sentences, Sentences::One);
        assert_ne!(text.sha256(), Text::custom("One. Two!").sha256());
        assert!(Text::by_name("own").is_none(), "a text of the user has no name");
    }

    #[test]
    fn as_many_sentences_as_is_said() {
        for text in TEXTS {
            let ends = text.words.matches(['.', '?', '!']).count();
            assert_eq!(ends == 1, text.sentences == Sentences::One, "{}", text.name);
        }
        assert_eq!(TEXTS.map(Text::is_of_tiers), [true, true, true, false, false, false]);
    }
}
