//! Measures how fast a model decodes after a short and after a long context, without sampling, and, on a card, how
//! fast it reads a prompt.
//! Each context has its own sequence, so that their runs can alternate.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::EngineTiming;
use crate::chat::decoder::{BatchToken, DecodeFailed, Decoder};
use crate::chat::llama::{Llama, LlamaError, LlamaOptions};

/// Context length of the short runs, tokens.
const SHORT_TOKENS: u32 = 64;
/// Number of tokens of one run.
const RUN_TOKENS: u32 = 16;
const RUNS: usize = 5;
/// Prompts that a card reads. The first ones also compile or load its kernels.
const PROMPTS: usize = 5;
/// Time to fill a context. After it, a shorter context is measured.
const FILL_TIME: Duration = Duration::from_secs(3);
/// Tokens of the first step that fills a context: so few that a slow machine is stopped in time.
const FILL_STEP_TOKENS: u32 = 64;
/// After a step that took no longer than this, the next one has twice as many tokens.
const FILL_STEP_TIME: Duration = Duration::from_millis(500);
/// A token that every vocabulary has.
const TOKEN: u32 = 100;

#[derive(Debug, thiserror::Error)]
pub enum PaceError {
    #[error(transparent)]
    Llama(#[from] LlamaError),
    #[error("the model does not compute: {0}")]
    Decode(#[from] DecodeFailed),
}

/// Measures decoding after a context of [`SHORT_TOKENS`], and after one of up to `long_tokens`, as far as there is time to fill
/// it. A model on a card also reads prompts; how fast the CPU reads them is known from its kernels.
///
/// # Errors
/// The model does not load or does not compute.
pub fn time_model(
    options: LlamaOptions,
    long_tokens: u32,
    report: &mut dyn FnMut(EngineTiming) -> ControlFlow<()>,
) -> Result<(), PaceError> {
    let threads = options.threads;
    let context_tokens = long_tokens.max(SHORT_TOKENS) + RUN_TOKENS;
    let is_on_card = options.gpu_layers != Some(0);
    let options = LlamaOptions { parallel: 2, context_tokens, ..options };
    let llama = Llama::load(options, |_| ())?;
    let mut decoder = llama.decoder()?;
    let contexts = [
        filled(&mut decoder, 0, SHORT_TOKENS)?,
        filled(&mut decoder, 1, long_tokens.max(SHORT_TOKENS))?,
    ];
    let mut seconds = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (slot, context) in contexts.into_iter().enumerate() {
            run(&mut decoder, slot, context, &mut seconds[slot])?;
        }
    }
    for (context, seconds) in contexts.into_iter().zip(&mut seconds) {
        let Some((undisturbed, median)) = undisturbed_and_median(seconds) else { continue };
        // In the middle of a run.
        let context_tokens = context + RUN_TOKENS / 2;
        let (tok_s, median_tok_s) = (undisturbed.recip(), median.recip());
        let timed = EngineTiming::Decode { context_tokens, threads, tok_s, median_tok_s };
        if report(timed).is_break() {
            return Ok(());
        }
    }
    if is_on_card {
        let _last = report(read_prompts(&mut decoder, context_tokens)?);
    }
    Ok(())
}

/// The fastest of a few prompts, each read in one step.
fn read_prompts(decoder: &mut impl Decoder, tokens_max: u32) -> Result<EngineTiming, DecodeFailed> {
    let step_max = u32::try_from(decoder.batch_tokens()).unwrap_or(u32::MAX);
    let prompt_tokens = tokens_max.min(step_max).max(1);
    let mut best = f64::INFINITY;
    for _ in 0..PROMPTS {
        decoder.truncate(0, 0);
        let batch: Vec<BatchToken> = (0..prompt_tokens)
            .map(|position| token(position, 0, position + 1 == prompt_tokens))
            .collect();
        let started = Instant::now();
        decoder.decode(&batch)?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(EngineTiming::Prefill { prompt_tokens, tok_s: f64::from(prompt_tokens) / best })
}

fn token(position: u32, slot: usize, wants_logits: bool) -> BatchToken {
    BatchToken { id: TOKEN + position % TOKEN, position, slot, wants_logits }
}

/// Fills a sequence with up to `wished` tokens. Returns how many it has.
fn filled(decoder: &mut impl Decoder, slot: usize, wished: u32) -> Result<u32, DecodeFailed> {
    let started = Instant::now();
    let step_max = u32::try_from(decoder.batch_tokens()).unwrap_or(u32::MAX).max(1);
    let (mut tokens, mut step) = (0, FILL_STEP_TOKENS.min(step_max));
    while tokens < wished && (tokens < SHORT_TOKENS || started.elapsed() < FILL_TIME) {
        let end = wished.min(tokens.saturating_add(step));
        let batch: Vec<BatchToken> =
            (tokens..end).map(|position| token(position, slot, position + 1 == end)).collect();
        let before = Instant::now();
        decoder.decode(&batch)?;
        tokens = end;
        if before.elapsed() <= FILL_STEP_TIME {
            step = step.saturating_mul(2).min(step_max);
        }
    }
    Ok(tokens)
}

/// Decodes tokens after the context, and adds the time of each to `seconds`. Removes them from the context afterwards.
fn run(
    decoder: &mut impl Decoder,
    slot: usize,
    context: u32,
    seconds: &mut Vec<f64>,
) -> Result<(), DecodeFailed> {
    for position in context..context + RUN_TOKENS {
        let started = Instant::now();
        decoder.decode(&[BatchToken { id: TOKEN, position, slot, wants_logits: true }])?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    decoder.truncate(slot, context as usize);
    Ok(())
}

/// Uses single tokens, because a token fits between two disturbances where a whole run does not. All threads
/// wait for a thread that lost its core. The very fastest token is ignored, because it may be luck.
fn undisturbed_and_median(seconds: &mut [f64]) -> Option<(f64, f64)> {
    seconds.sort_by(f64::total_cmp);
    let part = |part: usize| seconds.get(seconds.len() / part).copied();
    Some((part(8)?, part(2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_tokens_do_not_count() {
        let mut seconds = [vec![0.010; 20], vec![0.030; 60], vec![0.001]].concat();
        assert_eq!(undisturbed_and_median(&mut seconds), Some((0.010, 0.030)));
        assert_eq!(undisturbed_and_median(&mut []), None);
    }
}
