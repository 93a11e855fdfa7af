//! The running streams of a session: transcripts, chats and speech, each on the path of all answers.
//! Cancelling a stream drops it, and with it the work behind it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{AbortHandle, BoxStream, SelectAll, abortable};
use futures::{FutureExt, StreamExt, stream};
use hob_core::chat::Reading;
use hob_core::{
    Chat, ChatEvent, ChatRequest, ChatStream, LiveSound, ModelError, ModelState, Sound,
    SoundSeconds, Speech, SpeechRequest, SpeechText, Task, Trace, TranscriptRequest, Transcription,
    TurnModel,
};
use hob_voice::{ChatStart, SessionInput, SpeechStart, TranscriptStart};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::chat_name;
use super::warm_up::load_own;
use crate::api_error::ApiError;
use crate::arriving_input::{ArrivingInput, InputSender, arriving};
use crate::chat::check;
use crate::chat_answer;
use crate::context::RequestContext;
use crate::generic_answer::{Answer, AnswerTask};
use crate::in_flight::Endpoint;
use crate::request_body::RequestGuards;
use crate::speech_plan::voice;
use crate::tracker::RequestStart;
use crate::transcription::LIVE_SOUND;

/// Samples that wait for transcription models: 60 s. Beyond this the socket is not read.
const UNREAD_SAMPLES_MAX: usize = 60 * Sound::RATE_HZ as usize;
/// Pieces of sound or text that wait for one model.
const PIECES_MAX: usize = 4_096;
/// How long an answer waits for the first sound of its voice. On two slow cores that took 1.13 s (p95).
const HOLD_MAX: Duration = Duration::from_secs(2);
/// Expected seconds of speech of one answer, for admission.
const SPEECH_GUESS: SoundSeconds = SoundSeconds(5.0);

#[derive(Default)]
pub(super) struct Stages {
    inputs: SelectAll<BoxStream<'static, SessionInput>>,
    running: HashMap<u64, RunningStage>,
    warming: Option<Warming>,
    unread: Arc<Unread>,
    /// While the client is behind, neither answers nor voices are read.
    is_behind: watch::Sender<bool>,
}

/// A prompt that is computed before its request comes.
struct Warming {
    abort: AbortHandle,
    /// It is computed, and most of it was in the cache, which the model can cut.
    words_may_follow: Arc<AtomicBool>,
}

struct RunningStage {
    abort: AbortHandle,
    /// Knows whether the stream counts as a request. `None`: the session could not make one.
    trace: Option<Trace>,
    feed: StageFeed,
}

/// What the driver gives to a running stream.
enum StageFeed {
    Sound(Option<InputSender<UnreadSound>>),
    Text {
        input: Option<InputSender<String>>,
        chars: Arc<AtomicU32>,
    },
    /// Whether the answer is read, and whether it may end: one that came early is held until it is kept.
    Gates {
        read: watch::Sender<bool>,
        end: watch::Sender<bool>,
    },
}

/// The samples that wait for transcription models.
#[derive(Default)]
struct Unread {
    samples: AtomicUsize,
    taken: Notify,
}

/// Samples that count as unread until they are taken or dropped.
struct UnreadSound {
    samples: Vec<f32>,
    unread: Arc<Unread>,
}

