//! A file server on the loopback interface that can be told to misbehave, answer by answer.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How one request is answered; what is not said is answered well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The connection closes after so many bytes of the body.
    CutAfter(usize),
    Status(u16),
    /// After so many bytes of the body nothing more comes, and the connection stays.
    StallAfter(usize),
    /// Everything from the start, whatever part was asked for.
    Whole,
    /// So many bytes too many.
    Longer(usize),
    /// As many bytes, and all of them wrong.
    Altered,
}

#[derive(Default)]
struct Shelf {
    files: HashMap<String, Vec<u8>>,
    answers: HashMap<String, VecDeque<Answer>>,
    requests: Vec<Request>,
}

/// What was asked for, and from which byte on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) from: Option<usize>,
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

    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        self.shelf.lock().expect("the shelf").files.insert(path.to_owned(), bytes.to_vec());
    }

    /// The next requests for this path are answered like that, in order.
    pub(crate) fn plan(&self, path: &str, answers: &[Answer]) {
        let mut shelf = self.shelf.lock().expect("the shelf");
        shelf.answers.entry(path.to_owned()).or_default().extend(answers);
    }

    /// The requests since this was last asked.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shelf.lock().expect("the shelf").requests)
    }
}

/// One request a connection: whatever happens on it is then over with it.
fn serve(stream: &TcpStream, shelf: &Mutex<Shelf>) {
    let Some(request) = read_request(stream) else { return };
    let (file, answer) = {
        let mut shelf = shelf.lock().expect("the shelf");
        shelf.requests.push(request.clone());
        let answer = shelf.answers.get_mut(&request.path).and_then(VecDeque::pop_front);
        (shelf.files.get(&request.path).cloned(), answer)
    };
    // A client that leaves in the middle is what many tests are about.
    let _left = respond(stream, file, request.from, answer);
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut from = None;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().ok();
        }
    }
    Some(Request { path, from })
}

fn respond(
    mut stream: &TcpStream,
    file: Option<Vec<u8>>,
    from: Option<usize>,
    answer: Option<Answer>,
) -> std::io::Result<()> {
    let Some(mut file) = file else { return head(stream, "404 Not Found", "", 0) };
    let mut start = from.unwrap_or(0);
    let mut end = file.len();
    let mut promised = file.len();
    match answer {
        Some(Answer::Status(status)) => return head(stream, &format!("{status} No"), "", 0),
        Some(Answer::CutAfter(bytes) | Answer::StallAfter(bytes)) => end = (start + bytes).min(end),
        Some(Answer::Whole) => start = 0,
        Some(Answer::Longer(bytes)) => {
            file.resize(file.len() + bytes, 0);
            (end, promised) = (file.len(), file.len());
        }
        Some(Answer::Altered) => file.iter_mut().for_each(|byte| *byte = !*byte),
        None => {}
    }
    let length = promised - start;
    if start > 0 {
        let range = format!("Content-Range: bytes {start}-{}/{promised}\r\n", promised - 1);
        head(stream, "206 Partial Content", &range, length)?;
    } else {
        head(stream, "200 OK", "", length)?;
    }
    stream.write_all(&file[start..end])?;
    if matches!(answer, Some(Answer::StallAfter(_))) {
        // Until the client leaves, which is what the test is about.
        while stream.read(&mut [0])? > 0 {}
    }
    Ok(())
}

fn head(mut stream: &TcpStream, status: &str, extra: &str, length: usize) -> std::io::Result<()> {
    let lines = format!("Content-Length: {length}\r\n{extra}Connection: close\r\n\r\n");
    stream.write_all(format!("HTTP/1.1 {status}\r\n{lines}").as_bytes())
}
