//! Builds the gateway and the keys of the server from the configuration.
//! Errors name their position in the file. hob reports them before it uses any part of the file.

use std::collections::BTreeSet;
use std::sync::Arc;

use hob_core::scripted::{FixedChat, FixedTranscript, ScriptedSpeech};
use hob_core::{ChatModel, Registry, SpeechModel, TranscriptModel, task};
use hob_server::{KeyDigest, KeyOptions, check_keys};
use hob_upstream::{Gateway, GatewayError, UpstreamError};

use crate::app::{App, Reach};
use crate::config::{KeySection, LoadedConfig, quoted};
use crate::failure::{CliResult, Failure};
use crate::model_store::ModelStore;
use crate::printer::count_text;
use crate::settings::gateway::{gateway as gateway_settings, secret};
use crate::settings::{DevSettings, Environment, Secret};

use super::{add_other_names, unmeasured};

/// # Errors
/// The errors of [`crate::settings::gateway`], and names that lead nowhere.
pub(crate) fn gateway(
    written: &LoadedConfig,
    environment: &Environment,
    locals: &Registry,
    previous: Option<&Gateway>,
) -> CliResult<Gateway> {
    let options = gateway_settings(written, environment)?;
    Gateway::new(options, locals, previous).map_err(|error| placed(written, &error))
}

/// Minimum length of a key: 16 random characters cannot be guessed over a network.
const KEY_CHARS_MIN: usize = 16;

/// The key from the environment or the key file, and the keys of the configuration.
///
/// # Errors
/// A missing or too short secret, two equal keys, or a name that `is_known` does not know.
pub(crate) fn keys(
    written: &LoadedConfig,
    environment: &Environment,
    (of_server, reach): (Option<Secret>, Reach),
    is_known: impl Fn(&str) -> bool,
) -> CliResult<Vec<KeyOptions>> {
    if let Some(key) = &of_server {
        check_length(key, reach).map_err(|reason| too_short(format!("the API key {reason}")))?;
    }
    let digest = of_server.map(|key| KeyDigest::of(key.expose())).transpose();
    let digest = digest.map_err(Failure::usage)?;
    let mut keys: Vec<KeyOptions> =
        digest.into_iter().map(|digest| KeyOptions::new("default", digest)).collect();
    for (name, section) in &written.config.keys {
        let place = format!("keys.{}", quoted(name));
        let wrong = |key: &str, reason: String| {
            Failure::usage(format!("{}: {place}{key}: {reason}", written.place(&place)))
        };
        let digest = digest_of(&section.secret, (written, environment), reach);
        let digest = digest.map_err(|reason| wrong(".secret", reason))?;
        let unknown = section.aliases.iter().flatten().find(|alias| !is_known(alias));
        if let Some(unknown) = unknown {
            let reason = format!(
                "'{unknown}' is not the name of a model or an alias; a model of another server is called UPSTREAM/MODEL"
            );
            return Err(wrong(".aliases", reason));
        }
        keys.push(key(name, digest, section));
    }
    check_keys(&keys)
        .map_err(|clash| Failure::usage(format!("{}: {clash}", written.place("keys"))))?;
    Ok(keys)
}

fn key(name: &str, digest: KeyDigest, section: &KeySection) -> KeyOptions {
    KeyOptions {
        aliases: section.aliases.clone(),
        requests_per_minute: section.requests_per_minute,
        concurrency: section.concurrency,
        tokens_per_day: section.tokens_per_day,
        ..KeyOptions::new(name, digest)
    }
}

fn check_length(key: &Secret, reach: Reach) -> Result<(), String> {
    let chars = key.expose().chars().count();
    if reach == Reach::Loopback || chars >= KEY_CHARS_MIN {
        return Ok(());
    }
    Err(format!(
        "has {}, and on an address that other machines reach a key needs at least {KEY_CHARS_MIN}",
        count_text(chars, "character")
    ))
}

fn too_short(sentence: String) -> Failure {
    Failure::usage(sentence).hint("`openssl rand -hex 16` makes a key")
}

