//! One pass of the decoder over a window, and the doubts about its result that call for another pass.
//! The thresholds are those of OpenAI's decoder, except the rate of tokens.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::decoder::{self, Step};
use super::rules::{Rules, log_sum};
use super::{TranscribeError, Whisper};

/// Mean log-probability below which a text is doubted.
const LOGPROB_MIN: f32 = -1.0;
/// If the probability of no speech is above this and the mean log-probability below LOGPROB_MIN, the window has no speech.
const NO_SPEECH_MAX: f32 = 0.6;
/// Silence gives "you" and "Thank you." with a probability of no speech above 0.9 and a mean log-probability of about
/// -0.6 (measured with Whisper base).
const NO_SPEECH_SURE: f32 = 0.8;
const LOGPROB_OF_SILENCE: f32 = -0.5;
/// A text that zlib shrinks more than this repeats itself.
const COMPRESSION_MAX: f32 = 2.4;
/// Fast speech has 6 tokens per second.
const TOKENS_PER_S_MAX: f64 = 8.0;
/// Tokens in addition to the rate, so that a very short sound may have a few words.
const TOKENS_FREE: f64 = 10.0;
/// Times that a sequence of tokens must follow itself to be a loop.
const LOOP_REPEATS: usize = 4;

/// What the decoder made of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// Text tokens and times, without the opening and the end.
    pub(super) tokens: Vec<u32>,
    pub(super) avg_logprob: f32,
    pub(super) no_speech: f32,
    pub(super) temperature: f32,
    pub(super) compression: f32,
    /// The decoder did not come to an end.
    is_cut: bool,
}

/// What a pass needs.
pub(super) struct PassPlan<'a> {
    /// Tokens before the answer. The token at index `start` is "start of transcript".
    pub(super) prompt: Vec<u32>,
    pub(super) start: usize,
    pub(super) has_times: bool,
    pub(super) temperature: f32,
    pub(super) positions: usize,
    /// Seconds of sound.
    pub(super) sound_s: f64,
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

impl Pass {
    /// Nothing was said.
    pub(super) fn is_silence(&self) -> bool {
        self.no_speech > NO_SPEECH_MAX && self.avg_logprob < LOGPROB_MIN
            || self.no_speech > NO_SPEECH_SURE && self.avg_logprob < LOGPROB_OF_SILENCE
    }

    /// The text of a short window may differ from that of the full one.
    pub(super) fn needs_full_window(&self, sound_s: f64) -> bool {
        self.no_speech > NO_SPEECH_MAX || self.is_doubted(sound_s)
    }

    /// Whether the text may be wrong, so that another pass should be tried.
    pub(super) fn is_doubted(&self, sound_s: f64) -> bool {
        let limit = sound_s * TOKENS_PER_S_MAX + TOKENS_FREE;
        self.is_cut
            || self.avg_logprob < LOGPROB_MIN
            || self.compression > COMPRESSION_MAX
            || self.tokens.len() as f64 > limit
            || has_loop(&self.tokens)
    }
}

/// Whether the tokens end with a sequence that follows itself several times.
pub(super) fn has_loop(tokens: &[u32]) -> bool {
    let longest = tokens.len() / LOOP_REPEATS;
    (1..=longest).any(|length| {
        // A short word may be said a few times: "no, no, no, no".
        let repeats = if length < 3 { LOOP_REPEATS * 2 } else { LOOP_REPEATS };
        let Some(from) = tokens.len().checked_sub(length * repeats) else { return false };
        let (first, rest) = tokens[from..].split_at(length);
        rest.chunks(length).all(|chunk| chunk == first)
    })
}

/// The length of a text divided by its length after zlib.
pub(super) fn compression(text: &str) -> f32 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    packed.map_or(0.0, |packed| text.len() as f32 / packed.len().max(1) as f32)
}

