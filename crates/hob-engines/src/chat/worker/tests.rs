//! The worker's engine over a real socket, with a decoder that only counts: after `a` comes `b`, and
//! after `z` the end. It also checks that every token is computed once, in its place.

mod counter;
mod drafts;
mod pacing;
mod random_calls;
mod turn_ends;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hob_core::chat::{
    ChatEvent, ChatRequest, Conversation, FinishReason, JsonText, Message, OutputFormat, Prompt,
    Role, Sampling, TokenLogprob, Usage,
};

use super::request_reader::{Compile, RequestReaderParts};
use super::trial_process::TrialReport;
use super::*;
use crate::chat::protocol::ChatReport;
use crate::chat::sampler::SamplerDefaults;
use crate::chat::template::{ChatTemplate, SpecialTokens};
use crate::chat::tokens::{Beginning, Special, Token, TokenTable, Tokenizer};
use crate::frame::FrameKind;
use crate::worker::frame_socket::FrameSocket;
use crate::worker::protocol::{AnyReport, CommonOrder, StreamFailure, WorkerMessage};
use crate::worker::test_socket::printf;

pub(super) use counter::Counter;
use counter::Steps;
pub(crate) use turn_ends::words_complete;

const END: u32 = 256;
/// The tokens of [`byte_tokens`].
const VOCABULARY: usize = 257;
const CONTEXT_TOKENS: u32 = 2000;

/// Bytes are tokens, and NUL is [`END`].
struct Bytes;

impl Tokenizer for Bytes {
    fn tokenize(&self, text: &str, _: Beginning, _: Special) -> Vec<u32> {
        text.bytes().map(|byte| if byte == 0 { END } else { u32::from(byte) }).collect()
    }
}

/// The bytes, and [`END`].
pub(super) fn byte_tokens() -> TokenTable {
    let letter = |byte: u8| Token { bytes: vec![byte], control: None, ends: false };
    let end = Token { bytes: Vec::new(), control: Some("<end>".to_owned()), ends: true };
    TokenTable::new((0..=255).map(letter).chain([end]).collect(), END)
}

fn reader() -> RequestReader {
    reader_with(None)
}

fn reader_with(template: Option<&str>) -> RequestReader {
    let compile = |source| ChatTemplate::compile(source, SpecialTokens::default());
    let template = template.map(|source| compile(source).expect("a template"));
    reader_of(Arc::new(Bytes), byte_tokens(), template, CONTEXT_TOKENS)
}

fn reader_of(
    tokenizer: Arc<dyn Tokenizer>,
    tokens: TokenTable,
    template: Option<ChatTemplate>,
    context_tokens: u32,
) -> RequestReader {
    let parts = RequestReaderParts {
        tokenizer,
        tokens: Arc::new(tokens),
        template,
        defaults: SamplerDefaults::default(),
        infill_marks: None,
        context_tokens,
        thinking_tokens_max: None,
        answer_tokens_max: None,
    };
    RequestReader::new(parts).expect("a vocabulary")
}

fn prepared(reader: &RequestReader, request: &ChatRequest) -> Result<Prepared, Refusal> {
    let prepared = reader.prepare(request, u32::MAX, Instant::now(), Compile::Now);
    prepared.map(|prepared| prepared.expect("compiled"))
}

/// A worker on a thread, and the server's end of its socket.
struct Rig {
    socket: FrameSocket,
    steps: Steps,
    worker: Option<thread::JoinHandle<Result<(), ServeChatError>>>,
}

impl Rig {
    fn start(parallel: usize, queue_max: usize, poison: Option<u32>) -> Rig {
        Rig::of(Counter { poison, ..Counter::new(parallel) }, queue_max, None)
    }

    fn of(decoder: Counter, queue_max: usize, trials: Option<WorkerCommand>) -> Rig {
        let (socket, theirs) = FrameSocket::pair();
        let steps = Arc::clone(&decoder.steps);
        let worker = thread::spawn(move || run(theirs, decoder, queue_max, trials.as_ref()));
        Rig { socket, steps, worker: Some(worker) }
    }

    fn order(&mut self, stream: u32, order: &CommonOrder) {
        self.socket.send([order.to_frame(stream).expect("small")]).expect("sent");
    }

