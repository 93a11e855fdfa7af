//! Notes the commit that is built, for records of benchmarks. Without git, or outside of a repository, it notes nothing.
//! The sources are watched, because a change beyond the commit is noted, too.

use std::process::Command;

fn main() {
    for place in ["../../.git/HEAD", "../../.git/index", "../../crates", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={place}");
    }
    let commit = said(&["rev-parse", "HEAD"]).unwrap_or_default();
    let changes = said(&["status", "--porcelain", "--", "../../crates", "../../Cargo.lock"]);
    println!("cargo::rustc-env=HOB_BUILT_FROM={commit}");
    println!(
        "cargo::rustc-env=HOB_BUILT_DIRTY={}",
        changes.is_none_or(|changes| !changes.is_empty())
    );
}

/// None where git is missing or knows nothing here.
fn said(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok().filter(|o| o.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
