//! A server that speaks OpenAI's protocol and fails as it is told: the model's name picks the fault.
//! It counts who asked and who left, so that a test can tell what a gateway really did.

mod faults;
mod measured;
mod quick;
pub mod scripted;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{DefaultBodyLimit, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub use faults::{Fault, WORDS};
pub use quick::serve_quick;

/// Bodies that tests of limits send.
const BODY_BYTES_MAX: usize = 256 << 20;

/// What was asked and what became of it. Clones look at the same counts.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    hits: Mutex<BTreeMap<String, usize>>,
    /// The last body of each model.
    bodies: Mutex<BTreeMap<String, String>>,
    gone: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counts {
    /// Requests for this model.
    pub fn hits(&self, model: &str) -> usize {
        self.0.hits.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or(0)
    }

    /// What the last request for this model said.
    pub fn body(&self, model: &str) -> Option<String> {
        self.0.bodies.lock().unwrap_or_else(PoisonError::into_inner).get(model).cloned()
    }

    /// Answers whose reader left before their end.
    pub fn gone(&self) -> usize {
        self.0.gone.load(Ordering::Relaxed)
    }

    /// Bytes of answers that were taken from here.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    fn hit(&self, model: &str, body: &Bytes) {
        let mut hits = self.0.hits.lock().unwrap_or_else(PoisonError::into_inner);
        *hits.entry(model.to_owned()).or_default() += 1;
        let body = String::from_utf8_lossy(body).into_owned();
        self.0.bodies.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), body);
    }
}

/// A mock that listens; dropping its listener's task ends it.
#[derive(Debug)]
pub struct Mock {
    pub address: SocketAddr,
    pub counts: Counts,
    serving: tokio::task::JoinHandle<io::Result<()>>,
}

impl Mock {
    /// Listens on a free port of this machine only.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start() -> io::Result<Mock> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, counts) = (listener.local_addr()?, Counts::default());
        let serving = serve(listener, counts.clone());
        #[expect(clippy::disallowed_methods, reason = "aborted when the mock is dropped")]
        let serving = tokio::spawn(serving);
        Ok(Mock { address, counts, serving })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Answers on this listener until it is dropped.
///
/// # Errors
/// The listener fails.
pub async fn serve(listener: TcpListener, counts: Counts) -> io::Result<()> {
    let app = Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(models))
        .route("/hits", get(hits))
        .route("/{*elsewhere}", get(nothing))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(counts);
    axum::serve(listener, app).await
}

#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    model: std::borrow::Cow<'a, str>,
    #[serde(default)]
    stream: bool,
}

/// The model's name is `FAULT` or `FAULT~anything`: what follows only tells requests apart.
async fn complete(State(counts): State<Counts>, body: Bytes) -> Response {
    let Ok(asked) = serde_json::from_slice::<Asked<'_>>(&body) else {
        return faults::refused(400, "the body is no request", None);
    };
    counts.hit(&asked.model, &body);
    let name = asked.model.split('~').next().unwrap_or_default();
    match Fault::of(name) {
        Some(fault) => fault.answer(&counts, asked.stream, &body).await,
        None => faults::refused(404, "no model has this name", None),
    }
}

async fn models() -> Json<Value> {
    let entry =
        |fault: &Fault| json!({ "id": fault.name(), "object": "model", "owned_by": "mock" });
    let models: Vec<Value> = Fault::ALL.iter().map(entry).collect();
    Json(json!({ "object": "list", "data": models }))
}

async fn hits(State(counts): State<Counts>) -> Json<Value> {
    let hits = counts.0.hits.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Json(json!({ "hits": hits, "gone": counts.gone(), "bytes": counts.bytes() }))
}

async fn nothing() -> Response {
    faults::refused(404, "nothing is here", None)
}
