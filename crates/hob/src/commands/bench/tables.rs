//! Records of each kind as a table on stdout: the columns of a kind, and the sentences below the table.
//! Columns are data, so that kinds share them.

mod eval;
mod speech;
mod transcription;
mod voice;

use hob_bench::display;
use hob_bench::experiment::{gain, scaling_verdict};
use hob_bench::record::{AttemptResult, Cache, Label, Record, RecordKind};
use hob_bench::terms::Metric;

use crate::printer::{self, table};

pub(super) use speech::timeline;

pub(super) const NOTHING: &str = "–";

type Column = printer::Column<'static, Record>;

const ERRORS: Column = ("errors", &|r| r.metrics.errors.unwrap_or_default().to_string());
const CLIENT: Column = ("client off by", &off_by);
const BADGE: Column = ("", &|record| badge(record).to_owned());
const SHAPE: Column = ("shape", &|r| r.workload.shape.clone().unwrap_or_default());
const THINKING: Column = ("thinking", &thinking);
const USERS: Column = ("users", &users);
const MEMORY: Column = ("memory", &|r| megabytes(r.resources.memory_mb()));
const TOGETHER: Column = ("together", &together);
const PER_TOKEN: Column = ("per token", &|r| ms(r, Metric::TpotMs, 1));

/// All records of one kind, with what is said about them together.
pub(super) fn record_table(kind: RecordKind, records: &[Record]) -> String {
    match kind {
        RecordKind::Llm => rows(&LLM, records),
        RecordKind::CtxSweep => rows(&SWEEP, records),
        RecordKind::Cold => rows(&COLD, records),
        RecordKind::Batch | RecordKind::Concurrency => concurrent(kind, records),
        RecordKind::MaxContext => max_context(records),
        RecordKind::Tts => speech::tts(records),
        RecordKind::Stream => speech::stream(records),
        RecordKind::Stt => transcription::stt(records),
        RecordKind::Voice => voice::voice(records),
        RecordKind::Eval => eval::eval(records),
    }
}

fn rows<'r>(
    columns: &[printer::Column<'_, Record>],
    records: impl IntoIterator<Item = &'r Record>,
) -> String {
    printer::rows(columns, records).trim_fmt()
}

const LLM: [Column; 13] = [
    SHAPE,
    ("users", &|r| r.workload.rate.map_or_else(|| users(r), |rate| format!("{rate}/s"))),
    THINKING,
    ("first token", &|r| from_due(r, Metric::TtftSchedMs, Metric::TtftMs)),
    ("first answer", &|r| from_due(r, Metric::TtfatSchedMs, Metric::TtfatMs)),
    PER_TOKEN,
    ("tok/s", &|r| number(r, Metric::DecodeTokS, 1)),
    ("together", &|r| number(r, Metric::ThroughputTokS, 1)),
    ("thought", &|r| number(r, Metric::ReasoningTokens, 1)),
    ("stalls", &display::stalls),
    ERRORS,
    CLIENT,
    BADGE,
];

const SWEEP: [Column; 10] = [
    ("context", &|r| {
        let target = r.workload.prompt_tokens.and_then(|tokens| tokens.target);
        target.map_or(String::new(), |tokens| tokens.to_string())
    }),
    ("prompt", &|r| {
        let cache = match r.workload.cache {
            Some(Cache::Cold) => "new",
            Some(Cache::Cached) => "cached",
            Some(Cache::Mixed) | None => "mixed",
        };
        cache.to_owned()
    }),
    ("first token", &|r| ms(r, Metric::TtftMs, 1)),
    ("prefill tok/s", &|r| number(r, Metric::PrefillTokS, 1)),
    ("prompt / first token", &|r| number(r, Metric::PromptTtftTokS, 1)),
    ("gen tok/s", &|r| number(r, Metric::DecodeTokS, 1)),
    MEMORY,
    ERRORS,
    CLIENT,
    BADGE,
];

const COLD: [Column; 10] = [
    ("state", SHAPE.1),
    ("load", &|r| ms(r, Metric::LoadMs, 0)),
    ("first request", &|r| ms(r, Metric::ColdFirstMs, 0)),
    ("first token", &|r| ms(r, Metric::TtftMs, 0)),
    ("first sound", &|r| ms(r, Metric::TtfaMs, 0)),
    ("swap", &|r| ms(r, Metric::SwapMs, 0)),
    ("warm", &|r| ms(r, Metric::WarmMs, 0)),
    ("cold / warm", &|r| {
        r.metrics.figure(Metric::ColdX).map_or(NOTHING.to_owned(), |times| format!("{times:.1} ×"))
    }),
    CLIENT,
    BADGE,
];

