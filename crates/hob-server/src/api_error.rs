//! Maps every failure to a status, a code and OpenAI's error object. Only this file
//! decides which failure has which status, and whether the client should retry.

use std::time::Duration;

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

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A worker that died restarts within about this time.
const WORKER_RESTART: Duration = Duration::from_secs(1);

/// When one of a key's answers will end is unknown, and a retry costs little.
const ANSWER_ENDS: Duration = Duration::from_secs(1);

/// Answers that hold the memory of bodies end after seconds or minutes.
const BODY_ENDS: Duration = Duration::from_secs(5);

/// Runs take minutes, and a retry costs little.
const RUN_ENDS: Duration = Duration::from_secs(15);

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
    /// Raw sound of a Wyoming client.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("'{event}' does not belong here: {why}")]
    UnexpectedEvent { event: &'static str, why: &'static str },
    #[error("no model is called '{}'{}", .0.name, nearest_hint(&.0.near))]
    UnknownModel(UnknownModel),
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
    /// Too long, on a route that has another name for its prompt than chat.
    #[error("{error}")]
    TooLong { field: &'static str, error: ModelError },
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
    #[error("the form cannot be read: {detail}")]
    BadForm { detail: String },
    #[error("the field '{name}' is larger than the limit of {bytes_max} bytes")]
    FieldTooLarge { name: String, bytes_max: usize },
    #[error("the path is not UTF-8 once its percent signs are decoded")]
    PathNotUtf8,
    #[error("there is no route {path}")]
    NoSuchPath { path: String },
    #[error(
        "no request '{id}' is known; those that run and the last 100 that ended are, if a model was \
         asked"
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
    #[error("the prediction failed; see hob's log")]
    FitFailed,
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
    /// Unknown.
    Unknown,
}

