//! A hub that answers like Hugging Face, its file store on a second port, and a registry like Ollama's.
//! It notes every request.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use hob_models::Sha256;

use crate::loopback::{self, Answer, Ending, listen};

/// The commit of every repository here.
pub(crate) const COMMIT: &str = "99a1b2185534379e6e8b5ec869da25d3e7b3f73c";
/// Opens gated repositories.
pub(crate) const TOKEN: &str = "hf_secret";

#[derive(Default)]
struct State {
    /// By repository, path and bytes.
    files: HashMap<String, Vec<(String, Vec<u8>)>>,
    /// Repositories whose terms a user has to accept.
    gated: HashSet<String>,
    /// Old names of repositories.
    renamed: HashMap<String, String>,
    /// By the digest of their bytes.
    blobs: HashMap<String, Vec<u8>>,
    /// By `OWNER/NAME/TAG`.
    tags: HashMap<String, String>,
    /// Lengths at which the next answers of the store end, the next one last.
    cuts: Vec<usize>,
    /// Whether the hub sends checksums. Some mirrors do not.
    has_checksums: bool,
    requests: Vec<Request>,
}

/// A request, and the server that received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// `hub` or `store`.
    pub(crate) host: &'static str,
    pub(crate) method: String,
    pub(crate) path: String,
    /// First byte, and last if the client named one.
    pub(crate) range: Option<(usize, Option<usize>)>,
    pub(crate) token: Option<String>,
}

pub(crate) struct Hub {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
}

impl Hub {
    pub(crate) fn start() -> Hub {
        let state = Arc::new(Mutex::new(State { has_checksums: true, ..State::default() }));
        let store = start("store", Arc::clone(&state), store);
        let hub =
            start("hub", Arc::clone(&state), move |request, state| hub(request, state, &store));
        Hub { address: hub, state }
    }

    pub(crate) fn put(&self, repo: &str, files: &[(&str, &[u8])]) {
        let mut state = self.state.lock().expect("the state");
        let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
        state.files.insert(repo.to_owned(), files.collect());
    }

    pub(crate) fn gate(&self, repo: &str) {
        self.state.lock().expect("the state").gated.insert(repo.to_owned());
    }

    pub(crate) fn rename(&self, old: &str, new: &str) {
        let mut state = self.state.lock().expect("the state");
        state.renamed.insert(old.to_owned(), new.to_owned());
    }

    /// A tag of Ollama's with this file as its model.
    pub(crate) fn tag(&self, tag: &str, file: &[u8]) {
        let digest = Sha256::of(file).to_string();
        let manifest = format!(
            r#"{{"schemaVersion":2,"layers":[{{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:{digest}","size":{}}}]}}"#,
            file.len()
        );
        let mut state = self.state.lock().expect("the state");
        state.blobs.insert(digest, file.to_vec());
        state.tags.insert(tag.to_owned(), manifest);
    }

    /// The next answers of the store end after so many bytes, in order.
    pub(crate) fn cut(&self, after: &[usize]) {
        self.state.lock().expect("the state").cuts = after.iter().rev().copied().collect();
    }

    /// From now on the hub sends no checksums.
    pub(crate) fn without_checksums(&self) {
        self.state.lock().expect("the state").has_checksums = false;
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.lock().expect("the state").requests)
    }
}

/// Starts a server that notes its requests, and returns its address.
fn start(
    host: &'static str,
    state: Arc<Mutex<State>>,
    answer: impl Fn(&Request, &mut State) -> Answer + Send + Sync + 'static,
) -> String {
    listen(move |loopback::Request { method, path, range, token, .. }| {
        let mut state = state.lock().expect("the state");
        let request = Request { host, method, path, range, token };
        state.requests.push(request.clone());
        answer(&request, &mut state)
    })
}

fn refusal(status: &str, code: &str) -> Answer {
    Answer::empty(status).with("X-Error-Code", code)
}

