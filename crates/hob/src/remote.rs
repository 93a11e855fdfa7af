//! Another hob, asked over HTTP: what it has, and its voice. It is asked for samples, so that the
//! format, the player and the progress are the same as without a server.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use hob_core::{Gender, ModelError, SpeechEvent, SpeechStream, Voice};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task;
use ureq::http::StatusCode;
use ureq::{Agent, Body};

use crate::failure::{Exit, Failure, Outcome};
use crate::settings::Secret;

/// What OpenAI's protocol means by `pcm`.
const SAMPLE_RATE_HZ: u32 = 24_000;
/// In errors of a stream: what failed is the server or the way to it.
pub(crate) const ENGINE: &str = "remote";
/// Every server of this protocol knows this name for its speech model.
const MODEL: &str = "tts-1";
/// Chunks of sound between the reading thread and whoever writes; beyond them the server waits.
const CHUNKS_MAX: usize = 16;
const CHUNK_BYTES: usize = 16 << 10;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// A server that says nothing for this long is taken for dead.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(120);
/// For questions that a server answers at once.
const PROBE_TIME_MAX: Duration = Duration::from_millis(800);
/// Lists and refusals are small.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Where a server is, and the key that it may ask for.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    base: String,
    key: Option<Secret>,
}

/// What is to be said.
#[derive(Debug, Serialize)]
pub(crate) struct Words {
    pub(crate) input: String,
    pub(crate) voice: String,
    pub(crate) speed: f32,
}

#[derive(Debug, Serialize)]
struct Request<'a> {
    model: &'static str,
    response_format: &'static str,
    #[serde(flatten)]
    words: &'a Words,
}

/// A model as the server lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct RemoteModel {
    pub(crate) id: String,
    pub(crate) hob: RemoteState,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct RemoteState {
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
    /// `address` as people write it: `http://nas:8484`, `nas:8484`, with or without `/v1`.
    pub(crate) fn at(address: &str, key: Option<Secret>) -> Remote {
        let trimmed = address.trim_end_matches('/');
        let trimmed = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
        let scheme = if trimmed.contains("://") { "" } else { "http://" };
        Remote { base: format!("{scheme}{trimmed}"), key }
    }

    /// The server that would listen here, reached from this machine.
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

    /// Its models; an error when nobody answers quickly, or who answers is not a hob.
    pub(crate) async fn models(&self) -> Outcome<Vec<RemoteModel>> {
        let body = self.get("/v1/models", PROBE_TIME_MAX).await?;
        let models: Models = serde_json::from_str(&body).map_err(|_| self.not_hob())?;
        Ok(models.data)
    }

    pub(crate) async fn voices(&self) -> Outcome<Vec<RemoteVoice>> {
        let body = self.get("/v1/audio/voices", CONNECT_TIME_MAX).await?;
        let voices: Voices = serde_json::from_str(&body).map_err(|_| self.not_hob())?;
        Ok(voices.voices)
    }

    /// Speaks. Refusals come before the stream; a connection that breaks later is an error in it.
    pub(crate) async fn speak(&self, words: Words) -> Outcome<SpeechStream> {
        let (chunks, heard) = mpsc::channel(CHUNKS_MAX);
        let (answer, answered) = oneshot::channel();
        let remote = self.clone();
        // Ends with its connection, or when nobody listens any more.
        task::spawn_blocking(move || match remote.post(&words) {
            Ok(body) => {
                if answer.send(Ok(())).is_ok() {
                    read_sound(body, &chunks);
                }
            }
            // Who asked has left.
            Err(failure) => drop(answer.send(Err(failure))),
        });
        answered.await.map_err(|_| self.silent("the request was lost"))??;
        let events = futures::stream::unfold(heard, |mut heard| async {
            heard.recv().await.map(|chunk| (chunk, heard))
        });
        Ok(SpeechStream::new(SAMPLE_RATE_HZ, events.boxed()))
    }

    fn post(&self, words: &Words) -> Outcome<Body> {
        let request = Request { model: MODEL, response_format: "pcm", words };
        let mut post = agent(SILENCE_TIME_MAX).post(format!("{}/v1/audio/speech", self.base));
        if let Some(key) = &self.key {
            post = post.header("Authorization", format!("Bearer {}", key.expose()));
        }
        let response = post.send_json(request).map_err(|error| self.silent(error))?;
        let status = response.status();
        let body = response.into_body();
        if status.is_success() { Ok(body) } else { Err(self.refusal(status, &text(body))) }
    }

    async fn get(&self, path: &str, time_max: Duration) -> Outcome<String> {
        let (remote, url) = (self.clone(), format!("{}{path}", self.base));
        let asked = task::spawn_blocking(move || {
            let response = agent(time_max).get(url).call().map_err(|error| remote.silent(error))?;
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
                Failure::usage(message).hint("HOB_API_KEY is the key that is sent")
            }
            StatusCode::NOT_FOUND => Failure::new(Exit::ModelMissing, message),
            status if status.is_client_error() => Failure::usage(message),
            _ => Failure::new(Exit::Server, message),
        }
    }

    fn silent(&self, error: impl std::fmt::Display) -> Failure {
        Failure::new(Exit::Server, format!("{} does not answer: {error}", self.base))
            .hint("is `hob serve` running there?")
    }

    fn not_hob(&self) -> Failure {
        Failure::new(Exit::Server, format!("what answers at {} is not a hob", self.base))
    }
}

fn agent(silence_max: Duration) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT_TIME_MAX.min(silence_max)))
        .timeout_recv_response(Some(silence_max))
        .timeout_per_read(Some(silence_max))
        // A hob is asked directly: the proxy that pages of the web need knows no machine at home.
        .proxy(None)
        .build()
        .new_agent()
}

/// As much as a list or a refusal can be; what is cut off does not parse, and is said to.
fn text(body: Body) -> String {
    let mut bytes = Vec::new();
    let mut reader = body.into_reader().take(TEXT_BYTES_MAX);
    match reader.read_to_end(&mut bytes) {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

fn read_sound(body: Body, chunks: &mpsc::Sender<Result<SpeechEvent, ModelError>>) {
    let mut reader = body.into_reader();
    let mut bytes = vec![0; CHUNK_BYTES];
    let mut odd: Option<u8> = None;
    loop {
        let chunk = match reader.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => Ok(SpeechEvent::Audio(samples(&mut odd, &bytes[..count]))),
            Err(error) => Err(ModelError::EngineFailed {
                engine: ENGINE,
                detail: format!("the answer broke off: {error}"),
            }),
        };
        let ends = chunk.is_err();
        let reader_left = chunks.blocking_send(chunk).is_err();
        if ends || reader_left {
            return;
        }
    }
}

/// Signed 16-bit little-endian; `odd` is the half sample that the last chunk ended with.
fn samples(odd: &mut Option<u8>, bytes: &[u8]) -> Vec<f32> {
    let all: Vec<u8> = odd.take().into_iter().chain(bytes.iter().copied()).collect();
    let (pairs, rest) = all.as_chunks::<2>();
    *odd = rest.first().copied();
    pairs.iter().map(|pair| f32::from(i16::from_le_bytes(*pair)) / 32768.0).collect()
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
    fn where_the_chunks_are_cut_does_not_matter() {
        let bytes: Vec<u8> = (0..=255).collect();
        let whole = samples(&mut None, &bytes);
        for size in [1, 2, 3, 7, 255] {
            let mut odd = None;
            let cut: Vec<f32> =
                bytes.chunks(size).flat_map(|chunk| samples(&mut odd, chunk)).collect();
            assert_eq!((cut, odd), (whole.clone(), None), "cut every {size} bytes");
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