impl Stages {
    /// The next event of any stream. `None`: none runs.
    pub(super) async fn next(&mut self) -> Option<SessionInput> {
        let input = self.inputs.next().await?;
        if let Some(stream) = ended(&input) {
            self.running.remove(&stream);
        }
        Some(input)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Whether models keep up with the client's sound.
    pub(super) fn keeps_up(&self) -> bool {
        self.unread.samples.load(Ordering::Relaxed) < UNREAD_SAMPLES_MAX
    }

    /// Resolves when a model takes sound.
    pub(super) fn sound_taken(&self) -> impl Future<Output = ()> + use<> {
        let unread = Arc::clone(&self.unread);
        async move { unread.taken.notified().await }
    }

    pub(super) fn transcribe(
        &mut self,
        context: Result<RequestContext, ApiError>,
        start: TranscriptStart,
    ) {
        let (sound, heard) = arriving(PIECES_MAX);
        let trace = trace_of(&context);
        let opening = async move { open_transcript(context?, start.options, heard).await };
        let stream = start.stream;
        let wrap = move |event| match event {
            StageEvent::Began(()) => None,
            StageEvent::Next(event) => Some(SessionInput::Transcript { stream, event }),
        };
        let heard = events(opening, None, None, wrap);
        self.run((stream, trace), StageFeed::Sound(Some(sound)), heard);
    }

    pub(super) fn chat(&mut self, context: Result<RequestContext, ApiError>, start: ChatStart) {
        let (stream, is_early) = (start.stream, start.is_early);
        let trace = trace_of(&context);
        // The prompt is about to be computed anyway.
        self.stop_warming();
        let opening = async move { open_chat(context?, start).await };
        let wrap = move |event| match event {
            StageEvent::Began(()) => None,
            StageEvent::Next(event) => Some(SessionInput::Chat { stream, event }),
        };
        let ((read, is_read), (end, may_end)) = (watch::channel(true), watch::channel(false));
        let written = events(opening, None, Some(may_end), wrap);
        let written = unhurried(written, self.is_behind.subscribe());
        self.run((stream, trace), StageFeed::Gates { read, end }, gated(written, is_read));
        self.mark(stream, is_early);
    }

    /// Reads a chat stream, or lets it wait.
    pub(super) fn read_chat(&mut self, stream: u64, is_read: bool) {
        if let Some(StageFeed::Gates { read, .. }) = self.feed(stream) {
            read.send_replace(is_read);
        }
    }

    pub(super) fn speak(&mut self, context: Result<RequestContext, ApiError>, start: SpeechStart) {
        let (stream, is_early) = (start.stream, start.is_early);
        let (input, text) = arriving(PIECES_MAX);
        let chars = Arc::new(AtomicU32::new(0));
        let trace = trace_of(&context);
        let opening = async move { open_speech(context?, start, text).await };
        let wrap = move |event| match event {
            StageEvent::Began(sample_rate_hz) => {
                Some(SessionInput::SpeechBegan { stream, sample_rate_hz })
            }
            StageEvent::Next(event) => Some(SessionInput::Speech { stream, event }),
        };
        let feed = StageFeed::Text { input: Some(input), chars: Arc::clone(&chars) };
        let said = events(opening, Some(chars), None, wrap);
        self.run((stream, trace), feed, unhurried(said, self.is_behind.subscribe()));
        self.mark(stream, is_early);
    }

    /// Says whether the client is behind: answers and voices then wait. Transcripts and judgements go on.
    pub(super) fn set_client_behind(&self, is_behind: bool) {
        self.is_behind.send_if_modified(|was| std::mem::replace(was, is_behind) != is_behind);
    }

    /// Computes a prompt on an idle model of this hob. It is not a request of the user, so nothing counts it.
    pub(super) fn warm(
        &mut self,
        context: &RequestContext,
        model: Option<String>,
        request: ChatRequest,
    ) {
        self.stop_warming();
        let Ok(resolved) = context.resolve::<Chat>(chat_name(context, model)) else { return };
        let Some(model) = context.own_model(&resolved.model) else { return };
        if model.state() != ModelState::Ready || model.admission.in_flight() > 0 {
            return;
        }
        let request = ChatRequest { tokens_max: Some(0), ..request };
        let cuts_cache = !model.model.card().is_recurrent;
        let words_may_follow = Arc::new(AtomicBool::new(false));
        let outcome = Arc::clone(&words_may_follow);
        let computed = async move {
            if let Ok(events) = model.model.chat(request).await {
                let may_follow = was_mostly_cached(events).await && cuts_cache;
                outcome.store(may_follow, Ordering::Relaxed);
            }
        };
        let warming = computed.into_stream().filter_map(async |()| None);
        let (warming, abort) = abortable(warming);
        self.inputs.push(warming.boxed());
        self.warming = Some(Warming { abort, words_may_follow });
    }

    /// Whether a prompt is computed to which words can be added, so that only they are computed.
    pub(super) fn can_warm_words(&self) -> bool {
        let may_follow = |warming: &Warming| warming.words_may_follow.load(Ordering::Relaxed);
        self.warming.as_ref().is_some_and(may_follow)
    }

    pub(super) fn judge(&mut self, model: Arc<dyn TurnModel>, turn: u64, samples: Vec<f32>) {
        let judged = async move {
            let probability = model.probability(samples).await.unwrap_or_else(|error| {
                tracing::warn!(error = error.summary().as_str(), "a turn was not judged");
                0.0
            });
            SessionInput::TurnJudged { turn, probability }
        };
        self.inputs.push(judged.into_stream().boxed());
    }

    /// Gives sound to a transcript.
    pub(super) fn hear(&mut self, stream: u64, samples: Vec<f32>) -> Option<SessionInput> {
        let Some(StageFeed::Sound(Some(sound))) = self.feed(stream) else { return None };
        let sound = sound.pieces.clone();
        let sent = sound.try_send(UnreadSound::new(samples, &self.unread));
        sent.err().and_then(|_| {
            let full = ModelError::EngineFailed {
                engine: "transcription",
                detail: "it does not read the sound".to_owned(),
            };
            self.cancel(stream)
                .then_some(SessionInput::Transcript { stream, event: Some(Err(full)) })
        })
    }

    pub(super) fn end_sound(&mut self, stream: u64) {
        if let Some(StageFeed::Sound(sound)) = self.feed(stream) {
            *sound = None;
        }
    }

    /// Gives text to a speech stream.
    pub(super) fn say(&mut self, stream: u64, text: String) -> Option<SessionInput> {
        let Some(StageFeed::Text { input: Some(input), chars }) = self.feed(stream) else {
            return None;
        };
        chars.fetch_add(text.chars().count() as u32, Ordering::Relaxed);
        let sent = input.pieces.try_send(text);
        sent.err().and_then(|_| {
            let full = ModelError::EngineFailed {
                engine: "speech",
                detail: "it does not read the text".to_owned(),
            };
            self.cancel(stream).then_some(SessionInput::Speech { stream, event: Some(Err(full)) })
        })
    }

    pub(super) fn end_text(&mut self, stream: u64) {
        if let Some(StageFeed::Text { input, .. }) = self.feed(stream) {
            *input = None;
        }
    }

    /// Whether the stream was running.
    pub(super) fn cancel(&mut self, stream: u64) -> bool {
        let running = self.running.remove(&stream);
        running.inspect(|stage| stage.abort.abort()).is_some()
    }

    /// A stream that was started early counts as a request from now on.
    pub(super) fn keep(&self, stream: u64) {
        self.mark(stream, false);
    }

    /// Drops a stream that counts as no request.
    pub(super) fn discard(&mut self, stream: u64) {
        self.mark(stream, true);
        self.cancel(stream);
    }

    fn mark(&self, stream: u64, is_unneeded: bool) {
        let Some(stage) = self.running.get(&stream) else { return };
        if let Some(trace) = &stage.trace {
            trace.note(|data| data.is_unneeded = is_unneeded);
        }
        if let StageFeed::Gates { end, .. } = &stage.feed {
            end.send_replace(!is_unneeded);
        }
    }

    fn feed(&mut self, stream: u64) -> Option<&mut StageFeed> {
        self.running.get_mut(&stream).map(|stage| &mut stage.feed)
    }

    fn run(
        &mut self,
        (stream, trace): (u64, Option<Trace>),
        feed: StageFeed,
        inputs: BoxStream<'static, SessionInput>,
    ) {
        let (inputs, abort) = abortable(inputs);
        self.inputs.push(inputs.boxed());
        self.running.insert(stream, RunningStage { abort, trace, feed });
    }

    fn stop_warming(&mut self) {
        if let Some(warming) = self.warming.take() {
            warming.abort.abort();
        }
    }
}

fn trace_of(context: &Result<RequestContext, ApiError>) -> Option<Trace> {
    context.as_ref().ok().map(|context| context.trace.clone())
}

/// Reads an answer to its end. Returns whether most of its prompt was in the model's cache. If other conversations need the
/// slot, each further word could compute the whole prompt again, and they would wait for it.
async fn was_mostly_cached(mut events: ChatStream) -> bool {
    let mut is_most = false;
    while let Some(event) = events.next().await {
        if let Ok(ChatEvent::Done(done)) = event {
            is_most = done.usage.cached_tokens * 2 > done.usage.prompt_tokens;
        }
    }
    is_most
}

/// The stream that has ended with this event.
fn ended(input: &SessionInput) -> Option<u64> {
    match input {
        SessionInput::Transcript { stream, event: None | Some(Err(_)) }
        | SessionInput::Chat { stream, event: None | Some(Err(_)) }
        | SessionInput::Speech { stream, event: None | Some(Err(_)) } => Some(*stream),
        _ => None,
    }
}

async fn open_transcript(
    context: RequestContext,
    options: hob_core::realtime::InputTranscription,
    heard: ArrivingInput<UnreadSound>,
) -> Result<Answer<Transcription>, ApiError> {
    let resolved = context.resolve::<Transcription>(options.model)?;
    let (pieces, input) = heard.split();
    let request = TranscriptRequest {
        sound: Sound::Live(LiveSound::new(pieces.map(UnreadSound::take).boxed())),
        language: options.language,
        prompt: options.prompt,
        reading: Reading::Streamed,
        ..TranscriptRequest::default()
    };
    let start = request_start(context, Endpoint::TRANSCRIPTION, resolved.name)?;
    Answer::start_with(start, &resolved.model, LIVE_SOUND, vec![request], input).await
}

async fn open_chat(context: RequestContext, start: ChatStart) -> Result<Answer<Chat>, ApiError> {
    let resolved = context.resolve::<Chat>(chat_name(&context, start.model))?;
    check(&resolved.model, &start.request)?;
    let requests = vec![start.request];
    let start = request_start(context, Endpoint::CHAT, resolved.name)?;
    chat_answer::ChatStart { start, model: resolved.model, requests }.start().await
}

async fn open_speech(
    context: RequestContext,
    start: SpeechStart,
    text: ArrivingInput<String>,
) -> Result<Answer<Speech>, ApiError> {
    let resolved = context.resolve::<Speech>(start.model)?;
    let asked = context.voice(resolved.model.model.voices(), start.voice);
    let (pieces, input) = text.split();
    let text = SpeechText::Arriving(pieces.boxed());
    let request = SpeechRequest::new(text, voice(&resolved.model, asked)?);
    let request = SpeechRequest { speed: start.speed, ..request };
    // A speech model that is not loaded refuses requests, because clients can repeat them. Here, the answer would end.
    load_own(&context, &resolved.model).await?;
    let start = request_start(context, Endpoint::SPEECH, resolved.name)?;
    Answer::start_with(start, &resolved.model, SPEECH_GUESS, vec![request], input).await
}

/// Each answer counts as a request of its caller. Its transcript and its speech are parts of it.
fn request_start(
    context: RequestContext,
    endpoint: Endpoint,
    name: Option<String>,
) -> Result<RequestStart, ApiError> {
    let guards = RequestGuards::acquire_part(&context, endpoint == Endpoint::CHAT)?;
    Ok(RequestStart { context, guards, endpoint, name, is_streamed: true })
}

/// A stream that is read while the gate is open. After [`HOLD_MAX`] it is read anyway, to its end: a voice that has
/// nothing to say must not stop the answer.
fn gated(
    inputs: BoxStream<'static, SessionInput>,
    gate: watch::Receiver<bool>,
) -> BoxStream<'static, SessionInput> {
    let read = stream::unfold((inputs, Some(gate)), |(mut inputs, mut gate)| async move {
        if let Some(waited_for) = &mut gate
            && timeout(HOLD_MAX, waited_for.wait_for(|is_open| *is_open)).await.is_err()
        {
            gate = None;
        }
        Some((inputs.next().await?, (inputs, gate)))
    });
    read.boxed()
}

