//! `POST /v1/audio/voices/combine`, which Kokoro-FastAPI has too, and `DELETE /v1/audio/voices/{name}`.
//! Kokoro-FastAPI takes a string or a list, without an object around it, so this does too.

use hob_core::Voice;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::WireError;
use crate::error::json;
use crate::fields::{Fields, malformed};
use crate::request_value::{Either, Name};

/// A request for a blend of voices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireCombine {
    /// The blend in the form of the field `voice` of a request for speech: `af_heart(2)+af_bella(1)`.
    pub voices: String,
    /// The name under which to keep the blend. `None`: it is not kept.
    pub name: Option<String>,
}

/// The fields of `POST /v1/audio/voices/combine`. The body may also be the value of `voices` alone, as in
/// Kokoro-FastAPI.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CombineFields {
    /// A blend such as `af_heart(2)+af_bella(1)`, or a list of its parts. A voice without a weight has the weight 1.
    voices: Either<Name, Vec<Name>>,
    /// The name under which to keep the blend: at most 64 letters, digits, `_` and `-`. Without a name, hob does not
    /// keep it.
    name: Option<Name>,
}

/// A blend of voices.
#[derive(JsonSchema, Serialize)]
pub(crate) struct CombinedVoice<'a> {
    /// What requests write as `voice`.
    id: &'a str,
    /// The blend.
    voices: &'a str,
    /// BCP 47 tag, such as `en-US`.
    language: &'static str,
    /// `female` or `male`: that of the first voice.
    gender: &'static str,
    /// Whether the blend is stored under `id`.
    kept: bool,
}

/// A kept voice that was deleted.
#[derive(JsonSchema, Serialize)]
pub(crate) struct DeletedVoice<'a> {
    id: &'a str,
    deleted: bool,
}

/// Parses the body of `POST /v1/audio/voices/combine`.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_combine(body: &[u8]) -> Result<WireCombine, WireError> {
    let is_bare =
        body.trim_ascii_start().starts_with(b"\"") || body.trim_ascii_start().starts_with(b"[");
    if is_bare {
        // Without this check, text after the value would become further fields of the object.
        serde_json::from_slice::<IgnoredAny>(body).map_err(|error| malformed(&error))?;
    }
    let object = if is_bare { [&b"{\"voices\":"[..], body, b"}"].concat() } else { body.to_vec() };
    let mut fields = Fields::parse(&object)?;
    let CombineFields { voices, name } = fields.read()?;
    let voices = match voices {
        Either::First(Name(blend)) => blend,
        Either::Second(list) => {
            list.into_iter().map(|Name(voice)| voice).collect::<Vec<_>>().join("+")
        }
    };
    let voices = voices.split_whitespace().collect::<String>();
    Ok(WireCombine { voices, name: name.map(|Name(name)| name) })
}

/// The answer to a request for a blend. `voice` has its name and language, and `voices` is the blend.
pub fn combined_voice(voice: &Voice, voices: &str, is_kept: bool) -> String {
    let (language, gender) = (voice.language.tag(), voice.gender.name());
    json(&CombinedVoice { id: &voice.id, voices, language, gender, kept: is_kept })
}

/// The answer to a deletion.
pub fn deleted_voice(id: &str) -> String {
    json(&DeletedVoice { id, deleted: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voices_come_in_three_forms() {
        let rows = [
            (
                r#"{"voices":"af_heart(2) + af_bella(1)","name":"warm"}"#,
                "af_heart(2)+af_bella(1)",
                Some("warm"),
            ),
            (r#"{"voices":["af_heart","af_bella"]}"#, "af_heart+af_bella", None),
            (r#" "af_heart+af_bella""#, "af_heart+af_bella", None),
            (r#"["af_heart","af_bella(2)"]"#, "af_heart+af_bella(2)", None),
        ];
        for (body, voices, name) in rows {
            let expect = WireCombine { voices: voices.to_owned(), name: name.map(str::to_owned) };
            assert_eq!(parse_combine(body.as_bytes()), Ok(expect), "{body}");
        }
        for (body, reason) in [
            ("{}", "'voices' is missing"),
            ("7", "the body must be a JSON object"),
            (r#"{"voices":7}"#, "'voices' must be a string or a list"),
            (r#""af_heart","name":"warm""#, "trailing characters"),
            (r#"["af_heart"],"name":"warm""#, "trailing characters"),
        ] {
            let error = parse_combine(body.as_bytes()).expect_err("refused").to_string();
            assert!(error.contains(reason), "{body}: {error}");
        }
    }
}
