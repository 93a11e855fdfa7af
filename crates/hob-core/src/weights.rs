//! What a model's weights are made of: how many bytes each part has, how they are stored, and who needs them when.
//! Whoever reads headers fills it; what of it a machine reads for one token is told here.

/// Weights that are alike: of one layer, with one task, stored in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightGroup {
    /// None: of no layer.
    pub layer: Option<u32>,
    pub part: Part,
    pub quant: Quant,
    pub elements: u64,
    pub bytes: u64,
    /// Of these, such as lie in rows that kernels can take eight at a time.
    pub in_eights_bytes: u64,
    /// Each is multiplied with a vector as a whole; 0 where nobody knows.
    pub rows: u64,
}

/// What weights do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Looked up; where there is no [`Part::Output`], multiplied too.
    TokenEmbedding,
    /// Tables of single layers, of which a token needs one row.
    LayerEmbedding,
    /// Makes scores of words.
    Output,
    /// Of a layer: every token passes through it.
    Dense,
    /// Of a layer: a token passes through some of them.
    Experts,
    /// Eyes and ears: in memory, and not asked for a word.
    Tower,
    /// Predicts further words: in memory, and not asked for the next one.
    Predictor,
}

/// How numbers are stored, as formats name it: `Q4_K`, `F16`, `AWQ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quant(pub &'static str);

/// Which kernels a processor has, as far as they want weights in an order of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repack {
    /// Of no type: a graphics card, or a processor without vector units.
    #[default]
    None,
    Avx2,
    Avx512,
    Neon,
}

impl Repack {
    /// Types of llama.cpp b11434.
    pub fn takes(self, quant: Quant) -> bool {
        match self {
            Repack::None => false,
            Repack::Avx2 => matches!(quant.0, "Q4_0" | "Q4_K" | "IQ4_NL" | "MXFP4"),
            Repack::Avx512 => quant.0 == "Q2_K" || Repack::Avx2.takes(quant),
            Repack::Neon => {
                matches!(quant.0, "Q5_K" | "Q6_K" | "Q8_0") || Repack::Avx512.takes(quant)
            }
        }
    }
}

/// All weights of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights(pub Vec<WeightGroup>);

impl Weights {
    /// Of which no more is known than how many there are.
    pub fn of_bytes(bytes: u64) -> Weights {
        let (part, quant) = (Part::Dense, Quant("unknown"));
        let group = WeightGroup {
            layer: None,
            part,
            quant,
            elements: 0,
            bytes,
            in_eights_bytes: 0,
            rows: 0,
        };
        Weights(vec![group])
    }

    pub fn bytes(&self) -> u64 {
        self.sum(|_| true)
    }

    pub fn sum(&self, which: impl Fn(&WeightGroup) -> bool) -> u64 {
        let bytes = self.0.iter().filter(|group| which(group)).map(|group| group.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Of those that a processor keeps a second time, in the order that its kernels like. What is looked up stays as
    /// it is.
    pub fn repacked_bytes(&self, repack: Repack) -> u64 {
        let is_table = |part| matches!(part, Part::TokenEmbedding | Part::LayerEmbedding);
        let repacked = self.0.iter().filter(|g| repack.takes(g.quant) && !is_table(g.part));
        repacked.fold(0, |sum, group| sum.saturating_add(group.in_eights_bytes))
    }

    /// The embedding makes the scores too.
    pub fn is_tied(&self) -> bool {
        !self.0.iter().any(|group| group.part == Part::Output)
    }

    /// How many of a group's bytes are read to decode one token; `experts_share` is how much of the experts it
    /// passes through.
    pub fn read_bytes(&self, group: &WeightGroup, experts_share: f64) -> f64 {
        group.bytes as f64 * self.read_share(group, experts_share)
    }

    /// The same as a share, from 0 to 1.
    pub fn read_share(&self, group: &WeightGroup, experts_share: f64) -> f64 {
        match group.part {
            Part::TokenEmbedding if self.is_tied() => 1.0,
            Part::TokenEmbedding | Part::LayerEmbedding | Part::Tower | Part::Predictor => 0.0,
            Part::Output | Part::Dense => 1.0,
            Part::Experts => experts_share,
        }
    }
}
