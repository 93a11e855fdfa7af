//! Answers with guessed tokens are the same as without, whatever was guessed. The decoders of these tests check that wrong
//! guesses are removed from the cache.

use hob_core::chat::{Completion, Conversation, Message, Role, Timings, Tool, ToolChoice};

use super::super::running::Running;
use super::random_calls::{self, HERMES_IN_LETTERS, SMOLLM2};
use super::*;
use crate::chat::scheduler::DraftPolicy;
use crate::chat::slots::SlotAssignment;

/// More than any test has room for.
const MANY: DraftPolicy = DraftPolicy::Always(12);

fn drafting(parallel: usize, drafts: DraftPolicy) -> Rig {
    let decoder = Counter { drafts, ..Counter::new(parallel) };
    Rig::of(decoder, 8, None)
}

/// The answer to one request, and the passes that it took.
fn answered(drafts: DraftPolicy, request: ChatRequest) -> (Answer, usize) {
    let mut rig = drafting(1, drafts);
    rig.ask(1, request);
    let answer = rig.until_done(1).remove(&1).expect("an answer");
    (answer, rig.steps().len())
}

#[test]
fn copying_the_prompt_takes_fewer_passes_and_gives_the_same_answer() {
    // The model says the rest of the alphabet. The second prompt has it in parts, with wrong letters after them.
    for (prompt, below) in [("abcdefghijklmnopqrstuvwxyz!abc", 4), ("abcdefg!abcdxyz!abc", 24)] {
        let (plain, plain_passes) = answered(DraftPolicy::Off, continued(prompt));
        let (drafted, drafted_passes) = answered(MANY, continued(prompt));
        assert_eq!(plain, drafted);
        assert_eq!(drafted.text, "defghijklmnopqrstuvwxyz");
        assert_eq!(plain_passes, 24);
        assert!(drafted_passes < below, "{drafted_passes}");
    }
}

#[test]
fn limits_and_stop_texts_end_an_answer_within_a_guess() {
    let prompt = "abcdefghijklmnopqrstuvwxyz!abc";
    let stop = ChatRequest { stop: vec!["jk".to_owned()], ..continued(prompt) };
    let limit = ChatRequest { tokens_max: Some(6), ..continued(prompt) };
    for (request, text) in [(stop, "defghi"), (limit, "defghi")] {
        let (plain, plain_passes) = answered(DraftPolicy::Off, request.clone());
        let (drafted, passes) = answered(MANY, request);
        assert_eq!(drafted, plain);
        assert_eq!(drafted.text, text);
        assert!(passes < plain_passes, "{passes} {plain_passes}");
    }
}

#[test]
fn the_cache_has_only_tokens_of_the_answer() {
    let prompt = "abcdefghijklmnopqrstuvwxyz!abc";
    let mut rig = drafting(1, MANY);
    rig.ask(1, ChatRequest { stop: vec!["jk".to_owned()], ..continued(prompt) });
    rig.until_done(1);
    let passes = rig.steps().len();
    assert!(passes < "defghijk".len(), "{passes}: nothing was guessed");
    // The decoder would notice a token that is computed in another place than it belongs.
    rig.ask(2, continued(&format!("{prompt}defghijklmno!vw")));
    let heard = rig.until_done(1).remove(&2).expect("an answer");
    assert_eq!(heard.text, "xyz");
    let cached = heard.end.expect("an end").1.cached_tokens as usize;
    assert_eq!(cached, prompt.len() + "defghij".len());
}

#[test]
fn answers_with_and_without_guesses_run_together() {
    let mut rig = drafting(3, MANY);
    rig.ask(1, continued("abcdefghijklmnopqrstuvwxyz!abc"));
    rig.ask(2, continued("a"));
    rig.ask(3, continued("uvwxyz!uvwabcdef!uvw"));
    let heard = rig.until_done(3);
    assert_eq!(heard[&1].text, "defghijklmnopqrstuvwxyz");
    assert_eq!(heard[&2].text, "bcdefghijklmnopqrstuvwxyz");
    assert_eq!(heard[&3].text, "xyz");
    let passes = |slot: usize| rig.steps().iter().filter(|step| step.contains_key(&slot)).count();
    // The letters, and the end.
    assert!(passes(0) < "defghijklmnopqrstuvwxyz".len() + 1, "{}", passes(0));
    assert_eq!(passes(1), "bcdefghijklmnopqrstuvwxyz".len() + 1);
}

