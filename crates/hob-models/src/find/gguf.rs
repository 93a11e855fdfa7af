//! Describes a model in one GGUF file or in several parts.
//! A truncated file is described too, with a note: its header is enough.

use hob_core::weights::{Part, Quant, WeightGroup};

use super::file_source::FileSource;
use super::{Aim, Described, FindError, FoundFile, Search};
use crate::disk::megabytes;
use crate::gguf::error::printable_name;
use crate::gguf::{Gguf, GgufError, PartName};
use crate::recipe;

/// Name of the files that hold a vision or audio tower.
pub(super) const TOWER: &str = "mmproj";

pub(super) fn of_file(
    search: &Search<'_>,
    source_files: &FileSource<'_>,
    file: &str,
) -> Result<Described, FindError> {
    let (gguf, files) = match PartName::parse(file) {
        Some(part) => joined(source_files, &part)?,
        None => {
            let missing = || FindError::Missing { address: source_files.at(file) };
            let gguf = source_files.gguf(file)?.ok_or_else(missing)?;
            let files = vec![source_files.found(file, &gguf)];
            (gguf, files)
        }
    };
    let stem = file.strip_suffix(".gguf").unwrap_or(file);
    let name = PartName::parse(file).map_or(stem.to_owned(), |part| part.stem().to_owned());
    Ok(Described { files, ..described(search, name, source_files.at(file), gguf)? })
}

fn joined(
    source_files: &FileSource<'_>,
    part: &PartName,
) -> Result<(Gguf, Vec<FoundFile>), FindError> {
    let (mut parts, mut files) = (Vec::new(), Vec::new());
    for name in part.all() {
        let missing =
            || FindError::MissingPart { missing: source_files.at(&name), count: part.count };
        let gguf = source_files.gguf(&name)?.ok_or_else(missing)?;
        files.push(source_files.found(&name, &gguf));
        parts.push(gguf);
    }
    let at = || source_files.at(part.stem());
    let whole = Gguf::joined(parts).map_err(|error| FindError::Gguf { at: at(), error })?;
    Ok((whole, files))
}

/// Describes a header, with weights of the requested quant.
pub(super) fn described(
    search: &Search<'_>,
    name: String,
    at: String,
    gguf: Gguf,
) -> Result<Described, FindError> {
    if gguf.text("general.architecture") == Some("clip") {
        return Err(FindError::OnlyTower { at });
    }
    let wrong = |error| FindError::Gguf { at: at.clone(), error };
    let model = gguf.model(&name).map_err(|error| without_shape(&at, error, &gguf))?;
    let variants = recipe::variants(&gguf, &name);
    let licence = gguf.text("general.license").map(printable_name);
    let mut notes = Vec::new();
    if gguf.missing_bytes() > 0 {
        let missing = gguf.missing_bytes();
        notes.push(format!("{at} is cut short: {missing} bytes are missing, so fetch it again"));
    }
    let of_file = gguf.quantization();
    let made_up = search.quant.filter(|_| search.aim == Aim::Answer);
    let other = made_up.filter(|mix| !mix.name().eq_ignore_ascii_case(of_file));
    let model = match other {
        None => model,
        Some(mix) => {
            notes.push(format!("weights as {} would store them, not {of_file}", mix.name()));
            let requantized = recipe::requantized(gguf, mix).map_err(wrong)?;
            recipe::computed(name, mix, requantized.shape().map_err(wrong)?)
        }
    };
    Ok(Described { variants, notes, licence, ..Described::of(model, at) })
}

/// For an unknown architecture, at least the size is reported.
fn without_shape(at: &str, error: GgufError, gguf: &Gguf) -> FindError {
    let at = at.to_owned();
    if !matches!(error, GgufError::UnknownArchitecture { .. }) {
        return FindError::Gguf { at, error };
    }
    let bytes = gguf.tensors().iter().fold(0, |sum: u64, tensor| sum.saturating_add(tensor.bytes));
    FindError::NoShape { at, error, tensors: gguf.tensors().len(), bytes }
}

impl Described {
    /// Adds a vision or audio tower, which is a file of this many bytes.
    pub(super) fn with_tower(mut self, file: &str, bytes: u64) -> Described {
        let (part, quant) = (Part::Tower, Quant("F16"));
        // The tower's header was not read, so its elements are unknown.
        let (elements, in_eights_bytes, rows) = (0, 0, 0);
        let tower =
            WeightGroup { layer: None, part, quant, elements, bytes, in_eights_bytes, rows };
        for model in self.variants.iter_mut().chain([&mut self.model]) {
            model.shape.weights.0.push(tower);
        }
        let size = megabytes(bytes);
        self.notes.push(format!("with the vision or audio tower in {file}, {size}"));
        self
    }
}
