//! LiteLLM's fallbacks and other names: which alias leads on to which.
//! Two names may fall back to each other there; hob refuses circles, so one that would close a circle is
//! replaced by the other's own targets.

use super::Group;
use super::settings::setting;
use crate::import::draft::{Alias, Target};
use crate::import::reading::Place;

const NO_SUCH_NAME: &str = "no model_name that was carried over is called that";

/// `model_group_alias`: further names, and where each says what it stands for.
pub(super) fn other_names<'a>(root: &Place<'a>) -> Vec<(&'a str, Place<'a>)> {
    let table = setting(root, "model_group_alias");
    let entries = table.map(|table| table.entries()).unwrap_or_default();
    // Either the name, or a table that holds it.
    let meant = |place: Place<'a>| if place.is_table() { place.get("model") } else { Some(place) };
    entries.into_iter().filter_map(|(name, place)| Some((name, meant(place)?))).collect()
}

pub(super) fn add_other_names(groups: &mut Vec<Group>, names: Vec<(&str, Place<'_>)>) {
    for (name, place) in names {
        let Some(meant) = place.text() else { continue };
        if find(groups, name).is_some() {
            place.drop("a model_name is called that, and wins");
        } else if find(groups, &meant).is_none() {
            place.drop(NO_SUCH_NAME);
        } else {
            let alias = Alias::plain(name, vec![Target::plain(&meant)]);
            groups.push(Group { alias, tail: Vec::new(), falls_back: false });
        }
    }
}

pub(super) fn add(groups: &mut [Group], root: &Place<'_>) {
    let mut defaults = Vec::new();
    if let Some(place) = setting(root, "fallbacks") {
        for (name, names) in pairs(&place) {
            match name {
                "*" => defaults.extend(names.texts()),
                name => append(groups, name, &names),
            }
        }
    }
    defaults.extend(setting(root, "default_fallbacks").iter().flat_map(Place::texts));
    add_defaults(groups, &defaults);
    if let Some(place) = setting(root, "context_window_fallbacks") {
        place.change(
            "they are at the end of `to`, so they are asked after any failure, not only \
                      for prompts that are too long; hob skips targets that are too small",
        );
        for (name, names) in pairs(&place) {
            append(groups, name, &names);
        }
    }
}

/// A list of tables, each with names and what they fall back to.
fn pairs<'a>(place: &Place<'a>) -> Vec<(&'a str, Place<'a>)> {
    let tables = if place.is_table() { vec![place.clone()] } else { place.items() };
    tables.iter().flat_map(Place::entries).collect()
}

fn append(groups: &mut [Group], name: &str, names: &Place<'_>) {
    let Some(at) = find(groups, name) else {
        names.drop(NO_SUCH_NAME);
        return;
    };
    for (fallback, place) in names.texts() {
        match find(groups, &fallback) {
            Some(to) if to == at => place.drop("a name does not fall back to itself"),
            Some(to) => lead(groups, at, to, &place),
            None => place.drop(NO_SUCH_NAME),
        }
    }
}

/// For whoever has no fallbacks of its own, as in LiteLLM.
fn add_defaults(groups: &mut [Group], names: &[(String, Place<'_>)]) {
    let without: Vec<usize> = (0..groups.len()).filter(|at| is_bare(groups, *at)).collect();
    for (name, place) in names {
        let Some(to) = find(groups, name) else {
            place.drop(NO_SUCH_NAME);
            continue;
        };
        for at in without.iter().copied().filter(|at| *at != to) {
            lead(groups, at, to, place);
        }
    }
}

/// Neither has fallbacks nor is another name for something that may.
fn is_bare(groups: &[Group], at: usize) -> bool {
    let Group { alias, falls_back, .. } = &groups[at];
    !falls_back && alias.to.iter().all(|target| find(groups, &target.name).is_none())
}

/// Lets the alias at `from` end in the one at `to`.
fn lead(groups: &mut [Group], from: usize, to: usize, place: &Place<'_>) {
    let tail = match reaches(groups, to, from) {
        false => vec![Target::plain(&groups[to].alias.name)],
        true => {
            place.change(&format!(
                "'{}' leads back to '{}', and hob refuses circles; its own targets stand instead",
                groups[to].alias.name, groups[from].alias.name
            ));
            own_targets(groups, to)
        }
    };
    groups[from].falls_back = true;
    let known = &mut groups[from].tail;
    for target in tail {
        if !known.contains(&target) {
            known.push(target);
        }
    }
}

fn own_targets(groups: &[Group], at: usize) -> Vec<Target> {
    let own = groups[at].alias.to.iter().filter(|target| find(groups, &target.name).is_none());
    own.map(|target| Target { weight: None, ..target.clone() }).collect()
}

fn reaches(groups: &[Group], from: usize, wanted: usize) -> bool {
    let mut seen = vec![false; groups.len()];
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        if at == wanted {
            return true;
        }
        if !std::mem::replace(&mut seen[at], true) {
            let Group { alias, tail, .. } = &groups[at];
            let next = alias.to.iter().chain(tail);
            waiting.extend(next.filter_map(|target| find(groups, &target.name)));
        }
    }
    false
}

fn find(groups: &[Group], name: &str) -> Option<usize> {
    groups.iter().position(|group| group.alias.name == name)
}
