//! The machine of a prediction: this one with its measurements, or another from a profile; and its free
//! memory.

use std::time::Instant;

use clap::Args;
use hob_engines::timing::engine_version;
use hob_machine::bandwidth::{self, Measured};
use hob_machine::{MachineFacts, MachineStore, PoolOverride, apply, probe, profile};

use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::printer::Printer;

/// Which machine, and how much of its memory.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MachineArgs {
    /// Another machine: a profile's file, or the name of one that hob has (`hob fit machine --list`)
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) machine: Option<String>,
    /// Free memory of a pool, instead of the detected amount: gpu0=7.2GiB or ram=12GB; repeatable
    #[arg(long, value_name = "POOL=SIZE")]
    pub(crate) pool: Vec<PoolOverride>,
}

impl MachineArgs {
    /// The machine with its notes printed.
    ///
    /// # Errors
    /// The profile does not exist, or has no such pool.
    pub(crate) fn known(&self, app: &App<'_>) -> CliResult<MachineFacts> {
        let mut known = match &self.machine {
            Some(name) => profile::named(name).map_err(|error| {
                Failure::usage(error).hint("`hob fit machine --save FILE` writes one")
            })?,
            None => here(app),
        };
        apply(&mut known.machine, &self.pool).map_err(Failure::usage)?;
        known.notes.iter().for_each(|note| app.printer.note(note));
        Ok(known)
    }

    /// Like `known`, and measures the memory bandwidth if it is unknown.
    ///
    /// # Errors
    /// See [`MachineArgs::known`].
    pub(crate) fn measured(&self, app: &App<'_>) -> CliResult<MachineFacts> {
        let mut known = self.known(app)?;
        if self.machine.is_none() && known.machine.cpu.device.bandwidth.is_none() {
            match measure(&mut known, app.printer) {
                Ok(_) => keep(&known, app),
                Err(failure) => app.printer.note(failure),
            }
        }
        Ok(known)
    }
}

/// This machine, with stored measurements.
pub(crate) fn here(app: &App<'_>) -> MachineFacts {
    let mut known = probe();
    machine_store(app).merge_into(&mut known, &engine_version());
    known
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
        printer.note("memory was measured while others were busy: it may be 30 % faster; run it again when they are not");
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
