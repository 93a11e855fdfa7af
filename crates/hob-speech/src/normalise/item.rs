//! Splits a sentence into words and punctuation before anything is read.
//! Words come without the marks around them, and each character keeps its bytes in the user's text.

use std::ops::Range;

use super::View;
use crate::markdown::{Seen, Visible};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Word(Word),
    /// Punctuation after a word, in the model's symbols.
    Mark(char),
    /// An opening bracket or quotation mark.
    Open(char),
    /// The user wrote the phonemes.
    Pronounced {
        word: String,
        span: Range<usize>,
        phonemes: String,
    },
}

/// Text between spaces, without the punctuation around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// For each character of `text`: its byte in `text`, and its bytes in the user's text.
    chars: Vec<(usize, Range<usize>)>,
    /// A space precedes it, not another word or a mark.
    pub(super) spaced: bool,
}

impl Word {
    pub(super) fn span(&self) -> Range<usize> {
        self.span_of(0..self.text.len())
    }

    /// The user's bytes for these bytes of `text`.
    pub(super) fn span_of(&self, range: Range<usize>) -> Range<usize> {
        let first = self.chars.partition_point(|(at, _)| *at < range.start);
        let last = self.chars.partition_point(|(at, _)| *at < range.end);
        match (self.chars.get(first), self.chars[..last].last()) {
            (Some((_, start)), Some((_, end))) => start.start..end.end.max(start.start),
            _ => 0..0,
        }
    }

    fn push(&mut self, seen: Seen) {
        self.chars.push((self.text.len(), seen.start..seen.end));
        self.text.push(seen.c);
    }
}

impl Item {
    pub(super) fn word(&self) -> Option<&Word> {
        match self {
            Item::Word(word) => Some(word),
            _ => None,
        }
    }
}

impl<'a> View<'a> {
    /// The word to be read.
    pub(super) fn word(self) -> Option<&'a Word> {
        self.ahead(0)
    }

    /// The item at `distance` from here, if it is a word.
    pub(super) fn ahead(self, distance: usize) -> Option<&'a Word> {
        self.items.get(self.at + distance)?.word()
    }

    pub(super) fn text_ahead(self, distance: usize) -> Option<&'a str> {
        Some(self.ahead(distance)?.text.as_str())
    }

    pub(super) fn mark_ahead(self, distance: usize) -> Option<char> {
        match self.items.get(self.at + distance)? {
            Item::Mark(mark) => Some(*mark),
            _ => None,
        }
    }

    /// The word directly before, without punctuation in between.
    pub(super) fn before(self) -> Option<&'a Word> {
        self.items.get(self.at.checked_sub(1)?)?.word()
    }

    /// The mark directly before.
    pub(super) fn mark_before(self) -> Option<char> {
        match self.items.get(self.at.checked_sub(1)?)? {
            Item::Mark(mark) => Some(*mark),
            _ => None,
        }
    }

    /// Whether any word follows after the next `distance` items.
    pub(super) fn goes_on(self, distance: usize) -> bool {
        self.items[(self.at + distance).min(self.items.len())..]
            .iter()
            .any(|item| item.word().is_some())
    }
}

/// Cuts the visible characters at spaces and punctuation.
pub(super) fn items(visible: &Visible) -> Vec<Item> {
    let mut items = Vec::new();
    for chunk in visible.chars.split(|seen| seen.c == ' ') {
        if chunk.is_empty() {
            continue;
        }
        pronounced(visible, chunk, &mut items);
    }
    items
}

/// Text without spaces, whose word may have phonemes from the user.
fn pronounced(visible: &Visible, chunk: &[Seen], items: &mut Vec<Item>) {
    let given =
        |seen: &Seen| visible.pronounced.iter().find(|(span, _)| span.contains(&seen.start));
    let Some(from) = chunk.iter().position(|seen| given(seen).is_some()) else {
        return cut(chunk, items);
    };
    let Some((span, phonemes)) = given(&chunk[from]) else { return };
    let length = chunk[from..].iter().take_while(|seen| span.contains(&seen.start)).count();
    let word = &chunk[from..from + length];
    cut(&chunk[..from], items);
    // For several words with spaces between them, the first word carries the pronunciation of all.
    if word[0].start == span.start {
        items.push(Item::Pronounced {
            word: word.iter().map(|seen| seen.c).collect(),
            span: span.clone(),
            phonemes: phonemes.clone(),
        });
    }
    pronounced(visible, &chunk[from + length..], items);
}

/// Cuts text without spaces into opening marks, words separated by inner marks, and closing marks.
fn cut(chunk: &[Seen], items: &mut Vec<Item>) {
    let text: String = chunk.iter().map(|seen| seen.c).collect();
    let address = text.contains("://") || text.starts_with("www.") || is_mail(&text);
    let mut word = Word { spaced: true, ..Word::default() };
    let mut at = 0;
    while at < chunk.len() {
        let length = if address && !is_edge(chunk, at) { 0 } else { mark_length(chunk, at) };
        if length == 0 {
            word.push(chunk[at]);
            at += 1;
            continue;
        }
        flush(&mut word, items);
        if chunk[at].c == '–' && joins_ends(chunk, at) {
            // Read as the word "to".
            word.push(chunk[at]);
            flush(&mut word, items);
        } else {
            items.extend(mark(chunk, at));
        }
        at += length;
    }
    flush(&mut word, items);
}

fn flush(word: &mut Word, items: &mut Vec<Item>) {
    if !word.text.is_empty() {
        items.push(Item::Word(std::mem::take(word)));
    }
    word.spaced = false;
}

pub(super) fn is_mail(text: &str) -> bool {
    text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'))
}

