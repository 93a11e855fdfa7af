//! Chooses the model among files of one folder or repository.
//! Never guesses: if several files could be meant, the error names them.

use std::io;
use std::path::Path;

use super::file_source::{FileEntry, FileSource, unreadable};
use super::gguf::TOWER;
use super::{Described, FindError, Search, gguf, tensors};
use crate::gguf::PartName;

/// A folder with more entries is not a model's folder.
const ENTRIES_MAX: usize = 10_000;

/// Describes the only model of a folder.
pub(super) fn one(
    search: &Search<'_>,
    source_files: &FileSource<'_>,
    name: &str,
) -> Result<Described, FindError> {
    let FileSource::Folder(folder) = source_files else { return Err(none(name, &[])) };
    let at = folder.display().to_string();
    let entries = entries(folder).map_err(|error| unreadable(at.clone(), &error))?;
    let models = models(&entries);
    let has_tensors = entries.iter().any(|entry| entry.path.ends_with(".safetensors"));
    let wished = search.quant.and_then(|mix| of_quant(&models, mix.name()));
    match (models.as_slice(), has_tensors) {
        ([], false) => Err(none(&at, &entries)),
        ([], true) => tensors::of_folder(search, source_files, name, &entries),
        ([_, ..], true) => Err(FindError::Mixed { at, there: heads(&entries) }),
        ([only], false) => with_tower(&entries, gguf::of_file(search, source_files, only)?),
        (several, false) => match wished {
            Some(file) => with_tower(&entries, gguf::of_file(search, source_files, file)?),
            None => Err(FindError::Several { at, there: several.to_vec() }),
        },
    }
}

/// The GGUF models in a folder, sorted, without vision and audio towers. A model in parts counts as its first part.
///
/// # Errors
/// The folder cannot be read.
pub fn models_in(folder: &Path) -> io::Result<Vec<String>> {
    Ok(models(&entries(folder)?))
}

pub(super) fn none(at: &str, entries: &[FileEntry]) -> FindError {
    let there = entries.iter().map(|entry| entry.path.clone()).collect();
    FindError::NoModel { at: at.to_owned(), there }
}

/// Files that are models, as `models_in` lists them.
pub(super) fn models(entries: &[FileEntry]) -> Vec<String> {
    let files = entries.iter().filter(|entry| entry.path.ends_with(".gguf"));
    let models = files.filter(|entry| !is_tower(&entry.path));
    let first = |path: &String| PartName::parse(path).and_then(|part| part.all().next());
    let mut models: Vec<String> =
        models.map(|entry| first(&entry.path).unwrap_or_else(|| entry.path.clone())).collect();
    models.sort();
    models.dedup();
    models
}

/// The file whose name contains the quant; the shortest name if there are several. Some publishers write FP16 for F16.
pub(super) fn of_quant<'m>(models: &'m [String], quant: &str) -> Option<&'m String> {
    let shortest = |quant: &str| {
        models.iter().filter(|path| names_quant(path, quant)).min_by_key(|path| path.len())
    };
    let is_f16 = quant.eq_ignore_ascii_case("F16");
    shortest(quant).or_else(|| if is_f16 { shortest("FP16") } else { None })
}

fn names_quant(path: &str, quant: &str) -> bool {
    let (path, quant) = (path.to_ascii_uppercase(), quant.to_ascii_uppercase());
    path.match_indices(&quant).any(|(at, found)| {
        let before = path[..at].chars().next_back();
        let behind = path[at + found.len()..].chars().next();
        before.is_none_or(|c| !c.is_ascii_alphanumeric())
            && behind.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    })
}

/// Adds the vision or audio tower in the same folder. If there are several, the first in 16 bits.
pub(super) fn with_tower(entries: &[FileEntry], model: Described) -> Result<Described, FindError> {
    let mut towers: Vec<&FileEntry> =
        entries.iter().filter(|entry| is_tower(&entry.path)).collect();
    towers.sort_by_key(|entry| (!names_quant(&entry.path, "F16"), &entry.path));
    Ok(match towers.first() {
        Some(tower) => model.with_tower(&tower.path, tower.bytes),
        None => model,
    })
}

fn is_tower(path: &str) -> bool {
    path.ends_with(".gguf") && path.to_ascii_lowercase().contains(TOWER)
}

fn heads(entries: &[FileEntry]) -> Vec<String> {
    let is_model = |path: &str| path.ends_with(".gguf") || path.ends_with(".safetensors");
    let named = entries.iter().filter(|entry| is_model(&entry.path));
    named.map(|entry| entry.path.clone()).collect()
}

/// Files of a folder, sorted, without subfolders.
fn entries(folder: &Path) -> io::Result<Vec<FileEntry>> {
    let mut entries = Vec::new();
    for found in std::fs::read_dir(folder)?.take(ENTRIES_MAX) {
        let found = found?;
        let Ok(about) = std::fs::metadata(found.path()) else { continue };
        if about.is_file() {
            let path = found.file_name().to_string_lossy().into_owned();
            entries.push(FileEntry { path, bytes: about.len() });
        }
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quant_is_a_word_of_the_name() {
        let rows = [
            ("a-Q4_K_M.gguf", "Q4_K_M", true),
            ("a.q4_k_m.gguf", "Q4_K_M", true),
            ("Q4_K_M/a-00001-of-00002.gguf", "Q4_K_M", true),
            ("a_Q8_0.gguf", "Q8_0", true),
            ("a-IQ4_NL.gguf", "Q4_NL", false),
            ("a-Q4_K_M.gguf", "Q4_K", false),
            ("a-BF16.gguf", "F16", false),
        ];
        for (path, quant, expected) in rows {
            assert_eq!(names_quant(path, quant), expected, "{path} {quant}");
        }
    }

    #[test]
    fn f16_may_be_written_fp16() {
        let models = ["a-fp16.gguf", "a-q8_0.gguf"].map(str::to_owned);
        assert_eq!(of_quant(&models, "F16").map(String::as_str), Some("a-fp16.gguf"));
        assert_eq!(of_quant(&models[1..], "F16"), None);
    }

    #[test]
    fn parts_count_as_one_model_and_towers_as_none() {
        let paths =
            ["b-00002-of-00002.gguf", "b-00001-of-00002.gguf", "a.gguf", "mmproj-F16.gguf", "x"];
        let entries = paths.map(|path| FileEntry { path: path.to_owned(), bytes: 1 });
        assert_eq!(models(&entries), ["a.gguf", "b-00001-of-00002.gguf"]);
    }
}
