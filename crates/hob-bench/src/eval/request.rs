//! The request of one item for each API.
//! A number that belongs to the item stands in front of its prompt, so that no cache has one item's prompt for another.

use bytes::Bytes;
use hob_eval::Item;
use serde_json::{Value, json};

use super::{EvalArm, PromptForm};
use crate::chat::ThinkingSwitch;
use crate::record::sha256_hex;
use crate::target::{Api, Target};

const MARK_CHARS: usize = 8;
/// A base model goes on with the next question.
const COMPLETION_END: &str = "\nQuestion:";

/// A prompt without the mark in front of it, if it has one.
pub(super) fn without_mark(prompt: &str) -> &str {
    let is_mark =
        |mark: &str| mark.len() == MARK_CHARS && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = prompt.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    parts.filter(|(mark, _)| is_mark(mark)).map_or(prompt, |(_, rest)| rest)
}

/// The parts that all requests share.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemRequest<'a> {
    pub(super) target: &'a Target,
    pub(super) seed: u64,
    pub(super) form: PromptForm,
    pub(super) enforces_schemas: bool,
    /// Context length, for servers that need it with each request.
    pub(super) context_tokens: u32,
}

impl ItemRequest<'_> {
    pub(super) fn bytes(&self, item: &Item, arm: EvalArm) -> Bytes {
        self.http(&self.body(item, arm).to_string())
    }

    /// Asks for the log-probability of each token of a text.
    pub(super) fn scored_text(&self, text: &str) -> Bytes {
        let body = json!({
            "model": self.target.model, "prompt": text, "echo": true, "logprobs": 1,
            // Some servers generate at least one token; it is not scored.
            "max_tokens": 1, "temperature": 0,
        });
        self.http(&body.to_string())
    }

    fn http(&self, body: &str) -> Bytes {
        let path = match (self.target.api, self.form) {
            (Api::OpenAi | Api::Hob, PromptForm::Chat) => "/v1/chat/completions",
            (Api::OpenAi | Api::Hob, _) => "/v1/completions",
            (Api::Ollama, PromptForm::Chat) => "/api/chat",
            (Api::Ollama, _) => "/api/generate",
        };
        self.target.post(path, body, None)
    }

    /// The prompt with a mark of the item and of the arm, so that no arm finds another one's prompt in the cache.
    pub(super) fn prompt(&self, item: &Item, arm: EvalArm) -> String {
        let mark = sha256_hex(format!("{} {} {}", self.seed, item.id, arm.key()).as_bytes());
        format!("[{}] {}", &mark[..MARK_CHARS], item.prompt)
    }

    fn body(&self, item: &Item, arm: EvalArm) -> Value {
        if self.form != PromptForm::Chat {
            return self.completion(item, arm);
        }
        let switch = arm.thinking.switch();
        let mut user = self.prompt(item, arm);
        if switch == Some(ThinkingSwitch::NoThink) {
            user.push_str(" /no_think");
        }
        let system = item.system.iter().map(|text| json!({ "role": "system", "content": text }));
        let messages: Vec<Value> =
            system.chain([json!({ "role": "user", "content": user })]).collect();
        let mut body = json!({ "model": self.target.model, "messages": messages, "stream": true });
        if !item.tools.is_empty() {
            body["tools"] = Value::Array(item.tools.clone());
        }
        let schema = item.schema.as_ref().filter(|_| self.enforces_schemas);
        let (tokens, temperature) = (arm.tokens_max(item.max_tokens), arm.temperature);
        match self.target.api {
            Api::Ollama => {
                body["options"] = json!({
                    "num_predict": tokens, "temperature": temperature, "seed": self.seed,
                    "num_ctx": self.context_tokens,
                });
                if let Some(schema) = schema {
                    body["format"] = schema.clone();
                }
            }
            Api::OpenAi | Api::Hob => {
                body["stream_options"] = json!({ "include_usage": true });
                body["max_tokens"] = json!(tokens);
                body["temperature"] = json!(temperature);
                body["seed"] = json!(self.seed);
                if let Some(schema) = schema {
                    body["response_format"] = json!({
                        "type": "json_schema",
                        "json_schema": { "name": "answer", "strict": true, "schema": schema },
                    });
                }
            }
        }
        switch.iter().for_each(|switch| switch.set(&mut body));
        body
    }

    /// A text that ends where the answer begins. Without a chat template the server does not know where it ends.
    fn completion(&self, item: &Item, arm: EvalArm) -> Value {
        let tokens = arm.tokens_max(item.max_tokens);
        let system = item.system.as_ref().map_or(String::new(), |text| format!("{text}\n\n"));
        let prompt = format!("{system}Question: {}\nAnswer:", self.prompt(item, arm));
        let model = &self.target.model;
        match self.target.api {
            Api::Ollama => json!({
                "model": model, "prompt": prompt, "raw": true, "stream": true,
                "options": {
                    "num_predict": tokens, "temperature": arm.temperature, "seed": self.seed,
                    "num_ctx": self.context_tokens, "stop": [COMPLETION_END],
                },
            }),
            Api::OpenAi | Api::Hob => json!({
                "model": model, "prompt": prompt, "stream": true,
                "stream_options": { "include_usage": true }, "max_tokens": tokens,
                "temperature": arm.temperature, "seed": self.seed, "stop": [COMPLETION_END],
            }),
        }
    }
}
