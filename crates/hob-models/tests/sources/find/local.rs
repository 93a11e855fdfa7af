//! Files, folders and stores on this machine.

use hob_core::fit::{Format, Location};
use hob_core::machine::Basis;
use hob_core::weights::Part;
use hob_models::gguf::sample::SampleGguf;

use super::generated::{
    CONFIG, ROWS, find, finder, parts, quant, refused, safetensors, with_store, write,
};

#[test]
fn a_file_is_its_header() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(folder.path(), "tiny-F32.gguf", &SampleGguf::llama().bytes());
    let found = find(&finder(), path.to_str().expect("a path"));
    assert_eq!((&*found.model.name, found.model.format), ("tiny-F32", Format::Gguf));
    assert_eq!((&*found.model.quant, found.model.basis), ("F32", Basis::Measured));
    assert_eq!((found.requests, found.fetched_bytes, found.notes.len()), (0, 0, 0));
    let read = hob_models::Gguf::open(&path).and_then(|gguf| gguf.shape());
    assert_eq!(found.model.shape, read.expect("a shape"));
}

#[test]
fn a_file_that_is_cut_is_described_with_a_note() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = SampleGguf::llama().bytes();
    let path = write(folder.path(), "a.gguf", &bytes[..bytes.len() - 100]);
    let found = find(&finder(), path.to_str().expect("a path"));
    assert!(found.notes[0].contains("100 bytes are missing"), "{:?}", found.notes);
}

#[test]
fn another_quant_is_made_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(folder.path(), "a.gguf", &SampleGguf::llama().bytes());
    let path = path.to_str().expect("a path");
    let whole = find(&finder(), path);
    let found = finder().find(path, quant("Q8_0")).expect("made up");
    assert_eq!((&*found.model.quant, found.model.basis), ("Q8_0", Basis::Assumed));
    let bytes = |found: &hob_models::FoundModel| found.model.shape.weights.bytes();
    assert!(bytes(&found) * 3 < bytes(&whole), "{} of {}", bytes(&found), bytes(&whole));
    let same = finder().find(path, quant("F32")).expect("its own");
    assert_eq!(same.model, whole.model);
}

#[test]
fn any_part_stands_for_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = parts();
    let whole = write(folder.path(), "a-00001-of-00002.gguf", &first);
    let missing = refused(&finder(), whole.to_str().expect("a path"));
    assert!(missing.contains("a-00002-of-00002.gguf is missing, one of 2"), "{missing}");
    let last = write(folder.path(), "a-00002-of-00002.gguf", &second);
    for path in [&whole, &last, &folder.path().to_owned()] {
        let found = find(&finder(), path.to_str().expect("a path"));
        assert_eq!(found.model.name, "a");
        assert!(!found.model.shape.weights.is_tied());
    }
}

#[test]
fn a_folder_with_several_models_names_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    assert!(refused(&finder(), path).contains("has no model that hob can read"));
    write(folder.path(), "notes.txt", b"");
    assert!(refused(&finder(), path).contains("only notes.txt"));
    let sample = SampleGguf::llama().bytes();
    write(folder.path(), "mmproj-F16.gguf", &[0; 1_000]);
    write(folder.path(), "a-F32.gguf", &sample);
    let found = find(&finder(), path);
    assert_eq!(found.model.shape.weights.sum(|group| group.part == Part::Tower), 1_000);
    let note = found.notes.last().expect("a note");
    assert!(note.ends_with("tower in mmproj-F16.gguf, 1 MB"), "{note}");
    write(folder.path(), "a-Q8_0.gguf", &sample);
    assert!(refused(&finder(), path).contains("name one of a-F32.gguf, a-Q8_0.gguf"));
    assert!(finder().find(path, quant("F32")).expect("it").source.ends_with("a-F32.gguf"));
    write(folder.path(), "model.safetensors", b"");
    assert!(refused(&finder(), path).contains("safetensors files; name one of a-F32.gguf"));
}

#[test]
fn safetensors_are_their_headers_and_their_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), "model.safetensors", &safetensors(&ROWS, 0));
    let path = folder.path().to_str().expect("a path");
    assert!(refused(&finder(), path).contains("config.json is missing"));
    write(folder.path(), "config.json", CONFIG.as_bytes());
    for asked in [path, file.to_str().expect("a path")] {
        let model = find(&finder(), asked).model;
        assert_eq!((model.format, &*model.quant), (Format::Plain, "BF16"));
        let weights = &model.shape.weights;
        let of = |part| weights.sum(|group| group.part == part);
        assert_eq!(of(Part::TokenEmbedding), 12_800);
        assert_eq!((of(Part::Output), of(Part::Dense)), (12_800, 8_192 + 16_384));
        assert_eq!((of(Part::Predictor), of(Part::Tower)), (16_384, 400));
        assert_eq!((model.shape.layers.len(), model.basis), (2, Basis::Measured));
    }
    let made = finder().find(path, quant("AWQ")).expect("made up").model;
    assert_eq!((made.format, &*made.quant), (Format::Awq, "AWQ 4-bit g128"));
}

