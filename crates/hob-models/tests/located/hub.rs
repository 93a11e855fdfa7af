//! A hub on the loopback interface that answers as the real one does, with the store that it refers to on a port of
//! its own, and a registry of Ollama's. Every request is noted.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use hob_models::Sha256;

/// Of every repository here.
pub(crate) const COMMIT: &str = "99a1b2185534379e6e8b5ec869da25d3e7b3f73c";
/// Opens gated repositories.
pub(crate) const TOKEN: &str = "hf_secret";

/// Who may read a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gate {
    #[default]
    Open,
    /// Who has accepted its terms.
    Terms,
}

#[derive(Default)]
struct Shelves {
    /// By repository, path and bytes.
    files: HashMap<String, Vec<(String, Vec<u8>)>>,
    gates: HashMap<String, Gate>,
    /// Old names of repositories.
    renamed: HashMap<String, String>,
    /// By the digest of their bytes.
    blobs: HashMap<String, Vec<u8>>,
    /// By `OWNER/NAME/TAG`.
    tags: HashMap<String, String>,
    /// The next answers of the store end after so many bytes.
    cuts: Vec<usize>,
    /// A mirror may tell no checksum.
    is_mute: bool,
    requests: Vec<Request>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// `hub` or `store`.
    pub(crate) host: &'static str,
    pub(crate) method: String,
    pub(crate) path: String,
    /// First byte, and last where one was named.
    pub(crate) range: Option<(usize, Option<usize>)>,
    pub(crate) token: Option<String>,
}

pub(crate) struct Hub {
    pub(crate) address: String,
    shelves: Arc<Mutex<Shelves>>,
}

struct Answer {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// The connection ends after so many bytes of the body.
    cut: Option<usize>,
}

impl Hub {
    pub(crate) fn start() -> Hub {
        let shelves = Arc::<Mutex<Shelves>>::default();
        let store = listen("store", Arc::clone(&shelves), store);
        let hub = listen("hub", Arc::clone(&shelves), move |request, shelves| {
            hub(request, shelves, &store)
        });
        Hub { address: hub, shelves }
    }

    pub(crate) fn put(&self, repo: &str, files: &[(&str, &[u8])]) {
        let mut shelves = self.shelves.lock().expect("the shelves");
        let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
        shelves.files.insert(repo.to_owned(), files.collect());
    }

    pub(crate) fn gate(&self, repo: &str) {
        self.shelves.lock().expect("the shelves").gates.insert(repo.to_owned(), Gate::Terms);
    }

    pub(crate) fn rename(&self, old: &str, new: &str) {
        let mut shelves = self.shelves.lock().expect("the shelves");
        shelves.renamed.insert(old.to_owned(), new.to_owned());
    }

    /// A tag of Ollama's with this file as its model.
    pub(crate) fn tag(&self, tag: &str, file: &[u8]) {
        let digest = Sha256::of(file).to_string();
        let manifest = format!(
            r#"{{"schemaVersion":2,"layers":[{{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:{digest}","size":{}}}]}}"#,
            file.len()
        );
        let mut shelves = self.shelves.lock().expect("the shelves");
        shelves.blobs.insert(digest, file.to_vec());
        shelves.tags.insert(tag.to_owned(), manifest);
    }

    /// The next answers of the store end after so many bytes, in order.
    pub(crate) fn cut(&self, after: &[usize]) {
        self.shelves.lock().expect("the shelves").cuts = after.iter().rev().copied().collect();
    }

    /// From now on no checksum is told.
    pub(crate) fn be_mute(&self) {
        self.shelves.lock().expect("the shelves").is_mute = true;
    }

    /// The requests since this was last asked.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shelves.lock().expect("the shelves").requests)
    }
}

/// Returns the address.
fn listen(
    host: &'static str,
    shelves: Arc<Mutex<Shelves>>,
    answer: impl Fn(&Request, &mut Shelves) -> Answer + Clone + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (shelves, answer) = (Arc::clone(&shelves), answer.clone());
            std::thread::spawn(move || {
                let Some(request) = read(&stream, host) else { return };
                let answered = {
                    let mut shelves = shelves.lock().expect("the shelves");
                    shelves.requests.push(request.clone());
                    answer(&request, &mut shelves)
                };
                // Clients leave in the middle: that is what ranges are for.
                let _left = write(&stream, &request, answered);
            });
        }
    });
    address
}

