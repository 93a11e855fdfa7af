//! Makes constraints: one of these per model. Compiled grammars are kept, since clients send the
//! same tools and schemas again and again.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;

use llguidance::api::ParserLimits;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use toktrie::InferenceCapabilities;

use super::closing::{Closer, Context};
use super::grammar::{self, Begins, Plan, Wanted};
use super::schema::Relaxation;
use super::source::{Relaxed, Source};
use super::trigger::Watch;
use super::{Constraint, ConstraintError, Phase, SchemaLimits, Vocabulary};

/// Grammars that stay compiled.
const KEPT_MAX: usize = 32;

/// Stack of the compiling thread. Only the used part takes memory, until the thread ends.
const STACK_BYTES: usize = 256 << 20;

/// Compiles what is wanted against one vocabulary.
pub struct Constrainer {
    vocabulary: Vocabulary,
    factory: ParserFactory,
    limits: SchemaLimits,
    /// The one used last stands first.
    kept: Mutex<VecDeque<Kept>>,
}

struct Kept {
    /// As it was asked for.
    plan: Plan,
    matcher: Matcher,
    closer: Closer,
    end: Option<Vec<u32>>,
    /// What the grammar leaves out.
    ignored: Vec<String>,
}

/// What is known of a constraint without compiling anything.
#[derive(Debug)]
pub enum Ready {
    /// The answer has no constraint.
    Free,
    Kept(Box<Constraint>),
    Uncompiled,
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

    /// The constraint of an answer of at most `tokens_max` tokens, or `None` for a free answer. Takes
    /// milliseconds for a grammar that is not cached, so the decoding thread must not call it.
    pub fn compile(
        &self,
        wanted: &Wanted<'_>,
        tokens_max: u32,
    ) -> Result<Option<Constraint>, ConstraintError> {
        let Some(plan) = self.plan(wanted, &Relaxed::default())? else { return Ok(None) };
        let kept = match self.find(&plan) {
            Some(kept) => kept,
            None => self.keep(self.compiled_apart(plan, wanted)?),
        };
        self.constraint(kept, wanted, tokens_max).map(Some)
    }

    /// The same where nothing has to be compiled.
    pub fn ready(&self, wanted: &Wanted<'_>, tokens_max: u32) -> Result<Ready, ConstraintError> {
        let Some(plan) = self.plan(wanted, &Relaxed::default())? else { return Ok(Ready::Free) };
        match self.find(&plan) {
            Some(kept) => self.constraint(kept, wanted, tokens_max).map(Box::new).map(Ready::Kept),
            None => Ok(Ready::Uncompiled),
        }
    }

    fn plan(
        &self,
        wanted: &Wanted<'_>,
        relaxed: &Relaxed,
    ) -> Result<Option<Plan>, ConstraintError> {
        grammar::plan(wanted, &self.vocabulary, &self.limits, relaxed)
    }

    fn constraint(
        &self,
        kept: Kept,
        wanted: &Wanted<'_>,
        tokens_max: u32,
    ) -> Result<Constraint, ConstraintError> {
        let phase = match (kept.plan.begins, &wanted.tools) {
            (Begins::WithATrigger, Some(tools)) => {
                Phase::Free(Watch::new(self.vocabulary.clone(), *tools.dialect))
            }
            _ => Phase::Held,
        };
        let needed =
            kept.end.as_ref().map_or(0, |end| u32::try_from(end.len()).unwrap_or(u32::MAX));
        if matches!(phase, Phase::Held) && needed > tokens_max {
            let field = field_of(wanted);
            return Err(ConstraintError::Budget { field, needed, available: tokens_max });
        }
        let end = kept.end.filter(|_| matches!(phase, Phase::Held));
        Ok(Constraint {
            vocabulary: self.vocabulary.clone(),
            matcher: kept.matcher,
            closer: kept.closer,
            context: Context::default(),
            phase,
            end,
            refused: Vec::new(),
            mask: None,
            ignored: kept.ignored,
        })
    }

