//! The part of a record that only spoken conversations have: the stages of a turn, and the verdict.
//! Times are medians of turns, not of runs: a run has few turns.

use crate::record::{VoiceFigures, VoiceVerdict};
use crate::runs::{Runs, spread};
use crate::terms::Metric;

/// The stages of a turn, in their order. Only hob tells `sentence`, and so `transport`.
const STAGES: [(&str, Metric); 6] = [
    ("endpoint", Metric::EndpointMs),
    ("stt", Metric::TranscriptMs),
    ("llm_ttfat", Metric::FirstTextMs),
    ("sentence", Metric::FirstClauseMs),
    ("tts_ttfa", Metric::FirstVoiceMs),
    ("transport", Metric::TransportMs),
];

/// Half of the turns must be answered within this time.
const PASS_MS_MAX: f64 = 1_500.0;
/// And a conversation feels like one within this time.
const BEST_MS_MAX: f64 = 800.0;

pub(super) fn section(runs: &Runs) -> VoiceFigures {
    let turns = runs.pooled(Metric::TtfaMs);
    let verdict = |p50: f64| match p50 {
        ..BEST_MS_MAX => VoiceVerdict::Best,
        ..PASS_MS_MAX => VoiceVerdict::Pass,
        _ => VoiceVerdict::Fail,
    };
    let median = |metric| runs.pooled(metric).median();
    let stages = STAGES.into_iter();
    let stages = stages.filter_map(|(name, metric)| Some((name.to_owned(), median(metric)?)));
    VoiceFigures {
        turns: Some(turns.count() as u64),
        ttfa_ms: Some(spread(&turns, &turns)),
        stages_ms: stages.collect(),
        verdict: turns.median().map(verdict),
        barge_in_ms: median(Metric::BargeInMs),
        cut_in_pct: runs.pooled(Metric::CutInPct).mean(),
    }
}
