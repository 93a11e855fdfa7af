//! `hob bench stream`: whether a server speaks while it thinks, or only seems to. It ends well whatever the verdict.
//! The verdict is a sentence, and under it stands when the sound came, so that everybody can see it.

use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, ValueEnum};
use hob_bench::record::{Kind, Record, StreamVerdict, Tts};
use hob_bench::speech::{Finding, Formats, Text};
use hob_bench::stream::{Asked, Wish, watch};
use hob_bench::terms::Metric;
use hob_bench::timeline::{Arrived, SoundFormat};
use hob_bench::workbench::Workbench;

use super::aim::Purpose;
use super::campaign::{self, CampaignArgs, badge, off_by};
use super::tts::{ChoiceArgs, text};
use crate::failure::{Exit, Failure, Outcome};
use crate::globals::Globals;
use crate::printer::{Printer, table};

/// Characters of a timeline, from the request to the last byte.
const WIDTH: usize = 60;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const NOTHING: char = '·';

/// Whether sound comes while it is made: one sentence, two and a long text, raw and packed
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    pub(super) campaign: CampaignArgs,
    /// Texts to be spoken; longer ones are held against one sentence
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = text,
        default_value = "medium,two_sentences,long")]
    text: Vec<Text>,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Whether streaming is asked for, or not, or both one after the other
    #[arg(long, value_enum, default_value_t = AskedName::Both)]
    asked: AskedName,
    /// Requests in a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: usize,
}

const AFTER_HELP: &str = "\
A server may send its answer in pieces and still make all of it first. Then the first sound comes with the last, and
somebody who listens waits as long as for a file. If that is so in mp3 and not in pcm, it is the encoder's doing.

The line under the table goes from the request to the last byte, and is as high as there came bytes.

Examples:
  hob bench stream                     of the voice that hob serve would speak with
  hob bench stream --target http://127.0.0.1:8880 --model kokoro --voice af_heart
  hob bench stream --target http://127.0.0.1:8880 --model tts-1 --voice alloy --format mp3 --asked yes";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AskedName {
    Yes,
    No,
    Both,
}

/// When the sound of each text came.
type Timelines = Arc<Mutex<Vec<String>>>;

pub(crate) fn run(args: &StreamArgs, globals: &Globals, printer: &Printer) -> Outcome<Exit> {
    let wish = args.wish()?;
    let timelines = Timelines::default();
    let drawing = Arc::clone(&timelines);
    let work = move |bench: &mut Workbench<'_>| {
        watch(bench, &wish, &mut |record, arrivals| {
            let line = format!("{}  {}", drawn(arrivals), called(record));
            drawing.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        })
    };
    let aim = args.campaign.aim.settle_for(Purpose::Speech, globals, printer)?;
    let done = campaign::measured(&args.campaign, aim, (printer, Kind::Stream), work)?;
    let drawn = timelines.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
    done.show(args.campaign.json, printer, |records| {
        format!("{}\n\n{drawn}\n\n{}", shown(records), found(records).join("\n"))
    })?;
    let is_measured = |record: &Record| record.metrics.figure(Metric::TtfaMs).is_some();
    let has_any = done.records.iter().any(is_measured);
    done.exit(|_| !has_any)
}

impl StreamArgs {
    /// The cell of this record, and of shorter texts what it is held against.
    pub(super) fn only(&mut self, record: &Record) {
        let Some(tts) = &record.tts else { return };
        let most = tts.chars.map_or(usize::MAX, |chars| chars as usize);
        self.text.retain(|text| text.chars() <= most);
        self.choice.only(tts);
        self.asked = if tts.stream == Some(false) { AskedName::No } else { AskedName::Yes };
    }

    fn wish(&self) -> Outcome<Wish> {
        if self.rounds == 0 {
            return Err(Failure::usage("something has to be asked"));
        }
        let mut texts = self.text.clone();
        // A sentence is known before what is held against it.
        texts.sort_by_key(|text| text.chars());
        Ok(Wish {
            texts,
            choice: self.choice.choice(Formats::Offered(vec![SoundFormat::Pcm, SoundFormat::Mp3])),
            asked: match self.asked {
                AskedName::Yes => vec![Asked::Streamed],
                AskedName::No => vec![Asked::Whole],
                AskedName::Both => vec![Asked::Streamed, Asked::Whole],
            },
            rounds: self.rounds,
        })
    }
}

fn shown(records: &[Record]) -> String {
    let mut table = table([
        "text",
        "format",
        "streaming",
        "first sound",
        "last",
        "pieces",
        "longest gap",
        "spread",
        "verdict",
        "errors",
        "client off by",
        "",
    ]);
    for record in records {
        let tts = record.tts.clone().unwrap_or_default();
        let ms = |ms: Option<f64>| ms.map_or("–".to_owned(), |ms| format!("{ms:.0} ms"));
        let gap_ms = record.metrics.get(Metric::IcgMs).and_then(|gaps| gaps.max);
        table.add_row([
            record.workload.shape.clone().unwrap_or_default(),
            tts.format.clone().unwrap_or_default(),
            asked(&tts).to_owned(),
            ms(tts.ttfa_ms),
            ms(tts.last_ms),
            tts.chunks.map_or("–".to_owned(), |chunks| chunks.to_string()),
            ms(gap_ms),
            tts.spread.map_or("–".to_owned(), |spread| format!("{spread:.2}")),
            tts.verdict.map_or("–", worded).to_owned(),
            record.metrics.errors.unwrap_or_default().to_string(),
            off_by(record),
            badge(record).to_owned(),
        ]);
    }
    table.trim_fmt()
}

