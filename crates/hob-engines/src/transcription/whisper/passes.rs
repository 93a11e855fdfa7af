//! One pass of the decoder over a window, and the doubts about its result that call for another pass.
//! The thresholds are those of OpenAI's decoder, except the rate of tokens.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::decoder::{self, Branches, Step};
use super::drafts::Draft;
use super::loops::has_loop;
use super::rules::{Rules, log_sum};
use super::{TranscribeError, Whisper};

/// Mean log-probability below which a text is doubted.
const LOGPROB_MIN: f32 = -1.0;
/// Mean log-probability below which several texts are followed.
const UNSURE_LOGPROB: f32 = -0.3;
/// If the probability of no speech is above this and the mean log-probability below LOGPROB_MIN, the window has no speech.
const NO_SPEECH_MAX: f32 = 0.6;
/// Silence gives "you" and "Thank you." with a probability of no speech above 0.9 and a mean log-probability of about
/// -0.6 (measured with Whisper base). Fast speech has such values too, but more words.
const NO_SPEECH_SURE: f32 = 0.8;
const LOGPROB_OF_SILENCE: f32 = -0.5;
const WORDS_OF_SILENCE_MAX: usize = 5;
/// A text that zlib shrinks more than this repeats itself.
const COMPRESSION_MAX: f32 = 2.4;
/// Fast speech has 6 tokens per second.
const TOKENS_PER_S_MAX: f64 = 8.0;
/// Tokens in addition to the rate, so that a very short sound may have a few words.
const TOKENS_FREE: f64 = 10.0;
/// Texts that are followed at the same time, as in OpenAI's decoder.
const BEAMS: usize = 5;
/// If the logits of the two likeliest tokens differ by less, rounding may decide between them. Such a choice is not made
/// with guesses. Steps over one token and over several add in another order, which moves a logit by far less than this.
const CLOSE: f32 = 0.05;
/// If a mean log-probability or the probability of no speech is closer than this to a threshold, rounding may decide. Less
/// than `CLOSE`, because errors of single tokens cancel out, and a probability moves by a quarter of its logit at most.
const CLOSE_MEAN: f32 = 0.005;
/// A text beyond the limit of tokens is too long if it has so many characters for each token of the limit. Text in Latin
/// letters has more.
const CHARS_PER_TOKEN: usize = 2;
/// A text with so many times the tokens is too long in any script: a character of Burmese or Georgian has two or three.
const TOKENS_PER_CHAR: usize = 3;

/// What the decoder made of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// The language of the sound, if no other one is about as likely. Only if the prompt begins with "start of transcript".
    pub(super) language: Option<&'static str>,
    /// Text tokens and times, without the opening and the end.
    pub(super) tokens: Vec<u32>,
    pub(super) avg_logprob: f32,
    /// Mean log-probability without the times, which are less certain than the text.
    text_logprob: f32,
    pub(super) no_speech: f32,
    pub(super) temperature: f32,
    pub(super) compression: f32,
    /// Tokens that are not times.
    text_tokens: usize,
    /// The text is longer than the sound can be, or repeats itself.
    is_cut: bool,
    /// The text ends with a sequence that follows itself.
    pub(super) has_loop: bool,
    /// The decoder has no room for the rest of the text.
    pub(super) is_full: bool,
    /// A choice after guesses was so close, or a mean so close to a threshold, that the text may not be the one without guesses.
    is_close: bool,
}

/// What a pass needs.
pub(super) struct PassPlan<'a> {
    /// Tokens before the answer. The token at index `start` is "start of transcript".
    pub(super) prompt: Vec<u32>,
    pub(super) start: usize,
    pub(super) has_times: bool,
    pub(super) temperature: f32,
    /// Follow several texts.
    pub(super) has_beams: bool,
    pub(super) positions: usize,
    /// What the text probably is. It has no influence on the text.
    pub(super) draft: Vec<u32>,
    /// Unless the sound is clearly in this language, the pass ends with its first step.
    pub(super) likely_language: Option<&'a str>,
    /// Seconds of sound.
    pub(super) sound_s: f64,
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

