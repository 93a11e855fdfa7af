//! Ollama's model folder: `manifests/HOST/OWNER/NAME/TAG` lists `blobs/sha256-…`.
//! One blob is a GGUF file; another may be a vision tower.

use std::path::Path;

use hob_core::fit::Location;
use serde::Deserialize;

use super::file_source::FileSource;
use super::{Aim, Described, FindError, FoundFile, Search, gguf};
use crate::Sha256;
use crate::gguf::Gguf;

const HOST: &str = "registry.ollama.ai";
const OWNER: &str = "library";
const TAG: &str = "latest";
pub(super) const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// Architectures to which Ollama's own engine gives other names than llama.cpp.
const OWN_NAMES: [(&str, &str); 2] = [("gptoss", "gpt-oss"), ("qwen25vl", "qwen2vl")];

#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Layer {
    #[serde(rename = "mediaType")]
    kind: String,
    digest: String,
    #[serde(default)]
    size: u64,
}

/// `None` if the folder has no such model.
pub(super) fn find(
    search: &Search<'_>,
    folder: &Path,
    asked: &str,
) -> Result<Option<Described>, FindError> {
    let Some(path) = manifest_path(asked) else { return Ok(None) };
    let source_files = FileSource::Folder(folder.to_owned());
    let Some(json) = source_files.text(&path, MANIFEST_BYTES_MAX)? else { return Ok(None) };
    let wrong = |detail| FindError::NoManifest { at: source_files.at(&path), detail };
    let manifest = read(&json).map_err(wrong)?;
    let model = manifest.layer("model").ok_or_else(|| {
        wrong("it names no model on this machine; models that run in a cloud have none".to_owned())
    })?;
    let blob = model.blob().map_err(wrong)?;
    let gguf = source_files.gguf(&blob)?;
    let gguf =
        gguf.ok_or_else(|| FindError::MissingPart { missing: source_files.at(&blob), count: 1 })?;
    let file = FoundFile { sha256: model.sha256().ok(), ..source_files.found(&blob, &gguf) };
    let own = own_name(&gguf);
    // A file that only Ollama loads is not usable; another place may have the model.
    if own.is_some() && search.aim == Aim::Files {
        return Ok(None);
    }
    let gguf = match own {
        Some((from, to)) => gguf.renamed(from, to),
        None => gguf,
    };
    let mut described = gguf::described(search, asked.to_owned(), source_files.at(&blob), gguf)?;
    if let Some((from, to)) = own {
        let note = format!("the file calls its architecture '{from}', and only Ollama loads that");
        described.notes.push(format!("{note}; a file of '{to}' runs in hob too"));
    }
    described.files = vec![file];
    let described = match manifest.layer("projector") {
        Some(tower) => described.with_tower(&tower.blob().map_err(wrong)?, tower.size),
        None => described,
    };
    let (tag, file) = (asked.to_owned(), Some(source_files.at(&blob)));
    Ok(Some(described.at(Location::Ollama { tag, file })))
}

pub(super) fn own_name(gguf: &Gguf) -> Option<(&'static str, &'static str)> {
    let architecture = gguf.text("general.architecture")?;
    OWN_NAMES.into_iter().find(|(own, _)| *own == architecture)
}

/// `None` if the text is not a name of Ollama.
fn manifest_path(asked: &str) -> Option<String> {
    let Tagged { host, owner, name, tag } = Tagged::parse(asked)?;
    Some(format!("manifests/{host}/{owner}/{name}/{tag}"))
}

/// The parts of an Ollama name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tagged<'a> {
    pub(super) host: &'a str,
    pub(super) owner: &'a str,
    pub(super) name: &'a str,
    pub(super) tag: &'a str,
}

impl Tagged<'_> {
    /// Whether it belongs to the registry that is used without a host name.
    pub(super) fn is_of_registry(&self) -> bool {
        self.host == HOST
    }

    pub(super) fn parse(asked: &str) -> Option<Tagged<'_>> {
        let (path, tag) = match asked.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            _ => (asked, TAG),
        };
        let words: Vec<&str> = path.split('/').collect();
        let is_plain = |word: &&str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !word.is_empty() && !word.starts_with('.') && word.chars().all(allowed)
        };
        if !words.iter().chain([&tag]).all(is_plain) {
            return None;
        }
        let [host, owner, name] = match words.as_slice() {
            [name] => [HOST, OWNER, name],
            [owner, name] => [HOST, owner, name],
            [host, owner, name] => [*host, owner, name],
            _ => return None,
        };
        Some(Tagged { host, owner, name, tag })
    }
}

pub(super) fn read(json: &[u8]) -> Result<Manifest, String> {
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

impl Manifest {
    pub(super) fn layer(&self, kind: &str) -> Option<&Layer> {
        let kind = format!("application/vnd.ollama.image.{kind}");
        self.layers.iter().find(|layer| layer.kind == kind)
    }
}

impl Layer {
    /// Path below the folder. A digest contains only hex digits, so the path is safe.
    fn blob(&self) -> Result<String, String> {
        Ok(format!("blobs/sha256-{}", self.sha256()?))
    }

    pub(super) fn sha256(&self) -> Result<Sha256, String> {
        let digits = self.digest.strip_prefix("sha256:").unwrap_or_default();
        digits.parse().map_err(|_| "a digest in it is not a SHA-256".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn where_manifests_are() {
        let rows = [
            ("llama3.1:8b", Some("manifests/registry.ollama.ai/library/llama3.1/8b")),
            ("phi4", Some("manifests/registry.ollama.ai/library/phi4/latest")),
            ("me/mine:x", Some("manifests/registry.ollama.ai/me/mine/x")),
            ("hf.co/a/b:Q8_0", Some("manifests/hf.co/a/b/Q8_0")),
            ("../x", None),
            ("a/b/c/d", None),
            ("", None),
            ("a:", None),
        ];
        for (asked, expected) in rows {
            assert_eq!(manifest_path(asked).as_deref(), expected, "{asked}");
        }
    }

    #[test]
    fn a_digest_cannot_lead_elsewhere() {
        let layer = |digest: &str| Layer { kind: String::new(), digest: digest.into(), size: 0 };
        let digits = "a".repeat(64);
        let blob = layer(&format!("sha256:{digits}")).blob();
        assert_eq!(blob, Ok(format!("blobs/sha256-{digits}")));
        for digest in ["sha256:../../x", "sha256:abc", "md5:0", ""] {
            assert!(layer(digest).blob().is_err(), "{digest}");
        }
    }

    proptest! {
        #[test]
        fn any_manifest_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _any = read(&bytes);
        }

        #[test]
        fn any_name_stays_in_the_folder(asked in ".{0,40}") {
            if let Some(path) = manifest_path(&asked) {
                prop_assert!(!path.split('/').any(|word| word.is_empty() || word == ".."));
            }
        }
    }
}
