//! The mock at its cheapest, for measuring what stands in front of it: whole answers and the models `fast`
//! and `paced`, written from bytes that were made before. Deliberately absent: every other fault, counts,
//! and JSON; a request is searched for the three words that tell the answers apart.

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::measured::{self, PACE, TOKENS, whole_body};
use crate::head;

/// Events of one write of a `fast` answer: as many as hyper gathers, which most servers in Rust are made of.
const EVENTS_PER_WRITE: usize = 16;
/// A request's body; those that measure are a few hundred bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
const MODELS: &str = r#"{"object":"list","data":[{"id":"fast","object":"model","owned_by":"mock"},{"id":"paced","object":"model","owned_by":"mock"}]}"#;
const NOTHING: &str = r#"{"error":{"message":"nothing is here","code":404}}"#;

/// Answers on this listener until it is dropped.
///
/// # Errors
/// The listener fails.
pub async fn serve_quick(listener: TcpListener) -> io::Result<()> {
    let answers = Arc::new(Answers::prepare());
    let mut readers = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        readers.spawn(converse(socket, Arc::clone(&answers)));
        // Readers who left are forgotten.
        while readers.try_join_next().is_some() {}
    }
}

async fn converse(mut socket: TcpStream, answers: Arc<Answers>) -> io::Result<()> {
    let mut unread = BytesMut::with_capacity(16 << 10);
    loop {
        match take_request(&mut unread)? {
            Some(asked) => answers.write(asked, &mut socket).await?,
            None if socket.read_buf(&mut unread).await? == 0 => return Ok(()),
            None => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Whole,
    Fast,
    Paced,
    /// The whole answer's words, streamed.
    Small,
    Models,
    Unknown,
}

/// The next request, once it is here as a whole.
fn take_request(unread: &mut BytesMut) -> io::Result<Option<Asked>> {
    let Some(head_bytes) = head::length(unread) else {
        return if unread.len() > head::BYTES_MAX { Err(refusal()) } else { Ok(None) };
    };
    let head = &unread[..head_bytes];
    let is_post = head.starts_with(b"POST ");
    // A body without a length would have to be read in chunks, and nobody sends one.
    let body_bytes = match head::content_length(head) {
        Some(bytes) if bytes <= BODY_BYTES_MAX => bytes,
        None if !is_post => 0,
        _ => return Err(refusal()),
    };
    let Some(body) = unread.get(head_bytes..head_bytes + body_bytes) else {
        return Ok(None);
    };
    let asked = if is_post { asked(body) } else { looked_up(head) };
    unread.advance(head_bytes + body_bytes);
    Ok(Some(asked))
}

fn refusal() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a request that the quick mock does not read")
}

/// Both ways in which clients write JSON, with and without a space, are known here.
fn asked(body: &[u8]) -> Asked {
    let has = |word: &[u8]| memmem::find(body, word).is_some();
    let streams = has(b"\"stream\":true") || has(b"\"stream\": true");
    let (paced, fast, small) = (has(b"\"paced\""), has(b"\"fast\""), has(b"\"small\""));
    match (paced, fast, small) {
        (false, false, false) => Asked::Unknown,
        _ if !streams => Asked::Whole,
        (true, _, _) => Asked::Paced,
        (_, true, _) => Asked::Fast,
        _ => Asked::Small,
    }
}

fn looked_up(head: &[u8]) -> Asked {
    if head.starts_with(b"GET /v1/models ") { Asked::Models } else { Asked::Unknown }
}

/// Every answer, as it goes over the wire.
#[derive(Debug)]
struct Answers {
    whole: Bytes,
    models: Bytes,
    unknown: Bytes,
    /// What is written at once, each.
    fast: Vec<Bytes>,
    paced: Vec<Bytes>,
    small: Vec<Bytes>,
}

impl Answers {
    fn prepare() -> Answers {
        let events = measured::events();
        Answers {
            whole: json("200 OK", whole_body()),
            models: json("200 OK", MODELS.as_bytes()),
            unknown: json("404 Not Found", NOTHING.as_bytes()),
            fast: writes(events.chunks(EVENTS_PER_WRITE)),
            paced: writes(paces(events)),
            small: writes(std::iter::once(measured::small())),
        }
    }

    async fn write(&self, asked: Asked, socket: &mut TcpStream) -> io::Result<()> {
        match asked {
            Asked::Whole => socket.write_all(&self.whole).await,
            Asked::Models => socket.write_all(&self.models).await,
            Asked::Unknown => socket.write_all(&self.unknown).await,
            Asked::Fast => write_each(&self.fast, socket).await,
            Asked::Small => write_each(&self.small, socket).await,
            Asked::Paced => write_paced(&self.paced, socket).await,
        }
    }
}

/// The role with the first token, the other tokens alone, and the end with the last of them.
fn paces(events: &[Bytes]) -> impl Iterator<Item = &[Bytes]> {
    let (first, others) = events.split_at(2);
    let (alone, last) = others.split_at(TOKENS - 2);
    std::iter::once(first).chain(alone.chunks(1)).chain(std::iter::once(last))
}

async fn write_each(writes: &[Bytes], socket: &mut TcpStream) -> io::Result<()> {
    for bytes in writes {
        socket.write_all(bytes).await?;
    }
    Ok(())
}

/// At absolute times, so that a late write does not delay those after it.
async fn write_paced(writes: &[Bytes], socket: &mut TcpStream) -> io::Result<()> {
    let begun = Instant::now();
    for (place, bytes) in (0..).zip(writes) {
        // A timer has steps of 1 ms, and would hold up the first token, too.
        if place > 0 {
            sleep_until(begun + PACE * place).await;
        }
        socket.write_all(bytes).await?;
    }
    Ok(())
}

fn json(status: &str, body: &[u8]) -> Bytes {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat().into()
}

/// One chunk for each event; the head goes with the first write and the last chunk with the last.
fn writes<'a>(groups: impl Iterator<Item = &'a [Bytes]>) -> Vec<Bytes> {
    let mut writes: Vec<Vec<u8>> = groups.map(chunks).collect();
    if let Some(first) = writes.first_mut() {
        first.splice(0..0, STREAM_HEAD.iter().copied());
    }
    if let Some(last) = writes.last_mut() {
        last.extend_from_slice(LAST_CHUNK);
    }
    writes.into_iter().map(Bytes::from).collect()
}

