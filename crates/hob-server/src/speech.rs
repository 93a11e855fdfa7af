//! `POST /audio/speech`: plan, take a place, have the first sound in hand, and only then say 200.
//! After that a failure breaks the answer off where everybody sees it; it never ends well.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::ready;
use futures::stream::{self, Stream, StreamExt};
use hob_core::{Busy, ModelError, SpeechRequest, SpeechStream, SpeechTarget};
use hob_wire::{Delivery, SpeechUsage, error_event, parse_speech, speech_delta, speech_done};

use crate::account::{Account, Asked};
use crate::answer::{Encoded, Sound, SpeechAccount};
use crate::asking::{Asking, read_asking};
use crate::failure::ApiError;
use crate::headers::{
    EVENTS, TARGET, TTFA_MS, VOICE, answer_headers, insert_ignored, insert_text, insert_way,
    whole_ms,
};
use crate::plan::{AnswerShape, Plan, format_names, plan};
use crate::router::App;

pub(crate) async fn speak(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    let parse = |body: &[u8]| parse_speech(body, &format_names());
    let Asking { received, caller, held, mut wire } = read_asking(&app, request, parse).await?;
    wire.model = caller.speech_name(&app, wire.model)?;
    let alias = wire.model.clone();
    let plan = plan(&app, wire)?;
    let is_streamed = plan.answer.delivery != Delivery::Whole;
    let asked = Asked { received, caller, held, route: "speech", alias, is_streamed };
    answer(&app, plan, asked).await
}

async fn answer(app: &App, plan: Plan, mut asked: Asked) -> Result<Response, ApiError> {
    let Plan { target, mut request, answer, sound_s } = plan;
    asked.reserve_tokens(app, answer.input_chars)?;
    let mut account = Account::new(app, asked, &target.name, &target.model.state());
    let trace = account.trace();
    request.trace = trace.clone();
    let events = ask(app, &target, (request, sound_s), &mut account).await;
    let events = events.inspect_err(|refusal| account.failed(refusal))?;
    account.entry.prompt_tokens = u32::try_from(answer.input_chars).unwrap_or(u32::MAX);
    let account = SpeechAccount::new(account, events.sample_rate_hz);
    let sound_time_max = app.limits.sound_time_max;
    let cut_off = app.cut_off.clone();
    let sound = Sound { events, account, volume: answer.volume, sound_time_max, cut_off };
    let (ttfa, body) = match answer.delivery {
        Delivery::Whole => whole(sound, &answer).await?,
        Delivery::Stream | Delivery::Events => begin(sound, &answer).await?,
    };
    let mut headers = headers(&answer);
    let way = trace.now();
    insert_text(&mut headers, TARGET, way.target.as_deref().unwrap_or(&target.name));
    insert_way(&mut headers, &way);
    headers.insert(TTFA_MS, whole_ms(ttfa));
    Ok((headers, body).into_response())
}

/// Takes a place, and lets the model begin. A model of our own does when it is this request's turn:
/// how long those before it take is no sign of a stalled model, so no time limit counts here.
async fn ask(
    app: &App,
    target: &SpeechTarget,
    (request, sound_s): (SpeechRequest, f64),
    account: &mut Account,
) -> Result<SpeechStream, ApiError> {
    let busy = |Busy { retry_after }| ModelError::Busy { retry_after };
    account.admitted(target.admission.admit(sound_s).map_err(busy)?);
    let begun = app.cut_off.run_until_cancelled(target.model.speak(request)).await;
    account.started();
    Ok(begun.ok_or(ApiError::Stopping)??)
}

async fn whole(sound: Sound, answer: &AnswerShape) -> Result<(Duration, Body), ApiError> {
    let file = sound.into_file(answer.format).await?;
    Ok((file.ttfa, Body::from(file.bytes)))
}

/// The answer from its first bytes on, which exist when this returns.
async fn begin(sound: Sound, answer: &AnswerShape) -> Result<(Duration, Body), ApiError> {
    let mut encoded = Encoded::new(sound, answer.format)?;
    let first = encoded.next().await?.unwrap_or_default();
    let ttfa = encoded.ttfa();
    let body = match answer.delivery {
        Delivery::Events => Body::from_stream(events(first, encoded, answer.input_chars)),
        Delivery::Stream | Delivery::Whole => Body::from_stream(bytes(first, encoded)),
    };
    Ok((ttfa, body))
}

/// The bytes of the file. An error here closes the connection without the last chunk.
fn bytes(first: Bytes, rest: Encoded) -> impl Stream<Item = Result<Bytes, ApiError>> {
    let rest = stream::try_unfold(rest, async |mut rest| {
        let bytes = rest.next().await?;
        Ok(bytes.map(|bytes| (bytes, rest)))
    });
    stream::once(ready(Ok(first))).chain(rest)
}

/// The same bytes as events, and one that says how it ended.
fn events(
    first: Bytes,
    rest: Encoded,
    input_chars: u64,
) -> impl Stream<Item = Result<String, Infallible>> {
    let rest = stream::unfold(Some(rest), move |rest| async move {
        let mut rest = rest?;
        Some(match rest.next().await {
            Ok(Some(bytes)) => (Ok(speech_delta(&bytes)), Some(rest)),
            Ok(None) => {
                let usage = SpeechUsage { input_chars, output_twentieths: rest.twentieths() };
                (Ok(speech_done(usage)), None)
            }
            Err(refusal) => (Ok(error_event(&refusal.body())), None),
        })
    });
    stream::once(ready(Ok(speech_delta(&first)))).chain(rest)
}

fn headers(answer: &AnswerShape) -> HeaderMap {
    let mut headers = answer_headers(match answer.delivery {
        Delivery::Events => EVENTS,
        Delivery::Stream | Delivery::Whole => answer.format.content_type(),
    });
    insert_text(&mut headers, VOICE, &answer.voice);
    insert_ignored(&mut headers, &answer.ignored);
    headers
}
