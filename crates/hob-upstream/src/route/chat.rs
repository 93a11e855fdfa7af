//! Aliases of chat models: which candidates can take a request, how answers begin, and embeddings.
//! A candidate that lacks an ability, or whose context is surely too small, is not asked.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::chat::{Effort, EmbedInput, FinishReason, OutputFormat, Prompt, Reading};
use hob_core::routing::{FallBack, Fit, RetryDecision, more_informative, tokens_of};
use hob_core::{
    Chat, ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, EmbedRequest, Embeddings, Fault,
    ModelError, ModelState, Tokens, Trace,
};
use hob_wire::unknown_fields;
use tokio::time::{Instant, timeout_at};

use super::attempt::{AskContext, Attempt, slot_of};
use super::continuation::Continuation;
use super::task::{EventRole, Observer, RouteTask};
use super::{AliasModel, Candidate, Route};
use crate::chat::UpstreamChat;
use crate::options::OnInterruption;
use crate::target::{Source, Target};
use crate::upstream_model::UpstreamModel;

/// Tokens to expect of an answer without a limit.
const TOKENS_GUESS: u32 = 256;
/// Bytes by which the beginning of a conversation is recognised.
const BEGINNING_BYTES: usize = 2 << 10;

type ChatCandidate = Arc<Candidate<Chat>>;

/// What the route needs of a chat request after it was sent.
pub(crate) struct ChatOutline {
    reading: Reading,
    effort: Option<Effort>,
    /// Almost nothing was wanted, or the answer is the rest of another one.
    is_small: bool,
    has_stop: bool,
    trace: Trace,
}

impl RouteTask for Chat {
    type Card = ChatCard;

    type Outline = ChatOutline;

    fn card(candidates: &[ChatCandidate]) -> ChatCard {
        card(candidates)
    }

    fn upstream_model(model: &Arc<UpstreamModel>) -> Arc<dyn ChatModel> {
        Arc::new(UpstreamChat::new(Arc::clone(model)))
    }

    fn alias_model(route: Arc<Route<Chat>>) -> Arc<dyn ChatModel> {
        Arc::new(AliasModel(route))
    }

    fn expected_work(request: &ChatRequest) -> Tokens {
        Tokens(f64::from(request.tokens_max.unwrap_or(TOKENS_GUESS)))
    }

    fn silent_work(request: &ChatRequest, target: &Target) -> Duration {
        let (least, most) = tokens_of(request);
        silent_reading(target, (least + most) as f64 / 2.0)
    }

    fn outline(request: &ChatRequest) -> ChatOutline {
        let is_least = request.tokens_max.is_some_and(|most| most <= 1);
        ChatOutline {
            reading: request.reading,
            effort: request.thinking.effort,
            is_small: request.partial.is_some() || is_least,
            has_stop: !request.stop.is_empty(),
            trace: request.trace.clone(),
        }
    }

    fn is_streamed(outline: &ChatOutline) -> bool {
        outline.reading.is_streamed()
    }

    fn role(event: &ChatEvent) -> EventRole {
        match event {
            ChatEvent::Done(_) => EventRole::Last,
            ChatEvent::Reasoning(_) => EventRole::Thinking,
            ChatEvent::Logprobs(_)
            | ChatEvent::Status { .. }
            | ChatEvent::Extra(_)
            | ChatEvent::TurnEnd { .. } => EventRole::Other,
            ChatEvent::Text(_) | ChatEvent::ToolCall { .. } | ChatEvent::ToolArguments { .. } => {
                EventRole::Content
            }
        }
    }

    /// Almost nothing was wanted, or the answer is the rest of another one, or its first words were a stop
    /// text, or the model is hob's own, which ends without content only by choice.
    fn may_be_empty(outline: &ChatOutline, target: &Target, last: &ChatEvent) -> bool {
        let stopped = matches!(last, ChatEvent::Done(done) if done.finish == FinishReason::Stop);
        outline.is_small
            || matches!(target.source, Source::Local(_))
            || (outline.has_stop && stopped)
    }

