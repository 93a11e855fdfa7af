//! Maps every failure to a status, a code and OpenAI's error object. Only this module
//! decides which failure has which status, and whether the client should retry.

mod rows;

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hob_core::{Clock, Fault, ModelError, UnknownModel, nearest_hint, whole_seconds};
use hob_speech::decode::DecodeError;
use hob_speech::encode::EncodeError;
use hob_wire::{ErrorBody, ErrorKind, WireError, WyomingError};

use crate::fit_service::Unanswerable;
use crate::keys::KeyRefusal;
use crate::team_service::RunRefusal;
use rows::{encode_row, fit_row, key_row, run_row};

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A worker that died restarts within about this time.
const WORKER_RESTART: Duration = Duration::from_secs(1);

/// Answers that hold the memory of bodies end after seconds or minutes.
const BODY_ENDS: Duration = Duration::from_secs(5);

/// The field with the prompt of a chat.
pub(crate) const CHAT_PROMPT: &str = "messages";

/// Pairs of a field as errors of chat models name it, and the route's own name. Other fields have one name.
pub(crate) type FieldNames = &'static [(&'static str, &'static str)];

/// Marks a response that rejects a valid key, with the code of the reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedKey(pub(crate) &'static str);

/// Why a request gets no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Wyoming(#[from] WyomingError),
    /// Sound of a client or of a voice that hob cannot convert.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("'{event}' does not belong here: {why}")]
    UnexpectedEvent { event: &'static str, why: &'static str },
    #[error("no model is called '{}'{}", .0.name, nearest_hint(&.0.near))]
    UnknownModel(UnknownModel),
    #[error("no model is called '{name}'; clients cannot download one: run `hob pull {name}`")]
    NotPulled { name: String },
    #[error("this hob has no speech model; get one with `hob pull`")]
    NoSpeechModel,
    #[error("this hob has no chat model; get one with `hob pull`")]
    NoChatModel,
    #[error(
        "this hob has no transcription model; get one with `hob pull whisper-base`, or use a model of another server: UPSTREAM/MODEL"
    )]
    NoTranscriptModel,
    #[error("'{name}' is a {kind} model, and this needs a {wanted} model")]
    WrongKind { name: String, kind: &'static str, wanted: &'static str },
    #[error(
        "the request names no model, and none here is the default: `GET /v1/models` lists their names"
    )]
    NotNamed,
    #[error("'{name}' is a model of another server; this hob cannot load or unload it")]
    NotOurs { name: String },
    #[error("the model was neither loaded nor unloaded within {} s", time_max.as_secs())]
    ResidenceStalled { time_max: Duration },
    #[error("{path} is not supported: {instead}")]
    NotOffered { path: String, instead: &'static str },
    #[error("this model cannot do what '{field}' asks for: {why}")]
    Unsupported { field: &'static str, why: &'static str },
    /// An error about the prompt, which is in this field of the request.
    #[error("{error}")]
    Prompt { field: &'static str, error: ModelError },
    #[error(
        "'stream' is false, the whole answer would be about {sound_s} s of sound, and the limit is \
         {sound_s_max} s; leave 'stream' out or send less text"
    )]
    WholeTooLong { sound_s: u64, sound_s_max: u64 },
    #[error("the model produced no sound for {} s", time_max.as_secs())]
    ModelStalled { time_max: Duration },
    #[error("the model produced no token for {} s", time_max.as_secs())]
    NoToken { time_max: Duration },
    #[error(
        "the answer has more than {bytes_max} bytes, which is the limit of one that is not \
         streamed; set 'stream', or ask for fewer tokens"
    )]
    AnswerTooLarge { bytes_max: usize },
    #[error("the headers have more than {bytes_max} bytes")]
    HeadersTooLarge { bytes_max: usize },
    #[error("the body is larger than the limit of {bytes_max} bytes")]
    BodyTooLarge { bytes_max: usize },
    #[error("the body did not arrive within {} s", time_max.as_secs())]
    BodyTooSlow { time_max: Duration },
    #[error("the client sent nothing for {} s in the middle of a request", time_max.as_secs())]
    ClientSilent { time_max: Duration },
    #[error(
        "the request came through {hops} servers like this one; an upstream of theirs points back \
         at them"
    )]
    Loop { hops: u32 },
    #[error(
        "the body arrived slower than {bytes_per_s_min} bytes a second while others waited for its memory"
    )]
    BodyBelowMinRate { bytes_per_s_min: usize },
    #[error("other requests use all of the {bytes_max} bytes for request bodies; try again later")]
    BodiesFull { bytes_max: usize },
    #[error("the body ended too early")]
    BodyBrokenOff,
    #[error("the body must be application/json, and is '{got}'")]
    NotJson { got: String },
    #[error("the body must be multipart/form-data, and is '{got}'")]
    NotForm { got: String },
    #[error("the body must be multipart/form-data or application/json, and is '{got}'")]
    NeitherFormNorJson { got: String },
    #[error("the body is compressed with {coding}; send it without compression")]
    Compressed { coding: &'static str },
    #[error("the form cannot be read: {detail}")]
    BadForm { detail: String },
    #[error("the field '{name}' is larger than the limit of {bytes_max} bytes")]
    FieldTooLarge { name: String, bytes_max: usize },
    #[error("the path is not UTF-8 once its percent signs are decoded")]
    PathNotUtf8,
    #[error("there is no route {path}")]
    NoSuchPath { path: String },
    #[error(
        "no request '{id}' is known; hob knows the requests that run and the last 100 that ended, if they \
         asked a model"
    )]
    NoSuchRequest { id: String },
    #[error(
        "no {what} '{id}' is stored here: hob keeps those of its latest requests in memory, for the key that made them"
    )]
    NotStored { what: &'static str, id: String },
    #[error(
        "no response '{id}' is stored here: it was not stored, or is too old, or hob was started again since; send the \
         conversation as 'input'"
    )]
    NoPrevious { id: String },
    #[error(transparent)]
    Fit(#[from] Unanswerable),
    #[error(transparent)]
    Run(#[from] RunRefusal),
    #[error("{path} does not take {method}")]
    WrongMethod { method: String, path: String },
    #[error(
        "'{host}' is not an allowed host name of this server; add it to allowed_hosts to allow it"
    )]
    ForeignHost { host: String },
    #[error(
        "pages of '{origin}' may not call this server; add its host to allowed_hosts to allow them"
    )]
    ForeignOrigin { origin: String },
    #[error("this server requires an API key: send 'Authorization: Bearer KEY'")]
    NoKey,
    #[error("the API key is not valid")]
    WrongKey,
    /// The key is valid, but not for this request, or not now.
    #[error(transparent)]
    Key(#[from] KeyRefusal),
    #[error(
        "{sessions_max} realtime sessions are open, which is the limit; try again in {} s",
        whole_seconds(*.retry_after)
    )]
    SessionsFull { sessions_max: usize, retry_after: Duration },
    #[error("this route takes a WebSocket: {detail}")]
    NoWebSocket { detail: String },
    #[error("this hob is stopping, and the answer was not finished in time")]
    Stopping,
}

