//! Spanish, French, Hindi, Italian and Portuguese as written → as said, by one reader with a table for each language.
//! The readers here know what a number, a date or a price looks like. The tables know the words.

mod amount;
mod call;
mod counted;
mod french;
mod hindi;
mod italian;
mod moment;
mod portuguese;
mod price;
mod roman;
mod spanish;
mod table;
mod text;

use hob_core::Language;
use unicode_normalization::UnicodeNormalization;

use self::table::{Form, LanguageTable, NounGender};
use super::{View, own_word};
use crate::abbreviations::Abbreviation;
use crate::markdown::{Seen, Visible};
use crate::reading::Reading;
use crate::word_table::has;

/// A position in a sentence, and the words of its language.
#[derive(Clone, Copy, Debug)]
struct Scene<'a> {
    view: View<'a>,
    table: &'static LanguageTable,
}

/// A [`super::Reader`] for a language with a table.
type TableReader = fn(Scene<'_>, &mut Reading) -> Option<usize>;

/// In this order: the more specific form first.
const READERS: &[TableReader] = &[
    text::address,
    call::read,
    text::short_form,
    text::joined_short_form,
    price::read,
    moment::read,
    counted::read,
    roman::read,
    text::symbols,
    text::word,
];

/// The words of a language that is read through espeak-ng.
pub(super) fn table_of(language: Language) -> Option<&'static LanguageTable> {
    match language {
        Language::Spanish => Some(&spanish::TABLE),
        Language::French => Some(&french::TABLE),
        Language::Hindi => Some(&hindi::TABLE),
        Language::Italian => Some(&italian::TABLE),
        Language::BrazilianPortuguese => Some(&portuguese::TABLE),
        Language::AmericanEnglish
        | Language::BritishEnglish
        | Language::Japanese
        | Language::Mandarin => None,
    }
}

/// Reads the word at this position, with the words of its language.
pub(super) fn read(
    view: View<'_>,
    table: &'static LanguageTable,
    out: &mut Reading,
) -> Option<usize> {
    let scene = Scene { view, table };
    own_word::read(view, out).or_else(|| READERS.iter().find_map(|reader| reader(scene, out)))
}

/// The text with one character for what has several: digits, the minus, apostrophes, and letters of Devanagari with
/// a dot below.
pub(super) fn with_plain_characters(visible: Visible) -> Visible {
    let mut chars = Vec::with_capacity(visible.chars.len());
    for seen in visible.chars {
        let c = match seen.c {
            digit @ '०'..='९' => char::from(b'0' + (digit as u32 - '०' as u32) as u8),
            '−' => '-',
            '’' => '\'',
            other => other,
        };
        if matches!(c, '\u{958}'..='\u{95f}') {
            chars.extend(std::iter::once(c).nfd().map(|c| Seen { c, ..seen }));
        } else {
            chars.push(Seen { c, ..seen });
        }
    }
    Visible { chars, ..visible }
}

impl<'a> Scene<'a> {
    /// The scene some items later.
    fn ahead(self, distance: usize) -> Scene<'a> {
        Scene { view: View { at: self.view.at + distance, ..self.view }, ..self }
    }

    /// The word before without punctuation between, in lower case.
    fn lower_before(self) -> String {
        self.view.before().map(|word| word.text.to_lowercase()).unwrap_or_default()
    }

    /// The word at `distance` in lower case.
    fn lower_ahead(self, distance: usize) -> String {
        self.view.text_ahead(distance).map(str::to_lowercase).unwrap_or_default()
    }

    /// The form of a number before the word at `distance`.
    fn form_before(self, distance: usize) -> Form {
        let noun = self.lower_ahead(distance);
        let is_noun = noun.chars().count() > 1
            && noun.chars().all(|c| c.is_alphabetic() || c == '\'' || c == '-')
            && !has(self.table.particles, &noun);
        if is_noun { Form::Before(self.gender_of(&noun)) } else { Form::Alone }
    }

    fn gender_of(self, noun: &str) -> NounGender {
        let nouns = &self.table.nouns;
        let mut endings = nouns.feminine_endings.split_whitespace();
        let is_feminine = has(nouns.feminine, noun)
            || (!has(nouns.masculine, noun) && endings.any(|ending| noun.ends_with(ending)));
        if is_feminine { NounGender::Feminine } else { NounGender::Masculine }
    }
}

/// How a short form is said, and whether a sentence can end behind it. The word comes without its last full stop.
pub(super) fn short_form(table: &LanguageTable, word: &str) -> Option<Abbreviation> {
    if word.len() > 24 { None } else { table.short_forms.find(&word.to_lowercase()) }
}

#[cfg(test)]
mod tests;
