//! Computes one answer's figures by the definitions of `terms`.
//! Unknown figures are None, and assumptions are flagged.

use std::collections::{BTreeMap, BTreeSet};

use super::{Chunk, ChunkKind, Timeline, millis};
use crate::record::CountSource;
use crate::terms::{Metric, known};

/// Least pause that counts as a stall.
const STALL_MS_MIN: f64 = 250.0;
/// Least stall as a multiple of the median gap.
const STALL_TIMES: f64 = 5.0;
/// Minimum number of computed tokens for a prefill speed.
const PREFILL_TOKENS_MIN: u32 = 64;
/// Maximum tokens of an answer without text, such as thinking tags and the end token.
const TEXTLESS_TOKENS_MAX: u32 = 8;
/// The time to the first token must be at least this many times the client's own error.
const PREFILL_ERRORS_MIN: f64 = 20.0;

/// An assumption or error about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The server's token count cannot be true.
    CountsImpossible,
    /// The server reports no token count, so chunks were counted.
    CountsMissing,
    /// Chunks contain several tokens, and the number in the first chunk is assumed.
    FirstChunkAssumed,
    /// Several chunks arrived in one read.
    Coalesced,
    /// All tokens are thinking.
    NoAnswer,
    /// The answer arrived in one piece, although it should have been streamed.
    NotStreamed,
    /// The engine reports no prefill time, so it was estimated from the time to the first token.
    PrefillEstimated,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    pub prompt: Option<u32>,
    pub cached: Option<u32>,
    /// All generated tokens, including thinking.
    pub completion: u32,
    pub reasoning: u32,
    pub content: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalls {
    pub count: usize,
    pub worst_ms: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestFigures {
    /// All known figures. An answer that is all thinking has no time to its first answer token.
    pub by_metric: BTreeMap<Metric, f64>,
    pub gaps_ms: Vec<f64>,
    pub stalls: Stalls,
    pub tokens: TokenCounts,
    pub count_source: Option<CountSource>,
    pub flags: BTreeSet<Flag>,
}

/// None if the answer has a fault.
pub fn figures(timeline: &Timeline, tokens_max: Option<u32>) -> Option<RequestFigures> {
    let (first, last) = (timeline.chunks.first()?, timeline.chunks.last()?);
    if timeline.fault.is_some() {
        return None;
    }
    let mut flags = BTreeSet::new();
    let (tokens, count_source) = token_counts(timeline, tokens_max, &mut flags);
    let chunks = timeline.chunks.len();
    let per_chunk = per_chunk(tokens.completion, chunks, &mut flags);
    let answer = timeline.chunks.iter().find(|chunk| chunk.kind.is_answer());
    let span_s = last.at.saturating_sub(first.at).as_secs_f64();
    let later = f64::from(tokens.completion) - per_chunk;
    let has_span = span_s > 0.0 && later > 0.0;
    let gaps_ms = gaps_ms(&timeline.chunks);
    if timeline.chunks.iter().any(|chunk| chunk.is_coalesced) {
        flags.insert(if span_s == 0.0 { Flag::NotStreamed } else { Flag::Coalesced });
    }
    if chunks == 1 && tokens.completion > 1 {
        flags.insert(Flag::NotStreamed);
    }
    if answer.is_none() && timeline.finish.as_deref() == Some("length") {
        flags.insert(Flag::NoAnswer);
    }
    let is_thought = |kind| kind == ChunkKind::Thought;
    let whole = |count: u32| Some(f64::from(count));
    let by_metric = known([
        (Metric::TtfbMs, Some(millis(timeline.head?))),
        (Metric::TtftMs, Some(millis(first.at))),
        (Metric::TtfatMs, answer.map(|chunk| millis(chunk.at))),
        (Metric::SilenceMs, answer.map(|chunk| millis(chunk.at - first.at))),
        (Metric::DispatchMs, Some(millis(timeline.dispatch))),
        (Metric::ConnectMs, timeline.connect.map(millis)),
        (Metric::E2eMs, Some(millis(last.at))),
        (Metric::TpotMs, has_span.then(|| span_s * 1e3 / later)),
        (Metric::DecodeTokS, has_span.then(|| later / span_s)),
        (Metric::ReasoningTokS, rate(timeline, tokens.reasoning, is_thought)),
        (Metric::ContentTokS, rate(timeline, tokens.content, ChunkKind::is_answer)),
        (Metric::PrefillTokS, prefill(timeline)),
        (Metric::PromptTokens, tokens.prompt.and_then(whole)),
        (Metric::CachedTokens, tokens.cached.and_then(whole)),
        (Metric::CompletionTokens, whole(tokens.completion)),
        (Metric::ReasoningTokens, whole(tokens.reasoning)),
        (Metric::ContentTokens, whole(tokens.content)),
    ]);
    Some(RequestFigures {
        by_metric,
        stalls: stalls(&gaps_ms),
        gaps_ms,
        tokens,
        count_source: Some(count_source),
        flags,
    })
}

impl RequestFigures {
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.by_metric.get(&metric).copied()
    }

    /// Prefill speed for an engine that does not report it: from the time to the first token, without the round trip (the
    /// time to connect) and one token. None if the prompt is short, or if the time is not much longer than the client's error.
    pub fn prefill_estimate(&self, error_ms: f64) -> Option<f64> {
        let computed = self.tokens.prompt?.checked_sub(self.tokens.cached?)?;
        let ttft_ms = self.get(Metric::TtftMs)?;
        let rtt_ms = self.get(Metric::ConnectMs).unwrap_or_default();
        let wait_ms = ttft_ms - rtt_ms - self.get(Metric::TpotMs)?;
        let is_sound = computed >= PREFILL_TOKENS_MIN
            && ttft_ms >= PREFILL_ERRORS_MIN * error_ms
            && wait_ms > 0.0;
        is_sound.then(|| f64::from(computed) / wait_ms * 1e3)
    }
}

