//! Running a chat request, whoever asked and in whichever dialect: a place, the first event, the rest.
//! No JSON here: OpenAI's routes and Ollama's each turn the same events into their own.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use futures::stream::{self, BoxStream, SelectAll};
use futures::{StreamExt, TryStreamExt};
use hob_core::chat::{EmbedInput, Prompt};
use hob_core::trace::Way;
use hob_core::{
    Busy, ChatEvent, ChatRequest, ChatTarget, Clocked, EmbedRequest, Embeddings, ModelError,
    ModelState, Trace,
};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::account::{Account, Asked, overhead};
use crate::chat_account::ChatAccount;
use crate::failure::ApiError;
use crate::headers::{
    ALIAS, OVERHEAD_MS, TARGET, TTFT_MS, WARM, answer_headers, insert_text, insert_way, whole_ms,
};
use crate::router::App;

/// Tokens to expect of an answer whose limit nobody named.
const TOKENS_GUESS: u32 = 256;

/// Tokens of a key's day that are kept for an answer without a limit of its own.
const TOKENS_KEPT: u32 = 2048;

/// For models that keep time themselves.
const FOR_EVER: Duration = Duration::from_secs(86_400);

/// Bytes of an answer that is collected before it is sent: texts, arguments and log probabilities.
const WHOLE_BYTES_MAX: usize = 32 << 20;

/// What will be asked of which model.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) target: Arc<ChatTarget>,
    /// One for each answer that is wanted, at least one. [`seeded`] makes several of one.
    pub(crate) requests: Vec<ChatRequest>,
    pub(crate) asked: Asked,
}

type ChoiceStream = BoxStream<'static, (u32, Result<ChatEvent, ModelError>)>;

/// An answer that has begun: its first event is there. Dropping it stops the work.
pub(crate) struct Reply {
    events: SelectAll<ChoiceStream>,
    /// Made before anybody asked for it.
    first: Option<(u32, ChatEvent)>,
    /// Choices that have not come to their last event.
    open: u32,
    /// Since when the next event is waited for. Kept here, so that giving up a wait and taking it
    /// up again does not begin it anew.
    waiting_since: Option<Instant>,
    token_time_max: Duration,
    cut_off: CancellationToken,
    warm: Warmth,
    target: String,
    trace: Trace,
    account: ChatAccount,
}

/// Whether the model was in memory when the request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Warmth {
    Warm,
    Cold,
}

/// Takes a place and begins to answer.
///
/// # Errors
/// Whatever is refused, and whatever fails before the first event: nothing was sent by then.
pub(crate) async fn converse(app: &App, question: Question) -> Result<Reply, ApiError> {
    let Question { target, mut requests, mut asked } = question;
    let state = target.model.state();
    if let Some(tokens_max) = asked.reserve_tokens(app, budget_tokens(&requests))? {
        shorten(&mut requests, tokens_max);
    }
    let mut account = Account::new(app, asked, &target.name, &state);
    admit(&mut account, &target, work_tokens(&target, &requests))?;
    let trace = account.trace();
    let keeps_time = target.clocks == Clocked::ByItself;
    let mut reply = Reply {
        events: SelectAll::new(),
        first: None,
        open: requests.len() as u32,
        waiting_since: None,
        token_time_max: if keeps_time { FOR_EVER } else { app.limits.token_time_max },
        cut_off: app.cut_off.clone(),
        warm: Warmth::of(&state),
        target: target.name.clone(),
        trace,
        account: ChatAccount::new(account),
    };
    match reply.begin(&target, requests).await {
        Ok(()) => Ok(reply),
        Err(refusal) => {
            reply.account.answer.failed(&refusal);
            Err(refusal)
        }
    }
}

/// Takes a place and turns texts into vectors.
///
/// # Errors
/// Whatever the model refuses, and its silence.
pub(crate) async fn embed(
    app: &App,
    target: &ChatTarget,
    mut request: EmbedRequest,
    mut asked: Asked,
) -> Result<(Embeddings, Way), ApiError> {
    let tokens = request.inputs.iter().map(tokens_guess).sum::<usize>();
    asked.reserve_tokens(app, tokens as u64)?;
    let mut account = Account::new(app, asked, &target.name, &target.model.state());
    admit(&mut account, target, tokens as f64)?;
    request.trace = account.trace();
    let keeps_time = target.clocks == Clocked::ByItself;
    let time_max = if keeps_time { FOR_EVER } else { app.limits.token_time_max };
    let mut account = EmbedAccount(account);
    let made = match timeout(time_max, target.model.embed(request)).await {
        Ok(made) => made.map_err(ApiError::from),
        Err(_) => Err(ApiError::NoToken { time_max }),
    };
    let EmbedAccount(account) = &mut account;
    match &made {
        Ok(embeddings) => {
            account.entry.prompt_tokens = embeddings.prompt_tokens;
            account.complete();
            app.metrics.embedded(&account.label, embeddings.prompt_tokens);
        }
        Err(refusal) => account.failed(refusal),
    }
    let way = account.trace().now();
    made.map(|made| (made, way))
}

