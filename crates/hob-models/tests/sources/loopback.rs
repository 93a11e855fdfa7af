//! A server on the loopback interface: one request for each connection, then the answer of a handler.
//! It understands ranges and tokens, and can break off in the middle of a body.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// First byte, and last if the client named one.
    pub(crate) range: Option<(usize, Option<usize>)>,
    pub(crate) token: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// How the server ends an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Complete,
    /// The connection closes after so many bytes of the body.
    CutAfter(usize),
    /// Nothing more comes after so many bytes of the body, and the connection stays open.
    StallAfter(usize),
}

#[derive(Default)]
pub(crate) struct Answer {
    /// Such as `200 OK`.
    pub(crate) status: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The whole body: its length is announced, even if the answer ends before.
    pub(crate) body: Vec<u8>,
    pub(crate) ending: Ending,
}

impl Answer {
    pub(crate) fn empty(status: impl Into<String>) -> Answer {
        Answer { status: status.into(), ..Answer::default() }
    }

    pub(crate) fn ok(body: Vec<u8>) -> Answer {
        Answer { body, ..Answer::empty("200 OK") }
    }

    /// The bytes from `start` to before `end` of a file.
    pub(crate) fn part(file: &[u8], start: usize, end: usize) -> Answer {
        let range = format!("bytes {start}-{}/{}", end - 1, file.len());
        let answer =
            Answer { body: file[start..end].to_vec(), ..Answer::empty("206 Partial Content") };
        answer.with("Content-Range", range)
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn ending(self, ending: Ending) -> Answer {
        Answer { ending, ..self }
    }
}

/// A server that runs until it is stopped, or the test program ends.
pub(crate) struct Loopback {
    pub(crate) url: String,
    is_stopped: Arc<AtomicBool>,
}

impl Loopback {
    /// `answer` writes the answer to a request. Then the connection closes.
    pub(crate) fn start(
        answer: impl Fn(Request, &mut TcpStream) + Send + Sync + 'static,
    ) -> Loopback {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (is_stopped, answer) = (Arc::new(AtomicBool::new(false)), Arc::new(answer));
        let ends = Arc::clone(&is_stopped);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || {
                    if let Some(request) = read(&stream) {
                        answer(request, &mut stream);
                    }
                });
            }
        });
        Loopback { url, is_stopped }
    }

    /// Closes the port: from now on no server listens there.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        let address = self.url.trim_start_matches("http://");
        // The listener is dropped after this connection.
        while let Ok(woken) = TcpStream::connect(address) {
            drop(woken);
        }
    }
}

/// Starts a server with these answers, and returns its address. It lives until the test program ends.
pub(crate) fn listen(handler: impl Fn(Request) -> Answer + Send + Sync + 'static) -> String {
    let server = Loopback::start(move |request, stream| {
        let is_head = request.method == "HEAD";
        // Clients leave in the middle of an answer: ranges are for that.
        let _left = write(stream, handler(request), is_head);
    });
    server.url
}

pub(crate) fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = reader.by_ref().lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut range, mut token, mut length) = (None, None, 0);
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                range = Some((first.parse().ok()?, last.parse().ok()));
            }
            "authorization" => token = value.strip_prefix("Bearer ").map(str::to_owned),
            "content-length" => length = value.parse().ok()?,
            _ => (),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, range, token, body })
}

pub(crate) fn write(mut stream: &TcpStream, answer: Answer, is_head: bool) -> std::io::Result<()> {
    let Answer { status, headers, body, ending } = answer;
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes())?;
    if is_head {
        return Ok(());
    }
    let sent = match ending {
        Ending::Complete => body.len(),
        Ending::CutAfter(bytes) | Ending::StallAfter(bytes) => bytes.min(body.len()),
    };
    stream.write_all(&body[..sent])?;
    if matches!(ending, Ending::StallAfter(_)) {
        // Waits until the client leaves.
        while stream.read(&mut [0])? > 0 {}
    }
    Ok(())
}
