//! The answers of one arm: a file with one line of JSON for each item, written while the evaluation runs.
//! A run that was cut off reads it and goes on. At the end the file moves to the record.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use fs_err as fs;
use hob_eval::{Answer, Checker, GRADING_VERSION, Verdict};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::line_file::LineFile;
use super::request::without_mark;
use super::{EvalArm, EvalWorkload};
use crate::record::{RecordError, SampleFile, pack_lines, read_bytes, sha256_hex, unpack_lines};
use crate::terms::Metric;
use crate::workbench::Workbench;

/// The folder of unfinished answers, in the folder of the records.
const FOLDER: &str = ".eval";
/// Maximum bytes of a file of answers.
const BYTES_MAX: u64 = 2 << 30;

/// One item with its answer, verdict and times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnsweredItem {
    pub id: String,
    pub family: String,
    pub size: String,
    /// When the item was asked.
    pub started: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    pub prompt: String,
    /// The visible answer.
    pub answer: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thought: String,
    pub score: f64,
    pub verdict: Verdict,
    pub why: String,
    pub graded_by: GradedBy,
    /// The program that graded it, also where a person corrected the grade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grader: Option<Grader>,
    /// Choices by log-probability: whether the expected option is the likeliest by its length, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_correct_by_length: Option<bool>,
    /// Whether answer or thought is kept without its middle. The whole answer was graded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shortened: bool,
    /// Whether the visible text contains a thought.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaked_thought: bool,
    /// Why the answer ended, as the server names it.
    pub finish: Option<String>,
    /// From the request's last byte to the answer's last byte.
    pub total_ms: f64,
    pub said_words: u32,
    /// Identifies the answer for grades that a person corrected.
    pub answer_sha256: String,
    pub figures: BTreeMap<Metric, f64>,
}

/// A checker: what it is, what it expects, and the version of its program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grader {
    /// Its kind, such as `number`.
    pub checker: String,
    /// Hash of the checker with what it expects.
    pub checker_sha256: String,
    /// Version of hob's checkers.
    pub version: u32,
}

impl Grader {
    pub(super) fn of(checker: &Checker) -> Grader {
        // Serialising a checker cannot fail: its maps have text as keys.
        let text = serde_json::to_string(checker).unwrap_or_default();
        let (kind, checker_sha256) = (checker.kind().to_owned(), sha256_hex(text.as_bytes()));
        Grader { checker: kind, checker_sha256, version: GRADING_VERSION }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradedBy {
    Program,
    /// A person corrected the grade.
    Hand,
}

/// A grade that a person gave to one answer of one item. It holds wherever the same question gets the same answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandGrade {
    pub item: String,
    /// Another seed, or an edited file, has other questions under the same ids. None: an older hob wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_sha256: Option<String>,
    pub answer_sha256: String,
    pub verdict: Verdict,
    /// 0 to 1.
    pub score: f64,
    pub why: String,
}

/// The answer's text and calls, as a hash.
pub(super) fn answer_sha256(answer: &Answer) -> String {
    let calls = answer.tool_calls.iter().map(|call| format!("\0{}\0{}", call.name, call.arguments));
    sha256_hex([answer.content.clone()].into_iter().chain(calls).collect::<String>().as_bytes())
}

impl AnsweredItem {
    /// With the grade that a person gave to this answer, if there is one. The last one counts.
    pub fn with_hand_grades(self, grades: &[HandGrade]) -> AnsweredItem {
        let is_of_this = |grade: &&HandGrade| {
            let is_same = grade.item == self.id && grade.answer_sha256 == self.answer_sha256;
            let is_asked_here = |question: &String| *question == self.question_sha256();
            is_same && grade.question_sha256.as_ref().is_none_or(is_asked_here)
        };
        match grades.iter().rev().find(is_of_this).cloned() {
            Some(HandGrade { verdict, score, why, .. }) => {
                AnsweredItem { verdict, score, why, graded_by: GradedBy::Hand, ..self }
            }
            None => self,
        }
    }

    /// Hash of the prompt without its mark, so that it is the same in each arm.
    pub fn question_sha256(&self) -> String {
        sha256_hex(without_mark(&self.prompt).as_bytes())
    }

