//! Dimensions of popular models, so that `hob fit` can assess them without fetching anything.
//! They come from the published configurations. A file's own header wins over this table.

mod dimensions;
mod table;

use std::collections::BTreeMap;

use hob_core::fit::{Format, Location, Model};
use hob_core::machine::Basis;
use hob_core::nearest;
use hob_core::weights::{Part, Quant, WeightGroup};

use crate::catalog::names;
use crate::gguf::{Gguf, GgufError};
use crate::recipe::{Dimensions, Mixture, other_quants};

pub use table::KNOWN;

/// A model with known dimensions.
#[derive(Clone, Copy, Debug)]
pub struct KnownModel {
    /// The publisher's name.
    pub name: &'static str,
    /// Other names, each with the context that the tag was made for, tokens.
    pub tags: &'static [(&'static str, u32)],
    pub dimensions: fn() -> Dimensions,
    /// Year and month, such as 202504.
    pub released: u32,
    /// The quant in which the publisher trained it. More bits would not improve it.
    pub native_quant: Option<&'static str>,
    /// Elements of the vision or audio tower, which files store in 16 bits.
    pub tower_elements: u64,
    pub good_for: &'static [Purpose],
}

/// What a model is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    Chat,
    Code,
    /// Short answers with a fast start.
    Voice,
    /// Long contexts.
    Long,
}

/// No known model has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hob knows no dimensions of '{name}'{}", match near.is_empty() {
    true => String::new(),
    false => format!("; did you mean {}?", near.join(" or ")),
})]
pub struct UnlistedModel {
    pub name: String,
    pub near: Vec<String>,
}

impl KnownModel {
    /// The context of a tag.
    fn tagged(&self, tag: &str) -> Option<u32> {
        let is_this = |known: &&(&str, u32)| known.0.eq_ignore_ascii_case(tag);
        let found = self.tags.iter().find(is_this).map(|(_, context)| *context);
        let is_named = bare(self.name).eq_ignore_ascii_case(bare(tag));
        let own = || is_named.then_some(self.tags.first()?.1);
        found.or_else(own)
    }

    /// The header that a file would have, with weights as `mixture` stores them.
    ///
    /// # Errors
    /// The table is wrong; a test checks it.
    pub fn header(&self, mixture: Mixture, context_tokens: u32) -> Result<Gguf, GgufError> {
        let context = u64::from(context_tokens);
        (self.dimensions)().with("context_length", context).header(mixture)
    }

    /// The model in this quant, with its tower.
    ///
    /// # Errors
    /// See [`KnownModel::header`].
    pub fn model(&self, mixture: Mixture, context_tokens: u32) -> Result<Model, GgufError> {
        let mut shape = self.header(mixture, context_tokens)?.shape()?;
        shape.weights.0.extend(self.tower());
        Ok(Model {
            name: self.name.to_owned(),
            format: mixture.format(),
            quant: mixture.name().to_owned(),
            shape,
            basis: Basis::Assumed,
            location: self.location(mixture),
        })
    }

    /// Where `hob pull` fetches such a file.
    fn location(&self, mixture: Mixture) -> Location {
        let tag = self.tags.first().map_or("", |(tag, _)| *tag);
        match names::named(tag).filter(|_| mixture.format() == Format::Gguf) {
            Some(found) => found.named.location(),
            None => Location::Unknown,
        }
    }

    /// The same model in other quants.
    pub fn variants(&self, mixture: Mixture, context_tokens: u32) -> Vec<Model> {
        let stored = |quant| self.model(Mixture::named(quant).ok()?, context_tokens).ok();
        other_quants(mixture.name()).filter_map(stored).collect()
    }

    /// The vision or audio tower, in 16 bits.
    pub fn tower(&self) -> Option<WeightGroup> {
        let elements = self.tower_elements;
        (elements > 0).then_some(WeightGroup {
            layer: None,
            part: Part::Tower,
            quant: Quant("F16"),
            elements,
            bytes: 2 * elements,
            in_eights_bytes: 0,
            rows: 0,
        })
    }
}

/// The name without words for tuning: `Qwen2.5-14B-Instruct` becomes `Qwen2.5-14B`.
fn bare(name: &str) -> &str {
    const TUNED: [&str; 5] = ["-gguf", "-instruct", "-it", "-chat", "-2507"];
    TUNED.iter().fold(name, |name, word| {
        let at = name.len().saturating_sub(word.len());
        let ends = name.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(word));
        if ends { &name[..at] } else { name }
    })
}

/// Finds a model by any of its names, with the context of that name.
///
/// # Errors
/// [`UnlistedModel`] with the nearest names.
pub fn find(name: &str) -> Result<(KnownModel, u32), UnlistedModel> {
    let tagged = |tag: &str| KNOWN.into_iter().find_map(|known| Some((known, known.tagged(tag)?)));
    let of_catalog = || tagged(names::named(name)?.named.name);
    let found = tagged(name.trim()).or_else(of_catalog);
    found.ok_or_else(|| {
        let tags = KNOWN.iter().flat_map(|known| known.tags.iter().map(|(tag, _)| *tag));
        let names: BTreeMap<&str, ()> = tags.map(|tag| (tag, ())).collect();
        UnlistedModel { name: name.to_owned(), near: nearest(name, names.into_keys(), 3) }
    })
}

#[cfg(test)]
mod tests;
