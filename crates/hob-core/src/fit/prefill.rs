//! Predicts the speed of prefill. Each step is limited by its operations, or by reading the weights once.
//! Not validated for GPUs: there is one published figure (131,072 tokens in 87 s), and the prior is fitted to it.
//! CPU rates differ by a factor of four between quants, so `hob fit calibrate` times each.

use super::layout::ComputeSite;
use super::speed::{Certainty, Rate, SiteFacts, SpeedEstimate, rate};
use crate::machine::Basis;
use crate::weights::{Part, WeightGroup};

/// From this batch size on, the GPU also computes with weights in RAM, which are copied to it
/// (`GGML_OP_OFFLOAD_MIN_BATCH` of llama.cpp).
const OFFLOADED_TOKENS_MIN: u32 = 32;

impl SpeedEstimate<'_> {
    /// Predicts the rate for a prompt of `tokens` uncached tokens. `None` if the device's operations per second
    /// are unknown.
    pub fn prefill(&self, tokens: u32) -> Option<Rate> {
        let step = self.profile.step_tokens.min(tokens).max(1);
        let known = self.site_facts()?;
        let gpu = known.iter().find(|known| known.site != ComputeSite::Cpu);
        // The CPU skips steps that the GPU takes over.
        let computes_here = |known: &SiteFacts, step: u32| {
            known.site != ComputeSite::Cpu || gpu.is_none() || step < OFFLOADED_TOKENS_MIN
        };
        let mut certainty = Certainty::from_basis(Basis::Prior);
        let mut terms = Vec::new();
        for (step, count) in [(step, tokens / step), (tokens % step, 1)] {
            let count = f64::from(count);
            for known in known.iter().filter(|known| step > 0 && computes_here(known, step)) {
                certainty.combine(known);
                let us = count * self.step_s(known, step)? * 1e6;
                add(&mut terms, format!("steps, {}", known.site), us);
            }
            for gpu in gpu.iter().filter(|_| step >= OFFLOADED_TOKENS_MIN) {
                if let Some((name, seconds)) = self.offload_term(gpu, step) {
                    add(&mut terms, name, count * seconds * 1e6);
                }
            }
        }
        for known in known.iter().filter(|known| computes_here(known, step)) {
            let us = self.attention_flop(known.site, tokens) / flops(known)? * 1e6;
            add(&mut terms, format!("attention, {}", known.site), us);
        }
        rate(tokens, tokens, terms, certainty)
    }

    /// One step: operations for all tokens, or reading the weights once, whichever takes longer.
    fn step_s(&self, known: &SiteFacts, step: u32) -> Option<f64> {
        let share = self.used_experts_share(step);
        let groups = || self.model.shape.weights.0.iter().filter(|g| self.reader(g) == known.site);
        let flops = flops(known)?;
        let of_token_s: f64 = groups().map(|group| self.computed_s(known, group, flops)).sum();
        let read_bytes: f64 =
            groups().map(|group| self.model.shape.weights.read_bytes(group, share)).sum();
        Some(
            (of_token_s * f64::from(step))
                .max(read_bytes / (known.bandwidth * known.constants.bandwidth_efficiency)),
        )
    }

    /// Time for one token of a batch. The speed of a core depends on quant and row length. A quant that was not
    /// timed gets the slowest timed speed.
    fn computed_s(&self, known: &SiteFacts, group: &WeightGroup, flops: f64) -> f64 {
        let active = self.active(group);
        let timed = known.constants.kernels.iter().filter_map(|kernel| kernel.flop_s);
        let slowest = timed.min_by(f64::total_cmp).filter(|_| known.site == ComputeSite::Cpu);
        let Some(slowest) = slowest.filter(|_| active > 0.0) else {
            return 2.0 * active / flops;
        };
        let kernel = self.kernel(known, group);
        let cores = f64::from(self.machine.cpu.cores.max(1));
        let short_rows_s = self.short_rows_s(group) * active / group.elements as f64;
        let computed_s = match (group.part, kernel) {
            // Tokens of a step go to different experts, so each is computed alone (`MUL_MAT_ID` on ggml's CPU
            // backend).
            (Part::Experts, Some(kernel)) => {
                group.bytes as f64 * active / group.elements as f64 / (kernel.bytes_s * cores)
            }
            _ => {
                let of_core = kernel.and_then(|kernel| kernel.flop_s).unwrap_or(slowest);
                2.0 * active / (of_core * cores)
            }
        };
        computed_s + short_rows_s
    }

    /// Weights in the matrix products of one token. The output layer is left out, because logits are needed for the
    /// last token only.
    fn active(&self, group: &WeightGroup) -> f64 {
        match group.part {
            Part::Dense => group.elements as f64,
            Part::Experts => group.elements as f64 * self.model.shape.experts_share(),
            _ => 0.0,
        }
    }

    /// Share of the experts that a step uses: `1 - (1 - k/E)^tokens`.
    fn used_experts_share(&self, step: u32) -> f64 {
        let unused = 1.0 - self.model.shape.experts_share();
        1.0 - unused.powi(i32::try_from(step).unwrap_or(i32::MAX))
    }

    /// Attention pairs each token with each earlier one. A pair costs two operations per element of the key and of
    /// the value, for each head.
    fn attention_flop(&self, site: ComputeSite, tokens: u32) -> f64 {
        let tokens = f64::from(tokens);
        self.sum(site, |layer| {
            let Some(kv) = layer.kv else { return 0.0 };
            let length = f64::from(kv.key_length) + f64::from(kv.value_length);
            let seen =
                layer.window_tokens.map_or(tokens / 2.0, |seen| f64::from(seen).min(tokens / 2.0));
            2.0 * f64::from(layer.heads) * length * tokens * seen
        })
    }

    /// Seconds to copy the weights in RAM to the GPU for a step, or to compute with them, whichever is longer.
    fn offload_term(&self, gpu: &SiteFacts, step: u32) -> Option<(String, f64)> {
        let ComputeSite::Gpu(number) = gpu.site else { return None };
        let link = self.machine.gpus.get(number)?.link.as_ref()?;
        let share = self.used_experts_share(step);
        let in_ram = |group: &&WeightGroup| {
            let is_table = matches!(group.part, Part::TokenEmbedding | Part::LayerEmbedding);
            !is_table && self.layout.site(group) == ComputeSite::Cpu
        };
        let groups = || self.model.shape.weights.0.iter().filter(in_ram);
        let bytes: f64 =
            groups().map(|group| self.model.shape.weights.read_bytes(group, share)).sum();
        let active: f64 = groups().map(|group| self.active(group)).sum();
        let flops = gpu.constants.prefill_flops?;
        // An engine that always reads over the link has counted these operations already.
        let is_counted = self.profile.reads_over_link;
        let computed_s = if is_counted { 0.0 } else { 2.0 * active * f64::from(step) / flops };
        let seconds = (bytes / link.bytes_s).max(computed_s);
        (bytes > 0.0).then(|| (format!("weights over {}", link.name), seconds))
    }
}

/// Operations per second of work that is not timed by quant.
fn flops(known: &SiteFacts) -> Option<f64> {
    known.constants.prefill_flops.filter(|flops| *flops > 0.0)
}

fn add(terms: &mut Vec<(String, f64)>, name: String, us: f64) {
    match terms.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum += us,
        None => terms.push((name, us)),
    }
}
