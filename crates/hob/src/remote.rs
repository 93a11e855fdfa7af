//! HTTP client for another hob: its models, speech, answers and loaded models.
//! The requests are in the files below. This file sends them and explains refusals.

mod chat;
mod events;
mod lifecycle;
mod realtime;
mod routes;
mod speech;
mod transcription;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hob_core::{ChatEvent, Voice};
use hob_upstream::{HttpClient, HttpError, HttpResponse, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use url::Url;

pub(crate) use lifecycle::{LoadOptions, LoadStep};
pub(crate) use speech::SpeechInput;
pub(crate) use transcription::TranscriptInput;

use crate::failure::{CliResult, Failure};
use crate::settings::Secret;

/// The events of a chat answer; the last one of a complete answer is [`ChatEvent::Done`].
pub(crate) type ChatAnswer = BoxStream<'static, CliResult<ChatEvent>>;

/// What to do if nothing listens at the server's address.
pub(crate) const NOT_RUNNING: &str = "check that `hob serve` runs there";

/// The bytes of an answer as they arrive. An error ends it, with the reason.
type Chunks = BoxStream<'static, Result<Bytes, String>>;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// A server that sends nothing for this long counts as dead. hob gives a model as long for its
/// first token, loading included.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(300);
/// Time limit for requests that a server answers at once.
const PROBE_TIME_MAX: Duration = Duration::from_secs(3);
/// Lists and errors are small.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The address of a server, and the key that it may require.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    base: String,
    key: Option<Secret>,
    /// The agent of a team that asks.
    agent: Option<String>,
}

/// Whether to send the key. A guessed address may belong to another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Sent,
    Kept,
}

/// A model as the server lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct RemoteModel {
    pub(crate) id: String,
    pub(crate) hob: RemoteState,
    /// Only teams have it.
    pub(crate) pipeline: Option<serde_json::Value>,
}

