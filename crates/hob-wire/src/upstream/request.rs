//! A request as another server wants it: always streamed, so that its silence can be noticed.
//! A field that a server lacks is an error if its absence would change the answer.

mod partial;
mod talk;
mod thinking;

use hob_core::chat::{Conversation, Effort, OutputFormat, Prompt, Sampling, ToolCall};
use hob_core::{ChatRequest, JsonText, KeepAlive};
use serde_json::{Map, Value, json};

pub(super) use partial::with_partial;
use partial::{add_partial, take_last_answer};
pub(super) use talk::{REASONING, tool};
use talk::{remove_reasoning, remove_strict, repeat_reasoning, sign_calls, talk};
use thinking::{Switches, is_first_qwen3, say_no_thinking};

/// A server's dialect of OpenAI's protocol. Dialects differ in how thinking is switched, and in their
/// parameters beyond OpenAI's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamDialect {
    /// OpenAI's own protocol, and nothing else.
    #[default]
    OpenAi,
    Hob,
    LlamaServer,
    /// SGLang too.
    Vllm,
    Tabby,
    OpenRouter,
}

/// The names of the limit of a chat's answer: the usual one, and the one that OpenAI's newer models need.
pub const LIMIT_NAMES: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// What Gemini misses in calls of earlier turns. Named among the fields to leave out, it is added.
pub const CALL_SIGNATURE: &str = "thought_signature";

/// Fields of most requests.
const FIELDS_USUAL: usize = 12;

/// The request holds what this server has no word for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not supported by this model's server")]
pub struct UnsupportedField {
    pub field: &'static str,
}

/// Where such a request goes, below the server's `/v1`.
pub fn upstream_path(request: &ChatRequest) -> &'static str {
    match request.prompt {
        Prompt::Chat(_) => "chat/completions",
        Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => "completions",
    }
}

/// The body of a request for `model`, by the server's own name of it.
///
/// Without the fields that this server is known not to take. A server that takes the limit under one of its two names
/// only gets that one.
///
/// # Errors
/// [`UnsupportedField`]: leaving it out would give another answer than was asked for.
pub fn upstream_request(
    request: &ChatRequest,
    model: &str,
    dialect: UpstreamDialect,
    without: &[String],
) -> Result<String, UnsupportedField> {
    let mut body = extra(request, dialect);
    body.insert("model".to_owned(), json!(model));
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    limits(request, dialect, without, &mut body);
    sampling(&request.sampling, dialect, &mut body);
    output(request, dialect, &mut body)?;
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    match &request.prompt {
        Prompt::Chat(conversation) => {
            talk(conversation, &mut body);
            let partial = match &request.partial {
                Some(partial) => Some(partial.as_str()),
                None => take_last_answer(conversation, dialect, &mut body),
            };
            if let Some(partial) = partial {
                add_partial(partial, dialect, &mut body)?;
            }
            think(request, conversation, dialect, &mut body);
            let is_switched_by_text = dialect == UpstreamDialect::OpenAi && is_first_qwen3(model);
            if is_switched_by_text && request.thinking.effort == Some(Effort::None) {
                say_no_thinking(&mut body["messages"], &conversation.messages);
            }
        }
        Prompt::Text(text) => put("prompt", json!(text)),
        Prompt::Tokens(tokens) => {
            put("prompt", json!(tokens));
            // Only the server knows the text of these tokens. hob itself repeats the text of other prompts.
            if request.echo && takes_echo(dialect) {
                put("echo", json!(true));
            }
        }
        Prompt::Infill { prefix, suffix } => {
            put("prompt", json!(prefix));
            put("suffix", json!(suffix));
        }
    }
    for field in without {
        // Servers name this field with its position, such as `tools[0].function.strict`.
        if field.ends_with("strict") {
            remove_strict(&mut body);
        }
        if field.ends_with(REASONING) {
            remove_reasoning(&mut body);
        }
        if field == CALL_SIGNATURE {
            sign_calls(&mut body);
        }
        body.shift_remove(field);
    }
    if matches!(dialect, UpstreamDialect::Vllm | UpstreamDialect::OpenRouter) {
        repeat_reasoning(&mut body);
    }
    Ok(crate::error::json(&body))
}

/// Whether servers of this dialect can begin an answer with its prompt. llama-server ignores `echo`.
fn takes_echo(dialect: UpstreamDialect) -> bool {
    match dialect {
        UpstreamDialect::OpenAi | UpstreamDialect::Hob | UpstreamDialect::Vllm => true,
        UpstreamDialect::LlamaServer | UpstreamDialect::Tabby | UpstreamDialect::OpenRouter => {
            false
        }
    }
}

/// The limits of the answer, its log probabilities, and how long the model stays in memory.
fn limits(
    request: &ChatRequest,
    dialect: UpstreamDialect,
    without: &[String],
    body: &mut Map<String, Value>,
) {
    let is_chat = matches!(request.prompt, Prompt::Chat(_));
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    if let Some(tokens) = request.tokens_max {
        let [usual, newer] = LIMIT_NAMES;
        let is_refused = |name: &str| without.iter().any(|field| field == name);
        let is_openais = dialect == UpstreamDialect::OpenAi && !is_refused(newer);
        let is_newer = is_chat && (is_openais || is_refused(usual));
        put(if is_newer { newer } else { usual }, json!(tokens));
    } else if dialect == UpstreamDialect::Hob && !is_chat {
        // Without a limit, another hob would end this answer after OpenAI's 16 tokens.
        put("max_tokens", json!(-1));
    }
    if !request.stop.is_empty() {
        put("stop", json!(request.stop));
    }
    match request.logprobs {
        Some(top) if is_chat => {
            put("logprobs", json!(true));
            put("top_logprobs", json!(top));
        }
        Some(top) => put("logprobs", json!(top)),
        None => {}
    }
    if let (Some(time), UpstreamDialect::Hob) = (request.keep_alive, dialect) {
        put("keep_alive", keep_alive(time));
    }
}

