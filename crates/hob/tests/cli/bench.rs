//! `hob bench import`, `hob bench show` and `hob site build`: from another program's file to a page.

use crate::{User, names, stderr, stdout};

const RESULT: &str = r#"[{"model_filename": "Qwen3-8B-Q4_K_M.gguf", "gpu_info": "Radeon", "backends": "Vulkan", "build_number": 9001, "build_commit": "4a3ed6c",
  "n_prompt": 0, "n_gen": 128, "test_time": "2026-11-02T10:00:00Z", "samples_ts": [5.0, 5.5, 6.0], "avg_ts": 5.5}]"#;

#[test]
fn what_another_program_measured_is_kept_once_and_shown_as_soft() {
    let user = User::new();
    user.write("out.json", RESULT);
    let said = stdout(&user.hob(&["bench", "import", "out.json", "--dry-run"]).assert().success());
    assert!(said.contains("1 record of llama-bench would be kept in bench/records"), "{said}");
    assert!(!user.path("work/bench").exists());

    let json = stdout(&user.hob(&["bench", "import", "out.json", "--json"]).assert().success());
    let kept: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let (file, id) =
        (kept[0]["record"].as_str().expect("a file"), kept[0]["id"].as_str().expect("an id"));
    assert_eq!(names(&user.path("work/bench/records/2026-11")).len(), 1);
    let again = stderr(&user.hob(&["bench", "import", "out.json"]).assert().code(2));
    assert!(again.contains(&format!("out.json: imported already, as {id}")), "{again}");

    for which in [file, id, &id[28..]] {
        let shown = stdout(&user.hob(&["bench", "show", which]).assert().success());
        assert!(shown.contains("soft: measured by another program"), "{shown}");
        assert!(shown.contains("5.5 tok/s"), "{shown}");
    }
    let nobody = stderr(&user.hob(&["bench", "show", "ffffffff"]).assert().code(2));
    assert!(nobody.contains("no run in bench/records ends in 'ffffffff'"), "{nobody}");
}

#[test]
fn one_bad_file_stops_no_other() {
    let user = User::new();
    user.write("bad.json", "{");
    user.write("out.json", RESULT);
    let import =
        user.hob(&["bench", "import", "bad.json", "none.json", "out.json"]).assert().code(2);
    assert!(
        stderr(&import).contains("bad.json: neither JSON, JSON lines nor YAML"),
        "{}",
        stderr(&import)
    );
    assert!(stderr(&import).contains("none.json"));
    assert!(stdout(&import).contains("1 record of llama-bench kept"));
    let unknown =
        stderr(&user.hob(&["bench", "import", "out.json", "--format", "x"]).assert().code(2));
    assert!(unknown.contains("one of auto, llama-bench"), "{unknown}");
}

#[test]
fn a_page_is_built_of_what_can_be_read() {
    let user = User::new();
    user.write("out.json", RESULT);
    user.hob(&["bench", "import", "out.json"]).assert().success();
    std::fs::write(user.path("work/bench/records/later.yaml"), "schema: bench-run/2\n")
        .expect("a file");
    let build =
        user.hob(&["site", "build", "--without-published", "--out", "page"]).assert().success();
    assert_eq!(stdout(&build), "1 run, 8 files: page/index.html\n");
    assert!(stderr(&build).contains("left out: later.yaml: of a later hob"), "{}", stderr(&build));
    assert_eq!(
        names(&user.path("work/page")),
        [
            "index.html",
            "method.html",
            "model",
            "rig",
            "rigs.html",
            "run",
            "site.css",
            "speech.html"
        ]
    );
    let index = std::fs::read_to_string(user.path("work/page/index.html")).expect("a page");
    assert!(index.contains("Qwen3-8B-Q4_K_M") && index.contains("later.yaml"));
    let with = stdout(&user.hob(&["site", "build", "--records", "none"]).assert().success());
    assert!(with.contains(" runs, "), "{with}");
    let ledger = stderr(&user.hob(&["site", "build", "--ledger", "none"]).assert().code(2));
    assert!(ledger.contains("there is no such ledger"), "{ledger}");
}

