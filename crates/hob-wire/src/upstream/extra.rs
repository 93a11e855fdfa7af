//! Fields of another server's answer that hob does not know.
//! A client that speaks the same protocol gets them as they are, once for each answer.

use hob_core::{ChatEvent, JsonText};
use serde_json::value::RawValue;

use crate::error::json;

/// Bytes of all these fields of one answer. Fields beyond that are dropped.
const BYTES_MAX: usize = 64 << 10;

/// Names and values, in the order in which the names first came.
#[derive(Debug, Default)]
pub(super) struct ExtraFields(Vec<(String, String)>);

impl ExtraFields {
    /// The last value of a field counts: some servers repeat a field in each piece, and lists become longer. `null` says
    /// nothing.
    pub(super) fn set(&mut self, name: &str, value: &RawValue) {
        let value = value.get();
        let others = self.0.iter().filter(|(known, _)| known != name);
        let others: usize = others.map(|(name, value)| name.len() + value.len()).sum();
        if value == "null" || others + name.len() + value.len() > BYTES_MAX {
            return;
        }
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    pub(super) fn take(&mut self) -> Option<ChatEvent> {
        let fields = std::mem::take(&mut self.0);
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
    fn fields_beyond_the_limit_are_dropped() {
        let long = format!("\"{}\"", "x".repeat(BYTES_MAX - 8));
        let fields = [("a", "1"), ("long", long.as_str()), ("b", "123456"), ("a", "2")];
        let expected = format!(r#"{{"a":2,"long":{long}}}"#);
        assert_eq!(
            taken(&fields),
            Some(expected),
            "two names and one digit are 6 bytes, and two quotes"
        );
    }
}