#[test]
fn a_tied_output_is_not_loaded_twice_and_shards_are_found_by_their_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = CONFIG.replace('}', r#", "tie_word_embeddings": true}"#);
    write(folder.path(), "config.json", config.as_bytes());
    write(folder.path(), "model-1.safetensors", &safetensors(&ROWS[..3], 0));
    write(folder.path(), "old.safetensors", &safetensors(&ROWS, 0));
    let index = r#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;
    write(folder.path(), "model.safetensors.index.json", index.as_bytes());
    let path = folder.path().to_str().expect("a path");
    assert!(refused(&finder(), path).contains("model-2.safetensors is missing, one of 2"));
    let second = safetensors(&ROWS[3..4], 0);
    write(folder.path(), "model-2.safetensors", &second[..second.len() - 7]);
    let found = find(&finder(), path);
    assert_eq!(found.model.shape.weights.bytes(), 12_800 + 8_192 + 16_384);
    assert!(found.notes[0].contains("7 bytes are missing"), "{:?}", found.notes);
}

#[test]
fn shards_without_an_index_are_found_by_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "config.json", CONFIG.as_bytes());
    let first =
        write(folder.path(), "model-00001-of-00002.safetensors", &safetensors(&ROWS[..3], 0));
    let first = first.to_str().expect("a path");
    let missing = refused(&finder(), first);
    assert!(missing.contains("00002-of-00002.safetensors is missing, one of 2"), "{missing}");
    write(folder.path(), "model-00002-of-00002.safetensors", &safetensors(&ROWS[3..], 0));
    let path = folder.path().to_str().expect("a path");
    let bytes = |asked| find(&finder(), asked).model.shape.weights.bytes();
    assert_eq!(bytes(first), bytes(path));
}

#[test]
fn what_is_wrong_with_tensors_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    let sound = safetensors(&ROWS, 0);
    let long = vec![b' '; 5 << 20];
    let no_layers = CONFIG.replace(r#""num_hidden_layers": 2"#, r#""num_hidden_layers": 0"#);
    let strange = CONFIG.replace("qwen3", "quen3");
    let rows: [(&[u8], &[u8], &str); 6] = [
        (CONFIG.as_bytes(), b"junk", "model.safetensors: the file cannot be read"),
        (CONFIG.as_bytes(), &safetensors(&[], 0), "has no weights"),
        (&long, &sound, "more than any such file has"),
        (strange.as_bytes(), &sound, "models of type 'quen3'; the nearest are qwen3"),
        (no_layers.as_bytes(), &sound, "'qwen3.block_count' must not be 0"),
        (b"{", &sound, "not a JSON object"),
    ];
    for (config, file, expected) in rows {
        write(folder.path(), "config.json", config);
        write(folder.path(), "model.safetensors", file);
        let said = refused(&finder(), path);
        assert!(said.contains(expected) && !said.contains('\n'), "{said}, and not {expected}");
    }
    std::fs::remove_file(folder.path().join("config.json")).expect("removed");
    let inside = write(folder.path(), "config.json/x", b"");
    let file = folder.path().join("model.safetensors");
    let said = refused(&finder(), file.to_str().expect("a path"));
    assert!(said.contains("config.json cannot be read"), "{said} {}", inside.display());
}

