//! llama-swap's selectors: a name that leads to one of several. hob's aliases do that.
//! Only what was carried over can be among them.

use super::names::Names;
use crate::import::draft::{Alias, Pick, Target};
use crate::import::reading::Place;

pub(super) fn add(root: &Place<'_>, names: &mut Names) {
    let selectors = root.get("selectors").map(|selectors| selectors.entries()).unwrap_or_default();
    // A selector leads to none of the others, there or here.
    let aliases: Vec<_> =
        selectors.iter().map(|(name, selector)| (alias(name, selector, names), selector)).collect();
    for (alias, selector) in aliases {
        if alias.to.is_empty() {
            selector.drop("none of its targets was carried over");
        } else if !names.add(alias) {
            selector.drop("a name of this file's own wins");
        }
    }
}

fn alias(name: &str, selector: &Place<'_>, names: &Names) -> Alias {
    let strategy = selector.get("strategy");
    let word = strategy.as_ref().and_then(Place::text).unwrap_or_default();
    let mut to: Vec<(Target, Place<'_>)> = Vec::new();
    for (wanted, place) in selector.get("targets").map(|place| place.texts()).unwrap_or_default() {
        match names.target(&wanted) {
            Some(target) => to.push((target, place)),
            None => place.drop("no such model was carried over"),
        }
    }
    if word == "pin" {
        let rest = to.split_off(to.len().min(1));
        rest.iter().for_each(|(_, place)| place.drop("a pin asks the first only"));
    }
    let to = to.into_iter().map(|(target, _)| target).collect();
    Alias { pick: pick(&word, strategy.as_ref()), ..Alias::plain(name, to) }
}

fn pick(word: &str, place: Option<&Place<'_>>) -> Pick {
    match (word, place) {
        ("warm", _) => Pick::Warm,
        ("pin" | "", _) | (_, None) => Pick::Order,
        ("spillover", Some(place)) => {
            place.change("pick = \"least-wait\": hob asks whichever would wait least");
            Pick::LeastWait
        }
        (_, Some(place)) => {
            place.drop("hob chooses in order, by warmth, by wait or by weight");
            Pick::Order
        }
    }
}
