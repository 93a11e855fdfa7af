//! What clients look up besides items: the events of a stored response, and the tokens of a request.
//! Both come from what hob has kept or can count, so no model answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;

const OBJECT: &str = "response.input_tokens";

/// How a stored response is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseView {
    Object,
    /// Events. With `after`, only those behind this number.
    Events {
        after: Option<u64>,
    },
}

/// How a stored response is shown, in the query of the address.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ResponseViewFields {
    /// `true` sends the events of the response again, each text in one piece. Default: `false`.
    stream: Option<String>,
    /// With `stream`: the number of the last event that is left out.
    starting_after: Option<String>,
}

/// The tokens of a request.
#[derive(JsonSchema, Serialize)]
pub(crate) struct InputTokenCount {
    object: &'static str,
    input_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    hob: Option<TokenCountNote>,
}

/// How tokens were counted.
#[derive(JsonSchema, Serialize)]
struct TokenCountNote {
    /// Always `true`: hob counts a token for each four bytes.
    estimated: bool,
}

/// Reads how a stored response is to be shown.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_response_view(pairs: &[(String, String)]) -> Result<ResponseView, WireError> {
    let members = pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let sent: ResponseViewFields = Fields::of(members.collect()).read()?;
    let after = sent.starting_after.map(|number| {
        let reason = "must be the number of an event: 0 or more";
        number.parse::<u64>().map_err(|_| WireError::invalid("starting_after", reason))
    });
    let after = after.transpose()?;
    match sent.stream.as_deref() {
        None | Some("false") => Ok(ResponseView::Object),
        Some("true") => Ok(ResponseView::Events { after }),
        Some(other) => Err(WireError::not_one_of("stream", other, &["true", "false"])),
    }
}

/// The tokens of a request that the model itself has counted.
pub fn input_tokens(tokens: u32) -> String {
    json(&InputTokenCount { object: OBJECT, input_tokens: tokens, hob: None })
}

/// The tokens of a request that no model has counted.
pub fn estimated_input_tokens(tokens: u32) -> String {
    let hob = Some(TokenCountNote { estimated: true });
    json(&InputTokenCount { object: OBJECT, input_tokens: tokens, hob })
}
