//! What a run says beside its figures: machine, engine, model, workload; attempts at a ceiling; raw samples.
//! What nobody knows is not listed.

use maud::{Markup, html};

use super::Material;
use super::chart::dots;
use super::rows::Row;
use crate::record::{AttemptResult, RawSample, Record, Selftest};
use crate::terms::Metric;
use crate::written::number;

/// So many requests are listed; the file beside the record has all.
const LISTED_MAX: usize = 200;

pub(super) fn facts(record: &Record) -> Markup {
    let groups = [
        ("Engine", engine(record)),
        ("Model", model(record)),
        ("Workload", workload(record)),
        ("Machine", machine(record)),
        ("Measured by", harness(record)),
    ];
    html! {
        div.facts {
            @for (title, facts) in groups {
                @let known: Vec<_> = facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                @if !known.is_empty() { div { h3 { (title) } dl {
                    @for (name, value) in known { dt { (name) } dd { (value) } }
                } } }
            }
        }
    }
}

type Facts = Vec<(&'static str, Option<String>)>;

fn text<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|value| value.to_string()).filter(|value| !value.is_empty())
}

fn yes(value: Option<bool>) -> Option<String> {
    value.map(|set| if set { "yes" } else { "no" }.to_owned())
}

/// As a file writes it.
fn word<T: serde::Serialize>(value: Option<T>) -> Option<String> {
    let value = serde_json::to_value(value?).ok()?;
    value.as_str().map(|word| word.replace('_', " "))
}

fn engine(record: &Record) -> Facts {
    let (engine, params) = (&record.engine, &record.engine.params);
    vec![
        ("name", text(engine.name.as_deref())),
        ("version", text(engine.version.as_deref())),
        ("backend", text(engine.backend.as_deref())),
        ("layers on the card", text(params.ngl)),
        ("threads", text(params.threads)),
        ("batch", text(params.batch)),
        ("ubatch", text(params.ubatch)),
        ("flash attention", yes(params.flash_attn)),
        ("keys in the cache", text(params.kv_k.as_deref())),
        ("values in the cache", text(params.kv_v.as_deref())),
        ("context", text(params.ctx)),
        ("parallel", text(params.parallel)),
        ("speculation", text(params.spec.as_deref())),
    ]
}

fn model(record: &Record) -> Facts {
    let model = &record.model;
    vec![
        ("family", text(model.family.as_deref())),
        ("released", text(model.released.as_deref())),
        ("parameters", model.params_b.map(|n| format!("{} B", number(n)))),
        ("active", model.active_b.map(|n| format!("{} B", number(n)))),
        ("quant", text(model.quant.as_deref())),
        ("bits per weight", model.bpw.map(number)),
        ("file", model.bytes.map(|bytes| format!("{} GB", number(bytes as f64 / 1e9)))),
        ("sha256", text(model.sha256.as_deref())),
    ]
}

fn labels(record: &Record) -> Option<String> {
    let said = record.labels.iter().map(|(name, value)| format!("{name} {value}"));
    Some(said.collect::<Vec<_>>().join(", ")).filter(|said| !said.is_empty())
}

fn workload(record: &Record) -> Facts {
    let workload = &record.workload;
    let prompt = workload.prompt_tokens.and_then(|tokens| tokens.p50.or(tokens.target));
    vec![
        ("shape", text(workload.shape.as_deref())),
        ("prompt", prompt.map(|tokens| format!("{} tokens", number(tokens as f64)))),
        ("at most", workload.max_tokens.map(|tokens| format!("{} tokens", number(tokens as f64)))),
        ("users", text(workload.concurrency)),
        ("requests per second", workload.rate.map(number)),
        ("requests", text(workload.requests)),
        ("warm-up", text(workload.warmup)),
        ("reasoning", word(workload.reasoning)),
        ("switched by", text(workload.reasoning_switch.as_deref())),
        ("cache", word(workload.cache)),
        ("cache proven", yes(workload.cache_verified)),
        ("temperature", workload.temperature.map(number)),
        ("tools", text(workload.tools)),
        ("tokens counted by", word(record.count_source)),
        ("labels", labels(record)),
    ]
}

fn machine(record: &Record) -> Facts {
    let (host, noise) = (&record.host, &record.host.noise);
    let card = host.accelerators.first();
    vec![
        ("processor", text(host.cpu.model.as_deref())),
        ("cores", text(host.cpu.cores)),
        ("memory", host.ram_gb.map(|gb| format!("{} GB", number(gb)))),
        ("card", card.map(|card| card.name.clone())),
        (
            "memory of the card",
            card.and_then(|card| card.vram_gb).map(|gb| format!("{} GB", number(gb))),
        ),
        ("driver", card.and_then(|card| card.driver.clone())),
        ("system", text(host.os.as_deref())),
        ("kernel", text(host.kernel.as_deref())),
        ("waiting for a core", noise.psi_cpu.map(|pct| format!("{} %", number(pct)))),
        ("hottest", noise.temp_max_c.map(|c| format!("{} °C", number(c)))),
        ("slowed itself down", yes(noise.throttled)),
    ]
}

