//! What an evaluation needs of this machine: files of the user's items, grades by hand, and a sandbox for code.
//! The checkers themselves are pure, in `hob-eval`.

mod run_code;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_bench::eval::{EvalWorkload, HandGrade, ItemSet};
use hob_eval::{CodeOutcome, Item, RunCode as _, own_file, report};

use crate::bounded_file;
use crate::failure::{CliResult, Failure};
use crate::printer::count_text;
use crate::settings::Environment;

/// Grades that a person gave, in the folder of the records: one line of JSON for each.
const HAND_GRADES: &str = "hand-grades.jsonl";
const HAND_GRADES_BYTES_MAX: u64 = 64 << 20;
const ITEMS_BYTES_MAX: u64 = 64 << 20;

/// Gives a workload the folder of its records, the grades by hand that are there, and a sandbox if an item needs one.
///
/// # Errors
/// The file of grades cannot be read, or code cannot be run here.
pub(crate) fn prepare(workload: &mut EvalWorkload, folder: &Path) -> CliResult<()> {
    workload.folder = folder.to_owned();
    workload.hand_grades = hand_grades(folder)?;
    if workload.items.runs_code() {
        let python = run_code::python(&Environment::read().path);
        // Code that cannot be run would count against the model.
        if let CodeOutcome::CouldNotStart { reason } = python.run("print(1)") {
            return Err(Failure::usage(format!("code of answers cannot be run here: {reason}"))
                .hint("install python3 and bubblewrap, or leave out the task `code`"));
        }
        workload.sandbox = Some(Arc::new(python));
    }
    Ok(())
}

/// The share of items on which two arms differ, as a guess before anything is known.
const DIFFERING_SHARE: f64 = 0.25;
const POWER: f64 = 0.8;
/// The difference in accuracy for which the number of items is said.
const EXAMPLE_DIFFERENCE: f64 = 0.1;

/// Sentences about items before any is asked: how large a difference they can show, and which of them are not counted like
/// the others.
pub(crate) fn item_notes(set: &ItemSet) -> Vec<String> {
    let mut sentences = Vec::new();
    let open = set.open_questions();
    if open > 0 {
        let questions = count_text(open, "open question");
        sentences.push(format!(
            "{questions}: no program grades them; compare them with `hob eval judge`"
        ));
    }
    let once = set.asked_once();
    if !once.is_empty() {
        let names = once.join(", ");
        sentences.push(format!("{names}: this is one puzzle, so it is asked once"));
    }
    if set.len() > open {
        sentences.push(expectation(set.len() - open));
    }
    sentences
}

/// The difference that this many items can show, and the number of items that a difference of 10 points needs.
fn expectation(items: usize) -> String {
    let count = u32::try_from(items).unwrap_or(u32::MAX);
    let needed = report::items_needed(DIFFERING_SHARE, EXAMPLE_DIFFERENCE, POWER);
    let points = |difference: f64| format!("{:.0} points", difference * 100.0);
    let example = format!("{} need {needed} items", points(EXAMPLE_DIFFERENCE));
    let set = count_text(items, "item");
    match report::smallest_difference(count, DIFFERING_SHARE, POWER) {
        Some(difference) => format!(
            "{set}: between two arms, a difference of {} in accuracy or more shows in 4 of 5 runs; {example}",
            points(difference)
        ),
        None => {
            let are = if items == 1 { "is" } else { "are" };
            format!("{set} {are} too few to show a difference between two arms; {example}")
        }
    }
}

/// Adds the items of these files to a workload.
///
/// # Errors
/// A file cannot be read, or a line is not an item.
pub(crate) fn add_own_items(workload: &mut EvalWorkload, files: &[String]) -> CliResult<()> {
    if !files.is_empty() {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        workload.items = Arc::new(workload.items.with_own(own_items(&files)?));
    }
    Ok(())
}

/// The items of all files; the stem of a file is the family of its items.
///
/// # Errors
/// A file cannot be read, a line is not an item, or two files have an id in common.
pub(crate) fn own_items(files: &[PathBuf]) -> CliResult<Vec<Item>> {
    let (mut items, mut ids) = (Vec::new(), BTreeSet::new());
    for file in files {
        let text = read(file, ITEMS_BYTES_MAX)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let read = own_file::parse(&stem, &text);
        let of_file = |error| Failure::usage(format!("{}: {error}", file.display()));
        let read = read.map_err(of_file)?;
        // Only one item of an id would be asked.
        if let Some(Item { id, .. }) = read.iter().find(|item| !ids.insert(item.id.clone())) {
            let sentence = format!("{}: another file has the id '{id}' too", file.display());
            return Err(Failure::usage(sentence)
                .hint("rename one of the files, or give its lines another \"family\""));
        }
        items.extend(read);
    }
    Ok(items)
}

/// # Errors
/// The file cannot be read, or a line is not a grade.
pub(crate) fn hand_grades(folder: &Path) -> CliResult<Vec<HandGrade>> {
    let file = folder.join(HAND_GRADES);
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = read(&file, HAND_GRADES_BYTES_MAX)?;
    let grade = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| Failure::usage(format!("{}:{}: {error}", file.display(), number + 1)))
    };
    text.lines().enumerate().map(grade).collect()
}

/// Appends a grade.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn keep_hand_grade(folder: &Path, grade: &HandGrade) -> CliResult<()> {
    use std::io::Write as _;
    let line = serde_json::to_string(grade);
    let line = line.map_err(Failure::internal)?;
    let failed = |error| Failure::io("the grade cannot be kept", &error);
    let mut options = fs_err::OpenOptions::new();
    let file = options.append(true).create(true).open(folder.join(HAND_GRADES));
    file.map_err(failed)?.write_all(format!("{line}\n").as_bytes()).map_err(failed)
}

fn read(file: &Path, bytes_max: u64) -> CliResult<String> {
    bounded_file::read_text(file, bytes_max).map_err(Failure::usage)
}
