//! Reads a request's body: rate limits first, then memory for the body, then the body, then its JSON.
//! A request holds its reservation until the end of its answer.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ORIGIN, REFERER};
use axum::http::{HeaderMap, HeaderName};
use futures::StreamExt;
use hob_wire::WireError;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

use crate::api_error::ApiError;
use crate::body_memory::{BYTES_PER_S_MIN, BodyReservation, IncomingBody, SMALL_BYTES_MAX};
use crate::context::RequestContext;
use crate::keys::RateLimitGuard;
use crate::ledger::RequestRecord;

/// Maximum bytes of a request that needs no model.
const COMMAND_BYTES_MAX: usize = 1 << 20;

/// A request to a model that was read within its limits.
pub(crate) struct Intake<T> {
    pub(crate) context: RequestContext,
    pub(crate) guards: RequestGuards,
    pub(crate) body: T,
}

/// What a request holds from before its body is read to the end of its answer.
#[derive(Debug, Default)]
pub(crate) struct RequestGuards {
    rate_limit: Option<RateLimitGuard>,
    /// Memory for the body.
    memory: Option<BodyReservation>,
}

impl RequestGuards {
    /// # Errors
    /// A limit of the caller's key is exceeded.
    pub(crate) fn acquire(context: &RequestContext) -> Result<RequestGuards, ApiError> {
        Ok(RequestGuards { rate_limit: context.caller.acquire()?, memory: None })
    }

    /// For a part of a realtime session, which is itself one of the key's concurrent answers.
    ///
    /// # Errors
    /// A limit of the caller's key is exceeded.
    pub(crate) fn acquire_part(
        context: &RequestContext,
        is_answer: bool,
    ) -> Result<RequestGuards, ApiError> {
        Ok(RequestGuards { rate_limit: context.caller.acquire_part(is_answer)?, memory: None })
    }

    /// Reserves tokens of the key's daily budget for the answer. Returns the most it may use; `None`: no limit.
    ///
    /// # Errors
    /// No tokens are left.
    pub(crate) fn reserve_tokens(&mut self, tokens: u64) -> Result<Option<u64>, ApiError> {
        let Some(guard) = &mut self.rate_limit else { return Ok(None) };
        Ok(guard.reserve(tokens)?)
    }

    /// The model is about to be used: from now on the request counts against the rate limit.
    pub(crate) fn begin(&mut self) {
        if let Some(guard) = &mut self.rate_limit {
            guard.begin();
        }
    }

    /// The request does not count against the rate limit after all.
    pub(crate) fn give_request_back(&mut self) {
        if let Some(guard) = &mut self.rate_limit {
            guard.give_request_back();
        }
    }

    /// The answer has ended with this record.
    pub(crate) fn spend(&self, record: &RequestRecord) {
        if let Some(guard) = &self.rate_limit {
            guard.spend(record);
        }
    }

    /// Waits for memory for a body, unless it is small.
    ///
    /// # Errors
    /// The body is larger than the limit, or there is no memory for it in time.
    pub(crate) async fn reserve_memory(
        &mut self,
        context: &RequestContext,
        headers: &HeaderMap,
        bytes_max: usize,
    ) -> Result<Option<Arc<IncomingBody>>, ApiError> {
        let announced = announced(headers);
        // A body whose announced size is too large is rejected before it is read.
        if announced.is_some_and(|bytes| bytes > bytes_max as u64) {
            return Err(ApiError::BodyTooLarge { bytes_max });
        }
        let bytes = announced.map_or(bytes_max, |bytes| bytes as usize);
        if bytes <= SMALL_BYTES_MAX {
            return Ok(None);
        }
        let (memory, incoming) = context.services.bodies.reserve(bytes).await?;
        self.memory = Some(memory);
        Ok(Some(incoming))
    }

    /// The body has arrived, with this many bytes.
    pub(crate) fn arrived(&mut self, bytes: usize) {
        if let Some(memory) = &mut self.memory {
            memory.shrink_to(bytes);
        }
    }
}

/// Reads a JSON request to a model. Rate limits come first: a rejected request is not read.
///
/// # Errors
/// A limit of the key is exceeded, or the body breaks a limit or cannot be parsed.
pub(crate) async fn read_request<T: Send + 'static>(
    request: Request,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<Intake<T>, ApiError> {
    let (parts, body) = request.into_parts();
    let context = RequestContext::of(&parts.extensions);
    let mut guards = RequestGuards::acquire(&context)?;
    let limits = ReadLimits::of_json(&context);
    let body = read_json(&context, (&parts.headers, body), &mut guards, limits, parse).await?;
    Ok(Intake { context, guards, body })
}

/// Reads a JSON request that needs no model.
///
/// # Errors
/// The body breaks a limit or cannot be parsed.
pub(crate) async fn read_command<T: Send + 'static>(
    request: Request,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<(RequestContext, T), ApiError> {
    read_command_up_to(COMMAND_BYTES_MAX, request, parse).await
}

