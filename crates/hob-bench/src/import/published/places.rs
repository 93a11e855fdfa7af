//! Sets the field of a record for a published figure, by its metric and unit.
//! A figure without such a field becomes a sentence.

use serde_json::Value;

use super::{Row, plain};
use crate::record::{
    Attempt, AttemptResult, MaxContext, Record, RecordKind, RunStatus, Spread, StreamVerdict, Tts,
    VoiceFigures, VramUse,
};
use crate::terms::Metric;

const MS_PER_S: f64 = 1e3;
const MB_PER_GB: f64 = 1e3;
const MB_PER_GIB: f64 = 1_073.741_824;
const MB_PER_MIB: f64 = 1.048_576;

pub(super) fn put(record: &mut Record, row: &Row) {
    speech(record, row);
    let number = row.value.as_ref().and_then(Value::as_f64);
    let unit = row.unit.as_deref().unwrap_or_default();
    let time = if unit == "s" { MS_PER_S } else { 1.0 };
    match row.metric.as_str() {
        "status" => failed(record, row),
        "ctx_attempt" => attempt(record, row),
        "max_context" => {
            record.max_context = number
                .map(|tokens| MaxContext { load: Some(tokens as u64), ..MaxContext::default() })
        }
        "vram" => vram(record, number, unit),
        "memory" | "ram" | "memory_per_worker" => {
            record.resources.rss_peak_mb = number.map(|n| n * megabytes(unit))
        }
        "model_size" => record.model.bytes = number.map(|gb| (gb * 1e9) as u64),
        "ttfa" if row.kind == RecordKind::Voice => voice(record, row, time),
        "first request" => {
            record.resources.cold_first_ms = number.map(|s| s * time);
            figure(record, row, Metric::ColdFirstMs, time);
        }
        name => match metric(name, unit) {
            Some(metric) => figure(
                record,
                row,
                metric,
                if metric.definition().unit == "ms" { time } else { 1.0 },
            ),
            None => sentence(record, row),
        },
    }
}

fn metric(name: &str, unit: &str) -> Option<Metric> {
    Some(match (name, unit) {
        ("synth_wall", _) => Metric::WallMs,
        ("gen_tok_s", _) => Metric::GenTokS,
        ("decode_tok_s", _) => Metric::DecodeTokS,
        ("prompt_tokens/ttft", _) => Metric::PromptTtftTokS,
        ("throughput", "x") => Metric::RealTimeX,
        ("ttfb_mean", _) => Metric::TtfbMs,
        ("ttfa", _) => Metric::TtfaMs,
        // Nothing was cached, so this is the time to the first token.
        ("ttft" | "cold_prefill", _) => Metric::TtftMs,
        ("rtf", _) => Metric::Rtf,
        ("turn latency", _) => Metric::E2eMs,
        ("reasoning_tokens", _) => Metric::ReasoningTokens,
        ("visible_answer", _) => Metric::ContentTokens,
        ("chars_s", _) => Metric::CharsS,
        ("model_swap", _) => Metric::SwapMs,
        _ => return None,
    })
}

/// One value, a range, or one statistic of several rows.
fn figure(record: &mut Record, row: &Row, metric: Metric, scale: f64) {
    let spread = record.metrics.spreads.entry(metric).or_default();
    fill(spread, row, scale);
}

fn fill(spread: &mut Spread, row: &Row, scale: f64) {
    if let Some([low, high]) = row.range {
        spread.min = low.map(|low| low * scale);
        spread.max = high.map(|high| high * scale);
    }
    let value = row.value.as_ref().and_then(Value::as_f64).map(|value| value * scale);
    let statistic = row.conditions.get("statistic").and_then(Value::as_str);
    let is_mean = row.metric.ends_with("_mean")
        || row.method.as_deref().is_some_and(|method| method.contains("mean of"));
    match (statistic, is_mean) {
        (Some("min"), _) => spread.min = value,
        (Some("max"), _) => spread.max = value,
        (Some("p95"), _) => spread.p95 = value,
        (Some("mean"), _) | (None, true) => spread.mean = value.or(spread.mean),
        _ => spread.p50 = value.or(spread.p50),
    }
    if row.approx {
        spread.method = Some("published as about".to_owned());
    }
}

