//! Evaluations of servers with known ability: right with a known share, after a known time.
//! Interrupted runs go on, and grades by hand hold.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hob_bench::chat::ThinkingChoice;
use hob_bench::drive::{Arrivals, Patience};
use hob_bench::eval::{
    AnsweredItem, ComparedArms, EvalWorkload, GradedBy, HandGrade, ItemSet, JudgeFailure, JudgeRun,
    JudgedArms, PromptForm, comparison, read_answers, regraded,
};
use hob_bench::experiment::{Axis, Experiment, RunSize, Workload};
use hob_bench::record::{Reasoning, Record, RecordKind, RecordStore, RunStatus};
use hob_bench::runs::{BenchError, RecordContext, Step, StopRule};
use hob_bench::target::Target;
use hob_bench::workbench::{Asker, Workbench};
use hob_eval::judge::JudgeTally;
use hob_eval::{Item, Verdict, own_file};

/// What the server can do.
#[derive(Clone, Debug, Default)]
struct Ability {
    /// The answer to each question, right or wrong.
    replies: BTreeMap<String, String>,
    /// Before the first visible character.
    wait_ms: u64,
    /// Tokens of thinking, unless `reasoning_effort` is `none`.
    thoughts: usize,
    /// With this budget or less, a thinking server says nothing.
    thinks_up_to: u64,
    /// The number of the question from which on the server breaks off.
    dies_at: usize,
    /// Whether it tells log-probabilities of its own tokens only.
    ignores_echo: bool,
    /// What it says to a question that has no reply.
    judge: Option<fn(&str) -> String>,
    /// The question at which it breaks off each time.
    chokes_on: &'static str,
    /// Whether it breaks off all answers.
    is_dead: bool,
}

/// A server on a port of its own.
struct Server {
    url: String,
    ability: Arc<Mutex<Ability>>,
    /// Questions, without the probes.
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn start(ability: Ability) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (ability, asked) = (Arc::new(Mutex::new(ability)), Arc::new(AtomicUsize::new(0)));
        let (shared, count) = (Arc::clone(&ability), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, count) = (Arc::clone(&shared), Arc::clone(&count));
                thread::spawn(move || serve(stream, &shared, &count));
            }
        });
        Server { url, ability, asked }
    }
}

/// One connection. It ends when the client leaves.
fn serve(stream: TcpStream, ability: &Mutex<Ability>, asked: &AtomicUsize) {
    let mut writer = stream.try_clone().expect("a stream");
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if header.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        if line.starts_with("GET /v1/models") {
            whole(&mut writer, 200, r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#);
        } else if line.starts_with("POST /v1/chat/completions") {
            let ability = ability.lock().expect("the ability").clone();
            if !answer(&mut writer, &body, &ability, asked) {
                return;
            }
        } else if line.starts_with("POST /v1/completions") {
            let ability = ability.lock().expect("the ability").clone();
            whole(&mut writer, 200, &scored(&body, &ability));
        } else {
            whole(&mut writer, 404, "{}");
        }
    }
}

fn whole(writer: &mut TcpStream, status: u16, body: &str) {
    let length = body.len();
    let text = format!("HTTP/1.1 {status} OK\r\ncontent-length: {length}\r\n\r\n{body}");
    writer.write_all(text.as_bytes()).expect("written");
}