#[test]
fn a_cache_lost_to_a_wrong_guess_is_computed_again() {
    let prompt = "abcdefg!abcdxyz!abc";
    let (plain, _) = answered(DraftPolicy::Off, continued(prompt));
    let decoder = Counter { drafts: MANY, is_lost_by_cuts: true, ..Counter::new(1) };
    let mut rig = Rig::of(decoder, 8, None);
    rig.ask(1, continued(prompt));
    assert_eq!(rig.until_done(1).remove(&1), Some(plain));
    // A guess has no more tokens than the prompt.
    let is_again = |step: &BTreeMap<usize, usize>| step[&0] > prompt.len();
    assert!(rig.steps().iter().any(is_again), "{:?}", rig.steps());
}

#[test]
fn a_small_model_guesses_what_the_text_does_not_show() {
    let decoder = Counter { drafts: MANY, has_small_model: true, ..Counter::new(1) };
    let mut rig = Rig::of(decoder, 8, None);
    rig.ask(1, continued("a"));
    let heard = rig.until_done(1).remove(&1).expect("an answer");
    assert_eq!(heard.text, "bcdefghijklmnopqrstuvwxyz");
    assert_eq!(rig.steps().len(), 3, "the prompt, and two times 13 letters at most");
}

#[test]
fn no_more_events_are_sent_than_the_reader_allows() {
    let mut rig = drafting(1, MANY);
    rig.ask_with_credit(1, continued("abcdefghijklmnopqrstuvwxyz!abc"), 5);
    // The report that it was accepted, and five letters.
    (0..6).for_each(|_| drop(rig.report()));
    rig.order(7, &CommonOrder::Ping);
    let (stream, report) = rig.report();
    assert!(stream == 7 && matches!(report, WorkerMessage::Common(Report::Stats(_))), "{report:?}");
    let passes = rig.steps().len();
    assert!(passes < 5, "{passes}: nothing was guessed");
    rig.order(1, &CommonOrder::Credit(100));
    let rest = rig.until_done(1).remove(&1).expect("the rest");
    assert_eq!(rest.text, "ijklmnopqrstuvwxyz");
}

#[test]
fn events_beyond_what_the_reader_allows_are_paid_back() {
    let mut rig = drafting(2, DraftPolicy::Off);
    let output = OutputFormat::Regex("b(XYZ){3}[a-d]{9}".to_owned());
    rig.ask_with_credit(1, ChatRequest { output, ..continued("a") }, 2);
    // One letter is chosen, and nine are forced.
    let mut letters = 0;
    while letters < 10 {
        let (_, report) = rig.report();
        let is_text = matches!(report, WorkerMessage::Model(ChatReport::Event(ChatEvent::Text(_))));
        letters += usize::from(is_text);
    }
    rig.order(1, &CommonOrder::Credit(8));
    rig.ask(2, continued("w"));
    let others = rig.until_done(1);
    assert_eq!(others[&2].text, "xyz");
    assert_eq!(others.get(&1), None, "its reader has taken eight of ten events");
    rig.order(1, &CommonOrder::Credit(100));
    assert_eq!(rig.until_done(1)[&1].text.len(), 9);
}

#[test]
fn guesses_keep_to_a_grammar() {
    let prompt = "abcdefghijklmnopqrstuvwxyz!abc";
    let output = OutputFormat::Lark("start: /[c-h]{2,5}/".to_owned());
    let request = ChatRequest { output, ..continued(prompt) };
    let (plain, plain_passes) = answered(DraftPolicy::Off, request.clone());
    let (drafted, passes) = answered(MANY, request);
    assert_eq!(plain, drafted);
    assert_eq!(drafted.text, "defgh");
    assert!(passes < plain_passes, "{passes} {plain_passes}");
}