/// Whether the same request may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    Useless,
    After(Duration),
    /// Longer than clients wait by default, so they get the time.
    NotBefore(Duration),
    Unknown,
}

/// How an error is answered.
#[derive(Clone, Copy, Debug)]
struct ErrorRow<'a> {
    status: StatusCode,
    code: Option<&'static str>,
    /// The field at fault.
    param: Option<&'a str>,
    retry: Retry,
}

impl<'a> ErrorRow<'a> {
    /// A failure of the server may pass, unless a part of it was not built.
    fn new(status: StatusCode) -> ErrorRow<'a> {
        let may_pass = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
        let retry = if may_pass { Retry::Unknown } else { Retry::Useless };
        ErrorRow { status, code: None, param: None, retry }
    }

    fn code(self, code: &'static str) -> ErrorRow<'a> {
        ErrorRow { code: Some(code), ..self }
    }

    fn param(self, field: &'a str) -> ErrorRow<'a> {
        ErrorRow { param: Some(field), ..self }
    }

    fn retry(self, retry: Retry) -> ErrorRow<'a> {
        ErrorRow { retry, ..self }
    }

    fn after(self, wait: Duration) -> ErrorRow<'a> {
        self.retry(Retry::After(wait))
    }

    fn useless(self) -> ErrorRow<'a> {
        self.retry(Retry::Useless)
    }
}

fn unavailable<'a>(code: &'static str) -> ErrorRow<'a> {
    ErrorRow::new(StatusCode::SERVICE_UNAVAILABLE).code(code)
}

fn bad_request<'a>(code: &'static str) -> ErrorRow<'a> {
    ErrorRow::new(StatusCode::BAD_REQUEST).code(code)
}

