//! Computes one answer's figures by the definitions of `terms`.
//! Unknown figures are None, and assumptions are flagged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Chunk, ChunkKind, Timeline};
use crate::record::CountSource;
use crate::terms::Metric;

/// Least pause that counts as a stall.
const STALL_MS_MIN: f64 = 250.0;
/// Least stall as a multiple of the median gap.
const STALL_TIMES: f64 = 5.0;
/// Fewer computed tokens say nothing about prefill.
const PREFILL_TOKENS_MIN: u32 = 64;
/// Tokens of an answer that need not be text: marks of thinking, the end.
const TEXTLESS_TOKENS_MAX: u32 = 8;
/// The wait has to be so many times the client's own error.
const PREFILL_ERRORS_MIN: f64 = 20.0;

/// An assumption or error about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The server says how many tokens there were, and it cannot be true.
    CountsImpossible,
    /// The server does not say how many there were: chunks were counted.
    CountsMissing,
    /// Chunks hold several tokens, and of the first it is not known how many.
    FirstChunkAssumed,
    /// Chunks came together in one read.
    Coalesced,
    /// All tokens went into thinking.
    NoAnswer,
    /// It came in one piece, though it should have been streamed.
    NotStreamed,
    /// The engine does not say how long the prompt took: it was taken from the first wait.
    PrefillEstimated,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    pub prompt: Option<u32>,
    pub cached: Option<u32>,
    /// All that were written.
    pub completion: u32,
    pub reasoning: u32,
    pub content: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalls {
    pub count: usize,
    pub worst_ms: f64,
}

/// Milliseconds from when the request was sent, unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub ttfb_ms: f64,
    pub ttft_ms: f64,
    /// None if the answer is all thinking.
    pub ttfat_ms: Option<f64>,
    pub silence_ms: Option<f64>,
    pub e2e_ms: f64,
    /// When it was due, before it was sent.
    pub dispatch_ms: f64,
    pub connect_ms: Option<f64>,
    pub tpot_ms: Option<f64>,
    pub decode_tok_s: Option<f64>,
    pub reasoning_tok_s: Option<f64>,
    pub content_tok_s: Option<f64>,
    /// Tokens per second of the engine's own prefill time; else see [`Figures::prefill_estimate`].
    pub prefill_tok_s: Option<f64>,
    pub gaps_ms: Vec<f64>,
    pub stalls: Stalls,
    pub tokens: TokenCounts,
    pub count_source: Option<CountSource>,
    pub flags: BTreeSet<Flag>,
}

/// None if the answer has a fault.
pub fn figures(timeline: &Timeline, tokens_max: Option<u32>) -> Option<Figures> {
    let (first, last) = (timeline.chunks.first()?, timeline.chunks.last()?);
    if timeline.fault.is_some() {
        return None;
    }
    let mut flags = BTreeSet::new();
    let (tokens, count_source) = counted(timeline, tokens_max, &mut flags);
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
    Some(Figures {
        ttfb_ms: millis(timeline.head?),
        ttft_ms: millis(first.at),
        ttfat_ms: answer.map(|chunk| millis(chunk.at)),
        silence_ms: answer.map(|chunk| millis(chunk.at - first.at)),
        e2e_ms: millis(last.at),
        dispatch_ms: millis(timeline.dispatch),
        connect_ms: timeline.connect.map(millis),
        tpot_ms: has_span.then(|| span_s * 1e3 / later),
        decode_tok_s: has_span.then(|| later / span_s),
        reasoning_tok_s: rate(timeline, tokens.reasoning, |kind| kind == ChunkKind::Thought),
        content_tok_s: rate(timeline, tokens.content, ChunkKind::is_answer),
        prefill_tok_s: prefill(timeline),
        stalls: stalls(&gaps_ms),
        gaps_ms,
        tokens,
        count_source: Some(count_source),
        flags,
    })
}

impl Figures {
    /// All that are known, under the names that records have for them.
    pub fn by_name(&self) -> BTreeMap<Metric, f64> {
        let whole = |count: u32| Some(f64::from(count));
        let rows = [
            (Metric::TtfbMs, Some(self.ttfb_ms)),
            (Metric::TtftMs, Some(self.ttft_ms)),
            (Metric::TtfatMs, self.ttfat_ms),
            (Metric::SilenceMs, self.silence_ms),
            (Metric::DispatchMs, Some(self.dispatch_ms)),
            (Metric::ConnectMs, self.connect_ms),
            (Metric::E2eMs, Some(self.e2e_ms)),
            (Metric::TpotMs, self.tpot_ms),
            (Metric::DecodeTokS, self.decode_tok_s),
            (Metric::ReasoningTokS, self.reasoning_tok_s),
            (Metric::ContentTokS, self.content_tok_s),
            (Metric::PrefillTokS, self.prefill_tok_s),
            (Metric::PromptTokens, self.tokens.prompt.and_then(whole)),
            (Metric::CachedTokens, self.tokens.cached.and_then(whole)),
            (Metric::CompletionTokens, whole(self.tokens.completion)),
            (Metric::ReasoningTokens, whole(self.tokens.reasoning)),
            (Metric::ContentTokens, whole(self.tokens.content)),
        ];
        rows.into_iter().filter_map(|(metric, figure)| Some((metric, figure?))).collect()
    }

