//! Waiting for memory that others have, before a worker is started.
//! Commands are heeded meanwhile: a wish to load says that the model is still wanted.

use std::pin::pin;
use std::time::Duration;

use hob_core::{MemoryDecision, MemoryRequest, MemoryReservation, ModelError};
use tokio::time::{Instant, sleep};

use super::{Actor, Command, Wish, tell, wish};
use crate::supervisor::Phase;

/// Between two looks at a memory that others have.
const ROOM_LOOK: Duration = Duration::from_millis(50);

/// Room is no longer waited for when nobody has asked for the model for so long.
const WANTED_FOR: Duration = Duration::from_secs(60);

/// Why no process is started.
pub(super) enum NoPlace {
    Wished(Wish),
    /// Waiting does not help, or nobody waits any more.
    Refused(ModelError),
}

impl Actor {
    /// Waits until there is memory for another process; it is kept for whoever holds the place.
    pub(super) async fn find_room(&mut self) -> Result<Option<MemoryReservation>, NoPlace> {
        let Some(room) = self.options.room.clone() else { return Ok(None) };
        let mut queued = room.queue();
        let mut wanted_at = Instant::now();
        loop {
            match self.ask(&mut *queued, &mut wanted_at).await? {
                MemoryDecision::Granted(place) => return Ok(Some(place)),
                MemoryDecision::Never(error) => return Err(NoPlace::Refused(error)),
                MemoryDecision::Later(shortage) if wanted_at.elapsed() >= WANTED_FOR => {
                    let error = self.status.borrow().no_room(shortage);
                    return Err(NoPlace::Refused(error));
                }
                MemoryDecision::Later(shortage) => self.publish(Phase::Waiting { shortage }),
                MemoryDecision::Soon => self.publish_loading(Instant::now()),
            }
            self.while_heeding(sleep(ROOM_LOOK), &mut wanted_at).await?;
        }
    }

    async fn ask(
        &mut self,
        queued: &mut dyn MemoryRequest,
        wanted_at: &mut Instant,
    ) -> Result<MemoryDecision, NoPlace> {
        self.while_heeding(queued.ask(), wanted_at).await
    }

    /// Goes on with it, unless a command wishes for something else.
    async fn while_heeding<T>(
        &mut self,
        future: impl Future<Output = T>,
        wanted_at: &mut Instant,
    ) -> Result<T, NoPlace> {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                done = &mut future => return Ok(done),
                command = self.commands.recv() => match command {
                    // Without a process it takes no memory.
                    Some(Command::UnloadIfIdle(answer)) => tell(answer, true),
                    Some(Command::Load) => *wanted_at = Instant::now(),
                    command => if let Some(wish) = wish(command) {
                        return Err(NoPlace::Wished(wish));
                    },
                },
            }
        }
    }
}
