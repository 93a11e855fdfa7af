//! Keys, of other servers and of this one: sent to the servers that they are for, and never shown.
//! If a server repeats its key in an error message, hob removes it from the log.

use std::fmt;

/// Text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text without this secret.
    pub(crate) fn scrub(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "…") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_neither_shown_nor_repeated() {
        let secret = Secret::new("sk-123");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.scrub("wrong key sk-123!"), "wrong key …!");
    }
}
