//! Answers of a model whose tokens are bytes and whose next token the test decides: thinking and its
//! budget, calls, stop texts that are cut anywhere, and forms that are closed in time.

use std::time::Duration;

use hob_core::chat::{JsonText, OutputFormat, Sampling, Tool, ToolChoice};

use super::super::tests::byte_tokens;
use super::*;
use crate::chat::constraint::{AnswerRules, CallCount, Constrainer, ToolRules, Vocabulary};
use crate::chat::dialect::{ArgumentDelivery, HERMES, ModelDialect, ToolsOffered};
use crate::chat::sampler::SamplerDefaults;

const END: u32 = 256;

fn constrainer() -> Constrainer {
    Vocabulary::new(byte_tokens().all()).and_then(Constrainer::new).expect("a vocabulary")
}

fn plan(tokens_max: u32) -> AnswerPlan {
    let greedy = Sampling { temperature: Some(0.0), ..Sampling::default() };
    AnswerPlan {
        tokens: Arc::new(byte_tokens()),
        sampler: Sampler::new(&greedy, &SamplerDefaults::default(), 1),
        parser: None,
        stop: StopScanner::new(Vec::new()),
        tokens_max,
        thinking: ThinkingLimit::default(),
        constraint: None,
        call_id_prefix: "call_".to_owned(),
        history: History::default(),
        scores_end: false,
        repetition: None,
    }
}

/// A plan for a model that thinks in `<think>`.
fn thinker(tokens_max: u32, budget: Option<u32>) -> AnswerPlan {
    let dialect = ModelDialect::of("{% if enable_thinking %}<think>{% endif %}</think>");
    let close = "</think>\n\n".bytes().map(u32::from).collect();
    AnswerPlan {
        parser: Some(AnswerParser::new(&dialect, false, None)),
        thinking: ThinkingLimit { tokens_max: budget, close },
        ..plan(tokens_max)
    }
}

/// The answer, by kind, of a model that prefers the tokens of `wish` and then the end.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    reasoning: String,
    text: String,
    calls: Vec<(String, String)>,
    end: Option<FinishReason>,
    /// Tokens in all, and those of thinking.
    tokens: (u32, u32),
}

