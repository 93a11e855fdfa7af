//! A prepared request that waits for a slot, and a request in a slot.
//! [`Answering`] makes the answer; this module tracks its progress.

use std::mem;
use std::time::{Duration, Instant};

use hob_core::chat::{ChatEvent, Completion, FinishReason, Reading, Timings, Usage};

use super::answering::{AnswerError, Answering, Step};
use super::drafting::Drafting;
use super::passes::PassCounts;
use crate::chat::decoder::BatchToken;
use crate::chat::scheduler::{DRAFT_TOKENS_MAX, Demand, DraftOffer, FormOffer, milliseconds};
use crate::chat::slots::SlotAssignment;

/// A prepared request: the prompt as tokens, and the plan of the answer.
pub(super) struct Prepared {
    pub(super) prompt: Vec<u32>,
    pub(super) answering: Answering,
    pub(super) echo: Echo,
    /// Keywords of the request's schemas that are not enforced.
    pub(super) ignored: Vec<String>,
    /// The token after which the model judges whether the message is complete.
    pub(super) judged_at: Option<usize>,
    /// Events that may be sent before more credit comes.
    pub(super) credit: i64,
    /// The reader may let the answer wait.
    pub(super) is_paced: bool,
    pub(super) received: Instant,
}

/// What an answer repeats of its prompt.
#[derive(Debug, Default)]
pub(super) struct Echo {
    /// Sent before the answer's own text.
    pub(super) text: Option<String>,
    /// The first token that is reported with its log probability. `None`: no token is.
    pub(super) scored_from: Option<usize>,
}

impl Echo {
    pub(super) fn is_scored(&self) -> bool {
        self.scored_from.is_some()
    }
}

/// Maximum prompt tokens of one step with log probabilities, because all logits of a step are in memory
/// at the same time.
const SCORED_STEP_TOKENS: usize = 16;

/// A request in a slot.
pub(super) struct Running {
    pub(super) stream: u32,
    pub(super) slot: usize,
    /// The prompt and the answer so far.
    tokens: Vec<u32>,
    /// How many of `tokens` the slot's cache holds.
    computed: usize,
    prompt_tokens: usize,
    cached_tokens: usize,
    /// Below zero after a step that had more events. The reader pays these back before the next step.
    pub(super) credit: i64,
    is_paced: bool,
    answering: Answering,
    drafting: Drafting,
    /// The guessed tokens that the next batch checks.
    draft: Vec<u32>,
    echo: Echo,
    /// The judgement is sent once this token is computed.
    judged_at: Option<usize>,
    passes: PassCounts,
    received: Instant,
    began: Instant,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

impl Running {
    pub(super) fn begin(
        stream: u32,
        prepared: Prepared,
        assignment: SlotAssignment,
        kept: usize,
    ) -> Running {
        let Prepared { prompt, answering, echo, judged_at, credit, is_paced, received, .. } =
            prepared;
        Running {
            stream,
            slot: assignment.slot,
            computed: kept,
            prompt_tokens: prompt.len(),
            cached_tokens: kept,
            tokens: prompt,
            credit,
            is_paced,
            answering,
            drafting: Drafting::default(),
            draft: Vec::new(),
            echo,
            judged_at,
            passes: PassCounts::default(),
            received,
            began: Instant::now(),
            first_token: None,
            last_token: None,
        }
    }

    /// `None` while the reader has no credit left.
    pub(super) fn demand(&self) -> Option<Demand> {
        let pending = self.pending();
        let step = if self.is_scoring() { SCORED_STEP_TOKENS } else { pending };
        let pending = pending.min(step);
        (self.credit > 0).then_some(Demand { pending, said: self.answering.generated_tokens() })
    }

    /// Whether the reader of a paced answer has not asked for the next event.
    pub(super) fn is_ahead(&self) -> bool {
        self.is_paced && self.credit < i64::from(Reading::EVENTS_AHEAD_MAX)
    }

    /// Guesses what comes after the tokens that are computed next.
    pub(super) fn guess(&mut self) -> DraftOffer {
        let room = self.draft_room();
        self.drafting.guess(&self.tokens, room, &mut self.answering);
        self.offer()
    }

    /// Whether a small model may guess better.
    pub(super) fn is_guess_faint(&self) -> bool {
        self.drafting.is_faint()
    }

    /// What a small model may guess.
    pub(super) fn model_offer(&mut self) -> DraftOffer {
        let (tokens, chance) = (self.draft_room(), self.drafting.chance_of_model());
        DraftOffer { tokens, chance, form: FormOffer::default(), ..self.offer() }
    }

    /// Expects what a small model guessed.
    pub(super) fn expect(&mut self, draft: Vec<u32>) -> DraftOffer {
        self.drafting.expect(draft, &mut self.answering);
        self.offer()
    }

    fn offer(&self) -> DraftOffer {
        let (tokens, chance) = self.drafting.offer();
        DraftOffer { pending: self.pending(), tokens, chance, form: self.drafting.form_offer() }
    }

    fn pending(&self) -> usize {
        self.tokens.len() - self.computed
    }

    /// The model chooses one more token than are right, and each may be an event. A pass has no more tokens than a guess may
    /// have: kernels compute such round numbers of tokens best.
    fn draft_room(&self) -> usize {
        let credit = u32::try_from(self.credit.max(0)).unwrap_or(u32::MAX);
        let room = self.answering.tokens_left().min(credit).saturating_sub(1);
        (room as usize).min(DRAFT_TOKENS_MAX.saturating_sub(self.pending()))
    }

    /// The prompt and the answer so far.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Checks the first `count` guessed tokens with the next batch, which has all other tokens too.
    pub(super) fn check_guess(&mut self, count: usize) {
        self.draft = self.drafting.first(count);
    }

