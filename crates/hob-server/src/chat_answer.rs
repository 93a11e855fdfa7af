//! Chat answers: how their tokens are counted, and how much of a key's budget they may take.
//! No JSON here: OpenAI's and Ollama's routes each write the same events in their own format.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use hob_core::chat::{EmbedInput, Usage};
use hob_core::routing::prompt_tokens_guess;
use hob_core::{
    Chat, ChatEvent, ChatRequest, EmbedRequest, Embeddings, RegisteredModel, Task, Tokens,
};
use tokio::time::Instant;

use crate::api_error::ApiError;
use crate::generic_answer::{Answer, AnswerTask, bounded, time_max};
use crate::headers::{JSON, TTFT_MS};
use crate::ledger::{Outcome, RequestRecord};
use crate::metrics::{GuessedTokens, Metrics};
use crate::tracker::{RequestStart, RequestTracker};

/// Expected tokens of an answer without a limit.
const TOKENS_GUESS: u32 = 256;

/// Tokens of a key's day that are reserved for an answer without a limit.
const TOKENS_RESERVED: u32 = 2048;

/// Sums over the choices of an answer.
#[derive(Default)]
pub(crate) struct ChatTotals {
    usage: Usage,
    drafts: GuessedTokens,
    /// Number of events, which is about the number of tokens, until a choice reports its own.
    guessed_tokens: u32,
}

impl AnswerTask for Chat {
    const NAME: &'static str = "chat";
    const FIRST_MS: HeaderName = TTFT_MS;

    type Totals = ChatTotals;

    fn begins(event: &ChatEvent) -> bool {
        !matches!(event, ChatEvent::TurnEnd { .. })
    }

    /// Each choice counts its prompt; all but the first find it in the cache. The times are those of the first
    /// choice and of the longest answer.
    fn add(
        totals: &mut ChatTotals,
        record: &mut RequestRecord,
        (): (),
        event: &ChatEvent,
    ) -> Tokens {
        let ChatEvent::Done(completion) = event else {
            let work = Chat::work_of((), event);
            totals.guessed_tokens += work.0 as u32;
            return work;
        };
        let (usage, timings) = (&completion.usage, &completion.timings);
        totals.usage.prompt_tokens += usage.prompt_tokens;
        totals.usage.cached_tokens += usage.cached_tokens;
        totals.usage.completion_tokens += usage.completion_tokens;
        totals.usage.reasoning_tokens += usage.reasoning_tokens;
        let drafts = &mut totals.drafts;
        drafts.drafted = drafts.drafted.saturating_add(timings.draft_tokens);
        drafts.accepted = drafts.accepted.saturating_add(timings.accepted_tokens);
        if timings.are_known() {
            record.load_ms.get_or_insert(timings.load_ms);
            record.queue_ms.get_or_insert(timings.queue_ms);
            let longest = record.predicted_ms.unwrap_or(0.0).max(timings.predicted_ms);
            record.predicted_ms = Some(longest);
        }
        let missed = totals.usage.completion_tokens.saturating_sub(totals.guessed_tokens);
        totals.guessed_tokens += missed;
        Tokens(f64::from(missed))
    }

    fn count_first(metrics: &Metrics, model: &str, first: std::time::Duration) {
        metrics.first_token(model, first);
    }

    fn complete_record(totals: &ChatTotals, record: &mut RequestRecord, _has_begun: bool) {
        let usage = totals.usage;
        record.prompt_tokens = usage.prompt_tokens;
        record.cached_tokens = usage.cached_tokens;
        record.completion_tokens = usage.completion_tokens.max(totals.guessed_tokens);
        record.reasoning_tokens = usage.reasoning_tokens;
    }

    fn count(metrics: &Metrics, model: &str, outcome: Outcome, totals: &ChatTotals) {
        metrics.chat_answer(model, outcome, &totals.usage, totals.drafts);
    }
}

/// A chat request that is ready for a model.
pub(crate) struct ChatStart {
    pub(crate) start: RequestStart,
    pub(crate) model: Arc<RegisteredModel<Chat>>,
    /// One for each choice, at least one. [`seeded`] makes several from one.
    pub(crate) requests: Vec<ChatRequest>,
}

