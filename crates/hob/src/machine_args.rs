//! The machine of a prediction: this one with its measurements, or another from a profile; and its free memory.
//! Cards that models cannot use are left out. The stored file of this machine has them, too.

use clap::Args;
use hob_core::machine::Machine;
use hob_machine::{MachineFacts, PoolOverride, apply, profile};

use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::machine::{here, keep, measure};
use crate::published::{self, Used};
use crate::wire_up::{HiddenCards, leave_out_hidden_cards, other_build, used_cards};

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
    /// The machine for models, with its notes printed. On this machine they may take what `[memory]` allows.
    ///
    /// # Errors
    /// The profile does not exist, or has no such pool.
    pub(crate) fn known(&self, app: &App<'_>) -> CliResult<MachineFacts> {
        self.limited(self.found(app)?, app)
    }

    /// The machine as it is, with its notes printed. Measures the memory bandwidth if it is unknown.
    ///
    /// # Errors
    /// See [`MachineArgs::known`].
    pub(crate) fn measured(&self, app: &App<'_>) -> CliResult<MachineFacts> {
        self.settled(self.found_with_bandwidth(app)?, app)
    }

    /// Like `known`, with a bandwidth and with the published runs of the same cards, whose sources it prints. Says if this hob
    /// was built for none of the cards.
    ///
    /// # Errors
    /// See [`MachineArgs::known`].
    pub(crate) fn with_published(&self, app: &App<'_>) -> CliResult<(Machine, Vec<Used>)> {
        let found = self.found_with_bandwidth(app)?;
        let mut machine = self.limited(found, app)?.machine;
        if self.machine.is_none() {
            let is_used = used_cards(&machine.gpus).next().is_some();
            let other = other_build(&machine.gpus, is_used);
            other.iter().for_each(|(found, to_do)| app.printer.note(format!("{found}: {to_do}")));
        }
        let used = published::apply(&mut machine);
        used.iter().for_each(|used| app.printer.faint(&used.text));
        Ok((machine, used))
    }

    /// Like `measured`, and measures the memory bandwidth of this machine again.
    ///
    /// # Errors
    /// As [`MachineArgs::known`], or there is too little memory free to measure it.
    pub(crate) fn measured_again(&self, app: &App<'_>) -> CliResult<MachineFacts> {
        let mut found = self.found(app)?;
        measure(&mut found, app.printer)?;
        keep(&found, app);
        self.settled(found, app)
    }

    /// All of the machine, as its stored file has it.
    fn found(&self, app: &App<'_>) -> CliResult<MachineFacts> {
        match &self.machine {
            Some(name) => profile::named(name).map_err(|error| {
                Failure::usage(error).hint("`hob fit machine --save FILE` writes one")
            }),
            None => Ok(here(app)),
        }
    }

    fn found_with_bandwidth(&self, app: &App<'_>) -> CliResult<MachineFacts> {
        let mut found = self.found(app)?;
        if self.machine.is_none() && found.machine.cpu.device.bandwidth.is_none() {
            match measure(&mut found, app.printer) {
                Ok(_) => keep(&found, app),
                Err(failure) => app.printer.note(failure),
            }
        }
        Ok(found)
    }

    fn limited(&self, mut known: MachineFacts, app: &App<'_>) -> CliResult<MachineFacts> {
        if self.machine.is_none() {
            known.machine.memory.limit_models(app.settings.memory.max_bytes());
        }
        self.settled(known, app)
    }

    fn settled(&self, mut known: MachineFacts, app: &App<'_>) -> CliResult<MachineFacts> {
        if self.machine.is_none() {
            let note = leave_out_hidden_cards(&mut known, &HiddenCards::of(app));
            known.notes.extend(note);
        }
        apply(&mut known.machine, &self.pool).map_err(Failure::usage)?;
        known.notes.iter().for_each(|note| app.printer.note(note));
        Ok(known)
    }
}
