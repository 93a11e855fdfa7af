//! `POST /v1/realtime/client_secrets`: a short-lived secret that starts sessions, so that a page needs no key.
//! The answer has the session's settings as well.

use hob_core::realtime::RealtimeSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RealtimeDialect;
use super::merge::{changed, session_json};
use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::request_value::count_within;

/// Seconds that a secret is valid: OpenAI's bounds and default.
const SECONDS_MIN: u32 = 10;
const SECONDS_MAX: u32 = 7_200;
const SECONDS_DEFAULT: u32 = 600;

/// A parsed request for a secret.
#[derive(Clone, Debug, PartialEq)]
pub struct WireClientSecret {
    pub valid_s: u32,
    /// The settings of sessions that the secret starts.
    pub settings: RealtimeSettings,
}

/// What the server made.
#[derive(Clone, Debug)]
pub struct ClientSecret<'a> {
    pub value: &'a str,
    pub expires_unix_s: u64,
    pub session_id: &'a str,
    pub settings: &'a RealtimeSettings,
}

/// The fields of `POST /v1/realtime/client_secrets`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ClientSecretFields {
    /// How long the secret starts sessions.
    expires_after: Option<SecretLifetime>,
    /// Settings of the session, as in `session.update`.
    session: Option<Map<String, Value>>,
}

/// How long a secret starts sessions.
#[derive(Deserialize, JsonSchema)]
struct SecretLifetime {
    /// Always `created_at`.
    #[expect(dead_code, reason = "only checked: it has one value")]
    anchor: Option<SecretAnchor>,
    /// From 10 to 7200. Default: 600.
    #[serde(default, deserialize_with = "count_within::<_, SECONDS_MIN, SECONDS_MAX>")]
    seconds: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum SecretAnchor {
    CreatedAt,
}

/// A secret and the settings of its sessions.
#[derive(JsonSchema, Serialize)]
pub(crate) struct SecretAnswer<'a> {
    /// Sent like a key. It starts sessions until it expires.
    value: &'a str,
    /// Seconds since 1970.
    expires_at: u64,
    /// The settings, as in `session.created`.
    session: Map<String, Value>,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_client_secret(
    body: &[u8],
    defaults: &RealtimeSettings,
) -> Result<WireClientSecret, WireError> {
    // A request without a body wants the defaults.
    let mut fields = Fields::parse(if body.is_empty() { b"{}" } else { body })?;
    let sent: ClientSecretFields = fields.read()?;
    let settings = changed(defaults, sent.session.unwrap_or_default())
        .map_err(|error| error.within("session"))?;
    let seconds = sent.expires_after.and_then(|lifetime| lifetime.seconds);
    Ok(WireClientSecret { valid_s: seconds.unwrap_or(SECONDS_DEFAULT), settings })
}

impl ClientSecret<'_> {
    pub fn to_json(&self) -> String {
        json(&SecretAnswer {
            value: self.value,
            expires_at: self.expires_unix_s,
            session: session_object_of(self.settings, self.session_id, RealtimeDialect::Ga),
        })
    }
}

/// The whole session with its id, as events have it.
pub(super) fn session_object_of(
    settings: &RealtimeSettings,
    id: &str,
    dialect: RealtimeDialect,
) -> Map<String, Value> {
    let mut session = Map::from_iter([("id".to_owned(), id.into())]);
    let object = match settings.kind {
        hob_core::realtime::SessionKind::Conversation => "realtime.session",
        hob_core::realtime::SessionKind::Transcription => "realtime.transcription_session",
    };
    session.insert("object".to_owned(), object.into());
    if let Value::Object(all) = session_json(settings, dialect) {
        session.extend(all);
    }
    session
}
