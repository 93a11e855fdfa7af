//! Watches a running worker: whether its process runs, whether its engine makes progress, and whether
//! it is still needed.

use tokio::time::{Instant, timeout_at};

use super::SupervisorOptions;
use super::command::{EndReason, EndRequest};
use super::keep_alive::KeepAliveCell;
use super::link::FrameSource;
use super::session::WorkerSession;
use crate::frame::Frame;

pub(super) struct Watchdog {
    last_frame: Instant,
    /// When the ping was sent that the engine has not answered.
    unanswered_since: Option<Instant>,
}

impl Watchdog {
    pub(super) fn new() -> Watchdog {
        Watchdog { last_frame: Instant::now(), unanswered_since: None }
    }

    /// The worker's engine sent a frame.
    pub(super) fn engine_answered(&mut self) {
        self.unanswered_since = None;
    }

    /// The worker's next frame. It may be dropped before it is ready: no byte is lost.
    ///
    /// # Errors
    /// The socket is closed or broken, or the process has sent nothing for
    /// [`SupervisorOptions::silence_limit`]. Bytes that arrived while this task was not run count.
    pub(super) async fn next_frame(
        &mut self,
        source: &mut FrameSource,
        options: &SupervisorOptions,
    ) -> Result<Frame, EndReason> {
        match timeout_at(self.last_frame + options.silence_limit, source.next()).await {
            Ok(frame) => {
                self.last_frame = Instant::now();
                frame
            }
            Err(_) => {
                let seconds = options.silence_limit.as_secs_f32();
                Err(EndReason::Unfit(format!("its process sent nothing for {seconds} s")))
            }
        }
    }

    /// Called every [`SupervisorOptions::ping_every`]. Returns why the worker has to end, if it has to.
    pub(super) fn check(
        &mut self,
        session: &WorkerSession,
        options: &SupervisorOptions,
        keep_alive: &KeepAliveCell,
    ) -> Option<EndReason> {
        if session.in_flight() == 0 {
            self.unanswered_since = None;
            let is_over = keep_alive.expires_at(session).is_some_and(|at| Instant::now() >= at);
            // A request may have come between the two checks. Then the worker stays.
            let leaves = is_over && session.leave_if_idle();
            return leaves.then_some(EndReason::Requested(EndRequest::Unload));
        }
        match self.unanswered_since {
            None => {
                session.ping();
                self.unanswered_since = Some(Instant::now());
                None
            }
            // The engine may have stopped up to one period before the ping was sent.
            Some(since) => {
                (since.elapsed() + options.ping_every >= options.stall_limit).then(|| {
                    let seconds = options.stall_limit.as_secs_f32();
                    EndReason::Unfit(format!("its engine did not finish a step within {seconds} s"))
                })
            }
        }
    }
}
