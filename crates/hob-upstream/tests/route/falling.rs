//! What follows a failure: another target before the first content, an error after it.
//! `hob selftest gateway` tests all faults over HTTP; these tests cover the decisions that it cannot see.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hob_core::chat::{Effort, EmbedInput, FinishReason, Prompt, Thinking};
use hob_core::{ChatRequest, Clock, EmbedRequest, Fault, ModelError, ModelState};
use hob_upstream::{AttemptTimeouts, FallbackUntil, WhileLoading};
use tokio::time::Instant;

use super::fake_model::{FakeAnswer, REQUESTS_MAX};
use super::{Stage, seconds, streamed, whole};

const HELLO: &[&str] = &["Hel", "lo."];

fn fails(fault: Fault) -> FakeAnswer {
    FakeAnswer::Refuse(ModelError::upstream("a", fault))
}

fn broken() -> Fault {
    Fault::Failed { message: "no".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_the_first_content_stays_hidden() {
    for answer in [fails(broken()), fails(Fault::Empty), FakeAnswer::Break(&[], Fault::CutOff)] {
        for request in [streamed(), ChatRequest { judges_turn: true, ..streamed() }, whole()] {
            let stage =
                Stage::new(&[("a", vec![answer.clone()]), ("b", vec![FakeAnswer::Say(HELLO)])]);
            let heard = stage.ask(request).await;
            assert_eq!((heard.text.as_str(), heard.error), ("Hello.", None), "{answer:?}");
            assert_eq!(heard.target.as_deref(), Some("b"));
            assert_eq!(heard.failed.len(), 1);
        }
    }
}

/// A chat template may refuse a conversation that others can say.
#[tokio::test(start_paused = true)]
async fn a_request_that_one_model_refuses_goes_to_the_next() {
    let reason = "do not suit the model".to_owned();
    let refused = ModelError::InvalidField { field: "messages", reason };
    let refuses = || vec![FakeAnswer::Refuse(refused.clone())];
    let stage = Stage::new(&[("a", refuses()), ("b", vec![FakeAnswer::Say(HELLO)])]);
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.text.as_str(), heard.error), ("Hello.", None));
    assert_eq!(heard.target.as_deref(), Some("b"));
    let field = |field| ModelError::InvalidField { field, reason: "is wrong".to_owned() };
    let second = vec![FakeAnswer::Refuse(field("messages"))];
    let heard = Stage::new(&[("a", refuses()), ("b", second)]).ask(streamed()).await;
    assert_eq!(heard.error, Some(refused), "the client learns what is wrong");
    let (crash, says) = (FakeAnswer::Refuse(field("regex")), FakeAnswer::Say(HELLO));
    let stage = Stage::new(&[("a", vec![crash]), ("b", vec![says])]);
    let heard = stage.ask(streamed()).await;
    assert_eq!(heard.error, Some(field("regex")), "it may have crashed the first");
    assert_eq!(stage.asked(), [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_leaves_each_candidate_its_first_attempt() {
    let gone = || {
        FakeAnswer::Refuse(ModelError::upstream("a", Fault::Unreachable { detail: String::new() }))
    };
    let two = || vec![gone(), gone()];
    let stage = Stage::new(&[("a", two()), ("b", two()), ("c", vec![FakeAnswer::Say(HELLO)])]);
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.text.as_str(), heard.error), ("Hello.", None));
    assert_eq!(heard.target.as_deref(), Some("c"));
    assert_eq!(heard.failed.len(), 3, "one second try was left over: {:?}", heard.failed);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_would_begin_after_the_time_limit_is_not_made() {
    let gone = Fault::Unreachable { detail: String::new() };
    for (total, asked) in [
        // A retry waits for 50 ms to 60 ms.
        (Duration::from_nanos(50_000_001), 1),
        (Duration::from_millis(70), 2),
    ] {
        let stage = Stage::with(&[("a", vec![fails(gone.clone())])], |options| {
            options.timeouts.total = Some(total);
        });
        assert_eq!(stage.ask(streamed()).await.kind(), "unreachable");
        assert_eq!(stage.asked(), [asked], "{total:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_made_again_only_if_it_was_not_read() {
    let answers = || {
        [
            ("a", vec![FakeAnswer::Break(&["Hel"], Fault::CutOff)]),
            ("b", vec![FakeAnswer::Say(HELLO)]),
        ]
    };
    let heard = Stage::new(&answers()).ask(streamed()).await;
    assert_eq!((heard.text.as_str(), heard.kind()), ("Hel", "cut_off"));
    let heard = Stage::new(&answers()).ask(whole()).await;
    assert_eq!((heard.text.as_str(), heard.finish), ("Hello.", Some(FinishReason::Stop)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_says_what_to_do() {
    let half: &'static str = "x".repeat(17 << 20).leak();
    let long = FakeAnswer::Say(vec![half, half].leak());
    let heard = Stage::new(&[("a", vec![long.clone()])]).ask(whole()).await;
    let error = heard.error.expect("too large").to_string();
    let expect = "the answer has more than 33554432 bytes, which is the limit of one that is not \
                  streamed; set 'stream', or ask for less in one request";
    assert!(error.contains(expect), "{error}");
    let heard = Stage::new(&[("a", vec![long])]).ask(streamed()).await;
    assert_eq!((heard.text.len(), heard.error), (34 << 20, None));
}

#[tokio::test(start_paused = true)]
async fn a_model_here_may_read_its_first_long_prompt_for_minutes() {
    let reads = FakeAnswer::After(seconds(200), Box::new(FakeAnswer::Say(HELLO)));
    let long = ChatRequest { prompt: Prompt::Text("word ".repeat(5_000)), ..streamed() };
    let heard = Stage::new(&[("a", vec![reads])]).ask(long).await;
    assert_eq!((heard.text.as_str(), heard.error), ("Hello.", None));
}

#[tokio::test(start_paused = true)]
async fn silence_has_its_time_and_no_more() {
    for (answer, kind, after) in [
        (FakeAnswer::Hang, "first_token_timeout", seconds(45)),
        (FakeAnswer::Stall(&[]), "first_token_timeout", seconds(45)),
        (FakeAnswer::Stall(&["Hel"]), "idle_timeout", seconds(30)),
    ] {
        let stage = Stage::new(&[("a", vec![answer])]);
        let started = Instant::now();
        let heard = stage.ask(streamed()).await;
        assert_eq!(heard.kind(), kind);
        assert_eq!(started.elapsed().as_secs(), after.as_secs(), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn models_of_our_own_have_the_times_that_are_written_for_all() {
    let written = AttemptTimeouts {
        first_token: Some(seconds(5)),
        idle: Some(seconds(3)),
        total: Some(seconds(20)),
        ..AttemptTimeouts::default()
    };
    let own = AttemptTimeouts { first_token: Some(seconds(9)), ..AttemptTimeouts::default() };
    for (answer, alias, kind, after_s) in [
        (FakeAnswer::Hang, AttemptTimeouts::default(), "first_token_timeout", 5),
        (FakeAnswer::Stall(&["Hel"]), AttemptTimeouts::default(), "idle_timeout", 3),
        (FakeAnswer::Hang, own, "first_token_timeout", 9),
    ] {
        let stage =
            Stage::under(written, &[("a", vec![answer])], |options| options.timeouts = alias);
        let started = Instant::now();
        assert_eq!(stage.ask(streamed()).await.kind(), kind);
        assert_eq!(started.elapsed().as_secs(), after_s, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_whole_request_has_one_end() {
    let total = seconds(60);
    let stage =
        Stage::with(&[("a", vec![FakeAnswer::Hang]), ("b", vec![FakeAnswer::Hang])], |options| {
            options.timeouts.total = Some(total);
        });
    let started = Instant::now();
    let heard = stage.ask(streamed()).await;
    assert_eq!(heard.kind(), "total_timeout");
    assert_eq!(started.elapsed().as_secs(), 60, "45 s for the first, the rest for the second");
    assert!(matches!(
        heard.error,
        Some(ModelError::Upstream { fault: Fault::TimedOut { clock: Clock::Total, .. }, .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_attempt_counts_no_failure() {
    let stage = Stage::new(&[("a", vec![FakeAnswer::Stall(&["Hel"])])]);
    for round in 1..=5 {
        let mut events = stage.model().chat(streamed()).await.expect("a beginning");
        assert!(events.next().await.is_some());
        drop(events);
        assert_eq!(stage.fakes[0].dropped(), round, "the work behind it stops");
    }
    let heard = stage.ask(ChatRequest::default()).await;
    assert_eq!(heard.kind(), "idle_timeout", "it was asked, and did not rest");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_request_is_not_tried_on_other_targets() {
    let refused = Fault::Refused { message: "bad".to_owned() };
    let stage = Stage::new(&[("a", vec![fails(refused)]), ("b", vec![FakeAnswer::Say(HELLO)])]);
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.kind(), stage.asked()), ("refused", vec![1, 0]));
    assert!(matches!(heard.error, Some(ModelError::Upstream { .. })), "as the target said it");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_fails_again_and_again_rests_and_then_one_request_tries_it() {
    let answers = vec![fails(broken()), fails(broken()), fails(broken()), FakeAnswer::Say(HELLO)];
    let stage = Stage::new(&[("a", answers), ("b", vec![FakeAnswer::Say(HELLO)])]);
    for _ in 0..6 {
        assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("b"));
    }
    assert_eq!(stage.asked(), [3, 6], "after three failures it is left alone");
}

#[tokio::test(start_paused = true)]
async fn when_all_circuits_are_open_the_client_gets_the_delay() {
    let limited = || Fault::Limited { message: "no".to_owned(), retry_after: Some(seconds(30)) };
    let stage = Stage::new(&[("a", vec![fails(limited())])]);
    let first = stage.ask(streamed()).await;
    assert_eq!(first.kind(), "rate_limited");
    let heard = stage.ask(streamed()).await;
    let Some(ModelError::Resting { alias, retry_after }) = heard.error else {
        panic!("{:?}", heard.error)
    };
    assert_eq!((alias.as_str(), stage.asked()), ("fast", vec![1]));
    assert!(retry_after > seconds(25) && retry_after <= seconds(30), "{retry_after:?}");
}

#[tokio::test(start_paused = true)]
async fn all_that_failed_is_said() {
    let overloaded =
        Fault::Overloaded { message: "busy".to_owned(), retry_after: Some(seconds(9)) };
    let empty = FakeAnswer::Refuse(ModelError::upstream("b", Fault::Empty));
    let stage = Stage::new(&[("a", vec![fails(overloaded)]), ("b", vec![empty])]);
    let heard = stage.ask(streamed()).await;
    let error = heard.error.expect("no target answers");
    assert_eq!(error.kind(), "empty_answer", "the last one's");
    let said = error.to_string();
    assert!(
        said.contains("a: is overloaded: busy") && said.contains("b: the answer was empty"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_incapable_target_does_not_hide_the_real_fault() {
    let too_long = || FakeAnswer::Refuse(ModelError::TooLong { needed: 900, available: 500 });
    for after in [None, Some(seconds(1))] {
        let answers = [("a", vec![fails(broken())]), ("b", vec![too_long()])];
        let stage = Stage::with(&answers, |options| options.hedge_after = after);
        let heard = stage.ask(streamed()).await;
        assert_eq!((heard.kind(), stage.asked()), ("failed", vec![1, 1]));
    }
    let alone = Stage::new(&[("b", vec![too_long()])]);
    assert_eq!(alone.ask(streamed()).await.kind(), "too_long");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_loading_leaves_it_to_the_next_or_waits_where_that_is_asked_for() {
    let loading = || FakeAnswer::Refuse(ModelError::Loading { retry_after: seconds(4) });
    let stage = Stage::new(&[("a", vec![loading()]), ("b", vec![FakeAnswer::Say(HELLO)])]);
    assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("b"));
    let alone = Stage::new(&[("a", vec![loading()])]);
    assert_eq!(alone.ask(streamed()).await.kind(), "model_loading");
    let answers = vec![loading(), loading(), loading(), FakeAnswer::Say(HELLO)];
    let patient =
        Stage::with(&[("a", answers)], |options| options.while_loading = WhileLoading::Wait);
    assert_eq!(patient.ask(streamed()).await.text, "Hello.");
}

#[tokio::test(start_paused = true)]
async fn warm_targets_come_before_waiting_and_waiting_before_another_load() {
    let loading = || FakeAnswer::Refuse(ModelError::Loading { retry_after: seconds(4) });
    let loads = || vec![loading(), loading(), loading(), FakeAnswer::Say(HELLO)];
    let patient = |answers: &[(&str, Vec<FakeAnswer>)]| {
        Stage::with(answers, |options| options.while_loading = WhileLoading::Wait)
    };
    let warm = ("warm", vec![FakeAnswer::Say(HELLO)]);
    let stage = patient(&[("a", loads()), warm.clone()]);
    let started = Instant::now();
    assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("warm"));
    assert_eq!((stage.asked(), started.elapsed().as_secs()), (vec![1, 1], 0), "its load began");
    let cold = ("cold", vec![FakeAnswer::Say(HELLO)]);
    let stage = patient(&[("a", loads()), cold.clone(), ("warm", vec![fails(broken())])]);
    stage.fakes[1].set_state(ModelState::Cold);
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.target.as_deref(), stage.asked()), (Some("a"), vec![4, 0, 1]));
    let stage = patient(&[("a", loads()), cold]);
    stage.fakes[1].set_state(ModelState::Cold);
    assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn thinking_commits_unless_only_the_answer_is_to() {
    let answers = || {
        let thinks = FakeAnswer::Break(&[], Fault::CutOff);
        [("a", vec![FakeAnswer::Think("Hm", &[]), thinks]), ("b", vec![FakeAnswer::Say(HELLO)])]
    };
    let heard = Stage::new(&answers()).ask(streamed()).await;
    assert_eq!((heard.thought.as_str(), heard.target.as_deref()), ("Hm", Some("a")));
    let answers =
        [("a", vec![FakeAnswer::Stall(&[])]), ("b", vec![FakeAnswer::Think("Hm", HELLO)])];
    let stage =
        Stage::with(&answers, |options| options.fallback_until = FallbackUntil::FirstContent);
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.thought.as_str(), heard.text.as_str()), ("Hm", "Hello."));
}

#[tokio::test(start_paused = true)]
async fn thinking_that_was_switched_off_is_noticed() {
    let stage = Stage::new(&[("a", vec![FakeAnswer::Think("Hm", HELLO)])]);
    let effort = Some(Effort::None);
    let off = Thinking { effort, tokens_max: None };
    let request = ChatRequest { thinking: off, ..streamed() };
    let trace = request.trace.clone();
    stage.ask(request).await;
    assert!(trace.snapshot().thought_anyway);
    let route = hob_core::UpstreamResolver::route(&stage.gateway, "fast").expect("an alias");
    assert!(route.targets[0].thinks_anyway);
}

#[tokio::test(start_paused = true)]
async fn a_local_model_that_ends_without_content_has_answered() {
    let stage =
        Stage::new(&[("a", vec![FakeAnswer::Nothing]), ("b", vec![FakeAnswer::Say(HELLO)])]);
    for request in [streamed(), whole(), streamed(), whole(), streamed()] {
        let heard = stage.ask(request).await;
        assert_eq!((heard.error, heard.finish), (None, Some(FinishReason::Stop)));
        assert_eq!((heard.text.as_str(), heard.target.as_deref()), ("", Some("a")));
        assert!(heard.failed.is_empty(), "it is not a failure: {:?}", heard.failed);
    }
    assert_eq!(stage.asked(), [5, 0], "it does not rest");
}

#[tokio::test(start_paused = true)]
async fn vectors_fall_back_too() {
    let stage = Stage::new(&[("a", vec![fails(broken())]), ("b", vec![FakeAnswer::Say(HELLO)])]);
    let request = words(1);
    let trace = request.trace.clone();
    let made = stage.model().embed(request).await.expect("vectors");
    assert_eq!((made.vectors.len(), trace.snapshot().target.as_deref()), (1, Some("b")));
}

#[tokio::test(start_paused = true)]
async fn a_model_here_may_turn_many_texts_into_vectors_for_minutes() {
    let stage = Stage::new(&[("a", vec![says_after(200)])]);
    assert_eq!(stage.model().embed(words(5_000)).await.expect("vectors").vectors.len(), 1);
    let error = stage.model().embed(words(1)).await.expect_err("too long for one word");
    assert_eq!(error.kind(), "first_token_timeout");
}

#[tokio::test(start_paused = true)]
async fn vectors_show_how_fast_a_model_reads() {
    let stage = Stage::new(&[("a", vec![says_after(40), says_after(100)])]);
    for time in ["within the usual limit", "because the model was as slow before"] {
        assert_eq!(stage.model().embed(words(80)).await.expect(time).vectors.len(), 1);
    }
}

fn says_after(time_s: u64) -> FakeAnswer {
    FakeAnswer::After(seconds(time_s), Box::new(FakeAnswer::Say(HELLO)))
}

/// About as many tokens.
fn words(count: usize) -> EmbedRequest {
    let inputs = vec![EmbedInput::Text("word ".repeat(count))];
    EmbedRequest { inputs, ..EmbedRequest::default() }
}

#[tokio::test(start_paused = true)]
async fn vectors_of_an_alias_count_against_the_limit_of_their_model() {
    let stage = Stage::new(&[("a", vec![FakeAnswer::Hang])]);
    let embed = || stage.model().embed(EmbedRequest::default());
    let mut hanging: FuturesUnordered<_> = (0..REQUESTS_MAX).map(|_| embed()).collect();
    assert!(futures::poll!(hanging.next()).is_pending());
    let error = embed().await.expect_err("one more than the model takes");
    assert!(matches!(error, ModelError::Busy { .. }), "{error}");
}
