//! The two accents of English that hob speaks.
//! Dictionaries, espeak-ng's voices, letter names and endings differ between them.

use hob_core::Language;

/// An accent of English.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Accent {
    American,
    British,
}

impl Accent {
    /// The accent of a language. English words among those of another language are American.
    pub(crate) fn of(language: Language) -> Accent {
        match language {
            Language::BritishEnglish => Accent::British,
            _ => Accent::American,
        }
    }
}
