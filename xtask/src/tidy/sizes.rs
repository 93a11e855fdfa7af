//! A file that is too long to read in one go must be split.
//! Tests and comments count, because they are read, too.

use crate::tree::File;

const LINES_MAX: usize = 600;

pub(crate) fn too_long(files: &[File]) -> Vec<String> {
    let complaint = |file: &File| {
        let lines = file.text.lines().count();
        let is_long = file.is_rust() && lines > LINES_MAX;
        is_long.then(|| format!("{}: {lines} lines (at most {LINES_MAX}): split it", file.path))
    };
    files.iter().filter_map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_must_be_split() {
        let long = File::new("a.rs", &"x\n".repeat(LINES_MAX + 1));
        let short = File::new("b.rs", &"x\n".repeat(LINES_MAX));
        let page = File::new("c.md", &"x\n".repeat(LINES_MAX + 1));
        assert_eq!(too_long(&[long, short, page]), ["a.rs: 601 lines (at most 600): split it"]);
    }
}
