//! A request's setting for thinking, in each server's own words; and what else its template sees as variables.
//! Which words those are is each server's own choice, and none of them agree.

use hob_core::chat::{Conversation, Effort, Message, Role, Thinking};
use serde_json::{Map, Value, json};

use super::{UpstreamDialect, parsed};

/// Qwen's own words for "do not think".
const NO_THINKING: &str = "/no_think";

/// What the model's template sees as variables.
pub(super) struct Switches(Map<String, Value>);

impl Switches {
    pub(super) fn of(conversation: &Conversation) -> Switches {
        match conversation.template_arguments.as_ref().map(parsed) {
            Some(Value::Object(arguments)) => Switches(arguments),
            _ => Switches(Map::new()),
        }
    }

    pub(super) fn think(
        &mut self,
        thinking: Thinking,
        dialect: UpstreamDialect,
        body: &mut Map<String, Value>,
    ) {
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        let effort = thinking.effort.map(|effort| json!(effort.name()));
        match dialect {
            UpstreamDialect::OpenAi => put("reasoning_effort", effort),
            UpstreamDialect::Hob | UpstreamDialect::LlamaServer => {
                put("reasoning_effort", effort);
                put("thinking_budget_tokens", thinking.tokens_max.map(Value::from));
            }
            UpstreamDialect::OpenRouter => put("reasoning", reasoning(thinking)),
            UpstreamDialect::Vllm | UpstreamDialect::Tabby => {}
        }
        if let Some(effort) = thinking.effort {
            let is_on = json!(effort != Effort::None);
            let names = variables(dialect).iter().map(|name| (*name).to_owned());
            self.0.extend(names.map(|name| (name, is_on.clone())));
        }
    }

    pub(super) fn put(self, dialect: UpstreamDialect, body: &mut Map<String, Value>) {
        if self.0.is_empty() {
            return;
        }
        let name = match dialect {
            UpstreamDialect::Tabby => "template_vars",
            UpstreamDialect::OpenAi
            | UpstreamDialect::Hob
            | UpstreamDialect::LlamaServer
            | UpstreamDialect::Vllm
            | UpstreamDialect::OpenRouter => "chat_template_kwargs",
        };
        body.insert(name.to_owned(), Value::Object(self.0));
    }
}

/// The template's variables that switch thinking. llama-server gets one in addition to the effort: it may
/// have been started with thinking off, and an effort alone does not switch it on.
fn variables(dialect: UpstreamDialect) -> &'static [&'static str] {
    match dialect {
        UpstreamDialect::LlamaServer | UpstreamDialect::Tabby => &["enable_thinking"],
        // DeepSeek's templates read the other name.
        UpstreamDialect::Vllm => &["enable_thinking", "thinking"],
        UpstreamDialect::OpenAi | UpstreamDialect::Hob | UpstreamDialect::OpenRouter => &[],
    }
}

/// OpenRouter takes one of the two; a number of tokens says more than a word.
fn reasoning(thinking: Thinking) -> Option<Value> {
    match (thinking.effort, thinking.tokens_max) {
        (Some(Effort::None), _) | (_, Some(0)) => Some(json!({ "effort": "none" })),
        (_, Some(tokens)) => Some(json!({ "max_tokens": tokens })),
        (Some(effort), None) => Some(json!({ "effort": effort.name() })),
        (None, None) => None,
    }
}

/// The first Qwen3 models obey words in the text, and a server of an unknown kind may obey nothing else. So hob appends the
/// words to the user's last message.
pub(super) fn say_no_thinking(messages: &mut Value, asked: &[Message]) {
    let last = asked.iter().rposition(|message| message.role == Role::User);
    let Some(last) = last.filter(|last| !asked[*last].text.trim_end().ends_with(NO_THINKING))
    else {
        return;
    };
    match &mut messages[last]["content"] {
        Value::String(text) => *text = format!("{text} {NO_THINKING}"),
        Value::Array(parts) => parts.push(json!({ "type": "text", "text": NO_THINKING })),
        _ => {}
    }
}

/// Whether the name is that of a model of April 2025, which thinks or not as it is asked. Its successors always
/// think or never do, and would take the words for text.
pub(super) fn is_first_qwen3(model: &str) -> bool {
    const LATER: [&str; 12] = [
        "2507", "coder", "instruct", "thinking", "next", "vl", "omni", "embed", "rerank", "guard",
        "max", "asr",
    ];
    let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let Some(rest) = name.strip_prefix("qwen3") else { return false };
    let is_named_so = rest.is_empty() || rest.starts_with(['-', ':', '_']);
    is_named_so && !LATER.iter().any(|word| rest.contains(word))
}
