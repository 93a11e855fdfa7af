//! The default voice: the first one in the server's list.
//! hob and Kokoro-FastAPI list their voices. For OpenAI and others, the user must name one.

use std::time::Duration;

use serde_json::Value;

use crate::ask::ask;
use crate::target::Target;

const ASK_WITHIN: Duration = Duration::from_secs(10);

/// None if the server lists no voices.
pub(super) fn first_voice(target: &Target) -> Option<String> {
    let key = target.key.as_deref();
    let asked = ask(&target.endpoint, "/v1/audio/voices", key, None, ASK_WITHIN).ok()?;
    first_of(&asked.body).filter(|_| asked.status == 200)
}

fn first_of(body: &[u8]) -> Option<String> {
    let listed: Value = serde_json::from_slice(body).ok()?;
    let entries = listed["voices"].as_array().or(listed["data"].as_array())?;
    let first = entries.first()?;
    let names = [first, &first["id"], &first["voice_id"], &first["name"]];
    names.into_iter().find_map(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voices_are_read_from_each_kind_of_list() {
        let rows = [
            (r#"{"voices":[{"id":"af_heart","name":"Heart"},{"id":"b"}]}"#, Some("af_heart")),
            (r#"{"voices":["af_alloy","b"]}"#, Some("af_alloy")),
            (r#"{"data":[{"name":"Ada"}]}"#, Some("Ada")),
            (r#"{"voices":[]}"#, None),
            (r#"{"detail":"Not Found"}"#, None),
            ("<html>", None),
        ];
        for (body, expected) in rows {
            assert_eq!(first_of(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }
}
