//! Reads the beginning of a file over HTTP: one request for a first range, and more for the rest if the header is longer.
//! The last response is dropped after the header. A server that ignores ranges is read from the start.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::time::Duration;

use ureq::http::Response;
use ureq::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED, LOCATION, RANGE,
};
use ureq::{Agent, Body, BodyReader};

use super::{FindError, Finder};
use crate::fetch::trust;

/// Maximum bytes of a header: in safetensors, 8 bytes with its length, and up to 100 MB.
const HEADER_BYTES_MAX: u64 = 100_000_008;
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of requests per file, in case a server sends very short ranges.
const REQUESTS_MAX: u32 = 4;
/// Limit from the request to the first line of the response.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(30);
/// Limit of one request with all its redirections.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(300);

/// Redirections within the hub; usually there is one.
pub(super) const REDIRECTIONS_MAX: usize = 5;

const MANIFEST_TYPE: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// What to request.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    All,
    /// First and last byte.
    Range(u64, u64),
    Manifest,
}

/// The connections of one search, and their cost.
pub(super) struct Remote {
    pub(super) agent: Agent,
    hub: String,
    token: Option<String>,
    requests: Cell<u32>,
    fetched_bytes: Cell<u64>,
    /// The last change of each file, as its server says it.
    changes: RefCell<BTreeMap<String, String>>,
}

impl Remote {
    pub(super) fn new(finder: &Finder) -> Remote {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(trust())
            .timeout_resolve(Some(finder.limits.connect))
            .timeout_connect(Some(finder.limits.connect))
            .timeout_recv_response(Some(RESPONSE_TIME_MAX.min(finder.limits.silence)))
            .timeout_per_read(Some(finder.limits.silence))
            .timeout_global(Some(REQUEST_TIME_MAX))
            .build();
        Remote {
            agent: config.into(),
            hub: format!("{}/", finder.hub.trim_end_matches('/')),
            token: finder.token.clone(),
            requests: Cell::new(0),
            fetched_bytes: Cell::new(0),
            changes: RefCell::default(),
        }
    }

    /// Number of requests, and bytes of response bodies.
    pub(super) fn spent(&self) -> (u32, u64) {
        (self.requests.get(), self.fetched_bytes.get())
    }

    /// A whole short response, and the address of the next page, if there is one.
    pub(super) fn text(
        &self,
        address: &str,
        bytes_max: u64,
    ) -> Result<(Vec<u8>, Option<String>), FindError> {
        self.whole(address, bytes_max, Wanted::All)
    }

    /// A manifest of a container registry.
    pub(super) fn manifest(&self, address: &str, bytes_max: u64) -> Result<Vec<u8>, FindError> {
        Ok(self.whole(address, bytes_max, Wanted::Manifest)?.0)
    }

    fn whole(
        &self,
        address: &str,
        bytes_max: u64,
        wanted: Wanted,
    ) -> Result<(Vec<u8>, Option<String>), FindError> {
        let response = self.get(address, wanted)?;
        let next = next_page(&response);
        let mut text = Vec::new();
        let body = response.into_body().into_reader();
        body.take(bytes_max).read_to_end(&mut text).map_err(|error| unreachable(address, error))?;
        self.count(text.len());
        if text.len() as u64 == bytes_max {
            return Err(FindError::TooLong { at: address.to_owned(), bytes_max });
        }
        Ok((text, next))
    }

