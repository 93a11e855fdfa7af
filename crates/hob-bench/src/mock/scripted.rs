//! A server that does what a script says and remembers when it did: the truth that a client is held to.
//! A blocking thread for each connection, because a runtime's timer has steps of a millisecond.

mod answering;
mod cues;
mod limits;
mod place;
mod render;
mod request;
mod script;
mod sound;
mod truth;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use serde_json::json;
use tokio::sync::Notify;

use answering::{After, Answering};
pub use limits::Limits;
use place::Places;
use request::Request;
pub use script::{AudioComes, Script, ScriptError, UsageSays, all_names};
use truth::Truths;
pub use truth::{Truth, Written};

use crate::socket::Socket;

/// Connections at once; more would be threads that nobody measures with.
const CONNECTIONS_MAX: usize = 2048;
/// How soon a connection notices that the server is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 64 << 10;
const MODEL: &str = "mock";
/// Any other is as good.
const VOICE: &str = "tone";

/// A scripted server; dropping it ends it.
#[derive(Debug)]
pub struct Scripted {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    script: Script,
    truths: Truths,
    places: Places,
    connections: AtomicUsize,
    is_over: AtomicBool,
    out_of_memory: Notify,
}

impl Scripted {
    /// Listens here from now on.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn start(address: SocketAddr, script: Script) -> io::Result<Scripted> {
        let listener = TcpListener::bind(address)?;
        // All of a measurement come at once, and whoever finds no place comes again a second later.
        rustix::net::listen(&listener, CONNECTIONS_MAX as i32)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { script, ..Shared::default() });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("mock".to_owned())
                .spawn(move || accept(&listener, &shared))?
        };
        Ok(Scripted { address, shared, accepting: Some(accepting) })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it did, oldest first; the latest requests only.
    pub fn truths(&self) -> Vec<Truth> {
        self.shared.truths()
    }

    /// Until a request is too much for its memory, of which a real one would die.
    pub async fn out_of_memory(&self) {
        self.shared.out_of_memory.notified().await;
    }

    /// As if nothing had been asked.
    pub fn reset(&self) {
        self.shared.reset();
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Whoever accepts has to be woken to see it.
        let _woken = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ended = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for socket in listener.incoming() {
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(socket) = socket else { continue };
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let mine = Arc::clone(shared);
        let begun = thread::Builder::new().name("mock".to_owned()).spawn(move || {
            // A client that leaves is its own affair.
            let _ended = mine.converse(socket);
            mine.connections.fetch_sub(1, Ordering::Relaxed);
        });
        if begun.is_err() {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A sleep may last 50 µs longer than asked for, unless a thread says that it minds.
#[cfg(target_os = "linux")]
fn wake_promptly() {
    // Refused at worst, and then writes are later by those 50 µs, which the truth says.
    let _granted = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(not(target_os = "linux"))]
fn wake_promptly() {}

impl Shared {
    fn reset(&self) {
        self.truths.reset();
        self.places.forget();
    }

    fn truths(&self) -> Vec<Truth> {
        self.places.settle();
        self.truths.all()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn converse(&self, socket: TcpStream) -> io::Result<()> {
        wake_promptly();
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(LOOK_EVERY))?;
        let mut socket = Socket::new(socket);
        let (mut unread, mut buffer) = (BytesMut::new(), vec![0; READ_BYTES]);
        let mut received = Instant::now();
        while !self.is_over() {
            let taken = request::take(&mut unread);
            if let Some(request) = taken.map_err(|error| io::Error::other(error.to_string()))? {
                if self.answer(&request, &mut socket, received)? != After::Keep {
                    return Ok(());
                }
                continue;
            }
            match socket.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    let now = Instant::now();
                    received = now.checked_sub(socket.lay()).unwrap_or(now);
                    unread.extend_from_slice(&buffer[..bytes]);
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn answer(
        &self,
        request: &Request,
        socket: &mut Socket,
        received: Instant,
    ) -> io::Result<After> {
        let truth =
            Truth { id: request.id.clone(), path: request.path.clone(), ..Truth::default() };
        let script = self.script.of_model(request.text("model"));
        let script = match script.and_then(|script| script.with(&request.script)) {
            Ok(script) => script,
            Err(error) => {
                let said = error.to_string();
                let mut answering =
                    Answering { script: &self.script, socket, received, begun: received, truth };
                return answering.refuse(400, &said);
            }
        };
        let protocol = request.protocol();
        if protocol.is_none() && request.path != "/v1/audio/speech" {
            return self.listed(&request.path, socket);
        }
        if script.hang {
            return self.hang(socket);
        }
        let place = self.places.take(script.slots);
        let begun = if script.slots > 0 { Instant::now() } else { received };
        let mut answering = Answering { script: &script, socket, received, begun, truth };
        answering.truth.waited_us = (begun - received).as_secs_f64() * 1e6;
        let after = match (protocol, script.status) {
            (_, status) if status != 200 => answering.refuse(status, "as the script says"),
            _ if script.crash => answering.crash(),
            _ if script.garbage => answering.garbage(),
            (Some(protocol), _) => answering.chat(request, protocol, &place),
            (None, _) => answering.speech(request, &place),
        };
        self.truths.add(answering.truth);
        if after.as_ref().is_ok_and(|after| *after == After::Die) {
            self.out_of_memory.notify_one();
        }
        after
    }

    /// Says nothing until the client or the server is over.
    fn hang(&self, socket: &mut Socket) -> io::Result<After> {
        let mut byte = [0; 1];
        while !self.is_over() {
            match socket.read(&mut byte) {
                Err(error) if is_pause(&error) => {}
                _ => break,
            }
        }
        Ok(After::Close)
    }

    fn listed(&self, path: &str, socket: &mut Socket) -> io::Result<After> {
        let (status, body) = match path {
            "/v1/models" => {
                let mut model = json!({ "id": MODEL, "object": "model", "owned_by": "mock" });
                if self.script.limits.tells_context {
                    model["context_length"] = json!(self.script.context_tokens);
                }
                ("200 OK", json!({ "object": "list", "data": [model] }))
            }
            "/v1/audio/voices" => {
                ("200 OK", json!({ "object": "list", "voices": [{ "id": VOICE, "name": VOICE }] }))
            }
            "/api/tags" => {
                ("200 OK", json!({ "models": [{ "name": MODEL, "model": MODEL, "size": 1 }] }))
            }
            "/api/version" => ("200 OK", json!({ "version": env!("CARGO_PKG_VERSION") })),
            "/props" if self.script.limits.tells_context => {
                let context = json!({ "n_ctx": self.script.context_tokens });
                ("200 OK", json!({ "default_generation_settings": context, "total_slots": 1 }))
            }
            "/health" => ("200 OK", json!({ "status": "ok" })),
            "/truth" => ("200 OK", json!({ "requests": self.truths() })),
            "/reset" => {
                self.reset();
                ("200 OK", json!({ "status": "ok" }))
            }
            _ => ("404 Not Found", json!({ "error": { "message": "nothing is here" } })),
        };
        socket.write_all(&answering::whole(status, &body.to_string()))?;
        Ok(After::Keep)
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
