//! A record's figures run by run, computed from its samples: a run's figure is the median of its requests.
//! The formulas are those of `timeline::figures`, on times that were rounded to microseconds.

use std::collections::BTreeMap;

use hob_core::statistics::Sample;

use crate::record::{RawSample, Record};
use crate::terms::Metric;

/// Largest relative difference between the samples' median and the record's. With more, the samples do not belong to it.
const APART_MAX: f64 = 0.01;
/// Absolute tolerance in ms, because samples have whole microseconds.
const ROUNDED: f64 = 0.002;

/// The figure of each run, by run number. None if the samples do not contain it or contradict the record.
pub fn runs(record: &Record, samples: &[RawSample], metric: Metric) -> Option<BTreeMap<u32, f64>> {
    let mut samples_by_run: BTreeMap<u32, Vec<&RawSample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.error.is_none()) {
        samples_by_run.entry(sample.run).or_default().push(sample);
    }
    // At a rate, the whole run counts: from its first request to its last answer.
    let users = record.workload.concurrency.filter(|_| record.workload.rate.is_none());
    let users = users.map_or(1, |users| users as usize);
    let figure = |run: &[&RawSample]| of_run(metric, run, users);
    let runs: BTreeMap<u32, f64> = samples_by_run
        .iter()
        .filter_map(|(number, samples)| Some((*number, figure(samples)?)))
        .collect();
    let median = Sample::new(runs.values().copied()).median()?;
    let recorded = record.metrics.figure(metric)?;
    ((median - recorded).abs() <= recorded.abs() * APART_MAX + ROUNDED).then_some(runs)
}

fn of_run(metric: Metric, run: &[&RawSample], users: usize) -> Option<f64> {
    match metric {
        Metric::ThroughputTokS => rates(run, users).map(|(tokens, _)| tokens),
        Metric::RequestsS => rates(run, users).map(|(_, requests)| requests),
        Metric::IcgMs => {
            let gaps = run.iter().flat_map(|sample| &sample.gaps_us);
            Sample::new(gaps.map(|us| *us as f64 / 1e3)).median()
        }
        metric => Sample::new(run.iter().filter_map(|sample| of_one(metric, sample))).median(),
    }
}

fn of_one(metric: Metric, sample: &RawSample) -> Option<f64> {
    let ms = |us: Option<u64>| us.map(|us| us as f64 / 1e3);
    let from_due = |us: Option<u64>| Some(ms(us)? + ms(sample.dispatch_us)?);
    match metric {
        Metric::TtfbMs => ms(sample.ttfb_us),
        Metric::TtftMs | Metric::FirstPartialMs => ms(sample.ttft_us),
        Metric::TtfatMs => ms(sample.ttfat_us),
        Metric::TtfaMs => ms(sample.ttfa_us),
        Metric::E2eMs | Metric::WallMs | Metric::FinalTextMs => ms(sample.e2e_us),
        Metric::SilenceMs => Some(ms(sample.ttfat_us)? - ms(sample.ttft_us)?),
        Metric::TtfbSchedMs => from_due(sample.ttfb_us),
        Metric::TtftSchedMs => from_due(sample.ttft_us),
        Metric::TtfatSchedMs => from_due(sample.ttfat_us),
        Metric::E2eSchedMs => from_due(sample.e2e_us),
        Metric::DispatchMs => ms(sample.dispatch_us),
        Metric::ConnectMs => ms(sample.connect_us),
        Metric::TpotMs => pace(sample).map(|(span_ms, later)| span_ms / later),
        Metric::DecodeTokS => pace(sample).map(|(span_ms, later)| later / span_ms * 1e3),
        Metric::ReasoningTokens => sample.tokens.reasoning.map(|tokens| tokens as f64),
        _ => None,
    }
}

fn tokens(sample: &RawSample) -> Option<f64> {
    let counted = sample.tokens.reasoning.zip(sample.tokens.content)?;
    Some((counted.0 + counted.1) as f64)
}

