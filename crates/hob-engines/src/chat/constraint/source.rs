//! The JSON schemas of a request: the place of each, whether it is strict, and how far it is relaxed.
//! Reads no keywords; `schema.rs` does.

use std::collections::HashMap;

use hob_core::chat::{JsonText, OutputFormat, Tool};
use serde_json::{Value, json};

use super::ConstraintError;
use super::bounds::Size;
use super::rules::AnswerRules;
use super::schema::{Relaxation, SchemaKeyword};

/// The schemas that are relaxed in addition to the keywords that no grammar enforces: those of tools by their index, and that
/// of the output without one.
pub(super) type Relaxed = HashMap<Option<usize>, Relaxation>;

/// A schema of the request.
#[derive(Clone, Debug)]
pub(super) struct Source<'a> {
    pub(super) field: &'static str,
    /// Path of the schema, such as `get_weather.parameters`.
    place: String,
    pub(super) schema: Value,
    pub(super) strict: bool,
    /// The tool that it belongs to.
    pub(super) tool: Option<(usize, &'a Tool)>,
}

impl<'a> Source<'a> {
    /// All schemas of a request.
    ///
    /// # Errors
    /// A schema is not JSON.
    pub(super) fn all(wanted: &AnswerRules<'a>) -> Result<Vec<Source<'a>>, ConstraintError> {
        let mut all = Vec::new();
        if let OutputFormat::JsonSchema(schema) = wanted.output {
            all.push(Source::of_output(parsed(schema, "response_format")?, wanted.strict));
        }
        for (index, tool) in wanted.tools.map(|tools| tools.tools).into_iter().flatten().enumerate()
        {
            all.push(Source::of_tool(index, tool)?);
        }
        Ok(all)
    }

    pub(super) fn of_output(schema: Value, strict: bool) -> Source<'a> {
        let place = "schema".to_owned();
        Source { field: "response_format", place, schema, strict, tool: None }
    }

    pub(super) fn of_tool(index: usize, tool: &'a Tool) -> Result<Source<'a>, ConstraintError> {
        Ok(Source {
            field: "tools",
            place: format!("{}.parameters", tool.name),
            schema: arguments_schema(tool)?,
            strict: tool.strict,
            tool: Some((index, tool)),
        })
    }

    /// Its key in [`Relaxed`].
    pub(super) fn index(&self) -> Option<usize> {
        self.tool.unzip().0
    }

    /// # Errors
    /// A schema of this size is not compiled.
    pub(super) fn check(&self, size: Size) -> Result<(), ConstraintError> {
        let field = self.field;
        size.check().map_err(|excess| ConstraintError::TooLarge { field, excess })
    }

    pub(super) fn fits(&self) -> bool {
        Size::of(&self.schema).check().is_ok()
    }

    /// Error for a strict schema with a keyword that cannot be enforced.
    pub(super) fn refusal(&self, taken: &SchemaKeyword) -> ConstraintError {
        let path = format!("{}{}", self.place, taken.path);
        ConstraintError::Keyword { field: self.field, path, keyword: taken.keyword }
    }

    /// A source at the same place with another schema.
    pub(super) fn with(&self, schema: Value) -> Source<'a> {
        Source { schema, ..self.clone() }
    }

    /// Error for a schema that cannot be enforced, although each keyword could be.
    pub(super) fn unenforceable(&self, cause: Option<SchemaKeyword>) -> ConstraintError {
        let (field, place) = (self.field, self.place.clone());
        match cause {
            Some(SchemaKeyword { path, keyword }) => {
                ConstraintError::NoValue { field, path: place + &path, keyword }
            }
            None => ConstraintError::Schema { field, place },
        }
    }

    /// Name of an ignored keyword in the header `x-hob-ignored`.
    pub(super) fn ignored(&self, keyword: &str) -> String {
        match self.tool {
            Some((_, tool)) => format!("tools.{}.{keyword}", tool.name),
            None => format!("{}.{keyword}", self.field),
        }
    }
}

fn arguments_schema(tool: &Tool) -> Result<Value, ConstraintError> {
    let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let schema = tool.parameters.as_ref().map_or(Ok(nothing), |schema| parsed(schema, "tools"))?;
    Ok(match schema {
        // Arguments are an object, even if the schema does not state it.
        Value::Object(mut members) => {
            members.entry("type").or_insert(json!("object"));
            Value::Object(members)
        }
        other => other,
    })
}

pub(super) fn parsed(schema: &JsonText, field: &'static str) -> Result<Value, ConstraintError> {
    serde_json::from_str(schema.as_str()).map_err(|_| ConstraintError::NotASchema { field })
}
