//! Compares simulated runs whose true difference is known, and counts wrong verdicts.
//! The simulated runs drift and vary as on a real machine. Each simulation has a seed.

use hob_core::statistics::{Sample, SeededRandom};
use uuid::Uuid;

use super::*;
use crate::record::{
    Arrival, Cache, CountSource, Harness, LanguageErrors, RawSample, Reasoning, Record, RecordKind,
    RecordSource, RecordedTokens, RunStatus, Spread, Stt,
};

/// Standard deviation of a run as a share of its value, as on a quiet machine with a variable clock speed.
const RUN_NOISE: f64 = 0.012;
/// Change from the first run to the last, as a share. Alternating runs remove its effect.
const DRIFT: f64 = 0.03;

/// An approximately normal value: the sum of 12 uniform values.
fn normal(random: &mut SeededRandom) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// A measured run whose true value is `truth`.
fn measured_run(random: &mut SeededRandom, truth: f64, drift: f64) -> f64 {
    truth * (1.0 + drift) * (1.0 + RUN_NOISE * normal(random))
}

/// Runs in the order A B B A, as pairs.
fn in_turns(random: &mut SeededRandom, count: usize, truths: [f64; 2]) -> Vec<(f64, f64)> {
    (0..count)
        .map(|at| {
            let drift = DRIFT * at as f64 / count as f64;
            let [a, b] = truths;
            match at % 2 {
                0 => {
                    let first = measured_run(random, a, drift);
                    (first, measured_run(random, b, drift))
                }
                _ => {
                    let second = measured_run(random, b, drift);
                    (measured_run(random, a, drift), second)
                }
            }
        })
        .collect()
}

fn rule(pairing: Pairing) -> Rule {
    Rule::for_pairing(pairing, &CompareOptions::default())
}

/// The metrics of one campaign. The second side takes `times` as long.
fn campaign(seed: u64, times: f64) -> Vec<ComparedMetric> {
    let mut random = SeededRandom::new(seed);
    let compared = |(metric, truth): (Metric, f64)| {
        let pairs = in_turns(&mut random, 8, [truth, truth * times]);
        compare_pairs(metric, &pairs, &rule(Pairing::Paired))
    };
    [(Metric::TtftMs, 80.0), (Metric::TpotMs, 20.0)].into_iter().map(compared).collect()
}

#[test]
fn equal_sides_rarely_differ_and_almost_never_regress() {
    let (mut different, mut failed, trials) = (0, 0, 200);
    for seed in 0..trials {
        let figures = campaign(seed, 1.0);
        let pace = figures.iter().find(|one| one.metric == Metric::TpotMs).expect("a figure");
        let [low, high] = pace.change_ci95_pct.expect("an interval");
        different += u32::from(low > 0.0 || high < 0.0);
        failed += u32::from(figures.iter().any(|figure| figure.regression_pct().is_some()));
    }
    assert!(different <= 18, "{different} of {trials} are called different");
    assert!(failed <= 1, "{failed} of {trials} fail");
}

#[test]
fn five_percent_more_time_per_token_is_detected() {
    let is_found = |seed: &u64| {
        let figures = campaign(1_000 + seed, 1.05);
        figures
            .iter()
            .any(|one| one.metric == Metric::TpotMs && one.verdict == MetricVerdict::Worse)
    };
    let found = (0..100).filter(is_found).count();
    assert!(found >= 95, "{found} of 100");
}

#[test]
fn seven_pairs_are_inconclusive() {
    let mut random = SeededRandom::new(1);
    let pairs = in_turns(&mut random, 7, [20.0, 30.0]);
    let compared = compare_pairs(Metric::TpotMs, &pairs, &rule(Pairing::Paired));
    assert_eq!(compared.verdict, MetricVerdict::Inconclusive);
    assert_eq!(compared.reason.as_deref(), Some("7 pairs of runs are too few (at least 8)"));
    assert!(!compared.is_compared());
    let none = compare_pairs(Metric::TpotMs, &[], &rule(Pairing::Paired));
    assert_eq!(none.reason.as_deref(), Some("there are no pairs"));
}

#[test]
fn a_smaller_time_is_faster_and_a_smaller_rate_is_slower() {
    let mut random = SeededRandom::new(2);
    let less = in_turns(&mut random, 10, [100.0, 90.0]);
    let word = |metric| compare_pairs(metric, &less, &rule(Pairing::Paired)).finding;
    assert_eq!(word(Metric::TtftMs), "faster");
    assert_eq!(word(Metric::ThroughputTokS), "slower");
    assert_eq!(word(Metric::Wer), "better");
    assert!(!has_direction(Metric::PromptTokens), "neither more nor less is better");
    let zeros = compare_pairs(Metric::SilenceMs, &[(0.0, 0.0); 8], &rule(Pairing::Paired));
    assert_eq!((zeros.verdict, zeros.change_pct), (MetricVerdict::Same, None));
}

