//! `hob ledger`: prints the request log from the file that the server writes. It needs no server.
//! Percentiles of too few requests are left out.

use std::time::{Duration, SystemTime};

use clap::Args;
use hob_core::statistics::Sample;
use hob_server::ledger::{GroupBy, LedgerSummary, Period, RequestRecord, read, summarise};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::app::App;
use crate::arguments::one_of;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Column, or_dash, rows};

const LAST: u32 = 20;

/// Show the request log: the latest requests, or a summary by model
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LedgerArgs {
    /// Only requests of the last 30m, 24h, 7d or 4w, or since a date such as 2026-11-01
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,
    /// Group requests, with medians and 95th percentiles
    #[arg(long, value_parser = one_of(GROUPINGS), value_name = "WHAT", conflicts_with = "last")]
    by: Option<GroupBy>,
    /// Number of requests to show, the latest ones [default: 20; with --since: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    last: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  hob ledger
  hob ledger --by target --since 24h
  hob ledger --since 7d --json

The time to the first token or sound includes waiting, loading and failed attempts. 'warm' means
that the model was in memory when the request came. A 95th percentile needs at least 20 requests.";

const GROUPINGS: [(&str, &str, GroupBy); 5] = [
    ("alias", "The requested name", GroupBy::Alias),
    ("target", "The model that answered", GroupBy::Target),
    ("route", "chat, speech, transcription, embeddings or realtime", GroupBy::Route),
    ("key", "The client's key", GroupBy::Key),
    ("error", "The reason of a failure", GroupBy::Error),
];

/// Milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Since(u64);

fn since(text: &str) -> Result<Since, String> {
    since_at(text, Timestamp::now(), &TimeZone::system())
        .ok_or_else(|| "expected 30m, 24h, 7d, 4w, or a date such as 2026-11-01".to_owned())
}

fn since_at(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Since> {
    if let Ok(date) = text.parse::<Date>() {
        let midnight = date.to_zoned(zone.clone()).ok()?.timestamp();
        return u64::try_from(midnight.as_millisecond()).ok().map(Since);
    }
    let unit = text.char_indices().next_back()?;
    let seconds: u64 = match unit.1 {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    let ago_ms = text[..unit.0].parse::<u64>().ok()?.checked_mul(seconds)?.checked_mul(1000)?;
    Some(Since(u64::try_from(now.as_millisecond()).ok()?.saturating_sub(ago_ms)))
}

pub(crate) fn run(args: &LedgerArgs, app: &App<'_>) -> CliResult<Exit> {
    let everything = args.by.is_some() || args.since.is_some();
    let period = Period {
        since_unix_ms: args.since.map(|since| since.0),
        rows_max: args.last.or((!everything).then_some(LAST)),
    };
    let path = app.settings.ledger_file();
    let entries = read(&path, period).map_err(Failure::internal)?;
    match (args.by, args.json) {
        (Some(by), true) => {
            let summaries = summarise(&entries, by);
            app.printer.json(&summaries.iter().map(summary_json).collect::<Vec<_>>())?;
        }
        (None, true) => app.printer.json(&entries.iter().map(entry_json).collect::<Vec<_>>())?,
        (_, false) if entries.is_empty() => {
            app.printer.note(match (app.settings.ledger.enabled, args.since) {
                (false, _) => "no requests; the log is off (ledger.enabled = false in hob.toml)",
                (true, Some(_)) => "no requests since then",
                (true, None) => "no requests yet; `hob serve` logs them",
            });
        }
        (Some(by), false) => app.printer.data(summary_table(&summarise(&entries, by)))?,
        (None, false) => app.printer.data(entry_table(&entries, &TimeZone::system()))?,
    }
    Ok(Exit::Done)
}

/// The latest last. Columns that fit a terminal; JSON has all of them.
fn entry_table(entries: &[RequestRecord], zone: &TimeZone) -> String {
    let columns: &[Column<'_, RequestRecord>] = &[
        ("time", &|entry| time(entry.started_unix_ms, zone)),
        ("route", &|entry| entry.route.clone()),
        ("model", &model),
        ("was", &|entry| if entry.is_warm { "warm" } else { "cold" }.to_owned()),
        ("first", &|entry| or_dash(entry.first_ms.map(milliseconds))),
        ("total", &|entry| milliseconds(entry.total_ms)),
        ("in", &|entry| entry.prompt_tokens.to_string()),
        ("out", &|entry| amount_text(entry.audio_ms / 1e3, entry.completion_tokens.into())),
        ("tok/s", &|entry| or_dash(entry.tokens_per_s().map(|rate| format!("{rate:.0}")))),
        ("ended", &|entry| entry.error.as_deref().unwrap_or(entry.outcome.name()).to_owned()),
    ];
    rows(columns, entries.iter().rev()).trim_fmt()
}

/// The model that answered, and the requested name if it differs.
fn model(entry: &RequestRecord) -> String {
    let mut shown = match entry.alias == entry.target {
        true => entry.target.clone(),
        false => format!("{} → {}", entry.alias, entry.target),
    };
    if entry.attempts.is_some() {
        shown += " (fell back)";
    }
    if entry.thought_anyway {
        shown += " (thinking was off, the model thought)";
    }
    shown
}

/// Tokens, or seconds of sound.
fn amount_text(audio_s: f64, tokens: u64) -> String {
    if audio_s > 0.0 { format!("{audio_s:.1} s") } else { tokens.to_string() }
}

fn summary_table(summaries: &[LedgerSummary]) -> String {
    let columns: &[Column<'_, LedgerSummary>] = &[
        ("name", &|summary| summary.name.clone()),
        ("asked", &|summary| summary.requests.to_string()),
        ("failed", &|summary| summary.failed.to_string()),
        ("left", &|summary| summary.abandoned.to_string()),
        ("first, warm", &|summary| times(&summary.first_warm)),
        ("first, cold", &|summary| times(&summary.first_cold)),
        ("total", &|summary| times(&summary.total)),
        ("tok/s", &|summary| or_dash(summary.tokens_per_s.p50().map(|rate| format!("{rate:.0}")))),
        ("out", &|summary| amount_text(summary.audio_s, summary.completion_tokens)),
    ];
    let table = rows(columns, summaries).trim_fmt();
    format!("{table}\ntimes: median, 95th percentile of 20 and more (how many)")
}

fn times(sample: &Sample) -> String {
    let count = sample.count();
    match (sample.p50(), sample.p95()) {
        (Some(p50), Some(p95)) => format!("{}, {} ({count})", milliseconds(p50), milliseconds(p95)),
        (Some(p50), None) => format!("{} ({count})", milliseconds(p50)),
        (None, _) => "-".to_owned(),
    }
}

fn time(unix_ms: u64, zone: &TimeZone) -> String {
    let since_1970 = Duration::from_millis(unix_ms);
    match Timestamp::try_from(SystemTime::UNIX_EPOCH + since_1970) {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%m-%d %H:%M:%S").to_string(),
        Err(_) => unix_ms.to_string(),
    }
}

fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 9_950.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

fn entry_json(entry: &RequestRecord) -> Value {
    json!({
        "started_unix_ms": entry.started_unix_ms,
        "route": entry.route,
        "alias": entry.alias,
        "target": entry.target,
        "key": entry.key,
        "is_streamed": entry.is_streamed,
        "is_warm": entry.is_warm,
        "load_ms": entry.load_ms,
        "queue_ms": entry.queue_ms,
        "first_ms": entry.first_ms,
        "total_ms": entry.total_ms,
        "tokens_per_s": entry.tokens_per_s(),
        "prompt_tokens": entry.prompt_tokens,
        "cached_tokens": entry.cached_tokens,
        "completion_tokens": entry.completion_tokens,
        "reasoning_tokens": entry.reasoning_tokens,
        "audio_ms": entry.audio_ms,
        "outcome": entry.outcome.name(),
        "error": entry.error,
        "attempts": entry.attempts,
        "overhead_ms": entry.overhead_ms,
        "thought_anyway": entry.thought_anyway,
        "counted_here": entry.counted_here,
        "turn_stages": entry.turn_stages,
    })
}

fn summary_json(summary: &LedgerSummary) -> Value {
    let sample =
        |sample: &Sample| json!({ "n": sample.count(), "p50": sample.p50(), "p95": sample.p95() });
    json!({
        "name": summary.name,
        "requests": summary.requests,
        "failed": summary.failed,
        "abandoned": summary.abandoned,
        "first_warm_ms": sample(&summary.first_warm),
        "first_cold_ms": sample(&summary.first_cold),
        "total_ms": sample(&summary.total),
        "tokens_per_s": sample(&summary.tokens_per_s),
        "prompt_tokens": summary.prompt_tokens,
        "cached_tokens": summary.cached_tokens,
        "completion_tokens": summary.completion_tokens,
        "reasoning_tokens": summary.reasoning_tokens,
        "audio_s": summary.audio_s,
    })
}

#[cfg(test)]
mod tests {
    use hob_server::ledger::Outcome;

    use super::*;

    fn entry() -> RequestRecord {
        RequestRecord {
            started_unix_ms: 1_795_255_200_000,
            route: "chat".to_owned(),
            alias: "gpt-4o".to_owned(),
            target: "smollm2".to_owned(),
            is_warm: true,
            queue_ms: Some(0.42),
            first_ms: Some(151.2),
            total_ms: 12_345.0,
            predicted_ms: Some(1000.0),
            prompt_tokens: 45,
            cached_tokens: 3,
            completion_tokens: 101,
            outcome: Outcome::Complete,
            ..RequestRecord::default()
        }
    }

    fn line(table: &str, number: usize) -> String {
        let line = table.lines().nth(number).expect("a line");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn requests_stand_in_the_order_in_which_they_came() {
        let spoken = RequestRecord {
            started_unix_ms: 1_795_255_201_000,
            route: "speech".to_owned(),
            alias: "kokoro".to_owned(),
            target: "kokoro".to_owned(),
            audio_ms: 2_340.0,
            first_ms: None,
            outcome: Outcome::Failed,
            error: Some("worker_lost".to_owned()),
            ..RequestRecord::default()
        };
        let table = entry_table(&[spoken, entry()], &TimeZone::UTC);
        assert_eq!(
            line(&table, 1),
            "11-21 10:00:00 chat gpt-4o → smollm2 warm 151 ms 12.3 s 45 101 100 complete"
        );
        assert_eq!(
            line(&table, 2),
            "11-21 10:00:01 speech kokoro cold - 0.0 ms 0 2.3 s - worker_lost"
        );
        assert!(table.lines().all(|line| line.len() <= 100), "{table}");
    }

    #[test]
    fn a_percentile_needs_its_requests() {
        let few = summary_table(&summarise(&vec![entry(); 19], GroupBy::Target));
        assert_eq!(line(&few, 1), "smollm2 19 0 0 151 ms (19) - 12.3 s (19) 100 1919");
        let enough = summarise(&vec![entry(); 20], GroupBy::Alias);
        let table = summary_table(&enough);
        assert!(line(&table, 1).starts_with("gpt-4o 20 0 0 151 ms, 151 ms (20) - "), "{table}");
        assert!(table.lines().all(|line| line.len() <= 100), "{table}");
        assert_eq!(summary_json(&enough[0])["total_ms"]["p95"], json!(12_345.0));
    }

    #[test]
    fn a_time_is_a_span_or_a_day() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().expect("a time");
        let ago = |text| since_at(text, now, &TimeZone::UTC);
        let now_ms = now.as_millisecond() as u64;
        assert_eq!(ago("90m"), Some(Since(now_ms - 5_400_000)));
        assert_eq!(ago("2d"), Some(Since(now_ms - 172_800_000)));
        assert_eq!(ago("2026-11-21"), Some(Since(now_ms - 36_000_000)));
        assert_eq!(ago("9999999w"), Some(Since(0)));
        for wrong in ["", "h", "7", "7 d", "-1d", "yesterday", "2026-13-01", "9é"] {
            assert_eq!(ago(wrong), None, "{wrong}");
        }
    }
}
