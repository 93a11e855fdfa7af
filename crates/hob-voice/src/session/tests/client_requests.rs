//! What clients do at moments that the script of a whole conversation does not have.

use hob_core::ModelError;
use hob_core::chat::{Prompt, Role};
use hob_core::realtime::{
    ItemBody, ItemContent, ItemPlace, ItemStatus, RealtimeCommand, RealtimeEvent, RealtimeItem,
    ResponseInput, ResponseOptions, ResponseUsage, SessionKind,
};

use super::Script;
use super::scenarios::{idle_after_5_s, manual, respond, text_item};
use crate::limits::PICTURE_BYTES_MAX;
use crate::session::{SessionEffect, SessionInput};

/// A message with one content.
fn message(id: &str, content: ItemContent, place: ItemPlace) -> RealtimeCommand {
    let body = ItemBody::Message { role: Role::User, content: vec![content] };
    let (id, status) = (id.to_owned(), ItemStatus::Completed);
    let item = RealtimeItem { id, status, body, reasoning: None };
    RealtimeCommand::CreateItem { item: Box::new(item), place }
}

/// Asks for a response outside the conversation that reads one item.
fn read(id: &str) -> RealtimeCommand {
    let input = Some(vec![ResponseInput::Reference(id.to_owned())]);
    let options = ResponseOptions { is_out_of_band: true, input, ..ResponseOptions::default() };
    RealtimeCommand::CreateResponse(Box::new(options))
}

/// The client asks for an answer to a turn that the session has ended, while its text is still to come.
#[test]
fn a_turn_is_answered_once_although_its_client_asks_for_the_answer_too() {
    let mut script = Script::new(|_| {});
    script.speak(20).silence(16).command(respond()).heard_text(1, " Hello");
    script.write(2, "Good morning.").finish(2).sound(3, 500).end_speech(3);
    assert_eq!(script.last(), "resp_2 Completed");
    // An answer to something else does not replace it.
    let mut script = Script::new(|_| {});
    let options = ResponseOptions { input: Some(Vec::new()), ..ResponseOptions::default() };
    script.speak(20).silence(16).respond_with(options);
    script.heard_text(1, " Hello").write(2, "Welcome.").finish(2).sound(3, 500).end_speech(3);
    assert_eq!(script.last(), "start chat 4 [user: Hello | assistant: Welcome.]");
    // It waits also for a turn that ends after the request.
    let mut script = Script::new(|options| {
        let detection = options.settings.turn_detection.as_mut().expect("server_vad");
        detection.interrupts_response = false;
    });
    script.speak(20).silence(16).command(respond()).speak(20).silence(16);
    script.heard_text(1, " Hello").heard_text(2, " Ann");
    script.write(3, "Good morning.").finish(3).sound(4, 500).end_speech(4);
    assert_eq!(script.last(), "resp_2 Completed");
}

#[test]
fn a_turn_is_answered_although_the_answer_that_its_client_asked_for_fails_with_another_turn() {
    for first in [1, 2] {
        let mut script = Script::new(|_| {});
        script.speak(20).silence(16).speak(20).silence(16).command(respond());
        if first == 2 {
            script.heard_text(2, " Hello");
        }
        let event = Some(Err(ModelError::EmptyText));
        script.feed(SessionInput::Transcript { stream: 1, event });
        if first == 1 {
            script.heard_text(2, " Hello");
        }
        assert_eq!(script.last(), "start chat 3 [user: Hello]");
    }
}

#[test]
fn a_response_that_reads_a_turn_by_its_id_waits_for_its_text() {
    let mut script = Script::new(manual);
    let text = ItemContent::InputText("Hi".to_owned());
    script.command(message("one", text, ItemPlace::Last)).speak(2);
    script.command(RealtimeCommand::CommitInput).forget();
    script.command(read("item_1")).check(&["created resp_2"]);
    // It reads nothing that is to come.
    script.command(read("one")).check(&["created resp_3", "start chat 2 [user: Hi]"]);
    script.heard_text(1, " Hello").check(&[
        "heard 'Hello'",
        "transcript 'Hello'",
        "start chat 3 [user: Hello]",
    ]);
}

