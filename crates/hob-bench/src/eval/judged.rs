//! Compares the answers of two arms by a judge model: each pair of answers in both orders, at temperature 0.
//! A verdict is on the disk before the next question is asked, so that a run that was cut off goes on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_eval::judge::{
    JudgeTally, JudgeVerdict, OpenQuestion, is_too_long_to_judge, judge_prompt, visible_text,
};
use hob_eval::{Checker, Item};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::answer_file::AnsweredItem;
use super::ask::Examiner;
use super::item_set::ItemSet;
use super::line_file::LineFile;
use super::request::without_mark;
use super::{EVAL_SEED, EvalArm, EvalWorkload, answer};
use crate::chat::ThinkingMode;
use crate::record::{RecordError, sha256_hex};
use crate::runs::{BenchError, Step};
use crate::server::StartedServer;
use crate::target::Target;
use crate::workbench::Asker;

const KEY_CHARS: usize = 12;

/// One question with the visible answers of A and of B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedItem {
    pub id: String,
    question: String,
    answers: [String; 2],
}

/// What two arms, A and B, answered to the same questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparedArms {
    /// Items for the judge.
    pub items: Vec<ComparedItem>,
    /// Ids of items with equal answers. These are ties without a judge.
    pub identical: Vec<String>,
    /// Shared items to which A, and to which B, has no visible answer.
    pub without_answer: [usize; 2],
    /// Items that only one arm has, or that are another question there.
    pub unpaired: usize,
    /// Shared items beyond the limit.
    pub beyond_limit: usize,
    /// Answers of which the judge reads only the beginning.
    pub shortened: usize,
}

/// One verdict, as its file keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedLine {
    /// The item.
    pub id: String,
    /// The judge model.
    pub judged_by: String,
    /// 0: the answer of A stood first. 1: the answer of B stood first.
    pub order: usize,
    pub prompt_sha256: String,
    /// None: there was none to read.
    pub verdict: Option<JudgeVerdict>,
    /// Why there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_unread: Option<String>,
    /// The visible text of the judge.
    pub said: String,
    pub finish: Option<String>,
    pub total_ms: f64,
}

/// How the answers of two arms are judged.
#[derive(Debug)]
pub struct JudgeRun<'a> {
    pub arms: &'a ComparedArms,
    /// Most tokens of a judgement, thinking included.
    pub tokens_max: u32,
    /// The file of the verdicts; see [`verdict_file`].
    pub file: PathBuf,
}

/// The judgements on each item, A first and B first. None: not asked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedArms {
    pub judged_by: String,
    pub lines: Vec<[Option<JudgedLine>; 2]>,
}

/// A server that failed, or a file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the judge failed after {kept} of {all} verdicts: {source}")]
pub struct JudgeFailure {
    /// Verdicts that are in the file.
    pub kept: usize,
    pub all: usize,
    pub source: Box<BenchError>,
}

/// The file of one judge's verdicts on the records A and B. It lies next to the answers of A.
pub fn verdict_file(
    record_a: &Path,
    id_b: Uuid,
    judge: &Target,
    started: Option<&StartedServer>,
) -> PathBuf {
    // A server that hob starts has another port each time.
    let server = if started.is_none() { judge.endpoint.authority() } else { String::new() };
    let key = sha256_hex(format!("{id_b} {server} {}", judge.model).as_bytes());
    record_a.with_extension(format!("judged-{}.jsonl", &key[..KEY_CHARS]))
}

impl ComparedArms {
    /// Pairs the answers by item, in the order of A. Only `items_max` pairs are compared.
    pub fn of(a: &[AnsweredItem], b: &[AnsweredItem], items_max: usize) -> ComparedArms {
        let of_b: BTreeMap<&str, &AnsweredItem> =
            b.iter().map(|answered| (answered.id.as_str(), answered)).collect();
        let (mut arms, mut shared) = (ComparedArms::default(), 0);
        for one in a {
            let Some(other) = of_b.get(one.id.as_str()) else { continue };
            let question = question(one);
            if question != self::question(other) {
                continue;
            }
            shared += 1;
            let answers = [&one.answer, &other.answer].map(|answer| visible_text(answer));
            let is_silent = answers.each_ref().map(|answer| answer.is_empty());
            if is_silent.contains(&true) {
                arms.without_answer[0] += usize::from(is_silent[0]);
                arms.without_answer[1] += usize::from(is_silent[1]);
            } else if arms.items.len() + arms.identical.len() == items_max {
                arms.beyond_limit += 1;
            } else if answers[0] == answers[1] {
                arms.identical.push(one.id.clone());
            } else {
                arms.shortened += answers.iter().filter(|text| is_too_long_to_judge(text)).count();
                arms.items.push(ComparedItem { id: one.id.clone(), question, answers });
            }
        }
        arms.unpaired = a.len() + b.len() - 2 * shared;
        arms
    }
}

/// The question as a reader sees it, without the mark that keeps prompts apart.
fn question(answered: &AnsweredItem) -> String {
    let prompt = without_mark(&answered.prompt);
    answered.system.as_ref().map_or_else(|| prompt.to_owned(), |text| format!("{text}\n\n{prompt}"))
}

impl ComparedItem {
    /// The judge's prompt. In order 0 the answer of A stands first.
    fn prompt(&self, order: usize) -> String {
        let [a, b] = self.answers.each_ref().map(String::as_str);
        judge_prompt(&self.question, if order == 0 { [a, b] } else { [b, a] })
    }

    fn judge_item(&self, order: usize, tokens_max: u32) -> Item {
        Item {
            id: format!("judge/{}/{order}", self.id),
            family: "judge".to_owned(),
            size: "pair".to_owned(),
            system: None,
            prompt: self.prompt(order),
            tools: Vec::new(),
            schema: None,
            checker: Checker::Judged(OpenQuestion {}),
            max_tokens: tokens_max,
        }
    }
}

