//! Keys: where hob will find one, and how a source says it. The key itself is never written, and a
//! note says which variable to set instead.

use std::fmt;

/// Where a key is: `env:NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPlace(String);

impl KeyPlace {
    pub(super) fn variable(name: &str) -> KeyPlace {
        KeyPlace(format!("env:{name}"))
    }
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key as a source writes it. Not `Debug`: it may be the key itself.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum WrittenKey {
    /// The name of the variable that holds it.
    Variable(String),
    /// What people write when a server wants no key and a client library wants one.
    Placeholder,
    Literal(String),
}

const PLACEHOLDERS: [&str; 14] = [
    "none",
    "null",
    "empty",
    "dummy",
    "fake",
    "fake-key",
    "no-key",
    "not-needed",
    "not-used",
    "na",
    "n/a",
    "anything",
    "placeholder",
    "ollama",
];

impl WrittenKey {
    /// LiteLLM's way: `os.environ/NAME`.
    pub(super) fn litellm(text: &str) -> WrittenKey {
        match text.trim().strip_prefix("os.environ/") {
            Some(name) => WrittenKey::Variable(name.to_owned()),
            None => WrittenKey::plain(text),
        }
    }

    /// llama-swap's way: `${env.NAME}`.
    pub(super) fn llama_swap(text: &str) -> WrittenKey {
        let name = text.trim().strip_prefix("${env.").and_then(|rest| rest.strip_suffix('}'));
        match name {
            Some(name) if !name.contains(['$', '{', '}']) => WrittenKey::Variable(name.to_owned()),
            _ => WrittenKey::plain(text),
        }
    }

    fn plain(text: &str) -> WrittenKey {
        let word = text.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        match word.is_empty() || PLACEHOLDERS.contains(&word.as_str()) {
            true => WrittenKey::Placeholder,
            false => WrittenKey::Literal(text.to_owned()),
        }
    }
}

/// The variable for a key that stood in the source itself.
pub(super) fn variable_for(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("HOB_KEY_{}", name.chars().map(letter).collect::<String>())
}

/// Whether a parameter of this name is likely to be a secret; `max_tokens` is not.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let ends = ["key", "secret", "password", "authorization"];
    ends.into_iter().any(|end| name.ends_with(end)) || name == "token" || name.ends_with("_token")
}

/// What to do about a key that was not copied.
pub(super) fn not_copied(variable: &str) -> String {
    format!("the key itself is not copied; set {variable} to it where hob is started")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_variable_a_placeholder_or_itself() {
        let is_variable =
            |key: WrittenKey, name: &str| key == WrittenKey::Variable(name.to_owned());
        assert!(is_variable(WrittenKey::litellm("os.environ/GROQ"), "GROQ"));
        assert!(is_variable(WrittenKey::llama_swap("${env.GROQ}"), "GROQ"));
        for text in ["none", "EMPTY", "Not Needed", " "] {
            assert!(WrittenKey::litellm(text) == WrittenKey::Placeholder, "{text}");
        }
        for text in ["sk-1234", "${env.A}-${env.B}", "os.environ/A"] {
            assert!(matches!(WrittenKey::llama_swap(text), WrittenKey::Literal(_)), "{text}");
        }
        assert_eq!(variable_for("gpu-box.lan"), "HOB_KEY_GPU_BOX_LAN");
    }
}
