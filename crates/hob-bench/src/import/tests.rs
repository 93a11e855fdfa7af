//! Each format with a small file: the fields that are read, what is lost, and errors.

mod real;

use super::*;
use crate::record::{AttemptResult, Cache, CountSource, Loop, RecordKind, RunStatus};
use crate::terms::Metric;

const ORIGINALS: [(ImportFormat, &str, &str); 7] = [
    (ImportFormat::LlamaBench, "llama_bench.json", include_str!("tests/llama_bench.json")),
    (ImportFormat::Vllm, "vllm.json", include_str!("tests/vllm.json")),
    (ImportFormat::Vllm, "vllm_summary.json", include_str!("tests/vllm_summary.json")),
    (ImportFormat::GuideLlm, "guidellm.json", include_str!("tests/guidellm.json")),
    (ImportFormat::AiPerf, "aiperf.jsonl", include_str!("tests/aiperf.jsonl")),
    (ImportFormat::LlamaBenchy, "llama_benchy.json", include_str!("tests/llama_benchy.json")),
    (ImportFormat::Published, "runs.yaml", PUBLISHED),
];

fn imported(name: &str) -> Vec<Imported> {
    let (_, _, text) =
        ORIGINALS.into_iter().find(|(_, known, _)| *known == name).expect("a fixture");
    import(name, text.as_bytes(), None).expect("imported")
}

/// Checks the figures of the run at this index.
fn check(name: &str, at: usize, expected: &[(Metric, f64)]) {
    let metrics = &imported(name)[at].record.metrics;
    for (metric, value) in expected {
        let found =
            metrics.figure(*metric).unwrap_or_else(|| panic!("{name}: {metric:?} is missing"));
        assert!((found - value).abs() <= value.abs() * 1e-3, "{name}: {metric:?} is {found}");
    }
    let named: Vec<Metric> = expected.iter().map(|(metric, _)| *metric).collect();
    let others: Vec<_> = metrics.spreads.keys().filter(|metric| !named.contains(metric)).collect();
    assert!(others.is_empty(), "{name}: also {others:?}");
}

#[test]
fn the_format_is_recognised_by_the_content() {
    for (format, name, text) in ORIGINALS {
        assert_eq!(format::recognise(name, text).expect(name), format, "{name}");
    }
}

