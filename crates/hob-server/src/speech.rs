//! `POST /audio/speech`: plans, starts the answer, waits for its first bytes, and only then sends 200.
//! A later failure breaks the connection, so that the answer never looks complete.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::ready;
use futures::stream::{self, Stream, StreamExt};
use hob_core::{SoundSeconds, Speech};
use hob_wire::{SpeechDelivery, SpeechUsage, error_event, parse_speech, speech_delta, speech_done};

use crate::api_error::ApiError;
use crate::generic_answer::Answer;
use crate::headers::{EVENTS, VOICE, insert_ignored, insert_text};
use crate::in_flight::Endpoint;
use crate::request_body::{Intake, read_request};
use crate::speech_answer::{EncodedSound, Sound};
use crate::speech_plan::{AnswerShape, Plan, format_names, plan};
use crate::tracker::RequestStart;

pub(crate) async fn speak(request: Request) -> Result<Response, ApiError> {
    let parse = |body: &[u8]| parse_speech(body, &format_names());
    let Intake { context, mut guards, mut body } = read_request(request, parse).await?;
    let resolved = context.resolve::<Speech>(body.model.take())?;
    let Plan { request, answer: shape, sound_s } = plan(context.limits(), &resolved.model, body)?;
    guards.reserve_tokens(shape.input_chars)?;
    let is_streamed = shape.delivery != SpeechDelivery::Whole;
    let (endpoint, name) = (Endpoint::SPEECH, resolved.name);
    let start = RequestStart { context, guards, endpoint, name, is_streamed };
    let work = SoundSeconds(sound_s);
    let mut answer = Answer::start(start, &resolved.model, work, vec![request]).await?;
    answer.tracker.record.prompt_tokens = u32::try_from(shape.input_chars).unwrap_or(u32::MAX);
    respond(Sound { answer, volume: shape.volume }, &shape).await
}

async fn respond(sound: Sound, shape: &AnswerShape) -> Result<Response, ApiError> {
    if shape.delivery == SpeechDelivery::Whole {
        let (file, answer) = sound.into_file(shape.format).await?;
        return Ok((headers(&answer, shape), file).into_response());
    }
    let mut encoded = EncodedSound::new(sound, shape.format)?;
    let first = encoded.next().await?.unwrap_or_default();
    let headers = headers(encoded.answer(), shape);
    let body = match shape.delivery {
        SpeechDelivery::Events => Body::from_stream(events(first, encoded, shape.input_chars)),
        SpeechDelivery::Stream | SpeechDelivery::Whole => Body::from_stream(bytes(first, encoded)),
    };
    Ok((headers, body).into_response())
}

/// The bytes of the file. An error here closes the connection without the last chunk.
fn bytes(first: Bytes, rest: EncodedSound) -> impl Stream<Item = Result<Bytes, ApiError>> {
    let rest = stream::try_unfold(rest, async |mut rest| {
        let bytes = rest.next().await?;
        Ok(bytes.map(|bytes| (bytes, rest)))
    });
    stream::once(ready(Ok(first))).chain(rest)
}

/// The same bytes as events, and a last event that says how it ended.
fn events(
    first: Bytes,
    rest: EncodedSound,
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
            Err(error) => (Ok(error_event(&error.body())), None),
        })
    });
    stream::once(ready(Ok(speech_delta(&first)))).chain(rest)
}

fn headers(answer: &Answer<Speech>, shape: &AnswerShape) -> HeaderMap {
    let mut headers = answer.headers(match shape.delivery {
        SpeechDelivery::Events => EVENTS,
        SpeechDelivery::Stream | SpeechDelivery::Whole => shape.format.content_type(),
    });
    insert_text(&mut headers, VOICE, &shape.voice);
    insert_ignored(&mut headers, &shape.ignored);
    headers
}