#[test]
fn a_response_that_reads_a_turn_by_its_id_does_not_fail_with_another_turn() {
    let mut script = Script::new(manual);
    for _ in 0..2 {
        script.speak(2).command(RealtimeCommand::CommitInput);
    }
    script.command(read("item_1")).forget();
    let event = Some(Err(ModelError::EmptyText));
    script.feed(SessionInput::Transcript { stream: 2, event });
    script.check(&["transcript failed item_2"]);
    script.heard_text(1, " Hello");
    assert_eq!(script.last(), "start chat 3 [user: Hello]");
}

#[test]
fn a_client_that_cancels_before_the_transcript_gets_no_answer() {
    let mut script = Script::new(|_| {});
    let cancel = || RealtimeCommand::CancelResponse { id: None };
    script.speak(20).silence(16).command(respond()).command(cancel()).heard_text(1, " Hello");
    assert_eq!(script.last(), "transcript 'Hello'");
    // A response with an input of its own is not the turn's answer, also if it waits for the turn.
    let mut script = Script::new(|_| {});
    let input = Some(vec![ResponseInput::Reference("item_1".to_owned())]);
    let options = ResponseOptions { input, ..ResponseOptions::default() };
    script.speak(20).silence(16).respond_with(options);
    script.command(cancel()).heard_text(1, " Hello");
    assert_eq!(script.last(), "start chat 2 [user: Hello]");
}

/// Pipecat's receive loop ends at a `response.done` without usage.
#[test]
fn a_response_that_is_cancelled_has_a_usage() {
    let mut script = Script::new(|_| {});
    let command = RealtimeCommand::CancelResponse { id: None };
    script.command(respond());
    script.session.handle(SessionInput::Command { command, event_id: None }, script.now);
    let mut effects = std::iter::from_fn(|| script.session.next_effect());
    let usage = effects.find_map(|effect| match effect {
        SessionEffect::Send(RealtimeEvent::ResponseDone(response)) => Some(response.usage),
        _ => None,
    });
    assert_eq!(usage, Some(Some(ResponseUsage::default())));
}

#[test]
fn a_transcription_session_gives_its_text_also_without_settings() {
    let mut script = Script::new(|options| {
        options.settings.kind = SessionKind::Transcription;
        options.settings.transcription = None;
    });
    script.speak(20).silence(16).heard_text(1, " Hello");
    assert_eq!(script.last(), "transcript 'Hello'");
}

#[test]
fn a_transcription_session_does_not_speak_after_a_long_silence() {
    let mut script = Script::new(|options| {
        idle_after_5_s(options);
        options.settings.kind = SessionKind::Transcription;
    });
    script.speak(20).silence(16).heard_text(1, " [BLANK_AUDIO]").forget();
    script.wait(6_000).check(&[]);
}

/// LiveKit's plugin and OpenAI's agents SDK for JavaScript change an item by deleting it and creating it.
#[test]
fn the_id_of_a_deleted_item_can_be_used_again() {
    let mut script = Script::new(manual);
    script.command(text_item("", "a")).check(&["added item_1", "done item_1"]);
    let delete = RealtimeCommand::DeleteItem { id: "item_1".to_owned() };
    script.command(delete).check(&["deleted item_1"]);
    script.command(text_item("item_1", "b")).check(&["added item_1", "done item_1"]);
    script.command(text_item("", "c")).check(&["added item_2", "done item_2"]);
    script.command(respond()).check(&["created resp_3", "start chat 1 [user: b\nc]"]);
}

