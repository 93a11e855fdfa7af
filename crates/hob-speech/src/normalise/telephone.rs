//! Telephone numbers and codes: "+44 20 7946 0958", "(555) 123-4567", "ISBN 978-0-…", "PIN 4821".
//! Their digits are read one by one, with a short pause between the groups.

use super::View;
use super::cardinal::by_digit;
use super::item::{Item, Word};
use super::number::is_plural;
use super::numeral::is_digits;
use super::unit::{stands_apart, unit_name};
use crate::reading::Reading;

/// Maximum number of groups in one telephone number.
const GROUPS_MAX: usize = 7;

/// Words before a number that a person calls.
const CALLED: &[&str] = &["call", "dial", "fax", "phone", "ring", "tel", "telephone", "text"];

/// Words before a code.
const CODES: &[&str] = &["account", "code", "otp", "passcode", "password", "pin"];

/// Words before an extension, the number of a telephone within a company.
const EXTENSIONS: &[&str] = &["ext", "extension"];

/// Services with a number of three digits, such as emergency calls.
const SERVICES: &[&str] =
    &["000", "101", "111", "112", "211", "311", "411", "511", "611", "811", "911", "988", "999"];

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    if let Some(used) = star(view, out) {
        return Some(used);
    }
    let first = view.word().filter(|_| !is_measured(view))?;
    let (words, used) = international(view, first)
        .or_else(|| national(view, first))
        .or_else(|| is_alone(view, first).then(|| (vec![first], 1)))?;
    say(&words, out);
    Some(used)
}

/// "*67", a service of a telephone.
fn star(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let digits = word.text.strip_prefix('*')?;
    if !is_digits(digits, 2..=3) {
        return None;
    }
    out.say(word.span(), &format!("star {}", by_digit(digits)));
    Some(1)
}

fn is_alone(view: View<'_>, first: &Word) -> bool {
    is_area_code(view) || is_grouped(&first.text) || is_called(view) || is_code(view)
}

/// "100-2000 km" is a range.
fn is_measured(view: View<'_>) -> bool {
    let is_unit = |next: &str| stands_apart(next) && unit_name(next, false, false).is_some();
    view.text_ahead(1).is_some_and(is_unit)
}

fn say(words: &[&Word], out: &mut Reading) {
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            out.mark(',');
        }
        let plus = if word.text.starts_with('+') { "plus " } else { "" };
        let groups: Vec<String> = word.text.split(['-', '.']).map(by_digit).collect();
        out.say(word.span(), &format!("{plus}{}", groups.join(", ")));
    }
}

/// "+44 20 7946 0958", "+44 (0)20 7946 0321", "+1-202-555-0175": the words, and how many items they take.
fn international<'a>(view: View<'a>, first: &'a Word) -> Option<(Vec<&'a Word>, usize)> {
    first.text.strip_prefix('+').filter(|code| is_group(code))?;
    let mut words = vec![first];
    let mut used = 1;
    let is_open = matches!(view.items.get(view.at + 1), Some(Item::Open('(')));
    let is_closed = view.mark_ahead(3) == Some(')');
    if let Some(zero) = view.ahead(2).filter(|zero| is_open && is_closed && zero.text == "0") {
        words.push(zero);
        used = 4;
    }
    while words.len() < GROUPS_MAX {
        let Some(word) = view.ahead(used).filter(|word| is_group(&word.text)) else { break };
        words.push(word);
        used += 1;
    }
    let count: usize = words.iter().map(|word| digits(&word.text)).sum();
    (count >= 7).then_some((words, used))
}

fn is_group(text: &str) -> bool {
    (1..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

fn digits(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_digit).count()
}

/// "020 7946 0958", "(0161) 496 0742", "415 555 0110", "555 0142".
fn national<'a>(view: View<'a>, first: &'a Word) -> Option<(Vec<&'a Word>, usize)> {
    let is_short = |word: &&Word| is_digits(&word.text, 1..=6);
    let mut words = vec![Some(first).filter(is_short)?];
    let mut used = 1 + usize::from(view.mark_ahead(1) == Some(')'));
    while words.len() < 3 {
        let Some(word) = view.ahead(used).filter(is_short) else { break };
        words.push(word);
        used += 1;
    }
    let lengths: Vec<usize> = words.iter().map(|word| word.text.len()).collect();
    let count: usize = lengths.iter().sum();
    let is_national = first.text.starts_with('0')
        && (3..=5).contains(&lengths[0])
        && words.len() > 1
        && (10..=11).contains(&count);
    let last_is_zero = words.last().is_some_and(|word| word.text.starts_with('0'));
    let is_local = (lengths == [3, 3, 4] && !are_values(view, &words, used))
        || (lengths == [3, 4] && last_is_zero);
    (is_national || is_local).then_some((words, used))
}

