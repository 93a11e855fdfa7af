//! Reads the user's own items: JSONL, one item a line, also with the field names of common public sets.
//! Errors name line and field. A file is read whole or not at all.

use std::collections::BTreeSet;

use hob_core::nearest;
use serde_json::{Map, Value};

use crate::checkers::{CHOICE_OPTIONS_MAX, ChoiceExpected, Exact, JsonFields, Number};
use crate::judge::OpenQuestion;
use crate::reading::only_number;
use crate::{Checker, CheckerError, Item};

const ITEMS_MAX: usize = 100_000;
const PROMPT_BYTES_MAX: usize = 1 << 20;
const NAME_BYTES_MAX: usize = 200;
const TOKENS_DEFAULT: u32 = 1_024;
const TOKENS_MAX: u64 = 1 << 20;
/// A number with decimals in a reference may be rounded. A whole number is exact.
const TOLERANCE: f64 = 1e-6;

const PROMPT: [&str; 4] = ["prompt", "question", "input", "instruction"];
const REFERENCE: [&str; 4] = ["reference", "target", "output", "answer"];
const OTHER_FIELDS: [&str; 11] = [
    "checker",
    "choices",
    "answerKey",
    "id",
    "system",
    "family",
    "size",
    "subject",
    "tools",
    "schema",
    "max_tokens",
];

fn known_fields() -> impl Iterator<Item = &'static str> {
    PROMPT.into_iter().chain(REFERENCE).chain(OTHER_FIELDS)
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnFileError {
    #[error("line {line}: it is not a JSON object: {reason}")]
    NotAnObject { line: usize, reason: String },
    #[error(
        "line {line}: the field '{field}' is unknown{hint}; the fields are {}",
        known_fields().collect::<Vec<_>>().join(", ")
    )]
    UnknownField { line: usize, field: String, hint: String },
    #[error("line {line}: {what}")]
    Invalid { line: usize, what: String },
    #[error("line {line}: {source}")]
    Checker { line: usize, source: CheckerError },
    #[error("line {line}: the id '{id}' was used before")]
    Twice { line: usize, id: String },
    #[error("there are more than {ITEMS_MAX} items")]
    TooMany,
    #[error("there are no items")]
    Empty,
}

/// Reads the items of a file. `stem`, the file's name without its extension, is the family of items that name none.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(stem: &str, text: &str) -> Result<Vec<Item>, OwnFileError> {
    let (mut items, mut ids) = (Vec::new(), BTreeSet::new());
    // Editors of Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, line_number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        if items.len() == ITEMS_MAX {
            return Err(OwnFileError::TooMany);
        }
        let item = Line::parse(line_number, line)?.item(stem)?;
        if !ids.insert(item.id.clone()) {
            return Err(OwnFileError::Twice { line: line_number, id: item.id });
        }
        items.push(item);
    }
    match items.is_empty() {
        true => Err(OwnFileError::Empty),
        false => Ok(items),
    }
}

/// One line with its number.
struct Line {
    number: usize,
    fields: Map<String, Value>,
}

impl Line {
    fn parse(number: usize, text: &str) -> Result<Line, OwnFileError> {
        let not_object = |reason| OwnFileError::NotAnObject { line: number, reason };
        // JSON is one line here, and the error has the number of the file's line.
        let reason = |error: serde_json::Error| error.to_string().replace(" at line 1 ", " at ");
        let value: Value = serde_json::from_str(text).map_err(|error| not_object(reason(error)))?;
        let Value::Object(mut fields) = value else {
            return Err(not_object("another value stands there".to_owned()));
        };
        let unknown = fields.keys().find(|name| known_fields().all(|known| known != name.as_str()));
        if let Some(field) = unknown {
            let near = nearest(field, known_fields(), 1).pop();
            let hint = near.map_or(String::new(), |near| format!(" (did you mean '{near}'?)"));
            return Err(OwnFileError::UnknownField { line: number, field: field.clone(), hint });
        }
        // Tables that become JSONL have a null for each empty cell.
        fields.retain(|_, value| !value.is_null());
        Ok(Line { number, fields })
    }

