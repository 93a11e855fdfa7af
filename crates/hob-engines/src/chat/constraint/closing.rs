//! Finds a short end for a constrained answer: the tokens that close it.
//! It searches by trial, because the grammar's automaton only shows the next allowed tokens. The result always closes the
//! answer, but a shorter end may exist.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use llguidance::Matcher;

use super::matching::{allows, consume, ends_with, forced, is_complete, undo};
use super::{ConstraintError, Vocabulary};
use crate::chat::json_context::{JsonContext, Quoting};

/// Maximum bytes of an end. Answers that need more to close are rejected.
pub(super) const END_BYTES_MAX: usize = 16_384;
/// Enough for most ends, and much faster to search.
const FIRST_BYTES_MAX: usize = 512;
/// Ends to try if the first one is too long.
const TRIALS_MAX: usize = 96;
/// Alternatives to try where an answer can continue in several ways.
const ALTERNATIVES_MAX: usize = 8;
/// Ends to try between two tokens of an answer, while other answers wait.
const STEP_TRIALS_MAX: usize = 24;
/// Long ends to try: each trial takes longer.
const LONG_TRIALS_MAX: usize = 8;
/// Maximum tokens tried in one search, over all its attempts. The best end found until then is used.
const STEPS_MAX: usize = 40_000;
/// After so many visits of one position of the grammar, an attempt counts as an endless recursion.
const VISITS_MAX: usize = 24;

/// Bytes to try outside strings: closing ones first, then values that need little.
const OUTSIDE: &[u8] = b"}]0123456789\"ntf[{-.:,eE+<";
/// Bytes to try inside a string that may not end yet, before all other bytes. Separators come first: after one, a pattern
/// is one part nearer to its end.
const INSIDE: &[u8] = b"@:/-._T Za0A1PD2bcdef3456789";

/// Finds ends, and learns which alternative is shorter.
#[derive(Clone, Debug)]
pub(super) struct Closer {
    vocabulary: Vocabulary,
    /// Special tokens that the grammar may require.
    marks: Vec<u32>,
    /// Texts that may match patterns in strings, as tokens of single bytes.
    hints: Vec<Vec<u32>>,
    preferred: HashMap<u64, u32>,
    trials_max: usize,
    steps_left: usize,
}

/// A position of the grammar at which the answer can continue in more than one way.
#[derive(Clone, Debug)]
struct Fork {
    /// A hash, from [`place`].
    place: u64,
    ways: Vec<u32>,
}

/// One attempt to end the answer, in single bytes and marks.
#[derive(Clone, Debug, Default)]
struct Trial {
    has_ended: bool,
    tokens: Vec<u32>,
    text: Vec<u8>,
    forks: Vec<Fork>,
}

impl Closer {
    pub(super) fn new(vocabulary: Vocabulary, marks: Vec<u32>, hints: &[String]) -> Closer {
        let tokens = |hint: &String| hint.bytes().map(|byte| vocabulary.byte_token(byte)).collect();
        let hints = hints.iter().filter_map(tokens).collect();
        let (preferred, trials_max) = (HashMap::new(), TRIALS_MAX);
        Closer { vocabulary, marks, hints, preferred, trials_max, steps_left: STEPS_MAX }
    }

    /// Searches less from now on, because answers wait.
    pub(super) fn hurry(&mut self) {
        self.trials_max = STEP_TRIALS_MAX;
    }

    /// The tokens that end the answer from here: at most `tokens_max` if possible. `None` if no end was found. The matcher
    /// does not change.
    pub(super) fn end(
        &mut self,
        matcher: &mut Matcher,
        context: JsonContext,
        tokens_max: usize,
    ) -> Result<Option<Vec<u32>>, ConstraintError> {
        self.steps_left = STEPS_MAX;
        // A wrong alternative may never end, so a short attempt comes first.
        for bytes_max in [FIRST_BYTES_MAX, END_BYTES_MAX] {
            let quick = self.trial(matcher, context, bytes_max)?;
            if quick.has_ended {
                let end = self.merged(matcher, &quick)?;
                if end.len() <= tokens_max {
                    return Ok(Some(end));
                }
            }
            let best = self.explored(matcher, context, quick, bytes_max)?;
            if best.has_ended {
                return self.merged(matcher, &best).map(Some);
            }
        }
        Ok(None)
    }

