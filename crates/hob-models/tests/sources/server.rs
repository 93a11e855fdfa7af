//! A file server that knows ranges and records its requests. It can answer wrongly, for all requests of a file or for the
//! next ones.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::loopback::{self, Answer, Ending, listen};

/// How the server answers a request for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Ranges,
    /// Sends the whole file, even if a range is requested.
    Whole,
    Status(u16),
    /// Redirects to the location in the file's own header.
    Moved,
    /// Closes the connection after so many bytes of the body.
    CutAfter(usize),
    /// Sends nothing more after so many bytes of the body, and keeps the connection open.
    StallAfter(usize),
    /// Sends one byte for each request.
    Crumbs,
    /// Sends another range than the requested one.
    Elsewhere,
    /// Sends so many bytes too many.
    Longer(usize),
    /// Sends as many bytes as the file has, and all of them are wrong.
    Altered,
}

/// A header of one file, such as `Link`.
type Header = (&'static str, String);

struct File {
    bytes: Vec<u8>,
    manner: Manner,
    header: Option<Header>,
    /// The answers to the next requests. `manner` answers the others.
    planned: VecDeque<Manner>,
}

/// A request, with its first byte if it has a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) from: Option<usize>,
    pub(crate) token: Option<String>,
}

#[derive(Default)]
struct State {
    files: HashMap<String, File>,
    requests: Vec<Request>,
}

pub(crate) struct Server {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let address = listen(move |loopback::Request { path, range, token, .. }| {
            let State { files, requests } = &mut *shared.lock().expect("the state");
            let file = files.get_mut(&path);
            requests.push(Request { path, from: range.map(|(first, _)| first), token });
            file.map_or_else(|| Answer::empty("404 Not Found"), |file| file.answer(range))
        });
        Server { address, state }
    }

    /// Returns the file's address.
    pub(crate) fn put(&self, path: &str, bytes: &[u8], manner: Manner) -> String {
        self.insert(path, bytes, manner, None);
        format!("{}{path}", self.address)
    }

    pub(crate) fn put_with(&self, path: &str, bytes: &[u8], manner: Manner, header: Header) {
        self.insert(path, bytes, manner, Some(header));
    }

    fn insert(&self, path: &str, bytes: &[u8], manner: Manner, header: Option<Header>) {
        let file = File { bytes: bytes.to_vec(), manner, header, planned: VecDeque::new() };
        self.state.lock().expect("the state").files.insert(path.to_owned(), file);
    }

    /// Sets how the next requests for this file are answered, in order.
    pub(crate) fn plan(&self, path: &str, answers: &[Manner]) {
        let mut state = self.state.lock().expect("the state");
        state.files.get_mut(path).expect("a file").planned.extend(answers);
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.lock().expect("the state").requests)
    }
}

impl File {
    fn answer(&mut self, range: Option<(usize, Option<usize>)>) -> Answer {
        let manner = self.planned.pop_front().unwrap_or(self.manner);
        let mut bytes = self.bytes.clone();
        match manner {
            Manner::Longer(more) => bytes.resize(bytes.len() + more, 0),
            Manner::Altered => bytes.iter_mut().for_each(|byte| *byte = !*byte),
            _ => {}
        }
        let whole = bytes.len();
        let end = |last: Option<usize>| last.map_or(whole, |last| (last + 1).min(whole));
        let mut answer = match (manner, range) {
            (Manner::Status(code), _) => Answer::empty(format!("{code} No")),
            (Manner::Moved, _) => Answer::empty("302 Found"),
            (Manner::Whole, _) | (_, None) => Answer::ok(bytes),
            (Manner::Crumbs, Some((first, _))) => Answer::part(&bytes, first, first + 1),
            (Manner::Elsewhere, Some((first, last))) => Answer::part(&bytes, first + 1, end(last)),
            (_, Some((first, last))) => Answer::part(&bytes, first, end(last)),
        };
        answer.headers.extend(self.header.clone());
        match manner {
            Manner::CutAfter(sent) => answer.ending(Ending::CutAfter(sent)),
            Manner::StallAfter(sent) => answer.ending(Ending::StallAfter(sent)),
            _ => answer,
        }
    }
}
