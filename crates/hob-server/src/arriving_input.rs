//! The input of a running stream: pieces of sound or of text, and whether more will come.
//! As long as more comes, a pause is the speaker's or the writer's, and no time limit of the server counts. The supervisor of
//! a worker still ends one that hangs, and upstreams have time limits of their own.

use futures::stream::{self, Stream};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::generic_answer::Input;

/// The sender's end. Dropping it completes the input.
pub(crate) struct InputSender<T> {
    pub(crate) pieces: Sender<T>,
    _complete: DropGuard,
}

/// The model's end.
pub(crate) struct ArrivingInput<T> {
    pieces: Receiver<T>,
    complete: CancellationToken,
}

/// At most so many pieces wait for the model.
pub(crate) fn arriving<T>(pieces_max: usize) -> (InputSender<T>, ArrivingInput<T>) {
    let (sender, pieces) = channel(pieces_max);
    let complete = CancellationToken::new();
    let sender = InputSender { pieces: sender, _complete: complete.clone().drop_guard() };
    (sender, ArrivingInput { pieces, complete })
}

impl<T: Send + 'static> ArrivingInput<T> {
    /// The pieces, and what their answer knows of them.
    pub(crate) fn split(self) -> (impl Stream<Item = T> + Send + Unpin + 'static, Input) {
        let ArrivingInput { mut pieces, complete } = self;
        (stream::poll_fn(move |cx| pieces.poll_recv(cx)), Input::Arriving(complete))
    }
}
