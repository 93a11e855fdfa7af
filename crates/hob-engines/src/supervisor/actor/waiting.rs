//! Waits for memory that other models hold, before a worker starts.
//! Commands are followed meanwhile. A command to load says that the model is still needed.

use std::pin::pin;
use std::time::Duration;

use hob_core::{MemoryDecision, MemoryReservation};
use tokio::time::{Instant, sleep};

use super::{Actor, AttemptEnd, Command, end_request, reply};
use crate::supervisor::Phase;

/// Between two checks for free memory.
const ROOM_LOOK: Duration = Duration::from_millis(50);

/// The wait ends when no request needed the model for this long.
const WANTED_FOR: Duration = Duration::from_secs(60);

impl Actor {
    /// Waits until there is memory for another process. The returned value reserves it; `None`: memory is not managed.
    pub(super) async fn find_room(&mut self) -> Result<Option<MemoryReservation>, AttemptEnd> {
        let Some(room) = self.options.room.clone() else { return Ok(None) };
        let mut queued = room.queue();
        let mut wanted_at = Instant::now();
        loop {
            match self.while_obeying(queued.try_reserve(), &mut wanted_at).await? {
                MemoryDecision::Granted(place) => return Ok(Some(place)),
                MemoryDecision::Never(error) => return Err(AttemptEnd::Refused(error)),
                MemoryDecision::Later(shortage) if wanted_at.elapsed() >= WANTED_FOR => {
                    let error = self.status.borrow().no_room(shortage);
                    return Err(AttemptEnd::Refused(error));
                }
                MemoryDecision::Later(shortage) => self.publish(Phase::Waiting { shortage }),
                MemoryDecision::Soon => self.publish_loading(Instant::now()),
            }
            self.while_obeying(sleep(ROOM_LOOK), &mut wanted_at).await?;
        }
    }

    /// Awaits `future`, unless a command ends the wait.
    async fn while_obeying<T>(
        &mut self,
        future: impl Future<Output = T>,
        wanted_at: &mut Instant,
    ) -> Result<T, AttemptEnd> {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                done = &mut future => return Ok(done),
                command = self.commands.recv() => match command {
                    // Without a process the model takes no memory.
                    Some(Command::UnloadIfIdle(answer)) => reply(answer, true),
                    Some(Command::Load) => *wanted_at = Instant::now(),
                    command => if let Some(request) = end_request(command) {
                        return Err(AttemptEnd::Requested(request));
                    },
                },
            }
        }
    }
}