impl ApiError {
    /// The error for the log, without the words of other servers, which may repeat a user's prompt.
    pub(crate) fn summary(&self) -> String {
        match self {
            ApiError::Model(error) | ApiError::Prompt { error, .. } => error.summary(),
            other => other.to_string(),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.row().status
    }

    pub(crate) fn body(&self) -> ErrorBody {
        let ErrorRow { param, code, .. } = self.row();
        ErrorBody {
            message: self.message(),
            kind: self.kind(),
            param: param.map(str::to_owned),
            code,
        }
    }

    /// This error on a route with these names.
    pub(crate) fn about(self, names: FieldNames) -> ApiError {
        let own = |field: &'static str| {
            names.iter().find(|(of_chat, _)| *of_chat == field).map_or(field, |(_, own)| *own)
        };
        match self {
            ApiError::Unsupported { field, why } => {
                ApiError::Unsupported { field: own(field), why }
            }
            ApiError::Model(ModelError::InvalidField { field, reason }) => {
                ModelError::InvalidField { field: own(field), reason }.into()
            }
            ApiError::Model(error) if model_row(&error).param == Some(CHAT_PROMPT) => {
                ApiError::Prompt { field: own(CHAT_PROMPT), error }
            }
            other => other,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            ApiError::Model(ModelError::Upstream { .. } | ModelError::Unanswered { .. })
                if self.status().is_server_error() =>
            {
                ErrorKind::Upstream
            }
            _ if self.status() == StatusCode::TOO_MANY_REQUESTS => ErrorKind::RateLimit,
            ApiError::NoKey | ApiError::WrongKey => ErrorKind::Authentication,
            ApiError::ForeignOrigin { .. } | ApiError::Key(_) => ErrorKind::Permission,
            _ if self.status().is_server_error() => ErrorKind::Server,
            _ => ErrorKind::InvalidRequest,
        }
    }

    fn message(&self) -> String {
        match self {
            ApiError::Model(error @ ModelError::UnknownVoice { .. }) => {
                format!("{error}; GET /v1/audio/voices lists all")
            }
            ApiError::UnknownModel(unknown) if unknown.near.is_empty() => {
                format!("{self}; GET /v1/models lists all")
            }
            _ => self.to_string(),
        }
    }

    /// The error in one word, for metrics.
    pub(crate) fn code_or_type(&self) -> &'static str {
        let ErrorRow { status, code, .. } = self.row();
        code.unwrap_or(if status.is_server_error() { "server_error" } else { "invalid_request" })
    }

    fn row(&self) -> ErrorRow<'_> {
        use ApiError as E;
        use StatusCode as S;
        let row = ErrorRow::new;
        match self {
            E::Wire(error) => ErrorRow { param: error.field(), ..row(S::BAD_REQUEST) },
            E::Model(error) => model_row(error),
            E::Prompt { field, error } => model_row(error).param(field),
            E::Encode(error) => encode_row(error),
            E::Fit(error) => fit_row(error),
            E::Run(refusal) => run_row(refusal),
            E::Key(refusal) => key_row(refusal),
            E::UnknownModel(_) => row(S::NOT_FOUND).code("model_not_found").param("model"),
            E::NotPulled { .. } => row(S::NOT_FOUND).code("model_not_found").param("model"),
            E::WrongKind { .. } | E::NotNamed | E::NotOurs { .. } => {
                row(S::BAD_REQUEST).param("model")
            }
            // Only the person who runs hob can solve this; retries do not help.
            E::NoSpeechModel | E::NoChatModel | E::NoTranscriptModel => {
                unavailable("no_target").useless()
            }
            E::Loop { .. } => row(S::LOOP_DETECTED).code("loop_detected").useless(),
            E::Unsupported { field, .. } => bad_request("unsupported_parameter").param(field),
            E::WholeTooLong { .. } | E::AnswerTooLarge { .. } => {
                row(S::BAD_REQUEST).param("stream")
            }
            E::NoPrevious { .. } => {
                bad_request("previous_response_not_found").param("previous_response_id")
            }
            E::NotStored { .. } => row(S::NOT_FOUND).code("not_found"),
            E::NoSuchRequest { .. } => row(S::NOT_FOUND).code("request_not_found"),
            E::NoSuchPath { .. } => row(S::NOT_FOUND),
            E::NotOffered { .. } => row(S::NOT_IMPLEMENTED),
            E::ModelStalled { .. } | E::NoToken { .. } | E::ResidenceStalled { .. } => {
                row(S::GATEWAY_TIMEOUT).code("timeout")
            }
            E::Stopping => unavailable("server_stopping"),
            E::BodiesFull { .. } => row(S::SERVICE_UNAVAILABLE).after(BODY_ENDS),
            E::SessionsFull { retry_after, .. } => unavailable("sessions_full").after(*retry_after),
            E::BodyTooLarge { .. } | E::FieldTooLarge { .. } => row(S::PAYLOAD_TOO_LARGE),
            E::HeadersTooLarge { .. } => row(S::REQUEST_HEADER_FIELDS_TOO_LARGE),
            E::BodyTooSlow { .. } | E::BodyBelowMinRate { .. } => {
                row(S::REQUEST_TIMEOUT).retry(Retry::Unknown)
            }
            E::ClientSilent { .. } => row(S::REQUEST_TIMEOUT),
            E::NotJson { .. }
            | E::NotForm { .. }
            | E::NeitherFormNorJson { .. }
            | E::Compressed { .. } => row(S::UNSUPPORTED_MEDIA_TYPE),
            E::NoWebSocket { .. } => row(S::UPGRADE_REQUIRED),
            E::WrongMethod { .. } => row(S::METHOD_NOT_ALLOWED),
            E::ForeignHost { .. } => row(S::MISDIRECTED_REQUEST),
            E::ForeignOrigin { .. } => row(S::FORBIDDEN),
            E::NoKey | E::WrongKey => row(S::UNAUTHORIZED).code("invalid_api_key"),
            E::Wyoming(_)
            | E::Decode(_)
            | E::UnexpectedEvent { .. }
            | E::BadForm { .. }
            | E::PathNotUtf8
            | E::BodyBrokenOff => row(S::BAD_REQUEST),
        }
    }
}