impl RemoteModel {
    /// A team acts, so only its own name means it.
    pub(crate) fn is_team(&self) -> bool {
        self.pipeline.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct RemoteState {
    /// `chat`, `speech` or `transcription`.
    #[serde(default)]
    pub(crate) kind: String,
    /// `warm`, `cold`, `loading` or `down`.
    pub(crate) state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct RemoteVoice {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) language: String,
    #[serde(default)]
    pub(crate) gender: String,
}

impl From<Voice> for RemoteVoice {
    fn from(voice: Voice) -> RemoteVoice {
        RemoteVoice {
            id: voice.id,
            name: voice.name,
            language: voice.language.tag().to_owned(),
            gender: voice.gender.name().to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct Models {
    data: Vec<RemoteModel>,
}

#[derive(Deserialize)]
struct Voices {
    voices: Vec<RemoteVoice>,
}

#[derive(Deserialize)]
struct Refused {
    error: RefusedError,
}

#[derive(Deserialize)]
struct RefusedError {
    message: String,
    #[serde(default)]
    code: Option<String>,
}

impl Remote {
    /// Accepts `http://nas:8484` and `nas:8484`, with or without `/v1`.
    pub(crate) fn at(address: &str, key: Option<Secret>) -> Remote {
        let trimmed = address.trim_end_matches('/');
        let trimmed = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
        let scheme = if trimmed.contains("://") { "" } else { "http://" };
        Remote { base: format!("{scheme}{trimmed}"), key, agent: None }
    }

    /// Sends requests to the same server in the name of this agent.
    pub(crate) fn asked_by(&self, agent: Option<String>) -> Remote {
        Remote { agent, ..self.clone() }
    }

    /// The server that would listen at this address, reached from this machine.
    pub(crate) fn here(listen: SocketAddr, key: Option<Secret>) -> Remote {
        let mut address = listen;
        if listen.ip().is_unspecified() {
            address.set_ip(match listen {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        Remote { base: format!("http://{address}"), key, agent: None }
    }

    /// `http://127.0.0.1:8484`.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The server's models. Fails if no server answers quickly, or if the server is not a hob.
    pub(crate) async fn models(&self) -> CliResult<Vec<RemoteModel>> {
        let models: Models = self.get("/v1/models", PROBE_TIME_MAX, Key::Kept).await?;
        Ok(models.data)
    }

    pub(crate) async fn voices(&self) -> CliResult<Vec<RemoteVoice>> {
        let voices: Voices = self.get("/v1/audio/voices", CONNECT_TIME_MAX, Key::Kept).await?;
        Ok(voices.voices)
    }

    /// Posts a request. Errors before the answer are returned; later ones are in the stream.
    async fn stream(&self, path: &str, request: &impl Serialize) -> CliResult<Chunks> {
        Ok(chunks(self.post(path, request).await?))
    }

    async fn post(&self, path: &str, request: &impl Serialize) -> CliResult<HttpResponse> {
        let json = serde_json::to_string(request);
        let json = json.map_err(Failure::internal)?;
        self.send(path, Some(json), SILENCE_TIME_MAX, Key::Sent).await
    }

    /// Gets a JSON document that only a hob has. The time limit is for all of it.
    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        time_max: Duration,
        key: Key,
    ) -> CliResult<T> {
        let asked = async {
            let response = self.send(path, None, SILENCE_TIME_MAX, key).await?;
            let body = whole(chunks(response), TEXT_BYTES_MAX).await;
            body.map_err(|reason| Failure::server(format!("{}: {reason}", self.base)))
        };
        let late = format!("no complete answer came within {} s", time_max.as_secs());
        let body = timeout(time_max, asked).await.unwrap_or_else(|_| Err(self.silent(late)))?;
        serde_json::from_str(&body).map_err(|_| self.not_hob())
    }

    /// Sends a request with this JSON, or without a body. Resolves when the head of the answer is here.
    async fn send(
        &self,
        path: &str,
        json: Option<String>,
        time_max: Duration,
        key: Key,
    ) -> CliResult<HttpResponse> {
        let url = Url::parse(&self.base).map_err(|error| self.silent(error))?;
        let path = format!("{}{path}", url.path().trim_end_matches('/'));
        let key = self.key.as_ref().filter(|_| key == Key::Sent).map(Secret::expose);
        // Boxed, because the state of a connection is large.
        let asked = Box::pin(async {
            let mut client = HttpClient::to(&self.base, key, CONNECT_TIME_MAX)?;
            if let Some(agent) = &self.agent {
                client = client.with_header("x-hob-agent", agent);
            }
            match json {
                Some(json) => client.post_json(&path, json).await,
                None => client.get(&path).await,
            }
        });
        let answered = timeout(time_max, asked).await;
        let answered = answered.map_err(|_| self.silent(too_late(time_max)))?;
        let response = answered.map_err(|error: HttpError| self.unreached(&error))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => {
                let body = whole(chunks(response), TEXT_BYTES_MAX).await;
                Err(self.refusal(status, &body.unwrap_or_default()))
            }
        }
    }

    fn refusal(&self, status: StatusCode, body: &str) -> Failure {
        let said = serde_json::from_str::<Refused>(body).map(|refused| refused.error).ok();
        let code = said.as_ref().and_then(|said| said.code.as_deref());
        let is_permanent = is_permanent(status, code);
        let message = said.as_ref().map(|said| said.message.clone());
        let message = message.unwrap_or_else(|| format!("{} answered {status}", self.base));
        let failure = match status {
            // Busy, or too slow.
            status if matches!(status.as_u16(), 408 | 429) => Failure::server(message),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Failure::usage(message).hint("set HOB_API_KEY to the server's key")
            }
            StatusCode::NOT_FOUND => Failure::model_missing(message),
            // A hob with TLS sends other machines to its encrypted address.
            status if status.is_redirection() => {
                Failure::server(message).hint("give its encrypted address: --server https://…")
            }
            status if status.is_client_error() => Failure::usage(message),
            _ => Failure::server(message),
        };
        Failure { is_permanent, ..failure }
    }

    fn silent(&self, error: impl std::fmt::Display) -> Failure {
        Failure::server(format!("{} does not answer: {error}", self.base))
            .hint("check the address, and the log of the server there")
    }

    fn unreached(&self, error: &HttpError) -> Failure {
        let silent = self.silent(error);
        match error {
            HttpError::Refused { .. } => silent.hint(NOT_RUNNING),
            HttpError::ConnectTimedOut { .. } | HttpError::Failed { .. } => silent,
        }
    }

    fn not_hob(&self) -> Failure {
        Failure::server(format!("the server at {} is not a hob", self.base))
            .hint("give the address of a hob with --server")
    }
}

/// Whether the same request would be refused again. A wrong key of an upstream is not a fault of the request, so its status is
/// that of a server error.
fn is_permanent(status: StatusCode, code: Option<&str>) -> bool {
    let is_wrong_setup = matches!(code, Some("key_refused" | "no_credit" | "not_built"));
    let may_pass = matches!(status.as_u16(), 408 | 409 | 429);
    is_wrong_setup || status.is_redirection() || status.is_client_error() && !may_pass
}

fn too_late(time_max: Duration) -> String {
    format!("nothing came within {} s", time_max.as_secs())
}

fn chunks(response: HttpResponse) -> Chunks {
    stream::unfold(Some(response), |response| async {
        let mut response = response?;
        match timeout(SILENCE_TIME_MAX, response.chunk()).await {
            Ok(Ok(None)) => None,
            Ok(Ok(Some(bytes))) => Some((Ok(bytes), Some(response))),
            Ok(Err(error)) => Some((Err(error.to_string()), None)),
            Err(_) => Some((Err(too_late(SILENCE_TIME_MAX)), None)),
        }
    })
    .boxed()
}

/// Reads a body to its end. A part of it is never returned as if it were all.
async fn whole(mut chunks: Chunks, bytes_max: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|reason| format!("the answer ended early: {reason}"))?;
        bytes.extend_from_slice(&chunk);
        if bytes.len() > bytes_max {
            return Err(format!("the answer is larger than {bytes_max} bytes"));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::failure::Exit;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for address in ["http://nas:8484", "nas:8484", "nas:8484/", "http://nas:8484/v1/"] {
            assert_eq!(Remote::at(address, None).base, "http://nas:8484", "{address}");
        }
        assert_eq!(Remote::at("https://hob.example", None).base, "https://hob.example");
        for (listen, base) in [
            ("127.0.0.1:8484", "http://127.0.0.1:8484"),
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:2", "http://[::1]:2"),
        ] {
            assert_eq!(Remote::here(listen.parse().expect("an address"), None).base, base);
        }
    }

    #[tokio::test]
    async fn a_list_that_does_not_end_is_given_up_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let remote = Remote::here(listener.local_addr().expect("an address"), None);
        let beginning = async {
            let (mut socket, _) = listener.accept().await.expect("a client");
            // The client refuses an answer that comes before it has sent its request.
            assert!(socket.read(&mut [0; 1024]).await.expect("a request") > 0);
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"data\":";
            socket.write_all(head).await.expect("sent");
            pending::<Infallible>().await
        };
        let get = remote.get::<Models>("/v1/models", Duration::from_millis(500), Key::Kept);
        let asked = tokio::select! {
            never = beginning => match never {},
            asked = get => asked,
        };
        let failure = asked.err().expect("no list");
        assert!(failure.sentence.contains("no complete answer came within"), "{failure}");
    }

    #[test]
    fn a_refusal_says_what_the_server_said() {
        let remote = Remote::at("nas:1", None);
        let body = r#"{"error":{"message":"no voice is called 'x'","type":"t"}}"#;
        let key = r#"{"error":{"message":"wrong key","type":"t","code":"key_refused"}}"#;
        let rows = [
            (400, body, Exit::Usage, "no voice is called 'x'", true),
            (308, "", Exit::Server, "http://nas:1 answered 308 Permanent Redirect", true),
            (401, "{}", Exit::Usage, "http://nas:1 answered 401 Unauthorized", true),
            (404, "", Exit::ModelMissing, "http://nas:1 answered 404 Not Found", true),
            (429, body, Exit::Server, "no voice is called 'x'", false),
            (502, key, Exit::Server, "wrong key", true),
            (503, body, Exit::Server, "no voice is called 'x'", false),
        ];
        for (status, body, exit, sentence, is_permanent) in rows {
            let status = StatusCode::from_u16(status).expect("a status");
            let failure = remote.refusal(status, body);
            assert_eq!(failure.is_permanent, is_permanent, "{status}");
            assert_eq!((failure.exit, failure.sentence.as_str()), (exit, sentence));
            let names_https = failure.hint.is_some_and(|hint| hint.contains("https://"));
            assert_eq!(names_https, status == StatusCode::PERMANENT_REDIRECT, "{status}");
        }
    }
}
