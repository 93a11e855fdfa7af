//! Multiple choice by log-probability: each option stands at the end of the question, and the most likely one is chosen.
//! The sums are those of lm-evaluation-harness (`acc`), and the chosen option is the answer that is kept.

use std::time::Duration;

use hob_eval::report::{ChoiceOption, choice_by_log_probability};
use hob_eval::{Checker, Grade, Item};
use serde::Deserialize;

use super::request::ItemRequest;
use crate::drive::{Arrivals, End, Exchange};
use crate::http_response::HttpResponse;
use crate::runs::BenchError;
use crate::timeline::{Protocol, RequestFault, timeline};
use crate::workbench::Asker;

const ANSWER_BYTES: usize = 64 << 10;

/// The chosen option, its grade, and the time of all requests together.
pub(super) struct ScoredChoice {
    pub(super) option: String,
    pub(super) grade: Grade,
    /// `acc_norm` of the harness.
    pub(super) is_correct_by_length: bool,
    pub(super) total: Duration,
}

/// The part of a completion that is read.
#[derive(Deserialize)]
struct Completion {
    choices: Vec<CompletionChoice>,
}

#[derive(Deserialize)]
struct CompletionChoice {
    logprobs: Option<Logprobs>,
}

#[derive(Deserialize)]
struct Logprobs {
    /// Null for the first token.
    token_logprobs: Vec<Option<f64>>,
    /// Characters before each token.
    text_offset: Vec<usize>,
}

/// # Errors
/// The item is not a choice, the server fails, or it reports no log-probabilities.
pub(super) fn score(
    item: &Item,
    request: &ItemRequest<'_>,
    asker: &Asker<'_>,
) -> Result<ScoredChoice, BenchError> {
    let Checker::Choice(choice) = &item.checker else {
        return Err(BenchError::NotAChoice { item: item.id.clone() });
    };
    let question = if choice.question.is_empty() { &item.prompt } else { &choice.question };
    let context = format!("Question: {question}\nAnswer:");
    let texts: Vec<String> =
        choice.options.iter().map(|option| format!("{context} {option}")).collect();
    let jobs = texts.iter().map(|text| request.scored_text(text)).collect();
    let driven = asker.drive(jobs, Arrivals::Closed { users: 1 }, ANSWER_BYTES)?;
    let (mut options, mut total) = (Vec::new(), Duration::ZERO);
    for (text, exchange) in texts.iter().zip(&driven.exchanges) {
        let sum = sum_after(exchange, (context.chars().count(), text.chars().count()))?;
        options.push(ChoiceOption {
            log_probability: sum,
            characters: text.chars().count() - context.chars().count() - 1,
        });
        total += exchange.total();
    }
    if options.len() < choice.options.len() {
        return Err(BenchError::Fault(RequestFault::Stopped));
    }
    // The first one of equal options, as in the grade.
    let chosen = (0..options.len()).rev().max_by(|one, other| {
        options[*one].log_probability.total_cmp(&options[*other].log_probability)
    });
    let chosen = chosen.unwrap_or_default();
    let hit = choice_by_log_probability(&options, choice.expected);
    let sums: Vec<String> =
        options.iter().map(|option| format!("{:.2}", option.log_probability)).collect();
    let why = format!(
        "'{}' was expected, '{}' is the most likely (log-probabilities {})",
        choice.options[choice.expected],
        choice.options[chosen],
        sums.join(", ")
    );
    let grade = match hit.is_some_and(|hit| hit.acc) {
        true => Grade::correct(why),
        false => Grade::wrong(why),
    };
    let is_correct_by_length = hit.is_some_and(|hit| hit.acc_norm);
    let option = choice.options[chosen].clone();
    Ok(ScoredChoice { option, grade, is_correct_by_length, total })
}

/// The sum of the log-probabilities of the tokens that begin within these characters.
fn sum_after(exchange: &Exchange, (from, to): (usize, usize)) -> Result<f64, BenchError> {
    let missing = |reason: &str| BenchError::NoLogprobs { reason: reason.to_owned() };
    let (response, body, read) = HttpResponse::recorded(&exchange.recording.bytes);
    if exchange.end != End::Whole || response.status != 200 || read.is_err() {
        let fault = timeline(exchange, Protocol::OpenAi).fault;
        return Err(match fault.unwrap_or(RequestFault::Garbage) {
            RequestFault::Refused { status: 400 | 404 | 422 | 501, message } => missing(&message),
            fault => BenchError::Fault(fault),
        });
    }
    let completion: Completion =
        serde_json::from_slice(&body).map_err(|_| missing("its answer is not a completion"))?;
    let logprobs = completion.choices.into_iter().next().and_then(|choice| choice.logprobs);
    let logprobs = logprobs.ok_or_else(|| missing("its answer has none"))?;
    // The prompt must be there: a server that ignores `echo` tells those of its own answer only.
    if logprobs.text_offset.first() != Some(&0) || logprobs.token_logprobs.len() < 2 {
        return Err(missing("its answer has those of its own tokens only"));
    }
    let tokens = logprobs.text_offset.iter().zip(&logprobs.token_logprobs);
    let scored = tokens.filter(|(offset, _)| (from..to).contains(*offset));
    let scored: Option<Vec<f64>> = scored.map(|(_, logprob)| *logprob).collect();
    // A sum of nothing would be the most likely one.
    let scored = scored.filter(|sums| !sums.is_empty());
    scored.map(|sums| sums.iter().sum()).ok_or_else(|| missing("it leaves out tokens of an option"))
}
