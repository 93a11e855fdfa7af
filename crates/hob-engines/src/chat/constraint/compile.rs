//! Compiles grammars for one model and caches them, because clients send the same tools and schemas
//! many times.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::thread;

use hob_core::chat::OutputFormat;
use hob_core::locked;
use llguidance::api::ParserLimits;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use toktrie::InferenceCapabilities;

use super::closing::Closer;
use super::grammar::{self, Begins, Plan};
use super::matching::first_line;
use super::rules::AnswerRules;
use super::schema::{self, Relaxation, SchemaKeyword};
use super::source::{Relaxed, Source};
use super::trigger::TriggerWatch;
use super::{Constraint, ConstraintError, Phase, Vocabulary};
use crate::chat::json_context::JsonContext;
use crate::memory;

/// Maximum number of cached grammars.
const CACHED_GRAMMARS_MAX: usize = 32;

/// Memory of all cached grammars. Usual ones have less than a megabyte.
const CACHED_BYTES_MAX: usize = 256 << 20;

/// Maximum lists and objects that are open in an answer at the same time. JSON parsers allow 128 or more, which includes
/// the few objects around the arguments of a call.
const DEPTH_MAX: u32 = 100;

/// Stack of the compiling thread. Only the used part takes memory, until the thread ends.
pub(crate) const STACK_BYTES: usize = 256 << 20;

/// Compiles grammars against one vocabulary.
pub struct Constrainer {
    vocabulary: Vocabulary,
    factory: ParserFactory,
    /// Most recently used first.
    kept: Mutex<VecDeque<CachedGrammar>>,
}

struct CachedGrammar {
    /// The grammar as requested.
    plan: Plan,
    matcher: Matcher,
    closer: Closer,
    /// The tokens of the shortest answer, if the search found one.
    end: Option<Vec<u32>>,
    /// Keywords that the grammar does not enforce.
    ignored: Vec<String>,
    /// Memory that its compilation left in use.
    bytes: usize,
}

