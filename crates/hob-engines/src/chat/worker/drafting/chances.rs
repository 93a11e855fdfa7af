//! How often guesses were right in this answer. Guesses that are not checked count too, because the next token shows whether
//! they were right, so an estimate costs nothing.

use std::fmt;

/// How much of the past stays with each guess.
const FADE: f64 = 0.97;

/// Number of guesses that count as made before the first one.
const START_WEIGHT: f64 = 5.0;

/// What a small model's guesses are worth before one is made, and how fast the estimate comes back to that.
const MODEL_CHANCE: f64 = 0.7;
const RECOVERY: f64 = 0.01;

/// Why tokens are expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DraftKind {
    /// Three or four tokens before them came earlier.
    #[default]
    Short,
    /// Five to nine.
    Middle,
    /// Ten or more.
    Long,
    /// The form that a grammar prescribes.
    Form,
    /// A small model guesses it. Guesses that are not made teach nothing, so this estimate recovers by itself.
    Model,
    /// Two tokens before them came earlier.
    Pair,
    /// The answer copies a text, and is back in it after a word that differs.
    Resumed,
    /// The answer copies a text, and its last word differs.
    Replaced,
}

impl DraftKind {
    pub(super) fn of_match(equal: usize) -> DraftKind {
        match equal {
            0..3 => DraftKind::Pair,
            3..5 => DraftKind::Short,
            5..10 => DraftKind::Middle,
            _ => DraftKind::Long,
        }
    }
}

/// In the order of their numbers.
const KINDS: [DraftKind; 8] = [
    DraftKind::Short,
    DraftKind::Middle,
    DraftKind::Long,
    DraftKind::Form,
    DraftKind::Model,
    DraftKind::Pair,
    DraftKind::Resumed,
    DraftKind::Replaced,
];

/// Guesses of one kind, and how many of them were right. Older ones count less.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tally {
    guessed: f64,
    right: f64,
    /// Guesses, and how many of them were right, all with the same weight.
    counted: (u32, u32),
}

/// The estimates of one answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chances {
    /// In the order of [`DraftKind`].
    tallies: [Tally; 8],
}

impl Default for Chances {
    fn default() -> Chances {
        // Low enough that free text begins without drafts, and high enough that a long copy begins with them.
        let tally =
            |chance| Tally { guessed: START_WEIGHT, right: START_WEIGHT * chance, counted: (0, 0) };
        Chances { tallies: [0.3, 0.6, 0.88, 0.84, MODEL_CHANCE, 0.1, 0.8, 0.5].map(tally) }
    }
}

impl Chances {
    /// The probability that a guessed token is right if those before it are.
    pub(super) fn of(&self, kind: DraftKind) -> f64 {
        let tally = self.tallies[kind as usize];
        tally.right / tally.guessed
    }

    /// Moves the estimate of a small model's guesses a little to where it began.
    pub(super) fn recover_model(&mut self) {
        let tally = &mut self.tallies[DraftKind::Model as usize];
        tally.right += RECOVERY * (MODEL_CHANCE * tally.guessed - tally.right);
    }

    pub(super) fn learn(&mut self, kind: DraftKind, is_right: bool) {
        let tally = &mut self.tallies[kind as usize];
        tally.guessed = tally.guessed * FADE + 1.0;
        tally.right = tally.right * FADE + if is_right { 1.0 } else { 0.0 };
        tally.counted.0 += 1;
        tally.counted.1 += u32::from(is_right);
    }
}

/// The kinds of which there were guesses.
impl fmt::Display for Chances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for (kind, Tally { counted: (guessed, right), .. }) in KINDS.iter().zip(self.tallies) {
            if guessed > 0 {
                write!(f, "{before}{kind:?} {right} of {guessed}")?;
                before = ", ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_follow_what_was_right() {
        let mut chances = Chances::default();
        assert!(chances.of(DraftKind::Short) < chances.of(DraftKind::Long));
        (0..200).for_each(|at| chances.learn(DraftKind::Short, at % 4 > 0));
        let short = chances.of(DraftKind::Short);
        assert!((0.7..0.8).contains(&short), "{short}");
        (0..100).for_each(|_| chances.learn(DraftKind::Short, false));
        assert!(chances.of(DraftKind::Short) < 0.1);
        assert_eq!(chances.of(DraftKind::Long), Chances::default().of(DraftKind::Long));
    }

    #[test]
    fn a_small_model_is_tried_again() {
        let mut chances = Chances::default();
        (0..100).for_each(|_| chances.learn(DraftKind::Model, false));
        assert!(chances.of(DraftKind::Model) < 0.1);
        (0..100).for_each(|_| chances.recover_model());
        assert!(chances.of(DraftKind::Model) > 0.4);
    }

    #[test]
    fn guesses_are_listed_by_their_kind() {
        let mut chances = Chances::default();
        (0..9).for_each(|at| chances.learn(DraftKind::Long, at > 0));
        chances.learn(DraftKind::Replaced, false);
        assert_eq!(chances.to_string(), "Long 8 of 9, Replaced 0 of 1");
        assert!((0..8).all(|number| KINDS[number] as usize == number));
    }

    #[test]
    fn longer_matches_are_kinds_of_their_own() {
        let kinds = [3, 4, 5, 9, 10, 32].map(DraftKind::of_match);
        let [short, middle, long] = [DraftKind::Short, DraftKind::Middle, DraftKind::Long];
        assert_eq!(kinds, [short, short, middle, middle, long, long]);
        assert_eq!(DraftKind::of_match(2), DraftKind::Pair);
    }
}