    /// Looks for a shorter end by taking another alternative at each fork, one fork at a time.
    fn explored(
        &mut self,
        matcher: &mut Matcher,
        context: JsonContext,
        mut best: Trial,
        bytes_max: usize,
    ) -> Result<Trial, ConstraintError> {
        let mut forks = best.forks.clone();
        if !best.has_ended {
            // An attempt that failed came to the same places many times.
            let mut seen = HashSet::new();
            forks.retain(|fork| seen.insert(fork.place));
        }
        let trials_max =
            if bytes_max > FIRST_BYTES_MAX { LONG_TRIALS_MAX } else { self.trials_max };
        let mut trials = 0;
        let mut at = 0;
        while at < forks.len() && trials < trials_max {
            let Fork { place, ways } = forks[at].clone();
            at += 1;
            for way in ways.into_iter().take(ALTERNATIVES_MAX) {
                let before = self.preferred.insert(place, way);
                if before == Some(way) {
                    continue;
                }
                trials += 1;
                let limit = if best.has_ended { best.text.len() } else { bytes_max };
                let trial = self.trial(matcher, context, limit)?;
                if trial.has_ended && trial.text.len() < limit {
                    forks.extend(trial.forks.iter().filter(|fork| fork.place != place).cloned());
                    best = trial;
                } else {
                    restore(&mut self.preferred, place, before);
                }
            }
        }
        Ok(best)
    }

    fn trial(
        &mut self,
        matcher: &mut Matcher,
        context: JsonContext,
        bytes_max: usize,
    ) -> Result<Trial, ConstraintError> {
        let mut trial = Trial::default();
        let has_ended = self.run(matcher, context, bytes_max, &mut trial)?;
        undo(matcher, trial.tokens.len())?;
        Ok(Trial { has_ended, ..trial })
    }

    /// Continues until the answer may end. False if it does not end within `bytes_max`.
    fn run(
        &mut self,
        matcher: &mut Matcher,
        mut context: JsonContext,
        bytes_max: usize,
        trial: &mut Trial,
    ) -> Result<bool, ConstraintError> {
        while !is_complete(matcher)? {
            if trial.text.len() >= bytes_max || self.steps_left == 0 {
                return Ok(false);
            }
            self.steps_left -= 1;
            if bytes_max <= FIRST_BYTES_MAX && is_lost(&trial.forks) {
                return Ok(false);
            }
            let mut next = forced(matcher, &self.vocabulary);
            if next.is_empty() {
                next = self.way_on(matcher, context, trial)?;
            }
            if next.is_empty() {
                return Ok(false);
            }
            consume(matcher, &next)?;
            for &token in &next {
                let text = self.vocabulary.text(token);
                context = context.after(text);
                trial.text.extend_from_slice(text);
            }
            trial.tokens.extend(next);
        }
        Ok(true)
    }

    fn way_on(
        &self,
        matcher: &mut Matcher,
        context: JsonContext,
        trial: &mut Trial,
    ) -> Result<Vec<u32>, ConstraintError> {
        let quoting = context.quoting;
        let closing: &[u8] = match quoting {
            Quoting::Inside => b"\"",
            // If nothing closes, a comma: another member is required, and no digit helps.
            Quoting::Outside => b"}],",
            Quoting::Escaped => b"",
        };
        if let Some(close) = self.first(matcher, closing)? {
            return Ok(vec![close]);
        }
        if let Some(hint) = self.hinted(matcher, quoting)? {
            return Ok(hint);
        }
        let ways = self.ways(matcher, quoting)?;
        let place = place(context.last, &ways);
        let preferred = self.preferred.get(&place).copied();
        let chosen = match preferred.filter(|way| ways.contains(way)) {
            Some(way) => Some(way),
            None => self.closable(matcher, quoting, &ways)?.or(ways.first().copied()),
        };
        // Within strings every character is a fork, but only the first one matters.
        let decides = quoting == Quoting::Outside || context.last == b'"';
        if ways.len() > 1 && decides {
            trial.forks.push(Fork { place, ways });
        }
        Ok(chosen.into_iter().collect())
    }

