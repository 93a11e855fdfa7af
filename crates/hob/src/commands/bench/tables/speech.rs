//! Tables of speech: how fast it is made, when it arrives, and what that means for a listener.
//! Under the table of `stream` stands a line for each cell that shows when its bytes arrived.

use std::collections::BTreeMap;

use hob_bench::experiment::{gain, scaling_verdict};
use hob_bench::record::{Record, RecordKind, StreamVerdict, Tts};
use hob_bench::speech::StreamingFinding;
use hob_bench::terms::Metric;
use hob_bench::timeline::{ArrivalPoint, SoundFormat};
use hob_core::statistics::Sample;

use super::{
    BADGE, CLIENT, Column, ERRORS, NOTHING, SHAPE, TOGETHER, USERS, megabytes, ms, number, p95,
    rows, scaling, written_ms,
};
use crate::printer::{self, count_text};

/// Characters of a timeline, from the request to the last byte.
const WIDTH: usize = 60;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const EMPTY: char = '·';

const TEXT: Column = ("text", SHAPE.1);
const FORMAT: Column = ("format", &|r| tts_of(r).format.unwrap_or_default());
const VOICE: Column = ("voice", &|r| tts_of(r).voice.unwrap_or_default());

const TTS: [Column; 17] = [
    TEXT,
    FORMAT,
    VOICE,
    USERS,
    ("first byte", &|r| ms(r, Metric::TtfbMs, 0)),
    ("first sound", &|r| ms(r, Metric::TtfaMs, 0)),
    ("whole", &|r| ms(r, Metric::WallMs, 0)),
    ("sound", &|r| {
        r.metrics.figure(Metric::AudioS).map_or(NOTHING.to_owned(), |s| format!("{s:.1} s"))
    }),
    ("bytes", &|r| tts_of(r).bytes.map_or(NOTHING.to_owned(), |bytes| bytes.to_string())),
    ("RTF", &|r| number(r, Metric::Rtf, 3)),
    ("char/s", &|r| number(r, Metric::CharsS, 0)),
    ("× real time", &|r| number(r, Metric::RealTimeX, 1)),
    ("underrun", &|r| ms(r, Metric::UnderrunMs, 0)),
    ("memory", &|r| megabytes(engine_mb(r))),
    ERRORS,
    CLIENT,
    BADGE,
];

const STREAM: [Column; 12] = [
    TEXT,
    FORMAT,
    ("streaming", &|r| stream_request_text(&tts_of(r)).to_owned()),
    ("first sound", &|r| written_ms(tts_of(r).ttfa_ms, 0)),
    ("last", &|r| written_ms(tts_of(r).last_ms, 0)),
    ("pieces", &|r| tts_of(r).chunks.map_or(NOTHING.to_owned(), |chunks| chunks.to_string())),
    ("longest gap", &|r| written_ms(r.metrics.get(Metric::IcgMs).and_then(|gaps| gaps.max), 0)),
    ("spread", &|r| tts_of(r).spread.map_or(NOTHING.to_owned(), |spread| format!("{spread:.2}"))),
    ("verdict", &|r| tts_of(r).verdict.map_or(NOTHING, verdict).to_owned()),
    ERRORS,
    CLIENT,
    BADGE,
];

fn tts_of(record: &Record) -> Tts {
    record.tts.clone().unwrap_or_default()
}

pub(super) fn tts(records: &[Record]) -> String {
    let means =
        [means(records, |tts| tts.format.as_ref()), means(records, |tts| tts.voice.as_ref())];
    let lines = means.into_iter().flatten().chain(records.iter().filter_map(tier));
    lines.fold(rows(&TTS, records), |text, line| format!("{text}\n\n{line}"))
}

/// Concurrent listeners: the sound of all of them, the first sound of each, and the engine's memory.
pub(super) fn listeners(records: &[&Record]) -> String {
    let gain = |record: &Record| {
        let gain = gain_over_one(record, records);
        gain.map_or(NOTHING.to_owned(), |gain| format!("{gain:.2}"))
    };
    let verdict = |record: &Record| scaling(record).map_or("", scaling_verdict).to_owned();
    let columns: [printer::Column<'_, Record>; 14] = [
        TEXT,
        FORMAT,
        VOICE,
        USERS,
        TOGETHER,
        ("first sound", &|r| ms(r, Metric::TtfaMs, 0)),
        ("p95", &|r| p95(r, Metric::TtfaMs)),
        ("longest", &|r| written_ms(r.metrics.get(Metric::TtfaMs).and_then(|times| times.max), 0)),
        ("memory", &|r| megabytes(listeners_memory_mb(r))),
        ERRORS,
        CLIENT,
        ("gain", &gain),
        BADGE,
        ("", &verdict),
    ];
    // One listener is measured with each number of them; the first of those records stands for all.
    let mut alone: Vec<Cell> = Vec::new();
    let shown = records.iter().copied().filter(|record| {
        let is_alone = record.workload.concurrency == Some(1);
        let is_known = is_alone && alone.contains(&cell_of(record));
        alone.extend(is_alone.then(|| cell_of(record)));
        !is_known
    });
    rows(&columns, shown)
}

