//! One answer in progress: chooses tokens from logits, and turns tokens into text, thinking, calls and the end.
//! It does not run the model and sends nothing.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_core::chat::{ChatEvent, FinishReason, TokenLogprob, TokenText};

use super::drafting::DraftRules;
use super::grammar_time::GrammarTime;
use super::repetition::{Repetition, TokenChoice};
use crate::chat::constraint::{Accepted, Constraint, ConstraintError};
use crate::chat::dialect::{AnswerParser, AnswerPart};
use crate::chat::protocol::Refusal;
use crate::chat::sampler::{History, Logprobs, Sampler, probability_of};
use crate::chat::stop::{Characters, StopScanner};
use crate::chat::tokens::TokenTable;

/// The parts and limits of an answer.
pub(super) struct AnswerPlan {
    pub(super) tokens: Arc<TokenTable>,
    pub(super) sampler: Sampler,
    /// `None` if the whole answer is text.
    pub(super) parser: Option<AnswerParser>,
    pub(super) stop: StopScanner,
    pub(super) tokens_max: u32,
    pub(super) thinking: ThinkingLimit,
    /// The format of the answer after thinking.
    pub(super) constraint: Option<Constraint>,
    /// The beginning of the ids of this answer's calls; the number of the call follows it.
    pub(super) call_id_prefix: String,
    /// The tokens that penalties count.
    pub(super) history: History,
    /// Whether the token that ends the answer also has a log probability. Programs that score a prompt leave out the last
    /// token of the list, because it is not the prompt's.
    pub(super) scores_end: bool,
    /// Detects an answer that repeats itself, to end it. `None` if the request has a token limit.
    pub(super) repetition: Option<Repetition>,
}

/// How long an answer may think, and how its thinking is closed.
#[derive(Clone, Debug, Default)]
pub(super) struct ThinkingLimit {
    /// `None` limits thinking only by the length of the answer.
    pub(super) tokens_max: Option<u32>,
    /// The tokens that close the thinking block and begin the answer.
    pub(super) close: Vec<u32>,
}

/// Tokens that are reserved for a constrained answer, in addition to its shortest form.
const FORMED_ANSWER_TOKENS: u32 = 64;

/// Tokens that are taken in one step without the model, because the grammar allows no others. Other answers wait meanwhile.
const FORCED_TOKENS_MAX: u32 = 32;

pub(super) struct Answering {
    plan: AnswerPlan,
    characters: Characters,
    generated_tokens: u32,
    reasoning_tokens: u32,
    has_called: bool,
    /// Log probabilities of tokens whose text was not sent yet.
    pending_logprobs: Vec<TokenLogprob>,
    grammar_time: GrammarTime,
}

/// Why an answer cannot go on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AnswerError {
    /// The request's grammar is too complex or too slow, which says nothing about the model.
    Grammar(Refusal),
    Engine(String),
}

/// Result of one token.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    /// Tokens to compute before the next one is chosen. Empty at the end.
    pub(super) tokens: Vec<u32>,
    pub(super) events: Vec<ChatEvent>,
    pub(super) end: Option<FinishReason>,
}

impl Answering {
    pub(super) fn new(plan: AnswerPlan) -> Answering {
        Answering {
            plan,
            characters: Characters::default(),
            generated_tokens: 0,
            reasoning_tokens: 0,
            has_called: false,
            pending_logprobs: Vec::new(),
            grammar_time: GrammarTime::default(),
        }
    }

    /// Number of tokens so far, including thinking.
    pub(super) fn generated_tokens(&self) -> u32 {
        self.generated_tokens
    }

    pub(super) fn reasoning_tokens(&self) -> u32 {
        self.reasoning_tokens
    }

    /// The time that the grammar took so far.
    pub(super) fn grammar_time(&self) -> Duration {
        self.grammar_time.spent()
    }

