//! The tools that can be offered, in groups of similar ones: `tools.json` lists them.
//! The first tool of a group is the one that requests call. The others look like it.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Groups of similar tools.
pub(super) static GROUPS: LazyLock<Vec<Vec<Tool>>> = LazyLock::new(|| {
    // The file is part of the program, and every test of this family reads it.
    serde_json::from_str(include_str!("tools.json")).expect("tools.json is a list of groups")
});

/// Ends of descriptions of arguments that have one spelling.
const SPELLINGS: [&str; 2] = ["(YYYY-MM-DD)", "(HH:MM, 24 hours)"];

/// A tool as a client would offer it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    pub(super) name: String,
    description: String,
    /// The schema of each argument.
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Tool {
    /// The definition as an entry of `tools` in `/v1/chat/completions`.
    pub(super) fn definition(&self) -> Value {
        json!({"type": "function", "function": {
            "name": self.name,
            "description": self.description,
            "parameters": {
                "type": "object",
                "properties": self.properties,
                "required": self.required,
                "additionalProperties": false,
            },
        }})
    }

    /// The defaults of the optional arguments.
    pub(super) fn defaults(&self) -> Map<String, Value> {
        let default = |(name, schema): (&String, &Value)| {
            Some((name.clone(), schema.get("default")?.clone()))
        };
        self.properties.iter().filter_map(default).collect()
    }

    /// Arguments that have one spelling: choices, dates and times.
    pub(super) fn exact(&self) -> Vec<String> {
        let has_one_spelling = |schema: &Value| {
            let description = schema["description"].as_str().unwrap_or_default();
            schema.get("enum").is_some()
                || SPELLINGS.iter().any(|spelling| description.ends_with(*spelling))
        };
        let exact = self.properties.iter().filter(|(_, schema)| has_one_spelling(schema));
        exact.map(|(name, _)| name.clone()).collect()
    }
}
