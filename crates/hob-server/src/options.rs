//! What the server is told: limits, names, keys; and whether its address is safe to listen on.
//! Everything is settled here: nothing below reads a file, a flag or the environment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::fit_desk::FitDesk;
use crate::keys::KeyOptions;
use crate::ledger::Ledger;
use crate::pages::Pages;

/// What the server is told. Each size, count and time has a limit.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The speech model for requests that name none, or one of OpenAI's; `None`: the registry's first.
    pub default_speech: Option<String>,
    /// The chat model for requests that name none; `None`: the registry's first.
    pub default_chat: Option<String>,
    /// The transcription model for requests that name none, or one of OpenAI's; `None`: the registry's
    /// first.
    pub default_transcript: Option<String>,
    /// Where each request of a model is written down; `None`: nowhere.
    pub ledger: Option<Arc<Ledger>>,
    /// What is answered below `/benchmarks`; `None`: nothing.
    pub benchmarks: Option<Arc<dyn Pages>>,
    /// Who answers `/api/fit`; `None`: nobody.
    pub fit: Option<Arc<dyn FitDesk>>,
    /// One of them is asked of every request but the lists, health, ready and the page; none:
    /// nobody is asked for one. [`crate::check_keys`] says whether they can be told apart.
    pub keys: Vec<KeyOptions>,
    /// Names other than loopback under which this server may be called; `*` lets every name in.
    pub allowed_hosts: Vec<String>,
    /// Characters of text in one speech request.
    pub text_chars_max: usize,
    /// Bytes of a request's body.
    pub body_bytes_max: usize,
    /// Bytes of a file that is to be transcribed.
    pub file_bytes_max: usize,
    /// Bytes of all bodies together, files included; each is in memory from its first byte to the end of its
    /// answer.
    pub bodies_bytes_max: usize,
    /// Called after a large body was parsed, to return freed memory to the system.
    pub give_back: fn(),
    pub connections_max: usize,
    /// For a client to send a request's headers.
    pub header_time_max: Duration,
    /// For a client to send a request's body.
    pub read_time_max: Duration,
    /// For a model to make its next piece of sound, the first one included.
    pub sound_time_max: Duration,
    /// For a chat model to make its next token, loading and the whole prompt included: a processor may read a
    /// long one for many minutes. A worker that hangs is noticed by its supervisor, much sooner.
    pub token_time_max: Duration,
    /// A chat stream that is silent for this long says so, to keep proxies awake.
    pub keep_alive_every: Duration,
    /// A chat stream that has nothing to say for this long begins all the same, without its status being
    /// known.
    pub early_headers_after: Duration,
    /// For a client to take any byte of its answer; a paused player is such a client.
    pub stall_time_max: Duration,
    /// For running answers to finish after the stop was asked for.
    pub drain_time_max: Duration,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            default_speech: None,
            default_chat: None,
            default_transcript: None,
            ledger: None,
            benchmarks: None,
            fit: None,
            keys: Vec::new(),
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

/// Refused: this address would let a whole network in without a key.
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
/// [`Exposed`] when others can reach it, there is no key, and nobody allowed that.
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
