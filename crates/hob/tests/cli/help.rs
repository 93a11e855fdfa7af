//! Help texts that a new user understands, and input that is rejected before anything runs.

use crate::User;

#[test]
fn every_verb_explains_itself() {
    let rows: [(&str, &[&str]); 14] = [
        ("--help", &["serve", "chat", "say", "pull", "models", "doctor", "config", "Exit codes:"]),
        ("serve --help", &["--listen", "127.0.0.1:8484", "--allow-remote", "Examples:"]),
        ("say --help", &["--voice", "--format", "--output", "--server", "Examples:"]),
        ("chat --help", &["--system", "--model", "--effort", "--schema", "Examples:"]),
        ("ps --help", &["--server", "--json"]),
        ("load --help", &["--keep-alive", "Examples:"]),
        ("unload --help", &["--server"]),
        ("pull --help", &["--from", "--dry-run", "Examples:"]),
        ("models --help", &["--json", "rm"]),
        ("models rm --help", &["--yes"]),
        ("doctor --help", &["--json", "exit code is 7"]),
        ("config --help", &["check", "schema", "print", "Examples:"]),
        ("say -h", &["Usage: hob say"]),
        ("eval --help", &["The seed of the items; another one makes others [default: 1]"]),
    ];
    let user = User::new();
    for (args, expected) in rows {
        let text = user.prints(args);
        for part in expected {
            assert!(text.contains(part), "{args:?} does not say {part:?}:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{args:?}:\n{text}");
    }
}

#[test]
fn hidden_verbs_are_not_advertised() {
    let text = User::new().prints("--help");
    assert!(!text.contains("worker") && !text.contains("docs"), "{text}");
}

#[test]
fn a_mistyped_command_exits_with_2() {
    let rows: [(&str, &str); 9] = [
        ("", "Usage:"),
        ("hear --words a.wav", "--words needs --format json"),
        ("sing", "unrecognized subcommand 'sing'"),
        ("say --voise x", "a similar argument exists: '--voice"),
        ("say -f midi hi", "expected mp3, wav, pcm, opus, flac or aac"),
        ("say --speed 9 hi", "must be from 0.25 to 4"),
        ("say --speed fast hi", "expected a number from 0.25 to 4"),
        ("serve --listen example.org", "is not an address to listen on"),
        ("serve --log a=b=c", "is not a log filter"),
    ];
    let user = User::new();
    for (args, expected) in rows {
        user.fails(args, 2, expected);
    }
}

#[test]
fn the_version_is_the_package_s() {
    let text = User::new().prints("--version");
    assert_eq!(text, format!("hob {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_worker_without_a_supervisor_ends_with_a_sentence() {
    User::new().fails("worker speech --model x --voice af_heart", 6, "is started by hob itself");
}
