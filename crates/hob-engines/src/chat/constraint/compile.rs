//! Makes constraints: one of these per model. Compiled grammars are kept, since clients send the
//! same tools and schemas again and again.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use llguidance::api::ParserLimits;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use toktrie::InferenceCapabilities;

use super::closing::{Closer, Context};
use super::grammar::{self, Begins, Plan, Wanted};
use super::trigger::Watch;
use super::{Constraint, ConstraintError, Phase, SchemaLimits, Vocabulary};

/// Grammars that stay compiled.
const KEPT_MAX: usize = 32;

/// Compiles what is wanted against one vocabulary.
pub struct Constrainer {
    vocabulary: Vocabulary,
    factory: ParserFactory,
    limits: SchemaLimits,
    /// The one used last stands first.
    kept: Mutex<VecDeque<Kept>>,
}

struct Kept {
    plan: Plan,
    matcher: Matcher,
    closer: Closer,
    end: Option<Vec<u32>>,
}

impl Constrainer {
    pub fn new(
        vocabulary: Vocabulary,
        limits: SchemaLimits,
    ) -> Result<Constrainer, ConstraintError> {
        let mut factory = ParserFactory::new(
            vocabulary.env(),
            InferenceCapabilities { ff_tokens: false, ..InferenceCapabilities::default() },
            &SlicedBiasComputer::json_slices(),
        )
        .map_err(super::matching::failed)?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            // What the matcher says of a failure must not quote the answer.
            verbose_errors: false,
            step_lexer_fuel: 2_000_000,
            step_max_items: 500_000,
            ..ParserLimits::default()
        };
        Ok(Constrainer { vocabulary, factory, limits, kept: Mutex::default() })
    }

    /// The constraint of an answer of at most `tokens_max` tokens; none where nothing is asked of
    /// it. Takes milliseconds for a grammar that is not kept: not for the thread that decodes.
    pub fn compile(
        &self,
        wanted: &Wanted<'_>,
        tokens_max: u32,
    ) -> Result<Option<Constraint>, ConstraintError> {
        let Some(plan) = grammar::plan(wanted, &self.vocabulary, &self.limits)? else {
            return Ok(None);
        };
        let field = field_of(wanted);
        let phase = match (plan.begins, &wanted.tools) {
            (Begins::WithATrigger, Some(tools)) => {
                Phase::Free(Watch::new(self.vocabulary.clone(), *tools.dialect))
            }
            _ => Phase::Held,
        };
        let kept = self.kept(plan, wanted, field)?;
        let needed =
            kept.end.as_ref().map_or(0, |end| u32::try_from(end.len()).unwrap_or(u32::MAX));
        if matches!(phase, Phase::Held) && needed > tokens_max {
            return Err(ConstraintError::Budget { field, needed, available: tokens_max });
        }
        let end = kept.end.filter(|_| matches!(phase, Phase::Held));
        Ok(Some(Constraint {
            vocabulary: self.vocabulary.clone(),
            matcher: kept.matcher,
            closer: kept.closer,
            context: Context::default(),
            phase,
            end,
            refused: Vec::new(),
            mask: None,
        }))
    }

    fn kept(
        &self,
        plan: Plan,
        wanted: &Wanted<'_>,
        field: &'static str,
    ) -> Result<Kept, ConstraintError> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().position(|kept| kept.plan == plan).and_then(|at| all.remove(at));
        drop(all);
        let kept = match found {
            Some(kept) => kept,
            None => self.compiled(plan, wanted, field)?,
        };
        let copy = kept.copy();
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_front(kept);
        all.truncate(KEPT_MAX);
        Ok(copy)
    }

    fn compiled(
        &self,
        plan: Plan,
        wanted: &Wanted<'_>,
        field: &'static str,
    ) -> Result<Kept, ConstraintError> {
        let refuse =
            |error: &dyn fmt::Display| ConstraintError::Grammar { field, detail: short(error) };
        let parser = self.factory.create_parser(plan.grammar()).map_err(|error| refuse(&error))?;
        let mut matcher = Matcher::new(Ok(parser));
        if let Some(error) = matcher.get_error() {
            return Err(refuse(&error));
        }
        let marks = wanted.tools.iter().flat_map(|tools| tools.dialect.marks);
        let marks = marks.filter_map(|mark| self.vocabulary.special(mark)).collect();
        let mut closer = Closer::new(self.vocabulary.clone(), marks, &plan.hints);
        // A limit of nothing makes it look for the shortest end there is.
        let end = closer.end(&mut matcher, Context::default(), 0)?;
        if plan.must_close && end.is_none() {
            return Err(ConstraintError::Endless { field });
        }
        closer.hurry();
        Ok(Kept { plan, matcher, closer, end })
    }
}

#[cfg(test)]
impl Constrainer {
    pub(super) fn kept_count(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Kept {
    /// With an automaton of its own, so that answers do not wait for each other.
    fn copy(&self) -> Kept {
        Kept {
            plan: self.plan.clone(),
            matcher: self.matcher.deep_clone(),
            closer: self.closer.clone(),
            end: self.end.clone(),
        }
    }
}

impl fmt::Debug for Constrainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Constrainer").field("vocabulary", &self.vocabulary).finish_non_exhaustive()
    }
}

/// Where the one who asked wrote what is compiled.
fn field_of(wanted: &Wanted<'_>) -> &'static str {
    match (&wanted.output, &wanted.tools) {
        (hob_core::chat::OutputFormat::Text, Some(_)) => "tools",
        _ => "response_format",
    }
}

/// The compiler's words, without the grammar that it quotes behind them.
fn short(error: &dyn fmt::Display) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().chars().take(160).collect()
}
