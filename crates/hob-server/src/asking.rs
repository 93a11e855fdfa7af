//! Reading a request's body: the key's turn first, then memory for the body, then the body, then its JSON.
//! What a request takes on the way is held to the end of its answer, and given back when that is dropped.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ORIGIN, REFERER};
use axum::http::{HeaderMap, HeaderName};
use futures::StreamExt;
use hob_wire::WireError;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

use crate::bodies::{Arrival, BYTES_PER_S_MIN, Room, SMALL_BYTES_MAX};
use crate::failure::ApiError;
use crate::keys::{Caller, Turn};
use crate::ledger::RequestRecord;
use crate::requests::Received;
use crate::router::App;

/// Bytes of a request that asks no model for an answer.
const WISH_BYTES_MAX: usize = 1 << 20;

/// A request to a model, read within its limits.
pub(crate) struct Asking<T> {
    pub(crate) received: Received,
    pub(crate) caller: Caller,
    pub(crate) held: Held,
    pub(crate) wire: T,
}

/// What a request takes before its body is read and keeps to the end of its answer.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Of the key's requests and answers.
    turn: Option<Turn>,
    /// Memory for the body.
    room: Option<Room>,
}

impl Held {
    /// # Errors
    /// It is not the caller's turn.
    pub(crate) fn turn(app: &App, caller: &Caller) -> Result<Held, ApiError> {
        Ok(Held { turn: caller.take_turn(app)?, room: None })
    }

    pub(crate) fn turn_mut(&mut self) -> Option<&mut Turn> {
        self.turn.as_mut()
    }

    /// A model is asked: from now on the request counts.
    pub(crate) fn begin(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.begin();
        }
    }

    /// The answer has ended, and this is its row.
    pub(crate) fn spend(&self, entry: &RequestRecord) {
        if let Some(turn) = &self.turn {
            turn.spend(entry);
        }
    }

    /// Waits for memory for a body, unless it is small.
    ///
    /// # Errors
    /// The body is larger than the limit, or there is no memory for it in time.
    pub(crate) async fn reserve(
        &mut self,
        app: &App,
        headers: &HeaderMap,
        bytes_max: usize,
    ) -> Result<Option<Arrival>, ApiError> {
        let announced = announced(headers);
        // What says that it is too large need not be read to be believed.
        if announced.is_some_and(|bytes| bytes > bytes_max as u64) {
            return Err(ApiError::BodyTooLarge { bytes_max });
        }
        let bytes = announced.map_or(bytes_max, |bytes| bytes as usize);
        if bytes <= SMALL_BYTES_MAX {
            return Ok(None);
        }
        let (room, arrival) = app.bodies.reserve(bytes).await?;
        self.room = Some(room);
        Ok(Some(arrival))
    }

    /// The body has arrived, and takes so much.
    pub(crate) fn arrived(&mut self, bytes: usize) {
        if let Some(room) = &mut self.room {
            room.shrink_to(bytes);
        }
    }
}

/// Reads a JSON request to a model. The key's turn comes first: a request that may not be asked is not read.
///
/// # Errors
/// It is not the caller's turn, or the body breaks a limit or cannot be parsed.
pub(crate) async fn read_asking<T: Send + 'static>(
    app: &App,
    request: Request,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<Asking<T>, ApiError> {
    let (parts, body) = request.into_parts();
    let (received, caller) = (Received::of(&parts.extensions), Caller::of(&parts.extensions));
    let mut held = Held::turn(app, &caller)?;
    let wire = read_json(app, (&parts.headers, body), &mut held, app.limits.json(), parse).await?;
    Ok(Asking { received, caller, held, wire })
}

/// Reads a JSON request that asks no model for an answer.
///
/// # Errors
/// The body breaks a limit or cannot be parsed.
pub(crate) async fn read_wish<T: Send + 'static>(
    app: &App,
    request: Request,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<(Caller, T), ApiError> {
    let (parts, body) = request.into_parts();
    let limits = app.limits.json();
    let limits = ReadLimits { bytes_max: limits.bytes_max.min(WISH_BYTES_MAX), ..limits };
    let mut held = Held::default();
    let wish = read_json(app, (&parts.headers, body), &mut held, limits, parse).await?;
    Ok((Caller::of(&parts.extensions), wish))
}

/// How much one body may be, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimits {
    pub(crate) bytes_max: usize,
    pub(crate) time_max: Duration,
}

/// A whole JSON body, within the limits and within the budget of all bodies.
///
/// # Errors
/// The body breaks a limit or cannot be parsed.
pub(crate) async fn read_json<T: Send + 'static>(
    app: &App,
    (headers, body): (&HeaderMap, Body),
    held: &mut Held,
    limits: ReadLimits,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<T, ApiError> {
    check_type(headers)?;
    let arrival = held.reserve(app, headers, limits.bytes_max).await?;
    let capacity = announced(headers).unwrap_or(0) as usize;
    let time_max = limits.time_max;
    let read = timeout(time_max, collect(body, capacity, limits.bytes_max, arrival.as_ref()));
    let bytes = read.await.map_err(|_| ApiError::BodyTooSlow { time_max })??;
    drop(arrival);
    held.arrived(bytes.len());
    parsed(app, bytes, parse).await
}

async fn collect(
    body: Body,
    capacity: usize,
    bytes_max: usize,
    arrival: Option<&Arrival>,
) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(capacity);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = unless_slow(arrival, pieces.next()).await? {
        let piece = piece.map_err(|_| ApiError::BodyBrokenOff)?;
        if bytes.len() + piece.len() > bytes_max {
            return Err(ApiError::BodyTooLarge { bytes_max });
        }
        bytes.extend_from_slice(&piece);
        if let Some(arrival) = arrival {
            arrival.came(piece.len());
        }
    }
    Ok(bytes)
}

/// What comes next of a body, unless it has to give way to those that wait for memory.
///
/// # Errors
/// It has to.
pub(crate) async fn unless_slow<T>(
    arrival: Option<&Arrival>,
    next: impl Future<Output = T>,
) -> Result<T, ApiError> {
    let Some(arrival) = arrival else { return Ok(next.await) };
    let next = arrival.give_way.run_until_cancelled(next).await;
    next.ok_or(ApiError::BodyGaveWay { bytes_per_s_min: BYTES_PER_S_MIN })
}

/// Large bodies are parsed one at a time, on a thread that answers no other request.
async fn parsed<T: Send + 'static>(
    app: &App,
    bytes: Vec<u8>,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError> + Send + 'static,
) -> Result<T, ApiError> {
    if bytes.len() <= SMALL_BYTES_MAX {
        return Ok(parse(&bytes)?);
    }
    let turn = Arc::clone(&app.bodies.parsing).acquire_owned().await;
    let turn = turn.map_err(|_| ApiError::Stopping)?;
    let give_back = app.give_back;
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

/// No type at all is taken for JSON; another one is a client's mistake, or a form on a foreign page.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let got = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    let essence = got.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    // What `curl -d` says when nobody tells it otherwise, as Ollama's manuals have it.
    if essence == "application/x-www-form-urlencoded" && !is_browsers(headers) {
        return Ok(());
    }
    Err(ApiError::NotJson { got })
}

/// A page cannot keep its browser from saying at least one of these of a form.
fn is_browsers(headers: &HeaderMap) -> bool {
    [ORIGIN, REFERER, HeaderName::from_static("sec-fetch-site")]
        .iter()
        .any(|name| headers.contains_key(name))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
