//! Dimensions of models that people run, so that they can be asked about before anything is fetched.
//! From their published configurations; a file's own header always wins over this table.

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

/// A model whose dimensions are known.
#[derive(Clone, Copy, Debug)]
pub struct KnownModel {
    /// As its publisher names it.
    pub name: &'static str,
    /// Names that it is asked for by, and the context that each was made for, tokens.
    pub tags: &'static [(&'static str, u32)],
    pub dimensions: fn() -> Dimensions,
    /// Year and month, as 202504.
    pub released: u32,
    /// The quant that its publisher trained it in; nothing is gained by storing it with more bits.
    pub native_quant: Option<&'static str>,
    /// Of eyes and ears, which files keep in 16 bits: so many numbers.
    pub tower_elements: u64,
    pub good_for: &'static [Purpose],
}

/// What somebody wants a model for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    Chat,
    Code,
    /// Short answers at once.
    Voice,
    /// Long contexts.
    Long,
}

/// Nothing of that name is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hob knows no dimensions of '{name}'{}", match near.is_empty() {
    true => String::new(),
    false => format!("; did you mean {}?", near.join(" or ")),
})]
pub struct UnknownModel {
    pub name: String,
    pub near: Vec<String>,
}

impl KnownModel {
    /// With the context that a tag was made for.
    fn tagged(&self, tag: &str) -> Option<u32> {
        let is_this = |known: &&(&str, u32)| known.0.eq_ignore_ascii_case(tag);
        let found = self.tags.iter().find(is_this).map(|(_, context)| *context);
        let is_named = bare(self.name).eq_ignore_ascii_case(bare(tag));
        let own = || is_named.then_some(self.tags.first()?.1);
        found.or_else(own)
    }

    /// As a header would say it, with weights as `mixture` stores them.
    ///
    /// # Errors
    /// The table is wrong; a test would have said so.
    pub fn header(&self, mixture: Mixture, context_tokens: u32) -> Result<Gguf, GgufError> {
        let context = u64::from(context_tokens);
        (self.dimensions)().with("context_length", context).header(mixture)
    }

    /// As it would be in this quant, with eyes and ears.
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

    /// Where `hob pull` has such a file from.
    fn location(&self, mixture: Mixture) -> Location {
        let tag = self.tags.first().map_or("", |(tag, _)| *tag);
        match names::named(tag).filter(|_| mixture.format() == Format::Gguf) {
            Some(found) => found.named.location(),
            None => Location::Unknown,
        }
    }

    /// The same in other quants.
    pub fn variants(&self, mixture: Mixture, context_tokens: u32) -> Vec<Model> {
        let stored = |quant| self.model(Mixture::named(quant).ok()?, context_tokens).ok();
        other_quants(mixture.name()).filter_map(stored).collect()
    }

    /// Of eyes and ears, in 16 bits.
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

/// A publisher's name without the words that say how it was tuned: `Qwen2.5-14B-Instruct` is `Qwen2.5-14B`.
fn bare(name: &str) -> &str {
    const TUNED: [&str; 5] = ["-gguf", "-instruct", "-it", "-chat", "-2507"];
    TUNED.iter().fold(name, |name, word| {
        let at = name.len().saturating_sub(word.len());
        let ends = name.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(word));
        if ends { &name[..at] } else { name }
    })
}

/// By any of its names, with the context that it was made for.
///
/// # Errors
/// [`UnknownModel`] with the nearest names.
pub fn find(name: &str) -> Result<(KnownModel, u32), UnknownModel> {
    let tagged = |tag: &str| KNOWN.into_iter().find_map(|known| Some((known, known.tagged(tag)?)));
    let of_catalog = || tagged(names::named(name)?.named.name);
    let found = tagged(name.trim()).or_else(of_catalog);
    found.ok_or_else(|| {
        let tags = KNOWN.iter().flat_map(|known| known.tags.iter().map(|(tag, _)| *tag));
        let names: BTreeMap<&str, ()> = tags.map(|tag| (tag, ())).collect();
        UnknownModel { name: name.to_owned(), near: nearest(name, names.into_keys(), 3) }
    })
}

#[cfg(test)]
mod tests;
