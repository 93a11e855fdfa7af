//! Events of clients: their two places for data, their limits, and bytes that are not events.
//! The rows are written as Home Assistant's library writes them.

use proptest::prelude::*;

use super::*;
use crate::{WyomingTranscribe, WyomingVoice};
use hob_core::PcmLayout;

/// All events of these packets.
fn decoded(packets: &[&[u8]]) -> Result<Vec<WyomingEvent>, WyomingError> {
    let mut decoder = WyomingDecoder::default();
    let mut events = Vec::new();
    for packet in packets {
        decoder.push(packet);
        while let Some(event) = decoder.next_event()? {
            events.push(event);
        }
    }
    Ok(events)
}

/// An event as the library writes it: data and payload follow the line.
fn written(kind: &str, data: &str, payload: &[u8]) -> Vec<u8> {
    let (data_length, payload_length) = (data.len(), payload.len());
    let line = format!(
        "{{\"type\": \"{kind}\", \"version\": \"1.10.2\", \"data_length\": {data_length}, \
         \"payload_length\": {payload_length}}}\n"
    );
    [line.as_bytes(), data.as_bytes(), payload].concat()
}

fn text(text: &str) -> String {
    text.to_owned()
}

const TELEPHONE: PcmLayout = PcmLayout { rate_hz: 8000, bytes: 1, channels: 2 };

