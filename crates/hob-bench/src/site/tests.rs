//! The data of the page: what the script is given, what is escaped, and what is left out.
//! Browser tests check what the script draws.

use super::*;
use crate::import::{PUBLISHED, import};
use crate::record::{
    Cache, Doubt, EvalFigures, Harness, Label, RecordKind, RecordSource, RecordStore, RunStatus,
    SampleFile, Spread,
};
use crate::terms::Metric;
use uuid::Uuid;

fn native(id: u128, model: &str, shape: &str, tok_s: f64) -> Record {
    let source = RecordSource { tool: "hob".to_owned(), ..RecordSource::default() };
    let mut record = Record::new(Uuid::from_u128(id), RecordKind::Llm, source);
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
    Material { records, ..Material::default() }
}

fn page_of(material: &Material, path: &str) -> String {
    let file = build(material)
        .into_iter()
        .find(|file| file.path == path)
        .unwrap_or_else(|| panic!("no {path}"));
    String::from_utf8(file.bytes).expect("text")
}

/// The value that a script file carries.
fn carried(material: &Material, path: &str) -> serde_json::Value {
    let text = page_of(material, path);
    let json = text.split_once("JSON.parse('").and_then(|(_, rest)| rest.rsplit_once("')"));
    let json = json.expect("a script that parses JSON").0;
    serde_json::from_str(&json.replace(r"\'", "'").replace(r"\\", r"\")).expect("JSON")
}

fn data(material: &Material) -> serde_json::Value {
    carried(material, "records.js")
}

fn run_of(material: &Material, id: u128) -> serde_json::Value {
    let id = Uuid::from_u128(id).to_string();
    let data = data(material);
    let runs = data["runs"].as_array().expect("runs");
    runs.iter().find(|run| run["record"]["id"] == id.as_str()).expect("a run").clone()
}

fn published() -> Vec<Record> {
    let imported = import("runs.yaml", PUBLISHED.as_bytes(), None).expect("imported");
    imported.into_iter().map(|one| one.record).collect()
}

fn at(mut record: Record, day: &str) -> Record {
    record.time.started = format!("{day}T00:00:00Z").parse().ok();
    record
}

#[test]
fn a_corrected_record_is_replaced_by_its_correction() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RecordStore::new(folder.path());
    let first = native(1, "wrong", "s", 1.0);
    let second = Record { supersedes: Some(first.id), ..native(2, "right", "s", 1.0) };
    store.put(&first, &[]).and_then(|_| store.put(&second, &[])).expect("put");
    let material = Material::gather(&store, PublishedRuns::LeftOut).expect("gathered");
    assert_eq!(
        material.records.iter().map(|record| record.model.name.as_str()).collect::<Vec<_>>(),
        ["right"]
    );
}

#[test]
fn the_same_material_gives_the_same_page() {
    let material = of(published());
    assert_eq!(build(&material), build(&material));
}

/// Eight runs of one cell, on a day of November.
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
fn unmeasured_cells_of_a_plan_are_queued() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "schema: bench-plan/1\nname: nightly\nnote: coming soon\ntargets: [{name: here}]\n\
                matrix: {kind: [llm], model: [qwen3-8b], shape: [agentic], concurrency: [1, 4]}\n";
    std::fs::write(folder.path().join("a.yaml"), text).expect("a file");
    std::fs::write(folder.path().join("b.yaml"), "schema: else\n").expect("a file");
    // Neither a file nor a link to one, like a pipe, which would block.
    std::fs::create_dir(folder.path().join("c.yaml")).expect("a folder");
    let mut record = native(1, "qwen3-8b", "agentic", 5.0);
    let plan = crate::plan::BenchPlan::parse("a", text).expect("a plan");
    let first = crate::plan::CellKey::point(&crate::plan::cells(&plan)[0]);
    record.cell_key = Some(format!("{first}-0123456789abcdef"));
    let mut material = of(vec![record]);
    material.queue(folder.path());
    assert_eq!((material.queued[0].all, material.queued[0].left.len()), (2, 1));
    assert!(material.skipped[0].starts_with("b.yaml:"), "{:?}", material.skipped);
    assert_eq!(material.skipped[1..], ["c.yaml: it is not a regular file"]);
    let queued = &data(&material)["queued"][0];
    assert_eq!((&queued["all"], &queued["left"][0]["model"]), (&2.into(), &"qwen3-8b".into()));
    assert_eq!(queued["note"], "coming soon");
}