fn think(
    request: &ChatRequest,
    conversation: &Conversation,
    dialect: UpstreamDialect,
    body: &mut Map<String, Value>,
) {
    let mut switches = Switches::of(conversation);
    switches.think(request.thinking, dialect, body);
    switches.put(dialect, body);
}

fn sampling(sampling: &Sampling, dialect: UpstreamDialect, body: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    put("temperature", sampling.temperature.map(number));
    put("top_p", sampling.top_p.map(number));
    put("presence_penalty", sampling.presence_penalty.map(number));
    put("frequency_penalty", sampling.frequency_penalty.map(number));
    put("seed", sampling.seed.map(seed));
    // OpenAI's own server does not take these; it says so, and is asked without them from then on.
    put("top_k", sampling.top_k.map(Value::from));
    put("min_p", sampling.min_p.map(number));
    put("ignore_eos", sampling.ignore_eos.map(Value::from));
    let repeat = match dialect {
        UpstreamDialect::Hob | UpstreamDialect::LlamaServer => "repeat_penalty",
        _ => "repetition_penalty",
    };
    put(repeat, sampling.repeat_penalty.map(number));
    if !sampling.logit_bias.is_empty() {
        let biases = sampling.logit_bias.iter();
        put("logit_bias", Some(biases.map(|(id, bias)| (id.to_string(), number(*bias))).collect()));
    }
}

/// Clients may write a negative one, and servers read signed numbers.
pub(super) fn seed(seed: u64) -> Value {
    json!(seed.cast_signed())
}

/// Seconds; below zero is for ever.
pub(super) fn keep_alive(time: KeepAlive) -> Value {
    match time {
        KeepAlive::Forever => json!(-1),
        KeepAlive::For(time) if time.subsec_nanos() == 0 => json!(time.as_secs()),
        KeepAlive::For(time) => json!(time.as_secs_f64()),
    }
}

/// A number as a person would write it: 0.7, and not the 0.699999988 that single precision makes of it.
pub(super) fn number(value: f32) -> Value {
    let written = value.to_string();
    written.parse::<f64>().map_or_else(|_| json!(value), |value| json!(value))
}

fn output(
    request: &ChatRequest,
    dialect: UpstreamDialect,
    body: &mut Map<String, Value>,
) -> Result<(), UnsupportedField> {
    let field = request.output.field();
    let format = match (&request.output, dialect) {
        (OutputFormat::Text, _) => return Ok(()),
        (OutputFormat::JsonObject, _) => json!({ "type": "json_object" }),
        (OutputFormat::JsonSchema(schema), _) => {
            // Some servers only follow a strict schema. Another hob follows any schema, and refuses a strict one that it
            // cannot enforce completely.
            let strict = request.strict || dialect != UpstreamDialect::Hob;
            let schema = json!({ "name": "answer", "strict": strict, "schema": parsed(schema) });
            json!({ "type": "json_schema", "json_schema": schema })
        }
        (OutputFormat::Regex(rule) | OutputFormat::Lark(rule), UpstreamDialect::Hob) => {
            body.insert(field.to_owned(), json!(rule));
            return Ok(());
        }
        (OutputFormat::Regex(pattern), UpstreamDialect::Vllm) => {
            body.insert("structured_outputs".to_owned(), json!({ "regex": pattern }));
            // SGLang's word for it, which vLLM passes over.
            body.insert("regex".to_owned(), json!(pattern));
            return Ok(());
        }
        (OutputFormat::Regex(_) | OutputFormat::Lark(_), _) => {
            return Err(UnsupportedField { field });
        }
    };
    body.insert("response_format".to_owned(), format);
    Ok(())
}

/// Parameters that hob does not know: the server may. They come first, so that none wins over one that
/// hob does know.
fn extra(request: &ChatRequest, dialect: UpstreamDialect) -> Map<String, Value> {
    match (dialect, request.extra.as_ref().map(parsed)) {
        (UpstreamDialect::Hob, _) | (_, None) => Map::with_capacity(FIELDS_USUAL),
        (_, Some(Value::Object(extra))) => extra,
        (_, Some(_)) => Map::new(),
    }
}

/// The names of the parameters that hob does not know.
pub fn unknown_fields(request: &ChatRequest) -> Vec<String> {
    match request.extra.as_ref().map(parsed) {
        Some(Value::Object(extra)) => extra.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

/// None: what a model wrote is no object. Many servers refuse a conversation with such a call.
pub(super) fn arguments(call: &ToolCall) -> Option<Map<String, Value>> {
    serde_json::from_str(call.arguments.as_str()).ok()
}

/// Parses a text that was checked when it was made.
pub(super) fn parsed(text: &JsonText) -> Value {
    serde_json::from_str(text.as_str()).unwrap_or_default()
}