/// Time from the first chunk to the last in ms, and the number of tokens after the first chunk.
fn pace(sample: &RawSample) -> Option<(f64, f64)> {
    let tokens = tokens(sample)?;
    let span_ms = (sample.e2e_us?.checked_sub(sample.ttft_us?)?) as f64 / 1e3;
    let later = tokens - (tokens / (sample.gaps_us.len() + 1) as f64).max(1.0);
    (span_ms > 0.0 && later > 0.0).then_some((span_ms, later))
}

/// Tokens and answers per second, while all users had a request running.
fn rates(run: &[&RawSample], users: usize) -> Option<(f64, f64)> {
    let sent_us = |sample: &RawSample| Some(sample.t_sched_us? + sample.dispatch_us?);
    let mut sent: Vec<u64> = run.iter().map(|sample| sent_us(sample)).collect::<Option<_>>()?;
    let end_us = |sample: &RawSample| Some(sent_us(sample)? + sample.e2e_us?);
    let mut ends: Vec<u64> = run.iter().map(|sample| end_us(sample)).collect::<Option<_>>()?;
    sent.sort_unstable();
    ends.sort_unstable();
    let from = *sent.get(users.checked_sub(1)?)?;
    let until = *ends.get(ends.len().checked_sub(users)?)?;
    let window_s = until.checked_sub(from).filter(|us| *us > 0)? as f64 / 1e6;
    let mut tokens_in_window = 0.0;
    for sample in run {
        let each = tokens(sample)? / (sample.gaps_us.len() + 1) as f64;
        tokens_in_window += each * arrivals(sample, sent_us(sample)?, from, until)?;
    }
    let answers = ends.iter().filter(|end| **end <= until).count() as f64;
    Some((tokens_in_window / window_s, answers / window_s))
}

/// Number of chunks in the window. Gaps were rounded one by one, so their sum may pass the end of the answer.
fn arrivals(sample: &RawSample, sent_us: u64, from: u64, until: u64) -> Option<f64> {
    let end = sent_us + sample.e2e_us?;
    let mut at = sent_us + sample.ttft_us?;
    let mut within = u32::from((from..=until).contains(&at.min(end)));
    for gap in &sample.gaps_us {
        at += gap;
        within += u32::from((from..=until).contains(&at.min(end)));
    }
    Some(f64::from(within))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RecordedTokens, Spread};

    #[test]
    fn a_rate_of_requests_is_that_of_the_whole_run() {
        // Two requests, a second apart, with an answer of 200 ms each.
        let at = |t_sched_us| RawSample {
            t_sched_us: Some(t_sched_us),
            dispatch_us: Some(0),
            ttft_us: Some(100_000),
            e2e_us: Some(200_000),
            gaps_us: vec![100_000],
            tokens: RecordedTokens { reasoning: Some(0), content: Some(2), ..Default::default() },
            ..RawSample::default()
        };
        let mut record = Record::default();
        (record.workload.rate, record.workload.concurrency) = (Some(1.0), Some(128));
        let spread = Spread { p50: Some(2.0 / 1.2), ..Spread::default() };
        record.metrics.spreads.insert(Metric::RequestsS, spread);
        let found = runs(&record, &[at(0), at(1_000_000)], Metric::RequestsS);
        assert_eq!(found, Some([(0, 2.0 / 1.2)].into()));
    }

    #[test]
    fn rounding_puts_no_chunk_after_the_end() {
        // Four gaps of 1,000.6 µs are 4,004 together when each is rounded, and 4,002 in truth.
        let gaps_us = vec![1001; 4];
        let (ttft_us, e2e_us) = (Some(500), Some(4502));
        let sample = RawSample { ttft_us, e2e_us, gaps_us, ..RawSample::default() };
        assert_eq!(arrivals(&sample, 0, 0, 4502), Some(5.0));
        assert_eq!(arrivals(&sample, 0, 0, 4000), Some(4.0));
    }
}
