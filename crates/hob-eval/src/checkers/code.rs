//! Hidden tests of a Python function. The caller runs the code, in a sandbox; this module makes the script.
//! The script prints a marked line with the result of each test, and only these lines count.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool_call::{Spelling, equal};
use crate::Grade;
use crate::draw::hash;
use crate::reading::mention::shortened;
use crate::reading::{tail, without_thoughts};

/// Limits of a sandbox that runs an answer.
pub const CODE_SECONDS_MAX: u64 = 5;
const RESULT_CHARS_MAX: usize = 100_000;
pub const CODE_MEMORY_MAX_BYTES: u64 = 256 << 20;

/// Runs a Python program without network, for at most [`CODE_SECONDS_MAX`] and with [`CODE_MEMORY_MAX_BYTES`].
pub trait RunCode: fmt::Debug + Send + Sync {
    fn run(&self, program: &str) -> CodeOutcome;
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeOutcome {
    /// It ended with any exit code, or a limit other than the time ended it. `stdout` is what it had written.
    Ended { stdout: String },
    /// It was stopped. `stdout` is what it had written.
    TimedOut { stdout: String },
    /// There is no sandbox, or no Python.
    CouldNotStart { reason: String },
}

/// The function that is asked for, and calls of it with their results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeTests {
    /// The name of the Python function.
    pub entry: String,
    pub tests: Vec<CodeTest>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeTest {
    pub arguments: Vec<Value>,
    pub expected: Value,
}

impl CodeTests {
    pub(crate) fn grade(&self, content: &str, sandbox: Option<&dyn RunCode>) -> Grade {
        let Some(sandbox) = sandbox else {
            return Grade::malformed("code needs a sandbox, and hob has found no sandbox");
        };
        match self.program(content) {
            Ok(program) => self.grade_output(&sandbox.run(&program)),
            Err(grade) => grade,
        }
    }

    /// A script that runs the answer's code and prints one marked line for each test: its number, and the result as JSON.
    /// It has the arguments only. What is expected stays here, so that no code can find it or redefine equality.
    ///
    /// # Errors
    /// No code of the answer defines the function.
    pub fn program(&self, content: &str) -> Result<String, Grade> {
        let visible = without_thoughts(tail(content));
        let codes = code_of(&visible, &self.entry).ok_or_else(|| {
            Grade::malformed(format!("no code defines the function '{}'", self.entry))
        })?;
        let texts = [
            serde_json::to_string(&codes),
            serde_json::to_string(
                &self.tests.iter().map(|test| &test.arguments).collect::<Vec<_>>(),
            ),
            serde_json::to_string(&self.entry),
            serde_json::to_string(&self.mark()),
        ];
        // Texts as JSON cannot fail.
        let [codes, tests, entry, mark] = texts.map(|text| text.unwrap_or_default());
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        // The answer's code may print, exit, or close its output. Only a line with the mark counts, written to a copy. What
        // the code prints is dropped, because the output has a limit. The script leaves at once, because a thread of the
        // answer's would keep it alive.
        Ok(format!(
            "import json, os\n\
             out, write, dumps = os.dup(1), os.write, json.dumps\n\
             os.dup2(os.open(os.devnull, os.O_WRONLY), 1)\n\
             tests = json.loads({tests})\n\
             space = {{'__name__': 'answer'}}\n\
             for code in {codes}:\n    try:\n        code = compile(code, 'answer', 'exec')\n    except BaseException:\n        continue\n    try:\n        exec(code, space)\n    except BaseException:\n        pass\n    break\n\
             for at, test in enumerate(tests):\n    try:\n        got = dumps(space[{entry}](*test))[:{RESULT_CHARS_MAX}]\n    except BaseException:\n        continue\n    write(out, ('\\n' + {mark} + str(at) + ' ' + got + '\\n').encode())\n\
             write(out, ('\\n' + {mark} + 'end\\n').encode())\n\
             os._exit(0)\n",
            tests = quoted(&tests),
        ))
    }

