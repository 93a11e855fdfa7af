//! One run: its figures with their definitions, the command that repeats it, why to doubt it, and its raw values.
//! The record itself stands at the end, as it is kept.

use maud::{Markup, html};

use super::layout::{Place, shell};
use super::rows::{Origin, Row};
use super::run_facts::{attempts, facts, samples_of};
use super::{Material, cells, charts_of, compare};
use crate::record::{Kind, Record, Spread, to_yaml};
use crate::terms::Metric;
use crate::written::{figure, spread as written};

/// `before` is the run of the same cell that this one follows.
pub(super) fn page(material: &Material, row: &Row<'_>, before: Option<&Row<'_>>) -> Markup {
    let record = row.record;
    let title = format!("{}, {}", record.model.name, record.kind.name());
    let badge = if row.failed() {
        "failed"
    } else if row.is_hard() {
        "hard"
    } else {
        "soft"
    };
    let body = html! {
        div.title {
            h1 { (cells::model_link(row, "../")) span { " " (record.kind.name()) " " (row.shape()) } }
            p.sub { (cells::badge(row, badge)) " on " (cells::rig_link(row, "../")) @if let Some(day) = row.day() { ", " (day) } }
        }
        (compared_with(row, before))
        (doubts(row))
        (figures(record))
        (together(record))
        (charts_of::production(&[row]))
        @if record.kind == Kind::MaxContext { section { h2 { "Attempts" } (attempts(row)) } }
        (samples(material, row))
        (reproduce(row))
        section { h2 { "What ran where" } (facts(record)) }
        (lost(record))
        section { details.yaml { summary { "The record, as it is kept" } pre tabindex="0" { code { (to_yaml(record).unwrap_or_default()) } } } }
    };
    shell(material, &Place { title: &title, up: "../", here: "" }, &body)
}

/// With the run before, or with one that the reader chooses.
fn compared_with(row: &Row<'_>, before: Option<&Row<'_>>) -> Markup {
    html! { p.beside { @match before {
        Some(before) => {
            a href=(compare::link(Some(before), row, "../")) { "Compare with the run before" } ", " (cells::run_link(before, "../"))
            @if let Some(day) = before.day() { " of " (day) }
        }
        None => { a href=(compare::link(None, row, "../")) { "Compare with another run" } }
    } } }
}

fn doubts(row: &Row<'_>) -> Markup {
    let record = row.record;
    let doubts = row.doubts();
    let nothing = doubts.is_empty() && record.invalid_reasons.is_empty();
    html! { @if !nothing { section.doubts {
        h2 { "Why to doubt it" }
        ul {
            @for reason in &record.invalid_reasons { li.bad { (reason) } }
            @for doubt in doubts { li { (doubt.meaning()) } }
        }
    } } }
}

fn figures(record: &Record) -> Markup {
    let spreads = &record.metrics.spreads;
    html! { section {
        h2 { "Figures" }
        @if spreads.is_empty() { p.none { "None." } } @else {
            div.wide role="region" aria-label="Figures" tabindex="0" { table.figures {
                thead { tr {
                    th scope="col" { "figure" }
                    th.number scope="col" { "median" } th.number scope="col" { (cells::term("ci95", "95 % interval")) }
                    th.number scope="col" { "least" } th.number scope="col" { "greatest" }
                    th.number scope="col" { "p95" } th.number scope="col" { "p99" } th.number scope="col" { "n" }
                    th scope="col" { "method" }
                } }
                tbody { @for (metric, spread) in spreads { (line(*metric, spread)) } }
            } }
        }
        (counts(record))
    } }
}

fn line(metric: Metric, spread: &Spread) -> Markup {
    let one =
        |value: Option<f64>| value.map_or_else(String::new, |value| figure(value, metric.term()));
    let interval =
        spread.ci95.map(|[low, high]| format!("{} to {}", one(Some(low)), one(Some(high))));
    html! { tr {
        th scope="row" { (cells::term(metric.name(), metric.term().title)) }
        td.number { strong { (written(spread, metric)) } }
        td.number { @if let Some(interval) = interval { (interval) } }
        td.number { (one(spread.min)) } td.number { (one(spread.max)) }
        td.number { (one(spread.p95)) } td.number { (one(spread.p99)) }
        td.number { @if let Some(n) = spread.n { (n) } }
        td { @if let Some(method) = &spread.method { (method) } }
    } }
}