/// False: the server broke off.
fn answer(writer: &mut TcpStream, body: &[u8], ability: &Ability, asked: &AtomicUsize) -> bool {
    let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    let prompt = body["messages"].as_array().and_then(|all| all.last()).expect("a message");
    let prompt = prompt["content"].as_str().expect("a prompt");
    let question = prompt.split_once("] ").map_or(prompt, |(_, question)| question);
    let judged = ability.judge.map(|judge| judge(question));
    let reply = ability.replies.get(question).or(judged.as_ref());
    let budget = body["max_tokens"].as_u64().expect("a limit");
    let thinks = body["reasoning_effort"] != "none" && ability.thoughts > 0;
    let is_spent = thinks && reply.is_some() && budget <= ability.thinks_up_to;
    if ability.is_dead || question == ability.chokes_on {
        return false;
    }
    if reply.is_some() && asked.fetch_add(1, Ordering::Relaxed) + 1 == ability.dies_at {
        return false;
    }
    let mut text =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            .to_owned();
    writer.write_all(text.as_bytes()).expect("written");
    text.clear();
    let event = |delta: serde_json::Value, finish: Option<&str>| {
        let choice = serde_json::json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", serde_json::json!({ "choices": [choice] }))
    };
    let thoughts = if thinks { ability.thoughts } else { 0 };
    for _ in 0..thoughts {
        text += &event(serde_json::json!({ "reasoning_content": "hm " }), None);
    }
    if reply.is_some() {
        writer.write_all(text.as_bytes()).expect("written");
        text.clear();
        thread::sleep(Duration::from_millis(ability.wait_ms));
    }
    let words = if is_spent { "" } else { reply.map_or("ok", String::as_str) };
    let pieces: Vec<&str> = words.split_inclusive(' ').collect();
    for piece in &pieces {
        text += &event(serde_json::json!({ "content": piece }), None);
    }
    text += &event(serde_json::json!({}), Some(if is_spent { "length" } else { "stop" }));
    let usage = serde_json::json!({
        "prompt_tokens": 40, "completion_tokens": thoughts + pieces.len().max(1),
        "completion_tokens_details": { "reasoning_tokens": thoughts },
    });
    text += &format!("data: {}\n\n", serde_json::json!({ "choices": [], "usage": usage }));
    text += "data: [DONE]\n\n";
    // `connection: close`: the end of the body is the end of the connection.
    let _gone = writer.write_all(text.as_bytes());
    false
}

/// Log-probabilities of the words of a text, and of one more token. The reply to a question is the likeliest.
fn scored(body: &[u8], ability: &Ability) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    let prompt = body["prompt"].as_str().expect("a prompt");
    let question = prompt.strip_prefix("Question: ").and_then(|rest| rest.split_once("\nAnswer:"));
    let (question, option) = question.expect("a question with an option");
    let is_likely = ability.replies.get(question).map(String::as_str) == Some(option.trim());
    let words: Vec<&str> = prompt.split_inclusive(' ').chain([" more"]).collect();
    let starts = words.iter().scan(0, |at, word| {
        let start = *at;
        *at += word.chars().count();
        Some(start)
    });
    let value = |at: usize| match at {
        0 => serde_json::Value::Null,
        at if at + 2 >= words.len() && is_likely => (-0.1).into(),
        _ => (-1.0).into(),
    };
    let mut logprobs = serde_json::json!({
        "tokens": words, "text_offset": starts.collect::<Vec<usize>>(),
        "token_logprobs": (0..words.len()).map(value).collect::<Vec<_>>(),
    });
    if ability.ignores_echo {
        logprobs =
            serde_json::json!({ "tokens": ["x"], "text_offset": [90], "token_logprobs": [-1.0] });
    }
    serde_json::json!({ "choices": [{ "text": "", "logprobs": logprobs }] }).to_string()
}

/// Questions with their right answers.
fn questions(count: usize) -> Vec<Item> {
    let line = |number: usize| {
        format!(
            r#"{{"id":"q{number}","prompt":"What is {number} + 1000?","reference":{}}}"#,
            number + 1000
        )
    };
    let lines: Vec<String> = (0..count).map(line).collect();
    own_file::parse("sums", &lines.join("\n")).expect("items")
}

/// Right replies to this many of the questions, and wrong ones to the rest.
fn replies(count: usize, right: usize) -> BTreeMap<String, String> {
    let reply = |number: usize| {
        let value = if number < right { number + 1000 } else { 7 };
        (format!("What is {number} + 1000?"), format!("The answer is {value}."))
    };
    (0..count).map(reply).collect()
}

fn workload(items: Vec<Item>, folder: &Path) -> EvalWorkload {
    let set = ItemSet::new(Vec::new(), 0, 1, items);
    EvalWorkload { folder: folder.to_owned(), ..EvalWorkload::new(Arc::new(set)) }
}