    /// Tokens of the prompt, and how many of them the server had cached. `None`: it does not report both.
    pub(super) fn prompt_and_cached(&self) -> Option<(u32, u32)> {
        let of = |metric| self.figures.get(&metric).map(|count| *count as u32);
        Some((of(Metric::PromptTokens)?, of(Metric::CachedTokens)?))
    }

    /// What the statistics need; texts are dropped, so that memory does not grow with long answers.
    fn without_texts(&self) -> AnsweredItem {
        let (prompt, answer, thought) = (String::new(), String::new(), String::new());
        let (system, tool_calls, why) = (None, Vec::new(), String::new());
        let grader = None;
        AnsweredItem { system, prompt, answer, tool_calls, thought, why, grader, ..self.clone() }
    }
}

/// The file of one arm.
#[derive(Debug)]
pub(super) struct AnswerFile {
    lines: LineFile,
    ids: BTreeSet<String>,
    answered: Vec<AnsweredItem>,
}

impl AnswerFile {
    /// Opens the file of an earlier run with the same server, model, items, settings and cell, or a new one.
    pub(super) fn open(
        workload: &EvalWorkload,
        bench: &Workbench<'_>,
        arm: EvalArm,
    ) -> Result<AnswerFile, RecordError> {
        let said = format!(
            "{} {} {} {} {} {} {} {:?}",
            server_identity(bench),
            bench.target.model,
            workload.items.sha256(),
            bench.context.seed,
            arm.temperature,
            workload.enforces_schemas,
            arm.key(),
            workload.cell,
        );
        // Answers that another version graded are asked again: a record has grades of one version.
        let said = format!("{said} {:?} {GRADING_VERSION}", workload.form);
        let folder = workload.folder.join(FOLDER);
        let path = folder.join(format!("{}.jsonl", &sha256_hex(said.as_bytes())[..16]));
        let mut answered: Vec<AnsweredItem> = Vec::new();
        let lines = LineFile::open(path, |line: AnsweredItem| {
            answered.push(line.with_hand_grades(&workload.hand_grades).without_texts());
        })?;
        let ids = answered.iter().map(|answered| answered.id.clone()).collect();
        Ok(AnswerFile { lines, ids, answered })
    }

    fn failed(&self, what: &'static str, error: std::io::Error) -> RecordError {
        RecordError::io(what, &self.lines.path().display().to_string(), error)
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    pub(super) fn answered(&self) -> &[AnsweredItem] {
        &self.answered
    }

    /// Appends an answer. It is on the disk when this returns.
    pub(super) fn add(&mut self, answered: AnsweredItem) -> Result<(), RecordError> {
        self.lines.add(&answered)?;
        self.ids.insert(answered.id.clone());
        self.answered.push(answered.without_texts());
        Ok(())
    }

    /// The answers of the file, packed, with their entry for the record. The unpacked file is removed with
    /// [`AnswerFile::remove`] once the record is stored.
    pub(super) fn packed(&self, name: &str) -> Result<(Vec<u8>, SampleFile), RecordError> {
        let file = fs::File::open(self.lines.path()).map_err(|error| self.failed("read", error))?;
        // The items of all other lines were asked again, for example of those that another version wrote.
        let is_answer = |line: &io::Result<String>| match line {
            Ok(line) => serde_json::from_str::<AnsweredItem>(line).is_ok(),
            Err(error) => error.kind() != io::ErrorKind::InvalidData,
        };
        pack_lines(name, BufReader::new(file).lines().filter(is_answer))
    }

    pub(super) fn remove(self) -> Result<(), RecordError> {
        fs::remove_file(self.lines.path()).map_err(|error| self.failed("remove", error))
    }
}

/// What tells one server from another, and its weights.
fn server_identity(bench: &Workbench<'_>) -> String {
    let (engine, model) = (&bench.context.engine, &bench.context.model);
    let facts = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?}",
        engine.name, engine.version, engine.backend, engine.params.ctx, model.sha256, model.quant
    );
    let address = bench.target.endpoint.authority();
    match &bench.started {
        None => format!("{address} {facts}"),
        Some(started) => {
            // A hob that hob starts has another port each time.
            let command = started.launch.command.replace(&address, "");
            format!("{command} {:?} {facts}", started.places)
        }
    }
}

