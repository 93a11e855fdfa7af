//! Measures how good and how fast the answers of a chat model are, on items that a program checks.
//! The arms answer each item one after the other, so that other load on the machine affects them alike.

mod answer_file;
mod ask;
mod choices;
mod comparison;
mod item_set;
mod judged;
mod line_file;
mod request;
mod section;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hob_eval::report::UseBounds;
use hob_eval::{Checker, RunCode};
use jiff::Timestamp;

pub use answer_file::{AnsweredItem, GradedBy, Grader, HandGrade, read_answers};
pub use comparison::{ArmFindings, ArmRecord, differences, recorded_bounds};
pub use item_set::{ItemSet, TaskError, TaskName};
pub use judged::{
    ComparedArms, ComparedItem, JudgeFailure, JudgeRun, JudgedArms, JudgedLine, verdict_file,
};
pub use section::{outcomes, regraded};

use answer_file::AnswerFile;
use ask::Examiner;

use crate::chat::{
    ChatSession, ChatWorkload, Prompts, SHAPES, ThinkingChoice, ThinkingMode, TriedSwitch,
};
use crate::client_check::{CheckLoad, check_client};
use crate::record::{Reasoning, Record};
use crate::runs::{BenchError, Step};
use crate::session::RunSize;
use crate::timeline::RequestFault;
use crate::workbench::Workbench;

/// The seed of the items where none is given: the same items each time, so that runs can be compared.
pub const EVAL_SEED: u64 = 1;
/// The highest temperature.
pub const TEMPERATURE_MAX: f64 = 2.0;
/// Default number of items of each task.
pub const EVAL_ITEMS: usize = 10;
/// Tokens for thinking, on top of what an item needs, where no budget is given.
pub const THINKING_TOKENS: u32 = 8_192;
/// A server that fails an item this many times in a row has failed.
const ATTEMPTS_MAX: u32 = 3;
/// A run ends with this many failed items in a row.
const FAILED_ITEMS_MAX: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// A limit on the rate says nothing about the model: the pause doubles, and together they take two minutes.
const LIMITED_ATTEMPTS_MAX: u32 = 8;
const LIMITED_PAUSE_MAX: Duration = Duration::from_secs(60);
/// Assumed characters of a token, to request enough context from servers that need it with each request.
const CHARS_PER_TOKEN: usize = 3;

/// Items, and how they are put to the model.
#[derive(Clone, Debug)]
pub struct EvalWorkload {
    pub items: Arc<ItemSet>,
    pub thinking: ThinkingChoice,
    /// Maximum tokens of an answer, thinking included. None: what the item needs, and room for thinking.
    pub budgets: Vec<Option<u32>>,
    /// Each is an arm of its own.
    pub temperatures: Vec<f64>,
    pub form: PromptForm,
    /// Whether items with a JSON schema are sent with it.
    pub enforces_schemas: bool,
    /// The folder of the records. Answers are kept here from the first one on, so that a run can be resumed.
    pub folder: PathBuf,
    /// Grades that a person corrected; they replace the checker's for the same answer.
    pub hand_grades: Vec<HandGrade>,
    /// Bounds of the uses in the report.
    pub bounds: UseBounds,
    /// The cell of a plan, so that no other cell takes its answers. None: no plan asks.
    pub cell: Option<String>,
    /// Only this many items are asked, and then no record is stored: a later measurement goes on. None: all.
    pub until: Option<usize>,
    /// Runs the code of answers; without it, items with code cannot be used.
    pub sandbox: Option<Arc<dyn RunCode>>,
}

/// How an item is put to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptForm {
    Chat,
    /// As a text that the model goes on with, for base models without a chat template.
    Completion,
    /// Each option of a choice as the end of a text, of which the server reports the log-probability.
    ScoredOptions,
}

/// One configuration that answers all items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EvalArm {
    pub(crate) thinking: ThinkingMode,
    pub(crate) budget: Option<u32>,
    pub(crate) temperature: f64,
}

