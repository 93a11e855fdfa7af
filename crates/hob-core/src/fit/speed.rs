//! Speed of decoding: each token reads the active weights and the cache of earlier tokens. Layers and tokens add
//! fixed times.
//!
//! `t(n) = Σ_sites [(W + 2·S)/(η·B) + A·KV(n)/(η_kv·B) + Σ_layers τ + t0]` in seconds, for the token after n others. On each
//! site, W are the bytes of weights that a token reads, S those of the recurrent state, KV(n) those of the cache, and B is
//! the bandwidth in bytes/s. `η` and `η_kv` are the shares of B that are reached, A is above 1 where a cache is unpacked first,
//! τ is the fixed time of a layer, and t0 that of a token.

use std::collections::BTreeSet;

use super::Model;
use super::engines::EngineProfile;
use super::layout::{ComputeSite, Layout};
use super::priors::{constants, spread};
use crate::footprint::KvTypes;
use crate::machine::{Basis, Constants, Kernel, Machine};
use crate::shape::{LayerShape, Recurrence};
use crate::weights::{Part, WeightGroup};

const F16_BYTES: f64 = 2.0;
/// Cost of one score besides its elements: an exponential and a call. After 440 to 2,012 tokens, SmolLM2-135M (9 heads of
/// 64) and Gemma-3-270M (4 of 256) took 60 and 146 ns per head and position: 0.23 ns per element, with this many more.
const VISIT_ELEMENTS: f64 = 128.0;
/// Row length of the matrices that kernels are timed with.
const TIMED_WIDTH: u64 = 4096;
/// Time of a core for one row besides its elements: a call, and the sum over the vector registers. Gemma-3-270M has
/// 387,000 rows of 640 to 2,048 and took 4 ms longer on two cores than its bytes take in rows of [`TIMED_WIDTH`]: 20 ns per
/// row. SmolLM2-135M, with rows of 576 and 1,536, leaves at most 15 ns.
const ROW_S: f64 = 15e-9;
/// Rows that kernels with repacked weights compute together.
const ROWS_TOGETHER: f64 = 8.0;
/// Time to pass a token's vector from one site to another, µs.
const CROSSING_US: f64 = 30.0;
/// Efficiency of reading over a link row by row, compared with large copies.
const LINK_READ_EFFICIENCY: f64 = 0.5;

/// A speed with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The context at which it holds.
    pub context_tokens: u32,
    /// Tokens per second of one stream.
    pub tok_s: f64,
    /// The range in which it probably lies, tokens per second.
    pub low: f64,
    pub high: f64,
    pub basis: Basis,
    /// Parts of the time, µs: of one token when decoding, of the whole prompt in prefill.
    pub terms: Vec<(String, f64)>,
}

/// What determines a speed: model, machine, layout, KV types and engine.
#[derive(Clone, Copy, Debug)]
pub struct SpeedEstimate<'a> {
    pub model: &'a Model,
    pub machine: &'a Machine,
    pub layout: &'a Layout,
    pub kv: KvTypes,
    pub profile: &'a EngineProfile,
}

/// A site with its bandwidth and constants.
pub(super) struct SiteFacts {
    pub(super) site: ComputeSite,
    /// Bandwidth of its memory, bytes/s.
    pub(super) bandwidth: f64,
    pub(super) constants: Constants,
    pub(super) basis: Basis,
    /// How far below and above the estimate it may be, as shares.
    spread: (f64, f64),
}

/// Certainty of a speed to which several devices contribute: that of the least certain one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certainty {
    basis: Basis,
    steadiness: f64,
    spread: (f64, f64),
}

impl Certainty {
    pub(super) fn from_basis(basis: Basis) -> Certainty {
        Certainty { basis, steadiness: 1.0, spread: (0.0, 0.0) }
    }

    pub(super) fn combine(&mut self, known: &SiteFacts) {
        self.basis = self.basis.max(known.basis);
        self.steadiness = self.steadiness.min(known.constants.steadiness);
        let ((below, above), (known_below, known_above)) = (self.spread, known.spread);
        self.spread = (below.max(known_below), above.max(known_above));
    }
}