/// What becomes of each of many, against the run of one that stands beside it.
fn together(record: &Record) -> Markup {
    let Some(degrade) = record.slowdown.as_ref().filter(|degrade| degrade.n > 1) else {
        return html! {};
    };
    let times = |times: f64| format!("{} ×", crate::written::number(times));
    let rows = [
        (Metric::TtftMs, degrade.ttft_x),
        (Metric::TtfaMs, degrade.ttfa_x),
        (Metric::TpotMs, degrade.tpot_x),
    ];
    html! { section {
        h2 { (degrade.n) " users against one" }
        ul {
            @for (metric, ratio) in rows { @if let Some(ratio) = ratio { li { (cells::term(metric.name(), metric.term().title)) ": " (times(ratio)) } } }
            @if let Some([low, high]) = degrade.ci95 { li { (cells::term("ci95", "95 % interval")) " of the first: " (times(low)) " to " (times(high)) } }
            @if let Some(scaling) = degrade.scaling { li { (cells::term("scaling", "scaling")) ": " (crate::written::number(scaling)) ", " (crate::degrade::said(scaling)) } }
        }
        @if let Some(versus) = degrade.versus { p.beside { a href={ "../run/" (versus) ".html" } { "The run of one user" } ", block by block in turns with this one" } }
    } }
}

/// What is no spread.
fn counts(record: &Record) -> Markup {
    let metrics = &record.metrics;
    html! {
        @if let Some(stall) = metrics.stall { p { (cells::term("stall", "Stalls")) ": " (stall.count) @if stall.count > 0 { ", the worst " (figure(stall.worst_ms, Metric::IcgMs.term())) } } }
        @if let Some(goodput) = &metrics.goodput {
            p { (cells::term("goodput", "Goodput")) ": " (crate::written::number(goodput.value * 100.0)) " %" }
        }
        @if let Some(errors) = metrics.errors { p { (cells::term("errors", "Errors")) ": " (errors) } }
        @if let Some(count) = metrics.no_answer.filter(|count| *count > 0) { p { (cells::term("no_answer", "No answer")) ": " (count) } }
    }
}

fn samples(material: &Material, row: &Row<'_>) -> Markup {
    html! { @if material.samples.contains_key(&row.record.id) { section { h2 { "Raw samples" } (samples_of(material, row)) } }
    @else if let Some(file) = &row.record.samples { section { h2 { "Raw samples" } p.none { (file.n) " requests in " code { (file.file) } ", which is not here." } } } }
}

fn reproduce(row: &Row<'_>) -> Markup {
    let argv = row
        .record
        .harness
        .as_ref()
        .map(|harness| command(&harness.argv))
        .filter(|command| !command.is_empty());
    let server = Some(command(&row.record.engine.argv)).filter(|command| !command.is_empty());
    html! { section {
        h2 { "Repeat it" }
        @if let Some(server) = server { p.beside { "The server" } (copied(&server)) }
        @match argv {
            Some(argv) => { p.beside { "The bench" } (copied(&argv)) }
            None => { p {
                @if row.origin() == Origin::Published { "Somebody wrote of it; nobody here has measured it again." }
                @else { "Measured by " (row.record.source.tool) "; its original has the hash " code { (row.record.source.sha256.as_deref().unwrap_or("not kept")) } "." }
            } }
        }
    } }
}

fn copied(command: &str) -> Markup {
    html! { div.command { pre tabindex="0" { code { (command) } } button.copy type="button" hidden { "Copy" } } }
}

/// As a shell takes it.
fn command(argv: &[String]) -> String {
    let is_plain = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c))
    };
    let quoted = |part: &String| {
        if is_plain(part) { part.clone() } else { format!("'{}'", part.replace('\'', r"'\''")) }
    };
    argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn lost(record: &Record) -> Markup {
    html! { @if !record.source.lossy.is_empty() { section {
        h2 { "What the original says besides" }
        ul { @for lost in &record.source.lossy { li { (lost) } } }
    } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        let argv = ["hob", "bench", "--launch", "server {ctx} -m 'a b'", "", "--shape=short"]
            .map(str::to_owned);
        let expected = r"hob bench --launch 'server {ctx} -m '\''a b'\''' '' --shape=short";
        assert_eq!(command(&argv), expected);
    }

    #[test]
    fn many_are_shown_beside_the_one_that_they_are_compared_with() {
        use crate::record::{Slowdown, Source};
        let mut record = Record::new(uuid::Uuid::nil(), Kind::Concurrency, Source::default());
        let alone = Slowdown { n: 1, ..Slowdown::default() };
        record.slowdown = Some(alone.clone());
        assert_eq!(together(&record).into_string(), "");
        let versus = Some(uuid::Uuid::max());
        record.slowdown =
            Some(Slowdown { n: 3, versus, ttft_x: Some(2.84), scaling: Some(0.33), ..alone });
        let shown = together(&record).into_string();
        for expected in
            ["3 users against one", "2.84 ×", "queueing, not throughput", "run/ffffffff-"]
        {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
    }
}