fn read(stream: &TcpStream, host: &'static str) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut range, mut token) = (None, None);
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                range = Some((first.parse().ok()?, last.parse().ok()));
            }
            "authorization" => token = value.strip_prefix("Bearer ").map(str::to_owned),
            _ => (),
        }
    }
    Some(Request { host, method, path, range, token })
}

fn write(mut stream: &TcpStream, request: &Request, answer: Answer) -> std::io::Result<()> {
    let Answer { status, headers, body, cut } = answer;
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !head.contains("Content-Length") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let sent = if request.method == "HEAD" { 0 } else { cut.unwrap_or(body.len()).min(body.len()) };
    stream.write_all(&body[..sent])
}

fn plain(status: &'static str, headers: Vec<(&'static str, String)>) -> Answer {
    Answer { status, headers, body: Vec::new(), cut: None }
}

fn refusal(status: &'static str, code: &'static str) -> Answer {
    plain(status, vec![("X-Error-Code", code.to_owned())])
}

/// Lists, redirections and refusals: no file lies here.
fn hub(request: &Request, shelves: &mut Shelves, store: &str) -> Answer {
    if let Some(path) = request.path.strip_prefix("/v2/") {
        return registry(path, shelves, store);
    }
    let path = request.path.split('?').next().unwrap_or_default();
    let is_list = path.starts_with("/api/models/");
    let below = path.strip_prefix("/api/models/").unwrap_or(&path[1..]);
    let mark = if is_list { "/tree/" } else { "/resolve/" };
    let Some((repo, rest)) = below.split_once(mark) else { return refusal("404 Not Found", "") };
    if let Some(new) = shelves.renamed.get(repo) {
        let moved = request.path.replacen(repo, new, 1);
        return plain("307 Temporary Redirect", vec![("Location", moved)]);
    }
    let Some(files) = shelves.files.get(repo) else {
        // Strangers are not told what there is.
        return refusal("401 Unauthorized", "RepoNotFound");
    };
    let is_gated = shelves.gates.contains_key(repo) && !is_list;
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
    let mut headers = vec![("X-Repo-Commit", COMMIT.to_owned())];
    if !shelves.is_mute {
        headers.push(("X-Linked-Size", bytes.len().to_string()));
        headers.push(("X-Linked-Etag", format!("\"{sum}\"")));
    }
    headers.push(("Location", format!("{store}/{sum}?signature=x")));
    shelves.blobs.insert(sum, bytes.clone());
    plain("302 Found", headers)
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
    let body = format!("[{}]", entries.join(",")).into_bytes();
    Answer { status: "200 OK", headers: Vec::new(), body, cut: None }
}

fn registry(path: &str, shelves: &Shelves, store: &str) -> Answer {
    if let Some((_, digest)) = path.split_once("/blobs/sha256:") {
        let to = format!("{store}/{digest}");
        return plain("307 Temporary Redirect", vec![("Location", to)]);
    }
    let tag = path.replacen("/manifests/", "/", 1);
    match shelves.tags.get(&tag) {
        Some(manifest) => {
            let body = manifest.clone().into_bytes();
            Answer { status: "200 OK", headers: Vec::new(), body, cut: None }
        }
        None => plain("404 Not Found", Vec::new()),
    }
}

/// Bytes by their digest, and nobody is asked who they are.
fn store(request: &Request, shelves: &mut Shelves) -> Answer {
    let digest = request.path[1..].split('?').next().unwrap_or_default();
    let Some(bytes) = shelves.blobs.get(digest).cloned() else {
        return plain("404 Not Found", Vec::new());
    };
    let whole = bytes.len();
    let cut = if request.range.is_some_and(|(_, last)| last.is_some()) {
        None
    } else {
        shelves.cuts.pop()
    };
    let Some((first, last)) = request.range else {
        return Answer { status: "200 OK", headers: Vec::new(), body: bytes, cut };
    };
    let end = last.map_or(whole, |last| (last + 1).min(whole));
    let range = format!("bytes {first}-{}/{whole}", end - 1);
    let headers = vec![("Content-Range", range)];
    Answer { status: "206 Partial Content", headers, body: bytes[first..end].to_vec(), cut }
}
