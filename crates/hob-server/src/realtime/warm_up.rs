//! Loads every model of a session before its first event, all at the same time, so that the first turn waits for no load.
//! Models of other servers are asked only when the session uses them.

use std::sync::Arc;

use hob_core::realtime::{OutputModality, RealtimeSettings, SessionKind};
use hob_core::{
    Chat, ModelError, RegisteredModel, Speech, Transcription, TurnModel, VoiceDetector,
};

use super::chat_name;
use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::lifecycle::load_if_ours;
use crate::names::Named;

/// The models of turn taking of one session.
pub(super) struct WarmTurnTaking {
    pub(super) detector: Box<dyn VoiceDetector>,
    /// `None`: `semantic_vad` is an error.
    pub(super) turn_model: Option<Arc<dyn TurnModel>>,
}

/// # Errors
/// A model is missing, or does not load.
pub(super) async fn warm_up(
    context: &RequestContext,
    settings: &RealtimeSettings,
) -> Result<WarmTurnTaking, ApiError> {
    let turn_taking = context.options().turn_taking.as_ref();
    let turn_taking = turn_taking.ok_or(ModelError::NotBuilt { engine: "speech detection" })?;
    let detector = async { Ok::<_, ApiError>(turn_taking.voice_detector().await?) };
    let turn_model = async {
        let turn_model = turn_taking.turn_model().await.inspect_err(|error| {
            tracing::debug!(error = error.summary().as_str(), "no model judges turns");
        });
        Ok::<_, ApiError>(turn_model.ok())
    };
    let asked = settings.transcription.as_ref().and_then(|asked| asked.model.clone());
    let transcription = load::<Transcription>(context, asked);
    let answers = settings.kind == SessionKind::Conversation;
    let chat = async {
        match answers {
            true => load::<Chat>(context, chat_name(context, settings.model.clone())).await,
            false => Ok(()),
        }
    };
    let speech = async {
        match answers && settings.output == OutputModality::Audio {
            true => load::<Speech>(context, settings.speech_model.clone()).await,
            false => Ok(()),
        }
    };
    let (detector, turn_model, (), (), ()) =
        tokio::try_join!(detector, turn_model, transcription, chat, speech)?;
    Ok(WarmTurnTaking { detector, turn_model })
}

async fn load<T: Named>(context: &RequestContext, asked: Option<String>) -> Result<(), ApiError> {
    load_own(context, &context.resolve::<T>(asked)?.model).await
}

/// Loads a model, or the only target of an alias, if it is one of this hob.
///
/// # Errors
/// The load fails, or takes too long.
pub(super) async fn load_own<T: Named>(
    context: &RequestContext,
    model: &Arc<RegisteredModel<T>>,
) -> Result<(), ApiError> {
    let own = context.own_model(model);
    let lifecycle = own.as_ref().and_then(|own| own.lifecycle.as_ref());
    load_if_ours(lifecycle, None, context.options()).await
}