fn token_counts(
    timeline: &Timeline,
    tokens_max: Option<u32>,
    flags: &mut BTreeSet<Flag>,
) -> (TokenCounts, CountSource) {
    let counts = timeline.counts;
    let of = |wanted: fn(ChunkKind) -> bool| {
        timeline.chunks.iter().filter(|chunk| wanted(chunk.kind)).count() as u32
    };
    let (thoughts, chunks) = (of(|kind| kind == ChunkKind::Thought), of(|_| true));
    let text_max = text_tokens_max(timeline);
    // A chunk has at least one token, the request limits the number of tokens, and a token has at least one byte.
    let is_possible = |said: &u32| {
        *said >= chunks
            && tokens_max.is_none_or(|max| *said <= max)
            && text_max.is_none_or(|max| *said <= max)
    };
    let said = counts.completion;
    let believed = said.filter(is_possible);
    if believed.is_none() {
        let flag = if said.is_some() { Flag::CountsImpossible } else { Flag::CountsMissing };
        flags.insert(flag);
    }
    let completion = believed.unwrap_or(chunks);
    // Some servers do not count reasoning separately. Its share of the chunks is then the best estimate.
    let is_consistent = |tokens: &u32| believed.is_some() && (*tokens > 0) == (thoughts > 0);
    let reported = counts.reasoning.filter(is_consistent);
    let share = f64::from(thoughts) / f64::from(chunks.max(1));
    let reasoning = reported.unwrap_or_else(|| (f64::from(completion) * share).round() as u32);
    let reasoning = reasoning.min(completion);
    let tokens = TokenCounts {
        prompt: counts.prompt,
        cached: counts.cached,
        completion,
        reasoning,
        content: completion - reasoning,
    };
    let source = if believed.is_some() { CountSource::Usage } else { CountSource::Chunks };
    (tokens, source)
}

/// Maximum number of tokens of the received text. None if a tool was called, because the server does not send the call's
/// markup.
fn text_tokens_max(timeline: &Timeline) -> Option<u32> {
    let has_call = timeline.chunks.iter().any(|chunk| chunk.kind == ChunkKind::Call);
    let has_thought = timeline.chunks.iter().any(|chunk| chunk.kind == ChunkKind::Thought);
    // Some servers count thinking but do not send its text.
    let hidden = timeline.counts.reasoning.filter(|_| !has_thought).unwrap_or_default();
    let bytes: usize = timeline.chunks.iter().map(|chunk| chunk.bytes).sum();
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    (!has_call).then(|| bytes.saturating_add(hidden).saturating_add(TEXTLESS_TOKENS_MAX))
}

