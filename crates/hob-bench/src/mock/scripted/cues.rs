//! What an answer consists of and when each part is due, before anything is written.
//! Pure: the same script, wish and seed give the same cues, which is what makes them a truth.

use std::time::Duration;

use super::script::{Script, UsageSays};

/// What of a request decides its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) tokens: u32,
    pub(super) prompt_tokens: u32,
    /// None where the script has no cache, and nothing is said of one.
    pub(super) cached_tokens: Option<u32>,
    pub(super) thinks: bool,
    /// Requests that are worked on beside this one.
    pub(super) beside: u32,
    pub(super) is_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Thought,
    Content,
    /// Text that begins with this tag of thinking.
    Tagged(&'static str),
}

/// As they stand within JSON.
const OPEN: &str = r"<think>\n";
const CLOSE: &str = r"\n</think>\n\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Role,
    Empty,
    Comment,
    /// So many tokens of one kind; `first` is the number of the first, from 0.
    Tokens {
        kind: Kind,
        first: u32,
        count: u32,
    },
    Finish {
        usage: Option<Usage>,
    },
    Usage(Usage),
    /// The connection ends here.
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
pub(super) struct Cue {
    pub(super) at: Duration,
    pub(super) part: Part,
}

pub(super) fn cues(script: &Script, wish: Wish) -> Vec<Cue> {
    let pace = Pace::of(script, wish);
    let first_at = pace.at(0);
    let mut cues = Vec::new();
    if script.role_first {
        cues.push(Cue { at: first_at, part: Part::Role });
    }
    let empty = (0..script.empty_chunks).map(|_| Cue { at: first_at, part: Part::Empty });
    cues.extend(empty);
    let thoughts = if wish.thinks { script.reasoning_tokens.min(wish.tokens) } else { 0 };
    let mut first = 0;
    while first < wish.tokens {
        if script.drop_at.is_some_and(|token| first >= token) {
            cues.push(Cue { at: pace.at(first), part: Part::Drop });
            return cues;
        }
        // A chunk is of one kind.
        let (kind, left) = if first < thoughts {
            (Kind::Thought, thoughts - first)
        } else {
            (Kind::Content, wish.tokens - first)
        };
        let kind = if script.think_tags { in_text(first, thoughts) } else { kind };
        let count = script.tokens_per_chunk.min(left);
        // Chunks of several tokens come as an engine makes them that takes several at a step.
        let at = pace.at(first);
        if script.comments {
            cues.push(Cue { at, part: Part::Comment });
        }
        cues.push(Cue { at, part: Part::Tokens { kind, first, count } });
        first += count;
    }
    end(script, wish, thoughts, &mut cues);
    cues
}

/// Of a chunk, where thought is text, too: its first token tells where the tags are.
fn in_text(first: u32, thoughts: u32) -> Kind {
    match first {
        0 if thoughts > 0 => Kind::Tagged(OPEN),
        _ if first == thoughts && thoughts > 0 => Kind::Tagged(CLOSE),
        _ => Kind::Content,
    }
}

fn end(script: &Script, wish: Wish, thoughts: u32, cues: &mut Vec<Cue>) {
    let at = cues.last().map_or(Duration::ZERO, |cue| cue.at);
    let times = if script.usage == UsageSays::Double { 2 } else { 1 };
    let usage = Usage {
        prompt: wish.prompt_tokens,
        cached: wish.cached_tokens,
        completion: wish.tokens.saturating_mul(times),
        reasoning: if script.think_tags { 0 } else { thoughts },
    };
    match script.usage {
        UsageSays::Nothing => cues.push(Cue { at, part: Part::Finish { usage: None } }),
        UsageSays::Last => cues.push(Cue { at, part: Part::Finish { usage: Some(usage) } }),
        UsageSays::Late | UsageSays::Double => {
            cues.push(Cue { at, part: Part::Finish { usage: None } });
            cues.push(Cue { at, part: Part::Usage(usage) });
        }
    }
}

/// For protocols whose last part says everything at once.
pub(super) fn ended_at_once(mut cues: Vec<Cue>) -> Vec<Cue> {
    let said = cues.iter().find_map(|cue| match cue.part {
        Part::Usage(usage) => Some(usage),
        _ => None,
    });
    cues.retain(|cue| !matches!(cue.part, Part::Usage(_)));
    for cue in &mut cues {
        if let Part::Finish { usage } = &mut cue.part {
            *usage = usage.or(said);
        }
    }
    cues
}

