//! Every event of a session, in both dialects.
//! The expected lines are in `testdata`.

use hob_core::chat::Role;
use hob_core::realtime::{
    ContentRef, ItemBody, ItemContent, ItemStatus, OutputModality, OutputPart, RealtimeEvent,
    RealtimeFault, RealtimeItem, RealtimeResponse, RealtimeSettings, ResponseStatus, ResponseUsage,
    SessionKind, SoundEncoding, StoppedBy,
};

use super::golden;
use crate::realtime::{RealtimeDialect, RealtimeWriter, TurnStagesMs, turn_stages_event};

fn item(id: &str, status: ItemStatus, body: ItemBody) -> RealtimeItem {
    RealtimeItem { id: id.to_owned(), status, body, reasoning: None }
}

fn answer(status: ItemStatus, content: Vec<ItemContent>) -> RealtimeItem {
    item("item_2", status, ItemBody::Message { role: Role::Assistant, content })
}

fn response(status: ResponseStatus, output: Vec<RealtimeItem>) -> RealtimeResponse {
    RealtimeResponse {
        id: "resp_1".to_owned(),
        status,
        output,
        modality: OutputModality::Audio,
        encoding: SoundEncoding::Pcm16,
        voice: Some("af_heart".to_owned()),
        tokens_max: None,
        is_out_of_band: false,
        metadata: Vec::new(),
        usage: None,
    }
}

#[expect(clippy::too_many_lines, reason = "a table of events")]
fn every_event() -> Vec<RealtimeEvent> {
    let at = ContentRef {
        response_id: "resp_1".to_owned(),
        item_id: "item_2".to_owned(),
        output_index: 0,
        content_index: 0,
    };
    let said = |transcript: Option<&str>| {
        let content = vec![ItemContent::InputAudio { transcript: transcript.map(str::to_owned) }];
        item("item_1", ItemStatus::Completed, ItemBody::Message { role: Role::User, content })
    };
    let spoken = |transcript: &str| ItemContent::OutputAudio { transcript: transcript.to_owned() };
    let fault = RealtimeFault {
        kind: "invalid_request_error".to_owned(),
        code: Some("item_not_found".to_owned()),
        message: "there is no item 'x'".to_owned(),
        param: Some("item_id".to_owned()),
        client_event_id: Some("mine".to_owned()),
    };
    let usage = ResponseUsage { input_tokens: 20, cached_tokens: 12, output_tokens: 5 };
    let (item_id, previous_item_id) = ("item_1".to_owned(), Some("item_0".to_owned()));
    let call = |arguments: &str, status| {
        let (call_id, name) = ("call_1".to_owned(), "light".to_owned());
        item("item_3", status, ItemBody::Call { call_id, name, arguments: arguments.to_owned() })
    };
    let output = ItemBody::CallOutput { call_id: "call_1".to_owned(), output: "on".to_owned() };
    let picture = ItemBody::Message {
        role: Role::User,
        content: vec![
            ItemContent::InputText("See".to_owned()),
            ItemContent::InputImage { url: "data:x".to_owned(), detail: Some("low".to_owned()) },
        ],
    };
    vec![
        RealtimeEvent::SpeechStarted { item_id: item_id.clone(), audio_start_ms: 120 },
        RealtimeEvent::SpeechStopped { item_id: item_id.clone(), audio_end_ms: 1500 },
        RealtimeEvent::IdleTimeout {
            item_id: item_id.clone(),
            audio_start_ms: 0,
            audio_end_ms: 6000,
        },
        RealtimeEvent::InputCommitted {
            item_id: item_id.clone(),
            previous_item_id: previous_item_id.clone(),
        },
        RealtimeEvent::InputCleared,
        RealtimeEvent::ItemAdded { item: said(None), previous_item_id: previous_item_id.clone() },
        RealtimeEvent::ItemDone { item: said(Some("Hello")), previous_item_id },
        RealtimeEvent::ItemAdded {
            item: item("item_4", ItemStatus::Completed, picture),
            previous_item_id: None,
        },
        RealtimeEvent::ItemAdded {
            item: item("item_5", ItemStatus::Completed, output),
            previous_item_id: None,
        },
        RealtimeEvent::ItemRetrieved { item: said(Some("Hello")) },
        RealtimeEvent::ItemTruncated {
            item_id: "item_2".to_owned(),
            content_index: 0,
            audio_end_ms: 900,
        },
        RealtimeEvent::ItemDeleted { item_id: item_id.clone() },
        RealtimeEvent::TranscriptDelta { item_id: item_id.clone(), delta: "Hel".to_owned() },
        RealtimeEvent::TranscriptCompleted {
            item_id: item_id.clone(),
            transcript: "Hello".to_owned(),
            sound_s: 1.5,
        },
        RealtimeEvent::TranscriptFailed { item_id, fault: fault.clone() },
        RealtimeEvent::ResponseCreated(response(ResponseStatus::InProgress, Vec::new())),
        RealtimeEvent::OutputItemAdded {
            response_id: "resp_1".to_owned(),
            output_index: 0,
            item: answer(ItemStatus::InProgress, Vec::new()),
        },
        RealtimeEvent::PartAdded {
            at: at.clone(),
            part: OutputPart::Audio { transcript: String::new() },
        },
        RealtimeEvent::SpokenTextDelta { at: at.clone(), delta: "Hi.".to_owned() },
        RealtimeEvent::AudioDone { at: at.clone() },
        RealtimeEvent::SpokenTextDone { at: at.clone(), transcript: "Hi.".to_owned() },
        RealtimeEvent::PartDone {
            at: at.clone(),
            part: OutputPart::Audio { transcript: "Hi.".to_owned() },
        },
        RealtimeEvent::PartAdded { at: at.clone(), part: OutputPart::Text(String::new()) },
        RealtimeEvent::TextDelta { at: at.clone(), delta: "Hi.".to_owned() },
        RealtimeEvent::TextDone { at: at.clone(), text: "Hi.".to_owned() },
        RealtimeEvent::PartDone { at: at.clone(), part: OutputPart::Text("Hi.".to_owned()) },
        RealtimeEvent::OutputItemAdded {
            response_id: "resp_1".to_owned(),
            output_index: 1,
            item: call("", ItemStatus::InProgress),
        },
        RealtimeEvent::ArgumentsDelta {
            at: at.clone(),
            call_id: "call_1".to_owned(),
            delta: "{}".to_owned(),
        },
        RealtimeEvent::ArgumentsDone {
            at,
            call_id: "call_1".to_owned(),
            name: "light".to_owned(),
            arguments: "{}".to_owned(),
        },
        RealtimeEvent::OutputItemDone {
            response_id: "resp_1".to_owned(),
            output_index: 0,
            item: answer(
                ItemStatus::Completed,
                vec![spoken("Hi."), ItemContent::OutputText("Hi.".to_owned())],
            ),
        },
        RealtimeEvent::ResponseDone(RealtimeResponse {
            usage: Some(usage),
            ..response(
                ResponseStatus::Completed,
                vec![answer(ItemStatus::Completed, vec![spoken("Hi.")])],
            )
        }),
        RealtimeEvent::ResponseDone(response(
            ResponseStatus::Cancelled(StoppedBy::Speech),
            vec![answer(ItemStatus::Incomplete, vec![spoken("H")])],
        )),
        RealtimeEvent::ResponseDone(response(
            ResponseStatus::Cancelled(StoppedBy::Client),
            Vec::new(),
        )),
        RealtimeEvent::ResponseDone(RealtimeResponse {
            modality: OutputModality::Text,
            is_out_of_band: true,
            tokens_max: Some(9),
            metadata: vec![("a".to_owned(), "b".to_owned())],
            ..response(ResponseStatus::Incomplete, Vec::new())
        }),
        RealtimeEvent::ResponseDone(response(ResponseStatus::Failed(fault.clone()), Vec::new())),
        RealtimeEvent::Failed(fault),
    ]
}

