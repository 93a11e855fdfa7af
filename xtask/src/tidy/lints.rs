//! Every crate takes the workspace's lints, only two may lift the one on unsafe code, and no test is ignored.
//! The lints themselves are the compiler's; a crate that does not inherit them is reported here.

use crate::tree::File;

const UNSAFE_LINT: &str = concat!("unsafe", "_code");

/// What makes cargo skip a test.
const IGNORED: &str = "#[ignore";

const UNSAFE_ROOMS: [&str; 2] = ["crates/hob-engines/", "crates/hob-kernels/"];

pub(crate) fn inherited(files: &[File]) -> Vec<String> {
    let leaves = |file: &&File| is_crate_manifest(&file.path) && !inherits(&file.text);
    files
        .iter()
        .filter(leaves)
        .map(|file| format!("{}: add `[lints]` with `workspace = true`", file.path))
        .collect()
}

fn is_crate_manifest(path: &str) -> bool {
    path.ends_with("/Cargo.toml")
}

fn inherits(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.find(|line| !line.is_empty()).is_some_and(|line| line == "workspace = true")
}

pub(crate) fn lifted(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let is_outside = !UNSAFE_ROOMS.iter().any(|room| file.path.starts_with(room));
        for (line, number) in file.text.lines().zip(1..) {
            let place = format!("{}:{number}", file.path);
            if is_outside && line.contains(UNSAFE_LINT) {
                let rooms = UNSAFE_ROOMS.join(" and ");
                complaints.push(format!("{place}: only {rooms} may lift the lint on unsafe code"));
            }
            if line.trim_start().starts_with(IGNORED) {
                complaints.push(format!("{place}: tests are not ignored"));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_takes_the_lints_of_the_workspace() {
        let rows = [
            ("crates/a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n", true),
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n", false),
            ("crates/a/Cargo.toml", "[lints.rust]\ndead_code = \"allow\"\n", false),
            ("crates/a/Cargo.toml", "[lints]\n[dependencies]\nworkspace = true\n", false),
            ("Cargo.toml", "[workspace]\n", true),
        ];
        for (path, text, takes) in rows {
            assert_eq!(inherited(&[File::new(path, text)]).is_empty(), takes, "{path}: {text}");
        }
    }

    #[test]
    fn only_one_room_may_lift_the_lint() {
        let text = format!("#![expect({UNSAFE_LINT}, reason = \"faster\")]\n");
        let rows = [
            ("crates/hob-engines/src/lib.rs", true),
            ("crates/hob-server/src/lib.rs", false),
            ("xtask/src/main.rs", false),
        ];
        for (path, fine) in rows {
            assert_eq!(lifted(&[File::new(path, &text)]).is_empty(), fine, "{path}");
        }
    }

    #[test]
    fn no_test_is_ignored() {
        let check = |text: &str| lifted(&[File::new("a.rs", text)]);
        assert_eq!(check("fn a() {}\n    #[ignore]\n"), ["a.rs:2: tests are not ignored"]);
        assert_eq!(check("#[ignore = \"slow\"]\n").len(), 1);
        assert!(check("// #[ignore]\n").is_empty());
    }
}
