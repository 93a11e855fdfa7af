//! `docs/reference/api.md`: the API's routes, fields and types, made from the document of `GET /openapi.json`.
//! The text around the tables is `api.md` in this folder.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::record::{type_text, values};
use super::{GENERATED_NOTE, row};

/// In the template, the routes of a group replace `<!-- routes: NAME -->`, the types `<!-- types -->`, and the metrics
/// `<!-- metrics -->`.
const TEMPLATE: &str = include_str!("api.md");

pub(crate) fn markdown() -> String {
    let document = hob_wire::openapi();
    let mut page = String::new();
    for line in TEMPLATE.lines() {
        let inside = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        match inside.map(|inside| inside.split_once(": ").unwrap_or((inside, ""))) {
            Some(("made", _)) => page.push_str(GENERATED_NOTE),
            Some(("routes", group)) => routes(&mut page, &document, group),
            Some(("types", _)) => types(&mut page, &document),
            Some(("metrics", _)) => metrics(&mut page),
            _ => page.push_str(line),
        }
        page.push('\n');
    }
    page.replace("\n\n\n", "\n\n")
}

fn metrics(page: &mut String) {
    page.push_str("| name | type | labels | meaning |\n|---|---|---|---|\n");
    for metric in hob_server::METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let name = format!("`{}`", metric.name);
        row(page, &[&name, metric.kind.name(), &labels.join(", "), metric.meaning]);
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn routes(page: &mut String, document: &Value, group: &str) {
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(methods) {
            if operation["tags"][0] == group {
                route(page, &format!("{} {path}", method.to_uppercase()), operation);
            }
        }
    }
}

fn route(page: &mut String, name: &str, operation: &Value) {
    let summary = operation["summary"].as_str().unwrap_or_default();
    let key = if operation["security"].is_array() { " It needs no key." } else { "" };
    // Writing to a String cannot fail, here and below.
    let _infallible = write!(page, "\n### `{name}`\n\n{summary}{key}\n");
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query = parameters.filter(|one| one["in"] == "query");
    let fields: Map<String, Value> = query
        .map(|one| {
            let mut schema = one["schema"].clone();
            schema["description"] = one["description"].clone();
            (one["name"].as_str().unwrap_or_default().to_owned(), schema)
        })
        .collect();
    if !fields.is_empty() {
        table(page, &fields, &[]);
    }
    let bodies: Vec<String> = members(&operation["requestBody"]["content"])
        .map(|(media, content)| format!("{} as `{media}`", type_text(&content["schema"])))
        .collect();
    if !bodies.is_empty() {
        let _infallible = write!(page, "\nTakes {}.\n", bodies.join(", or "));
    }
    let answers: Vec<String> = members(&operation["responses"]["200"]["content"])
        .map(|(media, content)| answer_text(media, &content["schema"]))
        .collect();
    if !answers.is_empty() {
        let _infallible = write!(page, "\nAnswers with {}.\n", answers.join(", or "));
    }
    let accepted = &operation["responses"]["202"]["content"]["application/json"];
    if accepted.is_object() {
        let kind = type_text(&accepted["schema"]);
        let _infallible = write!(page, "\nAnswers `202` with {kind}.\n");
    }
    let socket = &operation["responses"]["101"];
    if socket.is_object() {
        let client = type_text(&socket["x-client-events"]["schema"]);
        let server = type_text(&socket["content"]["application/json"]["schema"]);
        let _infallible = write!(
            page,
            "\nEach text of the client is a {client}, and each of the server a {server}.\n"
        );
    }
}

/// What a route answers with: its type, or for a stream the media type and the types of its events.
fn answer_text(media: &str, schema: &Value) -> String {
    let streamed = &schema["contentSchema"];
    match (streamed.is_object(), type_text(if streamed.is_object() { streamed } else { schema })) {
        (true, kinds) => format!("`{media}` of {kinds}"),
        (false, kinds) if kinds.is_empty() => format!("`{media}`"),
        (false, kinds) => kinds,
    }
}

