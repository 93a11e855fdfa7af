//! Reads text from stdin while it is being written, so that speech starts before the writer has ended.
//! Bytes become characters here. Text that is not UTF-8 is an error; a byte order mark is left out.

use std::io::{self, Read};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task;
use tokio::time::timeout;

use crate::failure::{CliResult, Failure};

const READ_BYTES: usize = 8 << 10;
/// Pieces that wait to be spoken. Beyond this number the writer has to wait.
const PIECES_MAX: usize = 16;

/// A line is spoken if nothing follows for this long: then an empty piece says "speak now". This is longer than a
/// model takes from token to token, so a sentence that continues after a line break is not cut.
const PAUSE_MIN: Duration = Duration::from_millis(300);

/// Pieces of the text, and the error of reading it. After an error the stream of pieces stays open, so that
/// an incomplete text is never spoken as a complete one.
pub(crate) struct StdinText {
    /// An empty piece means that the writer pauses after a line: what has arrived can be spoken now.
    pub(crate) pieces: BoxStream<'static, String>,
    failure: oneshot::Receiver<Broken>,
}

/// The sender keeps the text from ending.
type Broken = (Failure, mpsc::Sender<String>);

impl StdinText {
    pub(crate) fn read() -> StdinText {
        StdinText::of(io::stdin())
    }

    fn of(input: impl Read + Send + 'static) -> StdinText {
        let (pieces, arriving) = mpsc::channel(PIECES_MAX);
        let (broken, failure) = oneshot::channel();
        // Ends with its input, or when the receiver is dropped.
        task::spawn_blocking(move || {
            if let Err(failure) = send(input, &pieces) {
                // The receiver was dropped.
                drop(broken.send((failure, pieces)));
            }
        });
        let arriving = stream::unfold((arriving, false), |(mut arriving, line_ended)| async move {
            let next = arriving.recv();
            let piece = if line_ended {
                timeout(PAUSE_MIN, next).await.unwrap_or_else(|_| Some(String::new()))
            } else {
                next.await
            }?;
            let line_ended = piece.ends_with('\n');
            Some((piece, (arriving, line_ended)))
        });
        StdinText { pieces: arriving.boxed(), failure }
    }

    /// Reads all of it, up to a limit.
    ///
    /// # Errors
    /// The text is not UTF-8, is longer than `bytes_max`, or cannot be read.
    pub(crate) async fn whole(self, bytes_max: usize) -> CliResult<String> {
        let (mut pieces, broken) = self.split();
        let gathered = async {
            let mut whole = String::new();
            while let Some(piece) = pieces.next().await {
                whole.push_str(&piece);
                if whole.len() > bytes_max {
                    let sentence = format!("the text on stdin is longer than {bytes_max} bytes");
                    return Err(Failure::usage(sentence));
                }
            }
            Ok(whole)
        };
        tokio::select! {
            whole = gathered => whole,
            failure = broken => Err(failure),
        }
    }

    /// The text, and a future that ends only if reading fails.
    pub(crate) fn split(self) -> (BoxStream<'static, String>, impl Future<Output = Failure>) {
        let failure = self.failure;
        let broken = async move {
            match failure.await {
                Ok((failure, _)) => failure,
                Err(_) => std::future::pending().await,
            }
        };
        (self.pieces, broken)
    }
}

fn send(mut input: impl Read, pieces: &mpsc::Sender<String>) -> CliResult<()> {
    let mut decoder = Utf8::default();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let count = match input.read(&mut bytes) {
            Ok(0) => return decoder.end(),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io("cannot read stdin", &error)),
        };
        let piece = decoder.push(&bytes[..count])?;
        let listener_left = !piece.is_empty() && pieces.blocking_send(piece).is_err();
        if listener_left {
            return Ok(());
        }
    }
}

/// Joins the bytes of characters that were cut between two reads.
#[derive(Debug, Default)]
struct Utf8 {
    cut: Vec<u8>,
    decoded_bytes: usize,
}

