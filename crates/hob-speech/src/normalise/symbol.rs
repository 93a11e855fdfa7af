//! Symbols that stand alone: "&", "+", "→", "§ 5". A symbol without a name is not spoken.
//! The reader of each kind of word handles the symbols inside it.

use super::View;
use crate::reading::Reading;
use crate::word_table::find;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    if word.text.chars().any(char::is_alphanumeric) {
        return None;
    }
    if let Some(name) = alone(view, &word.text).or_else(|| find(SEQUENCES, &word.text)) {
        out.say(word.span(), name);
        return Some(1);
    }
    // A row of the same symbol is decoration; different symbols are said one by one.
    let symbols: Vec<(usize, char)> = word.text.char_indices().collect();
    if symbols.len() > 3 {
        return Some(1);
    }
    for (at, symbol) in symbols {
        out.say(word.span_of(at..at + symbol.len_utf8()), name(symbol).unwrap_or_default());
    }
    Some(1)
}

/// The key of "press #", and the "*" that multiplies nothing.
fn alone(view: View<'_>, symbol: &str) -> Option<&'static str> {
    let before = view.before().map(|word| word.text.to_lowercase()).unwrap_or_default();
    let is_pressed = matches!(&*before, "press" | "hit" | "dial");
    let is_term =
        |text: &str| text.chars().count() == 1 || text.starts_with(|c: char| c.is_ascii_digit());
    match symbol {
        "#" if is_pressed => Some(if view.british { "hash" } else { "pound" }),
        "*" if !is_term(&before) || !view.text_ahead(1).is_some_and(is_term) => Some("star"),
        _ => None,
    }
}

/// Symbols that are one together. The last one is not said.
const SEQUENCES: &str = "
    -> to, => to, --> to, <= less than or equal to, >= greater than or equal to,
    != is not equal to, == equals, §§ sections, ...";

/// The name of a symbol between words.
pub(super) fn name(symbol: char) -> Option<&'static str> {
    find(NAMES, symbol.encode_utf8(&mut [0; 4]))
}

const NAMES: &str = "
    & and, + plus, = equals, @ at, % percent, ‰ per mille, # number, / slash, ⁄ slash,
    \\ backslash, < less than, > greater than, * times, × times, ⋅ times, ÷ divided by,
    ± plus or minus, ≤ less than or equal to, ≥ greater than or equal to, ≠ is not equal to,
    ≈ approximately, ≃ approximately, ~ about, ^ to the power of, → to, ⇒ to, ➔ to, ← from,
    ↔ to and from, ↑ up, ↓ down, ∞ infinity, √ the square root of, ∑ sum, ∈ in, ∩ intersection,
    ∪ union, ∅ the empty set, ∫ the integral of, ∠ angle, ♭ flat, ♯ sharp, ′ minutes, ″ seconds,
    ∀ for all, § section, ¶ paragraph, © copyright, ° degrees,
    $ dollars, € euros, £ pounds, ¥ yen, ₹ rupees, ¢ cents, № number, − minus, – to, µ micro";

/// The name of a Greek letter that stands for a quantity. Greek words are romanised elsewhere.
pub(super) fn greek_letter(text: &str) -> Option<&'static str> {
    find(GREEK_LETTERS, text)
}

const GREEK_LETTERS: &str = "
    α alpha, β beta, γ gamma, Γ gamma, δ delta, Δ delta, ε epsilon, ζ zeta, η eta, θ theta,
    Θ theta, κ kappa, λ lambda, Λ lambda, μ mu, ν nu, ξ xi, Ξ xi, π pi, Π pi, ρ rho, σ sigma,
    Σ sigma, τ tau, φ phi, Φ phi, χ chi, ψ psi, Ψ psi, ω omega, Ω omega";
