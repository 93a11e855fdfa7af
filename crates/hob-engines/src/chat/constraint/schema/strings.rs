//! Maximum lengths of strings, and exact patterns for dates and times.
//! The grammar's own formats allow dates and times that do not exist.

use serde_json::{Map, Value, json};

use super::{PATTERN_CHARS_MAX, STRING_CHARS_MAX};

/// Formats that the grammar knows. Others have no effect, as JSON Schema says.
pub(super) const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// Formats whose grammar allows dates, times or names that do not exist.
const STRICT_FORMATS: [&str; 4] = ["date", "time", "date-time", "hostname"];
const DATE: &str = "[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|20([02468][048]|[13579][26])-02-29";
const TIME: &str =
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
/// A part of a host name. Two hyphens in a row are reserved for names in other alphabets.
const LABEL: &str = "[A-Za-z0-9]+(-[A-Za-z0-9]+)*";
/// Maximum characters of a host name. It is the limit of one label, because the pattern does not limit each of them.
const HOST_CHARS_MAX: u32 = 63;

/// Formats that do not limit their length, and the maximum length that hob allows. The parts of a mail
/// address have limits of their own.
const ENDLESS_FORMATS: [(&str, u32); 4] =
    [("email", 63), ("hostname", HOST_CHARS_MAX), ("uri", 256), ("duration", 24)];

/// Adds a maximum length to the schema of a string, where its format or pattern does not limit it.
pub(super) fn bound(schema: &mut Map<String, Value>) {
    restate_format(schema);
    let wanted = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    let limit = match schema.get("format").and_then(Value::as_str) {
        _ if schema.contains_key("maxLength") => return,
        Some(format) => ENDLESS_FORMATS.iter().find(|(name, _)| *name == format).map(|f| f.1),
        None if schema.get("pattern").and_then(Value::as_str).is_some_and(is_finite) => None,
        None if schema.contains_key("pattern") => Some(PATTERN_CHARS_MAX),
        None => Some(STRING_CHARS_MAX),
    };
    if let Some(limit) = limit {
        schema.insert("maxLength".to_owned(), json!(wanted.max(limit.into())));
    }
}

/// Replaces the format of a date, a time or a host by a pattern.
fn restate_format(schema: &mut Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str).map(str::to_owned);
    let format = format.as_deref();
    let pattern = match format.filter(|format| STRICT_FORMATS.contains(format)) {
        Some("date") => format!("^({DATE})$"),
        Some("time") => format!("^{TIME}$"),
        Some("hostname") => format!("^{LABEL}(\\.{LABEL})*$"),
        Some(_) => format!("^({DATE})T{TIME}$"),
        None => return,
    };
    // If the schema has its own pattern, the grammar's format stays.
    if !schema.contains_key("pattern") {
        if format == Some("hostname") {
            let wanted = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            schema.entry("maxLength").or_insert(json!(wanted.max(HOST_CHARS_MAX.into())));
        }
        schema.remove("format");
        schema.insert("pattern".to_owned(), json!(pattern));
    }
}

/// Whether a pattern obviously limits the length of its texts.
fn is_finite(pattern: &str) -> bool {
    let anchored = pattern.starts_with('^') && pattern.ends_with('$');
    anchored && !pattern.contains(['*', '+', '|']) && !pattern.contains(",}")
        || pattern.ends_with(&format!("{TIME}$"))
        || pattern == format!("^({DATE})$")
}
