//! The tokens of a model as bytes, in the form that grammars need. Built once for each model.
//! The model's tokenizer is not available here, so forced text is tokenized greedily.

use std::fmt;
use std::sync::Arc;

use toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie};

use super::ConstraintError;
use crate::chat::tokens::Token;

/// The trie cannot hold longer tokens, so masks never allow them. Some vocabularies have a token of 1,024 spaces.
const TOKEN_BYTES_MAX: usize = 1_000;

/// All tokens of a model. Cheap to clone.
#[derive(Clone)]
pub struct Vocabulary {
    env: TokEnv,
    /// The token of each single byte.
    byte_tokens: Arc<[Option<u32>; 256]>,
}

impl Vocabulary {
    /// The first token that ends an answer becomes the trie's end-of-sequence token.
    pub fn new(tokens: &[Token]) -> Result<Vocabulary, ConstraintError> {
        let ends = (0..).zip(tokens).filter(|(_, token)| token.ends);
        let ends: Vec<u32> = ends.map(|(id, _)| id).collect();
        let first_end = *ends.first().ok_or(ConstraintError::NoEndToken)?;
        let keys: Vec<Vec<u8>> = tokens.iter().map(trie_key).collect();
        let size = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let trie = TokTrie::from(&TokRxInfo::new(size, first_end), &keys).with_eos_tokens(&ends);
        let byte_tokens = Arc::new(single_bytes(tokens));
        if byte_tokens[usize::from(b'"')].is_none() || byte_tokens[usize::from(b'}')].is_none() {
            return Err(ConstraintError::NoByteTokens);
        }
        Ok(Vocabulary { env: Arc::new(ApproximateTokEnv::new(trie)), byte_tokens })
    }

    pub fn len(&self) -> usize {
        self.trie().vocab_size()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `token` ends an answer.
    pub fn is_end(&self, token: u32) -> bool {
        self.trie().eos_tokens().contains(&token)
    }

    pub(super) fn env(&self) -> &TokEnv {
        &self.env
    }

    pub(super) fn trie(&self) -> &TokTrie {
        self.env.tok_trie()
    }

    pub(super) fn end_token(&self) -> u32 {
        self.trie().eos_token()
    }

    /// The mask that allows only this token.
    pub(super) fn only(&self, token: u32) -> Mask {
        self.trie().singleton_token_set(token)
    }

    pub(super) fn byte_token(&self, byte: u8) -> Option<u32> {
        self.byte_tokens[usize::from(byte)]
    }

    /// The special token that is called `name`.
    pub(super) fn special(&self, name: &str) -> Option<u32> {
        self.trie().get_special_token(name)
    }

    /// The text of `token`. For a special token, its name.
    pub(super) fn text(&self, token: u32) -> &[u8] {
        let bytes = self.trie().token(token);
        bytes.strip_prefix(&[TokTrie::SPECIAL_TOKEN_MARKER]).unwrap_or(bytes)
    }

    /// The text of `token`. `None` for a special token, which is not written as text.
    pub(super) fn plain_text(&self, token: u32) -> Option<&[u8]> {
        (!self.trie().is_special_token(token)).then(|| self.trie().token(token))
    }

    pub(super) fn tokenize_greedily(&self, text: &[u8]) -> Vec<u32> {
        self.trie().greedy_tokenize(text)
    }
}

/// Shows only the size.
impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vocabulary({} tokens)", self.len())
    }
}

/// Which tokens may come next. Bit `i` of word `w` is token `32 * w + i`; bits past the vocabulary may be set.
pub type Mask = SimpleVob;

/// The only allowed token, if there is only one.
pub(super) fn only_token(mask: &Mask) -> Option<u32> {
    // Most masks end the search in their first words.
    let mut allowed = mask.iter().take_while(|&token| (token as usize) < mask.len());
    allowed.next().filter(|_| allowed.next().is_none())
}

/// The key of a token in the trie. A special token starts with a marker byte that no text contains.
/// Empty: the token is not in the trie.
fn trie_key(token: &Token) -> Vec<u8> {
    let bytes = token.control.as_ref().map_or(token.bytes.as_slice(), String::as_bytes);
    if bytes.is_empty() || bytes.len() > TOKEN_BYTES_MAX {
        Vec::new()
    } else if token.control.is_some() || token.ends {
        // A token that ends the answer is never text, whatever its kind.
        [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat()
    } else if bytes.contains(&TokTrie::SPECIAL_TOKEN_MARKER) {
        // This byte never occurs in UTF-8. The trie would read it as the marker of special tokens.
        Vec::new()
    } else {
        bytes.to_vec()
    }
}

fn single_bytes(tokens: &[Token]) -> [Option<u32>; 256] {
    let mut found = [None; 256];
    for (id, token) in (0u32..).zip(tokens) {
        if let ([byte], None) = (token.bytes.as_slice(), &token.control) {
            found[usize::from(*byte)].get_or_insert(id);
        }
    }
    found
}
