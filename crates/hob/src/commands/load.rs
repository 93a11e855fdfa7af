//! `hob load`: loads a model in a running hob, and waits until it is ready.
//! Ctrl-C stops waiting. The server continues to load.

use std::time::Duration;

use clap::Args;
use futures::StreamExt;
use hob_wire::ResidentModel;

use crate::app::App;
use crate::config::KeepAliveText;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::Printer;
use crate::remote::{LoadOptions, LoadStep, Remote};
use crate::running_server::ServerOption;

/// Load a model in a running hob
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LoadArgs {
    /// The model's name (`hob models` lists them)
    model: String,
    /// How long the model stays loaded after its last request: 30s, 5m, 2h, seconds, or forever
    #[arg(long, value_name = "TIME")]
    keep_alive: Option<KeepAliveText>,
    #[command(flatten)]
    server: ServerOption,
}

const AFTER_HELP: &str = "\
Examples:
  hob load smollm2
  hob load smollm2 --keep-alive 10m";

pub(crate) fn run(args: &LoadArgs, app: &App<'_>) -> CliResult<Exit> {
    let keep_alive = args.keep_alive.map(|written| written.0);
    let options = LoadOptions { model: args.model.clone(), keep_alive };
    let resident = args.server.ask(app, async |remote| load(remote, options, app.printer).await)?;
    let took = resident.load_ms.map(|ms| format!(", it took {ms} ms to load"));
    app.printer.note(format_args!("{} is loaded{}", resident.name, took.unwrap_or_default()));
    Ok(Exit::Done)
}

async fn load(
    remote: &Remote,
    options: LoadOptions,
    printer: &Printer,
) -> CliResult<ResidentModel> {
    let spinner = printer.spinner(format_args!("loading {}", options.model));
    let name = options.model.clone();
    let mut steps = remote.load(options).await?;
    while let Some(step) = steps.next().await {
        match step? {
            LoadStep::Loading { ready_in } => spinner.set_message(progress(&name, ready_in)),
            LoadStep::Ready(resident) => {
                spinner.finish_and_clear();
                return Ok(*resident);
            }
        }
    }
    Err(Failure::server("the server stopped before the model was loaded")
        .hint("start it again with `hob serve`; its messages say why it stopped"))
}

fn progress(name: &str, ready_in: Option<Duration>) -> String {
    match ready_in {
        Some(time) => format!("loading {name}, about {} s left", time.as_secs_f64().ceil()),
        None => format!("loading {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_shown_in_whole_seconds() {
        assert_eq!(progress("m", None), "loading m");
        let left = Some(Duration::from_millis(1200));
        assert_eq!(progress("m", left), "loading m, about 2 s left");
    }
}
