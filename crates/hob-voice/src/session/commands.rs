//! What a client may ask for, and the errors it gets.
//! A request that fails changes neither settings nor items.

use std::time::Duration;

use hob_core::realtime::{
    ItemPlace, ItemStatus, RealtimeCommand, RealtimeEvent, RealtimeFault, RealtimeItem,
    RealtimeSettings, ResponseInput, ResponseOptions, ResponseStatus, SessionKind, StoppedBy,
    TurnDetector,
};

use super::VoiceSession;
use crate::faults::{in_command, in_field, invalid};
use crate::limits::{OUT_OF_BAND_MAX, TOOLS_MAX};
use crate::response::ResponsePlan;

impl VoiceSession {
    pub(super) fn take_command(&mut self, command: RealtimeCommand, event_id: Option<String>) {
        if let Err(fault) = self.obey(command) {
            let fault = RealtimeFault { client_event_id: event_id, ..fault };
            self.outbox.send(RealtimeEvent::Failed(fault));
        }
    }

    fn obey(&mut self, command: RealtimeCommand) -> Result<(), RealtimeFault> {
        let is_about_the_past = matches!(
            command,
            RealtimeCommand::TruncateItem { .. } | RealtimeCommand::RetrieveItem { .. }
        );
        if !is_about_the_past {
            self.interrupted = None;
        }
        match command {
            RealtimeCommand::Update(settings) => self.update(*settings),
            RealtimeCommand::CommitInput => self.commit_input(),
            RealtimeCommand::ClearInput => {
                self.clear_input();
                Ok(())
            }
            RealtimeCommand::CreateItem { item, place } => self.create_item(*item, &place),
            RealtimeCommand::RetrieveItem { id } => {
                let item = self.conversation.get(&id).cloned();
                let item = item.map_err(|fault| in_command(fault, "retrieve"))?;
                self.outbox.send(RealtimeEvent::ItemRetrieved { item });
                Ok(())
            }
            RealtimeCommand::TruncateItem { id, content_index, audio_end_ms } => {
                self.truncate_item(id, content_index, audio_end_ms)
            }
            RealtimeCommand::DeleteItem { id } => self.delete_item(id),
            RealtimeCommand::CreateResponse(options) => self.request_response(*options),
            RealtimeCommand::CancelResponse { id } => self.cancel_response(id),
            RealtimeCommand::ClearOutput => {
                self.interrupt(StoppedBy::Client);
                Ok(())
            }
        }
    }

    fn update(&mut self, settings: RealtimeSettings) -> Result<(), RealtimeFault> {
        check_tools(settings.tools.len())?;
        self.conversation.check_text(settings.instructions.len())?;
        self.check_voice(&settings)?;
        self.check_detector(&settings)?;
        self.drop_early_answer();
        let detected = self.settings().turn_detection.is_some();
        let detects = settings.turn_detection.is_some();
        self.options.settings = settings.clone();
        self.outbox.send(RealtimeEvent::SessionUpdated(Box::new(settings)));
        if detected != detects {
            self.change_detection();
        }
        self.warm_instructions();
        Ok(())
    }

    /// A listener would hear two speakers.
    fn check_voice(&self, settings: &RealtimeSettings) -> Result<(), RealtimeFault> {
        if self.playback.has_begun() && settings.voice != self.settings().voice {
            let message = "the voice cannot change after the assistant has spoken";
            return Err(invalid(
                "cannot_update_voice",
                message,
                Some("session.audio.output.voice"),
            ));
        }
        Ok(())
    }

    fn check_detector(&self, settings: &RealtimeSettings) -> Result<(), RealtimeFault> {
        let detector = settings.turn_detection.map(|detection| detection.detector);
        if matches!(detector, Some(TurnDetector::Semantic { .. })) && !self.options.judges_turns {
            let message = "semantic_vad needs the turn model, which this server has not loaded";
            let param = Some("session.audio.input.turn_detection.type");
            return Err(invalid("turn_model_missing", message, param));
        }
        Ok(())
    }

    fn create_item(
        &mut self,
        mut item: RealtimeItem,
        place: &ItemPlace,
    ) -> Result<(), RealtimeFault> {
        if item.id.is_empty() {
            item.id = self.outbox.new_id("item");
        } else if self.is_reserved(&item.id) {
            let message = format!("another item of the session has the id '{}'", item.id);
            return Err(invalid("item_already_exists", message, Some("item.id")));
        }
        item.status = ItemStatus::Completed;
        self.conversation.check_text(item.text().len() + self.settings().instructions.len())?;
        self.conversation.check_pictures(&item)?;
        self.conversation.insert(item.clone(), place)?;
        self.outbox.claim(&item.id);
        self.drop_early_answer();
        let previous_item_id = self.conversation.id_before(&item.id);
        let previous = previous_item_id.clone();
        self.outbox.send(RealtimeEvent::ItemAdded { item: item.clone(), previous_item_id });
        self.outbox.send(RealtimeEvent::ItemDone { item, previous_item_id: previous });
        Ok(())
    }

    /// Whether the turn in hand has this id, or an item of a response that may be outside the conversation.
    fn is_reserved(&self, id: &str) -> bool {
        let is_turn = self.turn.as_ref().is_some_and(|turn| turn.transcript.item_id == id);
        is_turn || self.responses.iter().any(|response| response.has_item(id))
    }

