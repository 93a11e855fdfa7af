//! Memory that a layout needs in each pool, term by term, with the formula of each.
//! [`crate::footprint`] computes each site's part of the model for llama.cpp; this file adds what other engines and the
//! drivers of cards need.

use super::Model;
use super::engines::{EngineProfile, Scratch};
use super::layout::{ComputeSite, Layout, Pool, pool_of};
use crate::footprint::{
    ContextPlan, Footprint, OVERHEAD, PROCESS_BYTES, Unsuitable, overhead_bytes,
};
use crate::machine::{Basis, Cpu, Gpu, GpuApi, GpuMemory, Machine};
use crate::shape::ModelShape;
use crate::weights::{Part, Repack};

const F16_BYTES: u64 = 2;
const F32_BYTES: u64 = 4;
/// Host memory that CUDA and its libraries take in the process that uses a card: 396 MB of a chat worker on an H100 (driver 580).
const CUDA_PROCESS_BYTES: u64 = 420_000_000;
/// Memory that the driver takes on a card for data centres: 592 MiB on an H100, at each of six context lengths. It is more
/// than on other cards, because each of the card's processors needs some.
const CUDA_LARGE_BYTES: u64 = 620 << 20;
/// Cards with at least this much memory count as cards for data centres.
const CUDA_LARGE_CARD_BYTES: u64 = 39 << 30;
/// Rows that a feed-forward step holds: gate, up, and their product.
const FEED_FORWARD_ROWS: u64 = 3;

/// One part of the memory that a plan needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTerm {
    pub name: &'static str,
    pub site: ComputeSite,
    pub pool: Pool,
    pub bytes: u64,
    pub formula: &'static str,
    pub basis: Basis,
}

/// All terms of a layout that are not zero.
///
/// # Errors
/// The engine does not accept these KV types for this model.
pub fn terms(
    model: &Model,
    machine: &Machine,
    layout: &Layout,
    plan: &ContextPlan,
    profile: &EngineProfile,
) -> Result<Vec<MemoryTerm>, Unsuitable> {
    let mut terms = Vec::new();
    let mut sites = layout.sites();
    if !sites.contains(&ComputeSite::Cpu) {
        sites.push(ComputeSite::Cpu);
    }
    for site in sites {
        let part = layout.shape_at_site(&model.shape, site);
        let footprint = Footprint::estimate(&part, plan, repack(site, layout, &machine.cpu))?;
        let mut footprint = adjusted_to_engine(footprint, &part, plan, profile);
        footprint.overhead_bytes = match site {
            // The vocabulary stays in the process, wherever the scores are computed.
            ComputeSite::Cpu => {
                overhead_bytes(model.shape.vocab_size, plan.sequences)
                    + driver_process_bytes(machine, &layout.sites(), profile)
            }
            ComputeSite::Gpu(number) => gpu_overhead_bytes(&machine.gpus[number], profile),
        };
        let pool = pool_of(machine, site);
        let named = footprint.terms().into_iter().zip(FORMULAS);
        terms.extend(named.filter(|((_, bytes), _)| *bytes > 0).map(
            |((name, bytes), (formula, basis))| {
                // A figure that follows from the model is as certain as the model's dimensions.
                let basis = basis.unwrap_or(model.basis);
                MemoryTerm { name, site, pool, bytes, formula, basis }
            },
        ));
    }
    Ok(terms)
}

/// Formula and basis of each term, in the order of [`Footprint::terms`]. Without a basis, the figure follows from the model.
const FORMULAS: [(&str, Option<Basis>); 6] = [
    ("Σ elements / block × bytes, of every tensor that lies here", None),
    ("a second copy, in the order that this processor's kernels read", None),
    ("Σ layers: kv heads × (key × bytes + value × bytes) × cells", None),
    ("Σ recurrent layers: what each keeps per sequence, in F32", None),
    ("the most that one step has in memory at a time", Some(Basis::Prior)),
    ("the process, its vocabulary, and what the driver takes", Some(Basis::Prior)),
];