    /// Measures how fast the target reads prompts, and notices thinking that was switched off.
    fn observer(outline: &ChatOutline, target: &Arc<Target>) -> Option<Observer<ChatEvent>> {
        let (target, trace) = (Arc::clone(target), outline.trace.clone());
        let (asked, mut first) = (Instant::now(), None);
        let mut is_thoughtless = outline.effort == Some(Effort::None);
        Some(Box::new(move |event| match event {
            ChatEvent::Done(completion) => {
                if let Some(first) = first {
                    let usage = completion.usage;
                    target.record_prompt_read(
                        usage.prompt_tokens.saturating_sub(usage.cached_tokens),
                        first,
                    );
                }
            }
            // The first comes with the end, and the other is no part of the answer.
            ChatEvent::Extra(_) | ChatEvent::TurnEnd { .. } => {}
            event => {
                if is_thoughtless && matches!(event, ChatEvent::Reasoning(_)) {
                    is_thoughtless = false;
                    target.thought_anyway();
                    trace.note(|data| data.thought_anyway = true);
                }
                first.get_or_insert_with(|| asked.elapsed());
            }
        }))
    }
}

impl Route<Chat> {
    async fn chat(self: &Arc<Self>, request: ChatRequest) -> Result<ChatStream, ModelError> {
        let deadline = self.deadline();
        let able = self.able(&request)?;
        let beginning = if able.len() > 1 { beginning(&request) } else { 0 };
        let candidates = self.ordered(able, beginning);
        let changed = |candidate: &Candidate<Chat>| as_asked(&request, candidate);
        let ask = AskContext::new(&request.trace, deadline, &changed);
        let started = self.ask(candidates, &ask).await?;
        // The server names them itself if no target takes them.
        if self.card.takes_unknown && !takes_unknown(&started.candidate) {
            let mut unknown = unknown_fields(&request);
            request.trace.note(|data| {
                // Each choice of an answer reports the same names.
                unknown.retain(|name| !data.dropped.contains(name));
                data.dropped.extend(unknown);
            });
        }
        let continues = self.options.on_interruption == OnInterruption::Continue;
        // An answer that is read whole can be made again instead.
        if !continues || request.reading == Reading::Whole {
            return Ok(started.into_started().events);
        }
        let request = as_asked(&request, &started.candidate);
        Ok(Continuation::new(Arc::clone(self), request, started, deadline).into_stream())
    }

    /// # Errors
    /// No candidate is left, and why.
    fn able(&self, request: &ChatRequest) -> Result<Vec<ChatCandidate>, ModelError> {
        let able = self.with_abilities(&needs(request))?;
        let fitting = |tokens_max: Option<u32>| -> Vec<ChatCandidate> {
            let fits = |candidate: &&ChatCandidate| {
                Fit::check(request, tokens_max, candidate.context_tokens()) != Fit::No
            };
            able.iter().filter(fits).cloned().collect()
        };
        // Where no context holds the longest answer that is allowed, the answer is shortened.
        let whole = fitting(request.tokens_max);
        let fitting = if whole.is_empty() { fitting(None) } else { whole };
        if fitting.is_empty() { Err(self.too_long(request, &able)) } else { Ok(fitting) }
    }

