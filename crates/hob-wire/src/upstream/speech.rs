//! Speech of other servers: requests to them, and the voices that they list.
//! hob requests raw samples, and encodes them itself in the format that the client wants.

use hob_core::{Gender, Language, SpeechRequest, Speed, Voice};
use serde_json::{Map, Value, json};

use crate::error::json as text_of;

/// The body of a request for 16-bit samples at 24 kHz. Fields of `without` are left out.
pub fn upstream_speech_request(
    request: &SpeechRequest,
    input: &str,
    model: &str,
    without: &[String],
) -> String {
    let mut fields = Map::new();
    fields.insert("model".to_owned(), json!(model));
    fields.insert("input".to_owned(), json!(input));
    fields.insert("voice".to_owned(), json!(request.voice));
    fields.insert("response_format".to_owned(), json!("pcm"));
    if request.speed != Speed::NORMAL {
        fields.insert("speed".to_owned(), json!(request.speed.rate()));
    }
    if let Some(instructions) = &request.instructions {
        fields.insert("instructions".to_owned(), json!(instructions));
    }
    fields.retain(|name, _| !without.contains(name));
    text_of(&Value::Object(fields))
}

/// `GET /v1/audio/voices` of another hob. Leaves out a voice whose language hob does not know. A body that is
/// not a list has no voices.
pub fn parse_voices(body: &[u8]) -> Vec<Voice> {
    let Ok(list) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    list["voices"].as_array().into_iter().flatten().filter_map(voice).collect()
}

fn voice(entry: &Value) -> Option<Voice> {
    let id = entry["id"].as_str()?;
    let tag = entry["language"].as_str()?;
    let language = Language::ALL.into_iter().find(|known| known.tag().eq_ignore_ascii_case(tag))?;
    let gender = if entry["gender"] == "male" { Gender::Male } else { Gender::Female };
    let name = entry["name"].as_str().unwrap_or(id);
    Some(Voice { id: id.to_owned(), name: name.to_owned(), language, gender })
}

#[cfg(test)]
mod tests {
    use hob_core::SpeechText;
    use hob_core::scripted::american_voice;

    use super::*;

    fn request(rate: f32, instructions: Option<&str>) -> SpeechRequest {
        let speed = Speed::new(rate).expect("a speed");
        let instructions = instructions.map(str::to_owned);
        let request = SpeechRequest::new(SpeechText::Whole(String::new()), "nova");
        SpeechRequest { speed, instructions, ..request }
    }

    #[test]
    fn only_what_was_asked_for_is_sent() {
        let plain = upstream_speech_request(&request(1.0, None), "Hi \"you\"", "tts-1", &[]);
        let expected =
            r#"{"model":"tts-1","input":"Hi \"you\"","voice":"nova","response_format":"pcm"}"#;
        assert_eq!(plain, expected);
        let all = upstream_speech_request(&request(1.5, Some("softly")), "Hi", "tts-1", &[]);
        assert!(all.ends_with(r#""speed":1.5,"instructions":"softly"}"#), "{all}");
        let without = ["instructions".to_owned()];
        let some = upstream_speech_request(&request(1.5, Some("softly")), "Hi", "tts-1", &without);
        assert!(some.ends_with(r#""speed":1.5}"#), "{some}");
    }

    #[test]
    fn voices_are_read_as_hob_lists_them() {
        let heart = american_voice("af_heart");
        let list = crate::voices([&heart]);
        assert_eq!(parse_voices(list.as_bytes()), [heart]);
        for list in
            ["", "[]", r#"{"voices":["alloy"]}"#, r#"{"voices":[{"id":"x","language":"?"}]}"#]
        {
            assert!(parse_voices(list.as_bytes()).is_empty(), "{list}");
        }
    }
}
