//! Prepares requests: prompts become tokens, and options become a plan for the answer.
//! Holds all that this needs: the model's vocabulary, template, dialect and grammars.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hob_core::chat::{
    ChatRequest, Conversation, Effort, Prompt, Reading, Role, Thinking, ToolChoice,
};
use hob_core::{ModelError, is_full_stop, locked};

use super::ServeChatOptions;
use super::answering::{AnswerPlan, Answering, ThinkingLimit};
use super::repetition::Repetition;
use super::running::{Echo, Prepared};
use crate::chat::client::ENGINE;
use crate::chat::constraint::{
    AnswerRules, CallCount, Constrainer, Constraint, ConstraintError, ToolRules, Vocabulary,
};
use crate::chat::dialect::{
    AnswerParser, ArgumentDelivery, ModelDialect, ThinkingMarks, ToolDialect, ToolsOffered,
};
use crate::chat::failures::RecentFailures;
use crate::chat::llama::Llama;
use crate::chat::protocol::Refusal;
use crate::chat::sampler::{History, Sampler, SamplerDefaults};
use crate::chat::stop::StopScanner;
use crate::chat::template::{ChatTemplate, SpecialTokens, TemplateError};
use crate::chat::tokens::{Beginning, Special, Token, TokenTable, Tokenizer};

/// Why a model cannot be used although its weights load.
#[derive(Debug, thiserror::Error)]
pub enum RequestReaderError {
    #[error("the model's chat template cannot be read: {0}")]
    Template(#[from] TemplateError),
    #[error("the model's vocabulary cannot be read: {0}")]
    Vocabulary(ConstraintError),
}

pub(super) struct RequestReader {
    parts: RequestReaderParts,
    /// Conversations that the template could not render in its memory. Each such rendering keeps its memory until the worker
    /// ends.
    pub(super) heavy: Mutex<RecentFailures<TemplateError>>,
    constrainer: Constrainer,
}

/// Whether a grammar may be compiled, which can take seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compile {
    Now,
    Elsewhere,
}

impl RequestReader {
    /// # Errors
    /// See [`RequestReaderError`].
    pub(super) fn of(
        llama: &Arc<Llama>,
        options: &ServeChatOptions,
    ) -> Result<RequestReader, RequestReaderError> {
        let (bos, eos) = llama.begin_and_end();
        let template = llama.header_text("tokenizer.chat_template");
        let template = template
            .map(|source| ChatTemplate::compile(&source, SpecialTokens { bos, eos }))
            .transpose()?;
        let parts = RequestReaderParts {
            tokenizer: Arc::clone(llama) as Arc<dyn Tokenizer>,
            tokens: Arc::new(llama.tokens()),
            template,
            defaults: sampler_defaults(llama),
            infill_marks: llama.infill_marks(),
            context_tokens: llama.options().context_tokens,
            thinking_tokens_max: options.thinking_tokens_max,
            answer_tokens_max: options.answer_tokens_max,
        };
        RequestReader::new(parts)
    }

    /// # Errors
    /// The vocabulary cannot be constrained.
    pub(super) fn new(mut parts: RequestReaderParts) -> Result<RequestReader, RequestReaderError> {
        if let Some(template) = &parts.template {
            Arc::make_mut(&mut parts.tokens).show(template.dialect().marks());
        }
        let constrainer = Vocabulary::new(parts.tokens.all()).and_then(Constrainer::new);
        let constrainer = constrainer.map_err(RequestReaderError::Vocabulary)?;
        let heavy = Mutex::new(RecentFailures::new(Duration::MAX));
        Ok(RequestReader { parts, heavy, constrainer })
    }

    pub(super) fn context_tokens(&self) -> u32 {
        self.parts.context_tokens
    }

    pub(super) fn tokens_of_text(&self, text: &str) -> Vec<u32> {
        self.parts.tokenizer.tokenize(text, Beginning::Marked, Special::Letters)
    }

    /// These tokens, if the vocabulary has all of them.
    ///
    /// # Errors
    /// One of them is not in the vocabulary.
    pub(super) fn known_tokens(&self, field: &str, tokens: &[u32]) -> Result<Vec<u32>, Refusal> {
        match tokens.iter().find(|token| !self.parts.tokens.contains(**token)) {
            None => Ok(tokens.to_vec()),
            Some(token) => {
                let count = self.parts.tokens.count();
                Err(refused(
                    field,
                    format!("has token {token}, and the vocabulary has {count} tokens"),
                ))
            }
        }
    }

