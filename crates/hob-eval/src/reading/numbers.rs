//! Reads numbers as people write them: groups of digits, decimal comma, exponents, fractions, "3 million".
//! `1,234` is a group of digits; other commas within a number are decimal signs, except in a list such as `1,2,3`.

use super::statements::{AnswerText, first_sentence};

/// Characters after a number that may hold its unit.
const UNIT_CHARS_MAX: usize = 32;
/// Maximum characters of one number, without exponent. hob ignores longer rows of digits.
const DIGITS_MAX: usize = 400;
/// Characters after a number that hob reads for a word such as "million": one more than the longest such word has.
const SCALE_CHARS: usize = 11;

/// A number as it stands in a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatedNumber {
    pub(crate) value: f64,
    /// The sign of a currency before the number.
    pub(crate) currency: Option<char>,
    /// The text after the number, which may begin with its unit.
    pub(crate) after: String,
    /// The index of its first character.
    start: usize,
    in_parentheses: bool,
    /// The number counts the lines of a list, such as `3. ` at the start of a line.
    is_list_marker: bool,
}

/// The number that an answer states: that of its last statement, or else that of its last line with a number.
pub(crate) fn last_number(answer: &AnswerText) -> Option<StatedNumber> {
    for statement in answer.statements() {
        let found = stated(first_sentence(statement.line)).or_else(|| stated(statement.line));
        if found.is_some() {
            return found;
        }
    }
    answer.lines_from_end().find_map(|line| {
        let found = numbers(line);
        let rank = |number: &&StatedNumber| (!number.is_list_marker, !number.in_parentheses);
        // `max_by_key` takes the last of equals.
        found.iter().max_by_key(rank).cloned()
    })
}

/// The number that a text consists of, with or without a sign. None for a list, or for a text with words or units.
pub(crate) fn only_number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let found = numbers(unsigned);
    let [number] = found.as_slice() else { return None };
    let is_all = number.start == 0
        && number.after.is_empty()
        && unsigned.chars().all(|sign| sign.is_ascii_digit() || matches!(sign, ',' | '.'));
    is_all.then(|| if text.starts_with('-') { -number.value } else { number.value })
}

/// The first number of a statement, or the first after its last equals sign.
fn stated(line: &str) -> Option<StatedNumber> {
    let found = numbers(line);
    let mut depth = 0_usize;
    let mut equals = None;
    for (at, sign) in line.chars().enumerate() {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '=' | '≈' if depth == 0 => equals = Some(at),
            _ => {}
        }
    }
    let after = found.iter().find(|number| equals.is_some_and(|at| number.start > at));
    after.or(found.first()).cloned()
}

