//! How often guesses were right in this answer. Guesses that are not checked count too, because the next token shows whether
//! they were right, so an estimate costs nothing.

/// How much of the past stays with each guess.
const FADE: f64 = 0.97;

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
}

impl DraftKind {
    pub(super) fn of_match(equal: usize) -> DraftKind {
        match equal {
            0..5 => DraftKind::Short,
            5..10 => DraftKind::Middle,
            _ => DraftKind::Long,
        }
    }
}

/// Guesses of one kind, and how many of them were right. Older ones count less.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tally {
    guessed: f64,
    right: f64,
}

/// The estimates of one answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chances {
    /// In the order of [`DraftKind`].
    tallies: [Tally; 4],
}

impl Default for Chances {
    fn default() -> Chances {
        // Low enough that free text begins without drafts, and high enough that a long copy begins with them.
        let tally = |right| Tally { guessed: 5.0, right };
        Chances { tallies: [tally(1.5), tally(3.0), tally(4.4), tally(4.2)] }
    }
}

impl Chances {
    /// The probability that a guessed token is right if those before it are.
    pub(super) fn of(&self, kind: DraftKind) -> f64 {
        let tally = self.tallies[kind as usize];
        tally.right / tally.guessed
    }

    pub(super) fn learn(&mut self, kind: DraftKind, is_right: bool) {
        let tally = &mut self.tallies[kind as usize];
        tally.guessed = tally.guessed * FADE + 1.0;
        tally.right = tally.right * FADE + if is_right { 1.0 } else { 0.0 };
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
    fn longer_matches_are_kinds_of_their_own() {
        let kinds = [3, 4, 5, 9, 10, 32].map(DraftKind::of_match);
        let [short, middle, long] = [DraftKind::Short, DraftKind::Middle, DraftKind::Long];
        assert_eq!(kinds, [short, short, middle, middle, long, long]);
    }
}