#[test]
fn the_newest_run_comes_first() {
    let data = data(&of(vec![
        at(native(1, "old", "s", 5.0), "2026-01-01"),
        at(native(2, "new", "s", 7.0), "2026-02-01"),
        native(3, "undated", "s", 7.0),
    ]));
    let names = ["new", "old", "undated"].map(|name| serde_json::json!(name));
    assert_eq!(names, [0, 1, 2].map(|at| data["runs"][at]["record"]["model"]["name"].clone()));
}

#[test]
fn a_model_is_in_one_family_whatever_its_server_calls_it() {
    let called = |family: &str| {
        let mut record = native(1, "qwen2.5-coder:7b", "s", 5.0);
        record.model.family = Some(family.to_owned());
        let run = run_of(&of(vec![record]), 1);
        (run["family"].clone(), run["released"].clone())
    };
    assert_eq!(called("qwen2"), called("Qwen2.5-Coder"));
    assert_eq!(called("qwen2"), ("Qwen2.5-Coder".into(), "2024-09".into()));
}

#[test]
fn texts_of_a_record_are_never_markup_or_script() {
    let evil =
        "</script><script>alert(1)</script>\"'\\u0027\\'<img src=x onerror=y>\u{2028}__proto__";
    let mut record = native(1, evil, evil, 1.0);
    record.model.quant = Some(evil.to_owned());
    record.labels.insert("__proto__".to_owned(), evil.to_owned());
    let material = Material { skipped: vec![evil.to_owned()], ..of(vec![record.clone()]) };
    let data = data(&material);
    assert_eq!(data["skipped"][0], evil);
    let carried_record = &data["runs"][0]["record"];
    assert_eq!(carried_record["model"]["quant"], evil);
    assert_eq!(carried_record["labels"]["__proto__"], evil);
    for file in build(&material) {
        let text = String::from_utf8(file.bytes).expect("text");
        let is_data = file.path == "records.js" || file.path.starts_with("run/");
        assert!(is_data || !text.contains("alert"), "{} holds no record", file.path);
        assert!(!text.contains('\u{2028}'), "{}: it ends a line", file.path);
        assert!(!file.path.contains('<') && !file.path.contains(".."), "{}", file.path);
    }
}

#[test]
fn a_failed_run_is_failed_even_with_the_label_verified() {
    let mut refused = native(2, "m", "s", 77.0);
    refused.confidence.label = Label::Verified;
    refused.invalid_reasons = vec!["the client was the limit".to_owned()];
    assert_eq!(run_of(&of(vec![refused.clone()]), 2)["label"], "failed");
    refused.invalid_reasons.clear();
    assert_eq!(run_of(&of(vec![refused]), 2)["label"], "verified");
}

#[test]
fn a_run_has_its_origin_and_the_reasons_for_unverified() {
    let run = run_of(&of(vec![native(1, "m", "s", 1.0)]), 1);
    assert_eq!((&run["label"], &run["origin"]), (&"unverified".into(), &"hob".into()));
    assert_eq!(run["doubts"], serde_json::json!(["one_start"]));
    let data = data(&of(published()));
    assert!(data["runs"].as_array().expect("runs").iter().all(|run| run["origin"] == "published"));
    assert!(data["doubts"].as_array().expect("doubts").iter().any(|doubt| doubt[0] == "one_start"));
}

#[test]
fn a_verified_run_becomes_unverified_when_it_is_too_old() {
    let mut record = native(1, "m", "s", 1.0);
    record.confidence.label = Label::Verified;
    record.confidence.reasons.clear();
    record.confidence.expires = "2027-02-19".parse().ok();
    let on = |day: &str| Material {
        built: format!("{day}T00:00:00Z").parse().ok(),
        ..of(vec![record.clone()])
    };
    assert_eq!(run_of(&on("2027-02-18"), 1)["label"], "verified");
    let late = run_of(&on("2027-02-19"), 1);
    assert_eq!((&late["label"], &late["doubts"][0]), (&"unverified".into(), &"stale".into()));
}

