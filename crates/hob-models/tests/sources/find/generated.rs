//! Makes small models on the disk and on a server.

use std::path::{Path, PathBuf};

use hob_models::gguf::sample::SampleGguf;
use hob_models::{FetchLimits, Finder, FoundModel, QuantMix, Store};

/// A finder without store, registry and hub.
pub(crate) fn finder() -> Finder {
    Finder {
        hub: "http://127.0.0.1:1".to_owned(),
        token: None,
        registry: None,
        ollama: None,
        store: None,
        limits: FetchLimits::default(),
    }
}

pub(crate) fn with_store(root: &Path) -> Finder {
    Finder { store: Some(Store::open(root)), ollama: Some(root.join("ollama")), ..finder() }
}

pub(crate) fn find(finder: &Finder, asked: &str) -> FoundModel {
    finder.find(asked, None).expect(asked)
}

pub(crate) fn refused(finder: &Finder, asked: &str) -> String {
    finder.find(asked, None).expect_err("refused").to_string()
}

pub(crate) fn quant(name: &str) -> Option<QuantMix> {
    Some(QuantMix::named(name).expect("a quant"))
}

pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, bytes).expect("a file");
    path
}

/// In two files.
pub(crate) fn parts() -> [Vec<u8>; 2] {
    SampleGguf::llama_in_two().map(|part| part.bytes())
}

/// Name, dtype, dimensions, bytes of each number.
type Row = (&'static str, &'static str, &'static [u64], u64);

/// A file of safetensors without its data, of which the header is padded to at least so many bytes.
pub(crate) fn safetensors(rows: &[Row], padding: usize) -> Vec<u8> {
    let mut end = 0;
    let entry = |(name, dtype, dims, width): &Row| {
        let start = end;
        end += width * dims.iter().product::<u64>();
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{dims:?},"data_offsets":[{start},{end}]}}"#)
    };
    let entries: Vec<String> = rows.iter().map(entry).collect();
    let json = format!("{{{}{}}}", entries.join(","), " ".repeat(padding));
    let mut file = [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat();
    file.resize(file.len() + end as usize, 0);
    file
}

pub(crate) const ROWS: [Row; 6] = [
    ("model.embed_tokens.weight", "BF16", &[100, 64], 2),
    ("lm_head.weight", "BF16", &[100, 64], 2),
    ("model.layers.0.self_attn.q_proj.weight", "BF16", &[64, 64], 2),
    ("model.layers.1.mlp.down_proj.weight", "BF16", &[64, 128], 2),
    ("model.layers.2.mlp.down_proj.weight", "BF16", &[64, 128], 2),
    ("visual.patch_embed.weight", "F32", &[10, 10], 4),
];

pub(crate) const CONFIG: &str = r#"{"model_type": "qwen3", "num_hidden_layers": 2,
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 512}"#;
