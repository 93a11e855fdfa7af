//! `POST /audio/transcriptions` and `/translations`: a file in, its text out, whole or as it is understood.
//! The first of the text is in hand before 200 is said; after that a failure is an event of its own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use futures::stream;
use hob_core::chat::Reading;
use hob_core::{
    Sound, Trace, TranscriptEvent, TranscriptRequest, TranscriptTarget, TranscriptTask,
};
use hob_wire::{
    WireError, WireTranscript, spoken_language, transcript_delta, transcript_done,
    transcript_failed,
};
use tokio::time::timeout;

use crate::account::{Account, Asked};
use crate::asking::Held;
use crate::failure::ApiError;
use crate::headers::{
    EVENTS, TARGET, TTFT_MS, WARM, answer_headers, insert_ignored, insert_text, insert_way,
    whole_ms,
};
use crate::hearing::Hearing;
use crate::keys::Caller;
use crate::requests::Received;
use crate::router::App;
use crate::upload::read_transcript;

/// A comment, which readers of events skip and proxies count as life.
const KEEP_ALIVE: &str = ": hob\n\n";

pub(crate) async fn transcribe(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    answer(&app, request, TranscriptTask::Transcribe).await
}

pub(crate) async fn translate(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    answer(&app, request, TranscriptTask::Translate).await
}

async fn answer(app: &App, request: Request, task: TranscriptTask) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let (received, caller) = (Received::of(&parts.extensions), Caller::of(&parts.extensions));
    let mut held = Held::turn(app, &caller)?;
    let mut wire = read_transcript(app, &parts.headers, body, task, &mut held).await?;
    wire.model = caller.transcript_name(app, wire.model)?;
    let target = app.transcript_target(wire.model.as_deref())?;
    let alias = wire.model.clone();
    let is_streamed = wire.is_streamed;
    let asked = Asked { received, caller, held, route: "transcription", alias, is_streamed };
    let mut order = Order::new(app, wire)?;
    let account = Account::new(app, asked, &target.name, &target.model.state());
    order.request.trace = account.trace();
    let hearing = Hearing::begin(app, &target, &order.request, account).await?;
    respond(app, hearing, order, &target).await
}

/// What will be asked, and what the answer will look like.
struct Order {
    request: TranscriptRequest,
    wire: WireTranscript,
}

impl Order {
    fn new(app: &App, mut wire: WireTranscript) -> Result<Order, ApiError> {
        let reading = if wire.is_streamed { Reading::Streamed } else { Reading::Whole };
        let request = TranscriptRequest {
            sound: Sound::File(std::mem::take(&mut wire.file)),
            task: wire.task,
            language: language(app, wire.language.as_deref())?,
            prompt: wire.prompt.take(),
            temperature: wire.temperature,
            timestamps: wire.timestamps,
            reading,
            trace: Trace::default(),
        };
        Ok(Order { request, wire })
    }
}

/// Suites that test clients name languages that there are not, and want an answer all the same.
fn language(app: &App, asked: Option<&str>) -> Result<Option<String>, WireError> {
    let Some(asked) = asked else { return Ok(None) };
    if app.registry().answers_unknown() {
        return Ok(Some(asked.to_owned()));
    }
    let known = spoken_language(asked).ok_or_else(|| {
        let asked: String = asked.chars().take(32).collect();
        let reason = format!("must be a language of ISO 639-1, such as 'en', and is '{asked}'");
        WireError::Invalid { field: "language", reason }
    })?;
    Ok(Some(known.to_owned()))
}

async fn respond(
    app: &App,
    mut hearing: Hearing,
    order: Order,
    target: &TranscriptTarget,
) -> Result<Response, ApiError> {
    let Order { request, wire } = order;
    let is_warm = hearing.is_warm;
    let (content_type, first, body) = if wire.is_streamed {
        let first = hearing.next_text().await?;
        (EVENTS, hearing.first(), events(hearing, first, app.limits.keep_alive_every))
    } else {
        let answer = hearing.collect().await?;
        let body = answer.to_body(wire.format, wire.task, request.language.as_deref());
        (wire.format.content_type(), hearing.first(), Body::from(body))
    };
    let mut headers = answer_headers(content_type);
    let way = request.trace.now();
    insert_text(&mut headers, TARGET, way.target.as_deref().unwrap_or(&target.name));
    insert_way(&mut headers, &way);
    insert_ignored(&mut headers, &wire.ignored);
    headers.insert(TTFT_MS, whole_ms(first));
    let is_warm = way.is_warm.map_or(is_warm, |is_warm| if is_warm { "true" } else { "false" });
    headers.insert(WARM, HeaderValue::from_static(is_warm));
    Ok((headers, body).into_response())
}

/// A transcript that is being written as events.
struct Writing {
    hearing: Hearing,
    /// What came before the first byte was sent.
    first: Option<TranscriptEvent>,
    text: String,
    keep_alive_every: Duration,
}

fn events(hearing: Hearing, first: Option<TranscriptEvent>, keep_alive_every: Duration) -> Body {
    let writing = Writing { hearing, first, text: String::new(), keep_alive_every };
    Body::from_stream(stream::unfold(Some(writing), async |writing| {
        let mut writing = writing?;
        let (piece, more) = writing.piece().await;
        Some((Ok::<_, Infallible>(piece), more.then_some(writing)))
    }))
}

impl Writing {
    /// The next piece, and whether more may follow.
    async fn piece(&mut self) -> (String, bool) {
        let next = match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => match timeout(self.keep_alive_every, self.hearing.next_text()).await {
                Ok(next) => next,
                Err(_) => return (KEEP_ALIVE.to_owned(), true),
            },
        };
        match next {
            Ok(Some(TranscriptEvent::Delta(text))) => {
                self.text.push_str(&text);
                (transcript_delta(&text), true)
            }
            Ok(Some(TranscriptEvent::Done(done))) => (transcript_done(&self.text, &done), false),
            Ok(Some(TranscriptEvent::Segment(_) | TranscriptEvent::Word(_))) => {
                (String::new(), true)
            }
            Ok(None) => (String::new(), false),
            Err(refusal) => (transcript_failed(&refusal.body()), false),
        }
    }
}
