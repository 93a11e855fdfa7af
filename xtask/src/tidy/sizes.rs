//! A file that is too long to read in one go must be split, or be listed here with the reason why it stays long.
//! A file on the list that is no longer too long is reported, too.

use crate::tree::File;

/// Lines, tests and comments included.
const LINES_MAX: usize = 600;

/// A file over the limit, and why it stays.
pub(crate) const LONG_FILES: [(&str, &str); 0] = [];

pub(crate) fn too_long(files: &[File], long: &[(&str, &str)]) -> Vec<String> {
    let listed = |path: &str| long.iter().any(|(known, _)| *known == path);
    let is_long = |file: &&File| file.is_rust() && file.text.lines().count() > LINES_MAX;
    let too_long_files = files.iter().filter(is_long).filter(|file| !listed(&file.path)).map(|file| {
        let lines = file.text.lines().count();
        format!("{}: {lines} lines (at most {LINES_MAX}): split it, or list it in LONG_FILES with a reason", file.path)
    });
    let unneeded_entries = long
        .iter()
        .filter(|(path, _)| !files.iter().filter(is_long).any(|file| file.path == *path))
        .map(|(path, _)| format!("{path}: no longer long; remove it from LONG_FILES"));
    too_long_files.chain(unneeded_entries).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_needs_a_reason_and_a_reason_needs_a_long_file() {
        let long = File::new("a.rs", &"x\n".repeat(LINES_MAX + 1));
        let short = File::new("a.rs", &"x\n".repeat(LINES_MAX));
        let page = File::new("a.md", &"x\n".repeat(LINES_MAX + 1));
        let reason = [("a.rs", "a table of the alphabet")];

        let check = |file: &File, list: &[(&str, &str)], expected: &[&str]| {
            assert_eq!(too_long(std::slice::from_ref(file), list), expected);
        };
        check(&short, &[], &[]);
        check(&page, &[], &[]);
        check(
            &long,
            &[],
            &["a.rs: 601 lines (at most 600): split it, or list it in LONG_FILES with a reason"],
        );
        check(&long, &reason, &[]);
        check(&short, &reason, &["a.rs: no longer long; remove it from LONG_FILES"]);
    }
}
