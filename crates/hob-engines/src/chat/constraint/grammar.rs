//! Writes the format of an answer as a grammar in llguidance's dialect of Lark.
//! Marks of tool calls that are special tokens of the vocabulary are written as tokens.

use std::fmt::Write as _;

use hob_core::chat::{OutputFormat, Tool, ToolChoice};
use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde_json::{Value, json};

use super::bounds::{self, Size};
use super::rules::{AnswerRules, CallCount, ToolRules};
use super::schema::{self, Relaxation, SchemaKeyword};
use super::source::{Relaxed, Source, parsed};
use super::{ConstraintError, Vocabulary};
use crate::chat::dialect::{CallForm, ToolDialect};

/// Maximum calls in one answer, if it may have several.
const CALLS_MAX: usize = 16;

/// When the grammar begins to apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Begins {
    #[default]
    WithTheAnswer,
    /// The answer is free until one of the dialect's triggers occurs.
    WithATrigger,
}

/// A grammar as text: equal plans compile to equal grammars, or fail equally.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Plan {
    pub(super) lark: String,
    /// The grammar that `lark` refers to as `@output`.
    pub(super) output: Option<String>,
    pub(super) begins: Begins,
    /// Whether an incomplete answer is useless.
    pub(super) must_close: bool,
    /// Texts that help to find an end.
    pub(super) hints: Vec<String>,
    /// Keywords that the grammar does not enforce.
    pub(super) ignored: Vec<String>,
    /// [`AnswerRules::strictness`]: if the text does not compile, only schemas without `strict` may be relaxed.
    pub(super) strictness: Vec<bool>,
}

impl Plan {
    /// Whether the answer is JSON, or contains it.
    pub(super) fn is_json(&self) -> bool {
        [Some(&self.lark), self.output.as_ref()]
            .into_iter()
            .flatten()
            .any(|it| it.contains("%json"))
    }

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

/// `None`: the answer has no constraint.
pub(super) fn plan(
    wanted: &AnswerRules<'_>,
    vocabulary: &Vocabulary,
    relaxed: &Relaxed,
) -> Result<Option<Plan>, ConstraintError> {
    let writer = Writer { vocabulary, relaxed };
    let tools =
        wanted.tools.filter(|tools| !tools.tools.is_empty() && *tools.choice != ToolChoice::None);
    let Some(tools) = tools else {
        return writer.output(wanted);
    };
    let calls = writer.calls(&tools)?;
    if *tools.choice != ToolChoice::Auto {
        return Ok(Some(calls));
    }
    let Some(output) = writer.output(wanted)? else {
        return Ok(Some(Plan { begins: Begins::WithATrigger, ..calls }));
    };
    let lark = calls.lark.replacen("start: calls\n", "start: calls | @output\n", 1);
    let hints = [calls.hints, output.hints.clone()].concat();
    let ignored = [calls.ignored, output.ignored.clone()].concat();
    Ok(Some(Plan { lark, output: Some(output.lark.clone()), hints, ignored, ..output }))
}

/// A grammar of one schema, to test whether it compiles.
pub(super) fn plan_of_one(
    source: &Source<'_>,
    vocabulary: &Vocabulary,
    relaxation: Relaxation,
) -> Result<(Plan, Vec<SchemaKeyword>), ConstraintError> {
    let writer = Writer { vocabulary, relaxed: &Relaxed::default() };
    let (schema, taken) = schema::sift(&source.schema, relaxation);
    let lark = format!("start: {}\n", writer.expression(&schema, source.field)?);
    let hints = hints(&schema);
    Ok((Plan { lark, must_close: true, hints, ..Plan::default() }, taken))
}

struct Writer<'a> {
    vocabulary: &'a Vocabulary,
    relaxed: &'a Relaxed,
}

/// A schema as an expression of a grammar.
#[derive(Default)]
struct Written {
    lark: String,
    hints: Vec<String>,
    ignored: Vec<String>,
}

