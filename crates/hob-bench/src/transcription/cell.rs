//! Measures one cell: all clips of a set, for one or more users at the same time.
//! A run's word errors are those of all its clips together, so a long clip counts more than a short one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hob_core::statistics::Sample;
use jiff::Timestamp;

use super::normalise::normalised_chars;
use super::request;
use super::{Clip, ClipSet, NORMALISER, TranscriptionSession, WordErrors, normalised_words};
use crate::calibrate::{Calibration, Pace};
use crate::drive::{Arrivals, Driven, Exchange};
use crate::record::{
    Connection, LanguageErrors, Loop, Record, RecordKind, RecordedWorkload, Stt, TranscribedClip,
};
use crate::runs::{BenchError, CellSummary, Reply, Run, Runs, WARMUP_RUNS_MAX};
use crate::session::Session;
use crate::speech::Streaming;
use crate::terms::Metric;
use crate::timeline::{RequestFault, TranscriptTimeline, transcript};

/// Assumed gap between events; most servers send one.
const GAP_MS_ASSUMED: f64 = 20.0;
/// Room for an answer.
const ANSWER_BYTES: usize = 16 << 10;
/// With this much sound in a run, so many warm-up runs are enough.
const WARMUPS: [(f64, usize); 2] = [(120.0, 1), (20.0, 2)];
/// Records of larger sets have totals only.
const LISTED_MAX: usize = 500;

/// One combination of clips, delivery and users.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub set: Arc<ClipSet>,
    /// The set's hash.
    pub sha256: String,
    pub streaming: Streaming,
    /// Each waits for its answer.
    pub users: usize,
    /// How often each user sends the whole set in a run.
    pub rounds: usize,
}

impl Cell {
    /// The clip of a reply, by its place in a run.
    fn clip(&self, place: usize) -> &Clip {
        &self.set.clips[place % self.set.clips.len()]
    }
}

impl Session for TranscriptionSession<'_> {
    type Cell = Cell;

    fn name(&self, cell: &Cell) -> String {
        let streamed = if cell.streaming == Streaming::Requested { ", streamed" } else { "" };
        format!("{} × {}{streamed}", cell.set.shape(), cell.users)
    }

    fn measure_run(
        &mut self,
        cell: &Cell,
        _calibration: Option<&Calibration>,
    ) -> Result<Run, BenchError> {
        let clips = cell.set.clips.iter();
        let requests: Vec<Bytes> =
            clips.map(|clip| request::bytes(&self.asker.target, clip, cell.streaming)).collect();
        let count = requests.len() * cell.users * cell.rounds;
        let jobs = requests.into_iter().cycle().take(count).collect();
        let arrivals = Arrivals::Closed { users: cell.users };
        Ok(decoded(&self.asker.drive(jobs, arrivals, ANSWER_BYTES)?, cell))
    }

    fn leading(&self, _cell: &Cell) -> &'static [Metric] {
        &[Metric::FinalTextMs, Metric::FirstPartialMs]
    }

    fn pace(&self, cell: &Cell, warm: &Run) -> Option<Pace> {
        Some(Pace::like(cell.users, warm.figure(Metric::FinalTextMs)?, GAP_MS_ASSUMED))
    }

    fn summarise<'r>(
        &mut self,
        cell: &Cell,
        runs: &'r Runs,
        started: Timestamp,
    ) -> CellSummary<'r> {
        CellSummary {
            kind: RecordKind::Stt,
            runs,
            started,
            workload: RecordedWorkload {
                shape: Some(cell.set.shape()),
                prompts_sha256: Some(cell.sha256.clone()),
                r#loop: Some(Loop::Closed),
                concurrency: u32::try_from(cell.users).ok(),
                connection: Some(Connection::Reused),
                ..RecordedWorkload::default()
            },
            leading: self.leading(cell),
            count_source: None,
            invalid: Vec::new(),
            doubts: Vec::new(),
        }
    }

    fn fill_in(&self, cell: &Cell, runs: &Runs, record: &mut Record, _earlier: &[Record]) {
        record.stt = Some(cell.section(runs));
    }

    fn warmups_max(&self, cell: &Cell) -> usize {
        let enough = WARMUPS.iter().find(|(audio_s, _)| cell.set.audio_s() > *audio_s);
        enough.map_or(WARMUP_RUNS_MAX, |(_, runs)| *runs)
    }
}