#[test]
fn ollamas_models_are_found_by_their_names() {
    let root = tempfile::tempdir().expect("a folder");
    let finder = with_store(root.path());
    let (model, tower) = ("a".repeat(64), "b".repeat(64));
    let folder = root.path().join("ollama");
    write(&folder, &format!("blobs/sha256-{model}"), &SampleGguf::llama().bytes());
    let layer = |kind: &str, digits: &str, bytes: u64| {
        format!(
            r#"{{"mediaType": "application/vnd.ollama.image.{kind}", "digest": "sha256:{digits}", "size": {bytes}}}"#
        )
    };
    let manifest = |layers: &[String]| format!(r#"{{"layers": [{}]}}"#, layers.join(","));
    let library = "manifests/registry.ollama.ai/library";
    let layers = [layer("model", &model, 1), layer("projector", &tower, 70_000)];
    write(&folder, &format!("{library}/llama3.1/8b"), manifest(&layers).as_bytes());
    write(&folder, &format!("{library}/mine/latest"), manifest(&layers[..1]).as_bytes());
    write(&folder, &format!("{library}/cloud/latest"), manifest(&layers[1..]).as_bytes());
    let own = "c".repeat(64);
    let sample = ["block_count", "context_length", "embedding_length"]
        .iter()
        .fold(SampleGguf::llama().text("general.architecture", "gptoss"), |sample, key| {
            sample.u32(&format!("gptoss.{key}"), 8)
        });
    write(&folder, &format!("blobs/sha256-{own}"), &sample.bytes());
    let of_own = [layer("model", &own, 1)];
    write(&folder, &format!("{library}/own/latest"), manifest(&of_own).as_bytes());
    let gone = [layer("model", &tower, 1)];
    write(&folder, &format!("{library}/gone/latest"), manifest(&gone).as_bytes());
    write(&folder, &format!("{library}/bad/latest"), b"{");
    let found = find(&finder, "llama3.1:8b");
    assert_eq!((&*found.model.name, found.model.basis), ("llama3.1:8b", Basis::Measured));
    assert_eq!(found.model.shape.weights.sum(|group| group.part == Part::Tower), 70_000);
    let file = Some(folder.join(format!("blobs/sha256-{model}")).display().to_string());
    let location = Location::Ollama { tag: "llama3.1:8b".to_owned(), file };
    assert_eq!(found.model.location, location);
    assert_eq!(find(&finder, "mine").model.shape.architecture, "llama");
    let found = find(&finder, "own");
    assert_eq!((&*found.model.shape.architecture, found.model.shape.layers.len()), ("gpt-oss", 8));
    assert!(found.notes[0].contains("'gptoss'"), "{:?}", found.notes);
    assert!(refused(&finder, "cloud").contains("names no model on this machine"));
    assert!(refused(&finder, "gone").contains(&format!("sha256-{tower} is missing")));
    assert!(refused(&finder, "bad").contains("not a manifest of Ollama"));
    // What Ollama does not have, the table may know.
    assert_eq!(find(&finder, "qwen3:8b").model.basis, Basis::Assumed);
}

#[test]
fn known_models_need_no_file() {
    let found = find(&finder(), "qwen3-vl:8b");
    assert_eq!((&*found.model.quant, found.model.basis), ("Q4_K_M", Basis::Assumed));
    assert!(found.model.shape.weights.0.iter().any(|group| group.part == Part::Tower));
    assert!(found.notes[0].contains("Q4_K_M"), "{:?}", found.notes);
    let exl3 = finder().find("qwen3:8b", quant("EXL3-4.0")).expect("known").model;
    assert_eq!((exl3.format, &*exl3.quant), (Format::Exl3, "EXL3 4.0bpw"));
}

#[test]
fn what_is_not_there_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, bytes: &[u8]| {
        write(folder.path(), name, bytes).to_str().expect("a path").to_owned()
    };
    let eyes = SampleGguf::llama().text("general.architecture", "clip").bytes();
    let other = SampleGguf::llama().text("general.architecture", "lama").bytes();
    let strange = SampleGguf::llama().raw_tensor("odd.weight", &[32], 99, (0, 0)).bytes();
    let rows = [
        ("./nothing".to_owned(), "./nothing: there is no such file"),
        ("nothing.gguf".to_owned(), "there is no such file"),
        ("".to_owned(), "there is no such file"),
        ("qwen3:8".to_owned(), "hob knows no model 'qwen3:8'; did you mean qwen3:8b"),
        ("zzzzzzzz".to_owned(), "give a file, an address, or owner/name"),
        (path("junk.gguf", b"PK and more"), "this is not a GGUF file"),
        (path("short.gguf", b"GGUF"), "cut short"),
        (path("eyes.gguf", &eyes), "only the vision or audio tower of a model"),
        (path("other.gguf", &other), "architecture 'lama'"),
        (path("other.gguf", &other), "hob knows only that its 11 tensors have 70400 bytes"),
        (path("strange.gguf", &strange), "tensor 'odd.weight' has type 99"),
        (path("a.safetensors", b"x"), "config.json is missing"),
    ];
    for (asked, expected) in rows {
        let said = refused(&finder(), &asked);
        assert!(said.contains(expected) && !said.contains('\n'), "{said}, and not {expected}");
    }
}

#[test]
fn of_twenty_gigabytes_only_the_header_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = 1_250_000;
    let sample = SampleGguf::llama();
    let last = hob_models::Gguf::read(std::io::Cursor::new(sample.bytes())).expect("a file");
    let last = last.tensors().last().expect("a tensor").clone();
    let offset = (last.offset + last.bytes).next_multiple_of(32);
    // No data comes with it: the file is made longer without writing anything.
    let sample = sample.raw_tensor("blk.0.huge.weight", &[4_096, rows], 0, (offset, 0));
    let path = write(folder.path(), "huge.gguf", &sample.bytes());
    let file = std::fs::File::options().write(true).open(&path).expect("the file");
    file.set_len(4 * 4_096 * rows + (1 << 20)).expect("a sparse file");
    let found = find(&finder(), path.to_str().expect("a path"));
    assert!(found.model.shape.weights.bytes() > 20_000_000_000);
    assert_eq!(found.notes, [""; 0]);
}
