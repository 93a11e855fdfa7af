//! The context of one request. The outermost layer makes it once: number, clock, caller, and the
//! configuration that was in force when the request arrived. All other layers use this context.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, header};
use hob_core::voice_blend::speaker;
use hob_core::{Registry, Trace, Voice};
use hob_wire::{own_voice, voice_among};
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::body_memory::BodyMemory;
use crate::in_flight::InFlight;
use crate::keys::{Caller, KeyDigest};
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::reloadable_state::Configuration;
use crate::response_store::ResponseStore;
use crate::session_secrets::Secrets;
use crate::session_slots::SessionSlots;

/// Number of hob servers that the request has passed through. Two that point at each other would forward it for ever.
const HOPS: HeaderName = HeaderName::from_static("x-hob-hops");
/// The agent that asks: `hob team` sends its name. The log has it, and scripted models look at it.
const AGENT: HeaderName = HeaderName::from_static("x-hob-agent");
/// Longest name of an agent in bytes.
const AGENT_BYTES_MAX: usize = 128;
/// Stands before the key in a subprotocol of a WebSocket.
const INSECURE_KEY: &[u8] = b"openai-insecure-api-key.";
/// The user agent of `hob bench`.
const BENCH: &[u8] = b"hob-bench/";

/// Everything that handlers need to know about a request. Clones share it.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) id: u64,
    /// When its headers were read.
    pub(crate) received_at: Instant,
    /// Whether the client calls itself `hob bench`.
    is_bench: bool,
    pub(crate) caller: Caller,
    credential: Credential,
    pub(crate) trace: Trace,
    pub(crate) config: Arc<Configuration>,
    pub(crate) services: Arc<Services>,
}

/// What hob knows of the key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credential {
    None,
    Unknown,
    Known,
    /// The default key of Pipelines, which is public.
    Public,
}

/// What all requests share and what does not change while the server runs.
pub(crate) struct Services {
    pub(crate) options: ServerOptions,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) bodies: BodyMemory,
    /// Cancelled when running answers must end with an error.
    pub(crate) cut_off: CancellationToken,
    /// Slots for realtime sessions.
    pub(crate) sessions: Arc<SessionSlots>,
    /// Secrets that open realtime sessions.
    pub(crate) secrets: Secrets,
    pub(crate) responses: ResponseStore,
}

impl Services {
    pub(crate) fn new(
        options: ServerOptions,
        metrics: Arc<Metrics>,
        cut_off: CancellationToken,
    ) -> Services {
        Services {
            metrics,
            in_flight: Arc::default(),
            bodies: BodyMemory::new(options.bodies_bytes_max),
            cut_off,
            sessions: Arc::new(SessionSlots::new(options.sessions_max)),
            secrets: Secrets::default(),
            responses: ResponseStore::default(),
            options,
        }
    }
}

impl RequestContext {
    pub(crate) fn new(
        id: u64,
        headers: &HeaderMap,
        config: Arc<Configuration>,
        services: Arc<Services>,
    ) -> RequestContext {
        let (caller, credential) = caller(&config, headers);
        let trace = Trace::begin(hops(headers));
        trace.note(|data| data.agent = agent(headers));
        RequestContext {
            id,
            received_at: Instant::now(),
            is_bench: is_bench(headers),
            caller,
            credential,
            trace,
            config,
            services,
        }
    }

    /// The context of a request that a realtime session makes for the same caller, with the configuration that is in
    /// force now.
    ///
    /// # Errors
    /// The caller's key is gone, or the caller has none and hob needs keys by now.
    pub(crate) fn for_next_request(
        &self,
        config: Arc<Configuration>,
    ) -> Result<RequestContext, ApiError> {
        let caller = caller_named(&config, self.caller.key())?;
        Ok(RequestContext {
            id: next_id(),
            received_at: Instant::now(),
            caller,
            trace: Trace::begin(self.trace.hops()),
            config,
            ..self.clone()
        })
    }

    /// This request, as if the holder of this key had sent it. `None`: a client without a key.
    ///
    /// # Errors
    /// The key is gone, or hob needs keys by now.
    pub(crate) fn on_behalf_of(self, key: Option<&str>) -> Result<RequestContext, ApiError> {
        let caller = caller_named(&self.config, key)?;
        Ok(RequestContext { caller, credential: Credential::Known, ..self })
    }

