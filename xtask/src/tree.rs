//! The tree as the rules see it: its files and its crates, read once.
//! Rules are functions over this data, so that each can be shown a bad example.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Everything that git keeps or would keep, and what cargo says about the crates.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    pub(crate) crates: Vec<Crate>,
}

/// A file; pictures and sounds have an empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// From the root, with slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A crate of this workspace.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Crate {
    pub(crate) name: String,
    /// All kinds of dependencies: what only tests use is an arrow, too.
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Crate>,
}

impl Tree {
    pub(crate) fn read() -> Result<Tree> {
        Ok(Tree { files: files()?, crates: crates()? })
    }
}

impl File {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }
}

/// The lines of a Rust file before the unit tests at its end. A declaration such as `mod tests;` ends nothing.
pub(crate) fn product_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].contains('{')
    };
    let end = lines.windows(2).position(begins_tests).unwrap_or(lines.len());
    lines.into_iter().take(end)
}

/// The workspace's folder: the one above this crate's.
pub(crate) fn root() -> PathBuf {
    // At run time: a target folder that two checkouts share may hold the other one's build of this.
    #[expect(clippy::disallowed_methods, reason = "cargo tells a program its package this way")]
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = here.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().unwrap_or(&here).to_path_buf()
}

/// What `program` prints when run at the root.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<String> {
    let line = format!("{program} {}", args.join(" "));
    let done = Command::new(program)
        .args(args)
        .current_dir(root())
        .output()
        .with_context(|| format!("`{line}` cannot be started"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "`{line}` failed ({}): {said}", done.status);
    String::from_utf8(done.stdout).with_context(|| format!("`{line}` printed no UTF-8"))
}

/// New files count before they are added, deleted ones no more: the tree as it would be committed.
fn files() -> Result<Vec<File>> {
    let listed = output("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let mut files = Vec::new();
    // Other projects' crates keep their own style.
    let ours = |path: &&str| !path.is_empty() && !path.starts_with("vendor/");
    for path in listed.split('\0').filter(ours) {
        let Ok(bytes) = fs_err::read(root().join(path)) else { continue };
        // A picture has a place that pages link to, and no text for the other rules.
        let text = String::from_utf8(bytes).unwrap_or_default();
        files.push(File { path: path.to_owned(), text });
    }
    ensure!(!files.is_empty(), "git lists no files: tidy looks at a git checkout");
    Ok(files)
}

fn crates() -> Result<Vec<Crate>> {
    let args = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let metadata: Metadata = serde_json::from_str(&output("cargo", &args)?)?;
    Ok(metadata.packages)
}