/// Tokens of the first chunk, assumed to be the mean.
fn per_chunk(tokens: u32, chunks: usize, flags: &mut BTreeSet<Flag>) -> f64 {
    let mean = f64::from(tokens) / chunks.max(1) as f64;
    if mean > 1.0 {
        flags.insert(Flag::FirstChunkAssumed);
    }
    mean.max(1.0)
}

fn gaps_ms(chunks: &[Chunk]) -> Vec<f64> {
    chunks.windows(2).map(|pair| millis(pair[1].at.saturating_sub(pair[0].at))).collect()
}

/// Gaps that are much longer than the others, between tokens or other parts of a stream.
pub fn stalls(gaps_ms: &[f64]) -> Stalls {
    let mut sorted = gaps_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(median) = sorted.get(sorted.len() / 2) else { return Stalls::default() };
    let limit = STALL_MS_MIN.max(STALL_TIMES * median);
    let over = sorted.iter().filter(|gap| **gap > limit);
    Stalls { count: over.clone().count(), worst_ms: over.copied().fold(0.0, f64::max) }
}

/// Tokens of some kinds, divided by the time from the first to the last of their chunks.
fn rate(timeline: &Timeline, tokens: u32, wanted: fn(ChunkKind) -> bool) -> Option<f64> {
    let chunks: Vec<&Chunk> = timeline.chunks.iter().filter(|chunk| wanted(chunk.kind)).collect();
    let span_s = chunks.last()?.at.saturating_sub(chunks.first()?.at).as_secs_f64();
    let first = (f64::from(tokens) / chunks.len() as f64).max(1.0);
    let later = f64::from(tokens) - first;
    (span_s > 0.0 && later > 0.0).then(|| later / span_s)
}

