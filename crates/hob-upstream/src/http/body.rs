//! A request body as pieces that are already in memory. The pieces are not joined, so a form shares its file
//! with other owners of the same bytes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pieces: VecDeque<Bytes>,
}

impl<T: Into<Bytes>> FromIterator<T> for Body {
    fn from_iter<I: IntoIterator<Item = T>>(pieces: I) -> Body {
        let pieces = pieces.into_iter().map(T::into).filter(|piece| !piece.is_empty());
        Body { pieces: pieces.collect() }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The exact size, so that servers do not have to read chunked bodies.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}
