//! Each way to name a model leads to its files, and to the name that it is stored under.

use hob_models::catalog::SourceKind;
use hob_models::catalog::names::{NAMED, canonical};
use hob_models::known::KNOWN;
use hob_models::{QuantMix, Sha256};

use super::hub::COMMIT;
use super::stage::{Stage, model, other, parts, read};

#[test]
fn short_names_are_fetched_from_the_repository_that_the_catalog_has_for_them() {
    let stage = Stage::new();
    let (usual, eight) = (model(), other());
    let files: [(&str, &[u8]); 3] =
        [("Qwen3-8B-Q8_0.gguf", &eight), ("Qwen3-8B-Q4_K_M.gguf", &usual), ("README.md", b"x")];
    stage.hub.put("Qwen/Qwen3-8B-GGUF", &files);
    for (asked, name, bytes) in [
        ("qwen3", "qwen3:8b", &usual),
        ("qwen3:latest", "qwen3:8b", &usual),
        ("qwen3:8b", "qwen3:8b", &usual),
        ("qwen3:8b-q8_0", "qwen3:8b-q8_0", &eight),
    ] {
        let pulled = stage.fetch(asked);
        assert_eq!(pulled.model.name(), name, "{asked}");
        let file = pulled.model.chat_file().expect("a chat model");
        assert_eq!(&read(&file), bytes, "{asked}");
        assert_eq!(stage.store.stored_name(asked), name);
    }
    let source = &stage.store.find("qwen3:8b").expect("stored").manifest.sources[0].source;
    assert_eq!(*source, format!("Hugging Face Qwen/Qwen3-8B-GGUF at {}", &COMMIT[..8]));
    assert_eq!(stage.store.names().expect("names"), ["qwen3:8b", "qwen3:8b-q8_0"]);
}

/// The catalog and `hob fit` speak of the same models: each is fetched under the name that `fit` prints.
#[test]
fn every_short_name_is_found_under_itself_and_asks_the_hub_for_a_pinned_file() {
    let stage = Stage::new();
    let file = model();
    for named in NAMED.iter() {
        stage.hub.put(named.repo, &[("m-Q4_K_M.gguf", &file)]);
    }
    for named in NAMED.iter().filter(|named| canonical(named.name) == named.name) {
        for asked in [named.name].iter().chain(&named.also) {
            let located = stage.locate(asked).expect(asked);
            assert_eq!(located.entry.name, named.name, "{asked}");
            let source = &located.entry.parts[0].sources[0];
            assert_eq!(source.kind(), SourceKind::Hub, "{asked}");
            assert_eq!(source.files[0].pin.sha256, Some(Sha256::of(&file)), "{asked}");
        }
    }
    let usual = QuantMix::named("Q4_K_M").expect("a quant");
    for known in KNOWN.iter() {
        let (tag, context_tokens) = &known.tags[0];
        let model = known.model(usual, *context_tokens).expect("a model");
        let hob_core::fit::Location::Catalog { name, .. } = model.location else { panic!("{tag}") };
        assert!(stage.locate(&name).is_ok(), "{tag}");
    }
}

#[test]
fn repositories_files_and_pages_of_the_hub_have_names_of_their_own() {
    let stage = Stage::new();
    let (usual, eight) = (model(), other());
    let [first, second] = parts();
    let files: [(&str, &[u8]); 5] = [
        ("m-Q4_K_M.gguf", &usual),
        ("sub/m-Q8_0.gguf", &eight),
        ("big/m-F32-00001-of-00002.gguf", &first),
        ("big/m-F32-00002-of-00002.gguf", &second),
        ("mmproj-F16.gguf", b"x"),
    ];
    stage.hub.put("o/m", &files);
    let hub = stage.hub.address.clone();
    let rows = [
        ("o/m".to_owned(), "o/m:Q4_K_M", "m-Q4_K_M.gguf"),
        ("hf.co/o/m:q8_0".to_owned(), "o/m:Q8_0", "sub/m-Q8_0.gguf"),
        ("o/m@main:Q8_0".to_owned(), "o/m:Q8_0", "sub/m-Q8_0.gguf"),
        (format!("o/m@{COMMIT}:Q8_0"), &format!("o/m@{COMMIT}:Q8_0"), "sub/m-Q8_0.gguf"),
        ("hf:o/m/sub/m-Q8_0.gguf".to_owned(), "o/m/sub/m-Q8_0", "sub/m-Q8_0.gguf"),
        ("o/m/m-Q4_K_M.gguf".to_owned(), "o/m/m-Q4_K_M", "m-Q4_K_M.gguf"),
        (format!("{hub}/o/m"), "o/m:Q4_K_M", "m-Q4_K_M.gguf"),
        (format!("{hub}/o/m?library=gguf"), "o/m:Q4_K_M", "m-Q4_K_M.gguf"),
        (format!("{hub}/o/m/blob/main/sub/m-Q8_0.gguf"), "o/m/sub/m-Q8_0", "sub/m-Q8_0.gguf"),
        (format!("{hub}/o/m/resolve/main/m-Q4_K_M.gguf"), "o/m/m-Q4_K_M", "m-Q4_K_M.gguf"),
        ("o/m:F32".to_owned(), "o/m:F32", "big/m-F32-00001-of-00002.gguf"),
        (
            "hf:o/m/big/m-F32-00002-of-00002.gguf".to_owned(),
            "o/m/big/m-F32",
            "big/m-F32-00001-of-00002.gguf",
        ),
    ];
    for (asked, name, file) in rows {
        let located = stage.locate(&asked).expect(&asked);
        assert_eq!(located.entry.name, name, "{asked}");
        let files = &located.entry.parts[0].sources[0].files;
        assert_eq!(files[0].pieces[0].at, file, "{asked}");
        assert_eq!(located.entry.licences.len(), 1);
    }
    assert_eq!(stage.finder().locate("o/m", Some("mine")).expect("found").entry.name, "mine");
}

