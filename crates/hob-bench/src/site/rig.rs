//! One machine, and the list of all: what it is made of, and what runs on it how fast.
//! A machine is its hardware's name; two of the same are one.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::layout::{Place, shell};
use super::model::{Subject, table};
use super::rows::Row;
use super::{Material, cells, charts_of};
use crate::written::number;

pub(super) fn list(material: &Material, rows: &[Row<'_>]) -> Markup {
    let mut rigs: BTreeMap<&str, Vec<&Row<'_>>> = BTreeMap::new();
    for row in rows {
        rigs.entry(&row.hardware).or_default().push(row);
    }
    let body = html! {
        div.title { h1 { "Machines" } p.sub { "Everything that figures come from." } }
        div.wide role="region" aria-label="Machines" tabindex="0" {
            table.rigs.sortable {
                thead { tr {
                    th scope="col" { "machine" }
                    th.number scope="col" data-first="desc" { "models" } th.number scope="col" data-first="desc" { "runs" }
                    th scope="col" { "engines" } th scope="col" data-first="desc" { "last measured" }
                } }
                tbody { @for (name, rows) in &rigs { (line(name, rows)) } }
            }
        }
    };
    shell(material, &Place { title: "Machines", up: "", here: "rigs.html" }, &body)
}

fn line(name: &str, rows: &[&Row<'_>]) -> Markup {
    let count = |pick: fn(&Row<'_>) -> String| {
        let mut names: Vec<String> =
            rows.iter().map(|row| pick(row)).filter(|name| !name.is_empty()).collect();
        names.sort();
        names.dedup();
        names
    };
    let models = count(|row| row.record.model.name.clone()).len();
    let engines = count(|row| row.record.engine.name.clone().unwrap_or_default());
    let day = rows.iter().filter_map(|row| row.day()).max();
    html! {
        tr {
            td data-s=(name.to_lowercase()) { (cells::rig_link(rows[0], "")) }
            td.number data-s=(models) { (models) } td.number data-s=(rows.len()) { (rows.len()) }
            td { (engines.join(", ")) }
            td { @if let Some(day) = day { (day) } }
        }
    }
}

pub(super) fn page(material: &Material, rows: &[&Row<'_>]) -> Markup {
    let row = rows[0];
    let body = html! {
        div.title { h1 { (row.hardware) } p.sub { (about(rows)) } }
        section { h2 { "Speed" } (charts_of::speeds(rows, |row| html! {
            (cells::model_link(row, "../")) " " span.beside { (row.shape()) " " (row.quant()) @if let Some(users) = row.users().filter(|users| *users > 1) { " " (users) " users" } }
        })) }
        section { h2 { "Every run" } (table(rows, Subject::Model)) }
    };
    shell(material, &Place { title: &row.hardware, up: "../", here: "rigs.html" }, &body)
}

/// As far as any run says.
fn about(rows: &[&Row<'_>]) -> String {
    let host = |pick: fn(&crate::record::Host) -> Option<String>| {
        rows.iter().find_map(|row| pick(&row.record.host))
    };
    let parts = [
        host(|host| host.cpu.model.clone()),
        host(|host| host.cpu.cores.map(|cores| format!("{cores} cores"))),
        host(|host| host.ram_gb.map(|gb| format!("{} GB of memory", number(gb)))),
        host(|host| host.ram_mt_s.map(|mt| format!("{mt} MT/s"))),
        host(|host| {
            host.accelerators.first()?.vram_gb.map(|gb| format!("{} GB on the card", number(gb)))
        }),
        host(|host| host.accelerators.first()?.driver.clone()),
        host(|host| host.os.clone()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
