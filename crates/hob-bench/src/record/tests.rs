//! Records are written and read again, and other files are rejected with a reason.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::terms::Metric;

const FULL: &str = include_str!("tests/full.yaml");

/// A record with a value in every field, and its hash.
fn full() -> Record {
    let open: Record = serde_saphyr::from_str(FULL).expect("the fixture is a record");
    Record { content_hash: content_hash(&open).expect("a hash"), ..open }
}

fn written() -> String {
    to_yaml(&full()).expect("text")
}

#[test]
fn a_written_record_is_read_unchanged() {
    let record = full();
    assert_eq!(from_yaml("a.yaml", &written()).expect("a record"), record);
    assert_eq!(record.short_id(), "6b2d8c11");
    assert_eq!(record.metrics.figure(Metric::TtftMs), Some(84.0));
    assert_eq!(record.metrics.goodput.expect("goodput").slo[&Metric::TtftMs], 500.0);
}

#[test]
fn a_record_with_former_names_is_read_and_its_hash_is_valid() {
    let mut record = full();
    record.kind = RecordKind::Concurrency;
    record.confidence.label = Label::Verified;
    record.slowdown = Some(Slowdown { n: 3, ..Slowdown::default() });
    let ceiling = MaxContext { proven_by: Some(ContextProof::Reported), ..MaxContext::default() };
    record.max_context = Some(ceiling);
    let now = to_yaml(&record).expect("a record");
    let names = [
        ("label: verified", "label: hard"),
        ("kind: concurrency", "kind: degrade"),
        ("slowdown:", "degrade:"),
        ("max_context:", "ctx_ceiling:"),
        ("reasoning_switch:", "reasoning_lever:"),
        ("proven_by: reported", "proven_by: told"),
    ];
    let mut former = now.clone();
    for (new, old) in names {
        assert!(former.contains(new), "{new}: {former}");
        former = former.replace(new, old);
    }
    assert_eq!(
        from_yaml("former.yaml", &former).expect("read"),
        from_yaml("now.yaml", &now).expect("read")
    );
}

#[test]
fn an_invalid_record_is_reported_with_its_line() {
    let line_of =
        |start: &str| written().lines().position(|line| line.starts_with(start)).unwrap() + 1;
    let rows = [
        (
            "status: ok",
            "status: fine",
            format!("a.yaml:{}: damaged: unknown variant", line_of("status")),
        ),
        (
            "kind: llm",
            "kind: llm\nmood: good",
            format!("a.yaml:{}: damaged: unknown field", line_of("kind") + 1),
        ),
        (
            "  errors: 0",
            "  ttftms: 0",
            format!("a.yaml:{}: damaged: no figure is called `ttftms`", line_of("  errors")),
        ),
        ("    p50: 84.0", "    p50: fast", "damaged: ".to_owned()),
        ("kind: llm\n", "", "damaged: missing field `kind`".to_owned()),
        ("kind: llm", "kind: [", "damaged: ".to_owned()),
        ("    p50: 84.0", "    p50: 48.0", "a.yaml:1: damaged: its content_hash".to_owned()),
        (
            "schema: bench-run/1",
            "schema: bench-run/2",
            "a.yaml: written by a later hob: its schema is bench-run/2".to_owned(),
        ),
        (
            "schema: bench-run/1",
            "schema: nightly",
            "a.yaml: not a benchmark record: its schema is `nightly`".to_owned(),
        ),
        (
            "schema: bench-run/1\n",
            "",
            "a.yaml: not a benchmark record: its schema is missing".to_owned(),
        ),
    ];
    for (from, to, expected) in rows {
        assert!(written().contains(from), "{from}");
        let said = from_yaml("a.yaml", &written().replacen(from, to, 1)).expect_err(to).to_string();
        assert!(said.contains(&expected), "{to}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_later_version_with_new_fields_is_not_called_damaged() {
    let later =
        written().replacen("bench-run/1", "bench-run/3", 1).replacen("kind: llm", "kind: dream", 1);
    assert!(
        matches!(from_yaml("a.yaml", &later), Err(RecordError::Future { said, .. }) if said == "bench-run/3")
    );
}

#[test]
fn a_file_that_is_too_long_is_not_read() {
    let long = format!("{}# {}\n", written(), "x".repeat(RECORD_BYTES_MAX));
    assert!(matches!(from_yaml("a.yaml", &long), Err(RecordError::Damaged { line: 1, .. })));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, long).expect("written");
    let refused = read_file(&file).expect_err("too long").to_string();
    assert!(refused.contains("damaged: more than 1048576 bytes"), "{refused}");
    let refused = read_file(Path::new("/dev/zero")).expect_err("no end").to_string();
    assert_eq!(refused, "cannot read /dev/zero: it is not a regular file");
}

#[test]
fn samples_without_end_are_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut record = full();
    record.samples = Some(SampleFile { file: "endless".to_owned(), sha256: String::new(), n: 1 });
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("endless")).expect("a link");
    let read = samples_beside(&folder.path().join("a.yaml"), &record);
    assert!(matches!(read, Ok(None)), "{read:?}");
}

