//! How long passes take. Some kernels of llama.cpp multiply weights with two tokens at a time, and read all weights again for
//! a token that is left over. So a pass over three tokens may take longer than one over four.

/// Weight of the guessed cost of a token, in tokens that were measured.
const TOKEN_GUESS_WEIGHT: f64 = 8.0;
/// Weight of the guess that a token that is left over costs nothing more.
const ODD_GUESS_WEIGHT: f64 = 0.1;
/// Its weight with fewer than [`EVEN_PASSES_MIN`] passes to compare with: then the guess is all that is known.
const UNKNOWN_ODD_WEIGHT: f64 = 1e9;
/// Passes over several tokens, of which none is left over.
const EVEN_PASSES_MIN: f64 = 1.0;

/// Weight of the fit next to measured times of passes with as many tokens.
const FIT_WEIGHT: f64 = 3.0;
/// Times are kept for passes of at most so many tokens.
const KEPT_TOKENS_MAX: usize = 64;

/// Indices into the numbers of a [`Shape`].
const TOKENS: usize = 1;
const ODD: usize = 2;

/// What the time of a pass depends on: passes of llama.cpp, tokens, and passes in which a token is left over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape([f64; 3]);

impl Shape {
    /// llama.cpp splits a batch until all its sequences have equally many tokens: a pass takes as many of each as the shortest
    /// rest has, and the next pass what is left.
    pub(super) fn of(tokens: &[usize]) -> Shape {
        let mut counts = tokens.to_vec();
        counts.sort_unstable();
        let mut passes = Vec::new();
        let mut taken = 0;
        for (ended, &count) in counts.iter().enumerate() {
            if count > taken {
                passes.push((count - taken) * (counts.len() - ended));
                taken = count;
            }
        }
        let odd = passes.iter().filter(|&&count| count > 1 && count % 2 == 1).count();
        Shape([passes.len() as f64, passes.iter().sum::<usize>() as f64, odd as f64])
    }

    /// Whether a token is left over in a pass.
    pub(super) fn has_rest(self) -> bool {
        self.0[ODD] > 0.0
    }
}

/// Milliseconds that each of the three numbers of a [`Shape`] adds to a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PassCosts([f64; 3]);

impl PassCosts {
    pub(super) fn milliseconds(self, shape: Shape) -> f64 {
        self.0.iter().zip(shape.0).map(|(each_ms, count)| each_ms * count).sum()
    }
}

/// Sums for a fit of costs to the times of passes by least squares.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fit {
    products: [[f64; 3]; 3],
    took: [f64; 3],
    /// Passes over several tokens, without one that is left over.
    even_passes: f64,
}

impl Fit {
    pub(super) fn add(&mut self, shape: Shape, took_ms: f64) {
        let Shape([passes, tokens, odd]) = shape;
        self.even_passes += if odd == 0.0 && tokens > passes { 1.0 } else { 0.0 };
        for ((products, took), own) in self.products.iter_mut().zip(&mut self.took).zip(shape.0) {
            products.iter_mut().zip(shape.0).for_each(|(product, other)| *product += own * other);
            *took += own * took_ms;
        }
    }

    pub(super) fn fade(&mut self, rest: f64) {
        let sums = self.products.iter_mut().flatten().chain(&mut self.took);
        sums.chain([&mut self.even_passes]).for_each(|sum| *sum *= rest);
    }

    /// The costs that fit best. A cost that few passes show stays near its guess.
    pub(super) fn solve(mut self, token_guess_ms: f64) -> PassCosts {
        self.products[TOKENS][TOKENS] += TOKEN_GUESS_WEIGHT;
        self.took[TOKENS] += TOKEN_GUESS_WEIGHT * token_guess_ms;
        let can_compare = self.even_passes >= EVEN_PASSES_MIN;
        self.products[ODD][ODD] += if can_compare { ODD_GUESS_WEIGHT } else { UNKNOWN_ODD_WEIGHT };
        PassCosts(solved(self.products, self.took).map(|cost_ms| cost_ms.max(0.0)))
    }
}