impl SpeedEstimate<'_> {
    /// Speed after `context_tokens`. `None` if the memory bandwidth is unknown.
    pub fn decode(&self, context_tokens: u32) -> Option<Rate> {
        let mut terms = Vec::new();
        let mut certainty = Certainty::from_basis(Basis::Measured);
        for known in self.site_facts()? {
            certainty.combine(&known);
            let SiteFacts { site, bandwidth, constants, .. } = &known;
            let weights_s = self.weights_s(&known);
            let state_s = self.state_bytes(*site) / (bandwidth * constants.bandwidth_efficiency);
            let read_s = self.sum(*site, |layer| self.kv_read_bytes(layer, context_tokens))
                / (bandwidth
                    * constants.bandwidth_efficiency.max(constants.kv_bandwidth_efficiency));
            let worked_s = self.kv_bytes(*site, context_tokens)
                / (bandwidth * constants.kv_bandwidth_efficiency);
            // Attention takes at least as long as reading the cache.
            let kv_s = worked_s.max(read_s);
            let layers_us = self.sum(*site, |layer| layer_us(layer, constants))
                + self.expert_layers(*site) * constants.experts_us
                + self.unfused_recurrent_us(*site);
            terms.push((format!("weights, {site}"), weights_s * 1e6));
            terms.push((format!("state, {site}"), state_s * 1e6));
            terms.push((format!("KV cache, {site}"), kv_s * 1e6));
            terms.push((format!("layers, {site}"), layers_us));
            terms.push((format!("token, {site}"), constants.token_us));
        }
        terms.push(("engine".to_owned(), self.profile.token_us));
        terms.push(("hand-over".to_owned(), f64::from(self.layout.crossings()) * CROSSING_US));
        rate(context_tokens, 1, terms, certainty)
    }

    /// `None` if a site's bandwidth is unknown.
    pub(super) fn site_facts(&self) -> Option<Vec<SiteFacts>> {
        let known = |site: ComputeSite| {
            let device = match site {
                ComputeSite::Cpu => &self.machine.cpu.device,
                ComputeSite::Gpu(number) => &self.machine.gpus.get(number)?.device,
            };
            let fact = device.bandwidth.as_ref().filter(|fact| fact.value > 0.0)?;
            let constants = constants(self.machine, site);
            // Constants that were fitted with a data sheet's bandwidth stay as certain as they are.
            let basis = match constants.basis {
                Basis::Published | Basis::Calibrated => constants.basis,
                other => other.max(fact.basis),
            };
            let spread = spread(self.machine, site, basis);
            Some(SiteFacts { site, bandwidth: fact.value, constants, basis, spread })
        };
        self.layout.sites().into_iter().map(known).collect()
    }

    /// Sums a figure over the layers of a site.
    pub(super) fn sum(&self, site: ComputeSite, of: impl Fn(&LayerShape) -> f64) -> f64 {
        let layers = self.model.shape.layers.iter().zip(&self.layout.homes);
        layers.filter(|(_, home)| **home == site).map(|(layer, _)| of(layer)).sum()
    }

    /// Number of layers whose experts a site computes.
    pub(super) fn expert_layers(&self, site: ComputeSite) -> f64 {
        let groups = self.model.shape.weights.0.iter();
        let experts = groups.filter(|g| g.part == Part::Experts && self.reader(g) == site);
        let layers: BTreeSet<Option<u32>> = experts.map(|group| group.layer).collect();
        layers.len() as f64
    }

    /// Extra time of the engine for the recurrent layers of a card, µs.
    pub(super) fn unfused_recurrent_us(&self, site: ComputeSite) -> f64 {
        match site {
            ComputeSite::Cpu => 0.0,
            ComputeSite::Gpu(_) => self.profile.recurrent_us * self.recurrent_layers(site),
        }
    }

    /// Number of recurrent layers with a matrix state.
    pub(super) fn recurrent_layers(&self, site: ComputeSite) -> f64 {
        self.sum(site, |layer| f64::from(u8::from(has_matrix_state(layer))))
    }

    /// Seconds to read a site's weights for one token.
    pub(super) fn weights_s(&self, known: &SiteFacts) -> f64 {
        let share = self.model.shape.experts_share();
        let groups = self.model.shape.weights.0.iter();
        let seconds = |group: &WeightGroup| {
            let bytes = self.model.shape.weights.read_bytes(group, share);
            let read_s = bytes / (known.bandwidth * known.constants.bandwidth_efficiency);
            let kernel_s = self.kernel_rate(known, group).map_or(0.0, |rate| {
                let read_share = self.model.shape.weights.read_share(group, share);
                bytes / rate + self.short_rows_s(group) * read_share
            });
            let over_link_s = self.over_link(group).map_or(0.0, |link| bytes / link);
            read_s.max(kernel_s).max(over_link_s)
        };
        groups.filter(|group| self.reader(group) == known.site).map(seconds).sum()
    }

    /// Bytes of weights and states that a site reads for one token.
    pub(super) fn read_bytes(&self, site: ComputeSite) -> f64 {
        let share = self.model.shape.experts_share();
        let groups = self.model.shape.weights.0.iter().filter(|g| self.reader(g) == site);
        let read = groups.map(|group| self.model.shape.weights.read_bytes(group, share));
        read.sum::<f64>() + self.state_bytes(site)
    }

    /// State bytes, read and written.
    pub(super) fn state_bytes(&self, site: ComputeSite) -> f64 {
        2.0 * self.sum(site, |layer| layer.state_bytes as f64)
    }

    /// Bytes that attention reads for one token. On a CPU: the bytes that its cores work through.
    pub(super) fn kv_bytes(&self, site: ComputeSite, context_tokens: u32) -> f64 {
        self.sum(site, |layer| match site {
            ComputeSite::Cpu => kv_worked_bytes(layer, context_tokens),
            ComputeSite::Gpu(_) => self.kv_read_bytes(layer, context_tokens),
        })
    }

    /// The site that multiplies with a group. An embedding that also computes the scores belongs to the output.
    pub(super) fn reader(&self, group: &WeightGroup) -> ComputeSite {
        let home = match group.part {
            Part::TokenEmbedding => self.layout.output,
            _ => self.layout.site(group),
        };
        match home {
            ComputeSite::Cpu if self.profile.reads_over_link => self.layout.output,
            _ => home,
        }
    }

    /// Bytes per second for weights that are stored elsewhere than they are computed with.
    fn over_link(&self, group: &WeightGroup) -> Option<f64> {
        let lies_in_ram =
            group.part != Part::TokenEmbedding && self.layout.site(group) == ComputeSite::Cpu;
        let (true, ComputeSite::Gpu(number)) = (lies_in_ram, self.reader(group)) else {
            return None;
        };
        let link = self.machine.gpus.get(number)?.link.as_ref()?;
        Some(link.bytes_s * LINK_READ_EFFICIENCY)
    }

    /// Rate at which the CPU's kernels process this quant, bytes/s.
    fn kernel_rate(&self, known: &SiteFacts, group: &WeightGroup) -> Option<f64> {
        Some(self.kernel(known, group)?.bytes_s * f64::from(self.machine.cpu.cores.max(1)))
    }

    /// Timing of one core with this quant, if there is one.
    pub(super) fn kernel<'k>(
        &self,
        known: &'k SiteFacts,
        group: &WeightGroup,
    ) -> Option<&'k Kernel> {
        let mut kernels = known.constants.kernels.iter().filter(|_| known.site == ComputeSite::Cpu);
        kernels.find(|kernel| kernel.quant == group.quant.0)
    }

    /// Extra seconds for rows shorter than those that kernels were timed with, per vector.
    pub(super) fn short_rows_s(&self, group: &WeightGroup) -> f64 {
        let cpu = &self.machine.cpu;
        let more = group.rows.saturating_sub(group.elements / TIMED_WIDTH) as f64;
        let together = if cpu.repack.takes(group.quant) { ROWS_TOGETHER } else { 1.0 };
        more / together * ROW_S / f64::from(cpu.cores.max(1))
    }

    /// Bytes that attention reads of one layer for one token, with unpacked copies.
    fn kv_read_bytes(&self, layer: &LayerShape, context_tokens: u32) -> f64 {
        let Some(kv) = layer.kv else { return 0.0 };
        let stored = self.kv.bytes(kv) as f64;
        let is_staged = self.profile.copies_cache && self.kv != KvTypes::default();
        // Written and read once in 16 bits, in addition to the stored form.
        let copied = if is_staged { 2.0 * kv.elements() as f64 * F16_BYTES } else { 0.0 };
        (stored + copied) * seen_tokens(layer, context_tokens)
    }
}

