//! Cuts sound into parts for the engine: at pauses, without silence, no longer than the engine's window.
//! It takes frames while the sound arrives. No sample is in two parts, and every frame that is certainly speech is in one.

use std::ops::Range;

use hob_core::{Chunking, silence_below};

use super::vad::FRAME_SAMPLES;

const FRAMES_PER_SECOND: f64 = 16_000.0 / FRAME_SAMPLES as f64;
/// A frame above this is speech.
pub(super) const SPEECH_MIN: f32 = 0.5;
/// A frame below this is a pause. A frame between the two values counts as the frame before it.
pub(super) const PAUSE_MAX: f32 = silence_below(SPEECH_MIN);
/// Frames kept before the first speech of a part: 960 ms. In noise, words are there before they are certainly speech.
const LEAD: usize = 30;
/// A part of a recording has more sound before its speech, if it is then no longer than this (6.9 s): the engine's shortest
/// window is longer, so it costs nothing. In noise, the detector misses whole words at the beginning.
const SHORT_PART_FRAMES: usize = (6.9 * FRAMES_PER_SECOND) as usize;
/// Frames kept after the last speech of a part: 288 ms. Whisper loses words at hard cuts.
const TAIL: usize = 9;
/// Speech shorter than this (256 ms) is kept only if one of its frames reaches `BEYOND_DOUBT`. Measured: 69 % of pieces of
/// speech of 150 ms have such a frame; the worst of 23 noises reached 0.72, in one frame of 20 s.
const SPEECH_FRAMES_MIN: usize = 8;
const BEYOND_DOUBT: f32 = 0.8;
/// Longest part: 28 s. The engine's window has 30.
const PART_FRAMES_MAX: usize = (28.0 * FRAMES_PER_SECOND) as usize;
/// A part that has become this long (20 s) ends at the next pause of `LONG_PART_PAUSE`.
const PART_FRAMES_GOOD: usize = (20.0 * FRAMES_PER_SECOND) as usize;
/// 256 ms: longer than the pauses inside of words.
const LONG_PART_PAUSE: usize = 8;
/// A part of the maximum length is cut in its longest pause of at least 96 ms: in the last 8 s if there is one, or else after the first 4 s.
const CUT_PAUSE_MIN: usize = 3;
const CUT_LAST: usize = PART_FRAMES_MAX - PART_FRAMES_GOOD;
const CUT_FIRST: usize = (4.0 * FRAMES_PER_SECOND) as usize;

/// Sound that is transcribed in one piece.
#[derive(Clone, Debug, PartialEq)]
pub struct SoundPart {
    /// Number of samples before it.
    pub start_sample: u64,
    /// Its first sample of speech, and the one after the last, counted from the beginning of the recording.
    pub speech_start: u64,
    pub speech_end: u64,
    pub samples: Vec<f32>,
}

impl SoundPart {
    /// Sample after its last one.
    pub fn end_sample(&self) -> u64 {
        self.start_sample + self.samples.len() as u64
    }

    /// Its samples without the sound that only a short part has before its speech.
    pub fn spoken_samples(&self) -> usize {
        let spoken = (self.end_sample() - self.speech_start) as usize;
        self.samples.len().min(LEAD * FRAME_SAMPLES + spoken)
    }