#[test]
fn tokens_that_a_grammar_forces_take_no_pass_of_their_own() {
    let output = OutputFormat::Regex("b(XYZ){3}c-d".to_owned());
    let request = ChatRequest { output, ..continued("a") };
    let (heard, passes) = answered(DraftPolicy::Off, request.clone());
    assert_eq!(heard.text, "bXYZXYZXYZc-d");
    assert_eq!(heard.end, Some((FinishReason::Stop, usage(1, 0, 13))));
    assert!(passes <= 2, "{passes}: all but the first letter and the end is forced");
    let logprobs = ChatRequest { logprobs: Some(0), ..request };
    let (heard, passes) = answered(DraftPolicy::Off, logprobs);
    assert_eq!((heard.text.len(), heard.logprobs.len(), passes), (13, 13, 13));
}

#[test]
fn a_seed_gives_the_same_answer_with_forced_tokens() {
    let reader = reader();
    let mut decoder = letters();
    // The letters in brackets are forced, and each draws a number from the seed if it is chosen.
    let output = OutputFormat::Regex("([ab](cc)){8}".to_owned());
    for seed in 0..20 {
        let sampling = Sampling { temperature: Some(1.0), seed: Some(seed), ..Sampling::default() };
        let request = ChatRequest { sampling, output: output.clone(), ..continued("a") };
        let prepare = |request: &ChatRequest| prepared(&reader, request).expect("room");
        let (forced, _) = said(&mut decoder, prepare(&request), 4);
        // With log probabilities, every token is chosen.
        let chosen = ChatRequest { logprobs: Some(0), ..request };
        let (chosen, _) = said(&mut decoder, prepare(&chosen), 0);
        assert_eq!((forced.text, forced.end), (chosen.text, chosen.end), "seed {seed}");
    }
}

const LETTERS: [u32; 3] = [b'a' as u32, b'b' as u32, b'c' as u32];
const PROBABILITIES: [[f32; 3]; 3] = [[0.1, 0.8, 0.1], [0.3, 0.1, 0.6], [0.5, 0.25, 0.25]];

/// A language of three letters whose probabilities depend on the letter before, so that guesses are often wrong.
fn letters() -> Counter {
    let logits_after = |token: u32| {
        let mut logits = vec![-1e9_f32; VOCABULARY];
        for (letter, probability) in LETTERS.iter().zip(row(token)) {
            logits[*letter as usize] = probability.ln();
        }
        logits
    };
    Counter { logits_after, ..Counter::new(1) }
}

fn row(letter: u32) -> [f32; 3] {
    PROBABILITIES[LETTERS.iter().position(|known| *known == letter).expect("a letter")]
}

/// Runs one answer without an engine, with at most so many guessed tokens in a pass.
fn said(decoder: &mut impl Decoder, prepared: Prepared, drafts: usize) -> (Answer, Timings) {
    let kept = decoder.truncate(0, 0);
    let assignment = SlotAssignment { slot: 0, copy_from: None, keep: kept };
    let mut running = Running::begin(1, prepared, assignment, kept);
    let mut answer = Answer::default();
    loop {
        let demand = running.demand().expect("credit");
        let mut count = demand.pending;
        if demand.said > 0 {
            let draft = running.guess().tokens.min(drafts);
            running.check_guess(draft);
            count += draft;
        }
        let batch: Vec<BatchToken> = running.batch(count).collect();
        decoder.decode(&batch).expect("computed");
        let output = running.advance(count, |at| decoder.logits(at)).expect("tokens");
        decoder.truncate(0, running.computed());
        output.events.into_iter().map(ChatReport::Event).for_each(|event| answer.take(event));
        if let Some(Completion { finish, usage, timings }) = output.end {
            return (Answer { end: Some((finish, usage)), ..answer }, timings);
        }
    }
}

