//! Parts of postal addresses: "N. Michigan Ave.", "TX 78701", and house numbers with a letter, which are not amounts.
//! Words around a letter decide what it stands for.

use super::View;
use super::cardinal::by_digit;
use super::item::Word;
use super::number::ordinal_form;
use crate::reading::Reading;
use crate::word_table::{find, has};

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    compass(view, out).or_else(|| state(view, out)).or_else(|| street(view, out))
}

/// "900 N. Michigan Ave.", "15 W. 4th St.": a direction between a house number and a street.
fn compass(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let said = match &*word.text {
        "N" => "North",
        "E" => "East",
        "S" => "South",
        "W" => "West",
        _ => return None,
    };
    let is_numbered =
        |word: &Word| word.text.len() > 2 && ordinal_form(&word.text, false).is_some();
    let is_direction = view.mark_ahead(1) == Some('.')
        && (view.before().is_some_and(is_house) && view.ahead(2).is_some_and(is_street)
            || view.ahead(2).is_some_and(is_numbered));
    if !is_direction {
        return None;
    }
    out.say(word.span(), said);
    Some(2)
}

fn is_house(word: &Word) -> bool {
    word.text.starts_with(|c: char| c.is_ascii_digit())
}

/// A word of a street's name: "Downing", "4th".
fn is_street(word: &Word) -> bool {
    word.text.starts_with(char::is_uppercase) || ordinal_form(&word.text, false).is_some()
}

/// "10 Downing St, London", "10880 Wilshire Blvd": a short form without a full stop, up to three words behind a house
/// number.
fn street(view: View<'_>, out: &mut Reading) -> Option<usize> {
    const NAMES: &str = "
        St Street, Ave Avenue, Blvd Boulevard, Rd Road, Ln Lane, Ct Court, Pl Place, Sq Square,
        Hwy Highway, Pkwy Parkway";
    let word = view.word()?;
    let name = find(NAMES, &word.text)?;
    let house = (2..=3).any(|back| {
        let at = view
            .at
            .checked_sub(back)
            .filter(|at| view.items[*at..view.at].iter().all(|item| item.word().is_some()));
        at.and_then(|at| view.items[at].word()).is_some_and(is_house)
    });
    let goes_on = view.ahead(1).is_some_and(|next| next.text.starts_with(char::is_uppercase));
    let stop = view.mark_ahead(1) == Some('.');
    if !house || goes_on || stop || !view.before().is_some_and(is_street) {
        return None;
    }
    out.say(word.span(), name);
    Some(1)
}

/// A direction with its full stop, not a number of watts or newtons.
pub(super) fn is_compass(view: View<'_>, distance: usize) -> bool {
    matches!(view.text_ahead(distance), Some("N" | "E" | "S" | "W"))
        && view.mark_ahead(distance + 1) == Some('.')
        && view.goes_on(distance + 2)
}

/// Words next to "13A" that make it a current, not a house number.
const CURRENT: &str = "
    battery breaker charger circuit current draws fuse load max maximum motor of outlet plug relay
    socket supply";

/// Whether a number directly before "A" is one of amps.
pub(super) fn is_current(view: View<'_>, number: &str) -> bool {
    let listed =
        |word: Option<&Word>| word.is_some_and(|word| has(CURRENT, &word.text.to_lowercase()));
    number.contains('.') || listed(view.before()) || listed(view.ahead(1))
}

/// "TX 78701", "OR 97201-1234": the state is said in full, and the ZIP code digit by digit.
fn state(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let name = find(STATES, &word.text)?;
    let zip = view.ahead(1).filter(|zip| is_zip(&zip.text))?;
    // In a text in capitals, "OR" and "IN" are words, except after the comma of an address.
    if view.shouted && view.mark_before() != Some(',') {
        return None;
    }
    out.say(word.span(), name);
    let groups: Vec<String> = zip.text.split('-').map(by_digit).collect();
    out.say(zip.span(), &groups.join(", "));
    Some(2)
}

fn is_zip(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    text.bytes().all(|b| b.is_ascii_digit() || b == b'-') && matches!(lengths[..], [5] | [5, 4])
}

const STATES: &str = "
    AL Alabama, AK Alaska, AZ Arizona, AR Arkansas, CA California, CO Colorado, CT Connecticut,
    DE Delaware, DC D C, FL Florida, GA Georgia, HI Hawaii, ID Idaho, IL Illinois, IN Indiana,
    IA Iowa, KS Kansas, KY Kentucky, LA Louisiana, ME Maine, MD Maryland, MA Massachusetts,
    MI Michigan, MN Minnesota, MS Mississippi, MO Missouri, MT Montana, NE Nebraska, NV Nevada,
    NH New Hampshire, NJ New Jersey, NM New Mexico, NY New York, NC North Carolina,
    ND North Dakota, OH Ohio, OK Oklahoma, OR Oregon, PA Pennsylvania, RI Rhode Island,
    SC South Carolina, SD South Dakota, TN Tennessee, TX Texas, UT Utah, VT Vermont, VA Virginia,
    WA Washington, WV West Virginia, WI Wisconsin, WY Wyoming";
