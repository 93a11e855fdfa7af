//! Speech over Wyoming: a whole text, or one that is still being written, becomes raw samples.
//! A client that plays the sound may give up after a gap, so hob fills gaps with silence.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hob_core::{
    ModelError, PcmLayout, RegisteredModel, SoundSeconds, Speech, SpeechEvent, SpeechRequest,
    SpeechText, Speed, is_full_stop,
};
use hob_speech::encode::{AudioFormat, Encoder, Length};
use hob_wire::{
    SpeechDelivery, WireSpeech, WyomingAnswer, WyomingEvent, WyomingVoice, language_agrees,
};
use tokio::time::{Instant, timeout, timeout_at};

use super::programs::AskedModel;
use super::request::{Answers, RequestInput};
use crate::api_error::ApiError;
use crate::arriving_input::{ArrivingInput, InputSender, arriving};
use crate::generic_answer::{Answer, Input};
use crate::in_flight::Endpoint;
use crate::names::Resolved;
use crate::request_body::RequestGuards;
use crate::speech_answer::ENCODED_AT_ONCE;
use crate::speech_plan::{Plan, arriving_request, plan};
use crate::tracker::RequestStart;

/// Pieces of text that wait for the model.
const PIECES_MAX: usize = 16;
/// How long the writer of a text may pause: a chat model may think, or use tools.
const TEXT_PAUSE_MAX: Duration = Duration::from_secs(300);
/// A sentence that has ended is spoken if nothing follows for this long. This is longer than a chat model takes from
/// token to token.
const SENTENCE_PAUSE: Duration = Duration::from_millis(300);
/// Any other text is spoken if nothing follows for this long.
const TEXT_PAUSE: Duration = Duration::from_secs(2);
/// Silence is sent after so long without sound: satellites give up after 5 s.
const GAP_MAX: Duration = Duration::from_secs(3);
/// The silence in a gap. It is short, because it delays what follows.
const SILENCE: Duration = Duration::from_millis(100);
/// The answer to a text without a word, as over HTTP.
const NO_WORDS: Duration = Duration::from_millis(250);
/// Expected sound of a text that is still being written: a few sentences.
const ARRIVING_SOUND_S: f64 = 10.0;
/// Sample rate of silence if the model's is not known.
const DEFAULT_RATE_HZ: u32 = 24_000;

/// The text of a request.
pub(super) enum SpokenText {
    Whole(String),
    Arriving(ArrivingInput<String>),
}

/// Takes the text as it arrives.
pub(super) struct TextInput {
    /// `None`: the text is complete.
    input: Option<InputSender<String>>,
    chars: usize,
    chars_max: usize,
}

impl TextInput {
    pub(super) fn whole() -> TextInput {
        TextInput { input: None, chars: 0, chars_max: 0 }
    }

    pub(super) fn arriving(chars_max: usize) -> (TextInput, SpokenText) {
        let (sender, text) = arriving(PIECES_MAX);
        let input = TextInput { input: Some(sender), chars: 0, chars_max };
        (input, SpokenText::Arriving(text))
    }

    async fn add(&mut self, text: String) -> Result<(), ApiError> {
        let Some(input) = &self.input else { return Ok(()) };
        self.chars += text.chars().count();
        if self.chars > self.chars_max {
            let (chars, chars_max) = (self.chars, self.chars_max);
            return Err(ModelError::TextTooLong { chars, chars_max }.into());
        }
        // An empty piece would mean that the writer pauses. A model that takes no more text reports why.
        if !text.is_empty() {
            input.pieces.send(text).await.ok();
        }
        Ok(())
    }
}

impl RequestInput for TextInput {
    async fn take(&mut self, event: WyomingEvent) -> Result<(), ApiError> {
        match event {
            WyomingEvent::SynthesizeChunk { text } => self.add(text).await?,
            // For servers that do not stream, clients repeat the whole text at the end of a stream.
            WyomingEvent::Synthesize { .. } => {}
            WyomingEvent::SynthesizeStop => self.input = None,
            other => {
                let why = "the text of a synthesis is not complete";
                return Err(ApiError::UnexpectedEvent { event: other.kind(), why });
            }
        }
        Ok(())
    }

    fn silence_max(&self) -> Option<Duration> {
        self.input.is_some().then_some(TEXT_PAUSE_MAX)
    }
}

