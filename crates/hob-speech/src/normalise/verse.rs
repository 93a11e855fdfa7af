//! Chapter and verse behind a book of the Bible: "Genesis 1:1", "Psalm 119:105", "1 Corinthians 13:4-7".
//! The book decides: elsewhere, "1:1" is a ratio and "3:16" a time.

use super::View;
use super::cardinal::cardinal;
use super::numeral::is_digits;
use crate::reading::Reading;
use crate::word_table::has;

/// The last words of the books' names.
const BOOKS: &str = "
    Acts Amos Chronicles Colossians Corinthians Daniel Deuteronomy Ecclesiastes Ephesians Esther
    Exodus Ezekiel Ezra Galatians Genesis Habakkuk Haggai Hebrews Hosea Isaiah James Jeremiah Job
    Joel John Jonah Joshua Judges Kings Lamentations Leviticus Luke Malachi Mark Matthew Micah
    Nahum Nehemiah Numbers Peter Philippians Proverbs Psalm Psalms Revelation Romans Ruth Samuel
    Solomon Songs Thessalonians Timothy Titus Zechariah Zephaniah";

/// Behind a higher chapter, the verse could be a part of its number: 20:4 would be "twenty four".
const CHAPTER_SAID_ALONE_MAX: u64 = 19;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (chapter, verses) = word.text.split_once(':')?;
    if !has(BOOKS, &view.before()?.text) {
        return None;
    }
    let number = |text: &str| is_number(text).then(|| cardinal(text, view.british));
    let said: Option<Vec<String>> = verses.split(['-', '–']).map(number).collect();
    let is_long = chapter.parse::<u64>().is_ok_and(|chapter| chapter > CHAPTER_SAID_ALONE_MAX);
    let between = if is_long { " verse " } else { " " };
    out.say(word.span(), &format!("{}{between}{}", number(chapter)?, said?.join(" to ")));
    Some(1)
}

/// Times have a leading zero, verses do not: "Meet John 8:00".
fn is_number(text: &str) -> bool {
    is_digits(text, 1..=3) && !text.starts_with('0')
}