/// Solves linear equations. The matrix is positive definite.
fn solved(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        let pivot_row = matrix[pivot];
        for row in (0..3).filter(|&row| row != pivot) {
            let factor = matrix[row][pivot] / pivot_row[pivot];
            for (value, above) in matrix[row].iter_mut().zip(pivot_row) {
                *value -= factor * above;
            }
            right[row] -= factor * right[pivot];
        }
    }
    [0, 1, 2].map(|at| right[at] / matrix[at][at])
}

/// Measured times of passes of one stream, by their tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct PassTimes(Vec<MeasuredTime>);

#[derive(Clone, Copy, Debug, Default)]
struct MeasuredTime {
    weight: f64,
    sum_ms: f64,
}

impl PassTimes {
    pub(super) fn add(&mut self, tokens: usize, took_ms: f64) {
        if tokens > KEPT_TOKENS_MAX {
            return;
        }
        if self.0.len() <= tokens {
            self.0.resize(tokens + 1, MeasuredTime::default());
        }
        let known = &mut self.0[tokens];
        known.weight += 1.0;
        known.sum_ms += took_ms;
    }

    pub(super) fn fade(&mut self, rest: f64) {
        for known in &mut self.0 {
            known.weight *= rest;
            known.sum_ms *= rest;
        }
    }

    /// The expected time of a pass: `fitted_ms`, moved to what passes with as many tokens took.
    pub(super) fn corrected(&self, tokens: usize, fitted_ms: f64) -> f64 {
        let known = self.0.get(tokens).copied().unwrap_or_default();
        (known.sum_ms + FIT_WEIGHT * fitted_ms) / (known.weight + FIT_WEIGHT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The milliseconds of a pass over so many tokens of one stream.
    fn fitted(fit: Fit, tokens: usize) -> f64 {
        fit.solve(1.0).milliseconds(Shape::of(&[tokens]))
    }

    #[test]
    fn a_pass_is_counted_as_llama_cpp_splits_it() {
        assert_eq!(Shape::of(&[1]), Shape([1.0, 1.0, 0.0]));
        assert_eq!(Shape::of(&[5]), Shape([1.0, 5.0, 1.0]));
        assert_eq!(Shape::of(&[3, 1, 3]), Shape([2.0, 7.0, 1.0]));
        assert_eq!(Shape::of(&[1, 5, 1, 1]), Shape([2.0, 8.0, 0.0]));
        assert!(Shape::of(&[1, 6]).has_rest() && !Shape::of(&[1, 5]).has_rest());
    }

    #[test]
    fn tokens_that_are_left_over_are_fitted_as_a_cost_of_their_own() {
        let mut fit = Fit::default();
        fit.add(Shape::of(&[1]), 10.0);
        fit.add(Shape::of(&[3]), 20.0);
        assert!(fitted(fit, 4) > fitted(fit, 3), "without a pass to compare with");
        for tokens in [2, 3, 6, 9, 16, 17].repeat(20) {
            fit.add(
                Shape::of(&[tokens]),
                9.0 + tokens as f64 + if tokens % 2 == 1 { 8.0 } else { 0.0 },
            );
        }
        for (tokens, ms) in [(4, 13.0), (5, 22.0), (15, 32.0)] {
            assert!((fitted(fit, tokens) - ms).abs() < 0.2, "{tokens}: {}", fitted(fit, tokens));
        }
    }

    #[test]
    fn where_nothing_is_left_over_all_tokens_cost_the_same() {
        let mut fit = Fit::default();
        for tokens in [1, 4, 9, 17].repeat(20) {
            fit.add(Shape::of(&[tokens]), 9.0 + tokens as f64);
        }
        assert!((fitted(fit, 15) - 24.0).abs() < 0.3, "{}", fitted(fit, 15));
    }

    #[test]
    fn what_was_measured_corrects_the_fit() {
        let mut times = PassTimes::default();
        assert_eq!(times.corrected(4, 20.0), 20.0);
        (0..30).for_each(|_| times.add(4, 12.0));
        assert!(times.corrected(4, 20.0) < 13.0);
        assert_eq!(times.corrected(5, 20.0), 20.0);
        times.fade(0.0);
        assert_eq!(times.corrected(4, 20.0), 20.0);
        times.add(KEPT_TOKENS_MAX + 1, 1.0);
        assert_eq!(times.corrected(KEPT_TOKENS_MAX + 1, 20.0), 20.0, "too many to be kept");
    }
}
