//! `hob bench plan` and `hob bench compare`, against servers with known answers.

use std::io::{BufRead as _, BufReader};

use hob_bench::record::{Record, RecordKind, RecordSource, RecordStore, Spread};
use hob_bench::terms::Metric;

use crate::bench::BUSY_OR_NOT;
use crate::{Has, User, json_stdout, stderr, stdout, until};

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

    let said = user.prints(format!("bench compare {} {slow}", &base[28..]));
    said.has(&[
        "Unpaired: measured at different times",
        "gen tok/s",
        "5.1 tok/s",
        "-19.6 %",
        "slower",
    ]);
    let found = user.json(format!("bench compare {base} {near} --json"));
    assert_eq!(found["cells"][0]["pairing"], "unpaired");
    assert_eq!(found["cells"][0]["figures"][0]["finding"], "inconclusive", "{found}");
    let refused = stdout(&user.hob(format!("bench compare {base} {other}")).assert().code(8));
    assert!(refused.contains("refused: different number of users: 1 and 4"), "{refused}");
    let mixed = "a server can only be compared with a server";
    user.fails(format!("bench compare {base} http://a"), 2, mixed);
    let three = "bench compare http://a http://b --against http://c";
    user.fails(three, 2, "only two servers can be compared at a time");

    let gate = |new: &str, code| {
        let line = format!("bench gate {new} --against {base} --figure decode_tok_s");
        stdout(&user.hob(line).assert().code(code))
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
    let wide = format!("bench gate {slow} --against {base} --figure decode_tok_s");
    user.prints(format!("{wide} --threshold 30"));
    user.prints(format!("{wide} --noise {base} {slow}"));
    let noise = format!("{wide} --noise {base} {other}");
    user.fails(noise, 2, "--noise expects records of the same cell");
    user.refusal(format!("bench gate {slow} --against none"), 2);
    let compare = format!("bench compare {base} {slow}");
    user.prints(&compare);
    user.refusal(format!("{compare} --fail-on-regression"), 1);
    user.fails(format!("bench compare {base}"), 2, "expected BASE and NEW");
    user.fails(format!("{compare} --users 1"), 2, "--users has no effect: these are records");
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

    /// Writes a plan that measures this mock.
    fn plan(&self, user: &User, more: &str) {
        let target = format!("targets: [{{name: here, url: \"{}\"}}]\n", self.1);
        user.write("plan.yaml", &format!("schema: bench-plan/1\nname: small\n{target}{more}"));
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
    let mock = Mock::start(&user, "ttft_ms=200,itl_ms=1,tokens=8,cache=true");
    let matrix = "{kind: [llm], shape: [quick_word, quick_coding], concurrency: [1, 2]}";
    mock.plan(&user, &format!("matrix: {matrix}\nruns: {{min: 1, max: 1}}\n"));
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
    let mut first = user.process("bench plan plan.yaml --json");
    let mut first = first.stdout(std::process::Stdio::null()).spawn().expect("a campaign");
    until(300, "no record came", || count() > 0);
    first.kill().and_then(|()| first.wait()).expect("it ran");
    let before = count();
    assert!(before < 4, "it was killed too late");

    let dry = user.hob("bench plan plan.yaml --dry-run").assert().success();
    let left = format!("{} of 4 cells are left", 4 - before);
    stderr(&dry).has(&[&left]);
    let dry = user.hob("bench plan plan.yaml --dry-run --json").assert().success();
    let cells = stdout(&dry);
    let done = cells.lines().filter(|cell| cell.contains("\"done\":true")).count();
    assert_eq!((cells.lines().count(), done), (4, before), "{cells}");
    let rest = user.hob("bench plan plan.yaml").assert().success();
    let told = format!("4 cells: {} measured, {before} done before, 0 failed, 0 left", 4 - before);
    stderr(&rest).has(&[&told]);
    user.notes("bench llm --plan plan.yaml").has(&["4 cells: 0 measured, 4 done before"]);
    user.fails("bench tts --plan plan.yaml", 2, "names no cell of tts");
    assert_eq!(count(), 4);
}

#[test]
fn a_cell_that_fails_is_kept_and_stops_only_a_plan_that_says_so() {
    let user = User::new();
    let mock = Mock::start(&user, "ttft_ms=5,itl_ms=1,tokens=8,status=500");
    for (on_fail, told) in [
        ("record", "2 cells: 0 measured, 0 done before, 2 failed, 0 left"),
        ("stop", "2 cells: 0 measured, 0 done before, 1 failed, 1 left"),
    ] {
        let matrix = "{kind: [llm], shape: [quick_word], concurrency: [1, 2]}";
        mock.plan(&user, &format!("matrix: {matrix}\non_fail: {on_fail}\n"));
        let done = user.hob(format!("bench plan plan.yaml --out {on_fail}")).assert().code(5);
        stderr(&done).has(&[told, "the server answered 500"]);
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
    let plan = "matrix: {kind: [llm], shape: [quick_word], concurrency: [1]}\n\
                runs: {min: 1, max: 1}\nbudget: {answer_s: 2}\non_fail: retry\n";
    mock.plan(&user, plan);
    let done = user.hob("bench plan plan.yaml").assert().code(&BUSY_OR_NOT[..]);
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
    let matrix = "{kind: [tts], text: [short], format: [pcm, mp3], voice: [ada], concurrency: [1]}";
    mock.plan(&user, &format!("matrix: {matrix}\nruns: {{min: 1, max: 1}}\n"));
    let done = user.hob("bench plan plan.yaml --json").assert().code(&BUSY_OR_NOT[..]);
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
    let once = "--shape quick_word --users 1 --runs-min 1 --runs-max 1 --no-wait";
    let line = format!("bench llm --target {url} {once}");
    let expected = format!("hob bench sweep measures already (process {})", std::process::id());
    user.fails(&line, 5, &expected);
    let queue = user.prints("bench plan --queue");
    assert!(queue.starts_with("runs  hob bench sweep"), "{queue}");
    let json = user.json("bench plan --queue --json");
    assert_eq!([&json["state"], &json["name"]], ["runs", "hob bench sweep"]);
    drop(first);
    user.hob(line).assert().code(&BUSY_OR_NOT[..]);
}

#[test]
fn lengths_that_are_left_out_are_no_failure() {
    let user = User::new();
    let script = "ttft_ms=2,itl_ms=1,tokens=8,context_tokens=1024,tells_context=true";
    let mock = Mock::start(&user, script);
    let target = &mock.1;
    let said =
        user.notes(format!("bench sweep --target {target} --context-tokens 4096 --answer 8"));
    assert!(said.contains("left out: 4096"), "{said}");
    assert!(!said.contains("asked once") && !said.contains("the median of its runs"), "{said}");

    mock.plan(&user, "matrix: {kind: [sweep], context: [4096, 8192]}\non_fail: stop\n");
    let said = user.notes("bench plan plan.yaml");
    let expected = "2 cells: 0 measured, 0 done before, 0 failed, 2 left";
    assert!(said.contains(expected), "a cell that is left out has not failed: {said}");
}

#[test]
fn two_servers_are_measured_in_turns_and_compared_in_pairs() {
    let user = User::new();
    // As late as in the plan above, for the same reason.
    let fast = Mock::start(&user, "ttft_ms=80,itl_ms=2,tokens=16,cache=true");
    let slow = Mock::start(&user, "ttft_ms=80,itl_ms=8,tokens=16,cache=true");
    let (fast, slow) = (&fast.1, &slow.1);
    let found = user.json(format!("bench compare {fast} {slow} --shape quick_word --json"));
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
        let models = format!("--model {model} --model-b {model_b}");
        let line = format!("bench compare {} {} {models}", base.1, new.1);
        user.fails(line, 5, "the server answered 500");
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
    let few = "--shape quick_word --users 1 --runs-min 2 --runs-max 2";
    let mut measured = user.hob(format!("bench llm --target {url} --json {few}"));
    let record = json_stdout(&measured.assert());
    let id = record["id"].as_str().expect("an id");
    user.refusal(format!("bench rerun {id}"), 5).has(&[
        "stays unverified",
        "give --launch",
        "give --model-file",
        "what was cached",
    ]);
}