/// Like [`read_command`], with another limit of bytes. A body is never longer than that of a chat.
pub(crate) async fn read_command_up_to<T: Send + 'static>(
    bytes_max: usize,
    request: Request,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<(RequestContext, T), ApiError> {
    let (parts, body) = request.into_parts();
    let context = RequestContext::of(&parts.extensions);
    let limits = ReadLimits::of_json(&context);
    let limits = ReadLimits { bytes_max: limits.bytes_max.min(bytes_max), ..limits };
    let mut guards = RequestGuards::default();
    let command = read_json(&context, (&parts.headers, body), &mut guards, limits, parse).await?;
    Ok((context, command))
}

/// Size and time limits of one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimits {
    pub(crate) bytes_max: usize,
    pub(crate) time_max: Duration,
}

impl ReadLimits {
    fn of_json(context: &RequestContext) -> ReadLimits {
        let options = context.options();
        ReadLimits { bytes_max: options.body_bytes_max, time_max: options.read_time_max }
    }
}

/// A whole JSON body, within the limits and within the budget of all bodies.
///
/// # Errors
/// The body breaks a limit or cannot be parsed.
pub(crate) async fn read_json<T: Send + 'static>(
    context: &RequestContext,
    (headers, body): (&HeaderMap, Body),
    guards: &mut RequestGuards,
    limits: ReadLimits,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<T, ApiError> {
    check_type(headers)?;
    check_compression(headers)?;
    let incoming = guards.reserve_memory(context, headers, limits.bytes_max).await?;
    let capacity = announced(headers).unwrap_or(0) as usize;
    let time_max = limits.time_max;
    let read = timeout(time_max, collect(body, capacity, limits.bytes_max, incoming.as_deref()));
    let bytes = read.await.map_err(|_| ApiError::BodyTooSlow { time_max })??;
    drop(incoming);
    guards.arrived(bytes.len());
    parsed(context, bytes, parse).await
}

async fn collect(
    body: Body,
    capacity: usize,
    bytes_max: usize,
    incoming: Option<&IncomingBody>,
) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(capacity);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = unless_slow(incoming, pieces.next()).await? {
        let piece = piece.map_err(|_| ApiError::BodyBrokenOff)?;
        if bytes.len() + piece.len() > bytes_max {
            return Err(ApiError::BodyTooLarge { bytes_max });
        }
        bytes.extend_from_slice(&piece);
        if let Some(incoming) = incoming {
            incoming.add_received(piece.len());
        }
    }
    Ok(bytes)
}

/// Reads the next piece of a body.
///
/// # Errors
/// The body is too slow, and other requests wait for memory.
pub(crate) async fn unless_slow<T>(
    incoming: Option<&IncomingBody>,
    next: impl Future<Output = T>,
) -> Result<T, ApiError> {
    let Some(incoming) = incoming else { return Ok(next.await) };
    let next = incoming.too_slow.run_until_cancelled(next).await;
    next.ok_or(ApiError::BodyBelowMinRate { bytes_per_s_min: BYTES_PER_S_MIN })
}

/// Parses large bodies one at a time, on a thread for blocking work.
async fn parsed<T: Send + 'static>(
    context: &RequestContext,
    bytes: Vec<u8>,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<T, ApiError> {
    if bytes.len() <= SMALL_BYTES_MAX {
        return Ok(parse(&bytes)?);
    }
    let turn = Arc::clone(&context.services.bodies.parsing).acquire_owned().await;
    let turn = turn.map_err(|_| ApiError::Stopping)?;
    let give_back = context.options().give_back;
    let parsing = spawn_blocking(move || {
        let parsed = parse(&bytes);
        drop(bytes);
        give_back();
        drop(turn);
        parsed
    });
    match parsing.await.map_err(JoinError::try_into_panic) {
        Ok(parsed) => Ok(parsed?),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_cancelled)) => Err(ApiError::Stopping),
    }
}

/// A missing content type counts as JSON. Any other type is a mistake, or a form on a foreign web page.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    if value == "application/json" {
        return Ok(());
    }
    let got = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    let essence = got.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    // The default of `curl -d`, which Ollama's manuals use.
    if essence == "application/x-www-form-urlencoded" && !is_browsers(headers) {
        return Ok(());
    }
    Err(ApiError::NotJson { got })
}

/// A compressed body would look like damaged text.
pub(crate) fn check_compression(headers: &HeaderMap) -> Result<(), ApiError> {
    const CODINGS: [&str; 5] = ["gzip", "x-gzip", "deflate", "br", "zstd"];
    let Some(sent) = headers.get(CONTENT_ENCODING) else { return Ok(()) };
    let is_sent = |coding: &&str| sent.as_bytes().eq_ignore_ascii_case(coding.as_bytes());
    match CODINGS.into_iter().find(is_sent) {
        Some(coding) => Err(ApiError::Compressed { coding }),
        None => Ok(()),
    }
}

/// A browser sends at least one of these with every form.
fn is_browsers(headers: &HeaderMap) -> bool {
    [ORIGIN, REFERER, HeaderName::from_static("sec-fetch-site")]
        .iter()
        .any(|name| headers.contains_key(name))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