impl Utf8 {
    fn push(&mut self, bytes: &[u8]) -> CliResult<String> {
        let mut all = std::mem::take(&mut self.cut);
        all.extend_from_slice(bytes);
        let valid = match std::str::from_utf8(&all) {
            Ok(_) => all.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(error) => return Err(self.invalid(error.valid_up_to())),
        };
        self.cut = all.split_off(valid);
        let text = String::from_utf8(all).map_err(Failure::internal)?;
        // Programs of Windows write a byte order mark.
        let mark = text.strip_prefix('\u{feff}').filter(|_| self.decoded_bytes == 0);
        self.decoded_bytes += valid;
        Ok(mark.map(str::to_owned).unwrap_or(text))
    }

    fn end(&self) -> CliResult<()> {
        if self.cut.is_empty() { Ok(()) } else { Err(self.invalid(0)) }
    }

    fn invalid(&self, at: usize) -> Failure {
        let byte = self.decoded_bytes + at;
        Failure::usage(format!("the text on stdin is not UTF-8 at byte {byte}"))
            .hint("convert it first: iconv -f latin1 -t utf-8")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::failure::Exit;

    #[test]
    fn where_the_bytes_are_cut_does_not_matter() {
        let text = "\u{feff}a€ü🦀\u{feff}b";
        for size in 1..=text.len() {
            let mut decoder = Utf8::default();
            let pieces: CliResult<Vec<String>> =
                text.as_bytes().chunks(size).map(|chunk| decoder.push(chunk)).collect();
            let read = pieces.expect("UTF-8").concat();
            assert_eq!(read, "a€ü🦀\u{feff}b", "cut every {size} bytes");
            assert_eq!(decoder.end(), Ok(()));
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_rejected_with_its_position() {
        let mut decoder = Utf8::default();
        decoder.push(b"abc").expect("ASCII");
        let failure = decoder.push(b"d\xffe").expect_err("not UTF-8");
        assert_eq!(failure.sentence, "the text on stdin is not UTF-8 at byte 4");
        let mut decoder = Utf8::default();
        decoder.push("é".as_bytes().split_last().expect("two bytes").1).expect("half a letter");
        assert!(decoder.end().is_err());
    }

    #[tokio::test]
    async fn a_whole_text_has_a_limit() {
        let whole = |text: &'static [u8]| StdinText::of(text).whole(5);
        assert_eq!(whole(b"whole").await.as_deref(), Ok("whole"));
        let long = whole(b"longer").await.expect_err("too long");
        assert_eq!(long.sentence, "the text on stdin is longer than 5 bytes");
        let broken = whole(b"a\xff").await.expect_err("not UTF-8");
        assert_eq!(broken.sentence, "the text on stdin is not UTF-8 at byte 1");
    }

    #[tokio::test]
    async fn a_pause_after_a_line_is_reported_as_an_empty_piece() {
        let (theirs, mut ours) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let (mut pieces, _broken) = StdinText::of(theirs).split();
        for (written, read) in
            [("One.\n", &["One.\n", ""][..]), ("Tw", &["Tw"]), ("o.\n", &["o.\n", ""])]
        {
            ours.write_all(written.as_bytes()).expect("written");
            for piece in read {
                assert_eq!(pieces.next().await.as_deref(), Some(*piece));
            }
        }
        drop(ours);
        assert_eq!(pieces.next().await, None);
    }

    #[tokio::test]
    async fn a_text_that_breaks_does_not_end() {
        let (mut pieces, broken) = StdinText::of(&b"whole\xff"[..]).split();
        let failure = tokio::select! {
            biased;
            piece = pieces.next() => panic!("the text ended, or went on: {piece:?}"),
            failure = broken => failure,
        };
        assert_eq!(failure.exit, Exit::Usage);
        let (pieces, _broken) = StdinText::of(&b"whole"[..]).split();
        assert_eq!(pieces.collect::<Vec<_>>().await, ["whole"]);
    }
}