#[test]
fn a_damaged_file_is_named_and_all_others_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RecordStore::new(folder.path());
    let sample = RawSample { ttft_us: Some(5_000), ..RawSample::default() };
    let mut record = native(7, "kept", "s", 1.0);
    let answers = SampleFile { file: "answers.gz".to_owned(), sha256: String::new(), n: 1 };
    record.eval = Some(EvalFigures { answers: Some(answers), ..EvalFigures::default() });
    let kept = store.put(&record, &[sample]).expect("put");
    std::fs::write(kept.with_file_name("answers.gz"), "damaged").expect("written");
    for (name, text) in [
        ("cut.yaml", "schema: bench-run/1\nid: ["),
        ("later.yaml", "schema: bench-run/2\n"),
        ("other.yaml", "a: 1\n"),
    ] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let material = Material::gather(&store, PublishedRuns::LeftOut).expect("gathered");
    assert_eq!((material.records.len(), material.skipped.len(), material.samples.len()), (1, 4, 1));
    let skipped = data(&material)["skipped"].to_string();
    for file in ["cut.yaml", "later.yaml", "other.yaml", "answers.gz"] {
        assert!(skipped.contains(file) && !skipped.contains("/tmp"), "{skipped}");
    }
    let missing = RecordStore::new(folder.path().join("none"));
    let empty = Material::gather(&missing, PublishedRuns::LeftOut).expect("nothing");
    assert_eq!(data(&empty)["runs"], serde_json::json!([]));
}

#[test]
fn production_is_shown_next_to_the_benchmark() {
    let mut record = native(1, "kokoro", "s", 1.0);
    figure(&mut record, Metric::TtfaMs, 190.0);
    let served = |requests| ServedModelFigures {
        model: "kokoro".to_owned(),
        requests,
        first_p50_ms: 8_800.0,
        first_p95_ms: Some(13_000.0),
        are_turns: false,
    };
    let gap_of = |record: &Record, requests| {
        let production = Production { served: vec![served(requests)] };
        let material = Material { production, ..of(vec![record.clone()]) };
        run_of(&material, 1)["production"].clone()
    };
    let gap = gap_of(&record, 20);
    assert_eq!((&gap["metric"], &gap["warm_ms"]), (&"ttfa_ms".into(), &190.0.into()));
    assert_eq!(gap["served"]["first_p50_ms"], 8_800.0);
    assert!(gap_of(&record, 19).is_null(), "19 requests are too few");
    let mut many_users = record.clone();
    many_users.workload.concurrency = Some(4);
    assert!(gap_of(&many_users, 20).is_null());
    let conversation = Record { kind: RecordKind::Voice, ..record.clone() };
    assert!(gap_of(&conversation, 20).is_null(), "these requests are no turns");
    assert!(gap_of(&Record { harness: None, ..record }, 20).is_null(), "an imported run");
}

#[test]
fn a_run_has_a_file_with_its_text_and_samples() {
    let (record, samples) = on_day(1, 70_000);
    let path = format!("run/{}.js", record.id);
    let material = Material { samples: [(record.id, samples)].into(), ..of(vec![record]) };
    let details = carried(&material, &path);
    assert!(details["yaml"].as_str().expect("text").contains("schema: bench-run/1"));
    assert_eq!(details["samples"].as_array().map(Vec::len), Some(8));
    assert_eq!(details["samples"][1]["ttft_ms"], 70.01);
}

#[test]
fn all_links_stay_inside_the_page() {
    let files = build(&of(Vec::new()));
    let paths: std::collections::BTreeSet<&str> =
        files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths.len(), files.len(), "no two files share a path");
    for file in files.iter().filter(|file| file.path.ends_with(".html")) {
        let page = String::from_utf8_lossy(&file.bytes);
        let links =
            page.split(['"', '\'']).filter(|text| text.ends_with(".html") || text.ends_with(".js"));
        for link in links {
            assert!(paths.contains(link), "{}: {link}", file.path);
        }
        assert!(!page.contains("://") && !page.contains("{{"), "{}", file.path);
    }
}