/// When a token is made.
struct Pace<'a> {
    script: &'a Script,
    first_ms: f64,
    token_ms: f64,
}

impl Pace<'_> {
    fn of(script: &Script, wish: Wish) -> Pace<'_> {
        let uncached = wish.prompt_tokens - wish.cached_tokens.unwrap_or(0).min(wish.prompt_tokens);
        let prefill_ms = f64::from(uncached) * script.prefill_us_per_token / 1e3;
        let cold_ms = if wish.is_first { script.cold_ms } else { 0.0 };
        Pace {
            script,
            first_ms: script.ttft_ms + prefill_ms + cold_ms,
            token_ms: script.itl_ms * (1.0 + script.crowding * f64::from(wish.beside)),
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

/// Between −1 and 1, by the seed.
fn shift(seed: u64, token: u32) -> f64 {
    let mut bits = seed.wrapping_add(u64::from(token).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: Wish = Wish {
        tokens: 4,
        prompt_tokens: 10,
        cached_tokens: None,
        thinks: true,
        beside: 0,
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
    fn chunks(pairs: &str, wish: Wish) -> Vec<(u128, u32, u32)> {
        let tokens = |cue: &Cue| match cue.part {
            Part::Tokens { first, count, .. } => Some((cue.at.as_millis(), first, count)),
            _ => None,
        };
        cues(&script(pairs), wish).iter().filter_map(tokens).collect()
    }

    #[test]
    fn tokens_are_due_at_their_times() {
        let evenly = vec![(100, 0, 1), (120, 1, 1), (140, 2, 1), (160, 3, 1)];
        assert_eq!(chunks("", WISH), evenly);
        let stalled = vec![(100, 0, 1), (120, 1, 1), (640, 2, 1), (660, 3, 1)];
        assert_eq!(chunks("stall_ms=500,stall_at=2", WISH), stalled);
        assert_eq!(chunks("tokens_per_chunk=3", WISH), vec![(100, 0, 3), (160, 3, 1)]);
        assert_eq!(chunks("drop_at=1", WISH), vec![(100, 0, 1)]);
        let thought = vec![(100, 0, 1), (120, 1, 2), (160, 3, 1)];
        assert_eq!(chunks("tokens_per_chunk=2,reasoning_tokens=1", WISH), thought);
    }

    #[test]
    fn tags_stand_where_thought_begins_and_ends() {
        let kinds = |pairs: &str| {
            let kind = |cue: &Cue| match cue.part {
                Part::Tokens { kind, .. } => Some(kind),
                _ => None,
            };
            cues(&script(pairs), WISH).iter().filter_map(kind).collect::<Vec<_>>()
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
    fn what_makes_the_first_token_later() {
        let first = |pairs: &str, wish: Wish| chunks(pairs, wish)[0].0;
        assert_eq!(first("prefill_us_per_token=1000", WISH), 110);
        let cached = Wish { cached_tokens: Some(8), ..WISH };
        assert_eq!(first("prefill_us_per_token=1000", cached), 102);
        assert_eq!(first("cold_ms=900", Wish { is_first: true, ..WISH }), 1000);
        assert_eq!(first("cold_ms=900", WISH), 100);
        let crowded = Wish { beside: 3, ..WISH };
        assert_eq!(chunks("crowding=0.5", crowded)[1].0, 150);
    }

    #[test]
    fn usage_is_said_as_told() {
        let said = |pairs: &str| {
            let parts = cues(&script(pairs), WISH).into_iter().map(|cue| cue.part);
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
        let at_once = ended_at_once(cues(&script("usage=late"), WISH));
        let last = at_once.last().map(|cue| cue.part);
        assert!(matches!(last, Some(Part::Finish { usage: Some(Usage { completion: 4, .. }) })));
    }

    #[test]
    fn jitter_is_bounded_and_repeats() {
        let all: Vec<f64> = (1..1000).map(|token| shift(7, token)).collect();
        assert!(all.iter().all(|shift| (-1.0..=1.0).contains(shift)));
        assert!(all.iter().any(|shift| *shift > 0.9) && all.iter().any(|shift| *shift < -0.9));
        assert!(cues(&script("jitter_ms=5"), WISH) == cues(&script("jitter_ms=5"), WISH));
    }
}
