//! Finds import circles between the files of one folder: a file that imports one which imports it back.
//! A file and the folder of its name are one module. A module and those inside it may know each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::File;

/// The path of a module in its crate: `["chat", "worker"]`. The crate's root has an empty path.
type ModulePath = Vec<String>;

/// Which name imports which, of one folder.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// A name may lead to another name this often.
const STEPS_MAX: usize = 8;

/// The end of a path to all names of a module.
const ALL: &str = "*";

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<String, Modules> = BTreeMap::new();
    for file in files {
        if let Some((name, module)) = crate_and_module(&file.path) {
            crates.entry(name).or_default().add(module, file);
        }
    }
    let mut complaints = Vec::new();
    for (name, modules) in &crates {
        for (folder, imports) in modules.imports_by_folder() {
            let circles = circles(&imports);
            if !circles.is_empty() {
                let place = [vec![format!("crates/{name}")], folder].concat().join("/");
                let shown: Vec<String> = circles.iter().map(join).collect();
                let shown = shown.join("; ");
                complaints.push(format!("{place}: modules import each other in a circle: {shown}"));
            }
        }
    }
    complaints
}

fn join(modules: &BTreeSet<String>) -> String {
    modules.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// `crates/NAME/src/MODULE…rs`; tests are left out, because they may import what they test.
fn crate_and_module(path: &str) -> Option<(String, ModulePath)> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let parts: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
    let is_test = parts.iter().any(|part| *part == "tests" || part.ends_with("_tests"));
    let is_root = matches!(parts[..], ["lib" | "main"]);
    let module = if is_root { Vec::new() } else { parts.into_iter().map(str::to_owned).collect() };
    (!is_test).then(|| (name.to_owned(), module))
}

/// The modules of one crate, and what their files mention.
#[derive(Default)]
struct Modules {
    /// Files and folders.
    known: BTreeSet<ModulePath>,
    /// Names that stand for something in another module, by the module that imports them.
    names: BTreeMap<(ModulePath, String), Mention>,
    /// Modules of which another module imports all names.
    globs: BTreeMap<ModulePath, Vec<Mention>>,
    declared: BTreeSet<(ModulePath, String)>,
    mentions: Vec<(ModulePath, Mention)>,
}

/// A path as it is written, such as `["super", "parts", "cut"]`.
type Mention = Vec<String>;

impl Modules {
    fn add(&mut self, module: ModulePath, file: &File) {
        self.known.extend((0..=module.len()).map(|length| module[..length].to_vec()));
        let code = code(&file.text);
        let tokens = tokens(&code);
        for (at, token) in tokens.iter().enumerate() {
            let mut found = Vec::new();
            if *token == "use" {
                read_tree(&tokens[at + 1..], &[], &mut found);
                found.into_iter().for_each(|path| self.add_import(&module, path));
            } else if is_anchor(token)
                && tokens.get(at + 1) == Some(&"::")
                && !is_within(&tokens, at)
            {
                read_tree(&tokens[at..], &[], &mut found);
                self.mentions.extend(found.into_iter().map(|path| (module.clone(), path)));
            } else if declares(token)
                && let Some(name) = tokens.get(at + 1)
            {
                self.declared.insert((module.clone(), (*name).to_owned()));
            }
        }
    }

    fn add_import(&mut self, module: &[String], mut path: Mention) {
        match path.last().cloned() {
            Some(name) if name == ALL => {
                path.pop();
                self.globs.entry(module.to_vec()).or_default().push(path);
            }
            Some(name) => {
                self.names.insert((module.to_vec(), name), path);
            }
            None => {}
        }
    }

    /// For each folder, which of the modules in it imports which.
    fn imports_by_folder(&self) -> BTreeMap<ModulePath, Imports> {
        let mut folders: BTreeMap<ModulePath, Imports> = BTreeMap::new();
        for (module, mention) in &self.mentions {
            let path = self.absolute(module, mention);
            let Some(target) = path.and_then(|path| self.module_of(&path, STEPS_MAX)) else {
                continue;
            };
            let shared = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
            // Without a name of its own there, one is inside the other.
            if let (Some(from), Some(to)) = (module.get(shared), target.get(shared)) {
                let imports = folders.entry(module[..shared].to_vec()).or_default();
                imports.entry(from.clone()).or_default().insert(to.clone());
            }
        }
        folders
    }