    /// Opens a file and requests its first `first_bytes` bytes.
    pub(super) fn open(
        &self,
        address: &str,
        first_bytes: u64,
    ) -> Result<RemoteFile<'_>, FindError> {
        let mut file = RemoteFile {
            remote: self,
            address: address.to_owned(),
            bytes: Vec::new(),
            position: 0,
            file_bytes: None,
            body: None,
            requests: 0,
        };
        file.request_up_to(first_bytes.saturating_sub(1))?;
        Ok(file)
    }

    fn get(&self, address: &str, wanted: Wanted) -> Result<Response<Body>, FindError> {
        self.count_request();
        let response = self.followed(address, wanted)?;
        // Servers that share an address may give one file several tags, but rarely several times.
        let headers = response.headers();
        let stated = [LAST_MODIFIED, ETAG].into_iter().find_map(|name| headers.get(name));
        if let Some(stated) = stated.and_then(|stated| stated.to_str().ok()) {
            self.changes.borrow_mut().insert(address.to_owned(), stated.to_owned());
        }
        Ok(response)
    }

    /// A redirection drops the token, so those within the hub are followed here, as after a repository was renamed.
    fn followed(&self, asked: &str, wanted: Wanted) -> Result<Response<Body>, FindError> {
        let mut address = asked.to_owned();
        for _ in 0..REDIRECTIONS_MAX {
            let mut request = self.agent.get(&address);
            request = match wanted {
                Wanted::All => request,
                Wanted::Range(first, last) => {
                    request.header(RANGE, format!("bytes={first}-{last}"))
                }
                Wanted::Manifest => request.header(ACCEPT, MANIFEST_TYPE),
            };
            if let Some(token) = self.token_for(&address) {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
                request = request.config().max_redirects(0).max_redirects_will_error(false).build();
            }
            let response = request.call().map_err(|error| unreachable(asked, error))?;
            match (response.status().as_u16(), location(&address, &response)) {
                (200 | 206, _) => return Ok(response),
                (301 | 302 | 303 | 307 | 308, Some(to)) => address = to,
                // The storage's address has a signature.
                _ => return Err(self.refused(asked, &response)),
            }
        }
        Err(unreachable(asked, format!("more than {REDIRECTIONS_MAX} redirections")))
    }

    /// The error for a rejected request. The hub states the reason in `X-Error-Code`.
    pub(super) fn refused(&self, address: &str, response: &Response<Body>) -> FindError {
        let code = response.headers().get("X-Error-Code").and_then(|code| code.to_str().ok());
        let is_of_hub = self.hub_path(address).is_some();
        let address = address.to_owned();
        match (response.status().as_u16(), code) {
            (status @ (401 | 403), _) if !is_of_hub => FindError::Closed { address, status },
            (401 | 403, Some("GatedRepo")) | (403, _) => FindError::Gated { address },
            (401, _) => FindError::Private { address },
            (404, Some("RevisionNotFound")) => FindError::NoRevision { address },
            (404, _) => FindError::Missing { address },
            (status, _) => FindError::Refused { address, status },
        }
    }

    /// When a file whose header was read was changed. `None` if its server does not say.
    pub(super) fn changed_at(&self, address: &str) -> Option<String> {
        self.changes.borrow().get(address).cloned()
    }

    pub(super) fn token_for(&self, address: &str) -> Option<&String> {
        self.token.as_ref().filter(|_| address.starts_with(&self.hub))
    }

    pub(super) fn hub_address(&self) -> &str {
        &self.hub
    }

    /// The path below the hub, if the address belongs to it.
    pub(super) fn hub_path<'a>(&self, address: &'a str) -> Option<&'a str> {
        address.strip_prefix(&self.hub)
    }

    pub(super) fn count_request(&self) {
        self.requests.set(self.requests.get().saturating_add(1));
    }

    fn count(&self, bytes: usize) {
        self.fetched_bytes.set(self.fetched_bytes.get().saturating_add(bytes as u64));
    }
}

/// The target of a redirection.
pub(super) fn location(from: &str, response: &Response<Body>) -> Option<String> {
    let to = response.headers().get(LOCATION)?.to_str().ok()?;
    if !to.starts_with('/') {
        return Some(to.to_owned());
    }
    let host_ends = from.find("://").and_then(|at| Some(at + 3 + from[at + 3..].find('/')?));
    Some(format!("{}{to}", &from[..host_ends.unwrap_or(from.len())]))
}

