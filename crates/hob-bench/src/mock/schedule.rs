//! The parts of an answer and when each is due, before anything is written.
//! Pure: the same script, request and seed give the same schedule.

use std::time::Duration;

use hob_core::statistics::SeededRandom;

use super::script::{Script, UsageReport};

/// The properties of a request that decide its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerShape {
    pub(super) tokens: u32,
    pub(super) prompt_tokens: u32,
    /// None if the script has no cache; the answer then reports no cached tokens.
    pub(super) cached_tokens: Option<u32>,
    pub(super) thinks: bool,
    /// Other requests that run at the same time.
    pub(super) others: u32,
    pub(super) is_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Thought,
    Content,
    /// Text that begins with this thinking tag.
    Tagged(&'static str),
}

/// Tags around thinking, escaped for JSON.
const OPEN: &str = r"<think>\n";
const CLOSE: &str = r"\n</think>\n\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Role,
    Empty,
    Comment,
    /// `count` tokens of one kind; `first` is the index of the first one, from 0.
    Tokens {
        kind: Kind,
        first: u32,
        count: u32,
    },
    Finish {
        usage: Option<Usage>,
    },
    Usage(Usage),
    /// The connection ends.
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) prompt: u32,
    pub(super) cached: Option<u32>,
    pub(super) completion: u32,
    pub(super) reasoning: u32,
}

/// A part, and when it is due after the request was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScheduledPart {
    pub(super) at: Duration,
    pub(super) part: Part,
}

pub(super) fn schedule(script: &Script, shape: AnswerShape) -> Vec<ScheduledPart> {
    let pace = TokenSchedule::of(script, shape);
    let first_at = pace.at(0);
    let mut parts = Vec::new();
    if script.role_first {
        parts.push(ScheduledPart { at: first_at, part: Part::Role });
    }
    let empty = (0..script.empty_chunks).map(|_| ScheduledPart { at: first_at, part: Part::Empty });
    parts.extend(empty);
    let thoughts = if shape.thinks { script.reasoning_tokens.min(shape.tokens) } else { 0 };
    let mut first = 0;
    while first < shape.tokens {
        if script.drop_at.is_some_and(|token| first >= token) {
            parts.push(ScheduledPart { at: pace.at(first), part: Part::Drop });
            return parts;
        }
        // All tokens of a chunk are of one kind.
        let (kind, left) = if first < thoughts {
            (Kind::Thought, thoughts - first)
        } else {
            (Kind::Content, shape.tokens - first)
        };
        let kind = if script.think_tags { in_text(first, thoughts) } else { kind };
        let count = script.tokens_per_chunk.min(left);
        // An engine that computes several tokens in a step sends them when the first is due.
        let at = pace.at(first);
        if script.comments {
            parts.push(ScheduledPart { at, part: Part::Comment });
        }
        parts.push(ScheduledPart { at, part: Part::Tokens { kind, first, count } });
        first += count;
    }
    end(script, shape, thoughts, &mut parts);
    parts
}

/// The kind of a chunk when thinking is part of the text: its first token decides whether it begins with a tag.
fn in_text(first: u32, thoughts: u32) -> Kind {
    match first {
        0 if thoughts > 0 => Kind::Tagged(OPEN),
        _ if first == thoughts && thoughts > 0 => Kind::Tagged(CLOSE),
        _ => Kind::Content,
    }
}

fn end(script: &Script, shape: AnswerShape, thoughts: u32, parts: &mut Vec<ScheduledPart>) {
    let at = parts.last().map_or(Duration::ZERO, |part| part.at);
    let times = if script.usage == UsageReport::Double { 2 } else { 1 };
    let usage = Usage {
        prompt: shape.prompt_tokens,
        cached: shape.cached_tokens,
        completion: shape.tokens.saturating_mul(times),
        reasoning: if script.think_tags { 0 } else { thoughts },
    };
    match script.usage {
        UsageReport::Nothing => {
            parts.push(ScheduledPart { at, part: Part::Finish { usage: None } })
        }
        UsageReport::Last => {
            parts.push(ScheduledPart { at, part: Part::Finish { usage: Some(usage) } })
        }
        UsageReport::Late | UsageReport::Double => {
            parts.push(ScheduledPart { at, part: Part::Finish { usage: None } });
            parts.push(ScheduledPart { at, part: Part::Usage(usage) });
        }
    }
}

