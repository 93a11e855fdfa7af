//! A microphone: sound leaves at the pace at which a person speaks, and silence when nothing is said.
//! Every sample has a time, so the end of a question is known exactly.

use std::time::{Duration, Instant};

/// The rate of OpenAI's Realtime API.
pub(super) const RATE_HZ: u32 = 24_000;
/// Samples of one message: 20 ms, as browsers send them.
const PIECE: usize = RATE_HZ as usize / 50;
/// Quieter than this is not voice: −40 dB.
const VOICED: u16 = 328;

/// Something to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    samples: Vec<i16>,
    /// The first and the last voiced sample.
    onset: usize,
    end: usize,
}

impl Question {
    /// `None`: the sound is silent.
    pub(super) fn new(samples: &[i16], rate_hz: u32) -> Option<Question> {
        let samples = at_rate(samples, rate_hz);
        let is_voiced = |sample: &i16| sample.unsigned_abs() > VOICED;
        let onset = samples.iter().position(is_voiced)?;
        let end = samples.iter().rposition(is_voiced)?;
        Some(Question { samples, onset, end })
    }

    /// The question with silence in the quietest place near its middle, as if the person were thinking.
    pub(super) fn with_pause(mut self, pause: Duration) -> Question {
        let third = (self.end - self.onset) / 3;
        let places = (self.onset + third..self.end - third).step_by(PIECE / 2);
        let loudness = |place: &usize| -> u64 {
            let piece = self.samples.iter().skip(*place).take(PIECE);
            piece.map(|sample| u64::from(sample.unsigned_abs())).sum()
        };
        let quietest = places.min_by_key(loudness).unwrap_or(self.onset);
        let rest = self.samples.split_off((quietest + PIECE / 2).min(self.end));
        let silence = (pause.as_secs_f64() * f64::from(RATE_HZ)) as usize;
        self.samples.extend(std::iter::repeat_n(0, silence));
        self.samples.extend(rest);
        self.end += silence;
        self
    }
}

/// When a question is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SaidAt {
    pub(super) onset: Instant,
    pub(super) end: Instant,
}

#[derive(Debug)]
pub(super) struct Microphone {
    began: Instant,
    /// Samples that have left.
    position: usize,
    /// What is being said, and how much of it has left.
    saying: Vec<i16>,
    said: usize,
}

impl Microphone {
    pub(super) fn new(began: Instant) -> Microphone {
        Microphone { began, position: 0, saying: Vec::new(), said: 0 }
    }

    /// When the next piece is complete.
    pub(super) fn due(&self) -> Instant {
        self.time_of(self.position + PIECE)
    }

    /// Begins to say a question with the next piece.
    pub(super) fn say(&mut self, question: &Question) -> SaidAt {
        self.saying.clone_from(&question.samples);
        self.said = 0;
        let time = |sample: usize| self.time_of(self.position + sample + 1);
        SaidAt { onset: time(question.onset), end: time(question.end) }
    }

    /// The next piece as bytes.
    pub(super) fn piece(&mut self) -> Vec<u8> {
        let rest = &self.saying[self.said.min(self.saying.len())..];
        let spoken = rest.iter().copied().chain(std::iter::repeat(0)).take(PIECE);
        let bytes = spoken.flat_map(i16::to_le_bytes).collect();
        self.said += PIECE;
        self.position += PIECE;
        bytes
    }

    fn time_of(&self, samples: usize) -> Instant {
        self.began + Duration::from_secs_f64(samples as f64 / f64::from(RATE_HZ))
    }
}

/// The samples at 24 kHz, by straight lines between the samples: good enough to be understood.
fn at_rate(samples: &[i16], rate_hz: u32) -> Vec<i16> {
    if rate_hz == RATE_HZ {
        return samples.to_vec();
    }
    let step = f64::from(rate_hz) / f64::from(RATE_HZ);
    let count = (samples.len() as f64 / step) as usize;
    let at = |number: usize| {
        let place = number as f64 * step;
        let (before, share) = (place as usize, place.fract());
        let sample = |at: usize| f64::from(samples.get(at).copied().unwrap_or_default());
        (sample(before) * (1.0 - share) + sample(before + 1) * share) as i16
    };
    (0..count).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        let mut samples = vec![0; 1_000];
        samples.extend(vec![9_000; 500]);
        samples.extend(vec![10; 1_500]);
        Question::new(&samples, RATE_HZ).expect("a voice")
    }

    #[test]
    fn a_sample_leaves_when_it_has_been_spoken() {
        let began = Instant::now();
        let mut microphone = Microphone::new(began);
        assert_eq!(microphone.due(), began + Duration::from_millis(20));
        microphone.piece();
        let said = microphone.say(&question());
        let seconds = |samples: f64| began + Duration::from_secs_f64(samples / 24_000.0);
        assert_eq!(said, SaidAt { onset: seconds(1_481.0), end: seconds(1_980.0) });
        let sent: Vec<u8> = (0..10).flat_map(|_| microphone.piece()).collect();
        let (spoken, after) = sent.split_at(6_000);
        let loud = spoken.chunks(2).filter(|pair| *pair == 9_000i16.to_le_bytes()).count();
        assert_eq!((loud, after.iter().all(|byte| *byte == 0)), (500, true));
    }

    #[test]
    fn a_pause_comes_between_two_words_and_moves_the_end() {
        // Two words of 6,000 samples, with a gap of 1,200 samples that is not exactly in the middle.
        let mut samples = vec![9_000; 6_000];
        samples.extend(vec![5; 1_200]);
        samples.extend(vec![9_000; 6_800]);
        let question = Question::new(&samples, RATE_HZ).expect("a voice");
        let paused = question.clone().with_pause(Duration::from_secs(1));
        assert_eq!(paused.samples.len(), samples.len() + 24_000);
        assert_eq!((paused.onset, paused.end), (question.onset, question.end + 24_000));
        let loud = |samples: &[i16]| samples.iter().filter(|sample| **sample == 9_000).count();
        assert_eq!(
            (loud(&paused.samples[..6_000]), loud(&paused.samples[6_000..30_000])),
            (6_000, 0)
        );
        assert_eq!(loud(&paused.samples), 12_800);
    }

    #[test]
    fn silence_is_no_question_and_other_rates_keep_their_length() {
        assert_eq!(Question::new(&[0; 100], RATE_HZ), None);
        assert_eq!(at_rate(&[0; 16_000], 16_000).len(), 24_000);
        assert_eq!(at_rate(&[100, 200, 300], 12_000), [100, 150, 200, 250, 300, 150]);
    }
}
