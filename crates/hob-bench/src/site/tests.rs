//! The page: what is on it, what is escaped, what is left out, and what stands beside what.

use super::*;
use crate::import::{PUBLISHED, import};
use crate::record::{Cache, Doubt, Harness, Kind, Label, Shelf, Source, Spread, Status};
use crate::terms::{Metric, terms};
use uuid::Uuid;

fn native(id: u128, model: &str, shape: &str, tok_s: f64) -> Record {
    let source = Source { tool: "hob".to_owned(), ..Source::default() };
    let mut record = Record::new(Uuid::from_u128(id), Kind::Llm, source);
    record.model.name = model.to_owned();
    record.model.family = Some("Qwen3".to_owned());
    record.workload.shape = Some(shape.to_owned());
    record.workload.concurrency = Some(1);
    record.host.cpu.model = Some("Ryzen".to_owned());
    record.confidence.reasons = vec![Doubt::OneStart];
    record.harness = Some(Harness {
        argv: vec!["hob".to_owned(), "bench".to_owned(), "a b".to_owned()],
        ..Harness::default()
    });
    figure(&mut record, Metric::DecodeTokS, tok_s);
    record
}

fn figure(record: &mut Record, metric: Metric, p50: f64) {
    record.metrics.spreads.insert(metric, Spread { p50: Some(p50), ..Spread::default() });
}

fn of(records: Vec<Record>) -> Material {
    Material {
        records,
        samples: BTreeMap::new(),
        production: Production::default(),
        queued: Vec::new(),
        skipped: Vec::new(),
        built: None,
    }
}

fn page_of(material: &Material, path: &str) -> String {
    let file = build(material)
        .into_iter()
        .find(|file| file.path == path)
        .unwrap_or_else(|| panic!("no {path}"));
    String::from_utf8(file.bytes).expect("text")
}

