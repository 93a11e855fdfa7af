//! Answers that break off after the client has received a part, and continue: from the same target, in the same stream.
//! Text that does not continue the answer never reaches the client.

use std::time::Duration;

use hob_core::chat::{FinishReason, OutputFormat, Usage};
use hob_core::{ChatRequest, Clock, Fault};
use hob_upstream::{AliasOptions, OnInterruption};
use tokio::time::Instant;

use super::fake_model::FakeAnswer;
use super::{Stage, seconds, streamed, whole};

fn cut(words: &'static [&'static str]) -> FakeAnswer {
    FakeAnswer::Break(words, Fault::CutOff)
}

fn continuing(answers: &[(&str, Vec<FakeAnswer>)]) -> Stage {
    Stage::with(answers, |options| options.on_interruption = OnInterruption::Continue)
}

fn says() -> (&'static str, Vec<FakeAnswer>) {
    ("b", vec![FakeAnswer::Say(&["Another."])])
}

#[tokio::test(start_paused = true)]
async fn the_same_target_says_the_rest() {
    let reported = Fault::Reported { message: "the model fell over".to_owned() };
    for (answer, kind) in [
        (cut(&["Hel"]), "cut_off"),
        (FakeAnswer::Stall(&["Hel"]), "idle_timeout"),
        (FakeAnswer::Break(&["Hel"], reported), "reported"),
    ] {
        let stage = continuing(&[("a", vec![answer, FakeAnswer::Say(&["lo", "."])]), says()]);
        let heard = stage.ask(streamed()).await;
        assert_eq!((heard.text.as_str(), heard.error), ("Hello.", None), "{kind}");
        assert_eq!((heard.finish, heard.target.as_deref()), (Some(FinishReason::Stop), Some("a")));
        assert_eq!((heard.broken, heard.repaired), (vec![kind], vec!["continued"]));
        assert_eq!((stage.asked(), heard.failed.len()), (vec![2, 0], 0));
        assert_eq!(stage.fakes[0].last().partial.as_deref(), Some("Hel"));
        let usage = Usage { prompt_tokens: 2, completion_tokens: 3, ..Usage::default() };
        assert_eq!(heard.usage, Some(usage), "one token was said before the break");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_just_before_its_end_mark_is_complete() {
    let stage = continuing(&[("a", vec![cut(&["Hello."]), FakeAnswer::Nothing])]);
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.text.as_str(), heard.finish), ("Hello.", Some(FinishReason::Stop)));
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_twice_and_no_more() {
    let answers =
        vec![cut(&["One "]), cut(&["two "]), cut(&["three "]), FakeAnswer::Say(&["four."])];
    let stage = continuing(&[("a", answers)]);
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.text.as_str(), heard.kind()), ("One two three ", "cut_off"));
    assert_eq!((stage.asked(), heard.broken), (vec![3], vec!["cut_off"; 2]));
    assert_eq!(stage.fakes[0].last().partial.as_deref(), Some("One two "));
}

#[tokio::test(start_paused = true)]
async fn a_new_start_is_dropped_and_a_repetition_is_sent_once() {
    const BEGUN: &[&str] = &["The capital of", " France"];
    for (rest, text, kind) in [
        (&["The capital of Italy is Rome."][..], "The capital of France", "cut_off"),
        (&["The capital of", " France is", " Paris."], "The capital of France is Paris.", "none"),
    ] {
        let stage = continuing(&[("a", vec![cut(BEGUN), FakeAnswer::Say(rest)])]);
        let heard = stage.ask(streamed()).await;
        assert_eq!((heard.text.as_str(), heard.kind()), (text, kind));
        assert_eq!(heard.repaired.is_empty(), kind != "none");
    }
    let thinks = FakeAnswer::Think("Let me see.", &["is Paris."]);
    let stage = continuing(&[("a", vec![cut(BEGUN), thinks])]);
    let heard = stage.ask(streamed()).await;
    assert_eq!(
        (heard.thought.as_str(), heard.kind()),
        ("", "cut_off"),
        "a continuation does not think again"
    );
    assert_eq!(heard.broken, ["cut_off", "invalid_answer"]);
}

#[tokio::test(start_paused = true)]
async fn a_rest_that_does_not_come_leaves_the_break() {
    let no = hob_core::ModelError::upstream("a", Fault::Failed { message: "no".to_owned() });
    let stage = continuing(&[("a", vec![cut(&["Hel"]), FakeAnswer::Refuse(no)]), says()]);
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.text.as_str(), heard.kind()), ("Hel", "cut_off"));
    assert_eq!((heard.broken, heard.target.as_deref()), (vec!["cut_off", "failed"], Some("a")));
    assert_eq!(stage.asked(), [2, 0], "only this target's words");
}

#[tokio::test(start_paused = true)]
async fn limits_hold_for_the_rest_too() {
    let stage = |change: fn(&mut AliasOptions)| {
        let answers = vec![cut(&["Hel"]), FakeAnswer::Say(&["lo."])];
        Stage::with(&[("a", answers)], |options| {
            options.on_interruption = OnInterruption::Continue;
            change(options);
        })
    };
    let one_attempt = stage(|options| options.attempts_max = 1);
    let not_wished = stage(|options| options.on_interruption = OnInterruption::Error);
    for (stage, what) in [(one_attempt, "attempts"), (not_wished, "the default")] {
        let heard = stage.ask(streamed()).await;
        assert_eq!((heard.kind(), stage.asked()), ("cut_off", vec![1]), "{what}");
    }
    let json = ChatRequest { output: OutputFormat::JsonObject, ..streamed() };
    for (request, asked) in [
        (json, 1),
        (ChatRequest { tokens_max: Some(1), ..streamed() }, 1),
        (ChatRequest { tokens_max: Some(9), ..streamed() }, 2),
    ] {
        let stage = stage(|_| {});
        stage.ask(request).await;
        assert_eq!(stage.asked(), [asked]);
    }
    let stage = continuing(&[("restarts", vec![cut(&["Hel"]), FakeAnswer::Say(&["lo."])])]);
    assert_eq!(stage.ask(streamed()).await.kind(), "cut_off", "it cannot go on");
}

#[tokio::test(start_paused = true)]
async fn the_rest_has_no_more_time_than_is_left() {
    let answers = vec![FakeAnswer::Stall(&["Hel"]), FakeAnswer::Hang];
    let stage = Stage::with(&[("a", answers)], |options| {
        options.on_interruption = OnInterruption::Continue;
        options.timeouts.total = Some(seconds(40));
    });
    let started = Instant::now();
    let heard = stage.ask(streamed()).await;
    assert_eq!(heard.kind(), "idle_timeout");
    assert_eq!((started.elapsed().as_secs(), stage.asked()), (40, vec![2]));
    let fault = Fault::TimedOut { clock: Clock::Idle, after: Duration::from_secs(30) };
    assert_eq!(heard.error, Some(hob_core::ModelError::upstream("a", fault)));
}

#[tokio::test(start_paused = true)]
async fn a_collected_answer_is_made_again_by_another_target() {
    let stage = continuing(&[("a", vec![cut(&["Hel"])]), says()]);
    let heard = stage.ask(whole()).await;
    assert_eq!((heard.text.as_str(), heard.target.as_deref()), ("Another.", Some("b")));
}
