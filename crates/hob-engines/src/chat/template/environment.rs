//! Jinja as Hugging Face's `apply_chat_template` sets it up, with a limit on the steps.
//! No loader: a template cannot include another, and reads nothing but its variables.

use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};
use serde_json::Map;

use super::{NAME, STEPS_MAX, python};

/// Maximum indent. Python has no limit, but larger indents only waste memory.
const INDENT_MAX: usize = 16;

/// Marks an error as the template's own rejection, to distinguish it from errors of the same kind.
#[derive(Debug, thiserror::Error)]
#[error("the template raised an exception")]
struct Refusal(String);

pub(super) fn compile(source: &str) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(STEPS_MAX));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", raise_exception);
    environment.add_filter("tojson", to_json);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
    environment.add_template_owned(NAME, without_generation_marks(source))?;
    Ok(environment)
}

/// The template's variables, and the clock.
pub(super) fn context(variables: Map<String, serde_json::Value>, now: DateTime) -> Value {
    let strftime_now = Value::from_function(move |format: &str| strftime(format, now));
    let variables = variables.into_iter().map(|(name, value)| (name, Value::from(Serde(value))));
    Value::from_pairs(variables.chain([("strftime_now".to_owned(), strftime_now)]))
}

/// The reason, if the template itself rejected the conversation.
pub(super) fn refusal(error: &Error) -> Option<&str> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(Refusal(reason)) = error.downcast_ref() {
            return Some(reason);
        }
        cause = error.source();
    }
    None
}

fn raise_exception(reason: String) -> Result<Value, Error> {
    let refusal = Refusal(reason);
    Err(Error::new(ErrorKind::InvalidOperation, refusal.to_string()).with_source(refusal))
}

/// Supports the arguments that templates use.
fn to_json(value: &Value, arguments: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = arguments.get("indent")?;
    let ensure_ascii: Option<bool> = arguments.get("ensure_ascii")?;
    arguments.assert_all_used()?;
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "an undefined value is not JSON"));
    }
    let value = serde_json::to_value(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let text = python::json(&value, indent.map(|indent| indent.min(INDENT_MAX)));
    Ok(if ensure_ascii == Some(true) { python::ascii(&text) } else { text }.into())
}

fn strftime(format: &str, now: DateTime) -> Result<String, Error> {
    BrokenDownTime::from(now)
        .to_string(format)
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "a date format is not known"))
}

/// As in Python: a string is iterable, and None is not.
fn is_iterable(value: &Value) -> bool {
    match value.kind() {
        ValueKind::String => true,
        ValueKind::None => false,
        _ => value.try_iter().is_ok(),
    }
}

/// As in Jinja2: everything with a length and members.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String)
}

/// Replaces Hugging Face's `{% generation %}`, which marks training data and does not change the text.
fn without_generation_marks(source: &str) -> String {
    let mut out = source.to_owned();
    for (mark, plain) in [("generation", "if true"), ("endgeneration", "endif")] {
        for (open, close) in [("{%", "%}"), ("{%-", "%}"), ("{%", "-%}"), ("{%-", "-%}")] {
            let tag = format!("{open} {mark} {close}");
            out = out.replace(&tag, &format!("{open} {plain} {close}"));
        }
    }
    out
}