/// A stream that is not read while the client is behind.
fn unhurried(
    inputs: BoxStream<'static, SessionInput>,
    client: watch::Receiver<bool>,
) -> BoxStream<'static, SessionInput> {
    let read = stream::unfold((inputs, client), |(mut inputs, mut client)| async move {
        let _session_ended = client.wait_for(|is_behind| !*is_behind).await.is_err();
        Some((inputs.next().await?, (inputs, client)))
    });
    read.boxed()
}

/// A step of an answer.
enum StageEvent<T: Task> {
    Began(T::Head),
    /// `None`: the end.
    Next(Option<Result<T::Event, ModelError>>),
}

enum StageState<T: AnswerTask> {
    Opening(BoxFuture<'static, Result<Answer<T>, ApiError>>),
    Open(Box<Answer<T>>),
    Ended,
}

/// The events of one answer, which ends with `None` or an error. `chars` counts the text that is spoken. A complete answer
/// is dropped, and so counted, when it `may_end`.
fn events<T: AnswerTask>(
    opening: impl Future<Output = Result<Answer<T>, ApiError>> + Send + 'static,
    chars: Option<Arc<AtomicU32>>,
    may_end: Option<watch::Receiver<bool>>,
    wrap: impl Fn(StageEvent<T>) -> Option<SessionInput> + Send + Sync + 'static,
) -> BoxStream<'static, SessionInput> {
    let steps = stream::unfold(StageState::Opening(opening.boxed()), move |state| {
        let (chars, may_end) = (chars.clone(), may_end.clone());
        async move {
            match state {
                StageState::Opening(opening) => Some(match opening.await {
                    Ok(answer) => {
                        (StageEvent::Began(answer.head), StageState::Open(Box::new(answer)))
                    }
                    Err(error) => (failed::<T>(error), StageState::Ended),
                }),
                StageState::Open(answer) => Some(step(answer, chars.as_deref(), may_end).await),
                StageState::Ended => None,
            }
        }
    });
    steps.filter_map(move |step| std::future::ready(wrap(step))).boxed()
}

