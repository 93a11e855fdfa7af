//! Words, and what is written with letters but not said as a word: abbreviations, acronyms, addresses, signs, mixtures.
//! The last reader: it says something for every letter and digit.

use std::ops::Range;

use super::amount::number;
use super::roman::numeral;
use super::table::{LanguageTable, noun};
use super::{Scene, short_form as look_up};
use crate::abbreviations::{Abbreviation, Ending};
use crate::normalise::item::{Word, is_mail};
use crate::normalise::numeral::is_digits;
use crate::reading::Reading;
use crate::scripts::{UnspokenWord, is_vowel_sign, same_script, unspoken};
use crate::word_table::{find, has};

/// Longer runs of letters are said in pieces of this many letters.
const LETTERS_MAX: usize = 40;

/// Signs in a row that are said.
const SIGNS_MAX: usize = 8;

/// Acronyms of more letters are said as words.
const ACRONYM_MAX: usize = 6;

/// With these endings, "word.ending" is an address.
const ENDINGS: &str = "
    com org net io dev ai edu gov info app eu es fr it br in mx ar pt ch be ca cl uk de tv";

/// "https://hob.org/docs", "www.hob.es", "ana@correo.es", "hob.com".
pub(super) fn address(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    if !is_address(&word.text) {
        return None;
    }
    let bare = word.text.split_once("://").map_or(word.text.as_str(), |(_, rest)| rest);
    let mut words = Vec::new();
    let mut rest = bare.trim_end_matches('/');
    while let Some(first) = rest.chars().next() {
        let alike = |c: char| match (first.is_alphabetic(), first.is_ascii_digit()) {
            (true, _) => c.is_alphabetic(),
            (_, true) => c.is_ascii_digit(),
            _ => false,
        };
        let end = rest.find(|c| !alike(c)).unwrap_or(rest.len()).max(first.len_utf8());
        words.extend(address_part(scene, &rest[..end]));
        rest = &rest[end..];
    }
    out.say(word.span(), &words.join(" "));
    Some(1)
}

fn is_address(text: &str) -> bool {
    let host = text.split('/').next().unwrap_or(text);
    let is_host = || {
        let parts: Vec<&str> = host.split('.').collect();
        let is_part = |part: &&str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        parts.len() > 1
            && parts.iter().all(is_part)
            && parts[0].starts_with(|c: char| c.is_ascii_alphabetic())
            && parts.last().is_some_and(|last| has(ENDINGS, last))
    };
    text.contains("://")
        || (text.starts_with("www.") && text.len() > 4)
        || is_mail(text)
        || is_host()
}

fn address_part(scene: Scene<'_>, part: &str) -> Option<String> {
    let signs = &scene.table.signs;
    let first = part.chars().next()?;
    Some(match first {
        '.' => signs.dot.to_owned(),
        '/' => signs.slash.to_owned(),
        '@' => signs.at.to_owned(),
        '-' => signs.dash.to_owned(),
        '_' => signs.underscore.to_owned(),
        ':' => signs.colon.to_owned(),
        _ if first.is_ascii_digit() => number(scene.table, part),
        _ if first.is_alphabetic() => letters_or_word(scene.table, part),
        other => sign_name(scene.table, other)?.to_owned(),
    })
}

fn letters_or_word(table: &LanguageTable, part: &str) -> String {
    let has_vowel = part.chars().any(is_vowel);
    let is_short = part.chars().count() <= ACRONYM_MAX;
    if has_vowel || !is_short { part.to_owned() } else { spelled(table, part) }
}

/// "Sr.", "p. ej.", "EE. UU.", "Mme", and initials: "J. R. Jiménez".
pub(super) fn short_form(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let has_stop = scene.view.mark_ahead(1) == Some('.');
    let double = || {
        let next = scene.view.text_ahead(2).filter(|_| has_stop)?;
        let found = look_up(scene.table, &format!("{}.{next}", word.text))?;
        (scene.view.mark_ahead(3) == Some('.')).then_some((found, 3))
    };
    // "l'avv." begins with an article.
    let bare = word.text.rsplit('\'').next().unwrap_or(&word.text);
    let single = || Some((look_up(scene.table, bare)?, 1));
    let Some((Abbreviation { said, ending }, used)) = double().or_else(single) else {
        return has_stop.then(|| initial(scene, word, out)).flatten();
    };
    let next = scene.view.text_ahead(used + usize::from(has_stop));
    let is_marked = has_stop || bare.contains('.') || bare.ends_with(['º', 'ª', '°', '/']);
    let goes_on = scene.view.goes_on(used + usize::from(has_stop));
    let is_number =
        |next: &str| next.starts_with(char::is_numeric) || numeral(scene.table, next).is_some();
    let is_meant = match ending {
        Ending::BeforeNumber => is_marked && next.is_some_and(is_number),
        Ending::Never if !is_marked => {
            is_title(scene, bare) && next.is_some_and(|next| next.starts_with(char::is_uppercase))
        }
        Ending::Never => is_marked && goes_on,
        Ending::Sometimes => is_marked,
    };
    if !is_meant {
        return has_stop.then(|| initial(scene, word, out)).flatten();
    }
    let end = scene.view.ahead(used - 1)?.span().end;
    let article = if used == 1 { &word.text[..word.text.len() - bare.len()] } else { "" };
    out.say(word.span().start..end, &format!("{article}{said}"));
    // At the end of the sentence, the stop of the abbreviation is also its own.
    Some(used + usize::from(has_stop && goes_on))
}

