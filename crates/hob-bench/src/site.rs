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
    let (models, rigs) =
        (grouped(&rows, |row| row.model_slug.clone()), grouped(&rows, |row| row.rig_slug.clone()));
    let (rows, cells) = (&rows, &cells);
    // The largest first, so that none is waited for at the end.
    let mut pages: Vec<Page<'_>> = vec![
        Box::new(move || page("compare.html", compare::page(material, rows, cells))),
        Box::new(move || page("index.html", index::page(material, rows))),
        Box::new(move || page("speech.html", speech::page(material, rows))),
        Box::new(move || page("rigs.html", rig::list(material, rows))),
        Box::new(move || page("queued.html", queued::page(material))),
        Box::new(move || page("method.html", method::page(material))),
    ];
    for (slug, rows) in &models {
        let path = format!("model/{slug}.html");
        pages.push(Box::new(move || page(&path, model::page(material, rows))));
    }
    for (slug, rows) in &rigs {
        let path = format!("rig/{slug}.html");
        pages.push(Box::new(move || page(&path, rig::page(material, rows))));
    }
    for row in rows {
        let run = move || page(&row.run_path(), run::page(material, row, cells.before(row)));
        pages.push(Box::new(run));
    }
    let style = PageFile { path: "site.css".to_owned(), bytes: layout::style().into_bytes() };
    std::iter::once(style).chain(on_all(&pages, |make| make())).collect()
}

/// One that is still to be made.
type Page<'a> = Box<dyn Fn() -> PageFile + Send + Sync + 'a>;

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