async fn step<T: AnswerTask>(
    mut answer: Box<Answer<T>>,
    chars: Option<&AtomicU32>,
    may_end: Option<watch::Receiver<bool>>,
) -> (StageEvent<T>, StageState<T>) {
    let next = answer.next().await;
    if let Some(chars) = chars {
        answer.tracker.record.prompt_tokens = chars.load(Ordering::Relaxed);
    }
    match next {
        Ok(Some((_, event))) => {
            if !T::HAS_LAST {
                answer.content_started();
            }
            (StageEvent::Next(Some(Ok(event))), StageState::Open(answer))
        }
        Ok(None) => {
            if !T::HAS_LAST {
                answer.tracker.complete();
            }
            answer.tracker.stop_clock();
            if let Some(mut may_end) = may_end {
                let _stage_dropped = may_end.wait_for(|may_end| *may_end).await.is_err();
            }
            (StageEvent::Next(None), StageState::Ended)
        }
        Err(error) => (failed::<T>(error), StageState::Ended),
    }
}

/// A session knows failures of models only.
fn failed<T: AnswerTask>(error: ApiError) -> StageEvent<T> {
    let is_clients = !error.status().is_server_error();
    let error = match error {
        ApiError::Model(error) => error,
        other if is_clients => ModelError::InvalidField {
            field: "session",
            reason: format!("cannot be used: {other}"),
        },
        other => ModelError::EngineFailed { engine: T::NAME, detail: other.to_string() },
    };
    StageEvent::Next(Some(Err(error)))
}