    /// The path from the crate's root. `None` if it leads into another crate.
    fn absolute(&self, module: &[String], mention: &[String]) -> Option<ModulePath> {
        let (first, rest) = mention.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let above = module.split_last()?.1;
                let is_higher = rest.first().is_some_and(|next| next == "super");
                if is_higher { self.absolute(above, rest) } else { Some([above, rest].concat()) }
            }
            name => {
                let mut own = module.to_vec();
                own.push(name.to_owned());
                self.known.contains(&own).then(|| [module, mention].concat())
            }
        }
    }

    /// The module in which the thing at a path is declared: a name that a module hands on leads to the next module.
    fn module_of(&self, path: &[String], steps: usize) -> Option<ModulePath> {
        let length = (0..=path.len()).rev().find(|length| self.known.contains(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        let handed_on = rest.first().filter(|_| steps > 0).and_then(|name| {
            let next = [self.origin(module, name)?, rest[1..].to_vec()].concat();
            self.module_of(&next, steps - 1)
        });
        Some(handed_on.unwrap_or_else(|| module.to_vec()))
    }

    /// The path of a name that a module imports.
    fn origin(&self, module: &[String], name: &str) -> Option<ModulePath> {
        let key = (module.to_vec(), name.to_owned());
        if let Some(mention) = self.names.get(&key) {
            return self.absolute(module, mention);
        }
        let globs = self.globs.get(module).filter(|_| !self.declared.contains(&key))?;
        let mut sources = globs.iter().filter_map(|mention| self.absolute(module, mention));
        let source = sources.find(|source| {
            let there = (source.clone(), name.to_owned());
            self.declared.contains(&there) || self.names.contains_key(&there)
        });
        Some([source?, vec![name.to_owned()]].concat())
    }
}

/// The text without comments and without the unit tests at its end.
fn code(text: &str) -> String {
    let lines = crate::tree::product_lines(text);
    lines.map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Words, `::`, and single characters; no white space.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            ':' if rest.starts_with("::") => 2,
            first if is_inner(first) => rest.find(|c: char| !is_inner(c)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

fn is_inner(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_anchor(token: &str) -> bool {
    matches!(token, "crate" | "super" | "self")
}

fn declares(token: &str) -> bool {
    matches!(token, "const" | "enum" | "fn" | "static" | "struct" | "trait" | "type" | "union")
}

/// Whether a path goes on here: the second `super` of `super::super` begins none.
fn is_within(tokens: &[&str], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| tokens[before] == "::")
}

/// Reads the paths that begin here: `a::{b, c::*}` gives `a::b` and `a::c::*`. Returns the number of tokens.
fn read_tree(tokens: &[&str], before: &[String], found: &mut Vec<Mention>) -> usize {
    let mut path = before.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if *token == "{" {
            return at + read_group(&tokens[at..], &path, found);
        }
        if *token == ALL {
            path.push(ALL.to_owned());
            found.push(path);
            return at + 1;
        }
        if !token.starts_with(is_inner) {
            break;
        }
        // `a::{self}` is `a`.
        if *token != "self" || path.is_empty() {
            path.push((*token).to_owned());
        }
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    if path.len() > before.len() || at > 0 {
        found.push(path);
    }
    at
}

/// Reads what stands in braces, from the opening one to the closing one.
fn read_group(tokens: &[&str], before: &[String], found: &mut Vec<Mention>) -> usize {
    let mut at = 1;
    while let Some(token) = tokens.get(at) {
        match *token {
            "}" => return at + 1,
            "," => at += 1,
            // The new name of an import is of no importance.
            "as" => at += 2,
            _ => at += read_tree(&tokens[at..], before, found).max(1),
        }
    }
    at
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
    fn files_of_one_folder_are_checked_too() {
        let circle = "crates/x/a: modules import each other in a circle: b, c";
        let b = ("a/b.rs", "use super::c::{self as other, C};");
        check(&[b, ("a/c.rs", "fn f() { super::b::g() }")], &[circle]);
        check(&[b, ("a/c/deep.rs", "use super::super::b::B;")], &[circle]);
        check(&[b, ("a/c.rs", "use crate::a::b::B;")], &[circle]);
        check(&[b, ("a/c.rs", "use super::d::D;"), ("a/d.rs", "")], &[]);
    }

    #[test]
    fn a_module_and_those_inside_it_may_know_each_other() {
        check(&[("a.rs", "mod b;\nuse b::B;"), ("a/b.rs", "use super::A;")], &[]);
    }

    #[test]
    fn a_name_that_is_handed_on_leads_to_its_module() {
        let root = ("lib.rs", "pub use b::{B, Other};\npub use a::A;");
        let circle = "crates/x: modules import each other in a circle: a, b";
        check(&[root, ("a.rs", "use crate::B;"), ("b.rs", "use crate::A;")], &[circle]);
        let parent = ("a.rs", "pub use b::B;");
        let circle = "crates/x/a: modules import each other in a circle: b, c";
        check(&[parent, ("a/b.rs", "use super::c::C;"), ("a/c.rs", "use super::B;")], &[circle]);
        let (parent, b) =
            (("a.rs", "pub use b::*;"), ("a/b.rs", "use super::c::C;\npub struct B;"));
        check(&[parent, b, ("a/c.rs", "use super::B;")], &[circle]);
        check(&[parent, b, ("a/c.rs", "use super::Other;")], &[]);
    }

    #[test]
    fn tests_and_comments_are_no_imports() {
        let tests = "#[cfg(test)]\nmod tests { use crate::a::A; }";
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", tests)], &[]);
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "// crate::a")], &[]);
        check(&[("a.rs", "use crate::b::B;"), ("b/tests.rs", "use crate::a::A;")], &[]);
        let circle = "crates/x: modules import each other in a circle: a, b";
        let early = "#[cfg(test)]\nmod tests;\nuse crate::a::A;";
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", early)], &[circle]);
    }
}
