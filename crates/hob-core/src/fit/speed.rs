//! How fast a layout decodes and reads prompts. One token reads the weights that it passes through and what attention
//! keeps of everything before it; each layer and each token cost something beside that.
//!
//! `t(n) = Σ_sites [(W + 2·S)/(η·B) + A·KV(n)/(η_kv·B) + Σ_layers τ + t0]`, s; W, S and KV in bytes, B in bytes/s.

use std::collections::BTreeSet;

use super::Model;
use super::engines::{EngineProfile, HostReads, Staging};
use super::layout::{Layout, Site};
use super::priors::{constants, spread};
use crate::footprint::KvTypes;
use crate::machine::{Basis, Constants, Kernel, Machine};
use crate::shape::{LayerShape, Recurrence};
use crate::weights::{Part, WeightGroup};

const F16_BYTES: f64 = 2.0;
/// A score's exponential, and a call. Behind 440 to 2,012 tokens SmolLM2-135M (9 heads of 64) and Gemma-3-270M (4 of 256)
/// took 60 and 146 ns of a core for a head and position: 0.23 ns for each element, with so many more.
const VISIT_ELEMENTS: f64 = 128.0;
/// Numbers in a row of what kernels are timed with.
const TIMED_WIDTH: u64 = 4096;
/// What a core takes for a row beside its numbers: a call, and the sum of what the vector units hold. Gemma-3-270M has 387,000
/// rows of 640 to 2,048, and took 4 ms on two cores more than its bytes do in rows of [`TIMED_WIDTH`], which is 20 ns for each;
/// SmolLM2-135M, in rows of 576 and 1,536, has no more than 15 left.
const ROW_S: f64 = 15e-9;
/// Kernels that want weights in an order of their own take so many rows at once.
const ROWS_TOGETHER: f64 = 8.0;
/// Handing a token's vector from one to another and waiting for it, µs.
const CROSSING_US: f64 = 30.0;
/// Share of a link that reading over it row by row reaches, against moving large pieces.
const LINK_READ_REACH: f64 = 0.5;

/// A speed and how sure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// Of what it was asked of.
    pub context_tokens: u32,
    /// Of one stream, tokens a second.
    pub tok_s: f64,
    pub low: f64,
    pub high: f64,
    pub basis: Basis,
    /// What the time goes to, µs: of one token in decoding, of all in prefill.
    pub terms: Vec<(String, f64)>,
}

/// What is computed, by whom, and with which cache.
#[derive(Clone, Copy, Debug)]
pub struct SpeedEstimate<'a> {
    pub model: &'a Model,
    pub machine: &'a Machine,
    pub layout: &'a Layout,
    pub kv: KvTypes,
    pub profile: &'a EngineProfile,
}

/// A site with what is known of it.
pub(super) struct SiteFacts {
    pub(super) site: Site,
    /// Of the memory that it reads, bytes/s.
    pub(super) bandwidth: f64,
    pub(super) constants: Constants,
    pub(super) basis: Basis,
    /// How far below and above it may be, shares.
    spread: (f64, f64),
}

/// How much a speed is worth that several devices have a part in: as much as the least sure of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certainty {
    basis: Basis,
    steadiness: f64,
    spread: (f64, f64),
}

impl Certainty {
    pub(super) fn of(basis: Basis) -> Certainty {
        Certainty { basis, steadiness: 1.0, spread: (0.0, 0.0) }
    }

    pub(super) fn meet(&mut self, known: &SiteFacts) {
        self.basis = self.basis.max(known.basis);
        self.steadiness = self.steadiness.min(known.constants.steadiness);
        let ((below, above), (known_below, known_above)) = (self.spread, known.spread);
        self.spread = (below.max(known_below), above.max(known_above));
    }
}

