//! Positions in a file, in the form that editors and compilers use.
//! `hob.toml:3:7` can be clicked in most terminals; a byte offset cannot.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

/// `file:line:column`, both counted from 1, the column in characters.
pub(crate) fn of(text: &str, path: &Path, span: Option<Range<usize>>) -> String {
    let mut position = path.display().to_string();
    if let Some(before) = span.and_then(|span| text.get(..span.start)) {
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        // Writing to a String cannot fail.
        let _infallible = write!(position, ":{line}:{column}");
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_in_characters() {
        let text = "a = 1\nü = 2\n";
        let rows =
            [(Some(0..1), "f:1:1"), (Some(6..8), "f:2:1"), (Some(9..10), "f:2:3"), (None, "f")];
        for (span, expected) in rows {
            assert_eq!(of(text, Path::new("f"), span.clone()), expected, "{span:?}");
        }
    }
}
