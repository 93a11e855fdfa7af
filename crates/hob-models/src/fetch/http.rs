//! One file over HTTP, resumed where the last attempt stopped. Not `hf-hub`: it is async, has its own
//! cache and lock layout, and tells no bytes while a file arrives; the protocol needed here is one GET.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::{Agent, Body};

use super::{FetchError, Fetcher, Limits};
use crate::disk::{DiskError, clear};
use crate::progress::Watch;

const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that may wait between the connection and the disk; the reader of the connection blocks.
const CHUNKS_WAITING_MAX: usize = 4;
/// How often the flag is looked at while nothing arrives.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// From the connection to the first line of the answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Whatever the server does, no single connection lives longer.
const CONNECTION_MAX: Duration = Duration::from_secs(3600);

/// A connection that broke counts as new trouble after so much more of the file, so that a file of many
/// gigabytes may outlive more of them than a small one.
const PROGRESS_BYTES: u64 = 256 << 20;

pub(super) struct Client {
    agent: Agent,
    limits: Limits,
    hub: String,
    token: Option<String>,
}

/// One request.
struct Ask {
    address: String,
    token: Option<String>,
    from: u64,
}

/// What the thread that reads the connection says.
enum News {
    /// The answer has begun, at this byte of the file.
    Begins(u64),
    Chunk(Vec<u8>),
    /// The server has nothing more to say.
    End,
    Failed(FetchError),
    /// The connection broke, maybe to work again.
    Broke(String),
}

/// How one connection ended.
enum Outcome {
    Complete,
    Broke(String),
}

impl Client {
    pub(super) fn new(fetcher: &Fetcher) -> Client {
        let limits = fetcher.limits;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_recv_response(Some(ANSWER_WITHIN))
            .timeout_global(Some(CONNECTION_MAX))
            .build();
        let hub = format!("{}/", fetcher.hub.trim_end_matches('/'));
        Client { agent: config.into(), limits, hub, token: fetcher.token.clone() }
    }

    /// Brings the file to `partial`, from where that ends. Its bytes are not looked at here.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, sends too much, goes silent, or breaks off too often.
    pub(super) fn download(
        &self,
        address: &str,
        partial: &Path,
        bytes: u64,
        watch: &mut Watch<'_>,
    ) -> Result<(), FetchError> {
        let (mut times, mut counted_from) = (0, length(partial));
        loop {
            let have = length(partial);
            if have >= counted_from.saturating_add(PROGRESS_BYTES) {
                (times, counted_from) = (0, have);
            }
            if have > bytes {
                clear(partial)?;
            }
            if have == bytes {
                return Ok(());
            }
            let transfer = Transfer { address, partial, bytes, silence: self.limits.silence };
            match transfer.run(self.connect(address, length(partial)), watch)? {
                Outcome::Complete => return Ok(()),
                Outcome::Broke(detail) if length(partial) == 0 => {
                    return Err(FetchError::Unreachable { address: address.to_owned(), detail });
                }
                Outcome::Broke(_) if times >= self.limits.reconnects_max => {
                    return Err(transfer.cut_off(times + 1));
                }
                Outcome::Broke(_) => times += 1,
            }
        }
    }

    /// Reads on a thread of its own, because a blocked read hears no flag and knows no silence. A
    /// thread that is left behind ends when its connection does, [`CONNECTION_MAX`] at the latest.
    fn connect(&self, address: &str, from: u64) -> Receiver<News> {
        let (news, received) = sync_channel(CHUNKS_WAITING_MAX);
        let agent = self.agent.clone();
        let token = self.token.clone().filter(|_| address.starts_with(&self.hub));
        let ask = Ask { address: address.to_owned(), token, from };
        std::thread::spawn(move || {
            // Nobody listens any more: then there is nobody to tell that either.
            let _unheard = read_connection(&agent, &ask, &news);
        });
        received
    }
}

struct Unheard;

