//! `hob bench import`, `hob bench show` and `hob site build`: from another program's file to a page.

use hob_bench::mock::scripted::{Script, Scripted};

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

#[test]
fn the_longest_context_is_found_by_a_start_with_each() {
    let user = User::new();
    let port = free_port();
    let (url, mock) = (format!("http://127.0.0.1:{port}"), assert_cmd::cargo::cargo_bin("hob"));
    let launch = |script: &str| {
        let mock = mock.display();
        let times = "ttft_ms=2,itl_ms=1";
        format!("exec '{mock}' mock --listen 127.0.0.1:{port} --script {times},{script}")
    };
    let ceiling = |launch: &str| {
        let args = ["bench", "ceiling", "--target", &url, "--launch", launch, "--json"];
        user.hob(&[&args[..], &["--lo", "2048", "--hi", "8192"]].concat()).assert()
    };
    // The prompt is 256 tokens shorter than the context, and 64 are written behind it.
    let rows = [
        ("context_tokens={ctx},tells_context=true,load_max=5000", 4864, "oom_load", "told"),
        ("context_tokens={ctx},prefill_max=4000", 4096, "oom_prefill", "filled"),
        ("context_tokens={ctx},decode_max=4128", 4096, "oom_decode", "filled"),
        ("context_tokens=3000,truncates=true,seed={ctx}", 3072, "unsupported", "filled"),
    ];
    for (script, longest, limit, proof) in rows {
        let done = ceiling(&launch(script)).success();
        let record: serde_json::Value = serde_json::from_str(&stdout(&done)).expect("a record");
        let found = &record["ctx_ceiling"];
        assert_eq!((&found["lo_ok"], &found["usable"]), (&longest.into(), &longest.into()));
        assert_eq!((&found["hi_fail"], &found["confirmed"]), (&(longest + 256).into(), &2.into()));
        assert_eq!((&found["limited_by"], &found["proven_by"]), (&limit.into(), &proof.into()));
        assert!(stderr(&done).contains("about 0 left"), "{}", stderr(&done));
    }
    // Whatever it is started with, a server with another context answers.
    let stale = ceiling(&launch("context_tokens=5000,tells_context=true,seed={ctx}")).code(5);
    let said = stderr(&stale);
    assert!(said.contains("2048 is unknown: a server of an earlier start answered"), "{said}");
    assert!(said.contains("it was started with 2048 tokens and says that it has 5000"), "{said}");
    let same = stderr(&ceiling("llama-server -c 4096").code(2));
    assert!(same.contains("--launch says nowhere {ctx}"), "{same}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_cold_start_is_told_from_a_warm_one() {
    let user = User::new();
    user.write("weights.gguf", "not many");
    let port = free_port();
    let (url, mock) = (format!("http://127.0.0.1:{port}"), assert_cmd::cargo::cargo_bin("hob"));
    let script = "ttft_ms=5,itl_ms=1,cold_ms=400,audio_rtf=0.01";
    let launch =
        format!("exec '{}' mock --listen 127.0.0.1:{port} --script {script}", mock.display());
    let cold = |more: &[&str]| {
        let args = ["bench", "cold", "--target", &url, "--launch", &launch, "--json"];
        let few = ["--runs-min", "2", "--runs-max", "2", "--warm", "2"];
        let done = user.hob(&[&args[..], &few, more].concat()).assert().success();
        serde_json::from_str::<serde_json::Value>(&stdout(&done)).expect("a record")
    };
    let figure = |record: &serde_json::Value, name: &str| record["metrics"][name]["p50"].as_f64();
    let words = cold(&["--state", "page_cache_warm", "--model-file", "weights.gguf"]);
    assert_eq!(
        (&words["kind"], &words["workload"]["shape"]),
        (&"cold".into(), &"page_cache_warm".into())
    );
    assert_eq!(words["confidence"]["server_starts"], 2);
    assert!(figure(&words, "ttft_ms").is_some_and(|ms| ms >= 400.0), "{words}");
    assert!(figure(&words, "cold_x").is_some_and(|times| times > 2.0), "{words}");
    assert_eq!(words["resources"]["cold_first_ms"].as_f64(), figure(&words, "cold_first_ms"));
    assert!(figure(&words, "load_ms").is_some_and(|ms| ms > 1.0), "{words}");

    let sound = cold(&["--state", "page_cache_warm", "--speech"]);
    assert!(figure(&sound, "ttfa_ms").is_some_and(|ms| ms >= 400.0), "{sound}");
    assert!(sound["confidence"]["reasons"].to_string().contains("cache_unverified"), "{sound}");

    let swap = cold(&["--swap-with", "other"]);
    assert!(figure(&swap, "swap_ms").is_some() && figure(&swap, "load_ms").is_none(), "{swap}");

    let blind = ["bench", "cold", "--target", &url, "--launch", &launch];
    let said = stderr(&user.hob(&blind).assert().code(2));
    assert!(said.contains("name it with --model-file"), "{said}");
}

#[test]
fn a_server_that_cannot_be_started_anew_has_no_cold_start_and_no_ceiling() {
    let user = User::new();
    let mock = Scripted::start(([127, 0, 0, 1], 0).into(), Script::default()).expect("a mock");
    for verb in ["cold", "ceiling"] {
        let said = stderr(&user.hob(&["bench", verb, "--target", &mock.url()]).assert().code(2));
        assert!(said.contains("say how it is started with --launch"), "{verb}: {said}");
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
