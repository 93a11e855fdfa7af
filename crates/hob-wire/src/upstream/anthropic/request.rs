//! A request in Anthropic's form. A field that Anthropic lacks is an error if its absence would change
//! the kind of answer; otherwise it is dropped and named.

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, OutputFormat, Prompt, Role, Sampling, Tool, ToolChoice};
use serde_json::{Map, Value, json};

use super::super::UnsupportedField;
use super::super::fault::{PROMPT_CACHING, STREAMED_ARGUMENTS};
use super::super::request::{number, parsed, with_partial};
use super::model::{ModelTraits, Samplers};
use super::thinking::ThinkingPlan;
use super::turns::Turns;

/// The body of a request for `model`, by Anthropic's own name of it. Parameters that hob does not know
/// are not sent, because Anthropic refuses unknown parameters. A temperature above 1 is lowered to 1, Anthropic's maximum.
/// Without the fields that this server is known not to take.
///
/// # Errors
/// [`UnsupportedField`]: without this field, the answer would be of another kind than the request asks for.
pub fn anthropic_request(
    request: &ChatRequest,
    model: &str,
    without: &[String],
) -> Result<String, UnsupportedField> {
    let mut traits = ModelTraits::of(model);
    let takes = |name: &str| without.iter().all(|field| field != name);
    traits.streams_arguments &= takes(STREAMED_ARGUMENTS);
    traits.caches_prompts &= takes(PROMPT_CACHING);
    let conversation = conversation(request)?;
    refuse(request, conversation, traits)?;
    let turns = Turns::of(&with_partial(&conversation.messages, request))?;
    let thinking = ThinkingPlan::of(request, conversation, traits);
    let accepted = AcceptedSampling::of(&request.sampling, traits.samplers, thinking.is_on);
    let mut body = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    put("model", Some(json!(model)));
    put("max_tokens", Some(json!(thinking.tokens_max)));
    put("stream", Some(json!(true)));
    put("system", turns.system.map(Value::from));
    put("messages", Some(turns.messages.into()));
    if !conversation.tools.is_empty() {
        put("tools", Some(conversation.tools.iter().map(|one| tool(one, traits)).collect()));
        put("tool_choice", Some(tool_choice(conversation)));
        // The next turn of an agent repeats the whole prompt, and reads what was kept for a tenth of the price. To keep it
        // costs a quarter more. Claude moves the end of what it keeps on with the conversation.
        put(PROMPT_CACHING, traits.caches_prompts.then(|| json!({ "type": "ephemeral" })));
    }
    put("output_config", output_config(request, thinking.effort));
    put("thinking", thinking.shape);
    put("temperature", accepted.temperature.map(number));
    put("top_p", accepted.top_p.map(number));
    put("top_k", accepted.top_k.map(Value::from));
    put("stop_sequences", (!request.stop.is_empty()).then(|| json!(request.stop)));
    Ok(Value::Object(body).to_string())
}

/// Whether `model` continues the request's partial answer. Models from 4.6 on refuse it, every model refuses it while
/// thinking, and none accepts white space at the end.
pub fn anthropic_continues(request: &ChatRequest, model: &str) -> bool {
    let Ok(conversation) = conversation(request) else { return false };
    let traits = ModelTraits::of(model);
    let ends_blank =
        request.partial.as_ref().is_some_and(|said| said.ends_with(char::is_whitespace));
    let is_thinking = ThinkingPlan::of(request, conversation, traits).is_on;
    traits.takes_partials && !is_thinking && !ends_blank
}

/// Parameters that a request for `model` sets and that are left out, by the names that clients use.
/// A value without effect, such as a penalty of 0, is not named, and neither is a temperature that is lowered to 1.
pub fn anthropic_drops(request: &ChatRequest, model: &str) -> Vec<&'static str> {
    let Ok(conversation) = conversation(request) else { return Vec::new() };
    let traits = ModelTraits::of(model);
    let thinking = ThinkingPlan::of(request, conversation, traits);
    let Sampling { temperature, top_p, top_k, .. } = request.sampling;
    let accepted = AcceptedSampling::of(&request.sampling, traits.samplers, thinking.is_on);
    let changes = |value: Option<f32>, neutral: f32| value.is_some_and(|value| value != neutral);
    let sampling = &request.sampling;
    // A tool message is named by the call that it answers.
    let mut speakers = conversation.messages.iter().filter(|message| message.role != Role::Tool);
    let is_named = speakers.any(|message| message.name.is_some());
    let left_out = [
        ("temperature", accepted.temperature.is_none() && changes(temperature, 1.0)),
        ("top_p", accepted.top_p.is_none() && changes(top_p, 1.0)),
        ("top_k", accepted.top_k.is_none() && top_k.is_some_and(|count| count > 0)),
        ("min_p", changes(sampling.min_p, 0.0)),
        ("repeat_penalty", changes(sampling.repeat_penalty, 1.0)),
        ("presence_penalty", changes(sampling.presence_penalty, 0.0)),
        ("frequency_penalty", changes(sampling.frequency_penalty, 0.0)),
        ("seed", sampling.seed.is_some()),
        ("chat_template_kwargs", conversation.template_arguments.is_some()),
        ("name", is_named),
    ];
    let left_out = left_out.into_iter().filter(|(_, is_left_out)| *is_left_out);
    left_out.map(|(name, _)| name).chain(thinking.unmet).collect()
}

