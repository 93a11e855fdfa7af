//! Which context is tried next, and what is known by what came of those before: pure, so that any server can be played.
//! A bisection, within the window that memory and its price per token promise, as long as they promise one.

#[cfg(test)]
mod tests;

use super::trend::{Judged, Pace, judged, pace};
use crate::record::AttemptResult;

/// The longest has to work so often.
const CONFIRMED_TIMES: u32 = 2;
/// Servers of an earlier start that answer in a row, before it is given up.
const STALE_MAX: usize = 3;
/// Of what memory promises. Buffers that nobody counts take more of it than is ever left over.
const WINDOW: (f64, f64) = (0.875, 1.03);
/// Attempts after which a promise that has not led there is no longer believed.
const BELIEVED_MAX: usize = 6;

/// Where the ceiling is looked for, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub lo: u64,
    pub hi: u64,
    pub granule: u64,
}

/// What a server had taken of memory, and what was left of the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub taken_bytes: u64,
    pub left_bytes: u64,
}

/// What came of one context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    pub ctx: u64,
    pub result: AttemptResult,
    /// The server took no more than this, and said so.
    pub takes: Option<u64>,
    pub memory: Option<Memory>,
    pub decode_tok_s: Option<f64>,
}

/// What was tried, and what follows from it.
#[derive(Clone, Debug)]
pub struct Search {
    span: Span,
    /// Of context, where the model's own file says it; else it is learnt.
    bytes_per_token: Option<f64>,
    tried: Vec<Tried>,
    judged: Judged,
}

impl Search {
    pub fn new(span: Span, bytes_per_token: Option<f64>) -> Search {
        Search { span, bytes_per_token, tried: Vec::new(), judged: Judged::default() }
    }

    pub fn add(&mut self, tried: Tried) {
        self.tried.push(tried);
        // A slow one may turn out to be so only beside those that come after it.
        self.judged = judged(&self.tried);
        for (one, result) in self.tried.iter_mut().zip(&self.judged.results) {
            one.result = *result;
        }
    }

    /// What so many tokens a second say at a context.
    pub(super) fn pace(&self, ctx: u64, decode_tok_s: f64) -> Pace {
        pace(&self.judged.fine, ctx, 1.0 / decode_tok_s)
    }

    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// The longest that worked, below everything that did not.
    pub fn longest_ok(&self) -> Option<u64> {
        let top = self.top();
        let ok = self.tried.iter().filter(|one| one.result == AttemptResult::Ok && one.ctx < top);
        ok.map(|one| one.ctx).max()
    }

    /// One failure outweighs any success: what works now and then cannot be used.
    pub fn shortest_fail(&self) -> Option<u64> {
        self.tried.iter().filter(|one| self.is_bound(one)).map(|one| one.ctx).min()
    }

    /// Nothing from here on is known to work.
    fn top(&self) -> u64 {
        let ends = [self.shortest_fail(), self.judged.doubtful];
        let beyond = self.span.hi + self.span.granule;
        ends.into_iter().flatten().min().unwrap_or(beyond)
    }

    /// What the shortest that did not work came to.
    pub fn limited_by(&self) -> Option<AttemptResult> {
        let fail = self.shortest_fail()?;
        let last = self.tried.iter().rev().find(|one| one.ctx == fail && self.is_bound(one));
        last.map(|one| one.result)
    }

    /// How often the longest worked.
    pub fn confirmed(&self) -> u32 {
        self.longest_ok().map_or(0, |ctx| self.count(ctx, AttemptResult::Ok))
    }

    pub fn is_confirmed(&self) -> bool {
        self.confirmed() >= CONFIRMED_TIMES
    }

    /// Nothing is left between the longest that works and the shortest that does not.
    pub fn is_refuted(&self) -> bool {
        let ends = self.longest_ok().zip(self.shortest_fail());
        ends.is_some_and(|(ok, fail)| fail - ok <= self.span.granule)
    }

