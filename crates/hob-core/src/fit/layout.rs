//! Which device holds which layer. An operation runs where its weights are stored,
//! so the layout decides both memory and time.

use std::fmt;

use crate::machine::{GpuMemory, Machine};
use crate::shape::ModelShape;
use crate::weights::{Part, WeightGroup, Weights};

/// A device that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComputeSite {
    Cpu,
    /// Index into [`Machine::gpus`].
    Gpu(usize),
}

/// A memory pool. Several sites may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    Ram,
    Vram(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Compute site of each layer, first to last.
    pub homes: Vec<ComputeSite>,
    pub output: ComputeSite,
    /// Number of layers, from the first, whose experts stay in system memory.
    pub experts_in_ram: u32,
}

/// Kind of layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    Vram,
    Unified,
    Ram,
    /// The experts of this many layers stay in system memory; everything else is on the card.
    ExpertsOffloaded {
        layers: u32,
    },
    /// This many layers are on cards.
    Split {
        gpu_layers: u32,
    },
}

impl Layout {
    pub fn whole(shape: &ModelShape, site: ComputeSite) -> Layout {
        Layout { homes: vec![site; shape.layers.len()], output: site, experts_in_ram: 0 }
    }

    /// Puts the last `gpu_layers` layers on a card. The output is offloaded first.
    pub fn split(shape: &ModelShape, gpu: usize, gpu_layers: u32) -> Layout {
        let layers = shape.layers.len();
        let on_cpu = layers.saturating_sub(gpu_layers as usize);
        let home = |index| if index < on_cpu { ComputeSite::Cpu } else { ComputeSite::Gpu(gpu) };
        Layout {
            homes: (0..layers).map(home).collect(),
            output: if gpu_layers == 0 { ComputeSite::Cpu } else { ComputeSite::Gpu(gpu) },
            experts_in_ram: 0,
        }
    }

    /// The layout of an engine's `gpu_layers`, where the output is one more layer and goes to the card first.
    pub fn offloaded(shape: &ModelShape, gpu: usize, gpu_layers: u32) -> Layout {
        let output = if gpu_layers == 0 { ComputeSite::Cpu } else { ComputeSite::Gpu(gpu) };
        Layout { output, ..Layout::split(shape, gpu, gpu_layers.saturating_sub(1)) }
    }

    /// The layout of an engine's `gpu_layers` over several cards, in proportion to free memory. As in llama.cpp, the output is
    /// the last of these layers. It is on the last card, unless that card's share is less than a layer.
    pub fn spread(shape: &ModelShape, cards: &[(usize, u64)], gpu_layers: u32) -> Layout {
        let Some((last, _)) = cards.last() else { return Layout::whole(shape, ComputeSite::Cpu) };
        let mut layout = Layout::offloaded(shape, *last, gpu_layers);
        let count = layout.gpu_layers() as usize;
        let all: f64 = cards.iter().map(|(_, free)| *free as f64).sum();
        let card_at = |place: usize| {
            let mut until = 0.0;
            let mut cards = cards.iter();
            let card = cards.find(|(_, free)| {
                until += *free as f64;
                until * count as f64 > place as f64 * all
            });
            card.map_or(*last, |(number, _)| *number)
        };
        let on_cpu = layout.homes.len() + 1 - count;
        let offloaded = layout.homes.iter_mut().chain([&mut layout.output]).skip(on_cpu);
        for (place, home) in offloaded.enumerate() {
            *home = ComputeSite::Gpu(card_at(place));
        }
        layout
    }

    /// Whether all layers and the output are on cards. Their experts may be elsewhere.
    pub(super) fn is_on_cards(&self) -> bool {
        self.homes.iter().chain([&self.output]).all(|home| *home != ComputeSite::Cpu)
    }

    /// The cards that compute, by number.
    pub fn cards(&self) -> Vec<usize> {
        let card = |site| match site {
            ComputeSite::Cpu => None,
            ComputeSite::Gpu(number) => Some(number),
        };
        self.sites().into_iter().filter_map(card).collect()
    }

