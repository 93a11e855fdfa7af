//! Ollama's registry: the manifest at `/v2/OWNER/NAME/manifests/TAG` lists layers by SHA-256.
//! One of the layers, at `/v2/OWNER/NAME/blobs/DIGEST`, is a GGUF file.

use hob_core::fit::Location;

use super::file_source::FileSource;
use super::ollama::{self, MANIFEST_BYTES_MAX, Tagged, own_name};
use super::{Described, FindError, FoundFile, Search, gguf};

/// `None` if the text is not a tag, or if no registry is configured.
pub(super) fn find(search: &Search<'_>, asked: &str) -> Option<Result<Described, FindError>> {
    let registry = search.finder.registry.as_deref()?.trim_end_matches('/');
    let tagged = Tagged::parse(asked).filter(Tagged::is_of_registry)?;
    Some(read(search, registry, &tagged, asked))
}

fn read(
    search: &Search<'_>,
    registry: &str,
    tagged: &Tagged<'_>,
    asked: &str,
) -> Result<Described, FindError> {
    let Tagged { owner, name, tag, .. } = tagged;
    let base = format!("{registry}/v2/{owner}/{name}");
    let at = format!("{base}/manifests/{tag}");
    let wrong = |detail| FindError::NoManifest { at: at.clone(), detail };
    let manifest = search.remote.manifest(&at, MANIFEST_BYTES_MAX)?;
    let manifest = ollama::read(&manifest).map_err(wrong)?;
    let model = manifest.layer("model");
    let model = model.ok_or_else(|| wrong("it names no model that can be fetched".to_owned()))?;
    let digest = model.sha256().map_err(wrong)?;
    let source_files = FileSource::Web { remote: search.remote, base: format!("{base}/blobs") };
    let blob = format!("sha256:{digest}");
    let missing = || FindError::Missing { address: source_files.at(&blob) };
    let gguf = source_files.gguf(&blob)?.ok_or_else(missing)?;
    if let Some((from, to)) = own_name(&gguf) {
        let detail = format!(
            "its file calls the architecture '{from}', which only Ollama loads; look on Hugging Face for a file of '{to}'"
        );
        return Err(FindError::NoManifest { at, detail });
    }
    let file = FoundFile { sha256: Some(digest), ..source_files.found(&blob, &gguf) };
    let described = gguf::described(search, asked.to_owned(), source_files.at(&blob), gguf)?;
    let location = Location::Ollama { tag: asked.to_owned(), file: None };
    Ok(Described { files: vec![file], ..described.at(location) })
}
