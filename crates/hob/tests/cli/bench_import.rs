//! `hob bench import`, `hob bench show` and `hob site build`: from another program's file to a page.

use crate::{Has, User, names, stderr, stdout};

const RESULT: &str = r#"[{"model_filename": "Qwen3-8B-Q4_K_M.gguf", "gpu_info": "Radeon", "backends": "Vulkan", "build_number": 9001, "build_commit": "4a3ed6c",
  "n_prompt": 0, "n_gen": 128, "test_time": "2026-11-02T10:00:00Z", "samples_ts": [5.0, 5.5, 6.0], "avg_ts": 5.5}]"#;

#[test]
fn what_another_program_measured_is_kept_once_and_shown_as_soft() {
    let user = User::new();
    user.write("out.json", RESULT);
    let said = user.prints("bench import out.json --dry-run");
    assert!(said.contains("1 record of llama-bench would be kept in bench/records"), "{said}");
    assert!(!user.path("work/bench").exists());

    let kept = user.json("bench import out.json --json");
    let (file, id) =
        (kept[0]["record"].as_str().expect("a file"), kept[0]["id"].as_str().expect("an id"));
    assert_eq!(names(&user.path("work/bench/records/2026-11")).len(), 1);
    user.fails("bench import out.json", 2, &format!("out.json: already imported, as {id}"));

    for which in [file, id, &id[28..]] {
        let shown = user.prints(format!("bench show {which}"));
        assert!(shown.contains("unverified: measured by another program"), "{shown}");
        // llama-bench measures no stalls.
        assert!(shown.contains("5.5 tok/s") && shown.contains("\nstalls      –\n"), "{shown}");
    }
    user.fails("bench show ffffffff", 2, "no run in bench/records ends in 'ffffffff'");
}

#[test]
fn one_bad_file_stops_no_other() {
    let user = User::new();
    user.write("bad.json", "{");
    user.write("out.json", RESULT);
    let import = user.hob("bench import bad.json none.json /dev/zero out.json").assert().code(2);
    stderr(&import).has(&[
        "bad.json: neither JSON, JSON lines nor YAML",
        "none.json",
        "/dev/zero: it is not a regular file",
    ]);
    stdout(&import).has(&["1 record of llama-bench kept"]);
    user.fails("bench import out.json --format x", 2, "one of auto, llama-bench");
}

#[test]
fn a_page_is_built_of_what_can_be_read() {
    let user = User::new();
    user.write("out.json", RESULT);
    user.hob("bench import out.json").assert().success();
    std::fs::write(user.path("work/bench/records/later.yaml"), "schema: bench-run/2\n")
        .expect("a file");
    let build = user.hob("site build --without-published --out page").assert().success();
    assert_eq!(stdout(&build), "1 run, 14 files: page/index.html\n");
    stderr(&build).has(&["later.yaml: written by a later hob"]);
    assert_eq!(
        names(&user.path("work/page")),
        [
            "compare.html",
            "eval.html",
            "index.html",
            "machine.html",
            "machines.html",
            "method.html",
            "model.html",
            "queued.html",
            "records.js",
            "run",
            "run.html",
            "site.css",
            "site.js",
            "speech.html"
        ]
    );
    let records = std::fs::read_to_string(user.path("work/page/records.js")).expect("records");
    assert!(records.contains("Qwen3-8B-Q4_K_M") && records.contains("later.yaml"));
    user.prints("site build --records none").has(&[" runs, "]);
    user.fails("site build --ledger none", 2, "the request log does not exist");
}