/// "n°5", "p.12", "St-Denis": a short form in one word with what it belongs to.
pub(super) fn joined_short_form(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let at = word.text.find(|c: char| c.is_ascii_digit() || c == '-')?;
    let (short, rest) = word.text.split_at(at);
    let Abbreviation { said, ending } = look_up(scene.table, short.trim_end_matches('.'))?;
    let is_marked = short.ends_with(['.', 'º', '°']);
    if ending == Ending::BeforeNumber && is_marked && is_digits(rest, 1..=9) {
        out.say(word.span_of(0..at), said);
        out.say(word.span_of(at..word.text.len()), &number(scene.table, rest));
        return Some(1);
    }
    let is_name = rest.strip_prefix('-').is_some_and(|name| name.starts_with(char::is_uppercase));
    if ending != Ending::Never || short.len() < 2 || !is_name || !is_title(scene, short) {
        return None;
    }
    out.say(word.span(), &format!("{said}{rest}"));
    Some(1)
}

/// Whether a short form may stand without its full stop: "Mme Durand", but not "ING Direct" and "Al Pacino".
fn is_title(scene: Scene<'_>, word: &str) -> bool {
    let is_upper = word.chars().count() > 2 && word.chars().all(char::is_uppercase);
    word.starts_with(char::is_uppercase)
        && (scene.view.shouted || !is_upper)
        && !matches!(word, "Al" | "Arch" | "Ex" | "Gen" | "On" | "Sept" | "Tel")
}

/// A letter and a full stop before another word.
fn initial(scene: Scene<'_>, word: &Word, out: &mut Reading) -> Option<usize> {
    let is_letter = word.text.chars().count() == 1 && word.text.chars().all(char::is_uppercase);
    if !is_letter || !scene.view.goes_on(2) {
        return None;
    }
    out.say(word.span(), &spelled(scene.table, &word.text));
    Some(2)
}

/// Signs between spaces: "&", "=", "→".
pub(super) fn symbols(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    if word.text.chars().any(char::is_alphanumeric) {
        return None;
    }
    if word.text == "–" && is_figure(scene.view.before()) && is_figure(scene.view.ahead(1)) {
        out.say(word.span(), scene.table.signs.to);
        return Some(1);
    }
    let names: Vec<&str> =
        word.text.chars().filter_map(|c| sign_name(scene.table, c)).take(SIGNS_MAX).collect();
    out.say(word.span(), &names.join(" "));
    Some(1)
}

fn is_figure(word: Option<&Word>) -> bool {
    word.is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_digit()))
}

fn sign_name(table: &LanguageTable, c: char) -> Option<&'static str> {
    find(table.symbols, c.encode_utf8(&mut [0; 4]))
}

pub(super) fn word(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    // "10 x 15", "km 20"
    let goes_on = is_figure(scene.view.ahead(1));
    let said = match word.text.as_str() {
        "x" | "X" if goes_on && is_figure(scene.view.before()) => sign_name(scene.table, '×'),
        "km" if goes_on => find(scene.table.units, "km").map(|names| noun(names).one),
        _ => None,
    };
    match said {
        Some(said) => out.say(word.span(), said),
        None => pieces(scene, word, 0..word.text.len(), out),
    }
    Some(1)
}

/// Says a part of a word run by run: letters of one script, digits, signs.
pub(super) fn pieces(scene: Scene<'_>, word: &Word, range: Range<usize>, out: &mut Reading) {
    let text = &word.text[range.clone()];
    let mut signs = 0;
    for run in runs(text) {
        let part = &text[run.clone()];
        let span = word.span_of(range.start + run.start..range.start + run.end);
        let Some(first) = part.chars().next() else { continue };
        let is_digit = |c: char| c.is_ascii_digit();
        let is_times = matches!(part, "x" | "X")
            && word.text[..range.start + run.start].ends_with(is_digit)
            && word.text[range.start + run.end..].starts_with(is_digit);
        if is_times {
            out.say(span, sign_name(scene.table, '×').unwrap_or_default());
        } else if first.is_ascii_digit() {
            out.say(span, &number(scene.table, part));
        } else if let Some(name) = sign_name(scene.table, first) {
            signs += 1;
            out.say(span, if signs > SIGNS_MAX { "" } else { name });
        } else if first.is_alphanumeric() || is_vowel_sign(first) {
            letters(scene, part, span, out);
        }
    }
}