fn answer_to(plan: AnswerPlan, wish: &str) -> Answer {
    let mut answering = Answering::new(plan);
    let mut answer = Answer::default();
    let mut wish = wish.bytes().map(u32::from).peekable();
    while answer.end.is_none() {
        let wished = wish.next().unwrap_or(END);
        let mut logits = vec![0.0; END as usize + 1];
        logits[wished as usize] = 10.0;
        let step = answering.next(&logits).expect("a token");
        assert_eq!(step.tokens.is_empty(), step.end.is_some(), "nothing is computed after the end");
        answer.end = step.end;
        // What a grammar forces is said without being asked for.
        for forced in step.tokens.iter().skip(1) {
            wish.next_if_eq(forced);
        }
        for event in step.events {
            match event {
                ChatEvent::Reasoning(text) => answer.reasoning += &text,
                ChatEvent::Text(text) => answer.text += &text,
                ChatEvent::ToolCall { name, id, index } => {
                    assert_eq!(id, format!("call_{index}"));
                    answer.calls.push((name, String::new()));
                }
                ChatEvent::ToolArguments { piece, .. } => {
                    answer.calls.last_mut().expect("a call").1 += &piece;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    answer.tokens = (answering.generated_tokens(), answering.reasoning_tokens());
    answer
}

#[test]
fn thinking_is_separated_from_the_answer() {
    let answer = answer_to(thinker(100, None), "<think>hm, so</think>\n\nYes.");
    assert_eq!((answer.reasoning.as_str(), answer.text.as_str()), ("hm, so", "Yes."));
    assert_eq!(answer.end, Some(FinishReason::Stop));
    assert!(answer.tokens.1 > 10 && answer.tokens.1 < answer.tokens.0, "{:?}", answer.tokens);
}

#[test]
fn a_spent_budget_closes_the_block_and_the_answer_begins() {
    // The model would think for ever; after the block was closed for it, it goes on with its answer.
    let answer = answer_to(thinker(60, Some(12)), &format!("<think>{}", "z".repeat(12)));
    assert!(
        answer.reasoning.chars().all(|c| c == 'z') && answer.reasoning.len() < 12,
        "{answer:?}"
    );
    assert_eq!(answer.end, Some(FinishReason::Stop));
    let endless = answer_to(thinker(60, Some(12)), &format!("<think>{}", "z".repeat(200)));
    assert!(endless.text.starts_with('z'), "{endless:?}");
    assert_eq!(endless.end, Some(FinishReason::Length));
}

#[test]
fn a_thinking_budget_of_zero_allows_no_thinking() {
    let answer = answer_to(thinker(60, Some(0)), "<think>zzz");
    assert_eq!((answer.reasoning.as_str(), answer.text.as_str()), ("", "zzz"));
}

#[test]
fn a_whole_budget_of_thinking_is_seen_as_such() {
    let answer = answer_to(thinker(20, None), &format!("<think>{}", "z".repeat(200)));
    assert_eq!(answer.text, "");
    // Until the mark was whole it could have become an answer.
    assert_eq!((answer.end, answer.tokens), (Some(FinishReason::Length), (20, 14)));
    assert_eq!(answer.reasoning, "z".repeat(13));
}

#[test]
fn a_form_is_closed_in_time_and_counts_as_whole() {
    let schema = JsonText::parsed(
        r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}"#,
    );
    let output = OutputFormat::JsonSchema(schema);
    let wanted = AnswerRules { output: &output, strict: true, tools: None };
    let constraint = constrainer().compile(&wanted, 30).expect("a schema");
    let plan = AnswerPlan { constraint, ..plan(30) };
    let answer = answer_to(plan, &format!(r#"{{"a":"{}"#, "y".repeat(500)));
    assert!(
        answer.text.starts_with(r#"{"a""#) && answer.text.ends_with(r#""}"#),
        "{}",
        answer.text
    );
    let value: serde_json::Value = serde_json::from_str(&answer.text).expect("JSON");
    assert!(value["a"].is_string());
    assert_eq!(answer.end, Some(FinishReason::Stop));
}

#[test]
fn a_long_form_does_not_keep_the_engine_for_its_whole_length() {
    let output = OutputFormat::Regex("x{100}".to_owned());
    let wanted = AnswerRules { output: &output, strict: true, tools: None };
    let constraint = constrainer().compile(&wanted, 200).expect("a pattern");
    let mut answering = Answering::new(AnswerPlan { constraint, ..plan(200) });
    let logits = vec![0.0; END as usize + 1];
    let mut steps = 1;
    while answering.next(&logits).expect("tokens").end.is_none() {
        steps += 1;
    }
    // One token of each step is chosen.
    assert_eq!(
        (answering.generated_tokens(), steps),
        (100, 100_u32.div_ceil(FORCED_TOKENS_MAX + 1))
    );
}

#[test]
fn thinking_leaves_room_for_the_form() {
    let wanted = AnswerRules { output: &OutputFormat::JsonObject, strict: true, tools: None };
    let constraint = constrainer().compile(&wanted, 150).expect("JSON");
    let dialect = ModelDialect::of("{% if enable_thinking %}<think>{% endif %}</think>");
    let parser = Some(AnswerParser::new(&dialect, true, None));
    let plan = AnswerPlan { constraint, parser, ..thinker(150, None) };
    let answer = answer_to(plan, &"z".repeat(500));
    assert!(!answer.reasoning.is_empty());
    assert!(serde_json::from_str::<serde_json::Value>(&answer.text).is_ok(), "{answer:?}");
}

/// A plan whose answer has to call `now`, with these arguments.
fn caller(tokens_max: u32, parameters: Option<&str>) -> AnswerPlan {
    let parameters = parameters.map(JsonText::parsed);
    let tools = [Tool { name: "now".to_owned(), parameters, ..Tool::default() }];
    let tools_wanted = ToolRules {
        tools: &tools,
        choice: &ToolChoice::Required,
        calls: CallCount::One,
        dialect: &HERMES,
    };
    let wanted =
        AnswerRules { output: &OutputFormat::Text, strict: true, tools: Some(tools_wanted) };
    let constraint = constrainer().compile(&wanted, tokens_max).expect("a tool");
    let dialect = ModelDialect::of("");
    let offered =
        ToolsOffered { names: vec!["now".to_owned()], delivery: ArgumentDelivery::Streamed };
    let parser = Some(AnswerParser::new(&dialect, false, Some(offered)));
    AnswerPlan { constraint, parser, ..plan(tokens_max) }
}

#[test]
fn calls_are_reported_with_their_ids_and_arguments() {
    let answer = answer_to(caller(200, None), "");
    assert_eq!(answer.calls, [("now".to_owned(), "{}".to_owned())], "{answer:?}");
    assert_eq!(answer.end, Some(FinishReason::ToolCalls));
}

#[test]
fn log_probabilities_come_before_their_text() {
    let mut plan = plan(10);
    plan.sampler = plan.sampler.with_logprobs(Some(1));
    let mut answering = Answering::new(plan);
    let mut logits = vec![0.0; END as usize + 1];
    logits[usize::from(b'a')] = 50.0;
    let step = answering.next(&logits).expect("a token");
    let [ChatEvent::Logprobs(logprobs), ChatEvent::Text(text)] = &step.events[..] else {
        panic!("{:?}", step.events);
    };
    assert_eq!(text, "a");
    assert_eq!(logprobs[0].token, TokenText(b"a".to_vec()));
    assert!(logprobs[0].logprob > -1e-3 && logprobs[0].top.len() == 1);
}

/// lm-evaluation-harness drops the last log probability, which would be one of the prompt's.
#[test]
fn where_a_prompt_is_scored_the_token_of_the_end_has_a_log_probability() {
    let mut logits = vec![0.0; END as usize + 1];
    logits[END as usize] = 50.0;
    for scores_end in [true, false] {
        let plan = plan(1);
        let sampler = plan.sampler.with_logprobs(Some(1));
        let step = Answering::new(AnswerPlan { sampler, scores_end, ..plan }).next(&logits);
        let step = step.expect("an end");
        let logprobs = step.events.iter().filter_map(|event| match event {
            ChatEvent::Logprobs(logprobs) => Some(logprobs.len()),
            _ => None,
        });
        assert_eq!(logprobs.sum::<usize>(), usize::from(scores_end));
        assert_eq!((step.end, step.tokens), (Some(FinishReason::Stop), Vec::new()));
    }
}

#[test]
fn an_answer_that_goes_round_in_circles_is_ended_unless_it_has_a_limit() {
    let wish = "again and ".repeat(500);
    let guarded = AnswerPlan { repetition: Some(Repetition::default()), ..plan(9000) };
    let answer = answer_to(guarded, &wish);
    assert_eq!((answer.end, answer.tokens.0), (Some(FinishReason::Length), 522));
    assert_eq!(answer_to(plan(4000), &wish).tokens.0, 4000);
    // An item counts as 18 tokens: six items, 15 tokens and 1,844 worn ones are 109 items and "110. hum".
    let list: String = (1..=200).map(|item| format!("{item}. humble = humble\n")).collect();
    let guarded = AnswerPlan { repetition: Some(Repetition::default()), ..plan(9000) };
    let answer = answer_to(guarded, &list);
    assert_eq!((answer.end, answer.tokens.0), (Some(FinishReason::Length), 2_189));
}

#[test]
fn an_answer_with_nothing_new_is_ended_unless_a_grammar_holds() {
    const WORDS: [&str; 2] = ["He loved his wife. ", "He loved his family. "];
    // Numbers of ones in numbers: an order that never repeats for long.
    let wish: String = (0..150u32).map(|at| WORDS[at.count_ones() as usize % 2]).collect();
    let guarded = AnswerPlan { repetition: Some(Repetition::default()), ..plan(9000) };
    let answer = answer_to(guarded, &wish);
    assert_eq!(answer.end, Some(FinishReason::Length));
    assert!(answer.tokens.0 < 2500, "{:?}", answer.tokens);
    let plan = caller(9000, Some(r#"{"properties":{"a":{"type":"string"}},"required":["a"]}"#));
    let plan = AnswerPlan { repetition: Some(Repetition::default()), ..plan };
    let begin = "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\":\"";
    let answer = answer_to(plan, &format!("{begin}{wish}\"}}}}\n</tool_call>"));
    let arguments: serde_json::Value = serde_json::from_str(&answer.calls[0].1).expect("JSON");
    assert_eq!(arguments["a"].as_str(), Some(wish.as_str()));
}

#[test]
fn a_call_that_goes_round_in_circles_is_closed() {
    let plan = caller(9000, Some(r#"{"properties":{"a":{"type":"string"}},"required":["a"]}"#));
    let plan = AnswerPlan { repetition: Some(Repetition::default()), ..plan };
    let begin = "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\":\"";
    let answer = answer_to(plan, &format!("{begin}{}", "again and ".repeat(500)));
    assert_eq!(answer.end, Some(FinishReason::ToolCalls), "{answer:?}");
    let arguments: serde_json::Value = serde_json::from_str(&answer.calls[0].1).expect("JSON");
    assert_eq!(arguments["a"].as_str().map(str::len), Some(522));
}

#[test]
fn an_answer_that_is_cut_inside_a_character_ends_before_it() {
    let answer = answer_to(plan(5), "abc🔥");
    assert_eq!((answer.text.as_str(), answer.end), ("abc", Some(FinishReason::Length)));
    assert_eq!(answer.tokens.0, 5);
}

#[test]
fn a_limit_of_zero_tokens_gives_an_empty_answer() {
    let answer = answer_to(plan(0), "abc");
    assert_eq!((answer.text.as_str(), answer.end), ("", Some(FinishReason::Length)));
    assert_eq!(answer.tokens.0, 0);
}

#[test]
fn a_grammar_that_is_too_slow_ends_its_answer() {
    let mut answering = Answering::new(caller(100, None));
    answering.grammar_time = GrammarTime::with(Duration::ZERO);
    let mut logits = vec![0.0; END as usize + 1];
    logits[usize::from(b'<')] = 10.0;
    let answered = answering.next(&logits);
    let Err(AnswerError::Grammar(Refusal::Field { field, reason })) = &answered else {
        panic!("{answered:?}");
    };
    assert_eq!((field.as_str(), reason.as_str()), ("tools", "takes too long for each token"));
}

#[test]
fn guesses_leave_a_slow_grammar_its_time() {
    let mut answering = Answering::new(caller(100, None));
    let guess: Vec<u32> = "<tool".bytes().map(u32::from).collect();
    assert_eq!((answering.forced(5), answering.allowed(&guess)), (guess.clone(), 5));
    answering.grammar_time.spend(Duration::from_secs(3), 0);
    assert_eq!((answering.forced(5), answering.allowed(&guess)), (Vec::new(), 0));
}

#[test]
fn numbers_that_are_none_end_the_answer_with_an_error() {
    let mut answering = Answering::new(plan(10));
    assert!(answering.next(&[f32::NAN; 257]).is_err());
}
