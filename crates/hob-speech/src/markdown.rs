//! Selects what is read aloud: removes Markdown marks, tags, link targets, emoji and control characters.
//! Works character by character, and every remaining character knows its bytes in the user's text.

use std::ops::Range;

use unicode_normalization::char::{compose, is_combining_mark};

use crate::alphabet::is_heard;
use crate::scripts::is_vowel_sign;

/// One character to be read, and its byte range in the user's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) c: char,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The visible characters of a segment, and the words for which the user wrote the phonemes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Visible {
    pub(crate) chars: Vec<Seen>,
    /// `[word](/phonemes/)`: the word's bytes in the user's text, and the phonemes.
    pub(crate) pronounced: Vec<(Range<usize>, String)>,
}

/// How far to search for the end of a link or a tag, in bytes.
const CONSTRUCT_BYTES_MAX: usize = 512;

/// Removes the marks from `text`, which begins at byte `offset` of the user's text.
pub(crate) fn visible(text: &str, offset: usize) -> Visible {
    let mut stripper = Stripper { text, offset, at: 0, out: Visible::default() };
    while stripper.at < text.len() {
        if stripper.at == 0 || text[..stripper.at].ends_with('\n') {
            stripper.line_start();
        }
        stripper.step();
    }
    stripper.out
}

struct Stripper<'a> {
    text: &'a str,
    offset: usize,
    at: usize,
    out: Visible,
}

impl<'a> Stripper<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Removes characters that are marks only at the beginning of a line.
    fn line_start(&mut self) {
        let line = self.rest().split('\n').next().unwrap_or("");
        if is_rule(line) {
            self.at += line.len();
            return;
        }
        loop {
            let rest = self.rest();
            let mark = quote_mark(rest)
                .or_else(|| heading_mark(rest))
                .or_else(|| bullet(rest))
                .or_else(|| task_box(rest));
            match mark {
                Some(length) => self.at += length,
                None => return,
            }
        }
    }

    fn step(&mut self) {
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return };
        match c {
            '[' | '!' if self.link() => {}
            '<' if self.tag() => {}
            '&' if self.entity() => {}
            '\\' if rest[1..].starts_with(|c: char| c.is_ascii_punctuation()) => {
                self.at += 1;
                self.keep();
            }
            '`' => self.hide(1),
            '~' if rest.starts_with("~~") => self.hide(2),
            '*' if !self.is_operator() => self.hide(1),
            '_' if !self.is_inside_word() => self.hide(1),
            '|' => self.put(',', 1),
            _ => self.keep(),
        }
    }

    fn hide(&mut self, length: usize) {
        self.at += length;
    }

    fn put(&mut self, c: char, length: usize) {
        let start = self.offset + self.at;
        self.out.chars.push(Seen { c, start, end: start + length });
        self.at += length;
    }

    /// Keeps the character if it can be heard; a combining mark joins its letter.
    fn keep(&mut self) {
        let Some(c) = self.rest().chars().next() else { return };
        let length = c.len_utf8();
        if is_zero_width(c) {
            return self.hide(length);
        }
        if is_combining_mark(c) {
            return self.combine(c);
        }
        self.put(readable_char(c), length);
    }

    fn combine(&mut self, mark: char) {
        let length = mark.len_utf8();
        let end = self.offset + self.at + length;
        match self.out.chars.last_mut() {
            Some(last) if last.c.is_alphanumeric() || is_vowel_sign(last.c) => {
                if let Some(whole) = compose(last.c, mark) {
                    last.c = whole;
                    last.end = end;
                    self.at += length;
                } else if mark.is_alphabetic() || is_vowel_sign(mark) {
                    // A sign of an Indian or Thai script is part of its word: a vowel, or the mark of none.
                    self.put(mark, length);
                } else {
                    last.end = end;
                    self.at += length;
                }
            }
            _ => self.hide(length),
        }
    }

    /// `[text](target)` and `![text](target)`: keeps the text and drops the target.
    fn link(&mut self) -> bool {
        let rest = self.rest();
        let image = usize::from(rest.starts_with('!'));
        let Some(link) = link_at(&rest[image..]) else { return false };
        let start = self.at + image;
        self.link_text(start + link.text.start..start + link.text.end, link.target);
        self.at = start + link.bytes;
        true
    }

    fn link_text(&mut self, range: Range<usize>, target: &str) {
        let inner = visible(&self.text[range.clone()], self.offset + range.start);
        let is_heard = |seen: &&Seen| seen.c != ' ';
        let ends = (inner.chars.iter().find(is_heard), inner.chars.iter().rfind(is_heard));
        if let (Some(first), Some(last)) = ends
            && let Some(phonemes) = phonemes_in(target)
        {
            // The first byte must be that of a character: readers find the word by it.
            self.out.pronounced.push((first.start..last.end, phonemes.to_owned()));
        }
        self.out.chars.extend(inner.chars);
        self.out.pronounced.extend(inner.pronounced);
    }

    /// A tag becomes a pause between words; an address in angle brackets is read.
    fn tag(&mut self) -> bool {
        let rest = self.rest();
        let opens = rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c));
        let Some(length) = within(&rest[1..], '>').filter(|_| opens) else { return false };
        let inner = &rest[1..=length];
        if inner.contains("://") || (inner.contains('@') && !inner.contains(' ')) {
            self.at += 1;
            for _ in inner.chars() {
                self.keep();
            }
            self.at += 1;
        } else {
            self.put(' ', length + 2);
        }
        true
    }

    fn entity(&mut self) -> bool {
        const ENTITIES: [(&str, char); 9] = [
            ("&amp;", '&'),
            ("&lt;", '<'),
            ("&gt;", '>'),
            ("&quot;", '"'),
            ("&apos;", '\''),
            ("&#39;", '\''),
            ("&nbsp;", ' '),
            ("&mdash;", '—'),
            ("&hellip;", '…'),
        ];
        let rest = self.rest();
        match ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity)) {
            Some((entity, c)) => {
                self.put(*c, entity.len());
                true
            }
            None => false,
        }
    }

    /// "2 * 3" and "2*3" are read; "*this*" is emphasis.
    fn is_operator(&self) -> bool {
        let (before, after) = self.neighbours();
        let digits =
            before.is_some_and(|c| c.is_ascii_digit()) && after.is_some_and(|c| c.is_ascii_digit());
        let blanks = before == Some(' ') && after == Some(' ');
        digits || blanks || (before == Some(' ') && self.is_star_code())
    }

    /// "*67" is a service of a telephone, where no second star ends an emphasis.
    fn is_star_code(&self) -> bool {
        let line = self.rest()[1..].lines().next().unwrap_or_default();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        (2..=3).contains(&digits) && !line.contains('*')
    }

    fn is_inside_word(&self) -> bool {
        let (before, after) = self.neighbours();
        before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
    }

    fn neighbours(&self) -> (Option<char>, Option<char>) {
        (self.text[..self.at].chars().next_back(), self.rest().chars().nth(1))
    }
}

