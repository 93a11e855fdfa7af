//! A context that grows, at a server whose reading costs a known time for each token.
//! It ends where the server says so, or where it refuses.

use crate::stage::{Kept, kept, mock};
use hob_bench::chat::ThinkingChoice;
use hob_bench::experiment::{Axis, Experiment};
use hob_bench::record::{Cache, Record, RecordKind, RunStatus};
use hob_bench::sweep::{ContextOptions, ServerContext};
use hob_bench::terms::Metric;

fn experiment(lengths: &[u32]) -> Experiment {
    let options = ContextOptions {
        lengths: lengths.to_vec(),
        answer: 12,
        cached: 2,
        context: ServerContext::ForEachLength,
    };
    Experiment::of_chat(Axis::Context(options), ThinkingChoice::On)
}

fn swept(pairs: &str, lengths: &[u32]) -> Kept {
    kept(&mock(pairs), 2, |bench| experiment(lengths).measure(bench)).expect("cells")
}

fn shapes(records: &[Record]) -> Vec<(&str, Option<Cache>, Option<bool>)> {
    let shapes = records.iter().map(|record| {
        let workload = &record.workload;
        (workload.shape.as_deref().unwrap_or_default(), workload.cache, workload.cache_verified)
    });
    shapes.collect()
}

#[test]
fn what_is_new_and_what_is_known_are_two_records() {
    // 200 µs for each token that has to be read.
    let got = swept("prefill_us_per_token=200", &[2048, 512]);
    let (cold, cached) = ((Some(Cache::Cold), Some(true)), (Some(Cache::Cached), Some(true)));
    assert_eq!(
        shapes(&got.records),
        [
            ("ctx_512", cold.0, cold.1),
            ("ctx_512", cached.0, cached.1),
            ("ctx_2048", cold.0, cold.1),
            ("ctx_2048", cached.0, cached.1),
        ]
    );
    // Two runs, of one request and of two.
    assert_eq!(got.requests(), [2, 4, 2, 4]);
    let [_, _, cold, cached] = &got.records[..] else { panic!("four records") };
    assert_eq!((cold.kind, cold.status), (RecordKind::CtxSweep, RunStatus::Ok));
    let tokens = cold.workload.prompt_tokens.expect("a count");
    assert_eq!((tokens.target, tokens.p50), (Some(2048), Some(2048)));
    let figure = |record: &Record, metric| record.metrics.figure(metric);
    // 2048 tokens take 410 ms to read, and 5 ms more until the first is there.
    assert!(figure(cold, Metric::TtftMs).is_some_and(|ms| ms > 400.0));
    assert!(figure(cold, Metric::PrefillTokS).is_some_and(|rate| rate < 6_000.0));
    assert!(figure(cached, Metric::TtftMs) < figure(cold, Metric::TtftMs));
    // One token was read: that is not a speed of reading, however soon the answer came.
    assert_eq!(figure(cached, Metric::PrefillTokS), None);
    assert!(figure(cached, Metric::PromptTtftTokS) > figure(cold, Metric::PromptTtftTokS));
    assert!(
        figure(cached, Metric::DecodeTokS).is_some() && figure(cold, Metric::DecodeTokS).is_some()
    );
}

#[test]
fn a_length_that_is_refused_ends_the_sweep_with_a_record() {
    let server = mock("");
    let got = kept(&server, 2, |bench| {
        // The list has no model of this name, so its limit is unknown before.
        bench.target.model = "mock~context_tokens=1000".to_owned();
        experiment(&[512, 4096, 16_384]).measure(bench)
    });
    let got = got.expect("cells");
    let ended = got.records.last().expect("a record");
    assert_eq!((got.records.len(), ended.status), (3, RunStatus::Failed));
    assert_eq!(ended.workload.shape.as_deref(), Some("ctx_4096"));
    let why = ended.invalid_reasons.join(" ");
    assert!(why.contains("12 more do not fit into 1000"), "{why}");
    assert!(got.left_out.is_empty());
}

#[test]
fn a_length_that_the_server_cannot_hold_is_not_asked() {
    let got = swept("context_tokens=1000,tells_context=true", &[16_384, 512, 4096]);
    assert_eq!(got.records.len(), 2);
    assert!(got.records.iter().all(|record| record.status == RunStatus::Ok));
    let said =
        "left out: 4096, 16384; the server's context has 1000 tokens, of which the answer takes 12";
    assert_eq!(got.left_out, [said]);
    let got = swept("context_tokens=1000,tells_context=true", &[u32::MAX]);
    assert_eq!((got.records.len(), got.left_out.len()), (0, 1));
}

#[test]
fn without_counts_of_cached_tokens_no_cache_is_verified() {
    let got = swept("cache=false", &[512]);
    let unproven = [Cache::Cold, Cache::Cached].map(|cache| ("ctx_512", Some(cache), Some(false)));
    assert_eq!(shapes(&got.records), unproven);
}
