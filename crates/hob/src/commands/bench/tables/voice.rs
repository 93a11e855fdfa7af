//! The table of spoken conversations: how soon the answer is heard, and the stages of that time.
//! The first figure includes all others except the interruption and what is unexplained.

use hob_bench::record::{Record, VoiceVerdict};
use hob_bench::terms::Metric;

use super::{BADGE, CLIENT, Column, ERRORS, MEMORY, NOTHING, SHAPE, USERS, ms, p95, rows};

const VOICE: [Column; 21] = [
    ("server", &|r| r.engine.name.clone().unwrap_or_default()),
    ("model", &|r| r.model.name.clone()),
    ("questions", SHAPE.1),
    USERS,
    ("turns", &|r| {
        r.voice.as_ref().and_then(|v| v.turns).map_or(NOTHING.to_owned(), |n| n.to_string())
    }),
    ("first sound", &|r| ms(r, Metric::TtfaMs, 0)),
    ("95 %", &|r| p95(r, Metric::TtfaMs)),
    ("end of turn", &|r| ms(r, Metric::EndpointMs, 0)),
    ("transcript", &|r| ms(r, Metric::TranscriptMs, 0)),
    ("first text", &|r| ms(r, Metric::FirstTextMs, 0)),
    ("first clause", &|r| ms(r, Metric::FirstClauseMs, 0)),
    ("first voice", &|r| ms(r, Metric::FirstVoiceMs, 0)),
    ("transport", &|r| ms(r, Metric::TransportMs, 0)),
    ("unexplained, 95 %", &|r| p95(r, Metric::UnexplainedMs)),
    ("interruption", &|r| ms(r, Metric::BargeInMs, 0)),
    ("interruption, 95 %", &|r| p95(r, Metric::BargeInMs)),
    ("cut in", &|r| {
        let pct = r.voice.as_ref().and_then(|voice| voice.cut_in_pct);
        pct.map_or(NOTHING.to_owned(), |pct| format!("{pct:.0} %"))
    }),
    MEMORY,
    ERRORS,
    CLIENT,
    BADGE,
];

pub(super) fn voice(records: &[Record]) -> String {
    let verdicts = records.iter().filter_map(|record| record.voice.as_ref()?.verdict);
    let verdicts: Vec<VoiceVerdict> = verdicts.collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let line = |count: usize, what: &str| match count {
        0 => String::new(),
        _ => format!("\n\nHalf of the answers begin {what}: {count} of {}.", verdicts.len()),
    };
    let best = line(count(VoiceVerdict::Best), "within 0.8 s, as in a conversation");
    let slow = line(count(VoiceVerdict::Fail), "later than 1.5 s");
    format!("{}{best}{slow}", rows(&VOICE, records))
}
