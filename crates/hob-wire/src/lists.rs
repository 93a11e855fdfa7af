//! The lists from which clients fill their menus: models, audio models, voices.
//! `name` is always there: Open WebUI falls back to six voices of its own when one lacks it.

use hob_core::{ChatCard, ModelState, Voice};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::json;
use crate::responses::DeletedObject;
use crate::{ErrorBody, ErrorKind};

/// Clients want a date that never changes, and no file carries a truer one: the day of hob's first
/// release series, 2026-11-01.
const CREATED: u64 = 1_793_491_200;

/// A model as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelEntry {
    /// A name or an alias.
    pub id: String,
    pub state: ModelState,
    pub kind: ModelKind,
}

/// The kind of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    Speech,
    Transcription {
        /// Codes of the spoken languages that the model understands. Empty: not known.
        languages: Vec<String>,
    },
    Chat {
        context_tokens: u32,
        /// hob's own names of what the model can do.
        capabilities: Vec<&'static str>,
        /// Open WebUI may use it as a pipeline.
        is_team: bool,
    },
}

impl ModelKind {
    /// A chat model of another server, as far as that server describes it.
    pub fn elsewhere(context_tokens: Option<u32>) -> ModelKind {
        let context_tokens = context_tokens.unwrap_or_default();
        ModelKind::Chat { context_tokens, capabilities: Vec::new(), is_team: false }
    }

    pub fn of_chat(card: &ChatCard) -> ModelKind {
        let capabilities = [
            ("chat", card.template.is_some()),
            ("completion", true),
            ("embedding", true),
            ("tools", card.calls_tools),
            ("thinking", card.thinks),
            ("insert", card.infills),
            ("vision", card.sees),
        ];
        let able = capabilities.into_iter().filter(|(_, able)| *able);
        ModelKind::Chat {
            context_tokens: card.context_tokens,
            capabilities: able.map(|(name, _)| name).collect(),
            is_team: card.is_team,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            ModelKind::Speech => "speech",
            ModelKind::Transcription { .. } => "transcription",
            ModelKind::Chat { .. } => "chat",
        }
    }
}

/// The answer to a model's deletion.
pub fn deleted_model(id: &str) -> String {
    json(&DeletedObject { id, object: "model", deleted: true })
}

/// The answer of `GET /v1/models`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ModelList<'a> {
    object: &'static str,
    /// `true`: Open WebUI may use this server as Pipelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pipelines: Option<bool>,
    data: Vec<ListedModel<'a>>,
}

/// A model that requests may name.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ListedModel<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// Tokens of context, for chat models.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u32>,
    hob: ModelDetails<'a>,
    /// The id of a team.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// For teams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline: Option<PipelineKind>,
}

/// A team as a pipeline.
#[derive(JsonSchema, Serialize)]
struct PipelineKind {
    /// Always `pipe`.
    r#type: &'static str,
    /// Always `true`.
    valves: bool,
}

/// What hob adds to a model.
#[derive(JsonSchema, Serialize)]
struct ModelDetails<'a> {
    /// `speech`, `transcription` or `chat`.
    kind: &'static str,
    /// `warm`, `cold`, `loading` or `down`.
    state: &'static str,
    capabilities: &'a [&'static str],
    /// Codes of the spoken languages that a transcription model understands, if hob knows them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    languages: &'a [String],
}

/// The answer of `GET /v1/audio/models`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct AudioModels<'a> {
    models: Vec<AudioModel<'a>>,
}

/// A model that speaks.
#[derive(JsonSchema, Serialize)]
struct AudioModel<'a> {
    id: &'a str,
    name: &'a str,
}

/// The answer of `GET /v1/audio/voices`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct VoiceList<'a> {
    object: &'static str,
    voices: Vec<ListedVoice<'a>>,
}

/// The answer of `GET /v1/audio/voices?legacy=true`.
#[derive(JsonSchema, Serialize)]
struct VoiceIds<'a> {
    voices: Vec<&'a str>,
}

/// A voice whose language can be read aloud.
#[derive(JsonSchema, Serialize)]
struct ListedVoice<'a> {
    id: &'a str,
    name: &'a str,
    /// BCP 47 tag, such as `en-US`.
    language: &'static str,
    /// `female` or `male`.
    gender: &'static str,
}