impl<'a> PassPlan<'a> {
    /// Texts to follow. Random tokens need no more than one.
    fn beams(&self) -> usize {
        if self.has_beams && self.temperature <= 0.0 { BEAMS } else { 1 }
    }

    fn step<'s>(&self, tokens: &'s [u32], past: usize, branches: Option<&'s Branches>) -> Step<'s>
    where
        'a: 's,
    {
        Step { tokens, past, branches, positions: self.positions, cancelled: self.cancelled }
    }
}

/// One of the texts that a pass follows.
#[derive(Clone, Debug, Default)]
struct Beam {
    said: Vec<u32>,
    /// Where its tokens are in the decoder's cache, without the prompt.
    cached: Vec<usize>,
    /// Sum over its tokens, the end included.
    logprob: f32,
    /// The part of the sum that comes from times.
    times_logprob: f32,
}

impl Beam {
    fn with(mut self, token: u32) -> Beam {
        self.said.push(token);
        self
    }

    /// Log-probability of each token. Sums would prefer short texts.
    fn mean(&self) -> f32 {
        self.logprob / (self.said.len() + 1) as f32
    }

    /// Log-probability of each token without the times, which are the tokens from `first_time` on.
    fn text_mean(&self, first_time: u32) -> f32 {
        (self.logprob - self.times_logprob) / (self.text_tokens(first_time) + 1) as f32
    }

    fn text_tokens(&self, first_time: u32) -> usize {
        self.said.iter().filter(|token| **token < first_time).count()
    }
}

impl Pass {
    /// Nothing was said.
    pub(super) fn is_silence(&self) -> bool {
        self.no_speech > NO_SPEECH_MAX && self.avg_logprob < LOGPROB_MIN
            || self.no_speech > NO_SPEECH_SURE
                && self.avg_logprob < LOGPROB_OF_SILENCE
                && self.text_tokens <= WORDS_OF_SILENCE_MAX
    }

    /// Whether rounding may decide what is doubted, unsure or silent.
    fn is_at_threshold(&self) -> bool {
        [
            (self.text_logprob, UNSURE_LOGPROB),
            (self.avg_logprob, LOGPROB_MIN),
            (self.avg_logprob, LOGPROB_OF_SILENCE),
            (self.no_speech, NO_SPEECH_MAX),
            (self.no_speech, NO_SPEECH_SURE),
        ]
        .into_iter()
        .any(|(value, threshold)| (value - threshold).abs() < CLOSE_MEAN)
    }

    /// Another text may be likelier.
    pub(super) fn is_unsure(&self) -> bool {
        self.text_logprob < UNSURE_LOGPROB
    }

    /// The text of a short window may differ from that of the full one.
    pub(super) fn needs_full_window(&self, sound_s: f64) -> bool {
        self.no_speech > NO_SPEECH_MAX
            || self.text_tokens == 0
            || self.is_fast(sound_s)
            || self.is_doubted()
    }

    /// Whether it has more tokens than speech in Latin letters. Other scripts have more, so the full window decides.
    fn is_fast(&self, sound_s: f64) -> bool {
        self.tokens.len() as f64 > sound_s * TOKENS_PER_S_MAX + TOKENS_FREE
    }

    /// Whether the text may be wrong, so that another pass should be tried.
    pub(super) fn is_doubted(&self) -> bool {
        self.is_cut
            || self.avg_logprob < LOGPROB_MIN
            || self.compression > COMPRESSION_MAX
            || self.has_loop
    }
}

/// The length of a text divided by its length after zlib.
pub(super) fn compression(text: &str) -> f32 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    packed.map_or(0.0, |packed| text.len() as f32 / packed.len().max(1) as f32)
}

impl Whisper {
    /// Decodes one window. With beams it follows the likeliest texts at the same time (beam search): the likeliest next token is
    /// often not part of the likeliest text, above all in noise. The draft of the plan only saves time.
    pub(super) fn pass(&mut self, plan: &PassPlan<'_>) -> Result<Pass, TranscribeError> {
        let is_greedy = plan.beams() == 1 && plan.temperature <= 0.0;
        let draft: &[u32] = if is_greedy { &plan.draft } else { &[] };
        let pass = self.search(plan, draft)?;
        if pass.is_close { self.search(plan, &[]) } else { Ok(pass) }
    }