    /// A text after which the string may end.
    fn hinted(
        &self,
        matcher: &mut Matcher,
        quoting: Quoting,
    ) -> Result<Option<Vec<u32>>, ConstraintError> {
        let quote = self.vocabulary.byte_token(b'"').filter(|_| quoting == Quoting::Inside);
        let Some(quote) = quote else { return Ok(None) };
        for hint in self.hints.iter().filter(|hint| !hint.is_empty()) {
            let whole = [hint.as_slice(), &[quote]].concat();
            if allows(matcher, &whole)? {
                return Ok(Some(whole));
            }
        }
        Ok(None)
    }

    fn first(&self, matcher: &mut Matcher, bytes: &[u8]) -> Result<Option<u32>, ConstraintError> {
        for token in bytes.iter().filter_map(|&byte| self.vocabulary.byte_token(byte)) {
            if allows(matcher, &[token])? {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }

    /// Tokens that may come next, in order of preference: marks, usual bytes, and then others up to [`ALTERNATIVES_MAX`].
    /// Outside strings, others come only if marks and usual bytes are forbidden.
    fn ways(&self, matcher: &mut Matcher, quoting: Quoting) -> Result<Vec<u32>, ConstraintError> {
        let usual = if quoting == Quoting::Outside { OUTSIDE } else { INSIDE };
        let usual: Vec<u32> = usual.iter().filter_map(|&b| self.vocabulary.byte_token(b)).collect();
        let mut ways = Vec::new();
        for &token in self.marks.iter().chain(&usual) {
            if allows(matcher, &[token])? {
                ways.push(token);
            }
        }
        if !ways.is_empty() && quoting == Quoting::Outside {
            return Ok(ways);
        }
        for token in (0x20..0x7F)
            .chain(0x80..=0xFE)
            .chain(0..0x20)
            .filter_map(|b| self.vocabulary.byte_token(b))
        {
            if ways.len() >= ALTERNATIVES_MAX {
                break;
            }
            if !ways.contains(&token) && allows(matcher, &[token])? {
                ways.push(token);
            }
        }
        Ok(ways)
    }

    /// The first alternative after which the value may end.
    fn closable(
        &self,
        matcher: &mut Matcher,
        quoting: Quoting,
        ways: &[u32],
    ) -> Result<Option<u32>, ConstraintError> {
        let ends: &[u8] = if quoting == Quoting::Outside { b"}]," } else { b"\"" };
        let mut ends: Vec<u32> =
            ends.iter().filter_map(|&byte| self.vocabulary.byte_token(byte)).collect();
        ends.push(self.vocabulary.end_token());
        for &way in ways {
            let opens = quoting == Quoting::Outside && self.vocabulary.text(way) == b"\"";
            for &end in ends.iter().filter(|_| !opens) {
                if allows(matcher, &[way, end])? {
                    return Ok(Some(way));
                }
            }
        }
        Ok(None)
    }

    /// The end of a trial, with fewer tokens.
    fn merged(&self, matcher: &mut Matcher, trial: &Trial) -> Result<Vec<u32>, ConstraintError> {
        let mut merged = Vec::new();
        let mut text = Vec::new();
        for &token in &trial.tokens {
            if self.marks.contains(&token) {
                merged.extend(self.vocabulary.tokenize_greedily(&std::mem::take(&mut text)));
                merged.push(token);
            } else {
                text.extend_from_slice(self.vocabulary.text(token));
            }
        }
        merged.extend(self.vocabulary.tokenize_greedily(&text));
        let holds = ends_with(matcher, &merged, self.vocabulary.end_token())?;
        Ok(if holds { merged } else { trial.tokens.clone() })
    }
}

/// Recognises a position of the grammar: the byte before it, and the tokens with which the answer can continue.
fn place(last: u8, ways: &[u32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    last.hash(&mut hasher);
    ways.hash(&mut hasher);
    hasher.finish()
}

fn is_lost(forks: &[Fork]) -> bool {
    let Some(last) = forks.last() else { return false };
    forks.len() > VISITS_MAX
        && forks.iter().filter(|fork| fork.place == last.place).count() > VISITS_MAX
}

fn restore(preferred: &mut HashMap<u64, u32>, place: u64, before: Option<u32>) {
    match before {
        Some(way) => preferred.insert(place, way),
        None => preferred.remove(&place),
    };
}