/// The answer of `GET /ready`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Readiness<'a> {
    /// `ready`, `cold`, `loading` or `down`.
    status: &'static str,
    /// The default model, or the chat model that is ready.
    model: &'a str,
    ready_in_s: Option<f64>,
    /// Why the model does not answer yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// `GET /v1/models`.
pub fn models(entries: &[ModelEntry]) -> String {
    json(&model_list(entries, None))
}

/// `GET /v1/models` of a server that Open WebUI may use as Pipelines.
pub fn models_of_pipelines(entries: &[ModelEntry]) -> String {
    json(&model_list(entries, Some(true)))
}

fn model_list(entries: &[ModelEntry], pipelines: Option<bool>) -> ModelList<'_> {
    ModelList { object: "list", pipelines, data: entries.iter().map(wire_model).collect() }
}

/// `GET /v1/models/{id}`.
pub fn model(entry: &ModelEntry) -> String {
    json(&wire_model(entry))
}

/// `GET /v1/audio/models`.
pub fn audio_models(entries: &[ModelEntry]) -> String {
    let models = entries.iter().map(|ModelEntry { id, .. }| AudioModel { id, name: id });
    json(&AudioModels { models: models.collect() })
}

/// `GET /v1/audio/voices`.
pub fn voices<'a>(voices: impl IntoIterator<Item = &'a Voice>) -> String {
    json(&VoiceList { object: "list", voices: voices.into_iter().map(wire_voice).collect() })
}

/// `GET /v1/audio/voices?legacy=true`: names only, as older clients read them.
pub fn voice_ids<'a>(voices: impl IntoIterator<Item = &'a Voice>) -> String {
    json(&VoiceIds { voices: voices.into_iter().map(|voice| voice.id.as_str()).collect() })
}

/// `GET /ready`: the model that speaks by default, and what it waits for; as an error too, for
/// clients that read nothing else of a refusal.
pub fn readiness(model: &str, state: &ModelState) -> String {
    let (status, ready_in_s, why_not) = match state {
        ModelState::Ready => ("ready", None, None),
        ModelState::Cold => ("cold", None, Some("the model is not in memory yet".to_owned())),
        ModelState::Loading { ready_in } => {
            let seconds = ready_in.as_secs_f64();
            (
                "loading",
                Some(seconds),
                Some(format!("the model is loading, for about {seconds:.1} s")),
            )
        }
        ModelState::Down { reason } => {
            ("down", None, Some(format!("the model does not start: {reason}")))
        }
    };
    let error = why_not.map(|message| ErrorBody {
        message,
        kind: ErrorKind::Server,
        param: None,
        code: Some("model_not_ready"),
    });
    json(&Readiness { status, model, ready_in_s, error })
}

/// The word for a state, as the lists and the readiness answer use it.
pub fn state_name(state: &ModelState) -> &'static str {
    match state {
        ModelState::Ready => "warm",
        ModelState::Cold => "cold",
        ModelState::Loading { .. } => "loading",
        ModelState::Down { .. } => "down",
    }
}