    /// `None` if a grammar must be compiled elsewhere first.
    ///
    /// # Errors
    /// The prompt does not fit, or the output format cannot be enforced.
    pub(super) fn prepare(
        &self,
        request: &ChatRequest,
        credit: u32,
        received: Instant,
        compile: Compile,
    ) -> Result<Option<Prepared>, Refusal> {
        let read = self.read(request)?;
        let needed = u32::try_from(read.tokens.len()).unwrap_or(u32::MAX);
        if needed >= self.parts.context_tokens {
            return Err(Refusal::TooLong { needed, available: self.parts.context_tokens });
        }
        let room = self.parts.context_tokens - needed;
        let wished = request.tokens_max.or(self.parts.answer_tokens_max);
        let tokens_max = wished.into_iter().chain(request.key_tokens_max).fold(room, u32::min);
        let constraint = self.constraint(request, tokens_max, compile)?;
        let Some(constraint) = constraint else { return Ok(None) };
        let ignored = constraint.as_ref().map_or(Vec::new(), |it| it.ignored().to_vec());
        let answering = self.answering(request, &read, (tokens_max, constraint));
        let echo = self.echo(request, &read.tokens);
        let is_paced = request.reading == Reading::Paced;
        let judged_at = self.judged_at(request, &read.tokens);
        let (prompt, credit) = (read.tokens, i64::from(credit));
        Ok(Some(Prepared {
            prompt,
            answering,
            echo,
            ignored,
            judged_at,
            credit,
            is_paced,
            received,
        }))
    }

    /// The token that ends the user's last word, if the request asks whether the message is complete. `None` also if the
    /// template ends messages with another token than answers: the probabilities would say nothing about the end.
    fn judged_at(&self, request: &ChatRequest, tokens: &[u32]) -> Option<usize> {
        let Prompt::Chat(conversation) = &request.prompt else { return None };
        let message = conversation.messages.last().filter(|_| request.judges_turn)?;
        if message.role != Role::User {
            return None;
        }
        let words = message.text.trim_end_matches(may_follow_words);
        let last_word = words.split_whitespace().next_back()?.as_bytes();
        let end = tokens.iter().rposition(|&token| self.parts.tokens.ends(token))?;
        let bytes = |at: usize| self.parts.tokens.bytes(tokens[at]);
        let said: Vec<u8> = (0..end).flat_map(bytes).copied().collect();
        let words_end_min = said.len().saturating_sub(message.text.len() - words.len());
        let mut length = said.len();
        for at in (0..end).rev().filter(|at| !bytes(*at).is_empty()) {
            if said[..length].ends_with(last_word) {
                return Some(at);
            }
            length -= bytes(at).len();
            if length < words_end_min {
                break;
            }
        }
        None
    }

