//! Roman numerals of centuries, rulers, chapters and events: "siglo XIX", "Louis XIV", "cap. IV", "la II Guerra Mundial".
//! A word before or behind them says which number they are; alone, they are letters.

use super::table::{Form, LanguageTable, NounGender, RomanPlace};
use super::{Scene, short_form};
use crate::normalise::item::Item;
use crate::normalise::roman::value;
use crate::reading::Reading;
use crate::word_table::has;

/// Names of rulers who were the tenth. Behind other names, "X" is a letter.
const TENTH: &str = "Alfonso Carlo Charles Leone León Leão Léon Pie Pio Pío";

/// Names of queens that do not end with "a", and names of men that do.
const QUEENS: &str = "Anne Beatriz Catherine Elisabeth Isabel Marie Élisabeth";
const MEN: &str = "Andrea Luca Nicola";

pub(super) fn read(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let (number, mark) = numeral(scene.table, &word.text)?;
    let bare = &word.text[..word.text.len() - mark.len()];
    let words = &scene.table.roman;
    let (before, next) = (word_before(scene), scene.lower_ahead(1));
    let place = if words.centuries.contains(&before.as_str()) {
        RomanPlace::AfterCentury
    } else if words.centuries.contains(&next.as_str()) {
        RomanPlace::BeforeCentury
    } else if has(words.chapters, &before) && !is_article(scene, bare) {
        RomanPlace::Chapter
    } else if is_ruler(scene, bare, number) {
        RomanPlace::Ruler
    } else if !mark.is_empty() || is_before_noun(scene, bare, &before) {
        RomanPlace::BeforeNoun
    } else {
        return None;
    };
    let is_feminine = matches!(mark, "re" | "ère" | "ʳᵉ" | "ª")
        || match place {
            RomanPlace::Ruler => scene.view.before().is_some_and(|name| is_woman(&name.text)),
            RomanPlace::BeforeNoun if has(words.masculine_articles, &before) => false,
            RomanPlace::BeforeNoun => {
                has(words.feminine_articles, &before)
                    || scene.gender_of(&next) == NounGender::Feminine
            }
            _ => false,
        };
    let gender = if is_feminine { NounGender::Feminine } else { NounGender::Masculine };
    out.say(word.span(), &(words.said)(number, place, gender));
    Some(1)
}

/// The value of a numeral, and the ordinal mark behind it: 19 and "e" of "XIXe".
pub(super) fn numeral<'a>(table: &LanguageTable, text: &'a str) -> Option<(u64, &'a str)> {
    let mut marks = table.roman.marks.split_whitespace();
    let bare = marks.find_map(|mark| text.strip_suffix(mark)).unwrap_or(text);
    let mark = &text[bare.len()..];
    // "Le", "Ce" and "Ver" are words, and "tipo C" has a letter.
    let is_first = bare == "I" || !matches!(mark, "er" | "re" | "ère");
    let is_word = matches!(bare, "C" | "L") || !is_first;
    value(bare).filter(|_| !is_word).map(|number| (number, mark))
}

/// The word before in small letters, or what the short form before stands for: "s. XIX" is "siglo XIX".
fn word_before(scene: Scene<'_>) -> String {
    let items = &scene.view.items[..scene.view.at];
    let [.., Item::Word(short), Item::Mark('.')] = items else { return scene.lower_before() };
    let form = short_form(scene.table, &short.text);
    form.map(|form| form.said.to_lowercase()).unwrap_or_default()
}

/// "il libro I Malavoglia": the numeral is also a word, and a name follows.
fn is_article(scene: Scene<'_>, numeral: &str) -> bool {
    has(scene.table.starters, numeral) && is_before_name(scene)
}

/// A name stands before it.
fn is_ruler(scene: Scene<'_>, numeral: &str, number: u64) -> bool {
    let Some(before) = scene.view.before() else { return false };
    let mut letters = before.text.chars().filter(|c| c.is_alphabetic());
    // Devanagari has no capitals, so a single letter is no numeral there.
    let Some(first) = letters.next().filter(|first| !first.is_lowercase()) else { return false };
    let is_name = letters.filter(|c| !c.is_uppercase()).count() > 1;
    let is_numeral = numeral.len() > 1
        || (first.is_uppercase() && matches!(numeral, "I" | "V"))
        || (numeral == "X" && has(TENTH, &before.text));
    is_name && is_numeral && number < 40 && !scene.view.shouted
}

fn is_woman(name: &str) -> bool {
    has(QUEENS, name) || (name.ends_with('a') && !has(MEN, name))
}

/// "la II Guerra Mundial", "el XXV aniversario": what is numbered follows. A single letter needs an article and a name.
fn is_before_noun(scene: Scene<'_>, numeral: &str, before: &str) -> bool {
    let words = &scene.table.roman;
    let has_article = has(words.feminine_articles, before) || has(words.masculine_articles, before);
    let is_name = is_before_name(scene);
    let is_noun = is_name || (has_article && scene.form_before(1) != Form::Alone);
    let is_clear = if numeral.len() > 1 { is_noun } else { is_name && has_article };
    is_clear && numeral.bytes().all(|b| b"IVX".contains(&b)) && !scene.view.shouted
}

fn is_before_name(scene: Scene<'_>) -> bool {
    let next = scene.view.text_ahead(1).unwrap_or_default();
    next.starts_with(char::is_uppercase) && next.contains(char::is_lowercase)
}
