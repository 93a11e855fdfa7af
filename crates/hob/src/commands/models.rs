//! `hob models`: lists the models that exist, are stored and are loaded, and deletes stored ones.
//! Only a running server knows which models are loaded. Without one, no model counts as loaded.

use std::io::{self, IsTerminal};

use clap::{Args, Subcommand};
use comfy_table::Table;
use serde::Serialize;

use crate::app::{App, block_on};
use crate::failure::{CliResult, Exit, Failure};
use crate::model_store::{ModelStore, StoreRow, StoreState};
use crate::printer::{Column, Printer, confirmed, rows, table};
use crate::remote::{Remote, RemoteModel, RemoteVoice};

const MB: u64 = 1_000_000;

/// List models with size, licence and source, and whether they are stored and loaded
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ModelsArgs {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    Rm(RmArgs),
}

/// Delete a stored model from the disk
#[derive(Debug, Args)]
struct RmArgs {
    /// The model's name
    name: String,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// One line of the list.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ModelRow {
    #[serde(flatten)]
    entry: StoreRow,
    /// The running server's state of the model, if a server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

pub(crate) fn run(args: &ModelsArgs, app: &App<'_>) -> CliResult<Exit> {
    match &args.action {
        Some(Action::Rm(rm)) => remove(rm, &ModelStore::open(app), app.printer),
        None => {
            let lines = block_on(lines(app))?;
            app.printer.report(args.json, &lines, || model_table(&lines))
        }
    }
}

/// Asks the server, with a short time limit so that the list does not hang.
async fn lines(app: &App<'_>) -> CliResult<Vec<ModelRow>> {
    let entries = ModelStore::open(app).all_entries()?;
    let key = app.settings.server.api_key.read()?;
    let server = Remote::here(app.settings.server.listen.0, key).models().await;
    let running = server.unwrap_or_default();
    Ok(entries.into_iter().map(|entry| line(entry, &running)).collect())
}

fn line(entry: StoreRow, running: &[RemoteModel]) -> ModelRow {
    let running = running.iter().find(|model| model.id == entry.name);
    ModelRow { state: running.map(|model| model.hob.state.clone()), entry }
}

fn model_table(lines: &[ModelRow]) -> String {
    let columns: &[Column<'_, ModelRow>] = &[
        ("model", &|line| line.entry.name.clone()),
        ("kind", &|line| line.entry.kind.clone()),
        ("size", &|line| size(&line.entry)),
        ("licence", &|line| line.entry.licence.clone()),
        ("stored", &|line| match line.entry.condition {
            StoreState::Stored => "yes".to_owned(),
            StoreState::NotStored => "no".to_owned(),
            StoreState::Damaged => "damaged".to_owned(),
        }),
        ("loaded", &|line| match line.state.as_deref() {
            Some("warm") => "yes".to_owned(),
            state => state.unwrap_or("no").to_owned(),
        }),
        ("from", &|line| line.entry.source.clone()),
    ];
    rows(columns, lines).trim_fmt()
}

/// The computed size, for a model that is not installed.
fn size(entry: &StoreRow) -> String {
    match entry.bytes.div_ceil(MB) {
        0 => "?".to_owned(),
        megabytes => format!("{megabytes} MB"),
    }
}

/// The voices, as `hob say --voices` lists them.
pub(crate) fn voice_table(voices: impl IntoIterator<Item = impl Into<RemoteVoice>>) -> Table {
    let mut table = table(["voice", "name", "language", "gender"]);
    for voice in voices {
        let RemoteVoice { id, name, language, gender } = voice.into();
        table.add_row([id, name, language, gender]);
    }
    table
}

fn remove(args: &RmArgs, store: &ModelStore, printer: &Printer) -> CliResult<Exit> {
    store.check_has_any(&args.name)?;
    if !args.yes && !agreed(&format!("delete {} from {}?", args.name, store.root().display()))? {
        printer.note("nothing was deleted");
        return Ok(Exit::Done);
    }
    let freed = store.remove(&args.name)?;
    printer.note(format_args!("deleted {} ({} MB)", args.name, freed.div_ceil(MB)));
    Ok(Exit::Done)
}

fn agreed(question: &str) -> CliResult<bool> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{question} There is no terminal to ask"))
            .hint("add --yes to delete it without a question"));
    }
    confirmed(question).map_err(|error| Failure::io("cannot read the answer", &error))
}
