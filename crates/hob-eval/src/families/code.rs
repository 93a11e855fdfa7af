//! Small programming tasks in Python with hidden tests, whose results come from the same task written in Rust.
//! Each task has parameters, so that no answer can be known by heart.

mod tasks;

use serde_json::Value;

use crate::checkers::{CodeTest, CodeTests};
use crate::draw::Draw;
use crate::{Checker, Item};
use tasks::TASKS;

pub const SIZES: &[&str] = &["easy", "medium"];

const FAMILY: &str = "code";
const TOKENS_MAX: u32 = 900;
const HIDDEN_TESTS: usize = 10;
/// Shown in the prompt, and not among the hidden ones.
const EXAMPLES: usize = 2;

/// `None` where the size is not one of [`SIZES`].
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    let tasks: Vec<_> = TASKS.iter().filter(|task| task.size == size).collect();
    let mut draw = Draw::new(seed, FAMILY, size, index);
    let task = tasks.get(index as usize % tasks.len().max(1))?;
    let made = (task.make)(&mut draw);
    let mut tests: Vec<CodeTest> = Vec::new();
    // Small inputs repeat; a test that was seen in the prompt would prove nothing.
    for _ in 0..20 * (HIDDEN_TESTS + EXAMPLES) {
        let arguments = (made.input)(&mut draw);
        if tests.iter().all(|test| test.arguments != arguments) {
            let expected = (made.answer)(&arguments);
            tests.push(CodeTest { arguments, expected });
        }
        if tests.len() == HIDDEN_TESTS + EXAMPLES {
            break;
        }
    }
    let hidden = tests.split_off(EXAMPLES.min(tests.len()));
    let example = |test: &CodeTest| {
        let arguments: Vec<String> = test.arguments.iter().map(python).collect();
        format!("{}({}) == {}", task.entry, arguments.join(", "), python(&test.expected))
    };
    let examples: Vec<String> = tests.iter().map(example).collect();
    let prompt = format!(
        "Write the Python function `{}`. {}\n\nExamples:\n{}\n\nAnswer with the code in one block, without input or output.",
        task.signature,
        made.specification,
        examples.join("\n")
    );
    Some(Item::new(
        (FAMILY, size, index),
        prompt,
        Checker::Code(CodeTests { entry: task.entry.to_owned(), tests: hidden }),
        TOKENS_MAX,
    ))
}

/// A value as Python writes it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name:?}: {}", python(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        // JSON writes texts and numbers as Python reads them.
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_hidden_tests_that_the_prompt_does_not_show() {
        for size in SIZES {
            for index in 0..40 {
                let item = item(6, size, index).expect("an item");
                let Checker::Code(code) = &item.checker else { panic!("code") };
                assert_eq!(code.tests.len(), HIDDEN_TESTS, "{}", item.prompt);
                assert!(item.prompt.contains(&format!("`{}(", code.entry)), "{}", item.prompt);
                for test in &code.tests {
                    let arguments: Vec<String> = test.arguments.iter().map(python).collect();
                    let call = format!("{}({}) ==", code.entry, arguments.join(", "));
                    assert!(!item.prompt.contains(&call), "{call}");
                }
            }
        }
        assert_eq!(item(6, "hard", 0), None);
        assert_eq!(item(6, "easy", 3), item(6, "easy", 3));
    }

    #[test]
    fn values_are_written_as_python_reads_them() {
        let value = serde_json::json!([true, null, "a\"b", 1.5, { "k": [] }]);
        assert_eq!(python(&value), r#"[True, None, "a\"b", 1.5, {"k": []}]"#);
    }
}