/// All numbers of a line.
fn numbers(line: &str) -> Vec<StatedNumber> {
    let chars: Vec<char> = line.chars().collect();
    let mut scan = Scan { chars: &chars, at: 0 };
    let mut found = Vec::new();
    let mut depth = 0_usize;
    while let Some(sign) = scan.peek(0) {
        match sign {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // A digit in a word is part of a name: `Q4`, `x2`.
        if sign.is_alphabetic() || sign == '_' {
            scan.skip_word();
            continue;
        }
        if !scan.at_number() {
            scan.at += 1;
            continue;
        }
        let start = scan.at;
        let (negative, currency) = sign_before(&chars[..start]);
        if let Some(value) = scan.number().filter(|value| value.is_finite()) {
            let marks = scan.at - start <= 3
                && matches!(scan.peek(0), Some('.' | ')'))
                && scan.peek(1) == Some(' ');
            found.push(StatedNumber {
                value: if negative { -value } else { value },
                currency,
                after: chars[scan.at..].iter().take(UNIT_CHARS_MAX).collect(),
                start,
                in_parentheses: depth > 0,
                is_list_marker: marks && chars[..start].iter().all(|before| *before == ' '),
            });
        }
    }
    found
}

/// Whether a minus stands before the number, and which currency does.
fn sign_before(before: &[char]) -> (bool, Option<char>) {
    let mut before = before.iter().rev().copied().peekable();
    let minus = |sign: &char| matches!(sign, '-' | '−' | '–');
    let mut negative = before.next_if(minus).is_some();
    let currency = before.next_if(|sign| matches!(sign, '$' | '€' | '£' | '¥'));
    if currency.is_some() && !negative {
        negative = before.next_if(minus).is_some();
    }
    // In `5-3` and `(a)-3` the sign is an operator.
    let operand = before.peek().is_some_and(|sign| sign.is_alphanumeric() || *sign == ')');
    (negative && !operand, currency)
}

struct Scan<'a> {
    chars: &'a [char],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn digit(&self, ahead: usize) -> bool {
        self.peek(ahead).is_some_and(|sign| sign.is_ascii_digit())
    }

    fn skip_word(&mut self) {
        while self.peek(0).is_some_and(|sign| sign.is_alphanumeric() || sign == '_') {
            self.at += 1;
        }
    }

    fn at_number(&self) -> bool {
        let point = self.peek(0) == Some('.') && self.digit(1);
        self.digit(0) || point || self.peek(0).and_then(vulgar).is_some()
    }

    /// Reads one number, and moves past it. It always moves by at least one character.
    fn number(&mut self) -> Option<f64> {
        if let Some(value) = self.peek(0).and_then(vulgar) {
            self.at += 1;
            return Some(value);
        }
        let start = self.at;
        let whole = self.run();
        let (text, is_integer) = self.grouped(whole);
        if self.peek(0) == Some('.') && self.digit(1) {
            // A version or a date: `1.2.3`.
            while self.digit(0) || (self.peek(0) == Some('.') && self.digit(1)) {
                self.at += 1;
            }
            return None;
        }
        if self.at - start > DIGITS_MAX {
            return None;
        }
        let mut value: f64 = text.parse().ok()?;
        if is_integer {
            value = self.fraction(value)?;
        }
        Some(value * self.exponent() * self.scale())
    }

    /// A run of digits.
    fn run(&mut self) -> String {
        let mut digits = String::new();
        while let Some(sign) = self.peek(0).filter(char::is_ascii_digit) {
            digits.push(sign);
            self.at += 1;
        }
        digits
    }

    /// Reads groups of three digits and the decimals. Returns the digits, and whether there are no decimals.
    fn grouped(&mut self, mut text: String) -> (String, bool) {
        let sign = self.peek(0).unwrap_or('\n');
        let groups =
            matches!(sign, ',' | '.' | ' ' | '\'' | '’' | '\u{a0}' | '\u{2009}' | '\u{202f}')
                && (1..=3).contains(&text.len())
                && text != "0";
        let mut count = 0;
        while groups && self.group(sign, count) {
            self.at += 1;
            text.push_str(&self.run());
            count += 1;
        }
        let decimal = match self.peek(0) {
            Some('.') => self.digit(1) && !(count > 0 && sign == '.'),
            Some(',') if count > 0 => self.digit(1) && sign != ',',
            Some(',') => self.decimal_comma(),
            _ => false,
        };
        if decimal {
            self.at += 1;
            text.push('.');
            text.push_str(&self.run());
        }
        (text, !decimal)
    }

    /// Whether a separator and exactly three digits follow. `count` groups came before.
    fn group(&self, sign: char, count: usize) -> bool {
        let three = |from: usize| {
            self.peek(from) == Some(sign)
                && (1..=3).all(|digit| self.digit(from + digit))
                && !self.digit(from + 4)
        };
        // After a full stop, one group is decimals: `1.234`. The full stop groups digits if another group or a decimal
        // comma follows.
        let grouping =
            sign != '.' || count > 0 || three(4) || (self.peek(4) == Some(',') && self.digit(5));
        three(0) && grouping
    }

    /// `3,5` and `0,125` have a decimal comma. `1,2,3` is a list.
    fn decimal_comma(&self) -> bool {
        let digits = (1..DIGITS_MAX).take_while(|ahead| self.digit(*ahead)).count();
        let list = self.peek(1 + digits) == Some(',') && self.digit(2 + digits);
        let listed = self.at >= 2
            && self.chars[..self.at].iter().rev().find(|s| !s.is_ascii_digit()) == Some(&',');
        digits > 0 && !list && !listed
    }

    /// Reads the rest of `3/4`, `1 3/4` or `2½`, after the integer `whole`. A date such as `3/4/2024` is not a number.
    fn fraction(&mut self, whole: f64) -> Option<f64> {
        if let Some(part) = self.peek(0).and_then(vulgar) {
            self.at += 1;
            return Some(whole + part);
        }
        if self.peek(0) == Some('/') && self.digit(1) {
            return self.over(whole);
        }
        if self.peek(0) != Some(' ') || !self.digit(1) {
            return Some(whole);
        }
        let mut ahead = Scan { chars: self.chars, at: self.at + 1 };
        let numerator = ahead.run().parse().unwrap_or(f64::INFINITY);
        let proper = (ahead.peek(0) == Some('/') && ahead.digit(1)).then(|| ahead.over(numerator));
        match proper.flatten() {
            Some(part) if part < 1.0 => {
                self.at = ahead.at;
                Some(whole + part)
            }
            _ => Some(whole),
        }
    }

    /// Reads `/4` after a numerator.
    fn over(&mut self, numerator: f64) -> Option<f64> {
        self.at += 1;
        let denominator: f64 = self.run().parse().ok()?;
        if self.peek(0) == Some('/') && self.digit(1) {
            while self.digit(0) || (self.peek(0) == Some('/') && self.digit(1)) {
                self.at += 1;
            }
            return None;
        }
        Some(numerator / denominator)
    }

    /// Reads `e5`, `×10^5` or `× 10⁵` as a factor. It is 1 where there is no exponent.
    fn exponent(&mut self) -> f64 {
        let mut ahead = Scan { chars: self.chars, at: self.at };
        if matches!(ahead.peek(0), Some('e' | 'E')) {
            ahead.at += 1;
        } else {
            ahead.spaces();
            if !matches!(ahead.peek(0), Some('×' | 'x' | '*' | '·')) {
                return 1.0;
            }
            ahead.at += 1;
            ahead.spaces();
            if (ahead.peek(0), ahead.peek(1)) != (Some('1'), Some('0')) {
                return 1.0;
            }
            ahead.at += 2;
            if ahead.peek(0) == Some('^') {
                ahead.at += 1;
            } else if ahead.peek(0).and_then(superscript).is_none() {
                return 1.0;
            }
        }
        let closing = matches!(ahead.peek(0), Some('{' | '('));
        ahead.at += usize::from(closing);
        let Some(power) = ahead.power() else { return 1.0 };
        ahead.at += usize::from(closing);
        self.at = ahead.at.min(self.chars.len());
        10_f64.powi(power)
    }

    fn power(&mut self) -> Option<i32> {
        let mut text = String::new();
        if let Some(sign) = self.peek(0).filter(|sign| matches!(sign, '-' | '−' | '+' | '⁻')) {
            text.push_str(if sign == '+' { "" } else { "-" });
            self.at += 1;
        }
        while text.len() < 5
            && let Some(digit) =
                self.peek(0).and_then(|sign| sign.to_digit(10).or(superscript(sign)))
        {
            text.push_str(&digit.to_string());
            self.at += 1;
        }
        let glued = self.peek(0).is_some_and(char::is_alphanumeric);
        text.parse().ok().filter(|_| !glued)
    }

    fn spaces(&mut self) {
        while matches!(self.peek(0), Some(' ' | '\u{2009}' | '\u{a0}')) {
            self.at += 1;
        }
    }

    /// Reads `million` or `millions` as a factor. It is 1 where there is no such word.
    fn scale(&mut self) -> f64 {
        let mut ahead = Scan { chars: self.chars, at: self.at };
        ahead.spaces();
        let start = ahead.at;
        // Looks at few characters: in `1½1½1½…` every number would read the rest of the text.
        ahead.chars = &self.chars[..self.chars.len().min(start + SCALE_CHARS)];
        ahead.skip_word();
        let word = self.chars[start..ahead.at].iter().collect::<String>().to_lowercase();
        let factor = match word.strip_suffix('s').unwrap_or(&word) {
            "thousand" | "tausend" | "tusen" | "tusind" => 1e3,
            "million" | "millionen" | "millioner" | "miljon" | "miljoner" => 1e6,
            "billion" | "milliard" | "milliarde" | "milliarden" | "milliarder" => 1e9,
            "miljard" | "miljarder" => 1e9,
            // "Billion" alone may be English or German, and counts as English.
            "trillion" | "billionen" | "billioner" | "biljon" | "biljoner" => 1e12,
            _ => return 1.0,
        };
        self.at = ahead.at;
        factor
    }
}

fn vulgar(sign: char) -> Option<f64> {
    Some(match sign {
        '½' => 0.5,
        '¼' => 0.25,
        '¾' => 0.75,
        '⅓' => 1.0 / 3.0,
        '⅔' => 2.0 / 3.0,
        '⅛' => 0.125,
        _ => return None,
    })
}

fn superscript(sign: char) -> Option<u32> {
    "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|digit| digit == sign).map(|digit| digit as u32)
}