/// One event of every type with its bytes.
fn all() -> Vec<(Vec<u8>, WyomingEvent)> {
    let named = WyomingVoice { name: Some(text("af_heart")), language: None };
    let british = WyomingVoice { name: None, language: Some(text("en-GB")) };
    let layout = r#"{"rate": 8000, "width": 1, "channels": 2, "timestamp": null}"#;
    let wish = WyomingTranscribe {
        model: Some(text("ears")),
        language: Some(text("en")),
        prompt: Some(text("Ann, Bob, lamp")),
    };
    vec![
        (b"{\"type\": \"describe\"}\n".to_vec(), WyomingEvent::Describe),
        (written("describe", "", b""), WyomingEvent::Describe),
        (written("ping", r#"{"text": "é"}"#, b""), WyomingEvent::Ping { text: Some(text("é")) }),
        (written("ping", r#"{"text": null}"#, b""), WyomingEvent::Ping { text: None }),
        (
            written("select-program", r#"{"name": "narrator"}"#, b""),
            WyomingEvent::SelectProgram { name: text("narrator") },
        ),
        (
            written(
                "synthesize",
                r#"{"text": "Hello.", "voice": {"name": "af_heart", "speaker": "x"}, "text_format": "text"}"#,
                b"",
            ),
            WyomingEvent::Synthesize { text: text("Hello."), voice: named.clone() },
        ),
        (
            b"{\"type\":\"synthesize\",\"data\":{\"text\":\"Hi\"}}\n".to_vec(),
            WyomingEvent::Synthesize { text: text("Hi"), voice: WyomingVoice::default() },
        ),
        (
            written("synthesize-start", r#"{"voice": {"language": "en-GB"}}"#, b""),
            WyomingEvent::SynthesizeStart { voice: british },
        ),
        (
            written("synthesize-start", "", b""),
            WyomingEvent::SynthesizeStart { voice: WyomingVoice::default() },
        ),
        (
            written("synthesize-chunk", r#"{"text": " world\n"}"#, b""),
            WyomingEvent::SynthesizeChunk { text: text(" world\n") },
        ),
        (written("synthesize-stop", "", b""), WyomingEvent::SynthesizeStop),
        (
            written(
                "transcribe",
                r#"{"name": "ears", "language": "en", "transcript_names": ["Ann", "Bob"], "transcript_terms": ["lamp"]}"#,
                b"",
            ),
            WyomingEvent::Transcribe(wish),
        ),
        (written("transcribe", "{}", b""), WyomingEvent::Transcribe(WyomingTranscribe::default())),
        (written("audio-start", layout, b""), WyomingEvent::AudioStart(TELEPHONE)),
        (
            written("audio-chunk", layout, b"\n{\x00\xff"),
            WyomingEvent::AudioChunk {
                layout: TELEPHONE,
                sound: Bytes::from_static(b"\n{\x00\xff"),
            },
        ),
        (written("audio-stop", r#"{"timestamp": 7}"#, b""), WyomingEvent::AudioStop),
        (written("satellite-connected", r#"{"a": [1]}"#, b"payload"), WyomingEvent::Unknown),
    ]
}

#[test]
fn every_event_is_read_as_the_library_writes_it() {
    for (bytes, event) in all() {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(decoded(&[&bytes]), Ok(vec![event]), "{shown}");
    }
}

#[test]
fn data_after_the_line_wins_over_data_in_it() {
    let bytes = b"{\"type\":\"synthesize\",\"data\":{\"text\":\"old\",\"voice\":{\"name\":\"v\"}},\
        \"data_length\":14}\n{\"text\":\"new\"}";
    let voice = WyomingVoice { name: Some(text("v")), language: None };
    let expected = WyomingEvent::Synthesize { text: text("new"), voice };
    assert_eq!(decoded(&[bytes]), Ok(vec![expected]));
}

#[test]
fn wrong_bytes_are_refused_with_the_reason_and_without_a_text() {
    let secret = "{\"text\": \"a secret\", \"voice\": \"a secret\"}";
    let long = format!("{{\"type\":\"{}\"}}\n", "x".repeat(257));
    let rows: [(Vec<u8>, &str); 16] = [
        (
            b"\n".to_vec(),
            "the line that begins an event cannot be read: the body is not valid JSON",
        ),
        (
            b"GET / HTTP/1.1\r\n".to_vec(),
            "the line that begins an event cannot be read: the body is not valid JSON",
        ),
        (b"{\"type\":\"\xff\"}\n".to_vec(), "not valid UTF-8"),
        (b"{}\n".to_vec(), "'type' is missing"),
        (b"{\"type\":7}\n".to_vec(), "'type' must be a string, and is a number"),
        (long.into_bytes(), "'type' has 257 characters"),
        (b"{\"type\":\"ping\",\"data\":[]}\n".to_vec(), "'data' must be an object, and is a list"),
        (b"{\"type\":\"ping\",\"data_length\":-1}\n".to_vec(), "'data_length' invalid value"),
        (
            b"{\"type\":\"ping\",\"data_length\":1048577}\n".to_vec(),
            "announces 1048577 bytes of data, and the limit is 1048576",
        ),
        (
            b"{\"type\":\"x\",\"payload_length\":1e15}\n".to_vec(),
            "announces 1000000000000000 bytes of payload",
        ),
        (written("ping", "[1]", b""), "the data of an event cannot be read"),
        (written("ping", "{\"text\":", b""), "the data of an event cannot be read"),
        (
            written("synthesize", "{}", b""),
            "of the type 'synthesize' cannot be read: 'text' is missing",
        ),
        (written("synthesize", secret, b""), "'voice' must be an object, and is a string"),
        (
            written("synthesize-start", r#"{"text_format": "ssml"}"#, b""),
            "'text_format' must be one of text, and is 'ssml'",
        ),
        (
            written("audio-chunk", r#"{"rate": "16000", "width": 2, "channels": 1}"#, b""),
            "'rate' must be a whole number",
        ),
    ];
    for (bytes, reason) in rows {
        let refused = decoded(&[&bytes]).expect_err(reason).to_string();
        assert!(refused.contains(reason), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
}

#[test]
fn a_line_without_an_end_is_given_up_at_its_limit() {
    let mut decoder = WyomingDecoder::default();
    let mut pushed = 0;
    let refused = loop {
        decoder.push(&[b' '; 1000]);
        pushed += 1000;
        match decoder.next_event() {
            Ok(event) => assert_eq!(event, None),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, WyomingError::HeaderTooLong { bytes_max: 65_536 });
    assert_eq!(pushed, 66_000);
}

#[test]
fn the_decoder_says_how_much_of_an_event_is_missing() {
    let bytes = written("audio-chunk", "{}", &[0; 100]);
    let mut decoder = WyomingDecoder::default();
    assert!(!decoder.is_in_event());
    decoder.push(&bytes[..10]);
    assert_eq!(decoder.next_event(), Ok(None));
    assert_eq!((decoder.is_in_event(), decoder.announced_bytes()), (true, 0));
    decoder.push(&bytes[10..bytes.len() - 1]);
    assert_eq!(decoder.next_event(), Ok(None));
    assert_eq!((decoder.is_in_event(), decoder.announced_bytes()), (true, 102));
}

#[test]
fn an_event_can_be_logged_without_its_text() {
    for (_, event) in all() {
        let shown = format!("{event:?}");
        for private in ["Hello", "world", "Ann", "lamp"] {
            assert!(!shown.contains(private), "{shown}");
        }
    }
}

proptest! {
    #[test]
    fn where_the_bytes_are_cut_does_not_matter(
        picks in prop::collection::vec(0usize..64, 0..12),
        cuts in prop::collection::vec(0usize..4000, 0..16),
    ) {
        let all = all();
        let picked: Vec<_> = picks.iter().map(|pick| &all[pick % all.len()]).collect();
        let bytes: Vec<u8> = picked.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let packets: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let expected: Vec<WyomingEvent> = picked.iter().map(|(_, event)| event.clone()).collect();
        prop_assert_eq!(decoded(&packets), Ok(expected));
    }

    /// Damage anywhere ends in an event or in an error, and the decoder never holds more than its limits.
    #[test]
    fn damaged_bytes_never_panic(
        picks in prop::collection::vec(0usize..64, 1..6),
        damage in prop::collection::vec((0usize..2000, any::<u8>()), 0..8),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let all = all();
        let mut bytes: Vec<u8> =
            picks.iter().flat_map(|pick| all[pick % all.len()].0.clone()).collect();
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.extend(noise);
        let mut decoder = WyomingDecoder::default();
        for byte in bytes {
            decoder.push(&[byte]);
            if decoder.next_event().is_err() {
                break;
            }
            prop_assert!(decoder.announced_bytes() <= 2 << 20);
        }
    }
}