/// A record with its samples, for runs whose true value is known.
fn sampled(id: u128, runs: usize, tpot_ms: f64) -> SampledRecord {
    let mut random = SeededRandom::new(id as u64);
    let tokens = 64;
    let sample = |run: u32, random: &mut SeededRandom| {
        let gap = (measured_run(random, tpot_ms, 0.0) * 1e3) as u64;
        let ttft = (measured_run(random, 80.0, 0.0) * 1e3) as u64;
        RawSample {
            run,
            t_sched_us: Some(0),
            dispatch_us: Some(50),
            ttft_us: Some(ttft),
            e2e_us: Some(ttft + gap * (tokens - 1)),
            gaps_us: vec![gap; tokens as usize - 1],
            tokens: RecordedTokens {
                prompt: Some(64),
                cached: Some(0),
                reasoning: Some(0),
                content: Some(tokens),
            },
            ..RawSample::default()
        }
    };
    let samples: Vec<RawSample> = (0..runs as u32).map(|run| sample(run, &mut random)).collect();
    let source = RecordSource { tool: "hob".to_owned(), ..RecordSource::default() };
    let mut record = Record::new(Uuid::from_u128(id), RecordKind::Llm, source);
    record.model.name = "m".to_owned();
    record.host.id_hash = Some("here".to_owned());
    record.count_source = Some(CountSource::Usage);
    record.workload.shape = Some("short_short".to_owned());
    record.workload.concurrency = Some(1);
    record.workload.cache = Some(Cache::Cold);
    let ms = |pick: fn(&RawSample) -> f64| Sample::new(samples.iter().map(pick));
    let figures = [
        (Metric::TtftMs, ms(|sample| sample.ttft_us.unwrap_or_default() as f64 / 1e3)),
        (Metric::TpotMs, ms(|sample| sample.gaps_us[0] as f64 / 1e3)),
    ];
    for (metric, sample) in figures {
        let spread =
            Spread { p50: sample.median(), ci95: sample.median_interval(), ..Spread::default() };
        record.metrics.spreads.insert(metric, spread);
    }
    SampledRecord { record, samples }
}

fn without_samples(one: &SampledRecord) -> SampledRecord {
    SampledRecord { samples: Vec::new(), ..one.clone() }
}

/// The options of `--fail-on-regression`.
fn judging(options: &CompareOptions) -> CompareOptions {
    let figures = MetricSelection::Only(USER_FIGURES.to_vec());
    CompareOptions { figures, requires_same_machine: true, ..options.clone() }
}

/// One of two records that differ only in this change.
fn changed(id: u128, change: impl FnOnce(&mut Record)) -> SampledRecord {
    let mut one = sampled(id, 8, 20.0);
    change(&mut one.record);
    one
}

/// A report with the default options of `--fail-on-regression`.
fn judged(base: &[SampledRecord], new: &[SampledRecord]) -> CompareReport {
    report(base, new, &judging(&CompareOptions::default()))
}

fn compared(base: &SampledRecord, new: &SampledRecord) -> Comparison {
    compare(std::slice::from_ref(base), std::slice::from_ref(new), &CompareOptions::default())
}

fn verdict_of(comparison: &Comparison, metric: Metric) -> (MetricVerdict, RatioBasis) {
    let figure = comparison.figures.iter().find(|figure| figure.metric == metric);
    figure.map(|figure| (figure.verdict, figure.basis)).expect("a figure")
}

#[test]
fn records_of_two_campaigns_are_compared_by_runs_without_pairs() {
    let comparison = compared(&sampled(1, 8, 20.0), &sampled(2, 8, 22.0));
    assert_eq!(comparison.pairing, Pairing::Unpaired);
    assert_eq!(verdict_of(&comparison, Metric::TpotMs), (MetricVerdict::Worse, RatioBasis::Runs));
    assert_eq!(verdict_of(&comparison, Metric::TtftMs), (MetricVerdict::Same, RatioBasis::Runs));
    // The difference is 3 %, which is below the threshold for measurements on different days.
    let comparison = compared(&sampled(1, 8, 20.0), &sampled(2, 8, 20.6));
    let (verdict, _) = verdict_of(&comparison, Metric::TpotMs);
    assert!(matches!(verdict, MetricVerdict::Same | MetricVerdict::Inconclusive), "{verdict:?}");
    let few = compared(&sampled(1, 5, 20.0), &sampled(2, 8, 30.0));
    assert_eq!(few.figures[0].reason.as_deref(), Some("5 runs are too few (at least 6 of each)"));
}

