//! What is wanted of an answer, as a grammar in llguidance's dialect of Lark.
//! Knows nothing of tokens but their names: some marks of tool calls are tokens of their own.

use std::fmt::Write as _;

use hob_core::chat::{JsonText, OutputFormat, Tool, ToolChoice};
use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde_json::{Value, json};

use super::schema::{self, SchemaLimits};
use super::{ConstraintError, Vocabulary};
use crate::chat::dialect::{CallForm, ToolDialect};

/// Calls in one answer where several may stand.
const CALLS_MAX: usize = 16;

/// What an answer must look like.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub output: &'a OutputFormat,
    /// None: no tool may be called.
    pub tools: Option<ToolsWanted<'a>>,
}

/// Which calls an answer may hold.
#[derive(Clone, Copy, Debug)]
pub struct ToolsWanted<'a> {
    pub tools: &'a [Tool],
    pub choice: &'a ToolChoice,
    pub calls: Calls,
    pub dialect: &'a ToolDialect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    One,
    Several,
}

/// When the grammar holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Begins {
    #[default]
    WithTheAnswer,
    /// Until one of the dialect's triggers was said, all is allowed.
    WithATrigger,
}

/// A grammar as text: equal texts compile to equal grammars.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Plan {
    pub(super) lark: String,
    /// What `lark` calls `@output`.
    pub(super) output: Option<String>,
    pub(super) begins: Begins,
    /// An answer that is not closed has no meaning.
    pub(super) must_close: bool,
    /// Texts that may help to find an end.
    pub(super) hints: Vec<String>,
}

impl Plan {
    pub(super) fn grammar(&self) -> TopLevelGrammar {
        let mut grammar = TopLevelGrammar::from_lark(self.lark.clone());
        if let Some(output) = &self.output {
            let name = Some("output".to_owned());
            let lark_grammar = Some(output.clone());
            grammar.grammars.push(GrammarWithLexer { name, lark_grammar, json_schema: None });
        }
        grammar
    }
}

/// None: nothing is asked of the answer.
pub(super) fn plan(
    wanted: &Wanted<'_>,
    vocabulary: &Vocabulary,
    limits: &SchemaLimits,
) -> Result<Option<Plan>, ConstraintError> {
    let writer = Writer { vocabulary, limits };
    let tools =
        wanted.tools.filter(|tools| !tools.tools.is_empty() && *tools.choice != ToolChoice::None);
    let Some(tools) = tools else {
        return writer.output(wanted.output);
    };
    let calls = writer.calls(&tools)?;
    if *tools.choice != ToolChoice::Auto {
        return Ok(Some(calls));
    }
    let Some(output) = writer.output(wanted.output)? else {
        return Ok(Some(Plan { begins: Begins::WithATrigger, ..calls }));
    };
    let lark = calls.lark.replacen("start: calls\n", "start: calls | @output\n", 1);
    let hints = [calls.hints, output.hints.clone()].concat();
    Ok(Some(Plan { lark, output: Some(output.lark.clone()), hints, ..output }))
}

struct Writer<'a> {
    vocabulary: &'a Vocabulary,
    limits: &'a SchemaLimits,
}

