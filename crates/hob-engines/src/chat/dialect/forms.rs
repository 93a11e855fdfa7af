//! The forms of calls and of thinking that models were trained on.
//! Forms whose arguments are not JSON (XML, Python calls) are absent. For these models hob describes `HERMES`.

use super::{CallForm, ThinkingMarks, ToolDialect, Trigger, TriggerPosition};

/// Hermes, Qwen, and every model to which hob describes tools in a system message.
pub const HERMES: ToolDialect = ToolDialect {
    triggers: &[opening("<tool_call>")],
    begin: "<tool_call>\n",
    between: Some("\n</tool_call>\n<tool_call>\n"),
    end: "\n</tool_call>",
    call: CallForm::Object { arguments_key: "arguments" },
    marks: &["<tool_call>", "</tool_call>"],
};

/// Llama 3.1 and later: the bare object is the whole answer.
pub const LLAMA3: ToolDialect = ToolDialect {
    triggers: &[
        Trigger { text: r#"{"name""#, position: TriggerPosition::AnswerStart, opens: r#"{"name""# },
        Trigger { text: "<|python_tag|>", position: TriggerPosition::AnswerStart, opens: "" },
    ],
    begin: "",
    between: None,
    end: "",
    call: CallForm::Object { arguments_key: "parameters" },
    marks: &["<|python_tag|>"],
};

/// Mistral until 2024: one array of calls.
pub const MISTRAL_ARRAY: ToolDialect = ToolDialect {
    triggers: &[opening("[TOOL_CALLS]")],
    begin: "[TOOL_CALLS][",
    between: Some(", "),
    end: "]",
    call: CallForm::Object { arguments_key: "arguments" },
    marks: &["[TOOL_CALLS]"],
};

/// Mistral from 2025 on: a mark for each call.
pub const MISTRAL_NAMED: ToolDialect = ToolDialect {
    triggers: &[opening("[TOOL_CALLS]")],
    begin: "[TOOL_CALLS]",
    between: Some("[TOOL_CALLS]"),
    end: "",
    call: CallForm::Named { separator: "[ARGS]" },
    marks: &["[TOOL_CALLS]", "[ARGS]"],
};

/// gpt-oss: a call is a message on the commentary channel. The token that ends it ends the answer.
pub const HARMONY: ToolDialect = ToolDialect {
    triggers: &[opening("<|channel|>commentary to=functions.")],
    begin: "<|channel|>commentary to=functions.",
    between: None,
    end: "",
    call: CallForm::Named { separator: " <|constrain|>json<|message|>" },
    marks: &["<|channel|>", "<|constrain|>", "<|message|>"],
};

/// All forms of calls. Processes name one by its place here.
pub(crate) static TOOL_DIALECTS: [ToolDialect; 5] =
    [HERMES, LLAMA3, MISTRAL_ARRAY, MISTRAL_NAMED, HARMONY];

/// DeepSeek R1, Qwen, SmolLM3 and most others.
pub(super) const THINK: ThinkingMarks = ThinkingMarks {
    open: "<think>",
    close: "</think>",
    forced_close: "\n</think>\n\n",
    empty_rest: "\n\n</think>\n\n",
    before_answer: &[],
    marks: &["<think>", "</think>"],
};

pub(super) const SEED_THINK: ThinkingMarks = ThinkingMarks {
    open: "<seed:think>",
    close: "</seed:think>",
    forced_close: "\n</seed:think>",
    empty_rest: "\n</seed:think>",
    before_answer: &[],
    marks: &["<seed:think>", "</seed:think>"],
};

pub(super) const MISTRAL_THINK: ThinkingMarks = ThinkingMarks {
    open: "[THINK]",
    close: "[/THINK]",
    forced_close: "[/THINK]",
    empty_rest: "[/THINK]",
    before_answer: &[],
    marks: &["[THINK]", "[/THINK]"],
};

pub(super) const GEMMA_THOUGHT: ThinkingMarks = ThinkingMarks {
    open: "<|channel>thought",
    close: "<channel|>",
    forced_close: "\n<channel|>",
    empty_rest: "\n<channel|>",
    before_answer: &[],
    marks: &["<|channel>", "<channel|>"],
};

pub(super) const HARMONY_ANALYSIS: ThinkingMarks = ThinkingMarks {
    open: "<|channel|>analysis<|message|>",
    close: "<|end|>",
    forced_close: "<|end|><|start|>assistant<|channel|>final<|message|>",
    empty_rest: "<|end|><|start|>assistant<|channel|>final<|message|>",
    before_answer: &["<|start|>assistant", "<|channel|>final<|message|>"],
    marks: &["<|start|>", "<|channel|>", "<|message|>", "<|end|>"],
};

/// A mark that opens a block of calls anywhere in the answer.
const fn opening(mark: &'static str) -> Trigger {
    Trigger { text: mark, position: TriggerPosition::Anywhere, opens: mark }
}