#[test]
fn without_samples_only_separate_intervals_decide() {
    let (a, near, far) = (sampled(1, 8, 20.0), sampled(2, 8, 20.1), sampled(3, 8, 22.0));
    let overlapping = compared(&without_samples(&a), &near);
    assert_eq!(
        verdict_of(&overlapping, Metric::TpotMs),
        (MetricVerdict::Inconclusive, RatioBasis::Medians)
    );
    assert_eq!(
        overlapping.figures[1].reason.as_deref(),
        Some("the individual runs are unknown, and the intervals overlap")
    );
    let apart = compared(&a, &without_samples(&far));
    assert_eq!(verdict_of(&apart, Metric::TpotMs), (MetricVerdict::Worse, RatioBasis::Medians));
    let mut bare = without_samples(&a);
    bare.record.metrics.spreads.values_mut().for_each(|spread| spread.ci95 = None);
    let unknown = compared(&bare, &far);
    let reason = unknown.figures[1].reason.as_deref();
    assert_eq!(reason, Some("only medians are known, without intervals"));
}

#[test]
fn samples_that_contradict_their_record_are_ignored() {
    let (a, mut b) = (sampled(1, 8, 20.0), sampled(2, 8, 20.0));
    for sample in &mut b.samples {
        sample.ttft_us = sample.ttft_us.map(|us| us * 2);
    }
    let comparison = compared(&a, &b);
    let (_, basis) = verdict_of(&comparison, Metric::TtftMs);
    assert_eq!(basis, RatioBasis::Medians);
}

#[test]
fn incomparable_records_are_refused_with_a_reason() {
    type Change = fn(&mut Record);
    let rows: [(Change, &str); 9] = [
        (|r| r.kind = RecordKind::Tts, "different kind: llm and tts"),
        (
            |r| r.workload.shape = Some("agentic".to_owned()),
            "different shape: short_short and agentic",
        ),
        (|r| r.workload.concurrency = Some(4), "different number of users: 1 and 4"),
        (|r| r.workload.cache = Some(Cache::Cached), "different cache: cold and cached"),
        (|r| r.status = RunStatus::Oom, "00000002 did not complete"),
        (
            |r| r.invalid_reasons = vec!["the client was late".to_owned()],
            "00000002 is not a valid measurement: the client was late",
        ),
        (|r| r.workload.cache = Some(Cache::Mixed), "00000002 mixed cached and uncached prompts"),
        (|r| r.workload.version = Some(2), ""),
        (|r| r.workload.reasoning = Some(Reasoning::Enabled), ""),
    ];
    for (change, expected) in rows {
        let comparison = compared(&sampled(1, 8, 20.0), &changed(2, change));
        if expected.is_empty() {
            assert!(
                comparison.refusals.is_empty() && comparison.marks.len() == 1,
                "not known of one"
            );
        } else {
            assert_eq!(comparison.refusals.first().map(String::as_str), Some(expected));
            assert!(comparison.figures.is_empty(), "{expected}");
        }
    }
}

#[test]
fn evaluations_at_different_temperatures_are_refused() {
    let at = |id, temperature| {
        changed(id, |r| (r.kind, r.workload.temperature) = (RecordKind::Eval, Some(temperature)))
    };
    let refused = compared(&at(1, 0.0), &at(2, 0.7)).refusals;
    assert_eq!(refused, ["different temperature: 0 and 0.7"]);
    assert!(compared(&at(1, 0.0), &at(2, 0.0)).refusals.is_empty());
}

#[test]
fn requests_at_even_times_are_not_compared_with_those_at_random_times() {
    let at_rate = |id, arrival| {
        changed(id, |r| (r.workload.rate, r.workload.arrival) = (Some(2.0), Some(arrival)))
    };
    let (even, random) = (at_rate(1, Arrival::Constant), at_rate(2, Arrival::Poisson));
    let refused = compared(&even, &random).refusals;
    assert_eq!(refused, ["different arrival of requests: constant and poisson"]);
    assert!(compared(&even, &at_rate(2, Arrival::Constant)).refusals.is_empty());
}

