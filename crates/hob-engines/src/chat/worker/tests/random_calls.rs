//! Tool calls of models with random weights, from the request to the events: all of them are valid.

mod schemas;
mod weights;

use std::sync::{Arc, LazyLock};

use fastrand::Rng;
use hob_core::KvType;
use hob_core::chat::{
    ChatEvent, ChatRequest, Conversation, FinishReason, JsonText, Message, Prompt, Role, Sampling,
    Tool, ToolChoice,
};
use jsonschema::Validator;
use serde_json::Value;

use super::super::request_reader::RequestReader;
use super::super::running::Prepared;
use super::{prepared, reader_of};
use crate::chat::llama::{CardUse, Llama, LlamaOptions, WeightStorage};
use crate::chat::protocol::Refusal;
use crate::chat::template::{ChatTemplate, SpecialTokens};
use crate::chat::tokens::{Token, TokenTable};
use crate::test_home::{optional_setting, smollm2};
use weights::{Habit, RandomModel};

/// Calls of all forms together. `make test-calls` sets more.
const CALLS: usize = 360;
const FORMS: usize = 6;
/// Answers to one set of tools, which has to be compiled.
const ANSWERS: usize = 5;
const CONTEXT_TOKENS: u32 = 8_192;
/// Tokens beyond the shortest answer.
const SPARE_TOKENS_MAX: u32 = 160;

/// One request of so many has no limit.
const UNLIMITED: u32 = 50;

/// How a model writes calls, and whether its marks are tokens.
pub(super) struct Form {
    template: &'static str,
    marks: &'static [&'static str],
}

pub(super) const HERMES_IN_LETTERS: Form =
    Form { template: include_str!("../../template/testdata/templates/smollm2.jinja"), marks: &[] };
const HERMES: Form = Form {
    template: include_str!("../../template/testdata/templates/qwen3.jinja"),
    marks: &["<think>", "</think>", "<tool_call>", "</tool_call>"],
};
const LLAMA3: Form = Form {
    template: include_str!("../../template/testdata/templates/llama3.jinja"),
    marks: &["<|python_tag|>"],
};
const MISTRAL_ARRAY: Form = Form {
    template: include_str!("../../template/testdata/templates/mistral-nemo.jinja"),
    marks: &["[TOOL_CALLS]"],
};
const MISTRAL_NAMED: Form = Form {
    template: "{{ messages[0].content }}{% if tools %}[TOOL_CALLS][ARGS]{% endif %}",
    marks: &["[TOOL_CALLS]", "[ARGS]"],
};
const HARMONY: Form = Form {
    template: "{{ messages[0].content }}{% if tools %}<|channel|>commentary to=functions.{% endif %}",
    marks: &["<|channel|>", "<|constrain|>", "<|message|>"],
};

/// SmolLM2, of which only the tokenizer is used here. A process can load one model.
pub(super) static SMOLLM2: LazyLock<Arc<Llama>> = LazyLock::new(|| {
    let options = LlamaOptions {
        path: smollm2(),
        context_tokens: 1_024,
        parallel: 1,
        kv_type: KvType::F16,
        threads: 2,
        threads_batch: 2,
        batch_tokens: 512,
        gpu_layers: Some(0),
        cpu_moe_layers: 0,
        card_use: CardUse::Allowed,
        weights: WeightStorage::Mapped,
    };
    Arc::new(Llama::load(options, |_| ()).expect("the model loads"))
});

/// The vocabulary of SmolLM2 with the form's marks.
fn tokens(form: &Form) -> TokenTable {
    let smollm2 = SMOLLM2.tokens();
    let mark = |name: &&str| Token { control: Some((*name).to_owned()), ..Token::default() };
    let all = smollm2.all().iter().cloned().chain(form.marks.iter().map(mark));
    TokenTable::new(all.collect(), smollm2.eos())
}

pub(super) fn reader(form: &Form) -> RequestReader {
    let template = ChatTemplate::compile(form.template, SpecialTokens::default());
    let template = Some(template.expect("a template"));
    reader_of(Arc::<Llama>::clone(&SMOLLM2), tokens(form), template, CONTEXT_TOKENS)
}

