//! Repositories of Hugging Face: `owner/name`, `owner/name:QUANT`, `owner/name/file.gguf` and `owner/name@REVISION`.
//! Lists the files once and then reads headers over HTTP.

use hob_core::fit::Location;
use serde::Deserialize;

use super::choice;
use super::file_source::{FileEntry, FileSource};
use super::{Aim, Described, FindError, Search, USUAL_QUANT, tensors};
use crate::catalog::names::{HUB_PREFIXES, ShortName, with_quant_as_listed};
use crate::recipe::QuantMix;

/// Maximum length of one page of a list, which names at most a thousand files.
const PAGE_BYTES_MAX: u64 = 8 << 20;
const PAGES_MAX: usize = 10;

/// A repository, and which file or quant of it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repo {
    /// `owner/name`.
    name: String,
    /// Branch or commit. Some publishers have a branch for each quant.
    revision: String,
    file: Option<String>,
    quant: Option<String>,
}

const REVISION: &str = "main";
/// Quants to try if the repository lacks the usual one and the user named none.
const LESS_USUAL_QUANTS: [&str; 4] = ["MXFP4", "Q4_K_S", "Q4_0", "Q8_0"];

#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
}

impl Repo {
    /// `None` if the text is not the name of a repository.
    pub(super) fn parse(asked: &str) -> Option<Repo> {
        let bare = HUB_PREFIXES.iter().find_map(|prefix| asked.strip_prefix(prefix));
        let bare = bare.unwrap_or(asked);
        let (path, quant) = match bare.split_once(':') {
            Some((path, quant)) => (path, Some(quant.to_owned())),
            None => (bare, None),
        };
        let (path, revision) = path.split_once('@').unwrap_or((path, REVISION));
        let words: Vec<&str> = path.split('/').collect();
        let said = quant.as_deref().into_iter().chain([revision]);
        let is_named = words.iter().copied().chain(said).all(is_plain);
        let ([owner, name, file @ ..], true) = (words.as_slice(), is_named) else { return None };
        let file = (!file.is_empty()).then(|| file.join("/"));
        let (name, revision) = (format!("{owner}/{name}"), revision.to_owned());
        Some(Repo { name, revision, file, quant })
    }

    /// The catalog's repository for a short name.
    pub(super) fn of(asked: ShortName) -> Repo {
        let quant = asked.quant.map(|mix| mix.name().to_owned());
        let (name, revision) = (asked.named.repo.to_owned(), REVISION.to_owned());
        Repo { name, revision, file: None, quant }
    }

    /// The name under which this model is stored in this quant.
    pub(super) fn stored_name(&self, quant_found: &str) -> String {
        let quant = self.quant.as_deref().unwrap_or(quant_found);
        with_quant_as_listed(&match &*self.revision {
            REVISION => format!("{}:{quant}", self.name),
            revision => format!("{}@{revision}:{quant}", self.name),
        })
    }

    /// Whether one file of it is meant.
    pub(super) fn is_of_file(&self) -> bool {
        self.file.is_some()
    }

    /// Parses the address of a repository's page. Addresses of files give `None`.
    pub(super) fn of_address(address: &str, hub: &str) -> Option<Repo> {
        let hubs = [hub.trim_end_matches('/'), "https://huggingface.co", "https://hf.co"];
        let path = hubs.iter().find_map(|hub| address.strip_prefix(*hub)?.strip_prefix('/'))?;
        let asked = path.replacen("/tree/", "@", 1);
        Repo::parse(&asked).filter(|repo| repo.file.is_none())
    }
}

/// Whether a word is safe as a part of a path.
fn is_plain(word: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    !word.is_empty() && !word.starts_with('.') && word.chars().all(allowed)
}

pub(super) fn find(search: &Search<'_>, repo: &Repo) -> Result<Described, FindError> {
    let found = read(search, repo)?;
    let quant = repo.quant.clone().filter(|said| !said.eq_ignore_ascii_case(&found.model.quant));
    let Repo { name, revision, file, .. } = repo.clone();
    let revision = Some(revision).filter(|revision| revision != REVISION);
    Ok(found.at(Location::Hub { repo: name, revision, file, quant }))
}

fn read(search: &Search<'_>, repo: &Repo) -> Result<Described, FindError> {
    let hub = search.finder.hub.trim_end_matches('/');
    let base = format!("{hub}/{}/resolve/{}", repo.name, repo.revision);
    let source_files = |folder: &str| FileSource::Web {
        remote: search.remote,
        base: if folder.is_empty() { base.clone() } else { format!("{base}/{folder}") },
    };
    let file = |path: &str| {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        search.file(&source_files(folder), file)
    };
    if let Some(path) = &repo.file {
        return file(path);
    }
    let entries = listed(search, hub, repo)?;
    let models = choice::models(&entries);
    if models.is_empty() {
        return from_tensors(search, repo, &source_files(""), &entries);
    }
    let path = chosen(search, repo, &models)?;
    choice::with_tower(&entries, file(path)?)
}

