//! Asks one item and grades its answer. The clock is that of every other benchmark: the socket's time stamps.
//! Reading and grading happen after the answer has ended.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hob_core::locked;
use hob_eval::{Answer, CalledTool, Grade, Item, Verdict};
use hob_machine::EnergyMeter;
use jiff::Timestamp;

use super::answer_file::{AnsweredItem, GradedBy, Grader, answer_sha256};
use super::choices::{self, ScoredChoice};
use super::request::ItemRequest;
use super::{EvalArm, EvalWorkload, PromptForm};
use crate::ask::ask;
use crate::chat::ANSWER_BYTES_PER_TOKEN;
use crate::read_answer::ReadAnswer;
use crate::runs::BenchError;
use crate::target::Api;
use crate::terms::Metric;
use crate::timeline::{RequestFault, figures, timeline};
use crate::workbench::Asker;

/// Maximum memory that is allocated for an answer before the request. A longer answer takes more.
const ROOM_BYTES_MAX: usize = 1 << 20;
/// Longer answers are kept without their middle.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// How often a pause looks whether the user stopped it.
const LOOK: Duration = Duration::from_millis(100);
/// How long a server may take to show that it lives.
const LIVES_WITHIN: Duration = Duration::from_secs(10);

/// A client that asks items and grades the answers.
#[derive(Debug)]
pub(super) struct Examiner<'w, 'b> {
    asker: Asker<'b>,
    workload: &'w EvalWorkload,
    context_tokens: u32,
    /// `None` for a server on another machine, which this meter does not see.
    energy: Option<Mutex<EnergyMeter>>,
}

impl<'w, 'b> Examiner<'w, 'b> {
    pub(super) fn new(workload: &'w EvalWorkload, asker: Asker<'b>) -> Examiner<'w, 'b> {
        let energy = asker.target.endpoint.is_here().then(EnergyMeter::start).flatten();
        let (energy, context_tokens) = (energy.map(Mutex::new), workload.context_tokens());
        Examiner { asker, workload, context_tokens, energy }
    }

    /// Joules since the start.
    fn joules(&self) -> Option<f64> {
        let meter = self.energy.as_ref()?;
        Some(locked(meter).joules())
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.asker.stop.load(Ordering::Relaxed)
    }

    /// Waits, unless the user stops it. Returns how long it took.
    pub(super) fn wait(&self, pause: Duration) -> Duration {
        let began = Instant::now();
        while began.elapsed() < pause && !self.is_stopped() {
            std::thread::sleep(LOOK);
        }
        began.elapsed()
    }

    /// Asks an item, and grades the answer.
    ///
    /// # Errors
    /// The server fails. An answer without text or without end, and a refusal of this one request, are results.
    pub(super) fn ask(&self, item: &Item, arm: EvalArm) -> Result<AnsweredItem, BenchError> {
        let before = self.joules();
        let mut answered = self.answered(item, arm)?;
        let used = before.zip(self.joules()).map(|(before, after)| after - before);
        answered.figures.extend(used.map(|joules| (Metric::EnergyJ, joules)));
        Ok(answered)
    }

    fn answered(&self, item: &Item, arm: EvalArm) -> Result<AnsweredItem, BenchError> {
        let target = &self.asker.target;
        let request = self.request();
        let tokens = arm.tokens_max(item.max_tokens);
        if self.workload.form == PromptForm::ScoredOptions {
            return self.scored(item, &request);
        }
        let room = (tokens as usize * ANSWER_BYTES_PER_TOKEN).min(ROOM_BYTES_MAX);
        let started = Timestamp::now();
        let exchange = self.asker.send(request.bytes(item, arm), room)?;
        let timeline = timeline(&exchange, target.api.protocol());
        let unanswered = self.unanswered(timeline.fault.clone())?;
        let read = ReadAnswer::of(&exchange, target);
        let grade = match unanswered {
            Some(why) => ungraded(item, why),
            None => self.grade(item, &read.answer),
        };
        let figures = figures(&timeline, Some(tokens)).map(|figures| figures.by_metric);
        let content = &read.answer.content;
        let words = content.split_whitespace().count();
        let answered = AnsweredItem {
            finish: timeline.finish.clone(),
            figures: figures.unwrap_or_default(),
            total_ms: exchange.total().as_secs_f64() * 1e3,
            is_shortened: [content, &read.thought].iter().any(|text| text.len() > KEPT_BYTES_MAX),
            leaked_thought: hob_eval::shows_a_thought(content),
            said_words: u32::try_from(words).unwrap_or(u32::MAX),
            thought: shortened(read.thought),
            ..answered_item(item, started, request.prompt(item, arm), read.answer, grade)
        };
        Ok(answered.with_hand_grades(&self.workload.hand_grades))
    }