fn model(form: &Form, seed: u64) -> RandomModel {
    let mut tokens = tokens(form);
    let dialect = crate::chat::dialect::ModelDialect::of(form.template);
    tokens.show(dialect.marks());
    RandomModel::new(tokens, dialect.tools.begin, seed)
}

/// The tools of some requests, and what decides about their arguments.
struct Offer {
    tools: Vec<Tool>,
    judges: Vec<Validator>,
}

impl Offer {
    fn new(random: &mut Rng) -> Offer {
        let mut offer = Offer { tools: Vec::new(), judges: Vec::new() };
        for name in ["get", "get_weather", "größe"].iter().take(random.usize(1..4)) {
            let schema = schemas::arguments(random);
            let judge = jsonschema::options().should_validate_formats(true).build(&schema);
            offer.judges.push(judge.unwrap_or_else(|error| panic!("{schema}: {error}")));
            let parameters = Some(JsonText::parsed(schema.to_string()));
            let name = (*name).to_owned();
            offer.tools.push(Tool { name, description: None, parameters, strict: true });
        }
        offer
    }

    fn request(&self, random: &mut Rng) -> ChatRequest {
        let named = &self.tools[random.usize(..self.tools.len())].name;
        let tool_choice = match random.u8(..4) {
            0 => ToolChoice::Auto,
            1 => ToolChoice::Named(named.clone()),
            _ => ToolChoice::Required,
        };
        let conversation = Conversation {
            messages: vec![Message::new(Role::User, "Go.")],
            tools: self.tools.clone(),
            tool_choice,
            parallel_tool_calls: random.bool(),
            template_arguments: None,
        };
        let seed = Some(random.u64(..));
        let greedy = Sampling { temperature: Some(0.0), seed, ..Sampling::default() };
        let usual = Sampling { seed, ..Sampling::default() };
        let sampling = if random.u8(..4) > 0 { greedy } else { usual };
        ChatRequest { prompt: Prompt::Chat(conversation), sampling, ..ChatRequest::default() }
    }

    /// The schemas, for messages of failures.
    fn schemas_text(&self) -> String {
        let schemas = self.tools.iter().filter_map(|tool| tool.parameters.as_ref());
        schemas.map(JsonText::as_str).collect::<Vec<_>>().join("\n")
    }
}

fn conversation(request: &ChatRequest) -> &Conversation {
    let Prompt::Chat(conversation) = &request.prompt else { panic!("not a conversation") };
    conversation
}

/// The tokens of the shortest answer. `None` if the grammar does not begin with the answer.
fn shortest(reader: &RequestReader, request: &ChatRequest) -> Result<Option<u32>, String> {
    let nothing = ChatRequest { tokens_max: Some(0), ..request.clone() };
    match prepared(reader, &nothing) {
        Ok(_) => Ok(None),
        Err(Refusal::Field { field, reason }) if field == "max_tokens" => {
            let (_, needed) = reason.split_once("takes ").expect("the number");
            Ok(Some(needed.split(' ').next().expect("a word").parse().expect("a number")))
        }
        Err(refusal) => Err(format!("{refusal:?}")),
    }
}

#[derive(Debug, Default)]
struct Answer {
    calls: Vec<(String, String)>,
    text: String,
    tokens: u32,
    end: Option<FinishReason>,
}

fn answer(prepared: Prepared, model: &mut RandomModel) -> Answer {
    let mut answering = prepared.answering;
    let mut answer = Answer::default();
    while answer.end.is_none() {
        let step = answering.next(model.logits()).expect("a token");
        model.said(&step.tokens);
        answer.end = step.end;
        for event in step.events {
            match event {
                ChatEvent::ToolCall { name, .. } => answer.calls.push((name, String::new())),
                ChatEvent::ToolArguments { piece, .. } => {
                    answer.calls.last_mut().expect("a call").1 += &piece;
                }
                ChatEvent::Text(text) | ChatEvent::Reasoning(text) => answer.text += &text,
                other => panic!("{other:?}"),
            }
        }
    }
    answer.tokens = answering.generated_tokens();
    answer
}