#[test]
fn random_answers_are_the_same_and_have_the_model_s_probabilities() {
    let reader = reader();
    let mut decoder = letters();
    let mut pairs = [[0_u32; 3]; 3];
    let (mut checked, mut right) = (0, 0);
    for seed in 0..400 {
        let sampling = Sampling {
            temperature: Some(1.0),
            top_k: Some(0),
            top_p: Some(1.0),
            min_p: Some(0.0),
            seed: Some(seed),
            ..Sampling::default()
        };
        let request = ChatRequest { sampling, tokens_max: Some(100), ..continued("abcab") };
        let prepared = || prepared(&reader, &request).expect("it fits");
        let (plain, none) = said(&mut decoder, prepared(), 0);
        let (drafted, timings) = said(&mut decoder, prepared(), 6);
        assert_eq!((&plain, none.draft_tokens), (&drafted, 0), "seed {seed}");
        checked += timings.draft_tokens;
        right += timings.accepted_tokens;
        let index = |byte: u8| usize::from(byte - b'a');
        for pair in drafted.text.as_bytes().windows(2) {
            pairs[index(pair[0])][index(pair[1])] += 1;
        }
    }
    assert!(right * 20 > checked && right * 2 < checked, "{right} of {checked} guesses were right");
    for (counts, expected) in pairs.iter().zip(PROBABILITIES) {
        let sum = f64::from(counts.iter().sum::<u32>());
        for (count, expected) in counts.iter().zip(expected) {
            let share = f64::from(*count) / sum;
            // Four standard deviations of 10,000 pairs are 0.02 at most.
            assert!((share - f64::from(expected)).abs() < 0.02, "{share} instead of {expected}");
        }
    }
}

/// Requests for SmolLM2: free text, a copy, JSON and a call.
fn requests() -> [ChatRequest; 4] {
    let asked = |content: &str, tools: Vec<Tool>| {
        let is_free = tools.is_empty();
        let conversation = Conversation {
            messages: vec![Message::new(Role::User, content)],
            tools,
            tool_choice: if is_free { ToolChoice::Auto } else { ToolChoice::Required },
            parallel_tool_calls: false,
            template_arguments: None,
        };
        let tokens_max = Some(64);
        ChatRequest { prompt: Prompt::Chat(conversation), tokens_max, ..continued("") }
    };
    let schema = r#"{"type":"object","required":["title","keywords","is_short"],
        "additionalProperties":false,"properties":{"title":{"type":"string","maxLength":20},
        "keywords":{"type":"array","maxItems":2,"items":{"type":"string","maxLength":12}},
        "is_short":{"type":"boolean"}}}"#;
    let weather = Tool {
        name: "get_weather".to_owned(),
        description: None,
        parameters: Some(JsonText::parsed(
            r#"{"type":"object","required":["city","unit"],"additionalProperties":false,
            "properties":{"city":{"type":"string","maxLength":20},
            "unit":{"enum":["celsius","fahrenheit"]}}}"#,
        )),
        strict: true,
    };
    let text = "The harbour lay quiet under a low grey sky while the last boats came home.";
    let output = OutputFormat::JsonSchema(JsonText::parsed(schema));
    [
        asked("Why is the sky blue?", Vec::new()),
        asked(&format!("Repeat this text twice, word by word: {text} {text}"), Vec::new()),
        ChatRequest { output, ..asked("Describe a text about the sea.", Vec::new()) },
        asked("What is the weather in Paris?", vec![weather]),
    ]
}

#[test]
fn a_real_model_says_the_same_with_guesses() {
    let reader = random_calls::reader(&HERMES_IN_LETTERS);
    let mut decoder = SMOLLM2.decoder().expect("a context");
    let mut right = 0;
    for request in requests() {
        let prepared = || prepared(&reader, &request).expect("it fits");
        let (plain, _) = said(&mut decoder, prepared(), 0);
        let (drafted, timings) = said(&mut decoder, prepared(), 8);
        // The logits of several tokens may differ from those of one in the last bits. No choice here is as close.
        assert_eq!(plain, drafted);
        right += timings.accepted_tokens;
    }
    assert!(right > 10, "{right} guesses were right");
}
