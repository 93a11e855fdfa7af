//! The measuring verbs of `hob bench`, `hob bench plan` and `hob bench compare`, against servers with known answers.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;

use hob_bench::mock::{MockServer, Script};
use hob_bench::record::{Record, RecordKind, RecordSource, RecordStore, RunStatus, Spread};
use hob_bench::terms::Metric;

use crate::executable::write_executable;
use crate::free_port::free_port;
use crate::{User, json_stdout, stderr, stdout, until};

/// On a machine that is too busy to measure, records say so, and are there all the same.
const BUSY_OR_NOT: [i32; 2] = [0, 5];

#[test]
fn a_server_is_started_for_its_measurement_and_ended_after_it() {
    let user = User::new();
    let port = free_port();
    let (url, mock) = (format!("http://127.0.0.1:{port}"), assert_cmd::cargo::cargo_bin("hob"));
    let script = "ttft_ms=5,itl_ms=1,tokens=16,cache=true";
    let launch = format!("'{}' mock --listen 127.0.0.1:{port} --script {script}", mock.display());
    let args = ["bench", "llm", "--target", &url, "--launch", &launch, "--shape", "quick_word"];
    let few = ["--users", "1", "--runs-min", "2", "--runs-max", "2", "--json"];
    let done = user.hob(&[&args[..], &few].concat()).assert().code(&BUSY_OR_NOT[..]);
    assert!(stderr(&done).contains("the server was started again"), "{}", stderr(&done));
    let record = json_stdout(&done);
    assert_eq!(record["confidence"]["server_starts"], 2);
    assert_eq!(record["engine"]["argv"][0], launch.as_str());
    assert!(record["resources"]["rss_peak_mb"].as_f64().is_some_and(|mb| mb > 1.0), "{record}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());

    let dead = ["bench", "llm", "--target", &url, "--launch", "echo no such model >&2; exit 3"];
    user.fails(&dead, 5, "ended (with code 3) before it was ready; it said:\nno such model");
}

#[test]
fn a_server_that_dies_before_it_is_ready_leaves_a_record() {
    let user = User::new();
    let url = format!("http://127.0.0.1:{}", free_port());
    let dead = "echo failed to allocate buffer >&2; exit 1";
    let args = ["bench", "llm", "--target", &url, "--model", "m", "--launch", dead];
    user.fails(&args, 5, "ended (with code 1) before it was ready");

    // Another program on its port says nothing about the server.
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", other.local_addr().expect("an address"));
    let args = ["bench", "llm", "--target", &url, "--launch", "true"];
    user.fails(&args, 5, "is in use");

    let found = RecordStore::new(user.path("work/bench/records")).read().expect("records");
    let [(_, record)] = &found.records[..] else { panic!("{:?}", found.records) };
    assert_eq!((record.kind, record.status), (RecordKind::Llm, RunStatus::Oom));
    assert_eq!(
        (record.model.name.as_str(), &record.engine.argv[..]),
        ("m", &[dead.to_owned()][..])
    );
    assert!(record.invalid_reasons[0].contains("failed to allocate buffer"), "{record:?}");
    let command = record.harness.as_ref().map(|harness| harness.argv.join(" "));
    assert!(command.is_some_and(|command| command.contains("bench llm --target ")));

    let plan = format!(
        "schema: bench-plan/1\nname: dead\n\
         targets: [{{name: dead, url: \"http://127.0.0.1:{}\", launch: \"{dead}\", model: m}}]\n\
         matrix: {{kind: [llm], shape: [quick_word], concurrency: [1]}}\n",
        free_port()
    );
    user.write("plan.yaml", &plan);
    user.fails(&["bench", "plan", "plan.yaml", "--out", "plan"], 5, "before it was ready");
    let found = RecordStore::new(user.path("work/plan")).read().expect("records");
    let [(_, of_plan)] = &found.records[..] else { panic!("{:?}", found.records) };
    let started = |record: &Record| (record.model.name.clone(), record.engine.argv.clone());
    assert_eq!(started(of_plan), started(record));
}

/// A verb's records of a mock, which is started for it with this script.
fn measured(user: &User, verb: &[&str], script: &str) -> (Vec<serde_json::Value>, String) {
    let port = free_port();
    let (url, mock) = (format!("http://127.0.0.1:{port}"), assert_cmd::cargo::cargo_bin("hob"));
    let script = format!("ttft_ms=5,itl_ms=1,tokens=8,cache=true,{script}");
    let launch = format!("'{}' mock --listen 127.0.0.1:{port} --script {script}", mock.display());
    let few = ["--runs-min", "2", "--runs-max", "2", "--json"];
    let aim = ["--target", &url, "--launch", &launch];
    let done =
        user.hob(&[&["bench"][..], verb, &aim, &few].concat()).assert().code(&BUSY_OR_NOT[..]);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    let records =
        stdout(&done).lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    (records, stderr(&done))
}

#[test]
fn many_users_are_measured_in_turns_with_one() {
    let user = User::new();
    let verb = ["concurrency", "--users", "1,3", "--shape", "quick_word"];
    let (records, _) = measured(&user, &verb, "slots=1,ttft_ms=60");
    let [one, three] = &records[..] else { panic!("two records") };
    assert_eq!((&one["kind"], &one["slowdown"]["n"]), (&"concurrency".into(), &1.into()));
    assert_eq!(three["slowdown"]["versus"], one["id"]);
    assert!(three["slowdown"]["scaling"].as_f64().is_some_and(|part| part < 0.6), "{three}");
    user.fails(
        &["bench", "concurrency", "--users", "1"],
        2,
        "--users needs at least one value above 1",
    );
}

#[test]
fn a_batch_takes_memory_of_its_own() {
    let user = User::new();
    let verb = ["batch", "--users", "2,1", "--shape", "quick_word"];
    let (records, said) = measured(&user, &verb, "slots=0");
    let users: Vec<_> = records.iter().map(|record| &record["workload"]["concurrency"]).collect();
    assert_eq!(users, [&serde_json::json!(1), &serde_json::json!(2)], "{said}");
    let has_memory =
        |record: &serde_json::Value| record["resources"]["rss_peak_mb"].as_f64().is_some();
    assert!(records.iter().all(has_memory), "{records:?}");
}

#[test]
fn a_context_grows_as_far_as_the_server_holds_it() {
    let user = User::new();
    let verb = ["sweep", "--context-tokens", "256,4096", "--answer", "8"];
    let (records, said) = measured(&user, &verb, "context_tokens={ctx},tells_context=true");
    let shapes: Vec<_> = records.iter().map(|record| record["workload"]["shape"].clone()).collect();
    assert_eq!(shapes, ["ctx_256", "ctx_256", "ctx_4096", "ctx_4096"], "{said}");
    assert_eq!(records[3]["engine"]["params"]["ctx"], 4096 + 8 + 64 + 64);

    let verb = ["sweep", "--context-tokens", "256,4096", "--answer", "8", "--context", "1024"];
    let (records, said) = measured(&user, &verb, "context_tokens={ctx},tells_context=true");
    assert_eq!(records.len(), 2);
    let expected =
        "left out: 4096; the server's context has 1024 tokens, of which the answer takes 8";
    assert!(said.contains(expected), "{said}");
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
        let args = ["bench", "max-context", "--target", &url, "--launch", launch, "--json"];
        user.hob(&[&args[..], &["--min", "2048", "--max", "8192"]].concat()).assert()
    };
    // The prompt is 256 tokens shorter than the context, and 64 are written behind it.
    let rows = [
        ("context_tokens={ctx},tells_context=true,load_max=5000", 4864, "oom_load", "reported"),
        ("context_tokens={ctx},prefill_max=4000", 4096, "oom_prefill", "filled"),
        ("context_tokens={ctx},decode_max=4128", 4096, "oom_decode", "filled"),
        ("context_tokens=3000,truncates=true,seed={ctx}", 3072, "unsupported", "filled"),
    ];
    for (script, longest, limit, proof) in rows {
        let done = ceiling(&launch(script)).success();
        let record = json_stdout(&done);
        let found = &record["max_context"];
        assert_eq!((&found["lo_ok"], &found["usable"]), (&longest.into(), &longest.into()));
        assert_eq!((&found["hi_fail"], &found["confirmed"]), (&(longest + 256).into(), &2.into()));
        assert_eq!((&found["limited_by"], &found["proven_by"]), (&limit.into(), &proof.into()));
        assert!(stderr(&done).contains("about 0 left"), "{}", stderr(&done));
    }
    // Whatever it is started with, a server with another context answers.
    let stale = ceiling(&launch("context_tokens=5000,tells_context=true,seed={ctx}")).code(5);
    let said = stderr(&stale);
    assert!(said.contains("2048 is unknown: a server of an earlier start answered"), "{said}");
    assert!(said.contains("the server was started with 2048 tokens and reports 5000"), "{said}");
    let same = stderr(&ceiling("llama-server -c 4096").code(2));
    assert!(same.contains("--launch does not contain {ctx}"), "{same}");
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
        let done = user.hob(&[&args[..], &few, more].concat()).assert().code(&BUSY_OR_NOT[..]);
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
    user.fails(&blind, 2, "give the file with --model-file");
}

