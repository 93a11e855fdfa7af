//! A server with the real model that `make test` fetches, and the actions of its clients.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::{Value, json};
use ureq::http::{HeaderMap, Response};

use crate::{User, kill, until_ok};

/// One thread for each engine. As many tests run at the same time as there are cores, and engines that share cores take longer
/// than one after the other. For the same reason the transcription model waits until a test needs it. A `hob.toml` in the
/// working folder replaces this file.
const ONE_THREAD_EACH: &str = "[speech]\nthreads = 1\n[chat]\nthreads = 1\n\
    [transcription]\nthreads = 1\nload = \"first_request\"\n";

/// The same, and the transcription model is loaded at the start, as the others are.
pub(crate) const ALL_AT_START: &str =
    "[speech]\nthreads = 1\n[chat]\nthreads = 1\n[transcription]\nthreads = 1\nload = \"start\"\n";

impl User {
    /// A user of the test home, where the models are stored already, with one thread for each engine.
    pub(crate) fn with_models() -> User {
        User::with_settings().with("HOB_HOME", test_home())
    }

    fn with_settings() -> User {
        let user = User::new();
        let settings = user.path("home/.config/hob");
        std::fs::create_dir_all(&settings).expect("a folder");
        std::fs::write(settings.join("hob.toml"), ONE_THREAD_EACH).expect("a file");
        user
    }

    /// A user of a new home with these models of the test home. A server of fewer models starts sooner.
    pub(crate) fn with_only(models: &[&str]) -> User {
        let user = User::with_settings();
        let stored = user.path("hob/models");
        std::fs::create_dir_all(&stored).expect("a folder");
        for model in models {
            symlink(test_home().join("models").join(model), stored.join(model)).expect("a link");
        }
        user.with_home("hob")
    }
}

/// The home with the models that `make test` fetches.
pub(crate) fn test_home() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "tests have no settings to read it for them")]
    let home = std::env::var_os("HOB_TEST_HOME");
    home.expect("HOB_TEST_HOME is not set: `make test` sets it").into()
}

/// A client that reads errors as answers.
pub(crate) fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().new_agent()
}

/// A text that is not JSON is a body, too.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn of(mut response: Response<ureq::Body>) -> Answer {
        let text = response.body_mut().read_to_string().expect("a body");
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status: response.status().as_u16(), headers: response.headers().clone(), body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A server, started as in a terminal.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) url: String,
    notes: std::io::Lines<BufReader<ChildStderr>>,
}

/// Stops the server, also if the test fails.
impl Drop for Served {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

impl Served {
    /// A server without models, with this configuration.
    pub(crate) fn with(config: &str) -> (User, Served) {
        let user = User::new().configured(config);
        let served = Served::start(&user);
        (user, served)
    }

    pub(crate) fn start(user: &User) -> Served {
        Served::run(user.process("serve --listen 127.0.0.1:0"))
    }

    pub(crate) fn run(mut hob: Command) -> Served {
        let mut child = hob.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hob");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let url =
            line.split_whitespace().find(|word| word.starts_with("http")).expect("an address");
        let notes = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        Served { child, url: url.to_owned(), notes }
    }

    /// The same server, when this model is loaded.
    pub(crate) fn until_ready(mut self, model: &str) -> Served {
        self.wait_for_note(&format!("{model} is ready"));
        self
    }

    /// Waits for the next line of stderr that contains `part`, and returns it.
    pub(crate) fn wait_for_note(&mut self, part: &str) -> String {
        let note = self.notes.by_ref().map_while(Result::ok).find(|note| note.contains(part));
        assert!(note.is_some(), "hob never said {part:?}");
        note.unwrap_or_default()
    }

    /// The next line of stderr; `None` when the server has ended.
    pub(crate) fn next_note(&mut self) -> Option<String> {
        self.notes.next()?.ok()
    }

    pub(crate) fn signal(&self, name: &str) {
        kill(name, self.child.id());
    }

    /// Ends the server by a signal, without an error.
    #[track_caller]
    pub(crate) fn end(mut self, signal: &str) {
        self.signal(signal);
        assert_eq!(self.child.wait().expect("an end").code(), Some(0));
    }

