//! The order of targets: which is tried first, which is skipped, and which is tried in parallel.
//! A target that lacks an ability, or whose context is too small, never answers.

use std::time::Duration;

use futures::StreamExt;
use hob_core::chat::{Conversation, Message, Prompt, Role, Tool};
use hob_core::routing::Strategy;
use hob_core::{Chat, ChatRequest, Fault, JsonText, ModelError, ModelState, Resolve};
use hob_upstream::{AliasOptions, Gateway, GatewayOptions, TargetOptions};
use hob_wire::Parameters;
use tokio::time::Instant;

use super::fake_model::{FakeAnswer, FakeModel, locals};
use super::{Stage, seconds, streamed, whole};

const HELLO: &[&str] = &["Hello."];

fn says() -> Vec<FakeAnswer> {
    vec![FakeAnswer::Say(HELLO)]
}

#[tokio::test(start_paused = true)]
async fn a_prompt_goes_where_it_fits() {
    let stage = Stage::with(&[("small", says()), ("large", says())], |options| {
        options.targets[0].context_tokens = Some(100);
        options.targets[1].context_tokens = Some(100_000);
    });
    let prompt = |bytes| ChatRequest { prompt: Prompt::Text("x".repeat(bytes)), ..streamed() };
    assert_eq!(stage.ask(prompt(50)).await.target.as_deref(), Some("small"));
    assert_eq!(stage.ask(prompt(5000)).await.target.as_deref(), Some("large"));
    let heard = stage.ask(prompt(5_000_000)).await;
    let Some(ModelError::Upstream { target, fault }) = heard.error else {
        panic!("{:?}", heard.error)
    };
    let Fault::TooLong { message, needed, available } = fault else { panic!("{fault}") };
    assert!(message.contains("maximum context length is 100000 tokens"), "{message}");
    assert_eq!((target.as_str(), available), ("large", Some(100_000)));
    assert!(needed > Some(700_000) && stage.asked() == [1, 1], "{needed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_longer_than_any_context_is_shortened_as_without_an_alias() {
    let stage = Stage::with(&[("small", says()), ("large", says())], |options| {
        options.targets[0].context_tokens = Some(1000);
        options.targets[1].context_tokens = Some(4000);
    });
    let request = |tokens_max| ChatRequest {
        prompt: Prompt::Text("x".repeat(400)),
        tokens_max: Some(tokens_max),
        ..streamed()
    };
    let heard = stage.ask(request(2000)).await;
    assert_eq!((heard.error, heard.target.as_deref()), (None, Some("large")), "it fits there");
    let heard = stage.ask(request(100_000)).await;
    assert_eq!((heard.error, heard.target.as_deref()), (None, Some("small")));
    assert_eq!(stage.fakes[0].last().tokens_max, Some(800), "1000 less at most 200 for the prompt");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_was_too_long_is_only_sent_to_larger_contexts() {
    let too_long = FakeAnswer::Refuse(ModelError::TooLong { needed: 900, available: 500 });
    let answers = [("a", vec![too_long]), ("smaller", says()), ("larger", says())];
    let stage = Stage::with(&answers, |options| {
        options.targets[0].context_tokens = Some(500);
        options.targets[1].context_tokens = Some(400);
        options.targets[2].context_tokens = Some(2000);
    });
    let heard = stage.ask(streamed()).await;
    assert_eq!((heard.target.as_deref(), stage.asked()), (Some("larger"), vec![1, 0, 1]));
}

#[tokio::test(start_paused = true)]
async fn an_incapable_target_is_not_tried() {
    let tool = Tool { name: "add".to_owned(), description: None, parameters: None, strict: false };
    let messages = vec![Message::new(Role::User, "1+1?")];
    let conversation = Conversation { messages, tools: vec![tool], ..Conversation::default() };
    let request = || ChatRequest { prompt: Prompt::Chat(conversation.clone()), ..streamed() };
    let stage = Stage::new(&[("plain", says()), ("able", says())]);
    assert_eq!(stage.ask(request()).await.target.as_deref(), Some("able"));
    assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("plain"));
    let prompt = Prompt::Infill { prefix: "1+".to_owned(), suffix: "=2".to_owned() };
    let infill = || ChatRequest { prompt: prompt.clone(), ..streamed() };
    assert_eq!(stage.ask(infill()).await.target.as_deref(), Some("able"));
    let stage = Stage::with(&[("able", says())], |options| {
        options.targets[0].capabilities = Some(vec!["images".to_owned()]);
    });
    assert_eq!(stage.ask(infill()).await.target.as_deref(), Some("able"));
    let heard = stage.ask(request()).await;
    assert_eq!(
        heard.error.expect("an error").to_string(),
        "no target of 'fast' can do what this request needs: tools"
    );
}

#[tokio::test(start_paused = true)]
async fn parameters_that_the_target_does_not_take_are_named() {
    for (targets, dropped) in [
        (["plain", "able"], vec!["new_field"]),
        (["able", "plain"], vec![]),
        // Then the server names them.
        (["plain", "plainer"], vec![]),
    ] {
        let extra = Some(JsonText::parsed(r#"{"new_field":1}"#));
        let request = ChatRequest { extra, ..streamed() };
        let trace = request.trace.clone();
        let late = FakeAnswer::After(seconds(1), Box::new(FakeAnswer::Say(HELLO)));
        let stage = Stage::new(&targets.map(|name| (name, vec![late.clone()])));
        // Two choices of one answer.
        let (heard, _) = tokio::join!(stage.ask(request.clone()), stage.ask(request));
        assert_eq!(heard.target.as_deref(), Some(targets[0]));
        assert_eq!(trace.snapshot().dropped, dropped, "{targets:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_warm_one_is_asked_first_where_that_is_wished() {
    let stage =
        Stage::with(&[("a", says()), ("b", says())], |options| options.strategy = Strategy::Warm);
    stage.fakes[0].set_state(ModelState::Cold);
    assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("b"));
    stage.fakes[0].set_state(ModelState::Ready);
    assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn weights_decide_and_zero_is_never_first() {
    let stage = Stage::with(&[("a", says()), ("b", says())], |options| {
        options.strategy = Strategy::Weighted;
        options.targets[0].weight = 0.0;
    });
    for _ in 0..50 {
        stage.ask(streamed()).await;
    }
    assert_eq!(stage.asked(), [0, 50]);
}

#[tokio::test(start_paused = true)]
async fn a_nested_alias_has_the_weight_of_its_entry() {
    let fakes = ["a", "b", "c"].map(|name| FakeModel::new(name, says()));
    let target = |name, weight| TargetOptions { weight, ..TargetOptions::plain(name) };
    let alias =
        |name, strategy, targets| AliasOptions { strategy, targets, ..AliasOptions::plain(name) };
    let asked = async |inner: Strategy, weights: [f64; 2]| {
        let targets = vec![target("b", 1.0), target("c", 3.0)];
        let inner = alias("inner", inner, targets);
        let targets = vec![target("a", weights[0]), target("inner", weights[1])];
        let outer = alias("outer", Strategy::Weighted, targets);
        let options = GatewayOptions { aliases: vec![inner, outer], ..Default::default() };
        let gateway = Gateway::new(options, &locals(&fakes), None).expect("a gateway");
        let alias = Resolve::<Chat>::resolve(&gateway, "outer").expect("an alias");
        let before = [0, 1, 2].map(|place| fakes[place].asked());
        for _ in 0..100 {
            let events = alias.model.chat(streamed()).await.expect("an answer");
            events.collect::<Vec<_>>().await;
        }
        [0, 1, 2].map(|place| fakes[place].asked() - before[place])
    };
    assert_eq!(asked(Strategy::Order, [1.0, 0.0]).await, [100, 0, 0]);
    assert_eq!(asked(Strategy::Order, [0.0, 1.0]).await, [0, 100, 0], "its first one's");
    let [own, first, second] = asked(Strategy::Weighted, [0.0, 1.0]).await;
    assert!(own == 0 && first > 0 && second > first, "{first} {second}");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_fails_at_once_is_not_the_least_busy() {
    let no = ModelError::upstream("a", Fault::Failed { message: "no".to_owned() });
    let stage = Stage::with(&[("a", vec![FakeAnswer::Refuse(no)]), ("b", says())], |options| {
        options.strategy = Strategy::LeastWait;
    });
    for _ in 0..10 {
        assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("b"));
    }
    assert!(stage.asked()[0] <= 1, "{:?}", stage.asked());
}

#[tokio::test(start_paused = true)]
async fn the_next_one_is_asked_too_when_the_first_says_nothing() {
    let late = |time, words| vec![FakeAnswer::After(time, Box::new(FakeAnswer::Say(words)))];
    let hedged = |answers: &[(&str, Vec<FakeAnswer>)]| {
        Stage::with(answers, |options| options.hedge_after = Some(Duration::from_millis(300)))
    };
    let stage = hedged(&[("slow", late(seconds(9), HELLO)), ("quick", says())]);
    let started = Instant::now();
    let heard = stage.ask(whole()).await;
    assert_eq!((heard.target.as_deref(), stage.asked()), (Some("quick"), vec![1, 1]));
    assert_eq!(started.elapsed().as_millis(), 300);
    assert_eq!(
        (heard.asked, heard.paused.as_millis()),
        (2, 300),
        "waiting for the target is not hob's overhead"
    );
    let stage = hedged(&[("slow", late(Duration::from_millis(200), HELLO)), ("quick", says())]);
    assert_eq!(stage.ask(whole()).await.target.as_deref(), Some("slow"));
    assert_eq!(stage.asked(), [1, 0], "no other target was needed");
    let stage = hedged(&[
        ("slow", late(Duration::from_millis(400), HELLO)),
        ("never", vec![FakeAnswer::Hang]),
    ]);
    let heard = stage.ask(whole()).await;
    assert_eq!(heard.text, "Hello.", "the first may still win");
    assert_eq!((heard.asked, heard.paused.as_millis()), (2, 0));
    let no = ModelError::upstream("a", Fault::CutOff);
    let stage = hedged(&[("fails", vec![FakeAnswer::Refuse(no)]), ("good", says())]);
    let started = Instant::now();
    assert_eq!(stage.ask(whole()).await.target.as_deref(), Some("good"));
    assert_eq!(started.elapsed().as_millis(), 0, "a failure is not waited out");
    let after = |ms, answer| vec![FakeAnswer::After(Duration::from_millis(ms), Box::new(answer))];
    let no = FakeAnswer::Refuse(ModelError::upstream("a", Fault::CutOff));
    let second = after(250, FakeAnswer::Say(HELLO));
    let stage = hedged(&[("fails", after(200, no)), ("second", second), ("third", says())]);
    assert_eq!(stage.ask(whole()).await.target.as_deref(), Some("second"));
    assert_eq!(stage.asked(), [1, 1, 0], "the second was silent for less than 300 ms");
}

#[tokio::test(start_paused = true)]
async fn a_hedge_counts_as_an_attempt_and_no_target_is_tried_twice() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let no = |name| FakeAnswer::Refuse(ModelError::upstream(name, Fault::CutOff));
    let answers = names.map(|name| (name, vec![no(name)]));
    let hedge_after = Some(Duration::from_millis(300));
    let stage = Stage::with(&answers, |options| options.hedge_after = hedge_after);
    assert_eq!(stage.ask(streamed()).await.kind(), "cut_off");
    assert_eq!(stage.asked(), [1, 1, 1, 1, 0, 0], "four attempts are all");
    let late = vec![FakeAnswer::After(seconds(9), Box::new(FakeAnswer::Say(HELLO)))];
    for hedge_after in [hedge_after, None] {
        let answers = [("a", late.clone()), ("b", vec![no("b")])];
        let stage = Stage::with(&answers, |options| {
            options.hedge_after = hedge_after;
            options.targets.reverse();
            options.targets.push(TargetOptions::plain("b"));
        });
        assert_eq!(stage.ask(streamed()).await.target.as_deref(), Some("a"));
        assert_eq!(stage.asked(), [1, 1]);
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_are_the_target_s_before_the_alias_s_before_the_client_s() {
    let set = |json: &str| Parameters::parse(json, "{}", Vec::new()).expect("good");
    let stage = Stage::with(&[("a", says())], |options| {
        options.parameters = set(r#"{"temperature":0.1,"top_p":0.2,"reasoning_effort":"none"}"#);
        options.targets[0] = TargetOptions {
            parameters: set(r#"{"temperature":0.9}"#),
            ..TargetOptions::plain("a")
        };
    });
    let mut request = streamed();
    request.sampling.top_p = Some(1.0);
    request.sampling.min_p = Some(0.5);
    stage.ask(request).await;
    let sampling = stage.fakes[0].last().sampling;
    assert_eq!(
        (sampling.temperature, sampling.top_p, sampling.min_p),
        (Some(0.9), Some(0.2), Some(0.5))
    );
    assert!(stage.fakes[0].last().thinking.effort.is_some());
}
