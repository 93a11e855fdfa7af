//! A request as another server wants it: always streamed, so that its silence can be noticed.
//! What a server has no word for is refused, and never left out.

use hob_core::chat::{
    Conversation, Effort, Image, Message, OutputFormat, Prompt, Sampling, Tool, ToolChoice,
};
use hob_core::{ChatRequest, JsonText};
use serde_json::{Map, Value, json};

/// Whose dialect of OpenAI's protocol a server speaks. They differ in how thinking is switched and in
/// which parameters they take beyond OpenAI's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamDialect {
    /// As OpenAI writes it, and nothing else.
    #[default]
    OpenAi,
    Hob,
    LlamaServer,
    /// SGLang too.
    Vllm,
    Tabby,
    OpenRouter,
}

/// The request holds what this server has no word for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is nothing that this model's server takes")]
pub struct Unsendable {
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
/// Without the fields that this server is known not to take.
///
/// # Errors
/// [`Unsendable`]: leaving it out would give another answer than was asked for.
pub fn upstream_request(
    request: &ChatRequest,
    model: &str,
    dialect: UpstreamDialect,
    without: &[String],
) -> Result<String, Unsendable> {
    let mut body = extra(request, dialect);
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("model", json!(model));
    put("stream", json!(true));
    put("stream_options", json!({ "include_usage": true }));
    match &request.prompt {
        Prompt::Chat(_) => {}
        Prompt::Text(text) => drop(put("prompt", json!(text))),
        Prompt::Tokens(tokens) => drop(put("prompt", json!(tokens))),
        Prompt::Infill { prefix, suffix } => {
            put("prompt", json!(prefix));
            put("suffix", json!(suffix));
        }
    }
    let conversation = match &request.prompt {
        Prompt::Chat(conversation) => Some(conversation),
        Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => None,
    };
    if let Some(tokens) = request.tokens_max {
        let is_openais = dialect == UpstreamDialect::OpenAi && conversation.is_some();
        put(if is_openais { "max_completion_tokens" } else { "max_tokens" }, json!(tokens));
    }
    if !request.stop.is_empty() {
        put("stop", json!(request.stop));
    }
    if let Some(top) = request.logprobs {
        if conversation.is_some() {
            put("logprobs", json!(true));
            put("top_logprobs", json!(top));
        } else {
            put("logprobs", json!(top));
        }
    }
    sampling(&request.sampling, dialect, &mut body);
    output(&request.output, dialect, &mut body)?;
    if let Some(conversation) = conversation {
        talk(conversation, &mut body);
        let mut switches = Switches::of(conversation);
        switches.think(request.thinking.effort, dialect, &mut body);
        if let (Some(tokens), UpstreamDialect::Hob | UpstreamDialect::LlamaServer) =
            (request.thinking.tokens_max, dialect)
        {
            body.insert("thinking_budget_tokens".to_owned(), json!(tokens));
        }
        switches.put(dialect, &mut body);
    }
    for field in without {
        body.shift_remove(field);
    }
    Ok(Value::Object(body).to_string())
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
    put("seed", sampling.seed.map(Value::from));
    if dialect != UpstreamDialect::OpenAi {
        put("top_k", sampling.top_k.map(Value::from));
        put("min_p", sampling.min_p.map(number));
        let repeat = match dialect {
            UpstreamDialect::Hob | UpstreamDialect::LlamaServer => "repeat_penalty",
            _ => "repetition_penalty",
        };
        put(repeat, sampling.repeat_penalty.map(number));
    }
    if !sampling.logit_bias.is_empty() {
        let biases = sampling.logit_bias.iter();
        put("logit_bias", Some(biases.map(|(id, bias)| (id.to_string(), number(*bias))).collect()));
    }
}

/// As a person would write it: 0.7, and not the 0.699999988 that single precision makes of it.
pub(super) fn number(value: f32) -> Value {
    let written = value.to_string();
    written.parse::<f64>().map_or_else(|_| json!(value), |value| json!(value))
}

fn output(
    output: &OutputFormat,
    dialect: UpstreamDialect,
    body: &mut Map<String, Value>,
) -> Result<(), Unsendable> {
    let format = match output {
        OutputFormat::Text => return Ok(()),
        OutputFormat::JsonObject => json!({ "type": "json_object" }),
        OutputFormat::JsonSchema(schema) => {
            let schema = json!({ "name": "answer", "strict": true, "schema": parsed(schema) });
            json!({ "type": "json_schema", "json_schema": schema })
        }
        OutputFormat::Regex(pattern) => match dialect {
            UpstreamDialect::Hob => json!({ "type": "regex", "pattern": pattern }),
            UpstreamDialect::Vllm => {
                body.insert("structured_outputs".to_owned(), json!({ "regex": pattern }));
                return Ok(());
            }
            _ => return Err(Unsendable { field: "response_format" }),
        },
        OutputFormat::Lark(_) => return Err(Unsendable { field: "response_format" }),
    };
    body.insert("response_format".to_owned(), format);
    Ok(())
}

fn talk(conversation: &Conversation, body: &mut Map<String, Value>) {
    let messages: Vec<Value> = conversation.messages.iter().map(message).collect();
    body.insert("messages".to_owned(), messages.into());
    if conversation.tools.is_empty() {
        return;
    }
    let tools: Vec<Value> = conversation.tools.iter().map(tool).collect();
    body.insert("tools".to_owned(), tools.into());
    let choice = match &conversation.tool_choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({ "type": "function", "function": { "name": name } }),
    };
    body.insert("tool_choice".to_owned(), choice);
    body.insert("parallel_tool_calls".to_owned(), json!(conversation.parallel_tool_calls));
}

