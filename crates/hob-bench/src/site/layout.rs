//! What every page has: head, way about, theme, foot. One style sheet, one short script.
//! The script sorts, filters, folds and explains; without it everything is there to be read.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::Material;
use super::columns::COLUMNS;

const STYLE: &str = include_str!("site/site.css");
pub(super) const SCRIPT: &str = include_str!("site/site.js");

/// Where a page is, and how it leads to the others.
pub(super) struct Place<'a> {
    pub(super) title: &'a str,
    /// `../` of pages in a folder.
    pub(super) up: &'a str,
    /// The file that the way about marks.
    pub(super) here: &'a str,
}

const PLACES: [(&str, &str); 6] = [
    ("index.html", "Models"),
    ("speech.html", "Speech"),
    ("rigs.html", "Machines"),
    ("compare.html", "Compare"),
    ("queued.html", "Queued"),
    ("method.html", "Method"),
];

pub(super) fn shell(material: &Material, place: &Place<'_>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (place.title) " · hob benchmarks" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href={ (place.up) "site.css" };
            }
            body {
                a.skip href="#main" { "To the figures" }
                header.top {
                    a.home href={ (place.up) "index.html" } { (mark()) "hob " span { "benchmarks" } }
                    nav aria-label="Pages" {
                        @for (file, name) in PLACES {
                            a href={ (place.up) (file) } aria-current=[(file == place.here).then_some("page")] { (name) }
                        }
                    }
                    button.theme type="button" hidden { "Theme" }
                }
                main id="main" tabindex="-1" { (body) }
                (foot(material, place))
                div id="tip" role="tooltip" hidden {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The house's arch and its flame.
fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 32 32" aria-hidden="true" {
            path.arch d="M5 28V15a11 11 0 0 1 22 0v13h-5.5V15a5.5 5.5 0 0 0-11 0v13z" {}
            path.flame d="M16 28c-3 0-4.6-1.9-4.6-4.4 0-3 3.2-4.3 3.8-8 2.8 1.6 5.4 4.6 5.4 8 0 2.5-1.6 4.4-4.6 4.4z" {}
        }
    }
}

fn foot(material: &Material, place: &Place<'_>) -> Markup {
    let day = material.built.map(|time| time.to_string().chars().take(10).collect::<String>());
    html! {
        footer {
            p {
                (material.records.len()) " runs"
                @if let Some(day) = day { ", built on " (day) }
                ". Every figure says how it was measured, and why to doubt it: "
                a href={ (place.up) "method.html" } { "method and definitions" } "."
            }
            @if !material.skipped.is_empty() {
                details.skipped {
                    summary { (material.skipped.len()) @if material.skipped.len() == 1 { " file was" } @else { " files were" } " left out" }
                    ul { @for reason in &material.skipped { li { (reason) } } }
                }
            }
        }
    }
}

/// With the phone's labels of the table of models, which are its columns' titles.
pub(super) fn style() -> String {
    let mut style = STYLE.to_owned();
    style.push_str("@media (max-width: 46rem) {\n");
    for (at, column) in COLUMNS.iter().enumerate().skip(1) {
        // Writing to a String cannot fail.
        let _infallible = writeln!(
            style,
            "  .models td:nth-child({})::before {{ content: \"{}\"; }}",
            at + 1,
            column.title
        );
    }
    style.push_str("}\n");
    style
}

pub(super) fn script_hash(script: &str) -> String {
    use base64::Engine as _;
    let digest = Sha256::digest(script.as_bytes());
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
}
