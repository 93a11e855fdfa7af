//! A server with staged answers that records its requests, and gateways that lead to such servers.
//! It gives one answer for each request, and status 500 after the last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use futures::{StreamExt, stream};
use hob_core::scripted::{SpeechOf, american_voice};
use hob_core::{
    ModelError, Registry, Resolve, Speech, SpeechEvent, SpeechModel, SpeechRequest, SpeechStream,
    SpeechText,
};
use hob_upstream::{
    AliasOptions, AttemptTimeouts, Gateway, GatewayOptions, TargetOptions, UpstreamKind,
    UpstreamOptions,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) hops: Option<String>,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

#[derive(Default)]
struct Played {
    answers: Mutex<VecDeque<Response<Body>>>,
    asked: Mutex<Vec<Asked>>,
}

pub(crate) struct Stage {
    pub(crate) url: String,
    played: Arc<Played>,
    _running: JoinSet<()>,
}

impl Stage {
    pub(crate) async fn of(answers: impl IntoIterator<Item = Response<Body>>) -> Stage {
        let played = Arc::new(Played::default());
        *played.answers.lock().expect("unshared") = answers.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let app = Router::new().fallback(play).with_state(Arc::clone(&played));
        let mut running = JoinSet::new();
        running.spawn(async move { axum::serve(listener, app).await.expect("a server") });
        Stage { url, played, _running: running }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.played.asked.lock().expect("no panic").clone()
    }

    pub(crate) fn hits(&self) -> usize {
        self.asked().len()
    }
}

async fn play(State(played): State<Arc<Played>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("a body");
    let hops = parts.headers.get("x-hob-hops").map(|hops| hops.to_str().expect("text").to_owned());
    let path = parts.uri.path().to_owned();
    played.asked.lock().expect("no panic").push(Asked { path, hops, body });
    let answer = played.answers.lock().expect("no panic").pop_front();
    answer.unwrap_or_else(|| status(500, r#"{"error":{"message":"nothing is staged"}}"#))
}

/// A complete answer with this content type.
pub(crate) fn whole(content_type: &str, body: impl Into<Body>) -> Response<Body> {
    let response = Response::builder().header("content-type", content_type);
    response.body(body.into()).expect("an answer")
}

pub(crate) fn status(code: u16, json: &str) -> Response<Body> {
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(Body::from(json.to_owned())).expect("an answer")
}

/// The end of a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Well,
    Cut,
    Never,
}

/// These pieces, one chunk each, and then the end.
pub(crate) fn chunked(content_type: &str, pieces: &[&[u8]], end: End) -> Response<Body> {
    let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let pieces = stream::iter(pieces);
    // Closing at once could drop bytes that were not sent yet.
    let cut = stream::once(async {
        tokio::task::yield_now().await;
        Err(std::io::Error::other("cut"))
    });
    let body = match end {
        End::Well => Body::from_stream(pieces),
        End::Cut => Body::from_stream(pieces.chain(cut)),
        End::Never => Body::from_stream(pieces.chain(stream::pending())),
    };
    whole(content_type, body)
}

pub(crate) fn timeouts() -> AttemptTimeouts {
    let time = |ms| Some(Duration::from_millis(ms));
    AttemptTimeouts {
        connect: time(60_000),
        first_token: time(60_000),
        idle: time(60_000),
        total: time(240_000),
        load: None,
    }
}

pub(crate) fn upstream(name: &str, kind: UpstreamKind, url: &str) -> UpstreamOptions {
    let plain = UpstreamOptions::plain(name, kind, url);
    UpstreamOptions { timeouts: timeouts(), queue_max: 8, ..plain }
}

pub(crate) fn alias(name: &str, targets: &[&str]) -> AliasOptions {
    let targets = targets.iter().map(|target| TargetOptions::plain(target)).collect();
    AliasOptions { targets, timeouts: timeouts(), ..AliasOptions::plain(name) }
}

/// `a` and `b` are servers of OpenAI's kind; `any` tries `a/m` and then `b/m`.
pub(crate) fn two(a: &Stage, b: &Stage) -> Gateway {
    let upstreams = [("a", a), ("b", b)];
    let upstreams = upstreams.map(|(name, at)| upstream(name, UpstreamKind::OpenAi, &at.url));
    gateway_of(upstreams.into(), vec![alias("any", &["a/m", "b/m"])], &Registry::default())
}

pub(crate) fn gateway_of(
    upstreams: Vec<UpstreamOptions>,
    aliases: Vec<AliasOptions>,
    locals: &Registry,
) -> Gateway {
    let options = GatewayOptions { upstreams, aliases, ..GatewayOptions::default() };
    Gateway::new(options, locals, None).expect("a gateway")
}

pub(crate) fn request(text: &str) -> SpeechRequest {
    SpeechRequest::new(SpeechText::Whole(text.to_owned()), "nova")
}

/// The sound under this name, and its sample rate.
pub(crate) async fn speak(
    gateway: &Gateway,
    name: &str,
    request: SpeechRequest,
) -> Result<(u32, Vec<Result<SpeechEvent, ModelError>>), ModelError> {
    let target = Resolve::<Speech>::resolve(gateway, name).expect("a name");
    let stream = target.model.speak(request).await?;
    Ok((stream.sample_rate_hz, stream.collect().await))
}

/// What a local voice does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Play {
    /// Sends one sound, and ends.
    Speak,
    /// Sends nothing, for ever.
    Keep,
    /// Sends one sound, and then nothing.
    Stall,
    /// Waits in the queue for this long, and then speaks.
    InLine(Duration),
    /// Sends ten seconds of sound, and takes this long for each.
    Slowly(Duration),
}

/// A local voice.
pub(crate) fn local_voice(play: Play) -> Arc<dyn SpeechModel> {
    let voices = vec![american_voice("af_heart")];
    Arc::new(SpeechOf::new(voices, move |_| async move {
        let sound = stream::iter([Ok(SpeechEvent::Audio(vec![0.5]))]);
        match play {
            Play::Speak => Ok(SpeechStream::new(24_000, sound)),
            Play::InLine(time) => {
                tokio::time::sleep(time).await;
                Ok(SpeechStream::new(24_000, sound))
            }
            Play::Slowly(time) => {
                let seconds = stream::iter(0..10).then(move |_| async move {
                    tokio::time::sleep(time).await;
                    Ok(SpeechEvent::Audio(vec![0.5; 24_000]))
                });
                Ok(SpeechStream::new(24_000, seconds))
            }
            Play::Keep => std::future::pending().await,
            Play::Stall => Ok(SpeechStream::new(24_000, sound.chain(stream::pending()))),
        }
    }))
}
