//! Formats figures for people: three significant digits, and seconds instead of many milliseconds.
//! The page and the terminal write the same figure in the same way.

use hob_core::grouped_digits;

use crate::record::{Cache, Record, RecordKind, Spread};
use crate::terms::{Metric, MetricDefinition};

/// From this value on, milliseconds are written as seconds.
const MS_MAX: f64 = 10_000.0;

/// Three significant digits, or two below 1, with at most three decimals. Keeps all digits before the decimal point.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, rest) =
        text.split_once('.').map_or((text, ""), |(whole, _)| (whole, &text[whole.len()..]));
    format!("{}{rest}", grouped_digits(whole))
}

/// A value with its unit.
pub fn figure(value: f64, definition: &MetricDefinition) -> String {
    match definition.unit {
        "ms" if value.abs() >= MS_MAX => format!("{} s", number(value / 1e3)),
        "" => number(value),
        "×" => format!("{}×", number(value)),
        unit => format!("{} {unit}", number(value)),
    }
}

/// The figure of a spread. Without a figure its range, its 95th percentile, or a dash.
pub fn spread(spread: &Spread, metric: Metric) -> String {
    let written = |value| figure(value, metric.definition());
    match (spread.figure(), spread.min, spread.max) {
        (Some(value), _, _) if spread.p50.is_none() => format!("{} (mean)", written(value)),
        (Some(value), _, _) => written(value),
        (None, Some(min), Some(max)) => format!("{} to {}", written(min), written(max)),
        (None, Some(min), None) => format!("at least {}", written(min)),
        (None, None, Some(max)) => format!("at most {}", written(max)),
        (None, None, None) => {
            spread.p95.map_or_else(|| "–".to_owned(), |p95| format!("p95 {}", written(p95)))
        }
    }
}

/// The shape of the requests, with what distinguishes records of one shape: what the server knew of the prompts, the format
/// of the sound, the voice.
pub fn asked(record: &Record) -> String {
    let prompt = match (record.workload.cache, record.kind) {
        (Some(Cache::Cached), _) => Some("known prompt"),
        (Some(Cache::Cold), RecordKind::CtxSweep) => Some("new prompt"),
        (Some(Cache::Cold | Cache::Mixed) | None, _) => None,
    };
    let tts = record.tts.as_ref();
    let parts = [
        record.workload.shape.as_deref(),
        prompt,
        tts.and_then(|tts| tts.format.as_deref()),
        tts.and_then(|tts| tts.voice.as_deref()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The number of stalls in a run and the longest one, or a dash without stalls.
pub fn stalls(record: &Record) -> String {
    let stalls = record.metrics.stall.filter(|stalls| stalls.count > 0);
    stalls.map_or_else(
        || "–".to_owned(),
        |stalls| format!("{}, worst {} ms", stalls.count, number(stalls.worst_ms)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Stall, Tts};

    #[test]
    fn numbers_have_three_significant_digits() {
        let rows = [
            (0.0, "0"),
            (0.0123, "0.012"),
            (0.19, "0.19"),
            (1.456, "1.46"),
            (12.0, "12"),
            (17.84, "17.8"),
            (137.7, "138"),
            (1462.0, "1,462"),
            (195_072.0, "195,072"),
            (-1234.5, "-1,234"),
        ];
        for (value, expected) in rows {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn many_milliseconds_become_seconds() {
        let rows = [(84.0, "84 ms"), (9_999.0, "9,999 ms"), (13_800.0, "13.8 s")];
        for (value, expected) in rows {
            assert_eq!(figure(value, Metric::TtftMs.definition()), expected);
        }
        assert_eq!(figure(5.45, Metric::RealTimeX.definition()), "5.45×");
        assert_eq!(figure(0.5, Metric::Rtf.definition()), "0.5");
    }

    #[test]
    fn stalls_are_shown_with_the_longest() {
        let mut record = Record::default();
        for (count, worst_ms, expected) in [(0, 0.0, "–"), (3, 2_400.0, "3, worst 2,400 ms")] {
            record.metrics.stall = Some(Stall { count, worst_ms });
            assert_eq!(stalls(&record), expected);
        }
        record.metrics.stall = None;
        assert_eq!(stalls(&record), "–");
    }

    #[test]
    fn records_of_one_shape_can_be_distinguished() {
        let of = |kind, cache, tts| {
            let mut record = Record { kind, tts, ..Record::default() };
            (record.workload.shape, record.workload.cache) = (Some("s".to_owned()), cache);
            asked(&record)
        };
        let (format, voice) = (Some("mp3".to_owned()), Some("ada".to_owned()));
        let tts = Some(Tts { format, voice, ..Tts::default() });
        let rows = [
            (RecordKind::CtxSweep, Some(Cache::Cold), None, "s new prompt"),
            (RecordKind::CtxSweep, Some(Cache::Cached), None, "s known prompt"),
            (RecordKind::Llm, Some(Cache::Cached), None, "s known prompt"),
            (RecordKind::Llm, Some(Cache::Cold), None, "s"),
            (RecordKind::Tts, None, tts, "s mp3 ada"),
        ];
        for (kind, cache, tts, expected) in rows {
            assert_eq!(of(kind, cache, tts), expected);
        }
    }

    #[test]
    fn a_range_replaces_an_unknown_figure() {
        let range = |min, max| Spread { min, max, ..Spread::default() };
        let rows = [
            (range(Some(17_000.0), Some(25_000.0)), "17 s to 25 s"),
            (range(Some(20.0), None), "at least 20 ms"),
            (range(None, Some(20.0)), "at most 20 ms"),
            (range(None, None), "–"),
            (Spread { mean: Some(36.0), ..Spread::default() }, "36 ms (mean)"),
            (Spread { mean: Some(36.0), p50: Some(35.0), ..Spread::default() }, "35 ms"),
        ];
        for (given, expected) in rows {
            assert_eq!(spread(&given, Metric::TtftMs), expected);
        }
    }
}
