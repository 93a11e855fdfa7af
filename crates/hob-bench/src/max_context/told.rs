//! The context that a server says it has: the only proof that it is the one which was started with it.
//! Each engine says it elsewhere, and some say nothing.

use std::time::Duration;

use serde_json::{Value, json};

use super::search::Search;
use crate::ask::ask;
use crate::record::AttemptResult;
use crate::target::{Api, Target};

const ASK_WITHIN: Duration = Duration::from_secs(10);
/// Engines round a context up, by no more than this.
const ROUNDED_MAX: u64 = 1024;

/// A context, and how many requests share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Of one request.
    pub(super) tokens: u64,
    pub(super) places: u64,
}

/// Why another server answers than the one that was started, or one that took less than was asked.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) result: AttemptResult,
    pub(super) said: String,
    pub(super) takes: Option<u64>,
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

/// None where the server that answers is the one that was started with this context.
pub(super) fn mismatch(ctx: u64, told: Told, search: &Search) -> Option<Mismatch> {
    let Told { tokens, places } = told;
    if (ctx..=ctx + ROUNDED_MAX).contains(&tokens) {
        return None;
    }
    let failed = |result, said, takes| Some(Mismatch { result, said, takes });
    if places > 1 && tokens < ctx && tokens * places + ROUNDED_MAX >= ctx {
        let said =
            format!("{places} requests share the context, {tokens} tokens each: start it for one");
        return failed(AttemptResult::Unsupported, said, None);
    }
    let said = format!("it was started with {ctx} tokens and says that it has {tokens}");
    let was_before = search.tried().iter().any(|one| one.ctx == tokens);
    let said_it_again = search
        .tried()
        .last()
        .is_some_and(|last| last.ctx == ctx && last.result == AttemptResult::Stale);
    let is_its_most = search.tried().iter().any(|one| one.takes == Some(tokens));
    // Who started an earlier one again says so once; an engine that takes no more says it each time.
    if tokens > ctx || (was_before && !said_it_again && !is_its_most) {
        return failed(AttemptResult::Stale, said, None);
    }
    failed(AttemptResult::Unsupported, said, Some(tokens))
}

#[cfg(test)]
mod tests {
    use AttemptResult::{Ok as Fine, Stale, Unsupported};

    use super::super::search::{Span, Tried};
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

    #[test]
    fn a_server_is_believed_only_with_the_context_that_it_was_started_with() {
        let span = Span { lo: 1024, hi: 65_536, granule: 256 };
        let plain =
            |ctx, result| Tried { ctx, result, takes: None, memory: None, decode_tok_s: None };
        let rows = [
            (8192, 8192, 1, Vec::new(), None, None),
            (8000, 8192, 1, Vec::new(), None, None),
            (8192, 2048, 4, Vec::new(), Some(Unsupported), None),
            (16_384, 8192, 1, Vec::new(), Some(Unsupported), Some(8192)),
            (16_384, 8192, 1, vec![plain(8192, Fine)], Some(Stale), None),
            (
                16_384,
                8192,
                1,
                vec![plain(8192, Fine), plain(16_384, Stale)],
                Some(Unsupported),
                Some(8192),
            ),
            (
                16_384,
                8192,
                1,
                vec![Tried { takes: Some(8192), ..plain(65_536, Unsupported) }, plain(8192, Fine)],
                Some(Unsupported),
                Some(8192),
            ),
            (8192, 16_384, 1, vec![plain(16_384, Fine)], Some(Stale), None),
        ];
        for (ctx, tokens, places, tried, expected, takes) in rows {
            let mut search = Search::new(span, None);
            tried.into_iter().for_each(|one| search.add(one));
            let got = mismatch(ctx, Told { tokens, places }, &search);
            assert_eq!(got.as_ref().map(|other| other.result), expected, "{ctx} {tokens}");
            assert_eq!(got.and_then(|other| other.takes), takes, "{ctx} {tokens}");
        }
    }
}
