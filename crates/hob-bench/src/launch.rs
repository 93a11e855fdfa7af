//! Starts servers for a measurement by a command line, waits until they are ready, and ends them reliably.
//! Before each start the old process has ended and its port is closed.

mod awaited;
#[cfg(test)]
mod free_port;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hob_core::locked;
use rustix::process::{Pid, Signal, kill_process_group};

pub use awaited::AwaitedModel;

use crate::ask::{WholeResponse, ask};
use crate::drive::Endpoint;
use crate::process::{ProcessUsage, peak_bytes_of};

/// Between two checks of a server that starts or ends.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time from SIGTERM to SIGKILL.
const END_WITHIN: Duration = Duration::from_secs(10);
const ASK_WITHIN: Duration = Duration::from_secs(2);
/// Number of the server's last output lines that are kept.
const LINES_MAX: usize = 40;
const LINE_BYTES_MAX: u64 = 4096;

/// Statuses of a ready server; some require a key.
const READY: [u16; 3] = [200, 401, 403];
/// Exists on every system that hob runs on, also without a PATH.
const SHELL: &str = "/bin/sh";
/// Ends the server when this program ends in any way, because the guard's input then ends.
const GUARD: &str = r#"trap : TERM
exec 3<&0 </dev/null
/bin/sh -c "$1" 3<&- & server=$!
(trap '' TERM; read -r nothing <&3; kill -TERM 0; sleep 5; kill -KILL 0) & guard=$!
exec 3<&-
wait "$server"; code=$?
while kill -0 "$server" 2>/dev/null; do wait "$server"; code=$?; done
kill -KILL "$guard"
exit "$code""#;

/// A start command, and how to know that the server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// A command line for the shell with `{name}` as placeholders.
    pub command: String,
    /// The address on which the server will listen.
    pub endpoint: Endpoint,
    /// A path that answers 200 when the server is ready.
    pub ready: String,
    /// The model that a hob loads at its start, after other models. None: the server itself says when it is ready.
    pub awaited: Option<AwaitedModel>,
    pub ready_time_max: Duration,
}

/// Why a server did not start or end.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("{address} is in use: another server listens there")]
    Taken { address: String },
    #[error("the start command has the unknown placeholder {{{name}}} (expected one of {known})")]
    Unfilled { name: String, known: String },
    #[error("cannot start the server: {0}")]
    Start(io::Error),
    #[error("the server ended ({how}) before it was ready{said}")]
    Ended { how: String, said: String, is_out_of_memory: bool },
    #[error("the server was not ready after {} s{said}", waited.as_secs())]
    NotReady { waited: Duration, said: String },
    #[error("the server does not end, or another program took its port {address}")]
    Lingers { address: String },
    #[error("the measurement was stopped")]
    Stopped,
}

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// The guard's input. While it is open, this program runs.
    held: Option<ChildStdin>,
    endpoint: Endpoint,
    /// Time from the start until the server was ready.
    pub load: Duration,
    said: Arc<Mutex<VecDeque<String>>>,
    listeners: Vec<JoinHandle<()>>,
}

impl Launch {
    /// The command with all placeholders filled in.
    ///
    /// # Errors
    /// A placeholder has no value.
    pub fn filled(&self, places: &BTreeMap<String, String>) -> Result<String, LaunchError> {
        let mut filled = self.command.clone();
        for (name, value) in places {
            filled = filled.replace(&format!("{{{name}}}"), value);
        }
        match unfilled(&filled) {
            None => Ok(filled),
            Some(name) => {
                let known: Vec<&str> = places.keys().map(String::as_str).collect();
                Err(LaunchError::Unfilled { name: name.to_owned(), known: known.join(", ") })
            }
        }
    }

