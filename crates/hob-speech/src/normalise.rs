//! A language as it is written → as it is said: numbers, money, dates, times, units, addresses, symbols, acronyms.
//! English is read here, the languages of espeak-ng in `languages`. Every word knows its bytes in the user's text.

mod acronym;
mod address;
mod camel;
mod cardinal;
mod chemistry;
mod chess;
mod date;
mod item;
mod languages;
mod maths;
mod model_number;
mod money;
mod music;
mod number;
mod numeral;
mod own_word;
mod quantity;
mod roman;
mod street;
mod symbol;
mod telephone;
mod time;
mod unit;
mod verse;
mod word;

use hob_core::Language;

pub(crate) use self::cardinal::is_number_word;
use self::item::{Item, items};
use crate::abbreviations::{Abbreviation, abbreviation};
use crate::lexicon::Lexicon;
use crate::markdown::visible;
use crate::reading::Reading;

/// The input of the readers: everything from the current word to the end of the sentence, and the word before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    items: &'a [Item],
    at: usize,
    language: Language,
    british: bool,
    /// The sentence is in capitals, so capitals do not mark acronyms in it.
    shouted: bool,
    lexicon: &'a Lexicon,
}

/// A reader of one kind of text: says what it recognises and returns how many items that were. `None` leaves them to
/// the next reader.
type Reader = fn(View<'_>, &mut Reading) -> Option<usize>;

/// In this order: the more specific form first.
const READERS: &[Reader] = &[
    own_word::read,
    model_number::read,
    verse::read,
    chess::read,
    music::read,
    telephone::read,
    address::read,
    maths::read,
    chemistry::read,
    street::read,
    money::read,
    date::read,
    time::read,
    quantity::read,
    roman::read,
    number::read,
    symbol::read,
    acronym::read,
    word::read,
];

/// Reads a segment with these pronunciations of the user. Its first byte is byte `offset` of the user's text.
pub(crate) fn read_with(
    text: &str,
    offset: usize,
    language: Language,
    lexicon: &Lexicon,
) -> Reading {
    let visible = visible(text, offset);
    let visible = match languages::table_of(language) {
        Some(_) => languages::with_plain_characters(visible),
        None => visible,
    };
    let items = items(&visible);
    let british = language == Language::BritishEnglish;
    let shouted = is_shouted(&items);
    let mut reading = Reading::default();
    let mut at = 0;
    while at < items.len() {
        at +=
            read_one(View { items: &items, at, language, british, shouted, lexicon }, &mut reading);
    }
    reading
}

/// What a full stop behind an abbreviation can mean, and the words for it. `None`: the word is not an abbreviation.
pub(crate) fn short_form(language: Language, word: &str) -> Option<Abbreviation> {
    languages::table_of(language)
        .map_or_else(|| abbreviation(word), |table| languages::short_form(table, word))
}

/// Words with which a sentence often begins, where the language has its own.
pub(crate) fn starters(language: Language) -> Option<&'static str> {
    languages::table_of(language).map(|table| table.starters)
}

/// What is said for a block of code.
pub(crate) fn code_block(language: Language) -> &'static str {
    match language {
        Language::Japanese => "コードブロック",
        Language::Mandarin => "代码块",
        _ => languages::table_of(language).map_or("code block", |table| table.signs.code_block),
    }
}

#[cfg(test)]
pub(crate) fn read(text: &str, offset: usize, language: Language) -> Reading {
    read_with(text, offset, language, &Lexicon::default())
}

fn read_one(view: View<'_>, out: &mut Reading) -> usize {
    let table = languages::table_of(view.language);
    match &view.items[view.at] {
        Item::Mark('—') if table.is_none() => match maths::minus(view) {
            Some(span) => out.say(span, "minus"),
            None => out.mark('—'),
        },
        Item::Mark(mark) => out.mark(*mark),
        Item::Open(mark) => out.open(*mark),
        Item::Pronounced { word, span, phonemes } => out.pronounce(span.clone(), word, phonemes),
        Item::Word(_) => {
            let used = match table {
                Some(table) => languages::read(view, table, out),
                None => READERS.iter().find_map(|reader| reader(view, out)),
            };
            return used.unwrap_or(1);
        }
    }
    1
}

/// At least three words have three letters or more, and all of these are in capitals. Devanagari has none.
fn is_shouted(items: &[Item]) -> bool {
    let letters = |item: &Item| -> Vec<char> {
        let chars = item.word().map_or("", |word| word.text.as_str()).chars();
        chars.filter(|c| c.is_alphabetic()).collect()
    };
    let words = items.iter().map(letters).filter(|letters| letters.len() >= 3);
    let words: Vec<Vec<char>> = words.collect();
    words.len() >= 3 && words.iter().flatten().all(|letter| letter.is_uppercase())
}

#[cfg(test)]
mod tests;
