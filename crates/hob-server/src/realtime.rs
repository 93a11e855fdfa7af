//! `GET /v1/realtime`: a spoken conversation over a WebSocket. This file opens sessions and makes secrets for pages.
//! `hob-voice` decides what follows what; `realtime/driver.rs` does it. Every stage takes the path of all answers.

mod driver;
mod outgoing;
mod pings;
mod recording;
mod stages;
mod turn_log;
mod warm_up;

use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, Query, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use hob_core::Chat;
use hob_core::realtime::{RealtimeSettings, SessionKind};
use hob_wire::{
    ClientSecret, RealtimeDialect, SOUND_BYTES_MAX, is_default_realtime_model, operations,
    parse_client_secret, parse_realtime_query,
};
use uuid::Uuid;

use self::driver::Opening;
use crate::api_error::ApiError;
use crate::context::{RequestContext, presented, subprotocols};
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::KeyRule;
use crate::headers::{JSON, answer_headers};
use crate::reloadable_state::ReloadableState;
use crate::request_body::{RequestGuards, read_command_up_to};
use crate::session_secrets::Secret;

/// The largest event: sound in base64, and some JSON around it.
const EVENT_BYTES_MAX: usize = SOUND_BYTES_MAX / 3 * 4 + (1 << 20);
/// The largest request for a secret, which keeps its settings. OpenAI allows 16,384 tokens of instructions and tools.
const SECRET_BYTES_MAX: usize = 128 << 10;

/// The only subprotocol that the server answers with. Others carry a key or the dialect.
const PROTOCOL: &str = "realtime";
const BETA_PROTOCOL: &[u8] = b"openai-beta.realtime-v1";
const BETA_HEADER: &str = "openai-beta";

pub(crate) fn routes(state: ReloadableState) -> Router {
    let open = move |request: Request| connect(state.clone(), request);
    let secrets =
        Router::new().at(&operations::CLIENT_SECRETS, create_secret).route_layer(KeyRule::Required);
    // A secret opens a session too, so this route checks its callers itself.
    Router::new().at(&operations::REALTIME, open).merge(secrets)
}

async fn connect(state: ReloadableState, request: Request) -> Result<Response, ApiError> {
    let (mut parts, _) = request.into_parts();
    let (context, defaults) = admit(&parts)?;
    let query = Query::<Vec<(String, String)>>::from_request_parts(&mut parts, &()).await;
    let Query(pairs) = query.map_err(|_| ApiError::PathNotUtf8)?;
    let settings = parse_realtime_query(&pairs, defaults)?;
    if settings.kind == SessionKind::Conversation {
        // A name that is wrong is refused with a status, before the upgrade.
        context.resolve::<Chat>(chat_name(&context, settings.model.clone()))?;
    }
    let dialect = dialect(&parts.headers);
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await;
    let upgrade = upgrade.map_err(|error| ApiError::NoWebSocket { detail: error.body_text() })?;
    let guards = RequestGuards::acquire(&context)?;
    let slot = context.services.sessions.enter()?;
    let id = format!("sess_{}", Uuid::now_v7().simple());
    let opening = Opening { context, guards, state, settings, dialect, id };
    let upgrade = upgrade
        .protocols([PROTOCOL])
        .max_message_size(EVENT_BYTES_MAX)
        .max_frame_size(EVENT_BYTES_MAX);
    Ok(upgrade.on_upgrade(move |socket| Box::pin(driver::converse(socket, opening, slot))))
}

/// A caller with a key or a secret, and the settings with which the session starts.
fn admit(parts: &Parts) -> Result<(RequestContext, RealtimeSettings), ApiError> {
    let context = RequestContext::of(&parts.extensions);
    let secrets = &context.services.secrets;
    let secret = presented(&parts.headers).and_then(|value| secrets.find(value));
    match secret {
        Some(Secret { key, settings, .. }) => Ok((context.on_behalf_of(key.as_deref())?, settings)),
        None => {
            context.check_key()?;
            Ok((context, RealtimeSettings::default()))
        }
    }
}

fn dialect(headers: &HeaderMap) -> RealtimeDialect {
    let header = headers.get(BETA_HEADER).and_then(|value| value.to_str().ok());
    let is_beta = header.is_some_and(|value| value.contains("realtime=v1"))
        || subprotocols(headers).any(|name| name == BETA_PROTOCOL);
    if is_beta { RealtimeDialect::Beta } else { RealtimeDialect::Ga }
}

/// OpenAI's names for realtime models mean the default chat model, unless a model here has the name.
fn chat_name(context: &RequestContext, asked: Option<String>) -> Option<String> {
    let is_here = |name: &str| context.registry().find::<Chat>(name).is_ok();
    asked.filter(|name| !is_default_realtime_model(name) || is_here(name))
}

async fn create_secret(request: Request) -> Result<Response, ApiError> {
    let parse = |body: &[u8]| parse_client_secret(body, &RealtimeSettings::default());
    let (context, body) = read_command_up_to(SECRET_BYTES_MAX, request, parse).await?;
    let valid = Duration::from_secs(body.valid_s.into());
    let key = context.caller.key().map(str::to_owned);
    let secrets = &context.services.secrets;
    let value = secrets.add(valid, key, body.settings.clone());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let id = format!("sess_{}", Uuid::now_v7().simple());
    let answer = ClientSecret {
        value: &value,
        expires_unix_s: (now + valid).as_secs(),
        session_id: &id,
        settings: &body.settings,
    };
    Ok((answer_headers(JSON), Bytes::from(answer.to_json())).into_response())
}
