//! hob's own routes for being in memory: what is there, put this one there, take it out again.
//! Models that live elsewhere are somebody else's to load, and are refused.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use hob_core::{ChatTarget, KeepAlive, ModelLifecycle, Registry, SpeechTarget, TranscriptTarget};
use hob_wire::{ResidenceWish, ResidentEntry, loading_line, parse_residence, resident, residents};
use tokio::time::timeout;

use crate::asking::read_wish;
use crate::failure::ApiError;
use crate::guard::check_key;
use crate::headers::{JSON, LINES, answer_headers, insert_ignored};
use crate::keys::Caller;
use crate::router::{App, Limits};

/// Between two lines of a loading that is told.
const TOLD_EVERY: Duration = Duration::from_millis(250);

type Held = Arc<dyn ModelLifecycle>;

pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/api/hob/ps", get(list))
        .route("/api/hob/load", post(load))
        .route("/api/hob/unload", post(take_out))
        .route_layer(from_fn_with_state(Arc::clone(app), check_key))
}

/// Puts a model into memory, and says how long it is to stay. One that lives elsewhere needs
/// neither.
///
/// # Errors
/// Whatever loading fails with, and its silence.
pub(crate) async fn load_if_ours(
    lifecycle: Option<&Held>,
    keep_alive: Option<KeepAlive>,
    limits: &Limits,
) -> Result<(), ApiError> {
    let Some(lifecycle) = lifecycle else { return Ok(()) };
    if let Some(wish) = keep_alive {
        lifecycle.keep_alive(wish);
    }
    let time_max = limits.token_time_max;
    let loaded = timeout(time_max, lifecycle.load()).await;
    Ok(loaded.map_err(|_| ApiError::ResidenceStalled { time_max })??)
}

/// Takes a model out of memory, now or when nobody uses it any more.
///
/// # Errors
/// It lives elsewhere, or does not leave.
pub(crate) async fn unload_when_idle(target: &ChatTarget, limits: &Limits) -> Result<(), ApiError> {
    let lifecycle = target.lifecycle.as_ref();
    let lifecycle = lifecycle.ok_or_else(|| ApiError::NotOurs { name: target.name.clone() })?;
    if lifecycle.memory_use().in_flight > 0 {
        lifecycle.keep_alive(KeepAlive::For(Duration::ZERO));
        return Ok(());
    }
    unload(lifecycle, limits).await
}

async fn unload(lifecycle: &Held, limits: &Limits) -> Result<(), ApiError> {
    let time_max = limits.token_time_max;
    let gone = timeout(time_max, lifecycle.unload()).await;
    gone.map_err(|_| ApiError::ResidenceStalled { time_max })
}

/// A model that this hob holds.
#[derive(Clone)]
struct Resident {
    name: String,
    kind: &'static str,
    context_tokens: Option<u32>,
    lifecycle: Held,
}

impl Resident {
    fn speech(target: &SpeechTarget) -> Option<Resident> {
        let (name, lifecycle) = (target.name.clone(), target.lifecycle.clone()?);
        Some(Resident { name, kind: "speech", context_tokens: None, lifecycle })
    }

    fn transcript(target: &TranscriptTarget) -> Option<Resident> {
        let (name, lifecycle) = (target.name.clone(), target.lifecycle.clone()?);
        Some(Resident { name, kind: "transcription", context_tokens: None, lifecycle })
    }

    fn chat(target: &ChatTarget) -> Option<Resident> {
        let (name, lifecycle) = (target.name.clone(), target.lifecycle.clone()?);
        let context_tokens = Some(target.model.card().context_tokens);
        Some(Resident { name, kind: "chat", context_tokens, lifecycle })
    }

    fn entry(&self) -> ResidentEntry {
        ResidentEntry {
            name: self.name.clone(),
            kind: self.kind,
            state: self.lifecycle.state(),
            memory_use: self.lifecycle.memory_use(),
            context_tokens: self.context_tokens,
        }
    }
}

/// `GET /api/hob/ps`.
async fn list(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let entries = entries(&app.registry(), &caller);
    ([(CONTENT_TYPE, JSON)], residents(&entries)).into_response()
}

