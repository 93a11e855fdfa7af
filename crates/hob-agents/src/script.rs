//! A chat model that follows a script: for deterministic tests of teams and of other clients, without weights.
//! A script is a file of JSON lines. Each line is a step: what the request must have, and what is answered.

mod obey;

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use futures::{FutureExt, TryStreamExt};
use hob_core::chat::{
    BYTES_PER_TOKEN, ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, Completion,
    EmbedRequest, Embeddings, FinishReason, Prompt, Timings, Usage,
};
use hob_core::{Fault, ModelError, locked};
use serde::Deserialize;
use serde_json::Value;

/// Longest script in bytes.
pub const SCRIPT_BYTES_MAX: u64 = 4 << 20;
const CONTEXT_TOKENS: u32 = 131_072;

/// One step of a script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptStep {
    #[serde(default)]
    when: When,
    reply: Reply,
    /// The step answers any number of requests.
    #[serde(default)]
    repeat: bool,
}

/// A step in its file.
#[derive(Debug)]
struct ScriptLine {
    /// From 1.
    number: usize,
    step: ScriptStep,
    is_used: bool,
}

/// What a request must have. An empty condition is always met.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct When {
    /// A text in any message.
    contains: Option<String>,
    /// The agent of a team that asks.
    agent: Option<String>,
    /// A text in the last message.
    last: Option<String>,
    /// Names of tools that the request offers.
    tools: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Reply {
    reasoning: String,
    content: String,
    tool_calls: Vec<ScriptCall>,
    /// Does what the last message says literally: `reply exactly X`, or `call TOOL with {…}`. Repeats the output of a tool.
    obey: bool,
    /// The request fails with this message.
    error: Option<String>,
    /// The request is refused with this message: it would be refused again.
    refused: Option<String>,
    /// Waits before the answer.
    delay_ms: u64,
    /// After `content`, nothing comes any more.
    stall: bool,
    /// After `content`, the connection breaks.
    cut: bool,
    /// After `content`, the limit of tokens is reached.
    limit: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCall {
    name: String,
    /// An object; or a text, for arguments that are not JSON.
    #[serde(default)]
    arguments: Value,
}

/// A model that answers as its script says. A request for which no step is left fails.
#[derive(Debug)]
pub struct ScriptModel {
    name: String,
    card: ChatCard,
    lines: Mutex<Vec<ScriptLine>>,
}

impl ScriptModel {
    /// # Errors
    /// A line is not a step; the error has its number.
    pub fn parse(name: &str, text: &str) -> Result<ScriptModel, String> {
        let is_step = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| is_step(line)) {
            let number = number + 1;
            let step =
                serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
            lines.push(ScriptLine { number, step, is_used: false });
        }
        let card = ChatCard {
            context_tokens: CONTEXT_TOKENS,
            trained_context_tokens: CONTEXT_TOKENS,
            architecture: "script".to_owned(),
            template: Some(String::new()),
            calls_tools: true,
            thinks: true,
            ..ChatCard::default()
        };
        Ok(ScriptModel { name: name.to_owned(), card, lines: Mutex::new(lines) })
    }

    /// The first step that the request meets. It is used up unless it repeats.
    fn next(&self, request: &ChatRequest) -> Option<ScriptStep> {
        let mut lines = self.lines();
        let line = lines
            .iter_mut()
            .find(|line| (line.step.repeat || !line.is_used) && line.step.when.is_met(request))?;
        line.is_used = true;
        Some(line.step.clone())
    }

    fn lines(&self) -> MutexGuard<'_, Vec<ScriptLine>> {
        locked(&self.lines)
    }

    /// The steps that no request has used, as a sentence. Those that repeat may be used never. `None`: all were used.
    pub fn unused(&self) -> Option<String> {
        let lines = self.lines();
        let unused = lines.iter().filter(|line| !line.is_used && !line.step.repeat);
        let unused: Vec<String> = unused.map(|line| format!("line {}", line.number)).collect();
        let shown = unused.join(", ");
        let name = &self.name;
        (!unused.is_empty()).then(|| format!("no request used these steps of '{name}': {shown}"))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn failed(&self, detail: String) -> ModelError {
        ModelError::upstream(&self.name, Fault::Failed { message: detail })
    }
}

impl When {
    fn is_met(&self, request: &ChatRequest) -> bool {
        let Prompt::Chat(conversation) = &request.prompt else { return false };
        let texts = || conversation.messages.iter().map(|message| message.text.as_str());
        let is_in = |wanted: &Option<String>, text: &str| {
            wanted.as_ref().is_none_or(|wanted| text.contains(wanted))
        };
        let offers = |name: &String| conversation.tools.iter().any(|tool| tool.name == *name);
        let is_agent =
            self.agent.is_none() || request.trace.snapshot().agent.as_ref() == self.agent.as_ref();
        is_agent
            && (self.contains.is_none() || texts().any(|text| is_in(&self.contains, text)))
            && is_in(&self.last, texts().next_back().unwrap_or_default())
            && self.tools.iter().all(offers)
    }
}

