//! Turns any name of a model into a catalog entry that can be pulled: files, lengths, checksums, and the stored name.
//! Reads headers before any weights are transferred.

use std::time::UNIX_EPOCH;

use hob_core::fit::{Format, Model};

use super::remote::Remote;
use super::{
    Aim, Described, FilePlace, FindError, Finder, FoundFile, Search, bare_address, hub,
    looks_like_a_path,
};
use crate::Sha256;
use crate::catalog::{
    CatalogPart, DownloadSource, Entry, Licence, Origin, Piece, Pin, Purpose, SourceFile, names,
};
use crate::store::is_plain;
use crate::transform::MODEL_FILE;

/// Licence of a model that states none.
const UNKNOWN_LICENCE: &str = "LicenseRef-unknown";
/// Digits of the checksum that identify a version.
const VERSION_DIGITS: usize = 16;

/// A model that can be pulled.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    pub entry: Entry,
    /// The model as its header describes it.
    pub model: Model,
    pub notes: Vec<String>,
}

/// Place of a file in a repository.
struct OfRepo {
    repo: String,
    revision: String,
    path: String,
}

impl OfRepo {
    /// Parses `OWNER/NAME/resolve/REVISION/PATH`.
    fn parse(below_hub: &str) -> Option<OfRepo> {
        let (repo, rest) = below_hub.split_once("/resolve/")?;
        let (revision, path) = rest.split_once('/')?;
        let is_repo = repo.split('/').count() == 2;
        let (repo, revision, path) = (repo.to_owned(), revision.to_owned(), path.to_owned());
        is_repo.then_some(OfRepo { repo, revision, path })
    }
}

impl Finder {
    /// Finds a model's files, reads their headers, and pins their checksums. Stores it as `name`, if one is given.
    ///
    /// # Errors
    /// One sentence that says why it cannot be pulled.
    pub fn locate(&self, asked: &str, name: Option<&str>) -> Result<Located, FindError> {
        let asked = asked.trim();
        let remote = Remote::new(self);
        let search = Search { finder: self, remote: &remote, quant: None, aim: Aim::Files };
        let found = search.any(asked)?;
        check(&found)?;
        let name = name.map_or_else(|| stored_name(asked, &found, &remote), str::to_owned);
        if !is_plain(&name) {
            return Err(FindError::BadName { name });
        }
        let source = source(&found.files, &remote)?;
        let licence = found.licence.clone();
        let licence = licence.or_else(|| Some(names::named(asked)?.named.licence.to_owned()));
        let spdx = licence.unwrap_or_else(|| UNKNOWN_LICENCE.to_owned());
        let entry = Entry {
            name,
            title: found.model.name.clone(),
            purpose: Purpose::Chat,
            version: version(&source, changes(&source, &found.files, &remote)),
            licences: vec![Licence { covers: "weights".to_owned(), spdx }],
            parts: vec![CatalogPart { name: "weights".to_owned(), sources: vec![source] }],
        };
        Ok(Located { entry, model: found.model, notes: found.notes })
    }
}

/// Checks, from headers, that the engine would load the model.
fn check(found: &Described) -> Result<(), FindError> {
    let at = || found.source.clone();
    if found.model.format != Format::Gguf || found.files.is_empty() {
        return Err(FindError::NotGguf { at: at() });
    }
    for file in &found.files {
        if file.bytes == u64::MAX {
            return Err(FindError::NoLength { at: at() });
        }
        if file.missing_bytes > 0 {
            return Err(FindError::CutShort { at: at(), missing_bytes: file.missing_bytes });
        }
    }
    Ok(())
}

/// The hub's statement about a file wins over what was read before.
fn source(files: &[FoundFile], remote: &Remote) -> Result<DownloadSource, FindError> {
    let mut origin = None;
    let mut sources = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let path = stored_file(index, files.len());
        let pinned = pinned(file, remote)?;
        let pieces = vec![Piece { package: 0, at: pinned.at }];
        sources.push(SourceFile { path, pin: pinned.pin, pieces });
        origin.get_or_insert(pinned.origin);
    }
    Ok(DownloadSource { origin: origin.unwrap_or(Origin::Address), files: sources })
}

struct Pinned {
    origin: Origin,
    at: String,
    pin: Pin,
}

