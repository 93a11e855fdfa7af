//! Which tokens may come next, as OpenAI's decoder decides it: no special tokens, no blank beginning, and times in
//! pairs that never go back.

use super::tokens::{TIMESTAMP_S, Tokens};

/// The first segment begins at the latest here.
const FIRST_TIME_MAX_S: f64 = 1.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) tokens: &'a Tokens,
    pub(super) has_times: bool,
}

impl Rules<'_> {
    /// Sets the logits of forbidden tokens to minus infinity. `said` are the tokens of the answer so far. Returns how far
    /// all times together are from the likeliest text, in logits, if that decides which of them come. Otherwise infinity.
    pub(super) fn apply(&self, logits: &mut [f32], said: &[u32]) -> f32 {
        let tokens = self.tokens;
        let mut forbid = |token: u32| {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit = f32::NEG_INFINITY;
            }
        };
        tokens.non_speech.iter().copied().for_each(&mut forbid);
        // All special tokens before the timestamp tokens, "no timestamps" included.
        (tokens.start()..tokens.first_timestamp()).for_each(&mut forbid);
        if said.is_empty() {
            tokens.encode(" ").into_iter().chain([tokens.end]).for_each(&mut forbid);
        }
        if self.has_times {
            return self.apply_times(logits, said);
        }
        logits[tokens.first_timestamp() as usize..].fill(f32::NEG_INFINITY);
        f32::INFINITY
    }

    fn apply_times(&self, logits: &mut [f32], said: &[u32]) -> f32 {
        let first = self.tokens.first_timestamp() as usize;
        let is_time = |token: Option<&u32>| token.is_some_and(|token| *token as usize >= first);
        let (last, before) = (said.last(), said.iter().nth_back(1));
        if is_time(last) {
            if said.len() < 2 || is_time(before) {
                // A pair is complete: text follows, or a time has opened the answer.
                logits[first..].fill(f32::NEG_INFINITY);
            } else {
                // The end of a segment: the start of the next one follows, or the end of the answer.
                logits[..self.tokens.end as usize].fill(f32::NEG_INFINITY);
            }
        }
        if let Some(latest) = said.iter().rev().find(|token| is_time(Some(token))) {
            // A segment has a length, so only its end may repeat the time as the next start.
            let is_end = is_time(last) && !is_time(before);
            let from = *latest as usize + usize::from(!is_end);
            logits[first..from.min(self.tokens.first_timestamp() as usize + 1501)]
                .fill(f32::NEG_INFINITY);
        }
        if said.is_empty() {
            logits[..first].fill(f32::NEG_INFINITY);
            let latest = first + (FIRST_TIME_MAX_S / TIMESTAMP_S) as usize;
            logits[latest + 1..].fill(f32::NEG_INFINITY);
            return f32::INFINITY;
        }
        // A time comes if all times together are likelier than the likeliest text.
        let (text, times) = logits.split_at(first);
        let text_max = text.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let lead = log_sum(times) - text_max;
        if lead > 0.0 {
            logits[..first].fill(f32::NEG_INFINITY);
        }
        lead.abs()
    }
}

/// log of the sum of the exponentials.
pub(super) fn log_sum(logits: &[f32]) -> f32 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if max == f32::NEG_INFINITY {
        return max;
    }
    max + logits.iter().map(|logit| (logit - max).exp()).sum::<f32>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcription::whisper::tokens::tests::small_vocabulary;

    #[test]
    fn times_come_in_pairs_that_never_go_back() {
        let tokens = Tokens::new(small_vocabulary(), 51_865);
        let rules = Rules { tokens: &tokens, has_times: true };
        let time = |hundredths: u32| tokens.first_timestamp() + hundredths / 2;
        let letter = u32::from(b'a');
        let allowed = |said: &[u32], token: u32| {
            let mut logits = vec![0.0; 51_865];
            // Text is likelier than all times together.
            logits[..=50_257].fill(9.0);
            rules.apply(&mut logits, said);
            logits[token as usize].is_finite()
        };
        for (said, token, expected) in [
            (vec![], letter, false),
            (vec![], time(100), true),
            (vec![], time(102), false),
            (vec![time(0)], letter, true),
            (vec![time(0)], time(50), false),
            (vec![time(50), letter], time(50), false),
            (vec![time(50), letter], time(52), true),
            (vec![time(50), letter, time(90)], letter, false),
            (vec![time(50), letter, time(90)], time(90), true),
            (vec![time(50), letter, time(90)], tokens.end, true),
            (vec![time(50), letter, time(90), time(90)], letter, true),
            (vec![time(50), letter], tokens.no_speech(), false),
        ] {
            assert_eq!(allowed(&said, token), expected, "{token} after {said:?}");
        }
    }

    #[test]
    fn a_choice_between_times_and_text_says_how_close_it_was() {
        let tokens = Tokens::new(small_vocabulary(), 51_865);
        let rules = Rules { tokens: &tokens, has_times: true };
        let (first, letter) = (tokens.first_timestamp(), u32::from(b'a'));
        for (said, text, expected) in [
            (vec![first, letter], 3.0, (2.0, true)),
            (vec![first, letter], 0.5, (0.5, false)),
            // Only one of them may come.
            (vec![first], 3.0, (f32::INFINITY, true)),
            (vec![], 3.0, (f32::INFINITY, false)),
        ] {
            let mut logits = vec![f32::NEG_INFINITY; 51_865];
            logits[letter as usize] = text;
            logits[first as usize + 30] = 1.0;
            let distance = rules.apply(&mut logits, &said);
            assert_eq!((distance, logits[letter as usize].is_finite()), expected, "{said:?}");
        }
    }

    #[test]
    fn without_times_there_is_text_only_and_never_a_blank_beginning() {
        let tokens = Tokens::new(small_vocabulary(), 51_865);
        let rules = Rules { tokens: &tokens, has_times: false };
        let mut logits = vec![0.0; 51_865];
        rules.apply(&mut logits, &[]);
        let allowed: usize = logits.iter().filter(|logit| logit.is_finite()).count();
        assert!(logits[50_364..].iter().all(|logit| !logit.is_finite()));
        assert!(!logits[50_257].is_finite() && !logits[usize::from(b' ')].is_finite());
        assert!(logits[usize::from(b'a')].is_finite() && allowed > 50_000);
    }
}
