//! The weights of a model: how many bytes each part has, how it is stored, and when it is read.
//! Header readers fill this in.

/// Weights of one layer with one purpose and one quant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightGroup {
    /// `None` if they belong to no layer.
    pub layer: Option<u32>,
    pub part: Part,
    pub quant: Quant,
    pub elements: u64,
    pub bytes: u64,
    /// Bytes in rows that kernels can take eight at a time.
    pub in_eights_bytes: u64,
    /// Rows, each multiplied with a whole vector; 0 if unknown.
    pub rows: u64,
}

impl WeightGroup {
    pub fn empty(layer: Option<u32>, part: Part, quant: Quant) -> WeightGroup {
        WeightGroup { layer, part, quant, elements: 0, bytes: 0, in_eights_bytes: 0, rows: 0 }
    }
}

/// The purpose of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Looked up by token. Also multiplied if there is no [`Part::Output`].
    TokenEmbedding,
    /// Tables of single layers, of which a token needs one row.
    LayerEmbedding,
    /// Computes the scores of all tokens.
    Output,
    /// Used by every token in its layer.
    Dense,
    /// Used by some tokens in its layer.
    Experts,
    /// Vision or audio encoder: in memory, and not read to decode.
    Tower,
    /// Predicts further tokens: in memory, and not read to decode.
    Predictor,
}

/// Name of the number format: `Q4_K`, `F16`, `AWQ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quant(pub &'static str);

/// Which repacking kernels a CPU has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repack {
    /// None: a graphics card, or a CPU without vector units.
    #[default]
    None,
    Avx2,
    Avx512,
    Neon,
}

impl Repack {
    /// Whether these kernels use a repacked copy of weights in this quant, as in llama.cpp b11434.
    pub fn takes(self, quant: Quant) -> bool {
        match self {
            Repack::None => false,
            Repack::Avx2 => matches!(quant.0, "Q4_0" | "Q4_K" | "IQ4_NL" | "MXFP4"),
            Repack::Avx512 => quant.0 == "Q2_K" || Repack::Avx2.takes(quant),
            Repack::Neon => {
                matches!(quant.0, "Q1_0" | "Q5_K" | "Q6_K" | "Q8_0") || Repack::Avx2.takes(quant)
            }
        }
    }
}

/// All weights of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights(pub Vec<WeightGroup>);

impl Weights {
    /// Weights of which only the size is known.
    pub fn of_bytes(bytes: u64) -> Weights {
        let (part, quant) = (Part::Dense, Quant("unknown"));
        Weights(vec![WeightGroup { bytes, ..WeightGroup::empty(None, part, quant) }])
    }

    pub fn bytes(&self) -> u64 {
        self.sum(|_| true)
    }

    pub fn sum(&self, which: impl Fn(&WeightGroup) -> bool) -> u64 {
        let bytes = self.0.iter().filter(|group| which(group)).map(|group| group.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Bits per weight of the text model. A vision tower has 16 bits in every quant, so it does not count.
    /// `None`: not known.
    pub fn text_bits(&self) -> Option<f64> {
        let of_text = self.0.iter().filter(|group| group.part != Part::Tower);
        let elements = of_text.fold(0_u64, |sum, group| sum.saturating_add(group.elements));
        let bytes = self.sum(|group| group.part != Part::Tower);
        (elements > 0).then(|| 8.0 * bytes as f64 / elements as f64)
    }

    /// Bytes that a CPU keeps a second time, repacked for its kernels. Tables that are looked up are not repacked.
    pub fn repacked_bytes(&self, repack: Repack) -> u64 {
        let is_table = |part| matches!(part, Part::TokenEmbedding | Part::LayerEmbedding);
        let repacked = self.0.iter().filter(|g| repack.takes(g.quant) && !is_table(g.part));
        repacked.fold(0, |sum, group| sum.saturating_add(group.in_eights_bytes))
    }

    /// Whether the embedding also computes the scores.
    pub fn is_tied(&self) -> bool {
        !self.0.iter().any(|group| group.part == Part::Output)
    }

    /// Bytes of a group that are read to decode one token. `experts_share` is the share of the experts that a token
    /// uses.
    pub fn read_bytes(&self, group: &WeightGroup, experts_share: f64) -> f64 {
        group.bytes as f64 * self.read_share(group, experts_share)
    }

    /// Share of a group that is read to decode one token, from 0 to 1.
    pub fn read_share(&self, group: &WeightGroup, experts_share: f64) -> f64 {
        match group.part {
            Part::TokenEmbedding if self.is_tied() => 1.0,
            Part::TokenEmbedding | Part::LayerEmbedding | Part::Tower | Part::Predictor => 0.0,
            Part::Output | Part::Dense => 1.0,
            Part::Experts => experts_share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_repacks_the_quants_of_its_kernels() {
        let cpus = [Repack::None, Repack::Avx2, Repack::Avx512, Repack::Neon];
        let rows = [
            ("Q4_K", [false, true, true, true]),
            ("Q2_K", [false, false, true, false]),
            ("Q1_0", [false, false, false, true]),
            ("Q8_0", [false, false, false, true]),
            ("F16", [false; 4]),
        ];
        for (quant, expected) in rows {
            assert_eq!(cpus.map(|cpu| cpu.takes(Quant(quant))), expected, "{quant}");
        }
    }
}