fn voice(record: &mut Record, row: &Row, scale: f64) {
    let voice = record.voice.get_or_insert_with(VoiceFigures::default);
    fill(voice.ttfa_ms.get_or_insert_default(), row, scale);
    figure(record, row, Metric::TtfaMs, scale);
}

/// The fields of a speech run that are not metrics.
fn speech(record: &mut Record, row: &Row) {
    if !matches!(row.kind, RecordKind::Tts | RecordKind::Stream) {
        return;
    }
    let tts = record.tts.get_or_insert_with(Tts::default);
    let text = |name: &str| row.conditions.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = row.value.as_ref().and_then(Value::as_f64);
    tts.tier = tts.tier.or(row.tier);
    tts.voice = tts.voice.take().or_else(|| text("voice"));
    tts.format = tts.format.take().or_else(|| text("format"));
    let chars = row.conditions.get("chars").and_then(Value::as_u64);
    tts.chars = tts.chars.or_else(|| u32::try_from(chars?).ok());
    match (row.metric.as_str(), row.unit.as_deref()) {
        ("synth_wall", Some(unit)) => {
            tts.wall_s = number.map(|n| if unit == "ms" { n / MS_PER_S } else { n })
        }
        ("rtf", _) => tts.rtf = number,
        ("ttfa", Some("ms")) => tts.ttfa_ms = number,
        ("last_chunk", Some("ms")) => tts.last_ms = number,
        ("chunks", _) => tts.chunks = number.map(|n| n as u64),
        _ => {}
    }
    if row.note.as_deref() == Some("fake streaming") {
        tts.verdict = Some(StreamVerdict::Fake);
    }
    if let (Some(first), Some(last)) = (tts.ttfa_ms, tts.last_ms.filter(|last| *last > 0.0)) {
        tts.spread = Some((last - first).max(0.0) / last);
    }
}

fn failed(record: &mut Record, row: &Row) {
    record.status = RunStatus::Failed;
    record
        .invalid_reasons
        .push(row.note.clone().unwrap_or_else(|| "published as failed".to_owned()));
}

fn vram(record: &mut Record, value: Option<f64>, unit: &str) {
    record.resources.vram_mb =
        value.map(|n| VramUse { peak: Some(n * megabytes(unit)), ..VramUse::default() });
}

fn megabytes(unit: &str) -> f64 {
    match unit {
        "GB" => MB_PER_GB,
        "GiB" => MB_PER_GIB,
        "MiB" => MB_PER_MIB,
        _ => 1.0,
    }
}

/// The server was only started, so a failure is a failure to load.
fn attempt(record: &mut Record, row: &Row) {
    let Some(ctx) = row.value.as_ref().and_then(Value::as_u64) else { return };
    let is_ok = row.conditions.get("outcome").and_then(Value::as_str) == Some("ok");
    let ceiling = record.max_context.get_or_insert_with(MaxContext::default);
    let result = if is_ok { AttemptResult::Ok } else { AttemptResult::OomLoad };
    let vram_mb =
        row.conditions.get("vram_used").and_then(Value::as_f64).map(|mib| mib * MB_PER_MIB);
    ceiling.attempts.push(Attempt { ctx, result, vram_mb, rss_mb: None, s: None, said: None });
    let tried =
        |result| ceiling.attempts.iter().filter(move |one| one.result == result).map(|one| one.ctx);
    (ceiling.lo_ok, ceiling.hi_fail) =
        (tried(AttemptResult::Ok).max(), tried(AttemptResult::OomLoad).min());
    ceiling.load = ceiling.lo_ok;
}

/// Keeps a figure that has no field in a record.
fn sentence(record: &mut Record, row: &Row) {
    if matches!(row.metric.as_str(), "last_chunk" | "chunks") && record.tts.is_some() {
        return;
    }
    let value = match (&row.value, row.range) {
        (Some(value), _) => plain(value),
        (None, Some([low, high])) => {
            let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), |end| end.to_string());
            format!("{} to {}", end(low), end(high))
        }
        (None, None) => "not published".to_owned(),
    };
    let unit = row.unit.as_ref().map_or_else(String::new, |unit| format!(" {unit}"));
    record.source.lossy.push(format!("{}: {value}{unit}", row.metric));
}
