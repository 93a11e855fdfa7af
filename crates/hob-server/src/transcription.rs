//! `POST /audio/transcriptions` and `/translations`: a file in, its text out, whole or in pieces.
//! The first text is here before 200 is sent; a later failure is an event.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderName;
use axum::response::{IntoResponse, Response};
use futures::stream;
use hob_core::chat::Reading;
use hob_core::{
    Sound, SoundSeconds, Task, Timestamps, Trace, TranscriptEvent, TranscriptRequest,
    TranscriptTask, Transcription,
};
use hob_wire::{
    TranscriptAnswer, WireError, WireTranscript, checked_language, transcript_delta,
    transcript_done, transcript_failed, transcript_segment, transcript_word,
};
use tokio::time::{Instant, timeout_at};

use crate::api_error::ApiError;
use crate::chat::KEEP_ALIVE;
use crate::context::RequestContext;
use crate::generic_answer::{Answer, AnswerTask};
use crate::headers::{EVENTS, TTFT_MS, insert_ignored};
use crate::in_flight::Endpoint;
use crate::ledger::{Outcome, RequestRecord};
use crate::metrics::Metrics;
use crate::request_body::RequestGuards;
use crate::tracker::RequestStart;
use crate::upload::read_transcript;

/// Expected sound of a person who speaks: a command is shorter, and a dictation longer.
pub(crate) const LIVE_SOUND: SoundSeconds = SoundSeconds(10.0);

impl AnswerTask for Transcription {
    const NAME: &'static str = "transcription";
    const FIRST_MS: HeaderName = TTFT_MS;

    /// Seconds of sound so far.
    type Totals = f64;

    fn add(
        heard_s: &mut f64,
        record: &mut RequestRecord,
        (): (),
        event: &TranscriptEvent,
    ) -> SoundSeconds {
        let work = Transcription::work_of((), event);
        *heard_s += work.0;
        if let TranscriptEvent::Done(done) = event
            && let Some(usage) = done.usage
        {
            record.prompt_tokens = usage.input_tokens;
            record.completion_tokens = usage.output_tokens;
        }
        work
    }

    fn count_first(_metrics: &Metrics, _model: &str, _first: Duration) {}

    fn complete_record(heard_s: &f64, record: &mut RequestRecord, _has_begun: bool) {
        record.audio_ms = heard_s * 1e3;
    }

    fn count(metrics: &Metrics, model: &str, outcome: Outcome, heard_s: &f64) {
        metrics.transcript(model, outcome, *heard_s);
    }
}

pub(crate) async fn transcribe(request: Request) -> Result<Response, ApiError> {
    answer(request, TranscriptTask::Transcribe).await
}

pub(crate) async fn translate(request: Request) -> Result<Response, ApiError> {
    answer(request, TranscriptTask::Translate).await
}

async fn answer(request: Request, task: TranscriptTask) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let context = RequestContext::of(&parts.extensions);
    let mut guards = RequestGuards::acquire(&context)?;
    let mut body = read_transcript(&context, (&parts.headers, body), task, &mut guards).await?;
    let resolved = context.resolve::<Transcription>(body.model.take())?;
    let request = model_request(&context, &mut body)?;
    let language = request.language.clone();
    let keep_alive_every = context.options().keep_alive_every;
    let (is_streamed, name) = (body.is_streamed, resolved.name);
    let endpoint = Endpoint::TRANSCRIPTION;
    let start = RequestStart { context, guards, endpoint, name, is_streamed };
    let work = SoundSeconds(request.sound.estimated_s());
    let mut answer = Answer::start(start, &resolved.model, work, vec![request]).await?;
    if is_streamed {
        let mut headers = answer.headers(EVENTS);
        insert_ignored(&mut headers, &body.ignored);
        let transcript = StreamedTranscript {
            answer,
            timestamps: body.timestamps,
            text: String::new(),
            segments: 0,
            keep_alive_every,
        };
        return Ok((headers, transcript.into_body()).into_response());
    }
    let mut transcript = TranscriptAnswer::default();
    answer.collect(|_, event| transcript.add(event)).await?;
    let mut headers = answer.headers(body.format.content_type());
    insert_ignored(&mut headers, &body.ignored);
    let text = transcript.to_body(body.format, body.task, language.as_deref());
    Ok((headers, text).into_response())
}

fn model_request(
    context: &RequestContext,
    body: &mut WireTranscript,
) -> Result<TranscriptRequest, ApiError> {
    Ok(TranscriptRequest {
        sound: Sound::File(std::mem::take(&mut body.file)),
        task: body.task,
        language: language(context, body.language.as_deref())?,
        prompt: body.prompt.take(),
        temperature: body.temperature,
        timestamps: body.timestamps,
        chunking: body.chunking,
        reading: if body.is_streamed { Reading::Streamed } else { Reading::Whole },
        trace: Trace::default(),
    })
}

/// Test suites of clients send languages that do not exist, and expect an answer nevertheless.
pub(crate) fn language(
    context: &RequestContext,
    asked: Option<&str>,
) -> Result<Option<String>, WireError> {
    let Some(asked) = asked else { return Ok(None) };
    if context.registry().answers_unknown() {
        return Ok(Some(asked.to_owned()));
    }
    checked_language("language", asked).map(Some)
}

/// A transcript that is sent as events.
struct StreamedTranscript {
    answer: Answer<Transcription>,
    /// Models may return times that the client did not ask for.
    timestamps: Timestamps,
    text: String,
    segments: u32,
    keep_alive_every: Duration,
}

impl StreamedTranscript {
    fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(Some(self), async |this| {
            let mut this = this?;
            let (piece, more) = this.piece().await;
            Some((Ok::<_, Infallible>(piece), more.then_some(this)))
        }))
    }

    /// The next piece, and whether more may follow.
    async fn piece(&mut self) -> (String, bool) {
        // Events that the client does not get do not end a silence.
        let silence_ends = Instant::now() + self.keep_alive_every;
        loop {
            let Ok(next) = timeout_at(silence_ends, self.answer.next()).await else {
                return (KEEP_ALIVE.to_owned(), true);
            };
            let piece = match next {
                Ok(Some((_, TranscriptEvent::Done(done)))) => {
                    return (transcript_done(&self.text, &done), false);
                }
                Ok(Some((_, event))) => self.wire_event(event),
                Ok(None) => return (String::new(), false),
                Err(error) => return (transcript_failed(&error.body()), false),
            };
            if !piece.is_empty() {
                return (piece, true);
            }
        }
    }

    /// Empty for an event that this client does not get.
    fn wire_event(&mut self, event: TranscriptEvent) -> String {
        match event {
            TranscriptEvent::Delta(text) if !text.is_empty() => {
                self.text.push_str(&text);
                transcript_delta(&text)
            }
            TranscriptEvent::Segment(segment) if self.timestamps.segments => {
                self.segments += 1;
                transcript_segment(&segment, self.segments - 1)
            }
            TranscriptEvent::Word(word) if self.timestamps.words => transcript_word(&word),
            _ => String::new(),
        }
    }
}
