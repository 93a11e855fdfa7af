//! The measuring verbs of `hob bench`, against servers with known answers.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use hob_bench::mock::{MockServer, Script};
use hob_bench::record::{Record, RecordKind, RecordStore, RunStatus};

use crate::executable::write_executable;
use crate::free_port::free_port;
use crate::{Has, User, json_stdout, stderr, stdout};

/// On a machine that is too busy to measure, records say so, and are there all the same.
pub(crate) const BUSY_OR_NOT: [i32; 2] = [0, 5];

#[test]
fn a_server_is_started_for_its_measurement_and_ended_after_it() {
    let user = User::new();
    let mock = LaunchedMock::new("ttft_ms=5,itl_ms=1,tokens=16,cache=true");
    let few = "--shape quick_word --users 1 --runs-min 2 --runs-max 2 --json";
    let done = user.hob(mock.line("llm", few)).assert().code(&BUSY_OR_NOT[..]);
    stderr(&done).has(&["the server was started again"]);
    let record = json_stdout(&done);
    assert_eq!(record["confidence"]["server_starts"], 2);
    assert_eq!(record["engine"]["argv"][0], mock.launch.as_str());
    assert!(record["resources"]["rss_peak_mb"].as_f64().is_some_and(|mb| mb > 1.0), "{record}");
    assert!(mock.has_ended());

    let dead = "'echo no such model >&2; exit 3'";
    let said = "ended (with code 3) before it was ready; it said:\nno such model";
    user.fails(format!("bench llm --target {} --launch {dead}", mock.url), 5, said);
}

#[test]
fn a_server_that_dies_before_it_is_ready_leaves_a_record() {
    let user = User::new();
    let url = format!("http://127.0.0.1:{}", free_port());
    let dead = "echo failed to allocate buffer >&2; exit 1";
    let line = format!("bench llm --target {url} --model m --launch '{dead}'");
    user.fails(line, 5, "ended (with code 1) before it was ready");

    // Another program on its port says nothing about the server.
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", other.local_addr().expect("an address"));
    user.fails(format!("bench llm --target {url} --launch true"), 5, "is in use");

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
    user.fails("bench plan plan.yaml --out plan", 5, "before it was ready");
    let found = RecordStore::new(user.path("work/plan")).read().expect("records");
    let [(_, of_plan)] = &found.records[..] else { panic!("{:?}", found.records) };
    let started = |record: &Record| (record.model.name.clone(), record.engine.argv.clone());
    assert_eq!(started(of_plan), started(record));
}

/// A mock that hob starts for a measurement, on a port that is free now.
struct LaunchedMock {
    port: u16,
    url: String,
    launch: String,
}

impl LaunchedMock {
    fn new(script: &str) -> LaunchedMock {
        let (port, hob) = (free_port(), assert_cmd::cargo::cargo_bin("hob"));
        let hob = hob.display();
        let launch = format!("exec '{hob}' mock --listen 127.0.0.1:{port} --script {script}");
        LaunchedMock { port, url: format!("http://127.0.0.1:{port}"), launch }
    }

    /// The command of a verb that measures it.
    fn line(&self, verb: &str, more: &str) -> String {
        format!("bench {verb} --target {} --launch \"{}\" {more}", self.url, self.launch)
    }

    fn has_ended(&self) -> bool {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err()
    }
}

/// A verb's records of a mock, which is started for it with this script.
fn measured(user: &User, verb: &str, script: &str) -> (Vec<serde_json::Value>, String) {
    let mock = LaunchedMock::new(&format!("ttft_ms=5,itl_ms=1,tokens=8,cache=true,{script}"));
    let line = mock.line(verb, "--runs-min 2 --runs-max 2 --json");
    let done = user.hob(line).assert().code(&BUSY_OR_NOT[..]);
    assert!(mock.has_ended());
    let records =
        stdout(&done).lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    (records, stderr(&done))
}

#[test]
fn many_users_are_measured_in_turns_with_one() {
    let user = User::new();
    let verb = "concurrency --users 1,3 --shape quick_word";
    let (records, _) = measured(&user, verb, "slots=1,ttft_ms=60");
    let [one, three] = &records[..] else { panic!("two records") };
    assert_eq!((&one["kind"], &one["slowdown"]["n"]), (&"concurrency".into(), &1.into()));
    assert_eq!(three["slowdown"]["versus"], one["id"]);
    assert!(three["slowdown"]["scaling"].as_f64().is_some_and(|part| part < 0.6), "{three}");
    user.fails("bench concurrency --users 1", 2, "--users needs at least one value above 1");
}

