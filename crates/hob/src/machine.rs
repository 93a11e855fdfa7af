//! This machine with its name and its stored measurements, and how its memory is measured.
//! Predictions use `machine_args.rs`, which leaves out hidden cards.

use std::time::Instant;

use hob_engines::timing::engine_version;
use hob_machine::bandwidth::{self, Measured};
use hob_machine::{MachineFacts, MachineStore, probe};

use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::printer::Printer;

/// This machine, with stored measurements.
pub(crate) fn here(app: &App<'_>) -> MachineFacts {
    let mut known = probe();
    machine_store(app).merge_into(&mut known, &engine_version());
    known
}

/// The name of this machine. `None`: it is no text.
pub(crate) fn host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

pub(crate) fn machine_store(app: &App<'_>) -> MachineStore {
    MachineStore::in_home(&app.settings.home)
}

/// Measures the memory bandwidth; takes a second or two.
///
/// # Errors
/// There is too little memory free.
pub(crate) fn measure(known: &mut MachineFacts, printer: &Printer) -> CliResult<Measured> {
    let spinner = printer.spinner("measuring how fast memory is");
    let started = Instant::now();
    let measured = bandwidth::measure(known.machine.cpu.threads as usize);
    spinner.finish_and_clear();
    let measured = measured.map_err(Failure::internal)?;
    if measured.is_noisy() {
        printer.note("the machine was busy during the measurement, so its memory may be up to 30 % faster than measured; `hob fit machine --measure` measures it again");
    }
    printer.faint(format!("measured memory for {:.1} s", started.elapsed().as_secs_f64()));
    known.set_bandwidth(measured.fact());
    Ok(measured)
}

/// Stores the measurements for the next command. A failure to store them is not an error.
pub(crate) fn keep(known: &MachineFacts, app: &App<'_>) {
    if let Err(error) = machine_store(app).keep(known) {
        app.printer.note(error);
    }
}
