//! A second, smaller model in the same process, which guesses tokens for the first one.
//! Tokens pass between the two as numbers, so both must have the same vocabulary.

use std::path::Path;
use std::sync::Arc;

use super::{Llama, LlamaError, LlamaOptions};
use crate::chat::tokens::{Token, TokenTable};

/// Models of one family may have a few unused tokens more at the end.
const SURPLUS_TOKENS_MAX: usize = 1_024;

impl Llama {
    /// Loads a model that guesses for this one.
    ///
    /// # Errors
    /// See [`LlamaError`]. Another vocabulary, and a model whose guesses cannot be taken back, are refused.
    pub fn load_draft(&self, path: &Path) -> Result<Llama, LlamaError> {
        let refused = |reason: String| LlamaError::Draft { path: path.to_path_buf(), reason };
        // The experts that stay in the system's memory are those of the first model.
        let options =
            LlamaOptions { path: path.to_path_buf(), cpu_moe_layers: 0, ..self.options.clone() };
        let draft = Llama::load_with(Arc::clone(&self.backend), options, |_| ())?;
        if !draft.has_token_cache() || !self.has_token_cache() {
            return Err(refused("a recurrent model cannot take guesses back".to_owned()));
        }
        match difference(&self.tokens(), &draft.tokens()) {
            None => Ok(draft),
            Some(reason) => Err(refused(reason)),
        }
    }
}

/// Why the tokens of one model mean nothing to the other.
fn difference(own: &TokenTable, other: &TokenTable) -> Option<String> {
    let mut pairs = own.all().iter().zip(other.all());
    // The names of control tokens may differ, and which of them end an answer: they are not text.
    let differ = |a: &Token, b: &Token| a.bytes != b.bytes;
    if let Some(token) = pairs.position(|(a, b)| differ(a, b)) {
        return Some(format!("its token {token} is another one"));
    }
    let counts = (own.count(), other.count());
    (counts.0.abs_diff(counts.1) > SURPLUS_TOKENS_MAX)
        .then(|| format!("it has {} tokens instead of {}", counts.1, counts.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(words: &[&str]) -> TokenTable {
        let token = |word: &&str| Token { bytes: word.as_bytes().to_vec(), ..Token::default() };
        TokenTable::new(words.iter().map(token).collect(), 0)
    }

    #[test]
    fn only_the_same_tokens_are_the_same_vocabulary() {
        let own = table(&["a", "b", "c"]);
        assert_eq!(difference(&own, &table(&["a", "b", "c"])), None);
        assert_eq!(difference(&own, &table(&["a", "b", "c", "unused"])), None);
        let other = difference(&own, &table(&["a", "x", "c"]));
        assert_eq!(other.as_deref(), Some("its token 1 is another one"));
        let many = vec!["a"; SURPLUS_TOKENS_MAX + 2];
        let few = difference(&table(&["a"]), &table(&many));
        assert_eq!(few.as_deref(), Some("it has 1026 tokens instead of 1"));
    }
}
