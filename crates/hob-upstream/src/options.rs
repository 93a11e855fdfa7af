//! The settings of a gateway: servers, aliases, time limits. Defaults are filled in before they come here.
//! Kinds of servers differ in paths, in parameters for thinking, and in what their lists contain.

use std::time::Duration;

use hob_core::routing::{FIRST_COOL_DOWN, Strategy};
use hob_wire::{Parameters, UpstreamDialect};

use crate::Secret;

/// How long a request waits for a target while the circuit breakers of all targets are open.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);
/// Attempts of one request, over all targets.
pub const ATTEMPTS_MAX: u32 = 4;

/// All other servers, and all aliases.
#[derive(Clone, Debug, Default)]
pub struct GatewayOptions {
    pub upstreams: Vec<UpstreamOptions>,
    pub aliases: Vec<AliasOptions>,
    /// Time limits of local models, where their aliases set none.
    pub timeouts: AttemptTimeouts,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamOptions {
    pub name: String,
    pub kind: UpstreamKind,
    /// With or without `/v1`.
    pub url: String,
    pub key: Option<Secret>,
    pub timeouts: AttemptTimeouts,
    /// Requests that it processes at the same time; `None`: no limit.
    pub slots: Option<usize>,
    /// Requests that wait for a slot.
    pub queue_max: usize,
    /// Its models are listed as `NAME/model`.
    pub is_listed: bool,
    /// Ollama's context length, the same for all requests: a change would reload the model.
    pub num_ctx: Option<u32>,
}

/// An alias and its targets.
#[derive(Clone, Debug)]
pub struct AliasOptions {
    pub name: String,
    pub targets: Vec<TargetOptions>,
    pub strategy: Strategy,
    /// Parameters for all targets. Each target's own parameters are applied after them.
    pub parameters: Parameters,
    pub timeouts: AttemptTimeouts,
    pub fallback_until: FallbackUntil,
    pub on_interruption: OnInterruption,
    pub while_loading: WhileLoading,
    /// How long a request waits for a target while the circuit breakers of all targets are open.
    pub queue_timeout: Duration,
    /// Attempts of one request.
    pub attempts_max: u32,
    /// How long a circuit breaker stays open. The time doubles with each further failure.
    pub cool_down: Duration,
    /// When to ask the next target in parallel, if the first has sent no content.
    pub hedge_after: Option<Duration>,
}

/// A target of an alias: `upstream/model`, a local model, or another alias.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    pub name: String,
    pub parameters: Parameters,
    /// Its context length, where the configuration knows better than the server.
    pub context_tokens: Option<u32>,
    /// Its abilities, out of `tools`, `images`, `json_schema`, `embeddings`; `None`: all.
    pub capabilities: Option<Vec<String>>,
    /// If the target is an alias: the weight of all its targets together.
    pub weight: f64,
}

impl UpstreamOptions {
    /// A server without a key or limits. Its models are not listed.
    pub fn plain(name: &str, kind: UpstreamKind, url: &str) -> UpstreamOptions {
        UpstreamOptions {
            name: name.to_owned(),
            kind,
            url: url.to_owned(),
            key: None,
            timeouts: AttemptTimeouts::default(),
            slots: None,
            queue_max: 0,
            is_listed: false,
            num_ctx: None,
        }
    }
}

impl AliasOptions {
    /// An alias of one target, with all defaults.
    pub fn plain(name: &str) -> AliasOptions {
        AliasOptions {
            name: name.to_owned(),
            targets: vec![TargetOptions::plain(name)],
            strategy: Strategy::Order,
            parameters: Parameters::default(),
            timeouts: AttemptTimeouts::default(),
            fallback_until: FallbackUntil::FirstToken,
            on_interruption: OnInterruption::Error,
            while_loading: WhileLoading::Next,
            queue_timeout: QUEUE_TIMEOUT,
            attempts_max: ATTEMPTS_MAX,
            cool_down: FIRST_COOL_DOWN,
            hedge_after: None,
        }
    }
}

impl TargetOptions {
    pub fn plain(name: &str) -> TargetOptions {
        TargetOptions {
            name: name.to_owned(),
            parameters: Parameters::default(),
            context_tokens: None,
            capabilities: None,
            weight: 1.0,
        }
    }
}

/// Time limits of an attempt; `None`: the target's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptTimeouts {
    pub connect: Option<Duration>,
    pub first_token: Option<Duration>,
    pub idle: Option<Duration>,
    pub total: Option<Duration>,
    pub load: Option<Duration>,
}

impl AttemptTimeouts {
    /// Takes limits from `others` where these have none.
    #[must_use]
    pub fn or(self, others: AttemptTimeouts) -> AttemptTimeouts {
        AttemptTimeouts {
            connect: self.connect.or(others.connect),
            first_token: self.first_token.or(others.first_token),
            idle: self.idle.or(others.idle),
            total: self.total.or(others.total),
            load: self.load.or(others.load),
        }
    }

