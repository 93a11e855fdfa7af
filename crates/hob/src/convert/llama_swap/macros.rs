//! llama-swap's macros: `${name}` in any text, a model's own before the general ones, nested at will.
//! `${PORT}`, `${PID}` and `${env.NAME}` have no value before llama-swap runs, and stay as they are.

use serde_json::{Map, Value};

/// Maximum bytes that all macros of a file may expand to.
pub(crate) const EXPANDED_BYTES_MAX: usize = 1 << 20;
/// Maximum nesting of macros.
const ROUNDS_MAX: usize = 16;

/// # Errors
/// The path of the section whose macros expand to more than [`EXPANDED_BYTES_MAX`].
pub(super) fn expanded(mut root: Value) -> Result<Value, String> {
    let general = table(root.get("macros"));
    let mut budget = EXPANDED_BYTES_MAX;
    for (section, value) in root.as_object_mut().into_iter().flatten() {
        match (section.as_str(), value) {
            ("macros", _) => {}
            ("models", Value::Object(models)) => {
                for (id, model) in models {
                    let mut macros = general.clone();
                    macros.extend(table(model.get("macros")));
                    macros.insert("MODEL_ID".to_owned(), Value::String(id.clone()));
                    expand(model, &macros, &mut budget).ok_or_else(|| format!("models.{id}"))?;
                }
            }
            (_, value) => expand(value, &general, &mut budget).ok_or_else(|| section.clone())?,
        }
    }
    Ok(root)
}

fn table(macros: Option<&Value>) -> Map<String, Value> {
    macros.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// `None`: over the budget.
fn expand(value: &mut Value, macros: &Map<String, Value>, budget: &mut usize) -> Option<()> {
    match value {
        Value::String(text) => *value = expand_text(std::mem::take(text), macros, budget)?,
        Value::Array(items) => {
            items.iter_mut().try_for_each(|item| expand(item, macros, budget))?
        }
        Value::Object(table) => {
            for (name, mut value) in std::mem::take(table) {
                expand(&mut value, macros, budget)?;
                let name = match expand_text(name, macros, budget)? {
                    Value::String(name) => name,
                    other => other.to_string(),
                };
                table.insert(name, value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Some(())
}

/// A text that is only a macro gets the macro's type: `temperature: ${temp}`.
fn expand_text(mut text: String, macros: &Map<String, Value>, budget: &mut usize) -> Option<Value> {
    let whole = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    if let Some(value) = whole.and_then(|name| macros.get(name)).filter(|value| !value.is_string())
    {
        *budget = budget.checked_sub(value.to_string().len())?;
        return Some(value.clone());
    }
    for _ in 0..ROUNDS_MAX {
        let next = expand_once(&text, macros, budget)?;
        if next == text {
            return Some(Value::String(text));
        }
        text = next;
    }
    None
}

fn expand_once(text: &str, macros: &Map<String, Value>, budget: &mut usize) -> Option<String> {
    let (mut written, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, end)) = after.split_once('}') else { break };
        written.push_str(before);
        match macros.get(name) {
            Some(Value::String(value)) => {
                *budget = budget.checked_sub(value.len())?;
                written.push_str(value.trim_end_matches('\n'));
            }
            Some(value @ (Value::Number(_) | Value::Bool(_))) => {
                written.push_str(&value.to_string())
            }
            _ => written.push_str(&format!("${{{name}}}")),
        }
        rest = end;
    }
    Some(written + rest)
}