fn asked(tts: &Tts) -> &'static str {
    match tts.stream {
        None => "not said",
        Some(true) => "asked for",
        Some(false) => "declined",
    }
}

fn worded(verdict: StreamVerdict) -> &'static str {
    match verdict {
        StreamVerdict::TooShort => "too short",
        StreamVerdict::Fake => "fake",
        StreamVerdict::Partial => "in part",
        StreamVerdict::Interrupted => "with gaps",
        StreamVerdict::Streaming => "streaming",
    }
}

fn called(record: &Record) -> String {
    let tts = record.tts.clone().unwrap_or_default();
    let parts = [
        record.workload.shape.clone(),
        tts.format.clone(),
        tts.voice.clone(),
        Some(asked(&tts).to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Each column is as high as bytes came in its time.
fn drawn(arrivals: &[Arrived]) -> String {
    let last_ms = arrivals.last().map_or(0.0, |arrived| arrived.at_ms);
    let (mut columns, mut before) = ([0; WIDTH], 0);
    for arrived in arrivals {
        let column = (arrived.at_ms / last_ms * WIDTH as f64) as usize;
        columns[column.min(WIDTH - 1)] += arrived.bytes - before;
        before = arrived.bytes;
    }
    let most = columns.into_iter().max().unwrap_or_default();
    let level = |bytes: usize| match (bytes * LEVELS.len()).div_ceil(most.max(1)) {
        0 => NOTHING,
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
        .map(|(format, voice, set)| (format, voice, Finding::of(set.iter().copied())))
        .collect();
    let sentence = |(format, voice, finding): &(&String, &String, Finding)| {
        format!("{format} by {voice}: {finding}")
    };
    let of = |format: SoundFormat| findings.iter().find(|(name, _, _)| *name == format.name());
    let encoder = of(SoundFormat::Pcm).zip(of(SoundFormat::Mp3));
    let encoder = encoder.and_then(|((_, _, raw), (_, _, packed))| on_encoder(*raw, *packed));
    findings.iter().map(sentence).chain(encoder.map(str::to_owned)).collect()
}

/// Nothing where one of them could not be judged.
fn on_encoder(raw: Finding, packed: Finding) -> Option<&'static str> {
    match (raw.streams()?, packed.streams()?) {
        (true, true) => Some("mp3 comes as pcm does: no encoder holds sound back"),
        (true, false) => Some("pcm streams and mp3 does not: the encoder holds sound back"),
        (false, false) => Some("pcm comes no earlier than mp3: it is not the encoder's doing"),
        (false, true) => Some("mp3 streams and pcm does not"),
    }
}

#[cfg(test)]
mod tests {
    use hob_bench::record::Source;
    use uuid::Uuid;

    use super::super::Verb;
    use super::*;
    use crate::cli;

    fn arrivals(rows: &[(f64, usize)]) -> Vec<Arrived> {
        rows.iter().map(|(at_ms, bytes)| Arrived { at_ms: *at_ms, bytes: *bytes }).collect()
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
            assert_eq!(drawn(&arrivals(&rows)), expected, "{rows:?}");
        }
    }

    #[test]
    fn the_encoder_is_cleared_or_not() {
        let streams = Finding::Streaming { ttfa_ms: 1.0, last_ms: 9.0 };
        let fakes = Finding::Fake { ttfa_ms: 9.0, last_ms: 9.0 };
        let rows = [
            (streams, streams, Some("mp3 comes as pcm does: no encoder holds sound back")),
            (streams, fakes, Some("pcm streams and mp3 does not: the encoder holds sound back")),
            (fakes, fakes, Some("pcm comes no earlier than mp3: it is not the encoder's doing")),
            (fakes, streams, Some("mp3 streams and pcm does not")),
            (streams, Finding::TooShort, None),
            (Finding::Unmeasured, fakes, None),
        ];
        for (raw, packed, expected) in rows {
            assert_eq!(on_encoder(raw, packed), expected, "{raw:?} {packed:?}");
        }
    }

    #[test]
    fn what_is_run_again_is_held_against_the_same_sentence() {
        let mut record = Record::new(Uuid::nil(), Kind::Stream, Source::default());
        let tts = |stream| Tts {
            chars: Some(67),
            format: Some("mp3".to_owned()),
            voice: Some("ada".to_owned()),
            stream,
            ..Tts::default()
        };
        for (stream, asked) in [(Some(false), Asked::Whole), (Some(true), Asked::Streamed)] {
            let words = ["hob", "bench", "stream"].map(str::to_owned);
            let verb = cli::bench_verb(words.iter()).expect("a verb").into_verb();
            let Verb::Stream(mut args) = verb else { panic!("another verb: {verb:?}") };
            record.tts = Some(tts(stream));
            args.only(&record);
            let wish = args.wish().expect("a wish");
            let texts: Vec<_> = wish.texts.iter().map(|text| text.name).collect();
            assert_eq!((texts, wish.asked), (vec!["medium", "two_sentences"], vec![asked]));
            assert_eq!(wish.choice.formats, Formats::All(vec![SoundFormat::Mp3]));
            assert_eq!(wish.choice.voices, ["ada"]);
        }
    }
}
