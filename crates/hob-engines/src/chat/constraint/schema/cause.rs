//! Finds the keyword because of which a schema allows no value, to name it in the error.
//! First it compares bounds, then it leaves out one keyword after the other until the schema compiles.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{KEYWORDS, SchemaKeyword, each_schema};
use crate::chat::constraint::closing::END_BYTES_MAX;

/// Time for leaving out keywords. After it, the error names the last place that was found.
const SEARCH_MAX: Duration = Duration::from_secs(1);

/// A lower bound, its upper bound, and the largest lower bound for which hob finds a value.
const BOUNDS: [(&str, &str, f64); 4] = [
    ("minLength", "maxLength", END_BYTES_MAX as f64),
    ("minItems", "maxItems", END_BYTES_MAX as f64),
    ("minProperties", "maxProperties", END_BYTES_MAX as f64),
    ("minimum", "maximum", f64::INFINITY),
];

/// The keyword that allows no value, and the path of its schema. `None` if it is not found.
pub(in crate::chat::constraint) fn cause(
    schema: &Value,
    mut compiles: impl FnMut(&Value) -> bool,
) -> Option<SchemaKeyword> {
    let found = crossed_bound(schema, "");
    // A part of a schema with references does not compile alone.
    if found.is_some() || refers(schema) {
        return found;
    }
    let began = Instant::now();
    let mut fits = |schema: &Value| began.elapsed() < SEARCH_MAX && compiles(schema);
    let (mut place, mut path, mut found) = (schema.clone(), String::new(), None);
    while let Some(keyword) = blocking(&place, &mut fits) {
        found = Some(SchemaKeyword { path: path.clone(), keyword });
        let parts = place.get(keyword).map(|value| parts(keyword, value)).unwrap_or_default();
        let Some((step, schema)) = parts.into_iter().find(|(_, schema)| !fits(schema)) else {
            break;
        };
        path = format!("{path}.{step}");
        place = schema;
    }
    found
}

/// The first lower bound that is above its upper bound, or too large.
fn crossed_bound(schema: &Value, path: &str) -> Option<SchemaKeyword> {
    let members = schema.as_object()?;
    let number = |name: &str| members.get(name).and_then(Value::as_f64);
    let crossed = BOUNDS.into_iter().find(|(low, high, most)| {
        number(low).is_some_and(|low| low > number(high).unwrap_or(f64::INFINITY).min(*most))
    });
    if let Some((keyword, ..)) = crossed {
        return Some(SchemaKeyword { path: path.to_owned(), keyword });
    }
    let mut parts = members.iter().flat_map(|(name, value)| parts(name, value));
    parts.find_map(|(step, schema)| crossed_bound(&schema, &format!("{path}.{step}")))
}

/// The first keyword without which the schema compiles.
fn blocking(schema: &Value, fits: &mut impl FnMut(&Value) -> bool) -> Option<&'static str> {
    let members = schema.as_object()?;
    KEYWORDS.split_whitespace().filter(|keyword| members.contains_key(*keyword)).find(|keyword| {
        let mut rest = members.clone();
        rest.remove(*keyword);
        fits(&Value::Object(rest))
    })
}

/// The schemas that a keyword contains, with their paths from the keyword on.
fn parts(name: &str, value: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    each_schema(name, value, |step, schema| {
        found.push((step.to_owned(), schema.clone()));
        Value::Null
    });
    found
}

fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("$ref") || members.values().any(refers),
        Value::Array(values) => values.iter().any(refers),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_that_is_too_long_for_an_answer_is_the_cause() {
        let name = json!({ "type": "string", "minLength": 1_000_000_000 });
        let schema = json!({ "properties": { "name": name, "note": { "type": "string" } } });
        let found = cause(&schema, |_| unreachable!("bounds need no compiler"));
        let path = ".properties.name".to_owned();
        assert_eq!(found, Some(SchemaKeyword { path, keyword: "minLength" }));
    }
}