impl SpeedEstimate<'_> {
    /// Behind `context_tokens`; none where nobody knows how fast memory is.
    pub fn decode(&self, context_tokens: u32) -> Option<Rate> {
        let mut terms = Vec::new();
        let mut certainty = Certainty::of(Basis::Measured);
        for known in self.known()? {
            certainty.meet(&known);
            let SiteFacts { site, bandwidth, constants, .. } = &known;
            let weights_s = self.weights_s(&known);
            let state_s = self.state_bytes(*site) / (bandwidth * constants.bandwidth_efficiency);
            let read_s = self.sum(*site, |layer| self.kv_read_bytes(layer, context_tokens))
                / (bandwidth
                    * constants.bandwidth_efficiency.max(constants.kv_bandwidth_efficiency));
            let kv_s = self.kv_bytes(*site, context_tokens)
                / (bandwidth * constants.kv_bandwidth_efficiency);
            let kv_s = kv_s.max(read_s);
            let layers_us = self.sum(*site, |layer| layer_us(layer, constants))
                + self.expert_layers(*site) * constants.experts_us
                + self.unfused_us(*site);
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

    /// None where of one of them too little is known.
    pub(super) fn known(&self) -> Option<Vec<SiteFacts>> {
        let known = |site: Site| {
            let device = match site {
                Site::Cpu => &self.machine.cpu.device,
                Site::Gpu(number) => &self.machine.gpus.get(number)?.device,
            };
            let fact = device.bandwidth.as_ref().filter(|fact| fact.value > 0.0)?;
            let constants = constants(self.machine, site);
            let basis = constants.basis.max(fact.basis);
            // A data sheet's bandwidth is no less sure than what was fitted with it.
            let sure = if constants.basis == Basis::Published { Basis::Published } else { basis };
            let spread = spread(self.machine, site, sure);
            Some(SiteFacts { site, bandwidth: fact.value, constants, basis: sure, spread })
        };
        self.layout.sites().into_iter().map(known).collect()
    }

    /// Of the layers that a site has.
    pub(super) fn sum(&self, site: Site, of: impl Fn(&LayerShape) -> f64) -> f64 {
        let layers = self.model.shape.layers.iter().zip(&self.layout.homes);
        layers.filter(|(_, home)| **home == site).map(|(layer, _)| of(layer)).sum()
    }

    /// How many layers' experts a site computes with.
    pub(super) fn expert_layers(&self, site: Site) -> f64 {
        let groups = self.model.shape.weights.0.iter();
        let experts = groups.filter(|g| g.part == Part::Experts && self.reader(g) == site);
        let layers: BTreeSet<Option<u32>> = experts.map(|group| group.layer).collect();
        layers.len() as f64
    }

    /// What the engine takes for recurrent layers in addition to what the device takes, µs.
    pub(super) fn unfused_us(&self, site: Site) -> f64 {
        match site {
            Site::Cpu => 0.0,
            Site::Gpu(_) => self.profile.recurrent_us * self.recurrent_layers(site),
        }
    }

    /// Layers that carry a matrix on, which cost more than others.
    pub(super) fn recurrent_layers(&self, site: Site) -> f64 {
        self.sum(site, |layer| f64::from(u8::from(is_costly(layer))))
    }

    /// For one token.
    pub(super) fn weights_s(&self, known: &SiteFacts) -> f64 {
        let share = self.model.shape.experts_share();
        let groups = self.model.shape.weights.0.iter();
        let seconds = |group: &WeightGroup| {
            let bytes = self.model.shape.weights.read_bytes(group, share);
            let read_s = bytes / (known.bandwidth * known.constants.bandwidth_efficiency);
            let kernel_s = self.kernel_rate(known, group).map_or(0.0, |rate| {
                let read_share = self.model.shape.weights.read_share(group, share);
                bytes / rate + self.narrow_s(group) * read_share
            });
            let over_link_s = self.over_link(group).map_or(0.0, |link| bytes / link);
            read_s.max(kernel_s).max(over_link_s)
        };
        groups.filter(|group| self.reader(group) == known.site).map(seconds).sum()
    }

    /// Of a site's weights and states, for one token.
    pub(super) fn read_bytes(&self, site: Site) -> f64 {
        let share = self.model.shape.experts_share();
        let groups = self.model.shape.weights.0.iter().filter(|g| self.reader(g) == site);
        let read = groups.map(|group| self.model.shape.weights.read_bytes(group, share));
        read.sum::<f64>() + self.state_bytes(site)
    }

    /// Read and written.
    pub(super) fn state_bytes(&self, site: Site) -> f64 {
        2.0 * self.sum(site, |layer| layer.state_bytes as f64)
    }

    /// What attention reads for one token; of a processor, what its cores work through.
    pub(super) fn kv_bytes(&self, site: Site, context_tokens: u32) -> f64 {
        self.sum(site, |layer| match site {
            Site::Cpu => kv_worked_bytes(layer, context_tokens),
            Site::Gpu(_) => self.kv_read_bytes(layer, context_tokens),
        })
    }

    /// Who multiplies with it. An embedding that is the output too is multiplied where the output is.
    pub(super) fn reader(&self, group: &WeightGroup) -> Site {
        let home = match group.part {
            Part::TokenEmbedding => self.layout.output,
            _ => self.layout.site(group),
        };
        match (home, self.profile.host_reads) {
            (Site::Cpu, HostReads::OverLink) => self.layout.output,
            _ => home,
        }
    }

    /// Bytes/s, of weights that lie elsewhere than they are computed with.
    fn over_link(&self, group: &WeightGroup) -> Option<f64> {
        let lies_in_ram =
            group.part != Part::TokenEmbedding && self.layout.site(group) == Site::Cpu;
        let (true, Site::Gpu(number)) = (lies_in_ram, self.reader(group)) else { return None };
        let link = self.machine.gpus.get(number)?.link.as_ref()?;
        Some(link.bytes_s * LINK_READ_REACH)
    }

    /// What the cores' kernels can take of this type, bytes/s.
    fn kernel_rate(&self, known: &SiteFacts, group: &WeightGroup) -> Option<f64> {
        Some(self.kernel(known, group)?.bytes_s * f64::from(self.machine.cpu.cores.max(1)))
    }

    /// What a core reaches with this type, where that was timed.
    pub(super) fn kernel<'k>(
        &self,
        known: &'k SiteFacts,
        group: &WeightGroup,
    ) -> Option<&'k Kernel> {
        let mut kernels = known.constants.kernels.iter().filter(|_| known.site == Site::Cpu);
        kernels.find(|kernel| kernel.quant == group.quant.0)
    }

    /// What cores take for rows beside what these take that kernels were timed with, for each vector.
    pub(super) fn narrow_s(&self, group: &WeightGroup) -> f64 {
        let cpu = &self.machine.cpu;
        let more = group.rows.saturating_sub(group.elements / TIMED_WIDTH) as f64;
        let at_once = if cpu.repack.takes(group.quant) { ROWS_TOGETHER } else { 1.0 };
        more / at_once * ROW_S / f64::from(cpu.cores.max(1))
    }

    /// What attention reads of one layer for one token, with what is unpacked on the way.
    fn kv_read_bytes(&self, layer: &LayerShape, context_tokens: u32) -> f64 {
        let Some(kv) = layer.kv else { return 0.0 };
        let stored = self.kv.bytes(kv) as f64;
        let is_staged = self.profile.staging == Staging::InF16 && self.kv != KvTypes::default();
        // Written once and read once in 16 bits, beside what is read as it is stored.
        let copied = if is_staged { 2.0 * kv.elements() as f64 * F16_BYTES } else { 0.0 };
        (stored + copied) * seen_tokens(layer, context_tokens)
    }
}

/// Cores compute, and do not wait for memory: each head goes through the keys and values of its group by itself, whatever
/// type they have, and takes as long for a position as for [`VISIT_ELEMENTS`] beside.
fn kv_worked_bytes(layer: &LayerShape, context_tokens: u32) -> f64 {
    let Some(kv) = layer.kv else { return 0.0 };
    // Latent attention keeps no values apart: they are in its keys.
    let values = if kv.value_length == 0 { kv.key_length } else { kv.value_length };
    let elements = f64::from(kv.key_length) + f64::from(values) + VISIT_ELEMENTS;
    f64::from(layer.heads) * elements * F16_BYTES * seen_tokens(layer, context_tokens)
}

fn seen_tokens(layer: &LayerShape, context_tokens: u32) -> f64 {
    f64::from(layer.window_tokens.map_or(context_tokens, |seen| seen.min(context_tokens)))
}

fn layer_us(layer: &LayerShape, constants: &Constants) -> f64 {
    constants.layer_us + if is_costly(layer) { constants.recurrent_us } else { 0.0 }
}

fn is_costly(layer: &LayerShape) -> bool {
    layer.recurrence == Some(Recurrence::Matrix)
}

/// None of what takes no time at all.
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
