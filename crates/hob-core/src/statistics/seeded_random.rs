//! Reproducible random numbers: a seed gives the same numbers on every machine.
//! SplitMix64, because it is ten lines long. Not for secrets.

#[derive(Clone, Debug)]
pub struct SeededRandom {
    state: u64,
}

impl SeededRandom {
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom { state: seed }
    }

    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `count`, which must not be 0. Lists are so short that the bias of the modulus does not matter.
    pub fn below(&mut self, count: usize) -> usize {
        (self.bits() % count.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_parts_are_spread() {
        let draw = |seed| {
            let mut random = SeededRandom::new(seed);
            (0..1000).map(|_| random.unit()).collect::<Vec<f64>>()
        };
        assert!(draw(7) == draw(7) && draw(7) != draw(8));
        assert!(draw(7).iter().all(|part| (0.0..1.0).contains(part)));
        let mean = draw(7).iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }
}
