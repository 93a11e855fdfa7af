//! A file server that knows ranges, can misbehave for each file, and notes its requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::loopback::{Answer, Ending, Request, listen};

/// How the server answers requests for a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    #[default]
    Ranges,
    /// Sends the whole file, even if a range is requested.
    Whole,
    Status(u16),
    /// Redirects to the location in the file's own header.
    Moved,
    /// Closes the connection after so many bytes of the body.
    Cut(usize),
    /// Sends one byte for each request.
    Crumbs,
    /// Sends another range than the requested one.
    Elsewhere,
}

/// A header of one file, such as `Link`.
type Header = (&'static str, String);

#[derive(Default)]
struct State {
    files: HashMap<String, (Vec<u8>, Manner, Option<Header>)>,
    requests: Vec<(String, Option<String>)>,
}

pub(crate) struct Server {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let address = listen(move |request| {
            let mut state = shared.lock().expect("the state");
            state.requests.push((request.path.clone(), request.token.clone()));
            answer(&request, state.files.get(&request.path))
        });
        Server { address, state }
    }

    /// Returns the file's address.
    pub(crate) fn put(&self, path: &str, bytes: &[u8], manner: Manner) -> String {
        self.insert(path, (bytes.to_vec(), manner, None));
        format!("{}{path}", self.address)
    }

    pub(crate) fn put_with(&self, path: &str, bytes: &[u8], manner: Manner, header: Header) {
        self.insert(path, (bytes.to_vec(), manner, Some(header)));
    }

    fn insert(&self, path: &str, file: (Vec<u8>, Manner, Option<Header>)) {
        self.state.lock().expect("the state").files.insert(path.to_owned(), file);
    }

    /// Path and token of each request since the last call.
    pub(crate) fn requests(&self) -> Vec<(String, Option<String>)> {
        std::mem::take(&mut self.state.lock().expect("the state").requests)
    }
}

fn answer(request: &Request, file: Option<&(Vec<u8>, Manner, Option<Header>)>) -> Answer {
    let Some((bytes, manner, header)) = file else { return Answer::empty("404 Not Found") };
    let whole = bytes.len();
    let range = request.range.and_then(|(first, last)| Some((first, (last? + 1).min(whole))));
    let mut answer = match (manner, range) {
        (Manner::Status(code), _) => return Answer::empty(format!("{code} No")),
        (Manner::Moved, _) => Answer::empty("302 Found"),
        (Manner::Whole, _) | (_, None) => Answer::ok(bytes.clone()),
        (Manner::Crumbs, Some((start, _))) => Answer::part(bytes, start, start + 1),
        (Manner::Elsewhere, Some((start, end))) => Answer::part(bytes, start + 1, end),
        (Manner::Cut(sent), Some((start, end))) => {
            Answer::part(bytes, start, end).ending(Ending::CutAfter(*sent))
        }
        (Manner::Ranges, Some((start, end))) => Answer::part(bytes, start, end),
    };
    answer.headers.extend(header.clone());
    answer
}
