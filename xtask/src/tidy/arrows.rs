//! Which crate may know which: the arrows of docs/ARCHITECTURE.md, and what a crate exists to be
//! without. A crate that is not listed here does not build past the tidy test.

use crate::tree::Crate;

/// A crate and the crates of this workspace that it may depend on.
const ARROWS: [(&str, &[&str]); 15] = [
    ("hob-core", &[]),
    ("hob-wire", &["hob-core"]),
    // It asks the system: docs/decisions/0012-a-crate-of-its-own-probes-the-machine.md.
    ("hob-machine", &["hob-core"]),
    ("hob-kernels", &[]),
    ("hob-models", &["hob-core"]),
    ("hob-speech", &["hob-core"]),
    ("hob-agents", &["hob-core"]),
    // A state machine without I/O, which the server drives.
    ("hob-voice", &["hob-core"]),
    // Tasks and checkers, which the benchmarks drive.
    ("hob-eval", &["hob-core"]),
    ("hob-upstream", &["hob-core", "hob-wire"]),
    // Only its tests know hob-voice: clips of turn taking go through a whole session.
    ("hob-engines", &["hob-core", "hob-kernels", "hob-models", "hob-speech", "hob-voice"]),
    ("hob-bench", &["hob-core", "hob-wire", "hob-machine", "hob-eval"]),
    // It encodes: docs/decisions/0001-the-server-encodes-audio.md.
    ("hob-server", &["hob-core", "hob-wire", "hob-speech", "hob-voice"]),
    (
        "hob",
        &[
            "hob-core",
            "hob-wire",
            "hob-machine",
            "hob-models",
            "hob-speech",
            "hob-agents",
            "hob-eval",
            "hob-upstream",
            "hob-engines",
            "hob-bench",
            "hob-server",
        ],
    ),
    ("xtask", &[]),
];

/// A crate, a dependency that it must do without, and why.
const STRANGERS: [(&str, &str, &str); 24] = [
    (
        "hob-core",
        "serde_json",
        "it may derive serde, but reading and writing JSON is the work of hob-wire",
    ),
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

/// Complains about crates of this workspace that know one they should not.
pub(crate) fn rooms(crates: &[Crate]) -> Vec<String> {
    crates.iter().flat_map(|room| room_complaints(room, crates)).collect()
}

fn room_complaints(room: &Crate, crates: &[Crate]) -> Vec<String> {
    let name = &room.name;
    let Some((_, allowed)) = ARROWS.iter().find(|(listed, _)| listed == name) else {
        return vec![format!("{name}: xtask/src/tidy/arrows.rs does not say what it may know")];
    };
    let is_room = |other: &str| {
        crates.iter().any(|room| room.name == other)
            || ARROWS.iter().any(|(name, _)| *name == other)
    };
    let named = room.dependencies.iter().map(|dependency| dependency.name.as_str());
    named
        .filter(|other| is_room(other) && !allowed.contains(other))
        .map(|other| format!("{name}: must not know {other} (the arrows of docs/ARCHITECTURE.md)"))
        .collect()
}

/// Complains about allowed arrows that no crate uses: such a rule protects nothing.
pub(crate) fn unused(crates: &[Crate]) -> Vec<String> {
    let exists = |name: &str| crates.iter().any(|room| room.name == name);
    let uses = |room: &Crate, other: &str| room.dependencies.iter().any(|used| used.name == other);
    let allowed =
        |name: &str| ARROWS.iter().find(|(listed, _)| *listed == name).map(|(_, all)| *all);
    let unused = |room: &'_ Crate| {
        let others = allowed(&room.name).unwrap_or_default().iter();
        let idle = others.filter(|other| exists(other) && !uses(room, other));
        idle.map(|other| format!("{}: does not use {other}; remove the arrow", room.name))
            .collect::<Vec<_>>()
    };
    crates.iter().flat_map(unused).collect()
}

/// Complains about dependencies from outside that a crate exists to be without.
pub(crate) fn strangers(crates: &[Crate]) -> Vec<String> {
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

    fn check(crates: &[Crate], expected: &[&str]) {
        assert_eq!([rooms(crates), strangers(crates)].concat(), expected);
    }

    #[test]
    fn arrows_point_one_way() {
        check(&[room("hob-server", &["hob-wire", "axum"]), room("hob-wire", &["hob-core"])], &[]);
        check(
            &[room("hob-wire", &["hob-server"])],
            &["hob-wire: must not know hob-server (the arrows of docs/ARCHITECTURE.md)"],
        );
        check(
            &[room("hob-server", &["hob-engines"])],
            &["hob-server: must not know hob-engines (the arrows of docs/ARCHITECTURE.md)"],
        );
    }

    #[test]
    fn decided_arrows_only_point_at_listed_rooms_and_never_round() {
        for (at, (name, allowed)) in ARROWS.iter().enumerate() {
            let earlier: Vec<&str> = ARROWS[..at].iter().map(|(name, _)| *name).collect();
            for other in *allowed {
                assert!(earlier.contains(other), "{name} may know {other}, which comes later");
            }
        }
    }

    #[test]
    fn an_arrow_that_no_crate_uses_is_removed() {
        let wire = |uses: &[&str]| [room("hob-wire", uses), room("hob-core", &[])];
        assert!(unused(&wire(&["hob-core"])).is_empty());
        assert_eq!(unused(&wire(&[])), ["hob-wire: does not use hob-core; remove the arrow"]);
    }

    #[test]
    fn a_new_room_says_what_it_may_know() {
        check(
            &[room("hob-attic", &[]), room("hob-core", &["hob-attic"])],
            &[
                "hob-attic: xtask/src/tidy/arrows.rs does not say what it may know",
                "hob-core: must not know hob-attic (the arrows of docs/ARCHITECTURE.md)",
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
