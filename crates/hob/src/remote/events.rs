//! The events of a streamed answer of a hob, read from its bytes as they arrive.
//! Events are read no faster than the caller takes them.

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hob_core::Fault;
use hob_wire::{PieceError, Pieces};

use super::Chunks;

/// The events of an answer, up to the last one or to a fault. Events before a fault are still part of the answer.
/// `read` adds what a piece says, and returns whether the answer is over. `None` is the end of the answer's bytes.
pub(super) fn events<E: Send + 'static>(
    chunks: Chunks,
    pieces: Pieces,
    read: impl FnMut(Option<&str>, &mut Vec<E>) -> Result<bool, Fault> + Send + 'static,
) -> BoxStream<'static, Result<E, Fault>> {
    let answer = Box::new(Answer { chunks, pieces, read });
    stream::unfold(Some(answer), async |answer| {
        let mut answer = answer?;
        let chunk = answer.chunks.next().await;
        let mut said = Vec::new();
        let is_over = answer.read_bytes(chunk, &mut said);
        let goes_on = is_over == Ok(false);
        let said = said.into_iter().map(Ok).chain(is_over.err().map(Err));
        Some((stream::iter(said), goes_on.then_some(answer)))
    })
    .flatten()
    .boxed()
}

/// Why a piece could not be read: what the server reported, or else that the piece is `malformed`.
pub(super) fn misread(misread: PieceError, malformed: &str) -> Fault {
    match misread {
        PieceError::Failed(fault) => fault,
        PieceError::Malformed => invalid(malformed),
    }
}

pub(super) fn invalid(detail: impl ToString) -> Fault {
    Fault::InvalidAnswer { detail: detail.to_string() }
}

/// The detail of a fault. Its error text has words before it that continue the name of a server.
pub(super) fn detail(fault: Fault) -> String {
    match fault {
        Fault::Unreachable { detail } | Fault::InvalidAnswer { detail } => detail,
        fault => fault.to_string(),
    }
}

struct Answer<R> {
    chunks: Chunks,
    pieces: Pieces,
    read: R,
}

impl<R> Answer<R> {
    /// Reads all events that are complete with these bytes. `None`: no bytes follow.
    fn read_bytes<E>(
        &mut self,
        chunk: Option<Result<Bytes, String>>,
        said: &mut Vec<E>,
    ) -> Result<bool, Fault>
    where
        R: FnMut(Option<&str>, &mut Vec<E>) -> Result<bool, Fault>,
    {
        let bytes = chunk.transpose().map_err(|detail| Fault::Unreachable { detail })?;
        if let Some(bytes) = &bytes {
            self.pieces.push(bytes).map_err(invalid)?;
        }
        while let Some(piece) = self.pieces.next_piece() {
            if (self.read)(Some(piece.as_str()), said)? {
                return Ok(true);
            }
        }
        if bytes.is_some() {
            return Ok(false);
        }
        let rest = self.pieces.rest();
        let is_over = rest.is_some() && (self.read)(rest.as_deref(), said)?;
        Ok(is_over || (self.read)(None, said)?)
    }
}
