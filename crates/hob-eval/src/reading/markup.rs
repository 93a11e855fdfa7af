//! Strips Markdown and LaTeX from an answer and keeps what a reader sees.
//! One pass over the characters, without recursion: nested braces are a stack.

use std::iter::Peekable;
use std::ops::Range;
use std::str::Chars;

/// An answer without markup.
#[derive(Debug, Default)]
pub(super) struct Plain {
    pub(super) text: String,
    /// The inside of each `\boxed{}`, as ranges of `text`, by their ends.
    pub(super) boxed: Vec<Range<usize>>,
}

/// What a closing brace means.
enum Brace {
    Shown,
    Dropped,
    /// The brace ends the numerator of `\frac{}{}`.
    Numerator,
    Boxed(usize),
}

pub(super) fn plain(raw: &str) -> Plain {
    let mut page = Page::default();
    let mut fenced = false;
    let mut lines = raw.lines().peekable();
    while let Some(line) = lines.next() {
        let bare = line.trim_start();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            page.plain.text.push_str(line);
        } else if is_ruler(bare) {
            continue;
        } else if bare.starts_with('|') {
            // A row of two cells reads like `Answer: 42`. A header names columns and states nothing.
            let header = lines.peek().is_some_and(|next| is_ruler(next.trim_start()));
            page.row(bare, if header { ", " } else { ": " });
        } else {
            page.line(without_prefix(bare));
        }
        page.plain.text.push('\n');
    }
    page.plain
}

/// The line below a table's header, or a horizontal rule.
fn is_ruler(line: &str) -> bool {
    line.len() >= 3
        && line.contains("--")
        && line.chars().all(|sign| matches!(sign, '|' | '-' | ':' | ' ' | '+'))
}

/// Drops the signs of headings, quotes and bullets.
fn without_prefix(line: &str) -> &str {
    let mut rest = line;
    loop {
        let after = rest.trim_start_matches(['#', '>']);
        let bullet = ["- ", "* ", "+ ", "• "].iter().find_map(|sign| after.strip_prefix(sign));
        let after = bullet.unwrap_or(after).trim_start();
        if after.len() == rest.len() {
            return rest;
        }
        rest = after;
    }
}

#[derive(Default)]
struct Page {
    plain: Plain,
    braces: Vec<Brace>,
}

impl Page {
    fn row(&mut self, line: &str, between: &str) {
        for (at, cell) in line.trim().trim_matches('|').split('|').enumerate() {
            if at > 0 {
                self.plain.text.push_str(between);
            }
            self.line(cell.trim());
        }
    }

    fn line(&mut self, line: &str) {
        let dollars = currency(line);
        let mut dollars = dollars.iter();
        let mut before = ' ';
        let mut chars = line.chars().peekable();
        while let Some(sign) = chars.next() {
            match sign {
                '\\' => self.command(&mut chars),
                '$' => {
                    if dollars.next() == Some(&true) {
                        self.plain.text.push('$');
                    }
                }
                '`' => {}
                '*' | '_' => self.emphasis(sign, before, &mut chars),
                '{' => self.open(&mut chars),
                '}' => self.close(&mut chars),
                '~' if chars.peek() == Some(&'~') => {
                    chars.next();
                }
                shown => self.plain.text.push(shown),
            }
            before = sign;
        }
    }

    /// Keeps a star or an underscore that is part of a product or of a name.
    fn emphasis(&mut self, sign: char, before: char, chars: &mut Peekable<Chars<'_>>) {
        let after = chars.peek().copied().unwrap_or(' ');
        let inside = before.is_alphanumeric() && after.is_alphanumeric();
        let product = sign == '*' && before == ' ' && after == ' ';
        // A line of stars separates two answers. It is not emphasis.
        if inside || product {
            self.plain.text.push(sign);
        }
    }

    fn open(&mut self, chars: &mut Peekable<Chars<'_>>) {
        // LaTeX writes `1{,}234` so that no space follows the comma.
        if chars.peek() == Some(&',') {
            self.braces.push(Brace::Dropped);
        } else {
            self.plain.text.push('{');
            self.braces.push(Brace::Shown);
        }
    }

    fn close(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match self.braces.pop() {
            None | Some(Brace::Shown) => self.plain.text.push('}'),
            Some(Brace::Dropped) => {}
            Some(Brace::Numerator) => {
                self.plain.text.push('/');
                if chars.next_if_eq(&'{').is_some() {
                    self.braces.push(Brace::Dropped);
                }
            }
            Some(Brace::Boxed(start)) => self.plain.boxed.push(start..self.plain.text.len()),
        }
    }

    /// Reads what follows a backslash.
    fn command(&mut self, chars: &mut Peekable<Chars<'_>>) {
        let mut name = String::new();
        while let Some(letter) = chars.next_if(char::is_ascii_alphabetic) {
            name.push(letter);
        }
        let text = &mut self.plain.text;
        match name.as_str() {
            "" => match chars.next() {
                Some('(' | ')' | '[' | ']' | '!') | None => {}
                // A thin space groups digits: `1\,234`.
                Some(',' | ';' | ':' | ' ') => text.push('\u{2009}'),
                Some(escaped) => text.push(escaped),
            },
            "times" | "cdot" => text.push('×'),
            "approx" => text.push('≈'),
            "circ" => {
                if text.ends_with('^') {
                    text.pop();
                }
                text.push('°');
            }
            "left" | "right" | "displaystyle" | "quad" | "qquad" => text.push(' '),
            "boxed" | "fbox" if chars.next_if_eq(&'{').is_some() => {
                let start = text.len();
                self.braces.push(Brace::Boxed(start));
            }
            "frac" | "dfrac" | "tfrac" if chars.next_if_eq(&'{').is_some() => {
                if text.ends_with(|last: char| last.is_ascii_digit()) {
                    text.push(' ');
                }
                self.braces.push(Brace::Numerator);
            }
            "text" | "textbf" | "textit" | "mathrm" | "mathbf" | "mbox" | "operatorname"
                if chars.next_if_eq(&'{').is_some() =>
            {
                self.braces.push(Brace::Dropped);
            }
            unknown => {
                text.push('\\');
                text.push_str(unknown);
            }
        }
    }
}

/// For each unescaped dollar sign of a line: is it money? Two signs around a formula are not.
/// Pandoc's rule: no space inside the pair, and no digit after it.
fn currency(line: &str) -> Vec<bool> {
    let bytes = line.as_bytes();
    let signs: Vec<usize> = (0..bytes.len())
        .filter(|&at| bytes[at] == b'$' && (at == 0 || bytes[at - 1] != b'\\'))
        .collect();
    let mut money = vec![true; signs.len()];
    let mut at = 0;
    while at + 1 < signs.len() {
        let (open, close) = (signs[at], signs[at + 1]);
        let space = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
        let digit = bytes.get(close + 1).is_some_and(u8::is_ascii_digit);
        let display = close == open + 1;
        if display || (!space(bytes.get(open + 1)) && !space(bytes.get(close - 1)) && !digit) {
            money[at] = false;
            money[at + 1] = false;
            at += 2;
        } else {
            at += 1;
        }
    }
    money
}