fn wire_model(entry: &ModelEntry) -> ListedModel<'_> {
    let (context_length, capabilities, languages): (_, &[&'static str], &[String]) =
        match &entry.kind {
            ModelKind::Speech => (None, &["speech"], &[]),
            ModelKind::Transcription { languages } => (None, &["transcription"], languages),
            ModelKind::Chat { context_tokens, capabilities, .. } => {
                (Some(*context_tokens).filter(|tokens| *tokens > 0), capabilities, &[])
            }
        };
    let is_team = matches!(entry.kind, ModelKind::Chat { is_team: true, .. });
    ListedModel {
        id: &entry.id,
        object: "model",
        created: CREATED,
        owned_by: "hob",
        context_length,
        hob: ModelDetails {
            kind: entry.kind.name(),
            state: state_name(&entry.state),
            capabilities,
            languages,
        },
        name: is_team.then_some(entry.id.as_str()),
        pipeline: is_team.then_some(PipelineKind { r#type: "pipe", valves: true }),
    }
}

fn wire_voice(voice: &Voice) -> ListedVoice<'_> {
    ListedVoice {
        id: &voice.id,
        name: &voice.name,
        language: voice.language.tag(),
        gender: voice.gender.name(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::scripted::american_voice;

    use super::*;

    #[test]
    fn lists_are_as_clients_read_them() {
        let entries = [
            ModelEntry {
                id: "kokoro".to_owned(),
                state: ModelState::Ready,
                kind: ModelKind::Speech,
            },
            ModelEntry {
                id: "narrator".to_owned(),
                state: ModelState::Loading { ready_in: Duration::from_secs(1) },
                kind: ModelKind::Speech,
            },
        ];
        let whisper = ModelEntry {
            id: "whisper".to_owned(),
            state: ModelState::Cold,
            kind: ModelKind::Transcription { languages: vec!["en".to_owned(), "de".to_owned()] },
        };
        let heart = american_voice("af_heart");
        let down = ModelState::Down { reason: "no such file".to_owned() };
        let answers = [
            models(&entries),
            model(&entries[0]),
            model(&whisper),
            audio_models(&entries),
            voices([&heart]),
            voice_ids([&heart]),
            readiness("kokoro", &ModelState::Ready),
            readiness("kokoro", &ModelState::Cold),
            readiness("kokoro", &entries[1].state),
            readiness("kokoro", &down),
        ];
        insta::assert_snapshot!(answers.join("\n"), @r#"
        {"object":"list","data":[{"id":"kokoro","object":"model","created":1793491200,"owned_by":"hob","hob":{"kind":"speech","state":"warm","capabilities":["speech"]}},{"id":"narrator","object":"model","created":1793491200,"owned_by":"hob","hob":{"kind":"speech","state":"loading","capabilities":["speech"]}}]}
        {"id":"kokoro","object":"model","created":1793491200,"owned_by":"hob","hob":{"kind":"speech","state":"warm","capabilities":["speech"]}}
        {"id":"whisper","object":"model","created":1793491200,"owned_by":"hob","hob":{"kind":"transcription","state":"cold","capabilities":["transcription"],"languages":["en","de"]}}
        {"models":[{"id":"kokoro","name":"kokoro"},{"id":"narrator","name":"narrator"}]}
        {"object":"list","voices":[{"id":"af_heart","name":"Heart","language":"en-US","gender":"female"}]}
        {"voices":["af_heart"]}
        {"status":"ready","model":"kokoro","ready_in_s":null}
        {"status":"cold","model":"kokoro","ready_in_s":null,"error":{"message":"the model is not in memory yet","type":"server_error","param":null,"code":"model_not_ready"}}
        {"status":"loading","model":"kokoro","ready_in_s":1.0,"error":{"message":"the model is loading, for about 1.0 s","type":"server_error","param":null,"code":"model_not_ready"}}
        {"status":"down","model":"kokoro","ready_in_s":null,"error":{"message":"the model does not start: no such file","type":"server_error","param":null,"code":"model_not_ready"}}
        "#);
    }

    #[test]
    fn chat_models_say_what_they_can_and_how_much_they_hold() {
        let base = ChatCard { context_tokens: 2048, ..ChatCard::default() };
        let able = ChatCard {
            template: Some(String::new()),
            calls_tools: true,
            thinks: true,
            infills: true,
            ..base.clone()
        };
        let entry = |card| ModelEntry {
            id: "smol".to_owned(),
            state: ModelState::Cold,
            kind: ModelKind::of_chat(card),
        };
        insta::assert_snapshot!([model(&entry(&base)), model(&entry(&able))].join("\n"), @r#"
        {"id":"smol","object":"model","created":1793491200,"owned_by":"hob","context_length":2048,"hob":{"kind":"chat","state":"cold","capabilities":["completion","embedding"]}}
        {"id":"smol","object":"model","created":1793491200,"owned_by":"hob","context_length":2048,"hob":{"kind":"chat","state":"cold","capabilities":["chat","completion","embedding","tools","thinking","insert"]}}
        "#);
    }

    #[test]
    fn a_team_is_a_pipeline() {
        let card = ChatCard { is_team: true, ..ChatCard::default() };
        let team = ModelEntry {
            id: "builders".to_owned(),
            state: ModelState::Ready,
            kind: ModelKind::of_chat(&card),
        };
        insta::assert_snapshot!(models_of_pipelines(&[team]), @r#"{"object":"list","pipelines":true,"data":[{"id":"builders","object":"model","created":1793491200,"owned_by":"hob","hob":{"kind":"chat","state":"warm","capabilities":["completion","embedding"]},"name":"builders","pipeline":{"type":"pipe","valves":true}}]}"#);
    }

    #[test]
    fn every_state_has_its_word() {
        let down = ModelState::Down { reason: String::new() };
        assert_eq!((state_name(&ModelState::Cold), state_name(&down)), ("cold", "down"));
    }
}