/// Those that this caller may use, under the names by which they know them.
pub(crate) fn entries(registry: &Registry, caller: &Caller) -> Vec<ResidentEntry> {
    let speech = registry.speech_targets().filter_map(|target| Resident::speech(target));
    let chat = registry.chat_targets().filter_map(|target| Resident::chat(target));
    let heard = registry.transcript_targets().filter_map(|target| Resident::transcript(target));
    let shown = speech.chain(chat).chain(heard).filter_map(|held| {
        let name = caller.shown_as(registry, &held.name)?.to_owned();
        Some(Resident { name, ..held }.entry())
    });
    shown.collect()
}

/// `POST /api/hob/load`.
async fn load(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (wish, held) = read(&app, request).await?;
    let loading = loading(held.clone(), wish.keep_alive, app.limits);
    if !wish.is_told {
        loading.await?;
        return Ok(told(&held, &wish));
    }
    // What fails at once fails with its own status.
    let mut loading = Box::pin(loading);
    match timeout(Duration::ZERO, &mut loading).await {
        Ok(done) => done?,
        Err(_) => return Ok(telling(Telling { held, loading }, &wish)),
    }
    let mut headers = answer_headers(LINES);
    insert_ignored(&mut headers, &wish.ignored);
    Ok((headers, resident(&held.entry()) + "\n").into_response())
}

/// `POST /api/hob/unload`: at once, whoever uses it.
async fn take_out(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (wish, held) = read(&app, request).await?;
    unload(&held.lifecycle, &app.limits).await?;
    Ok(told(&held, &wish))
}

async fn read(app: &App, request: Request) -> Result<(ResidenceWish, Resident), ApiError> {
    let (caller, wish) = read_wish(app, request, parse_residence).await?;
    caller.check(app, &wish.model)?;
    let held = find(app, &wish.model)?;
    caller.take_request(app)?;
    Ok((wish, held))
}

/// A model of any kind.
fn find(app: &App, name: &str) -> Result<Resident, ApiError> {
    let heard = || app.transcript_target(Some(name));
    let found = match (app.chat_target(Some(name)), app.speech_target(Some(name))) {
        (Ok(target), _) => Resident::chat(&target),
        (_, Ok(target)) => Resident::speech(&target),
        (Err(refusal), Err(_)) => Resident::transcript(&*heard().map_err(|_| refusal)?),
    };
    found.ok_or_else(|| ApiError::NotOurs { name: name.to_owned() })
}

fn told(held: &Resident, wish: &ResidenceWish) -> Response {
    let mut headers = answer_headers(JSON);
    insert_ignored(&mut headers, &wish.ignored);
    (headers, resident(&held.entry())).into_response()
}

async fn loading(
    held: Resident,
    keep_alive: Option<KeepAlive>,
    limits: Limits,
) -> Result<(), ApiError> {
    load_if_ours(Some(&held.lifecycle), keep_alive, &limits).await
}

type Loading = Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send>>;

/// A loading that goes on while somebody listens.
struct Telling {
    held: Resident,
    loading: Loading,
}

fn telling(telling: Telling, wish: &ResidenceWish) -> Response {
    let mut headers = answer_headers(LINES);
    insert_ignored(&mut headers, &wish.ignored);
    let first = stream::iter([Ok::<_, Infallible>(telling.progress())]);
    let rest = stream::unfold(Some(telling), async |telling| {
        let mut telling = telling?;
        let (line, more) = telling.next().await;
        Some((Ok(line), more.then_some(telling)))
    });
    let body = Body::from_stream(futures::StreamExt::chain(first, rest));
    (headers, body).into_response()
}

impl Telling {
    fn progress(&self) -> String {
        loading_line(&self.held.lifecycle.state()) + "\n"
    }

    /// The next line, and whether more may follow.
    async fn next(&mut self) -> (String, bool) {
        match timeout(TOLD_EVERY, &mut self.loading).await {
            Err(_) => (self.progress(), true),
            Ok(Ok(())) => (resident(&self.held.entry()) + "\n", false),
            Ok(Err(refusal)) => (refusal.body().to_json() + "\n", false),
        }
    }
}