    /// # Errors
    /// No candidate has these abilities.
    fn with_abilities(&self, needs: &[&'static str]) -> Result<Vec<ChatCandidate>, ModelError> {
        let able = self.candidates.iter().filter(|candidate| is_able(candidate, needs));
        let able: Vec<ChatCandidate> = able.cloned().collect();
        if able.is_empty() {
            let (alias, needs) = (self.options.name.clone(), needs.join(", "));
            return Err(ModelError::NoneCapable { alias, needs });
        }
        Ok(able)
    }

    /// The numbers, and the candidate with the largest context.
    fn too_long(&self, request: &ChatRequest, candidates: &[ChatCandidate]) -> ModelError {
        let largest = candidates.iter().max_by_key(|candidate| candidate.context_tokens());
        let (least, _) = tokens_of(request);
        let needed = u32::try_from(least.saturating_add(1)).unwrap_or(u32::MAX);
        let available = largest.and_then(|candidate| candidate.context_tokens());
        let alias = self.options.name.as_str();
        let name = largest.map_or(alias, |candidate| candidate.target.name.as_str());
        let message = format!(
            "the maximum context length is {} tokens in the largest target of '{alias}', and the prompt \
             needs at least {needed} tokens: shorten it",
            available.unwrap_or_default(),
        );
        let fault = Fault::TooLong { message, needed: Some(needed), available };
        ModelError::upstream(name, fault)
    }

    /// Asks one candidate after the other. Failures here do not open circuits: they say little about chat.
    async fn embed(&self, request: EmbedRequest) -> Result<Embeddings, ModelError> {
        let deadline = self.deadline();
        let candidates = self.ordered(self.with_abilities(&["embeddings"])?, 0);
        self.wait_for_cool_down(&candidates, deadline).await?;
        let tokens = request.inputs.iter().map(EmbedInput::tokens_guess).sum::<usize>() as f64;
        let mut last = None;
        let mut remaining = candidates.len();
        for candidate in candidates {
            remaining -= 1;
            let target = &candidate.target;
            if target.open_for().is_some() {
                continue;
            }
            let asked = Instant::now();
            request.trace.asking(&target.name, candidate.is_warm());
            let work = silent_reading(target, tokens);
            let attempt = Attempt { remaining, ..Attempt::alone(&candidate) };
            let mut limits = self.limits(&attempt, work, deadline);
            let embed = async {
                let _permit = candidate.admit(Tokens(tokens))?;
                let _slot = slot_of(target, &request.trace, &mut limits).await?;
                let embed = candidate.model.embed(request.clone());
                let made = timeout_at(limits.first_by(), embed).await;
                made.unwrap_or_else(|_| Err(limits.silence_of(target)))
            };
            match embed.await {
                Ok(made) => {
                    let now = Instant::now();
                    let after = now.duration_since(asked);
                    request.trace.answers(&target.name, now.into_std(), after);
                    target.record_prompt_read(made.prompt_tokens, limits.asked.elapsed());
                    return Ok(made);
                }
                Err(error) => {
                    request.trace.failed(&target.name, &error, asked.elapsed());
                    let fall_back = RetryDecision::after(&error).fall_back;
                    last = Some(more_informative(last, error));
                    if fall_back == FallBack::No {
                        break;
                    }
                }
            }
        }
        Err(self.all_failed(&request.trace, last))
    }
}

impl ChatModel for AliasModel<Chat> {
    fn card(&self) -> &ChatCard {
        &self.0.card
    }

    fn is_team(&self) -> bool {
        self.0.candidates.iter().any(|candidate| candidate.model.is_team())
    }

