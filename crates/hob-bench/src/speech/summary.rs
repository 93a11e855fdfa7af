//! The record of a speech cell, with figures that need other cells.
//! A tier needs three texts, and a streaming verdict on a long text needs a short one.

use hob_core::statistics::Sample;

use super::cell::Evidence;
use super::verdict::{SoundArrival, verdict};
use super::{Sentences, SpeechCell, StreamField, TEXTS, Text};
use crate::record::{Record, StreamVerdict, Tts};
use crate::runs::{Reply, Runs};
use crate::terms::Metric;
use crate::timeline::ArrivalPoint;

/// Receives each stored record of a cell, and the arrival times of its last run's sound.
pub type OnRecord<'a> = dyn FnMut(&Record, &[ArrivalPoint]) + 'a;

impl SpeechCell {
    /// `earlier` are the cells before this one.
    pub(crate) fn section(
        &self,
        runs: &Runs,
        evidence: Option<&Evidence>,
        earlier: &[Record],
    ) -> Tts {
        let figure = |metric| runs.sample(metric).median();
        let reads = |reply: &Reply| reply.gaps_ms.len() as f64 + 1.0;
        let said = Tts {
            text_sha256: Some(self.text.sha256()),
            chars: u32::try_from(self.text.chars()).ok(),
            voice: Some(self.voice.clone()),
            format: Some(self.format.name().to_owned()),
            stream: self.stream.value(),
            ..Tts::default()
        };
        let alike: Vec<(Text, &Tts)> =
            earlier.iter().filter_map(|record| alike_except_text(record, self)).collect();
        let wall_s = figure(Metric::WallMs).map(|ms| ms / 1e3);
        Tts {
            rate_hz: evidence.map(|evidence| evidence.rate_hz),
            audio_sha256: evidence.map(|evidence| evidence.sha256.clone()),
            bytes: evidence.map(|evidence| evidence.bytes),
            audio_s: figure(Metric::AudioS),
            wall_s,
            rtf: figure(Metric::Rtf),
            ttfb_ms: figure(Metric::TtfbMs),
            ttfa_ms: figure(Metric::TtfaMs),
            last_ms: figure(Metric::WallMs),
            chunks: Sample::new(runs.answered().map(reads)).median().map(|reads| reads as u64),
            spread: figure(Metric::Spread),
            verdict: stream_verdict(self, runs, &alike),
            underrun_ms: figure(Metric::UnderrunMs),
            tier: wall_s.and_then(|wall_s| tier(self, wall_s, &alike)),
            ..said
        }
    }
}

/// The text and figures of a record that differs from this cell only in its text.
fn alike_except_text<'r>(record: &'r Record, cell: &SpeechCell) -> Option<(Text, &'r Tts)> {
    let (tts, workload) = (record.tts.as_ref()?, &record.workload);
    let is_alike = tts.voice.as_ref() == Some(&cell.voice)
        && tts.format.as_deref() == Some(cell.format.name())
        && tts.stream == cell.stream.value()
        && workload.concurrency.map(|users| users as usize) == Some(cell.users);
    let text = Text::by_name(workload.shape.as_deref()?)?;
    is_alike.then_some((text, tts))
}

/// The streaming verdict. A request for the whole file gets one only if the server streams anyway.
fn stream_verdict(cell: &SpeechCell, runs: &Runs, alike: &[(Text, &Tts)]) -> Option<StreamVerdict> {
    let figure = |metric| runs.sample(metric).median();
    let is_long_enough = |tts: &Tts| tts.verdict != Some(StreamVerdict::TooShort);
    let sentence = alike
        .iter()
        .filter(|(text, tts)| text.sentences == Sentences::One && is_long_enough(tts))
        .find_map(|(_, tts)| tts.ttfa_ms);
    let verdict = verdict(SoundArrival {
        audio_s: figure(Metric::AudioS)?,
        spread: figure(Metric::Spread)?,
        ttfa_ms: figure(Metric::TtfaMs)?,
        underrun_ms: figure(Metric::UnderrunMs)?,
        sentence_ttfa_ms: sentence.filter(|_| cell.text.sentences == Sentences::Several),
    });
    let is_unasked = cell.stream == StreamField::False && verdict != StreamVerdict::Streaming;
    (!is_unasked).then_some(verdict)
}

/// The tier, known with the third of its texts, for one user only.
fn tier(cell: &SpeechCell, wall_s: f64, alike: &[(Text, &Tts)]) -> Option<u8> {
    if !cell.text.is_of_tiers() || cell.users > 1 {
        return None;
    }
    let of_text = |text: Text| match text == cell.text {
        true => Some(wall_s),
        false => alike.iter().find(|(other, _)| *other == text).and_then(|(_, tts)| tts.wall_s),
    };
    let texts = TEXTS.into_iter().filter(|text| text.is_of_tiers());
    let walls_s: Option<Vec<f64>> = texts.map(of_text).collect();
    walls_s.map(|walls_s| Tts::tier_of(walls_s.iter().sum::<f64>() / walls_s.len() as f64))
}
