//! What was sent of one spoken item, so that a time in its sound can be turned into a place in its text.
//! Voices that give no times of words are assumed to speak at an even pace.

use std::time::Duration;

use hob_core::WordTiming;

#[derive(Clone, Debug)]
pub(crate) struct SpokenText {
    /// All text that went to the voice.
    pub(crate) text: String,
    /// With times from the beginning of the voice's sound.
    pub(crate) words: Vec<WordTiming>,
    /// Samples that were sent.
    pub(crate) samples: u64,
    /// Samples of the voice before them.
    pub(crate) left_out: usize,
    pub(crate) sample_rate_hz: u32,
    /// The samples say all of the text.
    pub(crate) is_complete: bool,
}

/// Characters that a voice says in a second, for sound whose end is not known.
const CHARS_PER_S: f64 = 15.0;

impl SpokenText {
    pub(crate) fn new() -> SpokenText {
        let (text, words) = (String::new(), Vec::new());
        // The rate of most voices, until the stream's own is known.
        let sample_rate_hz = 24_000;
        SpokenText { text, words, samples: 0, left_out: 0, sample_rate_hz, is_complete: false }
    }

    pub(crate) fn length(&self) -> Duration {
        seconds(self.samples as f64 / f64::from(self.sample_rate_hz))
    }

    /// The text of the words that end within the first `heard` of the sound.
    pub(crate) fn text_heard(&self, heard: Duration) -> &str {
        let end = match self.words.last() {
            Some(_) => self.last_word(heard),
            None => self.even_pace(heard),
        };
        &self.text[..self.with_punctuation(end)]
    }

    /// The byte after a word and its punctuation.
    pub(crate) fn with_punctuation(&self, end: usize) -> usize {
        let is_text = |c: char| c.is_alphanumeric() || c.is_whitespace();
        let Some(rest) = self.text.get(end..) else {
            return self.text.len();
        };
        if end == 0 { 0 } else { end + rest.find(is_text).unwrap_or(rest.len()) }
    }

    fn last_word(&self, heard: Duration) -> usize {
        let left_out_s = self.left_out as f32 / self.sample_rate_hz as f32;
        // Times are 32-bit floats: a millisecond of tolerance.
        let heard_s = left_out_s + heard.as_secs_f32() + 0.001;
        let words = self.words.iter().filter(|word| word.end_s <= heard_s);
        words.map(|word| word.span.end).max().unwrap_or(0)
    }

    fn even_pace(&self, heard: Duration) -> usize {
        let length = self.text_length();
        if heard >= length {
            return self.text.len();
        }
        let share = heard.as_secs_f64() / length.as_secs_f64();
        let end = (self.text.len() as f64 * share) as usize;
        let mut starts = self.text.char_indices().filter(|(at, c)| *at <= end && c.is_whitespace());
        starts.next_back().map_or(0, |(at, _)| at)
    }

    /// The length of the sound of all text, as far as it is known.
    fn text_length(&self) -> Duration {
        let guess = seconds(self.text.chars().count() as f64 / CHARS_PER_S);
        if self.is_complete { self.length() } else { guess.max(self.length()) }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(words: &[(&str, f32)]) -> SpokenText {
        let text = "Hello, dear world.".to_owned();
        let timing = |(word, end_s): &(&str, f32)| {
            let start = text.find(word).unwrap_or_default();
            WordTiming {
                span: start..start + word.len(),
                start_s: 0.0,
                end_s: *end_s,
                phonemes: Vec::new(),
            }
        };
        let words = words.iter().map(timing).collect();
        SpokenText { text, words, samples: 48_000, is_complete: true, ..SpokenText::new() }
    }

    #[test]
    fn the_text_is_cut_to_the_words_that_were_heard() {
        let timed = spoken(&[("Hello", 0.5), ("dear", 1.0), ("world", 2.0)]);
        let even = spoken(&[]);
        for (ms, by_words, by_pace) in [
            (0, "", ""),
            (490, "", ""),
            (500, "Hello,", ""),
            (1_300, "Hello, dear", "Hello, dear"),
            (2_000, "Hello, dear world.", "Hello, dear world."),
        ] {
            let heard = Duration::from_millis(ms);
            assert_eq!((timed.text_heard(heard), even.text_heard(heard)), (by_words, by_pace));
        }
    }

    #[test]
    fn text_that_the_voice_has_not_reached_was_not_heard() {
        let text = "word ".repeat(30);
        let early = SpokenText { text, samples: 24_000, ..SpokenText::new() };
        assert_eq!(early.text_heard(early.length()), "word word word");
    }
}
