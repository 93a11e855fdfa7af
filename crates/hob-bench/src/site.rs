//! The page of everything that was measured: static files that work from disk, without a network and without a script.
//! Built from records and, where there is one, what the ledger says that real requests waited. Nothing else is known.

mod cells;
mod chart;
mod charts_of;
mod columns;
mod compare;
mod gather;
mod history;
mod index;
mod layout;
mod method;
mod model;
mod production;
mod queued;
mod rig;
mod rows;
mod run;
mod run_facts;
mod speech;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

pub use gather::Others;
use history::Cells;
use jiff::Timestamp;
pub use production::{GAP_NEEDS, Production, Served};
pub use queued::Queued;
pub use rows::hardware;
pub use write::write;

use crate::cores::on_all;
use crate::record::{RawSample, Record};
use rows::{Row, rows};

/// Everything that a page is made of.
#[derive(Debug)]
pub struct Material {
    pub records: Vec<Record>,
    /// Of those records that have some and whose file was there, by id.
    pub samples: BTreeMap<uuid::Uuid, Vec<RawSample>>,
    pub production: Production,
    /// What plans still have to measure.
    pub queued: Vec<Queued>,
    /// Why files were left out.
    pub skipped: Vec<String>,
    /// When the page is built; none leaves the day out.
    pub built: Option<Timestamp>,
}

/// A file of the page, by its place in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFile {
    pub path: String,
    pub bytes: Vec<u8>,
}

/// The inline scripts, hashed, as a Content-Security-Policy names them.
pub fn script_hashes() -> Vec<String> {
    [layout::SCRIPT, compare::SCRIPT].map(layout::script_hash).to_vec()
}

/// All files. What is the same in the material is the same in the files, byte by byte.
pub fn build(material: &Material) -> Vec<PageFile> {
    let rows = rows(material);
    let cells = Cells::of(&rows);
    let mut files = vec![
        PageFile { path: "site.css".to_owned(), bytes: layout::style().into_bytes() },
        page("index.html", index::page(material, &rows)),
        page("speech.html", speech::page(material, &rows)),
        page("rigs.html", rig::list(material, &rows)),
        page("compare.html", compare::page(material, &rows, &cells)),
        page("queued.html", queued::page(material)),
        page("method.html", method::page(material)),
    ];
    files.extend(
        grouped(&rows, |row| row.model_slug.clone())
            .into_iter()
            .map(|(slug, rows)| page(&format!("model/{slug}.html"), model::page(material, &rows))),
    );
    files.extend(
        grouped(&rows, |row| row.rig_slug.clone())
            .into_iter()
            .map(|(slug, rows)| page(&format!("rig/{slug}.html"), rig::page(material, &rows))),
    );
    let run = |row: &Row<'_>| page(&row.run_path(), run::page(material, row, cells.before(row)));
    files.extend(on_all(&rows, run));
    files
}

fn page(path: &str, markup: maud::Markup) -> PageFile {
    PageFile { path: path.to_owned(), bytes: markup.into_string().into_bytes() }
}

/// Rows that share a name, by that name.
fn grouped<'a, 'r>(
    rows: &'r [Row<'a>],
    name: impl Fn(&Row<'a>) -> String,
) -> BTreeMap<String, Vec<&'r Row<'a>>> {
    let mut groups: BTreeMap<String, Vec<&Row<'a>>> = BTreeMap::new();
    for row in rows {
        groups.entry(name(row)).or_default().push(row);
    }
    groups
}
