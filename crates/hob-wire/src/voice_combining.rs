//! `POST /v1/audio/voices/combine`, which Kokoro-FastAPI has too, and `DELETE /v1/audio/voices/{name}`.
//! Kokoro-FastAPI takes a string or a list, without an object around it, so this does too.

use hob_core::{Gender, Voice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::request_value::{Either, Name};

/// A blend to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireCombine {
    /// The blend, as a request for speech has it: `af_heart(2)+af_bella(1)`.
    pub voices: String,
    /// `None`: the blend is not kept.
    pub name: Option<String>,
}

/// The fields of `POST /v1/audio/voices/combine`. Kokoro-FastAPI's form, `voices` alone as the body, works too.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CombineFields {
    /// A blend such as `af_heart(2)+af_bella(1)`, or a list of voices that get equal shares.
    voices: Either<Name, Vec<Name>>,
    /// The name under which to keep it: at most 64 letters, digits, `_` and `-`. Without it, nothing is kept.
    name: Option<Name>,
}

/// A blend of voices.
#[derive(JsonSchema, Serialize)]
pub(crate) struct CombinedVoice<'a> {
    /// What requests write as `voice`.
    id: &'a str,
    voices: &'a str,
    /// BCP 47 tag, such as `en-US`.
    language: &'static str,
    /// `female` or `male`: that of the first voice.
    gender: &'static str,
    kept: bool,
}

/// A kept voice that is no longer kept.
#[derive(JsonSchema, Serialize)]
pub(crate) struct DeletedVoice<'a> {
    id: &'a str,
    deleted: bool,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_combine(body: &[u8]) -> Result<WireCombine, WireError> {
    let is_bare =
        body.trim_ascii_start().starts_with(b"\"") || body.trim_ascii_start().starts_with(b"[");
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

/// The answer: what the blend is called and what it is.
pub fn combined_voice(voice: &Voice, voices: &str, is_kept: bool) -> String {
    let gender = match voice.gender {
        Gender::Female => "female",
        Gender::Male => "male",
    };
    let language = voice.language.tag();
    json(&CombinedVoice { id: &voice.id, voices, language, gender, kept: is_kept })
}

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
        ] {
            let error = parse_combine(body.as_bytes()).expect_err("refused").to_string();
            assert!(error.contains(reason), "{body}: {error}");
        }
    }
}