impl UnreadSound {
    fn new(samples: Vec<f32>, unread: &Arc<Unread>) -> UnreadSound {
        unread.samples.fetch_add(samples.len(), Ordering::Relaxed);
        UnreadSound { samples, unread: Arc::clone(unread) }
    }

    fn take(mut self) -> Vec<f32> {
        let samples = std::mem::take(&mut self.samples);
        self.unread.remove(samples.len());
        samples
    }
}

impl Drop for UnreadSound {
    fn drop(&mut self) {
        self.unread.remove(self.samples.len());
    }
}

impl Unread {
    fn remove(&self, samples: usize) {
        self.samples.fetch_sub(samples, Ordering::Relaxed);
        self.taken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use hob_core::chat::{Completion, FinishReason, Timings, Usage};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn words_follow_only_a_prompt_that_was_mostly_in_the_cache() {
        for (cached_tokens, expected) in [(0, false), (3, false), (9, true)] {
            let usage = Usage { prompt_tokens: 10, cached_tokens, ..Usage::default() };
            let (finish, timings) = (FinishReason::Length, Timings::default());
            let done = ChatEvent::Done(Completion { finish, usage, timings });
            assert_eq!(was_mostly_cached(stream::iter([Ok(done)]).boxed()).await, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_its_voice_once_and_not_for_each_word() {
        let ticks = || stream::iter((0..5).map(|_| SessionInput::Tick)).boxed();
        let (gate, is_open) = watch::channel(false);
        let begun = Instant::now();
        let mut read = gated(ticks(), is_open);
        assert!(read.next().await.is_some());
        assert_eq!(begun.elapsed(), HOLD_MAX);
        assert_eq!((read.count().await, begun.elapsed()), (4, HOLD_MAX));
        drop(gate);
        // The first sound opens the gate before that.
        let (gate, is_open) = watch::channel(false);
        let (begun, read) = (Instant::now(), gated(ticks(), is_open));
        gate.send_replace(true);
        assert_eq!((read.count().await, begun.elapsed()), (5, Duration::ZERO));
    }
}