/// `[text](target)`.
struct Link<'a> {
    /// The bytes of the text, counted from the bracket.
    text: Range<usize>,
    target: &'a str,
    bytes: usize,
}

/// The link at the beginning of `rest`. If there are two opening brackets, the inner one begins it.
fn link_at(rest: &str) -> Option<Link<'_>> {
    let text = rest.strip_prefix('[')?;
    let length = within(text, ']').filter(|length| *length > 0)?;
    let is_escaped = |at: usize| text[..at].ends_with('\\');
    if text[..length].match_indices('[').any(|(at, _)| !is_escaped(at)) {
        return None;
    }
    let target = text[length + 1..].strip_prefix('(')?;
    let target = &target[..within(target, ')')?];
    Some(Link { text: 1..1 + length, target, bytes: 1 + length + 2 + target.len() + 1 })
}

/// The bytes of `[word](/phonemes/)` at the beginning of `rest`: of the word, and of everything.
pub(crate) fn pronunciation_mark(rest: &str) -> Option<(Range<usize>, usize)> {
    let link = link_at(rest)?;
    phonemes_in(link.target).map(|_| (link.text, link.bytes))
}

/// The phonemes that stand where a link has its target.
fn phonemes_in(target: &str) -> Option<&str> {
    target.strip_prefix('/').and_then(|t| t.strip_suffix('/')).filter(|p| is_heard(p))
}

/// Number of bytes before the next `end`, on this line or a wrapped one, within the limit.
fn within(text: &str, end: char) -> Option<usize> {
    let mut near = text.char_indices().take_while(|(at, _)| *at <= CONSTRUCT_BYTES_MAX);
    near.find(|(_, c)| *c == end).map(|(at, _)| at)
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3
        && line.chars().all(|c| matches!(c, '-' | '=' | '*' | '_' | '|' | ':' | ' ' | '+'))
        && (line.contains("--")
            || line.contains("==")
            || line.contains("**")
            || line.contains("__")
            || line.contains("- -")
            || line.contains("* *"))
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t', '\r']).len()
}

fn quote_mark(rest: &str) -> Option<usize> {
    let at = blanks(rest);
    rest[at..].starts_with('>').then_some(at + 1)
}

fn heading_mark(rest: &str) -> Option<usize> {
    let at = blanks(rest);
    let text = rest[at..].trim_start_matches('#');
    let marks = rest.len() - at - text.len();
    ((1..=6).contains(&marks) && text.starts_with(char::is_whitespace)).then_some(at + marks)
}