/// Concurrent users. Those who listen have a table of their own.
fn concurrent(kind: RecordKind, records: &[Record]) -> String {
    let (listening, reading): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(|record| record.tts.is_some());
    if listening.is_empty() {
        return concurrent_readers(kind, &reading);
    }
    let listeners = speech::listeners(&listening);
    match reading.is_empty() {
        true => listeners,
        false => format!("{listeners}\n\n{}", concurrent_readers(kind, &reading)),
    }
}

fn concurrent_readers(kind: RecordKind, records: &[&Record]) -> String {
    if kind == RecordKind::Batch { batch(records) } else { concurrency(records) }
}

fn batch(records: &[&Record]) -> String {
    let gain_over_one = |record: &Record| {
        let is_alone = |other: &&Record| {
            other.workload.concurrency == Some(1)
                && other.workload.reasoning == record.workload.reasoning
        };
        let alone = records.iter().copied().find(is_alone);
        let gain = alone.and_then(|alone| gain(alone, record));
        gain.map_or(NOTHING.to_owned(), |gain| format!("{gain:.2}"))
    };
    let columns: [printer::Column<'_, Record>; 11] = [
        USERS,
        THINKING,
        TOGETHER,
        ("first byte", &|r| {
            let spread = r.metrics.get(Metric::TtfbMs);
            written_ms(spread.and_then(|spread| spread.mean), 1)
        }),
        ("first", &|r| written_ms(first_ms(r), 1)),
        PER_TOKEN,
        MEMORY,
        ERRORS,
        CLIENT,
        ("gain", &gain_over_one),
        BADGE,
    ];
    rows(&columns, records.iter().copied())
}

/// One user is measured with each number of users; the first of those records stands for all.
fn concurrency(records: &[&Record]) -> String {
    const COLUMNS: [Column; 13] = [
        ("users", &|r| r.slowdown.as_ref().map_or(String::new(), |many| many.n.to_string())),
        THINKING,
        ("first", &|r| written_ms(first_ms(r), 1)),
        ("×", &|r| times(r.slowdown.as_ref().and_then(|many| many.ttft_x.or(many.ttfa_x)))),
        ("95 %", &|r| {
            let interval = r.slowdown.as_ref().and_then(|many| many.ci95);
            interval.map_or(String::new(), |[low, high]| format!("{low:.2}–{high:.2}"))
        }),
        PER_TOKEN,
        ("×", &|r| times(r.slowdown.as_ref().and_then(|many| many.tpot_x))),
        TOGETHER,
        ("scaling", &|r| scaling(r).map_or(String::new(), |scaling| format!("{scaling:.2}"))),
        ERRORS,
        CLIENT,
        BADGE,
        ("", &|r| scaling(r).map_or(String::new(), |scaling| scaling_verdict(scaling).to_owned())),
    ];
    let mut alone = Vec::new();
    let shown = records.iter().copied().filter(|record| {
        let is_alone = record.slowdown.as_ref().is_some_and(|many| many.n == 1);
        let is_known = is_alone && alone.contains(&record.workload.reasoning);
        if is_alone {
            alone.push(record.workload.reasoning);
        }
        record.slowdown.is_some() && !is_known
    });
    rows(&COLUMNS, shown)
}

fn scaling(record: &Record) -> Option<f64> {
    record.slowdown.as_ref()?.scaling
}

fn times(times: Option<f64>) -> String {
    times.map_or(String::new(), |times| format!("{times:.2}×"))
}

fn max_context(records: &[Record]) -> String {
    let mut table = table(["context", "took", "memory", "", ""]);
    let found = records.iter().filter_map(|record| record.max_context.as_ref());
    for attempt in found.flat_map(|found| &found.attempts) {
        let mb = attempt.vram_mb.or(attempt.rss_mb);
        // The record has the other lines.
        let line = attempt.said.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        table.add_row([
            attempt.ctx.to_string(),
            attempt.s.map_or(String::new(), |s| format!("{s:.1} s")),
            mb.map_or(String::new(), |mb| format!("{mb:.0} MB")),
            attempt.result.name().to_owned(),
            line.chars().take(80).collect(),
        ]);
    }
    let found: Vec<String> = records.iter().map(longest).collect();
    format!("{}\n{}", table.trim_fmt(), found.join("\n"))
}

