//! A file server that a test can make misbehave, answer by answer. It notes its requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::loopback::{self, Ending, listen};

/// How the server answers one request. By default it sends what was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The connection closes after so many bytes of the body.
    CutAfter(usize),
    Status(u16),
    /// Nothing more comes after so many bytes of the body, and the connection stays open.
    StallAfter(usize),
    /// Sends the whole file, even if a range is requested.
    Whole,
    /// Sends so many bytes too many.
    Longer(usize),
    /// Sends as many bytes as the file has, and all of them are wrong.
    Altered,
}

#[derive(Default)]
struct State {
    files: HashMap<String, Vec<u8>>,
    answers: HashMap<String, VecDeque<Answer>>,
    requests: Vec<Request>,
}

/// A request, with its first byte if it has a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) from: Option<usize>,
}

pub(crate) struct Server {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let address = listen(move |loopback::Request { path, range, .. }| {
            let mut state = shared.lock().expect("the state");
            let from = range.map(|(first, _)| first);
            state.requests.push(Request { path: path.clone(), from });
            let answer = state.answers.get_mut(&path).and_then(VecDeque::pop_front);
            match state.files.get(&path) {
                Some(file) => answered(file, from, answer),
                None => loopback::Answer::empty("404 Not Found"),
            }
        });
        Server { address, state }
    }

    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        self.state.lock().expect("the state").files.insert(path.to_owned(), bytes.to_vec());
    }

    /// Sets how the next requests for this path are answered, in order.
    pub(crate) fn plan(&self, path: &str, answers: &[Answer]) {
        let mut state = self.state.lock().expect("the state");
        state.answers.entry(path.to_owned()).or_default().extend(answers);
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.lock().expect("the state").requests)
    }
}

fn answered(file: &[u8], from: Option<usize>, answer: Option<Answer>) -> loopback::Answer {
    let mut file = file.to_vec();
    let mut start = from.unwrap_or(0);
    let mut ending = Ending::Complete;
    match answer {
        Some(Answer::Status(status)) => return loopback::Answer::empty(format!("{status} No")),
        Some(Answer::CutAfter(bytes)) => ending = Ending::CutAfter(bytes),
        Some(Answer::StallAfter(bytes)) => ending = Ending::StallAfter(bytes),
        Some(Answer::Whole) => start = 0,
        Some(Answer::Longer(bytes)) => file.resize(file.len() + bytes, 0),
        Some(Answer::Altered) => file.iter_mut().for_each(|byte| *byte = !*byte),
        None => {}
    }
    let answer = match start {
        0 => loopback::Answer::ok(file),
        start => loopback::Answer::part(&file, start, file.len()),
    };
    answer.ending(ending)
}
