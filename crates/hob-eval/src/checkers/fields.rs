//! JSON values, field by field. Partial credit is the share of right leaves; leaves that were not asked for count against it.
//! Numbers are equal by value, and texts without outer spaces.

use hob_core::count_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool_call::same_number;
use crate::Grade;
use crate::reading::mention::shortened;
use crate::reading::{json_values, tail, without_thoughts};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonFields {
    pub expected: Value,
}

/// Counts of one comparison.
#[derive(Default)]
struct Leaves {
    right: usize,
    all: usize,
    first_wrong: Option<String>,
}

impl JsonFields {
    /// The last JSON value of the answer that has a right leaf counts; without one, the last value.
    pub(crate) fn grade(&self, content: &str) -> Grade {
        let values = json_values(&without_thoughts(tail(content)));
        let compared = |value: &Value| {
            let mut leaves = Leaves::default();
            leaves.compare("", &self.expected, Some(value));
            leaves
        };
        let all: Vec<Leaves> = values.iter().rev().map(compared).collect();
        let best = all.iter().find(|leaves| leaves.right > 0).or(all.first());
        let Some(leaves) = best else {
            return Grade::malformed("no JSON can be read");
        };
        let score = leaves.right as f64 / leaves.all.max(1) as f64;
        match &leaves.first_wrong {
            None => Grade::correct("every field is right"),
            Some(wrong) => Grade::partial(
                score,
                format!("{wrong}; {} of {} fields are right", leaves.right, leaves.all),
            ),
        }
    }
}

impl Leaves {
    fn compare(&mut self, path: &str, expected: &Value, got: Option<&Value>) {
        match (expected, got) {
            (Value::Object(fields), got) if !fields.is_empty() => {
                let others = got.and_then(Value::as_object);
                for (name, field) in fields {
                    let inner = others.and_then(|others| others.get(name));
                    self.compare(&format!("{path}.{name}"), field, inner);
                }
                let extra =
                    others.into_iter().flatten().find(|(name, _)| !fields.contains_key(*name));
                if let Some((name, _)) = extra {
                    self.leaf(false, || format!("{path}.{name} was not asked for"));
                }
            }
            (Value::Array(items), Some(Value::Array(others))) => {
                for (at, item) in items.iter().enumerate() {
                    self.compare(&format!("{path}[{at}]"), item, others.get(at));
                }
                if others.len() > items.len() {
                    self.leaf(false, || {
                        let more = count_text(others.len() - items.len(), "item");
                        format!("{path} has {more} too many")
                    });
                }
            }
            (leaf, got) => {
                let is_right = got.is_some_and(|got| is_same(leaf, got));
                let said = got.map_or("nothing".to_owned(), |got| shortened(&got.to_string()));
                self.leaf(is_right, || format!("{path}: {leaf} was expected, {said} was read"));
            }
        }
    }

    fn leaf(&mut self, is_right: bool, wrong: impl FnOnce() -> String) {
        self.all += 1;
        if is_right {
            self.right += 1;
        } else if self.first_wrong.is_none() {
            self.first_wrong = Some(wrong().trim_start_matches('.').to_owned());
        }
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.trim() == other.trim(),
        (Value::Number(one), Value::Number(other)) => same_number(one, other),
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Verdict;

    #[test]
    fn fields_count_one_by_one() {
        let fields = JsonFields { expected: json!({ "a": 1, "b": "x", "c": [true, null] }) };
        let rows = [
            ("{\"a\":1,\"b\":\"x\",\"c\":[true,null]}", Verdict::Correct, 1.0),
            (
                "Sure:\n```json\n{\"c\":[true,null],\"b\":\" x\",\"a\":1.0}\n```",
                Verdict::Correct,
                1.0,
            ),
            ("{\"a\":2,\"b\":\"x\",\"c\":[true,null]}", Verdict::Wrong, 0.75),
            ("{\"a\":1,\"b\":\"x\",\"c\":[true,null],\"d\":1}", Verdict::Wrong, 0.8),
            ("{\"a\":1,\"b\":\"x\",\"c\":[true]}", Verdict::Wrong, 0.75),
            ("{\"a\":\"1\"}", Verdict::Wrong, 0.0),
            ("{}", Verdict::Wrong, 0.0),
            ("nothing", Verdict::Malformed, 0.0),
        ];
        for (text, verdict, score) in rows {
            let grade = fields.grade(text);
            assert_eq!((grade.verdict, grade.score), (verdict, score), "{text}: {}", grade.why);
        }
        let empty = JsonFields { expected: json!({ "a": {}, "b": 1 }) };
        let rows = [("{}", Verdict::Correct), ("5", Verdict::Wrong), ("{\"c\":1}", Verdict::Wrong)];
        for (value, verdict) in rows {
            let text = format!("{{\"a\":{value},\"b\":1}}");
            assert_eq!(empty.grade(&text).verdict, verdict, "{text}");
        }
        assert_eq!(empty.grade("{\"b\":1}").verdict, Verdict::Wrong, "a field is missing");
        let large = JsonFields { expected: json!({ "id": 9_007_199_254_740_993_u64 }) };
        assert_eq!(large.grade("{\"id\":9007199254740993}").verdict, Verdict::Correct);
        assert_eq!(large.grade("{\"id\":9007199254740992}").verdict, Verdict::Wrong);
        let why = fields.grade("{\"a\":2}").why;
        assert!(why.starts_with("a: 1 was expected, 2 was read"), "{why}");
    }
}