    /// Where the engine does not tell: what is left of the first wait for the prompt alone.
    /// Withheld where the prompt is short, or the wait not long against the client's error.
    pub fn prefill_estimate(&self, rtt_ms: f64, error_ms: f64) -> Option<f64> {
        let computed = self.tokens.prompt?.checked_sub(self.tokens.cached?)?;
        let wait_ms = self.ttft_ms - rtt_ms - self.tpot_ms?;
        let is_sound = computed >= PREFILL_TOKENS_MIN
            && self.ttft_ms >= PREFILL_ERRORS_MIN * error_ms
            && wait_ms > 0.0;
        is_sound.then(|| f64::from(computed) / wait_ms * 1e3)
    }
}

fn counted(
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
    // An engine sends no more chunks of text than it made tokens, makes no more tokens than were allowed, and a token
    // has a byte at least.
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
    // Some servers count no reasoning apart; its share of the chunks is the best that is known.
    let told = counts.reasoning.filter(|told| believed.is_some() && (*told > 0) == (thoughts > 0));
    let share = f64::from(thoughts) / f64::from(chunks.max(1));
    let reasoning = told.unwrap_or_else(|| (f64::from(completion) * share).round() as u32);
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

/// The most tokens that the text which came can have. Unknown where a tool was called, since its markup stays with the
/// server.
fn text_tokens_max(timeline: &Timeline) -> Option<u32> {
    let has_call = timeline.chunks.iter().any(|chunk| chunk.kind == ChunkKind::Call);
    let has_thought = timeline.chunks.iter().any(|chunk| chunk.kind == ChunkKind::Thought);
    // Some servers count thinking and keep its text.
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

/// Gaps that stand out: of tokens, or of anything else that comes bit by bit.
pub fn stalls(gaps_ms: &[f64]) -> Stalls {
    let mut sorted = gaps_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(median) = sorted.get(sorted.len() / 2) else { return Stalls::default() };
    let limit = STALL_MS_MIN.max(STALL_TIMES * median);
    let over = sorted.iter().filter(|gap| **gap > limit);
    Stalls { count: over.clone().count(), worst_ms: over.copied().fold(0.0, f64::max) }
}

/// Tokens of some kinds over the span of their own chunks.
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

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use hob_wire::ObservedCounts;

    use super::*;

    /// Chunks at these milliseconds; thoughts are written as negative ones.
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
    fn times_by_hand() {
        // 100, 120, 140, 160: three gaps of 20 for three tokens behind the first.
        let got = figures(&answer(&[100, 120, 140, 160], Some(4)), Some(4)).expect("figures");
        assert_eq!(
            (got.ttfb_ms, got.ttft_ms, got.ttfat_ms, got.e2e_ms),
            (90.0, 100.0, Some(100.0), 160.0)
        );
        near(got.tpot_ms, 20.0);
        near(got.decode_tok_s, 50.0);
        near(got.silence_ms, 0.0);
        assert_eq!(got.gaps_ms, [20.0, 20.0, 20.0]);
        assert_eq!((got.count_source, got.flags.len()), (Some(CountSource::Usage), 0));
    }

    #[test]
    fn chunks_of_several_tokens_do_not_make_a_server_faster() {
        // 16 tokens in four chunks, 80 ms apart: 240 ms for the 12 behind the first chunk.
        let got = figures(&answer(&[100, 180, 260, 340], Some(16)), None).expect("figures");
        near(got.tpot_ms, 20.0);
        assert!(got.flags.contains(&Flag::FirstChunkAssumed));
    }

    #[test]
    fn thinking_is_apart() {
        let got = figures(&answer(&[-100, -120, -140, 200, 230], Some(5)), None).expect("figures");
        assert_eq!((got.ttft_ms, got.ttfat_ms, got.silence_ms), (100.0, Some(200.0), Some(100.0)));
        assert_eq!((got.tokens.reasoning, got.tokens.content), (3, 2));
        near(got.reasoning_tok_s, 50.0);
        near(got.content_tok_s, 1000.0 / 30.0);
        let silent = figures(&answer(&[-100, -120], Some(2)), None).expect("figures");
        assert_eq!((silent.ttfat_ms, silent.tokens.content), (None, 0));
        assert!(silent.flags.contains(&Flag::NoAnswer));
    }

    #[test]
    fn counts_that_cannot_be_true_are_not_believed() {
        let rows = [
            (Some(4), Some(4), CountSource::Usage, 4, None),
            (Some(8), Some(4), CountSource::Chunks, 4, Some(Flag::CountsImpossible)),
            (Some(3), None, CountSource::Chunks, 4, Some(Flag::CountsImpossible)),
            // Sixteen bytes of text, and a few tokens without any.
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
    fn a_stall_is_a_gap_that_stands_out() {
        let slow: Vec<i64> = (1..6).map(|token| token * 300).collect();
        assert_eq!(figures(&answer(&slow, None), None).expect("figures").stalls.count, 0);
        let got = figures(&answer(&[100, 120, 140, 660, 680], None), None).expect("figures");
        assert_eq!(got.stalls, Stalls { count: 1, worst_ms: 520.0 });
    }

    #[test]
    fn prefill_is_said_where_it_can_be_known() {
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
                ..answer(&[521, 541, 561, 581], None)
            };
            figures(&timeline, None).expect("figures")
        };
        near(of(Some(0), Some(500.0)).prefill_tok_s, 2000.0);
        near(of(Some(500), Some(500.0)).prefill_tok_s, 1000.0);
        assert_eq!(of(None, Some(500.0)).prefill_tok_s, None, "the cached tokens are unknown");
        assert_eq!(of(Some(990), Some(5.0)).prefill_tok_s, None, "ten tokens say nothing");
        near(of(Some(0), None).prefill_estimate(1.0, 0.2), 2000.0);
        assert_eq!(of(Some(0), None).prefill_estimate(1.0, 30.0), None, "within the error");
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
