//! Describes a model in safetensors: its configuration and the headers of all its files.
//! A truncated file is described too, with a note.

use hob_core::fit::Model;

use super::file_source::{FileEntry, FileSource};
use super::{Described, FindError, Search};
use crate::gguf::PartName;
use crate::recipe::computed;
use crate::safetensors::{self, Config, files_of_index};

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";
/// Real configurations have kilobytes.
const CONFIG_BYTES_MAX: u64 = 4 << 20;
/// The index has one line per tensor; models with many experts have megabytes.
const INDEX_BYTES_MAX: u64 = 32 << 20;
/// A second copy of the weights, for the publisher's own program.
const SECOND_COPY: &str = "consolidated";

pub(super) fn of_file(
    search: &Search<'_>,
    source_files: &FileSource<'_>,
    file: &str,
) -> Result<Described, FindError> {
    let name = file.trim_end_matches(".safetensors");
    let indexed = if file.contains("-of-") { indexed(source_files)? } else { None };
    let files = indexed.unwrap_or_else(|| match PartName::without_extension(name) {
        Some(part) => part.all_with("safetensors").collect(),
        None => vec![file.to_owned()],
    });
    described(search, source_files, name, &files)
}

/// Describes a folder or a repository.
pub(super) fn of_folder(
    search: &Search<'_>,
    source_files: &FileSource<'_>,
    name: &str,
    entries: &[FileEntry],
) -> Result<Described, FindError> {
    let has = |file: &str| entries.iter().any(|entry| entry.path == file);
    if !has(CONFIG) {
        return Err(FindError::NoConfig { at: source_files.at(CONFIG) });
    }
    let indexed = if has(INDEX) { indexed(source_files)? } else { None };
    let files = indexed.unwrap_or_else(|| top_level(entries));
    described(search, source_files, name, &files)
}

/// Safetensors files at the top level.
fn top_level(entries: &[FileEntry]) -> Vec<String> {
    let is_top_level = |path: &str| path.ends_with(".safetensors") && !path.contains('/');
    let all = entries.iter().filter(|entry| is_top_level(&entry.path)).map(|entry| &entry.path);
    let (second, first): (Vec<String>, Vec<String>) =
        all.cloned().partition(|path| path.starts_with(SECOND_COPY));
    if first.is_empty() { second } else { first }
}

fn indexed(source_files: &FileSource<'_>) -> Result<Option<Vec<String>>, FindError> {
    let Some(json) = source_files.text(INDEX, INDEX_BYTES_MAX)? else { return Ok(None) };
    let wrong = |error| FindError::Safetensors { at: source_files.at(INDEX), error };
    files_of_index(&json).map(Some).map_err(wrong)
}

fn described(
    search: &Search<'_>,
    source_files: &FileSource<'_>,
    name: &str,
    files: &[String],
) -> Result<Described, FindError> {
    let at = source_files.at(CONFIG);
    let wrong = |error| FindError::Config { at: at.clone(), error };
    let json = source_files.text(CONFIG, CONFIG_BYTES_MAX)?;
    let json = json.ok_or_else(|| FindError::NoConfig { at: at.clone() })?;
    let config = Config::parse(&json).map_err(wrong)?;
    let source = match files {
        [only] => source_files.at(only),
        _ => at.clone(),
    };
    if let Some(model) = with_quant(search, name, &config).map_err(|error| wrong(error.into()))? {
        let note = format!("weights as {} would store them, not those of a file", model.quant);
        let notes = vec![note];
        return Ok(Described { notes, ..Described::of(model, source) });
    }
    let (tensors, notes) = tensors(source_files, files)?;
    let model = safetensors::model(name.to_owned(), &config, &tensors).map_err(wrong)?;
    // Tensor names differ from those of GGUF, so no other quant is computed.
    Ok(Described { notes, ..Described::of(model, source) })
}

/// Computes the weights if a quant is requested.
fn with_quant(
    search: &Search<'_>,
    name: &str,
    config: &Config,
) -> Result<Option<Model>, crate::gguf::GgufError> {
    let Some(mix) = search.quant else { return Ok(None) };
    let dimensions = config.dimensions.clone();
    let dimensions = if config.is_tied { dimensions.tied() } else { dimensions };
    Ok(Some(computed(name.to_owned(), mix, dimensions.header(mix)?.shape()?)))
}

fn tensors(
    source_files: &FileSource<'_>,
    files: &[String],
) -> Result<(Vec<safetensors::SafetensorsTensor>, Vec<String>), FindError> {
    let (mut tensors, mut notes) = (Vec::new(), Vec::new());
    for file in files {
        let missing = || match files {
            [_] => FindError::Missing { address: source_files.at(file) },
            _ => {
                FindError::MissingPart { missing: source_files.at(file), count: files.len() as u32 }
            }
        };
        let (header, file_bytes) = source_files.tensors(file)?.ok_or_else(missing)?;
        let lacks = file_bytes.map_or(0, |bytes| header.needed_bytes.saturating_sub(bytes));
        if lacks > 0 {
            let at = source_files.at(file);
            notes.push(format!("{at} is cut short: {lacks} bytes are missing, so fetch it again"));
        }
        tensors.extend(header.tensors);
    }
    Ok((tensors, notes))
}