fn harness(record: &Record) -> Facts {
    let source = &record.source;
    let harness = record.harness.as_ref();
    let selftest = harness.and_then(|harness| harness.selftest.as_ref());
    vec![
        ("program", Some(source.tool.clone())),
        ("version", text(source.version.as_deref())),
        ("commit", harness.and_then(|harness| harness.git.clone())),
        ("seed", harness.map(|harness| harness.seed.to_string())),
        ("runs", text(record.confidence.runs)),
        ("server starts", text(record.confidence.server_starts)),
        ("self-test", selftest.map(Selftest::told)),
        ("id", Some(record.id.to_string())),
    ]
}

/// The search for the longest context, in the order in which it was tried.
pub(super) fn attempts(row: &Row<'_>) -> Markup {
    let Some(ceiling) = &row.record.max_context else {
        return html! { p.none { (super::cells::run_link(row, "../")) " found none." } };
    };
    let found = ceiling.usable.or(ceiling.load).or(ceiling.lo_ok);
    html! {
        p { strong { @if let Some(tokens) = found { (number(tokens as f64)) " tokens" } @else { "none" } }
            @if ceiling.usable.is_none() { " started; whether they can be filled was not tried" }
            " on " (super::cells::rig_link(row, "../")) ", " (row.engine()) " " (super::cells::run_link(row, "../")) }
        @if !ceiling.attempts.is_empty() { ol.attempts {
            @for attempt in &ceiling.attempts { li class=(if attempt.result == AttemptResult::Ok { "ok" } else { "bad" }) {
                (number(attempt.ctx as f64)) " " span { (word(Some(attempt.result)).unwrap_or_default()) }
                @if let Some(mb) = attempt.vram_mb.or(attempt.rss_mb) { " " span.beside { (number(mb)) " MB" } }
                @if let Some(said) = &attempt.said { " " span.beside { (said) } }
            } }
        } }
    }
}

/// As dots, and as numbers for whoever wants them.
pub(super) fn samples_of(material: &Material, row: &Row<'_>) -> Markup {
    let Some(samples) = material.samples.get(&row.record.id) else { return html! {} };
    let ms = |pick: fn(&RawSample) -> Option<u64>| -> Vec<f64> {
        samples.iter().filter_map(pick).map(|us| us as f64 / 1e3).collect()
    };
    let charts = [
        ("First token, ms", ms(|sample| sample.ttft_us), Metric::TtftMs),
        ("First answer token, ms", ms(|sample| sample.ttfat_us), Metric::TtfatMs),
        ("First sound, ms", ms(|sample| sample.ttfa_us), Metric::TtfaMs),
        ("Whole answer, ms", ms(|sample| sample.e2e_us), Metric::E2eMs),
    ];
    html! {
        div.charts { @for (title, values, metric) in charts {
            @let spread = row.record.metrics.get(metric);
            (dots(title, &values, spread.and_then(|spread| spread.p50), spread.and_then(|spread| spread.ci95)))
        } }
        details { summary { (samples.len()) " requests" } (listed(samples)) }
    }
}

fn listed(samples: &[RawSample]) -> Markup {
    let ms = |us: Option<u64>| us.map_or_else(String::new, |us| number(us as f64 / 1e3));
    let count = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
    html! {
        div.wide role="region" aria-label="Requests" tabindex="0" { table {
            thead { tr { th scope="col" { "run" } th.number scope="col" { "first token, ms" } th.number scope="col" { "first answer, ms" } th.number scope="col" { "whole, ms" }
                th.number scope="col" { "worst gap, ms" } th.number scope="col" { "thinking" } th.number scope="col" { "answer" } th scope="col" { "ended" } } }
            tbody { @for sample in samples.iter().take(LISTED_MAX) { tr {
                td { (sample.run) } td.number { (ms(sample.ttft_us)) } td.number { (ms(sample.ttfat_us)) } td.number { (ms(sample.e2e_us)) }
                td.number { (ms(sample.gaps_us.iter().copied().max())) } td.number { (count(sample.tokens.reasoning)) } td.number { (count(sample.tokens.content)) }
                td { (sample.error.as_deref().or(sample.finish.as_deref()).unwrap_or_default()) }
            } } }
        } }
        @if samples.len() > LISTED_MAX { p.none { (samples.len() - LISTED_MAX) " more are in the file." } }
    }
}