/// Moves the counts into the last part, for protocols that send both together.
pub(super) fn with_counts_last(mut parts: Vec<ScheduledPart>) -> Vec<ScheduledPart> {
    let counts = parts.iter().find_map(|part| match part.part {
        Part::Usage(usage) => Some(usage),
        _ => None,
    });
    parts.retain(|part| !matches!(part.part, Part::Usage(_)));
    for part in &mut parts {
        if let Part::Finish { usage } = &mut part.part {
            *usage = usage.or(counts);
        }
    }
    parts
}

/// When each token is due.
struct TokenSchedule<'a> {
    script: &'a Script,
    first_ms: f64,
    token_ms: f64,
}

impl TokenSchedule<'_> {
    fn of(script: &Script, shape: AnswerShape) -> TokenSchedule<'_> {
        let uncached =
            shape.prompt_tokens - shape.cached_tokens.unwrap_or(0).min(shape.prompt_tokens);
        let prefill_ms = f64::from(uncached) * script.prefill_us_per_token / 1e3;
        let cold_ms = if shape.is_first { script.cold_ms } else { 0.0 };
        TokenSchedule {
            script,
            first_ms: script.ttft_ms + prefill_ms + cold_ms,
            token_ms: script.itl_ms * (1.0 + script.crowding * f64::from(shape.others)),
        }
    }

    fn at(&self, token: u32) -> Duration {
        let Script { stall_ms, stall_at, jitter_ms, seed, .. } = self.script;
        let stalled_ms = if token >= *stall_at { *stall_ms } else { 0.0 };
        let shift_ms = if token == 0 { 0.0 } else { jitter_ms * shift(*seed, token) };
        let ms = self.first_ms + self.token_ms * f64::from(token) + stalled_ms + shift_ms;
        Duration::from_secs_f64(ms.max(self.first_ms) / 1e3)
    }
}