/// When to retry, if that is known.
fn wait_of(error: &ModelError) -> Option<Duration> {
    match error {
        ModelError::Busy { retry_after }
        | ModelError::Loading { retry_after }
        | ModelError::Resting { retry_after, .. } => Some(*retry_after),
        ModelError::Upstream {
            fault: Fault::Overloaded { retry_after, .. } | Fault::Limited { retry_after, .. },
            ..
        }
        | ModelError::NoRoom { retry_after, .. } => *retry_after,
        ModelError::Unanswered { last, retry_after, .. } => retry_after.or_else(|| wait_of(last)),
        _ => None,
    }
}

fn model_row(error: &ModelError) -> ErrorRow<'_> {
    use StatusCode as S;
    let row = ErrorRow::new;
    let found = match error {
        ModelError::Upstream { fault, .. } => fault_row(fault),
        ModelError::Unanswered { last, attempts, .. } => {
            let last = model_row(last);
            let retry = match attempts.len() {
                ..=1 => row(last.status).retry,
                // Other targets were tried already, and a retry would try all of them again.
                _ => Retry::Useless,
            };
            last.retry(retry)
        }
        ModelError::NoneCapable { .. } | ModelError::Incapable { .. } => {
            bad_request("unsupported_parameter")
        }
        ModelError::NoTemplate => bad_request("unsupported_parameter").param(CHAT_PROMPT),
        ModelError::TooLong { .. } => bad_request("context_length_exceeded").param(CHAT_PROMPT),
        ModelError::EmptyText | ModelError::TextTooLong { .. } => {
            row(S::BAD_REQUEST).param("input")
        }
        ModelError::UnknownVoice { .. } => row(S::BAD_REQUEST).param("voice"),
        ModelError::SpeechPartMissing { .. } => bad_request("speech_part_missing").param("voice"),
        ModelError::MissingField { field } | ModelError::InvalidField { field, .. } => {
            row(S::BAD_REQUEST).param(field)
        }
        ModelError::Resting { .. } => unavailable("no_target"),
        ModelError::Busy { .. } => unavailable("queue_full"),
        ModelError::Loading { .. } => unavailable("model_loading"),
        ModelError::OutOfMemory { .. } => unavailable("out_of_memory").useless(),
        ModelError::NoRoom { .. } => unavailable("no_room").useless(),
        ModelError::WorkerLost { .. } => unavailable("worker_lost").after(WORKER_RESTART),
        ModelError::NotBuilt { .. } => row(S::NOT_IMPLEMENTED).code("not_built"),
        ModelError::EngineFailed { .. } => row(S::INTERNAL_SERVER_ERROR),
    };
    wait_of(error).map_or(found, |wait| found.after(wait))
}