#[test]
fn a_batch_takes_memory_of_its_own() {
    let user = User::new();
    let verb = "batch --users 2,1 --shape quick_word";
    let (records, said) = measured(&user, verb, "slots=0");
    let users: Vec<_> = records.iter().map(|record| &record["workload"]["concurrency"]).collect();
    assert_eq!(users, [&serde_json::json!(1), &serde_json::json!(2)], "{said}");
    let has_memory =
        |record: &serde_json::Value| record["resources"]["rss_peak_mb"].as_f64().is_some();
    assert!(records.iter().all(has_memory), "{records:?}");
}

#[test]
fn a_context_grows_as_far_as_the_server_holds_it() {
    let user = User::new();
    let verb = "sweep --context-tokens 256,4096 --answer 8";
    let (records, said) = measured(&user, verb, "context_tokens={ctx},tells_context=true");
    let shapes: Vec<_> = records.iter().map(|record| record["workload"]["shape"].clone()).collect();
    assert_eq!(shapes, ["ctx_256", "ctx_256", "ctx_4096", "ctx_4096"], "{said}");
    assert_eq!(records[3]["engine"]["params"]["ctx"], 4096 + 8 + 64 + 64);

    let verb = "sweep --context-tokens 256,4096 --answer 8 --context 1024";
    let (records, said) = measured(&user, verb, "context_tokens={ctx},tells_context=true");
    assert_eq!(records.len(), 2);
    let expected =
        "left out: 4096; the server's context has 1024 tokens, of which the answer takes 8";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn the_longest_context_is_found_by_a_start_with_each() {
    let user = User::new();
    let ceiling = |mock: &LaunchedMock| {
        let done = user.hob(mock.line("max-context", "--json --min 2048 --max 8192")).assert();
        assert!(mock.has_ended());
        done
    };
    let mock = |script: &str| LaunchedMock::new(&format!("ttft_ms=2,itl_ms=1,{script}"));
    // The prompt is 256 tokens shorter than the context, and 64 are written behind it.
    let rows = [
        ("context_tokens={ctx},tells_context=true,load_max=5000", 4864, "oom_load", "reported"),
        ("context_tokens={ctx},prefill_max=4000", 4096, "oom_prefill", "filled"),
        ("context_tokens={ctx},decode_max=4128", 4096, "oom_decode", "filled"),
        ("context_tokens=3000,truncates=true,seed={ctx}", 3072, "unsupported", "filled"),
    ];
    for (script, longest, limit, proof) in rows {
        let done = ceiling(&mock(script)).success();
        let record = json_stdout(&done);
        let found = &record["max_context"];
        assert_eq!((&found["lo_ok"], &found["usable"]), (&longest.into(), &longest.into()));
        assert_eq!((&found["hi_fail"], &found["confirmed"]), (&(longest + 256).into(), &2.into()));
        assert_eq!((&found["limited_by"], &found["proven_by"]), (&limit.into(), &proof.into()));
        stderr(&done).has(&["about 0 left"]);
    }
    // Whatever it is started with, a server with another context answers.
    let mut mock = mock("context_tokens=5000,tells_context=true,seed={ctx}");
    stderr(&ceiling(&mock).code(5)).has(&[
        "2048 is unknown: a server of an earlier start answered",
        "the server was started with 2048 tokens and reports 5000",
    ]);
    mock.launch = "llama-server -c 4096".to_owned();
    stderr(&ceiling(&mock).code(2)).has(&["--launch does not contain {ctx}"]);
}

#[test]
fn a_cold_start_is_told_from_a_warm_one() {
    let user = User::new();
    user.write("weights.gguf", "not many");
    let mock = LaunchedMock::new("ttft_ms=5,itl_ms=1,cold_ms=400,audio_rtf=0.01");
    let cold = |more: &str| {
        let line = mock.line("cold --json --runs-min 2 --runs-max 2 --warm 2", more);
        json_stdout(&user.hob(line).assert().code(&BUSY_OR_NOT[..]))
    };
    let figure = |record: &serde_json::Value, name: &str| record["metrics"][name]["p50"].as_f64();
    let words = cold("--state page_cache_warm --model-file weights.gguf");
    assert_eq!(
        (&words["kind"], &words["workload"]["shape"]),
        (&"cold".into(), &"page_cache_warm".into())
    );
    assert_eq!(words["confidence"]["server_starts"], 2);
    assert!(figure(&words, "ttft_ms").is_some_and(|ms| ms >= 400.0), "{words}");
    assert!(figure(&words, "cold_x").is_some_and(|times| times > 2.0), "{words}");
    assert_eq!(words["resources"]["cold_first_ms"].as_f64(), figure(&words, "cold_first_ms"));
    assert!(figure(&words, "load_ms").is_some_and(|ms| ms > 1.0), "{words}");

    let sound = cold("--state page_cache_warm --speech");
    assert!(figure(&sound, "ttfa_ms").is_some_and(|ms| ms >= 400.0), "{sound}");
    assert!(sound["confidence"]["reasons"].to_string().contains("cache_unverified"), "{sound}");

    let swap = cold("--swap-with other");
    assert!(figure(&swap, "swap_ms").is_some() && figure(&swap, "load_ms").is_none(), "{swap}");

    user.fails(mock.line("cold", ""), 2, "give the file with --model-file");
}

#[test]
fn a_server_that_cannot_be_started_anew_has_no_cold_start_and_no_ceiling() {
    let user = User::new();
    let mock = MockServer::start_local(Script::default()).expect("a mock");
    for verb in ["cold", "max-context"] {
        let line = format!("bench {verb} --target {}", mock.url());
        user.fails(line, 2, "give --launch the command that starts it");
    }
}

#[test]
fn the_name_of_a_file_need_not_be_utf8() {
    let user = User::new();
    let mut hob = user.hob("bench llm --target http://127.0.0.1:1 --out");
    stderr(&hob.arg(OsStr::from_bytes(b"caf\xe9")).assert().code(5)).has(&["127.0.0.1:1"]);
}

/// The command of a verb that measures a mock with this script once.
fn measured_once(verb: &str, script: &str) -> String {
    LaunchedMock::new(script).line(verb, "--runs-min 1 --runs-max 1")
}

/// A driver that says so many MiB: first when nothing was started, then more.
#[cfg(unix)]
#[test]
fn what_a_card_gives_to_a_server_is_in_its_record() {
    let user = User::new();
    let line = measured_once("llm --shape quick_word --json", "ttft_ms=5,itl_ms=1,tokens=8");
    let driver = user.path("work").join("nvidia-smi");
    write_executable(
        &driver,
        "#!/bin/sh\nif [ -e asked ]; then echo '3500, 8188'; else echo '500, 8188'; touch asked; fi\n",
    );
    let folder = driver.parent().expect("a folder").display();
    let path = format!("{folder}:/usr/bin:/bin");
    let done = user.hob(line).env("PATH", path).assert();
    // A record for each number of users.
    let record = stdout(&done).lines().next().expect("a record").to_owned();
    let record: serde_json::Value = serde_json::from_str(&record).expect("a record");
    let vram = &record["resources"]["vram_mb"];
    let mb = |name: &str| vram[name].as_f64().map(f64::round);
    assert_eq!((mb("idle"), mb("loaded"), mb("peak")), (Some(524.0), Some(3670.0), Some(3670.0)));
}

#[test]
fn many_listen_to_one_voice() {
    let user = User::new();
    let verb = "concurrency --speech short --format pcm --users 2 --requests 1";
    let (records, _) = measured(&user, verb, "slots=1");
    assert_eq!(records.len(), 2);
    assert_eq!(records[1]["tts"]["format"], "pcm");
    assert!(records[1]["slowdown"]["ttfa_x"].is_number(), "{}", records[1]);
    let both = "bench batch --speech --shape quick_word --target http://127.0.0.1:9";
    user.fails(both, 2, "cannot be used with");
}

#[test]
fn a_text_is_spoken_and_timed() {
    let user = User::new();
    let verb = "tts --text short --format pcm --voice ada --json";
    // A machine that is too busy to measure says so by its code, and prints the record all the same.
    let done = user.hob(measured_once(verb, "ttft_ms=20,audio_rtf=0.01")).assert();
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

    user.fails("bench tts --text novel", 2, "known texts: short, medium, long");
    user.fails("bench tts", 3, "kokoro");
}

#[test]
fn who_fakes_streaming_is_told_so_and_that_is_no_failure() {
    let user = User::new();
    let verb = "stream --text medium --format mp3 --stream yes";
    let said = user.prints(measured_once(verb, "audio=hold_all,ttft_ms=200,audio_rtf=0.05"));
    assert!(said.contains("mp3 by tone: fakes it: the first sound comes after"), "{said}");
    let line = said.lines().find(|line| line.ends_with("medium, mp3, tone, asked for"));
    assert!(line.is_some_and(|line| line.contains("···█")), "{said}");

    let user = User::new();
    user.fails(measured_once(verb, "status=500"), 5, "the server answered 500");
    // It failed before the first run, and has a record all the same.
    let found = RecordStore::new(user.path("work/bench/records")).read().expect("records");
    let [(_, record)] = &found.records[..] else { panic!("{:?}", found.records) };
    assert!(record.invalid_reasons[0].contains("the server answered 500"), "{record:?}");
}