impl Reply {
    fn events(&self, request: &ChatRequest) -> Vec<ChatEvent> {
        let mut events = Vec::new();
        if !self.reasoning.is_empty() {
            events.push(ChatEvent::Reasoning(self.reasoning.clone()));
        }
        events
            .extend(self.content.split_inclusive(' ').map(|word| ChatEvent::Text(word.to_owned())));
        for (index, call) in (0..).zip(&self.tool_calls) {
            let piece = match &call.arguments {
                Value::Null => "{}".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let id = format!("call_{:08x}", fastrand::u32(..));
            events.push(ChatEvent::ToolCall { index, id, name: call.name.clone() });
            events.push(ChatEvent::ToolArguments { index, piece });
        }
        if !self.stall && !self.cut {
            events.push(ChatEvent::Done(self.completion(request)));
        }
        events
    }

    fn completion(&self, request: &ChatRequest) -> Completion {
        let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u32;
        let prompt_bytes: usize = match &request.prompt {
            Prompt::Chat(conversation) => {
                conversation.messages.iter().map(|message| message.text.len()).sum()
            }
            Prompt::Text(text) => text.len(),
            Prompt::Tokens(_) | Prompt::Infill { .. } => 0,
        };
        let finish = match (self.limit, self.tool_calls.is_empty()) {
            (true, _) => FinishReason::Length,
            (false, true) => FinishReason::Stop,
            (false, false) => FinishReason::ToolCalls,
        };
        let usage = Usage {
            prompt_tokens: tokens(prompt_bytes),
            completion_tokens: tokens(self.content.len() + self.reasoning.len()).max(1),
            reasoning_tokens: tokens(self.reasoning.len()),
            ..Usage::default()
        };
        Completion { finish, usage, timings: Timings::default() }
    }
}

impl ChatModel for ScriptModel {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        async move {
            let step = self.next(&request).ok_or_else(|| {
                self.failed("no step of the script is for this request".to_owned())
            })?;
            let ScriptStep { mut reply, .. } = step;
            if reply.obey {
                (reply.content, reply.tool_calls) =
                    obey::obeyed(&request).map_err(|reason| self.failed(reason))?;
            }
            match reply.delay_ms {
                // A sleep of no time would end with the next millisecond of the timer.
                0 => tokio::task::yield_now().await,
                delay_ms => tokio::time::sleep(Duration::from_millis(delay_ms)).await,
            }
            if let Some(message) = reply.error {
                return Err(self.failed(message));
            }
            if let Some(message) = reply.refused {
                return Err(ModelError::upstream(&self.name, Fault::Refused { message }));
            }
            let events = stream::iter(reply.events(&request)).map(Ok);
            Ok(match (reply.stall, reply.cut) {
                (true, _) => events.chain(stream::pending()).boxed(),
                (_, true) => events
                    .chain(stream::iter([Err(ModelError::upstream(&self.name, Fault::CutOff))]))
                    .boxed(),
                _ => events.into_stream().boxed(),
            })
        }
        .boxed()
    }

    fn embed(&self, _request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        async move { Err(self.failed("a script has no embeddings".to_owned())) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use hob_core::chat::{Conversation, Message, Role};

    use super::*;

    const SCRIPT: &str = r#"
# A step for a question about the weather, and one for everything else.
{"when": {"last": "weather"}, "reply": {"tool_calls": [{"name": "look", "arguments": {"place": "here"}}]}}
{"reply": {"content": "Good day."}, "repeat": true}
"#;

    fn request(text: &str) -> ChatRequest {
        let messages = vec![Message::new(Role::User, text)];
        ChatRequest {
            prompt: Prompt::Chat(Conversation { messages, ..Conversation::default() }),
            ..ChatRequest::default()
        }
    }

    async fn text(model: &ScriptModel, asked: &str) -> Result<String, ModelError> {
        let events: Vec<ChatEvent> = model.chat(request(asked)).await?.try_collect().await?;
        Ok(events
            .iter()
            .map(|event| match event {
                ChatEvent::Text(text) => text.clone(),
                ChatEvent::ToolCall { name, .. } => format!("[{name}]"),
                ChatEvent::ToolArguments { piece, .. } => piece.clone(),
                _ => String::new(),
            })
            .collect())
    }

    #[tokio::test]
    async fn steps_answer_the_requests_that_they_are_for() {
        let model = ScriptModel::parse("s", SCRIPT).expect("a script");
        assert_eq!(text(&model, "Hello").await.as_deref(), Ok("Good day."));
        assert_eq!(text(&model, "the weather?").await.as_deref(), Ok("[look]{\"place\":\"here\"}"));
        assert_eq!(
            text(&model, "the weather?").await.as_deref(),
            Ok("Good day."),
            "a step is used once"
        );
    }

    #[tokio::test]
    async fn faults_are_as_the_script_says() {
        let script = r#"{"reply": {"error": "no money"}}
{"reply": {"content": "Half", "cut": true}}"#;
        let model = ScriptModel::parse("s", script).expect("a script");
        let errors = [text(&model, "a").await, text(&model, "a").await, text(&model, "a").await];
        let errors = errors.map(|answer| answer.expect_err("a fault").to_string());
        assert!(
            errors[0].contains("no money")
                && errors[1].contains("cut off")
                && errors[2].contains("no step"),
            "{errors:?}"
        );
    }

    #[tokio::test]
    async fn steps_that_no_request_used_are_named() {
        let script = "{\"when\": {\"agent\": \"coder\"}, \"reply\": {\"content\": \"A\"}}\n\n\
                      {\"when\": {\"contains\": \"x\"}, \"reply\": {\"content\": \"B\"}, \"repeat\": true}\n\
                      {\"when\": {\"agent\": \"other\"}, \"reply\": {\"content\": \"C\"}}";
        let model = ScriptModel::parse("s", script).expect("a script");
        let unused = || model.unused().unwrap_or_default();
        assert_eq!(unused(), "no request used these steps of 's': line 1, line 4");
        for agent in ["coder", "other"] {
            let asked = request("Go on");
            asked.trace.note(|data| data.agent = Some(agent.to_owned()));
            drop(model.chat(asked).await.expect("a step"));
        }
        assert_eq!(model.unused(), None);
        text(&model, "Go on").await.expect_err("no step is for other agents");
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert!(ScriptModel::parse("s", "{}\n").expect_err("no reply").starts_with("line 1: "));
    }
}