/// Reads the answers of a stored record. `folder` is the folder of the record's own file.
///
/// # Errors
/// The file cannot be read or is not in the folder, its hash is another one, or a line is not an answer.
pub fn read_answers(folder: &Path, file: &SampleFile) -> Result<Vec<AnsweredItem>, RecordError> {
    let path = file.path_in(folder).ok_or_else(|| RecordError::Damaged {
        file: file.file.clone(),
        line: 1,
        reason: "it is not in the folder of its record".to_owned(),
    })?;
    let shown = path.display().to_string();
    let bytes =
        read_bytes(&path, BYTES_MAX).map_err(|error| RecordError::io("read", &shown, error))?;
    unpack_lines::<AnsweredItem>(file, &shown, &bytes, BYTES_MAX)?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: usize = 500;
    /// Most bytes of an answer that is held, as JSON: names, verdict and figures.
    const HELD_BYTES_MAX: usize = 1_500;

    /// An answer in which each text is long.
    fn answer(number: usize, text: &str) -> AnsweredItem {
        let grader = Grader {
            checker: text.to_owned(),
            checker_sha256: "0".repeat(64),
            version: GRADING_VERSION,
        };
        AnsweredItem {
            id: format!("logic-grid/3x3/{number}"),
            family: "logic-grid".to_owned(),
            size: "3x3".to_owned(),
            started: Timestamp::UNIX_EPOCH,
            system: Some(text.to_owned()),
            prompt: text.to_owned(),
            answer: text.to_owned(),
            tool_calls: vec![text.to_owned()],
            thought: text.to_owned(),
            score: 0.5,
            verdict: Verdict::Wrong,
            why: text.to_owned(),
            graded_by: GradedBy::Program,
            grader: Some(grader),
            is_correct_by_length: None,
            is_shortened: false,
            leaked_thought: false,
            finish: Some("stop".to_owned()),
            total_ms: 1_234.5,
            said_words: 100,
            answer_sha256: "0".repeat(64),
            figures: Metric::ALL.iter().map(|metric| (*metric, 1.0)).take(16).collect(),
        }
    }

    #[test]
    fn no_text_of_an_answer_stays_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("answers.jsonl");
        let lines = LineFile::open(path.clone(), |_: AnsweredItem| ()).expect("a file");
        let mut file = AnswerFile { lines, ids: BTreeSet::new(), answered: Vec::new() };
        let text = "a long text ".repeat(200);
        for number in 0..ITEMS {
            file.add(answer(number, &text)).expect("added");
        }
        let bytes = |held: &AnsweredItem| serde_json::to_string(held).expect("JSON").len();
        let held: usize = file.answered().iter().map(bytes).sum();
        assert!(held < ITEMS * HELD_BYTES_MAX, "{held} bytes of {ITEMS} answers are held");
        let written = fs::read(&path).expect("the answers").len();
        assert!(written > ITEMS * 7 * text.len(), "the file has all texts: {written} bytes");
        let (bytes, packed) = file.packed("answers.jsonl.gz").expect("packed");
        fs::write(folder.path().join(&packed.file), bytes).expect("written");
        let read = read_answers(folder.path(), &packed).expect("read");
        assert_eq!(read.len(), ITEMS);
        assert_eq!(read[ITEMS - 1], answer(ITEMS - 1, &text), "whole, with its texts");
    }

    #[test]
    fn only_answers_reach_the_record_and_only_from_its_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("answers.jsonl");
        let kept = serde_json::to_string(&answer(0, "text")).expect("JSON");
        let lines = [&b"{\"id\":\"of another version\"}\n\xFF\n"[..], kept.as_bytes(), b"\n"];
        fs::write(&path, lines.concat()).expect("written");
        let mut answered = Vec::new();
        let lines = LineFile::open(path, |line: AnsweredItem| answered.push(line)).expect("a file");
        let file = AnswerFile { lines, ids: BTreeSet::new(), answered };
        let (bytes, packed) = file.packed("answers.jsonl.gz").expect("packed");
        let stored = folder.path().join(&packed.file);
        fs::write(&stored, bytes).expect("written");
        assert_eq!(packed.n, 1);
        assert_eq!(read_answers(folder.path(), &packed).expect("read"), [answer(0, "text")]);
        let elsewhere = SampleFile { file: stored.display().to_string(), ..packed };
        let refused = read_answers(Path::new("records"), &elsewhere).expect_err("another folder");
        assert!(refused.to_string().contains("not in the folder of its record"), "{refused}");
    }
}