fn pinned(file: &FoundFile, remote: &Remote) -> Result<Pinned, FindError> {
    let pin = Pin { bytes: file.bytes, sha256: file.sha256 };
    let address = match &file.place {
        FilePlace::Path(path) => {
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let at = whole.to_string_lossy().into_owned();
            return Ok(Pinned { origin: Origin::Files, at, pin });
        }
        FilePlace::Address(address) => address,
    };
    if remote.hub_path(address).and_then(OfRepo::parse).is_none() {
        return Ok(Pinned { origin: Origin::Address, at: address.clone(), pin });
    }
    let facts = remote.facts(address)?;
    let pin = Pin { bytes: facts.bytes.unwrap_or(pin.bytes), sha256: facts.sha256.or(pin.sha256) };
    Ok(match remote.hub_path(&facts.address).and_then(OfRepo::parse) {
        Some(OfRepo { repo, revision, path }) => {
            // A branch may move during the download; a commit does not.
            let revision = facts.commit.unwrap_or(revision);
            Pinned { origin: Origin::Hub { repo, revision }, at: path, pin }
        }
        None => Pinned { origin: Origin::Address, at: facts.address, pin },
    })
}

/// Stored file name. Parts have names by which the engine finds the others.
fn stored_file(index: usize, count: usize) -> String {
    match count {
        0 | 1 => MODEL_FILE.to_owned(),
        _ => {
            let stem = MODEL_FILE.trim_end_matches(".gguf");
            format!("{stem}-{:05}-of-{count:05}.gguf", index + 1)
        }
    }
}

/// A version that changes with any file.
fn version(source: &DownloadSource, changes: Vec<String>) -> String {
    let pins = source.files.iter().map(|file| pin_text(file.pin));
    let said: Vec<String> = pins.chain(changes).collect();
    Sha256::of(said.join("\n").as_bytes()).to_string()[..VERSION_DIGITS].to_owned()
}

/// Stored models have versions of this text, so it never changes: otherwise each of them would be fetched again.
fn pin_text(Pin { bytes, sha256 }: Pin) -> String {
    let sha256 = sha256.map_or("None".to_owned(), |sum| format!("Some({sum})"));
    format!("Pin {{ bytes: {bytes}, sha256: {sha256} }}")
}

/// When the files without a checksum were changed, as far as their places say.
fn changes(source: &DownloadSource, files: &[FoundFile], remote: &Remote) -> Vec<String> {
    let both = source.files.iter().zip(files);
    let unsure = both.filter(|(file, _)| file.pin.sha256.is_none());
    unsure.filter_map(|(_, found)| changed_at(found, remote)).collect()
}

fn changed_at(file: &FoundFile, remote: &Remote) -> Option<String> {
    let path = match &file.place {
        FilePlace::Path(path) => path,
        FilePlace::Address(address) => return remote.changed_at(address),
    };
    let changed = std::fs::metadata(path).and_then(|found| found.modified()).ok()?;
    let since_1970 = changed.duration_since(UNIX_EPOCH).ok()?;
    Some(since_1970.as_nanos().to_string())
}

fn stored_name(asked: &str, found: &Described, remote: &Remote) -> String {
    let is_address = asked.starts_with("http://") || asked.starts_with("https://");
    if std::path::Path::new(asked).exists() || looks_like_a_path(asked) {
        return plain(&found.model.name);
    }
    if is_address {
        let first = match found.files.first().map(|file| &file.place) {
            Some(FilePlace::Address(address)) => remote.hub_path(address),
            _ => None,
        };
        let of_file = first.and_then(OfRepo::parse);
        return match (hub::Repo::of_address(bare_address(asked), remote.hub_address()), of_file) {
            (Some(repo), _) => repo.stored_name(&plain(&found.model.quant)),
            (None, Some(OfRepo { repo, path, .. })) => {
                names::canonical(&format!("hf:{repo}/{path}"))
            }
            (None, None) => plain(&found.model.name),
        };
    }
    match hub::Repo::parse(asked).filter(|repo| !repo.is_of_file()) {
        Some(repo) => repo.stored_name(&plain(&found.model.quant)),
        None => names::canonical(asked),
    }
}

/// Replaces characters that are not allowed in stored names.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    plain.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_stored_files_stays_the_same() {
        let file = |bytes, sha256: Option<String>| SourceFile {
            path: MODEL_FILE.to_owned(),
            pin: Pin { bytes, sha256: sha256.map(|text| text.parse().expect("a checksum")) },
            pieces: Vec::new(),
        };
        let files = vec![file(5, None), file(6, Some("ab".repeat(32)))];
        let source = DownloadSource { origin: Origin::Address, files };
        assert_eq!(version(&source, Vec::new()), "348c335902309b9c");
    }
}
