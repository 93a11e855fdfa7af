//! The mock server: it answers as a script says, records when it wrote what, and can fail in every known way.
//! It uses a blocking thread for each connection, because a runtime's timer has steps of a millisecond.

mod exchange;
mod faults;
mod protocol;
mod request;
mod schedule;
mod script;
mod slots;
mod sound;
mod truth;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hob_core::locked;
use serde_json::json;
use tokio::sync::Notify;

use exchange::{After, LastStream, MockExchange};
pub use faults::{MockFault, WORDS};
use request::MockRequest;
pub use script::{AudioDelivery, Script, ScriptError, UsageReport, all_names};
use slots::MockSlots;
use truth::Truths;
pub use truth::{MockWrite, Truth};

use crate::socket::{Socket, is_pause};

/// Connections at the same time, each with a thread. Further connections are closed.
const CONNECTIONS_MAX: usize = 2048;
/// How soon a connection notices that the server ends.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 64 << 10;
const MODEL: &str = "mock";
const VOICE: &str = "tone";
const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";

/// A running mock server. Dropping it ends it.
#[derive(Debug)]
pub struct MockServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    script: Script,
    truths: Truths,
    counts: Counts,
    slots: MockSlots,
    last_stream: LastStream,
    connections: AtomicUsize,
    is_over: AtomicBool,
    out_of_memory: Notify,
}

/// What clients of a faulty server did.
#[derive(Debug, Default)]
struct Counts {
    /// Chat requests by the name of their model.
    requests: Mutex<BTreeMap<String, usize>>,
    gone: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counts {
    fn add_request(&self, model: &str) {
        let mut requests = locked(&self.requests);
        *requests.entry(model.to_owned()).or_default() += 1;
    }

    fn add_gone(&self) {
        self.gone.fetch_add(1, Ordering::Relaxed);
    }

    fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl MockServer {
    /// Listens on this address.
    ///
    /// # Errors
    /// The address is in use or not of this machine.
    pub fn start(address: SocketAddr, script: Script) -> io::Result<MockServer> {
        let listener = TcpListener::bind(address)?;
        // All connections of a measurement arrive together. Without room in the queue a client retries a second later.
        rustix::net::listen(&listener, CONNECTIONS_MAX as i32)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { script, ..Shared::default() });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("mock".to_owned())
                .spawn(move || accept(&listener, &shared))?
        };
        Ok(MockServer { address, shared, accepting: Some(accepting) })
    }

    /// Listens on a free port of this machine.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start_local(script: Script) -> io::Result<MockServer> {
        MockServer::start((Ipv4Addr::LOCALHOST, 0).into(), script)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the server sent, oldest request first; the latest requests only.
    pub fn truths(&self) -> Vec<Truth> {
        self.shared.truths()
    }

    /// Number of chat requests for this model.
    pub fn requests(&self, model: &str) -> usize {
        let requests = locked(&self.shared.counts.requests);
        requests.get(model).copied().unwrap_or(0)
    }

    /// Number of faulty answers whose client left before the end.
    pub fn disconnects(&self) -> usize {
        self.shared.counts.gone.load(Ordering::Relaxed)
    }

    /// Bytes of faulty streams that were written.
    pub fn bytes(&self) -> usize {
        self.shared.counts.bytes.load(Ordering::Relaxed)
    }

    /// Waits for a request that needs more memory than the script's server has.
    pub async fn out_of_memory(&self) {
        self.shared.out_of_memory.notified().await;
    }