    fn ask(&mut self, stream: u32, request: ChatRequest) {
        self.ask_with_credit(stream, request, 10_000);
    }

    fn ask_with_credit(&mut self, stream: u32, request: ChatRequest, credit: u32) {
        let order = ChatOrder::Chat { request: Box::new(request), credit };
        let frame = Frame::new(FrameKind::Model, stream, &order).expect("small");
        self.socket.send([frame]).expect("sent");
    }

    fn report(&mut self) -> (u32, AnyReport<ChatReport>) {
        self.socket.report()
    }

    /// What comes until `streams` have ended.
    fn until_done(&mut self, streams: usize) -> BTreeMap<u32, Answer> {
        let mut heard: BTreeMap<u32, Answer> = BTreeMap::new();
        let mut open = streams;
        while open > 0 {
            let (stream, report) = self.report();
            let stream = heard.entry(stream).or_default();
            match report {
                WorkerMessage::Common(Report::Done) => open -= 1,
                WorkerMessage::Common(Report::Failed(StreamFailure::Engine(detail))) => {
                    stream.failure = Some(detail);
                    open -= 1;
                }
                WorkerMessage::Common(other) => panic!("{other:?}"),
                WorkerMessage::Model(report) => stream.take(report),
            }
        }
        heard
    }

    fn steps(&self) -> Vec<BTreeMap<usize, usize>> {
        self.steps.lock().expect("no panic").clone()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A closed socket ends the worker.
        self.socket.stream.shutdown(std::net::Shutdown::Both).expect("it was open");
        let worker = self.worker.take().expect("started once");
        if !thread::panicking() {
            // A worker that was about to send finds the socket closed, which is a good end too.
            let ended = worker.join().expect("no panic");
            assert!(matches!(ended, Ok(()) | Err(ServeChatError::Io(_))), "{ended:?}");
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct Answer {
    text: String,
    calls: String,
    end: Option<(FinishReason, Usage)>,
    refusal: Option<Refusal>,
    failure: Option<String>,
    ignored: Vec<String>,
    logprobs: Vec<TokenLogprob>,
    turn_end: Option<f32>,
}

impl Answer {
    fn take(&mut self, report: ChatReport) {
        match report {
            ChatReport::Accepted { ignored } => self.ignored = ignored,
            ChatReport::Compiling | ChatReport::Compiled => {}
            ChatReport::Event(ChatEvent::Logprobs(tokens)) => {
                self.logprobs.extend(tokens);
            }
            ChatReport::Event(ChatEvent::TurnEnd { probability }) => {
                assert_eq!((self.turn_end, self.text.as_str()), (None, ""), "it comes first");
                self.turn_end = Some(probability);
            }
            ChatReport::Event(ChatEvent::Text(text)) => self.text += &text,
            ChatReport::Event(ChatEvent::ToolCall { name, .. }) => self.calls += &name,
            ChatReport::Event(ChatEvent::ToolArguments { piece, .. }) => self.calls += &piece,
            ChatReport::Event(ChatEvent::Done(completion)) => {
                self.end = Some((completion.finish, completion.usage));
            }
            ChatReport::Refused(refusal) => self.refusal = Some(refusal),
            other => panic!("{other:?}"),
        }
    }
}

fn run(
    socket: UnixStream,
    decoder: Counter,
    queue_max: usize,
    trials: Option<&WorkerCommand>,
) -> Result<(), ServeChatError> {
    let reader = reader_with(decoder.template);
    let connection = WorkerConnection::start(&socket, decode, Duration::from_secs(60))?;
    // Steps take the smallest piece of a prompt: the measured times of this decoder are noise.
    let drafts = decoder.drafts;
    let step_limits = StepLimits { stretch: 1.0, drafts, ..StepLimits::default() };
    let scheduler = TokenScheduler::new(step_limits, decoder.batch_tokens());
    let small = || DraftModel::new(Counter::new(decoder.parallel()), VOCABULARY);
    let draft_model = decoder.has_small_model.then(small);
    let setup = EngineSetup { decoder, draft_model, scheduler, queue_max };
    // Nothing computes embeddings here.
    serve(&reader, setup, connection, trials, |jobs, _, _| while jobs.recv().is_ok() {})
}

fn continued(text: &str) -> ChatRequest {
    ChatRequest {
        prompt: Prompt::Text(text.to_owned()),
        sampling: Sampling { temperature: Some(0.0), ..Sampling::default() },
        ..ChatRequest::default()
    }
}

fn usage(prompt_tokens: u32, cached_tokens: u32, completion_tokens: u32) -> Usage {
    Usage { prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens: 0 }
}

#[test]
fn an_answer_goes_on_until_the_model_ends_it() {
    let mut rig = Rig::start(2, 8, None);
    rig.ask(1, continued("w"));
    let heard = rig.until_done(1).remove(&1).expect("an answer");
    assert_eq!(heard.text, "xyz");
    assert_eq!(heard.end, Some((FinishReason::Stop, usage(1, 0, 3))));
}

#[test]
fn an_answer_that_ignores_the_end_goes_on_to_its_limit() {
    let mut rig = Rig::start(2, 8, None);
    let sampling = Sampling { ignore_eos: Some(true), ..continued("w").sampling };
    rig.ask(1, ChatRequest { sampling, tokens_max: Some(6), ..continued("w") });
    let heard = rig.until_done(1).remove(&1).expect("an answer");
    assert!(heard.text.starts_with("xyz"), "{}", heard.text);
    assert_eq!(heard.end, Some((FinishReason::Length, usage(1, 0, 6))));
}

#[test]
fn an_answer_that_repeats_itself_goes_on_only_if_its_request_has_a_limit() {
    let mut rig = Rig::start(2, 8, None);
    let logit_bias = vec![(u32::from(b'a'), 100.0)];
    let endless = || Sampling { logit_bias: logit_bias.clone(), ..continued("a").sampling };
    rig.ask(1, ChatRequest { sampling: endless(), ..continued("a") });
    rig.ask(2, ChatRequest { sampling: endless(), tokens_max: Some(600), ..continued("a") });
    let heard = rig.until_done(2);
    let length = |tokens| Some((FinishReason::Length, usage(1, 0, tokens)));
    assert_eq!((heard[&1].end, heard[&2].end), (length(513), length(600)));
}

#[test]
fn answers_end_at_their_limit_and_before_stop_texts() {
    let mut rig = Rig::start(2, 8, None);
    rig.ask(1, ChatRequest { tokens_max: Some(4), ..continued("a") });
    rig.ask(2, ChatRequest { stop: vec!["gh".to_owned()], ..continued("c") });
    rig.ask(3, ChatRequest { key_tokens_max: Some(2), ..continued("a") });
    let heard = rig.until_done(3);
    assert_eq!((heard[&1].text.as_str(), heard[&2].text.as_str()), ("bcde", "def"));
    assert_eq!(heard[&1].end.expect("ended").0, FinishReason::Length);
    assert_eq!(heard[&2].end.expect("ended").0, FinishReason::Stop);
    assert_eq!(heard[&3].text, "bc", "the limit of its key");
}

#[test]
fn more_requests_than_slots_are_all_answered_and_each_with_its_own() {
    let mut rig = Rig::start(2, 8, None);
    for (stream, first) in (1..=6).zip(b'a'..) {
        rig.ask(stream, continued(&char::from(first).to_string()));
    }
    let heard = rig.until_done(6);
    for (stream, first) in (1..=6).zip(b'a'..) {
        let expected: String = (first + 1..=b'z').map(char::from).collect();
        assert_eq!(heard[&stream].text, expected);
    }
}

#[test]
fn a_long_prompt_is_computed_next_to_a_running_answer() {
    let mut rig = Rig::start(2, 8, None);
    // A long answer, which counts up from 0x01, and waits for its reader after eight tokens.
    rig.ask_with_credit(1, continued("\u{1}"), 8);
    rig.ask_with_credit(2, continued(&"w".repeat(30)), 0);
    // The reports: two requests are accepted, and eight letters follow.
    (0..10).for_each(|_| drop(rig.report()));
    // The decoder waits for the lock on its steps, so both orders arrive before the next step.
    let steps = Arc::clone(&rig.steps);
    let pause = steps.lock().expect("no panic");
    (1..=2).for_each(|stream| rig.order(stream, &CommonOrder::Credit(1000)));
    // Nothing says that they have arrived.
    thread::sleep(Duration::from_secs(3));
    drop(pause);
    rig.until_done(2);
    let steps = rig.steps();
    let piece_of = |step: &BTreeMap<usize, usize>| step.get(&1).copied().filter(|piece| *piece > 1);
    let pieces: Vec<usize> = steps.iter().filter_map(piece_of).collect();
    assert!(pieces.len() >= 2 && pieces.iter().all(|piece| *piece < 30), "{pieces:?}");
    // Between two pieces of the prompt, the answer gets a step.
    let one_after_another =
        steps.windows(2).any(|pair| pair.iter().all(|step| piece_of(step).is_some()));
    assert!(!one_after_another, "{steps:?}");
}

#[test]
fn what_was_computed_is_not_computed_again() {
    let mut rig = Rig::start(1, 8, None);
    let prompt = "hello w".to_owned();
    rig.ask(1, continued(&prompt));
    rig.until_done(1);
    rig.ask(2, continued(&format!("{prompt}xyzaw")));
    let heard = rig.until_done(1).remove(&2).expect("an answer");
    // Cached: the prompt, and the answer to it.
    assert_eq!(heard.end, Some((FinishReason::Stop, usage(12, 10, 3))));
}

#[test]
fn a_cancelled_request_frees_its_slot_for_a_waiting_one() {
    let mut rig = Rig::start(1, 8, None);
    // Without credit the first would hold the only slot for ever.
    rig.ask_with_credit(1, continued("a"), 0);
    rig.ask(2, continued("y"));
    rig.order(1, &CommonOrder::Cancel);
    let heard = rig.until_done(1);
    assert_eq!(heard[&2].text, "z");
}

/// Nothing computes embeddings in a rig, so the first request holds the only place until it is cancelled.
#[test]
fn a_cancelled_embedding_frees_its_place() {
    let mut rig = Rig::start(1, 1, None);
    let order = ChatOrder::Embed(EmbedRequest::default());
    let frame = Frame::new(FrameKind::Model, 1, &order).expect("small");
    rig.socket.send([frame]).expect("sent");
    rig.ask(2, continued("y"));
    let refusal = rig.until_done(1).remove(&2).and_then(|heard| heard.refusal);
    assert!(matches!(refusal, Some(Refusal::Busy { .. })), "{refusal:?}");
    rig.order(1, &CommonOrder::Cancel);
    rig.ask(3, continued("y"));
    assert_eq!(rig.until_done(1)[&3].text, "z");
}

#[test]
fn what_cannot_be_done_is_refused_with_the_numbers() {
    let mut rig = Rig::start(1, 8, None);
    rig.ask(1, continued(&"w".repeat(CONTEXT_TOKENS as usize)));
    rig.ask(2, ChatRequest::default());
    rig.ask(3, ChatRequest { prompt: Prompt::Tokens(vec![900]), ..ChatRequest::default() });
    let infill = Prompt::Infill { prefix: "a".to_owned(), suffix: "b".to_owned() };
    rig.ask(4, ChatRequest { prompt: infill, ..ChatRequest::default() });
    let mut heard = rig.until_done(4);
    let mut refusal = |stream| heard.remove(&stream).and_then(|heard| heard.refusal);
    let too_long = Refusal::TooLong { needed: CONTEXT_TOKENS, available: CONTEXT_TOKENS };
    assert_eq!(refusal(1), Some(too_long));
    assert_eq!(refusal(2), Some(Refusal::NoTemplate));
    let field = |field: &str, reason: &str| Refusal::Field {
        field: field.to_owned(),
        reason: reason.to_owned(),
    };
    let tokens = field("prompt", "has token 900, and the vocabulary has 257 tokens");
    assert_eq!(refusal(3), Some(tokens));
    assert_eq!(refusal(4), Some(field("suffix", "needs a model that fills text in")));
}

#[test]
fn a_full_queue_says_when_to_come_back() {
    let mut rig = Rig::start(1, 1, None);
    rig.ask_with_credit(1, continued("a"), 0);
    rig.ask(2, continued("a"));
    rig.ask(3, continued("a"));
    let heard = rig.until_done(1);
    let refused = heard.values().filter(|heard| heard.refusal.is_some()).count();
    assert_eq!(refused, 1, "{heard:?}");
}

#[test]
fn a_step_that_fails_ends_its_streams_and_no_others() {
    let mut rig = Rig::start(1, 8, Some(u32::from(b'!')));
    rig.ask(1, continued("a!"));
    rig.ask(2, continued("y"));
    let heard = rig.until_done(2);
    assert_eq!(heard[&1].failure.as_deref(), Some("poisoned"));
    assert_eq!(heard[&2].text, "z");
}

/// As on Metal.
#[test]
fn a_worker_ends_if_all_steps_fail_after_one() {
    let (mut socket, theirs) = FrameSocket::pair();
    let poison = Some(u32::from(b'!'));
    let decoder = Counter { poison, is_broken: true, ..Counter::new(1) };
    let worker = thread::spawn(move || run(theirs, decoder, 8, None));
    let order = ChatOrder::Chat { request: Box::new(continued("a!")), credit: 100 };
    let frame = Frame::new(FrameKind::Model, 1, &order).expect("small");
    socket.send([frame]).expect("sent");
    let ended = worker.join().expect("no panic");
    assert!(matches!(ended, Err(ServeChatError::Broken(_))), "{ended:?}");
}

#[test]
fn a_schema_is_compiled_in_parallel_and_what_it_leaves_out_is_named() {
    let mut rig = Rig::start(2, 8, None);
    let schema = r#"{"type":"array","maxItems":0,"uniqueItems":true}"#;
    let output = OutputFormat::JsonSchema(JsonText::parsed(schema));
    rig.ask(1, ChatRequest { output, ..continued("a") });
    rig.ask(2, ChatRequest { output: OutputFormat::Lark("start: x".to_owned()), ..continued("a") });
    let heard = rig.until_done(2);
    assert_eq!(heard[&1].text, "[]");
    assert_eq!(heard[&1].ignored, ["response_format.uniqueItems"]);
    let Some(Refusal::Field { field, .. }) = &heard[&2].refusal else { panic!("{heard:?}") };
    assert_eq!(field, "grammar");
}

#[test]
fn a_grammar_that_fails_within_an_answer_is_a_mistake_of_its_request() {
    let mut rig = Rig::start(1, 8, None);
    let letters = "\"a\"? ".repeat(1_000);
    // The first letter may be any of them, so the automaton has too many places to be in.
    let output = OutputFormat::Lark(format!("start: {letters}"));
    rig.ask(1, ChatRequest { output, ..continued("`") });
    let heard = rig.until_done(1).remove(&1).expect("a report");
    let Some(Refusal::Field { field, reason }) = &heard.refusal else { panic!("{heard:?}") };
    assert_eq!(field, "grammar");
    assert!(reason.starts_with("cannot be enforced: "), "{reason}");
    assert_eq!(heard.failure, None, "the model itself did not fail");
}

/// A trial process that writes a line to `log` when it starts. It sends each report when something was sent to it, and
/// then dies.
fn trials(said: &[TrialReport], log: &Path) -> WorkerCommand {
    let frame = |message: &TrialReport| Frame::new(FrameKind::Model, 0, message).expect("small");
    let model = grammar_trials::trial_model(&reader());
    let model = Frame::new(FrameKind::Model, 0, &model).expect("small");
    // Reads the headers of frames, and the vocabulary.
    const HEADER: &str = "head -c 9 <&0 >/dev/null\n";
    let vocabulary = format!("head -c {} <&0 >/dev/null\n", model.payload.len());
    let mut script = format!("echo started >>'{}'\n{HEADER}{vocabulary}", log.display());
    for report in said {
        script += &(printf(&[frame(report)]) + HEADER);
    }
    WorkerCommand::new("/bin/sh").arg("-c").arg(script + "kill -ABRT $$\n")
}

fn held_to(grammar: &str) -> ChatRequest {
    ChatRequest { output: OutputFormat::Lark(grammar.to_owned()), ..continued("a") }
}

#[test]
fn a_grammar_that_ends_its_trial_ends_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut rig = Rig::of(Counter::new(2), 8, Some(trials(&[TrialReport::Ready], &log)));
    // This answer pauses after two letters. The reports: it is accepted, and the two letters follow.
    rig.ask_with_credit(1, continued("w"), 2);
    (0..3).for_each(|_| drop(rig.report()));
    rig.ask(2, held_to("start: \"x\""));
    let heard = rig.until_done(1);
    let Some(Refusal::Field { field, reason }) = &heard[&2].refusal else { panic!("{heard:?}") };
    assert_eq!(field, "grammar");
    assert!(reason.starts_with("crashes the grammar compiler"), "{reason}");
    rig.order(1, &CommonOrder::Credit(100));
    assert_eq!(rig.until_done(1)[&1].text, "z", "the answer that ran meanwhile");
    rig.ask(3, held_to("start: \"x\""));
    assert_eq!(rig.until_done(1)[&3].refusal, heard[&2].refusal);
    assert_eq!(fs::read_to_string(&log).expect("a log"), "started\n", "it is not tried again");
}

#[test]
fn a_grammar_that_takes_too_long_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = [TrialReport::Ready, TrialReport::TooSlow];
    let mut rig = Rig::of(Counter::new(1), 8, Some(trials(&said, &folder.path().join("log"))));
    rig.ask(1, held_to("start: \"x\""));
    let refusal = rig.until_done(1).remove(&1).expect("a report").refusal;
    let Some(Refusal::Field { reason, .. }) = &refusal else { panic!("{refusal:?}") };
    assert_eq!(reason, "takes more than 10 s to compile");
}

#[test]
fn where_no_trial_can_be_started_grammars_are_compiled_untried() {
    let mut rig = Rig::of(Counter::new(1), 8, Some(WorkerCommand::new("/nowhere/hob")));
    rig.ask(1, held_to("start: \"x\""));
    assert_eq!(rig.until_done(1)[&1].text, "x");
}

#[test]
fn a_conversation_that_takes_too_many_steps_is_not_remembered() {
    let steps = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}";
    let reader = reader_with(Some(steps));
    let messages = vec![Message::new(Role::User, "a")];
    let asked = Conversation { messages, ..Conversation::default() };
    let prompt = Prompt::Chat(asked.clone());
    let request = ChatRequest { prompt, ..ChatRequest::default() };
    assert!(prepared(&reader, &request).is_err());
    let known = reader.heavy.lock().expect("no panic").known(&(&asked, &request.thinking));
    assert_eq!(known, None, "it ends nothing");
}

