//! What a report says of arms: the switches that were tried, and what is counted next to the score.

use std::sync::atomic::Ordering;

use hob_bench::chat::ThinkingChoice;
use hob_bench::eval::{
    AnsweredItem, ArmFindings, ArmRecord, EvalWorkload, GradedBy, recorded_bounds,
};
use hob_bench::record::{Cache, Record};
use hob_eval::report::{Scenario, UseBounds};
use hob_eval::{GRADING_VERSION, Verdict, own_file};

use crate::scripted_server::{Ability, Server};
use crate::{answers, questions, replies, run, sentences, workload};

#[test]
fn each_thinking_switch_is_tried_and_the_report_says_what_it_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let ability =
        Ability { replies: replies(3, 3), thoughts: 5, is_stubborn: true, ..Ability::default() };
    let off =
        EvalWorkload { thinking: ThinkingChoice::Off, ..workload(questions(3), folder.path()) };
    let records = run(&Server::start(ability), off);
    let [record] = &records[..] else { panic!("one arm: {records:?}") };
    assert_eq!(record.workload.reasoning_switch.as_deref(), Some("enable_thinking: false"));
    let answered = answers(folder.path(), record);
    let said = sentences(&[ArmRecord { record, answered: &answered }]);
    let expected = ": thinking was turned off by `enable_thinking: false`. Tried: \
        reasoning_effort: none (without effect), think: false (moves the thought into the answer), \
        enable_thinking: false (works), thinking: false (without effect), \
        thinking_budget: 0 (without effect), reasoning.max_tokens: 0 (without effect), \
        /no_think (without effect).";
    assert!(said[0].ends_with(expected), "{}", said[0]);
    let leaked = answered.iter().map(|one| AnsweredItem { leaked_thought: true, ..one.clone() });
    let leaked: Vec<_> = leaked.collect();
    let said = sentences(&[ArmRecord { record, answered: &leaked }]).join("\n");
    let expected = "3 of 3 visible answers contain a thought: sums/q0, sums/q1, sums/q2.";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn answers_that_were_not_read_and_grades_by_hand_are_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut replies = replies(10, 10);
    for number in 0..9 {
        replies.insert(format!("What is {number} + 1000?"), "It is a lot.".to_owned());
    }
    let server = Server::start(Ability { replies, ..Ability::default() });
    let records = run(&server, workload(questions(10), folder.path()));
    let overall = &records[0].eval.as_ref().expect("figures").overall;
    assert_eq!((overall.verdicts["malformed"], overall.verdicts["correct"]), (9, 1));
    let [low, high] = overall.score_per_minute_ci95.expect("an interval");
    assert!(low <= high);
    assert!(overall.tokens_per_correct > Some(20.0), "{overall:?}");
    let mut answered = answers(folder.path(), &records[0]);
    answered[0].graded_by = GradedBy::Hand;
    answered[0].verdict = Verdict::Correct;
    let arm = ArmRecord { record: &records[0], answered: &answered };
    let said = sentences(&[arm]).join("\n");
    assert!(said.contains("8 of 10 answers could not be read: sums/q1 ("), "{said}");
    assert!(said.contains("graded by hand: sums/q0 is correct."), "{said}");
    answered[0].verdict = Verdict::Malformed;
    let said = sentences(&[ArmRecord { record: &records[0], answered: &answered }]).join("\n");
    assert!(said.contains(" and 1 more."), "{said}");
}

/// Another seed, or an edited file, has other questions under the same ids.
#[test]
fn the_same_id_with_another_question_is_not_a_pair() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(Ability { replies: replies(4, 4), ..Ability::default() });
    let mut edited = questions(4);
    edited[3].prompt = "What is 3 + 2000?".to_owned();
    let measured = |items| run(&server, workload(items, folder.path()));
    let records = [measured(questions(4)), measured(edited)].concat();
    let answered: Vec<_> = records.iter().map(|one| answers(folder.path(), one)).collect();
    let arms = [0, 1].map(|at| ArmRecord { record: &records[at], answered: &answered[at] });
    let said = sentences(&arms).join("\n");
    assert!(said.contains(" on 3 items;"), "{said}");
    assert!(said.contains("; 1 and 1 items have no partner"), "{said}");
    let expected = "There is no frontier and no best arm, because other items than those of ";
    assert!(said.contains(expected) && !said.contains("Frontier, "), "{said}");
    assert_eq!(ArmFindings::of(&arms, &UseBounds::default()).uses, []);
    let same = ArmFindings::of(&[arms[0], arms[0]], &UseBounds::default());
    let said = same.sentences.join("\n");
    assert!(said.contains("Frontier, ") && !said.contains("no frontier"), "{said}");
    assert!(!same.uses.is_empty(), "{said}");
}

#[test]
fn the_bounds_of_a_run_are_kept_and_decide_the_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(Ability { replies: replies(4, 4), ..Ability::default() });
    let bounds = UseBounds { voice_words: 2, ..UseBounds::default() };
    let short = EvalWorkload { bounds, ..workload(questions(4), folder.path()) };
    let records = run(&server, short);
    let answered = answers(folder.path(), &records[0]);
    let arms = [ArmRecord { record: &records[0], answered: &answered }];
    assert_eq!(recorded_bounds(&arms), bounds);
    let voice = |bounds: &UseBounds| {
        let ArmFindings { mut sentences, uses } = ArmFindings::of(&arms, bounds);
        let mut advice = uses.into_iter();
        let voice = advice.find(|advice| advice.scenario == Scenario::Voice);
        (voice.expect("a use").why, sentences.pop().expect("the bounds"))
    };
    let (narrow, printed) = voice(&bounds);
    assert!(narrow.contains("No arm keeps the bounds"), "an answer has four words: {narrow}");
    assert!(printed.contains("at most 2 words"), "{printed}");
    // A busy machine can be late, but not by ten seconds.
    let (wide, _) = voice(&UseBounds { voice_ttfv_ms: 10_000.0, ..UseBounds::default() });
    assert!(wide.contains("keeps the bounds with the score 1.00"), "{wide}");
}