fn written(dialect: RealtimeDialect) -> Vec<String> {
    let mut writer = RealtimeWriter::new("sess_7".to_owned(), dialect);
    let mut lines: Vec<String> =
        every_event().into_iter().filter_map(|event| writer.event(event)).collect();
    let at = ContentRef {
        response_id: "resp_1".to_owned(),
        item_id: "item_2".to_owned(),
        output_index: 0,
        content_index: 0,
    };
    lines.push(writer.sound(at, &[1, 2, 3]));
    lines
}

#[test]
fn events_are_as_clients_read_them() {
    golden("events", include_str!("../testdata/events.jsonl"), &written(RealtimeDialect::Ga));
}

#[test]
fn the_older_dialect_has_its_own_names() {
    golden("beta", include_str!("../testdata/beta_events.jsonl"), &written(RealtimeDialect::Beta));
}

#[test]
fn the_times_of_a_turn_are_an_event_of_their_own() {
    let stages = TurnStagesMs {
        endpoint: 250.5,
        stt: 10.0,
        llm_ttfat: 60.0,
        sentence: 80.0,
        tts_ttfa: 120.0,
        transport: 0.1,
    };
    assert_eq!(
        turn_stages_event("resp_3", stages),
        r#"{"event_id":"event_stages_3","type":"hob.turn_stages","response_id":"resp_3","stages_ms":{"endpoint":250.5,"stt":10.0,"llm_ttfat":60.0,"sentence":80.0,"tts_ttfa":120.0,"transport":0.1}}"#
    );
}

#[test]
fn text_that_may_change_is_an_event_that_other_clients_ignore() {
    let mut writer = RealtimeWriter::new("sess_7".to_owned(), RealtimeDialect::Ga);
    let (item_id, text) = ("item_1".to_owned(), " the light".to_owned());
    assert_eq!(
        writer.event(RealtimeEvent::InterimText { item_id, text }).as_deref(),
        Some(
            r#"{"event_id":"event_7_1","type":"hob.interim_text","item_id":"item_1","content_index":0,"text":" the light"}"#
        )
    );
}

#[test]
fn a_session_event_has_the_whole_session_and_its_id() {
    let mut writer = RealtimeWriter::new("sess_7".to_owned(), RealtimeDialect::Ga);
    let settings = Box::new(RealtimeSettings {
        kind: SessionKind::Transcription,
        ..RealtimeSettings::default()
    });
    let created = writer.event(RealtimeEvent::SessionCreated(settings.clone())).expect("an event");
    let begins = r#"{"event_id":"event_7_1","type":"session.created","session":{"id":"sess_7","object":"realtime.transcription_session","type":"transcription","#;
    assert!(created.starts_with(begins), "{created}");
    let updated = writer.event(RealtimeEvent::SessionUpdated(settings)).expect("an event");
    assert!(
        updated.starts_with(r#"{"event_id":"event_7_2","type":"session.updated""#),
        "{updated}"
    );
}