#[test]
fn changed_rules_for_other_languages_do_not_matter_to_a_set_in_english() {
    let by = |id, rules: &str, languages: &[&str]| {
        let languages =
            languages.iter().map(|code| ((*code).to_owned(), LanguageErrors::default())).collect();
        let normaliser = Some(rules.to_owned());
        changed(id, |r| r.stt = Some(Stt { normaliser, languages, ..Stt::default() }))
    };
    let refusals = |languages: &[&str]| {
        let rules = ["english/1, basic/1", "english/1, basic/2"];
        compared(&by(1, rules[0], languages), &by(2, rules[1], languages)).refusals
    };
    assert!(refusals(&["en"]).is_empty());
    assert_eq!(refusals(&["de"]), ["different normaliser: basic/1 and basic/2"]);
    let both = ["different normaliser: english/1, basic/1 and english/1, basic/2"];
    assert_eq!(refusals(&["de", "en"]), both);
    assert_eq!(refusals(&[]), both, "not known");
}

#[test]
fn harmless_differences_are_reported() {
    let new = changed(2, |record| {
        record.host.id_hash = Some("there".to_owned());
        record.count_source = Some(CountSource::Chunks);
    });
    let comparison = compared(&sampled(1, 8, 20.0), &new);
    assert_eq!(comparison.marks, ["different machine: here and there"]);
    assert_eq!(verdict_of(&comparison, Metric::TtftMs).0, MetricVerdict::Same);
    let pace = comparison.figures.iter().find(|figure| figure.metric == Metric::TpotMs);
    let reason = pace.and_then(|figure| figure.reason.as_deref());
    assert_eq!(reason, Some("not compared: different count of tokens: usage and chunks"));
}

/// Two records of one campaign.
fn campaign_of_records(times: f64) -> [SampledRecord; 2] {
    let mut both = [sampled(1, 8, 20.0), sampled(2, 8, 20.0 * times)];
    for (at, one) in both.iter_mut().enumerate() {
        let record = &mut one.record;
        record.harness = Some(Harness {
            argv: ["hob", "bench", "compare"].map(str::to_owned).to_vec(),
            seed: 5,
            ..Harness::default()
        });
        record.workload.prompts_sha256 = Some("dd".to_owned());
        record.time.started = format!("2026-11-21T10:0{at}:00Z").parse().ok();
        record.time.ended = "2026-11-21T10:30:00Z".parse().ok();
    }
    both
}

#[test]
fn only_runs_of_one_campaign_are_paired() {
    let [a, b] = campaign_of_records(1.1);
    let comparison = compared(&a, &b);
    assert_eq!(comparison.pairing, Pairing::Paired);
    assert_eq!(verdict_of(&comparison, Metric::TpotMs), (MetricVerdict::Worse, RatioBasis::Pairs));
    assert_eq!(comparison.figures[0].threshold_pct, THRESHOLD_PAIRED_PCT);
    type Change = fn(&mut SampledRecord);
    let changes: [Change; 5] = [
        |one| one.record.time.started = "2026-11-21T10:31:00Z".parse().ok(),
        |one| one.record.harness.as_mut().unwrap().argv.push("again".to_owned()),
        |one| one.record.host.id_hash = None,
        |one| one.record.workload.prompts_sha256 = Some("ee".to_owned()),
        |one| one.samples.clear(),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut other = b.clone();
        change(&mut other);
        let is_later = at == 0;
        if is_later {
            other.record.time.ended = "2026-11-21T10:40:00Z".parse().ok();
        }
        assert_eq!(compared(&a, &other).pairing, Pairing::Unpaired, "change {at}");
    }
}

#[test]
fn equal_seeds_are_refused_if_the_cache_state_is_unverified() {
    let [a, mut b] = campaign_of_records(0.1);
    b.record.time.started = "2026-11-21T10:31:00Z".parse().ok();
    b.record.time.ended = "2026-11-21T10:40:00Z".parse().ok();
    let unverified = |mut one: SampledRecord| {
        one.record.workload.cache = Some(Cache::Cold);
        one.record.workload.cache_verified = Some(false);
        one
    };
    let comparison = compared(&unverified(a.clone()), &unverified(b.clone()));
    assert!(comparison.refusals[0].contains("measure again without --seed"), "{comparison:?}");
    b.record.harness.as_mut().expect("a harness").seed = 6;
    assert_eq!(compared(&unverified(a), &unverified(b)).refusals, [""; 0], "other prompts");
}