    /// Why there is no answer, where the server lives and another item may have one.
    fn unanswered(&self, fault: Option<RequestFault>) -> Result<Option<String>, BenchError> {
        match fault {
            None | Some(RequestFault::Empty) => Ok(None),
            // The server does not take this request, such as a prompt beyond its context.
            Some(RequestFault::Refused { status: 400 | 413 | 422, message }) => {
                Ok(Some(format!("the server refused the request: {message}")))
            }
            // The model finds no end, and would not find one the next time.
            Some(RequestFault::TooSlow { .. }) => {
                let limit_s = self.asker.limits.total.as_secs();
                Ok(Some(format!("the answer did not end within {limit_s} s")))
            }
            Some(fault @ RequestFault::TooLong { .. }) => Ok(Some(fault.to_string())),
            Some(fault) => Err(BenchError::Fault(fault)),
        }
    }

    fn request(&self) -> ItemRequest<'_> {
        ItemRequest {
            target: &self.asker.target,
            seed: self.asker.seed,
            form: self.workload.form,
            enforces_schemas: self.workload.enforces_schemas,
            context_tokens: self.context_tokens,
        }
    }

    /// The result of an item on which the server fails each time, while it answers others.
    pub(super) fn failed(
        &self,
        item: &Item,
        arm: EvalArm,
        (fault, took): (&RequestFault, Duration),
    ) -> AnsweredItem {
        let why = format!("the server failed on this item each time: {fault}");
        let (started, prompt) = (Timestamp::now() - took, self.request().prompt(item, arm));
        AnsweredItem {
            total_ms: took.as_secs_f64() * 1e3,
            ..answered_item(item, started, prompt, Answer::default(), ungraded(item, why))
        }
    }

    /// Whether the server still answers requests.
    pub(super) fn server_lives(&self) -> bool {
        let target = &self.asker.target;
        let path = if target.api == Api::Ollama { "/api/tags" } else { "/v1/models" };
        ask(&target.endpoint, path, target.key.as_deref(), None, LIVES_WITHIN).is_ok()
    }

    /// A choice by log-probability: there is no text, and so no first visible character.
    fn scored(&self, item: &Item, request: &ItemRequest<'_>) -> Result<AnsweredItem, BenchError> {
        let started = Timestamp::now();
        let ScoredChoice { option, grade, is_correct_by_length, total } =
            choices::score(item, request, &self.asker)?;
        let total_ms = total.as_secs_f64() * 1e3;
        let answer = Answer { content: option, ..Answer::default() };
        let scored = AnsweredItem {
            system: None,
            is_correct_by_length: Some(is_correct_by_length),
            total_ms,
            figures: [(Metric::E2eMs, total_ms)].into(),
            ..answered_item(item, started, item.prompt.clone(), answer, grade)
        };
        Ok(scored.with_hand_grades(&self.workload.hand_grades))
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grade {
        hob_eval::grade(item, answer, self.workload.sandbox.as_deref())
    }
}

/// An answer that a program graded, without its times.
fn answered_item(
    item: &Item,
    started: Timestamp,
    prompt: String,
    answer: Answer,
    grade: Grade,
) -> AnsweredItem {
    AnsweredItem {
        id: item.id.clone(),
        family: item.family.clone(),
        size: item.size.clone(),
        started,
        system: item.system.clone(),
        prompt,
        answer_sha256: answer_sha256(&answer),
        tool_calls: answer.tool_calls.iter().map(CalledTool::to_string).collect(),
        answer: shortened(answer.content),
        thought: String::new(),
        score: grade.score,
        verdict: grade.verdict,
        why: grade.why,
        graded_by: GradedBy::Program,
        grader: Some(Grader::of(&item.checker)),
        is_correct_by_length: None,
        is_shortened: false,
        leaked_thought: false,
        finish: None,
        total_ms: 0.0,
        said_words: 0,
        figures: BTreeMap::new(),
    }
}

/// The grade of an item that the server did not answer.
fn ungraded(item: &Item, why: String) -> Grade {
    let verdict = if item.checker.is_open() { Verdict::Open } else { Verdict::NoAnswer };
    Grade { score: 0.0, verdict, why }
}

/// Long answers lose their middle: what is asked for stands at an end.
fn shortened(text: String) -> String {
    if text.len() <= KEPT_BYTES_MAX {
        return text;
    }
    let head = text.floor_char_boundary(KEPT_BYTES_MAX / 2);
    let tail = text.ceil_char_boundary(text.len() - KEPT_BYTES_MAX / 2);
    format!("{}\n[… {} bytes …]\n{}", &text[..head], tail - head, &text[tail..])
}
