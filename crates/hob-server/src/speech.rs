//! `POST /audio/speech` and `/dev/captioned_speech`: plans, starts the answer, waits for its first bytes, and only then
//! sends 200. A later failure breaks the connection, so that the answer never looks complete.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::ready;
use futures::stream::{self, Stream, StreamExt};
use hob_core::{SoundSeconds, Speech};
use hob_wire::{
    SpeechDelivery, SpeechUsage, WireError, WireSpeech, captioned_sound, error_event,
    parse_captioned_speech, parse_speech, speech_delta, speech_done,
};

use crate::api_error::ApiError;
use crate::generic_answer::Answer;
use crate::headers::{EVENTS, JSON, LINES, VOICE, insert_ignored, insert_text};
use crate::in_flight::Endpoint;
use crate::request_body::{Intake, read_request};
use crate::speech_answer::{EncodedSound, Sound, WholeFile};
use crate::speech_plan::{AnswerShape, Plan, format_names, plan};
use crate::tracker::RequestStart;

/// Reads the fields of a body, with the formats that it may name.
type Parse = fn(&[u8], &[&'static str]) -> Result<WireSpeech, WireError>;

pub(crate) async fn speak(request: Request) -> Result<Response, ApiError> {
    answer(request, parse_speech).await
}

pub(crate) async fn speak_captioned(request: Request) -> Result<Response, ApiError> {
    answer(request, parse_captioned_speech).await
}

async fn answer(request: Request, parse: Parse) -> Result<Response, ApiError> {
    let parse = move |body: &[u8]| parse(body, &format_names());
    let Intake { context, mut guards, mut body } = read_request(request, parse).await?;
    let resolved = context.resolve::<Speech>(body.model.take())?;
    body.voice = context.voice(resolved.model.model.voices(), body.voice);
    let Plan { request, answer: shape, captions, sound_s } =
        plan(context.options().text_chars_max, &resolved.model, body)?;
    guards.reserve_tokens(shape.input_chars)?;
    let is_streamed = !shape.delivery.is_whole();
    let (endpoint, name) = (Endpoint::SPEECH, resolved.name);
    let start = RequestStart { context, guards, endpoint, name, is_streamed };
    let work = SoundSeconds(sound_s);
    let mut answer = Answer::start(start, &resolved.model, work, vec![request]).await?;
    answer.tracker.record.prompt_tokens = u32::try_from(shape.input_chars).unwrap_or(u32::MAX);
    respond(Sound::new(answer, captions, &shape)?, &shape).await
}

async fn respond(sound: Sound, shape: &AnswerShape) -> Result<Response, ApiError> {
    if shape.delivery.is_whole() {
        let WholeFile { bytes, words, answer } = sound.into_file(shape.format).await?;
        let headers = headers(&answer, shape);
        let body = if shape.delivery == SpeechDelivery::Object {
            captioned_sound(&bytes, shape.format.content_type(), words).into_bytes()
        } else {
            bytes
        };
        return Ok((headers, body).into_response());
    }
    let mut encoded = EncodedSound::new(sound, shape.format)?;
    let first = encoded.next().await?.unwrap_or_default();
    let headers = headers(encoded.answer(), shape);
    let body = match shape.delivery {
        SpeechDelivery::Events => Body::from_stream(events(first, encoded, shape.input_chars)),
        SpeechDelivery::Lines => {
            let kind = shape.format.content_type();
            let line = move |bytes: Bytes, sound: &mut EncodedSound| {
                captioned_sound(&bytes, kind, sound.take_words()) + "\n"
            };
            Body::from_stream(pieces(first, encoded, line))
        }
        SpeechDelivery::Stream | SpeechDelivery::Whole | SpeechDelivery::Object => {
            Body::from_stream(pieces(first, encoded, |bytes: Bytes, _: &mut EncodedSound| bytes))
        }
    };
    Ok((headers, body).into_response())
}

/// The bytes of the file, as `write` forms them. An error here closes the connection without the last chunk.
fn pieces<T>(
    first: Bytes,
    mut rest: EncodedSound,
    write: impl Fn(Bytes, &mut EncodedSound) -> T + Copy,
) -> impl Stream<Item = Result<T, ApiError>> {
    let first = write(first, &mut rest);
    let rest = stream::try_unfold(rest, move |mut rest| async move {
        let bytes = rest.next().await?;
        Ok(bytes.map(|bytes| (write(bytes, &mut rest), rest)))
    });
    stream::once(ready(Ok(first))).chain(rest)
}

/// The sound as events, and a last event that says how it ended.
fn events(
    first: Bytes,
    mut rest: EncodedSound,
    input_chars: u64,
) -> impl Stream<Item = Result<String, Infallible>> {
    let first = speech_delta(&first, rest.take_words());
    let rest = stream::unfold(Some(rest), move |rest| async move {
        let mut rest = rest?;
        Some(match rest.next().await {
            Ok(Some(bytes)) => (Ok(speech_delta(&bytes, rest.take_words())), Some(rest)),
            Ok(None) => {
                let usage = SpeechUsage { input_chars, output_twentieths: rest.twentieths() };
                (Ok(speech_done(usage)), None)
            }
            Err(error) => (Ok(error_event(&error.body())), None),
        })
    });
    stream::once(ready(Ok(first))).chain(rest)
}

fn headers(answer: &Answer<Speech>, shape: &AnswerShape) -> HeaderMap {
    let mut headers = answer.headers(match shape.delivery {
        SpeechDelivery::Events => EVENTS,
        SpeechDelivery::Lines => LINES,
        SpeechDelivery::Object => JSON,
        SpeechDelivery::Stream | SpeechDelivery::Whole => shape.format.content_type(),
    });
    insert_text(&mut headers, VOICE, &shape.voice);
    insert_ignored(&mut headers, &shape.ignored);
    headers
}