impl ApiError {
    /// The error for the log, without the words of other servers, which may repeat a user's prompt.
    pub(crate) fn summary(&self) -> String {
        match self {
            ApiError::Model(error) | ApiError::TooLong { error, .. } => error.summary(),
            other => other.to_string(),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            ApiError::Wire(_)
            | ApiError::Wyoming(_)
            | ApiError::Decode(_)
            | ApiError::UnexpectedEvent { .. }
            | ApiError::WrongKind { .. }
            | ApiError::NotNamed
            | ApiError::NotOurs { .. }
            | ApiError::Unsupported { .. }
            | ApiError::WholeTooLong { .. }
            | ApiError::AnswerTooLarge { .. }
            | ApiError::BadForm { .. }
            | ApiError::Fit(Unanswerable::Unreadable { .. } | Unanswerable::Impossible { .. })
            | ApiError::Run(RunRefusal::BrokenTeam(_) | RunRefusal::TooLarge(_))
            | ApiError::Encode(
                EncodeError::TooLongForWav { .. } | EncodeError::UnsupportedRate { .. },
            )
            | ApiError::PathNotUtf8
            | ApiError::NoPrevious { .. }
            | ApiError::BodyBrokenOff => StatusCode::BAD_REQUEST,
            ApiError::Model(error) | ApiError::TooLong { error, .. } => status_of(error),
            ApiError::Encode(EncodeError::NotBuilt { .. }) | ApiError::NotOffered { .. } => {
                StatusCode::NOT_IMPLEMENTED
            }
            ApiError::Encode(_) => StatusCode::INTERNAL_SERVER_ERROR,
            ApiError::ModelStalled { .. }
            | ApiError::NoToken { .. }
            | ApiError::ResidenceStalled { .. } => StatusCode::GATEWAY_TIMEOUT,
            ApiError::Run(RunRefusal::Conflict(_)) => StatusCode::CONFLICT,
            ApiError::FitFailed | ApiError::Run(RunRefusal::Failed(_)) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            ApiError::UnknownModel(_)
            | ApiError::Fit(Unanswerable::Unknown { .. })
            | ApiError::Run(
                RunRefusal::NoTeam { .. } | RunRefusal::NoRun { .. } | RunRefusal::NoFile { .. },
            )
            | ApiError::NoSuchPath { .. }
            | ApiError::NotStored { .. }
            | ApiError::NoSuchRequest { .. } => StatusCode::NOT_FOUND,
            ApiError::NoSpeechModel
            | ApiError::NoChatModel
            | ApiError::NoTranscriptModel
            | ApiError::BodiesFull { .. }
            | ApiError::SessionsFull { .. }
            | ApiError::Run(RunRefusal::Full { .. })
            | ApiError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            ApiError::NoWebSocket { .. } => StatusCode::UPGRADE_REQUIRED,
            ApiError::BodyTooLarge { .. } | ApiError::FieldTooLarge { .. } => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            ApiError::HeadersTooLarge { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            ApiError::Loop { .. } => StatusCode::LOOP_DETECTED,
            ApiError::BodyTooSlow { .. }
            | ApiError::ClientSilent { .. }
            | ApiError::BodyBelowMinRate { .. } => StatusCode::REQUEST_TIMEOUT,
            ApiError::NotJson { .. }
            | ApiError::NotForm { .. }
            | ApiError::NeitherFormNorJson { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ApiError::WrongMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            ApiError::ForeignHost { .. } => StatusCode::MISDIRECTED_REQUEST,
            ApiError::ForeignOrigin { .. } => StatusCode::FORBIDDEN,
            ApiError::NoKey | ApiError::WrongKey => StatusCode::UNAUTHORIZED,
            ApiError::Key(refusal) => refusal.status(),
        }
    }

    pub(crate) fn body(&self) -> ErrorBody {
        ErrorBody {
            message: self.message(),
            kind: self.kind(),
            param: self.param().map(str::to_owned),
            code: self.code(),
        }
    }

    /// The same error on a route whose prompt is in `field`.
    pub(crate) fn about(self, field: &'static str) -> ApiError {
        match self {
            ApiError::Model(error @ ModelError::TooLong { .. }) => {
                ApiError::TooLong { field, error }
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

    fn param(&self) -> Option<&str> {
        match self {
            ApiError::Wire(error) => error.field(),
            ApiError::Model(error) => field_of(error),
            ApiError::Encode(
                EncodeError::TooLongForWav { .. }
                | EncodeError::NotBuilt { .. }
                | EncodeError::UnsupportedRate { .. },
            ) => Some("response_format"),
            ApiError::Fit(Unanswerable::Unknown { field, .. }) => Some(field),
            ApiError::UnknownModel(_)
            | ApiError::WrongKind { .. }
            | ApiError::NotNamed
            | ApiError::NotOurs { .. }
            | ApiError::Fit(_)
            | ApiError::Key(KeyRefusal::NotAllowed { .. } | KeyRefusal::NoneAllowed { .. }) => {
                Some("model")
            }
            ApiError::Unsupported { field, .. } | ApiError::TooLong { field, .. } => Some(field),
            ApiError::WholeTooLong { .. } | ApiError::AnswerTooLarge { .. } => Some("stream"),
            ApiError::NoPrevious { .. } => Some("previous_response_id"),
            _ => None,
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

    fn code(&self) -> Option<&'static str> {
        match self {
            ApiError::Model(error) | ApiError::TooLong { error, .. } => code_of(error),
            ApiError::Encode(EncodeError::NotBuilt { .. }) => Some("not_built"),
            ApiError::ModelStalled { .. }
            | ApiError::NoToken { .. }
            | ApiError::ResidenceStalled { .. } => Some("timeout"),
            ApiError::UnknownModel(_)
            | ApiError::Fit(Unanswerable::Unknown { field: "model", .. }) => {
                Some("model_not_found")
            }
            ApiError::NoSuchRequest { .. } => Some("request_not_found"),
            ApiError::NotStored { .. } => Some("not_found"),
            ApiError::NoPrevious { .. } => Some("previous_response_not_found"),
            ApiError::Unsupported { .. } => Some("unsupported_parameter"),
            ApiError::NoSpeechModel | ApiError::NoChatModel | ApiError::NoTranscriptModel => {
                Some("no_target")
            }
            ApiError::NoKey | ApiError::WrongKey => Some("invalid_api_key"),
            ApiError::Key(refusal) => Some(refusal.code()),
            ApiError::SessionsFull { .. } => Some("sessions_full"),
            ApiError::Run(RunRefusal::Full { .. }) => Some("runs_full"),
            ApiError::Run(RunRefusal::NoRun { .. }) => Some("run_not_found"),
            ApiError::Run(RunRefusal::NoTeam { .. }) => Some("team_not_found"),
            ApiError::Stopping => Some("server_stopping"),
            ApiError::Loop { .. } => Some("loop_detected"),
            _ => None,
        }
    }

    /// The error in one word, for metrics.
    pub(crate) fn code_or_type(&self) -> &'static str {
        let kind = if self.status().is_server_error() { "server_error" } else { "invalid_request" };
        self.code().unwrap_or(kind)
    }

    fn retry(&self) -> Retry {
        match self {
            ApiError::SessionsFull { retry_after, .. } => Retry::After(*retry_after),
            ApiError::Model(error) if wait_of(error).is_some() => {
                wait_of(error).map_or(Retry::Unknown, Retry::After)
            }
            // Other targets were tried already, and a retry would try all of them again.
            ApiError::Model(ModelError::Unanswered { attempts, .. }) if attempts.len() > 1 => {
                Retry::Useless
            }
            ApiError::Model(ModelError::WorkerLost { .. }) => Retry::After(WORKER_RESTART),
            ApiError::BodiesFull { .. } => Retry::After(BODY_ENDS),
            ApiError::Run(RunRefusal::Full { .. }) => Retry::After(RUN_ENDS),
            ApiError::Key(KeyRefusal::TooFast { retry_after, .. }) => Retry::After(*retry_after),
            ApiError::Key(KeyRefusal::TooMany { .. } | KeyRefusal::Reserved { .. }) => {
                Retry::After(ANSWER_ENDS)
            }
            ApiError::Key(KeyRefusal::Spent { midnight_in, .. }) => Retry::NotBefore(*midnight_in),
            // Only the person who runs hob can solve this; retries do not help.
            ApiError::NoSpeechModel
            | ApiError::NoChatModel
            | ApiError::NoTranscriptModel
            | ApiError::Loop { .. }
            | ApiError::Model(ModelError::OutOfMemory { .. } | ModelError::NoRoom { .. }) => {
                Retry::Useless
            }
            _ if self.status().is_server_error()
                && self.status() != StatusCode::NOT_IMPLEMENTED =>
            {
                Retry::Unknown
            }
            ApiError::BodyTooSlow { .. } | ApiError::BodyBelowMinRate { .. } => Retry::Unknown,
            _ => Retry::Useless,
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

fn status_of(error: &ModelError) -> StatusCode {
    match error {
        ModelError::Upstream { fault, .. } => status_of_fault(fault),
        ModelError::Unanswered { last, .. } => status_of(last),
        ModelError::NoneCapable { .. } | ModelError::Incapable { .. } => StatusCode::BAD_REQUEST,
        ModelError::Resting { .. } => StatusCode::SERVICE_UNAVAILABLE,
        ModelError::EmptyText
        | ModelError::TextTooLong { .. }
        | ModelError::UnknownVoice { .. }
        | ModelError::LanguageNotSpoken { .. }
        | ModelError::MissingField { .. }
        | ModelError::InvalidField { .. }
        | ModelError::TooLong { .. }
        | ModelError::NoTemplate => StatusCode::BAD_REQUEST,
        ModelError::Busy { .. }
        | ModelError::Loading { .. }
        | ModelError::OutOfMemory { .. }
        | ModelError::NoRoom { .. }
        | ModelError::WorkerLost { .. } => StatusCode::SERVICE_UNAVAILABLE,
        ModelError::NotBuilt { .. } => StatusCode::NOT_IMPLEMENTED,
        ModelError::EngineFailed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A wrong key or an unpaid account of an upstream is a problem of the person who runs hob, not of the client.
fn status_of_fault(fault: &Fault) -> StatusCode {
    match fault {
        Fault::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
        Fault::Overloaded { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Fault::Limited { .. } => StatusCode::TOO_MANY_REQUESTS,
        Fault::Circular { .. } => StatusCode::LOOP_DETECTED,
        Fault::NoSuchModel { .. } => StatusCode::NOT_FOUND,
        Fault::TooLong { .. } | Fault::UnknownParameter { .. } | Fault::Refused { .. } => {
            StatusCode::BAD_REQUEST
        }
        Fault::Unreachable { .. }
        | Fault::Failed { .. }
        | Fault::KeyRefused { .. }
        | Fault::NoCredit { .. }
        | Fault::Reported { .. }
        | Fault::CutOff
        | Fault::Empty
        | Fault::Nonsense { .. } => StatusCode::BAD_GATEWAY,
    }
}

fn field_of(error: &ModelError) -> Option<&'static str> {
    match error {
        ModelError::Upstream { fault: Fault::TooLong { .. }, .. } => Some("messages"),
        ModelError::Unanswered { last, .. } => field_of(last),
        ModelError::EmptyText | ModelError::TextTooLong { .. } => Some("input"),
        ModelError::UnknownVoice { .. } | ModelError::LanguageNotSpoken { .. } => Some("voice"),
        ModelError::TooLong { .. } | ModelError::NoTemplate => Some("messages"),
        ModelError::MissingField { field } | ModelError::InvalidField { field, .. } => Some(field),
        _ => None,
    }
}

fn code_of(error: &ModelError) -> Option<&'static str> {
    match error {
        ModelError::Busy { .. } => Some("queue_full"),
        ModelError::Loading { .. } => Some("model_loading"),
        ModelError::TooLong { .. } => Some("context_length_exceeded"),
        ModelError::NoTemplate => Some("unsupported_parameter"),
        ModelError::OutOfMemory { .. } => Some("out_of_memory"),
        ModelError::NoRoom { .. } => Some("no_room"),
        ModelError::NotBuilt { .. } => Some("not_built"),
        ModelError::WorkerLost { .. } => Some("worker_lost"),
        ModelError::Upstream { fault, .. } => code_of_fault(fault),
        ModelError::Unanswered { last, .. } => code_of(last),
        ModelError::Resting { .. } => Some("no_target"),
        ModelError::NoneCapable { .. } | ModelError::Incapable { .. } => {
            Some("unsupported_parameter")
        }
        _ => None,
    }
}

fn code_of_fault(fault: &Fault) -> Option<&'static str> {
    match fault {
        Fault::TooLong { .. } => Some("context_length_exceeded"),
        Fault::UnknownParameter { .. } => Some("unsupported_parameter"),
        Fault::NoSuchModel { .. } => Some("model_not_found"),
        Fault::Limited { .. } => Some("rate_limit_exceeded"),
        Fault::CutOff | Fault::Reported { .. } | Fault::TimedOut { clock: Clock::Idle, .. } => {
            Some("stream_interrupted")
        }
        Fault::TimedOut { .. } => Some("timeout"),
        Fault::Refused { .. } => None,
        other => Some(other.kind()),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut response = (status, [json], self.body().to_json()).into_response();
        let headers = response.headers_mut();
        match self.retry() {
            Retry::Useless => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
            }
            Retry::After(wait) => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("true"));
                headers.insert(RETRY_AFTER, retry_seconds(wait).into());
            }
            Retry::NotBefore(wait) => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
                headers.insert(RETRY_AFTER, retry_seconds(wait).into());
            }
            Retry::Unknown => {}
        }
        if let ApiError::Key(refusal) = &self {
            response.extensions_mut().insert(RefusedKey(refusal.code()));
        }
        // With unread bytes the connection ends. A client must know, or its next request has no answer.
        if matches!(status.as_u16(), 408 | 413 | 415) || matches!(self, ApiError::BodiesFull { .. })
        {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        response
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
            // A voice of another server, at a rate that opus does not support.
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
            let said = (refusal.status().as_u16(), refusal.param(), refusal.code());
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
