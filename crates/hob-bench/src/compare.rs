//! Two measurements held against each other, figure by figure: how many times more, how sure that is, and in a word.
//! What may not be compared is refused with its reason; what was measured apart is never called paired.

mod aspect;
mod campaign;
mod figure;
mod gate;
mod noise;
mod runs;
mod side;
#[cfg(test)]
mod tests;

pub use aspect::{ASKED_BEFORE, Aspect, Holds, aspects, counts_tokens, is_untold, seed, unfit};
pub use figure::{Compared, RatioBasis, Rule, Verdict, paired, paired_figures};
pub use gate::{GATED, Gate, GateVerdict, GatedCell, gate};
pub use noise::Noise;
pub use runs::runs;
use serde::Serialize;
pub use side::{Kept, Side};

use crate::terms::{Better, Metric};

/// The least difference that matters, where both were measured in turns.
pub const THRESHOLD_PAIRED_PCT: f64 = 2.0;
/// Where they were not: a machine is not the same on two days.
pub const THRESHOLD_UNPAIRED_PCT: f64 = 5.0;

/// How the two were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// Block by block in turns, by one campaign on one machine.
    Paired,
    Unpaired,
}

impl Pairing {
    pub fn threshold_pct(self) -> f64 {
        match self {
            Pairing::Paired => THRESHOLD_PAIRED_PCT,
            Pairing::Unpaired => THRESHOLD_UNPAIRED_PCT,
        }
    }

    /// For above a table.
    pub fn banner(self) -> &'static str {
        match self {
            Pairing::Paired => "Paired: measured block by block in turns.",
            Pairing::Unpaired => {
                "Unpaired: measured apart, so whatever else changed in between is in the difference too."
            }
        }
    }
}

/// What came of it. With a refusal there are no figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub base: Side,
    pub new: Side,
    pub pairing: Pairing,
    /// Why nothing may be compared, in sentences.
    pub refusals: Vec<String>,
    /// What else is different, and has to be known to read the figures.
    pub marks: Vec<String>,
    pub figures: Vec<Compared>,
}

/// How little a difference may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    /// None: that of the pairing.
    pub threshold_pct: Option<f64>,
    /// Widens the threshold of a figure.
    pub noise: Noise,
}

impl Wish {
    /// With nothing learnt of noise.
    pub fn of(threshold_pct: Option<f64>) -> Wish {
        Wish { threshold_pct, ..Wish::default() }
    }
}

/// `new` against `base`.
pub fn compare(base: &[Kept], new: &[Kept], wish: &Wish) -> Comparison {
    let (base_side, new_side) = (Side::of(base), Side::of(new));
    let pairing = campaign::pairing(base, new);
    let differences = aspect::differences(base, new, pairing);
    let rule = Rule::of(pairing, wish);
    let figures = match differences.refusals.is_empty() {
        true => figure::figures(base, new, &rule, differences.counts_differ.as_deref()),
        false => Vec::new(),
    };
    Comparison {
        base: base_side,
        new: new_side,
        pairing,
        refusals: differences.refusals,
        marks: differences.marks,
        figures,
    }
}

/// Those of which more or less is better.
pub fn has_direction(metric: Metric) -> bool {
    metric.term().better != Better::Neither
}
