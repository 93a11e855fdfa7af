//! What happens when nothing goes wrong, and how little happens the second time.

use hob_models::{PartSource, Progress, PullOutcome, PythonClient, SourceKind, Store, Watch};

use super::stage::{NAME, PIP, Stage, UV, VOICES, graph, hub_path, voice};
use crate::server::Request;

fn verified(store: &Store) {
    let model = store.find(NAME).expect("found");
    let cancel = std::sync::atomic::AtomicBool::new(false);
    store.verify(&model, &mut Watch::new(&mut |_| {}, &cancel)).expect("verified");
}

fn whole(path: String) -> Request {
    Request { path, from: None, token: None }
}

#[test]
fn a_pull_asks_each_source_once_and_stores_the_transformed_model() {
    let stage = Stage::new();
    let pulled = stage.pull().expect("pulled");
    assert_eq!(pulled.outcome, PullOutcome::Fetched);
    assert_eq!(stage.calls(), ["pip demo-part-1==2.0", "pip demo-part-2==2.0"]);
    assert_eq!(stage.server.requests(), VOICES.map(|name| whole(hub_path(name))));

    let model = pulled.model;
    assert_eq!(model.folder, stage.path("home/models/demo/2.0-t1"));
    let files = model.manifest.files.iter();
    let voices = files.filter_map(|file| file.path.strip_prefix("voices/")?.strip_suffix(".bin"));
    assert_eq!(voices.collect::<Vec<_>>(), VOICES);
    let mut mirrored = std::fs::read(model.folder.join("stored.onnx")).expect("stored");
    mirrored.reverse();
    assert_eq!(mirrored, graph());
    assert_eq!(std::fs::read(model.folder.join("voices/b.bin")).expect("stored"), voice("b"));
    let source = |part: &str, source: &str| PartSource { part: part.into(), source: source.into() };
    let sources = [
        source("graph", "2 Python wheels, demo-part-1 2.0 to demo-part-2 2.0"),
        source("voices", "Hugging Face people/demo at 0123"),
    ];
    assert_eq!(model.manifest.sources, sources);
    verified(&stage.store);
    assert_eq!(stage.store.list().expect("listed"), [model]);
}

#[test]
fn the_second_pull_does_nothing() {
    let stage = Stage::new();
    let first = stage.pull().expect("pulled");
    stage.forget();
    let second = stage.pull().expect("pulled");
    assert_eq!((second.outcome, second.model), (PullOutcome::AlreadyStored, first.model));
    assert_eq!((stage.calls(), stage.server.requests()), (Vec::new(), Vec::new()));
}

#[test]
fn a_newer_transformation_is_applied_to_the_raw_files_that_were_kept() {
    let mut stage = Stage::new();
    let old = stage.pull().expect("pulled").model;
    stage.forget();
    stage.transform_version = 2;
    let new = stage.pull().expect("pulled");
    assert_eq!(new.outcome, PullOutcome::Transformed);
    assert_eq!((stage.calls(), stage.server.requests()), (Vec::new(), Vec::new()));
    assert_eq!(new.model.manifest.transform_version, 2);
    assert_eq!(new.model.manifest.sources, old.manifest.sources, "still known");
    assert!(!old.folder.exists(), "the old form goes");
    verified(&stage.store);
}

#[test]
fn only_the_raw_file_that_was_damaged_is_fetched_again() {
    let mut stage = Stage::new();
    stage.pull().expect("pulled");
    stage.forget();
    stage.transform_version = 2;
    // A voice lies on the disk once, so the stored one is written over too: that must heal as well.
    let raw = stage.raw("voices/b.bin");
    std::fs::remove_file(&raw).expect("removed");
    std::fs::write(&raw, vec![0; voice("b").len()]).expect("damaged");
    assert_eq!(stage.pull().expect("pulled").outcome, PullOutcome::Fetched);
    assert_eq!(stage.server.requests(), [whole(hub_path("b"))]);
    assert_eq!(stage.calls(), [""; 0]);
    verified(&stage.store);
}

#[test]
fn uv_does_as_well_as_pip() {
    let mut stage = Stage::new();
    stage.fetcher.python = vec![PythonClient::Uv(stage.program("uv", UV).into())];
    stage.pull().expect("pulled");
    assert_eq!(stage.calls(), ["uv demo-part-1==2.0", "uv demo-part-2==2.0"]);
    verified(&stage.store);
}

