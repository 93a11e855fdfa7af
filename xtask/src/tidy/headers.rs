//! Every Rust file says in its first two lines what it is, and why or what is absent.
//! So a reader knows after two lines whether the file is the right one.

use crate::tree::File;

/// Lines that a file opens with: what it is, and, outside tests and the like, why.
const LINES: usize = 2;

pub(crate) fn missing_headers(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| file.is_rust()).filter_map(missing_header).collect()
}

fn missing_header(file: &File) -> Option<String> {
    let wanted = if needs_no_reason(&file.path) { 1 } else { LINES };
    let said = file.text.lines().take_while(|line| line.starts_with("//!"));
    let said = said.filter(|line| says_something(line)).count();
    (said < wanted).then(|| match wanted {
        1 => format!("{}:1: start the file with a `//!` line that says what it is", file.path),
        _ => format!(
            "{}:1: start the file with two `//!` lines that say what it is, and why",
            file.path
        ),
    })
}

/// Tests, examples and a program's `main.rs` are there because of something else, which says why.
fn needs_no_reason(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| matches!(part, "tests" | "examples" | "benches" | "tests.rs" | "main.rs"))
}

fn says_something(line: &str) -> bool {
    line.strip_prefix("//!").is_some_and(|words| !words.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, well: bool) {
        let complaints = missing_headers(&[File::new(path, text)]);
        assert_eq!(complaints.is_empty(), well, "{path}: {text:?}");
    }

    #[test]
    fn two_lines_that_say_something() {
        let rows = [
            ("//! The nouns.\n//! No I/O.\n\nuse x;\n", true),
            ("//! The nouns.\n//! No I/O.\n//! More.\n", true),
            ("//! The nouns.\n//!\n//! No I/O.\n", true),
            ("//! The nouns.\n\nuse x;\n", false),
            ("//! The nouns.\n//!\n", false),
            ("// The nouns.\n// No I/O.\n", false),
            ("fn main() {}\n", false),
            ("", false),
        ];
        for (text, well) in rows {
            check("crates/hob-core/src/a.rs", text, well);
            check("crates/hob-core/a.md", text, true);
        }
    }

    #[test]
    fn one_line_is_enough_where_something_else_says_why() {
        let rows = [
            ("crates/a/tests/http/model.rs", true),
            ("crates/a/src/reader/tests.rs", true),
            ("crates/a/examples/worker.rs", true),
            ("crates/a/src/main.rs", true),
            ("crates/a/src/domain.rs", false),
            ("crates/a/src/latests/b.rs", false),
        ];
        for (path, well) in rows {
            check(path, "//! What it is.\n\nuse x;\n", well);
            check(path, "use x;\n", false);
        }
    }
}
