//! The table of evaluations: one row for each arm, quality first, and then the time that it took.
//! Intervals stand next to each share, because few items show little.

use hob_bench::record::{EvalScore, Record, eval_arms};
use hob_bench::terms::Metric;

use super::{BADGE, Column, NOTHING, number};

const ARM: &str = "arm";

const EVAL: [Column; 17] = [
    ("model", &|r| r.model.name.clone()),
    (ARM, &Record::eval_arm),
    ("items", &|r| of(r, |score| Some(score.n.to_string()))),
    ("correct", &|r| of(r, |score| share(score.accuracy, score.accuracy_ci95))),
    ("score", &|r| of(r, |score| share(score.score, score.score_ci95))),
    ("no answer", &|r| of(r, |score| share(without_answer(score), score.no_answer_ci95))),
    ("cut", &|r| r.eval.as_ref().map_or_else(nothing, |eval| eval.cut_answers.to_string())),
    ("first visible", &|r| of(r, |score| seconds(score.ttfv_p50_ms))),
    ("whole", &|r| of(r, |score| seconds(score.total_p50_ms))),
    ("95 %", &|r| of(r, |score| seconds(score.total_p95_ms))),
    ("thought", &|r| of(r, |score| score.thought_tokens.map(|tokens| format!("{tokens:.0}")))),
    ("said", &|r| of(r, |score| score.said_tokens.map(|tokens| format!("{tokens:.0}")))),
    ("tok/s", &|r| number(r, Metric::DecodeTokS, 1)),
    ("score/min", &|r| {
        of(r, |score| ranged(score.score_per_minute, score.score_per_minute_ci95, 2))
    }),
    ("s/correct", &|r| of(r, |score| ranged(score.s_per_correct, score.s_per_correct_ci95, 1))),
    ("tok/correct", &|r| of(r, |s| ranged(s.tokens_per_correct, s.tokens_per_correct_ci95, 0))),
    BADGE,
];

/// The table of tasks, below that of arms: a total hides differences between tasks.
const FAMILY: [&str; 7] = ["arm", "task", "items", "correct", "score", "first visible", "whole"];

pub(super) fn eval(records: &[Record]) -> String {
    let arms = eval_arms(&records.iter().collect::<Vec<_>>());
    let mut table = crate::printer::table(EVAL.map(|(title, _)| title));
    let mut families = crate::printer::table(FAMILY);
    for (record, arm) in records.iter().zip(&arms) {
        // The name of an arm is as long as the other records of the table require.
        table.add_row(EVAL.map(|(title, cell)| match title {
            ARM => arm.clone(),
            _ => cell(record),
        }));
        let sizes = record.eval.iter().flat_map(|eval| &eval.sizes);
        for (name, score) in sizes {
            families.add_row([
                arm.clone(),
                name.clone(),
                score.n.to_string(),
                share(score.accuracy, score.accuracy_ci95).unwrap_or_else(nothing),
                share(score.score, score.score_ci95).unwrap_or_else(nothing),
                seconds(score.ttfv_p50_ms).unwrap_or_else(nothing),
                seconds(score.total_p50_ms).unwrap_or_else(nothing),
            ]);
        }
    }
    let notes: String = records.iter().flat_map(notes).flatten().collect();
    format!("{}\n{notes}\n{}", table.trim_fmt(), families.trim_fmt())
}

/// Lines below the table for what few records have.
fn notes(record: &Record) -> [Option<String>; 2] {
    let by_length = record.eval.as_ref().and_then(|eval| eval.accuracy_by_length);
    let overall = record.eval.as_ref().map(|eval| &eval.overall);
    let energy_j = overall
        .and_then(|score| ranged(score.energy_j_per_correct, score.energy_j_per_correct_ci95, 0));
    let name = format!("{} {}", record.model.name, record.eval_arm());
    [
        by_length.map(|share| {
            let percent = share * 100.0;
            format!("{name}: {percent:.1} % correct with log-probabilities divided by the length\n")
        }),
        energy_j
            .map(|joules| format!("{name}: {joules} J of this machine for each correct answer\n")),
    ]
}

fn of(record: &Record, show: impl Fn(&EvalScore) -> Option<String>) -> String {
    record.eval.as_ref().and_then(|eval| show(&eval.overall)).unwrap_or_else(nothing)
}

fn nothing() -> String {
    NOTHING.to_owned()
}

fn share(share: Option<f64>, interval: Option<[f64; 2]>) -> Option<String> {
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let interval = interval
        .map_or(String::new(), |[low, high]| format!(" ({}–{})", percent(low), percent(high)));
    Some(format!("{} %{interval}", percent(share?)))
}

/// A figure with its interval.
fn ranged(value: Option<f64>, interval: Option<[f64; 2]>, places: usize) -> Option<String> {
    let interval =
        interval.map_or(String::new(), |[low, high]| format!(" ({low:.places$}–{high:.places$})"));
    Some(format!("{:.places$}{interval}", value?))
}

fn seconds(ms: Option<f64>) -> Option<String> {
    ms.map(|ms| match ms {
        ..1_000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1e3),
    })
}

/// The share of items; `None` without items.
fn without_answer(score: &EvalScore) -> Option<f64> {
    let silent = ["no_answer", "budget"].iter().filter_map(|verdict| score.verdicts.get(*verdict));
    let silent: u64 = silent.sum();
    (score.n > 0).then(|| silent as f64 / score.n as f64)
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{EvalFigures, RecordKind, RecordSource};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_energy_of_a_correct_answer_has_its_interval() {
        let mut record = Record::new(Uuid::nil(), RecordKind::Eval, RecordSource::default());
        record.model.name = "m".to_owned();
        let overall = EvalScore {
            energy_j_per_correct: Some(120.4),
            energy_j_per_correct_ci95: Some([90.0, 180.0]),
            ..EvalScore::default()
        };
        record.eval = Some(EvalFigures { overall, ..EvalFigures::default() });
        let [_, energy] = notes(&record);
        let energy = energy.expect("a line");
        assert!(
            energy.ends_with(": 120 (90–180) J of this machine for each correct answer\n"),
            "{energy}"
        );
    }
}
