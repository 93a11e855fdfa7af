//! Draws numbers, words and orders for one item.
//! The state depends on seed, family, size and index only, so items do not depend on each other.

use hob_core::statistics::SeededRandom;

/// A source of random choices for one item.
#[derive(Debug)]
pub(crate) struct Draw(SeededRandom);

impl Draw {
    pub(crate) fn new(seed: u64, family: &str, size: &str, index: u32) -> Draw {
        let name = hash(&[family, size]);
        let mut start = SeededRandom::new(seed ^ name);
        Draw(SeededRandom::new(start.bits() ^ u64::from(index).wrapping_mul(0xD6E8_FEB8_6659_FD93)))
    }

    /// A number below `count`. 0 for a count of 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0.below(count)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as usize) as i64
    }

    /// One of the choices, which must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }

    /// `count` different entries of the list, or all of them where the list is shorter.
    pub(crate) fn some<T: Clone>(&mut self, list: &[T], count: usize) -> Vec<T> {
        let mut list = list.to_vec();
        self.shuffle(&mut list);
        list.truncate(count);
        list
    }
}

/// FNV-1a with 64 bits. Parts are separated, so that `ab`, `c` differs from `a`, `bc`.
pub(crate) fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xFF]));
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