impl Constrainer {
    pub fn new(vocabulary: Vocabulary) -> Result<Constrainer, ConstraintError> {
        let mut factory = ParserFactory::new(
            vocabulary.env(),
            InferenceCapabilities { ff_tokens: false, ..InferenceCapabilities::default() },
            &SlicedBiasComputer::json_slices(),
        )
        .map_err(super::matching::failed)?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            // Error messages of the matcher must not quote the answer.
            verbose_errors: false,
            step_lexer_fuel: 2_000_000,
            step_max_items: 500_000,
            ..ParserLimits::default()
        };
        Ok(Constrainer { vocabulary, factory, kept: Mutex::default() })
    }

    /// The constraint of an answer of at most `tokens_max` tokens, or `None` for a free answer. Compiling a grammar that is
    /// not cached takes from milliseconds to seconds, so the decoding thread must not call it.
    pub fn compile(
        &self,
        wanted: &AnswerRules<'_>,
        tokens_max: u32,
    ) -> Result<Option<Constraint>, ConstraintError> {
        let Some(plan) = self.plan(wanted, &Relaxed::default())? else { return Ok(None) };
        let kept = match self.find(&plan) {
            Some(kept) => kept,
            None => self.keep(self.compiled_apart(plan, wanted)?),
        };
        self.constraint(kept, wanted, tokens_max).map(Some)
    }

    /// Like [`Constrainer::compile`], but on this thread, and without keeping the result. The thread needs a stack of
    /// [`STACK_BYTES`].
    pub(crate) fn try_compiling(&self, wanted: &AnswerRules<'_>) -> Result<(), ConstraintError> {
        match self.plan(wanted, &Relaxed::default())? {
            Some(plan) => self.compiled(plan, wanted).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Like [`Constrainer::compile`], but never compiles. The outer `None`: the grammar must be compiled first.
    pub fn ready(
        &self,
        wanted: &AnswerRules<'_>,
        tokens_max: u32,
    ) -> Result<Option<Option<Constraint>>, ConstraintError> {
        let Some(plan) = self.plan(wanted, &Relaxed::default())? else { return Ok(Some(None)) };
        let kept = self.find(&plan);
        kept.map(|kept| self.constraint(kept, wanted, tokens_max).map(Some)).transpose()
    }

    fn plan(
        &self,
        wanted: &AnswerRules<'_>,
        relaxed: &Relaxed,
    ) -> Result<Option<Plan>, ConstraintError> {
        let plan = grammar::plan(wanted, &self.vocabulary, relaxed)?;
        Ok(plan.map(|plan| Plan { strictness: wanted.strictness(), ..plan }))
    }

    fn constraint(
        &self,
        kept: CachedGrammar,
        wanted: &AnswerRules<'_>,
        tokens_max: u32,
    ) -> Result<Constraint, ConstraintError> {
        let phase = match (kept.plan.begins, &wanted.tools) {
            (Begins::WithATrigger, Some(tools)) => {
                Phase::Free(TriggerWatch::new(self.vocabulary.clone(), *tools.dialect))
            }
            _ => Phase::Constrained,
        };
        let needed =
            kept.end.as_ref().map_or(0, |end| u32::try_from(end.len()).unwrap_or(u32::MAX));
        if matches!(phase, Phase::Constrained) && needed > tokens_max {
            let field = wanted.field();
            return Err(ConstraintError::Budget { field, needed, available: tokens_max });
        }
        let end = kept.end.filter(|_| matches!(phase, Phase::Constrained));
        Ok(Constraint {
            vocabulary: self.vocabulary.clone(),
            matcher: kept.matcher,
            closer: kept.closer,
            context: JsonContext::default(),
            depth_max: if kept.plan.is_json() { DEPTH_MAX } else { u32::MAX },
            phase,
            end,
            refused: Vec::new(),
            mask: None,
            masked_for: None,
            field: wanted.field(),
            ignored: kept.ignored,
        })
    }

    /// A copy of the compiled plan, which becomes the most recently used.
    fn find(&self, plan: &Plan) -> Option<CachedGrammar> {
        let mut all = locked(&self.kept);
        let at = all.iter().position(|kept| kept.plan == *plan)?;
        let kept = all.remove(at)?;
        let copy = kept.copy();
        all.push_front(kept);
        Some(copy)
    }

    fn keep(&self, kept: CachedGrammar) -> CachedGrammar {
        let copy = kept.copy();
        let mut all = locked(&self.kept);
        all.push_front(kept);
        all.truncate(CACHED_GRAMMARS_MAX);
        let fitting = fitting(all.iter().map(|kept| kept.bytes));
        all.truncate(fitting);
        copy
    }

    /// Compiles on a separate thread, whose stack is large enough for every grammar within the limits.
    fn compiled_apart(
        &self,
        plan: Plan,
        wanted: &AnswerRules<'_>,
    ) -> Result<CachedGrammar, ConstraintError> {
        let crashed = ConstraintError::Crashed { field: wanted.field() };
        let compiling = thread::Builder::new().name("grammar".to_owned()).stack_size(STACK_BYTES);
        thread::scope(|scope| {
            let compiled =
                compiling.spawn_scoped(scope, || memory::measured(|| self.compiled(plan, wanted)));
            match compiled.map(thread::ScopedJoinHandle::join) {
                Ok(Ok((compiled, bytes))) => compiled.map(|kept| CachedGrammar { bytes, ..kept }),
                // The compiler panicked, or the system has no memory for another thread.
                Ok(Err(_)) | Err(_) => Err(crashed),
            }
        })
    }

    /// Compiles the plan. If a schema is the cause of a failure, compiles it with schemas that are relaxed as little as
    /// possible.
    fn compiled(
        &self,
        plan: Plan,
        wanted: &AnswerRules<'_>,
    ) -> Result<CachedGrammar, ConstraintError> {
        let field = wanted.field();
        match self.built(&plan, wanted, field) {
            Ok((matcher, closer, end)) => {
                let ignored = plan.ignored.clone();
                Ok(CachedGrammar { plan, matcher, closer, end, ignored, bytes: 0 })
            }
            Err(failure) => {
                let Some(relaxed) = self.relaxed(wanted)? else { return Err(failure) };
                let Some(loose) = self.plan(wanted, &relaxed)? else { return Err(failure) };
                let (matcher, closer, end) = self.built(&loose, wanted, field)?;
                Ok(CachedGrammar { plan, matcher, closer, end, ignored: loose.ignored, bytes: 0 })
            }
        }
    }

    /// Finds which schemas must be relaxed so that the grammar compiles. `None` if no schema is the cause.
    fn relaxed(&self, wanted: &AnswerRules<'_>) -> Result<Option<Relaxed>, ConstraintError> {
        let mut relaxed = Relaxed::new();
        for source in Source::all(wanted)? {
            relaxed.insert(source.index(), self.least(&source, wanted)?);
        }
        relaxed.retain(|_, relaxation| *relaxation != Relaxation::Nothing);
        Ok((!relaxed.is_empty()).then_some(relaxed))
    }

    /// The smallest relaxation with which this schema compiles. In a strict schema, one that removes another keyword is an
    /// error.
    fn least(
        &self,
        source: &Source<'_>,
        wanted: &AnswerRules<'_>,
    ) -> Result<Relaxation, ConstraintError> {
        if !source.fits() {
            return Ok(Relaxation::All);
        }
        let mut before = 0;
        for relaxation in Relaxation::KEEPING {
            let (plan, taken) = grammar::plan_of_one(source, &self.vocabulary, relaxation)?;
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
            _ => Err(source.unenforceable(self.cause(source, wanted))),
        }
    }

    /// The keyword because of which the schema does not compile, if it is found.
    fn cause(&self, source: &Source<'_>, wanted: &AnswerRules<'_>) -> Option<SchemaKeyword> {
        schema::cause(&source.schema, |part| {
            let (part, loosest) = (source.with(part.clone()), Relaxation::MemberCounts);
            let planned = grammar::plan_of_one(&part, &self.vocabulary, loosest);
            planned.is_ok_and(|(plan, _)| self.built(&plan, wanted, source.field).is_ok())
        })
    }

    /// Compiles exactly this plan, and searches for its shortest answer.
    fn built(&self, plan: &Plan, wanted: &AnswerRules<'_>, field: &'static str) -> Built {
        let refuse = |error: &dyn fmt::Display| ConstraintError::Grammar {
            field,
            detail: in_own_words(first_line(error), wanted.output),
        };
        let parser = self.factory.create_parser(plan.grammar()).map_err(|error| refuse(&error))?;
        let mut matcher = Matcher::new(Ok(parser));
        if let Some(error) = matcher.get_error() {
            return Err(refuse(&error));
        }
        // A grammar without a first token, such as `start: start`, fails here.
        if let Err(error) = matcher.deep_clone().compute_mask_or_eos() {
            return Err(refuse(&error));
        }
        let marks = wanted.tools.iter().flat_map(|tools| tools.dialect.marks);
        let marks = marks.filter_map(|mark| self.vocabulary.special(mark)).collect();
        let mut closer = Closer::new(self.vocabulary.clone(), marks, &plan.hints);
        // With a limit of 0, the search looks for the shortest end.
        let end =
            closer.end(&mut matcher, JsonContext::default(), 0).map_err(|error| refuse(&error))?;
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
        locked(&self.kept).len()
    }

    pub(super) fn kept_bytes(&self) -> usize {
        let kept = locked(&self.kept);
        kept.iter().map(|kept| kept.bytes).sum()
    }
}

impl CachedGrammar {
    /// Copies the automaton, so that answers do not wait for each other.
    fn copy(&self) -> CachedGrammar {
        CachedGrammar {
            plan: self.plan.clone(),
            matcher: self.matcher.deep_clone(),
            closer: self.closer.clone(),
            end: self.end.clone(),
            ignored: self.ignored.clone(),
            bytes: self.bytes,
        }
    }
}

hob_core::debug_fields!(Constrainer: vocabulary);

/// How many grammars of these sizes are kept, the most recently used first. That one is kept whatever its size.
fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let sums = sizes.scan(0usize, |sum, bytes| {
        *sum = sum.saturating_add(bytes);
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= CACHED_BYTES_MAX).count().max(1)
}

/// The compiler's message, in words for the author of the grammar.
fn in_own_words(detail: String, output: &OutputFormat) -> String {
    if detail.contains("NoExtensionBias") {
        return "no text can begin with it; a rule that only leads to itself never ends".to_owned();
    }
    match output {
        OutputFormat::Lark(grammar) if grammar.contains("::=") => {
            "it looks like GBNF, and hob takes Lark, such as start: \"yes\" | \"no\"".to_owned()
        }
        OutputFormat::Lark(_) => {
            format!("{detail}; hob takes Lark, such as start: \"yes\" | \"no\"")
        }
        _ => "it allows no answer, or it is too complex".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars_are_kept_while_their_memory_allows_it() {
        for (mib, kept) in [
            (vec![1_usize, 1, 1], 3),
            (vec![100, 100, 100], 2),
            (vec![10, 300, 10], 1),
            (vec![300, 1], 1),
        ] {
            assert_eq!(fitting(mib.iter().map(|mib| mib << 20)), kept, "{mib:?}");
        }
    }
}