#[test]
fn a_server_is_started_for_its_measurement_and_ended_after_it() {
    let user = User::new();
    let port = free_port();
    let (url, mock) = (format!("http://127.0.0.1:{port}"), assert_cmd::cargo::cargo_bin("hob"));
    let script = "ttft_ms=5,itl_ms=1,tokens=16,cache=true";
    let launch = format!("'{}' mock --listen 127.0.0.1:{port} --script {script}", mock.display());
    let args = ["bench", "llm", "--target", &url, "--launch", &launch, "--shape", "quick_word"];
    let few = ["--users", "1", "--runs-min", "2", "--runs-max", "2", "--json"];
    let done = user.hob(&[&args[..], &few].concat()).assert().success();
    assert!(stderr(&done).contains("the server was started anew"), "{}", stderr(&done));
    let record: serde_json::Value = serde_json::from_str(&stdout(&done)).expect("a record");
    assert_eq!(record["confidence"]["server_starts"], 2);
    assert_eq!(record["engine"]["argv"][0], launch.as_str());
    assert!(record["resources"]["rss_peak_mb"].as_f64().is_some_and(|mb| mb > 1.0), "{record}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());

    let dead = ["bench", "llm", "--target", &url, "--launch", "echo no such model >&2; exit 3"];
    let said = stderr(&user.hob(&dead).assert().code(5));
    assert!(
        said.contains("ended (with code 3) before it was ready; it said:\nno such model"),
        "{said}"
    );
}

/// A mock that is started for it, and everything else that is typed.
fn measured_mock(verb: &str, script: &str, more: &[&str]) -> (User, Vec<String>) {
    let port = free_port();
    let mock = assert_cmd::cargo::cargo_bin("hob");
    let url = format!("http://127.0.0.1:{port}");
    let launch = format!("'{}' mock --listen 127.0.0.1:{port} --script {script}", mock.display());
    let args = ["bench", verb, "--target", &url, "--launch", &launch];
    let once = ["--runs-min", "1", "--runs-max", "1"];
    let words = args.iter().chain(more).chain(&once).map(|word| (*word).to_owned());
    (User::new(), words.collect())
}

#[test]
fn a_text_is_spoken_and_timed() {
    let script = "ttft_ms=20,audio_rtf=0.01";
    let more = ["--text", "short", "--format", "pcm", "--voice", "ada", "--json"];
    let (user, args) = measured_mock("tts", script, &more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // A machine that is too busy to measure says so by its code, and prints the record all the same.
    let done = user.hob(&args).assert();
    let record: serde_json::Value = serde_json::from_str(&stdout(&done)).expect("a record");
    let tts = &record["tts"];
    assert_eq!(
        (&tts["chars"], &tts["voice"], &tts["audio_s"]),
        (&12.into(), &"ada".into(), &0.72.into())
    );
    assert_eq!(
        (record["kind"].as_str(), tts["verdict"].as_str()),
        (Some("tts"), Some("too_short"))
    );
    assert_eq!(tts["audio_sha256"].as_str().map(str::len), Some(64));
    assert!(record["resources"]["cold_first_ms"].as_f64().is_some_and(|ms| ms > 20.0), "{record}");

    let unknown = stderr(&user.hob(&["bench", "tts", "--text", "novel"]).assert().code(2));
    assert!(unknown.contains("there are short, medium, long"), "{unknown}");
    let nothing = stderr(&user.hob(&["bench", "tts"]).assert().code(3));
    assert!(nothing.contains("kokoro"), "{nothing}");
}

#[test]
fn who_fakes_streaming_is_told_so_and_that_is_no_failure() {
    let more = ["--text", "medium", "--format", "mp3", "--asked", "yes"];
    let (user, args) = measured_mock("stream", "audio=hold_all,ttft_ms=200,audio_rtf=0.05", &more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = stdout(&user.hob(&args).assert().success());
    assert!(said.contains("mp3 by tone: fakes it: the first sound comes after"), "{said}");
    let line = said.lines().find(|line| line.ends_with("medium, mp3, tone, asked for"));
    assert!(line.is_some_and(|line| line.contains("···█")), "{said}");

    let (user, args) = measured_mock("stream", "status=500", &more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let failed = stderr(&user.hob(&args).assert().code(5));
    assert!(failed.contains("the server answered 500"), "{failed}");
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