/// "the values 220 340 5600", "415 555 1234 780": three numbers. No area code or exchange begins with 0 or 1.
fn are_values(view: View<'_>, words: &[&Word], used: usize) -> bool {
    let is_counted = view.before().is_some_and(|before| is_plural(&before.text));
    let goes_on = view.text_ahead(used).is_some_and(|next| is_digits(next, 1..));
    is_counted || goes_on || words[..2].iter().any(|word| word.text.starts_with(['0', '1']))
}

/// The 555 of "(555) 123-4567" and of "a 555 area code".
fn is_area_code(view: View<'_>) -> bool {
    let is_called = view.text_ahead(1) == Some("area") && view.text_ahead(2) == Some("code");
    let is_before = view.mark_ahead(1) == Some(')') && view.text_ahead(2).is_some_and(is_grouped);
    view.text_ahead(0).is_some_and(|text| is_digits(text, 3..=3)) && (is_called || is_before)
}

/// "555-0199", "1-800-555-0199", "202.555.0143", "028-9649-6123", and the five groups of an ISBN.
fn is_grouped(text: &str) -> bool {
    let separator = if text.contains('.') { '.' } else { '-' };
    let groups: Vec<&str> = text.split(separator).collect();
    let are_digits = groups.iter().all(|group| is_digits(group, 1..));
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let known = match lengths[..] {
        [3, 3, 4] => true,
        [3, 4] | [1, 3, 3, 4] => separator == '-',
        [3..=5, _, _] => text.starts_with('0') && (10..=11).contains(&digits(text)),
        _ => separator == '-' && (4..=GROUPS_MAX).contains(&groups.len()) && digits(text) >= 8,
    };
    are_digits && known
}

/// "Call 911", "Phone: 01632960983", "text 741741".
fn is_called(view: View<'_>) -> bool {
    let Some(text) = view.text_ahead(0) else { return false };
    let is_dialled = text.len() == 3 && follows(view, &["dial"]);
    let is_number = is_dialled || SERVICES.contains(&text) || (5..=15).contains(&text.len());
    let is_called = follows(view, CALLED) || (text.len() > 4 && is_texted(view));
    is_number && is_digits(text, 1..) && is_called && !counts(view)
}

/// "Text STOP to 27753".
fn is_texted(view: View<'_>) -> bool {
    match &view.items[..view.at] {
        [.., Item::Word(verb), Item::Word(_), Item::Word(to)] => {
            verb.text.eq_ignore_ascii_case("text") && to.text == "to"
        }
        _ => false,
    }
}

/// "PIN 4821", "your code is 482913".
fn is_code(view: View<'_>) -> bool {
    let Some(text) = view.text_ahead(0) else { return false };
    let is_code = (4..=12).contains(&text.len()) && (follows(view, CODES) || is_end(view));
    let is_extension = (3..=6).contains(&text.len()) && follows(view, EXTENSIONS);
    (is_code || is_extension) && is_digits(text, 1..) && !counts(view)
}

/// "ends in 4471", "ending in 0029".
fn is_end(view: View<'_>) -> bool {
    match &view.items[..view.at] {
        [.., Item::Word(ends), Item::Word(inside)] => {
            matches!(&*ends.text, "ends" | "ending" | "ended") && inside.text == "in"
        }
        _ => false,
    }
}

/// Whether one of `words` precedes, with nothing but a colon, a full stop or "is" between.
fn follows(view: View<'_>, words: &[&str]) -> bool {
    let listed =
        |item: &Item| item.word().is_some_and(|word| words.contains(&&*word.text.to_lowercase()));
    let between = |item: &Item| match item {
        Item::Mark(mark) => matches!(*mark, ':' | '.'),
        Item::Word(word) => matches!(&*word.text, "is" | "was"),
        _ => false,
    };
    match &view.items[..view.at] {
        [.., before] if listed(before) => true,
        [.., before, last] => between(last) && listed(before),
        _ => false,
    }
}

/// "Call 100000 customers": the number counts what follows.
fn counts(view: View<'_>) -> bool {
    view.text_ahead(1).is_some_and(is_plural)
}