    /// The worker process of an engine, if it is running.
    pub(crate) fn worker(&self, engine: &str) -> Option<String> {
        let id = self.child.id().to_string();
        let list = Command::new("ps").args(["-o", "pid=,args=", "--ppid", &id]).output();
        let list = String::from_utf8_lossy(&list.expect("ps").stdout).into_owned();
        let line = list.lines().find(|line| line.contains(&format!(" worker {engine} ")))?;
        line.split_whitespace().next().map(str::to_owned)
    }

    pub(crate) fn kill_worker(&self, engine: &str) {
        kill("-9", self.worker(engine).expect("it runs"));
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        Answer::of(agent().get(format!("{}{path}", self.url)).call().expect("an answer"))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_as(None, path, body)
    }

    /// The same with this key.
    pub(crate) fn post_as(&self, key: Option<&str>, path: &str, body: &Value) -> Answer {
        let mut request = agent().post(format!("{}{path}", self.url));
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        Answer::of(request.send_json(body).expect("an answer"))
    }

    /// The models that are in memory.
    pub(crate) fn warm(&self) -> Vec<String> {
        let list = self.get("api/hob/ps").body;
        let models = list["models"].as_array().expect("a list");
        let warm = models.iter().filter(|model| model["state"] == "warm");
        warm.map(|model| model["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Waits until these models are in memory, also while one is loaded again. A request would wait for 30 s at most, and a
    /// machine that runs other tests may need longer.
    pub(crate) fn until_warm(&self, models: &[&str]) {
        until_ok(300, || {
            let warm = self.warm();
            match models.iter().all(|model| warm.iter().any(|name| name == model)) {
                true => Ok(()),
                false => Err(format!("{warm:?} in memory, not all of {models:?}")),
            }
        });
    }

    /// A whole answer of the chat model.
    pub(crate) fn chat(&self, body: &Value) -> io::Result<Value> {
        let answer = ureq::post(format!("{}v1/chat/completions", self.url)).send_json(body);
        let mut answer = answer.map_err(ureq::Error::into_io)?;
        answer.body_mut().read_json().map_err(ureq::Error::into_io)
    }

    /// Requests a text's samples, and returns the response after its headers.
    pub(crate) fn ask(&self, text: &str, voice: &str) -> io::Result<ureq::Body> {
        self.speak(&json!({
            "model": "kokoro", "input": text, "voice": voice, "response_format": "pcm",
        }))
    }

    fn speak(&self, body: &Value) -> io::Result<ureq::Body> {
        let answer = ureq::post(format!("{}v1/audio/speech", self.url)).send_json(body);
        answer.map(|answer| answer.into_body()).map_err(ureq::Error::into_io)
    }

    /// All samples of a text, streamed.
    pub(crate) fn samples(&self, text: &str, voice: &str) -> Vec<i16> {
        whole_samples(self.ask(text, voice))
    }

    /// All samples of a text that is not streamed. They do not depend on the load, and take less time.
    pub(crate) fn clip(&self, text: &str, voice: &str) -> Vec<i16> {
        whole_samples(self.speak(&json!({
            "model": "kokoro", "input": text, "voice": voice, "response_format": "pcm",
            "stream": false,
        })))
    }

    /// Sends a request, and reads no answer. The caller disconnects by dropping the socket.
    pub(crate) fn begin(&self, path: &str, body: &Value) -> TcpStream {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        let body = body.to_string();
        let mut socket = TcpStream::connect(address).expect("connects");
        let length = body.len();
        write!(
            socket,
            "POST /{path} HTTP/1.1\r\nhost: {address}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("sent");
        socket
    }

    /// The value of a metric, with any labels.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let mut page = ureq::get(format!("{}metrics", self.url)).call().expect("metrics");
        let page = page.body_mut().read_to_string().expect("text");
        let line = page.lines().find(|line| line.starts_with(name))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Resident memory of the speech worker, in MB.
    pub(crate) fn worker_mb(&self) -> f64 {
        let Some(worker) = self.worker("speech") else { return 0.0 };
        let status = std::fs::read_to_string(format!("/proc/{worker}/status")).expect("its status");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a size");
        let kilobytes = line.split_whitespace().nth(1).and_then(|size| size.parse::<f64>().ok());
        kilobytes.expect("a number") / 1024.0
    }
}

fn whole_samples(answer: io::Result<ureq::Body>) -> Vec<i16> {
    let mut bytes = Vec::new();
    let mut body = answer.expect("an answer").into_reader();
    body.read_to_end(&mut bytes).expect("a whole answer");
    bytes.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
}
