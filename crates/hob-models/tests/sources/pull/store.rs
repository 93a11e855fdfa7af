//! Finding, checking and removing what was stored, and distinguishing damaged models from missing ones.

use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use hob_models::{
    Cancelled, DiskError, Manifest, PullOutcome, Removed, Sha256, Store, StoreError, StoredModel,
    Watch,
};

use super::stage::{NAME, Stage, VOICE_BYTES, voice};

fn pulled() -> (Stage, StoredModel) {
    let stage = Stage::new();
    let model = stage.pull().expect("pulled").model;
    (stage, model)
}

fn damaged(detail: &str) -> StoreError {
    StoreError::Damaged { name: NAME.to_owned(), detail: detail.to_owned() }
}

fn verify(store: &Store, model: &StoredModel, cancel: &AtomicBool) -> Result<(), StoreError> {
    store.verify(model, &mut Watch::new(&mut |_| {}, cancel))
}

#[test]
fn reading_a_missing_store_creates_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path().join("home"));
    assert_eq!(store.list(), Ok(Vec::new()));
    let missing = StoreError::Missing { name: NAME.to_owned(), near: Vec::new() };
    assert_eq!(missing.to_string(), "model 'demo' is not stored: `hob pull demo` fetches it");
    assert_eq!(store.find(NAME), Err(missing.clone()));
    assert_eq!(store.remove(NAME), Err(missing));
    assert!(!store.root().exists());
}

#[test]
fn a_mistyped_name_gets_the_nearest_stored_names() {
    let (stage, _) = pulled();
    let near = vec![NAME.to_owned()];
    assert_eq!(stage.store.find("dema"), Err(StoreError::Missing { name: "dema".into(), near }));
}

#[test]
fn names_that_are_paths_find_no_model() {
    let (stage, _) = pulled();
    for name in ["", ".", "..", "../models/demo", "demo/2.0-t1", "/etc"] {
        let is_missing = |error| matches!(error, StoreError::Missing { .. });
        assert!(stage.store.find(name).is_err_and(is_missing), "{name}");
        assert!(stage.store.remove(name).is_err_and(is_missing), "{name}");
    }
    assert!(stage.store.find(NAME).is_ok());
}

#[test]
fn a_repaired_form_is_another_one_although_it_has_the_same_folder() {
    let (stage, model) = pulled();
    let manifest = File::options().write(true).open(Manifest::file(&model.folder)).expect("open");
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
    manifest.set_modified(an_hour_ago).expect("a time");
    let forms = || stage.store.forms_by_name().expect("a list");
    let before = forms();
    assert_eq!(stage.pull().expect("pulled").outcome, PullOutcome::AlreadyStored);
    assert_eq!(forms(), before);
    std::fs::remove_file(model.folder.join("voices/a.bin")).expect("removed");
    assert_eq!(stage.pull().expect("pulled").model.folder, model.folder);
    assert_ne!(forms(), before);
}

#[test]
fn a_file_that_is_cut_short_or_gone_is_seen_when_the_model_is_found() {
    let (stage, model) = pulled();
    let file = model.folder.join("voices/a.bin");
    std::fs::remove_file(&file).expect("removed");
    std::fs::write(&file, [0; 10]).expect("cut short");
    let short = damaged(&format!("voices/a.bin has 10 bytes instead of {VOICE_BYTES}"));
    assert_eq!(stage.store.find(NAME), Err(short));
    assert_eq!(stage.store.list(), Ok(Vec::new()));
    assert_eq!(stage.store.names(), Ok(vec![NAME.to_owned()]));
    std::fs::remove_file(&file).expect("removed");
    let gone = stage.store.find(NAME).expect_err("gone");
    assert!(gone.to_string().contains("voices/a.bin: "), "{gone}");
    assert_eq!(stage.pull().expect("repaired").model, model);
}

#[test]
fn a_flipped_bit_is_seen_when_the_model_is_verified() {
    let (stage, model) = pulled();
    assert_eq!(verify(&stage.store, &model, &AtomicBool::new(false)), Ok(()));
    let mut bytes = voice("b");
    bytes[VOICE_BYTES / 2] ^= 1;
    std::fs::write(model.folder.join("voices/b.bin"), &bytes).expect("flipped");
    assert_eq!(stage.store.find(NAME).as_ref(), Ok(&model), "its length is right");
    let (got, was) = (Sha256::of(&bytes), Sha256::of(&voice("b")));
    let flipped = damaged(&format!("voices/b.bin has the checksum {got}, expected {was}"));
    assert_eq!(verify(&stage.store, &model, &AtomicBool::new(false)), Err(flipped));
    // The error message says that a pull repairs it. The download folder holds the same file, so hob must
    // fetch it again.
    assert_eq!(stage.pull().expect("repaired").outcome, PullOutcome::Fetched);
    assert_eq!(verify(&stage.store, &model, &AtomicBool::new(false)), Ok(()));
}