    /// Forgets all earlier requests.
    pub fn reset(&self) {
        self.shared.reset();
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // A connection wakes the thread that accepts.
        let _woken = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ended = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for socket in listener.incoming() {
        if shared.is_over() {
            return;
        }
        let Ok(socket) = socket else { continue };
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let mine = Arc::clone(shared);
        let started = thread::Builder::new().name("mock".to_owned()).spawn(move || {
            // A client may leave at any time; that is not an error.
            let _ended = mine.serve(socket);
            mine.connections.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Asks the kernel for exact sleeps. By default a sleep may last 50 µs too long.
#[cfg(target_os = "linux")]
fn wake_promptly() {
    // If the kernel refuses, writes are up to 50 µs late, and the truth shows it.
    let _granted = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(not(target_os = "linux"))]
fn wake_promptly() {}

impl Shared {
    fn reset(&self) {
        self.truths.reset();
        self.slots.forget();
    }

    fn truths(&self) -> Vec<Truth> {
        self.slots.settle();
        self.truths.all()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn serve(&self, socket: TcpStream) -> io::Result<()> {
        wake_promptly();
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(LOOK_EVERY))?;
        let mut socket = Socket::new(socket);
        let (mut unread, mut buffer) = (BytesMut::new(), vec![0; READ_BYTES]);
        let mut received = Instant::now();
        while !self.is_over() {
            if let Some(request) = request::take(&mut unread).map_err(io::Error::other)? {
                if self.answer(&request, &mut socket, received)? != After::Keep {
                    return Ok(());
                }
                continue;
            }
            match socket.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    let now = Instant::now();
                    received = now.checked_sub(socket.read_delay()).unwrap_or(now);
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
        request: &MockRequest,
        socket: &mut Socket,
        received: Instant,
    ) -> io::Result<After> {
        let truth =
            Truth { id: request.id.clone(), path: request.path.clone(), ..Truth::default() };
        let script = self.script.of_model(request.text("model"));
        let script = match script.and_then(|script| script.with(&request.script)) {
            Ok(script) => script,
            Err(error) => {
                let script = &self.script;
                let started = received;
                let mut exchange =
                    MockExchange { shared: self, script, socket, received, started, truth };
                return exchange.reject(400, &error.to_string());
            }
        };
        let protocol = request.protocol();
        let is_sound = matches!(request.path.as_str(), "/v1/audio/speech" | TRANSCRIPTIONS);
        if protocol.is_none() && !is_sound {
            return self.look_up(&request.path, socket);
        }
        self.counts.add_request(request.text("model"));
        let slot = (!script.hang).then(|| self.slots.take(script.slots));
        let started = if script.slots > 0 { Instant::now() } else { received };
        let mut exchange =
            MockExchange { shared: self, script: &script, socket, received, started, truth };
        // A request that hangs must not keep others from a slot.
        let Some(slot) = slot else { return exchange.hang() };
        exchange.truth.waited_us = (started - received).as_secs_f64() * 1e6;
        let after = match (protocol, script.fault) {
            _ if script.status != 200 => exchange.reject(script.status, "as the script says"),
            _ if script.crash => exchange.crash(),
            _ if script.garbage => exchange.garbage(),
            (Some(_), Some(fault)) => exchange.fault(fault, request),
            (Some(protocol), None) => exchange.chat(request, protocol, &slot),
            (None, _) if request.path == TRANSCRIPTIONS => exchange.transcript(request, &slot),
            (None, _) => exchange.speech(request, &slot),
        };
        self.truths.add(exchange.truth);
        if after.as_ref().is_ok_and(|after| *after == After::Die) {
            self.out_of_memory.notify_one();
        }
        after
    }

    fn look_up(&self, path: &str, socket: &mut Socket) -> io::Result<After> {
        let (status, body) = match path {
            "/v1/models" => {
                let mut model = json!({ "id": MODEL, "object": "model", "owned_by": "mock" });
                if self.script.tells_context {
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
            "/props" if self.script.tells_context => {
                let context = json!({ "n_ctx": self.script.context_tokens });
                ("200 OK", json!({ "default_generation_settings": context, "total_slots": 1 }))
            }
            "/health" => ("200 OK", json!({ "status": "ok" })),
            "/truth" => ("200 OK", json!({ "requests": self.truths() })),
            "/reset" => {
                self.reset();
                ("200 OK", json!({ "status": "ok" }))
            }
            _ => {
                ("404 Not Found", json!({ "error": { "message": format!("unknown path {path}") } }))
            }
        };
        socket.write_all(&exchange::whole_answer(status, &body.to_string()))?;
        Ok(After::Keep)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use serde_json::Value;

    use super::*;
    use crate::ask::ask;
    use crate::drive::Endpoint;

    #[test]
    fn a_client_that_leaves_a_silent_server_is_counted() {
        for model in ["mock~hang=true", "mock~fault=hang", "mock~fault=hang-body"] {
            let mock = MockServer::start_local(Script::default()).expect("a free port");
            let mut socket = TcpStream::connect(mock.address).expect("connected");
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
            let body = json!({ "model": model, "stream": true }).to_string();
            let head = format!(
                "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            socket.write_all(format!("{head}{body}").as_bytes()).expect("sent");
            socket.shutdown(Shutdown::Write).expect("left");
            // The server closes the connection after it has counted.
            socket.read_to_end(&mut Vec::new()).expect("closed");
            assert_eq!(mock.disconnects(), 1, "{model}");
        }
    }

    #[test]
    fn a_wrong_script_is_rejected_with_its_text_as_json() {
        let mock = MockServer::start_local(Script::default()).expect("a free port");
        let endpoint = Endpoint::parse(&mock.url()).expect("an address");
        let body = json!({ "model": "mock~\"" }).to_string();
        let limit = Duration::from_secs(10);
        let asked = ask(&endpoint, "/v1/chat/completions", None, Some(&body), limit);
        let asked = asked.expect("an answer");
        let said: Value = serde_json::from_slice(&asked.body).expect("JSON");
        let expected = "'\"' is not a script setting (expected NAME=VALUE)";
        assert_eq!((asked.status, &said["error"]["message"]), (400, &json!(expected)));
    }
}
