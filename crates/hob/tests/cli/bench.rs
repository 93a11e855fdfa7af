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

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
