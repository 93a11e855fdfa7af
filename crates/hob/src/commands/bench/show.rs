//! `hob bench show`: one run, as a person reads it: what ran where, the figures, and why to doubt them.
//! The definitions are those of the page; both read one table.

use std::path::PathBuf;

use clap::Args;
use hob_bench::display;
use hob_bench::record::{Label, Record, RecordStore, RecordedClientCheck};

use super::RECORDS;
use super::tables::record_table;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Printer, or_dash, table};

/// Show one run: what ran where, its figures, and why to doubt them
#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArgs {
    /// A record's file, or its id, or the end of its id
    #[arg(value_name = "ID|FILE")]
    which: String,
    /// The folder with the records, for an id
    #[arg(long, default_value = RECORDS, value_name = "FOLDER")]
    records: PathBuf,
    /// Print the record as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ShowArgs, printer: &Printer) -> CliResult<Exit> {
    let (_, record) = RecordStore::new(&args.records).pick(&args.which).map_err(Failure::usage)?;
    printer.report(args.json, &record, || record_text(&record))
}

fn record_text(record: &Record) -> String {
    let mut text = format!("{} {}, {}\n", record.kind.name(), record.model.name, label(record));
    for (name, value) in facts(record) {
        text.push_str(&format!("{name:<11} {value}\n"));
    }
    let mut table = table(["figure", "median", "min", "max", "n"]);
    for (metric, spread) in &record.metrics.spreads {
        let end = |value: Option<f64>| {
            or_dash(value.map(|value| display::figure(value, metric.definition())))
        };
        let n = or_dash(spread.n.map(|n| n.to_string()));
        table.add_row([
            metric.definition().title.to_owned(),
            display::spread(spread, *metric),
            end(spread.min),
            end(spread.max),
            n,
        ]);
    }
    let table = table.trim_fmt();
    if !has_own_section(record) {
        return format!("{text}\n{table}");
    }
    let section = record_table(record.kind, std::slice::from_ref(record));
    format!("{text}\n{table}\n\n{section}")
}

/// Whether it has what no figure says, such as a score, the longest context or a verdict. The table of its kind shows that.
fn has_own_section(record: &Record) -> bool {
    let Record { eval, max_context, slowdown, voice, stt, tts, .. } = record;
    eval.is_some()
        || max_context.is_some()
        || slowdown.is_some()
        || voice.is_some()
        || stt.is_some()
        || tts.is_some()
}

fn label(record: &Record) -> String {
    let reasons: Vec<&str> =
        record.confidence.reasons.iter().map(|doubt| doubt.meaning()).collect();
    match record.confidence.label {
        _ if !record.is_valid() => "no measurement".to_owned(),
        Label::Verified => "verified".to_owned(),
        Label::Unverified => format!("unverified: {}", reasons.join("; ")),
    }
}

/// What is known of it; nothing of what is not.
fn facts(record: &Record) -> Vec<(&'static str, String)> {
    let join = |parts: [Option<&str>; 3]| parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let engine = &record.engine;
    let selftest = record.harness.as_ref().and_then(|harness| harness.selftest.as_ref());
    let all = [
        ("id", record.id.to_string()),
        (
            "measured by",
            format!(
                "{} {}",
                record.source.tool,
                record.source.version.as_deref().unwrap_or_default()
            ),
        ),
        (
            "engine",
            join([engine.name.as_deref(), engine.version.as_deref(), engine.backend.as_deref()]),
        ),
        ("hardware", record.hardware()),
        ("quant", record.model.quant.clone().unwrap_or_default()),
        ("shape", display::asked(record)),
        ("conc.", record.workload.concurrency.map_or_else(String::new, |users| users.to_string())),
        ("stalls", display::stalls(record)),
        ("client", selftest.map_or_else(String::new, RecordedClientCheck::summary)),
        ("failed", record.invalid_reasons.join("; ")),
        ("lost", record.source.lossy.join("; ")),
    ];
    all.into_iter()
        .map(|(name, value)| (name, value.trim().to_owned()))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{MaxContext, RecordKind, RecordSource};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_no_figure_says_is_shown_too() {
        let mut record = Record::new(Uuid::nil(), RecordKind::MaxContext, RecordSource::default());
        let expected = "8192 tokens can be used (worked 2 times; nothing longer was tried)";
        assert!(!record_text(&record).contains(expected));
        let (lo_ok, usable, confirmed) = (Some(8192), Some(8192), Some(2));
        record.max_context = Some(MaxContext { lo_ok, usable, confirmed, ..MaxContext::default() });
        let text = record_text(&record);
        assert!(text.contains(expected), "{text}");
    }
}