#[test]
fn the_tokens_of_the_prompt_are_reported_with_their_probabilities() {
    let mut rig = Rig::start(1, 8, None);
    // Tokens of the cache are computed again, because the cache keeps no probabilities.
    rig.ask(1, continued("abcdefghijklmnopqrstuvwxyq"));
    rig.until_done(1);
    let prompt = Prompt::Tokens("abcdefghijklmnopqrstuvwxyq".bytes().map(u32::from).collect());
    let (echo, logprobs, tokens_max) = (true, Some(1), Some(1));
    let request = ChatRequest { prompt, echo, logprobs, tokens_max, ..continued("") };
    rig.ask(2, request.clone());
    let heard = rig.until_done(1).remove(&2).expect("an answer");
    assert_eq!(heard.text, "abcdefghijklmnopqrstuvwxyqr");
    let reported: String =
        heard.logprobs.iter().map(|token| String::from_utf8_lossy(&token.token.0)).collect();
    assert_eq!(reported, heard.text, "the prompt's tokens, and the answer's");
    assert!(heard.logprobs[0].logprob.is_nan() && heard.logprobs[0].top.is_empty());
    // As lm-evaluation-harness reads a choice of two tokens, behind a context of 24.
    let scored = |heard: &Answer| -> Vec<(bool, bool)> {
        let tokens = &heard.logprobs[24..heard.logprobs.len() - 1];
        let greedy = |token: &TokenLogprob| token.top[0].0 == token.token;
        tokens.iter().map(|token| (token.logprob > -0.1, greedy(token))).collect()
    };
    assert_eq!(scored(&heard), [(true, true), (false, false)]);
    rig.ask(3, ChatRequest { tokens_max: Some(0), ..request });
    let none = rig.until_done(1).remove(&3).expect("an answer");
    assert_eq!(
        (none.logprobs.len(), none.end),
        (26, Some((FinishReason::Length, usage(26, 0, 0))))
    );
}
