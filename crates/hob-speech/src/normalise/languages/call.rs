//! Telephone numbers: "+34 600 123 456", "01 23 45 67 89", "91234-5678".
//! Their groups are said digit by digit or in pairs, with a short pause between them.

use super::Scene;
use super::amount::by_digit;
use super::table::Form;
use crate::normalise::item::{Item, Word};
use crate::normalise::numeral::is_digits;
use crate::reading::Reading;

/// The most groups of one number.
const GROUPS_MAX: usize = 7;

pub(super) fn read(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let words: Vec<&Word> = (0..GROUPS_MAX)
        .map_while(|distance| scene.view.ahead(distance))
        .enumerate()
        .take_while(|(at, word)| is_group(&word.text, *at == 0) && (*at == 0 || word.spaced))
        .map(|(_, word)| word)
        .collect();
    if !is_number(scene, &words) {
        return None;
    }
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.mark(',');
        }
        let plus = match word.text.starts_with('+') {
            true => format!("{} ", scene.table.signs.plus),
            false => String::new(),
        };
        let bare = word.text.trim_start_matches('+');
        let groups: Vec<String> =
            groups(bare).into_iter().map(|group| digits_in_words(scene, group)).collect();
        out.say(word.span(), &format!("{plus}{}", groups.join(", ")));
    }
    Some(words.len())
}

fn is_group(text: &str, is_first: bool) -> bool {
    let bare = if is_first { text.strip_prefix('+').unwrap_or(text) } else { text };
    groups(bare).into_iter().all(|group| is_digits(group, 1..))
}

/// The groups of one word: "91234-5678", "01.23.45.67.89", and the number of a Brazilian person, "123.456.789-09".
fn groups(text: &str) -> Vec<&str> {
    let has_stops = match text.matches('.').count() {
        4 => true,
        2 => text.contains('-'),
        _ => false,
    };
    text.split(|c: char| c == '-' || (has_stops && c == '.')).collect()
}

fn is_number(scene: Scene<'_>, words: &[&Word]) -> bool {
    let Some(first) = words.first() else { return false };
    let lengths: Vec<usize> =
        words.iter().map(|word| word.text.bytes().filter(u8::is_ascii_digit).count()).collect();
    let digits: usize = lengths.iter().sum();
    if first.text.starts_with('+') {
        return digits >= 7;
    }
    if is_called(scene) {
        // French says "appelez le cent douze".
        return digits >= if scene.table.has_pairs { 4 } else { 3 };
    }
    if has_area_code(scene) {
        return digits >= 7;
    }
    let parts: Vec<usize> = groups(&first.text).into_iter().map(str::len).collect();
    let is_joined = parts.len() >= 2 && parts.iter().all(|length| *length >= 3);
    if words.len() == 1 {
        let is_mobile = scene.table.thousands == ','
            && digits == 10
            && first.text.starts_with(['6', '7', '8', '9']);
        let is_grouped = matches!(parts[..], [2, 2, 2, 2, 2] | [3, 3, 3, 2]);
        // "2020-2024" is a range of years.
        return (is_joined && digits >= 7 && parts != [4, 4]) || is_grouped || is_mobile;
    }
    let has_odd_group = lengths[1..].iter().any(|length| *length != 3);
    match words.len() {
        2 => lengths == [5, 5],
        _ => {
            let is_opened = first.text.starts_with('0') && digits >= 8;
            let is_plain = (9..=11).contains(&digits) && has_odd_group;
            (is_opened || is_plain) && lengths.iter().all(|length| (2..=4).contains(length))
        }
    }
}

/// "(11) 3123-4567": an area code stands before it.
fn has_area_code(scene: Scene<'_>) -> bool {
    let before = &scene.view.items[..scene.view.at];
    matches!(before, [.., Item::Word(code), Item::Mark(')')] if is_digits(&code.text, 2..=4))
}

/// "tel. 123", "teléfono: 123", "llame al 123".
fn is_called(scene: Scene<'_>) -> bool {
    let items = &scene.view.items[..scene.view.at];
    let before = items.iter().rev().take(3).filter_map(|item| item.word());
    let mut before = before.map(|word| word.text.to_lowercase());
    before.any(|word| scene.table.callers.contains(&word.as_str()))
}

fn digits_in_words(scene: Scene<'_>, group: &str) -> String {
    match group.parse() {
        Ok(pair) if scene.table.has_pairs && group.len() == 2 && !group.starts_with('0') => {
            (scene.table.cardinal)(pair, Form::Alone)
        }
        _ => by_digit(scene.table, group),
    }
}