fn letters(scene: Scene<'_>, part: &str, span: Range<usize>, out: &mut Reading) {
    match unspoken(part) {
        Some(UnspokenWord::Latin(latin)) => return out.say(span, &latin),
        Some(UnspokenWord::Unreadable) => return out.say(span, scene.table.signs.foreign_word),
        None => {}
    }
    if let Some(said) = find(scene.table.acronyms, part).filter(|_| !scene.view.shouted) {
        let said = if said.is_empty() { spelled(scene.table, part) } else { said.to_owned() };
        return out.say(span, &said);
    }
    // "CDs": the plural of an acronym.
    let stem = part.strip_suffix('s').filter(|stem| stem.len() > 1).unwrap_or(part);
    let is_upper = |text: &str| text.chars().count() > 1 && text.chars().all(char::is_uppercase);
    if is_upper(stem) && !scene.view.shouted && is_spelled(stem) {
        out.say(span, &spelled(scene.table, stem));
    } else if is_upper(part) {
        out.say(span, &part.to_lowercase());
    } else {
        out.say(span, part);
    }
}

/// An acronym that cannot be said as a word: "GPU", "SNCF", "ADN", but not "ONU".
fn is_spelled(acronym: &str) -> bool {
    let letters: Vec<char> = acronym.chars().collect();
    let vowels = letters.iter().filter(|c| is_vowel(**c)).count();
    if letters.len() > ACRONYM_MAX || !letters.iter().all(char::is_ascii_uppercase) {
        return false;
    }
    let is_onset = |pair: &[char]| {
        is_vowel(pair[0]) || is_vowel(pair[1]) || matches!(pair[1], 'L' | 'R' | 'H')
    };
    let ends_badly =
        letters.windows(2).next_back().is_some_and(|w| !is_vowel(w[0]) && !is_vowel(w[1]));
    letters.len() == 2
        || vowels == 0
        || !is_onset(&letters[..2])
        || ends_badly
        || letters.windows(3).any(|run| run.iter().all(|c| !is_vowel(*c)))
}

fn is_vowel(c: char) -> bool {
    matches!(c.to_ascii_lowercase(), 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
        || (c.is_alphabetic() && !c.is_ascii())
}

/// "G P U": espeak-ng says the name of a letter that stands alone.
fn spelled(table: &LanguageTable, text: &str) -> String {
    let name = |c: char| {
        let upper = c.to_ascii_uppercase();
        let own = table.letters.iter().find(|(letter, _)| *letter == upper);
        own.map_or_else(|| upper.to_string(), |(_, name)| (*name).to_owned())
    };
    text.chars().map(name).collect::<Vec<String>>().join(" ")
}

/// The parts of a text: letters of one script with their apostrophes and hyphens, digits, and single signs.
fn runs(text: &str) -> Vec<Range<usize>> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut runs: Vec<Range<usize>> = Vec::new();
    let (mut last, mut length) = (None, 0);
    for (index, &(at, c)) in chars.iter().enumerate() {
        let next = chars.get(index + 1).map(|(_, next)| *next);
        let joins = last.is_some_and(|last| joins(last, c, next)) && length < LETTERS_MAX;
        let end = at + c.len_utf8();
        match runs.last_mut().filter(|_| joins) {
            Some(run) => run.end = end,
            None => {
                length = 0;
                runs.push(at..end);
            }
        }
        length += 1;
        last = Some(c);
    }
    runs
}

/// Whether `c` belongs to the run that ends in `last`.
fn joins(last: char, c: char, next: Option<char>) -> bool {
    let is_letter = |c: char| (c.is_alphanumeric() && !c.is_ascii_digit()) || is_vowel_sign(c);
    let is_joint = |c: char| matches!(c, '\'' | '-' | '·');
    if c.is_ascii_digit() || last.is_ascii_digit() {
        return c.is_ascii_digit() && last.is_ascii_digit();
    }
    if is_joint(c) {
        return is_letter(last) && next.is_some_and(is_letter);
    }
    let is_same = is_vowel_sign(c) || is_vowel_sign(last) || same_script(last, c);
    is_letter(c) && (is_joint(last) || (is_letter(last) && is_same))
}