    pub fn grade_output(&self, outcome: &CodeOutcome) -> Grade {
        let late = format!("the code did not end within {CODE_SECONDS_MAX} s");
        let (stdout, late) = match outcome {
            CodeOutcome::Ended { stdout } => (stdout, None),
            CodeOutcome::TimedOut { stdout } => (stdout, Some(late)),
            CodeOutcome::CouldNotStart { reason } => {
                return Grade::malformed(format!(
                    "the code could not be run: {}",
                    shortened(reason)
                ));
            }
        };
        let mark = self.mark();
        let told: Vec<&str> =
            stdout.lines().filter_map(|line| line.strip_prefix(mark.as_str())).collect();
        let has_passed = |(at, test): &(usize, &CodeTest)| {
            let result = told.iter().rev().find_map(|line| line.strip_prefix(&format!("{at} ")));
            let value = result.and_then(|json| serde_json::from_str::<Value>(json).ok());
            value.is_some_and(|value| equal(&value, &test.expected, Spelling::Exact))
        };
        let passed = self.tests.iter().enumerate().filter(has_passed).count();
        let all = self.tests.len();
        let count = format!("{passed} of {all} hidden tests passed");
        match (passed, late) {
            (0, Some(late)) => Grade::wrong(late),
            (0, None) if told.is_empty() => {
                Grade::wrong("the code ended the program before its tests")
            }
            (passed, _) if passed == all && all > 0 => {
                Grade::correct(format!("all {all} hidden tests passed"))
            }
            (passed, late) => Grade::partial(
                passed as f64 / all.max(1) as f64,
                match late {
                    Some(late) => format!("{count}; then {late}"),
                    None => count,
                },
            ),
        }
    }

    /// Keeps the results apart from what the code prints by itself.
    fn mark(&self) -> String {
        let tests = serde_json::to_string(&self.tests).unwrap_or_default();
        format!("hob-{:016x}:", hash(&[&self.entry, &tests]))
    }
}

/// The last block that defines the function, or else the answer itself, and then without the prose around its code.
/// The first of these that Python can compile counts.
fn code_of(content: &str, entry: &str) -> Option<Vec<String>> {
    let defines = |code: &str| {
        code.lines().any(|line| {
            let name = line.trim_start().strip_prefix("def ").unwrap_or_default().trim_start();
            name.strip_prefix(entry).is_some_and(|rest| rest.trim_start().starts_with('('))
                || line.starts_with(&format!("{entry} ="))
        })
    };
    let mut blocks: Vec<String> = Vec::new();
    // The fence's indent is not part of the code: a block can stand in a list.
    let mut open: Option<(String, usize)> = None;
    for line in content.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let is_fence = ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
        match (is_fence, open.take()) {
            (true, Some((block, _))) => blocks.push(block),
            (true, None) => open = Some((String::new(), indent)),
            (false, Some((mut block, outer))) => {
                block.push_str(&line[outer.min(indent)..]);
                block.push('\n');
                open = Some((block, outer));
            }
            (false, None) => {}
        }
    }
    // An answer that was cut off has no closing fence.
    blocks.extend(open.map(|(block, _)| block));
    let block = blocks.into_iter().rev().find(|block| defines(block));
    let bare = || defines(content).then(|| vec![content.to_owned(), without_prose(content)]);
    block.map(|block| vec![block]).or_else(bare)
}