#[test]
fn a_server_that_cannot_be_started_anew_has_no_cold_start_and_no_ceiling() {
    let user = User::new();
    let mock = MockServer::start_local(Script::default()).expect("a mock");
    for verb in ["cold", "max-context"] {
        user.fails(
            &["bench", verb, "--target", &mock.url()],
            2,
            "give --launch the command that starts it",
        );
    }
}

#[test]
fn the_name_of_a_file_need_not_be_utf8() {
    let user = User::new();
    let mut hob = user.hob(&["bench", "llm", "--target", "http://127.0.0.1:1", "--out"]);
    let said = stderr(&hob.arg(OsStr::from_bytes(b"caf\xe9")).assert().code(5));
    assert!(said.contains("127.0.0.1:1"), "{said}");
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

/// A driver that says so many MiB: first when nothing was started, then more.
#[cfg(unix)]
#[test]
fn what_a_card_gives_to_a_server_is_in_its_record() {
    let (user, args) =
        measured_mock("llm", "ttft_ms=5,itl_ms=1,tokens=8", &["--shape", "quick_word", "--json"]);
    let driver = user.path("work").join("nvidia-smi");
    write_executable(
        &driver,
        "#!/bin/sh\nif [ -e asked ]; then echo '3500, 8188'; else echo '500, 8188'; touch asked; fi\n",
    );
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let folder = driver.parent().expect("a folder").display();
    let path = format!("{folder}:/usr/bin:/bin");
    let done = user.hob(&args).env("PATH", path).assert();
    let line = stdout(&done).lines().next().expect("a record").to_owned();
    let record: serde_json::Value = serde_json::from_str(&line).expect("a record");
    let vram = &record["resources"]["vram_mb"];
    let mb = |name: &str| vram[name].as_f64().map(f64::round);
    assert_eq!((mb("idle"), mb("loaded"), mb("peak")), (Some(524.0), Some(3670.0), Some(3670.0)));
}

#[test]
fn many_listen_to_one_voice() {
    let user = User::new();
    let (records, _) = measured(
        &user,
        &["concurrency", "--speech", "short", "--format", "pcm", "--users", "2", "--requests", "1"],
        "slots=1",
    );
    assert_eq!(records.len(), 2);
    assert_eq!(records[1]["tts"]["format"], "pcm");
    assert!(records[1]["slowdown"]["ttfa_x"].is_number(), "{}", records[1]);
    let both =
        ["bench", "batch", "--speech", "--shape", "quick_word", "--target", "http://127.0.0.1:9"];
    user.fails(&both, 2, "cannot be used with");
}

#[test]
fn a_text_is_spoken_and_timed() {
    let script = "ttft_ms=20,audio_rtf=0.01";
    let more = ["--text", "short", "--format", "pcm", "--voice", "ada", "--json"];
    let (user, args) = measured_mock("tts", script, &more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // A machine that is too busy to measure says so by its code, and prints the record all the same.
    let done = user.hob(&args).assert();
    let record = json_stdout(&done);
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

    user.fails(&["bench", "tts", "--text", "novel"], 2, "known texts: short, medium, long");
    user.fails(&["bench", "tts"], 3, "kokoro");
}

#[test]
fn who_fakes_streaming_is_told_so_and_that_is_no_failure() {
    let more = ["--text", "medium", "--format", "mp3", "--stream", "yes"];
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
    // It failed before the first run, and has a record all the same.
    let found = RecordStore::new(user.path("work/bench/records")).read().expect("records");
    let [(_, record)] = &found.records[..] else { panic!("{:?}", found.records) };
    assert!(record.invalid_reasons[0].contains("the server answered 500"), "{record:?}");
}

/// A run of so many tokens per second, kept without samples: only intervals that are apart say something.
fn kept(user: &User, users: u32, tok_s: f64) -> String {
    let source = RecordSource { tool: "hob".to_owned(), ..RecordSource::default() };
    let mut record = Record::new(uuid::Uuid::now_v7(), RecordKind::Llm, source);
    record.model.name = "m".to_owned();
    record.workload.shape = Some("short_short".to_owned());
    record.workload.concurrency = Some(users);
    let ci95 = Some([tok_s * 0.99, tok_s * 1.01]);
    let spread = Spread { p50: Some(tok_s), ci95, ..Spread::default() };
    record.metrics.spreads.insert(Metric::DecodeTokS, spread);
    RecordStore::new(user.path("work/bench/records")).put(&record, &[]).expect("kept");
    record.id.to_string()
}

#[test]
fn two_runs_are_compared_and_a_gate_says_so_by_its_code() {
    let user = User::new();
    let (base, slow) = (kept(&user, 1, 5.1), kept(&user, 1, 4.1));
    let (near, other) = (kept(&user, 1, 5.15), kept(&user, 4, 5.1));

    let said = stdout(&user.hob(&["bench", "compare", &base[28..], &slow]).assert().success());
    for expected in
        ["Unpaired: measured at different times", "gen tok/s", "5.1 tok/s", "-19.6 %", "slower"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let json = stdout(&user.hob(&["bench", "compare", &base, &near, "--json"]).assert().success());
    let found: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(found["cells"][0]["pairing"], "unpaired");
    assert_eq!(found["cells"][0]["figures"][0]["finding"], "inconclusive", "{json}");
    let refused = stdout(&user.hob(&["bench", "compare", &base, &other]).assert().code(8));
    assert!(refused.contains("refused: different number of users: 1 and 4"), "{refused}");
    user.fails(
        &["bench", "compare", &base, "http://a"],
        2,
        "a server can only be compared with a server",
    );
    user.fails(
        &["bench", "compare", "http://a", "http://b", "--against", "http://c"],
        2,
        "only two servers can be compared at a time",
    );

    let gate = |new: &str, code| {
        let args = ["bench", "gate", new, "--against", &base, "--figure", "decode_tok_s"];
        stdout(&user.hob(&args).assert().code(code))
    };
    let last = |said: String| said.lines().last().unwrap_or_default().to_owned();
    assert!(
        last(gate(&slow, 1))
            .starts_with("hob bench compare: regression, decode_tok_s 19.6 % slower")
    );
    assert!(
        last(gate(&near, 0)).starts_with("hob bench compare: no regression (1 figure in 1 cell")
    );
    assert!(last(gate(&other, 8)).starts_with("hob bench compare: nothing could be compared"));
    let wide = ["bench", "gate", &slow, "--against", &base, "--figure", "decode_tok_s"];
    user.hob(&[&wide[..], &["--threshold", "30"]].concat()).assert().success();
    user.hob(&[&wide[..], &["--noise", &base, &slow]].concat()).assert().success();
    let mixed = user.hob(&[&wide[..], &["--noise", &base, &other]].concat()).assert().code(2);
    assert!(
        stderr(&mixed).contains("--noise expects records of the same cell"),
        "{}",
        stderr(&mixed)
    );
    user.hob(&[&wide[..4], &["none"]].concat()).assert().code(2);
    let compare = ["bench", "compare", &base, &slow];
    user.hob(&compare).assert().success();
    user.hob(&[&compare[..], &["--fail-on-regression"]].concat()).assert().code(1);
    user.fails(&compare[..3], 2, "expected BASE and NEW");
    let unused = [&compare[..], &["--users", "1"]].concat();
    user.fails(&unused, 2, "--users has no effect: these are records");
}

/// A mock that listens until it is dropped, and its address.
struct Mock(std::process::Child, String);

impl Mock {
    fn start(user: &User, script: &str) -> Mock {
        let mut mock = user.process(&["mock", "--script", script]);
        let mock = mock.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut mock = mock.spawn().expect("a mock");
        let said = BufReader::new(mock.stdout.take().expect("piped")).lines().next();
        Mock(mock, said.expect("a line").expect("its address"))
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("it ran");
    }
}

#[test]
fn a_plan_goes_on_where_it_was_killed_and_repeats_nothing() {
    let user = User::new();
    // The permitted timing error is a share of the TTFT, so a high TTFT tolerates a busy machine.
    let mock = Mock::start(&user, "ttft_ms=60,itl_ms=1,tokens=8,cache=true");
    let plan = format!(
        "schema: bench-plan/1\nname: small\ntargets: [{{name: here, url: \"{}\"}}]\n\
         matrix: {{kind: [llm], shape: [quick_word, quick_coding], concurrency: [1, 2]}}\n\
         runs: {{min: 1, max: 1}}\n",
        mock.1
    );
    user.write("plan.yaml", &plan);
    let records = user.path("work/bench/records");
    // Its record says that it is done.
    let count = || {
        let months = std::fs::read_dir(&records).into_iter().flatten().flatten();
        let files = months.flat_map(|month| std::fs::read_dir(month.path()).into_iter().flatten());
        let paths = files.flatten().map(|file| file.path());
        let records = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
        let texts = records.filter_map(|path| std::fs::read_to_string(path).ok());
        texts.filter(|text| !text.contains("cell_key: null")).count()
    };
    let mut first = user.process(&["bench", "plan", "plan.yaml", "--json"]);
    let mut first = first.stdout(std::process::Stdio::null()).spawn().expect("a campaign");
    until(300, "no record came", || count() > 0);
    first.kill().and_then(|()| first.wait()).expect("it ran");
    let before = count();
    assert!(before < 4, "it was killed too late");

    let dry = user.hob(&["bench", "plan", "plan.yaml", "--dry-run"]).assert().success();
    let left = format!("{} of 4 cells are left", 4 - before);
    assert!(stderr(&dry).contains(&left), "{}", stderr(&dry));
    let dry = user.hob(&["bench", "plan", "plan.yaml", "--dry-run", "--json"]).assert().success();
    let cells = stdout(&dry);
    let done = cells.lines().filter(|cell| cell.contains("\"done\":true")).count();
    assert_eq!((cells.lines().count(), done), (4, before), "{cells}");
    let rest = user.hob(&["bench", "plan", "plan.yaml"]).assert().success();
    let told = format!("4 cells: {} measured, {before} done before, 0 failed, 0 left", 4 - before);
    assert!(stderr(&rest).contains(&told), "{}", stderr(&rest));
    let again = user.hob(&["bench", "llm", "--plan", "plan.yaml"]).assert().success();
    assert!(stderr(&again).contains("4 cells: 0 measured, 4 done before"), "{}", stderr(&again));
    let none = user.hob(&["bench", "tts", "--plan", "plan.yaml"]).assert().code(2);
    assert!(stderr(&none).contains("names no cell of tts"), "{}", stderr(&none));
    assert_eq!(count(), 4);
}

#[test]
fn a_cell_that_fails_is_kept_and_stops_only_a_plan_that_says_so() {
    let user = User::new();
    let mock = Mock::start(&user, "ttft_ms=5,itl_ms=1,tokens=8,status=500");
    let url = mock.1.clone();
    for (on_fail, told) in [
        ("record", "2 cells: 0 measured, 0 done before, 2 failed, 0 left"),
        ("stop", "2 cells: 0 measured, 0 done before, 1 failed, 1 left"),
    ] {
        let plan = format!(
            "schema: bench-plan/1\nname: bad\ntargets: [{{name: here, url: \"{url}\"}}]\n\
             matrix: {{kind: [llm], shape: [quick_word], concurrency: [1, 2]}}\non_fail: {on_fail}\n"
        );
        user.write("plan.yaml", &plan);
        let done = user.hob(&["bench", "plan", "plan.yaml", "--out", on_fail]).assert().code(5);
        assert!(stderr(&done).contains(told), "{}", stderr(&done));
        assert!(stderr(&done).contains("the server answered 500"), "{}", stderr(&done));
        let table = stdout(&done);
        let row = table.lines().nth(1).expect("a row");
        assert_eq!(row.split_whitespace().nth(1), Some("here"), "{table}");
        let found = RecordStore::new(user.path("work").join(on_fail)).read().expect("records");
        for (_, record) in &found.records {
            let harness = record.harness.as_ref().expect("how it was run");
            assert_eq!(harness.argv[..3], ["hob", "bench", "llm"], "{record:?}");
        }
        assert!(!found.records.is_empty());
    }
}

#[test]
fn a_cell_whose_second_try_succeeds_has_not_failed() {
    let user = User::new();
    // The first request takes longer than the plan allows.
    let mock = Mock::start(&user, "cold_ms=5000,ttft_ms=200,itl_ms=1,tokens=8,cache=true");
    let plan = format!(
        "schema: bench-plan/1\nname: again\ntargets: [{{name: here, url: \"{}\"}}]\n\
         matrix: {{kind: [llm], shape: [quick_word], concurrency: [1]}}\n\
         runs: {{min: 1, max: 1}}\nbudget: {{answer_s: 2}}\non_fail: retry\n",
        mock.1
    );
    user.write("plan.yaml", &plan);
    let done = user.hob(&["bench", "plan", "plan.yaml"]).assert().code(&BUSY_OR_NOT[..]);
    let said = stderr(&done);
    assert!(said.contains("the answer did not end in time"), "{said}");
    // On a machine that is too busy to measure, the second try fails, too.
    let summary = match done.get_output().status.success() {
        true => "1 cells: 1 measured, 0 done before, 0 failed, 0 left",
        false => "1 cells: 0 measured, 0 done before, 1 failed, 0 left",
    };
    assert!(said.contains(summary), "{said}");
}

#[test]
fn a_plan_of_voices_and_formats_says_what_each_cell_was_asked_with() {
    let user = User::new();
    let mock = Mock::start(&user, "ttft_ms=60,audio_rtf=0.01");
    let plan = format!(
        "schema: bench-plan/1\nname: voices\ntargets: [{{name: here, url: \"{}\"}}]\n\
         matrix: {{kind: [tts], text: [short], format: [pcm, mp3], voice: [ada], concurrency: [1]}}\n\
         runs: {{min: 1, max: 1}}\n",
        mock.1
    );
    user.write("plan.yaml", &plan);
    let done = user.hob(&["bench", "plan", "plan.yaml", "--json"]).assert().code(&BUSY_OR_NOT[..]);
    let mut asked: Vec<String> = Vec::new();
    for line in stdout(&done).lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("a record");
        let argv = record["harness"]["argv"].as_array().expect("words");
        let words: Vec<&str> = argv.iter().filter_map(serde_json::Value::as_str).collect();
        asked.push(words[2..words.len() - 2].join(" "));
        assert_eq!(record["tts"]["voice"], "ada");
    }
    let expected = ["pcm", "mp3"]
        .map(|format| format!("tts --users 1 --text short --format {format} --voice ada"));
    assert_eq!(asked, expected);
}

#[test]
fn who_comes_while_another_measures_waits_or_is_told_who_it_is() {
    let user = User::new();
    let mock = Mock::start(&user, "ttft_ms=60,itl_ms=1,tokens=8");
    let url = mock.1.clone();
    let queue = user.path("work/bench/records/.queue");
    let first = hob_bench::plan::Ticket::draw(&queue, "hob bench sweep").expect("a ticket");
    let args = ["bench", "llm", "--target", &url, "--shape", "quick_word", "--users", "1"];
    let args = [&args[..], &["--runs-min", "1", "--runs-max", "1", "--no-wait"]].concat();
    let said = stderr(&user.hob(&args).assert().code(5));
    let expected = format!("hob bench sweep measures already (process {})", std::process::id());
    assert!(said.contains(&expected), "{said}");
    let line = stdout(&user.hob(&["bench", "plan", "--queue"]).assert().success());
    assert!(line.starts_with("runs  hob bench sweep"), "{line}");
    let json = json_stdout(&user.hob(&["bench", "plan", "--queue", "--json"]).assert().success());
    assert_eq!([&json["state"], &json["name"]], ["runs", "hob bench sweep"]);
    drop(first);
    user.hob(&args).assert().code(&BUSY_OR_NOT[..]);
}

#[test]
fn two_servers_are_measured_in_turns_and_compared_in_pairs() {
    let user = User::new();
    // As late as in the plan above, for the same reason.
    let fast = Mock::start(&user, "ttft_ms=80,itl_ms=2,tokens=16,cache=true");
    let slow = Mock::start(&user, "ttft_ms=80,itl_ms=8,tokens=16,cache=true");
    let url = |mock: &Mock| mock.1.clone();
    let args = ["bench", "compare", &url(&fast), &url(&slow), "--shape", "quick_word", "--json"];
    let found = json_stdout(&user.hob(&args).assert().success());
    assert_eq!(found["cells"][0]["pairing"], "paired", "{found}");
    let figures = found["cells"][0]["figures"].as_array().expect("figures");
    let pace = figures.iter().find(|figure| figure["metric"] == "tpot_ms").expect("a pace");
    assert_eq!(pace["verdict"], "worse", "{pace}");
}

#[test]
fn a_server_that_fails_before_it_is_compared_leaves_a_record() {
    let user = User::new();
    let fine = Mock::start(&user, "ttft_ms=5,itl_ms=1,tokens=8");
    let bad = Mock::start(&user, "status=500");
    let rows = [([&bad, &fine], ["bad", "fine"]), ([&fine, &bad], ["fine", "bad"])];
    for ([base, new], [model, model_b]) in rows {
        let (base, new) = (base.1.clone(), new.1.clone());
        let models = ["--model", model, "--model-b", model_b];
        let args = [&["bench", "compare", &base, &new][..], &models].concat();
        user.fails(&args, 5, "the server answered 500");
    }
    let found = RecordStore::new(user.path("work/bench/records")).read().expect("records");
    let models: Vec<_> = found.records.iter().map(|(_, record)| &record.model.name).collect();
    assert_eq!(models, ["bad", "bad"]);
}

#[test]
fn what_no_run_can_mend_is_said_before_anything_is_run_again() {
    let user = User::new();
    let mock = Mock::start(&user, "ttft_ms=5,itl_ms=1,tokens=8");
    let url = mock.1.clone();
    let few = ["--shape", "quick_word", "--users", "1", "--runs-min", "2", "--runs-max", "2"];
    let mut measured =
        user.hob(&[&["bench", "llm", "--target", &url, "--json"], &few[..]].concat());
    let record = json_stdout(&measured.assert());
    let id = record["id"].as_str().expect("an id");
    let said = stderr(&user.hob(&["bench", "rerun", id]).assert().code(5));
    for expected in ["stays unverified", "give --launch", "give --model-file", "what was cached"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