/// Of vectors: where the client leaves before the last, what was computed until then is charged.
struct EmbedAccount(Account);

impl Drop for EmbedAccount {
    fn drop(&mut self) {
        let computed = self.0.trace().now().embedded_tokens;
        self.0.entry.prompt_tokens = self.0.entry.prompt_tokens.max(computed);
    }
}

/// Takes a place for so much work.
fn admit(account: &mut Account, target: &ChatTarget, tokens: f64) -> Result<(), ApiError> {
    match target.admission.admit(tokens) {
        Ok(permit) => {
            account.admitted(permit);
            Ok(())
        }
        Err(Busy { retry_after }) => {
            let refusal = ApiError::from(ModelError::Busy { retry_after });
            account.failed(&refusal);
            Err(refusal)
        }
    }
}

/// The same request so many times. Choices with one seed would all say the same.
pub(crate) fn seeded(request: ChatRequest, choices: u32) -> Vec<ChatRequest> {
    let of = |choice: u32| {
        let mut request = request.clone();
        let seed = &mut request.sampling.seed;
        *seed = seed.map(|seed| seed.wrapping_add(choice.into()));
        request
    };
    (0..choices).map(of).collect()
}

impl Reply {
    /// What every dialect's answer says in its headers.
    pub(crate) fn headers(&self, content_type: &'static str) -> HeaderMap {
        let mut headers = answer_headers(content_type);
        let (way, answer) = (self.trace.now(), &self.account.answer);
        insert_text(&mut headers, ALIAS, &answer.entry.alias);
        insert_text(&mut headers, TARGET, way.target.as_ref().unwrap_or(&self.target));
        headers.insert(TTFT_MS, whole_ms(answer.first().unwrap_or_default()));
        headers.insert(WARM, HeaderValue::from_static(self.warm.unless(way.is_warm).name()));
        insert_way(&mut headers, &way);
        if let Some(own) = overhead(&way, answer.first(), &answer.entry) {
            let own_ms = format!("{:.3}", own.as_secs_f64() * 1e3);
            insert_text(&mut headers, OVERHEAD_MS, &own_ms);
        }
        headers
    }

    /// Waited for one of another server's places.
    pub(crate) fn queued(&self) -> Duration {
        self.trace.now().queued
    }

    /// The next event and which choice it belongs to; `None` when every choice is complete. May be
    /// dropped and called again while it waits.
    pub(crate) async fn next(&mut self) -> Result<Option<(u32, ChatEvent)>, ApiError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let next = self.next_made().await;
        match &next {
            Ok(Some(_)) => {}
            Ok(None) => self.account.answer.complete(),
            Err(refusal) => self.account.answer.failed(refusal),
        }
        next
    }

    /// Everything to the end, for an answer that is not streamed.
    pub(crate) async fn collect(
        &mut self,
        mut take: impl FnMut(u32, ChatEvent),
    ) -> Result<(), ApiError> {
        let mut bytes = 0usize;
        while let Some((choice, event)) = self.next().await? {
            bytes = bytes.saturating_add(bytes_of(&event));
            if bytes > WHOLE_BYTES_MAX {
                let refusal = ApiError::AnswerTooLarge { bytes_max: WHOLE_BYTES_MAX };
                self.account.answer.failed(&refusal);
                return Err(refusal);
            }
            take(choice, event);
        }
        Ok(())
    }

    /// The others wait for the first one's first event: by then its prompt is computed, and the
    /// model can begin them where that left off.
    async fn begin(
        &mut self,
        target: &Arc<ChatTarget>,
        requests: Vec<ChatRequest>,
    ) -> Result<(), ApiError> {
        for (choice, mut request) in (0..).zip(requests) {
            request.trace = self.trace.clone();
            if choice > 0 && target.clocks == Clocked::ByItself {
                self.ask_beside(target, choice, request);
                continue;
            }
            self.ask(target, choice, request).await?;
            if choice == 0 {
                self.first = self.next_made().await?;
                self.account.begun();
            }
        }
        Ok(())
    }

    async fn ask(
        &mut self,
        target: &ChatTarget,
        choice: u32,
        request: ChatRequest,
    ) -> Result<(), ApiError> {
        let time_max = self.token_time_max;
        let asked = timeout(time_max, target.model.chat(request));
        let asked = self.cut_off.run_until_cancelled(asked).await.ok_or(ApiError::Stopping)?;
        let events = asked.map_err(|_| ApiError::NoToken { time_max })??;
        self.events.push(events.map(move |event| (choice, event)).boxed());
        Ok(())
    }

    /// Asked while those before it are being read: a server with few places may have none before they end.
    fn ask_beside(&mut self, target: &Arc<ChatTarget>, choice: u32, request: ChatRequest) {
        let target = Arc::clone(target);
        let events = stream::once(async move { target.model.chat(request).await }).try_flatten();
        self.events.push(events.map(move |event| (choice, event)).boxed());
    }

    async fn next_made(&mut self) -> Result<Option<(u32, ChatEvent)>, ApiError> {
        if self.open == 0 {
            return Ok(None);
        }
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let time_max = self.token_time_max;
        let next = timeout_at(since + time_max, self.events.next());
        let next = self.cut_off.run_until_cancelled(next).await;
        self.waiting_since = None;
        self.account.answer.waited(since.elapsed());
        let (choice, event) = match next.ok_or(ApiError::Stopping)? {
            Err(_) => return Err(ApiError::NoToken { time_max }),
            Ok(None) => return Err(broken_off().into()),
            Ok(Some((choice, event))) => (choice, event?),
        };
        if let ChatEvent::Done(completion) = &event {
            self.open -= 1;
            self.account.done(completion);
        } else if !matches!(event, ChatEvent::Logprobs(_)) {
            // The text of the same tokens follows, and counts.
            self.account.made_token();
        }
        Ok(Some((choice, event)))
    }
}