    fn invalid(&self, what: impl Into<String>) -> OwnFileError {
        OwnFileError::Invalid { line: self.number, what: what.into() }
    }

    fn text(&self, names: &[&str]) -> Result<Option<String>, OwnFileError> {
        let Some((name, value)) =
            names.iter().find_map(|name| Some((name, self.fields.get(*name)?)))
        else {
            return Ok(None);
        };
        match value {
            Value::String(text) => Ok(Some(text.clone())),
            Value::Number(number) if *name == "id" => Ok(Some(number.to_string())),
            _ => Err(self.invalid(format!("'{name}' is not a text"))),
        }
    }

    /// Alpaca's sets have an instruction and the input to it. No other two fields make a prompt.
    fn prompt(&self) -> Result<Option<String>, OwnFileError> {
        let given: Vec<&str> =
            PROMPT.into_iter().filter(|name| self.fields.contains_key(*name)).collect();
        match given.as_slice() {
            ["input", "instruction"] => {
                let texts = [self.text(&["instruction"])?, self.text(&["input"])?];
                let texts: Vec<String> =
                    texts.into_iter().flatten().filter(|text| !text.trim().is_empty()).collect();
                Ok(Some(texts.join("\n\n")))
            }
            [one, other, ..] => Err(self
                .invalid(format!("there are two prompts, '{one}' and '{other}' (expected one)"))),
            _ => self.text(&PROMPT),
        }
    }

    /// MMLU's sets name a subject in the place of a size.
    fn size(&self) -> Result<Option<String>, OwnFileError> {
        let size = self.name("size")?;
        Ok(size.or(self.name("subject")?))
    }

    fn schema(&self) -> Result<Option<Value>, OwnFileError> {
        match self.fields.get("schema") {
            None => Ok(None),
            Some(schema @ Value::Object(_)) => Ok(Some(schema.clone())),
            Some(_) => Err(self.invalid("'schema' is not a JSON object")),
        }
    }

    /// A name that reports print, with a limit.
    fn name(&self, field: &str) -> Result<Option<String>, OwnFileError> {
        let name = self.text(&[field])?;
        let is_bad = |name: &String| name.len() > NAME_BYTES_MAX || name.contains(char::is_control);
        match name.as_ref().is_some_and(is_bad) {
            true => Err(self.invalid(format!(
                "'{field}' is too long or has control characters (expected {NAME_BYTES_MAX} bytes at most)"
            ))),
            false => Ok(name),
        }
    }

    fn item(&self, stem: &str) -> Result<Item, OwnFileError> {
        let prompt = self.prompt()?.filter(|prompt| !prompt.trim().is_empty());
        let prompt = prompt.ok_or_else(|| {
            self.invalid(format!("there is no prompt (expected one of {})", PROMPT.join(", ")))
        })?;
        if prompt.len() > PROMPT_BYTES_MAX {
            return Err(self.invalid(format!("the prompt has more than {PROMPT_BYTES_MAX} bytes")));
        }
        let checker = self.checker(&prompt)?;
        let prompt = match &checker {
            Checker::Choice(choice) if self.fields.contains_key("choices") => choice.prompt(),
            _ => prompt,
        };
        let max_tokens = match self.fields.get("max_tokens").map(Value::as_u64) {
            None => TOKENS_DEFAULT,
            Some(Some(tokens @ 1..=TOKENS_MAX)) => tokens as u32,
            Some(_) => return Err(self.invalid("'max_tokens' is not a number from 1 to 1048576")),
        };
        let tools = match self.fields.get("tools") {
            None => Vec::new(),
            Some(Value::Array(tools)) => tools.clone(),
            Some(_) => return Err(self.invalid("'tools' is not a list")),
        };
        let family = self.name("family")?.unwrap_or_else(|| stem.to_owned());
        let id = self.name("id")?.unwrap_or_else(|| self.number.to_string());
        Ok(Item {
            id: format!("{family}/{id}"),
            family,
            size: self.size()?.unwrap_or_else(|| "own".to_owned()),
            system: self.text(&["system"])?,
            prompt,
            tools,
            schema: self.schema()?,
            checker,
            max_tokens,
        })
    }

