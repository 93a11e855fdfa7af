//! `hob bench compare` of two running servers: both get the same prompts alternately, and runs are compared in pairs.
//! Each server's figures are stored as a record, as for any other measurement.

use std::path::Path;

use clap::Args;
use hob_bench::chat::{ChatWorkload, Prompts, SHAPES, Shape, ThinkingChoice};
use hob_bench::drive::{Arrivals, RequestLimits};
use hob_bench::experiment::{OtherServer, side_by_side};
use hob_bench::record::Record;
use hob_bench::runs::StopRule;
use hob_bench::workbench::Workbench;
use hob_core::Kind;

use super::measuring::{context, keep, new_seed, progress, stoppable, typed};
use super::queue::Turn;
use super::server::{Reached, ServerArgs, failure};
use super::workload::{THINKING, run_size, shape, users};
use crate::arguments::one_of;
use crate::failure::{CliResult, Failure};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::signals::interrupted;

/// Fewer pairs decide nothing.
const PAIRS_MIN: usize = 8;
const PAIRS_MAX: usize = 16;

/// The requests to two servers.
#[derive(Clone, Debug, Args)]
pub(super) struct TwoServersArgs {
    /// Shape of prompt and answer [default: short_short]
    #[arg(long, value_name = "NAME", value_parser = shape, help_heading = "Two servers")]
    shape: Option<Shape>,
    /// Concurrent users [default: 1]
    #[arg(long, value_name = "N", help_heading = "Two servers")]
    users: Option<usize>,
    /// With thinking, or without [default: on]
    #[arg(long, value_parser = one_of(THINKING), help_heading = "Two servers")]
    thinking: Option<ThinkingChoice>,
    /// Model of BASE; not needed if it has only one
    #[arg(long, value_name = "NAME", help_heading = "Two servers")]
    model: Option<String>,
    /// Model of NEW [default: the same]
    #[arg(long, value_name = "NAME", help_heading = "Two servers")]
    model_b: Option<String>,
    /// Minimum number of pairs of runs [default: 8]
    #[arg(long, value_name = "N", help_heading = "Two servers")]
    pairs_min: Option<usize>,
}

impl TwoServersArgs {
    /// # Errors
    /// One of these options was given, but records are compared.
    pub(super) fn refuse(&self) -> CliResult<()> {
        let given = [
            (self.shape.is_some(), "--shape"),
            (self.users.is_some(), "--users"),
            (self.thinking.is_some(), "--thinking"),
            (self.model.is_some(), "--model"),
            (self.model_b.is_some(), "--model-b"),
            (self.pairs_min.is_some(), "--pairs-min"),
        ];
        if let Some((_, name)) = given.into_iter().find(|(is_given, _)| *is_given) {
            let sentence = format!("{name} has no effect: these are records");
            return Err(Failure::usage(sentence)
                .hint("leave it out, or compare two servers by address or name"));
        }
        Ok(())
    }
}

/// Measures both servers with alternating runs, and stores a record of each.
///
/// # Errors
/// A server cannot be reached, a measurement failed, or Ctrl-C came before the first pair was complete.
pub(super) fn measure(
    options: &TwoServersArgs,
    folder: &Path,
    [base, new]: [&String; 2],
    (globals, printer): (&Globals, &Printer),
) -> CliResult<[Record; 2]> {
    let pairs_min = options.pairs_min.unwrap_or(PAIRS_MIN);
    if pairs_min < PAIRS_MIN {
        return Err(Failure::usage(format!(
            "--pairs-min must be at least {PAIRS_MIN}: fewer pairs are inconclusive"
        )));
    }
    let user_count = options.users.unwrap_or(1);
    users(&[user_count])?;
    let chat = ChatWorkload {
        shapes: vec![options.shape.unwrap_or(SHAPES[0])],
        thinking: options.thinking.unwrap_or(ThinkingChoice::On),
        prompts: Prompts::Cold,
    };
    let asked = (chat, Arrivals::Closed { users: user_count }, run_size(2, 0)?);
    let model_b = options.model_b.as_ref().or(options.model.as_ref());
    let a = ServerArgs::of(base, options.model.as_ref()).settle(Kind::Chat, globals, printer)?;
    let b = ServerArgs::of(new, model_b).settle(Kind::Chat, globals, printer)?;
    let stop_rule =
        StopRule { runs_min: pairs_min, runs_max: pairs_min.max(PAIRS_MAX), ..StopRule::default() };
    let (records, to) = (folder.to_path_buf(), *printer);
    let measured = stoppable(move |stop| {
        let _turn = Turn::Awaited.take(&records, "hob bench compare", (stop, &to))?;
        let Reached { target, facts, .. } = a.reach(stop).map_err(failure)?;
        let other = b.reach(stop).map_err(failure)?;
        let seed = Some(new_seed());
        let other =
            OtherServer { target: other.target, context: context(other.facts, typed(), seed) };
        let mut bench = Workbench {
            target,
            started: None,
            context: context(facts, typed(), seed),
            stop_rule,
            limits: RequestLimits::default(),
            stop,
            tell: &mut |name, step| to.faint(progress(name, step, stop_rule)),
            keep: &mut |record, samples| keep(&records, record, samples, &to),
        };
        let (chat, arrivals, run_size) = &asked;
        side_by_side(&mut bench, &other, (chat, *arrivals, *run_size)).map_err(failure)
    })?;
    match &measured[..] {
        [base, new, ..] => Ok([base.clone(), new.clone()]),
        _ => Err(interrupted()),
    }
}