#[test]
fn pip_downloads_outside_of_a_virtual_environment_also_if_the_user_requires_one() {
    let stage = Stage::new();
    let requires = r#"[ "$PIP_REQUIRE_VIRTUALENV" = 0 ] || exit 3"#;
    stage.program("pip", &format!("{requires}\n{PIP}"));
    stage.pull().expect("pulled");
}

#[test]
fn clients_that_are_not_there_are_passed_over() {
    let mut stage = Stage::new();
    let pip = |path: std::path::PathBuf| PythonClient::Pip(vec![path.into()]);
    let bare = stage.program("bare-python", "echo 'bare-python: No module named pip' >&2; exit 1");
    let working = stage.fetcher.python.remove(0);
    stage.fetcher.python = vec![pip(stage.path("not-there")), pip(bare), working];
    stage.pull().expect("pulled");
    assert!(stage.calls().contains(&"pip demo-part-2==2.0".to_owned()));
}

#[test]
fn a_source_that_fails_is_said_and_the_next_one_delivers() {
    let mut stage = Stage::new();
    stage.fetcher.hub = "http://127.0.0.1:1".to_owned();
    let mut failed = Vec::new();
    let pulled = stage.pull_watched(&mut |progress, _| {
        if let Progress::SourceFailed { part, source, .. } = progress {
            failed.push((part.clone(), source.clone()));
        }
    });
    let source = &pulled.expect("pulled").model.manifest.sources[1].source;
    assert_eq!(source, "npm tarball demo-voices 2.0");
    assert_eq!(failed, [("voices".into(), "Hugging Face people/demo at 0123".into())]);
    verified(&stage.store);
}

#[test]
fn only_the_wanted_kinds_of_source_are_asked() {
    let mut stage = Stage::new();
    stage.options.only = vec![SourceKind::Wheel, SourceKind::Tarball];
    stage.pull().expect("pulled");
    assert_eq!(stage.server.requests(), []);
}

#[test]
fn a_folder_with_the_packages_needs_nothing_else() {
    let mut stage = Stage::new();
    let stick = stage.path("stick");
    std::fs::create_dir(&stick).expect("a folder");
    for (from, to) in [
        ("demo-part-1==2.0.whl", "demo_part_1-2.0-py3-none-any.whl"),
        ("demo-part-2==2.0.whl", "Demo_Part_2-2.0-py3-none-any.whl"),
        ("demo-voices-2.0.tgz", "demo-voices-2.0.tgz"),
    ] {
        std::fs::copy(stage.shelf().join(from), stick.join(to)).expect("copied");
    }
    stage.options.from = Some(stick);
    stage.pull().expect("pulled");
    assert_eq!((stage.calls(), stage.server.requests()), (Vec::new(), Vec::new()));
    verified(&stage.store);
}

#[test]
fn a_folder_with_the_files_does_too_and_keeps_them() {
    let mut stage = Stage::new();
    let stick = stage.path("stick");
    std::fs::create_dir_all(stick.join("voices")).expect("a folder");
    std::fs::write(stick.join("model.onnx"), graph()).expect("a file");
    std::fs::write(stick.join("voices/a.bin"), voice("a")).expect("a file");
    // By its bare name, as a browser saves it.
    std::fs::write(stick.join("b.bin"), voice("b")).expect("a file");
    stage.options.from = Some(stick.clone());
    stage.pull().expect("pulled");
    assert_eq!((stage.calls(), stage.server.requests()), (Vec::new(), Vec::new()));
    assert_eq!(std::fs::read(stick.join("model.onnx")).expect("still there"), graph());
}

#[test]
fn one_file_stands_in_for_its_part_and_the_rest_is_fetched() {
    let mut stage = Stage::new();
    let file = stage.path("downloaded.bin");
    std::fs::write(&file, graph()).expect("a file");
    stage.options.from = Some(file);
    stage.pull().expect("pulled");
    assert_eq!(stage.calls(), [""; 0], "no wheel was needed");
    assert_eq!(stage.server.requests().len(), VOICES.len());
}