fn measure(
    server: &Server,
    workload: EvalWorkload,
    tell: &mut dyn FnMut(&str, Step<'_>),
    stop: &AtomicBool,
) -> Result<Vec<Record>, BenchError> {
    let store = RecordStore::new(&workload.folder);
    let experiment = Experiment {
        workload: Workload::Eval(workload),
        axis: Axis::Load(vec![Arrivals::Closed { users: 1 }]),
        run_size: RunSize { rounds: 1, span_s: 0.0 },
    };
    let mut bench = Workbench {
        target: Target::find(&server.url, None, Some("m"), None).expect("a server"),
        started: None,
        context: RecordContext { seed: 1, ..RecordContext::default() },
        stop_rule: StopRule::default(),
        patience: Patience { silence: Duration::from_secs(5), ..Patience::default() },
        stop,
        tell,
        keep: &mut |record, samples| store.put(record, samples).map(drop),
    };
    experiment.measure(&mut bench)
}

fn run(server: &Server, workload: EvalWorkload) -> Vec<Record> {
    measure(server, workload, &mut |_, _| (), &AtomicBool::new(false)).expect("records")
}

fn answers(folder: &Path, record: &Record) -> Vec<AnsweredItem> {
    let (path, stored) = RecordStore::new(folder).pick(&record.id.to_string()).expect("a record");
    let file = stored.eval.and_then(|eval| eval.answers).expect("answers");
    read_answers(path.parent().expect("a folder"), &file).expect("read")
}

#[test]
fn a_server_comes_out_at_its_ability_and_at_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let ability = Ability { replies: replies(60, 42), wait_ms: 30, ..Ability::default() };
    let server = Server::start(ability);
    let records = run(&server, workload(questions(60), folder.path()));
    let [record] = &records[..] else { panic!("one arm: {records:?}") };
    assert_eq!((record.kind, record.status), (RecordKind::Eval, RunStatus::Ok));
    let eval = record.eval.as_ref().expect("figures");
    let overall = &eval.overall;
    assert_eq!((overall.n, overall.accuracy), (60, Some(0.7)));
    let [low, high] = overall.accuracy_ci95.expect("an interval");
    assert!(low > 0.5 && high < 0.85, "{low} {high}");
    let ttfv = overall.ttfv_p50_ms.expect("a time");
    assert!((30.0..90.0).contains(&ttfv), "{ttfv}");
    assert_eq!(overall.verdicts["wrong"], 18);
    assert_eq!(eval.tasks, ["sums"]);
    let answers = answers(folder.path(), record);
    assert_eq!(answers.len(), 60);
    assert!(answers[0].prompt.ends_with("] What is 0 + 1000?"), "{}", answers[0].prompt);
    assert_eq!(
        (answers[59].answer.as_str(), answers[59].verdict),
        ("The answer is 7.", Verdict::Wrong)
    );
    let again = run(&server, workload(questions(60), folder.path()));
    let again = again[0].eval.as_ref().expect("figures");
    assert_eq!(again.overall.accuracy, overall.accuracy, "the same scores twice");
    assert_eq!(again.set_sha256, eval.set_sha256);
}