fn types(page: &mut String, document: &Value) {
    for (name, schema) in members(&document["components"]["schemas"]) {
        let meaning = schema["description"].as_str().unwrap_or_default();
        let _infallible = write!(page, "\n### {name}\n\n{meaning}\n");
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        if let Some(fields) = schema["properties"].as_object() {
            table(page, fields, &required);
        }
        let forms = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        for form in forms.into_iter().flatten() {
            if let Some(fields) = form["properties"].as_object() {
                if let Some(meaning) = form["description"].as_str() {
                    let _infallible = write!(page, "\n{meaning}\n");
                }
                table(page, fields, form["required"].as_array().map_or(&[], Vec::as_slice));
            }
        }
        value_table(page, &values(schema));
    }
}

fn value_table(page: &mut String, values: &[(String, String)]) {
    if values.is_empty() {
        return;
    }
    page.push_str("\n| value | meaning |\n|---|---|\n");
    for (value, meaning) in values {
        row(page, &[&format!("`{value}`"), meaning]);
    }
}

fn table(page: &mut String, fields: &Map<String, Value>, required: &[Value]) {
    page.push_str("\n| field | is | meaning |\n|---|---|---|\n");
    for (name, schema) in fields {
        let meaning = schema["description"].as_str().unwrap_or_default();
        let is_required = required.iter().any(|one| one == name);
        let field = if is_required { format!("`{name}` (always)") } else { format!("`{name}`") };
        row(page, &[&field, &values_or_type(schema), meaning]);
    }
}

/// The values of an enumeration, or the type.
fn values_or_type(schema: &Value) -> String {
    if let Some(only) = schema["const"].as_str() {
        return format!("`{only}`");
    }
    if schema["enum"].is_array() || schema["oneOf"].is_array() {
        return quoted_values(schema);
    }
    match schema["anyOf"].as_array() {
        // An enumeration that may be null: its values have meanings, so they stand in a list of their own.
        Some(forms) if forms.iter().any(|form| form["oneOf"].is_array()) => {
            let is_listed = |form: &Value| form["oneOf"].is_array();
            let texts = forms
                .iter()
                .map(|form| if is_listed(form) { quoted_values(form) } else { type_text(form) });
            texts.collect::<Vec<_>>().join(" or ")
        }
        _ => type_text(schema),
    }
}

fn quoted_values(schema: &Value) -> String {
    let values = values(schema).into_iter().filter(|(value, _)| !value.is_empty());
    values.map(|(value, _)| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_and_type_has_one_heading_on_the_page() {
        let (page, document) = (markdown(), hob_wire::openapi());
        for (path, methods) in members(&document["paths"]) {
            for method in methods.as_object().expect("methods").keys() {
                let title = format!("\n### `{} {path}`\n", method.to_uppercase());
                assert_eq!(page.matches(&title).count(), 1, "{title}");
            }
        }
        for (name, _) in members(&document["components"]["schemas"]) {
            assert_eq!(page.matches(&format!("\n### {name}\n")).count(), 1, "{name}");
        }
        assert!(page.contains("| `input` (always) | string | The text to speak"), "{page}");
    }

    #[test]
    fn every_field_has_a_type_or_its_values() {
        let page = markdown();
        let rows = page.split("\n| field | is | meaning |\n|---|---|---|\n").skip(1);
        let rows = rows.flat_map(|table| table.lines().take_while(|line| line.starts_with('|')));
        for row in rows {
            let kind = row.split(" | ").nth(1).unwrap_or_default();
            let is_whole = |part: &str| !part.trim().is_empty();
            assert!(kind.split(" or ").all(is_whole) && !kind.starts_with(" or"), "{row}");
        }
        for expected in [
            "| `type` (always) | `session.update`, `input_audio_buffer.append`, ",
            "| `type` (always) | `session.created` |  |",
            "| `order` | `asc`, `desc` or null |",
            "| `arguments` (always) | object |",
            "| `upstream_error` | The failure of a server behind this one. |",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }
}
