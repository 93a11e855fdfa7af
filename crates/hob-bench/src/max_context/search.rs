//! Decides which context is tried next, from the results so far. Pure, so tests can simulate any server.
//! It bisects within the window that free memory and the bytes per token predict, if they are known.

#[cfg(test)]
mod tests;

use super::attempt_result::{AttemptResultAt, ServerMemory};
use super::trend::{JudgedAttempts, SpeedVerdict, judge_attempts, speed_verdict};
use crate::record::AttemptResult;

/// The longest context must work this often.
const CONFIRMED_TIMES: u32 = 2;
/// After this many answers in a row from servers of an earlier start, the search gives up.
const STALE_MAX: usize = 3;
/// Window around the predicted context. It is not symmetric, because uncounted buffers take memory.
const WINDOW: (f64, f64) = (0.875, 1.03);
/// The prediction is only used for this many attempts.
const PREDICTED_ATTEMPTS_MAX: usize = 6;

/// The range of the search in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextRange {
    pub lo: u64,
    pub hi: u64,
    pub granule: u64,
}

/// All attempts so far, and what follows from them.
#[derive(Clone, Debug)]
pub struct Search {
    range: ContextRange,
    /// Bytes per token of context, if the model's file gives them; otherwise they are learnt.
    bytes_per_token: Option<f64>,
    tried: Vec<AttemptResultAt>,
    judged: JudgedAttempts,
}

impl Search {
    pub fn new(range: ContextRange, bytes_per_token: Option<f64>) -> Search {
        Search { range, bytes_per_token, tried: Vec::new(), judged: JudgedAttempts::default() }
    }

    pub fn add(&mut self, tried: AttemptResultAt) {
        self.tried.push(tried);
        // Later attempts may show that an earlier one was too slow.
        self.judged = judge_attempts(&self.tried);
        for (one, result) in self.tried.iter_mut().zip(&self.judged.results) {
            one.result = *result;
        }
    }

    /// Judges the speed at a context.
    pub(super) fn speed_verdict(&self, ctx: u64, decode_tok_s: f64) -> SpeedVerdict {
        speed_verdict(&self.judged.fine, ctx, 1.0 / decode_tok_s)
    }

    pub fn tried(&self) -> &[AttemptResultAt] {
        &self.tried
    }

    /// The longest context that worked, shorter than every failure.
    pub fn longest_ok(&self) -> Option<u64> {
        let top = self.top();
        let ok = self.tried.iter().filter(|one| one.result == AttemptResult::Ok && one.ctx < top);
        ok.map(|one| one.ctx).max()
    }

    /// The shortest context that failed. One failure outweighs successes: a context must always work.
    pub fn shortest_fail(&self) -> Option<u64> {
        self.tried.iter().filter(|one| self.is_bound(one)).map(|one| one.ctx).min()
    }

    /// The shortest context that may not work: no longer one is known to work.
    fn top(&self) -> u64 {
        let ends = [self.shortest_fail(), self.judged.doubtful];
        let beyond = self.range.hi + self.range.granule;
        ends.into_iter().flatten().min().unwrap_or(beyond)
    }

    /// The result of the shortest failed context.
    pub fn limited_by(&self) -> Option<AttemptResult> {
        let fail = self.shortest_fail()?;
        let last = self.tried.iter().rev().find(|one| one.ctx == fail && self.is_bound(one));
        last.map(|one| one.result)
    }

    /// How often the longest context worked.
    pub fn confirmed(&self) -> u32 {
        self.longest_ok().map_or(0, |ctx| self.count(ctx, AttemptResult::Ok))
    }

    pub fn is_confirmed(&self) -> bool {
        self.confirmed() >= CONFIRMED_TIMES
    }

    /// The next context to try; None at the end of the search.
    pub fn next(&self) -> Option<u64> {
        if let Some(again) = self.repeat_unclear() {
            return again;
        }
        match (self.longest_ok(), self.shortest_fail()) {
            (None, Some(fail)) if fail <= self.range.lo => None,
            (None, _) => Some(self.range.lo),
            (Some(ok), _) => {
                let next = self.between(ok, self.top());
                next.or_else(|| (!self.is_confirmed()).then_some(ok))
            }
        }
    }

    /// Estimated number of further attempts after this one.
    pub fn attempts_left(&self) -> usize {
        let width = self.top().saturating_sub(self.longest_ok().unwrap_or(self.range.lo));
        let halvings = (width / self.range.granule).max(1).ilog2() as usize;
        halvings + CONFIRMED_TIMES.saturating_sub(self.confirmed().max(1)) as usize
    }