#[test]
fn a_thinking_server_is_timed_at_its_visible_text_and_budgets_show() {
    let folder = tempfile::tempdir().expect("a folder");
    let ability = Ability {
        replies: replies(10, 10),
        wait_ms: 40,
        thoughts: 30,
        thinks_up_to: 100,
        ..Ability::default()
    };
    let server = Server::start(ability);
    let workload = EvalWorkload {
        thinking: ThinkingChoice::Auto,
        budgets: vec![Some(100), Some(1_000)],
        ..workload(questions(10), folder.path())
    };
    let records = run(&server, workload);
    let figures: Vec<_> = records
        .iter()
        .map(|record| {
            let eval = record.eval.as_ref().expect("figures");
            let spent = eval.overall.verdicts.get("budget").copied().unwrap_or_default();
            (record.workload.reasoning, eval.budget_tokens, eval.overall.accuracy, spent)
        })
        .collect();
    assert_eq!(
        figures,
        [
            (Some(Reasoning::Enabled), Some(100), Some(0.0), 10),
            (Some(Reasoning::Enabled), Some(1_000), Some(1.0), 0),
            (Some(Reasoning::Disabled), Some(100), Some(1.0), 0),
            (Some(Reasoning::Disabled), Some(1_000), Some(1.0), 0),
        ]
    );
    assert_eq!(records[2].workload.reasoning_switch.as_deref(), Some("reasoning_effort: none"));
    let overall = |place: usize| records[place].eval.as_ref().expect("figures").overall.clone();
    assert_eq!(overall(0).ttfv_p50_ms, None, "nothing was visible");
    assert!(overall(0).silence_ms >= Some(40.0));
    assert!(overall(1).ttfv_p50_ms >= Some(40.0), "thoughts are not visible");
    assert_eq!((overall(1).thought_tokens, overall(2).thought_tokens), (Some(30.0), Some(0.0)));
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(Ability { replies: replies(20, 20), ..Ability::default() });
    let stop = AtomicBool::new(false);
    let mut tell = |_: &str, step: Step<'_>| {
        if let Step::Answered { done: 8, .. } = step {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let first = measure(&server, workload(questions(20), folder.path()), &mut tell, &stop);
    assert_eq!(first.expect("no failure"), [], "a stopped run has no record");
    let asked = server.asked.load(Ordering::Relaxed);
    assert_eq!(asked, 8);
    // A crash in the middle of a line.
    let file = std::fs::read_dir(folder.path().join(".eval")).expect("a folder").flatten().next();
    let file = file.expect("a file of answers").path();
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, &text[..text.len() - 30]).expect("written");
    let records = run(&server, workload(questions(20), folder.path()));
    assert_eq!(server.asked.load(Ordering::Relaxed), asked + 13, "the last line was cut off");
    assert_eq!(records[0].eval.as_ref().map(|eval| eval.overall.n), Some(20));
    assert!(!file.exists(), "it has moved to the record");
    let ids: std::collections::BTreeSet<String> =
        answers(folder.path(), &records[0]).into_iter().map(|answered| answered.id).collect();
    assert_eq!(ids.len(), 20);
}

#[test]
fn a_server_that_breaks_off_once_is_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let ability = Ability { replies: replies(6, 6), dies_at: 3, ..Ability::default() };
    let server = Server::start(ability);
    let records = run(&server, workload(questions(6), folder.path()));
    let overall = &records[0].eval.as_ref().expect("figures").overall;
    assert_eq!((overall.n, overall.accuracy), (6, Some(1.0)));
    assert_eq!(server.asked.load(Ordering::Relaxed), 7);
}

#[test]
fn one_item_that_a_server_cannot_answer_does_not_end_the_run() {
    for chokes_on in ["What is 2 + 1000?", "What is 4 + 1000?"] {
        let folder = tempfile::tempdir().expect("a folder");
        let ability = Ability { replies: replies(5, 5), chokes_on, ..Ability::default() };
        let records = run(&Server::start(ability), workload(questions(5), folder.path()));
        let overall = &records[0].eval.as_ref().expect("figures").overall;
        assert_eq!((overall.n, overall.accuracy, overall.verdicts["no_answer"]), (5, Some(0.8), 1));
        let kept = answers(folder.path(), &records[0]);
        let failed = kept.iter().find(|one| one.prompt.contains(chokes_on)).expect("the item");
        assert!(failed.why.starts_with("the server failed on this item each time"), "{failed:?}");
    }
}

