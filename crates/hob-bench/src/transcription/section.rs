//! The part of a record that only transcription has: errors by clip and by language.
//! Counts are of all runs together; times are medians.

use std::collections::BTreeMap;

use hob_core::statistics::Sample;

use super::cell::TranscriptionCell;
use super::{Clip, NORMALISER};
use crate::record::{LanguageErrors, Stt, TranscribedClip};
use crate::runs::{Reply, Runs};
use crate::speech::Streaming;
use crate::terms::Metric;

/// Records of larger sets have totals only.
const LISTED_MAX: usize = 500;

impl TranscriptionCell {
    pub(super) fn section(&self, runs: &Runs) -> Stt {
        let figure = |metric| runs.sample(metric).median();
        let places = self.set.clips.iter().enumerate();
        let clips: Vec<TranscribedClip> =
            places.map(|(place, clip)| clip.transcribed(&self.replies(place, runs))).collect();
        let listed = clips.len() <= LISTED_MAX;
        Stt {
            corpus_sha256: Some(self.sha256.clone()),
            normaliser: Some(NORMALISER.to_owned()),
            utterances: Some(clips.len() as u64),
            wer: figure(Metric::Wer),
            cer: figure(Metric::Cer),
            rtf: figure(Metric::Rtf),
            first_partial_ms: figure(Metric::FirstPartialMs),
            final_text_ms: figure(Metric::FinalTextMs),
            audio_s: Some(self.set.audio_s()),
            stream: Some(self.streaming == Streaming::Requested),
            snr_db: self.set.snr_db,
            synthetic_by: self.set.synthetic_by.clone(),
            languages: self.languages(&clips),
            clips: if listed { clips } else { Vec::new() },
        }
    }

    /// The answers to a clip in all runs. A run sends the set in order, once or more often.
    fn replies<'r>(&self, place: usize, runs: &'r Runs) -> Vec<&'r Reply> {
        let step = self.set.clips.len();
        let of_run = |run: &'r crate::runs::Run| run.replies.iter().skip(place).step_by(step);
        runs.runs.iter().flat_map(of_run).filter(|reply| !reply.has_failed()).collect()
    }

    fn languages(&self, clips: &[TranscribedClip]) -> BTreeMap<String, LanguageErrors> {
        let mut languages: BTreeMap<String, Vec<(&Clip, &TranscribedClip)>> = BTreeMap::new();
        for (clip, transcribed) in self.set.clips.iter().zip(clips) {
            languages.entry(clip.language.clone()).or_default().push((clip, transcribed));
        }
        let errors = |(code, clips): (String, Vec<(&Clip, &TranscribedClip)>)| {
            let counts =
                clips.iter().map(|(_, clip)| (clip.wrong + clip.missing + clip.added, clip.words));
            let (wrong, words) = counts.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
            let chars = clips.iter().filter_map(|(clip, heard)| {
                let chars = clip.chars().len() as f64;
                Some((heard.cer? * chars, chars))
            });
            let (wrong_chars, chars) = chars.fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
            let errors = LanguageErrors {
                utterances: clips.len() as u64,
                wer: (words > 0).then(|| wrong as f64 / words as f64),
                cer: (chars > 0.0).then(|| wrong_chars / chars),
            };
            (code, errors)
        };
        languages.into_iter().map(errors).collect()
    }
}

impl Clip {
    fn transcribed(&self, replies: &[&Reply]) -> TranscribedClip {
        let all = |metric: Metric| {
            Sample::new(replies.iter().filter_map(|reply| reply.figures.get(&metric).copied()))
        };
        let count = |metric| {
            (all(metric).mean().unwrap_or_default() * all(metric).count() as f64).round() as u64
        };
        let compared = all(Metric::WordsWrong).count();
        TranscribedClip {
            name: self.name.clone(),
            language: self.language.clone(),
            speaker: self.speaker.clone(),
            origin: self.origin.clone(),
            noise: self.noise.clone(),
            audio_s: self.audio_s,
            words: (self.words.len() * compared) as u64,
            wrong: count(Metric::WordsWrong),
            missing: count(Metric::WordsMissing),
            added: count(Metric::WordsAdded),
            cer: all(Metric::Cer).median(),
            final_text_ms: all(Metric::FinalTextMs).median(),
            first_partial_ms: all(Metric::FirstPartialMs).median(),
        }
    }
}
