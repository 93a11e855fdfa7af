//! Finds the largest of many logits in one pass, without sorting them all.
//! Most logits are far below the best ones, so most of the time is spent on one comparison.

use std::cmp::Ordering;

use super::SamplerError;
use crate::chat::constraint::Mask;

/// Logits compared at a time; a mask's word covers as many.
const CHUNK: usize = 32;

/// Candidates that are sorted at first. Usually no more of them are likely, however many there are.
pub(super) const SORTED_MIN: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) token: u32,
    pub(super) logit: f32,
}

impl Candidate {
    /// Likeliest first; of equals, the one with the lower id.
    fn order(&self, other: &Candidate) -> Ordering {
        other.logit.total_cmp(&self.logit).then(self.token.cmp(&other.token))
    }
}

/// The likeliest of the allowed tokens.
pub(super) fn best(logits: &[f32], mask: Option<&Mask>) -> Result<Option<Candidate>, SamplerError> {
    let mut best: Option<Candidate> = None;
    visit(logits, mask, f32::NEG_INFINITY, |candidate| {
        best = Some(candidate);
        candidate.logit
    })?;
    Ok(best)
}

/// Fills `found` with the `count` likeliest of the allowed tokens. The first [`SORTED_MIN`] of them
/// are the likeliest, likeliest first; the rest has no order.
pub(super) fn largest(
    logits: &[f32],
    mask: Option<&Mask>,
    count: usize,
    found: &mut Vec<Candidate>,
) -> Result<(), SamplerError> {
    found.clear();
    let mut threshold = f32::NEG_INFINITY;
    let room = count.saturating_mul(2).max(count.saturating_add(64));
    visit(logits, mask, threshold, |candidate| {
        found.push(candidate);
        if found.len() >= room {
            threshold = keep(found, count);
        }
        threshold
    })?;
    if found.len() > count {
        keep(found, count);
    }
    sort_front(found, SORTED_MIN);
    Ok(())
}

/// Moves the `count` likeliest to the front, likeliest first.
pub(super) fn sort_front(found: &mut [Candidate], count: usize) {
    if count < found.len() {
        found.select_nth_unstable_by(count, Candidate::order);
    }
    let count = count.min(found.len());
    found[..count].sort_unstable_by(Candidate::order);
}

/// Keeps the `count` likeliest, in no order, and returns the logit of the last of them.
fn keep(found: &mut Vec<Candidate>, count: usize) -> f32 {
    let (_, last, _) = found.select_nth_unstable_by(count - 1, Candidate::order);
    let logit = last.logit;
    found.truncate(count);
    logit
}

/// Shows all allowed tokens whose logit is over the threshold, which `seen` may raise each time.
fn visit(
    logits: &[f32],
    mask: Option<&Mask>,
    mut threshold: f32,
    mut seen: impl FnMut(Candidate) -> f32,
) -> Result<(), SamplerError> {
    let words = mask.map(Mask::as_slice);
    for (index, chunk) in logits.chunks(CHUNK).enumerate() {
        let allowed = words.map_or(u32::MAX, |words| words.get(index).copied().unwrap_or(0));
        if allowed == 0 {
            continue;
        }
        let first = (index * CHUNK) as u32;
        // One branch for all of them; the compiler turns this into a few wide comparisons.
        let mut interesting = false;
        for &logit in chunk {
            interesting |= logit > threshold;
            interesting |= logit.is_nan() | (logit == f32::INFINITY);
        }
        if !interesting {
            continue;
        }
        for (bit, &logit) in chunk.iter().enumerate().filter(|(bit, _)| allowed >> bit & 1 == 1) {
            let token = first + bit as u32;
            if logit.is_nan() || logit == f32::INFINITY {
                return Err(SamplerError::NotANumber { token });
            }
            if logit > threshold {
                threshold = seen(Candidate { token, logit });
            }
        }
    }
    Ok(())
}
