//! The page of benchmarks: static files that work from disk, without a network and without a build step.
//! One script draws every view from `records.js`. Rust adds only what the records do not say themselves.

mod cells;
mod comparison;
mod data;
mod evals;
mod gather;
mod production;
mod queued;
mod rules;
mod runs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use fs_err as fs;
pub use gather::{PublishedRuns, without_folder};
use jiff::Timestamp;
pub use production::{GAP_NEEDS, Production, ServedModelFigures};
pub use queued::Queued;
use rayon::prelude::*;

use crate::eval::AnsweredItem;
use crate::record::{RawSample, Record};

/// Everything that the page shows.
#[derive(Debug, Default)]
pub struct Material {
    pub records: Vec<Record>,
    /// Raw samples by record id, for records whose sample file was found.
    pub samples: BTreeMap<uuid::Uuid, Vec<RawSample>>,
    /// Answers of evaluations by record id, where their file was found.
    pub answers: BTreeMap<uuid::Uuid, Vec<AnsweredItem>>,
    pub production: Production,
    /// Cells of plans that are not measured yet.
    pub queued: Vec<Queued>,
    /// Files that were left out, each with the reason.
    pub skipped: Vec<String>,
    /// What the page calls the folder of the own runs. No path: the page may be shown to others.
    pub folder: Option<&'static str>,
    /// When the page is built. Without it, the page shows no build day and no record is too old.
    pub built: Option<Timestamp>,
}

/// A file of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFile {
    /// Relative to the folder of the page.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// Every view: its file, and the name that its title shows.
const VIEWS: [(&str, &str); 10] = [
    ("index", "Models"),
    ("model", "Model"),
    ("speech", "Speech"),
    ("eval", "Eval"),
    ("machines", "Machines"),
    ("machine", "Machine"),
    ("compare", "Compare"),
    ("queued", "Queued"),
    ("method", "Method"),
    ("run", "Run"),
];
const HTML: &str = include_str!("site/browser/page.html");
const STYLE: &str = include_str!("site/browser/site.css");
/// One classic script: browsers load no modules from disk.
const SCRIPT: &str = concat!(
    include_str!("site/browser/elements.js"),
    include_str!("site/browser/runs.js"),
    include_str!("site/browser/tables.js"),
    include_str!("site/browser/charts.js"),
    include_str!("site/browser/models-table.js"),
    include_str!("site/browser/model.js"),
    include_str!("site/browser/run-page.js"),
    include_str!("site/browser/speech.js"),
    include_str!("site/browser/eval.js"),
    include_str!("site/browser/compare.js"),
    include_str!("site/browser/start.js"),
);

/// Builds all files. The same material gives the same bytes.
pub fn build(material: &Material) -> Vec<PageFile> {
    let runs = runs::runs(material);
    let mut files = vec![
        file("site.css", STYLE.to_owned()),
        file("site.js", SCRIPT.to_owned()),
        file("records.js", data::records_js(material, &runs)),
    ];
    let view = |(name, title): (&str, &str)| {
        let html = HTML.replace("{{view}}", name).replace("{{title}}", title);
        file(&format!("{name}.html"), html)
    };
    files.extend(VIEWS.map(view));
    let run =
        |record: &Record| file(&format!("run/{}.js", record.id), data::run_js(material, record));
    // A thread takes one record at a time, because some take a hundred times as long as others.
    files.par_extend(material.records.par_iter().with_max_len(1).map(run));
    files
}

/// Writes the files of a page into a folder. It replaces files of the same name and keeps all others. Nothing is flushed to
/// the disk: a page can be built again.
///
/// # Errors
/// A folder or file cannot be written. The error names it.
pub fn write(folder: &Path, files: &[PageFile]) -> io::Result<()> {
    fs::create_dir_all(folder.join("run"))?;
    files.iter().try_for_each(|file| fs::write(folder.join(&file.path), &file.bytes))
}

fn file(path: &str, text: String) -> PageFile {
    PageFile { path: path.to_owned(), bytes: text.into_bytes() }
}