impl Whisper {
    pub(super) fn pass(&mut self, plan: &PassPlan<'_>) -> Result<Pass, TranscribeError> {
        let room = self.sizes.text_ctx / 2;
        let limit = (plan.sound_s * TOKENS_PER_S_MAX * 2.0 + 2.0 * TOKENS_FREE) as usize;
        let (mut said, mut logprob_sum) = (Vec::new(), 0.0);
        let mut past = plan.prompt.len();
        let rows = [plan.start as i32, past as i32 - 1];
        let mut both = self.step(&plan.prompt, 0, plan, &rows)?;
        let mut logits = both.split_off(self.sizes.vocab);
        let no_speech = both[self.tokens.no_speech() as usize] - log_sum(&both);
        let is_cut = loop {
            let rules = Rules { tokens: &self.tokens, has_times: plan.has_times };
            rules.apply(&mut logits, &said);
            let token = self.choose(&logits, plan.temperature);
            logprob_sum += logits[token as usize] - log_sum(&logits);
            if token == self.tokens.end {
                break false;
            }
            said.push(token);
            if said.len() >= room.min(limit) || has_loop(&said) {
                break true;
            }
            if (plan.cancelled)() {
                return Err(TranscribeError::Cancelled);
            }
            logits = self.step(&[token], past, plan, &[0])?;
            past += 1;
        };
        let text = self.tokens.text(&said);
        Ok(Pass {
            avg_logprob: logprob_sum / (said.len() + 1) as f32,
            no_speech: no_speech.exp(),
            temperature: plan.temperature,
            compression: compression(&text),
            tokens: said,
            is_cut,
        })
    }

    fn step(
        &mut self,
        tokens: &[u32],
        past: usize,
        plan: &PassPlan<'_>,
        rows: &[i32],
    ) -> Result<Vec<f32>, TranscribeError> {
        let step = Step { tokens, past, positions: plan.positions, cancelled: plan.cancelled };
        decoder::logits(&self.weights, &self.sizes, &mut self.backends, step, rows)
    }

    /// The likeliest token, or a random one of the distribution.
    fn choose(&mut self, logits: &[f32], temperature: f32) -> u32 {
        if temperature <= 0.0 {
            let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
            return best.map_or(self.tokens.end, |(token, _)| token as u32);
        }
        let scaled: Vec<f32> = logits.iter().map(|logit| logit / temperature).collect();
        let sum = log_sum(&scaled);
        let mut left = self.random.f32();
        for (token, logit) in scaled.iter().enumerate() {
            left -= (logit - sum).exp();
            if left <= 0.0 {
                return token as u32;
            }
        }
        self.tokens.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_a_sequence_that_follows_itself() {
        for (tokens, expected) in [
            (vec![], false),
            (vec![1, 2, 3, 4], false),
            (vec![1, 1, 1, 1], false),
            (vec![9, 1, 1, 1, 1, 1, 1, 1, 1], true),
            ([1, 2, 3].repeat(4), true),
            ([1, 2, 3].repeat(3), false),
            ([vec![7, 8], [1, 2, 3, 4].repeat(4)].concat(), true),
            ([[1, 2, 3].repeat(4), vec![5]].concat(), false),
        ] {
            assert_eq!(has_loop(&tokens), expected, "{tokens:?}");
        }
    }

    #[test]
    fn each_single_doubt_asks_for_another_pass() {
        let fine =
            Pass { tokens: vec![1, 2, 3], avg_logprob: -0.3, compression: 1.0, ..Pass::default() };
        assert!(!fine.is_doubted(2.0) && !fine.is_silence());
        for doubted in [
            Pass { avg_logprob: -1.2, ..fine.clone() },
            Pass { compression: 3.0, ..fine.clone() },
            Pass { tokens: (0..40).collect(), ..fine.clone() },
            Pass { is_cut: true, ..fine.clone() },
            Pass { tokens: [1, 2, 3].repeat(4), ..fine.clone() },
        ] {
            assert!(doubted.is_doubted(2.0), "{doubted:?}");
        }
        for (no_speech, avg_logprob, is_silence) in
            [(0.7, -1.2, true), (0.7, -0.6, false), (0.9, -0.6, true), (0.9, -0.2, false)]
        {
            let pass = Pass { avg_logprob, no_speech, ..fine.clone() };
            assert_eq!(pass.is_silence(), is_silence, "{pass:?}");
            assert!(pass.needs_full_window(2.0));
        }
        assert!(compression(&"abc ".repeat(50)) > COMPRESSION_MAX);
        assert!(compression("A short sentence.") < 1.5);
    }
}
