//! The reference pages that are written by the program they describe: `hob docs PAGE` prints one.
//! They are committed, so that they can be read without building, and checked, so that they are true.

use std::path::Path;

use anyhow::{Context, Result};

use crate::tree::{output, root};

/// Each is `docs/reference/PAGE.md`.
const PAGES: [&str; 5] = ["api", "cli", "config", "record", "plan"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    Check,
}

/// Writes the pages, or complains about each that is not what would be written.
/// `hob` prints them; without it, cargo builds and runs one.
pub(crate) fn pages(mode: Mode, hob: Option<&Path>) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for page in PAGES {
        let place = format!("docs/reference/{page}.md");
        let file = root().join(&place);
        let said = match hob {
            Some(hob) => output(&hob.to_string_lossy(), &["docs", page])?,
            None => output("cargo", &["run", "--quiet", "--package", "hob", "--", "docs", page])?,
        };
        match mode {
            Mode::Write => fs_err::write(&file, said).context("a page cannot be written")?,
            Mode::Check => {
                let kept = fs_err::read_to_string(&file).unwrap_or_default();
                complaints.extend(stale(&place, &kept, &said));
            }
        }
    }
    Ok(complaints)
}

/// Names the first line that differs.
fn stale(place: &str, kept: &str, said: &str) -> Option<String> {
    if kept == said {
        return None;
    }
    let same = kept.lines().zip(said.lines()).take_while(|(kept, said)| kept == said).count();
    let line = same + 1;
    Some(format!("{place}:{line}: not what `hob docs` prints; run `make docs` and commit it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_stale_from_the_first_line_that_differs() {
        let stale_at = |line| {
            Some(format!("p.md:{line}: not what `hob docs` prints; run `make docs` and commit it"))
        };
        let rows = [
            ("a\nb\n", "a\nb\n", None),
            ("a\nb\n", "a\nc\n", stale_at(2)),
            ("a\n", "a\nb\n", stale_at(2)),
            ("", "a\n", stale_at(1)),
            ("a\nb", "a\nb\n", stale_at(3)),
        ];
        for (kept, said, expected) in rows {
            assert_eq!(stale("p.md", kept, said), expected, "{kept:?} against {said:?}");
        }
    }
}