pub(super) fn unreachable(address: &str, error: impl std::fmt::Display) -> FindError {
    FindError::Unreachable { address: address.to_owned(), detail: error.to_string() }
}

/// `Link: <address>; rel="next"`.
fn next_page(response: &Response<Body>) -> Option<String> {
    let link = response.headers().get("Link")?.to_str().ok()?;
    let next = link.split(',').find(|link| link.contains("rel=\"next\""))?;
    Some(next.split_once('<')?.1.split_once('>')?.0.to_owned())
}

/// A remote file whose beginning is buffered.
pub(super) struct RemoteFile<'r> {
    remote: &'r Remote,
    address: String,
    bytes: Vec<u8>,
    position: u64,
    file_bytes: Option<u64>,
    /// The response that continues after `bytes`.
    body: Option<BodyReader<'static>>,
    requests: u32,
}

impl RemoteFile<'_> {
    /// Length of the file; `None` if the server did not state it.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        self.file_bytes
    }

    /// Requests what follows, up to the byte `last`.
    fn request_up_to(&mut self, last: u64) -> Result<(), FindError> {
        self.requests += 1;
        let have = self.bytes.len() as u64;
        let response = self.remote.get(&self.address, Wanted::Range(have, last))?;
        let number =
            |name| -> Option<u64> { response.headers().get(name)?.to_str().ok()?.parse().ok() };
        if response.status().as_u16() == 206 {
            let range_header =
                response.headers().get(CONTENT_RANGE).and_then(|header| header.to_str().ok());
            let (start, whole) =
                range_header.and_then(content_range).ok_or_else(|| self.wrong_range())?;
            if start != have {
                return Err(self.wrong_range());
            }
            self.file_bytes = self.file_bytes.or(whole);
        } else {
            // The server sends the whole file again.
            self.file_bytes = self.file_bytes.or(number(CONTENT_LENGTH));
            self.bytes.clear();
        }
        self.body = Some(response.into_body().into_reader());
        Ok(())
    }

    fn wrong_range(&self) -> FindError {
        unreachable(&self.address, "the server sent a different byte range than hob requested")
    }

    /// Reads up to `end`, or to the end of the file.
    fn buffer_until(&mut self, end: u64) -> Result<(), FindError> {
        let end = end.min(self.file_bytes.unwrap_or(u64::MAX)).min(HEADER_BYTES_MAX);
        while (self.bytes.len() as u64) < end {
            match &mut self.body {
                Some(_) => self.read_body_until(end)?,
                None if self.requests >= REQUESTS_MAX => return Ok(()),
                None => self.request_up_to(HEADER_BYTES_MAX - 1)?,
            }
        }
        Ok(())
    }

    /// Reads the open response up to `end`, or to its own end.
    fn read_body_until(&mut self, end: u64) -> Result<(), FindError> {
        let Some(body) = &mut self.body else { return Ok(()) };
        let mut chunk = vec![0; CHUNK_BYTES];
        while (self.bytes.len() as u64) < end {
            let read = body.read(&mut chunk).map_err(|error| unreachable(&self.address, error))?;
            if read == 0 {
                self.body = None;
                return Ok(());
            }
            self.bytes.extend_from_slice(&chunk[..read]);
            self.remote.count(read);
        }
        Ok(())
    }
}

/// Parses `bytes 0-9/100`: first byte, and length of the file.
fn content_range(header: &str) -> Option<(u64, Option<u64>)> {
    let (range, whole) = header.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-')?.0.parse().ok()?;
    Some((start, whole.parse().ok()))
}

impl Read for RemoteFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.position.saturating_add(buffer.len() as u64);
        self.buffer_until(end).map_err(io::Error::other)?;
        let start = usize::try_from(self.position).unwrap_or(usize::MAX).min(self.bytes.len());
        let buffered = &self.bytes[start..];
        let count = buffered.len().min(buffer.len());
        buffer[..count].copy_from_slice(&buffered[..count]);
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for RemoteFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
            SeekFrom::End(_) => None,
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
