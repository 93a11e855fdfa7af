//! Files that the programs themselves wrote, against `hob mock --ttft-ms 60 --itl-ms 5` on two busy cores.
//! `real/README.md` says which versions and command lines, and what was cut from the files.

use super::*;

const AIPERF: &str = include_str!("real/aiperf.json");
const AIPERF_REQUESTS: &str = include_str!("real/aiperf.jsonl");
const GUIDELLM: &str = include_str!("real/guidellm.json");
const GUIDELLM_YAML: &str = include_str!("real/guidellm.yaml");
const VLLM: &str = include_str!("real/vllm.json");
const LLAMA_BENCH: &str = include_str!("real/llama_bench.json");
const LLAMA_BENCHY: &str = include_str!("real/llama_benchy.json");

fn read(name: &str, text: &str, format: ImportFormat) -> Vec<Imported> {
    assert_eq!(format::recognise(name, text).expect(name), format, "{name}");
    import(name, text.as_bytes(), None).expect(name)
}

fn near(record: &Record, metric: Metric, expected: f64) {
    let found = record.metrics.figure(metric).unwrap_or_else(|| panic!("{metric:?} is missing"));
    assert!((found - expected).abs() < 1e-3, "{metric:?} is {found} and not {expected}");
}

#[test]
fn aiperfs_summary_has_model_load_and_medians() {
    let [one] = &read("profile_export_aiperf.json", AIPERF, ImportFormat::AiPerf)[..] else {
        panic!("one run")
    };
    let record = &one.record;
    assert_eq!(record.source.version.as_deref(), Some("0.13.0"));
    assert_eq!((record.model.name.as_str(), record.workload.concurrency), ("mock", Some(2)));
    assert_eq!((record.workload.requests, record.metrics.errors), (Some(6), Some(0)));
    assert_eq!(record.count_source, Some(CountSource::Usage));
    near(record, Metric::TtftMs, 91.155_114);
    near(record, Metric::TpotMs, 5.642_031);
    near(record, Metric::DecodeTokS, 177.252_435);
    near(record, Metric::CompletionTokens, 16.0);
    let ttft = record.metrics.get(Metric::TtftMs).expect("a spread");
    assert_eq!((ttft.n, ttft.p95), (Some(6), None), "six requests are too few for a percentile");
    assert!(record.time.started.is_some() && record.time.ended.is_some());
}

#[test]
fn aiperfs_requests_take_model_and_load_from_their_summary() {
    let mut imported = read("profile_export.jsonl", AIPERF_REQUESTS, ImportFormat::AiPerf);
    let record = &imported[0].record;
    assert_eq!((record.model.name.as_str(), record.workload.concurrency), ("unnamed", None));
    assert_eq!((record.workload.requests, record.workload.warmup), (Some(6), Some(2)));
    near(record, Metric::TtftMs, 91.155_114);
    complete("profile_export.jsonl", &mut imported, AIPERF.as_bytes()).expect("a summary");
    let record = &imported[0].record;
    assert_eq!((record.model.name.as_str(), record.workload.concurrency), ("mock", Some(2)));
    assert_eq!(record.workload.r#loop, Some(Loop::Closed));
    assert!(complete("a", &mut imported, b"[]").is_err());
}

#[test]
fn guidellm_has_the_same_results_as_json_and_as_yaml() {
    let json = read("benchmarks.json", GUIDELLM, ImportFormat::GuideLlm);
    let yaml = read("benchmarks.yaml", GUIDELLM_YAML, ImportFormat::GuideLlm);
    for [one] in [&json, &yaml].map(|all| all.first_chunk().expect("one benchmark")) {
        let record = &one.record;
        assert_eq!(record.source.version.as_deref(), Some("0.8.1"));
        assert_eq!((record.model.name.as_str(), record.workload.concurrency), ("mock", Some(2)));
        assert_eq!((record.workload.requests, one.samples.len()), (Some(6), 6));
        near(record, Metric::TtftMs, 68.628_788);
        near(record, Metric::TpotMs, 4.784_171);
    }
    assert_eq!(json[0].record.metrics, yaml[0].record.metrics);
}

#[test]
fn llama_benchy_has_a_record_for_each_depth_and_number_of_users() {
    let all = read("benchy.json", LLAMA_BENCHY, ImportFormat::LlamaBenchy);
    let rows = [
        (1, "64/16", 311.479_205, 964.933_327),
        (2, "64/16", 204.231_291, 1_168.581_819),
        (1, "ctx_128", 234.765_441, 3_550.465_981),
        (2, "ctx_128", 172.101_163, 4_365.055_946),
    ];
    assert_eq!(all.len(), rows.len());
    for (one, (users, shape, decode, prefill)) in all.iter().zip(rows) {
        let record = &one.record;
        assert_eq!(record.source.version.as_deref(), Some("0.4.0"));
        assert_eq!(record.workload.concurrency, Some(users));
        assert_eq!(record.workload.shape.as_deref(), Some(shape));
        near(record, Metric::DecodeTokS, decode);
        near(record, Metric::PrefillTokS, prefill);
    }
}

#[test]
fn vllms_client_says_the_same_medians_as_its_requests() {
    let [one] = &read("vllm.json", VLLM, ImportFormat::Vllm)[..] else { panic!("one run") };
    let record = &one.record;
    assert_eq!((record.model.name.as_str(), record.workload.concurrency), ("mock", Some(2)));
    assert_eq!((record.workload.r#loop, record.workload.rate), (Some(Loop::Closed), None));
    assert_eq!(record.engine.name, None, "the client's protocol is not an engine");
    assert_eq!((one.samples.len(), record.metrics.errors), (6, Some(0)));
    // The file's own summary, and the values computed from single requests.
    near(record, Metric::TtftMs, 87.432_218);
    near(record, Metric::TpotMs, 3.276_430);
    near(record, Metric::IcgMs, 0.011_863);
    near(record, Metric::ThroughputTokS, 222.393_419);
    assert!(!format!("{one:?}").contains("wörd"), "answers are not kept");
}

#[test]
fn llama_bench_has_a_test_for_each_row_and_leaves_what_it_chose_by_itself_unknown() {
    let all = read("bench.json", LLAMA_BENCH, ImportFormat::LlamaBench);
    let told = all.iter().map(|one| {
        let metrics = &one.record.metrics;
        let is_reading = metrics.get(Metric::PrefillTokS).is_some();
        (one.record.workload.shape.as_deref().unwrap_or_default(), one.record.kind, is_reading)
    });
    let expected = [
        ("pp32", RecordKind::Llm, true),
        ("tg8", RecordKind::Llm, false),
        ("pp32 @ d64", RecordKind::CtxSweep, true),
        ("tg8 @ d64", RecordKind::CtxSweep, false),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let record = &all[0].record;
    near(record, Metric::PrefillTokS, 1.517_32);
    assert_eq!((record.engine.params.flash_attn, record.engine.params.ngl), (None, None));
    assert_eq!(record.model.quant.as_deref(), Some("Q4_1"));
    assert_eq!(record.host.cpu.model.as_deref(), Some("AMD EPYC"));
}