/// Speaks a text to its end.
///
/// # Errors
/// The request is rejected, or its answer fails.
pub(super) async fn speak(
    asked: AskedModel,
    (text, voice): (SpokenText, WyomingVoice),
    answers: Answers,
) -> Result<(), ApiError> {
    let (context, Resolved { name, model }) = asked.resolve::<Speech>()?;
    // A client that names a language and no voice wants a voice of that language.
    let is_any_of_language = voice.name.is_none() && voice.language.is_some();
    let name_of_voice = match is_any_of_language {
        true => None,
        false => context.voice(model.model.voices(), voice.name),
    };
    let voice = WyomingVoice { name: name_of_voice, ..voice };
    let spoken = Spoken::plan(context.options().text_chars_max, &model, text, voice)?;
    let Spoken { request, sound_s, input, chars } = spoken;
    let is_streamed_text = matches!(input, Input::Arriving(_));
    let start = RequestStart {
        context,
        guards: RequestGuards::default(),
        endpoint: Endpoint::SPEECH,
        name,
        is_streamed: true,
    };
    let work = SoundSeconds(sound_s);
    let spoken = async {
        let answer = Answer::start_with(start, &model, work, vec![request], input).await?;
        Speaking::new(answer, answers.clone(), is_streamed_text, chars)?.run().await
    };
    match spoken.await {
        // A chat model may write nothing that can be spoken. Home Assistant would report an error.
        Err(ApiError::Model(ModelError::EmptyText)) if is_streamed_text => {
            say_nothing(&answers).await;
        }
        spoken => spoken?,
    }
    if is_streamed_text {
        answers.send(WyomingAnswer::SynthesizeStopped).await;
    }
    Ok(())
}

/// A request for the model.
struct Spoken {
    request: SpeechRequest,
    /// Expected seconds of sound.
    sound_s: f64,
    input: Input,
    /// Characters of the text so far.
    chars: Arc<AtomicU32>,
}

impl Spoken {
    fn plan(
        chars_max: usize,
        model: &RegisteredModel<Speech>,
        text: SpokenText,
        requested: WyomingVoice,
    ) -> Result<Spoken, ApiError> {
        let voice = voice(model, &requested);
        let language = requested.language.filter(|_| requested.name.is_none());
        match text {
            SpokenText::Whole(text) => {
                let Plan { request, answer, sound_s, .. } =
                    plan(chars_max, model, wire(text, voice, language))?;
                let chars = u32::try_from(answer.input_chars).unwrap_or(u32::MAX);
                let chars = Arc::new(AtomicU32::new(chars));
                Ok(Spoken { request, sound_s, input: Input::Complete, chars })
            }
            SpokenText::Arriving(text) => {
                let (pieces, input) = text.split();
                let chars = Arc::new(AtomicU32::new(0));
                let text = SpeechText::Arriving(with_pauses(pieces.boxed(), Arc::clone(&chars)));
                let request = arriving_request(model, text, voice, language.as_deref())?;
                Ok(Spoken { request, sound_s: ARRIVING_SOUND_S, input, chars })
            }
        }
    }
}

/// The named voice, or the first of the language.
fn voice(model: &RegisteredModel<Speech>, requested: &WyomingVoice) -> Option<String> {
    let of_language = |language: &str| {
        let voices = model.model.voices().iter();
        let mut agreeing = voices.filter(|voice| language_agrees(language, voice.language));
        agreeing.next().map(|voice| voice.id.clone())
    };
    requested.name.clone().or_else(|| of_language(requested.language.as_deref()?))
}

fn wire(input: String, voice: Option<String>, language: Option<String>) -> WireSpeech {
    WireSpeech {
        model: None,
        input,
        voice,
        format: AudioFormat::Pcm.name(),
        speed: Speed::NORMAL,
        delivery: SpeechDelivery::Stream,
        is_timed: false,
        has_phonemes: false,
        instructions: None,
        language,
        volume: 1.0,
        ignored: Vec::new(),
    }
}

/// The pieces with an empty one where the writer pauses. Counts their characters.
fn with_pauses(
    pieces: BoxStream<'static, String>,
    chars: Arc<AtomicU32>,
) -> BoxStream<'static, String> {
    let next = async |(mut pieces, pause): (BoxStream<'static, String>, Option<Duration>)| {
        let next = pieces.next();
        let piece = match pause {
            None => next.await,
            Some(pause) => timeout(pause, next).await.unwrap_or_else(|_| Some(String::new())),
        }?;
        let pause = pause_after(&piece, pause);
        Some((piece, (pieces, pause)))
    };
    let count = move |piece: &String| {
        chars.fetch_add(piece.chars().count() as u32, Ordering::Relaxed);
    };
    stream::unfold((pieces, None), next).inspect(count).boxed()
}

/// How long to wait for the text that follows. `None`: as long as it takes, because the writer's pause is known.
fn pause_after(piece: &str, before: Option<Duration>) -> Option<Duration> {
    if piece.is_empty() {
        return None;
    }
    let text = piece.trim_end_matches(|c: char| c.is_whitespace() || "\"'”’)»*_".contains(c));
    let mut from_end = text.chars().rev();
    match (from_end.next(), from_end.next()) {
        // Blanks and quotation marks after the end of a sentence.
        (None, _) => before.or(Some(TEXT_PAUSE)),
        // It may be the first part of a number.
        (Some('.'), Some(digit)) if digit.is_ascii_digit() => Some(TEXT_PAUSE),
        (Some('.' | '!' | '?' | '…' | ':'), _) => Some(SENTENCE_PAUSE),
        (Some(stop), _) if is_full_stop(stop) => Some(SENTENCE_PAUSE),
        _ if piece.ends_with('\n') => Some(SENTENCE_PAUSE),
        _ => Some(TEXT_PAUSE),
    }
}

