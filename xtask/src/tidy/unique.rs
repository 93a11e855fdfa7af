//! One name means one thing: no two public types of one name in different crates, no file name that says nothing.
//! A search for a name then leads to one place.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::File;

/// Files with these names say nothing about what is in them.
const EMPTY_NAMES: [&str; 12] = [
    "answer", "asking", "common", "handler", "helpers", "kept", "manager", "misc", "told", "util",
    "utils", "written",
];

const KINDS: [&str; 4] = ["pub struct ", "pub enum ", "pub trait ", "pub type "];

pub(crate) fn shared_types(files: &[File]) -> Vec<String> {
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some((name, _)) =
            file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        for declared in declared(&file.text) {
            places.entry(declared).or_default().insert(name);
        }
    }
    let shared = places.into_iter().filter(|(_, crates)| crates.len() > 1);
    shared
        .map(|(name, crates)| {
            let crates: Vec<&str> = crates.into_iter().collect();
            format!("{name}: a public type of {}; give each its own name", crates.join(" and "))
        })
        .collect()
}

/// Public types at the level of a file, also those that a macro such as `enum_table!` declares there, which are indented.
/// Those that are `pub(crate)` or in the module of the tests do not count.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().take_while(|line| *line != "mod tests {");
    lines.filter_map(|line| {
        let line = line.trim_start();
        let rest = KINDS.iter().find_map(|kind| line.strip_prefix(kind))?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

pub(crate) fn empty_names(files: &[File]) -> Vec<String> {
    let is_empty = |file: &&File| {
        let name = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
        name.is_some_and(|name| EMPTY_NAMES.contains(&name))
    };
    let complaint = |file: &File| format!("{}: name the file after the thing in it", file.path);
    files.iter().filter(is_empty).map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_type_has_a_name_of_its_own() {
        let check = |first: &str, second: &str, expected: &[&str]| {
            let files =
                [File::new("crates/a/src/x.rs", first), File::new("crates/b/src/y.rs", second)];
            assert_eq!(shared_types(&files), expected, "{first} {second}");
        };
        let complaint = "Plan: a public type of a and b; give each its own name";
        check("pub struct Plan {", "pub enum Plan {", &[complaint]);
        check("pub struct Plan {", "pub(crate) struct Plan {", &[]);
        check("pub struct Plan {", "pub struct BenchPlan {", &[]);
        check("pub struct Plan;", "#[cfg(test)]\nmod tests {\n    pub struct Plan;\n}", &[]);
        check("pub struct Plan {", "#[cfg(test)]\nmod tests;\npub enum Plan {", &[complaint]);
        check("pub struct Plan {", "enum_table! {\n    pub enum Plan: name {", &[complaint]);
        check("pub struct Plan {", "    pub enum Plan: name { $($row)+ }", &[complaint]);
    }

    #[test]
    fn a_file_is_named_after_its_content() {
        let files =
            [File::new("crates/a/src/utils.rs", ""), File::new("crates/a/src/encoder.rs", "")];
        assert_eq!(
            empty_names(&files),
            ["crates/a/src/utils.rs: name the file after the thing in it"]
        );
    }
}
