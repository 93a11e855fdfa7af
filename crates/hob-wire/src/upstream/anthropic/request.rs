//! A request in Anthropic's form. A field that Anthropic lacks is an error if its absence would change
//! the kind of answer; otherwise it is dropped and named.

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, OutputFormat, Prompt, Role, Sampling, Tool, ToolChoice};
use serde_json::{Map, Value, json};

use super::super::UnsupportedField;
use super::super::request::{number, parsed, with_partial};
use super::model::{ModelTraits, Samplers};
use super::thinking::ThinkingPlan;
use super::turns::Turns;

/// The body of a request for `model`, by Anthropic's own name of it. Parameters that hob does not know
/// are not sent: Anthropic refuses what it does not know either.
///
/// # Errors
/// [`UnsupportedField`]: leaving it out would give another answer than was asked for.
pub fn anthropic_request(request: &ChatRequest, model: &str) -> Result<String, UnsupportedField> {
    let traits = ModelTraits::of(model);
    let conversation = conversation(request)?;
    refuse(request, conversation, traits)?;
    let turns = Turns::of(&with_partial(&conversation.messages, request))?;
    let thinking = ThinkingPlan::of(request, conversation, traits);
    let chosen = Chosen::of(&request.sampling, traits.samplers, thinking.is_on);
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
        put("tools", Some(conversation.tools.iter().map(tool).collect()));
        put("tool_choice", Some(tool_choice(conversation)));
    }
    put("output_config", output_config(request, thinking.effort));
    put("thinking", thinking.shape);
    put("temperature", chosen.temperature.map(number));
    put("top_p", chosen.top_p.map(number));
    put("top_k", chosen.top_k.map(Value::from));
    put("stop_sequences", (!request.stop.is_empty()).then(|| json!(request.stop)));
    Ok(Value::Object(body).to_string())
}

/// Whether `model` goes on with the request's partial answer: models since 4.6 refuse it, all do while
/// they think, and none takes a blank at its end.
pub fn anthropic_continues(request: &ChatRequest, model: &str) -> bool {
    let Ok(conversation) = conversation(request) else { return false };
    let traits = ModelTraits::of(model);
    let ends_blank =
        request.partial.as_ref().is_some_and(|said| said.ends_with(char::is_whitespace));
    let is_thinking = ThinkingPlan::of(request, conversation, traits).is_on;
    traits.takes_partials && !is_thinking && !ends_blank
}

/// Parameters that a request for `model` sets and that are left out, by the names that clients use.
/// What would change nothing, such as a penalty of 0, is not named.
pub fn anthropic_drops(request: &ChatRequest, model: &str) -> Vec<&'static str> {
    let Ok(conversation) = conversation(request) else { return Vec::new() };
    let traits = ModelTraits::of(model);
    let thinking = ThinkingPlan::of(request, conversation, traits);
    let Sampling { temperature, top_p, top_k, .. } = request.sampling;
    let chosen = Chosen::of(&request.sampling, traits.samplers, thinking.is_on);
    let said = |value: Option<f32>, neutral: f32| value.is_some_and(|value| value != neutral);
    let sampling = &request.sampling;
    // A tool's name is said by the call that it answers.
    let mut speakers = conversation.messages.iter().filter(|message| message.role != Role::Tool);
    let is_named = speakers.any(|message| message.name.is_some());
    let left_out = [
        ("temperature", chosen.temperature.is_none() && said(temperature, 1.0)),
        ("top_p", chosen.top_p.is_none() && said(top_p, 1.0)),
        ("top_k", chosen.top_k.is_none() && top_k.is_some_and(|count| count > 0)),
        ("min_p", said(sampling.min_p, 0.0)),
        ("repeat_penalty", said(sampling.repeat_penalty, 1.0)),
        ("presence_penalty", said(sampling.presence_penalty, 0.0)),
        ("frequency_penalty", said(sampling.frequency_penalty, 0.0)),
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
    // Anthropic stops at no sequence of blanks.
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

/// The schema goes as it is. Anthropic refuses one whose objects allow further members, and says so;
/// forbidding them here would be another schema.
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

fn tool(tool: &Tool) -> Value {
    let mut schema = tool.parameters.as_ref().map_or_else(|| json!({}), parsed);
    // Anthropic wants the type said, even though arguments can be nothing but an object.
    if let Value::Object(schema) = &mut schema {
        schema.entry("type").or_insert_with(|| json!("object"));
    }
    let mut shape = json!({ "name": tool.name });
    if let Some(description) = &tool.description {
        shape["description"] = json!(description);
    }
    shape["input_schema"] = schema;
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

/// The sampling that the model accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Chosen {
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<u32>,
}

impl Chosen {
    fn of(sampling: &Sampling, samplers: Samplers, is_thinking: bool) -> Chosen {
        // With thinking, Anthropic takes no sampling but a top-p of at least this much.
        const TOP_P_MIN: f32 = 0.95;
        let temperature = sampling.temperature.map(|value| value.clamp(0.0, 1.0));
        let (top_p, top_k) = (sampling.top_p, sampling.top_k.filter(|count| *count > 0));
        match samplers {
            Samplers::Fixed => Chosen::default(),
            Samplers::All | Samplers::Either if is_thinking => {
                Chosen { top_p: top_p.filter(|share| *share >= TOP_P_MIN), ..Chosen::default() }
            }
            // A temperature of 1 says nothing, and gives way.
            Samplers::Either if top_p.is_some() && temperature == Some(1.0) => {
                Chosen { temperature: None, top_p, top_k }
            }
            Samplers::Either if temperature.is_some() => Chosen { temperature, top_p: None, top_k },
            Samplers::All | Samplers::Either => Chosen { temperature, top_p, top_k },
        }
    }
}
