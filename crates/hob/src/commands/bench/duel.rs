//! `hob bench compare` of two servers that run: the same words to both in turns, and every pair of blocks compared.
//! What each was measured to do is kept as a record, as that of any other measurement.

use clap::Args;
use hob_bench::compare::{Kept, Wish as Threshold, compare};
use hob_bench::drive::{Arrivals, CONNECTIONS_MAX, Patience};
use hob_bench::llm::{Prompts, Shape, Wish};
use hob_bench::record::Shelf;
use hob_bench::rivals::{Rival, measure};
use hob_bench::runs::Care;
use hob_bench::workbench::Workbench;

use super::aim::{AimArgs, Reached, failure};
use super::campaign::{context, keep, new_seed, stoppable, told, typed};
use super::compare::CompareArgs;
use super::compared::{json, pick, shown};
use super::llm::{ThinkingName, shape};
use super::queue::Turn;
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::signals::interrupted;

/// Fewer pairs decide nothing.
const PAIRS_MIN: usize = 8;
const PAIRS_MAX: usize = 16;

/// How two servers are asked.
#[derive(Clone, Debug, Args)]
pub(super) struct DuelArgs {
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
    let duel = &args.duel;
    if duel.pairs_min < PAIRS_MIN {
        return Err(Failure::usage(format!("fewer than {PAIRS_MIN} pairs decide nothing")));
    }
    if !(1..=CONNECTIONS_MAX).contains(&duel.users) {
        return Err(Failure::usage(format!("from 1 to {CONNECTIONS_MAX} users are possible")));
    }
    let wish = Wish {
        shapes: vec![duel.shape],
        arrivals: vec![Arrivals::Closed { users: duel.users }],
        thinking: duel.thinking.wish(),
        prompts: Prompts::Cold,
        rounds: 2,
        span_s: 0.0,
    };
    let model_b = duel.model_b.as_ref().or(duel.model.as_ref());
    let a = AimArgs::of(&args.base, duel.model.as_ref()).settle(globals, printer)?;
    let b = AimArgs::of(&args.new, model_b).settle(globals, printer)?;
    let care = Care {
        runs_min: duel.pairs_min,
        runs_max: duel.pairs_min.max(PAIRS_MAX),
        ..Care::default()
    };
    let (records, to) = (args.records.clone(), *printer);
    let pairs = stoppable(move |stop| {
        let _turn = Turn::Awaited.take(&records, "hob bench compare", (stop, &to))?;
        let Reached { target, facts, .. } = a.reach(stop).map_err(failure)?;
        let other = b.reach(stop).map_err(failure)?;
        let seed = Some(new_seed());
        let rival = Rival { target: other.target, context: context(other.facts, typed(), seed) };
        let mut bench = Workbench {
            target,
            started: None,
            context: context(facts, typed(), seed),
            care,
            patience: Patience::default(),
            stop,
            tell: &mut |name, step| to.faint(told(name, step, care)),
            keep: &mut |record, samples| keep(&records, record, samples, &to),
        };
        measure(&mut bench, &rival, &wish).map_err(failure)
    })?;
    let Some((base, new)) = pairs.into_iter().next() else { return Err(interrupted()) };
    let shelf = Shelf::new(&args.records);
    let kept = |record: &hob_bench::record::Record| -> Outcome<Vec<Kept>> {
        pick(&shelf, &[record.id.to_string()])
    };
    let comparison = compare(&kept(&base)?, &kept(&new)?, &Threshold::of(args.threshold));
    match args.json {
        true => json(&comparison, printer)?,
        false => printer.data(shown(&comparison))?,
    }
    let wrong = [&base, &new].into_iter().find_map(|record| record.invalid_reasons.first());
    match wrong {
        Some(reason) => {
            Err(Failure::new(Exit::Server, format!("this is no measurement: {reason}")))
        }
        None => Ok(Exit::Done),
    }
}