impl Cell {
    /// The part of the record that only transcription has.
    fn section(&self, runs: &Runs) -> Stt {
        let figure = |metric| runs.sample(metric).median();
        let clips: Vec<TranscribedClip> =
            (0..self.set.clips.len()).map(|place| self.transcribed(place, runs)).collect();
        let mut languages: BTreeMap<String, LanguageErrors> = BTreeMap::new();
        for code in self.set.clips.iter().map(|clip| &clip.language) {
            languages.entry(code.clone()).or_insert_with(|| self.errors_in(code, runs));
        }
        Stt {
            corpus_sha256: Some(self.sha256.clone()),
            normaliser: Some(NORMALISER.to_owned()),
            utterances: Some(self.set.clips.len() as u64),
            wer: figure(Metric::Wer),
            cer: figure(Metric::Cer),
            rtf: figure(Metric::Rtf),
            first_partial_ms: figure(Metric::FirstPartialMs),
            final_text_ms: figure(Metric::FinalTextMs),
            audio_s: Some(self.set.audio_s()),
            stream: Some(self.streaming == Streaming::Requested),
            snr_db: self.set.snr_db,
            synthetic_by: self.set.synthetic_by.clone(),
            languages,
            clips: if clips.len() <= LISTED_MAX { clips } else { Vec::new() },
        }
    }

    /// The replies to the clips that `is_wanted` accepts, with their clips.
    fn replies<'r>(
        &'r self,
        runs: &'r Runs,
        is_wanted: impl Fn(usize, &Clip) -> bool + 'r,
    ) -> impl Iterator<Item = (&'r Clip, &'r Reply)> {
        let of_run = |run: &'r Run| run.replies.iter().enumerate();
        let all = runs.runs.iter().flat_map(of_run);
        let with_clip = all.map(|(place, reply)| (place % self.set.clips.len(), reply));
        let wanted = with_clip.filter(move |(place, _)| is_wanted(*place, self.clip(*place)));
        wanted
            .filter(|(_, reply)| !reply.has_failed())
            .map(|(place, reply)| (self.clip(place), reply))
    }

    fn transcribed(&self, place: usize, runs: &Runs) -> TranscribedClip {
        let replies: Vec<&Reply> =
            self.replies(runs, |other, _| other == place).map(|(_, reply)| reply).collect();
        let median = |metric| {
            Sample::new(replies.iter().filter_map(|reply| reply.figures.get(&metric).copied()))
                .median()
        };
        let clip = self.clip(place);
        let mut errors = WordErrors::default();
        replies.iter().for_each(|reply| errors += word_errors(clip, reply));
        TranscribedClip {
            name: clip.name.clone(),
            language: clip.language.clone(),
            speaker: clip.speaker.clone(),
            origin: clip.origin.clone(),
            noise: clip.noise.clone(),
            audio_s: clip.audio_s,
            words: errors.words,
            wrong: errors.wrong,
            missing: errors.missing,
            added: errors.added,
            cer: median(Metric::Cer),
            final_text_ms: median(Metric::FinalTextMs),
            first_partial_ms: median(Metric::FirstPartialMs),
        }
    }

    fn errors_in(&self, language: &str, runs: &Runs) -> LanguageErrors {
        let is_of = |_: usize, clip: &Clip| clip.language == language;
        let (mut errors, mut wrong, mut chars) = (WordErrors::default(), 0.0, 0.0);
        for (clip, reply) in self.replies(runs, is_of) {
            errors += word_errors(clip, reply);
            if let Some(cer) = reply.figures.get(&Metric::Cer) {
                let length = clip.chars().len() as f64;
                (wrong, chars) = (wrong + cer * length, chars + length);
            }
        }
        let utterances = self.set.clips.iter().filter(|clip| clip.language == language).count();
        LanguageErrors {
            utterances: utterances as u64,
            wer: errors.rate(),
            cer: (chars > 0.0).then(|| wrong / chars),
        }
    }
}

impl Clip {
    /// The characters of the normalised text.
    fn chars(&self) -> Vec<char> {
        normalised_chars(&self.words, &self.language)
    }
}

