//! The service unit and the container file that come with hob start a hob that answers.
//! A test cannot pull images, so it checks only the command and the packages of the container file.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::{Has, User, stderr};

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    std::fs::read_to_string(path).expect(name)
}

/// The values of a key in a unit.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let line = |line: &'a str| line.strip_prefix(key)?.strip_prefix('=');
    unit.lines().filter_map(line).collect()
}

/// The status of `/health` from a hob that this command starts.
fn health(command: &mut std::process::Command) -> u16 {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("hob");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let url = line.split_whitespace().find(|word| word.starts_with("http")).map(str::to_owned);
    let status = url.map(|url| {
        let answer = ureq::get(format!("{}health", url.replace("0.0.0.0", "127.0.0.1"))).call();
        answer.expect("an answer").status().as_u16()
    });
    child.kill().expect("it runs");
    child.wait().expect("an end");
    status.expect("it serves")
}

#[test]
fn the_unit_starts_a_hob_that_reads_its_configuration() {
    let unit = shipped("hob.service");
    let words: Vec<&str> = values(&unit, "ExecStart")[0].split(' ').collect();
    assert_eq!(words[0], "/usr/local/bin/hob");
    let environment = values(&unit, "Environment");
    assert_eq!(environment, ["HOB_HOME=/var/lib/hob", "XDG_CONFIG_HOME=/etc"]);
    assert_eq!(values(&unit, "WorkingDirectory"), ["/var/lib/hob"], "its home is where it works");
    // Team files are next to hob.toml, and clients may add some.
    let protect = values(&unit, "ProtectSystem");
    assert_eq!((protect, values(&unit, "StateDirectory")), (vec!["strict"], vec!["hob"]));
    assert_eq!(values(&unit, "ReadWritePaths"), ["-/etc/hob/teams"]);
    // Otherwise systemd ends workers while hob still answers, and ends hob if a worker takes too much memory.
    let ends = [values(&unit, "KillMode"), values(&unit, "OOMPolicy")];
    assert_eq!(ends, [["mixed"], ["continue"]]);
    let user = User::new();
    std::fs::create_dir_all(user.path("etc/hob")).expect("a folder");
    let config = "[server]\nlisten = \"127.0.0.1:0\"\n[dev]\nmock_unknown_models = true\n";
    std::fs::write(user.path("etc/hob/hob.toml"), config).expect("a file");
    let mut command = user.process(&words[1..]);
    command.env("XDG_CONFIG_HOME", user.path("etc")).env("HOB_HOME", user.path("work"));
    // The address of the configuration counts. Root could listen at the one where other tests expect no server.
    command.env_remove("HOB_LISTEN");
    assert_eq!(health(&mut command), 200);
}

#[test]
fn the_guide_removes_what_a_unit_of_a_user_cannot_have() {
    let guide = shipped("../docs/guides/systemd.md");
    let step = guide.lines().find(|line| line.starts_with("2. Remove ")).expect("a step");
    let of_the_system = ["User", "State", "Working", "Supplementary", "Private", "Protect"];
    let unit = shipped("hob.service");
    let keys = unit.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key);
    for key in keys.filter(|key| of_the_system.iter().any(|start| key.starts_with(start))) {
        assert!(step.contains(&format!("`{key}=`")), "{key}");
    }
}

#[test]
fn the_container_serves_with_a_key_and_not_without() {
    for name in ["Containerfile", "archive/Containerfile"] {
        serves_with_a_key(&shipped(name));
    }
}

fn serves_with_a_key(file: &str) {
    let list = |key: &str| -> Vec<String> {
        let line = file.lines().find_map(|line| line.strip_prefix(key)).expect(key);
        serde_json::from_str(line).expect("a list")
    };
    assert_eq!(list("ENTRYPOINT "), ["hob"]);
    let command = list("CMD ");
    let words: Vec<String> = command.iter().map(|word| word.replace(":8484", ":0")).collect();
    assert_ne!(words, command, "it listens on hob's port");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let user = User::new().configured("[dev]\nmock_unknown_models = true\n");
    let home = user.path("work");
    stderr(&user.hob(&words[..]).env("HOB_HOME", &home).assert().code(2)).has(&["HOB_API_KEY"]);
    let mut command = user.process(&words[..]);
    command.env("HOB_HOME", &home).env("HOB_API_KEY", "a key of 16 characters");
    assert_eq!(health(&mut command), 200);
}

/// The image build installs the packages that `scripts/bootstrap` requires for a build.
#[test]
fn the_container_has_what_the_build_needs() {
    let script = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bootstrap"),
    );
    let (script, file) = (script.expect("a script"), shipped("Containerfile"));
    let build = file.split("\nFROM ").nth(1).expect("a stage");
    let wanted = script.lines().take_while(|line| !line.contains("espeak-ng"));
    let wanted = wanted.filter_map(|line| line.split("|| missing ").nth(1));
    let debian = wanted.map(|names| match names.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => names.split(' ').next().unwrap_or_default(),
    });
    // The image of Rust includes these.
    for package in
        debian.flat_map(|names| names.split(' ')).filter(|p| !["gcc", "libc6-dev"].contains(p))
    {
        assert!(build.contains(&format!(" {package}")), "{package} is not installed:\n{build}");
    }
}

/// Caddy refuses a block that is written in one line.
#[test]
fn the_caddyfile_of_the_guide_has_no_block_in_one_line() {
    let guide = shipped("../docs/guides/reverse-proxies.md");
    let caddyfile = guide.split("```caddy\n").nth(1).and_then(|rest| rest.split("```").next());
    for line in caddyfile.expect("a Caddyfile").lines() {
        let opens_last = line.find('{').is_none_or(|at| at + 1 == line.len());
        assert!(opens_last && (!line.contains('}') || line.trim() == "}"), "{line}");
    }
}

/// A mistake in the configuration of the user would stop the tests, and its models would be downloaded for them.
#[test]
fn programs_that_prepare_tests_read_no_configuration_of_the_user() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["Makefile", "tests/clients/run", "tests/clients/open-webui/run"] {
        let text = std::fs::read_to_string(root.join(name)).expect(name);
        let has_own = text.contains("no-settings.toml") && !text.contains("\"$HOB\" pull");
        assert!(has_own && !text.contains("/debug/hob pull"), "{name}");
    }
    let user = User::new().configured("no = 1\n");
    user.fails("pull --dry-run", 2, "hob.toml:1:1: ");
    let settings = root.join("tests/no-settings.toml");
    let settings = settings.to_str().expect("UTF-8");
    user.hob(&["--config", settings, "pull", "--dry-run"]).assert().success();
}

#[test]
fn make_refuses_paths_with_spaces_before_it_does_anything() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let plan = |variable: &str, target: &str| {
        let mut make = std::process::Command::new("make");
        make.args(["--dry-run", target]).current_dir(&root);
        for name in ["CI", "CARGO_TARGET_DIR", "MAKEFLAGS"] {
            make.env_remove(name);
        }
        make.env(variable, "/a b").output().expect("make")
    };
    for (variable, target, says) in [
        ("CARGO_TARGET_DIR", "build", "CARGO_TARGET_DIR is '/a b', and make cannot use"),
        ("XDG_CACHE_HOME", "deny", "The cache is '/a b/hob', and make cannot use"),
    ] {
        let refused = plan(variable, target);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains(says), "{said}");
    }
    assert!(plan("XDG_CACHE_HOME", "build").status.success(), "a build does not use the cache");
}
