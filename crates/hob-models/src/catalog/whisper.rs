//! OpenAI's Whisper in all sizes that whisper.cpp publishes, each with the Silero model that finds speech in a recording.
//! The checksums are those that Hugging Face lists for this commit, as several public programs pin them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{CatalogPart, DownloadSource, Entry, Licence, Origin, Purpose, SourceFile};
use crate::whisper::{GGML, WhisperMemory};

const REPO: &str = "ggerganov/whisper.cpp";
const COMMIT: &str = "5359861c739e955e79d9a303bcbc70fb988958b1";
/// The model that hob uses by default.
const DEFAULT: &str = "whisper-base";

/// All sizes, each with this speech detection, and with its source `in_wheels` if there is one.
pub(super) fn entries(
    speech_detection: &CatalogPart,
    in_wheels: &BTreeMap<String, DownloadSource>,
) -> impl Iterator<Item = Entry> {
    FILES.iter().map(move |file| {
        let mut entry = entry_of(file);
        entry.parts[0].sources.extend(in_wheels.get(file.0).cloned());
        entry.parts.push(speech_detection.clone());
        entry
    })
}

pub(super) fn is_default(entry: &Entry) -> bool {
    entry.name == DEFAULT
}

impl Entry {
    /// Predicted memory of a transcription model of the catalog; `None` for other models.
    pub fn whisper_memory(&self) -> Option<WhisperMemory> {
        let name = self.name.strip_prefix("whisper-").filter(|name| is_published(name))?;
        match name.rsplit_once("-q") {
            Some((size, _)) => WhisperMemory::published(size, Some(self.bytes())),
            None => WhisperMemory::published(name, None),
        }
    }
}

/// Whether whisper.cpp publishes a file of this size and quant.
pub(super) fn is_published(name: &str) -> bool {
    FILES.iter().any(|(known, ..)| *known == name)
}

fn entry_of((name, bytes, sha256): &(&str, u64, &str)) -> Entry {
    let licence = |covers: &str| Licence { covers: covers.into(), spdx: "MIT".into() };
    let origin = Origin::Hub { repo: REPO.into(), revision: COMMIT.into() };
    let file = SourceFile::of(GGML.into(), *bytes, sha256, format!("ggml-{name}.bin"));
    let sources = vec![DownloadSource { origin, files: vec![file] }];
    Entry {
        name: format!("whisper-{name}"),
        title: title(name),
        purpose: Purpose::Transcription,
        version: "1.0".into(),
        licences: vec![licence("weights"), licence("speech detection")],
        parts: vec![CatalogPart { name: "weights".into(), sources }],
    }
}

fn title(name: &str) -> String {
    let (size, quant) = match name.rsplit_once("-q") {
        Some((size, bits)) => (size, format!("Q{bits}")),
        None => (name, "F16".to_owned()),
    };
    match size.strip_suffix(".en") {
        Some(size) => format!("Whisper {size}, English only, {quant}"),
        None => format!("Whisper {size}, {quant}"),
    }
}

/// Name, length and checksum of each `ggml-NAME.bin`.
static FILES: LazyLock<Vec<(&str, u64, &str)>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut fields = line.split(',');
        Some((fields.next()?, fields.next()?.parse::<u64>().ok()?, fields.next()?))
    };
    include_str!("whisper.csv").lines().skip(1).filter_map(row).collect()
});