    /// The request log, unless `hob bench` sent this request. Requests of a key with a daily budget are always logged:
    /// after a restart, the log says how much of it is spent, and any client can call itself `hob bench`.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        let is_logged = !self.is_bench || self.caller.has_daily_budget();
        self.options().ledger.as_deref().filter(|_| is_logged)
    }

    pub(crate) fn of(extensions: &Extensions) -> RequestContext {
        RequestContext::within(extensions).clone()
    }

    /// The context of a request, without a copy.
    pub(crate) fn within(extensions: &Extensions) -> &RequestContext {
        extensions.get::<RequestContext>().expect("the outermost layer makes a context")
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.config.registry
    }

    /// The voice behind a name: a kept blend, or the name itself. Without a name, the default voice if it is a
    /// blend of these voices, else `None`: the model then takes its first voice, which is the default voice if it has it.
    pub(crate) fn voice(&self, voices: &[Voice], asked: Option<String>) -> Option<String> {
        let kept = &self.options().kept_voices;
        match asked {
            Some(name) => Some(kept.resolve(voices, name)),
            None => {
                let default = self.options().default_voice.clone();
                let default = default.filter(|name| voice_among(voices, name).is_none())?;
                let blend = own_voice(voices, &kept.resolve(voices, default));
                speaker(voices, &blend).is_ok().then_some(blend)
            }
        }
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.services.options
    }

    /// # Errors
    /// The server requires a key, and the request has none or an unknown one.
    pub(crate) fn check_key(&self) -> Result<(), ApiError> {
        match self.credential {
            _ if !self.config.keys.are_required() => Ok(()),
            Credential::Known => Ok(()),
            Credential::Unknown | Credential::Public => Err(ApiError::WrongKey),
            Credential::None => Err(ApiError::NoKey),
        }
    }

    /// Checks the key for lists and chats, which also take the default key of Pipelines if the configuration says so.
    ///
    /// # Errors
    /// See [`RequestContext::check_key`].
    pub(crate) fn check_chat_key(&self) -> Result<(), ApiError> {
        match self.credential {
            Credential::Public if self.options().accepts_default_key => Ok(()),
            _ => self.check_key(),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for RequestContext {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &S,
    ) -> Result<RequestContext, std::convert::Infallible> {
        Ok(RequestContext::of(&parts.extensions))
    }
}

fn caller(config: &Configuration, headers: &HeaderMap) -> (Caller, Credential) {
    let keys = &config.keys;
    let Some(presented) = presented(headers).filter(|_| keys.are_required()) else {
        return (Caller::default(), Credential::None);
    };
    let presented = KeyDigest::of_bytes(presented);
    let holder = keys.holder(&presented);
    let credential = match (holder, presented.is_default()) {
        (_, true) => Credential::Public,
        (Some(_), false) => Credential::Known,
        (None, false) => Credential::Unknown,
    };
    (Caller::new(holder, &config.registry), credential)
}

/// The holder of the key with this name, or a client without a key.
fn caller_named(config: &Configuration, key: Option<&str>) -> Result<Caller, ApiError> {
    let holder = key.map(|name| config.keys.named(name).ok_or(ApiError::WrongKey)).transpose()?;
    if holder.is_none() && config.keys.are_required() {
        return Err(ApiError::NoKey);
    }
    Ok(Caller::new(holder, &config.registry))
}

/// The key, in OpenAI's header, else in Anthropic's, else in Azure's, else among the subprotocols of a WebSocket, which
/// are all that a page can choose.
pub(crate) fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    const BARE: [HeaderName; 2] =
        [HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];
    let bare = || BARE.iter().find_map(|name| headers.get(name));
    bearer(headers)
        .or_else(|| bare().map(|value: &HeaderValue| value.as_bytes().trim_ascii()))
        .or_else(|| subprotocols(headers).find_map(|name| name.strip_prefix(INSECURE_KEY)))
}

/// The subprotocols that a WebSocket's client offers.
pub(crate) fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| key.trim_ascii())
}

fn hops(headers: &HeaderMap) -> u32 {
    let hops = headers.get(HOPS).and_then(|hops| hops.to_str().ok()?.parse().ok());
    hops.unwrap_or(0)
}

fn agent(headers: &HeaderMap) -> Option<String> {
    let agent = headers.get(AGENT)?.to_str().ok()?;
    (agent.len() <= AGENT_BYTES_MAX).then(|| agent.to_owned())
}

fn is_bench(headers: &HeaderMap) -> bool {
    headers.get(header::USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(BENCH))
}

/// The number of a new request.
pub(crate) fn next_id() -> u64 {
    static LAST_ID: AtomicU64 = AtomicU64::new(0);
    LAST_ID.fetch_add(1, Ordering::Relaxed) + 1
}
