//! A file server on the loopback interface that knows ranges and says what it was asked.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How a file is answered for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    #[default]
    Ranges,
    /// Everything from the start, whatever part was asked for.
    Whole,
    Status(u16),
    /// To where the file's own line of the head says.
    Moved,
    /// Ends the connection in the middle of the body.
    Cut(usize),
    /// One byte for each request, whatever was asked for.
    Crumbs,
    /// Another part than was asked for.
    Elsewhere,
}

#[derive(Default)]
struct Shelf {
    files: HashMap<String, (Vec<u8>, Manner, String)>,
    requests: Vec<(String, Option<String>)>,
}

pub(crate) struct Server {
    pub(crate) address: String,
    shelf: Arc<Mutex<Shelf>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let shelf = Arc::<Mutex<Shelf>>::default();
        let shared = Arc::clone(&shelf);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shelf = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &shelf));
            }
        });
        Server { address, shelf }
    }

    /// Its address.
    pub(crate) fn put(&self, path: &str, bytes: &[u8], manner: Manner) -> String {
        self.put_with(path, bytes, manner, "")
    }

    /// With a line of the head of its own.
    pub(crate) fn put_with(&self, path: &str, bytes: &[u8], manner: Manner, head: &str) -> String {
        let file = (bytes.to_vec(), manner, head.to_owned());
        self.shelf.lock().expect("the shelf").files.insert(path.to_owned(), file);
        format!("{}{path}", self.address)
    }

    /// Path and token of each request.
    pub(crate) fn requests(&self) -> Vec<(String, Option<String>)> {
        std::mem::take(&mut self.shelf.lock().expect("the shelf").requests)
    }
}

struct Request {
    path: String,
    range: Option<(usize, usize)>,
    token: Option<String>,
}

/// One request a connection.
fn serve(stream: &TcpStream, shelf: &Mutex<Shelf>) {
    let Some(request) = read(stream) else { return };
    let file = {
        let mut shelf = shelf.lock().expect("the shelf");
        shelf.requests.push((request.path.clone(), request.token.clone()));
        shelf.files.get(&request.path).cloned()
    };
    // Clients leave in the middle: that is what ranges are for.
    let _left = answer(stream, &request, file);
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let (mut range, mut token) = (None, None);
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                range = Some((first.parse().ok()?, last.parse().ok()?));
            }
            "authorization" => token = value.strip_prefix("Bearer ").map(str::to_owned),
            _ => (),
        }
    }
    Some(Request { path, range, token })
}

fn answer(
    mut stream: &TcpStream,
    request: &Request,
    file: Option<(Vec<u8>, Manner, String)>,
) -> std::io::Result<()> {
    let mut status = |status: &str, head: &str, body: &[u8], length: usize| {
        let head = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(format!("HTTP/1.1 {status}\r\n{head}").as_bytes())?;
        stream.write_all(body)
    };
    let Some((bytes, manner, head)) = file else { return status("404 Not Found", "", b"", 0) };
    let whole = bytes.len();
    let part = request.range.map(|(first, last)| (first, (last + 1).min(whole)));
    let (start, end) = match (manner, part) {
        (Manner::Status(code), _) => return status(&format!("{code} No"), "", b"", 0),
        (Manner::Moved, _) => return status("302 Found", &head, b"", 0),
        (Manner::Whole, _) | (_, None) => return status("200 OK", &head, &bytes, whole),
        (Manner::Crumbs, Some((start, _))) => (start, start + 1),
        (Manner::Elsewhere, Some((start, end))) => (start + 1, end),
        (_, Some(part)) => part,
    };
    let range = format!("Content-Range: bytes {start}-{}/{whole}\r\n", end - 1);
    let sent = if let Manner::Cut(bytes) = manner { (start + bytes).min(end) } else { end };
    status("206 Partial Content", &range, &bytes[start..sent], end - start)
}