impl EvalArm {
    fn name(self) -> String {
        let thinking = match self.thinking {
            ThinkingMode::AsIs { thinks: false } => "",
            ThinkingMode::AsIs { thinks: true } => "thinking",
            ThinkingMode::Off(_) => "no thinking",
            ThinkingMode::CannotDisable => "thinking that cannot be turned off",
        };
        let budget = self.budget.map_or(String::new(), |tokens| format!("{tokens} tokens"));
        let temperature = match self.temperature == 0.0 {
            true => String::new(),
            false => format!("temperature {}", self.temperature),
        };
        let words = [thinking.to_owned(), budget, temperature];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// A text that no other arm has. Arms at temperature 0 keep the one of versions in which it was not part of an arm, so
    /// that the marks of their prompts stay the same.
    fn key(self) -> String {
        let EvalArm { thinking, budget, temperature } = self;
        let warm = if temperature == 0.0 { String::new() } else { format!(" {temperature}") };
        format!("EvalArm {{ thinking: {thinking:?}, budget: {budget:?} }}{warm}")
    }

    fn thinks(self) -> bool {
        matches!(self.thinking, ThinkingMode::AsIs { thinks: true } | ThinkingMode::CannotDisable)
    }

    /// Maximum tokens of an answer to an item that needs `said` visible ones.
    fn tokens_max(self, said: u32) -> u32 {
        let room = if self.thinks() { THINKING_TOKENS } else { 0 };
        self.budget.unwrap_or(said.saturating_add(room))
    }
}

impl EvalWorkload {
    /// These items with the model's own thinking and no budget, at temperature 0.
    pub fn new(items: Arc<ItemSet>) -> EvalWorkload {
        EvalWorkload {
            items,
            thinking: ThinkingChoice::Auto,
            budgets: vec![None],
            temperatures: vec![0.0],
            form: PromptForm::Chat,
            enforces_schemas: false,
            folder: PathBuf::new(),
            hand_grades: Vec::new(),
            bounds: UseBounds::default(),
            cell: None,
            until: None,
            sandbox: None,
        }
    }

    /// Asks all items in each arm, and stores one record for each arm. After a stop no record is stored; the answers are
    /// kept, and the same command goes on with them.
    ///
    /// # Errors
    /// The server fails, or an answer or record cannot be stored.
    pub(crate) fn measure(&self, bench: &mut Workbench<'_>) -> Result<Vec<Record>, BenchError> {
        self.check_form()?;
        let (modes, switches) = self.thinking_modes(bench)?;
        let mut arms: Vec<(EvalArm, AnswerFile)> = Vec::new();
        for thinking in modes {
            for budget in &self.budgets {
                for temperature in &self.temperatures {
                    let (budget, temperature) = (*budget, *temperature);
                    let arm = EvalArm { thinking, budget, temperature };
                    // Two equal arms would write to one file.
                    if !arms.iter().any(|(known, _)| *known == arm) {
                        arms.push((arm, AnswerFile::open(self, bench, arm)?));
                    }
                }
            }
        }
        let started = Timestamp::now();
        if !self.ask_all(bench, &mut arms)? {
            return Ok(Vec::new());
        }
        let pace = arms.first().and_then(|(_, file)| section::pace(file.answered()));
        let pace = pace.unwrap_or_else(|| CheckLoad::with_medians(1, 100.0, None));
        let client_check = check_client(pace, bench.stop).ok();
        let mut records = Vec::new();
        for (arm, file) in arms {
            let (client_check, switches) = (&client_check, &switches[..]);
            let measured =
                section::Measured { workload: self, arm, started, client_check, switches };
            records.extend(measured.store(bench, file)?);
        }
        Ok(records)
    }

    /// # Errors
    /// An item cannot be asked in this form, which is found before the first one is asked.
    fn check_form(&self) -> Result<(), BenchError> {
        let mut items = (0..self.items.len()).map(|number| self.items.item(number));
        let refused = match self.form {
            PromptForm::Chat => None,
            PromptForm::Completion => items
                .find(|item| !item.tools.is_empty())
                .map(|item| BenchError::ToolsNeedChat { item: item.id }),
            PromptForm::ScoredOptions => items
                .find(|item| !matches!(item.checker, Checker::Choice(_)))
                .map(|item| BenchError::NotAChoice { item: item.id }),
        };
        refused.map_or(Ok(()), Err)
    }

