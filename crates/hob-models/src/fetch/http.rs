//! Downloads one file over HTTP and resumes where the last attempt stopped.
//! `hf-hub` is not used: it is async, has a cache and lock layout of its own, and reports no bytes while a file
//! arrives.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::{Agent, Body};

use super::{FetchError, FetchLimits, Fetcher, trust};
use crate::disk::{DiskError, clear};
use crate::progress::Watch;

const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that may wait between the connection and the disk. Then the reader of the connection blocks.
const CHUNKS_WAITING_MAX: usize = 4;
/// Interval at which cancellation is checked while no bytes arrive.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Limit from the connection to the first line of the response.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Limit of one connection.
const CONNECTION_MAX: Duration = Duration::from_secs(3600);

/// Status of a server that limits requests.
const TOO_MANY_REQUESTS: u16 = 429;
/// Longest wait for such servers in one download: Hugging Face counts requests in windows of 5 minutes.
const THROTTLED_MAX: Duration = Duration::from_secs(300);
/// Wait for such a server if it does not say how long.
const THROTTLED_USUAL: Duration = Duration::from_secs(30);
/// Wait before the next connection if the last one brought nothing. Doubles each time, so that a network may come back.
const RECONNECT_WAIT: Duration = Duration::from_secs(1);

/// After this many bytes a broken connection no longer counts, so that a large file may survive more of them.
const PROGRESS_BYTES: u64 = 256 << 20;

pub(super) struct Client {
    agent: Agent,
    limits: FetchLimits,
    hub: String,
    token: Option<String>,
}

/// One request.
struct Ask {
    address: String,
    token: Option<String>,
    from: u64,
}

/// Messages of the thread that reads the connection.
enum News {
    /// The response has begun, at this byte of the file.
    Begins(u64),
    Chunk(Vec<u8>),
    /// The response has ended.
    End,
    Failed(FetchError),
    /// The server limits requests, and may be asked again after this time.
    Throttled(Duration),
    /// The connection broke; a retry may help.
    Broke(String),
}

/// How a connection ended.
enum Outcome {
    Complete,
    Throttled(Duration),
    Broke(String),
}

impl Client {
    pub(super) fn new(fetcher: &Fetcher) -> Client {
        let limits = fetcher.limits;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(trust())
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_recv_response(Some(ANSWER_WITHIN))
            .timeout_global(Some(CONNECTION_MAX))
            .build();
        let hub = format!("{}/", fetcher.hub.trim_end_matches('/'));
        Client { agent: config.into(), limits, hub, token: fetcher.token.clone() }
    }

    /// Downloads the file to `partial` and continues where that file ends. Does not check the bytes.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, sends too much, is silent, or breaks off too often.
    pub(super) fn download(
        &self,
        address: &str,
        partial: &Path,
        bytes: u64,
        watch: &mut Watch<'_>,
    ) -> Result<(), FetchError> {
        let begun_at = length(partial);
        let (mut times, mut counted_from) = (0, begun_at);
        let (mut waited, mut in_vain) = (Duration::ZERO, 0);
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
                Outcome::Throttled(wait) => {
                    waited = waited.saturating_add(wait);
                    if times >= self.limits.reconnects_max || waited > THROTTLED_MAX {
                        let (address, status) = (address.to_owned(), TOO_MANY_REQUESTS);
                        return Err(FetchError::Refused { address, status });
                    }
                    times += 1;
                    pause(wait, "the server limits requests", watch)?;
                }
                // Nothing has arrived yet, so a pull without a network fails quickly.
                Outcome::Broke(detail) if [0, begun_at].contains(&length(partial)) => {
                    return Err(FetchError::Unreachable { address: address.to_owned(), detail });
                }
                Outcome::Broke(_) if times >= self.limits.reconnects_max => {
                    return Err(transfer.cut_off(times + 1));
                }
                Outcome::Broke(_) if length(partial) > have => (times, in_vain) = (times + 1, 0),
                Outcome::Broke(detail) => {
                    let wait = RECONNECT_WAIT * 2_u32.saturating_pow(in_vain);
                    (times, in_vain) = (times + 1, in_vain + 1);
                    pause(wait, &format!("the connection broke ({detail})"), watch)?;
                }
            }
        }
    }

    /// Reads on its own thread, because a blocked read cannot be cancelled. A thread that is left behind ends with its
    /// connection, after [`CONNECTION_MAX`] at most.
    fn connect(&self, address: &str, from: u64) -> Receiver<News> {
        let (news, received) = sync_channel(CHUNKS_WAITING_MAX);
        let agent = self.agent.clone();
        let token = self.token.clone().filter(|_| address.starts_with(&self.hub));
        let ask = Ask { address: address.to_owned(), token, from };
        std::thread::spawn(move || {
            // The receiver is gone, so the result can be dropped.
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
        None if response.status().as_u16() == TOO_MANY_REQUESTS => {
            return tell(News::Throttled(wait_of(&response)));
        }
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

/// The byte of the file at which the response begins: 0 if the server ignores the range. `None`: the server refuses, or
/// sends another range.
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

/// How long a server that limits requests wants hob to wait: the seconds of `Retry-After`, or `t` in `RateLimit`, which
/// Hugging Face sends.
fn wait_of(response: &Response<Body>) -> Duration {
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let resets = || header("RateLimit")?.split(';').find_map(|word| word.trim().strip_prefix("t="));
    let seconds = header("Retry-After").or_else(resets);
    let seconds = seconds.and_then(|seconds| seconds.trim().parse::<u64>().ok());
    seconds.map_or(THROTTLED_USUAL, Duration::from_secs)
}

/// Waits until the server may be asked again.
fn pause(wait: Duration, why: &str, watch: &mut Watch<'_>) -> Result<(), FetchError> {
    watch.pausing(why, wait);
    let since = Instant::now();
    while since.elapsed() < wait {
        watch.check()?;
        std::thread::sleep(LOOK_EVERY.min(wait));
    }
    Ok(())
}

/// One connection's part of a file.
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
                News::Throttled(wait) => return Ok(Outcome::Throttled(wait)),
                News::Failed(error) => {
                    // The next attempt must not request the same impossible range. After any other status it goes on
                    // where this one stopped.
                    if matches!(error, FetchError::Refused { status: 206 | 416, .. }) {
                        clear(self.partial)?;
                    }
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
