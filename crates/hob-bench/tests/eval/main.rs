//! Evaluations of servers with known ability: right with a known share, after a known time.
//! Interrupted runs go on, and grades by hand hold.

mod judge;
#[path = "../../../hob-models/tests/sources/loopback.rs"]
#[expect(dead_code, reason = "the tests of hob-models use more of it")]
mod loopback;
mod report;
mod scripted_server;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hob_bench::chat::{ThinkingChoice, ThinkingSwitch};
use hob_bench::drive::{Arrivals, RequestLimits};
use hob_bench::eval::{
    AnsweredItem, ArmFindings, ArmRecord, EvalWorkload, GradedBy, HandGrade, ItemSet, PromptForm,
    read_answers, regraded,
};
use hob_bench::experiment::{Axis, Experiment, RunSize, Workload};
use hob_bench::record::{Reasoning, Record, RecordKind, RecordStore, RunStatus};
use hob_bench::runs::{BenchError, RecordContext, Step, StopRule};
use hob_bench::target::Target;
use hob_bench::workbench::Workbench;
use hob_eval::report::UseBounds;
use hob_eval::{Item, Verdict, own_file};
use jiff::Timestamp;

use scripted_server::{Ability, Server};

/// Questions with their right answers.
pub(crate) fn questions(count: usize) -> Vec<Item> {
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
pub(crate) fn replies(count: usize, right: usize) -> BTreeMap<String, String> {
    let reply = |number: usize| {
        let value = if number < right { number + 1000 } else { 7 };
        (format!("What is {number} + 1000?"), format!("The answer is {value}."))
    };
    (0..count).map(reply).collect()
}

pub(crate) fn workload(items: Vec<Item>, folder: &Path) -> EvalWorkload {
    let set = ItemSet::new(Vec::new(), 0, 1, items);
    EvalWorkload { folder: folder.to_owned(), ..EvalWorkload::new(Arc::new(set)) }
}

pub(crate) fn measure(
    server: &Server,
    workload: EvalWorkload,
    tell: &mut dyn FnMut(&str, Step<'_>),
    stop: &AtomicBool,
) -> Result<Vec<Record>, BenchError> {
    let limits = RequestLimits { silence: Duration::from_secs(60), ..RequestLimits::default() };
    measure_within(limits, server, workload, (tell, stop))
}

type Tell<'a> = &'a mut dyn FnMut(&str, Step<'_>);

fn measure_within(
    limits: RequestLimits,
    server: &Server,
    workload: EvalWorkload,
    (tell, stop): (Tell<'_>, &AtomicBool),
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
        limits,
        stop,
        tell,
        keep: &mut |record, samples| store.put(record, samples).map(drop),
    };
    experiment.measure(&mut bench)
}

pub(crate) fn run(server: &Server, workload: EvalWorkload) -> Vec<Record> {
    measure(server, workload, &mut |_, _| (), &AtomicBool::new(false)).expect("records")
}

pub(crate) fn answers(folder: &Path, record: &Record) -> Vec<AnsweredItem> {
    let (path, stored) = RecordStore::new(folder).pick(&record.id.to_string()).expect("a record");
    let file = stored.eval.and_then(|eval| eval.answers).expect("answers");
    read_answers(path.parent().expect("a folder"), &file).expect("read")
}

/// What arms show together, with the usual bounds.
pub(crate) fn sentences(arms: &[ArmRecord<'_>]) -> Vec<String> {
    ArmFindings::of(arms, &UseBounds::default()).sentences
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
fn an_answer_has_the_time_at_which_its_item_was_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let ability = Ability { replies: replies(1, 1), wait_ms: 500, ..Ability::default() };
    let (server, never) = (Server::start(ability), AtomicBool::new(false));
    let mut shown = None;
    let mut tell = |_: &str, step: Step<'_>| {
        if let Step::Answered { .. } = step {
            shown = Some(Timestamp::now());
        }
    };
    let records = measure(&server, workload(questions(1), folder.path()), &mut tell, &never);
    let answer = &answers(folder.path(), &records.expect("records")[0])[0];
    let passed = shown.expect("an answer").duration_since(answer.started);
    assert!(passed.as_secs_f64() * 1e3 >= answer.total_ms, "{passed:?} {}", answer.total_ms);
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
    let tried = &records[2].eval.as_ref().expect("figures").thinking_switches;
    let shown: Vec<String> = tried.iter().map(ToString::to_string).collect();
    assert_eq!(shown[..2], ["reasoning_effort: none (works)", "think: false (without effect)"]);
    assert_eq!(tried.len(), ThinkingSwitch::ALL.len());
    let overall = |place: usize| records[place].eval.as_ref().expect("figures").overall.clone();
    assert_eq!(overall(0).ttfv_p50_ms, None, "nothing was visible");
    assert!(overall(0).silence_ms >= Some(40.0));
    assert!(overall(1).ttfv_p50_ms >= Some(40.0), "thoughts are not visible");
    assert_eq!((overall(1).thought_tokens, overall(2).thought_tokens), (Some(30.0), Some(0.0)));
}

#[test]
fn each_temperature_is_an_arm_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let ability = Ability { replies: replies(6, 6), wrong_at: Some(0.7), ..Ability::default() };
    let server = Server::start(ability);
    let temperatures = vec![0.0, 0.7, 0.7];
    let workload = EvalWorkload { temperatures, ..workload(questions(6), folder.path()) };
    let records = run(&server, workload);
    let accuracy = |record: &Record| record.eval.as_ref().expect("figures").overall.accuracy;
    let found: Vec<_> =
        records.iter().map(|one| (one.workload.temperature, accuracy(one))).collect();
    assert_eq!(found, [(Some(0.0), Some(1.0)), (Some(0.7), Some(0.0))]);
    assert!(records[1].eval_arm().contains("temperature 0.7"), "{}", records[1].eval_arm());
    let [cold, warm] = [0, 1].map(|place| answers(folder.path(), &records[place]));
    assert_eq!(server.asked.load(Ordering::Relaxed), 12);
    assert_ne!(cold[0].prompt, warm[0].prompt, "no arm finds another one's prompt in the cache");
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

/// It dies in the middle, and before the last item: then only its list of models can tell that it is dead.
#[test]
fn a_server_that_dies_ends_the_run_and_the_same_command_goes_on() {
    for died_after in [3, 7] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start(Ability { replies: replies(8, 8), ..Ability::default() });
        let dies = |is_dead| server.ability.lock().expect("the ability").is_dead = is_dead;
        let mut said = Vec::new();
        let mut tell = |_: &str, step: Step<'_>| match step {
            Step::Answered { done, .. } if done == died_after => dies(true),
            Step::LeftOut { why } => said.push(why.to_owned()),
            _ => {}
        };
        let stop = AtomicBool::new(false);
        let ended = measure(&server, workload(questions(8), folder.path()), &mut tell, &stop);
        assert!(matches!(ended, Err(BenchError::Fault(_))), "{ended:?}");
        assert_eq!(said, [format!("{died_after} of 8 answers are kept: the same command goes on")]);
        assert_eq!(server.asked.load(Ordering::Relaxed), died_after);
        dies(false);
        let records = run(&server, workload(questions(8), folder.path()));
        let overall = &records[0].eval.as_ref().expect("figures").overall;
        assert_eq!((overall.n, overall.accuracy), (8, Some(1.0)), "nothing counts as no answer");
        assert_eq!(server.asked.load(Ordering::Relaxed), 8, "no answer is asked for again");
    }
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
        // Two pauses of a second are not the model's time.
        assert!(failed.total_ms < 2_000.0, "{failed:?}");
        let said = sentences(&[ArmRecord { record: &records[0], answered: &kept }]).join("\n");
        let expected = format!(": 1 of 5 answers never came: {} ({}", failed.id, failed.why);
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn an_answer_without_end_is_no_answer_and_is_not_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let never_ends_on = "What is 1 + 1000?";
    let ability = Ability { replies: replies(3, 3), never_ends_on, ..Ability::default() };
    let server = Server::start(ability);
    // Long enough for the other answers on a busy machine.
    let limits = RequestLimits { total: Duration::from_secs(5), ..RequestLimits::default() };
    let (mut tell, stop) = (|_: &str, _: Step<'_>| (), AtomicBool::new(false));
    let items = workload(questions(3), folder.path());
    let records = measure_within(limits, &server, items, (&mut tell, &stop)).expect("records");
    let overall = &records[0].eval.as_ref().expect("figures").overall;
    assert_eq!((overall.n, overall.verdicts["correct"], overall.verdicts["no_answer"]), (3, 2, 1));
    assert_eq!(server.asked.load(Ordering::Relaxed), 3);
    let kept = answers(folder.path(), &records[0]);
    assert_eq!(kept[1].why, "the answer did not end within 5 s");
    assert_eq!(kept[1].answer, "And so on");
}

#[test]
fn a_grade_by_hand_holds_for_the_same_answer_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(Ability { replies: replies(4, 3), ..Ability::default() });
    let records = run(&server, workload(questions(4), folder.path()));
    let wrong = answers(folder.path(), &records[0]).pop().expect("four answers");
    let grade = HandGrade {
        item: wrong.id.clone(),
        question_sha256: Some(wrong.question_sha256()),
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
    let replies = |question: &str, reply: &str| {
        let mut ability = server.ability.lock().expect("the ability");
        ability.replies.insert(question.to_owned(), reply.to_owned());
    };
    replies("What is 3 + 1000?", "It is 8.");
    let other = run(&server, with_grade(questions(4)));
    assert_eq!(other[0].eval.as_ref().and_then(|eval| eval.overall.accuracy), Some(0.75));
    replies("What is 3 + 2000?", "The answer is 7.");
    let line = r#"{"id":"q3","prompt":"What is 3 + 2000?","reference":2003}"#;
    let edited = run(&server, with_grade(own_file::parse("sums", line).expect("an item")));
    let accuracy = edited[0].eval.as_ref().and_then(|eval| eval.overall.accuracy);
    assert_eq!(accuracy, Some(0.0), "another question with the same id and the same answer");
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
    let other = fails(by_logprob([items(), questions(1)].concat()));
    assert!(other.starts_with("sums/q0 is not a choice"), "{other}");
    let begun = std::fs::read_dir(folder.path().join(".eval")).expect("a folder").count();
    assert_eq!(begun, 0, "it is found before the first request");
    server.ability.lock().expect("the ability").ignores_echo = true;
    let none = fails(by_logprob(items()));
    assert!(none.contains("those of its own tokens only"), "{none}");
}
