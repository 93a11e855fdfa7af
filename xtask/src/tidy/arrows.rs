//! Which crate may know which: the map of crates in docs/ARCHITECTURE.md, and what a crate exists to be
//! without. A crate that is not on the map does not build past the tidy test.

use crate::tree::{Crate, Tree};

/// The page with the map.
const PAGE: &str = "docs/ARCHITECTURE.md";

/// What stands before the first line of the map.
const MAP_BEGINS: &str = "## Code map\n\n```text\n";

/// Stands in the map where a crate depends on no other one.
const NONE: &str = "(none)";

/// A crate and the crates of this workspace that it may depend on.
type Arrow<'a> = (&'a str, Vec<&'a str>);

/// A crate, a dependency that it must do without, and why.
const STRANGERS: [(&str, &str, &str); 24] = [
    ("hob-core", "serde_json", "it may derive serde; JSON is hob-wire's"),
    ("hob-core", "tokio", "the nouns run on no runtime"),
    ("hob-core", "tracing", "arithmetic has nothing to log"),
    ("hob-wire", "tokio", "reading and writing JSON waits for nothing"),
    ("hob-wire", "axum", "bytes in, bytes out; sockets are hob-server's"),
    ("hob-machine", "tokio", "it reads once and does not wait"),
    ("hob-machine", "tracing", "what it does not find is a fact of its answer"),
    ("hob-models", "axum", "it serves no requests"),
    ("hob-models", "tokio", "one thread does the file work of a pull"),
    ("hob-models", "rten", "it knows where weights are, not how they run"),
    ("hob-speech", "rten", "what is said and how it is packed needs no engine"),
    ("hob-speech", "tokio", "text and codecs are plain functions"),
    ("hob-speech", "serde_json", "JSON is hob-wire's"),
    ("hob-agents", "hyper", "models and pages are reached through traits"),
    ("hob-eval", "tokio", "a checker waits for nothing"),
    ("hob-eval", "fs-err", "items and answers are handed over as text"),
    ("hob-voice", "tokio", "the driver waits; a session is handed what happened and when"),
    ("hob-voice", "serde_json", "JSON is hob-wire's"),
    ("hob-engines", "axum", "a worker speaks frames, not HTTP"),
    ("hob-engines", "hyper", "a worker speaks frames, not HTTP"),
    ("hob-engines", "toml", "it gets settings as arguments, and reads no configuration file"),
    ("hob-engines", "anyhow", "libraries say who can act; anyhow does not"),
    ("hob-server", "rten", "it knows models by their traits only"),
    ("hob-server", "anyhow", "libraries say who can act; anyhow does not"),
];

pub(crate) fn complaints(tree: &Tree) -> Vec<String> {
    let page = tree.files.iter().find(|file| file.path == PAGE);
    let arrows = arrows(page.map_or("", |page| page.text.as_str()));
    let crates = &tree.crates;
    [rooms(crates, &arrows), strangers(crates), unused(crates, &arrows)].concat()
}

/// Reads the map: `a, b ─▶ c, d` lets a and b depend on c and d.
fn arrows(page: &str) -> Vec<Arrow<'_>> {
    let map = page.split_once(MAP_BEGINS).map_or("", |(_, map)| map);
    let lines = map.lines().take_while(|line| *line != "```");
    let arrows = lines.filter_map(|line| line.split_once("─▶"));
    arrows
        .flat_map(|(users, used)| {
            names(users).map(move |user| (user, names(used).collect::<Vec<_>>()))
        })
        .collect()
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| *name != NONE)
}

