//! JSON of what a pull did, or would do.
//! The same facts as on stderr, as one object per model.

use hob_models::{PullOutcome, Pulled, Sha256};
use serde::Serialize;

use crate::model_store::Download;

/// One model.
#[derive(Debug, Serialize)]
pub(super) struct Planned {
    name: String,
    /// `was_here`, `transformed` or `fetched`; `None` before the pull.
    arrival: Option<&'static str>,
    bytes: u64,
    source: String,
    licence: String,
    /// What does not fit into memory or on the disk.
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<PlannedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

#[derive(Debug, Serialize)]
struct PlannedFile {
    /// Where the source has the file, or its first piece: a path, an address, or a member of a package.
    at: String,
    bytes: u64,
    /// `None` if the server states none.
    sha256: Option<Sha256>,
}

impl Planned {
    pub(super) fn of(
        download: &Download,
        arrival: Option<&'static str>,
        warnings: Vec<String>,
    ) -> Planned {
        let entry = &download.entry;
        let first = entry.parts.iter().filter_map(|part| part.sources.first());
        let licences: Vec<String> = entry.licences.iter().map(ToString::to_string).collect();
        let files = first.clone().flat_map(|source| &source.files).map(|file| PlannedFile {
            at: file.pieces.first().map_or(file.path.clone(), |piece| piece.at.clone()),
            bytes: file.pin.bytes,
            sha256: file.pin.sha256,
        });
        Planned {
            name: entry.name.clone(),
            arrival,
            bytes: entry.bytes(),
            source: first.map(ToString::to_string).collect::<Vec<_>>().join("; "),
            licence: licences.join(", "),
            warnings,
            files: files.collect(),
            folder: None,
        }
    }

    /// Stored facts win over those of sources.
    pub(super) fn stored(self, pulled: &Pulled) -> Planned {
        let manifest = &pulled.model.manifest;
        let sources: Vec<&str> = manifest.sources.iter().map(|part| &*part.source).collect();
        Planned {
            bytes: manifest.bytes(),
            source: sources.join("; "),
            folder: Some(pulled.model.folder.display().to_string()),
            ..self
        }
    }
}

pub(super) fn arrived(outcome: PullOutcome) -> &'static str {
    match outcome {
        PullOutcome::AlreadyStored => "was_here",
        PullOutcome::Transformed => "transformed",
        PullOutcome::Fetched => "fetched",
    }
}