/// The file of the requested quant, or of the usual one.
fn chosen<'m>(
    search: &Search<'_>,
    repo: &Repo,
    models: &'m [String],
) -> Result<&'m String, FindError> {
    let wished = search.quant.map(|mix| mix.name().to_owned());
    let said = repo.quant.clone().or(wished);
    let quant = said.clone().unwrap_or_else(|| USUAL_QUANT.to_owned());
    let others = LESS_USUAL_QUANTS.iter().filter(|_| said.is_none());
    let found = choice::of_quant(models, &quant)
        .or_else(|| others.filter_map(|quant| choice::of_quant(models, quant)).next());
    // The only file is meant if the user named no quant.
    let only = models.first().filter(|_| models.len() == 1 && said.is_none());
    // A quant that hob can compute from the dimensions needs no file.
    let can_make_up = search.aim == Aim::Answer && search.quant.is_some();
    let any = models.first().filter(|_| repo.quant.is_none() && can_make_up);
    found.or(only).or(any).ok_or_else(|| {
        let (at, there) = (repo.name.clone(), models.to_vec());
        FindError::NoQuant { at, quant, there }
    })
}

fn from_tensors(
    search: &Search<'_>,
    repo: &Repo,
    source_files: &FileSource<'_>,
    entries: &[FileEntry],
) -> Result<Described, FindError> {
    if !entries.iter().any(|entry| entry.path.ends_with(".safetensors")) {
        return Err(choice::none(&repo.name, entries));
    }
    let name = repo.name.rsplit('/').next().unwrap_or(&repo.name);
    let said = repo.quant.as_deref().map(QuantMix::named).transpose()?;
    let quant = said.or(search.quant);
    tensors::of_folder(&search.wishing(quant), source_files, name, entries)
}

fn listed(search: &Search<'_>, hub: &str, repo: &Repo) -> Result<Vec<FileEntry>, FindError> {
    let Repo { name, revision, .. } = repo;
    let first = format!("{hub}/api/models/{name}/tree/{revision}?recursive=true");
    let page = format!("{hub}/{name}");
    let mut entries = Vec::new();
    let mut next = Some(first);
    for _ in 0..PAGES_MAX {
        let Some(address) = next else { break };
        let answer = search.remote.text(&address, PAGE_BYTES_MAX);
        let (json, further) = answer.map_err(|error| of_page(error, &page))?;
        let listed: Vec<Listed> = serde_json::from_slice(&json).map_err(|error| {
            FindError::NoListing { at: address.clone(), detail: error.to_string() }
        })?;
        let files = listed.into_iter().filter(|entry| entry.kind == "file");
        let plain = files.filter(|entry| entry.path.split('/').all(is_plain));
        entries.extend(plain.map(|entry| FileEntry { path: entry.path, bytes: entry.size }));
        // Follows a next page only on the same hub.
        next = further.filter(|next| next.starts_with(&format!("{hub}/")));
    }
    Ok(entries)
}

/// Names the repository's page instead of the address of the API.
fn of_page(error: FindError, page: &str) -> FindError {
    let address = page.to_owned();
    match error {
        FindError::Private { .. } => FindError::Private { address },
        FindError::Gated { .. } => FindError::Gated { address },
        FindError::Missing { .. } => FindError::Missing { address },
        FindError::NoRevision { .. } => FindError::NoRevision { address },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo(name: &str, file: Option<&str>, quant: Option<&str>) -> Option<Repo> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
        let (name, revision) = (name.to_owned(), revision.to_owned());
        Some(Repo { name, revision, file: owned(file), quant: owned(quant) })
    }

    #[test]
    fn names_of_repositories() {
        let rows = [
            ("a/b", repo("a/b", None, None)),
            ("a/b@4.0bpw", repo("a/b@4.0bpw", None, None)),
            ("a/b@x/y", None),
            ("a/b@", None),
            ("hf:a/b", repo("a/b", None, None)),
            ("hf.co/a/b:Q8_0", repo("a/b", None, Some("Q8_0"))),
            ("a/b-GGUF/x/y.gguf", repo("a/b-GGUF", Some("x/y.gguf"), None)),
            ("a", None),
            ("a/", None),
            ("a/../b", None),
            ("a/b:", None),
            ("a/b c", None),
        ];
        for (asked, expected) in rows {
            assert_eq!(Repo::parse(asked), expected, "{asked}");
        }
    }

    #[test]
    fn addresses_of_repositories() {
        let rows = [
            ("https://huggingface.co/a/b", repo("a/b", None, None)),
            ("https://hf.co/a/b/tree/main", repo("a/b", None, None)),
            ("https://hf.co/a/b/tree/4.0bpw", repo("a/b@4.0bpw", None, None)),
            ("http://hub/a/b", repo("a/b", None, None)),
            ("https://huggingface.co/a/b/blob/main/x.gguf", None),
            ("https://elsewhere/a/b", None),
        ];
        for (address, expected) in rows {
            assert_eq!(Repo::of_address(address, "http://hub/"), expected, "{address}");
        }
    }
}
