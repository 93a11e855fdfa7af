//! Reads the maximum context length that a server reports.
//! Without a report, the sweep finds it by its first failure.

use hob_wire::{parse_llama_props, parse_openai_models};
use serde_json::{Value, json};

use crate::target::{Api, Target};

/// Tokens of a prompt and its answer together.
pub(super) fn limit(target: &Target) -> Option<u32> {
    match target.api {
        // Ollama allocates the context per request, up to the length of training.
        Api::Ollama => {
            trained(&target.body_of("/api/show", Some(json!({ "model": target.model })))?)
        }
        Api::OpenAi | Api::Hob => of_one(target).or_else(|| listed(target)),
    }
}

/// llama-server's `/props` has the real length; its list of models has the length of training.
fn of_one(target: &Target) -> Option<u32> {
    parse_llama_props(&target.body_of("/props", None)?).ok()?.context_tokens
}

fn listed(target: &Target) -> Option<u32> {
    let models = parse_openai_models(&target.body_of("/v1/models", None)?).ok()?;
    models.into_iter().find(|model| model.id == target.model)?.context_tokens
}

fn trained(shown: &[u8]) -> Option<u32> {
    let shown: Value = serde_json::from_slice(shown).ok()?;
    let info = shown["model_info"].as_object()?;
    let tokens = info.iter().find(|(name, _)| name.ends_with(".context_length"))?.1.as_u64()?;
    u32::try_from(tokens).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_training_is_read() {
        let rows: [(&[u8], Option<u32>); 3] = [
            (
                br#"{"model_info":{"qwen3.context_length":40960,"qwen3.block_count":36}}"#,
                Some(40_960),
            ),
            (br#"{"model_info":{"qwen3.block_count":36}}"#, None),
            (b"<html>", None),
        ];
        for (shown, expected) in rows {
            assert_eq!(trained(shown), expected);
        }
    }
}