    fn state(&self) -> ModelState {
        self.0.state()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        self.0.chat(request).boxed()
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        self.0.embed(request).boxed()
    }
}

/// Three times the expected time to read so many tokens.
fn silent_reading(target: &Target, tokens: f64) -> Duration {
    target.reading_time(tokens).unwrap_or_default() * 3
}

/// The request with the candidate's parameters, and with an answer that its context can hold.
fn as_asked(request: &ChatRequest, candidate: &Candidate<Chat>) -> ChatRequest {
    let mut request = request.clone();
    candidate.apply_parameters(&mut request);
    let context = candidate.context_tokens();
    if Fit::check(&request, request.tokens_max, context) == Fit::No {
        let (least, most) = tokens_of(&request);
        let context = u64::from(context.unwrap_or(u32::MAX));
        let prompt = if most < context { most } else { least };
        let left = u32::try_from(context.saturating_sub(prompt)).unwrap_or(u32::MAX);
        request.tokens_max = request.tokens_max.map(|wanted| wanted.min(left.max(1)));
    }
    request
}

/// Whether hob sends the parameters that it does not know to this candidate.
fn takes_unknown(candidate: &Candidate<Chat>) -> bool {
    match &candidate.target.source {
        Source::Upstream(model) => model.upstream.known_kind().takes_unknown(),
        Source::Local(_) => candidate.model.card().takes_unknown,
    }
}

fn is_able(candidate: &Candidate<Chat>, needs: &[&str]) -> bool {
    if needs.is_empty() {
        return true;
    }
    let card = candidate.model.card();
    let served = candidate.target.served().unwrap_or_default();
    needs.iter().all(|need| {
        let can = match *need {
            "tools" => card.calls_tools && served.calls_tools != Some(false),
            "images" => card.sees && served.sees != Some(false),
            // No `capabilities` name it.
            "suffix" => return card.infills,
            _ => true,
        };
        can && candidate.has_capability(need)
    })
}

fn needs(request: &ChatRequest) -> Vec<&'static str> {
    let mut needs = Vec::new();
    match &request.prompt {
        Prompt::Chat(conversation) => {
            if !conversation.tools.is_empty() {
                needs.push("tools");
            }
            if conversation.messages.iter().any(|message| !message.images.is_empty()) {
                needs.push("images");
            }
        }
        Prompt::Infill { .. } => needs.push("suffix"),
        Prompt::Text(_) | Prompt::Tokens(_) => {}
    }
    match request.output {
        OutputFormat::Text => {}
        OutputFormat::JsonObject
        | OutputFormat::JsonSchema(_)
        | OutputFormat::Regex(_)
        | OutputFormat::Lark(_) => needs.push("json_schema"),
    }
    needs
}

/// A hash of the beginning of a conversation.
fn beginning(request: &ChatRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut left = BEGINNING_BYTES;
    let mut take = |text: &str| {
        let bytes = &text.as_bytes()[..text.len().min(left)];
        left -= bytes.len();
        bytes.hash(&mut hasher);
    };
    match &request.prompt {
        Prompt::Chat(conversation) => {
            conversation.messages.iter().for_each(|message| take(&message.text));
        }
        Prompt::Text(text) => take(text),
        Prompt::Infill { prefix, .. } => take(prefix),
        Prompt::Tokens(tokens) => {
            tokens.iter().take(BEGINNING_BYTES / 4).for_each(|t| take(&t.to_string()))
        }
    }
    hasher.finish()
}

/// An alias has every ability that one of its targets has, except `scores_prompts`.
fn card(candidates: &[ChatCandidate]) -> ChatCard {
    // All must: which of them answers is not known when the answer's offsets are.
    let scores_prompts = candidates.iter().all(|candidate| candidate.model.card().scores_prompts);
    let mut card = ChatCard { scores_prompts, ..ChatCard::default() };
    for candidate in candidates {
        let its = candidate.model.card();
        card.context_tokens = card.context_tokens.max(candidate.context_tokens().unwrap_or(0));
        card.trained_context_tokens = card.context_tokens;
        card.calls_tools |= its.calls_tools && candidate.has_capability("tools");
        card.sees |= its.sees && candidate.has_capability("images");
        card.thinks |= its.thinks;
        card.infills |= its.infills;
        card.takes_unknown |= its.takes_unknown;
        card.template =
            card.template.take().or_else(|| its.template.as_ref().map(|_| String::new()));
        if card.architecture.is_empty() {
            card.architecture.clone_from(&its.architecture);
        }
        if card.file_bytes == 0 && its.file_bytes > 0 {
            card = with_file(card, its);
        }
    }
    if card.modified_unix_s == 0 {
        // An alias of other servers' models is as old as this configuration.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        card.modified_unix_s = since.map_or(0, |since| since.as_secs());
    }
    card
}

/// With the file of the first target that has one here: Ollama's clients list its size and its age.
fn with_file(card: ChatCard, its: &ChatCard) -> ChatCard {
    ChatCard {
        architecture: its.architecture.clone(),
        parameters: its.parameters,
        quantization: its.quantization.clone(),
        file_bytes: its.file_bytes,
        digest: its.digest.clone(),
        modified_unix_s: its.modified_unix_s,
        is_embedder: its.is_embedder,
        ..card
    }
}