impl Writer<'_> {
    fn output(&self, output: &OutputFormat) -> Result<Option<Plan>, ConstraintError> {
        let (lark, hints) = match output {
            OutputFormat::Text => return Ok(None),
            OutputFormat::JsonObject => {
                (self.json(&json!({ "type": "object" }), "response_format")?, Vec::new())
            }
            OutputFormat::JsonSchema(schema) => {
                let schema = parsed(schema, "response_format")?;
                (self.json(&schema, "response_format")?, hints(&schema))
            }
            OutputFormat::Regex(pattern) => (regex(pattern), vec![literal(pattern)]),
            OutputFormat::Lark(grammar) => {
                let plan = Plan { lark: grammar.clone(), must_close: false, ..Plan::default() };
                return Ok(Some(plan));
            }
        };
        let lark = format!("start: {lark}\n");
        Ok(Some(Plan { lark, must_close: true, hints, ..Plan::default() }))
    }

    /// `schema` as an expression.
    fn json(&self, schema: &Value, field: &'static str) -> Result<String, ConstraintError> {
        if let Some(keyword) = schema::unsupported(schema) {
            return Err(ConstraintError::Keyword { field, keyword });
        }
        let mut bounded = match schema::bounded(schema, self.limits) {
            Value::Object(bounded) => bounded,
            Value::Bool(_) => return Err(ConstraintError::NothingValid { field }),
            _ => return Err(ConstraintError::NotASchema { field }),
        };
        // One space, where models are used to it; more would be a way to spend the budget.
        let options = json!({
            "whitespace_flexible": false, "item_separator": ", ?", "key_separator": ": ?"
        });
        bounded.insert("x-guidance".to_owned(), options);
        Ok(format!("%json {}", Value::Object(bounded)))
    }

    fn calls(&self, wanted: &ToolsWanted<'_>) -> Result<Plan, ConstraintError> {
        let allowed = allowed(wanted)?;
        let dialect = wanted.dialect;
        let mut lark = String::from("start: calls\n");
        let mut hints_found = Vec::new();
        let more = match (dialect.between, wanted.calls, wanted.choice) {
            (Some(between), Calls::Several, ToolChoice::Auto | ToolChoice::Required) => {
                format!("({} call){{0,{}}}", self.text(dialect, between), CALLS_MAX - 1)
            }
            _ => String::new(),
        };
        let (begin, end) = (self.text(dialect, dialect.begin), self.text(dialect, dialect.end));
        let names: Vec<String> = (0..allowed.len()).map(|at| format!("call_{at}")).collect();
        let _ = writeln!(lark, "calls: {begin} call {more} {end}");
        let _ = writeln!(lark, "call: {}", names.join(" | "));
        for (tool, name) in allowed.iter().zip(&names) {
            let head = format!(
                "{}{}{}",
                dialect.call.before_name(),
                written(&tool.name, dialect.call),
                dialect.call.before_arguments()
            );
            let schema = arguments_schema(tool)?;
            hints_found.extend(hints(&schema));
            let arguments = self.json(&schema, "tools")?;
            let (head, tail) =
                (self.text(dialect, &head), self.text(dialect, dialect.call.after_arguments()));
            let _ = writeln!(lark, "{name}: {head} {name}_arguments {tail}");
            let _ = writeln!(lark, "{name}_arguments: {arguments}");
        }
        Ok(Plan { lark, must_close: true, hints: hints_found, ..Plan::default() })
    }

    /// `text` as a sequence of literals, and of tokens where a mark is one.
    fn text(&self, dialect: &ToolDialect, text: &str) -> String {
        let mut expression = String::new();
        for piece in pieces(self.vocabulary, dialect, text) {
            let _ = match piece {
                Piece::Text(text) => write!(expression, "{} ", Value::from(text)),
                Piece::Token(token) => write!(expression, "<[{token}]> "),
            };
        }
        expression
    }
}

/// Part of a dialect's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Token(u32),
}

/// Cuts `text` at the marks that are special tokens of this vocabulary.
pub(super) fn pieces<'a>(
    vocabulary: &Vocabulary,
    dialect: &ToolDialect,
    text: &'a str,
) -> Vec<Piece<'a>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let next = dialect
            .marks
            .iter()
            .filter_map(|mark| Some((rest.find(mark)?, mark.len(), vocabulary.special(mark)?)))
            .min();
        let (at, len, token) = match next {
            Some((at, len, token)) => (at, len, Some(token)),
            None => (rest.len(), 0, None),
        };
        found.extend((at > 0).then(|| Piece::Text(&rest[..at])));
        found.extend(token.map(Piece::Token));
        rest = &rest[at + len..];
    }
    found
}

fn written(name: &str, form: CallForm) -> String {
    match form {
        CallForm::Object { .. } => Value::from(name).to_string().trim_matches('"').to_owned(),
        CallForm::Named { .. } => name.to_owned(),
    }
}

fn allowed<'a>(wanted: &ToolsWanted<'a>) -> Result<Vec<&'a Tool>, ConstraintError> {
    let ToolChoice::Named(name) = wanted.choice else {
        return Ok(wanted.tools.iter().collect());
    };
    let named = wanted.tools.iter().find(|tool| tool.name == *name);
    named.map(|tool| vec![tool]).ok_or(ConstraintError::UnknownTool)
}

fn arguments_schema(tool: &Tool) -> Result<Value, ConstraintError> {
    let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let schema = tool.parameters.as_ref().map_or(Ok(nothing), |schema| parsed(schema, "tools"))?;
    Ok(match schema {
        // Arguments are an object, also where a schema forgets to say so.
        Value::Object(mut members) => {
            members.entry("type").or_insert(json!("object"));
            Value::Object(members)
        }
        other => other,
    })
}

fn hints(schema: &Value) -> Vec<String> {
    schema::patterns(schema).iter().map(|pattern| literal(pattern)).collect()
}

/// What is left of a pattern without its signs: often a text that it matches.
fn literal(pattern: &str) -> String {
    pattern.chars().filter(|sign| !r"^$.*+?()[]{}|\".contains(*sign)).take(64).collect()
}

fn parsed(schema: &JsonText, field: &'static str) -> Result<Value, ConstraintError> {
    serde_json::from_str(schema.as_str()).map_err(|_| ConstraintError::NotASchema { field })
}

fn regex(pattern: &str) -> String {
    format!("/{}/", llguidance::regex_to_lark(pattern, ""))
}
