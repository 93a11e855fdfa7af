//! Roman numerals of centuries, rulers and chapters: "siglo XIX", "Louis XIV", "capitolo IV".
//! A word before or behind them says which number they are; alone, they are letters.

use super::Scene;
use super::table::RomanPlace;
use crate::normalise::roman::value;
use crate::reading::Reading;

/// Endings of an ordinal: "XIXe siècle", "Ier".
const MARKS: &[&str] = &["ème", "er", "re", "e", "ᵉʳ", "ʳᵉ", "ᵉ", "º", "ª"];

pub(super) fn read(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let bare = MARKS.iter().find_map(|mark| word.text.strip_suffix(mark)).unwrap_or(&word.text);
    let number = value(bare)?;
    let words = &scene.table.roman;
    let (before, next) = (scene.lower_before(), scene.lower_ahead(1));
    let place = if words.centuries.contains(&before.as_str()) {
        RomanPlace::AfterCentury
    } else if words.centuries.contains(&next.as_str()) {
        RomanPlace::BeforeCentury
    } else if words.chapters.contains(&before.as_str()) {
        RomanPlace::Chapter
    } else if is_ruler(scene, bare, number) {
        RomanPlace::Ruler
    } else if bare.len() < word.text.len() {
        RomanPlace::BeforeCentury
    } else {
        return None;
    };
    out.say(word.span(), &(words.said)(number, place));
    Some(1)
}

/// A name stands before it.
fn is_ruler(scene: Scene<'_>, numeral: &str, number: u64) -> bool {
    let Some(before) = scene.view.before() else { return false };
    let is_name = before.text.chars().next().is_some_and(char::is_uppercase)
        && before.text.chars().filter(|c| c.is_lowercase()).count() > 1;
    let is_numeral = numeral.len() > 1 || matches!(numeral, "I" | "V");
    is_name && is_numeral && number < 40 && !scene.view.shouted
}
