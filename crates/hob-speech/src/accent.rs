//! The two accents of English that hob speaks.
//! Dictionaries, espeak-ng's voices, letter names and endings differ between them.

use hob_core::Language;

/// An accent of English.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accent {
    American,
    British,
}

impl Accent {
    /// Returns the accent of a language. hob rejects languages that it cannot read before this point. Any other language
    /// is read as American English rather than skipped.
    pub(crate) fn of(language: Language) -> Accent {
        match language {
            Language::BritishEnglish => Accent::British,
            _ => Accent::American,
        }
    }
}