impl Writer<'_> {
    fn output(&self, wanted: &AnswerRules<'_>) -> Result<Option<Plan>, ConstraintError> {
        let field = wanted.output.field();
        let written = match wanted.output {
            OutputFormat::Text => return Ok(None),
            OutputFormat::JsonObject => Written {
                lark: self.expression(&json!({ "type": "object" }), field)?,
                ..Written::default()
            },
            OutputFormat::JsonSchema(schema) => {
                let source = Source::of_output(parsed(schema, field)?, wanted.strict);
                source.check(Size::of(&source.schema))?;
                self.schema(&source)?
            }
            OutputFormat::Regex(pattern) => regex(pattern, field)?,
            OutputFormat::Lark(grammar) => {
                bounds::check_grammar(grammar)
                    .map_err(|excess| ConstraintError::TooLarge { field, excess })?;
                let plan = Plan { lark: grammar.clone(), must_close: false, ..Plan::default() };
                return Ok(Some(plan));
            }
        };
        let Written { lark, hints, ignored } = written;
        let lark = format!("start: {lark}\n");
        Ok(Some(Plan { lark, must_close: true, hints, ignored, ..Plan::default() }))
    }

    fn relaxation(&self, source: &Source<'_>) -> Relaxation {
        self.relaxed.get(&source.index()).copied().unwrap_or_default()
    }

    fn schema(&self, source: &Source<'_>) -> Result<Written, ConstraintError> {
        let (schema, taken) = schema::sift(&source.schema, self.relaxation(source));
        if let Some(first) = taken.first().filter(|_| source.strict) {
            return Err(source.refusal(first));
        }
        let mut ignored: Vec<String> =
            taken.iter().map(|taken| source.ignored(taken.keyword)).collect();
        ignored.dedup();
        let lark = self.expression(&schema, source.field)?;
        Ok(Written { lark, hints: hints(&schema), ignored })
    }

    /// `schema` as an expression.
    fn expression(&self, schema: &Value, field: &'static str) -> Result<String, ConstraintError> {
        let mut bounded = match schema::bounded(schema) {
            Value::Object(bounded) => bounded,
            Value::Bool(_) => return Err(ConstraintError::NothingValid { field }),
            _ => return Err(ConstraintError::NotASchema { field }),
        };
        // Models usually write one space here. More spaces would only use up the token limit.
        let options = json!({
            "whitespace_flexible": false, "item_separator": ", ?", "key_separator": ": ?"
        });
        bounded.insert("x-guidance".to_owned(), options);
        Ok(format!("%json {}", Value::Object(bounded)))
    }

    /// The arguments of a tool. Without `strict`, a schema that is too large allows any object.
    fn arguments(
        &self,
        source: &Source<'_>,
        before: &mut Size,
    ) -> Result<Written, ConstraintError> {
        let size = Size::of(&source.schema).after(*before);
        let fits = source.check(size);
        if source.strict {
            fits.clone()?;
        }
        if fits.is_err() || self.relaxation(source) == Relaxation::All {
            let lark = self.expression(&json!({ "type": "object" }), source.field)?;
            let ignored = vec![source.ignored("parameters")];
            return Ok(Written { lark, ignored, ..Written::default() });
        }
        *before = size;
        self.schema(source)
    }

    fn calls(&self, wanted: &ToolRules<'_>) -> Result<Plan, ConstraintError> {
        let allowed = allowed(wanted)?;
        let dialect = wanted.dialect;
        let mut lark = String::from("start: calls\n");
        let (mut hints, mut ignored) = (Vec::new(), Vec::new());
        let mut size = Size::default();
        let more = match (dialect.between, wanted.calls, wanted.choice) {
            (Some(between), CallCount::Several, ToolChoice::Auto | ToolChoice::Required) => {
                format!("({} call){{0,{}}}", self.text(dialect, between), CALLS_MAX - 1)
            }
            _ => String::new(),
        };
        let (begin, end) = (self.text(dialect, dialect.begin), self.text(dialect, dialect.end));
        let names: Vec<String> = (0..allowed.len()).map(|at| format!("call_{at}")).collect();
        let _ = writeln!(lark, "calls: {begin} call {more} {end}");
        let _ = writeln!(lark, "call: {}", names.join(" | "));
        for ((index, tool), name) in allowed.iter().zip(&names) {
            let head = format!(
                "{}{}{}",
                dialect.call.before_name(),
                name_as_written(&tool.name, dialect.call),
                dialect.call.before_arguments()
            );
            let arguments = self.arguments(&Source::of_tool(*index, tool)?, &mut size)?;
            hints.extend(arguments.hints);
            ignored.extend(arguments.ignored);
            let (head, tail) =
                (self.text(dialect, &head), self.text(dialect, dialect.call.after_arguments()));
            let _ = writeln!(lark, "{name}: {head} {name}_arguments {tail}");
            let _ = writeln!(lark, "{name}_arguments: {}", arguments.lark);
        }
        Ok(Plan { lark, must_close: true, hints, ignored, ..Plan::default() })
    }

    /// Writes `text` as literals, and its marks as tokens if they are special tokens.
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

fn name_as_written(name: &str, form: CallForm) -> String {
    match form {
        CallForm::Object { .. } => {
            let quoted = Value::from(name).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }
        CallForm::Named { .. } => name.to_owned(),
    }
}

/// The tools that may be called, with their indexes in the request.
fn allowed<'a>(wanted: &ToolRules<'a>) -> Result<Vec<(usize, &'a Tool)>, ConstraintError> {
    let mut tools = wanted.tools.iter().enumerate();
    let ToolChoice::Named(name) = wanted.choice else {
        return Ok(tools.collect());
    };
    let named = tools.find(|(_, tool)| tool.name == *name);
    named.map(|tool| vec![tool]).ok_or(ConstraintError::UnknownTool)
}

fn hints(schema: &Value) -> Vec<String> {
    schema::patterns(schema).iter().map(|pattern| literal(pattern)).collect()
}

/// The pattern without its special characters, which is often a text that it matches.
fn literal(pattern: &str) -> String {
    pattern.chars().filter(|sign| !r"^$.*+?()[]{}|\".contains(*sign)).take(64).collect()
}

fn regex(pattern: &str, field: &'static str) -> Result<Written, ConstraintError> {
    bounds::check_pattern(pattern).map_err(|excess| ConstraintError::TooLarge { field, excess })?;
    if !schema::is_regular(pattern) {
        return Err(ConstraintError::NotRegular { field });
    }
    let lark = format!("/{}/", llguidance::regex_to_lark(pattern, ""));
    Ok(Written { lark, hints: vec![literal(pattern)], ignored: Vec::new() })
}