impl Warmth {
    fn of(state: &ModelState) -> Warmth {
        match state {
            ModelState::Ready => Warmth::Warm,
            ModelState::Cold | ModelState::Loading { .. } | ModelState::Down { .. } => Warmth::Cold,
        }
    }

    /// What is known of whoever really answers says more.
    fn unless(self, is_warm: Option<bool>) -> Warmth {
        match is_warm {
            Some(true) => Warmth::Warm,
            Some(false) => Warmth::Cold,
            None => self,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Warmth::Warm => "true",
            Warmth::Cold => "false",
        }
    }
}

/// A model whose answer ends without its last event has lost the rest of it.
fn broken_off() -> ModelError {
    let detail = "the answer ended before it was complete".to_owned();
    ModelError::EngineFailed { engine: "chat", detail }
}

fn work_tokens(target: &ChatTarget, requests: &[ChatRequest]) -> f64 {
    let context = target.model.card().context_tokens.max(1);
    let answer = |request: &ChatRequest| request.tokens_max.unwrap_or(TOKENS_GUESS).min(context);
    requests.iter().map(|request| f64::from(answer(request))).sum()
}

/// Tokens of a key's day that are kept for these answers and their prompts.
fn budget_tokens(requests: &[ChatRequest]) -> u64 {
    let one = |request: &ChatRequest| {
        u64::from(request.tokens_max.unwrap_or(TOKENS_KEPT)) + prompt_tokens_guess(&request.prompt)
    };
    requests.iter().map(one).sum()
}

/// So that all answers together take no more than what is left of the day. An answer that has begun is finished,
/// so each may take one token.
fn shorten(requests: &mut [ChatRequest], tokens_max: u64) {
    let each = tokens_max / (requests.len() as u64).max(1);
    for request in requests {
        let left = each.saturating_sub(prompt_tokens_guess(&request.prompt)).max(1);
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        if request.tokens_max.is_none_or(|wanted| wanted > left) && left < u32::MAX {
            request.tokens_max = Some(left);
        }
    }
}

fn prompt_tokens_guess(prompt: &Prompt) -> u64 {
    let bytes = match prompt {
        Prompt::Chat(conversation) => {
            conversation.messages.iter().map(|message| message.text.len()).sum()
        }
        Prompt::Text(text) => text.len(),
        Prompt::Infill { prefix, suffix } => prefix.len() + suffix.len(),
        Prompt::Tokens(tokens) => return tokens.len() as u64,
    };
    bytes.div_ceil(4) as u64
}

/// Four bytes of most languages are about one token.
fn tokens_guess(input: &EmbedInput) -> usize {
    match input {
        EmbedInput::Text(text) => text.len().div_ceil(4),
        EmbedInput::Tokens(tokens) => tokens.len(),
    }
}

/// What an event takes while it is kept, roughly.
fn bytes_of(event: &ChatEvent) -> usize {
    const EACH: usize = 32;
    EACH + match event {
        ChatEvent::Reasoning(text) | ChatEvent::Text(text) => text.len(),
        ChatEvent::ToolCall { id, name, .. } => id.len() + name.len(),
        ChatEvent::ToolArguments { piece, .. } => piece.len(),
        ChatEvent::Logprobs(tokens) => {
            let alternatives = tokens.iter().flat_map(|token| &token.top);
            let texts = tokens.iter().map(|token| &token.token);
            let texts = texts.chain(alternatives.map(|(text, _)| text));
            texts.map(|text| EACH + text.0.len()).sum()
        }
        ChatEvent::Done(_) => 0,
    }
}