impl JudgedArms {
    /// Verdicts that were read.
    pub fn read(&self) -> usize {
        self.lines.iter().flatten().flatten().filter(|line| line.verdict.is_some()).count()
    }

    /// Verdicts that two orders of each item make.
    pub fn all(&self) -> usize {
        2 * self.lines.len()
    }

    /// Whether each item was asked in both orders.
    pub fn is_whole(&self) -> bool {
        self.lines.iter().flatten().all(Option::is_some)
    }

    /// The verdicts of one item, A first and B first.
    pub fn verdicts(lines: &[Option<JudgedLine>; 2]) -> [Option<JudgeVerdict>; 2] {
        lines.each_ref().map(|line| line.as_ref().and_then(|line| line.verdict))
    }

    /// `identical` is the number of items with equal answers.
    pub fn tally(&self, identical: usize) -> JudgeTally {
        let verdicts: Vec<_> = self.lines.iter().map(JudgedArms::verdicts).collect();
        JudgeTally::of(&verdicts, identical)
    }
}

impl JudgeRun<'_> {
    /// Asks the judge what its file does not say yet. A verdict that could not be read is asked again.
    ///
    /// # Errors
    /// The server fails, or the file cannot be written. After a stop the rest is missing, and there is no error.
    pub fn ask_all(
        &self,
        asker: &Asker<'_>,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<JudgedArms, JudgeFailure> {
        let items = &self.arms.items;
        let judged_by = asker.target.model.clone();
        let mut judged = JudgedArms { judged_by, lines: vec![[None, None]; items.len()] };
        let done = self.go_on(asker, &mut judged, tell);
        match done {
            Ok(()) => Ok(judged),
            Err(error) => {
                let (kept, all) = (judged.read(), judged.all());
                Err(JudgeFailure { kept, all, source: Box::new(error) })
            }
        }
    }

    fn go_on(
        &self,
        asker: &Asker<'_>,
        judged: &mut JudgedArms,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<(), BenchError> {
        let mut file = self.open(judged)?;
        let (all, kept) = (judged.all(), judged.read());
        if kept > 0 && kept < all {
            tell(Step::LeftOut { why: &format!("goes on after {kept} of {all} verdicts") });
        }
        let workload = self.workload();
        let examiner = Examiner::new(&workload, asker.clone());
        let thinking = ThinkingMode::AsIs { thinks: false };
        let arm = EvalArm { thinking, budget: Some(self.tokens_max), temperature: 0.0 };
        let (began, mut asked) = (Instant::now(), 0_u32);
        for (item, lines) in self.arms.items.iter().zip(&mut judged.lines) {
            for (order, place) in lines.iter_mut().enumerate() {
                if place.is_some() {
                    continue;
                }
                let asked_item = item.judge_item(order, self.tokens_max);
                let answered = answer(&examiner, &asked_item, arm, &mut Duration::default())?;
                let Some(answered) = answered else { return Ok(()) };
                let line = line(item, order, &asker.target.model, answered);
                file.add(&line)?;
                asked += 1;
                let done = kept + asked as usize;
                let left = u32::try_from(all.saturating_sub(done)).unwrap_or(u32::MAX);
                tell(Step::Answered {
                    id: &item.id,
                    verdict: line.verdict.map_or("unread", JudgeVerdict::name),
                    total_ms: line.total_ms,
                    done,
                    all,
                    left: began.elapsed() / asked * left,
                });
                *place = Some(line);
            }
        }
        Ok(())
    }

    /// Opens the file, and takes the verdicts on these very prompts from it.
    fn open(&self, judged: &mut JudgedArms) -> Result<LineFile, RecordError> {
        let mut kept: BTreeMap<String, JudgedLine> = BTreeMap::new();
        let file = LineFile::open(self.file.clone(), |line: JudgedLine| {
            if line.verdict.is_some() {
                kept.insert(line.prompt_sha256.clone(), line);
            }
        })?;
        for (item, lines) in self.arms.items.iter().zip(&mut judged.lines) {
            *lines = [0, 1].map(|order| kept.get(&prompt_sha256(item, order)).cloned());
        }
        Ok(file)
    }

    /// The judge's questions as items, for the context that they need. Both orders have the same length.
    fn workload(&self) -> EvalWorkload {
        let items = self.arms.items.iter().map(|item| item.judge_item(0, self.tokens_max));
        let set = ItemSet::new(Vec::new(), 0, EVAL_SEED, items.collect());
        let budgets = vec![Some(self.tokens_max)];
        EvalWorkload { budgets, ..EvalWorkload::new(Arc::new(set)) }
    }
}

fn prompt_sha256(item: &ComparedItem, order: usize) -> String {
    sha256_hex(item.prompt(order).as_bytes())
}

fn line(item: &ComparedItem, order: usize, judge: &str, answered: AnsweredItem) -> JudgedLine {
    let (verdict, said) = (JudgeVerdict::read(&answered.answer), visible_text(&answered.answer));
    let why_unread = match verdict {
        Some(_) => None,
        None if said.is_empty() => Some(answered.why),
        None if answered.finish.as_deref() == Some("length") => {
            Some("the limit on tokens was reached before the verdict".to_owned())
        }
        None => Some("no line of the judgement is a verdict".to_owned()),
    };
    JudgedLine {
        id: item.id.clone(),
        judged_by: judge.to_owned(),
        order,
        prompt_sha256: prompt_sha256(item, order),
        verdict,
        why_unread,
        said,
        finish: answered.finish,
        total_ms: answered.total_ms,
    }
}
