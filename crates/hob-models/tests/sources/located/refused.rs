//! What hob says about a model that it cannot download: one sentence with what to do, before it fetches any weights.

use hob_models::Finder;
use hob_models::gguf::sample::SampleGguf;

use super::stage::{Stage, model};

#[test]
fn gated_private_and_missing_repositories_have_different_errors() {
    let mut stage = Stage::new();
    stage.hub.put("o/gated", &[("m-Q4_K_M.gguf", &model())]);
    stage.hub.gate("o/gated");
    stage.hub.put("o/m", &[("m-Q4_K_M.gguf", &model()), ("m-Q8_0.gguf", &model())]);
    let rows = [
        ("o/gated", "/o/gated", "accept its terms there, and set HF_TOKEN"),
        ("o/none", "/o/none", "check the name, or set HF_TOKEN to a token that may read it"),
        ("o/m@v9", "/o/m", "has no such revision; name a branch, a tag or a commit"),
        ("o/m:Q2_K", "o/m", "has no Q2_K; there are m-Q4_K_M.gguf, m-Q8_0.gguf"),
        ("hf:o/m/none.gguf", "none.gguf", "does not exist"),
    ];
    for (asked, named, expected) in rows {
        let said = stage.refused(asked);
        assert!(said.contains(named) && said.contains(expected), "{asked}: {said}");
    }
    stage.token = Some("hf_of_a_stranger".to_owned());
    let said = stage.refused("o/gated");
    assert!(said.contains("is gated: accept its terms there"), "{said}");
    assert!(!said.contains("stranger"), "{said}");
}

#[test]
fn a_file_that_would_not_load_is_refused_by_its_header() {
    let stage = Stage::new();
    let mut cut = model();
    cut.truncate(cut.len() - 1_000);
    let unknown = SampleGguf::llama().text("general.architecture", "mamba9").bytes();
    let tower = SampleGguf::llama().text("general.architecture", "clip").bytes();
    let files: [(&str, &[u8]); 4] = [
        ("cut.gguf", &cut),
        ("unknown.gguf", &unknown),
        ("tower.gguf", &tower),
        ("text.gguf", b"hello, this is no model"),
    ];
    stage.hub.put("o/m", &files);
    stage.hub.put("o/torch", &[("pytorch_model.bin", b"x")]);
    let rows = [
        ("o/m/cut.gguf", "1000 bytes are missing, so it would not load"),
        ("o/m/unknown.gguf", "does not know the architecture 'mamba9'"),
        ("o/m/tower.gguf", "holds only the vision or audio tower of a model"),
        ("o/m/text.gguf", "this is not a GGUF file"),
        ("o/torch", "no model that hob can read, only pytorch_model.bin"),
    ];
    for (asked, expected) in rows {
        let said = stage.refused(asked);
        assert!(said.contains(expected), "{asked}: {said}");
    }
    let whole =
        stage.hub.requests().into_iter().any(|one| one.host == "store" && one.range.is_none());
    assert!(!whole, "no file was fetched whole");
}

#[test]
fn an_unknown_name_is_refused_with_similar_names_and_the_places_that_were_searched() {
    let stage = Stage::new();
    let said = stage.refused("qwen3:9b");
    assert!(said.contains("did you mean") && said.contains("qwen3:8b"), "{said}");
    let said = stage.refused("kokro");
    assert!(said.contains("did you mean kokoro"), "{said}");
    let said = stage.refused("Meta-Llama-3.1-8B-Instruct");
    assert!(said.contains("did you mean llama3.1:8b?"), "a publisher's name: {said}");
    // Nothing listens there.
    let finder = Finder { registry: Some("http://127.0.0.1:1".to_owned()), ..stage.finder() };
    let error = finder.locate("llama3", None).expect_err("no such name here");
    let said = error.to_string();
    let begin = "hob knows no model 'llama3', and http://127.0.0.1:1/v2/library/llama3/manifests/latest cannot be reached: ";
    assert!(said.starts_with(begin) && said.contains("; did you mean llama"), "{said}");
    assert!(error.is_network_error(), "Ollama may have it: {said}");
    let said = stage.refused("qwen3:8b");
    for part in ["'qwen3:8b' was not found", "Qwen/Qwen3-8B-GGUF", "/v2/library/qwen3/manifests/8b"]
    {
        assert!(said.contains(part), "{said}");
    }
    let said = stage.refused("./none.gguf");
    assert!(said.contains("there is no such file or folder"), "{said}");
    let path = stage.write("m.gguf", &model());
    for name in ["../up", ".hidden", "a b", ""] {
        let said = stage.finder().locate(&path, Some(name)).expect_err("refused").to_string();
        assert!(said.contains("is not a valid model name"), "{said}");
    }
}
