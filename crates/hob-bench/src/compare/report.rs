//! The comparison of two sets of records, cell by cell, with one result for scripts.
//! Only a proven regression counts as one. "Nothing could be compared" is a result of its own.

use std::collections::BTreeMap;

use hob_core::count_text;
use serde::Serialize;

use super::aspect::{is_same_machine, required_equal};
use super::{
    CompareOptions, ComparedMetric, Comparison, MetricSelection, MetricVerdict, SampledRecord,
    compare,
};
use crate::display;
use crate::record::{Reasoning, Record};
use crate::terms::Metric;

/// The figures that a user waits for.
pub const USER_FIGURES: [Metric; 15] = [
    Metric::TtftMs,
    Metric::TtfatMs,
    Metric::TpotMs,
    Metric::DecodeTokS,
    Metric::ThroughputTokS,
    Metric::PrefillTokS,
    Metric::TtfaMs,
    Metric::WallMs,
    Metric::FinalTextMs,
    Metric::FirstPartialMs,
    Metric::Wer,
    Metric::Cer,
    Metric::LoadMs,
    Metric::ColdFirstMs,
    Metric::SwapMs,
];

/// The result over all cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportVerdict {
    /// No figure certainly became worse.
    Passed,
    Regressed,
    Incomparable,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareReport {
    /// The result in one line.
    pub summary: String,
    pub verdict: ReportVerdict,
    pub cells: Vec<ComparedCell>,
    /// Cells that only one side has, in words.
    pub left_out: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCell {
    /// Model, kind and workload.
    pub name: String,
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// Compares `new` with `base`. Records of one cell on each side are compared as they are, so that a refusal says why.
/// Otherwise records are matched by model and workload.
pub fn report(
    base: &[SampledRecord],
    new: &[SampledRecord],
    options: &CompareOptions,
) -> CompareReport {
    let (pairs, left_out) = if is_one_cell(base) && is_one_cell(new) {
        (vec![(name(&new[0].record), base.to_vec(), new.to_vec())], Vec::new())
    } else {
        matched(base, new)
    };
    let cell = |(name, base, new): CellPair| {
        let mut comparison = compare(&base, &new, options);
        select(&mut comparison, &options.figures);
        let is_moved = !is_same_machine(&base[0].record, &new[0].record);
        if options.requires_same_machine && is_moved {
            let reason = "the machines differ, and a regression is only judged on one machine";
            comparison.refusals.push(reason.to_owned());
            comparison.figures.clear();
        }
        ComparedCell { name, comparison }
    };
    let cells: Vec<ComparedCell> = pairs.into_iter().map(cell).collect();
    let verdict = verdict(&cells);
    let mut report = CompareReport { summary: String::new(), verdict, cells, left_out };
    report.summary = report.summarise();
    report
}

fn is_one_cell(side: &[SampledRecord]) -> bool {
    side.first().is_some_and(|first| {
        let first = key(&first.record);
        side.iter().all(|record| key(&record.record) == first)
    })
}

/// Keeps the selected figures. Time per token and its inverse are one fact, so the rate is dropped if there is a time:
/// one change must not count twice.
fn select(comparison: &mut Comparison, figures: &MetricSelection) {
    let MetricSelection::Only(figures) = figures else { return };
    let has_pace = figures.contains(&Metric::TpotMs)
        && comparison.figures.iter().any(|figure| figure.metric == Metric::TpotMs);
    comparison.figures.retain(|figure| {
        let is_duplicate = has_pace && figure.metric == Metric::DecodeTokS;
        figures.contains(&figure.metric) && !is_duplicate
    });
}

fn verdict(cells: &[ComparedCell]) -> ReportVerdict {
    let mut figures = cells.iter().flat_map(|cell| &cell.comparison.figures);
    if figures.clone().any(|figure| figure.regression_pct().is_some()) {
        ReportVerdict::Regressed
    } else if figures.any(ComparedMetric::is_compared) {
        ReportVerdict::Passed
    } else {
        ReportVerdict::Incomparable
    }
}

type CellPair = (String, Vec<SampledRecord>, Vec<SampledRecord>);

fn matched(base: &[SampledRecord], new: &[SampledRecord]) -> (Vec<CellPair>, Vec<String>) {
    let mut cells: BTreeMap<Vec<Option<String>>, [Vec<SampledRecord>; 2]> = BTreeMap::new();
    for (side, all) in [base, new].into_iter().enumerate() {
        for record in all {
            cells.entry(key(&record.record)).or_default()[side].push(record.clone());
        }
    }
    let (mut both, mut left_out) = (Vec::new(), Vec::new());
    for [base, new] in cells.into_values() {
        match (base.first(), new.first()) {
            (Some(_), Some(one)) => both.push((name(&one.record), base, new)),
            (Some(one), None) => left_out.push(format!("{}: only in the base", name(&one.record))),
            (None, Some(one)) => left_out.push(format!("{}: not in the base", name(&one.record))),
            (None, None) => {}
        }
    }
    (both, left_out)
}

fn key(record: &Record) -> Vec<Option<String>> {
    let model = [Some(record.model.name.clone()), record.model.quant.clone()];
    model.into_iter().chain(required_equal(record)).collect()
}

fn name(record: &Record) -> String {
    let workload = &record.workload;
    let users = workload.concurrency.map(|users| count_text(users, "user"));
    let thinks = workload.reasoning == Some(Reasoning::Enabled);
    let parts = [
        Some(record.model.name.clone()),
        record.model.quant.clone(),
        Some(record.kind.name().to_owned()),
        Some(display::asked(record)),
        users,
        thinks.then(|| "thinking".to_owned()),
    ];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

impl CompareReport {
    fn figures(&self) -> impl Iterator<Item = (&ComparedCell, &ComparedMetric)> {
        self.cells
            .iter()
            .flat_map(|cell| cell.comparison.figures.iter().map(move |figure| (cell, figure)))
    }

    fn worst_regression(&self) -> Option<(&ComparedCell, &ComparedMetric, f64)> {
        self.figures()
            .filter_map(|(cell, figure)| Some((cell, figure, figure.regression_pct()?)))
            .max_by(|(_, _, one), (_, _, other)| one.total_cmp(other))
    }

    fn summarise(&self) -> String {
        let result = match (self.verdict, self.worst_regression()) {
            (ReportVerdict::Incomparable, _) => {
                format!("nothing could be compared{}", self.first_reason())
            }
            (_, Some((cell, figure, pct))) => format!(
                "regression, {} {} % {} in {} ({})",
                figure.metric.name(),
                display::number(pct),
                figure.finding,
                cell.name,
                self.counts()
            ),
            _ => format!("no regression ({})", self.counts()),
        };
        format!("hob bench compare: {result}")
    }

    fn counts(&self) -> String {
        let of = |verdict| self.figures().filter(|(_, figure)| figure.verdict == verdict).count();
        let has_result =
            |cell: &&ComparedCell| cell.comparison.figures.iter().any(ComparedMetric::is_compared);
        let cells = self.cells.iter().filter(has_result).count();
        // A server whose requests all failed must not look like one that is fast enough.
        let others = match self.cells.len() - cells + self.left_out.len() {
            0 => String::new(),
            count => format!("; {} not compared", count_text(count, "cell")),
        };
        format!(
            "{} in {}: {} worse, {} better, {} the same, {} undecided{others}",
            count_text(self.figures().filter(|(_, figure)| figure.is_compared()).count(), "figure"),
            count_text(cells, "cell"),
            of(MetricVerdict::Worse),
            of(MetricVerdict::Better),
            of(MetricVerdict::Same),
            of(MetricVerdict::Inconclusive)
        )
    }

    fn first_reason(&self) -> String {
        let refusals = self.cells.iter().flat_map(|cell| &cell.comparison.refusals);
        let reasons = self.figures().filter_map(|(_, figure)| figure.reason.as_ref());
        let first = refusals.chain(reasons).chain(&self.left_out).next();
        first.map_or_else(String::new, |reason| format!(": {reason}"))
    }
}
