//! Every crate takes the workspace's lints, and only two may hold unsafe code or lift its lint.
//! The lints themselves are the compiler's; a crate that does not inherit them is reported here.

use crate::tree::File;

const UNSAFE_LINT: &str = concat!("unsafe", "_code");

/// The keyword by what follows it, so that prose about it and names that contain it are left alone.
const UNSAFE_CODE: [&str; 6] = [
    concat!("unsafe", " {"),
    concat!("unsafe", " fn "),
    concat!("unsafe", " impl"),
    concat!("unsafe", " trait "),
    concat!("unsafe", " extern "),
    concat!("unsafe", "("),
];

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

pub(crate) fn unsafety(files: &[File]) -> Vec<String> {
    let inside = |path: &str| UNSAFE_ROOMS.iter().any(|room| path.starts_with(room));
    let outside = |file: &&File| file.is_rust() && !inside(&file.path);
    let mut complaints = Vec::new();
    for file in files.iter().filter(outside) {
        for (line, number) in file.text.lines().zip(1..) {
            if let Some(what) = breach(line) {
                let rooms = UNSAFE_ROOMS.join(" and ");
                complaints.push(format!("{}:{number}: only {rooms} may {what}", file.path));
            }
        }
    }
    complaints
}

fn breach(line: &str) -> Option<&'static str> {
    if line.contains(UNSAFE_LINT) {
        return Some("lift the lint on unsafe code");
    }
    let code = line.split("//").next().unwrap_or_default();
    UNSAFE_CODE.iter().any(|keyword| holds(code, keyword)).then_some("hold unsafe code")
}

/// As a word of its own: not as the end of a longer name.
fn holds(code: &str, keyword: &str) -> bool {
    code.match_indices(keyword).any(|(at, _)| {
        !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
    })
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
        let lifted = format!("#![expect({UNSAFE_LINT}, reason = \"faster\")]\n");
        let rows = [
            ("crates/hob-engines/src/lib.rs", true),
            ("crates/hob-server/src/lib.rs", false),
            ("xtask/src/main.rs", false),
        ];
        for (path, fine) in rows {
            assert_eq!(unsafety(&[File::new(path, &lifted)]).is_empty(), fine, "{path}");
        }
    }

    #[test]
    fn only_one_room_may_hold_the_code() {
        let rows = [
            ("let a = un!safe { b() };", true),
            ("pub un!safe fn a() {}", true),
            ("un!safe impl Send for A {}", true),
            ("#[un!safe(no_mangle)]", true),
            ("// un!safe { a() }", false),
            ("let not_un!safe = 1;", false),
            ("fn not_un!safe(a: u8) {}", false),
            ("is it un!safe to ask?", false),
        ];
        for (line, is_code) in rows {
            let text = line.replace('!', "");
            let outside = unsafety(&[File::new("crates/hob-wire/src/a.rs", &text)]);
            let what = "crates/hob-wire/src/a.rs:1: only crates/hob-engines/ and crates/hob-kernels/ may hold unsafe code";
            assert_eq!(outside, if is_code { vec![what] } else { vec![] }, "{line}");
            assert!(unsafety(&[File::new("crates/hob-engines/src/a.rs", &text)]).is_empty());
        }
    }
}
