//! Reads the context length that a server reports, and compares it with the length that the server was started with.
//! Another length shows that an earlier server still answers, or that the server cut the context. Some engines report none.

use serde_json::{Value, json};

use super::search::Search;
use super::symptom::Conclusion;
use crate::record::AttemptResult;
use crate::target::{Api, Target};

/// Engines round a context up by at most so many tokens.
const ROUNDED_MAX: u64 = 1024;

/// A reported context length, and the number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReportedContext {
    /// Tokens for one request.
    pub(super) tokens: u64,
    pub(super) slots: u64,
}

/// Asks the server where its engine reports the context. None if it does not.
pub(super) fn reported_context(target: &Target) -> Option<ReportedContext> {
    let paths: &[&str] = match target.api {
        Api::Hob => &["/api/hob/ps"],
        Api::Ollama => &["/api/ps"],
        Api::OpenAi => &["/props", "/v1/models"],
    };
    paths.iter().find_map(|path| in_answer(&target.json_of(path, None), &target.model))
}

/// Reads llama-server's settings, and the lists of hob, Ollama, vLLM and similar engines.
fn in_answer(said: &Value, model: &str) -> Option<ReportedContext> {
    if let Some(tokens) = said["default_generation_settings"]["n_ctx"].as_u64() {
        let slots = said["total_slots"].as_u64().unwrap_or(1);
        return Some(ReportedContext { tokens, slots });
    }
    let entries = said["models"].as_array().or(said["data"].as_array())?;
    let names = [json!(model), json!(format!("{model}:latest"))];
    let is_this = |entry: &&Value| names.contains(&entry["name"]) || names.contains(&entry["id"]);
    let entry = entries.iter().find(is_this)?;
    let tokens = entry["context_length"].as_u64().or(entry["max_model_len"].as_u64())?;
    Some(ReportedContext { tokens, slots: 1 })
}

/// Why the answering server is not the one that was started, or has a shorter context. None: nothing is wrong.
pub(super) fn mismatch(ctx: u64, reported: ReportedContext, search: &Search) -> Option<Conclusion> {
    let ReportedContext { tokens, slots } = reported;
    if (ctx..=ctx + ROUNDED_MAX).contains(&tokens) {
        return None;
    }
    let failed =
        |result, said, ctx_max| Some(Conclusion { ctx_max, ..Conclusion::failed(result, said) });
    if slots > 1 && tokens < ctx && tokens * slots + ROUNDED_MAX >= ctx {
        let said = format!(
            "{slots} slots share the context, {tokens} tokens each: start the server with one slot"
        );
        return failed(AttemptResult::Unsupported, said, None);
    }
    let said = format!("the server was started with {ctx} tokens and reports {tokens}");
    let was_before = search.tried().iter().any(|one| one.ctx == tokens);
    let said_it_again = search
        .tried()
        .last()
        .is_some_and(|last| last.ctx == ctx && last.result == AttemptResult::Stale);
    let is_its_most = search.tried().iter().any(|one| one.ctx_max == Some(tokens));
    // A server of an earlier start reports its context once; an engine with a maximum reports it each time.
    if tokens > ctx || (was_before && !said_it_again && !is_its_most) {
        return failed(AttemptResult::Stale, said, None);
    }
    failed(AttemptResult::Unsupported, said, Some(tokens))
}

#[cfg(test)]
mod tests {
    use AttemptResult::{Ok as Fine, Stale, Unsupported};

    use super::super::attempt_result::AttemptResultAt;
    use super::super::search::ContextRange;
    use super::*;

    #[test]
    fn the_context_is_read_from_the_field_of_each_engine() {
        let reported = |tokens, slots| Some(ReportedContext { tokens, slots });
        let rows = [
            (
                r#"{"default_generation_settings":{"n_ctx":4096},"total_slots":4}"#,
                reported(4096, 4),
            ),
            (r#"{"default_generation_settings":{"n_ctx":512}}"#, reported(512, 1)),
            (
                r#"{"models":[{"name":"other","context_length":1},{"name":"m","context_length":8192}]}"#,
                reported(8192, 1),
            ),
            (r#"{"models":[{"name":"m:latest","context_length":2048}]}"#, reported(2048, 1)),
            (r#"{"data":[{"id":"m","max_model_len":32768}]}"#, reported(32_768, 1)),
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
    fn a_server_must_report_the_context_of_its_start() {
        let range = ContextRange { lo: 1024, hi: 65_536, granule: 256 };
        let plain = AttemptResultAt::new;
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
                vec![
                    AttemptResultAt { ctx_max: Some(8192), ..plain(65_536, Unsupported) },
                    plain(8192, Fine),
                ],
                Some(Unsupported),
                Some(8192),
            ),
            (8192, 16_384, 1, vec![plain(16_384, Fine)], Some(Stale), None),
        ];
        for (ctx, tokens, slots, tried, expected, ctx_max) in rows {
            let mut search = Search::new(range, None);
            tried.into_iter().for_each(|one| search.add(one));
            let got = mismatch(ctx, ReportedContext { tokens, slots }, &search);
            assert_eq!(got.as_ref().map(|other| other.result), expected, "{ctx} {tokens}");
            assert_eq!(got.and_then(|other| other.ctx_max), ctx_max, "{ctx} {tokens}");
        }
    }
}