/// Text, format and voice.
type Cell = [Option<String>; 3];

fn cell_of(record: &Record) -> Cell {
    let Tts { format, voice, .. } = tts_of(record);
    [record.workload.shape.clone(), format, voice]
}

/// Seconds of sound per second, divided by those of one listener. The runs of one listener next to these are better than
/// those of another time.
fn gain_over_one(record: &Record, records: &[&Record]) -> Option<f64> {
    let paired = || Some(scaling(record)? * f64::from(record.slowdown.as_ref()?.n));
    let is_alone = |other: &&Record| {
        other.workload.concurrency == Some(1) && cell_of(other) == cell_of(record)
    };
    let alone = || records.iter().copied().find(is_alone);
    paired().or_else(|| gain(alone()?, record))
}

/// Memory only grows, and runs of one listener and of several alternate. So the memory of one listener is not known there.
fn listeners_memory_mb(record: &Record) -> Option<f64> {
    let is_mixed = record.kind == RecordKind::Concurrency && record.workload.concurrency == Some(1);
    engine_mb(record).filter(|_| !is_mixed)
}

/// The table of `stream`. The caller prints the timelines below it.
pub(super) fn stream(records: &[Record]) -> String {
    format!("{}\n\n{}", rows(&STREAM, records), found(records).join("\n"))
}

/// When the bytes of a cell arrived, and which cell it is.
pub(crate) fn timeline(record: &Record, arrivals: &[ArrivalPoint]) -> String {
    format!("{}  {}", arrival_bars(arrivals), called(record))
}

/// The speech engine alone, if it can be separated from the rest of the server.
fn engine_mb(record: &Record) -> Option<f64> {
    record.resources.speech_rss_peak_mb.or_else(|| record.resources.memory_mb())
}

/// A line for each format, or for each voice, where there are several of them. Cells without figures do not count.
fn means(records: &[Record], name: fn(&Tts) -> Option<&String>) -> Vec<String> {
    let mut groups: BTreeMap<&String, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|one| one.metrics.figure(Metric::WallMs).is_some()) {
        if let Some(name) = record.tts.as_ref().and_then(name) {
            groups.entry(name).or_default().push(record);
        }
    }
    if groups.len() < 2 {
        return Vec::new();
    }
    let mean = |records: &[&Record], metric| {
        Sample::new(records.iter().filter_map(|record| record.metrics.figure(metric))).mean()
    };
    let line = |(name, records): (&String, Vec<&Record>)| {
        let of = |metric| mean(&records, metric).unwrap_or_default();
        format!(
            "{name}: first sound {:.0} ms, whole {:.0} ms, RTF {:.3}, mean of {}",
            of(Metric::TtfaMs),
            of(Metric::WallMs),
            of(Metric::Rtf),
            count_text(records.len(), "cell")
        )
    };
    groups.into_iter().map(line).collect()
}

/// The tier that three texts have together; one of their records holds it.
fn tier(record: &Record) -> Option<String> {
    let tts = record.tts.as_ref()?;
    let (tier, format, voice) = (tts.tier?, tts.format.as_ref()?, tts.voice.as_ref()?);
    let meaning = match tier {
        1 => "real time: under 3 s in the mean of three texts",
        2 => "moderate: under 7 s in the mean of three texts",
        _ => "slow: 7 s or more in the mean of three texts",
    };
    Some(format!("{format} by {voice}: tier {tier}, {meaning}"))
}

fn stream_request_text(tts: &Tts) -> &'static str {
    match tts.stream {
        None => "not said",
        Some(true) => "asked for",
        Some(false) => "declined",
    }
}

fn verdict(verdict: StreamVerdict) -> &'static str {
    match verdict {
        StreamVerdict::TooShort => "too short",
        StreamVerdict::Fake => "fake",
        StreamVerdict::Partial => "in part",
        StreamVerdict::Interrupted => "with gaps",
        StreamVerdict::Streaming => "streaming",
    }
}

