//! `docs/reference/record.md` and `plan.md`, generated from the schemas of benchmark records and plans.
//! The same types read and write the files, so the pages match the program.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use hob_bench::plan::BenchPlan;
use hob_bench::record::{Doubt, Record};
use hob_bench::terms::{SYMBOLS, definitions, look_up};
use serde_json::Value;

use super::{GENERATED_NOTE, row};

const PREFACE: &str = "\
One run is one YAML file, `<yyyy-mm>/<date>-<host>-<model>-<kind>-<id>.yaml`, and its raw samples are next to it as\n\
`.jsonl.gz`. A field may be left out where null is allowed, an unknown one is refused, and a record is never changed:\n\
a correction is a record of its own that `supersedes` it. `hob bench schema` prints the JSON schema.\n";

const PLAN_PREFACE: &str = "\
A plan is a YAML file that names servers and axes; `hob bench plan FILE` measures every combination that has no valid\n\
record yet. This one measures two quants at two power limits on a server that is started for it:\n\
\n\
```yaml\n\
schema: bench-plan/1\n\
name: quants\n\
targets:\n\
\x20 - name: llama\n\
\x20   url: http://127.0.0.1:8080\n\
\x20   launch: \"set-power-limit {power_cap_w} && llama-server -m {model}-{quant}.gguf -c {ctx} --port 8080\"\n\
\x20   context: 16384\n\
matrix:\n\
\x20 kind: [llm]\n\
\x20 model: [qwen3-8b]\n\
\x20 quant: [Q4_K_M, Q8_0]\n\
\x20 power_cap_w: [15, 25]\n\
```\n";

/// The JSON schema, for editors and other programs.
pub(crate) fn schema() -> Value {
    schemars::schema_for!(Record).to_value()
}

pub(crate) fn markdown() -> String {
    let mut page = format!("# Records\n\n{GENERATED_NOTE}\n\n{PREFACE}");
    types(&mut page, "Record", &schema());
    figures(&mut page);
    page
}

/// `docs/reference/plan.md`.
pub(crate) fn plan_markdown() -> String {
    let mut page = format!("# Plans\n\n{GENERATED_NOTE}\n\n{PLAN_PREFACE}");
    types(&mut page, "Plan", &schemars::schema_for!(BenchPlan).to_value());
    page
}

/// A type, and all types that it contains.
fn types(page: &mut String, name: &str, schema: &Value) {
    describe(page, name, (schema, schema));
    let (mut seen, mut next) = (BTreeSet::new(), references(&schema["properties"]));
    while let Some(name) = next.first().cloned() {
        next.remove(0);
        if !seen.insert(name.clone()) {
            continue;
        }
        let definition = &schema["$defs"][&name];
        describe(page, &name, (definition, schema));
        next.extend(references(&definition["properties"]));
    }
}

fn describe(page: &mut String, name: &str, (definition, root): (&Value, &Value)) {
    let said =
        definition["description"].as_str().map_or_else(String::new, |said| format!("{said}\n\n"));
    // Writing to a String cannot fail, here and below.
    let _infallible = write!(page, "\n## {name}\n\n{said}");
    match definition["properties"].as_object() {
        Some(properties) => {
            page.push_str("| field | is | meaning |\n|---|---|---|\n");
            for (field, schema) in properties {
                let meaning = meaning(field, schema, &root["$defs"]);
                row(page, &[&format!("`{field}`"), &type_text(schema), &meaning]);
            }
        }
        None => {
            page.push_str("| value | meaning |\n|---|---|\n");
            let rows = if name == "Doubt" { doubts() } else { values(definition) };
            for (value, meaning) in rows {
                row(page, &[&format!("`{value}`"), &meaning]);
            }
        }
    }
}

/// The text of a field in one line, or else the first sentence about its type or about the figure of its name.
fn meaning(field: &str, schema: &Value, types: &Value) -> String {
    let of_type = || types[references(schema).first()?]["description"].as_str();
    let of_figure = || look_up(field).map(|figure| figure.meaning);
    let other = || of_type().or_else(of_figure)?.split(". ").next();
    let own = schema["description"].as_str();
    let text = own.or_else(|| other().map(|text| text.trim_end_matches('.')));
    text.unwrap_or_default().replace('\n', " ")
}

