//! Checks a tool call: the name, and the arguments as JSON values.
//! A call that is not needed is wrong, and so is a second call.

use hob_core::count_text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::reading::mention::{plain, says, shortened};
use crate::{Answer, CalledTool, Grade};

/// The call that is right, or a reply without a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallExpected {
    /// `None`: a call is wrong.
    pub call: Option<ExpectedCall>,
    /// Without a call: the answer must say one of these. Empty: any answer is right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply: Vec<String>,
    /// Optional arguments that may be given with this value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub defaults: Map<String, Value>,
    /// Arguments with one spelling. All other texts are compared without case and outer spaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exact: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    pub name: String,
    /// An object.
    pub arguments: Value,
}

impl ToolCallExpected {
    pub(crate) fn grade(&self, answer: &Answer) -> Grade {
        match (&self.call, answer.tool_calls.as_slice()) {
            (None, []) => self.grade_reply(&answer.content),
            (None, [call, ..]) => Grade::wrong(format!(
                "no call is needed, and '{}' was called",
                shortened(&call.name)
            )),
            (Some(wanted), []) if is_call_in_text(&answer.content, &wanted.name) => {
                Grade::malformed(format!("the call of '{}' stands in the text", wanted.name))
            }
            (Some(wanted), []) => Grade::wrong(format!("'{}' was not called", wanted.name)),
            (Some(wanted), [call]) => self.grade_call(wanted, call),
            (Some(wanted), calls) => {
                let count = calls.len();
                Grade::wrong(format!(
                    "one call of '{}' is right, and {count} were made",
                    wanted.name
                ))
            }
        }
    }

    fn grade_reply(&self, content: &str) -> Grade {
        if content.contains("<tool_call>") {
            return Grade::malformed("no call is needed, and one stands in the text");
        }
        let text = plain(content);
        if self.reply.is_empty() || self.reply.iter().any(|reply| says(&text, reply)) {
            return Grade::correct("answered without a call");
        }
        let (wanted, read) = (self.reply.join("' or '"), shortened(content));
        Grade::wrong(format!("no call was made, and '{wanted}' is not in the answer: '{read}'"))
    }

    fn grade_call(&self, wanted: &ExpectedCall, call: &CalledTool) -> Grade {
        // Servers send an empty text for a call without arguments.
        let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let Ok(Value::Object(given)) = serde_json::from_str::<Value>(text) else {
            let read = shortened(&call.arguments);
            return Grade::malformed(format!("the arguments are not a JSON object: '{read}'"));
        };
        if call.name.trim() != wanted.name {
            let read = shortened(&call.name);
            return Grade::wrong(format!("'{}' is right, and '{read}' was called", wanted.name));
        }
        let empty = Map::new();
        let expected = wanted.arguments.as_object().unwrap_or(&empty);
        let is_right = |name: &String, value: &Value| {
            let spelling = if self.exact.contains(name) { Spelling::Exact } else { Spelling::Free };
            given.get(name).is_some_and(|given| equal(given, value, spelling))
        };
        let wrong = expected.iter().filter(|(name, value)| !is_right(name, value));
        let extra = given.iter().filter(|(name, value)| {
            let is_default =
                self.defaults.get(*name).is_some_and(|it| equal(it, value, Spelling::Free));
            !expected.contains_key(*name) && !value.is_null() && !is_default
        });
        let faults: Vec<&String> = wrong.chain(extra).map(|(name, _)| name).collect();
        if faults.is_empty() {
            return Grade::correct(format!(
                "'{}' was called with the right arguments",
                wanted.name
            ));
        }
        let right = expected.iter().filter(|(name, value)| is_right(name, value)).count();
        let share = right as f64 / (right + faults.len()) as f64;
        // Half for the right function, the rest by the share of right arguments. Extra arguments that are null do not count.
        let fault = faults[0].as_str();
        let show = |value: Option<&Value>| {
            value.map_or_else(|| "nothing".to_owned(), |value| shortened(&value.to_string()))
        };
        Grade::partial(
            0.5 + 0.5 * share,
            format!(
                "{}; '{}' is {}, expected {}",
                count_text(faults.len(), "wrong argument"),
                shortened(fault),
                show(given.get(fault)),
                show(expected.get(fault)),
            ),
        )
    }
}

/// Whether a text is compared letter for letter.
#[derive(Clone, Copy)]
pub(super) enum Spelling {
    Exact,
    Free,
}

/// Equal as JSON values: 1 is 1.0, and the order of keys does not matter.
pub(super) fn equal(left: &Value, right: &Value, spelling: Spelling) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => match spelling {
            Spelling::Exact => left == right,
            Spelling::Free => left.trim().to_lowercase() == right.trim().to_lowercase(),
        },
        (Value::Number(left), Value::Number(right)) => same_number(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| equal(left, right, spelling))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| {
                    right.get(name).is_some_and(|right| equal(left, right, spelling))
                })
        }
        (left, right) => left == right,
    }
}

/// Equal by value. Two integers are compared exactly: an `f64` has only 53 bits.
pub(super) fn same_number(left: &Number, right: &Number) -> bool {
    left == right || (left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64()
}

/// Whether the text holds what should have been a call, such as `name(…)` or `{"name": …}`.
fn is_call_in_text(content: &str, name: &str) -> bool {
    let calls = |(at, _): (usize, &str)| {
        let (before, after) = (&content[..at], &content[at + name.len()..]);
        let is_in_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        // A sentence has a comma or a colon behind a name, too.
        let is_quoted = before.ends_with('"') && after.starts_with('"') && before.contains('{');
        let after = after.trim_start_matches(['"', '`', '*', ' ', '\n']);
        let is_member = is_quoted && after.starts_with([',', ':']);
        let after = after.strip_prefix(':').map_or(after, str::trim_start);
        let after = after.strip_prefix("```json").map_or(after, str::trim_start);
        !is_in_word && (is_member || after.starts_with(['(', '{']))
    };
    content.contains("<tool_call>")
        || (content.contains('{') || content.contains('('))
            && !name.is_empty()
            && content.match_indices(name).take(100).any(calls)
}
