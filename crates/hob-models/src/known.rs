//! Dimensions of popular models, so that `hob fit` can assess them without fetching anything.
//! `known/models.toml` lists them. A file's own header wins over this list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use hob_core::fit::{Format, Location, Model};
use hob_core::nearest;
use hob_core::weights::{Part, Quant, WeightGroup};
use serde::{Deserialize, Deserializer};

use crate::catalog::names;
use crate::gguf::{Gguf, GgufError};
use crate::recipe::{Dimensions, QuantMix, computed, other_quants};

/// All known models, the smallest first.
pub static KNOWN: LazyLock<Vec<KnownModel>> = LazyLock::new(|| {
    let listed: Result<Listed, _> = toml::from_str(include_str!("known/models.toml"));
    // The file is part of the program, and a test reads it.
    listed.expect("models.toml is a list of models").model
});

/// The content of `models.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    model: Vec<KnownModel>,
}

/// A model with known dimensions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownModel {
    /// The publisher's name.
    pub name: String,
    /// Other names, each with the context that the tag was made for, tokens.
    pub tags: Vec<(String, u32)>,
    #[serde(deserialize_with = "dimensions")]
    pub dimensions: Dimensions,
    /// Year and month, such as 202504.
    pub released: u32,
    /// The quant in which the publisher trained it. More bits would not improve it.
    pub native_quant: Option<String>,
    /// Elements of the vision or audio tower, which files store in 16 bits.
    #[serde(default)]
    pub tower_elements: u64,
    pub good_for: Vec<UseCase>,
}

/// What a person wants a model for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UseCase {
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
        let is_this = |known: &&(String, u32)| known.0.eq_ignore_ascii_case(tag);
        let found = self.tags.iter().find(is_this).map(|(_, context)| *context);
        let is_named = bare(&self.name).eq_ignore_ascii_case(bare(tag));
        let own = || is_named.then_some(self.tags.first()?.1);
        found.or_else(own)
    }

    /// The header that a file would have, with weights as `mix` stores them.
    ///
    /// # Errors
    /// The table is wrong; a test checks it.
    pub fn header(&self, mix: QuantMix, context_tokens: u32) -> Result<Gguf, GgufError> {
        let context = u64::from(context_tokens);
        self.dimensions.clone().with("context_length", context).header(mix)
    }

    /// The model in this quant, with its tower.
    ///
    /// # Errors
    /// See [`KnownModel::header`].
    pub fn model(&self, mix: QuantMix, context_tokens: u32) -> Result<Model, GgufError> {
        let mut shape = self.header(mix, context_tokens)?.shape()?;
        shape.weights.0.extend(self.tower());
        let (quant, location) = (mix.name().to_owned(), self.location(mix));
        Ok(Model { quant, location, ..computed(self.name.clone(), mix, shape) })
    }

    /// Where `hob pull` fetches such a file.
    fn location(&self, mix: QuantMix) -> Location {
        let tag = self.tags.first().map_or("", |(tag, _)| tag);
        match names::named(tag).filter(|_| mix.format() == Format::Gguf) {
            Some(found) => found.named.location(),
            None => Location::Unknown,
        }
    }

    /// The quant that is assumed unless the user names one: the native one, or else the usual one.
    pub fn default_quant(&self) -> &str {
        self.native_quant.as_deref().unwrap_or(names::USUAL_QUANT)
    }

    /// This model in other quants. A model with a native quant has no better or smaller one worth naming.
    pub fn variants(&self, mix: QuantMix, context_tokens: u32) -> Vec<Model> {
        let stored = |quant: &str| self.model(QuantMix::named(quant).ok()?, context_tokens).ok();
        match self.native_quant.as_deref() {
            Some(native) if native == mix.name() => Vec::new(),
            Some(native) => stored(native).into_iter().collect(),
            None => other_quants(mix.name()).filter_map(stored).collect(),
        }
    }

    /// The vision or audio tower, in 16 bits.
    pub fn tower(&self) -> Option<WeightGroup> {
        let elements = self.tower_elements;
        (elements > 0).then_some(WeightGroup {
            elements,
            bytes: 2 * elements,
            ..WeightGroup::empty(None, Part::Tower, Quant("F16"))
        })
    }
}