fn prefill(timeline: &Timeline) -> Option<f64> {
    let computed = timeline.counts.prompt?.checked_sub(timeline.counts.cached?)?;
    let ms = timeline.counts.prefill_ms.filter(|ms| *ms > 0.0)?;
    (computed >= PREFILL_TOKENS_MIN).then(|| f64::from(computed) / ms * 1e3)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_wire::ObservedCounts;

    use super::*;

    /// Chunks at these times in milliseconds; a negative time means a chunk of thinking.
    fn answer(at_ms: &[i64], completion: Option<u32>) -> Timeline {
        let chunk = |ms: &i64| Chunk {
            at: Duration::from_millis(ms.unsigned_abs()),
            kind: if *ms < 0 { ChunkKind::Thought } else { ChunkKind::Content },
            bytes: 4,
            is_coalesced: false,
        };
        Timeline {
            head: Some(Duration::from_millis(90)),
            status: 200,
            chunks: at_ms.iter().map(chunk).collect(),
            counts: ObservedCounts { completion, ..ObservedCounts::default() },
            finish: Some("length".to_owned()),
            dispatch: Duration::from_micros(50),
            ..Timeline::default()
        }
    }

    fn near(got: Option<f64>, expected: f64) {
        let got = got.expect("a figure");
        assert!((got - expected).abs() < 1e-9, "{got} and not {expected}");
    }

    #[test]
    fn times_agree_with_a_calculation_by_hand() {
        // 100, 120, 140, 160: three gaps of 20 for three tokens after the first.
        let got = figures(&answer(&[100, 120, 140, 160], Some(4)), Some(4)).expect("figures");
        let times = [Metric::TtfbMs, Metric::TtftMs, Metric::TtfatMs, Metric::E2eMs];
        assert_eq!(times.map(|time| got.get(time)), [90.0, 100.0, 100.0, 160.0].map(Some));
        near(got.get(Metric::TpotMs), 20.0);
        near(got.get(Metric::DecodeTokS), 50.0);
        near(got.get(Metric::SilenceMs), 0.0);
        assert_eq!(got.gaps_ms, [20.0, 20.0, 20.0]);
        assert_eq!((got.count_source, got.flags.len()), (Some(CountSource::Usage), 0));
    }

    #[test]
    fn chunks_of_several_tokens_do_not_make_a_server_faster() {
        // 16 tokens in four chunks, 80 ms apart: 240 ms for the 12 after the first chunk.
        let got = figures(&answer(&[100, 180, 260, 340], Some(16)), None).expect("figures");
        near(got.get(Metric::TpotMs), 20.0);
        assert!(got.flags.contains(&Flag::FirstChunkAssumed));
    }

    #[test]
    fn thinking_is_counted_separately() {
        let got = figures(&answer(&[-100, -120, -140, 200, 230], Some(5)), None).expect("figures");
        let times = [Metric::TtftMs, Metric::TtfatMs, Metric::SilenceMs];
        assert_eq!(times.map(|time| got.get(time)), [100.0, 200.0, 100.0].map(Some));
        assert_eq!((got.tokens.reasoning, got.tokens.content), (3, 2));
        near(got.get(Metric::ReasoningTokS), 50.0);
        near(got.get(Metric::ContentTokS), 1000.0 / 30.0);
        let silent = figures(&answer(&[-100, -120], Some(2)), None).expect("figures");
        assert_eq!((silent.get(Metric::TtfatMs), silent.tokens.content), (None, 0));
        assert!(silent.flags.contains(&Flag::NoAnswer));
    }

    #[test]
    fn impossible_counts_are_replaced_by_chunks() {
        let rows = [
            (Some(4), Some(4), CountSource::Usage, 4, None),
            (Some(8), Some(4), CountSource::Chunks, 4, Some(Flag::CountsImpossible)),
            (Some(3), None, CountSource::Chunks, 4, Some(Flag::CountsImpossible)),
            // Sixteen bytes of text, and a few tokens without text.
            (Some(24), Some(128), CountSource::Usage, 24, Some(Flag::FirstChunkAssumed)),
            (Some(128), Some(128), CountSource::Chunks, 4, Some(Flag::CountsImpossible)),
            (None, Some(4), CountSource::Chunks, 4, Some(Flag::CountsMissing)),
        ];
        for (said, max, source, tokens, flag) in rows {
            let got = figures(&answer(&[100, 120, 140, 160], said), max).expect("figures");
            assert_eq!((got.count_source, got.tokens.completion), (Some(source), tokens));
            assert_eq!(got.flags.first().copied(), flag, "{said:?} of {max:?}");
        }
    }

    #[test]
    fn a_stall_is_much_longer_than_the_median_gap() {
        let slow: Vec<i64> = (1..6).map(|token| token * 300).collect();
        assert_eq!(figures(&answer(&slow, None), None).expect("figures").stalls.count, 0);
        let got = figures(&answer(&[100, 120, 140, 660, 680], None), None).expect("figures");
        assert_eq!(got.stalls, Stalls { count: 1, worst_ms: 520.0 });
    }

    #[test]
    fn prefill_speed_needs_enough_known_tokens() {
        let counts = |cached, prefill_ms| ObservedCounts {
            prompt: Some(1000),
            cached,
            completion: Some(4),
            prefill_ms,
            ..ObservedCounts::default()
        };
        let of = |cached, prefill_ms| {
            let timeline = Timeline {
                counts: counts(cached, prefill_ms),
                connect: Some(Duration::from_millis(1)),
                ..answer(&[521, 541, 561, 581], None)
            };
            figures(&timeline, None).expect("figures")
        };
        let prefill = |cached, ms| of(cached, Some(ms)).get(Metric::PrefillTokS);
        near(prefill(Some(0), 500.0), 2000.0);
        near(prefill(Some(500), 500.0), 1000.0);
        assert_eq!(prefill(None, 500.0), None, "the cached tokens are unknown");
        assert_eq!(prefill(Some(990), 5.0), None, "ten tokens are too few");
        near(of(Some(0), None).prefill_estimate(0.2), 2000.0);
        assert_eq!(of(Some(0), None).prefill_estimate(30.0), None, "within the error");
    }

    #[test]
    fn a_fault_has_no_figures() {
        let broken = Timeline {
            fault: Some(super::super::RequestFault::CutOff { chunks: 2 }),
            ..answer(&[100, 120], None)
        };
        assert_eq!(figures(&broken, None), None);
    }
}
