//! Describes a cell's requests in its record: the workload, what the server had cached, and whether the model thought.
//! Each statement is proven by the server's own counts, or recorded as doubtful.

use hob_core::statistics::Sample;
use jiff::Timestamp;

use super::{ChatCell, ChatSession, Prompts, SHAPES_VERSION, Shape, ThinkingMode};
use crate::drive::Arrivals;
use crate::record::{
    Arrival, Cache, Connection, CountSource, Doubt, Loop, PromptTokens, RecordKind,
    RecordedWorkload,
};
use crate::runs::{CellSummary, Reply, Runs, those_that_apply};
use crate::terms::Metric;

/// A prompt with a smaller share of its planned tokens was cut. An answer with a smaller share ended early.
const WHOLE_SHARE: f64 = 0.9;
/// Minimum cached share of a prompt that counts as cached.
const CACHED_SHARE: f64 = 0.9;
/// A cold prompt may have at most `1 / TEMPLATE_PART` of its tokens cached, even with a longer template.
const TEMPLATE_PART: u32 = 4;

impl ChatSession<'_> {
    /// Describes the runs of a cell.
    pub(crate) fn summarise<'r>(
        &self,
        cell: ChatCell,
        runs: &'r Runs,
        started: Timestamp,
        prompts_sha256: String,
    ) -> CellSummary<'r> {
        let (cache, cache_verified) = self.cache(cell, runs);
        let count_source = runs.count_source();
        let has_thought = runs.pooled(Metric::ReasoningTokens).median().unwrap_or_default() > 0.0;
        let must_not_think =
            matches!(cell.thinking, ThinkingMode::Off(_) | ThinkingMode::CannotDisable);
        let doubts = [
            (count_source != Some(CountSource::Usage), Doubt::CountsNotUsage),
            (!cache_verified, Doubt::CacheUnverified),
            (must_not_think && has_thought, Doubt::ReasoningUnverified),
            (has_short_answers(cell, runs), Doubt::ShortAnswers),
        ];
        CellSummary {
            kind: RecordKind::Llm,
            runs,
            started,
            workload: RecordedWorkload {
                prompts_sha256: Some(prompts_sha256),
                cache: Some(cache),
                cache_verified: Some(cache_verified),
                ignore_eos: Some(self.ignores_eos && all_reach_the_limit(runs)),
                ..workload(cell, runs)
            },
            stopping_metrics: cell.leading(),
            count_source,
            more_invalid_reasons: invalid(cell, runs, cache),
            doubts: those_that_apply(doubts),
        }
    }

    /// The cache state that the server's counts prove. For a cold prompt, up to the measured template may be cached.
    fn cache(&self, cell: ChatCell, runs: &Runs) -> (Cache, bool) {
        let counts = |reply: &Reply| {
            let tokens = reply.tokens?;
            tokens.cached.zip(tokens.prompt)
        };
        let counts: Option<Vec<(u32, u32)>> = runs.answered().map(counts).collect();
        let template = self.template_tokens.get(&cell.shape.tools).copied().unwrap_or_default();
        let planned = match cell.prompts {
            Prompts::Cold => Cache::Cold,
            Prompts::Cached | Prompts::Again(_) => Cache::Cached,
        };
        let Some(counts) = counts.filter(|counts| !counts.is_empty()) else {
            return (planned, false);
        };
        let is_as_planned =
            |(cached, prompt): &(u32, u32)| is_proven(planned, *cached, *prompt, template);
        if counts.iter().all(is_as_planned) { (planned, true) } else { (Cache::Mixed, false) }
    }
}

/// Whether the server obeyed `ignore_eos`: a server that does not know it answers 200 as well.
fn all_reach_the_limit(runs: &Runs) -> bool {
    runs.answered().all(|reply| reply.finish.as_deref() == Some("length"))
}

/// Whether answers are shorter than planned. The answer to a real question may have any length.
fn has_short_answers(cell: ChatCell, runs: &Runs) -> bool {
    let wanted = WHOLE_SHARE * f64::from(cell.shape.max_tokens);
    let is_short =
        |reply: &Reply| reply.tokens.is_some_and(|tokens| f64::from(tokens.completion) < wanted);
    cell.shape.question.is_none() && runs.answered().any(is_short)
}

fn is_proven(planned: Cache, cached: u32, prompt: u32, template: u32) -> bool {
    match planned {
        Cache::Cold => cached <= template.min(prompt / TEMPLATE_PART),
        Cache::Cached => f64::from(cached) >= CACHED_SHARE * f64::from(prompt),
        Cache::Mixed => false,
    }
}

fn invalid(cell: ChatCell, runs: &Runs, cache: Cache) -> Vec<String> {
    let mut reasons = Vec::new();
    if cell.thinking == ThinkingMode::CannotDisable {
        reasons.push("thinking cannot be turned off".to_owned());
    }
    let is_counted = |reply: &Reply| reply.tokens.is_some_and(|tokens| tokens.cached.is_some());
    if cache == Cache::Mixed && runs.client_check.is_some() && runs.answered().any(is_counted) {
        reasons.push("some prompts were cached and others were not".to_owned());
    }
    reasons.extend(cut_prompt_reason(cell, runs));
    reasons
}