/// The footprint of llama.cpp, changed where this engine needs more or less.
fn adjusted_to_engine(
    mut footprint: Footprint,
    part: &ModelShape,
    plan: &ContextPlan,
    profile: &EngineProfile,
) -> Footprint {
    if !profile.loads_tower {
        let tower = part.weights.sum(|group| group.part == Part::Tower);
        footprint.weights_bytes = footprint.weights_bytes.saturating_sub(tower);
    }
    if part.layers.is_empty() && part.vocab_size == 0 {
        // A site without layers only passes on rows of the embedding and the attention mask.
        let step = u64::from(plan.step_tokens);
        let rows = step * u64::from(part.embedding_length);
        footprint.compute_bytes = rows * F32_BYTES + step * u64::from(plan.cells()) * F16_BYTES;
    } else if profile.scratch == Scratch::FeedForwardInF16 {
        let elements = u64::from(profile.step_tokens) * u64::from(part.feed_forward_length);
        footprint.compute_bytes = FEED_FORWARD_ROWS.saturating_mul(elements) * F16_BYTES;
    }
    if profile.copies_cache {
        let staged = staged_bytes(part, plan);
        footprint.compute_bytes = footprint.compute_bytes.saturating_add(staged);
    }
    footprint
}

/// What engine and driver take besides a model that is on this card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverBytes {
    pub on_card: u64,
    /// In the process that uses the card.
    pub in_process: u64,
}

impl DriverBytes {
    pub fn of(gpu: &Gpu, profile: &EngineProfile) -> DriverBytes {
        let in_process = if gpu.api == GpuApi::Cuda { CUDA_PROCESS_BYTES } else { 0 };
        DriverBytes { on_card: gpu_overhead_bytes(gpu, profile), in_process }
    }
}

/// What the driver takes in the process, if one of the sites is a card.
fn driver_process_bytes(machine: &Machine, sites: &[ComputeSite], profile: &EngineProfile) -> u64 {
    let in_process = |site: &ComputeSite| match site {
        ComputeSite::Cpu => 0,
        ComputeSite::Gpu(number) => DriverBytes::of(&machine.gpus[*number], profile).in_process,
    };
    sites.iter().map(in_process).max().unwrap_or(0)
}

/// Two models in one process share its own memory, and what engine and driver take. Returns how many bytes of `term`, a term
/// of the second model, are counted with the first model already.
pub(super) fn shared_bytes(
    machine: &Machine,
    profile: &EngineProfile,
    [first, second]: [&[MemoryTerm]; 2],
    term: &MemoryTerm,
) -> u64 {
    let of_drivers = |terms: &[MemoryTerm]| {
        let sites: Vec<ComputeSite> = terms.iter().map(|term| term.site).collect();
        driver_process_bytes(machine, &sites, profile)
    };
    let is_in_both = |own: &MemoryTerm| own.name == OVERHEAD && own.site == term.site;
    match term.site {
        _ if term.name != OVERHEAD || !first.iter().any(is_in_both) => 0,
        ComputeSite::Cpu => PROCESS_BYTES + of_drivers(first).min(of_drivers(second)),
        ComputeSite::Gpu(_) => term.bytes,
    }
}

/// What engine and driver take on a card besides the model.
fn gpu_overhead_bytes(gpu: &Gpu, profile: &EngineProfile) -> u64 {
    match gpu.memory {
        GpuMemory::Own { total_bytes, .. }
            if gpu.api == GpuApi::Cuda && total_bytes >= CUDA_LARGE_CARD_BYTES =>
        {
            profile.runtime_bytes.max(CUDA_LARGE_BYTES)
        }
        _ => profile.runtime_bytes,
    }
}

/// Bytes of the widest layer's KV cache, unpacked to F16 as a whole; 0 if the cache is not quantized.
fn staged_bytes(part: &ModelShape, plan: &ContextPlan) -> u64 {
    let is_quantized = plan.kv != crate::KvTypes::default();
    let widest = part.layers.iter().filter_map(|layer| layer.kv).map(|kv| kv.elements()).max();
    let row = widest.filter(|_| is_quantized).unwrap_or(0).saturating_mul(F16_BYTES);
    row.saturating_mul(u64::from(plan.context_tokens))
}

/// How the weights of a site are repacked: a CPU that computes keeps a second copy of them.
fn repack(site: ComputeSite, layout: &Layout, cpu: &Cpu) -> Repack {
    let computes = layout.sites().contains(&ComputeSite::Cpu);
    if site == ComputeSite::Cpu && computes { cpu.repack } else { Repack::None }
}