    fn checker(&self, prompt: &str) -> Result<Checker, OwnFileError> {
        if let Some(value) = self.fields.get("checker") {
            let checker: Checker = serde_json::from_value(value.clone())
                .map_err(|error| self.invalid(format!("'checker': {error}")))?;
            let validated = checker.validate();
            validated.map_err(|source| OwnFileError::Checker { line: self.number, source })?;
            return Ok(checker);
        }
        if let Some(choices) = self.fields.get("choices") {
            return self.choice(choices, prompt).map(Checker::Choice);
        }
        match REFERENCE.iter().find_map(|name| self.fields.get(*name)) {
            Some(reference) => self.of_reference(reference),
            None if self.fields.contains_key("answerKey") => {
                Err(self.invalid("there is an 'answerKey', and there are no 'choices'"))
            }
            None => Ok(Checker::Judged(OpenQuestion {})),
        }
    }

    /// A checker that fits a reference: a number, a text or several, or JSON.
    fn of_reference(&self, reference: &Value) -> Result<Checker, OwnFileError> {
        let number = |value: f64| {
            let tolerance_relative = if value.fract() == 0.0 { 0.0 } else { TOLERANCE };
            Checker::Number(Number { tolerance_relative, ..Number::exact(value) })
        };
        match reference {
            Value::Number(value) => Ok(number(value.as_f64().unwrap_or_default())),
            Value::String(text) => {
                // GSM8K writes the solution, then `####` and the result.
                let result =
                    text.rsplit_once("####").map_or(text.as_str(), |(_, result)| result).trim();
                if result.is_empty() {
                    return Err(self.invalid("the reference is empty"));
                }
                let value = result.parse::<f64>().ok().or_else(|| only_number(result));
                Ok(match value.filter(|value| value.is_finite()) {
                    Some(value) => number(value),
                    None => Checker::Exact(Exact { expected: vec![result.to_owned()] }),
                })
            }
            Value::Array(texts) if !texts.is_empty() && texts.iter().all(Value::is_string) => {
                let expected = texts.iter().filter_map(|text| text.as_str().map(str::to_owned));
                Ok(Checker::Exact(Exact { expected: expected.collect() }))
            }
            Value::Object(_) | Value::Array(_) => {
                Ok(Checker::Json(JsonFields { expected: reference.clone() }))
            }
            Value::Bool(_) | Value::Null => {
                Err(self.invalid("the reference is neither a text, a number, a list nor an object"))
            }
        }
    }