/// Whether the server cut prompts. A server with a shorter context may drop a part of a prompt without an error. Cached prompts are
/// not checked, because some servers do not count them; real questions have no planned length.
fn cut_prompt_reason(cell: ChatCell, runs: &Runs) -> Option<String> {
    let Shape { prompt_tokens, question, .. } = cell.shape;
    if cell.prompts != Prompts::Cold || question.is_some() {
        return None;
    }
    let counted = runs.pooled(Metric::PromptTokens).median()?;
    (counted < WHOLE_SHARE * f64::from(prompt_tokens)).then(|| {
        format!(
            "the server counted {counted} tokens of a prompt of about {prompt_tokens}: it cut the prompt"
        )
    })
}

fn workload(cell: ChatCell, runs: &Runs) -> RecordedWorkload {
    let shape = cell.shape;
    let counted = |reply: &Reply| reply.tokens?.prompt.map(f64::from);
    let prompt = Sample::new(runs.answered().filter_map(counted));
    let whole = |value: Option<f64>| value.map(|value| value as u64);
    let switch = cell.thinking.switch();
    RecordedWorkload {
        shape: Some(shape.name.to_owned()),
        version: Some(SHAPES_VERSION),
        prompt_tokens: Some(PromptTokens {
            target: Some(shape.prompt_tokens.into()),
            min: whole(prompt.min()),
            p50: whole(prompt.median()),
            max: whole(prompt.max()),
        }),
        max_tokens: Some(shape.max_tokens.into()),
        temperature: Some(0.0),
        reasoning: cell.thinking.reasoning(),
        reasoning_switch: switch.map(|switch| switch.name().to_owned()),
        tools: Some(shape.tools),
        connection: Some(Connection::Reused),
        ..load(cell.arrivals)
    }
}

/// The load as part of a workload.
pub(crate) fn load(arrivals: Arrivals) -> RecordedWorkload {
    let (r#loop, rate, arrival) = match arrivals {
        Arrivals::Closed { .. } => (Loop::Closed, None, None),
        Arrivals::Constant { per_second, .. } => {
            (Loop::Open, Some(per_second), Some(Arrival::Constant))
        }
        Arrivals::Poisson { per_second, .. } => {
            (Loop::Open, Some(per_second), Some(Arrival::Poisson))
        }
    };
    let concurrency = u32::try_from(arrivals.connections()).ok();
    RecordedWorkload {
        r#loop: Some(r#loop),
        concurrency,
        rate,
        arrival,
        ..RecordedWorkload::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_answers_are_marked_as_doubtful() {
        let runs = |completion: u32, finish: &str| {
            let tokens = crate::timeline::TokenCounts { completion, ..Default::default() };
            let reply = Reply {
                figures: [(Metric::TtftMs, 5.0)].into(),
                tokens: Some(tokens),
                finish: Some(finish.to_owned()),
                ..Reply::default()
            };
            let run = crate::runs::Run { replies: vec![reply], ..Default::default() };
            Runs { runs: vec![run], ..Runs::default() }
        };
        let cell = |shape| ChatCell {
            shape,
            arrivals: Arrivals::Closed { users: 1 },
            thinking: ThinkingMode::AsIs { thinks: false },
            prompts: Prompts::Cold,
        };
        let short_short = Shape::by_name("short_short").expect("a shape");
        let question = Shape::by_name("quick_word").expect("a shape");
        let rows = [
            (short_short, 128, "length", false, true),
            (short_short, 3, "stop", true, false),
            (question, 3, "stop", false, false),
        ];
        for (shape, completion, finish, is_short, is_ignored) in rows {
            let runs = runs(completion, finish);
            let got = (has_short_answers(cell(shape), &runs), all_reach_the_limit(&runs));
            assert_eq!(got, (is_short, is_ignored), "{} {completion}", shape.name);
        }
    }

    #[test]
    fn only_the_template_of_a_cold_prompt_may_be_cached() {
        let rows = [
            // Cached tokens, prompt tokens, template tokens, and whether the state is proven.
            (Cache::Cold, 0, 100, 0, true),
            (Cache::Cold, 1, 100, 0, false),
            (Cache::Cold, 22, 100, 22, true),
            (Cache::Cold, 23, 100, 22, false),
            // A template that is longer than the prompt was measured wrongly.
            (Cache::Cold, 60, 100, 70, false),
            (Cache::Cached, 90, 100, 22, true),
            (Cache::Cached, 89, 100, 22, false),
            (Cache::Mixed, 100, 100, 0, false),
        ];
        for (planned, cached, prompt, template, expected) in rows {
            let got = is_proven(planned, cached, prompt, template);
            assert_eq!(got, expected, "{planned:?} {cached} of {prompt}");
        }
    }
}