fn digest_of(
    source: &str,
    (written, environment): (&LoadedConfig, &Environment),
    reach: Reach,
) -> Result<KeyDigest, String> {
    if let Some(checksum) = source.strip_prefix("sha256:") {
        return KeyDigest::from_hex(checksum).map_err(|error| error.to_string());
    }
    let key = secret(source, written, environment)
        .map_err(|reason| reason.replace("file:PATH", "file:PATH, or sha256:CHECKSUM"))?;
    check_length(&key, reach)?;
    KeyDigest::of(key.expose()).map_err(|error| error.to_string())
}

/// Adds the position of the wrong table.
pub(crate) fn placed(written: &LoadedConfig, error: &GatewayError) -> Failure {
    let key = match error {
        GatewayError::Upstream(
            UpstreamError::NoUrl { name }
            | UpstreamError::BadUrl { name, .. }
            | UpstreamError::BadKey { name }
            | UpstreamError::NoClient { name, .. },
        ) => format!("upstream.{}", quoted(name)),
        GatewayError::UnknownTarget { alias, .. } | GatewayError::MixedKinds { alias, .. } => {
            format!("alias.{}.to", quoted(alias))
        }
        GatewayError::Cycle { names } => format!("alias.{}", quoted(&names[0])),
        GatewayError::NoTargets { alias }
        | GatewayError::TooDeep { alias, .. }
        | GatewayError::TooManyTargets { alias, .. } => format!("alias.{}", quoted(alias)),
        GatewayError::TooManyInAll { .. } => "alias".to_owned(),
        GatewayError::NameTaken { name } => format!("alias.{}", quoted(name)),
    };
    let failure = Failure::usage(format!("{}: {error}", written.place(&key)));
    match error {
        GatewayError::UnknownTarget { target, .. } if !target.contains('/') => failure.hint(
            "a model of this hob has to be on this disk: `hob models` lists them, `hob pull` fetches",
        ),
        _ => failure.hint("docs/reference/config.md says what each table takes"),
    }
}

/// The configuration's gateway without a server. Each of its servers is contacted once.
///
/// # Errors
/// See [`gateway`].
pub(crate) async fn looked_up(app: &App<'_>) -> CliResult<Gateway> {
    let gateway = gateway(&app.written, &app.environment, &placeholder_models(app), None)?;
    gateway.refresh_lists().await;
    Ok(gateway)
}

/// Placeholders with the names of the local models. Whether a model is installed is checked when it is served.
pub(crate) fn placeholder_models(app: &App<'_>) -> Registry {
    let own =
        [app.settings.chat.model.name()].into_iter().chain(app.settings.models.keys().cloned());
    let scripts = app.settings.dev.scripts.keys().cloned();
    let mut names: BTreeSet<String> = own.chain(scripts).collect();
    let store = ModelStore::open(app);
    let is_alias = |name: &String| app.written.config.alias.contains_key(name);
    names.extend(store.chat_names().into_iter().filter(|name| !is_alias(name)));
    let mut registry = Registry::default();
    for name in names {
        let model: Arc<dyn ChatModel> = Arc::new(FixedChat::default());
        registry.add(unmeasured::<task::Chat>(&name, model, 1));
    }
    let stored = store.forms_by_name();
    // An alias may have the name of a model that is not stored.
    let keeps_name = |name: &String| stored.contains_key(name) || !is_alias(name);
    let speech = store.stored_name(&app.settings.speech.model);
    if keeps_name(&speech) {
        let model: Arc<dyn SpeechModel> = Arc::new(ScriptedSpeech::new([]));
        registry.add(unmeasured::<task::Speech>(&speech, model, 1));
    }
    let hearing = app.settings.transcription.model.name();
    if keeps_name(&hearing) {
        let model: Arc<dyn TranscriptModel> = Arc::new(FixedTranscript);
        registry.add(unmeasured::<task::Transcription>(&hearing, model, 1));
    }
    add_other_names(&mut registry);
    registry
}

/// Whether models of other servers are served.
pub(crate) fn has_others(app: &App<'_>) -> bool {
    let config = &app.written.config;
    !config.alias.is_empty()
        || !config.upstream.is_empty()
        || app.settings.dev != DevSettings::default()
}

#[cfg(test)]
mod tests;