    /// The default limits for a server in the local network, and for any other.
    pub(crate) fn defaults(is_local: bool) -> AttemptTimeouts {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        AttemptTimeouts {
            connect: seconds(if is_local { 1 } else { 5 }),
            first_token: seconds(if is_local { 45 } else { 60 }),
            idle: seconds(30),
            total: seconds(600),
            load: seconds(300),
        }
    }
}

/// How long hob can fall back to another target. Before this point the client receives nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FallbackUntil {
    /// The first token, thinking included.
    #[default]
    FirstToken,
    /// The first token of the answer itself.
    FirstContent,
}

/// What happens when an answer breaks off after its first part was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterruption {
    /// The client gets an error.
    #[default]
    Error,
    /// The same target is asked for the rest, where it can continue an answer.
    Continue,
}

/// What happens to a request while the model that it needs is being loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhileLoading {
    /// The next target is asked, or the client gets an error with `Retry-After`.
    #[default]
    Next,
    /// It waits, if no loaded target answers.
    Wait,
}

hob_core::enum_table! {
    /// The software of a server.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum UpstreamKind: name or UnknownUpstreamKind("a kind of upstream") {
        /// Unknown. hob detects it by requesting paths that only one kind has.
        #[default]
        Auto = "auto",
        OpenAi = "openai",
        Ollama = "ollama",
        LlamaServer = "llama-server",
        Vllm = "vllm",
        Sglang = "sglang",
        Tabby = "tabby",
        OpenRouter = "openrouter",
        Anthropic = "anthropic",
        Hob = "hob",
    }
}

impl UpstreamKind {
    /// The URL that is used if the configuration has none.
    pub fn url(self) -> Option<&'static str> {
        match self {
            UpstreamKind::OpenAi => Some("https://api.openai.com/v1"),
            UpstreamKind::OpenRouter => Some("https://openrouter.ai/api/v1"),
            UpstreamKind::Anthropic => Some("https://api.anthropic.com"),
            UpstreamKind::Ollama => Some("http://127.0.0.1:11434"),
            UpstreamKind::Auto
            | UpstreamKind::LlamaServer
            | UpstreamKind::Vllm
            | UpstreamKind::Sglang
            | UpstreamKind::Tabby
            | UpstreamKind::Hob => None,
        }
    }

    /// Whether a server of this kind continues an answer that broke off, when it gets the beginning back as
    /// the last assistant message. The other kinds begin a new answer.
    pub fn continues(self) -> bool {
        match self {
            // Unless it was started with --no-prefill-assistant; not while it thinks.
            UpstreamKind::LlamaServer
            // `continue_final_message`
            | UpstreamKind::Vllm
            | UpstreamKind::Sglang
            // `response_prefix`
            | UpstreamKind::Tabby
            | UpstreamKind::Ollama
            // If the model does; OpenAI's models do not.
            | UpstreamKind::OpenRouter
            // Models before 4.6.
            | UpstreamKind::Anthropic => true,
            UpstreamKind::Auto | UpstreamKind::OpenAi | UpstreamKind::Hob => false,
        }
    }

    /// Whether hob sends speech and transcription requests to a server of this kind.
    pub(crate) fn has_audio(self) -> bool {
        match self {
            UpstreamKind::Ollama | UpstreamKind::Anthropic => false,
            UpstreamKind::Auto
            | UpstreamKind::OpenAi
            | UpstreamKind::LlamaServer
            | UpstreamKind::Vllm
            | UpstreamKind::Sglang
            | UpstreamKind::Tabby
            | UpstreamKind::OpenRouter
            | UpstreamKind::Hob => true,
        }
    }

    /// Whether hob sends parameters that it does not know to a server of this kind.
    pub(crate) fn takes_unknown(self) -> bool {
        match self {
            UpstreamKind::Ollama | UpstreamKind::Anthropic | UpstreamKind::Hob => false,
            UpstreamKind::Auto
            | UpstreamKind::OpenAi
            | UpstreamKind::LlamaServer
            | UpstreamKind::Vllm
            | UpstreamKind::Sglang
            | UpstreamKind::Tabby
            | UpstreamKind::OpenRouter => true,
        }
    }

    /// The dialect of OpenAI-style requests. `chat.rs` writes chat requests for Ollama and Anthropic separately.
    pub(crate) fn dialect(self) -> UpstreamDialect {
        match self {
            UpstreamKind::Hob => UpstreamDialect::Hob,
            UpstreamKind::LlamaServer => UpstreamDialect::LlamaServer,
            UpstreamKind::Vllm | UpstreamKind::Sglang => UpstreamDialect::Vllm,
            UpstreamKind::Tabby => UpstreamDialect::Tabby,
            UpstreamKind::OpenRouter => UpstreamDialect::OpenRouter,
            UpstreamKind::Auto
            | UpstreamKind::OpenAi
            | UpstreamKind::Ollama
            | UpstreamKind::Anthropic => UpstreamDialect::OpenAi,
        }
    }
}
