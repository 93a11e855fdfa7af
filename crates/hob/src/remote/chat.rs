//! A server's answers: a conversation out as OpenAI's protocol has it, events in.
//! What only tools and several choices need is absent: nobody here asks for them.

use std::io::BufRead;

use futures::StreamExt;
use hob_core::ChatEvent;
use hob_core::chat::{
    ChatRequest, Completion, FinishReason, Message, OutputFormat, Prompt, Timings, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::lines::Lines;
use super::{ChatAnswer, Refused, Remote};
use crate::failure::{Exit, Failure, Outcome};

#[derive(Debug, Serialize)]
struct Request {
    model: String,
    messages: Vec<Value>,
    stream: bool,
    stream_options: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

impl Remote {
    /// Answers. Refusals come before the stream; what breaks later is an error in it. Who drops the
    /// stream is noticed at the server's next line.
    pub(crate) async fn chat(&self, model: &str, request: &ChatRequest) -> Outcome<ChatAnswer> {
        let request = wire(model, request)?;
        let base = self.base.clone();
        let read = move |body, events: &Sender<_>| relay(Lines::of(body), &base, events);
        Ok(self.stream("/v1/chat/completions", request, read).await?.boxed())
    }
}

fn wire(model: &str, request: &ChatRequest) -> Outcome<Request> {
    let Prompt::Chat(conversation) = &request.prompt else {
        return Err(Failure::new(Exit::Internal, "only conversations are sent to a server"));
    };
    Ok(Request {
        model: model.to_owned(),
        messages: conversation.messages.iter().map(message).collect(),
        stream: true,
        stream_options: json!({ "include_usage": true }),
        temperature: request.sampling.temperature,
        seed: request.sampling.seed,
        max_completion_tokens: request.tokens_max,
        reasoning_effort: request.thinking.effort.map(hob_core::chat::Effort::name),
        response_format: response_format(&request.output)?,
    })
}

fn message(message: &Message) -> Value {
    json!({ "role": message.role.name(), "content": message.text })
}

fn response_format(output: &OutputFormat) -> Outcome<Option<Value>> {
    match output {
        OutputFormat::Text => Ok(None),
        OutputFormat::JsonObject => Ok(Some(json!({ "type": "json_object" }))),
        OutputFormat::JsonSchema(schema) => {
            let schema: Value = serde_json::from_str(schema.as_str())
                .map_err(|error| Failure::new(Exit::Internal, error))?;
            let named = json!({ "name": "answer", "strict": true, "schema": schema });
            Ok(Some(json!({ "type": "json_schema", "json_schema": named })))
        }
        OutputFormat::Regex(_) | OutputFormat::Lark(_) => {
            Err(Failure::new(Exit::Internal, "this protocol has no such output format"))
        }
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<WireUsage>,
    timings: Option<WireTimings>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    content: Option<String>,
    reasoning_content: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    prompt_tokens: u32,
    completion_tokens: u32,
    #[serde(default)]
    prompt_tokens_details: PromptDetails,
    #[serde(default)]
    completion_tokens_details: CompletionDetails,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: u32,
}

#[derive(Default, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: u32,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct WireTimings {
    load_ms: f64,
    queue_ms: f64,
    prompt_ms: f64,
    predicted_ms: f64,
}

/// What is known of the answer's end so far: servers say it piece by piece.
#[derive(Debug)]
struct Ending(Completion);

impl Ending {
    fn new() -> Ending {
        let (usage, timings) = (Usage::default(), Timings::default());
        Ending(Completion { finish: FinishReason::Stop, usage, timings })
    }

    fn take(&mut self, chunk: Chunk) -> Vec<ChatEvent> {
        if let Some(usage) = chunk.usage {
            self.0.usage = Usage {
                prompt_tokens: usage.prompt_tokens,
                cached_tokens: usage.prompt_tokens_details.cached_tokens,
                completion_tokens: usage.completion_tokens,
                reasoning_tokens: usage.completion_tokens_details.reasoning_tokens,
            };
        }
        if let Some(WireTimings { load_ms, queue_ms, prompt_ms, predicted_ms }) = chunk.timings {
            self.0.timings = Timings { load_ms, queue_ms, prompt_ms, predicted_ms };
        }
        chunk.choices.into_iter().flat_map(|choice| self.choice(choice)).collect()
    }

    fn choice(&mut self, choice: Choice) -> impl Iterator<Item = ChatEvent> + use<> {
        match choice.finish_reason.as_deref() {
            Some("length") => self.0.finish = FinishReason::Length,
            Some("tool_calls" | "function_call") => self.0.finish = FinishReason::ToolCalls,
            Some(_) => self.0.finish = FinishReason::Stop,
            None => {}
        }
        let Delta { content, reasoning_content } = choice.delta;
        let thought = reasoning_content.filter(|piece| !piece.is_empty()).map(ChatEvent::Reasoning);
        let said = content.filter(|piece| !piece.is_empty()).map(ChatEvent::Text);
        thought.into_iter().chain(said)
    }
}

/// Reads server-sent events to their end. Each has one line of data: that is how this protocol
/// writes them.
fn relay<R: BufRead>(mut lines: Lines<R>, base: &str, events: &Sender<Outcome<ChatEvent>>) {
    let mut ending = Ending::new();
    let broken = |why: &str| Failure::new(Exit::Server, format!("the answer of {base} {why}"));
    while !events.is_closed() {
        let new = match lines.next() {
            Ok(Some(line)) => match line.strip_prefix("data:").map(str::trim_start) {
                Some("[DONE]") => {
                    // Who asked may have left; there is nothing more to read either way.
                    drop(events.blocking_send(Ok(ChatEvent::Done(ending.0))));
                    return;
                }
                Some(data) => said(data, &mut ending, &broken),
                // Comments keep the connection awake; empty lines end an event.
                None => continue,
            },
            Ok(None) => Err(broken("ended early")),
            Err(error) => Err(broken(&format!("ended early: {error}"))),
        };
        let ends = new.is_err();
        let new: Vec<Outcome<ChatEvent>> = match new {
            Ok(new) => new.into_iter().map(Ok).collect(),
            Err(failure) => vec![Err(failure)],
        };
        let reader_left = new.into_iter().any(|event| events.blocking_send(event).is_err());
        if ends || reader_left {
            return;
        }
    }
}

fn said(
    data: &str,
    ending: &mut Ending,
    broken: &impl Fn(&str) -> Failure,
) -> Outcome<Vec<ChatEvent>> {
    if let Ok(refused) = serde_json::from_str::<Refused>(data) {
        return Err(Failure::new(Exit::Server, refused.error.message));
    }
    match serde_json::from_str(data) {
        Ok(chunk) => Ok(ending.take(chunk)),
        Err(_) => Err(broken("is not a chat answer")),
    }
}

#[cfg(test)]
mod tests {
    use hob_core::JsonText;
    use hob_core::chat::{Conversation, Effort, Role, Sampling, Thinking};
    use tokio::sync::mpsc;

    use super::*;

    fn read(stream: &str) -> Vec<Outcome<ChatEvent>> {
        let (events, mut heard) = mpsc::channel(64);
        relay(Lines::of_bytes(stream.as_bytes()), "http://nas:1", &events);
        drop(events);
        std::iter::from_fn(|| heard.blocking_recv()).collect()
    }

    #[test]
    fn a_request_says_what_was_wished_and_nothing_else() {
        let messages = vec![Message::new(Role::System, "be brief"), Message::new(Role::User, "hi")];
        let prompt = Prompt::Chat(Conversation { messages, ..Conversation::default() });
        let plain = ChatRequest { prompt, ..ChatRequest::default() };
        let body = |request: &ChatRequest| {
            serde_json::to_value(wire("m", request).expect("a request")).expect("JSON")
        };
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "be brief" },
                { "role": "user", "content": "hi" }
            ],
            "stream": true,
            "stream_options": { "include_usage": true }
        });
        assert_eq!(body(&plain), expected);
        let wished = ChatRequest {
            sampling: Sampling { temperature: Some(0.5), seed: Some(7), ..Sampling::default() },
            tokens_max: Some(9),
            thinking: Thinking { effort: Some(Effort::None), tokens_max: None },
            output: OutputFormat::JsonSchema(JsonText::parsed("{\"type\":\"integer\"}")),
            ..plain
        };
        let wished = body(&wished);
        assert_eq!(wished["temperature"], 0.5);
        assert_eq!(wished["seed"], 7);
        assert_eq!(wished["max_completion_tokens"], 9);
        assert_eq!(wished["reasoning_effort"], "none");
        assert_eq!(wished["response_format"]["json_schema"]["schema"]["type"], "integer");
    }

    #[test]
    fn what_a_conversation_cannot_be_is_refused() {
        let prompt = Prompt::Text("once".to_owned());
        let request = ChatRequest { prompt, ..ChatRequest::default() };
        assert_eq!(wire("m", &request).expect_err("a text").exit, Exit::Internal);
        for output in [OutputFormat::Regex("a".to_owned()), OutputFormat::Lark("a".to_owned())] {
            assert!(response_format(&output).is_err());
        }
    }

    #[test]
    fn events_become_what_they_say() {
        let stream = ": hob\n\n\
            data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}],\"usage\":null}\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\
            \"timings\":{\"prompt_ms\":2.5,\"predicted_ms\":10}}\n\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\
            \"prompt_tokens_details\":{\"cached_tokens\":5},\
            \"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n\n\
            data: [DONE]\n\n";
        let completion = Completion {
            finish: FinishReason::Length,
            usage: Usage {
                prompt_tokens: 9,
                cached_tokens: 5,
                completion_tokens: 4,
                reasoning_tokens: 1,
            },
            timings: Timings { prompt_ms: 2.5, predicted_ms: 10.0, ..Timings::default() },
        };
        let expected = [
            Ok(ChatEvent::Reasoning("hm".to_owned())),
            Ok(ChatEvent::Text("Hi".to_owned())),
            Ok(ChatEvent::Done(completion)),
        ];
        assert_eq!(read(stream), expected);
    }

    #[test]
    fn an_answer_that_breaks_off_is_never_whole() {
        let hi = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
        let rows = [
            ("", "the answer of http://nas:1 ended early"),
            ("data: 3\n\n", "the answer of http://nas:1 is not a chat answer"),
            ("data: {\"error\":{\"message\":\"the worker died\"}}\n\n", "the worker died"),
        ];
        for (end, sentence) in rows {
            let events = read(&format!("{hi}{end}"));
            let failure = Err(Failure::new(Exit::Server, sentence));
            assert_eq!(events, [Ok(ChatEvent::Text("Hi".to_owned())), failure]);
        }
    }
}