/// Parameters that hob does not know: the server may. They come first, so that none wins over one that
/// hob does know.
fn extra(request: &ChatRequest, dialect: UpstreamDialect) -> Map<String, Value> {
    match (dialect, request.extra.as_ref().map(parsed)) {
        (UpstreamDialect::Hob, _) | (_, None) => Map::new(),
        (_, Some(Value::Object(extra))) => extra,
        (_, Some(_)) => Map::new(),
    }
}

fn message(message: &Message) -> Value {
    let content = if message.images.is_empty() {
        // An assistant that only calls says nothing, and some servers want that to be null.
        let is_silent = message.text.is_empty() && !message.tool_calls.is_empty();
        if is_silent { Value::Null } else { json!(message.text) }
    } else {
        parts(message)
    };
    let mut shape = json!({ "role": message.role.name(), "content": content });
    if let Some(name) = &message.name {
        shape["name"] = json!(name);
    }
    if let Some(id) = &message.tool_call_id {
        shape["tool_call_id"] = json!(id);
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments.as_str() });
            json!({ "id": call.id, "type": "function", "function": function })
        });
        shape["tool_calls"] = calls.collect();
    }
    shape
}

/// Text and pictures in the order in which they stand.
fn parts(message: &Message) -> Value {
    let mut parts = Vec::new();
    let text = |from: usize, to: usize| {
        let text = message.text.get(from..to).unwrap_or_default().trim_matches('\n');
        (!text.is_empty()).then(|| json!({ "type": "text", "text": text }))
    };
    let mut said = 0;
    for image in &message.images {
        parts.extend(text(said, image.at));
        parts.push(picture(image));
        said = image.at;
    }
    parts.extend(text(said, message.text.len()));
    parts.into()
}

fn picture(image: &Image) -> Value {
    let mut shape = json!({ "url": image.url });
    if let Some(detail) = &image.detail {
        shape["detail"] = json!(detail);
    }
    json!({ "type": "image_url", "image_url": shape })
}

fn tool(tool: &Tool) -> Value {
    let mut function = json!({ "name": tool.name });
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    if let Some(parameters) = &tool.parameters {
        function["parameters"] = parsed(parameters);
    }
    json!({ "type": "function", "function": function })
}

pub(super) fn parsed(text: &JsonText) -> Value {
    serde_json::from_str(text.as_str()).unwrap_or_default()
}

/// What the model's template sees as variables.
struct Switches(Map<String, Value>);

impl Switches {
    fn of(conversation: &Conversation) -> Switches {
        match conversation.template_arguments.as_ref().map(parsed) {
            Some(Value::Object(arguments)) => Switches(arguments),
            _ => Switches(Map::new()),
        }
    }

    /// One wish, in each server's own words.
    fn think(
        &mut self,
        effort: Option<Effort>,
        dialect: UpstreamDialect,
        body: &mut Map<String, Value>,
    ) {
        let Some(effort) = effort else { return };
        let is_on = effort != Effort::None;
        match dialect {
            UpstreamDialect::OpenAi | UpstreamDialect::Hob => {
                body.insert("reasoning_effort".to_owned(), json!(effort.name()));
            }
            UpstreamDialect::LlamaServer => {
                body.insert("reasoning_effort".to_owned(), json!(effort.name()));
                self.0.insert("enable_thinking".to_owned(), json!(is_on));
            }
            UpstreamDialect::Vllm => {
                // DeepSeek's templates read the other name.
                self.0.insert("enable_thinking".to_owned(), json!(is_on));
                self.0.insert("thinking".to_owned(), json!(is_on));
            }
            UpstreamDialect::Tabby => {
                self.0.insert("enable_thinking".to_owned(), json!(is_on));
            }
            UpstreamDialect::OpenRouter => {
                body.insert("reasoning".to_owned(), json!({ "effort": effort.name() }));
            }
        }
    }

    fn put(self, dialect: UpstreamDialect, body: &mut Map<String, Value>) {
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