#[test]
fn verifying_can_be_interrupted() {
    let (stage, model) = pulled();
    let cancelled = verify(&stage.store, &model, &AtomicBool::new(true));
    assert_eq!(cancelled, Err(StoreError::Cancelled(Cancelled)));
}

#[test]
fn a_manifest_keeps_what_was_asked_for_and_older_ones_without_it_are_read() {
    let (_stage, model) = pulled();
    let path = model.folder.join("model.json");
    assert_eq!(model.manifest.asked, None);
    let text = std::fs::read_to_string(&path).expect("a manifest");
    assert!(!text.contains("\"asked\""), "as before: {text}");

    let mut stage = Stage::new();
    stage.options.asked = Some("owner/name".to_owned());
    let asked = stage.pull().expect("pulled").model.manifest.asked;
    assert_eq!(asked.as_deref(), Some("owner/name"));
    assert_eq!(stage.store.manifest(NAME).expect("a manifest").asked, asked);
}

#[test]
fn a_manifest_that_cannot_be_read_is_damage() {
    let (stage, model) = pulled();
    let path = model.folder.join("model.json");
    let good = std::fs::read_to_string(&path).expect("a manifest");
    let of_the_future = good.replace("\"format\": 1", "\"format\": 2");
    let rows = [
        (String::new(), "model.json: EOF"),
        (good.replace("\"title\"", "\"heading\""), "model.json: unknown field `heading`"),
        (of_the_future, "model.json has format 2, and this hob reads 1"),
        (" ".repeat(2 << 20), "model.json has 2097152 bytes, and 1048576 is the limit"),
    ];
    for (text, expect) in rows {
        std::fs::write(&path, text).expect("written over");
        let found = stage.store.find(NAME).expect_err("damaged");
        let StoreError::Damaged { detail, .. } = &found else { panic!("{found}") };
        assert!(detail.starts_with(expect), "{detail}");
    }
    std::fs::remove_file(&path).expect("removed");
    assert!(matches!(stage.store.find(NAME), Err(StoreError::Damaged { .. })));
}

#[test]
fn files_that_the_stored_form_of_another_version_shares_do_not_count_as_fetched() {
    let (mut stage, _) = pulled();
    // No disk has room for it, so the error has the number.
    stage.entry.parts[0].sources[0].files[0].pin.bytes = 1 << 60;
    let needed_bytes = |stage: &Stage| match stage.store.check_room(&stage.entry) {
        Err(StoreError::Disk(DiskError::TooSmall { needed_bytes, .. })) => needed_bytes,
        other => panic!("{other:?}"),
    };
    let same_bytes = needed_bytes(&stage);
    assert!(same_bytes < stage.entry.pull_bytes_max(), "its raw files are here");
    stage.entry.version = "3.0".to_owned();
    let other_bytes = needed_bytes(&stage);
    assert_eq!(other_bytes - same_bytes, 2 * VOICE_BYTES as u64, "the stored form has the voices");
    let arrived = [stage.raw("arrived.onnx"), stage.partial("model.onnx")];
    for (path, all) in arrived.into_iter().zip(1..) {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, [0; 1_000]).expect("a file");
        let expected = other_bytes - all * 1_000;
        assert_eq!(needed_bytes(&stage), expected, "an interrupted pull of this version");
    }
}

#[test]
fn remove_frees_all_disk_space() {
    let (stage, model) = pulled();
    assert!(model.disk_bytes > 2 * 300_001, "the raw graph and the stored one");
    assert_eq!(stage.store.remove(NAME), Ok(Removed { freed_bytes: model.disk_bytes }));
    assert_eq!(stage.store.list(), Ok(Vec::new()));
    let left = ["models", "downloads"].map(|below| stage.path("home").join(below).join(NAME));
    assert!(left.iter().all(|folder| !folder.exists()));
    stage.pull().expect("it can be pulled again");
}
