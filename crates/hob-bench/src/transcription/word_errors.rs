//! Compares a transcript with its reference: the fewest changes that make one out of the other.
//! Pure; two rows of memory, so a recording of an hour fits.

use std::ops::AddAssign;

/// Comparisons of one pair of texts: about a second. Longer texts have no count.
const COMPARISONS_MAX: usize = 500_000_000;

/// Changes between a reference and what was heard, in words or in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordErrors {
    /// Words of the reference.
    pub words: u64,
    pub wrong: u64,
    /// In the reference and not in the transcript.
    pub missing: u64,
    /// In the transcript and not in the reference.
    pub added: u64,
}

impl WordErrors {
    /// None if the texts are too long to be compared.
    pub fn between<T: PartialEq>(reference: &[T], heard: &[T]) -> Option<WordErrors> {
        let words = reference.len() as u64;
        let alike = |(a, b): &(&T, &T)| a == b;
        let start = reference.iter().zip(heard).take_while(alike).count();
        let (reference, heard) = (&reference[start..], &heard[start..]);
        let end = reference.iter().rev().zip(heard.iter().rev()).take_while(alike).count();
        let reference = &reference[..reference.len() - end];
        let heard = &heard[..heard.len() - end];
        if reference.len().saturating_mul(heard.len()) > COMPARISONS_MAX {
            return None;
        }
        Some(WordErrors { words, ..changes(reference, heard) })
    }

    pub fn count(self) -> u64 {
        self.wrong + self.missing + self.added
    }

    /// Share of wrong words, which added words can bring above 1. None without a reference.
    pub fn rate(self) -> Option<f64> {
        (self.words > 0).then(|| self.count() as f64 / self.words as f64)
    }
}

impl AddAssign for WordErrors {
    fn add_assign(&mut self, other: WordErrors) {
        self.words += other.words;
        self.wrong += other.wrong;
        self.missing += other.missing;
        self.added += other.added;
    }
}

/// Levenshtein's distance, with the kinds of changes on one shortest way.
fn changes<T: PartialEq>(reference: &[T], heard: &[T]) -> WordErrors {
    let mut row: Vec<WordErrors> = (0..=heard.len() as u64)
        .map(|added| WordErrors { added, ..WordErrors::default() })
        .collect();
    for (missing, word) in (1..).zip(reference) {
        let mut diagonal =
            std::mem::replace(&mut row[0], WordErrors { missing, ..WordErrors::default() });
        for (at, other) in heard.iter().enumerate() {
            let (above, left) = (row[at + 1], row[at]);
            let mut best = diagonal;
            best.wrong += u64::from(word != other);
            if above.count() + 1 < best.count() {
                best = WordErrors { missing: above.missing + 1, ..above };
            }
            if left.count() + 1 < best.count() {
                best = WordErrors { added: left.added + 1, ..left };
            }
            diagonal = std::mem::replace(&mut row[at + 1], best);
        }
    }
    row[heard.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_are_counted_by_kind() {
        // Reference, transcript, then wrong, missing and added words.
        let rows = [
            ("the cat sat", "the cat sat", [0, 0, 0]),
            ("the cat sat", "the hat sat", [1, 0, 0]),
            ("the cat sat", "the sat", [0, 1, 0]),
            ("the cat sat", "the cat cat sat", [0, 0, 1]),
            ("the cat sat", "", [0, 3, 0]),
            ("", "the cat", [0, 0, 2]),
            ("a b c d e", "b c x e f", [1, 1, 1]),
        ];
        for (reference, heard, [wrong, missing, added]) in rows {
            let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
            let words_of = words(reference).len() as u64;
            let expected = WordErrors { words: words_of, wrong, missing, added };
            let got = WordErrors::between(&words(reference), &words(heard));
            assert_eq!(got, Some(expected), "{reference:?} {heard:?}");
        }
    }

    #[test]
    fn texts_beyond_the_limit_have_no_count() {
        let (zeros, ones) = (vec![0_u8; 30_000], vec![1_u8; 30_000]);
        assert_eq!(WordErrors::between(&zeros, &ones), None);
        assert!(WordErrors::between(&zeros, &zeros).is_some(), "equal texts need no comparison");
    }

    proptest! {
        #[test]
        fn a_change_in_one_direction_is_the_opposite_in_the_other(
            a in proptest::collection::vec(0..4_u8, 0..12),
            b in proptest::collection::vec(0..4_u8, 0..12),
        ) {
            let there = WordErrors::between(&a, &b).expect("short");
            let back = WordErrors::between(&b, &a).expect("short");
            prop_assert_eq!(there.count(), back.count());
            prop_assert_eq!(a.len() as u64 + there.added, b.len() as u64 + there.missing);
            prop_assert!(there.count() <= a.len().max(b.len()) as u64);
        }
    }
}
