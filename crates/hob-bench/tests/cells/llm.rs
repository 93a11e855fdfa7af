//! Whole cells against a server whose answers are known: what is found out of it, what is measured, what is doubted.

use crate::stage::{cold, experiment, kept, measured, mock};
use hob_bench::chat::{Prompts, ThinkingSwitch};
use hob_bench::drive::Arrivals;
use hob_bench::experiment::{Axis, Experiment};
use hob_bench::record::{Cache, CountSource, Doubt, Reasoning, RecordKind, RunStatus};
use hob_bench::runs::BenchError;
use hob_bench::target::{Api, Target, TargetError};
use hob_bench::terms::Metric;
use hob_bench::timeline::RequestFault;

#[test]
fn cold_prompts_are_proven_to_be_cold() {
    for api in [Api::OpenAi, Api::Hob] {
        let got = measured(&mock(""), Some(api), &experiment(Prompts::Cold), 2).expect("cells");
        let [(record, samples)] = &got[..] else { panic!("one cell") };
        assert_eq!(record.workload.reasoning, None);
        assert_eq!((record.status, samples.len()), (RunStatus::Ok, 8));
        let workload = &record.workload;
        assert_eq!((workload.cache, workload.cache_verified), (Some(Cache::Cold), Some(true)));
        // As many words as make the tokens that the shape wants; a token is a word here.
        assert_eq!(workload.prompt_tokens.and_then(|tokens| tokens.p50), Some(64));
        assert_eq!(record.count_source, Some(CountSource::Usage));
        let figure = |metric| record.metrics.figure(metric).expect("a figure");
        assert_eq!(figure(Metric::CompletionTokens), 16.0);
        assert!(figure(Metric::TtftMs) >= 4.0 && figure(Metric::TpotMs) >= 0.8);
        assert!(record.confidence.reasons.contains(&Doubt::FewRuns));
        assert!(record.harness.as_ref().is_some_and(|harness| harness.selftest.is_some()));
    }
}

#[test]
fn cached_prompts_are_proven_to_be_cached_and_never_mixed() {
    let got = measured(&mock(""), None, &experiment(Prompts::Cached), 2).expect("cells");
    let workload = &got[0].0.workload;
    assert_eq!((workload.cache, workload.cache_verified), (Some(Cache::Cached), Some(true)));
    let silent =
        measured(&mock("cache=false"), None, &experiment(Prompts::Cached), 2).expect("cells");
    let record = &silent[0].0;
    assert_eq!(record.workload.cache_verified, Some(false));
    assert!(record.confidence.reasons.contains(&Doubt::CacheUnverified));
}

#[test]
fn thinking_is_measured_with_and_without_and_off_is_proven() {
    let got = cold("reasoning_tokens=6,switch=enable_thinking", 2);
    let reasoned: Vec<_> = got
        .iter()
        .map(|(record, _)| {
            let figure = record.metrics.figure(Metric::ReasoningTokens);
            (record.workload.reasoning_switch.as_deref(), record.workload.reasoning, figure)
        })
        .collect();
    let on = (None, Some(Reasoning::Enabled), Some(6.0));
    let off = (Some(ThinkingSwitch::EnableThinking.name()), Some(Reasoning::Disabled), Some(0.0));
    assert_eq!(reasoned, [on, off]);

    let got = cold("reasoning_tokens=6,switch=none", 2);
    let record = &got[0].0;
    assert_eq!((got.len(), record.workload.reasoning), (1, Some(Reasoning::CannotDisable)));
    assert!(record.invalid_reasons.contains(&"thinking cannot be turned off".to_owned()));
}

#[test]
fn an_ollama_server_is_measured_in_its_own_words() {
    let got = measured(&mock(""), Some(Api::Ollama), &experiment(Prompts::Cold), 2).expect("cells");
    let record = &got[0].0;
    assert_eq!(record.count_source, Some(CountSource::Usage));
    assert_eq!(record.metrics.figure(Metric::CompletionTokens), Some(16.0));
    // It does not say what was cached, so nothing is proven.
    assert_eq!(record.workload.cache_verified, Some(false));
}

