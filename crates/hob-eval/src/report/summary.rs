//! The summary of one arm: accuracy, time, tokens and energy, and over how many items.
//! An answer that never came is counted apart from a wrong one.

use std::collections::BTreeMap;

use hob_core::statistics::Sample;
use serde::Serialize;

use super::{Estimate, ItemOutcome};
use crate::Verdict;

/// The figures of one arm over some items.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub items: usize,
    /// Share of correct answers, with Wilson's interval.
    pub accuracy: Estimate,
    /// Mean score, with Wilson's interval.
    pub mean_score: Estimate,
    /// Number of items by verdict, for verdicts that occurred.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// Share of items without an answer (`NoAnswer` and `Budget`), with Wilson's interval.
    pub without_answer: Estimate,
    /// Time to the first visible character. An item that shows none counts as slower than all others.
    pub ttfv_ms: TimeSpread,
    pub total_ms: TimeSpread,
    /// Mean wait, in seconds, for items that spent their budget and said nothing.
    pub budget_silence_s: Option<f64>,
    /// Mean over the items that report it.
    pub thought_tokens: Option<f64>,
    pub said_tokens: Option<f64>,
    pub said_words_p50: Option<f64>,
    /// Sum of scores over minutes waited.
    pub score_per_minute: Option<Estimate>,
    /// Expected time until a correct answer: mean total time over accuracy. That equals all seconds over all correct
    /// answers. `None` without a correct answer.
    pub seconds_per_correct: Option<Estimate>,
    /// Thought and said tokens of all items over correct answers. `None` when an item does not report its said tokens.
    pub tokens_per_correct: Option<Estimate>,
    /// In joules. `None` when an item has no energy.
    pub energy_per_correct_j: Option<Estimate>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeSpread {
    pub p50: Option<f64>,
    /// `None` with fewer than 20 items.
    pub p95: Option<f64>,
}

/// The summary of an arm, and of each of its families and sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breakdown {
    pub all: Summary,
    pub by_family: BTreeMap<String, Summary>,
    /// By `FAMILY:SIZE`.
    pub by_size: BTreeMap<String, Summary>,
}

impl Summary {
    /// `None` without outcomes, and with a score that is not a number.
    pub fn of(outcomes: &[ItemOutcome], seed: u64) -> Option<Summary> {
        Summary::over(&outcomes.iter().collect::<Vec<_>>(), seed)
    }

    fn over(items: &[&ItemOutcome], seed: u64) -> Option<Summary> {
        let n = items.len();
        let mut verdicts: BTreeMap<Verdict, usize> = BTreeMap::new();
        for item in items {
            *verdicts.entry(item.verdict).or_default() += 1;
        }
        let count = |verdict| verdicts.get(&verdict).copied().unwrap_or_default();
        let silent = count(Verdict::NoAnswer) + count(Verdict::Budget);
        let accuracy = Estimate::of_share(count(Verdict::Correct), n)?;
        let points: f64 = items.iter().map(|item| item.score.clamp(0.0, 1.0)).sum();
        let mean_score = Estimate::of_points(points, n)?;
        let without_answer = Estimate::of_share(silent, n)?;
        let silence = items.iter().filter(|item| item.verdict == Verdict::Budget);
        let scores_and_minutes: Vec<(f64, f64)> =
            items.iter().map(|item| (item.score, item.total_ms / 60_000.0)).collect();
        let seconds = |item: &ItemOutcome| Some(item.total_ms / 1000.0);
        Some(Summary {
            items: n,
            accuracy,
            mean_score,
            verdicts,
            without_answer,
            ttfv_ms: TimeSpread::of(items.iter().map(|item| item.ttfv_ms)),
            total_ms: TimeSpread::of(items.iter().map(|item| Some(item.total_ms))),
            budget_silence_s: mean(silence.map(|item| item.total_ms / 1000.0)),
            thought_tokens: mean(
                items.iter().filter_map(|item| item.thought_tokens).map(f64::from),
            ),
            said_tokens: mean(items.iter().filter_map(|item| item.said_tokens).map(f64::from)),
            said_words_p50: Sample::new(items.iter().map(|item| f64::from(item.said_words))).p50(),
            score_per_minute: Estimate::of_rate(&scores_and_minutes, mean_score, seed),
            seconds_per_correct: per_correct(items, seconds, accuracy, seed),
            tokens_per_correct: per_correct(items, tokens, accuracy, seed),
            energy_per_correct_j: per_correct(items, |item| item.energy_j, accuracy, seed),
        })
    }
}

impl Breakdown {
    /// `None` without outcomes.
    pub fn of(outcomes: &[ItemOutcome], seed: u64) -> Option<Breakdown> {
        let by = |name: fn(&ItemOutcome) -> String| -> BTreeMap<String, Summary> {
            let mut groups: BTreeMap<String, Vec<&ItemOutcome>> = BTreeMap::new();
            for item in outcomes {
                groups.entry(name(item)).or_default().push(item);
            }
            let summary = |(name, items): (String, Vec<&ItemOutcome>)| {
                Some((name, Summary::over(&items, seed)?))
            };
            groups.into_iter().filter_map(summary).collect()
        };
        Some(Breakdown {
            all: Summary::of(outcomes, seed)?,
            by_family: by(|item| item.family.clone()),
            by_size: by(|item| format!("{}:{}", item.family, item.size)),
        })
    }
}

impl TimeSpread {
    /// A missing time counts as infinite. A percentile that falls on one has no figure.
    fn of(times: impl Iterator<Item = Option<f64>>) -> TimeSpread {
        let sample = Sample::new(times.map(|time| time.unwrap_or(f64::INFINITY)));
        let finite = |time: Option<f64>| time.filter(|time| time.is_finite());
        TimeSpread { p50: finite(sample.p50()), p95: finite(sample.p95()) }
    }
}

/// The cost of all items over the correct answers. `None` when an item has no cost, and without a correct answer.
fn per_correct(
    items: &[&ItemOutcome],
    cost: impl Fn(&ItemOutcome) -> Option<f64>,
    accuracy: Estimate,
    seed: u64,
) -> Option<Estimate> {
    let pairs = items.iter().map(|&item| Some((is_correct(item), cost(item)?)));
    let correct_and_cost: Vec<(f64, f64)> = pairs.collect::<Option<_>>()?;
    // The interval of its inverse is finite also where a resample has no correct answer.
    Estimate::of_rate(&correct_and_cost, accuracy, seed)?.inverse()
}

fn is_correct(item: &ItemOutcome) -> f64 {
    f64::from(u8::from(item.verdict == Verdict::Correct))
}

fn tokens(item: &ItemOutcome) -> Option<f64> {
    let thought = item.thought_tokens.unwrap_or(0);
    item.said_tokens.map(|said| f64::from(said) + f64::from(thought))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    Sample::new(values).mean()
}
