//! Decides from arrival times whether sound is sent while it is computed, for one text and for all texts together.
//! Pure: the same records give the same result.

use std::fmt;

use super::text::{Sentences, Text};
use crate::record::{Record, StreamVerdict, Tts};

/// Sound of this length or less is too short to judge.
const SHORT_S: f64 = 1.5;
/// Sound is streamed if at least this share of the total time is left after its first audible sample.
const FAKE_SPREAD: f64 = 0.10;
/// A long text may take this many times longer to its first sound than one sentence.
const PARTIAL_TIMES: f64 = 2.0;
/// A player that starts with the first sound has an audible pause, if it waits this long for more.
const UNDERRUN_MS_MIN: f64 = 100.0;

/// The figures of one text that decide its verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SoundArrival {
    pub(crate) audio_s: f64,
    pub(crate) spread: f64,
    pub(crate) ttfa_ms: f64,
    pub(crate) underrun_ms: f64,
    /// Time to first audio of one sentence from the same server. None for a single sentence, or if none was measured.
    pub(crate) sentence_ttfa_ms: Option<f64>,
}

pub(crate) fn verdict(arrival: SoundArrival) -> StreamVerdict {
    let SoundArrival { audio_s, spread, ttfa_ms, underrun_ms, sentence_ttfa_ms } = arrival;
    let is_late = |sentence_ms: f64| ttfa_ms > PARTIAL_TIMES * sentence_ms;
    if audio_s <= SHORT_S {
        StreamVerdict::TooShort
    } else if spread < FAKE_SPREAD {
        StreamVerdict::Fake
    } else if underrun_ms >= UNDERRUN_MS_MIN {
        StreamVerdict::Interrupted
    } else if sentence_ttfa_ms.is_some_and(is_late) {
        StreamVerdict::Partial
    } else {
        StreamVerdict::Streaming
    }
}

/// The result of all texts for which streaming was requested. Displayed as a sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamingFinding {
    /// There was no sound to judge.
    Unmeasured,
    TooShort,
    /// The sound is cut into pieces after all of it is computed.
    Fake {
        ttfa_ms: f64,
        last_ms: f64,
    },
    /// A sentence is sent after all of it is computed.
    BySentence {
        ttfa_ms: f64,
        last_ms: f64,
    },
    /// The first sound of a long text takes longer than that of one sentence.
    Partial {
        ttfa_ms: f64,
        sentence_ttfa_ms: f64,
    },
    /// Sound arrives more slowly than it plays, so a player that starts with the first sound has pauses.
    Interrupted {
        ttfa_ms: f64,
        last_ms: f64,
        underrun_ms: f64,
    },
    Streaming {
        ttfa_ms: f64,
        last_ms: f64,
    },
}

impl StreamingFinding {
    /// Judges records of one format, voice and request. The longest text decides, and a single sentence shows whether
    /// the server also streams within a sentence.
    pub fn from_records<'r>(records: impl IntoIterator<Item = &'r Record>) -> StreamingFinding {
        let heard = records.into_iter().filter_map(|record| {
            let text = Text::by_name(record.workload.shape.as_deref()?)?;
            Some((text, record.tts.as_ref()?))
        });
        let mut judged: Vec<(Text, &Tts)> =
            heard.filter(|(_, tts)| tts.verdict.is_some()).collect();
        judged.sort_by_key(|(text, _)| text.chars());
        let Some((_, longest)) = judged.last() else { return StreamingFinding::Unmeasured };
        let sentence = judged.iter().rev().find(|(text, tts)| {
            text.sentences == Sentences::One && tts.verdict != Some(StreamVerdict::TooShort)
        });
        let ms = |figure: Option<f64>| figure.unwrap_or_default();
        let (ttfa_ms, last_ms) = (ms(longest.ttfa_ms), ms(longest.last_ms));
        match (longest.verdict, sentence.map(|(_, tts)| tts)) {
            (Some(StreamVerdict::TooShort) | None, _) => StreamingFinding::TooShort,
            (Some(StreamVerdict::Fake), _) => StreamingFinding::Fake { ttfa_ms, last_ms },
            (Some(StreamVerdict::Interrupted), _) => StreamingFinding::Interrupted {
                ttfa_ms,
                last_ms,
                underrun_ms: ms(longest.underrun_ms),
            },
            (Some(StreamVerdict::Partial), sentence) => StreamingFinding::Partial {
                ttfa_ms,
                sentence_ttfa_ms: ms(sentence.and_then(|tts| tts.ttfa_ms)),
            },
            (Some(StreamVerdict::Streaming), Some(sentence))
                if sentence.verdict == Some(StreamVerdict::Fake) =>
            {
                StreamingFinding::BySentence { ttfa_ms, last_ms }
            }
            (Some(StreamVerdict::Streaming), _) => StreamingFinding::Streaming { ttfa_ms, last_ms },
        }
    }

    /// Whether sound is sent while it is computed; None if the text is too short to decide.
    pub fn streams(self) -> Option<bool> {
        match self {
            StreamingFinding::Unmeasured | StreamingFinding::TooShort => None,
            StreamingFinding::Fake { .. } => Some(false),
            StreamingFinding::BySentence { .. }
            | StreamingFinding::Partial { .. }
            | StreamingFinding::Interrupted { .. }
            | StreamingFinding::Streaming { .. } => Some(true),
        }
    }
}