#[test]
fn every_import_is_unverified_and_names_its_original() {
    for (format, name, text) in ORIGINALS {
        let imported = import(name, text.as_bytes(), Some(format)).expect(name);
        for Imported { record, .. } in &imported {
            assert_eq!(record.confidence.label, Label::Unverified, "{name}");
            assert_eq!(record.confidence.reasons, [Doubt::Imported], "{name}");
            assert_eq!(record.source.r#type, SourceType::Import, "{name}");
            assert_eq!(
                record.source.sha256.as_deref(),
                Some(sha256_hex(text.as_bytes()).as_str()),
                "{name}"
            );
            assert!(record.harness.is_none(), "{name}");
        }
        let ids: BTreeSet<Uuid> = imported.iter().map(|one| one.record.id).collect();
        assert_eq!(ids.len(), imported.len(), "{name}");
        let again = import(name, text.as_bytes(), None).expect(name);
        assert_eq!(again, imported, "{name}: the same original, the same records");
    }
}

#[test]
fn a_llama_bench_row_is_prefill_or_decode() {
    check("llama_bench.json", 0, &[(Metric::PrefillTokS, 61.0)]);
    check("llama_bench.json", 1, &[(Metric::DecodeTokS, 5.5)]);
    let [first, deep] = &imported("llama_bench.json")[..] else { panic!("two rows") };
    let record = &first.record;
    assert_eq!(record.model.name, "Qwen3-8B-Q4_K_M");
    assert_eq!(record.model.quant.as_deref(), Some("Q4_K_M"));
    assert_eq!(record.model.family.as_deref(), Some("Qwen3"));
    assert_eq!(record.engine.version.as_deref(), Some("b9001 (4a3ed6c)"));
    assert_eq!(record.engine.params.flash_attn, Some(true));
    assert_eq!(record.host.accelerators[0].name, "Radeon Vega 8");
    assert_eq!(record.workload.shape.as_deref(), Some("pp512"));
    assert_eq!(record.metrics.get(Metric::PrefillTokS).and_then(|figures| figures.n), Some(3));
    assert!(
        record.source.lossy.iter().any(|lost| lost.contains("split_mode")),
        "{:?}",
        record.source.lossy
    );
    assert_eq!(
        (deep.record.kind, deep.record.workload.shape.as_deref()),
        (RecordKind::CtxSweep, Some("tg128 @ d4096"))
    );
    assert_eq!(deep.record.engine.params.flash_attn, Some(true));
}

#[test]
fn llama_bench_rows_at_one_depth_have_their_own_shapes_and_flags() {
    let row = |prompt: u32, answer: u32, flash_attn: i32| {
        format!(
            r#"{{"model_filename":"m.gguf","n_prompt":{prompt},"n_gen":{answer},"n_depth":4096,"flash_attn":{flash_attn},"avg_ts":5.5}}"#
        )
    };
    let text = format!("[{},{},{}]", row(512, 0, -1), row(0, 128, 0), row(512, 128, 1));
    let all = import("b.json", text.as_bytes(), None).expect("imported");
    let found = all.iter().map(|one| {
        (
            one.record.workload.shape.as_deref().unwrap_or_default(),
            one.record.engine.params.flash_attn,
        )
    });
    let expected = [
        ("pp512 @ d4096", None),
        ("tg128 @ d4096", Some(false)),
        ("pp512+tg128 @ d4096", Some(true)),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn a_llama_bench_row_without_parameters_has_no_bits_per_weight() {
    for (params, expected) in [(0, (None, None)), (2_000_000_000, (Some(2.0), Some(4.0)))] {
        let text = format!(
            r#"[{{"model_filename":"m.gguf","model_size":1000000000,"model_n_params":{params},"n_prompt":512,"n_gen":0,"avg_ts":5.5}}]"#
        );
        let model = &import("b.json", text.as_bytes(), None).expect("imported")[0].record.model;
        assert_eq!((model.params_b, model.bpw), expected);
    }
}

#[test]
fn vllm_has_a_median_and_only_poisson_arrivals_are_recorded() {
    let results = |burstiness: f64| {
        format!(
            r#"{{"model_id":"m","request_rate":2.0,"burstiness":{burstiness},"completed":4,"request_throughput":1.0,
            "total_input_tokens":4,"total_output_tokens":8,"ttfts":[0.1034,0.1058,0.12,0.09]}}"#
        )
    };
    let of = |burstiness: f64| {
        let imported = import("v.json", results(burstiness).as_bytes(), None).expect("imported");
        imported.into_iter().next().expect("a run").record
    };
    let poisson = of(1.0);
    let ttft_ms = poisson.metrics.figure(Metric::TtftMs).expect("a median");
    assert!((ttft_ms - 104.6).abs() < 1e-9, "{ttft_ms}");
    assert_eq!(poisson.workload.arrival, Some(crate::record::Arrival::Poisson));
    let bursty = of(0.5);
    assert_eq!((bursty.workload.arrival, bursty.workload.rate), (None, Some(2.0)));
    assert!(bursty.source.lossy.iter().any(|lost| lost.contains("burstiness 0.5")));
}

#[test]
fn vllm_figures_are_computed_from_detailed_requests() {
    let expected = [
        (Metric::TtftMs, 150.0),
        (Metric::E2eMs, 210.0),
        (Metric::TpotMs, 30.0),
        (Metric::DecodeTokS, 33.333),
        (Metric::IcgMs, 30.0),
        (Metric::ThroughputTokS, 1.5),
        (Metric::RequestsS, 0.5),
    ];
    check("vllm.json", 0, &expected);
    let one = &imported("vllm.json")[0];
    assert_eq!(one.samples.len(), 3);
    assert_eq!((one.samples[1].t_sched_us, one.samples[1].ttft_us), (Some(500_000), Some(200_000)));
    assert_eq!(one.record.metrics.errors, Some(1));
    assert_eq!(one.record.workload.r#loop, Some(Loop::Closed));
    assert_eq!(one.record.model.quant.as_deref(), Some("AWQ"));
    let kept = format!("{:?} {:?}", one.samples, one.record);
    assert!(!kept.contains("secret") && !kept.contains("Traceback"), "texts are not kept");
}

#[test]
fn vllm_without_details_has_medians() {
    let expected = [
        (Metric::TtftMs, 90.0),
        (Metric::TpotMs, 20.0),
        (Metric::DecodeTokS, 50.0),
        (Metric::ThroughputTokS, 10.0),
        (Metric::RequestsS, 1.0),
    ];
    check("vllm_summary.json", 0, &expected);
    let record = &imported("vllm_summary.json")[0].record;
    assert_eq!((record.workload.r#loop, record.workload.rate), (Some(Loop::Open), Some(2.0)));
    assert!(record.source.lossy.iter().any(|lost| lost.contains("--save-detailed")));
}

#[test]
fn a_zero_of_vllm_is_no_figure() {
    // Each answer has one token, so there is no time between tokens.
    let text = r#"{"model_id":"m","completed":4,"request_throughput":1.0,"total_input_tokens":400,
        "total_output_tokens":4,"mean_ttft_ms":100.0,"median_ttft_ms":90.0,"mean_tpot_ms":0.0,
        "median_tpot_ms":0.0,"mean_itl_ms":0.0,"median_itl_ms":0.0}"#;
    let one = &import("v.json", text.as_bytes(), None).expect("imported")[0];
    assert_eq!(one.record.metrics.figure(Metric::TtftMs), Some(90.0));
    for metric in [Metric::TpotMs, Metric::DecodeTokS, Metric::IcgMs] {
        assert_eq!(one.record.metrics.get(metric), None, "{metric:?}");
    }
}

#[test]
fn guidellm_separates_thinking_from_the_answer() {
    let expected = [
        (Metric::DispatchMs, 2.0),
        (Metric::TtftMs, 100.0),
        (Metric::TtfatMs, 140.0),
        (Metric::SilenceMs, 40.0),
        (Metric::E2eMs, 180.0),
        (Metric::TpotMs, 20.0),
        (Metric::DecodeTokS, 50.0),
        (Metric::CompletionTokens, 5.0),
    ];
    check("guidellm.json", 0, &expected);
    let record = &imported("guidellm.json")[0].record;
    assert_eq!((record.workload.concurrency, record.metrics.errors), (Some(4), Some(1)));
    assert_eq!(record.workload.shape.as_deref(), Some("64/5"));
}

#[test]
fn aiperf_warm_up_requests_are_left_out() {
    let expected = [
        (Metric::TtftMs, 100.0),
        (Metric::TtfatMs, 740.0),
        (Metric::IcgMs, 20.0),
        (Metric::TpotMs, 20.0),
        (Metric::DecodeTokS, 50.0),
        (Metric::CompletionTokens, 64.0),
        (Metric::DispatchMs, 1.0),
    ];
    check("aiperf.jsonl", 0, &expected);
    let one = &imported("aiperf.jsonl")[0];
    assert_eq!((one.record.workload.requests, one.record.workload.warmup), (Some(2), Some(1)));
    assert_eq!(one.record.metrics.get(Metric::IcgMs).and_then(|figures| figures.max), Some(500.0));
    assert_eq!(one.samples[0].gaps_us, [20_000, 20_000, 500_000]);
    assert!(one.record.source.lossy.iter().any(|lost| lost.contains("output_inflation")));
    assert!(!format!("{one:?}").contains("prompt in it"), "error messages are not kept");
}

#[test]
fn llama_benchy_has_a_record_for_each_number_of_users() {
    let alone = [
        (Metric::PrefillTokS, 1800.0),
        (Metric::DecodeTokS, 42.0),
        (Metric::ThroughputTokS, 42.0),
        (Metric::TtfbMs, 480.0),
        (Metric::TtftMs, 505.0),
    ];
    check("llama_benchy.json", 0, &alone);
    check("llama_benchy.json", 1, &[(Metric::DecodeTokS, 30.25), (Metric::ThroughputTokS, 60.0)]);
    let record = &imported("llama_benchy.json")[0].record;
    assert_eq!(
        (record.workload.cache, record.count_source),
        (Some(Cache::Cold), Some(CountSource::Chunks))
    );
    assert_eq!(
        record.time.started.map(|time| time.to_string()).as_deref(),
        Some("2026-11-02T10:00:00Z")
    );
}

#[test]
fn every_published_run_is_part_of_a_record() {
    let all = imported("runs.yaml");
    let find = |kind: RecordKind, model: &'static str| {
        all.iter()
            .map(|one| &one.record)
            .filter(move |record| record.kind == kind && record.model.name == model)
    };
    let kokoro: Vec<_> = find(RecordKind::Tts, "Kokoro").collect();
    assert_eq!(kokoro.len(), 4, "three texts and their mean");
    assert_eq!(kokoro[0].metrics.figure(Metric::WallMs), Some(80.0));
    assert_eq!(kokoro[3].tts.as_ref().and_then(|tts| tts.tier), Some(1));
    let outetts = find(RecordKind::Tts, "OuteTTS 1.0 0.6B").next().expect("the one that failed");
    assert_eq!((outetts.status, outetts.invalid_reasons.len()), (RunStatus::Failed, 1));

    let ceiling = find(RecordKind::MaxContext, "Qwen3.5-9B").find_map(|record| {
        record.max_context.as_ref().filter(|ceiling| !ceiling.attempts.is_empty())
    });
    let ceiling = ceiling.expect("the search");
    assert_eq!(
        (ceiling.lo_ok, ceiling.hi_fail, ceiling.attempts.len()),
        (Some(195_072), Some(195_584), 10)
    );
    assert_eq!(ceiling.attempts[1].result, AttemptResult::OomLoad);

    let voice = all
        .iter()
        .map(|one| &one.record)
        .find(|record| record.kind == RecordKind::Voice)
        .expect("a voice");
    let ttfa = voice.voice.as_ref().and_then(|voice| voice.ttfa_ms.clone()).expect("its wait");
    assert_eq!((ttfa.p50, ttfa.min, ttfa.max), (Some(8800.0), Some(2700.0), Some(13_800.0)));
    let speeds = all.iter().filter(|one| one.record.metrics.get(Metric::GenTokS).is_some()).count();
    assert!(speeds >= 25, "{speeds}");
    let rows =
        PUBLISHED.lines().filter(|line| line.starts_with("- {") || line.starts_with("- &")).count();
    assert!(all.len() > 120 && all.len() < rows, "{} records of {rows} rows", all.len());
    let families = all.iter().filter(|one| one.record.model.family.is_some()).count();
    assert!(families * 10 > all.len() * 8, "{families} of {} have a family", all.len());
}

#[test]
fn results_of_one_time_keep_the_order_of_their_file() {
    // A fault and its fix may have the same day. In the reverse order, the fix would look like a regression.
    let all = imported("runs.yaml");
    let same_time = |pair: &&[Imported]| pair[0].record.time.started == pair[1].record.time.started;
    let pairs: Vec<_> = all.windows(2).filter(same_time).collect();
    assert!(pairs.len() > 50, "{}", pairs.len());
    assert!(pairs.iter().all(|pair| pair[0].record.id < pair[1].record.id));
}

#[test]
fn bad_originals_are_refused_in_one_sentence() {
    let cut = &ORIGINALS[0].2[..200];
    let rows: [(&str, Option<ImportFormat>, &str); 9] = [
        ("", None, "a.json: unknown format"),
        ("{}", None, "a.json: unknown format (expected the output of llama-bench, vllm"),
        ("[1, 2]", None, "a.json: unknown format"),
        ("hello", None, "a.json: neither JSON, JSON lines nor YAML"),
        (cut, None, "a.json: neither JSON"),
        (
            "{}",
            Some(ImportFormat::LlamaBenchy),
            "a.json: not a result of llama-benchy: missing field `benchmarks`",
        ),
        ("[]", Some(ImportFormat::LlamaBench), "a.json: this file of llama-bench has no results"),
        (
            "schema: published-runs/2\nrecords: []\n",
            None,
            "a.json: not a result of published: its schema is published-runs/2",
        ),
        (
            r#"{"model_id": "m", "ttfts": [1.0], "itls": [[], []]}"#,
            Some(ImportFormat::Vllm),
            "2 lists of gaps for 1 request",
        ),
    ];
    for (text, format, expected) in rows {
        let said = import("a.json", text.as_bytes(), format).expect_err(text).to_string();
        assert!(said.contains(expected), "{text}: {said}");
    }
    assert!(matches!(import("a", &[0xff], None), Err(ImportError::Unreadable { .. })));
    let long = vec![b' '; ORIGINAL_BYTES_MAX + 1];
    assert!(matches!(import("a", &long, None), Err(ImportError::TooLong { .. })));
}

#[test]
fn an_original_is_imported_once_and_an_interrupted_import_is_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RecordStore::new(folder.path().join("records"));
    let all = imported("llama_bench.json");
    let files = store_imported("a.json", &all, &store).expect("kept");
    assert_eq!(files.len(), 2);
    assert!(
        matches!(store_imported("a.json", &all, &store), Err(ImportError::AlreadyImported { id, .. }) if id == all[0].record.id)
    );
    std::fs::remove_file(&files[1]).expect("removed");
    assert_eq!(store_imported("a.json", &all, &store).expect("completed"), files[1..]);
    let read = store.read().expect("a listing");
    assert!(read.skipped.is_empty() && read.records.len() == 2);
}
