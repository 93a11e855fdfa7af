//! HTTP client for another hob: its models, speech, answers and loaded models.
//! The requests are in the files below. This file sends them and explains refusals.

mod chat;
mod lifecycle;
mod lines;
mod routes;
mod speech;

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hob_core::ChatEvent;
use hob_core::{Gender, Voice};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task;
use ureq::http::StatusCode;
use ureq::{Agent, Body};

pub(crate) use lifecycle::{LoadStep, LoadWish, RemoteResident};
pub(crate) use routes::{RemoteRoute, RemoteTarget, RemoteUpstream, RemoteUpstreams};
pub(crate) use speech::Words;

use crate::failure::{Exit, Failure, Outcome};
use crate::settings::Secret;

/// The events of a chat answer; the last one of a complete answer is [`ChatEvent::Done`].
pub(crate) type ChatAnswer = BoxStream<'static, Outcome<ChatEvent>>;

/// Pieces that wait between the reading thread and the writer. Beyond this number the server has to wait.
const PIECES_MAX: usize = 16;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// A server that sends nothing for this long counts as dead. hob gives a model as long for its
/// first token, loading included.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(300);
/// Time limit for requests that a server answers at once.
const PROBE_TIME_MAX: Duration = Duration::from_secs(3);
/// Lists and errors are small.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The address of a server, and the key that it may require.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    base: String,
    key: Option<Secret>,
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
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct RemoteState {
    /// `chat` or `speech`.
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
        let gender = match voice.gender {
            Gender::Female => "female",
            Gender::Male => "male",
        };
        RemoteVoice {
            id: voice.id,
            name: voice.name,
            language: voice.language.tag().to_owned(),
            gender: gender.to_owned(),
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
}

impl Remote {
    /// Accepts `http://nas:8484` and `nas:8484`, with or without `/v1`.
    pub(crate) fn at(address: &str, key: Option<Secret>) -> Remote {
        let trimmed = address.trim_end_matches('/');
        let trimmed = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
        let scheme = if trimmed.contains("://") { "" } else { "http://" };
        Remote { base: format!("{scheme}{trimmed}"), key }
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
        Remote { base: format!("http://{address}"), key }
    }

    /// `http://127.0.0.1:8484`.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The server's models. Fails if no server answers quickly, or if the server is not a hob.
    pub(crate) async fn models(&self) -> Outcome<Vec<RemoteModel>> {
        let body = self.get("/v1/models", PROBE_TIME_MAX, Key::Kept).await?;
        let models: Models = serde_json::from_str(&body).map_err(|_| self.not_hob())?;
        Ok(models.data)
    }

    pub(crate) async fn voices(&self) -> Outcome<Vec<RemoteVoice>> {
        let body = self.get("/v1/audio/voices", CONNECT_TIME_MAX, Key::Kept).await?;
        let voices: Voices = serde_json::from_str(&body).map_err(|_| self.not_hob())?;
        Ok(voices.voices)
    }

    /// Sends a request, and reads its answer on a separate thread. Errors before the answer are returned;
    /// `read` sends later ones. Ends when the receiver is dropped.
    async fn stream<T: Send + 'static>(
        &self,
        path: &'static str,
        request: impl Serialize + Send + 'static,
        read: impl FnOnce(Body, &mpsc::Sender<T>) + Send + 'static,
    ) -> Outcome<BoxStream<'static, T>> {
        let (pieces, heard) = mpsc::channel(PIECES_MAX);
        let (answer, answered) = oneshot::channel();
        let remote = self.clone();
        task::spawn_blocking(move || match remote.post(path, &request) {
            Ok(body) => {
                if answer.send(Ok(())).is_ok() {
                    read(body, &pieces);
                }
            }
            // The receiver was dropped.
            Err(failure) => drop(answer.send(Err(failure))),
        });
        answered.await.map_err(|_| self.silent("the request failed"))??;
        let heard = stream::unfold(heard, |mut heard| async {
            heard.recv().await.map(|piece| (piece, heard))
        });
        Ok(heard.boxed())
    }

    fn post(&self, path: &str, request: &impl Serialize) -> Outcome<Body> {
        let mut post = agent(SILENCE_TIME_MAX).post(format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            post = post.header("Authorization", bearer(key));
        }
        let response = post.send_json(request).map_err(|error| self.silent(error))?;
        let status = response.status();
        let body = response.into_body();
        if status.is_success() { Ok(body) } else { Err(self.refusal(status, &text(body))) }
    }

    async fn get(&self, path: &str, time_max: Duration, key: Key) -> Outcome<String> {
        let (remote, url) = (self.clone(), format!("{}{path}", self.base));
        let asked = task::spawn_blocking(move || {
            let mut get = agent(time_max).get(url);
            if let (Key::Sent, Some(key)) = (key, &remote.key) {
                get = get.header("Authorization", bearer(key));
            }
            let response = get.call().map_err(|error| remote.silent(error))?;
            let status = response.status();
            let body = text(response.into_body());
            if status.is_success() { Ok(body) } else { Err(remote.refusal(status, &body)) }
        });
        asked.await.unwrap_or_else(|error| Err(self.silent(error)))
    }

    fn refusal(&self, status: StatusCode, body: &str) -> Failure {
        let said = serde_json::from_str::<Refused>(body).map(|refused| refused.error.message);
        let message = said.unwrap_or_else(|_| format!("{} answered {status}", self.base));
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Failure::usage(message).hint("set HOB_API_KEY to the server's key")
            }
            StatusCode::NOT_FOUND => Failure::new(Exit::ModelMissing, message),
            status if status.is_client_error() => Failure::usage(message),
            _ => Failure::new(Exit::Server, message),
        }
    }

    fn silent(&self, error: impl std::fmt::Display) -> Failure {
        Failure::new(Exit::Server, format!("{} does not answer: {error}", self.base))
            .hint("check that `hob serve` runs there")
    }

    fn not_hob(&self) -> Failure {
        Failure::new(Exit::Server, format!("the server at {} is not a hob", self.base))
    }
}

fn bearer(key: &Secret) -> String {
    format!("Bearer {}", key.expose())
}

fn agent(silence_max: Duration) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT_TIME_MAX.min(silence_max)))
        .timeout_recv_response(Some(silence_max))
        .timeout_per_read(Some(silence_max))
        // Sent directly: a web proxy does not know the machines of the local network.
        .proxy(None)
        .build()
        .new_agent()
}

/// Reads at most as much as a list or an error can contain. Truncated text does not parse, which is reported.
fn text(body: Body) -> String {
    let mut bytes = Vec::new();
    let mut reader = body.into_reader().take(TEXT_BYTES_MAX);
    match reader.read_to_end(&mut bytes) {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_refusal_says_what_the_server_said() {
        let remote = Remote::at("nas:1", None);
        let body = r#"{"error":{"message":"no voice is called 'x'","type":"t"}}"#;
        let rows = [
            (400, body, Exit::Usage, "no voice is called 'x'"),
            (401, "{}", Exit::Usage, "http://nas:1 answered 401 Unauthorized"),
            (404, "", Exit::ModelMissing, "http://nas:1 answered 404 Not Found"),
            (503, body, Exit::Server, "no voice is called 'x'"),
        ];
        for (status, body, exit, sentence) in rows {
            let status = StatusCode::from_u16(status).expect("a status");
            let failure = remote.refusal(status, body);
            assert_eq!((failure.exit, failure.sentence.as_str()), (exit, sentence));
        }
    }
}