fn read_connection(agent: &Agent, ask: &Ask, news: &SyncSender<News>) -> Result<(), Unheard> {
    let tell = |item| news.send(item).map_err(|_| Unheard);
    let Ask { address, token, from } = ask;
    let mut request = agent.get(address);
    if *from > 0 {
        request = request.header("Range", format!("bytes={from}-"));
    }
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let response = match request.call() {
        Ok(response) => response,
        Err(error) => return tell(News::Broke(error.to_string())),
    };
    match starts_at(&response, *from) {
        Some(start) => tell(News::Begins(start))?,
        None => {
            let status = response.status().as_u16();
            let address = address.clone();
            return tell(News::Failed(FetchError::Refused { address, status }));
        }
    }
    let mut body = response.into_body().into_reader();
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        match body.read(&mut chunk) {
            Ok(0) => return tell(News::End),
            Ok(read) => {
                chunk.truncate(read);
                tell(News::Chunk(chunk))?;
            }
            Err(error) => return tell(News::Broke(error.to_string())),
        }
    }
}

/// The byte of the file at which the answer begins, if it is one: a server may ignore the wish to go
/// on and send everything, and may find nothing to send when the file was longer than it has.
fn starts_at(response: &Response<Body>, from: u64) -> Option<u64> {
    match response.status().as_u16() {
        200 => Some(0),
        206 => {
            let range = response.headers().get("Content-Range")?.to_str().ok()?;
            let start = range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()?;
            (start == from).then_some(start)
        }
        _ => None,
    }
}

/// One connection's worth of a file.
struct Transfer<'a> {
    address: &'a str,
    partial: &'a Path,
    bytes: u64,
    silence: Duration,
}

impl Transfer<'_> {
    fn run(&self, news: Receiver<News>, watch: &mut Watch<'_>) -> Result<Outcome, FetchError> {
        let mut file = None;
        loop {
            match self.next(&news, watch)? {
                News::Begins(start) => file = Some((self.open_at(start)?, start)),
                News::Chunk(chunk) => {
                    let Some((file, done)) = &mut file else { continue };
                    *done += chunk.len() as u64;
                    self.write(file, &chunk, *done)?;
                    watch.at(*done);
                }
                News::End if length(self.partial) < self.bytes => {
                    return Ok(Outcome::Broke("it ended early".to_owned()));
                }
                News::End => return Ok(Outcome::Complete),
                News::Broke(detail) => return Ok(Outcome::Broke(detail)),
                News::Failed(error) => {
                    // The next try shall not ask for the same impossible rest again.
                    clear(self.partial)?;
                    return Err(error);
                }
            }
        }
    }

    fn next(&self, news: &Receiver<News>, watch: &Watch<'_>) -> Result<News, FetchError> {
        let since = Instant::now();
        loop {
            watch.check()?;
            match news.recv_timeout(LOOK_EVERY) {
                Ok(item) => return Ok(item),
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(News::Broke("its reader ended".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) if since.elapsed() >= self.silence => {
                    let silent_s = self.silence.as_secs();
                    return Err(FetchError::Stalled { what: self.address.to_owned(), silent_s });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn open_at(&self, start: u64) -> Result<File, FetchError> {
        let opened = if start == 0 {
            File::create(self.partial)
        } else {
            OpenOptions::new().append(true).open(self.partial)
        };
        Ok(opened.map_err(DiskError::at(self.partial))?)
    }

    fn write(&self, file: &mut File, chunk: &[u8], done: u64) -> Result<(), FetchError> {
        if done > self.bytes {
            clear(self.partial)?;
            let file = self.address.to_owned();
            return Err(FetchError::TooLong { file, bytes_max: self.bytes });
        }
        Ok(file.write_all(chunk).map_err(DiskError::at(self.partial))?)
    }

    fn cut_off(&self, times: u32) -> FetchError {
        FetchError::CutOff {
            address: self.address.to_owned(),
            times,
            got_bytes: length(self.partial),
            bytes: self.bytes,
        }
    }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}