fn may_know<'a>(arrows: &'a [Arrow<'a>], name: &str) -> Option<&'a [&'a str]> {
    arrows.iter().find(|(listed, _)| *listed == name).map(|(_, known)| known.as_slice())
}

/// Complains about crates of this workspace that know one they should not.
fn rooms(crates: &[Crate], arrows: &[Arrow<'_>]) -> Vec<String> {
    crates.iter().flat_map(|room| room_complaints(room, crates, arrows)).collect()
}

fn room_complaints(room: &Crate, crates: &[Crate], arrows: &[Arrow<'_>]) -> Vec<String> {
    let name = &room.name;
    let Some(known) = may_know(arrows, name) else {
        return vec![format!("{name}: the map of {PAGE} does not say what it may know")];
    };
    let is_room = |other: &str| {
        crates.iter().any(|room| room.name == other) || may_know(arrows, other).is_some()
    };
    let named = room.dependencies.iter().map(|dependency| dependency.name.as_str());
    named
        .filter(|other| is_room(other) && !known.contains(other))
        .map(|other| format!("{name}: must not know {other} (the map of {PAGE})"))
        .collect()
}

/// Complains about allowed arrows that no crate uses: such a rule protects nothing.
fn unused(crates: &[Crate], arrows: &[Arrow<'_>]) -> Vec<String> {
    let exists = |name: &str| crates.iter().any(|room| room.name == name);
    let uses = |room: &Crate, other: &str| room.dependencies.iter().any(|used| used.name == other);
    let unused = |room: &'_ Crate| {
        let others = may_know(arrows, &room.name).unwrap_or_default().iter();
        let idle = others.filter(|other| exists(other) && !uses(room, other));
        idle.map(|other| format!("{}: does not use {other}; remove the arrow", room.name))
            .collect::<Vec<_>>()
    };
    crates.iter().flat_map(unused).collect()
}

/// Complains about dependencies from outside that a crate exists to be without.
fn strangers(crates: &[Crate]) -> Vec<String> {
    let uses = |room: &str, stranger: &str| {
        crates
            .iter()
            .filter(|known| known.name == room)
            .flat_map(|known| &known.dependencies)
            .any(|dependency| dependency.name == stranger)
    };
    STRANGERS
        .iter()
        .filter(|(room, stranger, _)| uses(room, stranger))
        .map(|(room, stranger, why)| format!("{room}: must not depend on {stranger}: {why}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Dependency;

    fn room(name: &str, dependencies: &[&str]) -> Crate {
        let dependency = |name: &&str| Dependency { name: (*name).to_owned() };
        Crate { name: name.to_owned(), dependencies: dependencies.iter().map(dependency).collect() }
    }

    fn map() -> Vec<Arrow<'static>> {
        arrows(include_str!("../../../docs/ARCHITECTURE.md"))
    }

    fn check(crates: &[Crate], expected: &[&str]) {
        assert_eq!([rooms(crates, &map()), strangers(crates)].concat(), expected);
    }

    #[test]
    fn arrows_point_one_way() {
        check(&[room("hob-server", &["hob-wire", "axum"]), room("hob-wire", &["hob-core"])], &[]);
        check(
            &[room("hob-wire", &["hob-server"])],
            &["hob-wire: must not know hob-server (the map of docs/ARCHITECTURE.md)"],
        );
        check(
            &[room("hob-server", &["hob-engines"])],
            &["hob-server: must not know hob-engines (the map of docs/ARCHITECTURE.md)"],
        );
    }

    #[test]
    fn decided_arrows_only_point_at_listed_rooms_and_never_round() {
        let map = map();
        for (at, (name, allowed)) in map.iter().enumerate() {
            let earlier: Vec<&str> = map[..at].iter().map(|(name, _)| *name).collect();
            for other in allowed {
                assert!(earlier.contains(other), "{name} may know {other}, which comes later");
            }
        }
    }

    #[test]
    fn an_arrow_that_no_crate_uses_is_removed() {
        let wire = |uses: &[&str]| [room("hob-wire", uses), room("hob-core", &[])];
        assert!(unused(&wire(&["hob-core"]), &map()).is_empty());
        assert_eq!(
            unused(&wire(&[]), &map()),
            ["hob-wire: does not use hob-core; remove the arrow"]
        );
    }

    #[test]
    fn a_new_room_says_what_it_may_know() {
        check(
            &[room("hob-attic", &[]), room("hob-core", &["hob-attic"])],
            &[
                "hob-attic: the map of docs/ARCHITECTURE.md does not say what it may know",
                "hob-core: must not know hob-attic (the map of docs/ARCHITECTURE.md)",
            ],
        );
    }

    #[test]
    fn a_crate_stays_without_what_it_exists_to_be_without() {
        check(
            &[room("hob-core", &["tokio", "thiserror"])],
            &["hob-core: must not depend on tokio: the nouns run on no runtime"],
        );
    }
}
