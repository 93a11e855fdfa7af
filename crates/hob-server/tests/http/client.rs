//! A client that shows what a library would hide: each chunk, and whether the body ended normally.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

/// Every step takes less than a second, and more on a machine that does much else. A test that waits this long has found
/// a hang.
const HANG: Duration = Duration::from_secs(60);
/// Between two looks at something that no event reports.
const LOOK_EVERY: Duration = Duration::from_millis(5);

pub(crate) struct Client(BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The status, and a field of the error.
    pub(crate) fn error(&self, field: &str) -> (u16, Value) {
        (self.status(), self.json()["error"][field].clone())
    }

    /// Checks that the text has these lines.
    #[track_caller]
    pub(crate) fn has_lines(&self, lines: &[&str]) {
        for line in lines {
            assert!(self.text().lines().any(|known| known == *line), "{line}\n{}", self.text());
        }
    }
}

pub(crate) async fn no_hang<T>(work: impl Future<Output = T>) -> T {
    timeout(HANG, work).await.expect("no hang")
}

/// Sends these events to the server.
pub(crate) async fn send_all<E>(sender: &Sender<E>, events: impl IntoIterator<Item = E>) {
    for event in events {
        no_hang(sender.send(event)).await.expect("a reader");
    }
}

/// Looks every 5 ms until there is something.
pub(crate) async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    no_hang(async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            sleep(LOOK_EVERY).await;
        }
    })
    .await
}

/// A loop without a pause would look thousands of times.
#[tokio::test]
async fn looks_are_few_while_a_test_waits() {
    let (begun, mut looks) = (Instant::now(), 0_u32);
    until(async || {
        looks += 1;
        (begun.elapsed() >= 20 * LOOK_EVERY).then_some(())
    })
    .await;
    assert!(looks <= 21, "{looks}");
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        Client(BufReader::new(TcpStream::connect(address).await.expect("a connection")))
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("a write");
    }

    /// `POST /v1/audio/speech`.
    pub(crate) async fn speak(&mut self, json: &str) {
        self.send(post("/v1/audio/speech", json)).await;
    }

    pub(crate) async fn head(&mut self) -> Head {
        no_hang(self.read_head()).await
    }

    /// The next chunk; `None` at a normal end; an error if the connection ended early.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        no_hang(self.read_chunk()).await
    }

    /// All chunks of a body that ends normally.
    pub(crate) async fn chunks(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await.expect("a chunk or a clean end") {
            all.extend(chunk);
        }
        all
    }

    /// All bytes until the server closes the connection.
    pub(crate) async fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        no_hang(self.0.read_to_end(&mut rest)).await.map(|_| rest)
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let body = match head.header("content-length") {
            Some(length) => {
                let mut body = vec![0; length.parse().expect("a length")];
                no_hang(self.0.read_exact(&mut body)).await.expect("the whole body");
                body
            }
            None if head.header("transfer-encoding").is_some() => self.chunks().await,
            None => Vec::new(),
        };
        Answer { head, body }
    }

    /// Leaves, and waits until the server has stopped the work for it.
    pub(crate) async fn leave<E>(self, work: &Sender<E>) {
        drop(self);
        no_hang(work.closed()).await;
    }

    /// The head of an answer to `HEAD`: it states a length, and no body follows.
    pub(crate) async fn bodiless(mut self) -> Head {
        let head = self.head().await;
        assert_eq!(self.rest().await.expect("a clean end"), b"");
        head
    }

    /// Without a time limit: for tests that control the clock.
    pub(crate) async fn read_head(&mut self) -> Head {
        let status = self.line().await.expect("a status line");
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line().await.expect("a header");
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Head { status: status.expect("a status"), headers }
    }

    async fn read_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = usize::from_str_radix(&self.line().await?, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk).await?;
        assert_eq!(chunk.split_off(size), b"\r\n");
        Ok((size > 0).then_some(chunk))
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).await?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

pub(crate) fn get(path: &str) -> String {
    request("GET", path, "Host: localhost\r\n")
}

/// A request without a body, with these header lines.
pub(crate) fn request(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\n{headers}\r\n")
}

pub(crate) fn post(path: &str, json: impl AsRef<[u8]>) -> Vec<u8> {
    post_with(path, "Content-Type: application/json\r\n", json)
}

pub(crate) fn post_with(path: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}