/// What a reader sees: without tags, scripts and what waits in templates.
fn words(page: &str) -> String {
    let page = page.split("<template").next().unwrap_or(page);
    let mut text = String::new();
    for piece in page.split('<').skip(1) {
        text.push_str(piece.split_once('>').map_or("", |(_, text)| text));
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn published() -> Vec<Record> {
    let imported = import("runs.yaml", PUBLISHED.as_bytes(), None).expect("imported");
    imported.into_iter().map(|one| one.record).collect()
}

#[test]
fn several_shapes_are_a_range_until_one_is_chosen() {
    let material =
        of(vec![native(1, "qwen3:8b", "short_short", 12.0), native(2, "qwen3:8b", "agentic", 9.0)]);
    let index = page_of(&material, "index.html");
    let (shown, waiting) = index.split_once("<template").expect("rows that wait");
    assert!(words(shown).contains("9–12"), "{}", words(shown));
    assert!(words(shown).contains("2 shapes"));
    assert_eq!(waiting.matches("data-shape=\"").count(), 2);
    assert!(index.contains("<option value=\"agentic\">agentic (1)</option>"));
}

#[test]
fn the_newest_that_worked_counts() {
    let mut old = native(1, "m", "s", 5.0);
    old.time.started = "2026-01-01T00:00:00Z".parse().ok();
    let mut new = native(2, "m", "s", 7.0);
    new.time.started = "2026-02-01T00:00:00Z".parse().ok();
    let mut failed = native(3, "m", "s", 99.0);
    failed.time.started = "2026-03-01T00:00:00Z".parse().ok();
    failed.status = Status::Oom;
    let shown = words(&page_of(&of(vec![old, new, failed]), "index.html"));
    assert!(shown.contains(" 7 "), "{shown}");
    assert!(!shown.contains("99") && !shown.contains("5–7"), "{shown}");
}

fn at(mut record: Record, day: &str) -> Record {
    record.time.started = format!("{day}T00:00:00Z").parse().ok();
    record
}

#[test]
fn a_later_run_without_a_speed_leaves_the_speed_known() {
    let fast = at(native(1, "m", "s", 52.0), "2026-01-01");
    let mut later = at(native(2, "m", "s", 1.0), "2026-02-01");
    later.metrics.spreads.clear();
    figure(&mut later, Metric::TtftMs, 300.0);
    let shown = words(&page_of(&of(vec![fast, later]), "index.html"));
    assert!(shown.contains(" 52 "), "{shown}");
}

#[test]
fn the_engine_and_its_version_stand_beside_the_backend() {
    let with = |id, backend: Option<&str>, name: &str| {
        let mut record = native(id, name, "s", 5.0);
        record.engine.backend = backend.map(str::to_owned);
        record.engine.name = Some(name.to_owned());
        record.engine.version = Some("b9001".to_owned());
        record
    };
    let records = vec![
        with(1, Some("vulkan"), "llama.cpp"),
        with(2, Some("mlx"), "mlx-audio"),
        with(3, None, "vLLM"),
    ];
    let shown = words(&page_of(&of(records), "index.html"));
    for expected in ["vulkan llama.cpp b9001", "mlx mlx-audio b9001", "vLLM b9001"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn one_seed_twice_without_word_of_the_cache_is_refused_on_the_page_too() {
    let untold = |id, day| {
        let mut record = at(native(id, "m", "s", 5.0), day);
        record.workload.cache = Some(Cache::Cold);
        record.workload.cache_verified = Some(false);
        record
    };
    let page = page_of(&of(vec![untold(1, "2026-01-01"), untold(2, "2026-01-02")]), "compare.html");
    assert!(words(&page).contains("Refused: both runs asked the same prompts"), "{}", words(&page));
    assert!(page.contains(r#""seed":"0","is_untold":true"#), "what the script compares by");
}

#[test]
fn reading_is_not_drawn_as_speed_and_a_known_prompt_is_called_so() {
    let sweep = |id, cache, ttft_ms| {
        let mut record = native(id, "m", "ctx_65536", 11.0);
        record.kind = Kind::CtxSweep;
        record.workload.cache = Some(cache);
        figure(&mut record, Metric::TtftMs, ttft_ms);
        record
    };
    let mut reading = native(3, "m", "pp512", 1.0);
    reading.metrics.spreads.clear();
    figure(&mut reading, Metric::PrefillTokS, 146.0);
    let (cold, known) = (sweep(1, Cache::Cold, 19_900.0), sweep(2, Cache::Cached, 46.0));
    let material = of(vec![cold, known, reading]);
    let shown = words(&page_of(&material, "index.html"));
    assert!(shown.contains("new prompt") && shown.contains("19.9 s"), "{shown}");
    assert!(shown.contains("known prompt") && shown.contains("46 ms"), "{shown}");
    let rig = page_of(&material, "rig/ryzen.html");
    let (drawn, listed) = rig.split_once("Every run").expect("two parts");
    assert!(!words(drawn).contains("146") && words(listed).contains("146"), "{}", words(drawn));
}

#[test]
fn the_latest_family_and_its_fastest_model_come_first() {
    let of_family = |id, model: &str, family: &str, released: &str, tok_s| {
        let mut record = native(id, model, "s", tok_s);
        record.model.family = Some(family.to_owned());
        record.model.released = Some(released.to_owned());
        record
    };
    let material = of(vec![
        of_family(1, "old", "Aged", "2024-01", 90.0),
        of_family(2, "slow", "Young", "2026-04", 5.0),
        of_family(3, "fast", "Young", "2026-04", 50.0),
    ]);
    let shown = words(&page_of(&material, "index.html"));
    let places = ["Young", "fast", "slow", "Aged"].map(|word| shown.rfind(&format!(" {word} ")));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?} in {shown}");
    assert!(shown.contains("What the columns mean"), "definitions without a tooltip");
}

#[test]
fn one_shape_is_no_range_and_users_are_not_mixed() {
    let mut four = native(2, "m", "s", 3.0);
    four.workload.concurrency = Some(4);
    let shown = words(&page_of(&of(vec![native(1, "m", "s", 12.0), four]), "index.html"));
    assert!(!shown.contains('–'), "{shown}");
}

#[test]
fn what_a_record_says_is_text_and_nothing_else() {
    let evil = "<script>alert(1)</script>\"'><img src=x onerror=y>";
    let mut record = native(1, evil, evil, 1.0);
    record.host.cpu.model = Some(evil.to_owned());
    record.model.family = Some(evil.to_owned());
    record.model.quant = Some(evil.to_owned());
    record.source.lossy = vec![evil.to_owned()];
    record.invalid_reasons = vec![evil.to_owned()];
    record.engine.argv = vec![evil.to_owned()];
    let material = Material { skipped: vec![evil.to_owned()], ..of(vec![record]) };
    for file in build(&material).into_iter().filter(|file| file.path.ends_with(".html")) {
        let page = String::from_utf8(file.bytes).expect("text");
        assert!(!page.contains("<img"), "{}", file.path);
        let own = if file.path == "compare.html" { 2 } else { 1 };
        assert_eq!(page.matches("<script>").count(), own, "{}: those of the page", file.path);
        assert!(!file.path.contains('<') && !file.path.contains(".."), "{}", file.path);
    }
}

#[test]
fn what_is_no_measurement_is_no_figure_whatever_its_badge_was() {
    let good = native(1, "m", "s", 12.0);
    let mut refused = native(2, "m", "s", 77.0);
    refused.confidence.label = Label::Verified;
    refused.confidence.reasons.clear();
    refused.invalid_reasons = vec!["the client was the limit".to_owned()];
    let index = page_of(&of(vec![good, refused.clone()]), "index.html");
    assert!(!index.contains("badge hard"), "{index}");
    assert!(index.contains("badge failed"), "{index}");
    let over_both = |one: &Record| {
        let other = native(3, "m", "t", 15.0);
        words(&page_of(&of(vec![one.clone(), other]), "index.html")).contains("15–77")
    };
    assert!(!over_both(&refused), "its figure is in no range");
    refused.invalid_reasons.clear();
    assert!(over_both(&refused), "what is a measurement is");
}

#[test]
fn soft_says_why_and_imported_says_so() {
    let mut hard = native(1, "m", "s", 1.0);
    hard.confidence.label = Label::Verified;
    hard.confidence.reasons.clear();
    let index = page_of(&of(vec![hard, native(2, "n", "s", 2.0)]), "index.html");
    assert!(index.contains("badge hard\">hard"), "{index}");
    assert!(index.contains("title=\"the server was started only once\">soft"), "{index}");
    let index = words(&page_of(&of(published()), "index.html"));
    assert!(index.contains("soft published"), "{index}");
}

#[test]
fn what_was_hard_is_soft_when_it_is_too_old() {
    let mut record = native(1, "m", "s", 1.0);
    record.confidence.label = Label::Verified;
    record.confidence.reasons.clear();
    record.confidence.expires = "2027-02-19".parse().ok();
    let on = |day: &str| Material {
        built: format!("{day}T00:00:00Z").parse().ok(),
        ..of(vec![record.clone()])
    };
    assert!(page_of(&on("2027-02-18"), "index.html").contains("badge hard"));
    let late = on("2027-02-19");
    assert!(!page_of(&late, "index.html").contains("badge hard"));
    let run = words(&page_of(&late, &format!("run/{}.html", record.id)));
    assert!(run.contains("older than 90 days"), "{run}");
}

#[test]
fn a_bad_file_is_named_and_the_rest_is_on_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let shelf = Shelf::new(folder.path());
    shelf
        .put(
            &native(7, "kept", "s", 1.0),
            &[RawSample { ttft_us: Some(5_000), ..RawSample::default() }],
        )
        .expect("put");
    for (name, text) in [
        ("cut.yaml", "schema: bench-run/1\nid: ["),
        ("later.yaml", "schema: bench-run/2\n"),
        ("other.yaml", "a: 1\n"),
    ] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let material = Material::gather(&shelf, Others::LeftOut).expect("gathered");
    assert_eq!((material.records.len(), material.skipped.len(), material.samples.len()), (1, 3, 1));
    assert!(words(&page_of(&material, "index.html")).contains("kept"));
    let index = words(&page_of(&material, "method.html"));
    assert!(index.contains("3 files were left out"), "{index}");
    for expected in ["cut.yaml:2: damaged", "later.yaml: of a later hob", "other.yaml: no record"] {
        assert!(index.contains(expected), "{expected}: {index}");
    }
    let empty = Material::gather(&Shelf::new(folder.path().join("none")), Others::LeftOut)
        .expect("nothing");
    assert!(words(&page_of(&empty, "index.html")).contains("Nothing was measured yet"));
}

#[test]
fn a_corrected_record_is_not_shown_beside_its_correction() {
    let folder = tempfile::tempdir().expect("a folder");
    let shelf = Shelf::new(folder.path());
    let first = native(1, "wrong", "s", 1.0);
    let second = Record { supersedes: Some(first.id), ..native(2, "right", "s", 1.0) };
    shelf.put(&first, &[]).and_then(|_| shelf.put(&second, &[])).expect("put");
    let material = Material::gather(&shelf, Others::LeftOut).expect("gathered");
    assert_eq!(
        material.records.iter().map(|record| record.model.name.as_str()).collect::<Vec<_>>(),
        ["right"]
    );
}

#[test]
fn production_stands_beside_the_bench() {
    let mut record = native(1, "kokoro", "s", 1.0);
    figure(&mut record, Metric::TtfaMs, 190.0);
    let served = |requests| Served {
        model: "kokoro".to_owned(),
        requests,
        first_p50_ms: 8_800.0,
        first_p95_ms: Some(13_000.0),
    };
    let with = |requests| Material {
        production: Production { served: vec![served(requests)] },
        ..of(vec![record.clone()])
    };
    let index = words(&page_of(&with(20), "index.html"));
    assert!(index.contains("46.3×"), "{index}");
    let model = words(&page_of(&with(20), "model/kokoro.html"));
    assert!(
        model.contains("8,800 ms") && model.contains("13 s") && model.contains("190 ms"),
        "{model}"
    );
    assert!(!words(&page_of(&with(19), "index.html")).contains("46.3×"), "too few say nothing");

    let mut crowd = record.clone();
    crowd.workload.concurrency = Some(4);
    let imported = Record { harness: None, ..record.clone() };
    for other in [crowd, imported] {
        let material =
            Material { production: Production { served: vec![served(20)] }, ..of(vec![other]) };
        assert!(!words(&page_of(&material, "index.html")).contains("46.3×"));
    }
}

#[test]
fn a_run_can_be_repeated_and_doubted() {
    let record = native(1, "m", "s", 1.0);
    let path = format!("run/{}.html", record.id);
    let page = page_of(&of(vec![record]), &path);
    assert!(page.contains("hob bench &#39;a b&#39;") || page.contains("hob bench 'a b'"), "{page}");
    let words = words(&page);
    assert!(words.contains("the server was started only once"));
    assert!(words.contains("schema: bench-run/1"), "the record itself");
}

#[test]
fn every_term_is_explained_and_every_link_leads_somewhere() {
    let material = of(published());
    let method = page_of(&material, "method.html");
    for term in terms() {
        assert!(method.contains(term.name), "{}", term.name);
    }
    let files = build(&material);
    let paths: std::collections::BTreeSet<&str> =
        files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths.len(), files.len(), "no two files share a place");
    for file in &files {
        let page = String::from_utf8_lossy(&file.bytes);
        for href in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            if href.starts_with('#') || href.starts_with("data:") {
                continue;
            }
            assert!(
                !href.contains("://") && !href.starts_with('/'),
                "{}: {href} leaves the folder",
                file.path
            );
            let href = href.split('#').next().unwrap_or_default();
            let target = match href.strip_prefix("../") {
                Some(target) => target.to_owned(),
                None if file.path.contains('/') => {
                    format!("{}/{href}", file.path.split('/').next().unwrap_or_default())
                }
                None => href.to_owned(),
            };
            assert!(paths.contains(target.as_str()), "{}: {href}", file.path);
        }
        assert!(!page.contains("src=\""), "{}: nothing is fetched", file.path);
    }
}

#[test]
fn what_was_published_is_there_with_its_tiers_and_curves() {
    let material = of(published());
    let speech = words(&page_of(&material, "speech.html"));
    for expected in [
        "Tier 1",
        "Tier 2",
        "Tier 3",
        "0.19 s",
        "Failed: OuteTTS",
        "8,800 ms in the middle",
        "no: cut up at the end",
    ] {
        assert!(speech.contains(expected), "{expected}: {speech}");
    }
    let model = page_of(&material, "model/qwen3.5-9b.html");
    assert!(words(&model).contains("195,072 tokens started"), "{}", words(&model));
    assert_eq!(model.matches("class=\"series").count(), 3, "three stacks");
}

#[test]
fn the_same_material_makes_the_same_page() {
    let material = of(published());
    assert_eq!(build(&material), build(&material));
}

#[test]
fn the_policy_names_the_script_that_is_there() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let hash = |script: &str| {
        let digest = sha2::Sha256::digest(script.as_bytes());
        format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
    };
    for (path, count) in [("index.html", 1), ("compare.html", 2)] {
        let page = page_of(&of(Vec::new()), path);
        let scripts = page.split("<script>").skip(1);
        let hashes: Vec<String> =
            scripts.filter_map(|rest| rest.split("</script>").next()).map(hash).collect();
        assert_eq!(hashes.len(), count, "{path}");
        assert!(hashes.iter().all(|hash| script_hashes().contains(hash)), "{path}: {hashes:?}");
    }
}

/// The same cell on a day of November, eight runs of it.
fn on_day(day: u128, ttft_us: u64) -> (Record, Vec<RawSample>) {
    let mut record = native(day, "qwen3:8b", "short_short", 12.0);
    record.time.started = format!("2026-11-{day:02}T10:00:00Z").parse().ok();
    record.host.id_hash = Some("here".to_owned());
    record.metrics.spreads.clear();
    let samples: Vec<RawSample> = (0..8)
        .map(|run| RawSample {
            run,
            ttft_us: Some(ttft_us + u64::from(run) * 10),
            ..RawSample::default()
        })
        .collect();
    figure(&mut record, Metric::TtftMs, ttft_us as f64 / 1e3 + 0.035);
    (record, samples)
}

fn over_days(days: &[(u128, u64)]) -> Material {
    let runs: Vec<(Record, Vec<RawSample>)> =
        days.iter().map(|(day, ttft_us)| on_day(*day, *ttft_us)).collect();
    let samples = runs.iter().map(|(record, samples)| (record.id, samples.clone())).collect();
    let records = runs.into_iter().map(|(record, _)| record).collect();
    Material { samples, ..of(records) }
}

#[test]
fn the_latest_pair_is_compared_without_a_script() {
    let material = over_days(&[(1, 70_000), (2, 80_000), (3, 100_000)]);
    let page = page_of(&material, "compare.html");
    let shown = words(&page);
    for expected in ["Unpaired: measured apart", "80 ms", "100 ms", "+25.0 %", "slower"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("70 ms"), "only the latest and the one before");
    let run = page_of(&material, &format!("run/{}.html", Uuid::from_u128(3)));
    let link = format!("compare.html#base={}&amp;new={}", Uuid::from_u128(2), Uuid::from_u128(3));
    assert!(run.contains(&link), "{run}");
    let first = words(&page_of(&material, &format!("run/{}.html", Uuid::from_u128(1))));
    assert!(first.contains("Compare with another run"), "{first}");
}

#[test]
fn another_machine_or_question_is_no_run_before() {
    let mut material = over_days(&[(1, 80_000), (2, 100_000)]);
    material.records[0].host.id_hash = Some("there".to_owned());
    assert!(words(&page_of(&material, "compare.html")).contains("Nothing was measured twice yet"));
    material.records[0].host.id_hash = Some("here".to_owned());
    material.records[0].workload.concurrency = Some(4);
    assert!(words(&page_of(&material, "compare.html")).contains("Nothing was measured twice yet"));
    material.records[0].workload.concurrency = Some(1);
    material.records[0].status = Status::Failed;
    assert!(words(&page_of(&material, "compare.html")).contains("Nothing was measured twice yet"));
}

#[test]
fn what_was_measured_again_is_drawn_over_time() {
    let model =
        page_of(&over_days(&[(1, 80_000), (2, 100_000), (9, 90_000)]), "model/qwen3-8b.html");
    let shown = words(&model);
    for expected in ["First token, over time", "2026-11-01", "2026-11-09"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(model.matches("class=\"series").count(), 1);
    let once = words(&page_of(&over_days(&[(1, 80_000)]), "model/qwen3-8b.html"));
    assert!(!once.contains("over time"), "{once}");
}

#[test]
fn what_the_page_carries_is_what_it_compares_by() {
    let page = page_of(&over_days(&[(1, 80_000), (2, 100_000)]), "compare.html");
    let json = page.split("id=\"runs\">").nth(1).and_then(|rest| rest.split("</script>").next());
    let carried: serde_json::Value = serde_json::from_str(json.expect("JSON")).expect("JSON");
    assert_eq!(carried["ranks"]["8,8"], 14);
    assert_eq!(carried["runs"].as_array().map(Vec::len), Some(2));
    let runs = carried["runs"][0]["figures"]["ttft_ms"]["runs"].as_array();
    assert_eq!(runs.map(Vec::len), Some(8));
    let aspects = carried["aspects"].as_array().map(Vec::len);
    assert_eq!(carried["runs"][0]["aspects"].as_array().map(Vec::len), aspects);
}

#[test]
fn what_a_plan_still_has_to_measure_is_queued() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "schema: bench-plan/1\nname: nightly\ntargets: [{name: here}]\n\
                matrix: {kind: [llm], model: [qwen3-8b], shape: [agentic], concurrency: [1, 4]}\n";
    std::fs::write(folder.path().join("a.yaml"), text).expect("a file");
    std::fs::write(folder.path().join("b.yaml"), "schema: else\n").expect("a file");
    let mut record = native(1, "qwen3-8b", "agentic", 5.0);
    let plan = crate::plan::Plan::parse("a", text).expect("a plan");
    let first = crate::plan::CellKey::point(&crate::plan::cells(&plan)[0]);
    record.cell_key = Some(format!("{first}-0123456789abcdef"));
    let mut material = of(vec![record]);
    material.queue(folder.path());
    assert_eq!((material.queued[0].all, material.queued[0].left.len()), (2, 1));
    assert!(material.skipped[0].contains("b.yaml"), "{:?}", material.skipped);
    let page = page_of(&material, "queued.html");
    assert!(page.contains("1 of 2 cells are measured") && page.contains("qwen3-8b"), "{page}");
}
