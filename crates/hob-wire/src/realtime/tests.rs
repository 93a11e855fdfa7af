//! What clients send, in both dialects, and what they may get wrong. `events.rs` has the other direction.

mod events;

use std::time::Duration;

use hob_core::chat::{Role, Tool, ToolChoice};
use hob_core::realtime::{
    Eagerness, InputTranscription, ItemBody, ItemContent, ItemPlace, ItemStatus, NoiseReduction,
    OutputModality, PromptTruncation, RealtimeCommand, RealtimeFault, RealtimeItem,
    RealtimeSettings, ResponseInput, ResponseOptions, SessionKind, SoundEncoding, TurnDetection,
    TurnDetector,
};
use hob_core::{JsonText, Speed};

use super::*;
use crate::names::openai_voices;

fn parse(text: &str) -> Result<ClientInput, RealtimeFault> {
    parse_client_event(text.as_bytes(), &RealtimeSettings::default())
}

fn command(text: &str) -> RealtimeCommand {
    match parse(text) {
        Ok(ClientInput::Command { command, .. }) => command,
        other => panic!("{text}: {other:?}"),
    }
}

fn update(before: &RealtimeSettings, session: &str) -> RealtimeSettings {
    let text = format!(r#"{{"type":"session.update","session":{session}}}"#);
    match parse_client_event(text.as_bytes(), before) {
        Ok(ClientInput::Command { command: RealtimeCommand::Update(settings), .. }) => *settings,
        other => panic!("{text}: {other:?}"),
    }
}

fn ga(session: &str) -> RealtimeSettings {
    update(&RealtimeSettings::default(), session)
}

/// A detector whose turns start, interrupt and resume nothing.
fn passive(detector: TurnDetector) -> TurnDetection {
    TurnDetection {
        detector,
        creates_response: false,
        interrupts_response: false,
        resumes_response: false,
    }
}

/// A detector of fixed silence, in milliseconds.
fn silence(silence_ms: u64, idle_timeout: Option<Duration>) -> TurnDetection {
    passive(TurnDetector::Server {
        threshold: 0.25,
        prefix_padding: Duration::from_millis(100),
        silence: Duration::from_millis(silence_ms),
        idle_timeout,
    })
}

/// Settings in which nothing is a default.
fn unusual() -> RealtimeSettings {
    RealtimeSettings {
        model: Some("fast".to_owned()),
        instructions: "Be brief.".to_owned(),
        output: OutputModality::Text,
        input_encoding: SoundEncoding::Mulaw,
        noise_reduction: Some(NoiseReduction::FarField),
        transcription: Some(InputTranscription {
            model: Some("whisper-1".to_owned()),
            language: Some("en".to_owned()),
            prompt: Some("Ann".to_owned()),
        }),
        turn_detection: Some(silence(250, Some(Duration::from_secs(6)))),
        output_encoding: SoundEncoding::Alaw,
        speech_model: Some("kokoro".to_owned()),
        voice: Some("ash".to_owned()),
        speed: Speed::new(1.25).expect("a speed"),
        tools: vec![Tool {
            name: "light".to_owned(),
            description: Some("Switches a light.".to_owned()),
            parameters: Some(JsonText::parsed(r#"{"type":"object"}"#)),
            strict: false,
        }],
        tool_choice: ToolChoice::Named("light".to_owned()),
        tokens_max: Some(100),
        truncation: PromptTruncation::Retain { ratio: 0.8, tokens_max: Some(5_000) },
        reports_turn_stages: true,
        reports_interim_text: true,
        ..RealtimeSettings::default()
    }
}

#[test]
fn settings_are_written_whole_and_read_back_as_they_were() {
    let one_call = RealtimeSettings { parallel_tool_calls: false, ..RealtimeSettings::default() };
    for settings in [RealtimeSettings::default(), unusual(), one_call] {
        for dialect in [RealtimeDialect::Ga, RealtimeDialect::Beta] {
            let shown = merge::session_json(&settings, dialect).to_string();
            let read = update(&RealtimeSettings::default(), &shown);
            // The speech model is an addition of hob, for which the older dialect has no field.
            let is_beta = dialect == RealtimeDialect::Beta;
            let speech_model = settings.speech_model.clone().filter(|_| !is_beta);
            let expected = RealtimeSettings { speech_model, ..settings.clone() };
            assert_eq!(read, expected, "{dialect:?} {shown}");
        }
    }
}

#[test]
fn a_session_is_shown_as_clients_read_it() {
    let shown =
        |settings: &RealtimeSettings, dialect| merge::session_json(settings, dialect).to_string();
    let all = [
        shown(&RealtimeSettings::default(), RealtimeDialect::Ga),
        shown(&unusual(), RealtimeDialect::Ga),
        shown(&RealtimeSettings::default(), RealtimeDialect::Beta),
        shown(&unusual(), RealtimeDialect::Beta),
    ];
    golden("sessions", include_str!("testdata/sessions.jsonl"), &all);
}

#[test]
fn a_model_of_openai_replaces_no_model_that_was_chosen() {
    let opened = |model: Option<&str>| RealtimeSettings {
        model: model.map(str::to_owned),
        ..RealtimeSettings::default()
    };
    let realtime = Some("gpt-realtime");
    for (before, sent, expected) in [
        (Some("fast"), r#""gpt-realtime""#, Some("fast")),
        (Some("fast"), r#""slow""#, Some("slow")),
        (Some("fast"), "null", None),
        (None, r#""gpt-realtime""#, realtime),
        (realtime, r#""fast""#, Some("fast")),
    ] {
        let change = format!(r#"{{"model":{sent}}}"#);
        let after = update(&opened(before), &change);
        assert_eq!(after.model.as_deref(), expected, "{before:?} {sent}");
    }
    // A secret has settings before its session is opened.
    for (sent, expected) in [("gpt-realtime", "fast"), ("slow", "slow")] {
        let query = [("model".to_owned(), sent.to_owned())];
        let after = parse_realtime_query(&query, opened(Some("fast"))).expect("a query");
        assert_eq!(after.model.as_deref(), Some(expected));
    }
    let after = parse_realtime_query(&[], opened(Some("fast"))).expect("a query");
    assert_eq!(after.model.as_deref(), Some("fast"));
}

#[test]
fn a_change_is_merged_and_only_null_clears() {
    let before = unusual();
    let after = |session: &str| update(&before, session);
    assert_eq!(after("{}"), before);
    assert_eq!(after(r#"{"audio":{"input":{}}}"#), before);
    let voice = Some("verse".to_owned());
    assert_eq!(
        after(r#"{"audio":{"output":{"voice":"verse"}}}"#),
        RealtimeSettings { voice, ..before.clone() }
    );
    assert_eq!(
        after(
            r#"{"audio":{"input":{"turn_detection":{"silence_duration_ms":700,"idle_timeout_ms":null}}}}"#
        ),
        RealtimeSettings { turn_detection: Some(silence(700, None)), ..before.clone() }
    );
    let cleared = after(
        r#"{"audio":{"input":{"turn_detection":null,"transcription":null,"noise_reduction":null},
            "output":{"voice":null}},"tools":null,"tool_choice":null,"max_output_tokens":"inf"}"#,
    );
    let expected = RealtimeSettings {
        turn_detection: None,
        transcription: None,
        noise_reduction: None,
        voice: None,
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        tokens_max: None,
        ..before
    };
    assert_eq!(cleared, expected);
    // What was cleared stays so.
    assert_eq!(update(&cleared, "{}"), expected);
}

#[test]
fn another_turn_detection_keeps_what_both_have() {
    let settings = update(
        &unusual(),
        r#"{"audio":{"input":{"turn_detection":{"type":"semantic_vad","eagerness":"high"}}}}"#,
    );
    let expected = passive(TurnDetector::Semantic { eagerness: Eagerness::High });
    assert_eq!(settings.turn_detection, Some(expected));
}

#[test]
fn all_names_of_openais_voices_are_taken() {
    for voice in openai_voices() {
        let session = format!(r#"{{"audio":{{"output":{{"voice":"{}"}}}}}}"#, voice.id);
        assert_eq!(ga(&session).voice, Some(voice.id));
    }
    assert_eq!(ga(r#"{"audio":{"output":{"voice":{"id":"x"}}}}"#).voice.as_deref(), Some("x"));
}

#[test]
fn noise_reduction_may_have_a_strength_alone() {
    let settings = ga(r#"{"audio":{"input":{"noise_reduction":{"strength":0.5}}}}"#);
    assert_eq!(settings.noise_reduction, Some(NoiseReduction::NearField));
}

#[test]
fn truncation_is_a_word_or_a_ratio() {
    let after = |truncation: &str| {
        update(&unusual(), &format!(r#"{{"truncation":{truncation}}}"#)).truncation
    };
    assert_eq!(after(r#""disabled""#), PromptTruncation::Disabled);
    assert_eq!(after("null"), PromptTruncation::Auto);
    let retention = r#"{"type":"retention_ratio","retention_ratio":0.5,"token_limits":null}"#;
    assert_eq!(after(retention), PromptTruncation::Retain { ratio: 0.5, tokens_max: None });
}

#[test]
fn settings_may_be_flat_as_in_the_older_dialect() {
    let settings = update(
        &RealtimeSettings::default(),
        r#"{"modalities":["text","audio"],"voice":"alloy","input_audio_format":"g711_ulaw",
            "output_audio_format":"pcm16","input_audio_transcription":{"model":"whisper-1"},
            "turn_detection":null,"max_response_output_tokens":7,"temperature":0.8,
            "instructions":"Hi"}"#,
    );
    let expected = RealtimeSettings {
        voice: Some("alloy".to_owned()),
        input_encoding: SoundEncoding::Mulaw,
        transcription: Some(InputTranscription {
            model: Some("whisper-1".to_owned()),
            ..InputTranscription::default()
        }),
        turn_detection: None,
        tokens_max: Some(7),
        instructions: "Hi".to_owned(),
        ..RealtimeSettings::default()
    };
    assert_eq!(settings, expected);
}

#[test]
fn a_session_can_be_for_transcripts_alone() {
    assert_eq!(ga(r#"{"type":"transcription"}"#).kind, SessionKind::Transcription);
    let text =
        r#"{"type":"transcription_session.update","session":{"input_audio_format":"pcm16"}}"#;
    let read = parse(text);
    let Ok(ClientInput::Command { command: RealtimeCommand::Update(settings), .. }) = read else {
        panic!("{read:?}");
    };
    assert_eq!(settings.kind, SessionKind::Transcription);
    let pairs = [("intent", "transcription"), ("model", "m"), ("other", "x")];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let opened = parse_realtime_query(&pairs, RealtimeSettings::default()).expect("a query");
    assert_eq!((opened.kind, opened.model.as_deref()), (SessionKind::Transcription, Some("m")));
    let wrong = [("intent".to_owned(), "x".to_owned())];
    assert!(parse_realtime_query(&wrong, RealtimeSettings::default()).is_err());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of commands")]
fn commands_are_what_the_client_wrote() {
    let item = |body| {
        let (id, status) = ("i".to_owned(), ItemStatus::Completed);
        Box::new(RealtimeItem { id, status, body, reasoning: None })
    };
    let user = ItemBody::Message {
        role: Role::User,
        content: vec![
            ItemContent::InputText("Hello".to_owned()),
            ItemContent::InputAudio { transcript: Some("there".to_owned()) },
            ItemContent::InputImage { url: "data:image/png;base64,AA".to_owned(), detail: None },
        ],
    };
    let assistant = ItemBody::Message {
        role: Role::Assistant,
        content: vec![
            ItemContent::OutputText("Hi".to_owned()),
            ItemContent::OutputAudio { transcript: "you".to_owned() },
        ],
    };
    let call = ItemBody::Call {
        call_id: "c".to_owned(),
        name: "light".to_owned(),
        arguments: "{}".to_owned(),
    };
    let output = ItemBody::CallOutput { call_id: "c".to_owned(), output: "on".to_owned() };
    let place = ItemPlace::After("j".to_owned());
    let rows = [
        (r#"{"type":"input_audio_buffer.commit"}"#, RealtimeCommand::CommitInput),
        (r#"{"type":"input_audio_buffer.clear"}"#, RealtimeCommand::ClearInput),
        (r#"{"type":"output_audio_buffer.clear"}"#, RealtimeCommand::ClearOutput),
        (
            r#"{"type":"conversation.item.create","previous_item_id":"root","item":{"id":"i","type":"message","role":"user","content":[
                {"type":"input_text","text":"Hello"},{"type":"input_audio","transcript":"there"},
                {"type":"input_image","image_url":"data:image/png;base64,AA"}]}}"#,
            RealtimeCommand::CreateItem { item: item(user), place: ItemPlace::First },
        ),
        (
            r#"{"type":"conversation.item.create","previous_item_id":"j","item":{"id":"i","type":"message","role":"assistant","content":[
                {"type":"output_text","text":"Hi"},{"type":"output_audio","transcript":"you"}]}}"#,
            RealtimeCommand::CreateItem { item: item(assistant), place },
        ),
        (
            r#"{"type":"conversation.item.create","item":{"id":"i","type":"function_call","call_id":"c","name":"light","arguments":"on"}}"#,
            RealtimeCommand::CreateItem { item: item(call), place: ItemPlace::Last },
        ),
        (
            r#"{"type":"conversation.item.create","item":{"id":"i","type":"function_call_output","call_id":"c","output":"on"}}"#,
            RealtimeCommand::CreateItem { item: item(output), place: ItemPlace::Last },
        ),
        (
            r#"{"type":"conversation.item.retrieve","item_id":"i"}"#,
            RealtimeCommand::RetrieveItem { id: "i".to_owned() },
        ),
        (
            r#"{"type":"conversation.item.truncate","item_id":"i","content_index":1,"audio_end_ms":1500}"#,
            RealtimeCommand::TruncateItem {
                id: "i".to_owned(),
                content_index: 1,
                audio_end_ms: 1500,
            },
        ),
        (
            r#"{"type":"conversation.item.delete","item_id":"i"}"#,
            RealtimeCommand::DeleteItem { id: "i".to_owned() },
        ),
        (r#"{"type":"response.cancel"}"#, RealtimeCommand::CancelResponse { id: None }),
        (
            r#"{"type":"response.cancel","response_id":"r"}"#,
            RealtimeCommand::CancelResponse { id: Some("r".to_owned()) },
        ),
        (r#"{"type":"response.create"}"#, RealtimeCommand::CreateResponse(Box::default())),
    ];
    for (text, expected) in rows {
        assert_eq!(command(text), expected, "{text}");
    }
}

#[test]
fn a_response_is_what_the_client_asks_for() {
    let text = r#"{"type":"response.create","response":{"conversation":"none","instructions":"Sum up.",
        "input":[{"type":"item_reference","id":"i"},
            {"type":"message","role":"system","content":[{"type":"input_text","text":"Hi"}]}],
        "output_modalities":["text"],
        "audio":{"output":{"voice":"ash","format":{"type":"audio/pcma"},"model":"tts","speed":1.5}},
        "tools":[],"tool_choice":"none","parallel_tool_calls":false,"max_output_tokens":"inf",
        "metadata":{"a":"b"}}}"#;
    let message = RealtimeItem {
        id: String::new(),
        status: ItemStatus::Completed,
        body: ItemBody::Message {
            role: Role::System,
            content: vec![ItemContent::InputText("Hi".to_owned())],
        },
        reasoning: None,
    };
    let expected = ResponseOptions {
        is_out_of_band: true,
        input: Some(vec![ResponseInput::Reference("i".to_owned()), ResponseInput::Item(message)]),
        instructions: Some("Sum up.".to_owned()),
        output: Some(OutputModality::Text),
        voice: Some("ash".to_owned()),
        speech_model: Some("tts".to_owned()),
        speed: Speed::new(1.5).ok(),
        output_encoding: Some(SoundEncoding::Alaw),
        tools: Some(Vec::new()),
        tool_choice: Some(ToolChoice::None),
        parallel_tool_calls: Some(false),
        tokens_max: Some(None),
        thinking: None,
        metadata: vec![("a".to_owned(), "b".to_owned())],
    };
    assert_eq!(command(text), RealtimeCommand::CreateResponse(Box::new(expected)));

    let beta = r#"{"type":"response.create","response":{"modalities":["audio","text"],"voice":"ash",
        "output_audio_format":"g711_alaw","max_output_tokens":5}}"#;
    let read = parse(beta);
    let expected = ResponseOptions {
        output: Some(OutputModality::Audio),
        voice: Some("ash".to_owned()),
        output_encoding: Some(SoundEncoding::Alaw),
        tokens_max: Some(Some(5)),
        ..ResponseOptions::default()
    };
    let command = RealtimeCommand::CreateResponse(Box::new(expected));
    assert_eq!(read, Ok(ClientInput::Command { command, event_id: None }));
}

#[test]
fn a_response_may_choose_among_the_tools_of_its_session() {
    let text = r#"{"type":"response.create","response":{"tool_choice":"required"}}"#;
    let read = parse_client_event(text.as_bytes(), &unusual());
    let options =
        ResponseOptions { tool_choice: Some(ToolChoice::Required), ..ResponseOptions::default() };
    let command = RealtimeCommand::CreateResponse(Box::new(options));
    assert_eq!(read, Ok(ClientInput::Command { command, event_id: None }));
    let fault = parse(text).expect_err("no tools");
    assert_eq!(fault.param.as_deref(), Some("response.tool_choice"));
}

#[test]
fn the_tools_of_a_response_keep_the_choice_of_its_session_where_it_is_possible() {
    let (light, door) = (r#"[{"name":"light"}]"#, r#"[{"name":"door"}]"#);
    let named = ToolChoice::Named("light".to_owned());
    for (session, tools, expected) in [
        (&named, light, &named),
        (&named, door, &ToolChoice::Auto),
        (&ToolChoice::None, door, &ToolChoice::None),
        (&ToolChoice::Required, door, &ToolChoice::Required),
        (&ToolChoice::Required, "[]", &ToolChoice::Auto),
    ] {
        let settings = RealtimeSettings { tool_choice: session.clone(), ..unusual() };
        let text = format!(r#"{{"type":"response.create","response":{{"tools":{tools}}}}}"#);
        match parse_client_event(text.as_bytes(), &settings) {
            Ok(ClientInput::Command {
                command: RealtimeCommand::CreateResponse(options), ..
            }) => {
                assert_eq!(options.tool_choice.as_ref(), Some(expected), "{session:?} {tools}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn sound_is_decoded_and_bounded() {
    let text = r#"{"type":"input_audio_buffer.append","audio":"AQID"}"#;
    assert_eq!(parse(text), Ok(ClientInput::Sound(vec![1, 2, 3])));
    let most = "A".repeat(SOUND_BYTES_MAX / 3 * 4);
    let text = |audio: &str| format!(r#"{{"type":"input_audio_buffer.append","audio":"{audio}"}}"#);
    assert_eq!(parse(&text(&most)), Ok(ClientInput::Sound(vec![0; SOUND_BYTES_MAX])));
    let fault = parse(&text(&(most + "AAAA"))).expect_err("too long");
    assert_eq!(
        (fault.param.as_deref(), fault.message.as_str()),
        (Some("audio"), "'audio' has 15728643 bytes of sound and the limit is 15728640")
    );
}

/// In each line an event, and behind the arrow the code, the field (`-`: the error has none) and a part of the message.
const MISTAKES: &str = r#"
 => invalid_json - the event is not valid JSON
[] => invalid_json - the event must be a JSON object, and is a list
{"event_id":"e"} => missing_required_parameter type 'type' is missing
{"type":"session.dance","event_id":"e"} => invalid_value type must be one of session.update
{"type":7,"event_id":"e"} => invalid_type type must be a string
{"type":"session.update","event_id":"e"} => missing_required_parameter session missing
{"type":"session.update","event_id":"e","session":{"audio":{"input":{"turn_detection":{"type":"x"}}}}} => invalid_value session.audio.input.turn_detection.type must be one of server_vad, semantic_vad, and is 'x'
{"type":"session.update","event_id":"e","session":{"type":"x"}} => invalid_value session.type must be one of realtime, transcription, and is 'x'
{"type":"session.update","event_id":"e","session":{"output_modalities":["x"]}} => invalid_value session.output_modalities[0] must be one of text, audio, and is 'x'
{"type":"session.update","event_id":"e","session":{"audio":{"input":{"format":{"type":"x"}}}}} => invalid_value session.audio.input.format.type must be one of audio/pcm, audio/pcmu, audio/pcma, and is 'x'
{"type":"session.update","event_id":"e","session":{"audio":{"input":{"noise_reduction":{"type":"x"}}}}} => invalid_value session.audio.input.noise_reduction.type must be one of near_field, far_field, and is 'x'
{"type":"session.update","event_id":"e","session":{"audio":{"input":{"turn_detection":{"eagerness":"x"}}}}} => invalid_value session.audio.input.turn_detection.eagerness must be one of low, medium, high, auto, and is 'x'
{"type":"session.update","event_id":"e","session":{"audio":{"input":{"turn_detection":{"threshold":2}}}}} => invalid_value session.audio.input.turn_detection.threshold must be from 0 to 1, and is 2
{"type":"session.update","event_id":"e","session":{"audio":{"input":{"format":{"rate":16000}}}}} => invalid_value session.audio.input.format.rate must be 24000 for audio/pcm, and is 16000
{"type":"session.update","event_id":"e","session":{"output_modalities":["text","audio"]}} => invalid_value session.output_modalities sound has its text with it
{"type":"session.update","event_id":"e","session":{"audio":{"output":{"speed":9}}}} => invalid_value session.audio.output.speed must be from 0.25 to 4, and is 9
{"type":"session.update","event_id":"e","session":{"audio":{"input":{"transcription":{"language":"xx"}}}}} => invalid_value session.audio.input.transcription.language ISO 639-1
{"type":"session.update","event_id":"e","session":{"max_output_tokens":"many"}} => invalid_value session.max_output_tokens or 'inf'
{"type":"session.update","event_id":"e","session":{"truncation":"often"}} => invalid_value session.truncation must be one of auto, disabled, and is 'often'
{"type":"session.update","event_id":"e","session":{"truncation":{"type":"x"}}} => invalid_value session.truncation.type must be one of retention_ratio, and is 'x'
{"type":"session.update","event_id":"e","session":{"truncation":{"type":"retention_ratio"}}} => missing_required_parameter session.truncation.retention_ratio missing
{"type":"session.update","event_id":"e","session":{"truncation":{"retention_ratio":2}}} => invalid_value session.truncation.retention_ratio must be from 0 to 1, and is 2
{"type":"session.update","event_id":"e","session":{"tools":[{"type":"mcp","name":"x"}]}} => invalid_value session.tools[0].type must be one of function, and is 'mcp'
{"type":"session.update","event_id":"e","session":{"tool_choice":{"name":"x"}}} => invalid_value session.tool_choice not among the tools
{"type":"input_audio_buffer.append","event_id":"e"} => missing_required_parameter audio missing
{"type":"input_audio_buffer.append","event_id":"e","audio":"???"} => invalid_value audio is not valid base64
{"type":"conversation.item.create","event_id":"e"} => missing_required_parameter item missing
{"type":"conversation.item.create","event_id":"e","item":{"type":"message","content":[]}} => missing_required_parameter item.role missing
{"type":"conversation.item.create","event_id":"e","item":{"type":"message","role":"user","content":[{"type":"output_text","text":"x"}]}} => invalid_value item.content[0].type cannot be part of a message of the user
{"type":"conversation.item.create","event_id":"e","item":{"type":"message","role":"user","content":[{"type":"input_audio"}]}} => missing_required_parameter item.content[0].transcript missing
{"type":"conversation.item.create","event_id":"e","item":{"type":"message","role":"user","content":[{"type":"input_image","image_url":"file:///x"}]}} => invalid_value item.content[0].image_url must begin with
{"type":"conversation.item.create","event_id":"e","item":{"type":"message","role":"user","content":[{"type":"input_audio","audio":"AAA="}]}} => invalid_value item.content[0].audio input_audio_buffer.append
{"type":"conversation.item.truncate","event_id":"e","item_id":"i","audio_end_ms":-1} => invalid_value audio_end_ms must not be negative
{"type":"conversation.item.delete","event_id":"e"} => missing_required_parameter item_id missing
{"type":"response.create","event_id":"e","response":{"input":[{"type":"item_reference"}]}} => missing_required_parameter response.input[0].id missing
{"type":"response.create","event_id":"e","response":{"metadata":{"a":1}}} => invalid_type response.metadata.a must be a string
"#;

#[test]
fn a_mistake_is_named_with_its_field_and_the_clients_own_id() {
    for line in MISTAKES.trim_matches('\n').lines() {
        let (text, said) = line.split_once(" => ").expect(line);
        let [code, param, message] = said.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let param = Some(param).filter(|param| *param != "-");
        let fault = parse(text).expect_err(text);
        let id = text.contains("event_id").then_some("e");
        assert_eq!(
            (fault.code.as_deref(), fault.param.as_deref(), fault.client_event_id.as_deref()),
            (Some(code), param, id),
            "{text} {fault:?}"
        );
        assert!(fault.message.contains(message), "{text}: {}", fault.message);
    }
}

/// Compares lines with a file. A new line is reviewed and copied from the failure.
fn golden(name: &str, file: &str, lines: &[String]) {
    let (file, lines): (Vec<&str>, Vec<&str>) =
        (file.lines().collect(), lines.iter().map(String::as_str).collect());
    assert_eq!(lines, file, "{name}:\n{}", lines.join("\n"));
}

#[test]
fn a_secret_has_a_lifetime_and_a_session() {
    let defaults = RealtimeSettings::default();
    let parsed = |body: &str| parse_client_secret(body.as_bytes(), &defaults);
    assert_eq!(parsed("").map(|secret| secret.valid_s), Ok(600));
    let body = r#"{"expires_after":{"anchor":"created_at","seconds":10},"session":{"type":"realtime","instructions":"Hi"}}"#;
    let settings = RealtimeSettings { instructions: "Hi".to_owned(), ..defaults.clone() };
    assert_eq!(parsed(body), Ok(WireClientSecret { valid_s: 10, settings: settings.clone() }));
    for (body, field) in [
        (r#"{"expires_after":{"seconds":9}}"#, "expires_after.seconds"),
        (r#"{"expires_after":{"seconds":7201}}"#, "expires_after.seconds"),
        (r#"{"expires_after":{"anchor":"x"}}"#, "expires_after.anchor"),
        (r#"{"session":{"audio":{"output":{"speed":0}}}}"#, "session.audio.output.speed"),
    ] {
        assert_eq!(parsed(body).expect_err(body).field(), Some(field));
    }
    let secret = ClientSecret {
        value: "ek_x",
        expires_unix_s: 7,
        session_id: "sess_1",
        settings: &settings,
    };
    let json = secret.to_json();
    let begins = r#"{"value":"ek_x","expires_at":7,"session":{"id":"sess_1","object":"realtime.session","type":"realtime","#;
    assert!(json.starts_with(begins), "{json}");
}
