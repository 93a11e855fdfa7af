//! Fields of another server's answer that hob does not know.
//! A client that speaks the same protocol gets them as they are, once for each answer.

use hob_core::{ChatEvent, JsonText, UnknownFields};
use serde_json::Value;
use serde_json::value::RawValue;

use super::lenient::Text;
use crate::error::json;

/// Bytes of all these fields of one answer. Fields beyond that are dropped.
const BYTES_MAX: usize = 64 << 10;
/// Number of these fields. Each is looked up among the others.
const FIELDS_MAX: usize = 64;

/// The object of a piece that holds the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldPlace {
    /// The piece itself.
    Answer,
    Choice,
    /// The message or the delta of the choice.
    Message,
}

/// In the order in which the names first came.
#[derive(Debug, Default)]
pub(super) struct ExtraFields(Vec<ExtraField>);

#[derive(Debug)]
struct ExtraField {
    place: FieldPlace,
    name: String,
    /// JSON. `null` for a value that comes in parts.
    value: String,
}

impl ExtraField {
    fn is(&self, place: FieldPlace, name: &str) -> bool {
        self.place == place && self.name == name
    }
}

impl ExtraFields {
    pub(super) fn keep(&mut self, place: FieldPlace, fields: &[(Text<'_>, &RawValue)]) {
        for (name, value) in fields {
            self.set(place, name.as_str(), value);
        }
    }

    /// The last value of a field of the answer counts: some servers repeat a field in each piece, and lists become longer.
    /// A field of a choice or a message with another value in another piece comes in parts, such as the ids of the tokens.
    /// hob does not know how to join these, and drops the field. `null` says nothing, and in a choice or a message no empty
    /// value does.
    fn set(&mut self, place: FieldPlace, name: &str, value: &RawValue) {
        let value = value.get();
        let is_part = place != FieldPlace::Answer;
        if value == "null" || is_part && matches!(value, "[]" | "{}" | r#""""#) {
            return;
        }
        let others = self.0.iter().filter(|known| !known.is(place, name));
        let (count, bytes) = others.fold((0, 0), |(count, bytes), other| {
            (count + 1, bytes + other.name.len() + other.value.len())
        });
        let fits =
            |value: &str| count < FIELDS_MAX && bytes + name.len() + value.len() <= BYTES_MAX;
        // Strings in JSON have no line breaks. One between the members of a value would end the line of an event.
        let value = value.replace(['\n', '\r'], " ");
        match self.0.iter_mut().find(|known| known.is(place, name)) {
            Some(known) if is_part && known.value != value => "null".clone_into(&mut known.value),
            Some(known) if fits(&value) => known.value = value,
            None if fits(&value) => self.0.push(ExtraField { place, name: name.to_owned(), value }),
            // A later and shorter part must not pass for the whole value.
            None if is_part && fits("null") => {
                self.0.push(ExtraField { place, name: name.to_owned(), value: "null".to_owned() });
            }
            Some(_) | None => {}
        }
    }

    pub(super) fn take(&mut self) -> Option<ChatEvent> {
        let mut fields = std::mem::take(&mut self.0);
        // A raw value may hold half of a surrogate pair, or a number that is too large. Clients fail to parse a chunk with it.
        fields.retain(|field| {
            field.value != "null" && serde_json::from_str::<Value>(&field.value).is_ok()
        });
        let object = |place| {
            let members = fields.iter().filter(|field| field.place == place);
            let members = members.map(|field| format!("{}:{}", json(&field.name), field.value));
            JsonText::parsed(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
        };
        (!fields.is_empty()).then(|| {
            ChatEvent::Extra(UnknownFields {
                answer: object(FieldPlace::Answer),
                choice: object(FieldPlace::Choice),
                message: object(FieldPlace::Message),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_of(place: FieldPlace, fields: &[(&str, &str)]) -> Option<UnknownFields> {
        let mut extra = ExtraFields::default();
        for (name, value) in fields {
            extra.set(place, name, serde_json::from_str(value).expect("JSON"));
        }
        match extra.take()? {
            ChatEvent::Extra(fields) => Some(fields),
            other => unreachable!("{other:?}"),
        }
    }

    fn taken(fields: &[(&str, &str)]) -> Option<String> {
        taken_of(FieldPlace::Answer, fields).map(|fields| fields.answer.as_str().to_owned())
    }

    #[test]
    fn fields_of_choices_and_messages_that_come_in_parts_are_dropped() {
        let long = format!("\"{}\"", "x".repeat(BYTES_MAX));
        let fields = [
            ("a", "{}"),
            ("a", r#"{"x":1}"#),
            ("a", r#"{"x":1}"#),
            ("a", "[]"),
            ("b", "[1]"),
            ("b", "[2]"),
            ("b", "[2]"),
            ("c", r#""cut""#),
            ("c", long.as_str()),
            ("d", long.as_str()),
            ("d", r#""end""#),
        ];
        let empty = JsonText::parsed("{}");
        let kept = JsonText::parsed(r#"{"a":{"x":1}}"#);
        let of_choice = taken_of(FieldPlace::Choice, &fields).expect("one field");
        let expected =
            UnknownFields { answer: empty.clone(), choice: kept.clone(), message: empty.clone() };
        assert_eq!(of_choice, expected);
        let of_message = taken_of(FieldPlace::Message, &fields).expect("one field");
        let expected = UnknownFields { answer: empty.clone(), choice: empty, message: kept };
        assert_eq!(of_message, expected);
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
