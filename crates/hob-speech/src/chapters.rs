//! A book's text → chapters, to which a listener can jump, and parts, which are spoken one by one.
//! Pure, and linear in the length of the text.

use std::collections::HashSet;
use std::ops::Range;

use hob_core::Language;

use crate::markdown::visible;
use crate::normalise::is_number_word;
use crate::reader::FENCE_MARKS;
use crate::segment::{End, next_segment};
use crate::word_table::has;

/// Longer lines are not headings.
const HEADING_CHARS_MAX: usize = 80;
/// The most characters of a title.
const TITLE_CHARS_MAX: usize = 120;
/// Further headings are spoken and get no mark.
const CHAPTERS_MAX: usize = 5_000;
/// The most text of one part, about four minutes of sound, unless it is a code block.
const PART_BYTES_MAX: usize = 4_000;
/// A longer code block is taken for text, because its end is probably missing.
const CODE_BYTES_MAX: usize = 64 * 1024;

/// Words that are followed by a number: "Chapter 1", "PART II", "Book the First".
const NUMBERED: [&str; 6] = ["chapter", "part", "book", "volume", "act", "canto"];

/// Words that are a heading if they stand alone in their line.
const ALONE: &str = "
    prologue epilogue preface foreword introduction afterword interlude conclusion appendix
    postscript acknowledgements acknowledgments";

/// A chapter: its title, and its bytes of the text with its heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookChapter {
    pub title: String,
    pub range: Range<usize>,
}

/// A piece of a chapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookPart {
    /// The number of its chapter, from 0.
    pub chapter: usize,
    pub range: Range<usize>,
    pub end: PartEnd,
}

/// What a part ends with. It decides the pause after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartEnd {
    Chapter,
    Paragraph,
    /// A paragraph was too long for one part.
    Sentence,
}

/// Divides a text at its headings. Text before the first heading is a chapter with the title of the book.
///
/// A heading is a Markdown heading of level 1 or 2, or a line after an empty line that has at most 80 characters and
/// begins with "Chapter", "Part", "Book", "Volume", "Act" or "Canto" and a number, or consists of a word such as
/// "Prologue". After it comes an empty line, or one more short line with the rest of the title. A table of contents
/// gets no marks: headings without text have none if the same heading comes again.
pub fn book_chapters(text: &str, title: &str) -> Vec<BookChapter> {
    let mut headings = without_contents(text, headings(text));
    headings.truncate(CHAPTERS_MAX);
    let before = headings.first().map_or(text.len(), |heading| heading.range.start);
    let mut starts = Vec::new();
    if headings.is_empty() || !text[..before].trim().is_empty() {
        starts.push((0, title.to_owned()));
    }
    starts.extend(headings.into_iter().map(|heading| (heading.range.start, shown(&heading.title))));
    let ends: Vec<usize> = starts.iter().skip(1).map(|(at, _)| *at).chain([text.len()]).collect();
    let chapter = |((start, title), end): ((usize, String), usize)| BookChapter {
        title: title.chars().take(TITLE_CHARS_MAX).collect(),
        range: start..end,
    };
    starts.into_iter().zip(ends).map(chapter).collect()
}

/// A title without its Markdown: "The *Best* [Day](day.md)". It stays as it is if nothing else is in it.
fn shown(title: &str) -> String {
    let mut text = String::new();
    for seen in visible(title, 0).chars {
        match &title[seen.start..seen.end] {
            entity if entity.len() > 1 && entity.starts_with(['&', '<']) => text.push(seen.c),
            // As the user wrote it: readers hear no "★" and no "｜".
            written => text.push_str(written),
        }
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() { title.to_owned() } else { words.join(" ") }
}

/// Divides chapters into parts, at the ends of paragraphs if possible. Only whitespace is in no part.
pub fn book_parts(text: &str, chapters: &[BookChapter]) -> Vec<BookPart> {
    let blocks = code_blocks(text);
    let mut parts = Vec::new();
    for (number, chapter) in chapters.iter().enumerate() {
        let whole = text[chapter.range.clone()].trim_end();
        let mut rest = whole;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            let start = chapter.range.start + whole.len() - rest.len();
            let (bytes, end) = part_end(rest, start, &blocks);
            parts.push(BookPart { chapter: number, range: start..start + bytes, end });
            rest = &rest[bytes..];
        }
    }
    parts
}

/// Bytes of the first part of a chapter's rest, which begins at byte `start` of the text.
fn part_end(rest: &str, start: usize, blocks: &[Range<usize>]) -> (usize, PartEnd) {
    if rest.len() <= PART_BYTES_MAX {
        return (rest.len(), PartEnd::Chapter);
    }
    let window = &rest[..rest.floor_char_boundary(PART_BYTES_MAX)];
    let after = |marks: &[&str]| {
        let ends = marks.iter().filter_map(|mark| Some(window.rfind(mark)? + mark.len()));
        ends.max()
    };
    let paragraph = after(&["\n\n", "\n\r\n"]).map(|at| (at, PartEnd::Paragraph));
    let word = || after(&[" ", "\n"]);
    let (cut, end) = paragraph.unwrap_or_else(|| {
        let end = last_sentence_end(window).or_else(word).unwrap_or(window.len());
        (end, PartEnd::Sentence)
    });
    match code_at(blocks, start + cut) {
        None => (cut, end),
        Some(block) if block.start > start => (block.start - start, PartEnd::Paragraph),
        Some(block) if block.end - start < rest.len() => (block.end - start, PartEnd::Paragraph),
        Some(_) => (rest.len(), PartEnd::Chapter),
    }
}