    /// The context to repeat, because its last attempt had no clear result. `Some(None)`: the search gives up.
    fn repeat_unclear(&self) -> Option<Option<u64>> {
        let last = self.tried.last()?;
        let in_a_row = self.tried.iter().rev().take_while(|one| one.result == last.result).count();
        match last.result {
            AttemptResult::Stale if in_a_row < STALE_MAX => Some(Some(last.ctx)),
            AttemptResult::Stale => Some(None),
            AttemptResult::Failed if !self.is_bound(last) => Some(Some(last.ctx)),
            _ => None,
        }
    }

    /// A first failure without a known cause may have been chance.
    fn is_bound(&self, one: &AttemptResultAt) -> bool {
        match one.result {
            AttemptResult::Ok | AttemptResult::Stale => false,
            AttemptResult::Failed => self.count(one.ctx, AttemptResult::Failed) > 1,
            AttemptResult::OomLoad
            | AttemptResult::OomPrefill
            | AttemptResult::OomDecode
            | AttemptResult::Spill
            | AttemptResult::Timeout
            | AttemptResult::Unsupported => true,
        }
    }

    fn count(&self, ctx: u64, result: AttemptResult) -> u32 {
        self.tried.iter().filter(|one| one.ctx == ctx && one.result == result).count() as u32
    }

    /// A context between a success and a failure or the end of the range; None if they are neighbours.
    fn between(&self, ok: u64, top: u64) -> Option<u64> {
        let ContextRange { hi, granule, .. } = self.range;
        if ok >= hi || top - ok <= granule {
            return None;
        }
        let reported = self.reported_max().map(|most| if most > ok { most } else { ok + granule });
        if let Some(next) = reported.filter(|next| *next < top) {
            return Some(next);
        }
        if top > hi && self.hi_is_worth_it() {
            return Some(hi);
        }
        let window = self.window().map(|(from, until)| (from.max(ok), until.min(top)));
        let (from, until) = window
            .filter(|(from, until)| *until > *from && until - from > granule)
            .unwrap_or((ok, top));
        Some(self.middle(from, until).min(top - granule).max(ok + granule))
    }

    /// The middle, rounded down to the granule.
    fn middle(&self, from: u64, until: u64) -> u64 {
        let ContextRange { lo, granule, .. } = self.range;
        let middle = from + (until - from) / 2;
        lo + middle.saturating_sub(lo) / granule * granule
    }

    fn reported_max(&self) -> Option<u64> {
        self.tried.iter().filter_map(|one| one.ctx_max).min()
    }

    /// Whether the end of the range may fit: memory is unknown or certainly sufficient.
    fn hi_is_worth_it(&self) -> bool {
        match (self.window(), self.memory_by_context().last()) {
            (Some((from, _)), _) => from >= self.range.hi,
            // The used memory includes the weights, so a token takes less than this.
            (None, Some((ctx, memory))) => {
                let most = memory.taken_bytes as f64 / *ctx as f64;
                *ctx as f64 + memory.left_bytes as f64 / most >= self.range.hi as f64
            }
            (None, None) => true,
        }
    }

    /// Where the longest context is expected, if memory limits it.
    fn window(&self) -> Option<(u64, u64)> {
        let known = self.memory_by_context();
        let (ctx, memory) = *known.last()?;
        let guess = ctx as f64 + memory.left_bytes as f64 / self.bytes_per_token(&known)?;
        let is_used = self.tried.len() < PREDICTED_ATTEMPTS_MAX;
        is_used.then_some(((guess * WINDOW.0) as u64, (guess * WINDOW.1) as u64))
    }

    /// Bytes per token, from the shortest and the longest success.
    fn bytes_per_token(&self, known: &[(u64, ServerMemory)]) -> Option<f64> {
        let learnt = known.first().zip(known.last()).and_then(|(short, long)| {
            let tokens = long.0.checked_sub(short.0).filter(|tokens| *tokens > 0)?;
            let bytes = long.1.taken_bytes.checked_sub(short.1.taken_bytes)?;
            Some(bytes as f64 / tokens as f64)
        });
        learnt.or(self.bytes_per_token).filter(|bytes| *bytes > 0.0)
    }

    /// Successful contexts with their memory, the shortest first.
    fn memory_by_context(&self) -> Vec<(u64, ServerMemory)> {
        let ok = self.tried.iter().filter(|one| one.result == AttemptResult::Ok);
        let mut known: Vec<_> = ok.filter_map(|one| Some((one.ctx, one.memory?))).collect();
        known.sort_by_key(|(ctx, _)| *ctx);
        known
    }
}