fn conversation(request: &ChatRequest) -> Result<&Conversation, UnsupportedField> {
    match &request.prompt {
        Prompt::Chat(conversation) => Ok(conversation),
        Prompt::Text(_) | Prompt::Tokens(_) => Err(UnsupportedField { field: "prompt" }),
        Prompt::Infill { .. } => Err(UnsupportedField { field: "suffix" }),
    }
}

fn refuse(
    request: &ChatRequest,
    conversation: &Conversation,
    traits: ModelTraits,
) -> Result<(), UnsupportedField> {
    let is_schema = matches!(request.output, OutputFormat::JsonSchema(_));
    let is_text = request.output == OutputFormat::Text;
    let is_forced = matches!(conversation.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
    // Anthropic rejects stop sequences of white space only.
    let has_blank_stop = request.stop.iter().any(|stop| stop.trim().is_empty());
    let refused = [
        ("logprobs", request.logprobs.is_some()),
        ("logit_bias", !request.sampling.logit_bias.is_empty()),
        ("ignore_eos", request.sampling.ignore_eos == Some(true)),
        ("response_format", !(is_text || is_schema && traits.takes_schemas)),
        ("stop", has_blank_stop),
        ("tool_choice", is_forced && !conversation.tools.is_empty() && !traits.takes_forced_calls),
    ];
    match refused.into_iter().find(|(_, is_refused)| *is_refused) {
        Some((field, _)) => Err(UnsupportedField { field }),
        None => Ok(()),
    }
}

/// The schema is sent unchanged. Anthropic refuses a schema with objects that allow further members, and says so;
/// a schema that forbids them would be another one.
fn output_config(request: &ChatRequest, effort: Option<&str>) -> Option<Value> {
    let mut config = Map::new();
    if let Some(effort) = effort {
        config.insert("effort".to_owned(), json!(effort));
    }
    if let OutputFormat::JsonSchema(schema) = &request.output {
        let format = json!({ "type": "json_schema", "schema": parsed(schema) });
        config.insert("format".to_owned(), format);
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

fn tool(tool: &Tool, traits: ModelTraits) -> Value {
    let mut schema = tool.parameters.as_ref().map_or_else(|| json!({}), parsed);
    // Anthropic requires the type, although arguments can only be an object.
    if let Value::Object(schema) = &mut schema {
        schema.entry("type").or_insert_with(|| json!("object"));
    }
    let mut shape = json!({ "name": tool.name });
    if let Some(description) = &tool.description {
        shape["description"] = json!(description);
    }
    shape["input_schema"] = schema;
    if traits.streams_arguments {
        // A file that is an argument takes longer than a silence may last.
        shape[STREAMED_ARGUMENTS] = json!(true);
    }
    shape
}

fn tool_choice(conversation: &Conversation) -> Value {
    let mut choice = match &conversation.tool_choice {
        ToolChoice::None => return json!({ "type": "none" }),
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Named(name) => json!({ "type": "tool", "name": name }),
    };
    if !conversation.parallel_tool_calls {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    choice
}

/// The request's sampling parameters, as far as the model accepts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct AcceptedSampling {
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<u32>,
}

impl AcceptedSampling {
    fn of(sampling: &Sampling, samplers: Samplers, is_thinking: bool) -> AcceptedSampling {
        // With thinking, Anthropic accepts only top-p, and only from this value on.
        const TOP_P_MIN: f32 = 0.95;
        let temperature = sampling.temperature.map(|value| value.clamp(0.0, 1.0));
        let (top_p, top_k) = (sampling.top_p, sampling.top_k.filter(|count| *count > 0));
        match samplers {
            Samplers::Fixed => AcceptedSampling::default(),
            Samplers::All | Samplers::Either if is_thinking => AcceptedSampling {
                top_p: top_p.filter(|share| *share >= TOP_P_MIN),
                ..AcceptedSampling::default()
            },
            // A temperature of 1 is the default, so top-p is kept instead.
            Samplers::Either if top_p.is_some() && temperature == Some(1.0) => {
                AcceptedSampling { temperature: None, top_p, top_k }
            }
            Samplers::Either if temperature.is_some() => {
                AcceptedSampling { temperature, top_p: None, top_k }
            }
            Samplers::All | Samplers::Either => AcceptedSampling { temperature, top_p, top_k },
        }
    }
}