/// An answer that is being sent.
struct Speaking {
    answer: Answer<Speech>,
    encoder: Encoder,
    layout: PcmLayout,
    answers: Answers,
    /// Whether each sentence is a run of sound of its own. A text that came whole is one run.
    by_sentence: bool,
    chars: Arc<AtomicU32>,
    /// A run of sound was begun.
    is_open: bool,
    /// When the latest sound was sent.
    sent_at: Option<Instant>,
}

impl Speaking {
    fn new(
        answer: Answer<Speech>,
        answers: Answers,
        by_sentence: bool,
        chars: Arc<AtomicU32>,
    ) -> Result<Speaking, ApiError> {
        let rate_hz = answer.head;
        Ok(Speaking {
            encoder: Encoder::new(AudioFormat::Pcm, rate_hz, Length::Unknown)?,
            layout: layout(rate_hz),
            answer,
            answers,
            by_sentence,
            chars,
            is_open: false,
            sent_at: None,
        })
    }

    async fn run(mut self) -> Result<(), ApiError> {
        while let Some(event) = self.next().await? {
            self.answer.tracker.record.prompt_tokens = self.chars.load(Ordering::Relaxed);
            match event {
                SpeechEvent::Audio(samples) if !samples.is_empty() => {
                    self.answer.content_started();
                    self.send(&samples).await?;
                }
                // Words come before their sound, sentence by sentence.
                SpeechEvent::Words(_) if self.by_sentence => self.close().await,
                SpeechEvent::Audio(_) | SpeechEvent::Words(_) => {}
            }
        }
        if self.sent_at.is_none() {
            let error = ModelError::EmptyText.into();
            self.answer.tracker.failed(&error);
            return Err(error);
        }
        self.answer.tracker.complete();
        self.close().await;
        Ok(())
    }

    /// The next event of the model. While it does not come, silence keeps the client from giving up.
    async fn next(&mut self) -> Result<Option<SpeechEvent>, ApiError> {
        while let Some(sent_at) = self.sent_at {
            match timeout_at(sent_at + GAP_MAX, self.answer.next()).await {
                Ok(next) => return Ok(next?.map(|(_, event)| event)),
                Err(_) => self.send(&silence(self.layout, SILENCE)).await?,
            }
        }
        Ok(self.answer.next().await?.map(|(_, event)| event))
    }

    async fn send(&mut self, samples: &[f32]) -> Result<(), ApiError> {
        if !self.is_open {
            self.answers.send(WyomingAnswer::AudioStart(self.layout)).await;
            self.is_open = true;
        }
        for piece in samples.chunks(ENCODED_AT_ONCE) {
            let sound = self.encoder.encode(piece).map_err(ApiError::from);
            let sound = sound.inspect_err(|error| self.answer.tracker.failed(error))?;
            let chunk = WyomingAnswer::AudioChunk { layout: self.layout, sound: &sound };
            self.answers.send(chunk).await;
        }
        self.sent_at = Some(Instant::now());
        Ok(())
    }

    async fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.answers.send(WyomingAnswer::AudioStop).await;
        }
    }
}

/// Sends a moment of silence as an answer of its own.
async fn say_nothing(answers: &Answers) {
    const BYTES: usize = 2;
    let layout = layout(DEFAULT_RATE_HZ);
    let sound = vec![0; silence(layout, NO_WORDS).len() * BYTES];
    answers.send(WyomingAnswer::AudioStart(layout)).await;
    answers.send(WyomingAnswer::AudioChunk { layout, sound: &sound }).await;
    answers.send(WyomingAnswer::AudioStop).await;
}

fn layout(rate_hz: u32) -> PcmLayout {
    PcmLayout { rate_hz, bytes: 2, channels: 1 }
}

fn silence(layout: PcmLayout, time: Duration) -> Vec<f32> {
    vec![0.0; (time.as_secs_f64() * f64::from(layout.rate_hz)) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_short_after_a_sentence_and_long_inside_one() {
        for (piece, pause) in [
            ("Hello.", Some(SENTENCE_PAUSE)),
            ("\"Really?\" ", Some(SENTENCE_PAUSE)),
            ("one line\n", Some(SENTENCE_PAUSE)),
            ("好。", Some(SENTENCE_PAUSE)),
            ("नमस्ते।", Some(SENTENCE_PAUSE)),
            ("It costs 3.", Some(TEXT_PAUSE)),
            ("and then", Some(TEXT_PAUSE)),
            ("", None),
        ] {
            assert_eq!(pause_after(piece, None), pause, "{piece:?}");
        }
        assert_eq!(pause_after(" ", Some(SENTENCE_PAUSE)), Some(SENTENCE_PAUSE));
        assert_eq!(pause_after("\"", Some(TEXT_PAUSE)), Some(TEXT_PAUSE));
    }
}