fn bullet(rest: &str) -> Option<usize> {
    let at = blanks(rest);
    let mark = rest[at..].chars().next()?;
    let behind = &rest[at + mark.len_utf8()..];
    let plain = matches!(mark, '-' | '*' | '+' | '–') && behind.starts_with([' ', '\t']);
    let dot = matches!(mark, '•' | '◦' | '▪' | '‣' | '·');
    (plain || dot).then_some(at + mark.len_utf8())
}

fn task_box(rest: &str) -> Option<usize> {
    let at = blanks(rest);
    ["[ ] ", "[x] ", "[X] "].iter().any(|mark| rest[at..].starts_with(mark)).then_some(at + 4)
}

/// Joiners, soft hyphens, direction marks and variation selectors: they have no sound and do not separate words.
fn is_zero_width(c: char) -> bool {
    matches!(c as u32,
        0xad | 0x61c | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfe00..=0xfe0f
        | 0xe0000..=0xe0fff)
}

/// The character as it is read: full-width forms and subscript digits become plain ones; images and control characters
/// become a gap between words.
fn readable_char(c: char) -> char {
    match c as u32 {
        0xff01..=0xff5e => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        0x2080..=0x2089 => char::from_u32(c as u32 - 0x2080 + 0x30).unwrap_or(c),
        0x00..=0x1f | 0x7f..=0x9f => ' ',
        // The flat, natural and sharp of music are read.
        0x266d..=0x266f => c,
        // The first one is the sign for information, which is a letter by its class.
        0x2139 | 0x2300..=0x23ff | 0x2500..=0x25ff | 0x2600..=0x27bf | 0x2b00..=0x2bff => ' ',
        0xe000..=0xf8ff | 0xfff0..=0xffff | 0x1f000..=0x1faff => ' ',
        _ if c.is_whitespace() => ' ',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let seen: String = visible(text, 0).chars.iter().map(|seen| seen.c).collect();
        let words: Vec<&str> = seen.split_whitespace().collect();
        assert_eq!(words.join(" "), expect, "{text}");
    }

    #[test]
    fn signs_of_an_indian_script_stay_in_their_word() {
        check("नमस्ते, **ज\u{93c}रूर**", "नमस्ते, ज\u{93c}रूर");
    }

    #[test]
    fn marks_go_and_words_stay() {
        check("# Title", "Title");
        check(
            "**bold** and *it* and _this_ and ~~gone~~ `code`",
            "bold and it and this and gone code",
        );
        check("- item\n* other\n> quoted\n- [x] done", "item other quoted done");
        check("2 * 3 and 4*5", "2 * 3 and 4*5");
        check("snake_case stays", "snake_case stays");
        check("---\nText\n===", "Text");
        check("| a | b |\n|---|:-:|\n| c | d |", ", a , b , , c , d ,");
        check(r"1\. not a list \*", "1. not a list *");
    }

    #[test]
    fn links_tags_and_entities() {
        check("See [the page](https://x.org/a_b) now", "See the page now");
        check("![a cat](cat.png) here", "a cat here");
        check("[not a link] (here)", "[not a link] (here)");
        check("[see [the page](https://x.org)]", "[see the page]");
        check(r"[a \[ b](https://x.org)", "a [ b");
        check("<speak>Hi <break time=\"1s\"/> you</speak>", "Hi you");
        check("a < b and c > d", "a < b and c > d");
        check("<https://x.org>", "https://x.org");
        check("AT&amp;T &lt; 3", "AT&T < 3");
    }

    #[test]
    fn pictures_and_invisible_characters() {
        check("👍🏽 yes ❤️ \u{2139}\u{fe0f}", "yes");
        check("wo\u{200b}rd so\u{ad}ft", "word soft");
        check("\u{202b}one\u{202c} \u{2067}two\u{2069} \u{61c}three\u{200f}", "one two three");
        check("\u{0}a\u{7}b", "a b");
        check("cafe\u{301} \u{301} x", "café x");
        check("Ｆｕｌｌ　１２", "Full 12");
        check("CO₂", "CO2");
    }

    #[test]
    fn every_character_knows_its_bytes() {
        let seen = visible("**é**", 10);
        assert_eq!(seen.chars, [Seen { c: 'é', start: 12, end: 14 }]);
        let seen = visible("e\u{301}", 0);
        assert_eq!(seen.chars, [Seen { c: 'é', start: 0, end: 3 }]);
    }

    #[test]
    fn sounds_that_the_user_wrote() {
        let seen = visible("a [word](/wˈɜɹd/) b", 0);
        assert_eq!(seen.pronounced, [(3..7, "wˈɜɹd".to_owned())]);
        let seen = visible("a [**word** ](/wˈɜɹd/) b", 0);
        assert_eq!(seen.pronounced, [(5..9, "wˈɜɹd".to_owned())]);
        let seen = visible("[a [word](/wˈɜɹd/)]", 0);
        assert_eq!(seen.pronounced, [(4..8, "wˈɜɹd".to_owned())]);
    }
}