    /// `["a", "b"]`, or ARC's `{"text": […], "label": […]}`.
    fn choice(&self, choices: &Value, prompt: &str) -> Result<ChoiceExpected, OwnFileError> {
        let texts = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let (options, labels) = match choices {
            Value::Object(fields) => {
                (fields.get("text").and_then(texts), fields.get("label").and_then(texts))
            }
            list => (texts(list), None),
        };
        let options = options.filter(|options| (2..=CHOICE_OPTIONS_MAX).contains(&options.len()));
        let options =
            options.ok_or_else(|| self.invalid("'choices' is not a list of 2 to 26 texts"))?;
        let names = ["answer", "answerKey", "target", "reference", "output"];
        let answer = names.iter().find_map(|name| self.fields.get(*name));
        let answer = answer.ok_or_else(|| self.invalid("there is no answer to the choices"))?;
        let by_text = |text: &str| {
            let labelled =
                labels.as_ref().and_then(|labels| labels.iter().position(|label| label == text));
            let own = || options.iter().position(|option| option == text);
            let letter = || match text.as_bytes() {
                [letter @ b'A'..=b'Z'] => Some(usize::from(letter - b'A')),
                _ => None,
            };
            labelled.or_else(own).or_else(letter)
        };
        let expected = match answer {
            Value::Number(number) => number.as_u64().map(|at| at as usize),
            Value::String(text) => by_text(text.trim()),
            _ => None,
        };
        let expected = expected.filter(|at| *at < options.len());
        let expected = expected.ok_or_else(|| {
            self.invalid(format!(
                "the answer {answer} is not one of the {} choices (expected an index from 0, a letter, or the text)",
                options.len()
            ))
        })?;
        Ok(ChoiceExpected { question: prompt.to_owned(), options, expected })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checker(line: &str) -> Checker {
        parse("own", line).expect(line).remove(0).checker
    }

    #[test]
    fn common_sets_are_read() {
        let exact = |text: &str| Checker::Exact(Exact { expected: vec![text.to_owned()] });
        let number = |value| Checker::Number(Number::exact(value));
        let rounded = |value| {
            Checker::Number(Number { tolerance_relative: TOLERANCE, ..Number::exact(value) })
        };
        let rows = [
            (r#"{"prompt":"?","reference":"Lisbon"}"#, exact("Lisbon")),
            (r#"{"question":"?","answer":"so 3 + 4 = 7\n#### 1,007"}"#, number(1007.0)),
            (r#"{"instruction":"?","output":42}"#, number(42.0)),
            (r#"{"prompt":"?","reference":"-1,234,567.5"}"#, rounded(-1_234_567.5)),
            (r#"{"prompt":"?","reference":"12345"}"#, number(12345.0)),
            (r#"{"prompt":"?","reference":"1,2,3"}"#, exact("1,2,3")),
            (r#"{"prompt":"?","reference":"3,5"}"#, rounded(3.5)),
            (r#"{"prompt":"?","reference":"-0,125"}"#, rounded(-0.125)),
            (r#"{"prompt":"?","reference":"1.234,5"}"#, rounded(1234.5)),
            (r#"{"prompt":"?","reference":"1,234,56"}"#, exact("1,234,56")),
            (r#"{"prompt":"?","reference":"1.2.3"}"#, exact("1.2.3")),
            (r#"{"prompt":"?","reference":",5"}"#, exact(",5")),
            (
                r#"{"prompt":"?","question":null,"reference":"a","checker":null,"choices":null,"max_tokens":null}"#,
                exact("a"),
            ),
            (
                r#"{"input":"?","target":["a","b"]}"#,
                Checker::Exact(Exact { expected: vec!["a".to_owned(), "b".to_owned()] }),
            ),
            (
                r#"{"prompt":"?","checker":{"kind":"pattern","regex":"^a$"}}"#,
                Checker::Pattern(crate::checkers::Pattern {
                    regex: "^a$".to_owned(),
                    ignore_case: false,
                }),
            ),
        ];
        for (line, expected) in rows {
            assert_eq!(checker(line), expected, "{line}");
        }
        let open = [
            r#"{"prompt":"?"}"#,
            r#"{"prompt":"?","reference":null}"#,
            r#"{"prompt":"?","checker":{"kind":"judged"}}"#,
        ];
        for line in open {
            assert!(checker(line).is_open(), "{line}");
        }
        let choices = [
            r#"{"question":"?","choices":["a","b","c"],"answer":1}"#,
            r#"{"question":"?","choices":["a","b","c"],"answer":"B"}"#,
            r#"{"question":"?","choices":["a","b","c"],"answer":"b"}"#,
            r#"{"prompt":"?","choices":["a","b","c"],"reference":"b"}"#,
            r#"{"question":"?","choices":{"text":["a","b","c"],"label":["1","2","3"]},"answerKey":"2"}"#,
        ];
        for line in choices {
            let Checker::Choice(choice) = checker(line) else { panic!("a choice") };
            assert_eq!((choice.expected, choice.options.len()), (1, 3), "{line}");
        }
        let item = parse("own", "\n{\"id\":7,\"prompt\":\"?\",\"reference\":1,\"max_tokens\":9}\n")
            .expect("an item");
        assert_eq!((item[0].id.as_str(), item[0].max_tokens), ("own/7", 9));
        let line =
            r#"{"instruction":"Translate.","input":"cat","output":"chat","subject":"French"}"#;
        let item = parse("own", &format!("\u{feff}{line}")).expect("an item").remove(0);
        assert_eq!((item.prompt.as_str(), item.size.as_str()), ("Translate.\n\ncat", "French"));
    }

    /// The rows of a table: in each line a text and how its error begins.
    fn lines(table: &str) -> impl Iterator<Item = (&str, &str)> {
        table.trim().lines().map(|line| line.trim().split_once(" => ").expect(line))
    }

    fn assert_errors<'t>(rows: impl IntoIterator<Item = (&'t str, &'t str)>) {
        for (text, expected) in rows {
            let error = parse("own", text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = r#"
            [1] => line 1: it is not a JSON object
            {"prompt":"?" => line 1: it is not a JSON object
            {"prompt":"?","refrence":1} => line 1: the field 'refrence' is unknown (did you mean 'reference'?)
            {"prompt":"?","expected":1} => line 1: the field 'expected' is unknown; the fields are prompt, question, input,
            {"reference":1} => line 1: there is no prompt
            {"prompt":"?","answerKey":"A"} => line 1: there is an 'answerKey', and there are no 'choices'
            {"prompt":"?","reference":true} => line 1: the reference is neither
            {"prompt":"?","reference":" "} => line 1: the reference is empty
            {"prompt":"?","question":"?","reference":1} => line 1: there are two prompts, 'prompt' and 'question'
            {"prompt":"?","reference":1,"schema":"x"} => line 1: 'schema' is not a JSON object
            {"id":"a\u0000","prompt":"?","reference":1} => line 1: 'id' is too long
            {"prompt":"?","choices":["a","b"]} => line 1: there is no answer to the choices
            {"prompt":"?","choices":["a"],"answer":0} => line 1: 'choices' is not a list of 2 to 26
            {"prompt":"?","choices":["a","b"],"answer":2} => line 1: the answer 2 is not one of the 2 choices
            {"prompt":"?","reference":1,"max_tokens":0} => line 1: 'max_tokens' is not a number
        "#;
        let others = [
            ("", "there are no items"),
            (
                "{\"prompt\":\"?\"}\n{\"prompt\":\"?\"",
                "line 2: it is not a JSON object: EOF while parsing an object at column 13",
            ),
            (
                "{\"id\":\"a\",\"prompt\":\"?\",\"reference\":1}\n\n{\"id\":\"a\",\"prompt\":\"?\",\"reference\":1}",
                "line 3: the id 'own/a' was used before",
            ),
        ];
        assert_errors(lines(table).chain(others));
    }

    #[test]
    fn a_checker_that_cannot_grade_is_refused() {
        let table = r#"
            {"prompt":"?","checker":{"kind":"pattern","regex":"("}} => line 1: '(' is not a regular
            {"prompt":"?","checker":{"kind":"choice","options":["a","b"],"expected":2}} => line 1: a choice of 2 options cannot expect number 2
            {"prompt":"?","checker":{"kind":"choice","options":[],"expected":0}} => line 1: a choice of 0 options cannot expect number 0
            {"prompt":"?","checker":{"kind":"grid","attributes":["pet"],"houses":[[]]}} => line 1: the solution is not a grid (expected up to 12 houses
            {"prompt":"?","checker":{"kind":"exact","expected":[]}} => line 1: the checker 'exact' has nothing to check: 'expected' is empty
            {"prompt":"?","checker":{"kind":"code","entry":"f","tests":[]}} => line 1: the checker 'code' has nothing to check: 'tests' is empty
            {"prompt":"?","checker":{"kind":"constraints","rules":[]}} => line 1: the checker 'constraints' has nothing to check: 'rules' is empty
            {"prompt":"?","checker":{"kind":"phrases"}} => line 1: the checker 'phrases' has nothing to check: 'required' is empty
            {"prompt":"?","checker":{"kind":"magic"}} => line 1: 'checker': unknown variant
        "#;
        assert_errors(lines(table));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
            let _read = parse("own", &text);
        }
    }
}