    /// Number of offloaded layers, as [`Layout::offloaded`] counts them.
    pub fn gpu_layers(&self) -> u32 {
        let is_on_card = |site: &&ComputeSite| matches!(site, ComputeSite::Gpu(_));
        let count = self.homes.iter().chain([&self.output]).filter(is_on_card).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The site where a group of weights is stored.
    pub fn site(&self, group: &WeightGroup) -> ComputeSite {
        let home = |layer: Option<u32>| {
            let home = layer.and_then(|layer| self.homes.get(layer as usize));
            home.copied().unwrap_or(self.output)
        };
        match group.part {
            Part::TokenEmbedding | Part::LayerEmbedding => ComputeSite::Cpu,
            Part::Output | Part::Tower | Part::Predictor => self.output,
            Part::Dense => home(group.layer),
            Part::Experts if group.layer.is_some_and(|layer| layer < self.experts_in_ram) => {
                ComputeSite::Cpu
            }
            Part::Experts => home(group.layer),
        }
    }

    /// Every site that has a layer or the output.
    pub fn sites(&self) -> Vec<ComputeSite> {
        let mut sites: Vec<ComputeSite> = self.homes.iter().copied().chain([self.output]).collect();
        if self.experts_in_ram > 0 {
            sites.push(ComputeSite::Cpu);
        }
        sites.sort_unstable();
        sites.dedup();
        sites
    }

    /// The part of the model at one site: its layers, its weights, and the vocabulary if it computes the scores.
    pub fn shape_at_site(&self, shape: &ModelShape, site: ComputeSite) -> ModelShape {
        let homes = shape.layers.iter().zip(&self.homes);
        let weights = shape.weights.0.iter().filter(|group| self.site(group) == site).copied();
        ModelShape {
            layers: homes.filter(|(_, home)| **home == site).map(|(layer, _)| *layer).collect(),
            weights: Weights(weights.chain(self.second_embedding(shape, site)).collect()),
            vocab_size: if self.output == site { shape.vocab_size } else { 0 },
            ..shape.clone()
        }
    }

    /// An embedding that also computes the scores is stored twice: in system memory for the lookup, and on the card.
    fn second_embedding(&self, shape: &ModelShape, site: ComputeSite) -> Option<WeightGroup> {
        let is_second = site != ComputeSite::Cpu && site == self.output && shape.weights.is_tied();
        let mut groups = shape.weights.0.iter();
        let embedding = groups.find(|group| group.part == Part::TokenEmbedding);
        embedding.filter(|_| is_second).map(|group| WeightGroup { part: Part::Output, ..*group })
    }

    /// How often the work moves between sites for one token.
    pub fn crossings(&self) -> u32 {
        let changes = self.homes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        u32::try_from(changes).unwrap_or(u32::MAX).saturating_add(2 * self.experts_in_ram)
    }

    pub fn placement(&self, machine: &Machine) -> Placement {
        let on_gpu = |site: &&ComputeSite| matches!(site, ComputeSite::Gpu(_));
        let gpu_layers = self.homes.iter().filter(on_gpu).count();
        match self.sites().first() {
            _ if self.experts_in_ram > 0 => {
                Placement::ExpertsOffloaded { layers: self.experts_in_ram }
            }
            Some(ComputeSite::Cpu) if gpu_layers == 0 => Placement::Ram,
            Some(ComputeSite::Cpu) => {
                Placement::Split { gpu_layers: u32::try_from(gpu_layers).unwrap_or(u32::MAX) }
            }
            Some(site) if pool_of(machine, *site) == Pool::Ram => Placement::Unified,
            _ => Placement::Vram,
        }
    }
}

/// See [`super::Plan::place`].
pub(super) fn place_text(layout: &Layout, machine: &Machine) -> String {
    let placement = layout.placement(machine);
    let cards = layout.cards().into_iter().map(|card| ComputeSite::Gpu(card).to_string());
    let cards: Vec<String> = cards.collect();
    if machine.gpus.len() < 2 || cards.is_empty() {
        return placement.to_string();
    }
    let cards = cards.join(" and ");
    match placement {
        Placement::Vram | Placement::Unified | Placement::Ram => format!("{placement} of {cards}"),
        Placement::ExpertsOffloaded { .. } => format!("{placement}, the rest on {cards}"),
        Placement::Split { gpu_layers } => format!("split, {gpu_layers} layers on {cards}"),
    }
}

/// The memory pool of a site.
pub fn pool_of(machine: &Machine, site: ComputeSite) -> Pool {
    match site {
        ComputeSite::Cpu => Pool::Ram,
        ComputeSite::Gpu(number) => match machine.gpus.get(number).map(|gpu| gpu.memory) {
            Some(GpuMemory::Unified { .. }) | None => Pool::Ram,
            Some(GpuMemory::Own { .. }) => Pool::Vram(number),
        },
    }
}

impl fmt::Display for ComputeSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComputeSite::Cpu => f.write_str("CPU"),
            ComputeSite::Gpu(number) => write!(f, "GPU {number}"),
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pool::Ram => f.write_str("RAM"),
            Pool::Vram(number) => write!(f, "GPU {number}"),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Vram => f.write_str("VRAM"),
            Placement::Unified => f.write_str("unified memory"),
            Placement::Ram => f.write_str("RAM"),
            Placement::ExpertsOffloaded { layers } => {
                write!(f, "experts of {layers} layers in RAM")
            }
            Placement::Split { gpu_layers } => {
                write!(f, "split, {gpu_layers} layers on the card")
            }
        }
    }
}