    /// Chooses the next token from `logits`.
    ///
    /// # Errors
    /// The logits are not numbers, or the grammar failed or was too slow.
    pub(super) fn next(&mut self, logits: &[f32]) -> Result<Step, AnswerError> {
        let mut step = Step::default();
        if self.plan.tokens_max == 0 {
            self.end(FinishReason::Length, &mut step);
            return Ok(step);
        }
        let token = self.choose(logits)?;
        if self.plan.tokens.ends(token) {
            self.end(FinishReason::Stop, &mut step);
            if self.plan.scores_end {
                step.events.push(ChatEvent::Logprobs(mem::take(&mut self.pending_logprobs)));
            }
            return Ok(step);
        }
        self.say(token, &mut step);
        if step.end.is_none() && self.must_answer() {
            for token in mem::take(&mut self.plan.thinking.close) {
                if step.end.is_none() {
                    self.say(token, &mut step);
                }
            }
        }
        let mut room = FORCED_TOKENS_MAX;
        while step.end.is_none()
            && room > 0
            && let Some(token) = self.forced_token()?
        {
            room -= 1;
            self.say(token, &mut step);
        }
        let is_complete = self.plan.constraint.as_ref().is_some_and(Constraint::is_complete);
        if step.end.is_none() && is_complete {
            self.end(FinishReason::Stop, &mut step);
        }
        Ok(step)
    }

    /// A token of the prompt with its log probability.
    ///
    /// # Errors
    /// The logits are not numbers.
    pub(super) fn scored(
        &mut self,
        token: u32,
        logits: &[f32],
    ) -> Result<TokenLogprob, AnswerError> {
        let logprobs = self.plan.sampler.score(logits, token).map_err(engine_error)?;
        Ok(self.logprob(token, logprobs))
    }

    /// How likely a text is complete if these are the logits after its last word.
    ///
    /// # Errors
    /// The logits are not numbers.
    pub(super) fn turn_end(&self, logits: &[f32]) -> Result<f32, AnswerError> {
        probability_of(self.plan.tokens.turn_ends(), logits).map_err(engine_error)
    }

    /// The prompt's first token, which has no probability.
    pub(super) fn first_of_prompt(&self, token: u32) -> TokenLogprob {
        self.logprob(token, Logprobs { logprob: f32::NAN, top: Vec::new() })
    }

    fn choose(&mut self, logits: &[f32]) -> Result<u32, AnswerError> {
        let left = self.tokens_left();
        let is_thinking = self.is_thinking();
        let AnswerPlan { sampler, constraint, history, .. } = &mut self.plan;
        let chosen = match constraint.as_mut().filter(|_| !is_thinking) {
            None => sampler.choose(logits, None, history).map_err(engine_error)?,
            Some(constraint) => {
                let (began, field) = (Instant::now(), constraint.field());
                let failed = failure_of(field);
                let chosen = loop {
                    let mask = constraint.mask(left).map_err(&failed)?;
                    let chosen = sampler.choose(logits, mask, history).map_err(engine_error)?;
                    // A token after which the form could no longer be closed in time is refused, and masked from then on.
                    if constraint.accept(chosen.token, left).map_err(&failed)? == Accepted::Taken {
                        break chosen;
                    }
                };
                if !self.grammar_time.spend(began.elapsed(), self.generated_tokens) {
                    return Err(grammar_error(field, "takes too long for each token".to_owned()));
                }
                chosen
            }
        };
        let token = chosen.token;
        if let Some(logprobs) = chosen.logprobs
            && !is_thinking
            && (self.plan.scores_end || !self.plan.tokens.ends(token))
        {
            self.pending_logprobs.push(self.logprob(token, logprobs));
        }
        Ok(token)
    }