#[test]
fn a_server_that_lies_or_fails_makes_no_figure_silently() {
    let double = cold("usage=double", 2);
    let record = &double[0].0;
    assert_eq!(record.metrics.figure(Metric::CompletionTokens), Some(16.0));
    let reason = "the server's token count is impossible for";
    assert!(record.invalid_reasons.iter().any(|said| said.starts_with(reason)), "{record:?}");
    let silent = cold("usage=nothing", 2);
    assert!(silent[0].0.confidence.reasons.contains(&Doubt::CountsNotUsage));
    for (pairs, status) in [("status=401", 401), ("status=429", 429), ("status=500", 500)] {
        let refused = measured(&mock(pairs), None, &experiment(Prompts::Cold), 2).err();
        let is_named = matches!(&refused, Some(BenchError::Fault(RequestFault::Refused { status: said, .. })) if *said == status);
        assert!(is_named, "{refused:?}");
    }
    let cut = measured(&mock("drop_at=9"), None, &experiment(Prompts::Cold), 2);
    assert!(matches!(cut, Err(BenchError::Fault(RequestFault::CutOff { chunks: 9 }))), "{cut:?}");
}

#[test]
fn a_server_that_fails_before_the_first_run_leaves_a_record_of_that() {
    let got = kept(&mock("status=500"), 1, |bench| {
        let error = experiment(Prompts::Cold).measure(bench).expect_err("it refuses");
        Ok(bench.keep_failure(RecordKind::Llm, &error)?.into_iter().collect())
    });
    let got = got.expect("records");
    let [record] = &got.records[..] else { panic!("{:?}", got.records) };
    assert_eq!((record.kind, record.status), (RecordKind::Llm, RunStatus::Failed));
    assert!(record.invalid_reasons[0].contains("500"), "{:?}", record.invalid_reasons);
    let none = kept(&mock("status=500"), 1, |bench| {
        Ok(bench.keep_failure(RecordKind::Llm, &BenchError::NoWeights)?.into_iter().collect())
    });
    assert_eq!(none.expect("no record").records, [], "what is not a fault of the server");
}

#[test]
fn requests_at_a_rate_count_from_when_they_were_due() {
    let rate = Arrivals::Constant { per_second: 40.0, connections: 16 };
    let at_rate = Experiment { axis: Axis::Load(vec![rate]), ..experiment(Prompts::Cold) };
    let got = measured(&mock(""), None, &at_rate, 2).expect("cells");
    let (record, samples) = &got[0];
    // Two runs of half a second.
    assert_eq!((record.workload.rate, samples.len()), (Some(40.0), 40));
    let figure = |metric| record.metrics.figure(metric).expect("a figure");
    assert!(figure(Metric::TtftSchedMs) >= figure(Metric::TtftMs));
}

#[test]
fn what_waited_for_this_client_is_no_measurement_of_the_server() {
    let one = Arrivals::Constant { per_second: 40.0, connections: 1 };
    let at_rate = Experiment { axis: Axis::Load(vec![one]), ..experiment(Prompts::Cold) };
    let got = measured(&mock("ttft_ms=100"), None, &at_rate, 1).expect("cells");
    let why = got[0].0.invalid_reasons.join("; ");
    assert!(why.contains("after they were due"), "{why}");
}

#[test]
fn a_prompt_that_was_cut_is_not_the_one_that_was_sent() {
    let got = cold("context_tokens=60,truncates=true", 1);
    let why = got[0].0.invalid_reasons.join("; ");
    assert!(why.contains("tokens of a prompt of about 64"), "{why}");
    let whole = cold("", 1);
    let why = whole[0].0.invalid_reasons.join("; ");
    assert!(!why.contains("it cut the prompt"), "{why}");
}

#[test]
fn stalls_are_counted_in_the_record() {
    let got = cold("stall_ms=600,stall_at=8", 1);
    let (record, samples) = &got[0];
    let stall = record.metrics.stall.expect("stalls");
    assert!(stall.count >= samples.len() as u64 && stall.worst_ms >= 500.0, "{stall:?}");
}

#[test]
fn nobody_there_is_said_at_once() {
    // The server ends with this statement.
    let url = mock("").url();
    assert!(matches!(Target::find(&url, None, None, None), Err(TargetError::Ask(_))));
}
