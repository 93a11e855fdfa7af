//! What a gateway is told: servers, aliases, times. Settled elsewhere, nothing optional that has a default.
//! The kinds of servers differ in paths, in words for thinking, and in what they say of themselves.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use hob_core::routing::{Pick, REST_FIRST};
use hob_wire::{Parameters, UpstreamDialect};

use crate::Secret;

/// How long a request waits for a target that rests, if all do.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Attempts of one request, on whichever target.
pub const ATTEMPTS_MAX: u32 = 4;

/// Everything that lives elsewhere, and every alias.
#[derive(Clone, Debug, Default)]
pub struct GatewayOptions {
    pub upstreams: Vec<UpstreamOptions>,
    pub aliases: Vec<AliasOptions>,
    /// Of models of our own, where their aliases say nothing.
    pub clocks: Clocks,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamOptions {
    pub name: String,
    pub kind: UpstreamKind,
    /// With or without `/v1`.
    pub url: String,
    pub key: Option<Secret>,
    pub clocks: Clocks,
    /// Requests that it works on at once; none: as many as come.
    pub slots: Option<usize>,
    /// Requests that wait for a slot.
    pub queue_max: usize,
    /// Its models are listed as `NAME/model`.
    pub is_listed: bool,
    /// Ollama's context length, the same for all requests: another one would load the model anew.
    pub num_ctx: Option<u32>,
}

/// A name, and who answers to it.
#[derive(Clone, Debug)]
pub struct AliasOptions {
    pub name: String,
    pub targets: Vec<TargetOptions>,
    pub pick: Pick,
    /// For all targets, before their own.
    pub parameters: Parameters,
    pub clocks: Clocks,
    pub commit: Commit,
    pub on_break: OnBreak,
    pub while_loading: WhileLoading,
    /// How long a request waits for a target that rests, if all do.
    pub patience: Duration,
    /// Attempts of one request.
    pub attempts_max: u32,
    /// How long a target rests after failures, the first time; then twice as long, and so on.
    pub rest: Duration,
    /// When to ask the next target too, if the first has said nothing.
    pub hedge_after: Option<Duration>,
}

/// One that answers for an alias: `upstream/model`, an embedded model, or another alias.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    pub name: String,
    pub parameters: Parameters,
    /// Tokens that it holds, where somebody knows better than it says.
    pub context_tokens: Option<u32>,
    /// What it can do, of `tools`, `images`, `json_schema`, `embeddings`; none: all.
    pub capabilities: Option<Vec<String>>,
    /// Of all the targets of an alias together, if this is one.
    pub weight: f64,
}

impl AliasOptions {
    /// A name that leads to one target as it is.
    pub fn plain(name: &str) -> AliasOptions {
        AliasOptions {
            name: name.to_owned(),
            targets: vec![TargetOptions::plain(name)],
            pick: Pick::Order,
            parameters: Parameters::default(),
            clocks: Clocks::default(),
            commit: Commit::First,
            on_break: OnBreak::Error,
            while_loading: WhileLoading::Next,
            patience: PATIENCE,
            attempts_max: ATTEMPTS_MAX,
            rest: REST_FIRST,
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

/// How long each part of an attempt may take; none: the target's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    pub connect: Option<Duration>,
    pub first_token: Option<Duration>,
    pub idle: Option<Duration>,
    pub total: Option<Duration>,
    pub load: Option<Duration>,
}

impl Clocks {
    /// These, and where they say nothing, those.
    #[must_use]
    pub fn or(self, others: Clocks) -> Clocks {
        Clocks {
            connect: self.connect.or(others.connect),
            first_token: self.first_token.or(others.first_token),
            idle: self.idle.or(others.idle),
            total: self.total.or(others.total),
            load: self.load.or(others.load),
        }
    }

    /// Of a server on this machine or its network, and of one far away.
    pub(crate) fn defaults(is_local: bool) -> Clocks {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        Clocks {
            connect: seconds(if is_local { 1 } else { 5 }),
            first_token: seconds(if is_local { 45 } else { 60 }),
            idle: seconds(30),
            total: seconds(600),
            load: seconds(300),
        }
    }
}

/// From when on an answer is the client's, and no other target is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    /// Thinking counts.
    #[default]
    First,
    /// Only what is no thinking counts.
    Content,
}

/// What becomes of an answer that breaks off when it is the client's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBreak {
    /// The client hears of it.
    #[default]
    Error,
    /// The same target is asked for the rest, where it can go on with what it said.
    Continue,
}

/// What becomes of a request while the model it needs is being loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhileLoading {
    /// The next target, or word when to come back.
    #[default]
    Next,
    /// It waits, if nobody who is warm answers.
    Wait,
}

/// What a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamKind {
    /// It is asked what it is, once.
    #[default]
    Auto,
    OpenAi,
    Ollama,
    LlamaServer,
    Vllm,
    Sglang,
    Tabby,
    OpenRouter,
    Anthropic,
    Hob,
}

impl UpstreamKind {
    pub const ALL: [UpstreamKind; 10] = [
        UpstreamKind::Auto,
        UpstreamKind::OpenAi,
        UpstreamKind::Ollama,
        UpstreamKind::LlamaServer,
        UpstreamKind::Vllm,
        UpstreamKind::Sglang,
        UpstreamKind::Tabby,
        UpstreamKind::OpenRouter,
        UpstreamKind::Anthropic,
        UpstreamKind::Hob,
    ];

    pub fn name(self) -> &'static str {
        match self {
            UpstreamKind::Auto => "auto",
            UpstreamKind::OpenAi => "openai",
            UpstreamKind::Ollama => "ollama",
            UpstreamKind::LlamaServer => "llama-server",
            UpstreamKind::Vllm => "vllm",
            UpstreamKind::Sglang => "sglang",
            UpstreamKind::Tabby => "tabby",
            UpstreamKind::OpenRouter => "openrouter",
            UpstreamKind::Anthropic => "anthropic",
            UpstreamKind::Hob => "hob",
        }
    }

    /// Where it is, when nobody says.
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

    /// Whether a server of this kind goes on with an answer that broke off, when that is handed back to it
    /// as what the assistant said last. To the others that turn is over, and they begin another one.
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
            // As far as the model does; those of OpenAI's do not.
            | UpstreamKind::OpenRouter
            // Models before 4.6.
            | UpstreamKind::Anthropic => true,
            UpstreamKind::Auto | UpstreamKind::OpenAi | UpstreamKind::Hob => false,
        }
    }

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

impl fmt::Display for UpstreamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no kind of upstream; known are {}", UpstreamKind::ALL.map(UpstreamKind::name).join(", "))]
pub struct UnknownKind {
    name: String,
}

impl FromStr for UpstreamKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<UpstreamKind, UnknownKind> {
        let known = UpstreamKind::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownKind { name: name.to_owned() })
    }
}