impl ChatStart {
    /// # Errors
    /// Like [`Answer::start`], or no tokens of the key's day are left.
    pub(crate) async fn start(self) -> Result<Answer<Chat>, ApiError> {
        let ChatStart { mut start, model, mut requests } = self;
        if let Some(tokens_max) = start.guards.reserve_tokens(budget_tokens(&requests))? {
            shorten(&mut requests, tokens_max);
        }
        let work = expected_work(&model, &requests);
        Answer::start(start, &model, work, requests).await
    }
}

/// Turns texts into vectors. Returns them and the headers of the answer.
///
/// # Errors
/// The model rejects the request, or the time limit is exceeded.
pub(crate) async fn embed(
    mut start: RequestStart,
    model: &RegisteredModel<Chat>,
    mut request: EmbedRequest,
) -> Result<(Embeddings, HeaderMap), ApiError> {
    let context = start.context.clone();
    let tokens = request.inputs.iter().map(EmbedInput::tokens_guess).sum::<usize>();
    start.guards.reserve_tokens(tokens as u64)?;
    let mut tracker = RequestTracker::new(start, model);
    tracker.admit(model, Tokens(tokens as f64))?;
    request.trace = context.trace.clone();
    let mut tracker = EmbedTracker(tracker);
    let limit = time_max(model, context.options().token_time_max);
    let limit = limit.map(|most| (Instant::now(), most));
    let embed = model.model.embed(request);
    let made = bounded::<Chat, _>(&context, limit, embed).await;
    let made = made.and_then(|made| made.map_err(ApiError::from));
    let EmbedTracker(tracker) = &mut tracker;
    match &made {
        Ok(embeddings) => {
            tracker.record.prompt_tokens = embeddings.prompt_tokens;
            tracker.complete();
            context.services.metrics.embedded(&tracker.label, embeddings.prompt_tokens);
        }
        Err(error) => tracker.failed(error),
    }
    made.map(|made| (made, tracker.headers(JSON)))
}

/// Records the texts that were embedded before the client left.
struct EmbedTracker(RequestTracker<Chat>);

impl Drop for EmbedTracker {
    fn drop(&mut self) {
        let computed = self.0.context.trace.snapshot().embedded_tokens;
        self.0.record.prompt_tokens = self.0.record.prompt_tokens.max(computed);
    }
}

/// The same request for each choice. With one seed, all choices would be equal.
pub(crate) fn seeded(request: ChatRequest, choices: u32) -> Vec<ChatRequest> {
    if choices == 1 {
        return vec![request];
    }
    let of = |choice: u32| {
        let mut request = request.clone();
        let seed = &mut request.sampling.seed;
        *seed = seed.map(|seed| seed.wrapping_add(choice.into()));
        request
    };
    (0..choices).map(of).collect()
}

/// The expected work of these answers.
fn expected_work(model: &RegisteredModel<Chat>, requests: &[ChatRequest]) -> Tokens {
    let context = model.model.card().context_tokens.max(1);
    let answer = |request: &ChatRequest| request.tokens_max.unwrap_or(TOKENS_GUESS).min(context);
    Tokens(requests.iter().map(|request| f64::from(answer(request))).sum())
}

/// Tokens of a key's day to reserve for these answers and their prompts.
fn budget_tokens(requests: &[ChatRequest]) -> u64 {
    let one = |request: &ChatRequest| {
        u64::from(request.tokens_max.unwrap_or(TOKENS_RESERVED))
            + prompt_tokens_guess(&request.prompt) as u64
    };
    requests.iter().map(one).sum()
}

/// Shortens the answers to what is left of the key's day ([`ChatRequest::limit`]). Each may produce one token, because an
/// answer that has begun is finished.
fn shorten(requests: &mut [ChatRequest], tokens_max: u64) {
    let each = tokens_max / (requests.len() as u64).max(1);
    for request in requests {
        let left = each.saturating_sub(prompt_tokens_guess(&request.prompt) as u64).max(1);
        request.key_tokens_max = u32::try_from(left).ok();
        request.tokens_max = request.limit(request.tokens_max);
    }
}
