//! Summaries of rows with a common value: how many, how they ended, how long they took.
//! Requests that waited for a model to load are counted apart from the others.

use std::collections::BTreeMap;

use hob_core::statistics::Sample;

use super::rows::{Outcome, RequestRecord};

/// The field by which rows are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    Alias,
    Target,
    Route,
    /// The key of the request. Rows without a key are left out.
    Key,
    /// The error. Rows without an error are left out.
    Error,
}

/// Rows with one common name.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerSummary {
    pub name: String,
    pub requests: usize,
    pub failed: usize,
    pub abandoned: usize,
    /// Milliseconds to the first token or sound, with the model in memory.
    pub first_warm: Sample,
    /// Milliseconds to the first token or sound, with a model that had to be loaded.
    pub first_cold: Sample,
    /// Milliseconds to the end, for complete answers.
    pub total: Sample,
    /// Tokens per second of each answer.
    pub tokens_per_s: Sample,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    pub reasoning_tokens: u64,
    pub audio_s: f64,
}

/// Sorted by name.
pub fn summarise(entries: &[RequestRecord], by: GroupBy) -> Vec<LedgerSummary> {
    let mut groups: BTreeMap<&str, Vec<&RequestRecord>> = BTreeMap::new();
    for entry in entries {
        let name = match by {
            GroupBy::Alias => Some(&entry.alias),
            GroupBy::Target => Some(&entry.target),
            GroupBy::Route => Some(&entry.route),
            GroupBy::Key => entry.key.as_ref(),
            GroupBy::Error => entry.error.as_ref(),
        };
        if let Some(name) = name {
            groups.entry(name).or_default().push(entry);
        }
    }
    groups.into_iter().map(|(name, entries)| LedgerSummary::of(name, &entries)).collect()
}

impl LedgerSummary {
    fn of(name: &str, entries: &[&RequestRecord]) -> LedgerSummary {
        let ended = |outcome| entries.iter().filter(|entry| entry.outcome == outcome).count();
        let sum = |tokens: fn(&RequestRecord) -> u32| {
            entries.iter().map(|entry| u64::from(tokens(entry))).sum::<u64>()
        };
        let first = |is_warm| {
            let those = entries.iter().filter(move |entry| entry.is_warm == is_warm);
            Sample::new(those.filter_map(|entry| entry.first_ms))
        };
        // Embeddings arrive in one piece; mixed with answers, the statistics would describe neither.
        let has_answers = entries.iter().any(|entry| entry.first_ms.is_some());
        let complete = entries.iter().filter(|entry| entry.outcome == Outcome::Complete);
        let complete = complete.filter(|entry| entry.first_ms.is_some() == has_answers);
        LedgerSummary {
            name: name.to_owned(),
            requests: entries.len(),
            failed: ended(Outcome::Failed),
            abandoned: ended(Outcome::Abandoned),
            first_warm: first(true),
            first_cold: first(false),
            total: Sample::new(complete.map(|entry| entry.total_ms)),
            tokens_per_s: Sample::new(entries.iter().filter_map(|entry| entry.tokens_per_s())),
            prompt_tokens: sum(|entry| entry.prompt_tokens),
            cached_tokens: sum(|entry| entry.cached_tokens),
            completion_tokens: sum(|entry| entry.completion_tokens),
            reasoning_tokens: sum(|entry| entry.reasoning_tokens),
            audio_s: entries.iter().map(|entry| entry.audio_ms).sum::<f64>() / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(alias: &str, first_ms: Option<f64>, is_warm: bool) -> RequestRecord {
        let outcome = if first_ms.is_some() { Outcome::Complete } else { Outcome::Failed };
        RequestRecord {
            alias: alias.to_owned(),
            target: "smol".to_owned(),
            first_ms,
            is_warm,
            total_ms: 1000.0,
            predicted_ms: first_ms.map(|_| 500.0),
            completion_tokens: 51,
            outcome,
            error: first_ms.is_none().then(|| "worker_lost".to_owned()),
            ..RequestRecord::default()
        }
    }

    #[test]
    fn cold_and_warm_stay_apart_and_failures_are_counted() {
        let entries = [
            entry("fast", Some(100.0), true),
            entry("fast", Some(8800.0), false),
            entry("fast", None, true),
            entry("local", Some(200.0), true),
        ];
        let by_alias = summarise(&entries, GroupBy::Alias);
        let names: Vec<&str> = by_alias.iter().map(|summary| summary.name.as_str()).collect();
        assert_eq!(names, ["fast", "local"]);
        let fast = &by_alias[0];
        assert_eq!((fast.requests, fast.failed, fast.abandoned), (3, 1, 0));
        assert_eq!(fast.first_warm.p50(), Some(100.0));
        assert_eq!((fast.first_cold.p50(), fast.first_cold.count()), (Some(8800.0), 1));
        assert_eq!((fast.total.count(), fast.tokens_per_s.p50()), (2, Some(100.0)));
        assert_eq!(fast.completion_tokens, 153);
        let by_error = summarise(&entries, GroupBy::Error);
        assert_eq!((by_error.len(), by_error[0].name.as_str()), (1, "worker_lost"));
        assert_eq!(summarise(&entries, GroupBy::Target)[0].requests, 4);
        assert_eq!(summarise(&[], GroupBy::Route), []);
    }

    #[test]
    fn requests_belong_to_the_key_that_they_came_with() {
        let with =
            |key: &str| RequestRecord { key: Some(key.to_owned()), ..entry("fast", None, true) };
        let entries = [with("phone"), with("laptop"), entry("fast", None, true), with("phone")];
        let by_key = summarise(&entries, GroupBy::Key);
        let counts: Vec<(&str, usize)> =
            by_key.iter().map(|summary| (summary.name.as_str(), summary.requests)).collect();
        assert_eq!(counts, [("laptop", 1), ("phone", 2)]);
    }
}