/// What is wrong with an answer.
fn fault(answer: &Answer, offer: &Offer, conversation: &Conversation) -> Option<String> {
    let is_free = conversation.tool_choice == ToolChoice::Auto;
    if answer.calls.is_empty() {
        return (!is_free).then(|| "no call".to_owned());
    }
    if answer.end != Some(FinishReason::ToolCalls) {
        return Some("not a whole call".to_owned());
    }
    if answer.calls.len() > 1 && !conversation.parallel_tool_calls {
        return Some("several calls".to_owned());
    }
    if !is_free && !answer.text.is_empty() {
        return Some("a text".to_owned());
    }
    answer.calls.iter().find_map(|(name, arguments)| {
        if matches!(&conversation.tool_choice, ToolChoice::Named(named) if named != name) {
            return Some("another tool".to_owned());
        }
        let Some(at) = offer.tools.iter().position(|tool| tool.name == *name) else {
            return Some("an unknown tool".to_owned());
        };
        match serde_json::from_str::<Value>(arguments) {
            Ok(value) => offer.judges[at].validate(&value).err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        }
    })
}

fn check(form: &Form, seed: u64) {
    let wanted = optional_setting("HOB_TEST_CALLS");
    let wanted = wanted.map_or(CALLS, |calls| calls.to_string_lossy().parse().expect("a number"));
    let (reader, mut model) = (reader(form), model(form, seed));
    let mut random = Rng::with_seed(seed);
    let (mut calls, mut tokens, mut refusals, mut sets) = (0, 0, Vec::new(), 0);
    let mut faults = Vec::new();
    while calls < wanted / FORMS {
        let offer = Offer::new(&mut random);
        sets += 1;
        for _ in 0..ANSWERS {
            let request = offer.request(&mut random);
            let least = match shortest(&reader, &request) {
                Ok(least) => least.unwrap_or(60),
                Err(refusal) => {
                    refusals.push(format!("{refusal}\n{}", offer.schemas_text()));
                    break;
                }
            };
            let limit = least + random.u32(..SPARE_TOKENS_MAX);
            let tokens_max = Some(limit).filter(|_| random.u32(..UNLIMITED) > 0);
            let request = ChatRequest { tokens_max, ..request };
            let prepared = prepared(&reader, &request).expect("room for the answer");
            let is_free = conversation(&request).tool_choice == ToolChoice::Auto;
            model.begin(Habit::any(&mut random), is_free);
            let answer = answer(prepared, &mut model);
            let tokens_max = tokens_max.unwrap_or(CONTEXT_TOKENS);
            assert!(answer.tokens <= tokens_max, "{} of {tokens_max} tokens", answer.tokens);
            if let Some(fault) = fault(&answer, &offer, conversation(&request)) {
                faults.push(format!(
                    "{fault}: {answer:?}, {tokens_max} tokens, {}",
                    offer.schemas_text()
                ));
            }
            calls += answer.calls.len();
            tokens += answer.tokens;
        }
    }
    eprintln!("{calls} calls to {sets} sets of tools, {tokens} tokens, {} refused", refusals.len());
    assert!(faults.is_empty(), "{} of {calls} calls:\n{}", faults.len(), faults.join("\n\n"));
    assert!(refusals.len() * 50 < sets, "{}", refusals.join("\n"));
}

#[test]
fn calls_in_hermes_form_without_marks_are_valid() {
    check(&HERMES_IN_LETTERS, 1);
}

#[test]
fn calls_in_hermes_form_are_valid() {
    check(&HERMES, 2);
}

#[test]
fn calls_of_llama_are_valid() {
    check(&LLAMA3, 3);
}

#[test]
fn calls_of_older_mistrals_are_valid() {
    check(&MISTRAL_ARRAY, 4);
}

#[test]
fn calls_of_mistral_are_valid() {
    check(&MISTRAL_NAMED, 5);
}

#[test]
fn calls_of_gpt_oss_are_valid() {
    check(&HARMONY, 6);
}