    /// One search with a draft, which may be wrong. It stops after guesses at a choice that is close.
    pub(super) fn search(
        &mut self,
        plan: &PassPlan<'_>,
        draft: &[u32],
    ) -> Result<Pass, TranscribeError> {
        let beams = plan.beams();
        let prompt_len = plan.prompt.len();
        let cached_each = (self.sizes.text_cached_max() - prompt_len) / beams;
        // A long prompt leaves less than half of the context.
        let room = (self.sizes.text_ctx / 2).min(self.sizes.text_ctx - prompt_len).min(cached_each);
        let limit = (plan.sound_s * TOKENS_PER_S_MAX * 2.0 + 2.0 * TOKENS_FREE) as usize;
        let mut draft = Draft::new(draft, room);
        // The first guesses come with the prompt, because each step reads all weights.
        let tokens = [plan.prompt.as_slice(), draft.after(&[])].concat();
        let after = (prompt_len - 1..tokens.len()).map(|row| row as i32);
        let rows: Vec<i32> = std::iter::once(plan.start as i32).chain(after).collect();
        let mut start = self.logits(plan.step(&tokens, 0, None), &rows)?;
        let rest = start.split_off(self.sizes.vocab);
        let no_speech = start[self.tokens.no_speech() as usize] - log_sum(&start);
        let language = self.clear_language(&start);
        if plan.likely_language.is_some() && language != plan.likely_language {
            return Ok(Pass { language, ..Pass::default() });
        }
        let mut logits = draft.keep(rest, 1, self.sizes.vocab);
        let mut past = prompt_len;
        let mut live = vec![Beam::default()];
        let mut ended: Vec<Beam> = Vec::new();
        let best = loop {
            let distance = self.forbid(&live, &mut logits, plan);
            if draft.is_used() && (distance < CLOSE || is_close(&logits)) {
                return Ok(Pass { is_close: true, ..Pass::default() });
            }
            live = self.continued(&live, &logits, plan, &mut ended);
            let is_open = |first: &&Beam| !is_decided(&ended, first);
            let Some(first) = live.first().filter(is_open) else { break None };
            let is_over = first.said.len() >= room || self.is_too_long(&first.said, limit);
            if is_over || has_loop(&self.tokens, &first.said) {
                break Some(first.clone());
            }
            if (plan.cancelled)() {
                return Err(TranscribeError::Cancelled);
            }
            for (beam, at) in live.iter_mut().zip(past..) {
                beam.cached.push(at);
            }
            logits = self.next_logits(&live, past, plan, &mut draft)?;
            past += live.len();
        };
        let is_full = best
            .as_ref()
            .is_some_and(|best| best.said.len() >= room && !self.is_too_long(&best.said, limit));
        let is_cut = best.is_some() && !is_full;
        let best = best.or_else(|| ended.into_iter().max_by(|a, b| a.mean().total_cmp(&b.mean())));
        let best = best.unwrap_or_default();
        let text = self.tokens.text(&best.said);
        let mut pass = Pass {
            language,
            avg_logprob: best.mean(),
            text_logprob: best.text_mean(self.tokens.first_timestamp()),
            no_speech: no_speech.exp(),
            temperature: plan.temperature,
            compression: compression(&text),
            text_tokens: best.text_tokens(self.tokens.first_timestamp()),
            has_loop: has_loop(&self.tokens, &best.said),
            tokens: best.said,
            is_cut,
            is_full,
            is_close: false,
        };
        pass.is_close = draft.is_used() && pass.is_at_threshold();
        Ok(pass)
    }

    /// Whether a text is longer than the sound can be. `limit` is in tokens. For the same speech, scripts have very different
    /// numbers of them, so characters count, too.
    fn is_too_long(&self, said: &[u32], limit: usize) -> bool {
        said.len() >= limit
            && (said.len() >= limit * TOKENS_PER_CHAR
                || self.tokens.characters(said) >= limit * CHARS_PER_TOKEN)
    }