/// The counts that a reply's figures have.
fn word_errors(clip: &Clip, reply: &Reply) -> WordErrors {
    let count = |metric| reply.figures.get(&metric).copied().unwrap_or_default() as u64;
    WordErrors {
        words: clip.words.len() as u64,
        wrong: count(Metric::WordsWrong),
        missing: count(Metric::WordsMissing),
        added: count(Metric::WordsAdded),
    }
}

/// The figures of a run.
fn decoded(driven: &Driven, cell: &Cell) -> Run {
    let (mut words, mut chars) = (WordErrors::default(), WordErrors::default());
    let (mut replies, mut ends, mut audio_s) = (Vec::new(), Vec::new(), 0.0);
    for exchange in &driven.exchanges {
        let clip = cell.clip(exchange.job);
        let reply = match transcript(exchange) {
            Ok(heard) => {
                let errors = errors(clip, &heard.text);
                errors[0].into_iter().for_each(|errors| words += errors);
                errors[1].into_iter().for_each(|errors| chars += errors);
                audio_s += clip.audio_s;
                ends.push(exchange.sent + Duration::from_secs_f64(heard.final_text_ms / 1e3));
                Reply {
                    figures: figures(exchange, clip, cell, (&heard, errors)),
                    ..Reply::of(exchange)
                }
            }
            Err(fault) => Reply {
                was_stopped: fault == RequestFault::Stopped,
                fault: Some(fault.to_string()),
                ..Reply::of(exchange)
            },
        };
        replies.push(reply);
    }
    let begun = driven.exchanges.iter().map(|exchange| exchange.sent).min();
    let span = begun.zip(ends.into_iter().max()).map(|(from, to)| (to - from).as_secs_f64());
    let speed = span.filter(|span_s| *span_s > 0.0).map(|span_s| audio_s / span_s);
    let rows = [
        (Metric::RealTimeX, speed),
        (Metric::Wer, words.rate()),
        (Metric::Cer, chars.rate()),
        (Metric::WordsWrong, (words.words > 0).then_some(words.wrong as f64)),
        (Metric::WordsMissing, (words.words > 0).then_some(words.missing as f64)),
        (Metric::WordsAdded, (words.words > 0).then_some(words.added as f64)),
    ];
    let together = rows.into_iter().filter_map(|(metric, figure)| Some((metric, figure?)));
    Run { together: together.collect(), ..Run::of(driven, replies) }
}

/// Errors in words and in characters; None for texts that are too long to be compared.
fn errors(clip: &Clip, heard: &str) -> [Option<WordErrors>; 2] {
    let heard = normalised_words(heard, &clip.language);
    let chars = normalised_chars(&heard, &clip.language);
    [WordErrors::between(&clip.words, &heard), WordErrors::between(&clip.chars(), &chars)]
}

fn figures(
    exchange: &Exchange,
    clip: &Clip,
    cell: &Cell,
    (heard, [words, chars]): (&TranscriptTimeline, [Option<WordErrors>; 2]),
) -> BTreeMap<Metric, f64> {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let is_streamed = cell.streaming == Streaming::Requested;
    let count = |count: fn(WordErrors) -> u64| words.map(|errors| count(errors) as f64);
    let rows = [
        (Metric::TtfbMs, Some(heard.ttfb_ms)),
        (Metric::FinalTextMs, Some(heard.final_text_ms)),
        (Metric::FirstPartialMs, heard.first_text_ms.filter(|_| is_streamed)),
        (Metric::AudioS, Some(clip.audio_s)),
        (Metric::Rtf, Some(heard.final_text_ms / 1e3 / clip.audio_s)),
        (Metric::Wer, words.and_then(WordErrors::rate)),
        (Metric::Cer, chars.and_then(WordErrors::rate)),
        (Metric::WordsWrong, count(|errors| errors.wrong)),
        (Metric::WordsMissing, count(|errors| errors.missing)),
        (Metric::WordsAdded, count(|errors| errors.added)),
        (Metric::DispatchMs, Some(ms(exchange.sent.saturating_sub(exchange.sched)))),
        (Metric::ConnectMs, exchange.connect.map(ms)),
    ];
    rows.into_iter().filter_map(|(metric, figure)| Some((metric, figure?))).collect()
}
