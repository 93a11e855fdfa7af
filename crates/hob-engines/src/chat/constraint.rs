//! Constrains an answer to a format: JSON of a schema, tool calls, a regular expression, or a grammar.
//! Computes which tokens may come next, and makes sure that the answer can still end within its token limit.

mod bounds;
mod closing;
mod compile;
mod grammar;
mod known_end;
mod matching;
mod rules;
mod schema;
mod source;
mod structure;
mod trigger;
mod vocabulary;

#[cfg(test)]
mod client_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

use hob_core::ModelError;
use llguidance::Matcher;

pub use bounds::{LimitExceeded, schema_excess};
pub use compile::Constrainer;
pub(crate) use compile::STACK_BYTES;
pub use rules::{AnswerRules, CallCount, ToolRules};
pub use vocabulary::{Mask, Vocabulary};

use closing::Closer;
use trigger::TriggerWatch;
use vocabulary::only_token;

use super::json_context::JsonContext;

/// After this many refused tokens in one place, only the shortest end is allowed.
const REFUSALS_MAX: usize = 8;

/// Why an answer cannot be constrained as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    #[error("'{field}' is not a JSON schema")]
    NotASchema { field: &'static str },
    #[error(
        "'{field}' has '{keyword}' at '{path}', which hob cannot enforce; leave it out, or set \"strict\" to false"
    )]
    Keyword { field: &'static str, path: String, keyword: &'static str },
    #[error("'{field}' is too large to be enforced: {excess}")]
    TooLarge { field: &'static str, excess: LimitExceeded },
    #[error(
        "'{field}' has a pattern that hob cannot enforce; look-around, back-references and word boundaries are not supported"
    )]
    NotRegular { field: &'static str },
    /// `place` is the path of the schema.
    #[error("'{field}' has a schema at '{place}' that hob cannot enforce")]
    Schema { field: &'static str, place: String },
    #[error("'{field}' has '{keyword}' at '{path}', for which hob finds no value")]
    NoValue { field: &'static str, path: String, keyword: &'static str },
    #[error("'{field}' crashes the grammar compiler; simplify it")]
    Crashed { field: &'static str },
    #[error("'{field}' allows no value at all")]
    NothingValid { field: &'static str },
    #[error("'{field}' cannot be enforced: {detail}")]
    Grammar { field: &'static str, detail: String },
    #[error("'tool_choice' names a tool that 'tools' does not have")]
    UnknownTool,
    /// The shortest valid answer that was found is longer than the answer may be.
    #[error(
        "the shortest answer that '{field}' allows takes {needed} tokens and the answer may have {available}"
    )]
    Budget { field: &'static str, needed: u32, available: u32 },
    #[error("no end of an answer was found that '{field}' allows")]
    Endless { field: &'static str },
    /// The chosen token is outside the mask.
    #[error("token {token} was not allowed here")]
    NotAllowed { token: u32 },
    #[error("the grammar cannot be followed further: {detail}")]
    Matcher { detail: String },
    #[error("no token of the vocabulary ends an answer")]
    NoEndToken,
    #[error("the vocabulary has no tokens for single characters")]
    NoByteTokens,
}

impl ConstraintError {
    /// The error for the client, which names the field of the request.
    pub fn into_model_error(self, engine: &'static str) -> ModelError {
        let field = match &self {
            ConstraintError::NotASchema { field }
            | ConstraintError::Keyword { field, .. }
            | ConstraintError::TooLarge { field, .. }
            | ConstraintError::NotRegular { field }
            | ConstraintError::Schema { field, .. }
            | ConstraintError::NoValue { field, .. }
            | ConstraintError::Crashed { field }
            | ConstraintError::NothingValid { field }
            | ConstraintError::Grammar { field, .. }
            | ConstraintError::Endless { field } => field,
            ConstraintError::Budget { .. } => "max_tokens",
            ConstraintError::UnknownTool => "tool_choice",
            _ => return ModelError::EngineFailed { engine, detail: self.to_string() },
        };
        let text = self.to_string();
        let reason = text.strip_prefix(&format!("'{field}' ")).unwrap_or(&text).to_owned();
        let reason = if reason == text { format!("does not fit: {text}") } else { reason };
        ModelError::InvalidField { field, reason }
    }
}

/// Whether a token was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    Taken,
    /// With this token, the answer could not end within its limit, or is nested too deeply. Only the mask changed: it now forbids the token, so the
    /// caller chooses another one.
    Refused,
}

/// The state of one answer.
pub struct Constraint {
    vocabulary: Vocabulary,
    matcher: Matcher,
    closer: Closer,
    context: JsonContext,
    /// Lists and objects that may be open at the same time.
    depth_max: u32,
    phase: Phase,
    /// The tokens that close the answer from here. `None` if no end is known.
    end: Option<Vec<u32>>,
    refused: Vec<u32>,
    mask: Option<Mask>,
    /// The tokens left for which `mask` was computed. `None`: it is out of date.
    masked_for: Option<u32>,
    /// The field of the request that sets the format.
    field: &'static str,
    /// Keywords of the schemas that are not enforced.
    ignored: Vec<String>,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Free until a trigger occurs in the text.
    Free(TriggerWatch),
    /// The grammar applies.
    Constrained,
    /// The answer has ended.
    Over,
}

impl Constraint {
    /// The field of the request that sets the format.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// Keywords of the request's schemas that are not enforced.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// The tokens that may come next. `None` allows all. The answer may have `tokens_left` more tokens.
    pub fn mask(&mut self, tokens_left: u32) -> Result<Option<&Mask>, ConstraintError> {
        if self.masked_for != Some(tokens_left) {
            self.mask = self.new_mask(tokens_left)?;
            self.masked_for = Some(tokens_left);
        }
        Ok(self.mask.as_ref())
    }

    fn new_mask(&mut self, tokens_left: u32) -> Result<Option<Mask>, ConstraintError> {
        let mut mask = match (&self.phase, self.closes_now(tokens_left)) {
            (Phase::Free(_), _) if self.refused.is_empty() => return Ok(None),
            (Phase::Free(_), _) => Mask::alloc_ones(self.vocabulary.len()),
            (Phase::Over, _) => self.vocabulary.only(self.vocabulary.end_token()),
            (Phase::Constrained, Some(token)) => return Ok(Some(self.vocabulary.only(token))),
            (Phase::Constrained, None) => {
                self.matcher.compute_mask_or_eos().map_err(matching::failed)?
            }
        };
        self.refused.iter().for_each(|&token| mask.disallow_token(token));
        Ok(Some(mask))
    }

    /// The only token that the grammar allows next, if there is only one.
    pub fn forced_token(&mut self, tokens_left: u32) -> Result<Option<u32>, ConstraintError> {
        if !self.holds() || self.is_complete() {
            return Ok(None);
        }
        Ok(self.mask(tokens_left)?.and_then(only_token))
    }

    /// At most `tokens_max` tokens that probably come next, because the grammar leaves little choice. The state does not
    /// change.
    pub fn expected(&mut self, tokens_max: usize) -> Vec<u32> {
        if !self.holds() || self.is_complete() || self.end.is_none() {
            return Vec::new();
        }
        // If the automaton fails, it also fails for the next token, which reports it.
        let text = structure::ahead(&mut self.matcher, &self.vocabulary, self.context);
        let mut tokens = self.vocabulary.tokenize_greedily(&text.unwrap_or_default());
        tokens.truncate(tokens_max);
        tokens
    }

    /// How many of these tokens the grammar allows, one after another. The state does not change.
    pub fn allowed(&mut self, tokens: &[u32]) -> usize {
        let known = tokens.iter().take_while(|&&token| (token as usize) < self.vocabulary.len());
        let known = known.count();
        match self.phase {
            Phase::Free(_) => known,
            Phase::Over => 0,
            // If the automaton fails, it also fails for the next token, which reports it.
            Phase::Constrained => self.matcher.validate_tokens(&tokens[..known]).unwrap_or(0),
        }
    }

    /// Takes the next token of the answer, unless the answer could then not end within its limit.
    pub fn accept(&mut self, token: u32, tokens_left: u32) -> Result<Accepted, ConstraintError> {
        if token as usize >= self.vocabulary.len() {
            return Err(ConstraintError::NotAllowed { token });
        }
        self.masked_for = None;
        let left = tokens_left.saturating_sub(1) as usize;
        let accepted = match &mut self.phase {
            Phase::Over => return Err(ConstraintError::NotAllowed { token }),
            Phase::Free(_) => self.accept_free(token, left)?,
            Phase::Constrained => self.accept_held(token, left)?,
        };
        match accepted {
            Accepted::Taken => self.refused.clear(),
            Accepted::Refused => self.refused.push(token),
        }
        Ok(accepted)
    }

    /// Whether the answer may end here.
    pub fn may_end(&mut self) -> Result<bool, ConstraintError> {
        match self.phase {
            Phase::Free(_) | Phase::Over => Ok(true),
            Phase::Constrained => matching::is_complete(&mut self.matcher),
        }
    }

    /// Whether only the end may follow.
    pub fn is_complete(&self) -> bool {
        match self.phase {
            Phase::Free(_) => false,
            Phase::Over => true,
            Phase::Constrained => self.matcher.is_stopped(),
        }
    }

    /// Whether the grammar applies now. False while an answer is free until it calls a tool.
    pub fn holds(&self) -> bool {
        matches!(self.phase, Phase::Constrained)
    }

    /// How many tokens the shortest known end takes.
    pub fn tokens_to_end(&self) -> Option<u32> {
        self.end.as_ref().map(|end| u32::try_from(end.len()).unwrap_or(u32::MAX))
    }

    /// The only allowed token, if the limit or too many refusals leave no choice.
    fn closes_now(&self, tokens_left: u32) -> Option<u32> {
        let end = self.end.as_ref().filter(|_| matches!(self.phase, Phase::Constrained))?;
        let must = tokens_left as usize <= end.len() || self.refused.len() >= REFUSALS_MAX;
        must.then(|| end.first().copied().unwrap_or(self.vocabulary.end_token()))
    }

    fn accept_held(&mut self, token: u32, left: usize) -> Result<Accepted, ConstraintError> {
        if self.vocabulary.is_end(token) {
            return self.accept_end(token);
        }
        if self.is_complete() || !matching::allows(&mut self.matcher, &[token])? {
            return Err(ConstraintError::NotAllowed { token });
        }
        matching::consume(&mut self.matcher, &[token])?;
        let context = self.context.after(self.vocabulary.text(token));
        let is_way_out = self.end.as_ref().is_some_and(|end| end.first() == Some(&token));
        let is_too_deep = context.depth > self.depth_max && !is_way_out;
        if is_too_deep || !self.move_end(token, context, left)? {
            matching::undo(&mut self.matcher, 1)?;
            return Ok(Accepted::Refused);
        }
        self.context = context;
        Ok(Accepted::Taken)
    }

    /// Some grammars contain the end token, so it is not always the end.
    fn accept_end(&mut self, token: u32) -> Result<Accepted, ConstraintError> {
        if !matching::is_complete(&mut self.matcher)? {
            return Err(ConstraintError::NotAllowed { token });
        }
        self.phase = Phase::Over;
        self.end = Some(Vec::new());
        Ok(Accepted::Taken)
    }

    /// Finds the end after `token`, which the matcher has just taken. False if the end is longer than `left`.
    fn move_end(
        &mut self,
        token: u32,
        context: JsonContext,
        left: usize,
    ) -> Result<bool, ConstraintError> {
        let Some(end) = &mut self.end else { return Ok(true) };
        if end.first() == Some(&token) {
            end.remove(0);
            return Ok(true);
        }
        if matching::is_complete(&mut self.matcher)? {
            end.clear();
            return Ok(true);
        }
        let last = self.vocabulary.end_token();
        // The form of an answer, in other tokens than those of the end.
        if let Some(moved) = known_end::moved(&self.vocabulary, end, token, self.context)
            && moved.tokens.len() <= left
            && (moved.is_exact || matching::ends_with(&mut self.matcher, &moved.tokens, last)?)
        {
            *end = moved.tokens;
            return Ok(true);
        }
        // Most tokens are part of a string or number. The end that was known before still fits after them.
        if end.len() <= left && matching::ends_with(&mut self.matcher, end, last)? {
            return Ok(true);
        }
        match self.closer.end(&mut self.matcher, context, left)? {
            Some(found) if found.len() <= left => *end = found,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn accept_free(&mut self, token: u32, left: usize) -> Result<Accepted, ConstraintError> {
        let Phase::Free(watch) = &mut self.phase else { return Ok(Accepted::Taken) };
        if self.vocabulary.is_end(token) {
            self.phase = Phase::Over;
            return Ok(Accepted::Taken);
        }
        let Some(begun) = watch.begun_by(self.vocabulary.text(token)) else {
            watch.take(self.vocabulary.text(token));
            return Ok(Accepted::Taken);
        };
        self.begin(&begun, left)
    }

    /// Applies the grammar from the trigger on.
    fn begin(&mut self, begun: &[u32], left: usize) -> Result<Accepted, ConstraintError> {
        if !begun.is_empty() && !matching::allows(&mut self.matcher, begun)? {
            return Ok(Accepted::Refused);
        }
        matching::consume(&mut self.matcher, begun)?;
        let text: Vec<u8> =
            begun.iter().flat_map(|&token| self.vocabulary.text(token)).copied().collect();
        let context = JsonContext::default().after(&text);
        let end = self.closer.end(&mut self.matcher, context, left)?;
        let Some(end) = end.filter(|end| end.len() <= left) else {
            matching::undo(&mut self.matcher, begun.len())?;
            return Ok(Accepted::Refused);
        };
        self.context = context;
        self.end = Some(end);
        self.phase = Phase::Constrained;
        Ok(Accepted::Taken)
    }
}

// Shows neither the grammar nor the answer, which belong to the user.
hob_core::debug_fields!(Constraint: field, refused.len());