#[test]
fn a_figure_that_is_not_a_number_is_not_written() {
    let mut record = full();
    record
        .metrics
        .spreads
        .insert(Metric::TtftMs, Spread { p50: Some(f64::NAN), ..Spread::default() });
    assert!(matches!(to_yaml(&record), Err(RecordError::Damaged { .. })));
}

#[test]
fn a_file_name_has_date_machine_model_kind_and_id() {
    assert_eq!(
        relative_path(&full()).to_str(),
        Some("2026-11/2026-11-21-9f3d1c7b-qwen3-8b-llm-6b2d8c11.yaml")
    );
    let id = Uuid::nil();
    let unknown = Record::new(id, RecordKind::CtxSweep, RecordSource::default());
    assert_eq!(
        relative_path(&unknown).to_str(),
        Some("undated/undated-nohost-unnamed-ctx_sweep-00000000.yaml")
    );
}

#[test]
fn a_slug_is_a_valid_file_name_on_every_disk() {
    let rows = [
        ("Qwen3:8B", 48, "qwen3-8b"),
        ("../../etc/passwd", 48, "etc-passwd"),
        ("  a  b  ", 48, "a-b"),
        ("…", 48, "unnamed"),
        ("abcdef", 3, "abc"),
        ("v1.5", 48, "v1.5"),
    ];
    for (text, max, expected) in rows {
        assert_eq!(slug(text, max), expected, "{text}");
    }
}

#[test]
fn a_completed_cell_adds_only_its_key_to_the_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RecordStore::new(folder.path());
    let samples = vec![RawSample { ttft_us: Some(84_000), ..RawSample::default() }];
    let file = store.put(&full(), &samples).expect("written");
    let before = read_file(&file).expect("a record");
    let noted = store.complete(&full(), "a-b").expect("noted");
    let after = read_file(&file).expect("a record, whose hash holds");
    assert_eq!((noted.cell_key.as_deref(), after.cell_key.as_deref()), (Some("a-b"), Some("a-b")));
    let hash = after.content_hash.clone();
    let expected = Record { cell_key: Some("a-b".to_owned()), content_hash: hash, ..before };
    assert_eq!(after, expected);
    assert_eq!(std::fs::read_dir(file.parent().expect("a folder")).expect("a folder").count(), 2);
}

#[test]
fn a_folder_that_cannot_be_written_is_found_before_a_measurement() {
    let folder = tempfile::tempdir().expect("a folder");
    let fine = RecordStore::new(folder.path().join("a/b"));
    assert!(fine.prepare().is_ok());
    assert_eq!(std::fs::read_dir(folder.path().join("a/b")).expect("a folder").count(), 0);
    std::fs::write(folder.path().join("file"), "").expect("a file");
    let refused = RecordStore::new(folder.path().join("file/b")).prepare();
    assert!(matches!(refused, Err(RecordError::Io { .. })), "{refused:?}");
}

