//! Finds import circles between the modules of one crate: a module that imports one which imports it back.
//! A module here is a file of `src/` together with the folder of its name; what happens inside it is its own matter.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::File;

type Imports = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, imports) in imports_of_crates(files) {
        let circles = circles(&imports);
        if !circles.is_empty() {
            let shown: Vec<String> = circles.iter().map(join).collect();
            let shown = shown.join("; ");
            complaints
                .push(format!("crates/{name}: modules import each other in a circle: {shown}"));
        }
    }
    complaints
}

fn join(modules: &BTreeSet<String>) -> String {
    modules.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// For each crate, which module imports which.
fn imports_of_crates(files: &[File]) -> BTreeMap<String, Imports> {
    let mut crates: BTreeMap<String, Vec<(String, &File)>> = BTreeMap::new();
    for file in files {
        if let Some((name, module)) = crate_and_module(&file.path) {
            crates.entry(name).or_default().push((module, file));
        }
    }
    crates.into_iter().map(|(name, files)| (name, imports(&files))).collect()
}

/// `crates/NAME/src/MODULE…rs`; tests are left out, because they may import what they test.
fn crate_and_module(path: &str) -> Option<(String, String)> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_test = inside.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
    let module = inside.strip_suffix(".rs")?.split('/').next()?;
    (!is_test).then(|| (name.to_owned(), module.to_owned()))
}

fn imports(files: &[(String, &File)]) -> Imports {
    let is_root = |module: &str| matches!(module, "lib" | "main");
    let modules: BTreeSet<&str> =
        files.iter().map(|(module, _)| module.as_str()).filter(|module| !is_root(module)).collect();
    let exports: BTreeMap<String, String> = files
        .iter()
        .filter(|(module, _)| is_root(module))
        .flat_map(|(_, file)| exports(&file.text, &modules))
        .collect();
    let mut imports = Imports::new();
    for (module, file) in files.iter().filter(|(module, _)| !is_root(module)) {
        for name in crate_names(&code(&file.text)) {
            let target = modules.get(name.as_str()).map(|module| (*module).to_owned());
            let target = target.or_else(|| exports.get(&name).cloned());
            if let Some(target) = target.filter(|target| target != module) {
                imports.entry(module.clone()).or_default().insert(target);
            }
        }
    }
    imports
}

/// The text without comments and without the unit tests at its end.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    body.lines().map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Names that the crate's root hands on from its modules: `pub use module::{Name, Other};`.
fn exports(root: &str, modules: &BTreeSet<&str>) -> Vec<(String, String)> {
    let root = code(root);
    let statements = root.split(';').filter_map(|part| part.split_once("pub use ").map(|(_, s)| s));
    let paths = statements.filter_map(|statement| {
        let statement = statement.trim_start_matches("self::").trim_start_matches("crate::");
        statement.split_once("::").filter(|(module, _)| modules.contains(module))
    });
    paths
        .flat_map(|(module, names)| words(names).map(|name| (name.to_owned(), module.to_owned())))
        .collect()
}

/// What follows `crate::`, singly or in braces.
fn crate_names(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        let rest = &code[at + found.len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(first_names(group)),
            None => names.extend(words(rest).next().map(str::to_owned)),
        }
    }
    names
}

/// The first word of each item of a `{…}` group, whose opening brace is gone already.
fn first_names(group: &str) -> Vec<String> {
    let (mut depth, mut items) = (0_usize, vec![String::new()]);
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            c if depth == 0 => items.last_mut().into_iter().for_each(|item| item.push(c)),
            _ => {}
        }
    }
    items.iter().filter_map(|item| words(item).next().map(str::to_owned)).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Groups of modules that reach each other; a module alone is not a circle.
fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|module| (module, reachable(module, imports))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (module, reached) in &reach {
        if !reached.contains(*module) || found.iter().any(|circle| circle.contains(*module)) {
            continue;
        }
        let back = |other: &&String| reach.get(other).is_some_and(|all| all.contains(*module));
        found.push(reached.iter().filter(back).cloned().collect());
    }
    found
}

fn reachable(from: &str, imports: &Imports) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<File> = files
            .iter()
            .map(|(name, text)| File::new(&format!("crates/x/src/{name}"), text))
            .collect();
        assert_eq!(complaints(&files), expected);
    }

    #[test]
    fn two_modules_that_import_each_other_are_a_circle() {
        let circle = "crates/x: modules import each other in a circle: a, b";
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")], &[circle]);
        check(&[("a.rs", "use crate::{c, b::{B, D}};"), ("b/deep.rs", "crate::a::f()")], &[circle]);
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "")], &[]);
    }

    #[test]
    fn a_name_of_the_root_leads_to_its_module() {
        let root = ("lib.rs", "pub use b::{B, Other};\npub use a::A;");
        let circle = "crates/x: modules import each other in a circle: a, b";
        check(&[root, ("a.rs", "use crate::B;"), ("b.rs", "use crate::A;")], &[circle]);
    }

    #[test]
    fn tests_and_comments_are_no_imports() {
        let tests = "#[cfg(test)]\nmod tests { use crate::a::A; }";
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", tests)], &[]);
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "// crate::a")], &[]);
        check(&[("a.rs", "use crate::b::B;"), ("b/tests.rs", "use crate::a::A;")], &[]);
    }
}