    /// Takes the next token without its logits, if a grammar allows no other.
    fn forced_token(&mut self) -> Result<Option<u32>, AnswerError> {
        let left = self.tokens_left();
        let is_free = self.is_thinking() || left == 0 || self.plan.sampler.has_logprobs();
        let AnswerPlan { tokens, sampler, constraint, .. } = &mut self.plan;
        let Some(constraint) = constraint.as_mut().filter(|_| !is_free) else { return Ok(None) };
        let began = Instant::now();
        let failed = failure_of(constraint.field());
        let forced = constraint.forced_token(left).map_err(&failed)?;
        let mut token = forced.filter(|&token| !tokens.ends(token));
        if let Some(forced) = token {
            // There was only one candidate.
            sampler.skip_draw();
            let accepted = constraint.accept(forced, left).map_err(&failed)?;
            token = token.filter(|_| accepted == Accepted::Taken);
        }
        self.grammar_time.spend(began.elapsed(), self.generated_tokens);
        Ok(token)
    }

    fn logprob(&self, token: u32, logprobs: Logprobs) -> TokenLogprob {
        let text = |id| TokenText(self.plan.tokens.bytes(id).to_vec());
        let top = logprobs.top.into_iter().map(|(id, logprob)| (text(id), logprob));
        TokenLogprob { token: text(token), logprob: logprobs.logprob, top: top.collect() }
    }

    fn say(&mut self, token: u32, step: &mut Step) {
        let was_thinking = self.is_thinking();
        self.generated_tokens += 1;
        self.plan.history.push(token);
        let text = self.characters.push(self.plan.tokens.bytes(token));
        self.read(&text, step);
        if was_thinking || self.is_thinking() {
            self.reasoning_tokens += 1;
        }
        if step.end.is_none() {
            step.tokens.push(token);
            let choice = match self.active_constraint() {
                Some(_) => TokenChoice::Enforced,
                None => TokenChoice::Free,
            };
            let text = self.plan.tokens.bytes(token);
            if self.plan.repetition.as_mut().is_some_and(|seen| seen.push(token, text, choice)) {
                self.end_soon();
            }
            if self.tokens_left() == 0 {
                let reason = self.reason_at_the_limit();
                self.end(reason, step);
            }
        }
    }

    /// Limits an answer that repeats itself to the tokens that close its format or call. If neither is open, it ends at once.
    fn end_soon(&mut self) {
        let rest = self.active_constraint().and_then(Constraint::tokens_to_end).unwrap_or(0);
        self.plan.tokens_max = self.generated_tokens + rest;
        self.plan.repetition = None;
    }

    /// The constraint that applies now.
    fn active_constraint(&self) -> Option<&Constraint> {
        let is_thinking = self.is_thinking();
        self.plan.constraint.as_ref().filter(|constraint| constraint.holds() && !is_thinking)
    }

    /// Turns text of the answer into events.
    fn read(&mut self, text: &str, step: &mut Step) {
        let pieces = match &mut self.plan.parser {
            Some(parser) => parser.push(text),
            None if text.is_empty() => Vec::new(),
            None => vec![AnswerPart::Text(text.to_owned())],
        };
        self.emit(pieces, step);
    }

    fn emit(&mut self, pieces: Vec<AnswerPart>, step: &mut Step) {
        for piece in pieces {
            match piece {
                AnswerPart::Reasoning(text) => step.events.push(ChatEvent::Reasoning(text)),
                AnswerPart::CallBegins { index, name } => {
                    self.has_called = true;
                    let id = format!("{}{index}", self.plan.call_id_prefix);
                    step.events.push(ChatEvent::ToolCall { index, id, name });
                }
                AnswerPart::Arguments { index, piece } => {
                    step.events.push(ChatEvent::ToolArguments { index, piece });
                }
                AnswerPart::Text(text) => {
                    let scanned = self.plan.stop.push(&text);
                    self.emit_text(scanned.text, step);
                    if scanned.has_stopped {
                        self.finish(FinishReason::Stop, step);
                        return;
                    }
                }
            }
        }
    }

    fn emit_text(&mut self, text: String, step: &mut Step) {
        if text.is_empty() {
            return;
        }
        if !self.pending_logprobs.is_empty() {
            step.events.push(ChatEvent::Logprobs(mem::take(&mut self.pending_logprobs)));
        }
        step.events.push(ChatEvent::Text(text));
    }

