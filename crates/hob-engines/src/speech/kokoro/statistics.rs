//! The statistics that the vocoder's normalisations carry from window to window.
//! A text starts from the statistics of its voice, which lose weight with every window.

use std::array;

use half::f16;
use hob_core::VoiceBlend;

/// The voice's statistics count as this many frames of a sentence. Chosen by the log-mel distance to synthesis of the
/// whole sentence, on held-out sentences of three voices: 2.99 dB with 300, 2.79 with 450, 2.74 with 600.
const SENTENCE_FRAMES: f32 = 600.0;
/// The same for a single word. On 33 short texts of three voices: 6.1 dB with 600, 5.3 with 150, 6.8 with 40.
const WORD_FRAMES: f32 = 150.0;

/// The silent share of the frames: of the sentences in [`CALIBRATION`], and of one word in most voices.
const SENTENCE_SILENCE: f32 = 0.1;
const WORD_SILENCE: f32 = 0.35;

/// The statistics of every published voice, measured by `make voice-statistics`: one line with the names of the voices,
/// separated by spaces, then for each voice and for both parts of [`CALIBRATION`] all means and all variances as
/// little-endian 16-bit floats. Rounding to 16 bits changes a mean by at most 0.035 standard deviations and a deviation by
/// 0.1 %.
const MEASURED: &[u8] = include_bytes!("voice_statistics.bin");

/// Texts that are synthesised to measure a voice's statistics: sentences of three lengths, because the voice's style vector
/// depends on the length, and single words. They are chosen for many different phonemes.
pub(super) const CALIBRATION: [&[&str]; 2] = [
    &[
        "həlˈO, jˈɛs.",
        "hˈɛlp ðə wˈʊmən ɡɛt bˈæk tə hɜɹ fˈit.",
        "ðə sˈɔlt bɹˈiz kˈAm əkɹˌɔs fɹʌm ðə sˈi, ænd wˈIl ðə smˈOki fˈIɹz lˈækt flˈAm, ðə ʤˈus mˌAd pˈʌnʧ.",
    ],
    &["ˌOkˈA.", "sˈɛvən.", "ɹˈIt.", "ɡˈʊd.", "plˈiz.", "mˈAbi.", "hˈWs?", "ʧˈɪldɹən."],
];

/// Mean and variance per channel, and how many frames they stand for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunningStatistics {
    mean: Vec<f32>,
    variance: Vec<f32>,
    frames: f32,
}

impl RunningStatistics {
    /// No statistics. The first window is then normalised by its own.
    pub(super) fn empty(channels: usize) -> RunningStatistics {
        RunningStatistics { mean: vec![0.0; channels], variance: vec![0.0; channels], frames: 0.0 }
    }

    pub(super) fn mean(&self) -> &[f32] {
        &self.mean
    }

    pub(super) fn variance(&self) -> &[f32] {
        &self.variance
    }

    /// The weight of these statistics, from 0 to 1, together with a window of `frames` frames, at least 1.
    pub(super) fn share(&self, frames: usize) -> f32 {
        self.frames / (self.frames + frames as f32)
    }

    /// The variance of a window about its own `mean`, from its `spread` about the mean that was used. That mean has the
    /// carried one with the weight `share`.
    pub(super) fn own_variance(&self, mean: &[f32], spread: &[f32], share: f32) -> Vec<f32> {
        let own = |((carried, mean), spread): ((&f32, &f32), &f32)| {
            let shift = share * (carried - mean);
            (spread - shift * shift).max(0.0)
        };
        self.mean.iter().zip(mean).zip(spread).map(own).collect()
    }

    /// Adds the statistics of `frames` more frames (Chan, Golub and LeVeque, 1979).
    pub(super) fn add(&mut self, mean: &[f32], variance: &[f32], frames: usize) {
        self.frames += frames as f32;
        let weight = frames as f32 / self.frames;
        for (at, (new_mean, new_variance)) in mean.iter().zip(variance).enumerate() {
            let difference = new_mean - self.mean[at];
            self.variance[at] += weight
                * (new_variance - self.variance[at] + (1.0 - weight) * difference * difference);
            self.mean[at] += weight * difference;
        }
    }
}

/// A voice's statistics over several texts: what its utterances start from. The first are those of sentences, the second
/// those of single words, in which more is silent and each sound counts more.
///
/// A variance is the average of the variances within each text, because the model normalises over a text.
/// The statistics are the same on every processor, because they are measured once and not on the user's machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VoiceStatistics([RunningStatistics; 2]);

impl VoiceStatistics {
    pub(super) fn empty(channels: usize) -> VoiceStatistics {
        VoiceStatistics(array::from_fn(|_| RunningStatistics::empty(channels)))
    }

    /// Adds a text of `frames` frames to the statistics of this `part` of [`CALIBRATION`].
    pub(super) fn push(&mut self, part: usize, (mean, variance): (&[f32], &[f32]), frames: usize) {
        let all = &mut self.0[part];
        all.frames += frames as f32;
        let weight = frames as f32 / all.frames;
        let mix = |all: &mut f32, new: &f32| *all += weight * (new - *all);
        all.mean.iter_mut().zip(mean).for_each(|(all, new)| mix(all, new));
        all.variance.iter_mut().zip(variance).for_each(|(all, new)| mix(all, new));
    }

