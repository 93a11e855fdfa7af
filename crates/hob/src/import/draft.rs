//! What the `hob.toml` to be says, before it is written.
//! Only keys that an import can come to; hob's own types of them are much wider.

use std::fmt;

use hob_core::KvType;
use hob_core::chat::Effort;

use super::node::Node;
use super::secret::KeyPlace;

#[derive(Default)]
pub(super) struct Draft {
    pub(super) keys: Vec<ClientKey>,
    pub(super) chat: Option<Chat>,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) aliases: Vec<Alias>,
}

/// A key that clients send.
pub(super) struct ClientKey {
    pub(super) name: String,
    pub(super) secret: KeyPlace,
}

pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) kind: UpstreamKind,
    /// None for those whose address hob knows.
    pub(super) url: Option<String>,
    pub(super) key: Option<KeyPlace>,
    pub(super) connect: Option<Seconds>,
    pub(super) first_token: Option<Seconds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamKind {
    OpenAi,
    Ollama,
    Vllm,
    OpenRouter,
    Anthropic,
}

impl UpstreamKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            UpstreamKind::OpenAi => "openai",
            UpstreamKind::Ollama => "ollama",
            UpstreamKind::Vllm => "vllm",
            UpstreamKind::OpenRouter => "openrouter",
            UpstreamKind::Anthropic => "anthropic",
        }
    }
}

/// The model that hob itself runs.
#[derive(Clone, Default)]
pub(super) struct Chat {
    pub(super) model: String,
    pub(super) context_tokens: Option<u32>,
    pub(super) kv_type: Option<KvType>,
    pub(super) threads: Option<u16>,
    pub(super) parallel: Option<u16>,
    pub(super) batch_tokens: Option<u32>,
    pub(super) gpu_layers: Option<u16>,
    pub(super) keep_alive: Option<KeepAlive>,
    pub(super) load: Option<Load>,
    pub(super) thinking_tokens_max: Option<u32>,
    pub(super) requests_max: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Start,
    FirstRequest,
}

impl Load {
    pub(super) fn name(self) -> &'static str {
        match self {
            Load::Start => "start",
            Load::FirstRequest => "first_request",
        }
    }
}

#[derive(Clone, Default, PartialEq)]
pub(super) struct Alias {
    pub(super) name: String,
    pub(super) to: Vec<Target>,
    pub(super) pick: Pick,
    pub(super) effort: Option<Effort>,
    pub(super) first_token: Option<Seconds>,
    pub(super) total: Option<Seconds>,
    pub(super) retries: Option<u32>,
    pub(super) cooldown: Option<Seconds>,
    pub(super) keep_alive: Option<KeepAlive>,
}

impl Alias {
    /// A name that leads to others and changes nothing.
    pub(super) fn plain(name: &str, to: Vec<Target>) -> Alias {
        Alias { name: name.to_owned(), to, ..Alias::default() }
    }
}

/// How an alias chooses among its targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pick {
    #[default]
    Order,
    Warm,
    LeastWait,
    Weighted,
}

impl Pick {
    pub(super) fn name(self) -> &'static str {
        match self {
            Pick::Order => "order",
            Pick::Warm => "warm",
            Pick::LeastWait => "least-wait",
            Pick::Weighted => "weighted",
        }
    }
}

/// Parameters of requests, in the order in which they were written.
pub(super) type Parameters = Vec<(String, Node)>;

#[derive(Clone, Default, PartialEq)]
pub(super) struct Target {
    /// `upstream/model`, another alias, or the embedded model.
    pub(super) name: String,
    pub(super) context: Option<u32>,
    pub(super) set: Parameters,
    pub(super) drop: Vec<String>,
    pub(super) default: Parameters,
    pub(super) weight: Option<u32>,
}

impl Target {
    pub(super) fn plain(name: &str) -> Target {
        Target { name: name.to_owned(), ..Target::default() }
    }
}

/// A span of time; hob.toml takes whole seconds everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seconds(pub(super) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}

/// How long a model stays in memory after its last request; for ever is longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeepAlive {
    For(Seconds),
    Forever,
}

impl fmt::Display for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepAlive::For(Seconds(seconds)) => match seconds {
                seconds if *seconds > 0 && seconds.is_multiple_of(3600) => {
                    write!(f, "{}h", seconds / 3600)
                }
                seconds if *seconds > 0 && seconds.is_multiple_of(60) => {
                    write!(f, "{}m", seconds / 60)
                }
                seconds => write!(f, "{seconds}s"),
            },
            KeepAlive::Forever => f.write_str("forever"),
        }
    }
}
