//! A client's TCP stream, with two rules that HTTP libraries leave open: a client that reads nothing for too
//! long is disconnected, and only a complete answer ends cleanly.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// If hob answers before it has read the request (a body that is too large), it discards what the client
/// still sends until the client is silent for this long. Otherwise a TCP reset could destroy the answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_TIME_MAX: Duration = Duration::from_secs(30);
const LINGER_BYTES_MAX: usize = 256 << 20;

#[derive(Debug)]
pub(crate) struct Socket {
    inner: TcpStream,
    stall_time_max: Duration,
    /// Runs while the client reads nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    ending: Ending,
}

#[derive(Debug)]
enum Ending {
    Open,
    Lingering { until: Pin<Box<Sleep>>, latest: Instant, bytes: usize },
    Clean,
}

impl Socket {
    pub(crate) fn new(inner: TcpStream, stall_time_max: Duration) -> Socket {
        Socket { inner, stall_time_max, stalled: None, ending: Ending::Open }
    }

    /// A blocked write starts the timer; progress stops it.
    fn unless_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stall_time_max = self.stall_time_max;
        let clock = self.stalled.get_or_insert_with(|| Box::pin(sleep(stall_time_max)));
        clock.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Ready when the client has closed its side, or when its time is over.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Ending::Lingering { until, latest, bytes } = &mut self.ending else {
            return Poll::Ready(());
        };
        let mut scratch = [0; 8 << 10];
        let before = *bytes;
        while *bytes < LINGER_BYTES_MAX {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.inner).poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    if *bytes > before {
                        until.as_mut().reset((Instant::now() + LINGER).min(*latest));
                    }
                    return until.as_mut().poll(cx);
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(()),
                Poll::Ready(Ok(())) => *bytes += buffer.filled().len(),
            }
        }
        Poll::Ready(())
    }
}

impl Drop for Socket {
    /// An answer that was cut off ends in a reset. With HTTP/1.0 (a proxy's default) the end of the
    /// stream is the end of the answer, so a clean close would make half an answer look complete.
    fn drop(&mut self) {
        if matches!(self.ending, Ending::Open)
            && let Err(error) = self.inner.set_zero_linger()
        {
            tracing::debug!(%error, "a broken connection could not be reset");
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.unless_stalled(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.unless_stalled(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.ending, Ending::Open) {
            ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
            let latest = Instant::now() + LINGER_TIME_MAX;
            self.ending = Ending::Lingering { until: Box::pin(sleep(LINGER)), latest, bytes: 0 };
        }
        ready!(self.poll_linger(cx));
        self.ending = Ending::Clean;
        Poll::Ready(Ok(()))
    }
}
