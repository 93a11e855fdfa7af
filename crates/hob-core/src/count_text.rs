//! A count with its noun, for sentences that people read: "1 model", "2 models".
//! Only nouns with a regular plural are used so.

use std::fmt::Display;

/// `count` is a number, or the text of one, such as "1,204".
pub fn count_text(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{ending}")
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
