//! The server's options: limits, names, keys; and whether its address is safe to listen on.
//! Nothing below this file reads a file, a flag or the environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hob_core::TurnTaking;

use crate::benchmark_files::BenchmarkFiles;
use crate::fit_service::FitService;
use crate::kept_voices::KeptVoices;
use crate::keys::KeyOptions;
use crate::ledger::Ledger;
use crate::pipeline_service::PipelineService;
use crate::team_service::TeamService;
use crate::tls::Certificates;

/// The server's options. Each size, count and time has a limit.
#[derive(Clone)]
pub struct ServerOptions {
    /// The speech model for requests that name none, or one of OpenAI's; `None`: the registry's first.
    pub default_speech: Option<String>,
    /// The voice for speech requests that name none: a blend, or the name of a kept one. `None`, or voices that the
    /// model does not have: the model's first.
    pub default_voice: Option<String>,
    /// The chat model for requests that name none; `None`: the registry's, if it has exactly one.
    pub default_chat: Option<String>,
    /// The transcription model for requests that name none, or one of OpenAI's; `None`: the registry's first.
    pub default_transcript: Option<String>,
    /// The request log; `None`: requests are not logged.
    pub ledger: Option<Arc<Ledger>>,
    /// The pages below `/benchmarks`; `None`: no pages.
    pub benchmarks: Option<Arc<dyn BenchmarkFiles>>,
    /// The source of answers on `/api/fit`; `None`: no such route.
    pub fit: Option<Arc<dyn FitService>>,
    /// The source of `/v1/teams` and `/v1/runs`; `None`: no such routes.
    pub teams: Option<Arc<dyn TeamService>>,
    /// The team files behind Open WebUI's Pipelines routes; `None`: no such routes.
    pub pipelines: Option<Arc<dyn PipelineService>>,
    /// Certificates for encrypted connections; `None`: no connection is encrypted.
    pub certificates: Option<Arc<dyn Certificates>>,
    /// The models that find the end of a person's turn; `None`: only clients that end their turns themselves get
    /// realtime sessions.
    pub turn_taking: Option<Arc<dyn TurnTaking>>,
    /// Realtime sessions at the same time.
    pub sessions_max: usize,
    /// Whether a session hears its client while the client plays an answer. If not, no echo is taken for speech, and
    /// an answer cannot be interrupted by voice.
    pub listens_while_speaking: bool,
    /// The folder in which realtime sessions are recorded; `None`: no session is recorded.
    pub recordings: Option<PathBuf>,
    /// Blends of voices that clients keep.
    pub kept_voices: Arc<KeptVoices>,
    /// API keys. Every request needs one, except lists, health, ready and the page. Empty:
    /// no request needs a key. [`crate::check_keys`] checks that they differ.
    pub keys: Vec<KeyOptions>,
    /// Whether the default key of Pipelines, which is public, is accepted for lists and chats, where keys are needed.
    pub accepts_default_key: bool,
    /// Host names other than loopback that requests may use; `*` allows all.
    pub allowed_hosts: Vec<String>,
    /// Maximum characters of text in one speech request.
    pub text_chars_max: usize,
    /// Maximum bytes of a request body.
    pub body_bytes_max: usize,
    /// Maximum bytes of a file to transcribe.
    pub file_bytes_max: usize,
    /// Maximum bytes of all bodies together, files included. A body counts from its first byte to the end of its
    /// answer.
    pub bodies_bytes_max: usize,
    /// Called after a large body was parsed, to return freed memory to the system.
    pub give_back: fn(),
    pub connections_max: usize,
    /// Time limit for a client to send a request's headers.
    pub header_time_max: Duration,
    /// Time limit for a client to send a request's body.
    pub read_time_max: Duration,
    /// Time limit for a speech model's next piece of sound, including the first.
    pub sound_time_max: Duration,
    /// Time limit for a chat model's next token, including loading and the prompt: a CPU may need many minutes
    /// for a long prompt. Its supervisor notices a worker that hangs much sooner.
    pub token_time_max: Duration,
    /// Silence after which a chat stream sends a keep-alive, for proxies.
    pub keep_alive_every: Duration,
    /// Time after which a chat stream sends its status 200 without a first event. Later failures are then events.
    pub early_headers_after: Duration,
    /// Time limit for a client to read any byte of its answer. A paused player reads nothing.
    pub stall_time_max: Duration,
    /// Time limit for running answers after a stop was requested.
    pub drain_time_max: Duration,
}

hob_core::debug_fields!(ServerOptions: default_speech, default_chat, default_transcript);

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            default_speech: None,
            default_voice: None,
            default_chat: None,
            default_transcript: None,
            ledger: None,
            benchmarks: None,
            fit: None,
            teams: None,
            pipelines: None,
            certificates: None,
            turn_taking: None,
            sessions_max: 4,
            listens_while_speaking: true,
            recordings: None,
            kept_voices: Arc::default(),
            keys: Vec::new(),
            accepts_default_key: false,
            allowed_hosts: Vec::new(),
            text_chars_max: 100_000,
            body_bytes_max: 32 << 20,
            file_bytes_max: 100 << 20,
            bodies_bytes_max: 256 << 20,
            give_back: || {},
            connections_max: 512,
            header_time_max: Duration::from_secs(10),
            read_time_max: Duration::from_secs(30),
            sound_time_max: Duration::from_secs(60),
            token_time_max: Duration::from_secs(1800),
            keep_alive_every: Duration::from_secs(10),
            early_headers_after: Duration::from_secs(15),
            stall_time_max: Duration::from_secs(300),
            drain_time_max: Duration::from_secs(5),
        }
    }
}

/// Rejected: this address would allow access from the network without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{listen} can be reached from other machines and no API key is set; \
     set a key, listen on 127.0.0.1, or allow it explicitly"
)]
pub struct Exposed {
    pub listen: SocketAddr,
}

/// Whether it is safe to listen on this address.
///
/// # Errors
/// [`Exposed`]: other machines can reach the address, no key is set, and the user did not allow that.
pub fn check_exposure(listen: SocketAddr, has_key: bool, allowed: bool) -> Result<(), Exposed> {
    let safe = listen.ip().to_canonical().is_loopback() || has_key || allowed;
    if safe { Ok(()) } else { Err(Exposed { listen }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_keyless_open_address_is_refused() {
        let rows = [
            ("127.0.0.1:8484", false, false, true),
            ("127.8.9.1:80", false, false, true),
            ("[::1]:8484", false, false, true),
            ("[::ffff:127.0.0.1]:8484", false, false, true),
            ("0.0.0.0:8484", false, false, false),
            ("[::]:8484", false, false, false),
            ("192.168.1.7:8484", false, false, false),
            ("192.168.1.7:8484", true, false, true),
            ("0.0.0.0:8484", false, true, true),
        ];
        for (listen, has_key, allowed, safe) in rows {
            let listen: SocketAddr = listen.parse().expect("an address");
            let expected = if safe { Ok(()) } else { Err(Exposed { listen }) };
            assert_eq!(check_exposure(listen, has_key, allowed), expected, "{listen}");
        }
    }
}