    fn echo(&self, request: &ChatRequest, tokens: &[u32]) -> Echo {
        let text = match &request.prompt {
            Prompt::Tokens(_) if request.echo => {
                let bytes: Vec<u8> = tokens
                    .iter()
                    .flat_map(|&token| self.parts.tokens.bytes(token))
                    .copied()
                    .collect();
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => None,
        };
        // The client did not write the BOS token.
        let is_marked = matches!(request.prompt, Prompt::Text(_))
            && tokens.first().is_some_and(|&first| self.parts.tokens.bytes(first).is_empty());
        let scored = request.echo && request.logprobs.is_some();
        Echo { text, scored_from: scored.then_some(usize::from(is_marked)) }
    }

    fn read(&self, request: &ChatRequest) -> Result<ReadPrompt, Refusal> {
        let plain = |tokens: Vec<u32>| ReadPrompt { tokens, ..ReadPrompt::default() };
        let read = match &request.prompt {
            Prompt::Chat(conversation) => self.read_chat(conversation, &request.thinking)?,
            Prompt::Text(text) => {
                plain(self.parts.tokenizer.tokenize(text, Beginning::Marked, Special::Meant))
            }
            Prompt::Tokens(tokens) => plain(self.known_tokens("prompt", tokens)?),
            Prompt::Infill { prefix, suffix } => plain(self.read_infill(prefix, suffix)?),
        };
        if read.tokens.is_empty() {
            // The first token needs a token before it.
            return Ok(plain(vec![self.parts.tokens.eos()]));
        }
        Ok(read)
    }

    fn read_chat(
        &self,
        conversation: &Conversation,
        thinking: &Thinking,
    ) -> Result<ReadPrompt, Refusal> {
        let template = self.parts.template.as_ref().ok_or(Refusal::NoTemplate)?;
        let asked = (conversation, thinking);
        let known = locked(&self.heavy).known(&asked);
        let now = jiff::Zoned::now().datetime();
        let rendered = match known {
            Some(error) => Err(error),
            None => template.render(conversation, thinking, now),
        };
        if let Err(error @ TemplateError::TooMuchMemory { .. }) = &rendered {
            locked(&self.heavy).remember(&asked, error.clone());
        }
        let rendered = rendered
            .map_err(|error| refused("messages", format!("do not suit the model: {error}")))?;
        let beginning = if rendered.has_bos { Beginning::Bare } else { Beginning::Marked };
        let tokens = self.parts.tokenizer.tokenize(&rendered.text, beginning, Special::Meant);
        Ok(ReadPrompt {
            tokens,
            starts_in_thinking: rendered.starts_in_thinking,
            is_within_answer: rendered.is_within_answer,
        })
    }

    fn read_infill(&self, prefix: &str, suffix: &str) -> Result<Vec<u32>, Refusal> {
        let Some([before, after, gap]) = self.parts.infill_marks else {
            return Err(refused("suffix", "needs a model that fills text in".to_owned()));
        };
        let bare = |text| self.parts.tokenizer.tokenize(text, Beginning::Bare, Special::Letters);
        Ok([vec![before], bare(prefix), vec![after], bare(suffix), vec![gap]].concat())
    }

    fn answering(
        &self,
        request: &ChatRequest,
        read: &ReadPrompt,
        (tokens_max, constraint): (u32, Option<Constraint>),
    ) -> Answering {
        let (conversation, dialect) = self.spoken(request).unzip();
        let parser = conversation.zip(dialect).map(|(conversation, dialect)| {
            let parser = AnswerParser::new(dialect, read.starts_in_thinking, offered(conversation));
            if read.is_within_answer { parser.within_answer() } else { parser }
        });
        let marks = dialect.and_then(|dialect| dialect.thinking);
        let mut sampler = Sampler::new(&request.sampling, &self.parts.defaults, random());
        if request.sampling.ignore_eos == Some(true) {
            sampler.avoid(self.parts.tokens.end_tokens());
        }
        let is_endless = request.tokens_max.is_none();
        Answering::new(AnswerPlan {
            tokens: Arc::clone(&self.parts.tokens),
            sampler: sampler.with_logprobs(request.logprobs),
            parser,
            stop: StopScanner::new(request.stop.clone()),
            tokens_max,
            thinking: self.thinking(&request.thinking, marks),
            constraint,
            call_id_prefix: format!("call_{:016x}{:06x}", random(), random() & 0xff_ffff),
            history: History::after_prompt(&read.tokens),
            scores_end: request.echo && request.logprobs.is_some(),
            repetition: is_endless.then(Repetition::default),
        })
    }

    /// The conversation and the dialect of its answer. `None` for plain texts.
    fn spoken<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> Option<(&'a Conversation, &'a ModelDialect)> {
        match &request.prompt {
            Prompt::Chat(conversation) => {
                Some((conversation, self.parts.template.as_ref()?.dialect()))
            }
            Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => None,
        }
    }

    /// The constraint of the answer, if it has one. The outer `None`: it must be compiled first.
    fn constraint(
        &self,
        request: &ChatRequest,
        tokens_max: u32,
        compile: Compile,
    ) -> Result<Option<Option<Constraint>>, Refusal> {
        let wanted = answer_rules(request, self.tool_dialect());
        let constraint = match compile {
            Compile::Now => self.constrainer.compile(&wanted, tokens_max).map(Some),
            Compile::Elsewhere => self.constrainer.ready(&wanted, tokens_max),
        };
        constraint.map_err(refusal)
    }

    pub(super) fn tool_dialect(&self) -> Option<&ToolDialect> {
        self.parts.template.as_ref().map(|template| &template.dialect().tools)
    }

    /// Whether the answer has a grammar that is not compiled yet.
    pub(super) fn must_compile(&self, request: &ChatRequest) -> bool {
        let wanted = answer_rules(request, self.tool_dialect());
        matches!(self.constrainer.ready(&wanted, u32::MAX), Ok(None))
    }

    pub(super) fn tokens(&self) -> &[Token] {
        self.parts.tokens.all()
    }

    fn thinking(&self, wished: &Thinking, marks: Option<ThinkingMarks>) -> ThinkingLimit {
        let Some(marks) = marks else { return ThinkingLimit::default() };
        let close =
            self.parts.tokenizer.tokenize(marks.forced_close, Beginning::Bare, Special::Meant);
        let of_effort = wished.effort.and_then(thinking_tokens_max);
        let asked = [wished.tokens_max, of_effort].into_iter().flatten().min();
        let tokens_max = asked.or(self.parts.thinking_tokens_max);
        ThinkingLimit { tokens_max, close }
    }
}

/// What a [`RequestReader`] is made of.
pub(super) struct RequestReaderParts {
    pub(super) tokenizer: Arc<dyn Tokenizer>,
    pub(super) tokens: Arc<TokenTable>,
    pub(super) template: Option<ChatTemplate>,
    pub(super) defaults: SamplerDefaults,
    pub(super) infill_marks: Option<[u32; 3]>,
    pub(super) context_tokens: u32,
    /// Limit of thinking, if the request has none.
    pub(super) thinking_tokens_max: Option<u32>,
    /// Limit of a whole answer, if the request has none.
    pub(super) answer_tokens_max: Option<u32>,
}

/// A prompt as the model reads it.
#[derive(Default)]
struct ReadPrompt {
    tokens: Vec<u32>,
    starts_in_thinking: bool,
    is_within_answer: bool,
}

/// Whether a transcriber may write this after the last word of a sentence that is complete.
fn may_follow_words(c: char) -> bool {
    c.is_whitespace() || ".?!…\"'”’»)]".contains(c) || is_full_stop(c)
}

/// Models often ignore the template's switch, so hob also enforces the effort as a token limit.
/// Each level allows four times as many tokens.
fn thinking_tokens_max(effort: Effort) -> Option<u32> {
    match effort {
        Effort::None => Some(0),
        Effort::Minimal => Some(128),
        Effort::Low => Some(512),
        Effort::Medium => Some(2048),
        Effort::High => Some(8192),
        Effort::XHigh | Effort::Max => None,
    }
}

fn offered(conversation: &Conversation) -> Option<ToolsOffered> {
    if conversation.tool_choice == ToolChoice::None || conversation.tools.is_empty() {
        return None;
    }
    let names = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
    // The grammar keeps each call valid from its first letter on, so its arguments can be sent as they are written.
    Some(ToolsOffered { names, delivery: ArgumentDelivery::Streamed })
}

/// What the answer must look like. Without `dialect`, it calls no tools.
pub(super) fn answer_rules<'a>(
    request: &'a ChatRequest,
    dialect: Option<&'a ToolDialect>,
) -> AnswerRules<'a> {
    let tools = match (&request.prompt, dialect) {
        (Prompt::Chat(conversation), Some(dialect)) => Some(ToolRules {
            tools: &conversation.tools,
            choice: &conversation.tool_choice,
            calls: if conversation.parallel_tool_calls {
                CallCount::Several
            } else {
                CallCount::One
            },
            dialect,
        }),
        _ => None,
    };
    AnswerRules { output: &request.output, strict: request.strict, tools }
}

/// The refusal of a request with a constraint that cannot be enforced.
pub(super) fn refusal(error: ConstraintError) -> Refusal {
    match error.into_model_error(ENGINE) {
        ModelError::InvalidField { field, reason } => refused(field, reason),
        other => refused("response_format", format!("cannot be enforced: {other}")),
    }
}

/// The sampling defaults in the model's file, where it has some.
fn sampler_defaults(llama: &Llama) -> SamplerDefaults {
    let number = |key: &str| {
        llama.header_text(&format!("general.sampling.{key}")).and_then(|text| text.parse().ok())
    };
    let defaults = SamplerDefaults::default();
    SamplerDefaults {
        temperature: number("temp").unwrap_or(defaults.temperature),
        top_k: number("top_k").map_or(defaults.top_k, |top_k: f32| top_k as u32),
        top_p: number("top_p").unwrap_or(defaults.top_p),
        min_p: number("min_p").unwrap_or(defaults.min_p),
        ..defaults
    }
}

pub(super) fn refused(field: &str, reason: String) -> Refusal {
    Refusal::Field { field: field.to_owned(), reason }
}

/// For ids, and for seeds that a request does not set. Different each time, but not secret.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