/// The doubts, with the texts that the terminal and the results page show.
fn doubts() -> Vec<(String, String)> {
    let described = |doubt: Doubt| {
        let value = serde_json::to_value(doubt).unwrap_or_default();
        (value.as_str().unwrap_or_default().to_owned(), doubt.meaning().to_owned())
    };
    Doubt::ALL.map(described).to_vec()
}

/// The values of an enumeration, with their meanings.
pub(super) fn values(definition: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let plain = definition["enum"].as_array().into_iter().flatten();
    let described = definition["oneOf"].as_array().into_iter().flatten();
    let described = described.flat_map(|one| match one["enum"].as_array() {
        Some(all) => all.iter().map(|value| (text(value), String::new())).collect::<Vec<_>>(),
        None if one["const"].is_null() => Vec::new(),
        // A table row is one line.
        None => vec![(text(&one["const"]), text(&one["description"]).replace('\n', " "))],
    });
    plain.map(|value| (text(value), String::new())).chain(described).collect()
}

pub(super) fn type_text(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return linked(name);
    }
    if let Some(all) = schema["anyOf"].as_array() {
        return all.iter().map(type_text).collect::<Vec<_>>().join(" or ");
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(one) => vec![one.clone()],
        _ => Vec::new(),
    };
    let named = |one: &String| match one.as_str() {
        "array" if schema["items"].is_object() => {
            format!("list of {}", type_text(&schema["items"]))
        }
        "array" => "list".to_owned(),
        "object" if schema["additionalProperties"].is_object() => {
            format!("table of {}", type_text(&schema["additionalProperties"]))
        }
        "string" => schema["format"].as_str().unwrap_or("string").to_owned(),
        other => other.to_owned(),
    };
    types.iter().map(named).collect::<Vec<_>>().join(" or ")
}

pub(super) fn linked(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    format!("[{name}](#{})", name.to_lowercase())
}

/// The referenced definitions, in order.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value) {
                ("$ref", Value::String(name)) => {
                    name.rsplit('/').next().map(str::to_owned).into_iter().collect()
                }
                _ => references(value),
            })
            .collect(),
        Value::Array(all) => all.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// The figures, from the table that the page and the terminal use.
fn figures(page: &mut String) {
    page.push_str(
        "\n## Figures\n\n| name | title | unit | meaning | formula |\n|---|---|---|---|---|\n",
    );
    for definition in definitions() {
        let formula = if definition.formula.is_empty() {
            String::new()
        } else {
            format!("`{}`", definition.formula)
        };
        row(
            page,
            &[
                &format!("`{}`", definition.name),
                definition.title,
                definition.unit,
                definition.meaning,
                &formula,
            ],
        );
    }
    page.push_str("\n| symbol | meaning |\n|---|---|\n");
    for (symbol, meaning) in SYMBOLS {
        row(page, &[&format!("`{symbol}`"), meaning]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_of_the_page_is_one() {
        let page = plan_markdown();
        let (_, rest) = page.split_once("```yaml\n").expect("an example");
        let (example, types) = rest.split_once("```").expect("its end");
        let plan = BenchPlan::parse("plan.md", example).expect("a plan");
        assert_eq!(hob_bench::plan::cells(&plan).len(), 2 * 2 * 4 * 2);
        assert!(types.contains("| `labels` | table of list of string | Further axes"), "{types}");
    }

    #[test]
    fn every_type_and_every_figure_is_described() {
        let page = markdown();
        for expected in [
            "\n## Record\n",
            "\n## Metrics\n",
            "\n## Doubt\n",
            "| `id` | uuid | UUID version 7",
            "| `expires` | date or null |",
            "| `attempts` | list of [Attempt](#attempt) |",
            "| `ttfat_ms` | [Spread](#spread) or null |",
            "| `usage` | The server, in `usage` |",
            "| `ctx_sweep` |",
            "| `few_runs` | fewer than six runs |",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        let links = page.matches("](#").count();
        for link in page.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
            let is_there = page.lines().any(|line| {
                line.strip_prefix("## ").is_some_and(|name| name.to_lowercase() == link)
            });
            assert!(is_there, "{link}");
        }
        assert!(links > 30, "{links}");
    }
}
