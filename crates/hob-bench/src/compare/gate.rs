//! Whether something became slower, for a machine to act on: cells that both sides have, and the figures that matter of each.
//! It fails on a proven regression only; what nobody could compare is an answer of its own.

use std::collections::BTreeMap;

use serde::Serialize;

use super::aspect::{is_same_machine, refusing};
use super::{Comparison, Kept, Wish, compare};
use crate::record::Record;
use crate::terms::Metric;

/// Judged unless others are named: what a user waits for.
pub const GATED: [Metric; 14] = [
    Metric::TtftMs,
    Metric::TtfatMs,
    Metric::TpotMs,
    Metric::DecodeTokS,
    Metric::ThroughputTokS,
    Metric::PrefillTokS,
    Metric::TtfaMs,
    Metric::WallMs,
    Metric::FirstPartialMs,
    Metric::Wer,
    Metric::Cer,
    Metric::LoadMs,
    Metric::ColdFirstMs,
    Metric::SwapMs,
];

/// What a gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    Passed,
    Regressed,
    /// Nothing could be compared, so nothing is known.
    Incomparable,
}

/// All cells, with what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    pub verdict: GateVerdict,
    pub cells: Vec<GatedCell>,
    /// Cells that only one side has, in words.
    pub left_out: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatedCell {
    /// What tells it from the others.
    pub name: String,
    pub comparison: Comparison,
}

/// `new` against `base`. A single record on each side is compared as it is, so that a refusal says why; of more,
/// those are that have the same model and were asked the same.
pub fn gate(base: &[Kept], new: &[Kept], figures: &[Metric], wish: &Wish) -> Gate {
    let (pairs, left_out) = match (base, new) {
        ([_], [_]) => (vec![(name(&new[0].record), base.to_vec(), new.to_vec())], Vec::new()),
        _ => matched(base, new),
    };
    let cell = |(name, base, new): (String, Vec<Kept>, Vec<Kept>)| {
        let mut comparison = compare(&base, &new, wish);
        judge(&mut comparison, figures);
        if !is_same_machine(&base[0].record, &new[0].record) {
            comparison.refusals.push("another machine: a gate compares on one".to_owned());
            comparison.figures.clear();
        }
        GatedCell { name, comparison }
    };
    let cells: Vec<GatedCell> = pairs.into_iter().map(cell).collect();
    Gate { verdict: verdict(&cells), cells, left_out }
}

/// Leaves what is asked for, and one of a pace and its inverse: they are one thing, and must not fail twice.
fn judge(comparison: &mut Comparison, figures: &[Metric]) {
    let has_pace = figures.contains(&Metric::TpotMs)
        && comparison.figures.iter().any(|figure| figure.metric == Metric::TpotMs);
    comparison.figures.retain(|figure| {
        let is_told = has_pace && figure.metric == Metric::DecodeTokS;
        figures.contains(&figure.metric) && !is_told
    });
}

fn verdict(cells: &[GatedCell]) -> GateVerdict {
    let mut figures = cells.iter().flat_map(|cell| &cell.comparison.figures);
    if figures.clone().any(|figure| figure.regression_pct().is_some()) {
        GateVerdict::Regressed
    } else if figures.any(super::Compared::is_compared) {
        GateVerdict::Passed
    } else {
        GateVerdict::Incomparable
    }
}

type Cell = (String, Vec<Kept>, Vec<Kept>);

fn matched(base: &[Kept], new: &[Kept]) -> (Vec<Cell>, Vec<String>) {
    let mut cells: BTreeMap<Vec<Option<String>>, [Vec<Kept>; 2]> = BTreeMap::new();
    for (side, all) in [base, new].into_iter().enumerate() {
        for kept in all {
            cells.entry(key(&kept.record)).or_default()[side].push(kept.clone());
        }
    }
    let (mut both, mut left_out) = (Vec::new(), Vec::new());
    for [base, new] in cells.into_values() {
        match (base.first(), new.first()) {
            (Some(_), Some(one)) => both.push((name(&one.record), base, new)),
            (Some(one), None) => left_out.push(format!("{}: only in the base", name(&one.record))),
            (None, Some(one)) => {
                left_out.push(format!("{}: not in the base", name(&one.record)));
            }
            (None, None) => {}
        }
    }
    (both, left_out)
}

fn key(record: &Record) -> Vec<Option<String>> {
    let model = [Some(record.model.name.clone()), record.model.quant.clone()];
    model.into_iter().chain(refusing(record)).collect()
}

fn name(record: &Record) -> String {
    let workload = &record.workload;
    let users = workload.concurrency.map(|users| match users {
        1 => "1 user".to_owned(),
        users => format!("{users} users"),
    });
    let thinks = (workload.reasoning == Some(crate::record::Reasoning::Enabled))
        .then(|| "thinking".to_owned());
    let parts = [
        Some(record.model.name.clone()),
        record.model.quant.clone(),
        Some(record.kind.name().to_owned()),
        workload.shape.clone(),
        users,
        thinks,
    ];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

impl Gate {
    /// Proven ones, the worst first.
    pub fn regressions(&self) -> Vec<(&GatedCell, &super::Compared, f64)> {
        let mut found: Vec<_> = self
            .cells
            .iter()
            .flat_map(|cell| cell.comparison.figures.iter().map(move |figure| (cell, figure)))
            .filter_map(|(cell, figure)| Some((cell, figure, figure.regression_pct()?)))
            .collect();
        found.sort_by(|(_, _, one), (_, _, other)| other.total_cmp(one));
        found
    }

    /// One line that says it all.
    pub fn summary(&self) -> String {
        let figures = || self.cells.iter().flat_map(|cell| &cell.comparison.figures);
        let compared = figures().filter(|figure| figure.is_compared()).count();
        let of = |verdict| figures().filter(|figure| figure.verdict == verdict).count();
        let (cells, others) = self.cells_compared();
        let others = match others {
            0 => String::new(),
            // A server that fails altogether must not look like one that is fast enough.
            count => format!("; {} not compared", plural(count, "cell")),
        };
        let counts = format!(
            "{} in {}: {} worse, {} better, {} the same, {} undecided{others}",
            plural(compared, "figure"),
            plural(cells, "cell"),
            of(super::Verdict::Worse),
            of(super::Verdict::Better),
            of(super::Verdict::Same),
            of(super::Verdict::Inconclusive)
        );
        match (self.verdict, self.regressions().first()) {
            (GateVerdict::Incomparable, _) => {
                format!("hob bench gate: nothing could be compared{}", self.first_reason())
            }
            (_, Some((cell, figure, pct))) => format!(
                "hob bench gate: failed, {} {} % {} in {} ({counts})",
                figure.metric.name(),
                crate::written::number(*pct),
                figure.finding,
                cell.name
            ),
            _ => format!("hob bench gate: passed ({counts})"),
        }
    }

    /// How many were, and how many were not.
    fn cells_compared(&self) -> (usize, usize) {
        let is_compared =
            |cell: &&GatedCell| cell.comparison.figures.iter().any(super::Compared::is_compared);
        let compared = self.cells.iter().filter(is_compared).count();
        (compared, self.cells.len() - compared + self.left_out.len())
    }

    fn first_reason(&self) -> String {
        let refusals = self.cells.iter().flat_map(|cell| &cell.comparison.refusals);
        let figures = self.cells.iter().flat_map(|cell| &cell.comparison.figures);
        let reasons = figures.filter_map(|figure| figure.reason.as_ref());
        let first = refusals.chain(reasons).chain(&self.left_out).next();
        first.map_or_else(String::new, |reason| format!(": {reason}"))
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
