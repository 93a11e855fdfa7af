//! The bytes of a chat request for each API, prepared before the request is due.
//! Thinking is turned off by the switch that was proven to work, or left at the default.

use bytes::Bytes;
use serde_json::{Value, json};

use super::prompt::Prompt;
use crate::target::{Api, Target};
use crate::thinking_switch::ThinkingSwitch;

/// The parts that all requests of a cell share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTemplate<'a> {
    pub(crate) target: &'a Target,
    pub(crate) max_tokens: u32,
    pub(crate) tools: u32,
    pub(crate) switch: Option<ThinkingSwitch>,
    /// Makes each answer as long as its limit. Not every server accepts this.
    pub(crate) ignores_eos: bool,
    /// Context length, for servers that need it with each request.
    pub(crate) context_tokens: Option<u32>,
}

impl RequestTemplate<'_> {
    /// The complete request with `number` as its `x-request-id`.
    pub(crate) fn bytes(&self, prompt: &Prompt, number: usize) -> Bytes {
        let path = match self.target.api {
            Api::OpenAi | Api::Hob => "/v1/chat/completions",
            Api::Ollama => "/api/chat",
        };
        self.target.post(path, &self.body(prompt).to_string(), Some(number))
    }

    fn body(&self, prompt: &Prompt) -> Value {
        let mut user = prompt.user.clone();
        if self.switch == Some(ThinkingSwitch::NoThink) {
            user.push_str(" /no_think");
        }
        let messages = json!([
            { "role": "system", "content": prompt.system },
            { "role": "user", "content": user },
        ]);
        let mut body = json!({ "model": self.target.model, "messages": messages, "stream": true });
        match self.target.api {
            Api::Ollama => {
                body["options"] = json!({ "num_predict": self.max_tokens, "temperature": 0 });
                if let Some(tokens) = self.context_tokens {
                    body["options"]["num_ctx"] = json!(tokens);
                }
            }
            Api::OpenAi | Api::Hob => {
                body["stream_options"] = json!({ "include_usage": true });
                body["max_tokens"] = json!(self.max_tokens);
                body["temperature"] = json!(0);
                if self.ignores_eos {
                    body["ignore_eos"] = json!(true);
                }
            }
        }
        if self.tools > 0 {
            body["tools"] = (1..=self.tools).map(tool).collect();
        }
        self.switch.iter().for_each(|switch| switch.set(&mut body));
        body
    }
}

/// A tool definition as agents send it with every request.
fn tool(number: u32) -> Value {
    json!({ "type": "function", "function": {
        "name": format!("look_up_{number}"),
        "description": format!("Looks something up in place {number} and says what is there."),
        "parameters": { "type": "object", "required": ["query"], "properties": {
            "query": { "type": "string", "description": "What is looked for" },
            "limit": { "type": "integer", "description": "How many are wanted at most" },
        } },
    } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(api: Api, switch: Option<ThinkingSwitch>, tools: u32) -> Value {
        let target = Target::for_tests("http://box:1", api);
        let (max_tokens, ignores_eos, context_tokens) = (9, true, Some(4096));
        let target = &target;
        let form =
            RequestTemplate { target, max_tokens, tools, switch, ignores_eos, context_tokens };
        let prompt = Prompt { system: "a1".to_owned(), user: "word".to_owned() };
        let bytes = form.bytes(&prompt, 3);
        let text = std::str::from_utf8(&bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(
            head.contains("authorization: Bearer k\r\n") && head.contains("x-request-id: 3\r\n")
        );
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
        serde_json::from_str(body).expect("JSON")
    }

    #[test]
    fn each_thinking_switch_changes_the_request_in_its_own_way() {
        let of = |switch| body(Api::OpenAi, Some(switch), 0);
        assert_eq!(of(ThinkingSwitch::ReasoningEffort)["reasoning_effort"], "none");
        assert_eq!(of(ThinkingSwitch::Think)["think"], false);
        assert_eq!(
            of(ThinkingSwitch::EnableThinking)["chat_template_kwargs"]["enable_thinking"],
            false
        );
        assert_eq!(of(ThinkingSwitch::TemplateThinking)["chat_template_kwargs"]["thinking"], false);
        assert_eq!(of(ThinkingSwitch::ThinkingBudget)["thinking_budget"], 0);
        assert_eq!(of(ThinkingSwitch::ReasoningTokens)["reasoning"]["max_tokens"], 0);
        assert_eq!(of(ThinkingSwitch::NoThink)["messages"][1]["content"], "word /no_think");
    }

    #[test]
    fn each_protocol_has_its_limit_and_its_tools() {
        let openai = body(Api::Hob, None, 6);
        assert_eq!((&openai["max_tokens"], &openai["ignore_eos"]), (&json!(9), &json!(true)));
        assert_eq!(openai["tools"].as_array().map(Vec::len), Some(6));
        let ollama = body(Api::Ollama, None, 0);
        assert_eq!(
            (&ollama["options"]["num_predict"], &ollama["tools"]),
            (&json!(9), &Value::Null)
        );
        // Ollama uses the requested context and cuts the prompt to it; other servers have the context of their start.
        assert_eq!(ollama["options"]["num_ctx"], 4096);
        assert!(!openai.to_string().contains("4096"));
    }
}
