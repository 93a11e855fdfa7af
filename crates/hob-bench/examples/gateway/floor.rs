//! A minimal gateway: parses the request, rewrites the model's name, and relays the answer.
//! It has no keys, limits, fallbacks or counters. The report gives hob's cost as a multiple of this gateway's.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Either, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Clients write this before the name of the mock server's model.
const ALIAS_PREFIX: &str = "bench-";

type Failed = Box<dyn Error + Send + Sync>;
type Upstream = Mutex<SendRequest<Full<Bytes>>>;
type Relayed = Response<Either<Incoming, Empty<Bytes>>>;

/// Answers on this listener until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, upstream: SocketAddr) -> io::Result<()> {
    let mut clients = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        clients.spawn(relay(socket, upstream));
        // Frees the tasks of clients that left.
        while clients.try_join_next().is_some() {}
    }
}

/// Relays the requests of one client connection over one connection to the mock server. HTTP/1.1 answers the requests of a
/// connection one after the other, so one is enough.
async fn relay(client: TcpStream, upstream: SocketAddr) -> Result<(), Failed> {
    client.set_nodelay(true)?;
    let mock = TcpStream::connect(upstream).await?;
    mock.set_nodelay(true)?;
    let (sender, sending) = handshake(TokioIo::new(mock)).await?;
    let sender = Arc::new(Mutex::new(sender));
    let service = service_fn(move |request| answer(request, Arc::clone(&sender)));
    let answering = Builder::new().serve_connection(TokioIo::new(client), service);
    // Both run in one task, so nothing is passed between threads.
    tokio::select! {
        ended = answering => Ok(ended?),
        ended = sending => Ok(ended?),
    }
}

async fn answer(request: Request<Incoming>, upstream: Arc<Upstream>) -> Result<Relayed, Failed> {
    if request.method() == Method::GET {
        return Ok(Response::new(Either::Right(Empty::new())));
    }
    let body = request.into_body().collect().await?.to_bytes();
    let request = Request::post("/v1/chat/completions")
        .header(HOST, "mock")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(rewritten(&body)?))?;
    let mut upstream = upstream.lock().await;
    upstream.ready().await?;
    let (head, body) = upstream.send_request(request).await?.into_parts();
    let mut response = Response::new(Either::Left(body));
    *response.status_mut() = head.status;
    if let Some(kind) = head.headers.get(CONTENT_TYPE) {
        response.headers_mut().insert(CONTENT_TYPE, kind.clone());
    }
    Ok(response)
}

fn rewritten(body: &[u8]) -> Result<Bytes, Failed> {
    let mut request: Value = serde_json::from_slice(body)?;
    let name = request["model"].as_str().and_then(|name| name.strip_prefix(ALIAS_PREFIX));
    if let Some(name) = name.map(str::to_owned) {
        request["model"] = name.into();
    }
    Ok(serde_json::to_vec(&request)?.into())
}