    /// The next `count` tokens for a batch.
    pub(super) fn batch(&self, count: usize) -> impl Iterator<Item = BatchToken> {
        let known = self.tokens.len();
        (self.computed..self.computed + count).map(move |position| BatchToken {
            id: match self.tokens.get(position) {
                Some(&token) => token,
                None => self.draft[position - known],
            },
            position: position as u32,
            slot: self.slot,
            wants_logits: position + 1 >= known
                || self.judged_at == Some(position)
                || self.is_scoring(),
        })
    }

    /// Whether the prompt is being computed with log probabilities.
    fn is_scoring(&self) -> bool {
        self.echo.is_scored() && self.computed < self.prompt_tokens
    }

    /// Counts a pass that computed `count` tokens of this stream, before [`Running::advance`].
    pub(super) fn count_pass(&mut self, count: usize, took: Duration) {
        self.passes.add(count, took);
    }

    /// Takes the results of the next `count` tokens. Chooses the next token if its logits are available, and further ones
    /// while the guessed tokens are those that the model chooses. `logits` returns the logits after each of them.
    ///
    /// Guesses that are wrong stay in the decoder's cache, beyond [`Running::computed`].
    pub(super) fn advance<'l>(
        &mut self,
        count: usize,
        logits: impl Fn(usize) -> &'l [f32],
    ) -> Result<StepOutput, AnswerError> {
        let first = self.computed;
        let mut output = StepOutput { events: self.echo(count, &logits)?, end: None };
        if let Some(at) = self.judged_at.take_if(|at| *at < first + count) {
            let probability = self.answering.turn_end(logits(at - first))?;
            output.events.push(ChatEvent::TurnEnd { probability });
        }
        let mut draft = mem::take(&mut self.draft).into_iter().peekable();
        self.drafting.checked += draft.len() as u32;
        self.computed += count - draft.len();
        while output.end.is_none() && self.computed == self.tokens.len() {
            let StepOutput { events, end } = self.choose(logits(self.computed - 1 - first))?;
            output.events.extend(events);
            output.end = end;
            while let Some(&token) = self.tokens.get(self.computed)
                && draft.next_if_eq(&token).is_some()
            {
                self.computed += 1;
                self.drafting.right += 1;
            }
        }
        Ok(output)
    }

    /// Log probabilities of the next `count` prompt tokens, which were just computed.
    fn echo<'l>(
        &mut self,
        count: usize,
        logits: impl Fn(usize) -> &'l [f32],
    ) -> Result<Vec<ChatEvent>, AnswerError> {
        let mut scored = Vec::new();
        if let Some(from) = self.echo.scored_from.filter(|_| self.is_scoring()) {
            if self.computed == 0 && from == 0 {
                scored.push(self.answering.first_of_prompt(self.tokens[0]));
            }
            for at in 0..count {
                let next = self.computed + at + 1;
                if next < self.prompt_tokens {
                    scored.push(self.answering.scored(self.tokens[next], logits(at))?);
                }
            }
        }
        let mut events = Vec::new();
        if !scored.is_empty() {
            events.push(ChatEvent::Logprobs(scored));
        }
        let is_last = self.computed + count >= self.prompt_tokens;
        events.extend(self.echo.text.take_if(|_| is_last).map(ChatEvent::Text));
        Ok(events)
    }

    /// How many of the stream's tokens are computed, and cached in its slot.
    pub(super) fn computed(&self) -> usize {
        self.computed
    }

    /// The computed tokens from `first` on.
    pub(super) fn computed_since(&self, first: usize) -> &[u32] {
        &self.tokens[first..self.computed]
    }

    /// The cache is lost, so all tokens are computed again, like a prompt.
    pub(super) fn compute_again(&mut self) {
        self.computed = 0;
        // It was sent.
        self.echo = Echo::default();
    }

    /// Chooses the next token, and further tokens if they are forced.
    fn choose(&mut self, logits: &[f32]) -> Result<StepOutput, AnswerError> {
        let Step { tokens, events, end } = self.answering.next(logits)?;
        let now = Instant::now();
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        tokens.iter().for_each(|&token| self.drafting.hear(token));
        self.tokens.extend(tokens);
        Ok(StepOutput { events, end: end.map(|finish| self.completion(finish)) })
    }

    fn completion(&self, finish: FinishReason) -> Completion {
        let said = self.answering.generated_tokens();
        let usage = Usage {
            prompt_tokens: self.prompt_tokens as u32,
            cached_tokens: self.cached_tokens as u32,
            completion_tokens: said,
            reasoning_tokens: self.answering.reasoning_tokens(),
        };
        tracing::debug!(
            tokens = said,
            checked = self.drafting.checked,
            right = self.drafting.right,
            grammar_ms = milliseconds(self.answering.grammar_time()),
            passes = %self.passes,
            guesses = %self.drafting.guesses(),
            "an answer ended"
        );
        let first = self.first_token.unwrap_or(self.began);
        let last = self.last_token.unwrap_or(first);
        let timings = Timings {
            load_ms: 0.0,
            queue_ms: ms(self.received, self.began),
            prompt_ms: ms(self.began, first),
            predicted_ms: ms(first, last),
            draft_tokens: self.drafting.checked,
            accepted_tokens: self.drafting.right,
        };
        Completion { finish, usage, timings }
    }
}

/// What a stream sends after a step.
pub(super) struct StepOutput {
    pub(super) events: Vec<ChatEvent>,
    pub(super) end: Option<Completion>,
}

fn ms(from: Instant, to: Instant) -> f64 {
    milliseconds(to.saturating_duration_since(from))
}