/// Between −1 and 1, by the seed. The next seed gives other numbers, and not the same ones a token later.
fn shift(seed: u64, token: u32) -> f64 {
    SeededRandom::new(seed.wrapping_add(u64::from(token) << 32)).unit() * 2.0 - 1.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SHAPE: AnswerShape = AnswerShape {
        tokens: 4,
        prompt_tokens: 10,
        cached_tokens: None,
        thinks: true,
        others: 0,
        is_first: false,
    };

    fn script(pairs: &str) -> Script {
        Script::default()
            .with("ttft_ms=100,itl_ms=20,role_first=false")
            .unwrap()
            .with(pairs)
            .unwrap()
    }

    /// Milliseconds, number of the first token and how many, of each chunk.
    fn chunks(pairs: &str, shape: AnswerShape) -> Vec<(u128, u32, u32)> {
        let tokens = |part: &ScheduledPart| match part.part {
            Part::Tokens { first, count, .. } => Some((part.at.as_millis(), first, count)),
            _ => None,
        };
        schedule(&script(pairs), shape).iter().filter_map(tokens).collect()
    }

    #[test]
    fn tokens_are_due_at_their_times() {
        let evenly = vec![(100, 0, 1), (120, 1, 1), (140, 2, 1), (160, 3, 1)];
        assert_eq!(chunks("", SHAPE), evenly);
        let stalled = vec![(100, 0, 1), (120, 1, 1), (640, 2, 1), (660, 3, 1)];
        assert_eq!(chunks("stall_ms=500,stall_at=2", SHAPE), stalled);
        assert_eq!(chunks("tokens_per_chunk=3", SHAPE), vec![(100, 0, 3), (160, 3, 1)]);
        assert_eq!(chunks("drop_at=1", SHAPE), vec![(100, 0, 1)]);
        let thought = vec![(100, 0, 1), (120, 1, 2), (160, 3, 1)];
        assert_eq!(chunks("tokens_per_chunk=2,reasoning_tokens=1", SHAPE), thought);
    }

    #[test]
    fn each_seed_shifts_each_token_by_another_time() {
        let shifts = |seed| (1..9).map(move |token| (shift(seed, token) * 1e9) as i64);
        let different: BTreeSet<i64> = (7..9).flat_map(shifts).collect();
        assert_eq!(different.len(), 16);
        assert!(different.iter().all(|shift| shift.abs() <= 1_000_000_000));
    }

    #[test]
    fn tags_stand_at_the_start_and_end_of_thinking() {
        let kinds = |pairs: &str| {
            let kind = |part: &ScheduledPart| match part.part {
                Part::Tokens { kind, .. } => Some(kind),
                _ => None,
            };
            schedule(&script(pairs), SHAPE).iter().filter_map(kind).collect::<Vec<_>>()
        };
        let (open, close) = (Kind::Tagged(OPEN), Kind::Tagged(CLOSE));
        let rows = [
            ("reasoning_tokens=2,think_tags=true", vec![open, Kind::Content, close, Kind::Content]),
            (
                "reasoning_tokens=3,think_tags=true,tokens_per_chunk=2",
                vec![open, Kind::Content, close],
            ),
            ("reasoning_tokens=4,think_tags=true,tokens_per_chunk=4", vec![open]),
            ("think_tags=true,tokens_per_chunk=4", vec![Kind::Content]),
        ];
        for (pairs, expected) in rows {
            assert_eq!(kinds(pairs), expected, "{pairs}");
        }
    }

    #[test]
    fn prefill_and_a_cold_start_delay_the_first_token() {
        let first = |pairs: &str, shape: AnswerShape| chunks(pairs, shape)[0].0;
        assert_eq!(first("prefill_us_per_token=1000", SHAPE), 110);
        let cached = AnswerShape { cached_tokens: Some(8), ..SHAPE };
        assert_eq!(first("prefill_us_per_token=1000", cached), 102);
        assert_eq!(first("cold_ms=900", AnswerShape { is_first: true, ..SHAPE }), 1000);
        assert_eq!(first("cold_ms=900", SHAPE), 100);
        let crowded = AnswerShape { others: 3, ..SHAPE };
        assert_eq!(chunks("crowding=0.5", crowded)[1].0, 150);
    }

    #[test]
    fn usage_is_reported_as_scripted() {
        let said = |pairs: &str| {
            let parts = schedule(&script(pairs), SHAPE).into_iter().map(|part| part.part);
            let usage = |part| match part {
                Part::Usage(usage) | Part::Finish { usage: Some(usage) } => Some(usage.completion),
                _ => None,
            };
            parts.filter_map(usage).collect::<Vec<_>>()
        };
        assert_eq!(said("usage=late"), [4]);
        assert_eq!(said("usage=last"), [4]);
        assert_eq!(said("usage=double"), [8]);
        assert_eq!(said("usage=nothing"), [0; 0]);
        let at_once = with_counts_last(schedule(&script("usage=late"), SHAPE));
        let last = at_once.last().map(|part| part.part);
        assert!(matches!(last, Some(Part::Finish { usage: Some(Usage { completion: 4, .. }) })));
    }

    #[test]
    fn jitter_is_bounded_and_reproducible() {
        let all: Vec<f64> = (1..1000).map(|token| shift(7, token)).collect();
        assert!(all.iter().all(|shift| (-1.0..=1.0).contains(shift)));
        assert!(all.iter().any(|shift| *shift > 0.9) && all.iter().any(|shift| *shift < -0.9));
        assert!(schedule(&script("jitter_ms=5"), SHAPE) == schedule(&script("jitter_ms=5"), SHAPE));
    }
}