#[test]
fn of_a_repository_the_only_quant_that_is_here_is_meant() {
    let stage = Stage::new();
    let (usual, eight) = (model(), other());
    stage.hub.put("o/m", &[("m-Q4_K_M.gguf", &usual), ("m-Q8_0.gguf", &eight)]);
    stage.fetch("o/m:Q8_0");
    assert_eq!(stage.store.stored_name("o/m"), "o/m:Q8_0");
    stage.fetch("o/m");
    assert_eq!(stage.store.stored_name("o/m"), "o/m", "two are here");
    for asked in ["hf:o/m:Q8_0", "o/m:q8_0", "O/M:Q8_0"] {
        assert_eq!(stage.store.stored_name(asked), "o/m:Q8_0", "{asked}");
    }
}

#[test]
fn tags_of_ollama_come_from_its_registry_and_from_its_folder_without_a_network() {
    let stage = Stage::new();
    let file = model();
    stage.hub.tag("library/tiny/1b", &file);
    stage.hub.tag("me/mine/latest", &file);
    stage.hub.tag("library/phi4/latest", &file);
    stage.hub.tag("library/phi4/14b", &file);
    for (asked, name) in [
        ("tiny:1b", "tiny:1b"),
        ("me/mine:latest", "me/mine:latest"),
        // The catalog has it, and the hub does not.
        ("phi4", "phi4:14b"),
    ] {
        let located = stage.locate(asked).expect(asked);
        assert_eq!(located.entry.name, name, "{asked}");
        let source = &located.entry.parts[0].sources[0];
        assert_eq!(source.files[0].pin.sha256, Some(Sha256::of(&file)));
        let stored = stage.pull(&located).expect(asked).model;
        assert_eq!(read(&stored.chat_file().expect("a file")), file);
    }
    stage.hub.requests();
    let digest = Sha256::of(&file);
    stage.write(&format!("ollama/blobs/sha256-{digest}"), &file);
    let manifest = format!(
        r#"{{"layers":[{{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:{digest}","size":1}}]}}"#
    );
    let place = "ollama/manifests/registry.ollama.ai/library/local/7b";
    stage.write(place, manifest.as_bytes());
    let stored = stage.fetch("local:7b").model;
    assert_eq!(stored.name(), "local:7b");
    assert_eq!(stored.manifest.files[0].sha256, digest);
    assert_eq!(stage.hub.requests(), [], "it is on this disk");
}

#[test]
fn addresses_and_files_are_called_as_their_file() {
    let stage = Stage::new();
    let file = model();
    let path = stage.write("downloads/My Model.gguf", &file);
    let stored = stage.fetch(&path).model;
    assert_eq!(stored.name(), "My-Model");
    assert_eq!(read(&stored.chat_file().expect("a file")), file);
    assert_eq!(read(std::path::Path::new(&path)), file, "it stays where it was");
    let [first, second] = parts();
    stage.write("split/a-00001-of-00002.gguf", &first);
    let last = stage.write("split/a-00002-of-00002.gguf", &second);
    let stored = stage.fetch(&last).model;
    assert_eq!((stored.name(), stored.manifest.files.len()), ("a", 2));
    // Another server than the hub.
    let other = Stage::new();
    other.hub.put("o/m", &[("dir/x-Q4_K_M.gguf", &file)]);
    let address = format!("{}/o/m/resolve/main/dir/x-Q4_K_M.gguf", other.hub.address);
    let located = stage.locate(&address).expect("found");
    assert_eq!(located.entry.name, "x-Q4_K_M");
    assert_eq!(located.entry.parts[0].sources[0].kind(), SourceKind::Address);
    assert_eq!(located.entry.parts[0].sources[0].files[0].pin.sha256, None);
    assert_eq!(read(&stage.pull(&located).expect("pulled").model.chat_file().expect("it")), file);
}