impl fmt::Display for StreamingFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            StreamingFinding::Unmeasured => write!(f, "nothing is known: no text was spoken"),
            StreamingFinding::TooShort => {
                write!(f, "too short to tell: {SHORT_S} s of sound or less is computed in one step")
            }
            StreamingFinding::Fake { ttfa_ms, last_ms } => write!(
                f,
                "fakes it: the first sound comes after {ttfa_ms:.0} ms, and the last after {last_ms:.0} ms"
            ),
            StreamingFinding::BySentence { ttfa_ms, last_ms } => write!(
                f,
                "streams sentence by sentence: first sound after {ttfa_ms:.0} ms of {last_ms:.0} ms, but each sentence only after all of it is computed"
            ),
            StreamingFinding::Partial { ttfa_ms, sentence_ttfa_ms } => write!(
                f,
                "streams in part: the first sound of a long text comes after {ttfa_ms:.0} ms, and of one sentence after {sentence_ttfa_ms:.0} ms"
            ),
            StreamingFinding::Interrupted { ttfa_ms, last_ms, underrun_ms } => write!(
                f,
                "streams with gaps: first sound after {ttfa_ms:.0} ms of {last_ms:.0} ms, and a player then falls silent for up to {underrun_ms:.0} ms"
            ),
            StreamingFinding::Streaming { ttfa_ms, last_ms } => {
                write!(f, "streams: first sound after {ttfa_ms:.0} ms of {last_ms:.0} ms")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKind;

    #[test]
    fn the_verdict_on_one_text() {
        let rows = [
            (1.5, 0.9, 100.0, 0.0, None, StreamVerdict::TooShort),
            (1.6, 0.09, 100.0, 0.0, None, StreamVerdict::Fake),
            (1.6, 0.10, 100.0, 0.0, None, StreamVerdict::Streaming),
            (9.0, 0.5, 200.0, 99.0, Some(100.0), StreamVerdict::Streaming),
            (9.0, 0.5, 201.0, 0.0, Some(100.0), StreamVerdict::Partial),
            (9.0, 0.5, 200.0, 100.0, None, StreamVerdict::Interrupted),
            (9.0, 0.05, 200.0, 2400.0, None, StreamVerdict::Fake),
            // As published: 1462 and 1464 ms, and after the repair 575 and 1400 ms.
            (5.0, 2.0 / 1464.0, 1462.0, 0.0, None, StreamVerdict::Fake),
            (5.0, 825.0 / 1400.0, 575.0, 0.0, None, StreamVerdict::Streaming),
        ];
        for (audio_s, spread, ttfa_ms, underrun_ms, sentence_ttfa_ms, expected) in rows {
            let arrival = SoundArrival { audio_s, spread, ttfa_ms, underrun_ms, sentence_ttfa_ms };
            assert_eq!(verdict(arrival), expected, "{arrival:?}");
        }
    }

    fn record(text: &str, verdict: StreamVerdict, ttfa_ms: f64, last_ms: f64) -> Record {
        let mut record = Record { kind: RecordKind::Stream, ..Record::default() };
        record.workload.shape = Some(text.to_owned());
        record.tts = Some(Tts {
            verdict: Some(verdict),
            ttfa_ms: Some(ttfa_ms),
            last_ms: Some(last_ms),
            underrun_ms: Some(2400.0),
            ..Tts::default()
        });
        record
    }

    #[test]
    fn the_finding_of_all_texts() {
        use StreamVerdict::{Fake, Interrupted, Partial, Streaming, TooShort};
        let rows = [
            (vec![], "nothing is known: no text was spoken"),
            (
                vec![("short", TooShort, 90.0)],
                "too short to tell: 1.5 s of sound or less is computed in one step",
            ),
            (
                vec![("long", Fake, 980.0), ("medium", Fake, 300.0)],
                "fakes it: the first sound comes after 980 ms, and the last after 1000 ms",
            ),
            (
                vec![("medium", Streaming, 300.0), ("long", Interrupted, 300.0)],
                "streams with gaps: first sound after 300 ms of 1000 ms, and a player then falls silent for up to 2400 ms",
            ),
            (
                vec![("medium", Fake, 300.0), ("long", Streaming, 300.0)],
                "streams sentence by sentence: first sound after 300 ms of 1000 ms, but each sentence only after all of it is computed",
            ),
            (
                vec![("medium", Streaming, 100.0), ("long", Partial, 300.0)],
                "streams in part: the first sound of a long text comes after 300 ms, and of one sentence after 100 ms",
            ),
            (
                vec![
                    ("short", TooShort, 90.0),
                    ("medium", Streaming, 100.0),
                    ("long", Streaming, 150.0),
                ],
                "streams: first sound after 150 ms of 1000 ms",
            ),
        ];
        for (texts, expected) in rows {
            let records: Vec<Record> = texts
                .iter()
                .map(|(text, verdict, ttfa_ms)| record(text, *verdict, *ttfa_ms, 1000.0))
                .collect();
            assert_eq!(StreamingFinding::from_records(&records).to_string(), expected);
        }
    }
}
