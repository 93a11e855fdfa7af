//! What clients learn about a chat model before it is loaded.
//! Reads the header only, so that listing models loads none.

use std::path::Path;
use std::time::UNIX_EPOCH;

use hob_core::ChatCard;

use super::{Gguf, GgufError};

/// Model card of a file, for a context of at most `tokens_asked`. It has no digest, because that would need the whole file.
///
/// # Errors
/// The file cannot be read, or the engine would not load it.
pub fn card(path: &Path, tokens_asked: Option<u32>) -> Result<ChatCard, GgufError> {
    let gguf = Gguf::open(path)?;
    let found = std::fs::metadata(path).map_err(|error| GgufError::unreadable(&error))?;
    let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified_unix_s = changed.map_or(0, |since| since.as_secs());
    Ok(ChatCard { modified_unix_s, ..gguf.card(tokens_asked)? })
}

impl Gguf {
    /// Model card of this file, without facts of the file system.
    ///
    /// # Errors
    /// The engine would not load it.
    pub fn card(&self, tokens_asked: Option<u32>) -> Result<ChatCard, GgufError> {
        let shape = self.shape()?;
        let trained = shape.trained_context_tokens;
        let template = self.chat_template();
        let is_recurrent = shape.layers.iter().any(|layer| layer.recurrence.is_some());
        let is_embedder = self.value(&format!("{}.pooling_type", shape.architecture)).is_some();
        Ok(ChatCard {
            context_tokens: tokens_asked.map_or(trained, |asked| asked.min(trained)),
            trained_context_tokens: trained,
            architecture: shape.architecture,
            parameters: self.parameters(),
            quantization: self.quantization().to_owned(),
            file_bytes: self.file_bytes(),
            digest: None,
            modified_unix_s: 0,
            template: template.map(str::to_owned),
            // If the template has no tools, the engine writes them into a system message.
            calls_tools: template.is_some(),
            thinks: template.is_some_and(mentions_thinking),
            infills: self.infills(),
            is_embedder,
            is_recurrent,
            scores_prompts: true,
            ..ChatCard::default()
        })
    }
}

/// Whether a template mentions thinking. Templates of reasoning models remove earlier thoughts, or have a switch for them.
fn mentions_thinking(template: &str) -> bool {
    ["<think>", "thinking", "reasoning"].iter().any(|word| template.contains(word))
}
