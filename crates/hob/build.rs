//! Notes the commit that is built, for records of benchmarks. Without git, or outside a repository, it notes nothing.
//! The sources are watched too, because a change after the commit is also noted.

use std::process::Command;

fn main() {
    for path in ["../../crates", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    // Git adds a line to this file with each commit and checkout. It rewrites `.git/index` far more often: a watch
    // on that file would compile this crate again for nothing. In a linked worktree the file is elsewhere.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_default();
    let changes = git(&["status", "--porcelain", "--", "../../crates", "../../Cargo.lock"]);
    println!("cargo::rustc-env=HOB_BUILT_FROM={commit}");
    println!(
        "cargo::rustc-env=HOB_BUILT_DIRTY={}",
        changes.is_none_or(|changes| !changes.is_empty())
    );
}

/// What a git command printed. None if git is missing or fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
