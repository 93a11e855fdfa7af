//! How everything is measured: every term with its formula, what makes a figure hard, and every doubt.
//! Read out of the table that the program measures by.

use maud::{Markup, html};

use super::Material;
use super::layout::{Place, shell};
use crate::record::Doubt;
use crate::terms::{Better, SYMBOLS, terms};

pub(super) fn page(material: &Material) -> Markup {
    let body = html! {
        div.title { h1 { "Method" } p.sub { "One name, one formula." } }
        section {
            h2 { "What may be relied on" }
            p { "A figure is " strong { "hard" } " when it comes from six runs or more on two starts of the server, when its interval is 5 % at most to each side, when the machine was quiet and "
                "the client fast enough, when the server counted the tokens, and when everything that ran is known. Else it is " strong { "soft" } ", and says why:" }
            dl.doubts { @for doubt in Doubt::ALL { dt { code { (word(doubt)) } } dd { (doubt.meaning()) "." } } }
            p { "What other programs measured, and what others published, is always soft. It stands here to be compared with, and to be measured again." }
        }
        section {
            h2 { "What is measured" }
            p { "Times are stamped by the kernel as bytes come from a server of the same machine, otherwise right after they are read, before anything is made of them. Warm and production never share a column." }
            div.wide role="region" aria-label="Terms" tabindex="0" { table.terms {
                thead { tr { th scope="col" { "figure" } th scope="col" { "in records" } th scope="col" { "better" } th scope="col" { "meaning" } th scope="col" { "formula" } } }
                tbody { @for term in terms() { tr {
                    th scope="row" { (term.title) @if !term.unit.is_empty() { " " span.unit { (term.unit) } } }
                    td { code { (term.name) } }
                    td { (match term.better { Better::Less => "less", Better::More => "more", Better::Neither => "" }) }
                    td { (term.meaning) } td { code { (term.formula) } }
                } } }
            } }
            dl.symbols { @for (symbol, meaning) in SYMBOLS { dt { code { (symbol) } } dd { (meaning) } } }
        }
    };
    shell(material, &Place { title: "Method", up: "", here: "method.html" }, &body)
}

/// As records write it.
fn word(doubt: Doubt) -> String {
    serde_json::to_value(doubt)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}
