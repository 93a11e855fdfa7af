//! Loads every model of a session before its first event, so that the first turn waits for no load.
//! Models of other servers are asked only when the session uses them.

use std::sync::Arc;

use hob_core::realtime::{OutputModality, RealtimeSettings, SessionKind};
use hob_core::{Chat, ModelError, Speech, Transcription, TurnModel, VoiceDetector};

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
    let turn_taking = context.services.realtime.turn_taking.as_ref();
    let turn_taking = turn_taking.ok_or(ModelError::NotBuilt { engine: "speech detection" })?;
    let detector = turn_taking.voice_detector().await?;
    let turn_model = turn_taking.turn_model().await.inspect_err(|error| {
        tracing::debug!(error = error.summary().as_str(), "no model judges turns");
    });
    let asked = settings.transcription.as_ref().and_then(|asked| asked.model.clone());
    load::<Transcription>(context, asked).await?;
    if settings.kind == SessionKind::Conversation {
        load::<Chat>(context, chat_name(context, settings.model.clone())).await?;
        if settings.output == OutputModality::Audio {
            load::<Speech>(context, settings.speech_model.clone()).await?;
        }
    }
    Ok(WarmTurnTaking { detector, turn_model: turn_model.ok() })
}

async fn load<T: Named>(context: &RequestContext, asked: Option<String>) -> Result<(), ApiError> {
    let resolved = context.resolve::<T>(asked)?;
    load_if_ours(resolved.model.lifecycle.as_ref(), None, context.limits()).await
}