fn longest(record: &Record) -> String {
    let Some(found) = &record.max_context else { return String::new() };
    let Some(tokens) = found.lo_ok else { return "no context works".to_owned() };
    let times = found.confirmed.unwrap_or_default();
    let what = if found.usable.is_some() { "can be used" } else { "can be loaded" };
    let speed = record.metrics.figure(Metric::DecodeTokS);
    let speed = speed.map_or(String::new(), |speed| format!(", at {speed:.1} tok/s"));
    let limit = match (found.hi_fail, found.limited_by) {
        (Some(fail), Some(AttemptResult::Unsupported)) => {
            format!("{fail} is more than the model or its engine allows; memory is not the limit")
        }
        (Some(fail), Some(result)) => format!("{fail} {}", result.name()),
        _ => "nothing longer was tried".to_owned(),
    };
    format!("{tokens} tokens {what}{speed} (worked {times} times; {limit})  {}", badge(record))
}

fn users(record: &Record) -> String {
    record.workload.concurrency.map_or(String::new(), |users| users.to_string())
}

fn thinking(record: &Record) -> String {
    let reasoning = record.workload.reasoning;
    reasoning.map_or(String::new(), |reasoning| format!("{reasoning:?}").to_lowercase())
}

/// Tokens a second of all users, or seconds of sound a second.
pub(super) fn together(record: &Record) -> String {
    let figure = |metric| record.metrics.figure(metric);
    let tokens = figure(Metric::ThroughputTokS).map(|rate| format!("{rate:.1} tok/s"));
    let sound = || figure(Metric::RealTimeX).map(|times| format!("{times:.1} × real time"));
    tokens.or_else(sound).unwrap_or_else(|| NOTHING.to_owned())
}

/// Milliseconds to the first token, or to the first sound.
pub(super) fn first_ms(record: &Record) -> Option<f64> {
    let figure = |metric| record.metrics.figure(metric);
    figure(Metric::TtftMs).or_else(|| figure(Metric::TtfaMs))
}

/// Whether the figures are verified, or a measurement at all.
pub(super) fn badge(record: &Record) -> &'static str {
    match (record.is_valid(), record.confidence.label) {
        (false, _) => "no measurement",
        (true, Label::Verified) => "verified",
        (true, Label::Unverified) => "unverified",
    }
}

/// The timing error of the client itself, as shown next to every figure.
pub(super) fn off_by(record: &Record) -> String {
    let selftest = record.harness.as_ref().and_then(|harness| harness.selftest.as_ref());
    selftest.map_or(NOTHING.to_owned(), |test| format!("{:.2} ms", test.ttft_err_ms.p50))
}

fn from_due(record: &Record, due: Metric, sent: Metric) -> String {
    let is_due = record.metrics.figure(due).is_some();
    ms(record, if is_due { due } else { sent }, 1)
}

fn ms(record: &Record, metric: Metric, digits: usize) -> String {
    written_ms(record.metrics.figure(metric), digits)
}

fn written_ms(ms: Option<f64>, digits: usize) -> String {
    ms.map_or(NOTHING.to_owned(), |ms| format!("{ms:.digits$} ms"))
}

fn p95(record: &Record, metric: Metric) -> String {
    written_ms(record.metrics.get(metric).and_then(|spread| spread.p95), 0)
}

fn number(record: &Record, metric: Metric, digits: usize) -> String {
    let figure = record.metrics.figure(metric);
    figure.map_or(NOTHING.to_owned(), |number| format!("{number:.digits$}"))
}

fn megabytes(mb: Option<f64>) -> String {
    mb.map_or(NOTHING.to_owned(), |mb| format!("{mb:.0} MB"))
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{RecordSource, RunStatus};

    use super::*;

    #[test]
    fn a_run_that_was_stopped_is_no_measurement() {
        let mut record = Record::new(uuid::Uuid::nil(), RecordKind::Llm, RecordSource::default());
        assert_eq!(badge(&record), "unverified");
        record.status = RunStatus::Aborted;
        assert_eq!(badge(&record), "no measurement", "as `hob bench show` and the page say");
    }
}