#[test]
fn more_samples_than_are_read_are_not_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let samples = vec![RawSample::default(); samples::SAMPLES_MAX + 1];
    let file = RecordStore::new(folder.path()).put(&full(), &samples).expect("written");
    let record = read_file(&file).expect("a record");
    assert_eq!((samples_beside(&file, &record).expect("no file"), &record.samples), (None, &None));
    let lost = record.source.lossy.last().expect("what was lost");
    assert_eq!(lost, "200001 samples (a record has 200000 at most)");
}

#[test]
fn a_store_keeps_records_and_samples_and_overwrites_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RecordStore::new(folder.path());
    let samples =
        vec![
            RawSample { ttft_us: Some(84_000), gaps_us: vec![20_000; 3], ..RawSample::default() };
            2
        ];
    let file = store.put(&full(), &samples).expect("written");
    assert!(matches!(store.put(&full(), &samples), Err(RecordError::Exists { .. })));

    let record = read_file(&file).expect("a record");
    let kept = record.samples.expect("samples");
    let bytes = std::fs::read(file.with_file_name(&kept.file)).expect("bytes");
    assert_eq!(unpack_samples(&kept, &bytes).expect("samples"), samples);
    let other = SampleFile { n: 3, ..kept.clone() };
    assert!(matches!(unpack_samples(&other, &bytes), Err(RecordError::Damaged { .. })));
    assert!(matches!(unpack_samples(&kept, &bytes[1..]), Err(RecordError::Damaged { .. })));

    let names: Vec<_> = std::fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "no draft is left: {names:?}");

    std::fs::remove_file(&file).expect("removed");
    let completed = store.put(&full(), &samples).expect("its samples were there already");
    assert_eq!(completed, file);
}

#[test]
fn files_that_are_not_records_are_skipped_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RecordStore::new(folder.path());
    store.put(&full(), &[]).expect("written");
    let strange = [
        ("a.yaml", "hello"),
        ("b.yaml", "schema: bench-run/9\n"),
        ("notes.md", "hello"),
        (".c.yaml", ""),
    ];
    for (name, text) in strange {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    std::fs::write(folder.path().join("d.yaml"), [b'a', b'\n', 0xff]).unwrap();
    let found = store.read().expect("a listing");
    assert_eq!(found.records.len(), 1);
    let said: Vec<String> = found.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].contains("a.yaml")
            && said[1].contains("bench-run/9")
            && said[2].contains("d.yaml:2")
    );
    assert!(matches!(
        RecordStore::new(folder.path().join("none")).read(),
        Err(RecordError::Io { .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_figure_is_read_with_the_same_bits(p50 in proptest::num::f64::NORMAL, tool in "\\PC{0,40}", lossy in "(?s).{0,120}") {
        let mut record = full();
        record.metrics.spreads.insert(Metric::Rtf, Spread { p50: Some(p50), ..Spread::default() });
        record.source.tool = tool;
        record.source.lossy = vec![lossy];
        let text = to_yaml(&record).expect("text");
        let read = from_yaml("a.yaml", &text).expect("a record");
        prop_assert_eq!(&read.source, &record.source);
        prop_assert_eq!(read.metrics.figure(Metric::Rtf).map(f64::to_bits), Some(p50.to_bits()));
    }

    #[test]
    fn a_changed_byte_is_detected_or_has_no_effect(cut in 0..3000_usize, byte in any::<u8>()) {
        let mut bytes = written().into_bytes();
        let at = cut % bytes.len();
        bytes[at] = byte;
        let text = String::from_utf8_lossy(&bytes);
        // A changed byte gives an error, or the same record.
        if let Ok(record) = from_yaml("a.yaml", &text) {
            prop_assert_eq!(record, full());
        }
    }
}
