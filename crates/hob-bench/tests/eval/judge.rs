//! A judge model that compares the answers of two arms: what it says in both orders, and resuming.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hob_bench::drive::RequestLimits;
use hob_bench::eval::{ArmRecord, ComparedArms, JudgeFailure, JudgeRun, JudgedArms};
use hob_bench::runs::Step;
use hob_bench::target::Target;
use hob_bench::workbench::Asker;
use hob_eval::judge::JudgeTally;
use hob_eval::{Verdict, own_file};

use crate::scripted_server::{Ability, Server};
use crate::{answers, run, sentences, workload};

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
        (answers(folder, &records[0]), records[0].clone())
    };
    let (a, record) = arm(|number| format!("Because of reason {number}, and others."));
    let (b, _) = arm(|number| match number {
        4 => "<think>Because.</think>".to_owned(),
        _ => format!("Because {number}."),
    });
    assert!(a.iter().all(|answered| answered.verdict == Verdict::Open));
    let said = sentences(&[ArmRecord { record: &record, answered: &a }]).join("\n");
    assert!(said.contains(": 5 open questions (0 without a visible answer)"), "{said}");
    let arms = ComparedArms::of(&a, &b, 100);
    assert_eq!((arms.items.len(), arms.without_answer, arms.unpaired), (4, [0, 1], 0));
    assert_eq!(ComparedArms::of(&a, &b, 3).beyond_limit, 1);
    assert_eq!(ComparedArms::of(&a, &a, 100).identical.len(), 5);
    arms
}

/// The two answers in a judge's prompt.
fn answers_in(prompt: &str) -> [&str; 2] {
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
    let [first, second] = answers_in(prompt);
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
        limits: RequestLimits { silence: Duration::from_secs(60), ..RequestLimits::default() },
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