    /// Decodes a text again with times if there is no room for all of it: the times say where it goes on.
    pub(super) fn timed_if_full(
        &mut self,
        plan: &mut PassPlan<'_>,
        pass: Pass,
    ) -> Result<Pass, TranscribeError> {
        if plan.has_times || !pass.is_full {
            return Ok(pass);
        }
        plan.has_times = true;
        // Its last token is "no timestamps".
        plan.prompt.pop();
        self.pass(plan)
    }

    /// The language by the logits after "start of transcript".
    fn clear_language(&self, logits: &[f32]) -> Option<&'static str> {
        let languages = &logits[self.tokens.language_range()];
        let place = likeliest(languages, 1).first().copied().filter(|_| !is_close(languages))?;
        Some(self.tokens.language_at(place as usize))
    }

    /// The logits after each of these texts. The cache has `past` tokens, without the last ones of the texts.
    fn next_logits(
        &mut self,
        live: &[Beam],
        past: usize,
        plan: &PassPlan<'_>,
        draft: &mut Draft<'_>,
    ) -> Result<Vec<f32>, TranscribeError> {
        let said: &[u32] = live.first().map_or(&[], |beam| beam.said.as_slice());
        if let Some(logits) = draft.take(said) {
            return Ok(logits);
        }
        let last = live.iter().filter_map(|beam| beam.said.last());
        // A wrong guess stays in the cache until the step after it writes over it.
        let tokens: Vec<u32> = last.chain(draft.after(said)).copied().collect();
        let rows: Vec<i32> = (0..tokens.len() as i32).collect();
        let width = past + tokens.len();
        let branches = (plan.beams() > 1).then(|| branches(live, plan.prompt.len(), width));
        let logits = self.logits(plan.step(&tokens, past, branches.as_ref()), &rows)?;
        Ok(draft.keep(logits, live.len(), self.sizes.vocab))
    }

    /// Forbids tokens that may not come next. Returns the smallest distance at which that chose between times and text.
    fn forbid(&self, live: &[Beam], logits: &mut [f32], plan: &PassPlan<'_>) -> f32 {
        let rules = Rules { tokens: &self.tokens, has_times: plan.has_times };
        let rows = live.iter().zip(logits.chunks_mut(self.sizes.vocab));
        rows.map(|(beam, logits)| rules.apply(logits, &beam.said)).fold(f32::INFINITY, f32::min)
    }

    /// The likeliest texts that are one token longer, the likeliest first. Those that have come to their end move to `ended`.
    fn continued(
        &mut self,
        live: &[Beam],
        logits: &[f32],
        plan: &PassPlan<'_>,
        ended: &mut Vec<Beam>,
    ) -> Vec<Beam> {
        let beams = plan.beams();
        let mut found: Vec<(f32, usize, u32)> = Vec::new();
        for (index, (beam, logits)) in live.iter().zip(logits.chunks(self.sizes.vocab)).enumerate()
        {
            let sum = log_sum(logits);
            let tokens = match plan.temperature > 0.0 {
                true => vec![self.random_token(logits, plan.temperature)],
                // One may be the end.
                false => likeliest(logits, beams + 1),
            };
            found.extend(
                tokens
                    .into_iter()
                    .map(|token| (beam.logprob + logits[token as usize] - sum, index, token)),
            );
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut longer = Vec::new();
        for (logprob, index, token) in found {
            let mut beam = Beam { logprob, ..live[index].clone() };
            if token >= self.tokens.first_timestamp() {
                beam.times_logprob += logprob - live[index].logprob;
            }
            if token == self.tokens.end {
                ended.push(beam);
            } else {
                longer.push(beam.with(token));
            }
            if longer.len() == beams {
                break;
            }
        }
        longer
    }

    fn logits(&mut self, step: Step<'_>, rows: &[i32]) -> Result<Vec<f32>, TranscribeError> {
        decoder::logits(&self.weights, &self.sizes, &mut self.backends, step, rows)
    }

    /// A random token of the distribution at this temperature.
    fn random_token(&mut self, logits: &[f32], temperature: f32) -> u32 {
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

/// Whether no text that goes on can become likelier than one that has ended. `first` is the likeliest that goes on.
fn is_decided(ended: &[Beam], first: &Beam) -> bool {
    // A text that goes on only becomes less likely.
    ended.iter().any(|beam| beam.logprob >= first.logprob)
}

/// The tokens with the largest logits, the largest first. Equal ones keep the order of the vocabulary.
fn likeliest(logits: &[f32], count: usize) -> Vec<u32> {
    let mut best: Vec<(f32, u32)> = Vec::with_capacity(count + 1);
    for (token, logit) in logits.iter().enumerate() {
        if best.len() == count && best.last().is_some_and(|(least, _)| logit <= least) {
            continue;
        }
        if *logit > f32::NEG_INFINITY {
            let at = best.partition_point(|(better, _)| better >= logit);
            best.insert(at, (*logit, token as u32));
            best.truncate(count);
        }
    }
    best.into_iter().map(|(_, token)| token).collect()
}

/// Whether the two likeliest tokens are almost equally likely.
fn is_close(logits: &[f32]) -> bool {
    let likeliest: Vec<f32> =
        likeliest(logits, 2).into_iter().map(|token| logits[token as usize]).collect();
    matches!(likeliest[..], [first, second] if first - second < CLOSE)
}

/// What each text of the next step sees: the prompt and its own tokens.
fn branches(live: &[Beam], prompt_len: usize, width: usize) -> Branches {
    let mut mask = vec![f32::NEG_INFINITY; live.len() * width];
    for (row, beam) in mask.chunks_mut(width).zip(live) {
        row[..prompt_len].fill(0.0);
        beam.cached.iter().for_each(|at| row[*at] = 0.0);
    }
    // All have the same length. The last token of each is the one to compute.
    let said = live.first().map_or(1, |beam| beam.said.len());
    Branches { depth: prompt_len + said - 1, mask }
}

#[cfg(test)]
mod tests {
    use super::super::tests::tiny;
    use super::super::{SEED, WhisperOptions, Window};
    use super::*;

    #[test]
    fn a_text_of_a_dense_script_may_have_more_tokens_for_the_same_speech() {
        let whisper = tiny();
        for (text, limit, expected) in [
            (" world".repeat(20), 20, true),
            (" world".repeat(19), 20, false),
            // Three tokens for each character.
            ("ქართული".to_owned(), 20, false),
            ("ქართული".repeat(2), 14, true),
        ] {
            let tokens = whisper.tokens.encode(&text);
            assert_eq!(whisper.is_too_long(&tokens, limit), expected, "{text}");
        }
    }

    #[test]
    fn a_text_without_times_that_has_no_room_is_decoded_with_times() {
        let mut whisper = tiny();
        let never = || false;
        let sound = vec![0.1; 160_000];
        let window = Window::trimmed(sound.len(), 1500);
        whisper.encode(&sound, window, &never).expect("encoded");
        // Random tokens do not repeat, so the text ends where there is no room.
        let mut plan = whisper.plan(&WhisperOptions::default(), "en", 10.0, &never);
        (plan.positions, plan.temperature) = (window.positions, 1.0);
        whisper.random.seed(SEED);
        let untimed = whisper.pass(&plan).expect("a text");
        let first_time = whisper.tokens.first_timestamp();
        assert!(untimed.is_full && untimed.tokens.iter().all(|token| *token < first_time));
        let timed = whisper.timed_if_full(&mut plan, untimed).expect("a text");
        assert!(plan.has_times && timed.tokens[0] >= first_time);
    }

    #[test]
    fn the_likeliest_tokens_come_in_order() {
        let logits = [0.5, 2.0, f32::NEG_INFINITY, 2.0, -1.0];
        assert_eq!(likeliest(&logits, 3), [1, 3, 0]);
        assert_eq!(likeliest(&logits, 9), [1, 3, 0, 4], "what is forbidden never comes");
    }

    #[test]
    fn a_choice_is_close_if_rounding_may_decide_it() {
        for (logits, expected) in [
            (vec![], false),
            (vec![1.0], false),
            (vec![1.0, f32::NEG_INFINITY], false),
            (vec![1.0, 3.0, 2.9], false),
            (vec![3.0, 1.0, 2.99], true),
            (vec![2.0, 2.0, 5.0], false),
        ] {
            assert_eq!(is_close(&logits), expected, "{logits:?}");
        }
    }

    #[test]
    fn a_value_at_a_threshold_may_be_decided_by_rounding() {
        for (text_logprob, avg_logprob, expected) in [
            (-0.2, -0.25, false),
            (-0.301, -0.35, true),
            (-0.31, -0.35, false),
            (-0.6, -0.999, true),
            (-0.6, -0.497, true),
            (-0.6, -0.98, false),
        ] {
            let pass = Pass { text_logprob, avg_logprob, ..Pass::default() };
            assert_eq!(pass.is_at_threshold(), expected, "{pass:?}");
        }
        for (no_speech, expected) in [(0.59, false), (0.602, true), (0.7, false), (0.798, true)] {
            assert_eq!(Pass { no_speech, ..Pass::default() }.is_at_threshold(), expected);
        }
    }

    #[test]
    fn a_text_sees_the_prompt_and_itself() {
        let hidden = f32::NEG_INFINITY;
        let beam = |cached: &[usize]| Beam {
            said: vec![7; cached.len()],
            cached: cached.to_vec(),
            ..Beam::default()
        };
        // A prompt of two tokens, and two texts that share their first token.
        let branches = branches(&[beam(&[2, 3]), beam(&[2, 4])], 2, 5);
        assert_eq!(branches.depth, 3);
        assert_eq!(branches.mask[..5], [0.0, 0.0, 0.0, 0.0, hidden]);
        assert_eq!(branches.mask[5..], [0.0, 0.0, 0.0, hidden, 0.0]);
    }

    #[test]
    fn times_do_not_make_a_text_unsure() {
        let beam = Beam {
            said: vec![90, 7, 91, 91, 7, 7, 92],
            logprob: -4.0,
            times_logprob: -3.5,
            ..Beam::default()
        };
        assert_eq!((beam.mean(), beam.text_mean(90)), (-0.5, -0.125));
    }

    #[test]
    fn a_search_ends_when_no_text_may_become_likelier() {
        let beam = |tokens: usize, logprob: f32| Beam {
            said: vec![7; tokens],
            logprob,
            ..Beam::default()
        };
        let (short, long) = (beam(1, -2.0), beam(7, -6.0));
        let ended = [short.clone(), long.clone()];
        for (first, expected) in [(-1.0, false), (-3.0, true)] {
            assert_eq!(is_decided(&ended, &beam(8, first)), expected);
        }
        // The longer text is likelier for each token.
        assert!(long.mean() > short.mean());
    }

    #[test]
    fn each_single_doubt_asks_for_another_pass() {
        let fine = Pass {
            tokens: vec![1, 2, 3],
            text_tokens: 3,
            avg_logprob: -0.3,
            compression: 1.0,
            ..Pass::default()
        };
        assert!(!fine.is_doubted() && !fine.is_silence() && !fine.needs_full_window(2.0));
        for doubted in [
            Pass { avg_logprob: -1.2, ..fine.clone() },
            Pass { compression: 3.0, ..fine.clone() },
            Pass { is_cut: true, ..fine.clone() },
            Pass { has_loop: true, ..fine.clone() },
        ] {
            assert!(doubted.is_doubted(), "{doubted:?}");
        }
        for surprising in [
            Pass { tokens: (0..40).collect(), text_tokens: 40, ..fine.clone() },
            Pass { tokens: Vec::new(), text_tokens: 0, ..fine.clone() },
        ] {
            assert!(surprising.needs_full_window(2.0) && !surprising.is_doubted());
        }
        for (no_speech, avg_logprob, text_tokens, is_silence) in [
            (0.7, -1.2, 3, true),
            (0.7, -0.6, 3, false),
            (0.9, -0.6, 3, true),
            (0.9, -0.2, 3, false),
            // Fast speech.
            (0.9, -0.6, 60, false),
        ] {
            let pass = Pass { avg_logprob, no_speech, text_tokens, ..fine.clone() };
            assert_eq!(pass.is_silence(), is_silence, "{pass:?}");
            assert!(pass.needs_full_window(2.0));
        }
        assert!(compression(&"abc ".repeat(50)) > COMPRESSION_MAX);
        assert!(compression("A short sentence.") < 1.5);
    }
}