#[test]
fn a_grade_by_hand_holds_for_the_same_answer_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(Ability { replies: replies(4, 3), ..Ability::default() });
    let records = run(&server, workload(questions(4), folder.path()));
    let wrong = answers(folder.path(), &records[0]).pop().expect("four answers");
    let grade = HandGrade {
        item: wrong.id.clone(),
        answer_sha256: wrong.answer_sha256.clone(),
        verdict: Verdict::Correct,
        score: 1.0,
        why: "7 is fine".to_owned(),
    };
    let store = RecordStore::new(folder.path());
    let corrected: Vec<AnsweredItem> = answers(folder.path(), &records[0])
        .into_iter()
        .map(|answered| answered.with_hand_grades(std::slice::from_ref(&grade)))
        .collect();
    let record = regraded(&store, &records[0], &corrected).expect("a record");
    let eval = record.eval.as_ref().expect("figures");
    assert_eq!((eval.overall.accuracy, eval.corrected_by_hand), (Some(1.0), 1));
    assert_eq!(record.supersedes, Some(records[0].id));
    let kept = answers(folder.path(), &record);
    assert_eq!(kept[3].graded_by, GradedBy::Hand);
    let with_grade =
        |items| EvalWorkload { hand_grades: vec![grade.clone()], ..workload(items, folder.path()) };
    let again = run(&server, with_grade(questions(4)));
    assert_eq!(again[0].eval.as_ref().and_then(|eval| eval.overall.accuracy), Some(1.0));
    let question = "What is 3 + 1000?".to_owned();
    server.ability.lock().expect("the ability").replies.insert(question, "It is 8.".to_owned());
    let other = run(&server, with_grade(questions(4)));
    assert_eq!(other[0].eval.as_ref().and_then(|eval| eval.overall.accuracy), Some(0.75));
}

#[test]
fn choices_are_scored_by_log_probability() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |number: usize| {
        format!(r#"{{"prompt":"Which {number}?","choices":["iron","neon","tin"],"answer":1}}"#)
    };
    let lines: Vec<String> = (0..3).map(line).collect();
    let items = || own_file::parse("gases", &lines.join("\n")).expect("items");
    let reply = |number: usize, option: &str| (format!("Which {number}?"), option.to_owned());
    let replies = [reply(0, "neon"), reply(1, "neon"), reply(2, "tin")].into();
    let server = Server::start(Ability { replies, ..Ability::default() });
    let by_logprob =
        |items| EvalWorkload { form: PromptForm::ScoredOptions, ..workload(items, folder.path()) };
    let records = run(&server, by_logprob(items()));
    let eval = records[0].eval.as_ref().expect("figures");
    assert_eq!((eval.overall.n, eval.overall.accuracy), (3, Some(2.0 / 3.0)));
    assert!(eval.choices_by_logprob);
    let answers = answers(folder.path(), &records[0]);
    assert_eq!((answers[2].answer.as_str(), answers[2].verdict), ("tin", Verdict::Wrong));
    let fails = |workload| {
        let failed = measure(&server, workload, &mut |_, _| (), &AtomicBool::new(false));
        failed.expect_err("no scores").to_string()
    };
    let other = fails(by_logprob(questions(1)));
    assert!(other.starts_with("sums/q0 is not a choice"), "{other}");
    server.ability.lock().expect("the ability").ignores_echo = true;
    let none = fails(by_logprob(items()));
    assert!(none.contains("those of its own tokens only"), "{none}");
}

