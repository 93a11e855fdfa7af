//! What plans name and nobody has measured yet: a cell is here until a valid record carries its key.
//! On which engine it will be measured is not known before, so any record of its point counts.

use maud::{Markup, html};

use super::Material;
use super::layout::{Place, shell};
use crate::plan::{Cell, CellKey, Plan, cells, done};
use crate::record::Record;

/// What is left of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    pub plan: String,
    /// Such as what is waited for.
    pub note: Option<String>,
    /// Cells of the whole plan.
    pub all: usize,
    pub left: Vec<Cell>,
}

impl Queued {
    pub fn of(plan: &Plan, records: &[Record]) -> Queued {
        let known = done(records);
        let is_done = |cell: &Cell| {
            let point = CellKey::point(cell);
            known.iter().any(|key| CellKey::is_of_point(key, &point))
        };
        let cells = cells(plan);
        let all = cells.len();
        let left = cells.into_iter().filter(|cell| !is_done(cell)).collect();
        Queued { plan: plan.name.clone(), note: plan.note.clone(), all, left }
    }
}

pub(super) fn page(material: &Material) -> Markup {
    let body = html! {
        div.title { h1 { "Queued" } p.sub { "What plans name and nobody has measured yet." } }
        @if material.queued.is_empty() {
            p { "There is no plan in " code { "bench/plans" } ". " code { "hob bench plan --help" } " shows one." }
        }
        @for queued in &material.queued { section {
            h2 { (queued.plan) }
            @if let Some(note) = &queued.note { p { (note) } }
            p.sub { (queued.all - queued.left.len()) " of " (queued.all) " cells are measured." }
            @if !queued.left.is_empty() { (table(&queued.left, &queued.plan)) }
        } }
    };
    shell(material, &Place { title: "Queued", up: "", here: "queued.html" }, &body)
}

fn table(cells: &[Cell], plan: &str) -> Markup {
    let said = |value: &Option<String>| value.clone().unwrap_or_default();
    html! {
        div.wide role="region" aria-label={ "Cells of " (plan) } tabindex="0" { table {
            thead { tr {
                @for head in ["target", "kind", "model", "quant", "backend", "shape", "context", "users", "labels"] { th scope="col" { (head) } }
            } }
            tbody { @for cell in cells { tr {
                th scope="row" { (cell.target) } td { (cell.kind.name()) } td { (said(&cell.model)) }
                td { (said(&cell.quant)) } td { (said(&cell.backend)) } td { (said(&cell.shape)) }
                td { @if let Some(tokens) = cell.context { (tokens) } }
                td { @if let Some(users) = cell.concurrency { (users) } }
                td { @for (name, value) in &cell.labels { span.beside { (name) " " (value) } " " } }
            } } }
        } }
    }
}