#[test]
fn the_id_of_an_item_outside_the_conversation_is_taken() {
    let mut script = Script::new(|_| {});
    script.speak(20).forget();
    script.command(text_item("item_1", "a")).check(&["error item_already_exists"]);
    let mut script = Script::new(manual);
    let options = ResponseOptions { is_out_of_band: true, ..ResponseOptions::default() };
    script.respond_with(options).write(1, "aside").forget();
    script.command(text_item("item_2", "a")).check(&["error item_already_exists"]);
}

/// A picture has no text, and each event may have 21 MiB of it.
#[test]
fn the_pictures_of_a_conversation_have_a_limit() {
    let picture = |id: &str, bytes: usize| {
        let image = ItemContent::InputImage { url: "a".repeat(bytes), detail: None };
        message(id, image, ItemPlace::Last)
    };
    let mut script = Script::new(|_| {});
    script.command(picture("one", PICTURE_BYTES_MAX)).check(&["added one", "done one"]);
    script.command(picture("two", 1)).check(&["error conversation_full"]);
    script.command(RealtimeCommand::DeleteItem { id: "one".to_owned() }).forget();
    script.command(picture("two", 1)).check(&["added two", "done two"]);
}

#[test]
fn an_unknown_item_is_named_with_the_field_that_names_it_and_a_code_that_clients_know() {
    let unknown = || "x".to_owned();
    let text = ItemContent::InputText("a".to_owned());
    let input = Some(vec![ResponseInput::Reference(unknown())]);
    let options = ResponseOptions { input, ..ResponseOptions::default() };
    let (id, content_index, audio_end_ms) = (unknown(), 0, 0);
    let truncate = RealtimeCommand::TruncateItem { id, content_index, audio_end_ms };
    for (command, field, code) in [
        (message("one", text, ItemPlace::After(unknown())), "previous_item_id", "item_not_found"),
        (RealtimeCommand::CreateResponse(Box::new(options)), "response.input", "item_not_found"),
        (
            RealtimeCommand::RetrieveItem { id: unknown() },
            "item_id",
            "item_retrieve_invalid_item_id",
        ),
        (truncate, "item_id", "item_truncate_invalid_item_id"),
        (RealtimeCommand::DeleteItem { id: unknown() }, "item_id", "item_delete_invalid_item_id"),
    ] {
        let mut script = Script::new(|_| {});
        script.session.handle(SessionInput::Command { command, event_id: None }, script.now);
        let Some(SessionEffect::Send(RealtimeEvent::Failed(fault))) = script.session.next_effect()
        else {
            panic!("no error for {field}");
        };
        assert_eq!((fault.param.as_deref(), fault.code.as_deref()), (Some(field), Some(code)));
    }
}

#[test]
fn a_client_may_allow_one_call_in_an_answer() {
    for (session, response, expected) in
        [(true, None, true), (false, None, false), (true, Some(false), false)]
    {
        let mut script = Script::new(|options| options.settings.parallel_tool_calls = session);
        let options =
            ResponseOptions { parallel_tool_calls: response, ..ResponseOptions::default() };
        let command = RealtimeCommand::CreateResponse(Box::new(options));
        script.session.handle(SessionInput::Command { command, event_id: None }, script.now);
        let mut effects = std::iter::from_fn(|| script.session.next_effect());
        let allows_more = effects.find_map(|effect| match effect {
            SessionEffect::StartChat(start) => match &start.request.prompt {
                Prompt::Chat(dialogue) => Some(dialogue.parallel_tool_calls),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(allows_more, Some(expected), "{session} {response:?}");
    }
}

/// A client may close its microphone with the last word. The person waits all the same.
#[test]
fn the_wait_for_a_microphone_that_falls_silent_is_measured() {
    let mut script = Script::new(|_| {});
    script.speak(20).wait(2_000).heard_text(1, " Hello");
    script.write(2, "Good morning, Ann.").sound(3, 210);
    assert!(script.log.contains(&"measured 2000 0 0 0 0".to_owned()), "{:?}", script.log);
}
