//! The events of a session that a listener needs, as OpenAI's Realtime API writes them.
//! Other events and fields are ignored.

use hob_wire::TurnStagesMs;
use serde::Deserialize;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "type")]
pub(super) enum TalkEvent {
    #[serde(rename = "session.created")]
    SessionCreated { session: OpenedSession },
    #[serde(rename = "session.updated")]
    SessionUpdated,
    #[serde(rename = "input_audio_buffer.speech_started")]
    SpeechStarted,
    /// The person's turn is over.
    #[serde(rename = "input_audio_buffer.committed")]
    Committed { item_id: String },
    #[serde(rename = "conversation.item.input_audio_transcription.delta")]
    HeardDelta { delta: String },
    #[serde(rename = "conversation.item.input_audio_transcription.completed")]
    HeardDone { item_id: String, transcript: String },
    #[serde(rename = "conversation.item.input_audio_transcription.failed")]
    HearingFailed { error: EventError },
    #[serde(rename = "response.created")]
    ResponseCreated { response: ResponseState },
    #[serde(rename = "response.output_audio_transcript.delta")]
    SpokenDelta { response_id: String, delta: String },
    /// `delta` is sound in base64: 16 bits, 24 kHz, mono.
    #[serde(rename = "response.output_audio.delta")]
    Sound { response_id: String, item_id: String, delta: String },
    #[serde(rename = "response.done")]
    ResponseDone { response: ResponseState },
    #[serde(rename = "hob.turn_stages")]
    TurnStages { stages_ms: TurnStagesMs },
    #[serde(rename = "error")]
    Failed { error: EventError },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct OpenedSession {
    /// The server writes the conversation to its disk.
    #[serde(rename = "recorded", default)]
    pub(super) is_recorded: bool,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct EventError {
    pub(super) code: Option<String>,
    pub(super) message: String,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct ResponseState {
    pub(super) id: String,
    pub(super) status_details: Option<StatusDetails>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct StatusDetails {
    /// Why the response failed.
    pub(super) error: Option<EventError>,
}

/// The stages of a turn for people. They add up to the time from the end of speech to the first audible sample.
pub(super) fn stages_text(stages_ms: &TurnStagesMs) -> String {
    let TurnStagesMs { endpoint, stt, llm_ttfat, sentence, tts_ttfa, transport } = *stages_ms;
    let stages = [
        ("end of speech", endpoint),
        ("transcript", stt),
        ("first words", llm_ttfat),
        ("first sentence", sentence),
        ("first sound", tts_ttfa),
        ("sending", transport),
    ];
    let total: f64 = stages.iter().map(|(_, ms)| ms).sum();
    let shown: Vec<String> = stages.iter().map(|(name, ms)| format!("{name} {ms:.0}")).collect();
    format!("answered after {total:.0} ms: {}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_unknown_ones_are_left_alone() {
        let read = |text: &str| serde_json::from_str::<TalkEvent>(text).expect("an event");
        let sound = r#"{"event_id":"e","type":"response.output_audio.delta","response_id":"r","item_id":"i","output_index":0,"content_index":0,"delta":"AAA="}"#;
        let expected = TalkEvent::Sound {
            response_id: "r".to_owned(),
            item_id: "i".to_owned(),
            delta: "AAA=".to_owned(),
        };
        assert_eq!(read(sound), expected);
        assert_eq!(read(r#"{"type":"conversation.item.added","item":{}}"#), TalkEvent::Other);
        let stages = r#"{"type":"hob.turn_stages","response_id":"r","stages_ms":{"endpoint":250.5,"stt":10,"llm_ttfat":60,"sentence":80,"tts_ttfa":120,"transport":0.1}}"#;
        let TalkEvent::TurnStages { stages_ms } = read(stages) else { unreachable!("stages") };
        let shown = "answered after 521 ms: end of speech 250, transcript 10, first words 60, first sentence 80, first sound 120, sending 0";
        assert_eq!(stages_text(&stages_ms), shown);
    }
}
