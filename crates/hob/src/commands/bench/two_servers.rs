//! `hob bench compare` of two servers that run: the same words to both in turns, and every pair of blocks compared.
//! What each was measured to do is kept as a record, as that of any other measurement.

use clap::Args;
use hob_bench::chat::{ChatWorkload, Prompts, Shape};
use hob_bench::compare::{Kept, Wish as Threshold, compare};
use hob_bench::drive::{Arrivals, Patience};
use hob_bench::experiment::{OtherServer, side_by_side};
use hob_bench::record::Shelf;
use hob_bench::runs::StopRule;
use hob_bench::workbench::Workbench;

use super::compare::CompareArgs;
use super::comparison_table::{json, pick, shown};
use super::measuring::{context, keep, new_seed, progress, stoppable, typed};
use super::queue::Turn;
use super::server::{Purpose, Reached, ServerArgs, failure};
use super::workload::{ThinkingName, block, shape, users};
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::signals::interrupted;

/// Fewer pairs decide nothing.
const PAIRS_MIN: usize = 8;
const PAIRS_MAX: usize = 16;

/// How two servers are asked.
#[derive(Clone, Debug, Args)]
pub(super) struct TwoServersArgs {
    /// Of two servers: shape of prompt and answer
    #[arg(long, value_name = "NAME", value_parser = shape, default_value = "short_short", help_heading = "Two servers")]
    shape: Shape,
    /// Users at once
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Two servers")]
    users: usize,
    /// With thinking, or without
    #[arg(long, value_enum, default_value_t = ThinkingName::On, help_heading = "Two servers")]
    thinking: ThinkingName,
    /// Which model of A; not needed where there is only one
    #[arg(long, value_name = "NAME", help_heading = "Two servers")]
    model: Option<String>,
    /// Which model of B [default: the same]
    #[arg(long, value_name = "NAME", help_heading = "Two servers")]
    model_b: Option<String>,
    /// The fewest pairs of blocks
    #[arg(long, value_name = "N", default_value_t = PAIRS_MIN, help_heading = "Two servers")]
    pairs_min: usize,
}

pub(super) fn run(args: &CompareArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let options = &args.two_servers;
    if options.pairs_min < PAIRS_MIN {
        return Err(Failure::usage(format!("fewer than {PAIRS_MIN} pairs decide nothing")));
    }
    users(&[options.users])?;
    let chat = ChatWorkload {
        shapes: vec![options.shape],
        thinking: options.thinking.into(),
        prompts: Prompts::Cold,
    };
    let asked = (chat, Arrivals::Closed { users: options.users }, block(2, 0)?);
    let model_b = options.model_b.as_ref().or(options.model.as_ref());
    let a = ServerArgs::of(&args.base, options.model.as_ref()).settle(
        Purpose::Chat,
        globals,
        printer,
    )?;
    let b = ServerArgs::of(&args.new, model_b).settle(Purpose::Chat, globals, printer)?;
    let stop_rule = StopRule {
        runs_min: options.pairs_min,
        runs_max: options.pairs_min.max(PAIRS_MAX),
        ..StopRule::default()
    };
    let (records, to) = (args.records.clone(), *printer);
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
            patience: Patience::default(),
            stop,
            tell: &mut |name, step| to.faint(progress(name, step, stop_rule)),
            keep: &mut |record, samples| keep(&records, record, samples, &to),
        };
        let (chat, arrivals, block) = &asked;
        side_by_side(&mut bench, &other, (chat, *arrivals, *block)).map_err(failure)
    })?;
    let [base, new, ..] = &measured[..] else { return Err(interrupted()) };
    let shelf = Shelf::new(&args.records);
    let kept = |record: &hob_bench::record::Record| -> Outcome<Vec<Kept>> {
        pick(&shelf, &[record.id.to_string()])
    };
    let comparison = compare(&kept(base)?, &kept(new)?, &Threshold::of(args.threshold));
    match args.json {
        true => json(&comparison, printer)?,
        false => printer.data(shown(&comparison))?,
    }
    let wrong = [base, new].into_iter().find_map(|record| record.invalid_reasons.first());
    match wrong {
        Some(reason) => {
            Err(Failure::new(Exit::Server, format!("this is no measurement: {reason}")))
        }
        None => Ok(Exit::Done),
    }
}