    /// The modes, and what each switch did that could turn thinking off. A base model does not think, and takes no chat
    /// request that could show it.
    fn thinking_modes(
        &self,
        bench: &Workbench<'_>,
    ) -> Result<(Vec<ThinkingMode>, Vec<TriedSwitch>), BenchError> {
        if self.form != PromptForm::Chat {
            return Ok((vec![ThinkingMode::AsIs { thinks: false }], Vec::new()));
        }
        let (shapes, thinking, prompts) = (vec![SHAPES[4]], self.thinking, Prompts::Cold);
        let chat = ChatWorkload { shapes, thinking, prompts };
        let size = RunSize { rounds: 1, span_s: 0.0 };
        let mut session = ChatSession::prepare(bench.asker(), &chat, size)?;
        // Each part of an evaluation prepares a session, and the last one writes the record.
        let tried = match self.until {
            Some(_) => Vec::new(),
            None => session.try_all_switches()?.to_vec(),
        };
        Ok((session.thinking_modes(), tried))
    }

    /// Whether all items were answered; otherwise the user stopped, or only a part was to be asked. Says which answers are
    /// kept if the user or a failure of the server ended it.
    fn ask_all(
        &self,
        bench: &mut Workbench<'_>,
        arms: &mut [(EvalArm, AnswerFile)],
    ) -> Result<bool, BenchError> {
        let asked = self.ask_items(bench, arms);
        let was_ended = match &asked {
            Ok(is_whole) => !is_whole && bench.stop.load(Ordering::Relaxed),
            Err(error) => matches!(error, BenchError::Fault(_)),
        };
        let kept: usize = arms.iter().map(|(_, file)| file.answered().len()).sum();
        if was_ended && kept > 0 {
            let all = self.items.len() * arms.len();
            let why = format!("{kept} of {all} answers are kept: the same command goes on");
            (bench.tell)("eval", Step::LeftOut { why: &why });
        }
        asked
    }

