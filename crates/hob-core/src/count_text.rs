//! Counts as people read them: "1 model", "2 models", "195,072".
//! Callers pass only nouns that form their plural with `s`.

use std::fmt::Display;

/// `count` is a number, or the text of one, such as "1,204".
pub fn count_text(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Separates thousands: `195,072`.
pub fn grouped_digits(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        for (count, expected) in [(0, "0 models"), (1, "1 model"), (21, "21 models")] {
            assert_eq!(count_text(count, "model"), expected);
        }
        assert_eq!(count_text("1,001", "token"), "1,001 tokens");
    }
}