    /// The statistics from which a text starts. `silent_share` is the share of its frames that are not played. They lie
    /// between those of sentences and of single words.
    pub(super) fn running(&self, silent_share: f32) -> RunningStatistics {
        let VoiceStatistics([sentence, word]) = self;
        let share = (silent_share - SENTENCE_SILENCE) / (WORD_SILENCE - SENTENCE_SILENCE);
        let share = share.clamp(0.0, 1.0);
        let between = |sentence: f32, word: f32| sentence + share * (word - sentence);
        let each = |sentence: &[f32], word: &[f32]| -> Vec<f32> {
            sentence.iter().zip(word).map(|(sentence, word)| between(*sentence, *word)).collect()
        };
        RunningStatistics {
            mean: each(&sentence.mean, &word.mean),
            variance: each(&sentence.variance, &word.variance),
            frames: between(SENTENCE_FRAMES, WORD_FRAMES),
        }
    }

    /// The measured statistics of a voice, or those of a blend by the shares of its voices. A voice that was not
    /// measured gets the average of its gender, or of all voices. `None`: the statistics are those of a vocoder with another
    /// number of channels.
    pub(super) fn of(voice: &str, channels: usize) -> Option<VoiceStatistics> {
        let Some(Ok(blend)) = VoiceBlend::parse(voice) else {
            return VoiceStatistics::of_one(voice, channels);
        };
        let mut blended = VoiceStatistics::empty(channels);
        for (id, share) in blend.parts() {
            let own = VoiceStatistics::of_one(id, channels)?;
            let add = |sum: &mut f32, value: f32| *sum += share * value;
            for (blended, own) in blended.0.iter_mut().zip(own.0) {
                blended.mean.iter_mut().zip(own.mean).for_each(|(sum, mean)| add(sum, mean));
                let variances = blended.variance.iter_mut().zip(own.variance);
                variances.for_each(|(sum, variance)| add(sum, variance));
            }
        }
        // A negative share can make the sum negative.
        let variances = blended.0.iter_mut().flat_map(|part| &mut part.variance);
        variances.for_each(|variance| *variance = variance.max(0.0));
        Some(blended)
    }

    /// The statistics of one voice. The second letter of its name is its gender.
    fn of_one(voice: &str, channels: usize) -> Option<VoiceStatistics> {
        VoiceStatistics::measured(voice, channels).or_else(|| {
            let gender = voice.as_bytes().get(1);
            VoiceStatistics::average(channels, |name| name.get(1) == gender)
                .or_else(|| VoiceStatistics::average(channels, |_| true))
        })
    }

    /// The average of the measured voices that are `alike`, each with the same weight.
    fn average(channels: usize, alike: impl Fn(&[u8]) -> bool) -> Option<VoiceStatistics> {
        let table = MeasuredTable::read(channels)?;
        let mut average = VoiceStatistics::empty(channels);
        for at in (0..table.names.len()).filter(|at| alike(table.names[*at])) {
            for (part, own) in table.row(at).0.iter().enumerate() {
                average.push(part, (&own.mean, &own.variance), 1);
            }
        }
        (average.0[0].frames > 0.0).then_some(average)
    }

    /// The statistics of one voice. `None`: it was not measured.
    pub(super) fn measured(voice: &str, channels: usize) -> Option<VoiceStatistics> {
        let table = MeasuredTable::read(channels)?;
        let at = table.names.iter().position(|name| *name == voice.as_bytes())?;
        Some(table.row(at))
    }

    /// The statistics in the format of [`MEASURED`].
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let values = self.0.iter().flat_map(|part| part.mean.iter().chain(&part.variance));
        values.flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect()
    }
}

/// The parts of [`MEASURED`].
struct MeasuredTable {
    channels: usize,
    names: Vec<&'static [u8]>,
    halves: &'static [[u8; 2]],
}

impl MeasuredTable {
    /// `None`: it was measured with another number of channels.
    fn read(channels: usize) -> Option<MeasuredTable> {
        let line_end = MEASURED.iter().position(|byte| *byte == b'\n')?;
        let names: Vec<&'static [u8]> = MEASURED[..line_end].split(|byte| *byte == b' ').collect();
        let (halves, _) = MEASURED[line_end + 1..].as_chunks::<2>();
        let has_all = halves.len() == names.len() * 4 * channels;
        has_all.then_some(MeasuredTable { channels, names, halves })
    }

    fn row(&self, at: usize) -> VoiceStatistics {
        let floats = |part: usize| -> Vec<f32> {
            let halves = self.halves.chunks_exact(self.channels).nth(part).unwrap_or_default();
            halves.iter().map(|half| f16::from_le_bytes(*half).to_f32()).collect()
        };
        VoiceStatistics(array::from_fn(|part| {
            let first = 4 * at + 2 * part;
            let (mean, variance) = (floats(first), floats(first + 1));
            RunningStatistics { mean, variance, frames: 0.0 }
        }))
    }
}