/// The name without words for tuning: `Qwen2.5-14B-Instruct` becomes `Qwen2.5-14B`.
fn untuned(name: &str) -> &str {
    const TUNED: [&str; 5] = ["-gguf", "-instruct", "-thinking", "-it", "-chat"];
    TUNED.iter().fold(name, |name, word| {
        let at = name.len().saturating_sub(word.len());
        let ends = name.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(word));
        if ends { &name[..at] } else { name }
    })
}

/// Also without the month: `Qwen3-4B-Instruct-2507` becomes `Qwen3-4B`. Only with a size is that the same model.
fn bare(name: &str) -> &str {
    let name = untuned(name);
    let undated = name.rsplit_once('-').filter(|(_, month)| is_month(month));
    undated.map_or(name, |(name, _)| untuned(name))
}

/// Year and month of the twenties, such as `2407`.
fn is_month(text: &str) -> bool {
    matches!(
        text.as_bytes(),
        [b'2', b'0'..=b'9', b'0', b'1'..=b'9'] | [b'2', b'0'..=b'9', b'1', b'0'..=b'2']
    )
}

/// The name with its version next to its family: `Gemma-2` becomes `Gemma2`.
fn closed_up(name: &str) -> String {
    let is_of_version = |at: &usize| name[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let dash = name.match_indices('-').map(|(at, _)| at).find(is_of_version);
    dash.map_or_else(|| name.to_owned(), |at| format!("{}{}", &name[..at], &name[at + 1..]))
}

/// Finds a model by any of its names, with the context of that name.
///
/// # Errors
/// [`UnlistedModel`] with the nearest names.
pub fn find(name: &str) -> Result<(&'static KnownModel, u32), UnlistedModel> {
    let tagged = |tag: &str| KNOWN.iter().find_map(|known| Some((known, known.tagged(tag)?)));
    let written = |name: &str| tagged(name).or_else(|| tagged(names::named(name)?.named.name));
    let as_written = written(name.trim()).or_else(|| written(&closed_up(name.trim())));
    // Ollama's registry has more tags than this list, and each has its own context.
    let of_publisher = Some(names::without_maker(name.trim())).filter(|name| !name.contains(':'));
    let as_published = || {
        let name = of_publisher?;
        let plain = untuned(name);
        let listed = names::published(name).and_then(tagged);
        listed.or_else(|| written(plain)).or_else(|| written(&closed_up(plain)))
    };
    as_written.or_else(as_published).ok_or_else(|| {
        let names: BTreeSet<&str> = tags().into_iter().collect();
        UnlistedModel { name: name.to_owned(), near: nearest(name, names, 3) }
    })
}

/// The tags of all known models.
pub fn tags() -> Vec<&'static str> {
    KNOWN.iter().flat_map(|known| known.tags.iter().map(|(tag, _)| tag.as_str())).collect()
}

/// `[model.dimensions]` of the file: the keys of a GGUF header, with a table for each dot.
fn dimensions<'de, D: Deserializer<'de>>(source: D) -> Result<Dimensions, D::Error> {
    #[derive(Deserialize)]
    struct Written {
        architecture: String,
        #[serde(default)]
        tied: bool,
        #[serde(flatten)]
        keys: BTreeMap<String, Number>,
    }
    let Written { architecture, tied, keys } = Written::deserialize(source)?;
    let dimensions = with_keys(Dimensions::new(&architecture), "", &keys);
    Ok(if tied { dimensions.tied() } else { dimensions })
}

/// The value of a key, or the keys that begin with it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    One(u64),
    OfEachLayer(Vec<u64>),
    Group(BTreeMap<String, Number>),
}

fn with_keys(dimensions: Dimensions, prefix: &str, keys: &BTreeMap<String, Number>) -> Dimensions {
    keys.iter().fold(dimensions, |dimensions, (key, number)| {
        let key = format!("{prefix}{key}");
        match number {
            Number::One(number) => dimensions.with(&key, *number),
            Number::OfEachLayer(numbers) => dimensions.with_each(&key, numbers),
            Number::Group(keys) => with_keys(dimensions, &format!("{key}."), keys),
        }
    })
}

#[cfg(test)]
mod tests;