/// Answers with lists, redirections and refusals. The files are in the store.
fn hub(request: &Request, state: &mut State, store: &str) -> Answer {
    if let Some(path) = request.path.strip_prefix("/v2/") {
        return registry(path, state, store);
    }
    let path = request.path.split('?').next().unwrap_or_default();
    let is_list = path.starts_with("/api/models/");
    let below = path.strip_prefix("/api/models/").unwrap_or(&path[1..]);
    let mark = if is_list { "/tree/" } else { "/resolve/" };
    let Some((repo, rest)) = below.split_once(mark) else { return refusal("404 Not Found", "") };
    if let Some(new) = state.renamed.get(repo) {
        let moved = request.path.replacen(repo, new, 1);
        return Answer::empty("307 Temporary Redirect").with("Location", moved);
    }
    let Some(files) = state.files.get(repo) else {
        // Like the real hub, it does not say whether a private repository exists.
        return refusal("401 Unauthorized", "RepoNotFound");
    };
    let is_gated = state.gated.contains(repo) && !is_list;
    match request.token.as_deref() {
        None if is_gated => return refusal("401 Unauthorized", "GatedRepo"),
        Some(token) if is_gated && token != TOKEN => return refusal("403 Forbidden", "GatedRepo"),
        _ => {}
    }
    let (revision, file) = rest.split_once('/').unwrap_or((rest, ""));
    if ![COMMIT, "main"].contains(&revision) {
        return refusal("404 Not Found", "RevisionNotFound");
    }
    if is_list {
        return list(files);
    }
    let Some((_, bytes)) = files.iter().find(|(path, _)| path == file) else {
        return refusal("404 Not Found", "EntryNotFound");
    };
    let sum = Sha256::of(bytes).to_string();
    let mut answer = Answer::empty("302 Found").with("X-Repo-Commit", COMMIT);
    if state.has_checksums {
        answer = answer
            .with("X-Linked-Size", bytes.len().to_string())
            .with("X-Linked-Etag", format!("\"{sum}\""));
    }
    let bytes = bytes.clone();
    let answer = answer.with("Location", format!("{store}/{sum}?signature=x"));
    state.blobs.insert(sum, bytes);
    answer
}

fn list(files: &[(String, Vec<u8>)]) -> Answer {
    let entry = |(path, bytes): &(String, Vec<u8>)| {
        let sum = Sha256::of(bytes);
        let size = bytes.len();
        format!(
            r#"{{"type":"file","oid":"x","size":{size},"path":"{path}","lfs":{{"oid":"{sum}","size":{size}}}}}"#
        )
    };
    let entries: Vec<String> = files.iter().map(entry).collect();
    Answer::ok(format!("[{}]", entries.join(",")).into_bytes())
}

fn registry(path: &str, state: &State, store: &str) -> Answer {
    if let Some((_, digest)) = path.split_once("/blobs/sha256:") {
        let location = format!("{store}/{digest}");
        return Answer::empty("307 Temporary Redirect").with("Location", location);
    }
    let tag = path.replacen("/manifests/", "/", 1);
    match state.tags.get(&tag) {
        Some(manifest) => Answer::ok(manifest.clone().into_bytes()),
        None => Answer::empty("404 Not Found"),
    }
}

/// Sends bytes by their digest, without a token. Only requests without a last byte are cut.
fn store(request: &Request, state: &mut State) -> Answer {
    let digest = request.path[1..].split('?').next().unwrap_or_default();
    let Some(bytes) = state.blobs.get(digest) else { return Answer::empty("404 Not Found") };
    let (answer, is_bounded) = match request.range {
        None => (Answer::ok(bytes.clone()), false),
        Some((first, last)) => {
            let end = last.map_or(bytes.len(), |last| (last + 1).min(bytes.len()));
            (Answer::part(bytes, first, end), last.is_some())
        }
    };
    let cut = if is_bounded { None } else { state.cuts.pop() };
    answer.ending(cut.map_or(Ending::Complete, Ending::CutAfter))
}