/// CPU cores are bound by computing, not by memory. Each head reads the keys and values of its group alone, whatever
/// their type, and needs [`VISIT_ELEMENTS`] more per position.
fn kv_worked_bytes(layer: &LayerShape, context_tokens: u32) -> f64 {
    let Some(kv) = layer.kv else { return 0.0 };
    // Latent attention stores no values: they are part of its keys.
    let values = if kv.value_length == 0 { kv.key_length } else { kv.value_length };
    let elements = f64::from(kv.key_length) + f64::from(values) + VISIT_ELEMENTS;
    f64::from(layer.heads) * elements * F16_BYTES * seen_tokens(layer, context_tokens)
}

fn seen_tokens(layer: &LayerShape, context_tokens: u32) -> f64 {
    f64::from(layer.window_tokens.map_or(context_tokens, |seen| seen.min(context_tokens)))
}

fn layer_us(layer: &LayerShape, constants: &Constants) -> f64 {
    constants.layer_us + if has_matrix_state(layer) { constants.recurrent_us } else { 0.0 }
}

fn has_matrix_state(layer: &LayerShape) -> bool {
    layer.recurrence == Some(Recurrence::Matrix)
}

/// `None` if the terms sum to no time.
pub(super) fn rate(
    context_tokens: u32,
    tokens: u32,
    mut terms: Vec<(String, f64)>,
    certainty: Certainty,
) -> Option<Rate> {
    terms.retain(|(_, us)| *us > 0.0);
    let us: f64 = terms.iter().map(|(_, us)| us).sum();
    let tok_s = f64::from(tokens) * 1e6 / us;
    let Certainty { basis, steadiness, spread: (below, above) } = certainty;
    tok_s.is_finite().then_some(Rate {
        context_tokens,
        tok_s,
        low: tok_s * (1.0 - below) * steadiness,
        high: tok_s * (1.0 + above),
        basis,
        terms,
    })
}