#[test]
fn a_report_counts_only_proven_regressions_and_has_a_summary() {
    let all = |ids: [u128; 2], tpot_ms: f64| ids.map(|id| sampled(id, 8, tpot_ms)).to_vec();
    let (base, slow, same) = (all([1, 2], 20.0), all([3, 4], 22.0), all([5, 6], 20.0));
    let failed = judged(&base, &slow);
    assert_eq!(failed.verdict, ReportVerdict::Regressed);
    assert_eq!(failed.cells[0].comparison.new.ids.len(), 2, "two records of one cell are one side");
    let summary = failed.summary.clone();
    assert!(summary.starts_with("hob bench compare: regression, tpot_ms "), "{summary}");
    assert!(summary.ends_with("slower in m llm short_short 1 user (2 figures in 1 cell: 1 worse, 0 better, 1 the same, 0 undecided)"), "{summary}");
    let passed = judged(&base, &same);
    assert_eq!(passed.verdict, ReportVerdict::Passed);
    assert!(passed.summary.starts_with("hob bench compare: no regression (2 figures in 1 cell"));
    let wide = CompareOptions { threshold_pct: Some(50.0), ..CompareOptions::default() };
    assert_eq!(report(&base, &slow, &judging(&wide)).verdict, ReportVerdict::Passed);
    let mut crashed = sampled(7, 8, 20.0);
    crashed.record.workload.shape = Some("agentic".to_owned());
    let with_other = [base.clone(), vec![crashed.clone()]].concat();
    crashed.record.status = RunStatus::Oom;
    let half = [same.clone(), vec![crashed]].concat();
    let partly = judged(&with_other, &half).summary;
    assert!(partly.ends_with("undecided; 1 cell not compared)"), "{partly}");
    let faster = judged(&slow, &base);
    assert_eq!(faster.verdict, ReportVerdict::Passed, "an improvement does not fail");
    let figures = MetricSelection::Only(vec![Metric::TtftMs]);
    let of_one = CompareOptions { figures, ..CompareOptions::default() };
    assert_eq!(report(&base, &slow, &of_one).verdict, ReportVerdict::Passed);
}

#[test]
fn a_report_without_a_comparison_has_not_passed() {
    let base = sampled(1, 8, 20.0);
    let elsewhere = changed(2, |record| record.host.id_hash = Some("there".to_owned()));
    let few = sampled(3, 3, 20.0);
    let other = changed(4, |record| record.model.name = "n".to_owned());
    let another = changed(5, |record| record.model.name = "o".to_owned());
    let rows = [
        (vec![elsewhere], "the machines differ, and a regression is only judged on one machine"),
        (vec![few], "3 runs are too few (at least 6 of each)"),
        (vec![other, another], "m llm short_short 1 user: only in the base"),
    ];
    for (new, reason) in rows {
        let report = judged(std::slice::from_ref(&base), &new);
        assert_eq!(report.verdict, ReportVerdict::Incomparable, "{reason}");
        assert_eq!(
            report.summary,
            format!("hob bench compare: nothing could be compared: {reason}")
        );
    }
}

#[test]
fn a_cell_says_that_its_prompt_was_known() {
    let cold = sampled(1, 8, 20.0);
    let cached = changed(2, |record| record.workload.cache = Some(Cache::Cached));
    let found = report(&[cold.clone(), cached], &[cold], &CompareOptions::default());
    assert_eq!(found.left_out, ["m llm short_short known prompt 1 user: only in the base"]);
}

#[test]
fn learned_noise_raises_the_threshold() {
    let noisy = [sampled(1, 8, 20.0), sampled(2, 8, 21.6)];
    let noise = NoiseFloor::learned(&noisy).expect("of one thing");
    let learned = noise.noise_pct(Metric::TpotMs).expect("a figure");
    assert!((8.0..12.0).contains(&learned), "{learned}");
    let wish = CompareOptions { noise, ..CompareOptions::default() };
    let (base, new) = ([sampled(3, 8, 20.0)], [sampled(4, 8, 21.6)]);
    assert_eq!(report(&base, &new, &judging(&wish)).verdict, ReportVerdict::Passed);
    assert_eq!(judged(&base, &new).verdict, ReportVerdict::Regressed);
    let other = changed(5, |record| record.workload.concurrency = Some(4));
    assert_eq!(
        NoiseFloor::learned(&[sampled(1, 8, 20.0), other]),
        Err("different number of users: 1 and 4".to_owned())
    );
}

#[test]
fn a_side_with_different_workloads_is_refused() {
    let a = sampled(1, 8, 20.0);
    let b = changed(2, |record| record.engine.version = Some("2".to_owned()));
    let comparison = compare(&[a.clone(), b], &[a], &CompareOptions::default());
    assert_eq!(
        comparison.refusals,
        ["00000001 and 00000002 are on one side and measure different things"]
    );
    let nothing = compare(&[], &[], &CompareOptions::default());
    assert_eq!(nothing.refusals, ["there are no records to compare"]);
}