#[test]
fn the_latest_pair_of_a_cell_is_compared() {
    let material = over_days(&[(1, 70_000), (2, 80_000), (3, 100_000)]);
    let data = data(&material);
    let pairs = data["rules"]["pairs"].as_array().expect("pairs");
    assert_eq!(pairs.len(), 1);
    let id = |day| Uuid::from_u128(day).to_string();
    assert_eq!(pairs[0]["base"]["ids"][0], id(2));
    assert_eq!(pairs[0]["new"]["ids"][0], id(3));
    let figure = &pairs[0]["figures"][0];
    assert_eq!((&figure["metric"], &figure["verdict"]), (&"ttft_ms".into(), &"worse".into()));
    assert_eq!(run_of(&material, 3)["before"], id(2));
    assert!(run_of(&material, 1)["before"].is_null());
    assert_eq!(run_of(&material, 1)["cell"], run_of(&material, 3)["cell"]);
}

#[test]
fn a_run_on_another_machine_or_of_another_workload_is_not_compared() {
    let pairs = |change: fn(&mut Record)| {
        let mut material = over_days(&[(1, 80_000), (2, 100_000)]);
        change(&mut material.records[0]);
        data(&material)["rules"]["pairs"].as_array().expect("pairs").len()
    };
    assert_eq!(pairs(|_| {}), 1);
    assert_eq!(pairs(|record| record.host.id_hash = Some("there".to_owned())), 0);
    assert_eq!(pairs(|record| record.workload.concurrency = Some(4)), 0);
    assert_eq!(pairs(|record| record.status = RunStatus::Failed), 0);
}

#[test]
fn the_script_gets_the_rules_and_values_of_comparisons() {
    let mut material = over_days(&[(1, 80_000), (2, 100_000)]);
    material.records[0].workload.cache = Some(Cache::Cold);
    material.records[0].workload.cache_verified = Some(false);
    let data = data(&material);
    assert_eq!(data["rules"]["ranks"]["8,8"], 14);
    let compared_by = &run_of(&material, 1)["compared_by"];
    assert_eq!(compared_by["values"]["ttft_ms"]["runs"].as_array().map(Vec::len), Some(8));
    let aspects = data["rules"]["aspects"].as_array().map(Vec::len);
    assert_eq!(compared_by["aspects"].as_array().map(Vec::len), aspects);
    assert_eq!(
        (&compared_by["seed"], &compared_by["is_cache_unknown"]),
        (&"0".into(), &true.into())
    );
}

#[test]
fn a_figure_that_is_not_finite_is_left_out() {
    let mut record = native(1, "qwen3:8b", "short_short", f64::INFINITY);
    let ttft = Spread { p50: Some(2.0), ci95: Some([1.0, f64::NAN]), ..Spread::default() };
    record.metrics.spreads.insert(Metric::TtftMs, ttft);
    let compared_by = comparison::ComparedBy::from_record(&record, None);
    let values = serde_json::to_value(&compared_by).expect("JSON")["values"].take();
    assert_eq!(values.get("decode_tok_s"), None);
    assert_eq!(values["ttft_ms"]["median"], 2.0);
    assert!(values["ttft_ms"]["ci95"].is_null(), "{values}");
}

/// All files of the script share one scope: a name that stands twice breaks every page.
#[test]
fn names_of_the_script_are_declared_once() {
    let mut seen = std::collections::BTreeSet::new();
    for line in SCRIPT.lines() {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let kinds = ["const ", "let ", "var ", "class ", "function "];
        let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else { continue };
        let is_list = rest.starts_with(['[', '{']);
        let end = if is_list { rest.find(" =") } else { rest.find([' ', '(', ';', '=']) };
        let declared = &rest[..end.unwrap_or(rest.len())];
        let names = declared.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
        for name in names.filter(|name| !name.is_empty()) {
            assert!(seen.insert(name), "{name} is declared twice");
        }
    }
    assert!(seen.len() > 100, "{}", seen.len());
}
