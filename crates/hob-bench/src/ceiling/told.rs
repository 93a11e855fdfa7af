//! The context that a server says it has: the only proof that it is the one which was started with it.
//! Each engine says it elsewhere, and some say nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::ask::ask;
use crate::target::{Api, Target};

const ASK_WITHIN: Duration = Duration::from_secs(10);

/// A context, and how many requests share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Of one request.
    pub(super) tokens: u64,
    pub(super) places: u64,
}

/// None of a server that does not say it.
pub(super) fn told(target: &Target) -> Option<Told> {
    let paths: &[&str] = match target.api {
        Api::Hob => &["/api/hob/ps"],
        Api::Ollama => &["/api/ps"],
        Api::OpenAi => &["/props", "/v1/models"],
    };
    paths.iter().find_map(|path| in_answer(&asked(target, path), &target.model))
}

fn asked(target: &Target, path: &str) -> Value {
    let asked = ask(&target.endpoint, path, target.key.as_deref(), None, ASK_WITHIN);
    let answered = asked.ok().filter(|asked| asked.status == 200);
    answered.and_then(|asked| serde_json::from_slice(&asked.body).ok()).unwrap_or_default()
}

/// llama-server's settings; lists of hob, Ollama, and of vLLM and its relatives.
fn in_answer(said: &Value, model: &str) -> Option<Told> {
    if let Some(tokens) = said["default_generation_settings"]["n_ctx"].as_u64() {
        let places = said["total_slots"].as_u64().unwrap_or(1);
        return Some(Told { tokens, places });
    }
    let entries = said["models"].as_array().or(said["data"].as_array())?;
    let names = [json!(model), json!(format!("{model}:latest"))];
    let is_this = |entry: &&Value| names.contains(&entry["name"]) || names.contains(&entry["id"]);
    let entry = entries.iter().find(is_this)?;
    let tokens = entry["context_length"].as_u64().or(entry["max_model_len"].as_u64())?;
    Some(Told { tokens, places: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_in_its_own_words() {
        let told = |tokens, places| Some(Told { tokens, places });
        let rows = [
            (r#"{"default_generation_settings":{"n_ctx":4096},"total_slots":4}"#, told(4096, 4)),
            (r#"{"default_generation_settings":{"n_ctx":512}}"#, told(512, 1)),
            (
                r#"{"models":[{"name":"other","context_length":1},{"name":"m","context_length":8192}]}"#,
                told(8192, 1),
            ),
            (r#"{"models":[{"name":"m:latest","context_length":2048}]}"#, told(2048, 1)),
            (r#"{"data":[{"id":"m","max_model_len":32768}]}"#, told(32_768, 1)),
            (r#"{"data":[{"id":"m"}]}"#, None),
            (r#"{"models":[]}"#, None),
            ("null", None),
        ];
        for (said, expected) in rows {
            let said = serde_json::from_str(said).expect("JSON");
            assert_eq!(in_answer(&said, "m"), expected, "{said}");
        }
    }
}