    fn ask_items(
        &self,
        bench: &mut Workbench<'_>,
        arms: &mut [(EvalArm, AnswerFile)],
    ) -> Result<bool, BenchError> {
        let examiner = Examiner::new(self, bench.asker());
        let (count, width) = (self.items.len(), arms.len());
        let kept: usize = arms.iter().map(|(_, file)| file.answered().len()).sum();
        if kept > 0 {
            let why = format!("goes on after {kept} of {} answers", count * width);
            (bench.tell)("eval", Step::LeftOut { why: &why });
        }
        let (began, mut asked) = (Instant::now(), 0_u32);
        // Failed items are kept when a later answer shows that the server lives.
        let mut failed: Vec<(usize, AnsweredItem)> = Vec::new();
        let mut last_fault = RequestFault::Stopped;
        let until = self.until.map_or(count, |until| until.min(count));
        for number in 0..until {
            let item = self.items.item(number);
            for turn in 0..width {
                // Each arm is the first one to answer equally often.
                let at = (turn + number) % width;
                let (arm, file) = &mut arms[at];
                if file.has(&item.id) {
                    continue;
                }
                let (sent, mut waited) = (Instant::now(), Duration::ZERO);
                let answered = match answer(&examiner, &item, *arm, &mut waited) {
                    Ok(Some(answered)) => answered,
                    Ok(None) => return Ok(false),
                    Err(BenchError::Fault(fault))
                        if failed.len() + 1 < FAILED_ITEMS_MAX && !is_limited(&fault) =>
                    {
                        let took = sent.elapsed().saturating_sub(waited);
                        failed.push((at, examiner.failed(&item, *arm, (&fault, took))));
                        last_fault = fault;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                asked += 1;
                let done: usize = number * width + turn + 1;
                let left = began.elapsed() / asked
                    * u32::try_from(count * width - done).unwrap_or(u32::MAX);
                let (verdict, total_ms) = (answered.verdict.name(), answered.total_ms);
                file.add(answered)?;
                let (id, all) = (&item.id, count * width);
                let step = Step::Answered { id, verdict, total_ms, done, all, left };
                (bench.tell)(&arm.name(), step);
                for (at, answered) in failed.drain(..) {
                    arms[at].1.add(answered)?;
                }
            }
        }
        match failed.is_empty() || examiner.server_lives() {
            true => failed.into_iter().try_for_each(|(at, one)| arms[at].1.add(one))?,
            false => return Err(BenchError::Fault(last_fault)),
        }
        Ok(until == count)
    }

    /// Limits the workload to the arm of one record.
    pub(crate) fn narrow_to(&mut self, record: &Record) {
        self.budgets = vec![record.eval.as_ref().and_then(|eval| eval.budget_tokens)];
        self.temperatures = vec![record.workload.temperature.unwrap_or_default()];
        self.thinking = match record.workload.reasoning {
            Some(Reasoning::Disabled | Reasoning::CannotDisable) => ThinkingChoice::Off,
            Some(Reasoning::Enabled) | None => ThinkingChoice::On,
        };
    }

    /// A context that is enough for each item, for servers that need one with each request.
    fn context_tokens(&self) -> u32 {
        let needs = |number: usize| {
            let item = self.items.item(number);
            let chars = item.prompt.len() + item.system.as_ref().map_or(0, String::len);
            let prompt = u32::try_from(chars / CHARS_PER_TOKEN).unwrap_or(u32::MAX);
            let most = self
                .budgets
                .iter()
                .map(|budget| budget.unwrap_or(item.max_tokens.saturating_add(THINKING_TOKENS)));
            crate::chat::context_needed(prompt, most.max().unwrap_or(item.max_tokens))
        };
        (0..self.items.len()).map(needs).max().unwrap_or_default()
    }
}

/// The answer to one item; None if the user stopped. A server that fails may be starting again, so it is asked again.
/// `waited` gets the time of the pauses, which is not the model's.
fn answer(
    examiner: &Examiner<'_, '_>,
    item: &hob_eval::Item,
    arm: EvalArm,
    waited: &mut Duration,
) -> Result<Option<AnsweredItem>, BenchError> {
    let (mut limited, mut failed) = (0, 0);
    loop {
        match examiner.ask(item, arm) {
            Ok(answered) => return Ok(Some(answered)),
            Err(_) if examiner.is_stopped() => return Ok(None),
            Err(error @ BenchError::NoLogprobs { .. }) => return Err(error),
            Err(error) => match pause_after(&error, &mut limited, &mut failed) {
                Some(pause) => *waited += examiner.wait(pause),
                None => return Err(error),
            },
        }
    }
}

/// Counts an attempt at an item, and returns the pause after it. None: the item is not asked again. A limit on the rate is
/// no failure, so a failure after it is the first one.
fn pause_after(error: &BenchError, limited: &mut u32, failed: &mut u32) -> Option<Duration> {
    if matches!(error, BenchError::Fault(fault) if is_limited(fault)) {
        *limited += 1;
        let pause = PAUSE * 2_u32.pow(*limited - 1);
        (*limited < LIMITED_ATTEMPTS_MAX).then_some(pause.min(LIMITED_PAUSE_MAX))
    } else {
        *failed += 1;
        (*failed < ATTEMPTS_MAX).then_some(PAUSE)
    }
}

/// Whether the server limits the rate of requests.
fn is_limited(fault: &RequestFault) -> bool {
    matches!(fault, RequestFault::Refused { status: 429, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_on_the_rate_is_waited_for_and_other_failures_are_asked_three_times() {
        let (mut limited, mut failed) = (0, 0);
        let mut pauses = |status: u16| {
            let message = String::new();
            let error = BenchError::Fault(RequestFault::Refused { status, message });
            let next = || pause_after(&error, &mut limited, &mut failed);
            let pauses: Vec<Duration> = std::iter::from_fn(next).collect();
            pauses.iter().map(Duration::as_secs).collect::<Vec<u64>>()
        };
        assert_eq!(pauses(429), [1, 2, 4, 8, 16, 32, 60]);
        assert_eq!(pauses(500), [1, 1], "a limit was no failure");
    }
}