    /// Returns the text that was held back, and ends. Incomplete characters are left out.
    fn end(&mut self, reason: FinishReason, step: &mut Step) {
        if let Some(parser) = self.plan.parser.take() {
            let pieces = parser.finish();
            self.emit(pieces, step);
        }
        if step.end.is_none() {
            let held = self.plan.stop.finish();
            self.emit_text(held, step);
            self.finish(reason, step);
        }
    }

    /// A constrained answer that was closed in time is complete. It ends as if the model had ended it.
    fn reason_at_the_limit(&mut self) -> FinishReason {
        let is_whole =
            self.plan.constraint.as_mut().is_some_and(|constraint| {
                constraint.holds() && constraint.may_end().unwrap_or(false)
            });
        if is_whole { FinishReason::Stop } else { FinishReason::Length }
    }

    fn finish(&mut self, reason: FinishReason, step: &mut Step) {
        let has_ended_with_calls = self.has_called && reason == FinishReason::Stop;
        step.end = Some(if has_ended_with_calls { FinishReason::ToolCalls } else { reason });
        step.tokens.clear();
    }

    pub(super) fn tokens_left(&self) -> u32 {
        self.plan.tokens_max.saturating_sub(self.generated_tokens)
    }

    fn is_thinking(&self) -> bool {
        self.plan.parser.as_ref().is_some_and(AnswerParser::is_thinking)
    }

    /// Whether thinking reached its limit, or would use tokens that a constrained answer needs.
    fn must_answer(&self) -> bool {
        if !self.is_thinking() || self.plan.thinking.close.is_empty() {
            return false;
        }
        let is_spent =
            self.plan.thinking.tokens_max.is_some_and(|budget| self.reasoning_tokens >= budget);
        let shortest = self.plan.constraint.as_ref().and_then(Constraint::tokens_to_end);
        let kept = shortest.map_or(0, |tokens| {
            tokens + self.plan.thinking.close.len() as u32 + FORMED_ANSWER_TOKENS
        });
        is_spent || self.tokens_left() <= kept
    }
}

impl DraftRules for Answering {
    fn forced(&mut self, room: usize) -> Vec<u32> {
        let can_look = !self.is_thinking() && self.grammar_time.has_spare(self.generated_tokens);
        let began = Instant::now();
        let constraint = self.plan.constraint.as_mut().filter(|_| can_look);
        let forced = constraint.map_or(Vec::new(), |constraint| constraint.expected(room));
        self.grammar_time.spend(began.elapsed(), self.generated_tokens);
        forced
    }

    fn allowed(&mut self, tokens: &[u32]) -> usize {
        let is_thinking = self.is_thinking();
        let AnswerPlan { tokens: table, constraint, .. } = &mut self.plan;
        let open = tokens.iter().take_while(|&&token| !table.ends(token)).count();
        let Some(constraint) = constraint.as_mut().filter(|_| !is_thinking) else { return open };
        if !self.grammar_time.has_spare(self.generated_tokens) {
            return 0;
        }
        let began = Instant::now();
        let allowed = constraint.allowed(&tokens[..open]);
        self.grammar_time.spend(began.elapsed(), self.generated_tokens);
        allowed
    }

    fn bytes(&self, token: u32) -> usize {
        self.plan.tokens.bytes(token).len()
    }
}

// Neither prompts nor answers are logged.
hob_core::debug_fields!(Answering: generated_tokens, reasoning_tokens);

fn engine_error(error: impl fmt::Display) -> AnswerError {
    AnswerError::Engine(error.to_string())
}

/// The failure of a constraint that the request sets in `field`.
fn failure_of(field: &'static str) -> impl Fn(ConstraintError) -> AnswerError {
    move |error| match error {
        ConstraintError::Matcher { .. } => {
            grammar_error(field, format!("cannot be enforced: {error}"))
        }
        error => engine_error(error),
    }
}

fn grammar_error(field: &str, reason: String) -> AnswerError {
    AnswerError::Grammar(Refusal::Field { field: field.to_owned(), reason })
}

#[cfg(test)]
mod tests;