    /// A copy of the compiled plan, which is now the one used last.
    fn find(&self, plan: &Plan) -> Option<Kept> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|kept| kept.plan == *plan)?;
        let kept = all.remove(at)?;
        let copy = kept.copy();
        all.push_front(kept);
        Some(copy)
    }

    fn keep(&self, kept: Kept) -> Kept {
        let copy = kept.copy();
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_front(kept);
        all.truncate(KEPT_MAX);
        copy
    }

    /// On a thread of its own, whose stack bears every grammar that is within the bounds.
    fn compiled_apart(&self, plan: Plan, wanted: &Wanted<'_>) -> Result<Kept, ConstraintError> {
        let crashed = ConstraintError::Crashed { field: field_of(wanted) };
        let compiling = thread::Builder::new().name("grammar".to_owned()).stack_size(STACK_BYTES);
        thread::scope(|scope| {
            let compiled = compiling.spawn_scoped(scope, || self.compiled(plan, wanted));
            match compiled.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(compiled)) => compiled,
                // It panicked, or the system has no memory for another thread.
                Ok(Err(_)) | Err(_) => Err(crashed),
            }
        })
    }

    fn compiled(&self, plan: Plan, wanted: &Wanted<'_>) -> Result<Kept, ConstraintError> {
        let field = field_of(wanted);
        match self.built(&plan, wanted, field) {
            Ok((matcher, closer, end)) => {
                let ignored = plan.ignored.clone();
                Ok(Kept { plan, matcher, closer, end, ignored })
            }
            Err(failure) => {
                let Some(relaxed) = self.relaxed(wanted)? else { return Err(failure) };
                let Some(loose) = self.plan(wanted, &relaxed)? else { return Err(failure) };
                let (matcher, closer, end) = self.built(&loose, wanted, field)?;
                Ok(Kept { plan, matcher, closer, end, ignored: loose.ignored })
            }
        }
    }

    /// What has to be given up of which schema so that the grammar compiles; none where no schema
    /// is to blame.
    fn relaxed(&self, wanted: &Wanted<'_>) -> Result<Option<Relaxed>, ConstraintError> {
        let mut relaxed = Relaxed::default();
        for source in Source::all(wanted)? {
            let least = self.least(&source, wanted)?;
            match source.tool {
                Some(_) => relaxed.tools.push(least),
                None => relaxed.output = least,
            }
        }
        Ok((!relaxed.is_nothing()).then_some(relaxed))
    }

    /// The least that has to be given up of this schema.
    fn least(
        &self,
        source: &Source<'_>,
        wanted: &Wanted<'_>,
    ) -> Result<Relaxation, ConstraintError> {
        if !source.fits() {
            return Ok(Relaxation::All);
        }
        let mut before = 0;
        for relaxation in Relaxation::KEEPING {
            let (plan, taken) =
                grammar::plan_of_one(source, &self.vocabulary, &self.limits, relaxation)?;
            if self.built(&plan, wanted, source.field).is_ok() {
                return match taken.get(before).filter(|_| source.strict) {
                    Some(keyword) => Err(source.refusal(keyword)),
                    None => Ok(relaxation),
                };
            }
            before = taken.len();
        }
        match source.tool {
            Some(_) if !source.strict => Ok(Relaxation::All),
            _ => Err(source.unenforceable()),
        }
    }

    fn built(&self, plan: &Plan, wanted: &Wanted<'_>, field: &'static str) -> Built {
        let refuse =
            |error: &dyn fmt::Display| ConstraintError::Grammar { field, detail: short(error) };
        let parser = self.factory.create_parser(plan.grammar()).map_err(|error| refuse(&error))?;
        let mut matcher = Matcher::new(Ok(parser));
        if let Some(error) = matcher.get_error() {
            return Err(refuse(&error));
        }
        // A grammar that nothing can begin, such as `start: start`, fails at its first token.
        if let Err(error) = matcher.deep_clone().compute_mask_or_eos() {
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
        Ok((matcher, closer, end))
    }
}

type Built = Result<(Matcher, Closer, Option<Vec<u32>>), ConstraintError>;

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
            ignored: self.ignored.clone(),
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