/// Four open questions, to which A has longer answers than B, and one to which B has none.
fn open_arms(folder: &Path) -> ComparedArms {
    let line = |number: usize| format!(r#"{{"id":"q{number}","prompt":"Why {number}?"}}"#);
    let lines: Vec<String> = (0..5).map(line).collect();
    let items = || own_file::parse("whys", &lines.join("\n")).expect("items");
    let arm = |reply: fn(usize) -> String| {
        let replies = (0..5).map(|number| (format!("Why {number}?"), reply(number))).collect();
        let server = Server::start(Ability { replies, ..Ability::default() });
        let records = run(&server, workload(items(), folder));
        let overall = &records[0].eval.as_ref().expect("figures").overall;
        assert_eq!((overall.n, overall.accuracy), (0, None), "open questions are in no score");
        answers(folder, &records[0])
    };
    let a = arm(|number| format!("Because of reason {number}, and others."));
    let b = arm(|number| match number {
        4 => "<think>Because.</think>".to_owned(),
        _ => format!("Because {number}."),
    });
    assert!(a.iter().all(|answered| answered.verdict == Verdict::Open));
    let said = comparison(&[("A".to_owned(), &a[..])]).join("\n");
    assert!(said.starts_with("A: 5 open questions (0 without a visible answer)"), "{said}");
    let arms = ComparedArms::of(&a, &b, 100);
    assert_eq!((arms.items.len(), arms.without_answer, arms.unpaired), (4, [0, 1], 0));
    assert_eq!(ComparedArms::of(&a, &b, 3).beyond_limit, 1);
    assert_eq!(ComparedArms::of(&a, &a, 100).identical.len(), 5);
    arms
}

/// The two answers in a judge's prompt.
fn shown(prompt: &str) -> [&str; 2] {
    ["1", "2"].map(|place| {
        let start = format!("<answer {place}>\n");
        let (_, rest) = prompt.split_once(&start).expect("an answer");
        rest.split_once("\n</answer").expect("its end").0
    })
}

fn prefers_the_first(_: &str) -> String {
    "Both are good. **Verdict: 1**\n**Verdict: 1**".to_owned()
}

fn prefers_the_longer(prompt: &str) -> String {
    let [first, second] = shown(prompt);
    format!("Verdict: {}", if first.len() > second.len() { 1 } else { 2 })
}

fn judge(
    server: &Server,
    arms: &ComparedArms,
    folder: &Path,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<JudgedArms, JudgeFailure> {
    let stop = AtomicBool::new(false);
    let asker = Asker {
        target: Target::find(&server.url, None, Some("m"), None).expect("a server"),
        patience: Patience { silence: Duration::from_secs(5), ..Patience::default() },
        seed: 1,
        stop: &stop,
    };
    let file = folder.join("verdicts.jsonl");
    JudgeRun { arms, tokens_max: 256, file }.ask_all(&asker, tell)
}

#[test]
fn a_judge_that_prefers_a_position_decides_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let arms = open_arms(folder.path());
    let ability = Ability { judge: Some(prefers_the_first), thoughts: 5, ..Ability::default() };
    let judged = judge(&Server::start(ability), &arms, folder.path(), &mut |_| ());
    let tally = judged.expect("verdicts").tally(0);
    let JudgeTally { wins_a, wins_b, ties, unread, agreement, first_position, .. } = tally;
    assert_eq!((wins_a, wins_b, ties, unread), (0, 0, 4, 0));
    assert_eq!((agreement.hits, agreement.of), (0, 4));
    assert_eq!((first_position.hits, first_position.of), (8, 8));
}

#[test]
fn a_judge_that_dies_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let arms = open_arms(folder.path());
    let server = Server::start(Ability { judge: Some(prefers_the_longer), ..Ability::default() });
    let mut tell = |step: Step<'_>| {
        if let Step::Answered { done: 3, .. } = step {
            server.ability.lock().expect("the ability").is_dead = true;
        }
    };
    let failure = judge(&server, &arms, folder.path(), &mut tell).expect_err("it died");
    assert_eq!((failure.kept, failure.all), (3, 8));
    let said = failure.to_string();
    assert!(said.starts_with("the judge failed after 3 of 8 verdicts: "), "{said}");
    server.ability.lock().expect("the ability").is_dead = false;
    // A crash in the middle of a line.
    let file = folder.path().join("verdicts.jsonl");
    let text = std::fs::read_to_string(&file).expect("read");
    assert_eq!(text.matches("\"judged_by\":\"m\"").count(), 3, "{text}");
    std::fs::write(&file, &text[..text.len() - 30]).expect("written");
    let asked = server.asked.load(Ordering::Relaxed);
    let again = || judge(&server, &arms, folder.path(), &mut |_| ()).expect("verdicts");
    let judged = again();
    assert_eq!(server.asked.load(Ordering::Relaxed), asked + 6, "the last line was cut off");
    assert!(judged.is_whole());
    let tally = judged.tally(0);
    assert_eq!((tally.wins_a, tally.wins_b, tally.ties, tally.unread), (4, 0, 0, 0));
    assert_eq!((tally.agreement.hits, tally.agreement.of), (4, 4));
    assert_eq!((tally.first_position.hits, tally.first_position.of), (4, 8));
    assert_eq!(again().tally(0), tally, "all verdicts are in the file");
    assert_eq!(server.asked.load(Ordering::Relaxed), asked + 6);
}
