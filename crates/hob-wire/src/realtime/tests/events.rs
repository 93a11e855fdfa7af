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

fn at() -> ContentRef {
    ContentRef {
        response_id: "resp_1".to_owned(),
        item_id: "item_2".to_owned(),
        output_index: 0,
        content_index: 0,
    }
}

fn fault() -> RealtimeFault {
    RealtimeFault {
        kind: "invalid_request_error".to_owned(),
        code: Some("item_not_found".to_owned()),
        message: "there is no item 'x'".to_owned(),
        param: Some("item_id".to_owned()),
        client_event_id: Some("mine".to_owned()),
    }
}

fn spoken(transcript: &str) -> ItemContent {
    ItemContent::OutputAudio { transcript: transcript.to_owned() }
}

/// Sound and text of the user, and changes of items.
fn input_events() -> Vec<RealtimeEvent> {
    use RealtimeEvent as Event;
    let (item_id, previous) = (|| "item_1".to_owned(), || Some("item_0".to_owned()));
    let said = |transcript: Option<&str>| {
        let content = vec![ItemContent::InputAudio { transcript: transcript.map(str::to_owned) }];
        item("item_1", ItemStatus::Completed, ItemBody::Message { role: Role::User, content })
    };
    let output = ItemBody::CallOutput { call_id: "call_1".to_owned(), output: "on".to_owned() };
    let output = item("item_5", ItemStatus::Completed, output);
    let content = vec![
        ItemContent::InputText("See".to_owned()),
        ItemContent::InputImage { url: "data:x".to_owned(), detail: Some("low".to_owned()) },
    ];
    let picture = ItemBody::Message { role: Role::User, content };
    let picture = item("item_4", ItemStatus::Completed, picture);
    let answer = "item_2".to_owned();
    let (delta, transcript) = ("Hel".to_owned(), "Hello".to_owned());
    vec![
        Event::SpeechStarted { item_id: item_id(), audio_start_ms: 120 },
        Event::SpeechStopped { item_id: item_id(), audio_end_ms: 1500 },
        Event::IdleTimeout { item_id: item_id(), audio_start_ms: 0, audio_end_ms: 6000 },
        Event::InputCommitted { item_id: item_id(), previous_item_id: previous() },
        Event::InputCleared,
        Event::ItemAdded { item: said(None), previous_item_id: previous() },
        Event::ItemDone { item: said(Some("Hello")), previous_item_id: previous() },
        Event::ItemAdded { item: picture, previous_item_id: None },
        Event::ItemAdded { item: output, previous_item_id: None },
        Event::ItemRetrieved { item: said(Some("Hello")) },
        Event::ItemTruncated { item_id: answer, content_index: 0, audio_end_ms: 900 },
        Event::ItemDeleted { item_id: item_id() },
        Event::TranscriptDelta { item_id: item_id(), delta },
        Event::TranscriptCompleted { item_id: item_id(), transcript, sound_s: 1.5 },
        Event::TranscriptFailed { item_id: item_id(), fault: fault() },
    ]
}

/// A response, from its beginning to each of its ends.
fn response_events() -> Vec<RealtimeEvent> {
    use RealtimeEvent as Event;
    let (response_id, hi) = (|| "resp_1".to_owned(), || "Hi.".to_owned());
    let (call_id, name) = (|| "call_1".to_owned(), || "light".to_owned());
    let call = ItemBody::Call { call_id: call_id(), name: name(), arguments: String::new() };
    let call = item("item_3", ItemStatus::InProgress, call);
    let empty = answer(ItemStatus::InProgress, Vec::new());
    let both = vec![spoken("Hi."), ItemContent::OutputText(hi())];
    let both = answer(ItemStatus::Completed, both);
    let arguments = || "{}".to_owned();
    let whole = vec![answer(ItemStatus::Completed, vec![spoken("Hi.")])];
    let cut = vec![answer(ItemStatus::Incomplete, vec![spoken("H")])];
    let usage = ResponseUsage { input_tokens: 20, cached_tokens: 12, output_tokens: 5 };
    let cancelled = ResponseStatus::Cancelled;
    vec![
        Event::ResponseCreated(response(ResponseStatus::InProgress, Vec::new())),
        Event::OutputItemAdded { response_id: response_id(), output_index: 0, item: empty },
        Event::PartAdded { at: at(), part: OutputPart::Audio { transcript: String::new() } },
        Event::SpokenTextDelta { at: at(), delta: hi() },
        Event::AudioDone { at: at() },
        Event::SpokenTextDone { at: at(), transcript: hi() },
        Event::PartDone { at: at(), part: OutputPart::Audio { transcript: hi() } },
        Event::PartAdded { at: at(), part: OutputPart::Text(String::new()) },
        Event::TextDelta { at: at(), delta: hi() },
        Event::TextDone { at: at(), text: hi() },
        Event::PartDone { at: at(), part: OutputPart::Text(hi()) },
        Event::OutputItemAdded { response_id: response_id(), output_index: 1, item: call },
        Event::ArgumentsDelta { at: at(), call_id: call_id(), delta: arguments() },
        Event::ArgumentsDone { at: at(), call_id: call_id(), name: name(), arguments: arguments() },
        Event::OutputItemDone { response_id: response_id(), output_index: 0, item: both },
        Event::ResponseDone(RealtimeResponse {
            usage: Some(usage),
            ..response(ResponseStatus::Completed, whole)
        }),
        Event::ResponseDone(response(cancelled(StoppedBy::Speech), cut)),
        Event::ResponseDone(response(cancelled(StoppedBy::Client), Vec::new())),
        Event::ResponseDone(RealtimeResponse {
            modality: OutputModality::Text,
            is_out_of_band: true,
            tokens_max: Some(9),
            metadata: vec![("a".to_owned(), "b".to_owned())],
            ..response(ResponseStatus::Incomplete, Vec::new())
        }),
        Event::ResponseDone(response(ResponseStatus::Failed(fault()), Vec::new())),
        Event::Failed(fault()),
    ]
}

fn written(dialect: RealtimeDialect) -> Vec<String> {
    let mut writer = RealtimeWriter::new("sess_7".to_owned(), dialect);
    let events = input_events().into_iter().chain(response_events());
    let mut lines: Vec<String> = events.filter_map(|event| writer.event(event)).collect();
    lines.push(writer.sound(at(), &[1, 2, 3]));
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