/// A wrong key or an unpaid account of an upstream is a problem of the person who runs hob, not of the client.
fn fault_row(fault: &Fault) -> ErrorRow<'_> {
    use StatusCode as S;
    let row = ErrorRow::new;
    match fault {
        Fault::TimedOut { clock: Clock::Idle, .. } => {
            row(S::GATEWAY_TIMEOUT).code("stream_interrupted")
        }
        Fault::TimedOut { .. } => row(S::GATEWAY_TIMEOUT).code("timeout"),
        Fault::Overloaded { .. } => row(S::SERVICE_UNAVAILABLE).code(fault.kind()),
        Fault::Limited { .. } => row(S::TOO_MANY_REQUESTS).code("rate_limit_exceeded"),
        Fault::Circular { .. } => row(S::LOOP_DETECTED).code(fault.kind()),
        Fault::NoSuchModel { .. } => row(S::NOT_FOUND).code("model_not_found"),
        Fault::TooLong { .. } => bad_request("context_length_exceeded").param(CHAT_PROMPT),
        Fault::UnknownParameter { .. } => bad_request("unsupported_parameter"),
        Fault::Refused { .. } => row(S::BAD_REQUEST),
        Fault::CutOff | Fault::Reported { .. } => row(S::BAD_GATEWAY).code("stream_interrupted"),
        Fault::Unreachable { .. }
        | Fault::Failed { .. }
        | Fault::KeyRefused { .. }
        | Fault::NoCredit { .. }
        | Fault::Empty
        | Fault::InvalidAnswer { .. } => row(S::BAD_GATEWAY).code(fault.kind()),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ErrorRow { status, retry, .. } = self.row();
        let body = self.body();
        let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut response = (status, [json], body.to_json()).into_response();
        response.extensions_mut().insert(body);
        if let ApiError::Key(refusal) = &self {
            response.extensions_mut().insert(RefusedKey(refusal.code()));
        }
        let headers = response.headers_mut();
        if retry != Retry::Unknown {
            let may_help = if matches!(retry, Retry::After(_)) { "true" } else { "false" };
            headers.insert(SHOULD_RETRY, HeaderValue::from_static(may_help));
        }
        if let Retry::After(wait) | Retry::NotBefore(wait) = retry {
            headers.insert(RETRY_AFTER, retry_seconds(wait).into());
        }
        // With unread bytes the connection ends. A client must know, or its next request has no answer.
        if matches!(status.as_u16(), 408 | 413 | 415) || matches!(self, ApiError::BodiesFull { .. })
        {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Replaces the JSON object of a response that is an error; leaves all others as they are.
pub(crate) fn with_error_as(write: fn(&ErrorBody) -> String, mut response: Response) -> Response {
    match response.extensions_mut().remove::<ErrorBody>() {
        Some(error) => response.map(|_| Body::from(write(&error))),
        None => response,
    }
}

/// The value of `Retry-After`: at most 120, because openai-python does not wait longer.
pub(crate) fn retry_seconds(wait: Duration) -> u64 {
    whole_seconds(wait).min(120)
}

#[cfg(test)]
mod tests {
    use hob_speech::encode::AudioFormat;

    use super::*;

    #[test]
    fn formats_that_cannot_be_written_are_the_clients_to_change() {
        let format = AudioFormat::Aac;
        let field = Some("response_format");
        for (error, status, param, code) in [
            (EncodeError::NotBuilt { format, feature: "aac" }, 501, field, Some("not_built")),
            (EncodeError::TooLongForWav { samples: 2, samples_max: 1 }, 400, field, None),
            (
                EncodeError::UnsupportedRate {
                    format,
                    sample_rate_hz: 22_050,
                    accepted: &[24_000],
                },
                400,
                field,
                None,
            ),
            (EncodeError::Codec { format, detail: String::new() }, 500, None, None),
        ] {
            let refusal = ApiError::Encode(error);
            let row = refusal.row();
            let said = (row.status.as_u16(), row.param, row.code);
            assert_eq!(said, (status, param, code), "{refusal}");
        }
    }

    #[test]
    fn waits_are_whole_seconds_that_clients_obey() {
        for (wait_ms, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (500_000, 120)] {
            assert_eq!(retry_seconds(Duration::from_millis(wait_ms)), seconds);
        }
    }
}