    pub(super) fn truncate_item(
        &mut self,
        id: String,
        content_index: usize,
        audio_end_ms: u64,
    ) -> Result<(), RealtimeFault> {
        if content_index != 0 {
            let message = format!("item '{id}' has one content, with index 0");
            return Err(invalid("invalid_value", message, Some("content_index")));
        }
        // OpenAI's agents SDK for Python stops its playback before it cancels the response.
        if self.active().is_some_and(|at| self.responses[at].spoken(&id).is_some()) {
            self.cut_at_end = Some((id, audio_end_ms));
            return Ok(());
        }
        self.check_at_rest(&id)?;
        self.conversation.truncate(&id, Duration::from_millis(audio_end_ms))?;
        self.drop_early_answer();
        self.playback.stop_item(&id, self.now);
        self.playback.forget(&id);
        self.outbox.send(RealtimeEvent::ItemTruncated { item_id: id, content_index, audio_end_ms });
        Ok(())
    }

    fn delete_item(&mut self, id: String) -> Result<(), RealtimeFault> {
        self.check_at_rest(&id)?;
        self.conversation.remove(&id)?;
        self.drop_early_answer();
        self.drop_transcript(&id);
        self.playback.forget(&id);
        self.outbox.send(RealtimeEvent::ItemDeleted { item_id: id });
        Ok(())
    }

    fn check_at_rest(&self, id: &str) -> Result<(), RealtimeFault> {
        if self.responses.iter().any(|response| response.has_item(id)) {
            let message = format!("item '{id}' belongs to a running response: cancel it first");
            return Err(invalid("item_in_progress", message, Some("item_id")));
        }
        Ok(())
    }

    fn request_response(&mut self, options: ResponseOptions) -> Result<(), RealtimeFault> {
        if self.settings().kind == SessionKind::Transcription {
            let message = "a transcription session has no responses";
            return Err(invalid("invalid_session_type", message, None));
        }
        self.check_free(options.is_out_of_band)?;
        let plan = self.plan_with(options)?;
        if !plan.is_out_of_band {
            self.drop_early_answer();
        }
        self.create_response(plan, None);
        Ok(())
    }

    fn check_free(&self, is_out_of_band: bool) -> Result<(), RealtimeFault> {
        let count = |out: bool| {
            self.responses.iter().filter(|response| response.plan.is_out_of_band == out).count()
        };
        if is_out_of_band && count(true) >= OUT_OF_BAND_MAX {
            let message =
                format!("{OUT_OF_BAND_MAX} responses outside the conversation are running");
            return Err(invalid("too_many_responses", message, None));
        }
        if !is_out_of_band && count(false) > 0 {
            let message = "the conversation already has an active response: wait or cancel it";
            return Err(invalid("conversation_already_has_active_response", message, None));
        }
        Ok(())
    }

    /// The session's settings with the response's own changes.
    fn plan_with(&self, options: ResponseOptions) -> Result<ResponsePlan, RealtimeFault> {
        let mut plan = self.plan();
        let settings = &mut plan.settings;
        settings.instructions = options.instructions.unwrap_or(settings.instructions.clone());
        settings.output = options.output.unwrap_or(settings.output);
        settings.voice = options.voice.or(settings.voice.take());
        settings.speech_model = options.speech_model.or(settings.speech_model.take());
        settings.speed = options.speed.unwrap_or(settings.speed);
        settings.output_encoding = options.output_encoding.unwrap_or(settings.output_encoding);
        settings.tools = options.tools.unwrap_or(std::mem::take(&mut settings.tools));
        settings.tool_choice = options.tool_choice.unwrap_or(settings.tool_choice.clone());
        settings.parallel_tool_calls =
            options.parallel_tool_calls.unwrap_or(settings.parallel_tool_calls);
        settings.tokens_max = options.tokens_max.unwrap_or(settings.tokens_max);
        settings.thinking = options.thinking.unwrap_or(settings.thinking);
        check_tools(settings.tools.len())?;
        let input = options.input.map(|input| {
            input.into_iter().map(|item| self.resolved(item)).collect::<Result<Vec<_>, _>>()
        });
        plan.input = input.transpose()?;
        plan.is_out_of_band = options.is_out_of_band;
        plan.metadata = options.metadata;
        Ok(plan)
    }

    fn resolved(&self, input: ResponseInput) -> Result<RealtimeItem, RealtimeFault> {
        match input {
            ResponseInput::Item(item) => Ok(item),
            ResponseInput::Reference(id) => {
                let item = self.conversation.get(&id).cloned();
                item.map_err(|fault| in_field(fault, "response.input"))
            }
        }
    }

    fn cancel_response(&mut self, id: Option<String>) -> Result<(), RealtimeFault> {
        let at = match &id {
            Some(id) => self.responses.iter().position(|response| response.id == *id),
            None => self.active(),
        };
        let Some(at) = at else {
            // Clients such as LiveKit's plugin know by these words that it is harmless.
            let message = "Cancellation failed: no active response found";
            return Err(invalid("response_cancel_not_active", message, Some("response_id")));
        };
        if self.responses[at].plan.is_out_of_band {
            self.responses[at].stop(ResponseStatus::Cancelled(StoppedBy::Client));
            self.publish(at);
        } else {
            self.interrupt(StoppedBy::Client);
        }
        Ok(())
    }
}

fn check_tools(tools: usize) -> Result<(), RealtimeFault> {
    if tools > TOOLS_MAX {
        let message = format!("{tools} tools, and the limit is {TOOLS_MAX}");
        return Err(invalid("too_many_tools", message, Some("tools")));
    }
    Ok(())
}
