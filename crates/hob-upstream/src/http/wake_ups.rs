//! The wake-ups of one connection: hyper's halves of a connection wake each other while one task polls both.
//! Each such wake-up would poll the whole task once more, and start an idle thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// The task does not poll the connection now. A wake-up goes to the task.
const IDLE: u8 = 0;
/// The task polls the connection.
const POLLED: u8 = 1;
/// The task polls the connection, and there was a wake-up.
const POLLED_AND_WOKEN: u8 = 2;

/// Passes wake-ups on to the task that waits, except those during a poll that is successful.
#[derive(Debug)]
pub(super) struct WakeUps {
    shared: Arc<Shared>,
    /// The waker of `shared`, made once.
    waker: Waker,
}

#[derive(Debug, Default)]
struct Shared {
    /// One of the constants above. It starts as [`IDLE`].
    state: AtomicU8,
    task: AtomicWaker,
}

impl WakeUps {
    pub(super) fn new() -> WakeUps {
        let shared = Arc::<Shared>::default();
        WakeUps { waker: Waker::from(Arc::clone(&shared)), shared }
    }

    /// Polls for the task of `cx`. After [`Poll::Pending`] every wake-up reaches the task, those during this poll included.
    pub(super) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Shared { state, task } = &*self.shared;
        task.register(cx.waker());
        state.store(POLLED, Ordering::SeqCst);
        let polled = poll(&mut Context::from_waker(&self.waker));
        let was_woken = state.swap(IDLE, Ordering::SeqCst) == POLLED_AND_WOKEN;
        if was_woken && polled.is_pending() {
            cx.waker().wake_by_ref();
        }
        polled
    }

    /// No task waits any more.
    pub(super) fn forget_task(&self) {
        drop(self.shared.task.take());
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        const ORDER: Ordering = Ordering::SeqCst;
        let noted = self.state.compare_exchange(POLLED, POLLED_AND_WOKEN, ORDER, ORDER);
        if noted == Err(IDLE) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts its wake-ups.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn only_wake_ups_that_the_task_needs_reach_it() {
        let (task, wake_ups) = (Arc::<Task>::default(), WakeUps::new());
        let waker = Waker::from(Arc::clone(&task));
        let woken = || task.0.swap(0, Ordering::SeqCst);
        let mut kept = None;
        let mut poll = |result: Poll<()>, wakes: bool| {
            wake_ups.poll(&mut Context::from_waker(&waker), |cx| {
                kept = Some(cx.waker().clone());
                if wakes {
                    cx.waker().wake_by_ref();
                }
                result
            })
        };
        for (result, wakes, expected) in [
            (Poll::Ready(()), false, 0),
            (Poll::Ready(()), true, 0),
            (Poll::Pending, false, 0),
            (Poll::Pending, true, 1),
        ] {
            assert_eq!((poll(result, wakes), woken()), (result, expected), "{result:?} {wakes}");
        }
        let kept = kept.expect("it was polled");
        kept.wake_by_ref();
        assert_eq!(woken(), 1, "it waits");
        kept.wake_by_ref();
        assert_eq!(woken(), 0, "it was woken before, and has not polled since");
        let _pending = wake_ups.poll(&mut Context::from_waker(&waker), |_| Poll::<()>::Pending);
        wake_ups.forget_task();
        kept.wake();
        assert_eq!(woken(), 0, "it waits no more");
    }
}
