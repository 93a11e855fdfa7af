//! Writes JSON like Python's `json.dumps(…, ensure_ascii=False)`, because models were trained on it:
//! a space after `,` and `:`, original order, no HTML escapes.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// `indent` in spaces. `None` writes one line.
pub(super) fn json(value: &Value, indent: Option<usize>) -> String {
    let mut out = Vec::new();
    let written = match indent {
        None => value.serialize(&mut Serializer::with_formatter(&mut out, OneLine)),
        Some(indent) => {
            let indent = " ".repeat(indent);
            let formatter = Lines(PrettyFormatter::with_indent(indent.as_bytes()));
            value.serialize(&mut Serializer::with_formatter(&mut out, formatter))
        }
    };
    // Writing a value whose keys are strings into memory cannot fail.
    debug_assert!(written.is_ok());
    String::from_utf8_lossy(&out).into_owned()
}

/// The same JSON with non-ASCII characters escaped. They occur within strings only.
pub(super) fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

struct OneLine;

impl Formatter for OneLine {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(float(value).as_bytes())
    }
}

struct Lines<'a>(PrettyFormatter<'a>);

/// Passes calls on to the formatter inside.
macro_rules! as_inside {
    ($($call:ident($($first:ident)?);)*) => {
        $(fn $call<W: ?Sized + Write>(&mut self, out: &mut W $(, $first: bool)?) -> io::Result<()> {
            self.0.$call(out $(, $first)?)
        })*
    };
}

impl Formatter for Lines<'_> {
    as_inside! {
        begin_array();
        end_array();
        begin_array_value(first);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first);
        begin_object_value();
        end_object_value();
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(float(value).as_bytes())
    }
}

/// Python's `repr`: the fewest digits that identify the number, and outside 1e-4 to 1e16 an exponent of at least two
/// digits.
fn float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}
