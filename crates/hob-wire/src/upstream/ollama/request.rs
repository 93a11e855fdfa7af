//! A request in Ollama's form. A field that Ollama lacks is an error, because hob would have to drop it.
//! `num_ctx` is the same for every request to one model: another value would load the model again.

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, Effort, OutputFormat, Prompt, Sampling, ToolChoice};
use serde_json::{Map, Value, json};

use super::messages::messages;
use crate::upstream::UnsupportedField;
use crate::upstream::request::{keep_alive, number, parsed, seed, tool, with_partial};

/// Where such a request goes, below the server's root.
pub fn ollama_path(request: &ChatRequest) -> &'static str {
    match request.prompt {
        Prompt::Chat(_) => "api/chat",
        Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => "api/generate",
    }
}

/// The body of a request for `model`, by Ollama's own name of it. `num_ctx` is the context to load it
/// with; without one Ollama chooses.
///
/// # Errors
/// [`UnsupportedField`]: leaving it out would give another answer than was asked for.
pub fn ollama_request(
    request: &ChatRequest,
    model: &str,
    num_ctx: Option<u32>,
) -> Result<String, UnsupportedField> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    prompt(request, &mut body)?;
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("stream", json!(true));
    put("truncate", json!(false));
    put("shift", json!(false));
    if let Some(think) = think(request, model) {
        put("think", think);
    }
    if let Some(format) = format(&request.output)? {
        put("format", format);
    }
    if let Some(top) = request.logprobs {
        put("logprobs", json!(true));
        put("top_logprobs", json!(top));
    }
    if let Some(time) = request.keep_alive {
        put("keep_alive", keep_alive(time));
    }
    let options = options(request, num_ctx)?;
    if !options.is_empty() {
        put("options", Value::Object(options));
    }
    Ok(Value::Object(body).to_string())
}

fn prompt(request: &ChatRequest, body: &mut Map<String, Value>) -> Result<(), UnsupportedField> {
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    match &request.prompt {
        Prompt::Chat(conversation) => {
            // Ollama goes on with a last message that is the assistant's.
            let said = with_partial(&conversation.messages, request);
            put("messages", messages(&said)?.into());
            let tools = tools(conversation)?;
            if !tools.is_empty() {
                put("tools", tools.into());
            }
        }
        Prompt::Text(text) => {
            put("prompt", json!(text));
            put("raw", json!(true));
        }
        // The marks around the two are the template's business, so this is not raw.
        Prompt::Infill { prefix, suffix } => {
            put("prompt", json!(prefix));
            put("suffix", json!(suffix));
        }
        Prompt::Tokens(_) => return Err(UnsupportedField { field: "prompt" }),
    }
    Ok(())
}

/// Ollama leaves the choice to the model, always. Variables of a Jinja template are left out: Ollama
/// renders one of its own, which has none of them.
fn tools(conversation: &Conversation) -> Result<Vec<Value>, UnsupportedField> {
    match &conversation.tool_choice {
        ToolChoice::None => Ok(Vec::new()),
        ToolChoice::Required | ToolChoice::Named(_) if !conversation.tools.is_empty() => {
            Err(UnsupportedField { field: "tool_choice" })
        }
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::Named(_) => {
            Ok(conversation.tools.iter().map(tool).collect())
        }
    }
}

/// Raw text is continued as it stands: without this, Ollama takes what stands between a thinking
/// model's tags for thinking.
fn think(request: &ChatRequest, model: &str) -> Option<Value> {
    match (&request.prompt, request.thinking.effort) {
        (Prompt::Text(_), None) => Some(json!(false)),
        (_, effort) => effort.map(|effort| effort_word(effort, model)),
    }
}

/// Every version since there is `think` takes true and false; since August 2025 all take low, medium
/// and high, and later ones max. "Medium" is said as true, which means the same in models that have
/// levels and works in all others. gpt-oss has three levels and no switch: true and false are
/// nothing to it, and more than high is unknown.
fn effort_word(effort: Effort, model: &str) -> Value {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let has_levels_only = name.starts_with("gpt-oss");
    match (effort, has_levels_only) {
        (Effort::None, false) => json!(false),
        (Effort::Medium, false) => json!(true),
        (Effort::None, true) | (Effort::Minimal | Effort::Low, _) => json!("low"),
        (Effort::Medium, true) => json!("medium"),
        (Effort::High, _) | (Effort::XHigh | Effort::Max, true) => json!("high"),
        (Effort::XHigh | Effort::Max, false) => json!("max"),
    }
}

fn format(output: &OutputFormat) -> Result<Option<Value>, UnsupportedField> {
    match output {
        OutputFormat::Text => Ok(None),
        OutputFormat::JsonObject => Ok(Some(json!("json"))),
        OutputFormat::JsonSchema(schema) => Ok(Some(parsed(schema))),
        OutputFormat::Regex(_) | OutputFormat::Lark(_) => {
            Err(UnsupportedField { field: output.field() })
        }
    }
}

fn options(
    request: &ChatRequest,
    num_ctx: Option<u32>,
) -> Result<Map<String, Value>, UnsupportedField> {
    let Sampling {
        temperature,
        top_p,
        top_k,
        min_p,
        repeat_penalty,
        presence_penalty,
        frequency_penalty,
        seed: seeded,
        logit_bias,
        ignore_eos,
    } = &request.sampling;
    if !logit_bias.is_empty() {
        return Err(UnsupportedField { field: "logit_bias" });
    }
    if *ignore_eos == Some(true) {
        return Err(UnsupportedField { field: "ignore_eos" });
    }
    let stop = (!request.stop.is_empty()).then(|| json!(request.stop));
    let options = [
        ("num_ctx", num_ctx.map(Value::from)),
        ("num_predict", request.tokens_max.map(Value::from)),
        ("temperature", temperature.map(number)),
        ("top_p", top_p.map(number)),
        ("top_k", top_k.map(Value::from)),
        ("min_p", min_p.map(number)),
        ("repeat_penalty", repeat_penalty.map(number)),
        ("presence_penalty", presence_penalty.map(number)),
        ("frequency_penalty", frequency_penalty.map(number)),
        ("seed", seeded.map(seed)),
        ("stop", stop),
    ];
    let given = options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(given.collect())
}
