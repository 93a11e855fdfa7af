//! Two measurements on one machine would disturb each other, so the later one waits for its turn.
//! All measurements that write to one folder of records share one queue, whatever they measure.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use hob_bench::plan::{QueueError, Ticket, waiting};
use serde_json::json;

use crate::failure::{CliResult, Exit, Failure};
use crate::printer::Printer;
use crate::signals::interrupted;

/// Tickets, in the folder of records.
const QUEUE: &str = ".queue";

/// What a measurement does while another one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Awaited,
    /// It fails.
    AtOnce,
}

impl Turn {
    pub(super) fn of(no_wait: bool) -> Turn {
        if no_wait { Turn::AtOnce } else { Turn::Awaited }
    }

    /// Until the ticket is dropped, no other measurement with this folder of records starts.
    pub(super) fn take(
        self,
        records: &Path,
        name: &str,
        (stop, printer): (&AtomicBool, &Printer),
    ) -> CliResult<Ticket> {
        let ticket = Ticket::draw(&records.join(QUEUE), name).map_err(unqueued)?;
        if let Some(first) = ticket.before().map_err(unqueued)?.first() {
            let busy = format!("{} measures already (process {})", first.name, first.pid);
            if self == Turn::AtOnce {
                let failure = Failure::server(busy);
                return Err(failure.hint("leave out --no-wait: hob then waits until it ends"));
            }
            printer.note(format_args!("{busy}; {name} waits for its turn"));
        }
        ticket.wait(stop).map_err(unqueued)?;
        Ok(ticket)
    }
}

/// Prints the measurement that runs, and those that wait for it.
pub(super) fn line_up((records, as_json): (&Path, bool), printer: &Printer) -> CliResult<Exit> {
    let waiting = waiting(&records.join(QUEUE)).map_err(unqueued)?;
    for (place, who) in waiting.iter().enumerate() {
        let state = if place == 0 { "runs" } else { "waits" };
        printer.data(match as_json {
            true => json!({ "state": state, "name": who.name, "pid": who.pid }).to_string(),
            false => format!("{state}  {}  (process {})", who.name, who.pid),
        })?;
    }
    if waiting.is_empty() {
        printer.note("nothing is being measured");
    }
    Ok(Exit::Done)
}

fn unqueued(error: QueueError) -> Failure {
    match error {
        QueueError::Io { .. } => Failure::internal(error),
        QueueError::Stopped => interrupted(),
    }
}
