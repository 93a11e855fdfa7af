//! `GET /openapi.json`: the table of routes as an OpenAPI 3.1 document.
//! Schemas come from the types that read requests and write answers, so the three cannot differ.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::error::ErrorEnvelope;
use crate::ollama::OllamaFailure;
use crate::operations::{
    OPERATIONS, Operation, OperationAccess, OperationAnswer, OperationGroup, OperationInput,
    SchemaOf,
};
use crate::pipelines::PipelineError;

/// Statuses of errors, and what they mean. A route without a model has the first row's, and those of its key.
const OPEN_ERRORS: [(u16, &str); 1] =
    [(421, "The name in `Host`, or the page's origin, is not allowed.")];
const LIST_ERRORS: [(u16, &str); 1] =
    [(401, "This hob has keys, and the request has another one.")];
const KEYED_ERRORS: [(u16, &str); 4] = [
    (400, "A field is missing, of the wrong type or out of range. `param` names it."),
    (401, "This hob has keys, and the request has none or another."),
    (403, "The key may not do this."),
    (404, "There is no such model, request, machine, team, run or file."),
];
const TEAM_ERRORS: [(u16, &str); 2] = [
    (409, "The run has ended, waits for nothing, or is in the hands of another process."),
    (503, "Too many runs go on. `Retry-After` says when to try again."),
];
const PIPELINE_ERRORS: [(u16, &str); 2] = [
    (409, "There is a team of this name, or the team has no file of its own."),
    (413, "The body or the team file is too large."),
];
const MODEL_ERRORS: [(u16, &str); 8] = [
    (408, "The body was too slow."),
    (413, "The body is too large."),
    (415, "The body is not of a type that the route takes."),
    (429, "A limit of the key is used up. `Retry-After` says when to try again."),
    (500, "The engine failed."),
    (502, "No target answered."),
    (
        503,
        "The model is busy, loading or gone. `Retry-After` says when to try again, where that helps.",
    ),
    (504, "A target sent nothing in time."),
];

/// The document.
pub fn openapi() -> Value {
    let mut document = Document::new();
    for operation in OPERATIONS {
        document.add(operation);
    }
    document.finish()
}

/// A type may be read or written, and its schema differs: absent fields of an answer are not required.
struct Document {
    read: SchemaGenerator,
    write: SchemaGenerator,
    paths: Map<String, Value>,
    requests: Map<String, Value>,
}

impl Document {
    fn new() -> Document {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Document {
            read: settings().for_deserialize().into_generator(),
            write: settings().for_serialize().into_generator(),
            paths: Map::new(),
            requests: Map::new(),
        }
    }

    fn add(&mut self, operation: &Operation) {
        let mut described = json!({
            "operationId": operation.id,
            "tags": [operation.group],
            "summary": operation.summary,
            "responses": self.responses(operation),
        });
        if matches!(operation.access, OperationAccess::Open | OperationAccess::List) {
            described["security"] = json!([]);
        }
        let mut parameters = path_parameters(operation.path);
        match &operation.input {
            OperationInput::Nothing => {}
            OperationInput::Flag(name, meaning) => parameters.push(json!({
                "name": name, "in": "query", "description": meaning, "schema": {"type": "boolean"},
            })),
            OperationInput::Query(fields) => parameters.extend(self.query(*fields)),
            OperationInput::Json(name, parts) => {
                let schema = self.request(name, parts);
                described["requestBody"] = json!({
                    "required": true, "content": {"application/json": {"schema": schema}},
                });
            }
            OperationInput::Form => {
                let file =
                    json!({"type": "string", "contentMediaType": "application/octet-stream"});
                let form =
                    json!({"type": "object", "properties": {"file": file}, "required": ["file"]});
                described["requestBody"] = json!({
                    "required": true, "content": {"multipart/form-data": {"schema": form}},
                });
            }
            OperationInput::FormOrJson(name, fields, sound) => {
                let json = self.request(name, &[*sound, *fields]);
                let form = self.form(&format!("{name}Form"), *fields);
                described["requestBody"] = json!({"required": true, "content": {
                    "multipart/form-data": {"schema": form}, "application/json": {"schema": json},
                }});
            }
        }
        if !parameters.is_empty() {
            described["parameters"] = Value::Array(parameters);
        }
        let path = operation.path.replace("{*", "{");
        let method = operation.method.name().to_ascii_lowercase();
        let item = self.paths.entry(path).or_insert_with(|| json!({}));
        item[method] = described;
    }

