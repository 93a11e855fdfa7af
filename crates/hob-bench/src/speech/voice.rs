//! The voices that a server lists; the first one is the default.
//! hob and Kokoro-FastAPI list their voices. For OpenAI and others, the user must name one.

use serde_json::Value;

use crate::runs::BenchError;
use crate::target::Target;

/// The named voices. If none is named, the first few that the server lists.
///
/// # Errors
/// No voice is named, and the server lists none.
pub(crate) fn chosen_voices(
    named: &[String],
    target: &Target,
    listed_max: usize,
) -> Result<Vec<String>, BenchError> {
    let mut voices = named.to_vec();
    if voices.is_empty() {
        let listed = target.body_of("/v1/audio/voices", None).unwrap_or_default();
        voices.extend(voices_in(&listed).into_iter().take(listed_max));
    }
    match voices.is_empty() {
        true => Err(BenchError::NoVoice { server: target.endpoint.authority() }),
        false => Ok(voices),
    }
}

fn voices_in(body: &[u8]) -> Vec<String> {
    let listed: Value = serde_json::from_slice(body).unwrap_or_default();
    let entries = listed["voices"].as_array().or(listed["data"].as_array());
    let name = |entry: &Value| {
        let names = [entry, &entry["id"], &entry["voice_id"], &entry["name"]];
        names.into_iter().find_map(Value::as_str).map(str::to_owned)
    };
    entries.into_iter().flatten().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voices_are_read_from_each_kind_of_list() {
        let rows = [
            (r#"{"voices":[{"id":"af_heart","name":"Heart"},{"id":"b"}]}"#, &["af_heart", "b"][..]),
            (r#"{"voices":["af_alloy","b"]}"#, &["af_alloy", "b"]),
            (r#"{"data":[{"name":"Ada"}]}"#, &["Ada"]),
            (r#"{"voices":[]}"#, &[]),
            (r#"{"detail":"Not Found"}"#, &[]),
            ("<html>", &[]),
        ];
        for (body, expected) in rows {
            assert_eq!(voices_in(body.as_bytes()), expected, "{body}");
        }
    }
}
