//! LiteLLM's fallbacks and second names: which alias leads to which. Two names may fall back to each other
//! there. hob refuses such a cycle, so one direction gets the other alias's own targets instead.

use serde_json::Value;

use super::{Fallbacks, Group, Settings};
use crate::config::{AliasSection, TargetEntry};
use crate::convert::parameters::entry;
use crate::convert::source::{Notes, under};

const UNKNOWN: &str = "no model_name that was carried over has this name";

pub(super) fn add(groups: &mut Vec<Group>, settings: &Settings, notes: &mut Notes) {
    for (name, value) in settings.model_group_alias.iter().flatten() {
        second_name(groups, name, value, notes);
    }
    let mut defaults: Vec<&String> = Vec::new();
    for (name, fallbacks) in pairs(&settings.fallbacks) {
        match name.as_str() {
            "*" => defaults.extend(fallbacks),
            _ => append(groups, name, fallbacks, "fallbacks", notes),
        }
    }
    defaults.extend(settings.default_fallbacks.iter().flatten());
    // As in LiteLLM, for names without fallbacks of their own; a second name has those of the first.
    let without = |group: &&Group| {
        !group.has_fallbacks && group.alias.to.iter().all(|to| find(groups, to).is_none())
    };
    let without: Vec<String> =
        groups.iter().filter(without).map(|group| group.name.clone()).collect();
    for fallback in defaults {
        if find_name(groups, fallback).is_none() {
            notes.dropped(under("default_fallbacks", fallback), UNKNOWN);
        }
        for name in without.iter().filter(|name| *name != fallback) {
            append(groups, name, std::slice::from_ref(fallback), "default_fallbacks", notes);
        }
    }
    if settings.context_window_fallbacks.is_some() {
        notes.changed(
            "context_window_fallbacks",
            "hob uses them after any failure, and not only for prompts that are too long; it skips targets \
             whose context is too small",
        );
    }
    for (name, fallbacks) in pairs(&settings.context_window_fallbacks) {
        append(groups, name, fallbacks, "context_window_fallbacks", notes);
    }
}

fn pairs(fallbacks: &Option<Fallbacks>) -> impl Iterator<Item = (&String, &Vec<String>)> {
    fallbacks.iter().flatten().flatten()
}

/// A value of `model_group_alias` is the first name, or a table that holds it.
fn second_name(groups: &mut Vec<Group>, name: &str, value: &Value, notes: &mut Notes) {
    let at = under("model_group_alias", name);
    let first = value.as_str().or_else(|| value.get("model")?.as_str()).unwrap_or_default();
    for key in
        value.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| *key != "model")
    {
        notes.unknown_key(&at, key);
    }
    if find_name(groups, name).is_some() {
        notes.dropped(at, "a model_name has this name already");
    } else if find_name(groups, first).is_none() {
        notes.dropped(at, UNKNOWN);
    } else {
        let to = vec![TargetEntry::Name(first.to_owned())];
        let alias = AliasSection { to, ..AliasSection::default() };
        groups.push(Group { name: name.to_owned(), alias, tail: Vec::new(), has_fallbacks: false });
    }
}

fn append(groups: &mut [Group], name: &str, fallbacks: &[String], key: &str, notes: &mut Notes) {
    let at = under(key, name);
    let Some(from) = find_name(groups, name) else { return notes.dropped(at, UNKNOWN) };
    groups[from].has_fallbacks = true;
    for fallback in fallbacks {
        let Some(to) = find_name(groups, fallback) else {
            notes.dropped(format!("{at}: {fallback}"), UNKNOWN);
            continue;
        };
        if to == from {
            continue;
        }
        let tail = if leads_to(groups, to, from) {
            let how = format!(
                "'{fallback}' falls back to '{name}', and hob refuses cycles: the targets of \
                               '{fallback}' are used instead"
            );
            notes.changed(at.clone(), how);
            let own = groups[to].alias.to.iter().filter(|target| find(groups, target).is_none());
            own.cloned().map(without_weight).collect()
        } else {
            vec![TargetEntry::Name(fallback.clone())]
        };
        let known = &mut groups[from].tail;
        known.extend(tail.into_iter().filter(|target| !known.contains(target)).collect::<Vec<_>>());
    }
}

fn without_weight(target: TargetEntry) -> TargetEntry {
    match target {
        TargetEntry::Detailed(mut detailed) => {
            detailed.weight = None;
            entry(*detailed)
        }
        name @ TargetEntry::Name(_) => name,
    }
}

fn leads_to(groups: &[Group], from: usize, wanted: usize) -> bool {
    let (mut seen, mut waiting) = (vec![false; groups.len()], vec![from]);
    while let Some(at) = waiting.pop() {
        if at == wanted {
            return true;
        }
        if !std::mem::replace(&mut seen[at], true) {
            let next = groups[at].alias.to.iter().chain(&groups[at].tail);
            waiting.extend(next.filter_map(|target| find(groups, target)));
        }
    }
    false
}

fn find(groups: &[Group], target: &TargetEntry) -> Option<usize> {
    find_name(groups, target.name())
}

fn find_name(groups: &[Group], name: &str) -> Option<usize> {
    groups.iter().position(|group| group.name == name)
}
