//! Fields of another server's answer that hob does not know.
//! A client that speaks the same protocol gets them as they are, once for each answer.

use hob_core::{ChatEvent, JsonText};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::json;

/// Bytes of all these fields of one answer. Fields beyond that are dropped.
const BYTES_MAX: usize = 64 << 10;
/// Number of these fields. Each is looked up among the others.
const FIELDS_MAX: usize = 64;

/// Names and values, in the order in which the names first came.
#[derive(Debug, Default)]
pub(super) struct ExtraFields(Vec<(String, String)>);

impl ExtraFields {
    /// The last value of a field counts: some servers repeat a field in each piece, and lists become longer. `null` says
    /// nothing.
    pub(super) fn set(&mut self, name: &str, value: &RawValue) {
        let value = value.get();
        let others = self.0.iter().filter(|(known, _)| known != name);
        let (count, bytes) = others.fold((0, 0), |(count, bytes), (name, value)| {
            (count + 1, bytes + name.len() + value.len())
        });
        let is_too_much = count >= FIELDS_MAX || bytes + name.len() + value.len() > BYTES_MAX;
        if value == "null" || is_too_much {
            return;
        }
        // Strings in JSON have no line breaks. One between the members of a value would end the line of an event.
        let value = value.replace(['\n', '\r'], " ");
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(super) fn take(&mut self) -> Option<ChatEvent> {
        let mut fields = std::mem::take(&mut self.0);
        // A raw value may hold half of a surrogate pair, or a number that is too large. Clients fail to parse a chunk with it.
        fields.retain(|(_, value)| serde_json::from_str::<Value>(value).is_ok());
        let members = fields.iter().map(|(name, value)| format!("{}:{value}", json(name)));
        let members = members.collect::<Vec<_>>().join(",");
        (!members.is_empty()).then(|| ChatEvent::Extra(JsonText::parsed(format!("{{{members}}}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(fields: &[(&str, &str)]) -> Option<String> {
        let mut extra = ExtraFields::default();
        for (name, value) in fields {
            extra.set(name, serde_json::from_str(value).expect("JSON"));
        }
        match extra.take()? {
            ChatEvent::Extra(object) => Some(object.as_str().to_owned()),
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn the_last_value_counts_and_null_does_not() {
        let fields = [("a", "1"), ("b \"", "[1, 2]"), ("a", r#"{"x":null}"#), ("a", "null")];
        assert_eq!(taken(&fields).as_deref(), Some(r#"{"a":{"x":null},"b \"":[1, 2]}"#));
        assert_eq!(taken(&[("a", "null")]), None);
        assert_eq!(taken(&[]), None);
    }

    #[test]
    fn a_value_stays_on_one_line() {
        let fields = [("a", "{\n  \"b\": 1,\r\n  \"c\": \"\\n\"\r}")];
        assert_eq!(taken(&fields).as_deref(), Some(r#"{"a":{   "b": 1,    "c": "\n" }}"#));
    }

    #[test]
    fn what_a_client_could_not_read_is_dropped() {
        let nested = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let fields = [("a", r#""\ud800""#), ("b", "1e999"), ("c", nested.as_str()), ("d", "1")];
        assert_eq!(taken(&fields).as_deref(), Some(r#"{"d":1}"#));
    }

    #[test]
    fn fields_beyond_the_limit_are_dropped() {
        let long = format!("\"{}\"", "x".repeat(BYTES_MAX - 8));
        let fields = [("a", "1"), ("long", long.as_str()), ("b", "123456"), ("a", "2")];
        let expected = format!(r#"{{"a":2,"long":{long}}}"#);
        assert_eq!(
            taken(&fields),
            Some(expected),
            "two names and one digit are 6 bytes, and two quotes"
        );
        let names: Vec<String> = (0..=FIELDS_MAX).map(|number| number.to_string()).collect();
        let mut fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        fields.push(("0", "2"));
        let text = taken(&fields).expect("fields");
        assert!(text.starts_with(r#"{"0":2,"1":1,"#) && text.ends_with(r#""63":1}"#), "{text}");
    }
}