    /// Starts the server, and waits until it is ready.
    ///
    /// # Errors
    /// The address is in use, the server ends, or it is not ready in time.
    pub fn start(
        &self,
        places: &BTreeMap<String, String>,
        stop: &AtomicBool,
    ) -> Result<Running, LaunchError> {
        let command = self.filled(places)?;
        if self.endpoint.is_open() {
            return Err(LaunchError::Taken { address: self.endpoint.authority() });
        }
        let (begun, mut cold_since) = (Instant::now(), None);
        let mut running = Running::begin(&command, &self.endpoint).map_err(LaunchError::Start)?;
        loop {
            if let Some(status) = running.child.try_wait().map_err(LaunchError::Start)? {
                return Err(running.end_error(status));
            }
            let asked = ask(&self.endpoint, &self.ready, None, None, ASK_WITHIN);
            let answers = asked.is_ok_and(|asked| READY.contains(&asked.status));
            let is_ready = answers && !loads(&self.endpoint);
            if !is_ready {
                cold_since = None;
            }
            let awaited = self.awaited.as_ref().filter(|_| is_ready);
            let is_behind =
                awaited.is_some_and(|model| model.is_loading(&self.endpoint, &mut cold_since));
            if is_ready && !is_behind {
                // The wait for a model that stays cold is not a load.
                running.load = cold_since.unwrap_or_else(Instant::now).duration_since(begun);
                return Ok(running);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(LaunchError::Stopped);
            }
            if begun.elapsed() > self.ready_time_max {
                return Err(LaunchError::NotReady {
                    waited: begun.elapsed(),
                    said: running.last_output(),
                });
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Whether an answering server is still loading its model. llama-server and vLLM report it at `/health`, hob at `/ready`. Lists of
/// models are available earlier.
fn loads(endpoint: &Endpoint) -> bool {
    let busy =
        |path| ask(endpoint, path, None, None, ASK_WITHIN).ok().filter(|asked| asked.status == 503);
    let says_loading = |asked: WholeResponse| {
        let said: serde_json::Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        said["status"] == "loading"
    };
    busy("/health").is_some() || busy("/ready").is_some_and(says_loading)
}

impl Running {
    fn begin(command: &str, endpoint: &Endpoint) -> io::Result<Running> {
        let mut child = Command::new(SHELL)
            .args(["-c", GUARD, "sh", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let pipes: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ];
        let listen = |pipe| {
            let said = Arc::clone(&said);
            thread::spawn(move || remember(pipe, &said))
        };
        let listeners = pipes.into_iter().flatten().map(listen).collect();
        let (held, endpoint) = (child.stdin.take(), endpoint.clone());
        Ok(Running { child, held, endpoint, load: Duration::ZERO, said, listeners })
    }

    /// How the server ended; None while it runs.
    pub fn has_ended(&mut self) -> Option<LaunchError> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(self.end_error(status))
    }

    /// Memory of the server and its children now, if known.
    pub fn resident_bytes(&self) -> Option<u64> {
        ProcessUsage::read(self.child.id()).ok().map(|usage| usage.rss_bytes)
    }

    /// Peak memory of the server and its children, if known.
    pub fn peak_bytes(&self) -> Option<u64> {
        ProcessUsage::read(self.child.id()).ok().map(|usage| usage.peak_bytes)
    }

    /// Peak memory of hob's speech worker alone.
    pub fn speech_peak_bytes(&self) -> Option<u64> {
        peak_bytes_of(self.child.id(), ["worker", "speech"])
    }

    /// Ends the server, and waits until its port is closed.
    ///
    /// # Errors
    /// The port stays open.
    pub fn end(mut self) -> Result<(), LaunchError> {
        self.terminate();
        let begun = Instant::now();
        while self.endpoint.is_open() {
            if begun.elapsed() > END_WITHIN {
                return Err(LaunchError::Lingers { address: self.endpoint.authority() });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn terminate(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let Some(group) = group.filter(|_| self.held.is_some()) else { return };
        // A process that has already ended gets no signal.
        let _terminated = kill_process_group(group, Signal::TERM);
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < END_WITHIN {
            thread::sleep(LOOK_EVERY);
        }
        let _killed = kill_process_group(group, Signal::KILL);
        let _reaped = self.child.wait();
        self.held = None;
        self.listeners.drain(..).for_each(|listener| drop(listener.join()));
    }

    fn end_error(&mut self, status: ExitStatus) -> LaunchError {
        // The last output lines may still be in the pipe.
        self.terminate();
        let said = self.last_output();
        let is_killed = status.signal() == Some(9) || status.code() == Some(128 + 9);
        let is_out_of_memory = is_killed || speaks_of_memory(&said);
        let how = match (status.code(), status.signal()) {
            (Some(code), _) if code > 128 => format!("by signal {}", code - 128),
            (Some(code), _) => format!("with code {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => "for an unknown reason".to_owned(),
        };
        LaunchError::Ended { how, said, is_out_of_memory }
    }

    /// The last output lines, formatted for the end of an error message.
    pub fn last_output(&self) -> String {
        let said = locked(&self.said);
        let lines: Vec<&str> = said.iter().map(String::as_str).collect();
        if lines.is_empty() { String::new() } else { format!("; it said:\n{}", lines.join("\n")) }
    }

    /// Whether its output reports too little memory.
    pub fn speaks_of_memory(&self) -> bool {
        speaks_of_memory(&self.last_output())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.terminate();
    }
}

fn unfilled(command: &str) -> Option<&str> {
    let (_, rest) = command.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name { Some(name) } else { unfilled(after) }
}

/// Whether a message reports too little memory, in the words of the known engines.
pub(crate) fn speaks_of_memory(said: &str) -> bool {
    const WORDS: [&str; 14] = [
        "out of memory",
        "outofmemory",
        "failed to allocate",
        "cannot allocate memory",
        "not enough memory",
        "bad_alloc",
        "erroroutofdevicememory",
        "alloc_buffer failed",
        // Ollama, vLLM (cache and blocks), hob (machine and own limit).
        "requires more system memory",
        "insufficient memory",
        "available kv cache memory",
        "no available memory for the cache",
        "loading the model needs about",
        "there is no room for the model",
    ];
    let said = said.to_lowercase();
    WORDS.iter().any(|words| said.contains(words))
}

/// Keeps the last lines of the output.
fn remember(pipe: impl Read, said: &Mutex<VecDeque<String>>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    // A broken pipe has no more output.
    while (&mut pipe).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().replace(char::is_control, " ");
        let mut said = locked(said);
        if said.len() == LINES_MAX {
            said.pop_front();
        }
        said.push_back(text);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::Arc;

    use super::free_port::free_port;
    use super::*;
    use crate::canned_server::CannedServer;

    fn launch(command: &str, port: u16) -> Launch {
        Launch {
            command: command.to_owned(),
            endpoint: Endpoint::parse(&format!("http://127.0.0.1:{port}")).expect("an address"),
            ready: "/v1/models".to_owned(),
            awaited: None,
            ready_time_max: Duration::from_secs(30),
        }
    }

    fn start(launch: &Launch) -> Result<Running, LaunchError> {
        launch.start(&BTreeMap::new(), &AtomicBool::new(false))
    }

    #[test]
    fn placeholders_are_filled_and_an_unknown_one_is_named() {
        let places = [("ctx".to_owned(), "4096".to_owned())].into();
        let filled = |command| launch(command, 1).filled(&places);
        assert_eq!(
            filled("run -c {ctx} '{\"a\": {}}'").expect("filled"),
            "run -c 4096 '{\"a\": {}}'"
        );
        let forgotten = filled("run {ctx} {quant}").expect_err("one is missing").to_string();
        assert_eq!(
            forgotten,
            "the start command has the unknown placeholder {quant} (expected one of ctx)"
        );
    }

    #[test]
    fn output_before_an_early_end_is_reported() {
        let rows = [
            ("echo no such model >&2; exit 3", "with code 3", false),
            ("echo ggml: failed to allocate buffer; exit 1", "with code 1", true),
            ("kill -KILL $$", "by signal 9", true),
        ];
        for (command, expected, is_memory) in rows {
            match start(&launch(command, free_port())) {
                Err(LaunchError::Ended { how, is_out_of_memory, .. }) => {
                    assert_eq!((how.as_str(), is_out_of_memory), (expected, is_memory));
                }
                other => panic!("{command}: {other:?}"),
            }
        }
        let said =
            start(&launch("echo no such model >&2; exit 3", free_port())).expect_err("ended");
        assert!(said.to_string().ends_with("it said:\nno such model"), "{said}");
    }

    #[test]
    fn a_server_that_is_never_ready_is_ended_with_all_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        let command = format!("sleep 1000 & echo $! > '{}'; wait", file.display());
        let mut ready_time_max = Duration::from_millis(300);
        // Longer and longer, until its child had time to start.
        let pid = loop {
            let got = start(&Launch { ready_time_max, ..launch(&command, free_port()) });
            assert!(matches!(got, Err(LaunchError::NotReady { .. })), "{got:?}");
            match std::fs::read_to_string(&file) {
                Ok(pid) if pid.ends_with('\n') => break pid,
                _ if ready_time_max > Duration::from_secs(30) => panic!("its child never started"),
                _ => ready_time_max *= 3,
            }
        };
        let place = format!("/proc/{}/cmdline", pid.trim());
        // An ended process that was not waited for has no command line.
        let line = std::fs::read_to_string(place).unwrap_or_default();
        assert!(!line.contains("sleep"), "{line}");
    }

    /// Starts a command, and serves its port from this test. Returns the paths that were requested until it was ready;
    /// `answer` gets those so far, and says the status of the last one.
    fn asked_until_ready(answer: fn(&[String]) -> u16) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let (begun, port) = (folder.path().join("begun"), free_port());
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let command = format!("touch '{}'; exec sleep 1000", begun.display());
        let answering = thread::spawn(move || {
            while !begun.exists() {
                thread::yield_now();
            }
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a port");
            let mut asked = Vec::new();
            // A client whose first request timed out sends another.
            for socket in listener.incoming() {
                let mut socket = socket.expect("a question");
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let mut request = [0; 1024];
                let bytes = io::Read::read(&mut socket, &mut request).unwrap_or_default();
                let text = String::from_utf8_lossy(&request[..bytes]).into_owned();
                asked.push(text.split(' ').nth(1).unwrap_or_default().to_owned());
                let head = format!("HTTP/1.1 {} x\r\ncontent-length: 0\r\n\r\n", answer(&asked));
                let _gone = io::Write::write_all(&mut socket, head.as_bytes());
            }
            asked
        });
        let running = start(&launch(&command, port)).expect("ready");
        over.store(true, Ordering::Relaxed);
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the last");
        let asked = answering.join().expect("it answered");
        running.end().expect("its port is closed");
        asked
    }

    #[test]
    fn a_server_that_requires_a_key_is_ready() {
        let asked = asked_until_ready(|_| 401);
        assert_eq!(asked.first().map(String::as_str), Some("/v1/models"), "{asked:?}");
    }

    #[test]
    fn the_load_ends_with_the_load_and_not_with_the_list_of_models() {
        let asked = asked_until_ready(|asked| {
            let times = asked.iter().filter(|path| *path == "/health").count();
            let is_loading = asked.last().is_some_and(|path| path == "/health") && times < 3;
            if is_loading { 503 } else { 200 }
        });
        let times = asked.iter().filter(|path| *path == "/health").count();
        assert!(times >= 3, "it was loading at the first two: {asked:?}");
    }

    #[test]
    fn a_list_of_models_does_not_mean_that_the_model_is_loaded() {
        for (path, body) in [("/health", ""), ("/ready", r#"{"status":"loading"}"#)] {
            let mut asked = 0;
            // It is loading during the first two requests to that path.
            let server = CannedServer::start(move |at| {
                asked += usize::from(at == path);
                match at == path && asked < 3 {
                    true => (503, body.to_owned()),
                    false => (200, "{}".to_owned()),
                }
            });
            let endpoint = Endpoint::parse(&server.url()).expect("an address");
            assert_eq!([loads(&endpoint), loads(&endpoint)], [true; 2], "{path}");
            assert!(!loads(&endpoint), "{path}");
            server.end();
        }
    }

    #[test]
    fn a_port_in_use_is_not_measured() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = other.local_addr().expect("an address").port();
        assert!(matches!(start(&launch("sleep 9", port)), Err(LaunchError::Taken { .. })));
    }
}