/// Code that stands in prose without a fence: from its first line to the first line that cannot be code.
fn without_prose(content: &str) -> String {
    const STARTS: [&str; 6] = ["def ", "import ", "from ", "class ", "@", "#"];
    let is_code = |line: &str| {
        let name = line.split_once(" = ").map_or("", |(name, _)| name);
        let is_name = |sign: char| sign.is_alphanumeric() || sign == '_';
        line.is_empty()
            || line.starts_with([' ', '\t', ')', ']', '}'])
            || STARTS.iter().any(|start| line.starts_with(start))
            || !name.is_empty() && name.chars().all(is_name)
    };
    let lines = content.lines().skip_while(|line| line.is_empty() || !is_code(line));
    lines.take_while(|line| is_code(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn tests() -> CodeTests {
        let test = |a: i64, b: i64| CodeTest {
            arguments: vec![a.into(), b.into()],
            expected: (a + b).into(),
        };
        CodeTests { entry: "add".to_owned(), tests: vec![test(1, 2), test(3, 4)] }
    }

    #[test]
    fn code_is_found_in_blocks_and_bare() {
        let rows = [
            ("```python\ndef add(a, b):\n    return a + b\n```", true),
            ("def add(a, b):\n    return a + b", true),
            ("~~~\ndef add(a, b):\n    return a + b\n~~~", true),
            ("```python\nprint(1)\n```\nThen:\n```\ndef add (a, b):\n    return 0\n```", true),
            ("```python\ndef add(a, b):\n    return", true),
            ("```python\nadd = lambda a, b: a + b\n```", true),
            ("def adder(a, b): pass", false),
            ("Use a + b.", false),
            ("<think>def add(a, b): pass</think>", false),
        ];
        for (content, found) in rows {
            assert_eq!(tests().program(content).is_ok(), found, "{content}");
        }
        let last = code_of("```\ndef add(a): 1\n```\n```\ndef add(a): 2\n```", "add");
        assert_eq!(last, Some(vec!["def add(a): 2\n".to_owned()]), "the last block counts");
        let rows = [
            (
                "1. Code:\n   ```python\n   def add(a):\n       return 1\n   ```",
                "def add(a):\n    return 1\n",
            ),
            (
                "Here is it:\n\nimport math\nONE = 1\ndef add(a):\n\n    return 1\n\nIt adds.",
                "import math\nONE = 1\ndef add(a):\n\n    return 1\n",
            ),
        ];
        for (content, code) in rows {
            let last = code_of(content, "add").and_then(|mut codes| codes.pop());
            assert_eq!(last.as_deref(), Some(code), "{content}");
        }
    }

    #[test]
    fn only_marked_lines_count_and_their_values_are_compared_here() {
        let tests = tests();
        let mark = tests.mark();
        let ended = |stdout: String| CodeOutcome::Ended { stdout };
        let rows = [
            (ended(format!("noise\n{mark}0 3\n{mark}1 7.0\n{mark}end\n")), Verdict::Correct, 1.0),
            (ended(format!("{mark}0 3\n{mark}1 8\n")), Verdict::Wrong, 0.5),
            (ended(format!("{mark}1 7\n")), Verdict::Wrong, 0.5),
            (ended("hob-0000000000000000:0 3".to_owned()), Verdict::Wrong, 0.0),
            (ended(format!("{mark}0 true\n{mark}1 \"7\"\n{mark}end\n")), Verdict::Wrong, 0.0),
            (CodeOutcome::TimedOut { stdout: String::new() }, Verdict::Wrong, 0.0),
            (CodeOutcome::TimedOut { stdout: format!("{mark}0 3\n") }, Verdict::Wrong, 0.5),
            (CodeOutcome::CouldNotStart { reason: "no".to_owned() }, Verdict::Malformed, 0.0),
        ];
        for (outcome, verdict, score) in rows {
            let grade = tests.grade_output(&outcome);
            assert_eq!((grade.verdict, grade.score), (verdict, score), "{outcome:?}");
        }
        assert_eq!(tests.grade("def add(a, b): pass", None).verdict, Verdict::Malformed);
    }

    #[test]
    fn code_that_redefines_equality_or_looks_for_the_results_does_not_pass() {
        let rows = [
            ("def add(a, b):\n    return a + b", 1.0),
            ("def add(a, b):\n    print('hob')\n    return a + (b if a == 1 else 0)", 0.5),
            (
                "class A(int):\n    def __eq__(self, o): return True\ndef add(a, b): return A(5)",
                0.0,
            ),
            ("class A:\n    def __eq__(self, o): return True\ndef add(a, b): return A()", 0.0),
            ("import sys\ndef add(a, b): return sys.modules['__main__'].tests[0]", 0.0),
            ("def add(a, b):\n    raise SystemExit", 0.0),
            ("def add(a, b):\n    print('x' * 10_000)\n    return a + b", 1.0),
        ];
        for (code, score) in rows {
            let tests = tests();
            let program = tests.program(&format!("```python\n{code}\n```")).expect("code");
            let ran = std::process::Command::new("python3").args(["-I", "-c", &program]).output();
            let stdout = ran.expect("python3, which the tests need elsewhere, too").stdout;
            let stdout = String::from_utf8_lossy(&stdout).into_owned();
            let mut lines = stdout.lines().filter(|line| !line.is_empty());
            assert!(lines.all(|line| line.starts_with(&tests.mark())), "{code}: {stdout}");
            let grade = tests.grade_output(&CodeOutcome::Ended { stdout });
            assert_eq!(grade.score, score, "{code}: {}", grade.why);
        }
    }
}