fn called(record: &Record) -> String {
    let tts = tts_of(record);
    let parts = [
        record.workload.shape.clone(),
        tts.format.clone(),
        tts.voice.clone(),
        Some(stream_request_text(&tts).to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// One bar for each slice of time. Its height shows how many bytes arrived then.
fn arrival_bars(arrivals: &[ArrivalPoint]) -> String {
    let last_ms = arrivals.last().map_or(0.0, |arrived| arrived.at_ms);
    let (mut columns, mut before) = ([0; WIDTH], 0);
    for arrived in arrivals {
        let column = (arrived.at_ms / last_ms * WIDTH as f64) as usize;
        columns[column.min(WIDTH - 1)] += arrived.bytes - before;
        before = arrived.bytes;
    }
    let most = columns.into_iter().max().unwrap_or_default();
    let level = |bytes: usize| match (bytes * LEVELS.len()).div_ceil(most.max(1)) {
        0 => EMPTY,
        height => LEVELS[height - 1],
    };
    columns.into_iter().map(level).collect()
}

/// A sentence for each format and voice, and one on the encoder.
fn found(records: &[Record]) -> Vec<String> {
    let mut sets: Vec<(String, String, Vec<&Record>)> = Vec::new();
    for record in records {
        let Some(tts) = record.tts.as_ref().filter(|tts| tts.stream != Some(false)) else {
            continue;
        };
        let (format, voice) =
            (tts.format.clone().unwrap_or_default(), tts.voice.clone().unwrap_or_default());
        match sets.iter_mut().find(|(f, v, _)| (f, v) == (&format, &voice)) {
            Some((_, _, set)) => set.push(record),
            None => sets.push((format, voice, vec![record])),
        }
    }
    let findings: Vec<_> = sets
        .iter()
        .map(|(format, voice, set)| {
            (format, voice, StreamingFinding::from_records(set.iter().copied()))
        })
        .collect();
    let sentence = |(format, voice, finding): &(&String, &String, StreamingFinding)| {
        format!("{format} by {voice}: {finding}")
    };
    let of = |format: SoundFormat| findings.iter().find(|(name, _, _)| *name == format.name());
    let encoder = of(SoundFormat::Pcm).zip(of(SoundFormat::Mp3));
    let encoder = encoder.and_then(|((_, _, raw), (_, _, packed))| on_encoder(*raw, *packed));
    findings.iter().map(sentence).chain(encoder.map(str::to_owned)).collect()
}

/// Whether the encoder holds sound back. `None` if one of the formats could not be judged.
fn on_encoder(raw: StreamingFinding, packed: StreamingFinding) -> Option<&'static str> {
    match (raw.streams()?, packed.streams()?) {
        (true, true) => Some("mp3 comes as pcm does: no encoder holds sound back"),
        (true, false) => Some("pcm streams and mp3 does not: the encoder holds sound back"),
        (false, false) => Some("pcm comes no earlier than mp3: it is not the encoder's doing"),
        (false, true) => Some("mp3 streams and pcm does not"),
    }
}

#[cfg(test)]
mod tests {
    use hob_bench::record::{RecordSource, Slowdown, Spread};
    use uuid::Uuid;

    use super::*;

    /// A cell of `tts`. Without a time it has failed.
    fn spoken(format: &str, voice: &str, wall_ms: Option<f64>) -> Record {
        let mut record = Record::new(Uuid::nil(), RecordKind::Tts, RecordSource::default());
        record.tts = Some(Tts {
            format: Some(format.to_owned()),
            voice: Some(voice.to_owned()),
            bytes: Some(34_560),
            ..Tts::default()
        });
        let times = [(Metric::TtfaMs, 0.5), (Metric::WallMs, 1.0), (Metric::Rtf, 0.001)];
        for (metric, share) in times {
            if let Some(ms) = wall_ms {
                let spread = Spread { p50: Some(ms * share), ..Spread::default() };
                record.metrics.spreads.insert(metric, spread);
            }
        }
        record
    }

    #[test]
    fn several_formats_and_voices_have_means_without_failed_cells() {
        let records = [
            spoken("pcm", "ada", Some(100.0)),
            spoken("pcm", "bob", Some(300.0)),
            spoken("wav", "ada", Some(200.0)),
            spoken("wav", "bob", None),
            spoken("mp3", "ada", None),
        ];
        let text = tts(&records);
        for line in [
            "pcm: first sound 100 ms, whole 200 ms, RTF 0.200, mean of 2 cells",
            "wav: first sound 100 ms, whole 200 ms, RTF 0.200, mean of 1 cell",
            "ada: first sound 75 ms, whole 150 ms, RTF 0.150, mean of 2 cells",
            "bob: first sound 150 ms, whole 300 ms, RTF 0.300, mean of 1 cell",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("mp3: "), "{text}");
        assert!(!tts(&records[..1]).contains("mean of"), "one cell is its own mean");
    }

    #[test]
    fn a_row_has_the_bytes_and_the_memory_of_the_speech_engine_alone() {
        let mut record = spoken("pcm", "ada", Some(100.0));
        record.resources.rss_peak_mb = Some(2_500.0);
        let whole = tts(std::slice::from_ref(&record));
        assert!(whole.contains("34560") && whole.contains("2500 MB"), "{whole}");
        record.resources.speech_rss_peak_mb = Some(374.0);
        let engine = tts(&[record]);
        assert!(engine.contains("374 MB") && !engine.contains("2500 MB"), "{engine}");
    }

    /// A cell of several listeners, with the seconds of sound per second that all of them get.
    fn heard(kind: RecordKind, users: u32, real_time_x: f64) -> Record {
        let mut record = spoken("pcm", "ada", Some(100.0));
        record.kind = kind;
        record.workload.concurrency = Some(users);
        record.resources.speech_rss_peak_mb = Some(300.0 + f64::from(users));
        let rate = Spread { p50: Some(real_time_x), ..Spread::default() };
        record.metrics.spreads.insert(Metric::RealTimeX, rate);
        let first =
            Spread { p50: Some(90.0), p95: Some(95.0), max: Some(99.0), ..Spread::default() };
        record.metrics.spreads.insert(Metric::TtfaMs, first);
        record
    }

    #[test]
    fn listeners_have_their_gain_their_first_sounds_and_the_memory() {
        let batch = [1, 4].map(|users| heard(RecordKind::Batch, users, 10.0 + f64::from(users)));
        let text = listeners(&batch.each_ref());
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 3, "{text}");
        for figure in ["90 ms", "95 ms", "99 ms", "301 MB", "1.00"] {
            assert!(rows[1].contains(figure), "{figure}: {text}");
        }
        assert!(rows[2].contains("1.27") && rows[2].contains("304 MB"), "{text}");
    }

    #[test]
    fn the_gain_is_that_over_the_runs_of_one_listener_next_to_them() {
        let kind = RecordKind::Concurrency;
        let mut all = [(1, 10.0), (2, 20.0), (1, 5.0), (4, 20.0)].map(|(n, x)| heard(kind, n, x));
        for (record, (n, scaling)) in
            all.iter_mut().zip([(1, None), (2, Some(0.75)), (1, None), (4, Some(0.5))])
        {
            record.slowdown = Some(Slowdown { n, scaling, ..Slowdown::default() });
        }
        let text = listeners(&all.each_ref());
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 4, "one listener stands there once: {text}");
        assert!(rows[2].contains("1.50") && rows[2].contains("throughput"), "{text}");
        assert!(rows[3].contains("2.00") && rows[3].contains("queueing"), "{text}");
        assert!(!text.contains("301 MB") && rows[3].contains("304 MB"), "{text}");
    }

    fn arrivals(rows: &[(f64, usize)]) -> Vec<ArrivalPoint> {
        rows.iter().map(|(at_ms, bytes)| ArrivalPoint { at_ms: *at_ms, bytes: *bytes }).collect()
    }

    #[test]
    fn a_timeline_is_as_high_as_bytes_came() {
        let (nothing, half) = ("·".repeat(WIDTH), "·".repeat(WIDTH / 2));
        let all_at_once = "·".repeat(WIDTH - 1) + "█";
        let rows = [
            (vec![], nothing),
            (vec![(100.0, 5000)], all_at_once.clone()),
            (vec![(100.0, 5000), (100.0, 6000)], all_at_once),
            (vec![(50.0, 1000), (100.0, 3000)], format!("{half}▄{}█", "·".repeat(WIDTH / 2 - 2))),
        ];
        for (rows, expected) in rows {
            assert_eq!(arrival_bars(&arrivals(&rows)), expected, "{rows:?}");
        }
    }

    #[test]
    fn the_encoder_is_cleared_or_not() {
        let streams = StreamingFinding::Streaming { ttfa_ms: 1.0, last_ms: 9.0 };
        let fakes = StreamingFinding::Fake { ttfa_ms: 9.0, last_ms: 9.0 };
        let rows = [
            (streams, streams, Some("mp3 comes as pcm does: no encoder holds sound back")),
            (streams, fakes, Some("pcm streams and mp3 does not: the encoder holds sound back")),
            (fakes, fakes, Some("pcm comes no earlier than mp3: it is not the encoder's doing")),
            (fakes, streams, Some("mp3 streams and pcm does not")),
            (streams, StreamingFinding::TooShort, None),
            (StreamingFinding::Unmeasured, fakes, None),
        ];
        for (raw, packed, expected) in rows {
            assert_eq!(on_encoder(raw, packed), expected, "{raw:?} {packed:?}");
        }
    }
}