    fn responses(&mut self, operation: &Operation) -> Value {
        let mut responses = Map::new();
        let is_offered = !matches!(operation.answers, [OperationAnswer::NotOffered]);
        if let [OperationAnswer::Socket(client, server)] = operation.answers {
            responses.insert("101".to_owned(), self.socket(*client, *server));
        } else if let [OperationAnswer::Accepted(of)] = operation.answers {
            let schema = of(&mut self.write).to_value();
            responses.insert(
                "202".to_owned(),
                json!({"description": "Accepted.", "content": {"application/json": {"schema": schema}}}),
            );
        } else if is_offered {
            let content = self.content(operation.answers);
            responses.insert(
                "200".to_owned(),
                json!({"description": "The answer.", "content": content}),
            );
        }
        let error = match operation.group {
            OperationGroup::Ollama => self.write.subschema_for::<OllamaFailure<'_>>(),
            OperationGroup::Pipelines => self.write.subschema_for::<PipelineError<'_>>(),
            _ => self.write.subschema_for::<ErrorEnvelope<'_>>(),
        };
        let not_offered = [(501, "hob does not offer this route.")];
        let (keyed, model, missing): (&[_], &[_], &[_]) = match operation.access {
            OperationAccess::Open => (&[], &[], &[]),
            OperationAccess::List => (&LIST_ERRORS, &[], &[]),
            OperationAccess::Keyed if operation.group == OperationGroup::Teams => {
                (&KEYED_ERRORS, &TEAM_ERRORS, &[])
            }
            OperationAccess::Keyed if operation.group == OperationGroup::Pipelines => {
                (&KEYED_ERRORS, &PIPELINE_ERRORS, &[])
            }
            OperationAccess::Keyed => {
                (&KEYED_ERRORS, &[], if is_offered { &[] } else { &not_offered })
            }
            OperationAccess::Model => (&KEYED_ERRORS, &MODEL_ERRORS, &[]),
        };
        for (status, meaning) in OPEN_ERRORS.iter().chain(keyed).chain(model).chain(missing) {
            let content = json!({"application/json": {"schema": error}});
            responses
                .insert(status.to_string(), json!({"description": meaning, "content": content}));
        }
        Value::Object(responses)
    }

    fn content(&mut self, answers: &[OperationAnswer]) -> Value {
        let mut content: Map<String, Value> = Map::new();
        for answer in answers {
            let (media, schema) = match answer {
                OperationAnswer::Json(of) => ("application/json", of(&mut self.write).to_value()),
                OperationAnswer::Raw(media) => (*media, json!({})),
                OperationAnswer::Events(of) => {
                    ("text/event-stream", self.texts(of, "each `data:` line"))
                }
                OperationAnswer::Lines(of) => ("application/x-ndjson", self.texts(of, "each line")),
                OperationAnswer::Accepted(_)
                | OperationAnswer::Socket(..)
                | OperationAnswer::NotOffered => continue,
            };
            match content.get_mut(media) {
                None => {
                    content.insert(media.to_owned(), json!({"schema": schema}));
                }
                // One of two forms of the same media type, by a field of the request.
                Some(known) => {
                    let first = known["schema"].take();
                    known["schema"] = json!({"anyOf": [first, schema]});
                }
            }
        }
        Value::Object(content)
    }

    /// OpenAPI has no word for a WebSocket: its answer is a switch of protocols, and an extension has the client's events.
    fn socket(&mut self, client: SchemaOf, server: SchemaOf) -> Value {
        json!({
            "description": "A WebSocket. Each text is one event as JSON.",
            "content": {"application/json": {"schema": server(&mut self.write).to_value()}},
            "x-client-events": {"schema": client(&mut self.read).to_value()},
        })
    }

    /// OpenAPI 3.1 has no word for a stream of JSON texts, and JSON Schema has one for a text that holds JSON.
    fn texts(&mut self, of: &[SchemaOf], which: &str) -> Value {
        let all: Vec<Value> = of.iter().map(|of| of(&mut self.write).to_value()).collect();
        json!({
            "type": "string",
            "description": format!("A stream: {which} holds one of these types as JSON."),
            "contentMediaType": "application/json",
            "contentSchema": {"anyOf": all},
        })
    }