/// The code blocks of a text, with their fences. A part that begins inside of one would be read as text, and what follows the
/// block as code.
fn code_blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut open: Option<(char, usize)> = None;
    for (range, line) in lines(text) {
        let first = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let marks = line.chars().take_while(|c| Some(*c) == first).count();
        let is_bare = marks == line.len();
        match (open, first.filter(|_| marks >= FENCE_MARKS)) {
            (Some((_, start)), _) if range.end - start > CODE_BYTES_MAX => open = None,
            (Some((fence, start)), Some(mark)) if mark == fence && is_bare => {
                blocks.push(start..range.end);
                open = None;
            }
            // Tildes alone are more often a break between scenes.
            (None, Some(mark)) if mark == '`' || !is_bare => open = Some((mark, range.start)),
            _ => {}
        }
    }
    blocks
}

/// The block that contains this byte of the text.
fn code_at(blocks: &[Range<usize>], at: usize) -> Option<&Range<usize>> {
    let next = blocks.get(blocks.partition_point(|block| block.end <= at));
    next.filter(|block| block.start <= at)
}

/// Bytes up to the end of the last whole sentence of `window`, after which the text goes on. The language of the text is
/// not known, so its abbreviations are those of English.
fn last_sentence_end(window: &str) -> Option<usize> {
    let (mut at, mut last) = (0, None);
    while let Ok(Some(segment)) = next_segment((window, Language::AmericanEnglish), at, false) {
        at = segment.range.end;
        if segment.end >= End::Sentence {
            last = Some(at);
        }
    }
    last
}

struct Heading {
    /// Bytes of the lines of the heading in the text.
    range: Range<usize>,
    title: String,
}

/// The lines of a text without their whitespace, with their bytes.
fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> + Clone {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start..at, line.trim())
    })
}

fn headings(text: &str) -> Vec<Heading> {
    let mut found = Vec::new();
    let blocks = code_blocks(text);
    let mut is_after_blank = true;
    let mut lines = lines(text);
    while let Some((range, line)) = lines.next() {
        if code_at(&blocks, range.start).is_none() {
            let marked = markdown_title(line).map(|title| Heading { range: range.clone(), title });
            let plain = || plain_heading((range, line), lines.clone());
            found.extend(marked.or_else(|| if is_after_blank { plain() } else { None }));
        }
        is_after_blank = line.is_empty();
    }
    found
}

fn markdown_title(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?;
    let title = title.strip_prefix('#').unwrap_or(title);
    let title = title.strip_prefix([' ', '\t'])?.trim_matches([' ', '\t', '#', '*', '_']);
    (!title.is_empty()).then(|| title.to_owned())
}

/// A heading in words. `below` are the lines after it.
fn plain_heading<'t>(
    (range, line): (Range<usize>, &str),
    mut below: impl Iterator<Item = (Range<usize>, &'t str)>,
) -> Option<Heading> {
    if !begins_chapter(line) {
        return None;
    }
    let Some((second, rest)) = below.next().filter(|(_, next)| !next.is_empty()) else {
        return Some(Heading { range, title: line.to_owned() });
    };
    let is_alone = below.next().is_none_or(|(_, third)| third.is_empty());
    if !is_alone || !is_short(rest) || begins_chapter(rest) {
        return None;
    }
    let name = line.trim_end_matches(['.', ':', ' ', '-', '–', '—']);
    Some(Heading { range: range.start..second.end, title: format!("{name}: {rest}") })
}

fn is_short(line: &str) -> bool {
    line.chars().nth(HEADING_CHARS_MAX).is_none()
}

fn begins_chapter(line: &str) -> bool {
    if !is_short(line) {
        return false;
    }
    let (word, rest) = split_word(line);
    let word = word.to_lowercase();
    if has(ALONE, &word) {
        return rest.trim_matches(['.', ':']).is_empty();
    }
    if !NUMBERED.contains(&word.as_str()) || !rest.starts_with(' ') {
        return false;
    }
    let (number, rest) = match split_word(rest.trim_start()) {
        (the, rest) if the.eq_ignore_ascii_case("the") => split_word(rest.trim_start()),
        number => number,
    };
    // "Part two of the plan failed." is not a heading.
    let goes_on = rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(char::is_lowercase));
    is_number(number) && !goes_on
}

/// The letters and digits at the start, and the rest.
fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    text.split_at(end)
}

fn is_number(word: &str) -> bool {
    let is_all = |digits: &str| !word.is_empty() && word.chars().all(|c| digits.contains(c));
    is_all("0123456789")
        || is_all("IVXLCDM")
        || word.eq_ignore_ascii_case("last")
        || is_number_word(word)
}

/// Removes headings without text whose words come again later.
fn without_contents(text: &str, headings: Vec<Heading>) -> Vec<Heading> {
    let mut later = HashSet::new();
    let mut end = text.len();
    let mut kept: Vec<Heading> = Vec::new();
    for heading in headings.into_iter().rev() {
        let has_text = !text[heading.range.end..end].trim().is_empty();
        end = heading.range.start;
        let letters = heading.title.chars().filter(|c| c.is_alphanumeric());
        let is_new = later.insert(letters.flat_map(char::to_lowercase).collect::<String>());
        if is_new || has_text {
            kept.push(heading);
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests;