#[test]
fn an_answer_of_a_megabyte_is_graded_whole_and_kept_without_its_middle() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut replies = replies(2, 2);
    // What has to be seen stands at both ends, and a trap in the middle.
    let half = "x".repeat(512 << 10);
    let long = format!("first {half} mistake {half} last");
    replies.insert("Why?".to_owned(), long.clone());
    let line = r#"{"id":"long","prompt":"Why?","checker":{"kind":"phrases","required":["first","last"],"forbidden":["mistake"]}}"#;
    let mut items = questions(2);
    items.extend(own_file::parse("sums", line).expect("an item"));
    let records = run(
        &Server::start(Ability { replies, ..Ability::default() }),
        workload(items, folder.path()),
    );
    let eval = records[0].eval.as_ref().expect("figures");
    assert_eq!((eval.shortened_answers, eval.grading_version), (1, Some(GRADING_VERSION)));
    let answered = answers(folder.path(), &records[0]);
    assert_eq!(answered[0].verdict, Verdict::Correct);
    let found = &answered[2];
    assert_eq!((found.verdict, found.is_shortened), (Verdict::Wrong, true));
    assert!(found.why.contains("mistake"), "the middle was read, too: {}", found.why);
    assert!(found.answer.len() < 70 << 10 && !found.answer.contains("mistake"));
    assert!(found.answer.starts_with("first x") && found.answer.ends_with("x last"));
    let graders: Vec<_> = answered.iter().filter_map(|one| one.grader.as_ref()).collect();
    let kinds: Vec<&str> = graders.iter().map(|grader| grader.checker.as_str()).collect();
    assert_eq!(kinds, ["number", "number", "phrases"]);
    assert_ne!(graders[0].checker_sha256, graders[1].checker_sha256);
}

/// All prompts begin with the same long text, so a server that keeps it would be faster from the second item on.
#[test]
fn no_item_finds_another_one_in_the_cache_and_a_second_run_says_what_it_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "The river was high that morning. ".repeat(20);
    let line = |number: usize| {
        format!(r#"{{"prompt":"{text}What is {number} + 1000?","reference":{}}}"#, number + 1000)
    };
    let lines: Vec<String> = (0..6).map(line).collect();
    let items = || own_file::parse("texts", &lines.join("\n")).expect("items");
    let reply = |number: usize| (format!("{text}What is {number} + 1000?"), "1000".to_owned());
    let ability = Ability {
        replies: (0..6).map(reply).collect(),
        caches_prompts: true,
        ..Ability::default()
    };
    let server = Server::start(ability);
    let evaluated = || {
        let records = run(&server, workload(items(), folder.path()));
        let answered = answers(folder.path(), &records[0]);
        let said = sentences(&[ArmRecord { record: &records[0], answered: &answered }]);
        (records[0].workload.cache, said.join("\n"))
    };
    let (cache, said) = evaluated();
    assert_eq!(cache, Some(Cache::Cold), "{said}");
    assert!(!said.contains("prompt cache"), "{said}");
    let (cache, said) = evaluated();
    assert_eq!(cache, Some(Cache::Cached), "{said}");
    assert!(said.contains("The prompt cache was warm for 6 of 6 items"), "{said}");
}

#[test]
fn two_cells_of_one_server_keep_their_answers_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(Ability { replies: replies(4, 4), ..Ability::default() });
    let part = |cell: &str, until: Option<usize>| {
        let cell = Some(cell.to_owned());
        run(&server, EvalWorkload { cell, until, ..workload(questions(4), folder.path()) })
    };
    let asked = || server.asked.load(Ordering::Relaxed);
    assert!([part("q4", Some(2)), part("q8", Some(2))].concat().is_empty(), "no record yet");
    assert_eq!(asked(), 4, "neither took an answer of the other");
    let records = [part("q8", None), part("q4", None)].concat();
    assert_eq!(asked(), 8, "each went on with its own answers");
    let kept: Vec<usize> = records.iter().map(|one| answers(folder.path(), one).len()).collect();
    assert_eq!(kept, [4, 4]);
}

#[test]
fn parts_of_two_arms_take_turns_and_the_report_says_where_they_did_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = || Server::start(Ability { replies: replies(6, 6), ..Ability::default() });
    let (a, b) = (server(), server());
    let until = |until| EvalWorkload { until, ..workload(questions(6), folder.path()) };
    let begun: Vec<_> = [&a, &b].iter().flat_map(|server| run(server, until(Some(3)))).collect();
    assert_eq!(begun, [], "a part has no record");
    assert_eq!(a.asked.load(Ordering::Relaxed), 3);
    let second = run(&b, until(None));
    let records = [run(&a, until(None)), second].concat();
    assert_eq!(a.asked.load(Ordering::Relaxed), 6, "the first part was not asked again");
    let late = run(&server(), until(None));
    let of = |record: &Record| answers(folder.path(), record);
    let answered: Vec<_> = records.iter().map(of).collect();
    let arms: Vec<_> = records
        .iter()
        .zip(&answered)
        .map(|(record, answered)| ArmRecord { record, answered })
        .collect();
    let said = sentences(&arms).join("\n");
    assert!(!said.contains("not alternately"), "{said}");
    let answered = of(&late[0]);
    let said = sentences(&[arms[0], ArmRecord { record: &late[0], answered: &answered }]);
    assert!(said.join("\n").contains("and not alternately with it: "), "{said:?}");
}