/// Whether only punctuation stands before or after this position.
fn is_edge(chunk: &[Seen], at: usize) -> bool {
    let says = |seen: &Seen| seen.c.is_alphanumeric() || seen.c == '/';
    !chunk[..at].iter().any(says) || !chunk[at..].iter().any(says)
}

/// How many characters at `at` are punctuation and not part of a word.
fn mark_length(chunk: &[Seen], at: usize) -> usize {
    let c = chunk[at].c;
    let before = at.checked_sub(1).map(|i| chunk[i].c);
    let after = chunk.get(at + 1).map(|seen| seen.c);
    let same = chunk[at..].iter().take_while(|seen| seen.c == c).count();
    let digits = is_digit(before) && is_digit(after);
    let letters = is_letter(before) && is_letter(after);
    let last = !chunk[at..].iter().any(|seen| seen.c.is_alphanumeric() || is_sign(seen.c));
    match c {
        // "../src", "C:\Users" and "!=" are parts of words.
        '.' if same == 2 && chunk.get(at + 2).is_some_and(|seen| seen.c == '/') => 0,
        ':' if after == Some('\\') => 0,
        '!' if after == Some('=') => 0,
        '.' if same >= 2 => same,
        '.' => usize::from(last || after == Some('–')),
        ',' | ':' => usize::from(!digits),
        '…' | ';' | '!' | '?' | '—' | '―' | '"' | '“' | '”' | '„' | '«' | '»' => same,
        '(' | ')' | '[' | ']' | '{' | '}' => 1,
        '、' | '，' | '。' | '；' | '：' | '！' | '？' | '।' | '॥' | '؟' | '،' | '؛' | '۔' => {
            1
        }
        '「' | '」' | '『' | '』' | '《' | '》' | '【' | '】' | '〈' | '〉' => 1,
        '‘' | '¿' | '¡' => 1,
        '\'' | '’' => usize::from(!letters && !is_clipped(chunk, at)),
        '-' if same >= 2 && !is_option(chunk, at, before) => same,
        '-' => usize::from(before.is_none() && after.is_none()),
        '–' => usize::from(!is_digit(before) || !is_number_start(after)),
        _ => 0,
    }
}

fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}

/// A range may continue with a currency: "$5–$10".
fn is_number_start(c: Option<char>) -> bool {
    is_digit(c) || c.is_some_and(|c| matches!(c, '$' | '€' | '£'))
}

fn is_letter(c: Option<char>) -> bool {
    c.is_some_and(char::is_alphanumeric)
}

/// Symbols that are read aloud, so a full stop before them is inside the word.
fn is_sign(c: char) -> bool {
    matches!(c, '%' | '$' | '€' | '£' | '°' | '/' | '@' | '#' | '+' | '&')
}

/// "--verbose", an option of a command.
fn is_option(chunk: &[Seen], at: usize, before: Option<char>) -> bool {
    before.is_none() && chunk.get(at + 2).is_some_and(|seen| seen.c.is_ascii_alphabetic())
}

/// "10 a.m.–5 p.m.", "Mon.–Fri.", "London–Paris": a dash between the two ends of a range.
fn joins_ends(chunk: &[Seen], at: usize) -> bool {
    let begins = |seen: &Seen| seen.c.is_uppercase() || seen.c.is_ascii_digit();
    let first = chunk.iter().find(|seen| seen.c.is_alphanumeric());
    let times = at.checked_sub(1).is_some_and(|i| matches!(chunk[i].c, '.' | 'm'));
    let after = chunk.get(at + 1);
    after.is_some_and(begins)
        && (first.is_some_and(begins)
            || (times && after.is_some_and(|seen| seen.c.is_ascii_digit())))
}

/// "'em", "'90s" at the beginning; "dogs'" at the end.
fn is_clipped(chunk: &[Seen], at: usize) -> bool {
    let word: String = chunk[at + 1..]
        .iter()
        .map(|seen| seen.c.to_ascii_lowercase())
        .take_while(|c| c.is_ascii_alphanumeric())
        .collect();
    let clipped = ["em", "cause", "tis", "twas", "til", "n", "bout", "round"];
    let decade = word.len() == 3 && word.ends_with("0s");
    let opens = at == 0 && (clipped.contains(&word.as_str()) || decade);
    let minutes = at > 0 && chunk[at - 1].c.is_ascii_digit() && word.is_empty();
    opens || minutes
}

/// The mark in the model's symbols, if it is heard.
fn mark(chunk: &[Seen], at: usize) -> Option<Item> {
    let c = chunk[at].c;
    let opens = !chunk[..at].iter().any(|seen| seen.c.is_alphanumeric());
    Some(match c {
        '.' if chunk.get(at + 1).is_some_and(|next| next.c == '.') => Item::Mark('…'),
        '.' | '。' | '।' | '॥' | '۔' => Item::Mark('.'),
        '…' => Item::Mark('…'),
        ',' | '、' | '，' | '،' => Item::Mark(','),
        ';' | '；' | '؛' => Item::Mark(';'),
        ':' | '：' => Item::Mark(':'),
        '!' | '！' => Item::Mark('!'),
        '?' | '？' | '؟' => Item::Mark('?'),
        '—' | '―' | '-' | '–' => Item::Mark('—'),
        '(' | '[' | '{' | '【' => Item::Open('('),
        ')' | ']' | '}' | '】' => Item::Mark(')'),
        '“' | '„' | '«' | '「' | '『' | '《' | '〈' => Item::Open('“'),
        '”' | '»' | '」' | '』' | '》' | '〉' => Item::Mark('”'),
        '"' if opens => Item::Open('“'),
        '"' => Item::Mark('”'),
        _ => return None,
    })
}