    /// A body with the fields of several types, as one schema with a name.
    fn request(&mut self, name: &str, parts: &[SchemaOf]) -> Value {
        let mut merged = json!({"type": "object", "properties": {}, "required": []});
        for part in parts {
            let fields = self.fields(*part);
            if merged.get("description").is_none() {
                merged["description"] = fields["description"].clone();
            }
            if let (Some(all), Value::Object(more)) =
                (merged["properties"].as_object_mut(), fields["properties"].clone())
            {
                all.extend(more);
            }
            if let (Some(all), Value::Array(more)) =
                (merged["required"].as_array_mut(), fields["required"].clone())
            {
                all.extend(more);
            }
        }
        self.requests.insert(name.to_owned(), merged);
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    fn form(&mut self, name: &str, fields: SchemaOf) -> Value {
        let reference = self.request(name, &[fields]);
        let form = &mut self.requests[name];
        form["properties"]["file"] = json!({
            "type": "string", "contentMediaType": "application/octet-stream",
            "description": "The sound file, at most 100 MiB: wav, flac, mp3, m4a, mp4, ogg, opus or webm. Its bytes say which.",
        });
        form["required"] = json!(["file"]);
        reference
    }

    fn query(&mut self, fields: SchemaOf) -> Vec<Value> {
        let fields = self.fields(fields);
        let properties = fields["properties"].as_object().cloned().unwrap_or_default();
        let parameter = |(name, mut schema): (String, Value)| {
            let meaning = schema["description"].take();
            if let Some(schema) = schema.as_object_mut() {
                schema.remove("description");
            }
            json!({"name": name, "in": "query", "description": meaning, "schema": schema})
        };
        properties.into_iter().map(parameter).collect()
    }

    /// The definition of a type of fields, which stands in the document only inside its requests.
    fn fields(&mut self, of: SchemaOf) -> Value {
        let reference: Schema = of(&mut self.read);
        let name = reference.as_value()["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let definition = name.and_then(|name| self.read.definitions().get(name));
        definition.cloned().unwrap_or_default()
    }

    fn finish(mut self) -> Value {
        let mut schemas = self.requests;
        let fields = self.read.take_definitions(true).into_iter();
        // The fields of a request stand in its own schema.
        schemas.extend(fields.filter(|(name, _)| !name.ends_with("Fields")));
        schemas.extend(self.write.take_definitions(true));
        for schema in schemas.values_mut() {
            tidy(schema);
        }
        schemas.sort_keys();
        let paths = &mut self.paths;
        paths.values_mut().for_each(tidy);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "hob",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Local speech, chat and transcription. Every path below `/v1` is also answered without `/v1`.",
                "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            // Without keys in its configuration, hob needs none.
            "security": [{}, {"bearer": []}, {"apiKey": []}, {"xApiKey": []}],
            "paths": paths,
            "components": {
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer"},
                    "apiKey": {"type": "apiKey", "in": "header", "name": "api-key"},
                    "xApiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                },
                "schemas": schemas,
            },
        })
    }
}

fn path_parameters(path: &str) -> Vec<Value> {
    let inside = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let parameter = |name: &str| {
        let name = name.trim_start_matches('*');
        json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
    };
    inside.map(parameter).collect()
}

/// Removes what says nothing: defaults of null, the sizes of Rust's numbers, and line breaks of comments.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            let is_number = members.get("type").is_some_and(|kind| {
                ["integer", "number"].iter().any(|name| kind.to_string().contains(name))
            });
            if is_number {
                members.remove("format");
            }
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(path)) = members.get("$ref") {
                    found.insert(path.rsplit('/').next().unwrap_or_default().to_owned());
                }
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema_and_every_schema_is_used() {
        let document = openapi();
        let mut used = BTreeSet::new();
        references(&document, &mut used);
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        let defined: BTreeSet<String> = schemas.keys().cloned().collect();
        assert_eq!(used, defined);
        // schemars adds a number to the second type of one name.
        let numbered = |name: &&String| name.ends_with(|c: char| c.is_ascii_digit());
        assert_eq!(defined.iter().find(numbered), None);
    }

    #[test]
    fn every_field_of_a_request_and_every_type_is_described() {
        let document = openapi();
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for (name, schema) in schemas {
            assert!(schema["description"].is_string(), "{name}");
            let is_answer = name == "ShownRequest";
            if is_answer || (!name.ends_with("Request") && !name.ends_with("Form")) {
                continue;
            }
            for (field, schema) in schema["properties"].as_object().expect("properties") {
                assert!(schema["description"].is_string(), "{name}.{field}");
            }
        }
    }

    #[test]
    fn a_seed_has_the_range_that_is_read() {
        let document = openapi();
        let seed = &document["components"]["schemas"]["ChatRequest"]["properties"]["seed"];
        assert_eq!(seed["type"], json!(["integer", "null"]));
        assert_eq!((&seed["minimum"], &seed["maximum"]), (&json!(i64::MIN), &json!(u64::MAX)));
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let ids: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.id).collect();
        assert_eq!(ids.len(), OPERATIONS.len());
    }
}