    /// Whether both contain the same speech. The silence after it may differ.
    pub fn says_the_same_as(&self, other: &SoundPart) -> bool {
        (self.start_sample, self.speech_end) == (other.start_sample, other.speech_end)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutOptions {
    /// A pause of so many frames ends a part.
    pause_frames: usize,
    /// Frames kept before the first speech of a part.
    lead_frames: usize,
    /// A part has more frames before its first speech, if it is then no longer than this.
    short_part_frames: usize,
    /// Thresholds for speech and for a pause, like [`SPEECH_MIN`] and [`PAUSE_MAX`].
    speech_min: f32,
    pause_max: f32,
}

impl Default for CutOptions {
    /// For recordings: a pause of 2 s. Long parts cost less than short ones.
    fn default() -> CutOptions {
        CutOptions { short_part_frames: SHORT_PART_FRAMES, ..CutOptions::silence_ms(2_000) }
    }
}

impl CutOptions {
    /// For a person who waits for the text: half a second of silence ends a part.
    pub fn live() -> CutOptions {
        CutOptions::silence_ms(500)
    }

    /// The silence that ends a part, rounded up to frames of 32 ms.
    pub fn silence_ms(silence_ms: u32) -> CutOptions {
        CutOptions {
            pause_frames: frames(silence_ms).clamp(1, PART_FRAMES_MAX),
            lead_frames: LEAD,
            short_part_frames: 0,
            speech_min: SPEECH_MIN,
            pause_max: PAUSE_MAX,
        }
    }

    /// For a recording that a client wants to be cut in this way.
    pub fn recording(chunking: Option<Chunking>) -> CutOptions {
        let own = CutOptions::default();
        let Some(Chunking::ServerVad { threshold, prefix_padding_ms, silence_ms }) = chunking
        else {
            return own;
        };
        let speech_min = threshold.unwrap_or(SPEECH_MIN);
        CutOptions {
            lead_frames: prefix_padding_ms.map_or(LEAD, frames).min(PART_FRAMES_GOOD),
            short_part_frames: prefix_padding_ms.map_or(SHORT_PART_FRAMES, |_| 0),
            speech_min,
            pause_max: silence_below(speech_min),
            ..silence_ms.map_or(own, CutOptions::silence_ms)
        }
    }
}

fn frames(ms: u32) -> usize {
    (f64::from(ms) / 1_000.0 * FRAMES_PER_SECOND).ceil() as usize
}

/// The sound that belongs to no part yet: at most 28 s.
#[derive(Debug)]
pub struct SoundCutter {
    options: CutOptions,
    /// Samples of the open part, or those before the next one.
    samples: Vec<f32>,
    /// One for each frame of `samples`.
    probabilities: Vec<f32>,
    /// Sample number of `samples[0]`.
    start_sample: u64,
    /// The first frame of speech and the frame after the last one, if there was any.
    speech: Option<Range<usize>>,
    is_speech: bool,
}

impl SoundCutter {
    pub fn new(options: CutOptions) -> SoundCutter {
        SoundCutter {
            options,
            samples: Vec::new(),
            probabilities: Vec::new(),
            start_sample: 0,
            speech: None,
            is_speech: false,
        }
    }

    /// Takes the next frame and how likely it is speech. Returns a part that is complete.
    pub fn push(&mut self, frame: &[f32; FRAME_SAMPLES], probability: f32) -> Option<SoundPart> {
        self.samples.extend_from_slice(frame);
        self.probabilities.push(probability);
        let CutOptions { pause_frames, speech_min, pause_max, .. } = self.options;
        self.is_speech = probability >= speech_min || self.is_speech && probability >= pause_max;
        let frames = self.probabilities.len();
        if self.is_speech {
            let start = self.speech.as_ref().map_or(frames - 1, |speech| speech.start);
            self.speech = Some(start..frames);
        }
        self.shorten_lead();
        let speech_end = self.speech.as_ref()?.end;
        let frames = self.probabilities.len();
        let is_long = speech_end >= PART_FRAMES_GOOD;
        let limit = if is_long { pause_frames.min(LONG_PART_PAUSE) } else { pause_frames };
        if frames - speech_end >= limit {
            return self.cut_at((speech_end + TAIL).min(frames));
        }
        if frames < PART_FRAMES_MAX {
            return None;
        }
        // A request may wish for pauses that are longer than what is left of the window.
        let is_pause = frames - speech_end >= LONG_PART_PAUSE;
        self.cut_at(if is_pause { (speech_end + TAIL).min(frames) } else { self.quietest() })
    }

    /// The last part. No more sound will come.
    pub fn finish(&mut self) -> Option<SoundPart> {
        let speech_end = self.speech.as_ref()?.end;
        self.cut_at((speech_end + TAIL).min(self.probabilities.len()))
    }

    /// Forgets frames before the first speech.
    fn shorten_lead(&mut self) {
        let CutOptions { lead_frames, short_part_frames, .. } = self.options;
        let frames = self.probabilities.len();
        let (lead, end) = match &self.speech {
            Some(speech) => (speech.start, (speech.end + TAIL).min(frames)),
            None => (frames, frames),
        };
        self.forget(lead.saturating_sub(lead_frames).min(end.saturating_sub(short_part_frames)));
    }

    /// Speech that is not complete, if its samples so far are to be transcribed.
    pub fn open_part(&self) -> Option<SoundPart> {
        let is_kept = is_speech(self.probabilities.iter().copied(), self.options.speech_min);
        let speech = self.speech.as_ref().filter(|_| is_kept)?;
        Some(self.part(speech, self.samples.clone()))
    }

    /// Ends the part before this frame. The frames after it begin the next part. Returns `None` if the part has no speech.
    fn cut_at(&mut self, end: usize) -> Option<SoundPart> {
        let speech = self.speech.take()?;
        let rest = self.samples.split_off(end * FRAME_SAMPLES);
        let samples = std::mem::replace(&mut self.samples, rest);
        let is_kept = is_speech(self.probabilities.drain(..end), self.options.speech_min);
        let part = self.part(&(speech.start.min(end)..speech.end.min(end)), samples);
        self.start_sample = part.end_sample();
        self.speech =
            (speech.end > end).then(|| speech.start.saturating_sub(end)..speech.end - end);
        is_kept.then_some(part)
    }

    /// A part that begins with the first frame that is held.
    fn part(&self, speech: &Range<usize>, samples: Vec<f32>) -> SoundPart {
        let start_sample = self.start_sample;
        let at = |frame: usize| start_sample + (frame * FRAME_SAMPLES) as u64;
        let (speech_start, speech_end) = (at(speech.start), at(speech.end));
        SoundPart { start_sample, speech_start, speech_end, samples }
    }

    /// Where to cut a part that has become too long.
    fn quietest(&self) -> usize {
        let frames = self.probabilities.len();
        let last = frames - CUT_LAST;
        let pause = self.longest_pause(last).or_else(|| self.longest_pause(CUT_FIRST));
        pause.unwrap_or_else(|| {
            let quieter =
                |a: &usize, b: &usize| self.probabilities[*a].total_cmp(&self.probabilities[*b]);
            (last..frames).min_by(quieter).unwrap_or(frames)
        })
    }

    /// The middle of the longest pause that begins after this frame. The later one, if two are as long.
    fn longest_pause(&self, from: usize) -> Option<usize> {
        let mut longest = (CUT_PAUSE_MIN, None);
        let mut length = 0;
        for (at, probability) in self.probabilities.iter().enumerate().skip(from) {
            length = if *probability < self.options.pause_max { length + 1 } else { 0 };
            if length >= longest.0 {
                longest = (length, Some(at + 1 - length / 2));
            }
        }
        longest.1
    }

    fn forget(&mut self, frames: usize) {
        self.samples.drain(..frames * FRAME_SAMPLES);
        self.probabilities.drain(..frames);
        self.start_sample += (frames * FRAME_SAMPLES) as u64;
        self.speech = self.speech.take().map(|speech| speech.start - frames..speech.end - frames);
    }
}

/// Whether the frames contain speech: enough frames, or one that is certain. So a short word is kept and a click is not.
fn is_speech(probabilities: impl Iterator<Item = f32>, speech_min: f32) -> bool {
    let (mut frames, mut likeliest) = (0, 0.0_f32);
    for probability in probabilities {
        frames += usize::from(probability >= speech_min);
        likeliest = likeliest.max(probability);
    }
    frames >= SPEECH_FRAMES_MIN || likeliest >= BEYOND_DOUBT.max(speech_min)
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "a part is a range, and some sounds have one part"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All parts of frames with these probabilities, as ranges of frames. Each sample of a frame is the frame's number.
    fn parts(probabilities: &[f32], options: CutOptions) -> Vec<Range<usize>> {
        let mut parts = SoundCutter::new(options);
        let mut found: Vec<SoundPart> = Vec::new();
        for (number, probability) in probabilities.iter().enumerate() {
            found.extend(parts.push(&[number as f32; FRAME_SAMPLES], *probability));
            let open = parts.samples.len();
            assert!(open <= PART_FRAMES_MAX * FRAME_SAMPLES, "{open} samples are held");
        }
        found.extend(parts.finish());
        assert_eq!(parts.finish(), None, "nothing is left");
        found.into_iter().map(range).collect()
    }

    fn range(part: SoundPart) -> Range<usize> {
        let start = part.start_sample as usize / FRAME_SAMPLES;
        let frames = part.samples.chunks(FRAME_SAMPLES).enumerate();
        for (at, frame) in frames {
            assert!(
                frame.iter().all(|sample| *sample == (start + at) as f32),
                "a sample has moved"
            );
        }
        start..start + part.samples.len() / FRAME_SAMPLES
    }

    fn sound(pieces: &[(f32, usize)]) -> Vec<f32> {
        pieces.iter().flat_map(|(probability, frames)| vec![*probability; *frames]).collect()
    }

    fn check(pieces: &[(f32, usize)], options: CutOptions, expected: &[Range<usize>]) {
        assert_eq!(parts(&sound(pieces), options), expected, "{pieces:?}");
    }

    #[test]
    fn silence_is_left_out_but_for_a_margin() {
        let check = |pieces, expected: &[_]| check(pieces, CutOptions::default(), expected);
        check(&[(0.0, 100)], &[]);
        // A short part has all sound before its speech, and a longer one the last of it.
        check(&[(0.0, 50), (0.9, 30), (0.0, 100)], &[0..89]);
        check(&[(0.0, 300), (0.9, 30), (0.0, 100)], &[124..339]);
        check(&[(0.0, 50), (0.9, 200), (0.0, 100)], &[20..259]);
        check(&[(0.9, 30)], &[0..30]);
        // A pause of a second does not end a part, and one of three seconds does.
        check(&[(0.9, 30), (0.1, 31), (0.9, 30)], &[0..91]);
        check(&[(0.9, 30), (0.1, 93), (0.9, 30)], &[0..39, 39..153]);
        check(&[(0.9, 30), (0.1, 250), (0.9, 30)], &[0..39, 95..310]);
        // Between the thresholds, a frame continues what was before.
        check(&[(0.4, 30), (0.9, 10), (0.4, 10), (0.0, 100)], &[0..59]);
    }

    #[test]
    fn a_short_word_is_kept_and_a_click_is_not() {
        let check = |pieces, expected: &[_]| check(pieces, CutOptions::live(), expected);
        check(&[(0.0, 20), (0.9, 2), (0.0, 100)], &[0..31]);
        check(&[(0.0, 20), (0.6, 8), (0.0, 100)], &[0..37]);
        check(&[(0.0, 20), (0.6, 7), (0.0, 100)], &[]);
        // What was left out does not come back with the next word.
        check(&[(0.0, 20), (0.7, 1), (0.0, 40), (0.9, 20)], &[31..81]);
    }

    #[test]
    fn a_part_of_20_seconds_ends_at_the_next_pause_of_a_quarter_of_a_second() {
        let check = |pieces, expected: &[_]| check(pieces, CutOptions::default(), expected);
        check(&[(0.9, 600), (0.1, 12), (0.9, 50)], &[0..662]);
        check(&[(0.9, 700), (0.1, 7), (0.9, 100)], &[0..807]);
        check(&[(0.9, 700), (0.1, 12), (0.9, 100)], &[0..708, 708..812]);
    }

    #[test]
    fn a_part_of_28_seconds_is_cut_in_a_pause_or_where_speech_is_least() {
        let check = |pieces, expected: &[_]| check(pieces, CutOptions::default(), expected);
        // The longest pause of the last 8 s wins.
        check(
            &[(0.9, 660), (0.1, 4), (0.9, 60), (0.1, 6), (0.9, 60), (0.1, 3), (0.9, 200)],
            &[0..727, 727..993],
        );
        // Then a pause before them.
        check(&[(0.9, 300), (0.1, 4), (0.9, 650)], &[0..302, 302..954]);
        // Then the least likely frame. Two quiet frames are not yet a pause.
        check(&[(0.9, 300), (0.1, 2), (0.9, 500), (0.6, 1), (0.9, 150)], &[0..802, 802..953]);
    }

    #[test]
    fn live_sound_is_cut_after_the_silence_that_was_asked_for() {
        let turns = [(0.9, 30), (0.0, 20), (0.9, 30), (0.0, 20)];
        check(&turns, CutOptions::live(), &[0..39, 39..89]);
        check(&turns, CutOptions::silence_ms(1_000), &[0..89]);
        check(&turns, CutOptions::silence_ms(0), &[0..31, 31..81]);
    }

    #[test]
    fn a_recording_is_cut_as_its_client_says() {
        let turns = [(0.0, 50), (0.9, 30), (0.0, 20), (0.6, 30), (0.0, 80)];
        let own =
            Chunking::ServerVad { threshold: None, prefix_padding_ms: None, silence_ms: None };
        for chunking in [None, Some(Chunking::Auto), Some(own)] {
            check(&turns, CutOptions::recording(chunking), &[0..139]);
        }
        let with = |threshold, prefix_padding_ms, silence_ms| {
            CutOptions::recording(Some(Chunking::ServerVad {
                threshold,
                prefix_padding_ms,
                silence_ms,
            }))
        };
        check(&turns, with(None, None, Some(600)), &[0..89, 89..139]);
        check(&turns, with(None, None, Some(200)), &[0..87, 87..137]);
        check(&turns, with(None, Some(0), None), &[50..139]);
        check(&turns, with(None, Some(320), Some(600)), &[40..89, 90..139]);
        check(&turns, with(Some(0.7), None, None), &[0..89]);
        check(&turns, with(Some(1.0), None, None), &[]);
        check(&turns, with(Some(0.0), None, None), &[0..210]);
    }

    #[test]
    fn speech_so_far_can_be_looked_at() {
        let mut parts = SoundCutter::new(CutOptions::live());
        for probability in sound(&[(0.0, 20), (0.9, 5)]) {
            assert_eq!(parts.open_part().is_some(), parts.probabilities.contains(&0.9));
            parts.push(&[0.0; FRAME_SAMPLES], probability);
        }
        let open = parts.open_part().expect("speech has begun");
        let frames = |samples: u64| samples as usize / FRAME_SAMPLES;
        let ends = [open.start_sample, open.speech_end, open.end_sample()].map(frames);
        assert_eq!(ends, [0, 25, 25]);
        // The part that a pause completes says the same.
        let later = sound(&[(0.0, 20)])
            .into_iter()
            .find_map(|probability| parts.push(&[0.0; FRAME_SAMPLES], probability));
        let later = later.expect("a part");
        assert!(later.says_the_same_as(&open) && later.end_sample() > open.end_sample());
    }

    #[test]
    fn only_a_second_before_speech_counts_as_spoken() {
        let mut parts = SoundCutter::new(CutOptions::default());
        for probability in sound(&[(0.0, 150), (0.9, 20)]) {
            parts.push(&[0.0; FRAME_SAMPLES], probability);
        }
        let part = parts.finish().expect("a part");
        let samples = [part.samples.len(), part.spoken_samples()];
        assert_eq!(samples, [170 * FRAME_SAMPLES, 50 * FRAME_SAMPLES]);
    }

    #[test]
    fn a_click_is_not_looked_at() {
        let mut parts = SoundCutter::new(CutOptions::live());
        for probability in sound(&[(0.0, 20), (0.7, 3), (0.0, 10)]) {
            parts.push(&[0.0; FRAME_SAMPLES], probability);
            assert_eq!(parts.open_part(), None);
        }
    }

    fn speech_and_pauses() -> impl Strategy<Value = Vec<(f32, usize)>> {
        let likely = prop_oneof![0.0..0.35_f32, 0.35..0.8_f32, 0.8..=1.0_f32];
        prop::collection::vec((likely, prop_oneof![1..12_usize, 1..400_usize]), 1..16)
    }

    proptest! {
        #[test]
        fn every_frame_of_speech_is_in_exactly_one_part(
            pieces in speech_and_pauses(),
            silence_ms in prop_oneof![Just(2_000), Just(500), 0..3_000_u32],
        ) {
            let probabilities = sound(&pieces);
            let found = parts(&probabilities, CutOptions::silence_ms(silence_ms));
            for pair in found.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start, "{found:?}");
            }
            for (number, probability) in probabilities.iter().enumerate() {
                let owners = found.iter().filter(|part| part.contains(&number)).count();
                prop_assert!(*probability < BEYOND_DOUBT || owners == 1, "frame {number}: {found:?}");
            }
            prop_assert!(found.iter().all(|part| part.len() <= PART_FRAMES_MAX), "{found:?}");
        }

        #[test]
        fn no_word_is_cut_while_there_are_pauses(
            words in prop::collection::vec((3..120_usize, 3..40_usize), 1..60),
        ) {
            let pieces: Vec<(f32, usize)> =
                words.iter().flat_map(|(word, pause)| [(0.9, *word), (0.1, *pause)]).collect();
            let probabilities = sound(&pieces);
            for part in parts(&probabilities, CutOptions::default()) {
                let at_edges = [part.start.checked_sub(1), Some(part.end)];
                for outside in at_edges.into_iter().flatten() {
                    let is_pause = probabilities.get(outside).is_none_or(|value| *value < PAUSE_MAX);
                    let inside = if outside < part.start { part.start } else { part.end - 1 };
                    prop_assert!(is_pause || probabilities[inside] < PAUSE_MAX, "{part:?}");
                }
            }
        }
    }
}