    /// None once everything is known that can be.
    pub fn next(&self) -> Option<u64> {
        if let Some(again) = self.again() {
            return again;
        }
        match (self.longest_ok(), self.shortest_fail()) {
            (None, Some(fail)) if fail <= self.span.lo => None,
            (None, _) => Some(self.span.lo),
            (Some(ok), _) => {
                let next = self.between(ok, self.top());
                next.or_else(|| (!self.is_confirmed()).then_some(ok))
            }
        }
    }

    /// About how many more there are, this one not counted.
    pub fn left(&self) -> usize {
        let width = self.top().saturating_sub(self.longest_ok().unwrap_or(self.span.lo));
        let halvings = (width / self.span.granule).max(1).ilog2() as usize;
        halvings + CONFIRMED_TIMES.saturating_sub(self.confirmed().max(1)) as usize
    }

    /// A context whose last attempt said nothing of it: tried again, or given up.
    fn again(&self) -> Option<Option<u64>> {
        let last = self.tried.last()?;
        let in_a_row = self.tried.iter().rev().take_while(|one| one.result == last.result).count();
        match last.result {
            AttemptResult::Stale if in_a_row < STALE_MAX => Some(Some(last.ctx)),
            AttemptResult::Stale => Some(None),
            AttemptResult::Failed if !self.is_bound(last) => Some(Some(last.ctx)),
            _ => None,
        }
    }

    /// A failure of no known kind may have been chance, the first time.
    fn is_bound(&self, one: &Tried) -> bool {
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

    /// Between one that works and one that does not, or is beyond the span; none where they are neighbours.
    fn between(&self, ok: u64, top: u64) -> Option<u64> {
        let Span { hi, granule, .. } = self.span;
        if ok >= hi || top - ok <= granule {
            return None;
        }
        let told = self.takes().map(|takes| if takes > ok { takes } else { ok + granule });
        if let Some(next) = told.filter(|next| *next < top) {
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

    /// On the grid that begins at the lower end of the span.
    fn middle(&self, from: u64, until: u64) -> u64 {
        let Span { lo, granule, .. } = self.span;
        let middle = from + (until - from) / 2;
        lo + middle.saturating_sub(lo) / granule * granule
    }

    fn takes(&self) -> Option<u64> {
        self.tried.iter().filter_map(|one| one.takes).min()
    }

    /// Where nothing is known of memory, or there is surely enough of it.
    fn hi_is_worth_it(&self) -> bool {
        match (self.window(), self.known().last()) {
            (Some((from, _)), _) => from >= self.span.hi,
            // The weights are in what was taken, so a token costs less than this.
            (None, Some((ctx, memory))) => {
                let most = memory.taken_bytes as f64 / *ctx as f64;
                *ctx as f64 + memory.left_bytes as f64 / most >= self.span.hi as f64
            }
            (None, None) => true,
        }
    }

    /// Where the ceiling is, if memory is what limits it.
    fn window(&self) -> Option<(u64, u64)> {
        let known = self.known();
        let (ctx, memory) = *known.last()?;
        let guess = ctx as f64 + memory.left_bytes as f64 / self.price(&known)?;
        let is_believed = self.tried.len() < BELIEVED_MAX;
        is_believed.then_some(((guess * WINDOW.0) as u64, (guess * WINDOW.1) as u64))
    }

    /// Bytes for a token more: between the shortest and the longest that worked.
    fn price(&self, known: &[(u64, Memory)]) -> Option<f64> {
        let learnt = known.first().zip(known.last()).and_then(|(short, long)| {
            let tokens = long.0.checked_sub(short.0).filter(|tokens| *tokens > 0)?;
            let bytes = long.1.taken_bytes.checked_sub(short.1.taken_bytes)?;
            Some(bytes as f64 / tokens as f64)
        });
        learnt.or(self.bytes_per_token).filter(|bytes| *bytes > 0.0)
    }

    /// Contexts that worked, the shortest first, and their memory.
    fn known(&self) -> Vec<(u64, Memory)> {
        let ok = self.tried.iter().filter(|one| one.result == AttemptResult::Ok);
        let mut known: Vec<_> = ok.filter_map(|one| Some((one.ctx, one.memory?))).collect();
        known.sort_by_key(|(ctx, _)| *ctx);
        known
    }
}