fn chunks(events: &[Bytes]) -> Vec<u8> {
    let chunk =
        |event: &Bytes| [format!("{:x}\r\n", event.len()).as_bytes(), event, b"\r\n"].concat();
    events.iter().flat_map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_words_tell_the_answers_apart() {
        let rows = [
            (r#"{"model":"fast"}"#, Asked::Whole),
            (r#"{"model": "fast", "stream": true}"#, Asked::Fast),
            (r#"{"stream":true,"model":"paced"}"#, Asked::Paced),
            (r#"{"stream":false,"model":"paced"}"#, Asked::Whole),
            (r#"{"model":"small","stream":true}"#, Asked::Small),
            (r#"{"model":"small"}"#, Asked::Whole),
            (r#"{"model":"slow","stream":true}"#, Asked::Unknown),
        ];
        for (body, expected) in rows {
            assert_eq!(asked(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn a_request_is_taken_once_it_is_whole() {
        let body = r#"{"model":"fast"}"#;
        let request = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        for cut in 0..request.len() {
            let mut unread = BytesMut::from(&request.as_bytes()[..cut]);
            assert_eq!(take_request(&mut unread).unwrap(), None, "{cut}");
            unread.extend_from_slice(&request.as_bytes()[cut..]);
            assert_eq!(take_request(&mut unread).unwrap(), Some(Asked::Whole), "{cut}");
            assert!(unread.is_empty());
        }
        let mut endless = BytesMut::from(&b"POST / HTTP/1.1\r\n\r\n{"[..]);
        assert!(take_request(&mut endless).is_err());
    }

    #[test]
    fn answers_are_written_as_events_come() {
        let answers = Answers::prepare();
        assert_eq!(answers.fast.len(), measured::events().len().div_ceil(EVENTS_PER_WRITE));
        assert_eq!(answers.paced.len(), TOKENS);
        for writes in [&answers.fast, &answers.paced] {
            let all = writes.concat();
            assert!(all.starts_with(STREAM_HEAD) && all.ends_with(LAST_CHUNK));
            assert_eq!(memmem::find_iter(&all, "data: ").count(), 68);
        }
    }
}
