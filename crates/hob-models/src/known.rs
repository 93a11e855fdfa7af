//! Dimensions of models that people run, so that they can be asked about before anything is fetched.
//! From their published configurations; a file's own header always wins over this table.

mod dimensions;

use std::collections::BTreeMap;

use hob_core::fit::{Format, Location, Model};
use hob_core::machine::Basis;
use hob_core::nearest;
use hob_core::weights::{Part, Quant, WeightGroup};

use crate::catalog::names;
use crate::gguf::{Gguf, GgufError};
use crate::recipe::{Dimensions, Mixture, other_quants};
use Purpose::{Chat, Code, Long, Voice};

/// A model whose dimensions are known.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// As its publisher names it.
    pub name: &'static str,
    /// Names that it is asked for by, and the context that each was made for, tokens.
    pub tags: &'static [(&'static str, u32)],
    pub dimensions: fn() -> Dimensions,
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

impl Known {
    /// With the context that a tag was made for.
    fn tagged(&self, tag: &str) -> Option<u32> {
        let is_this = |known: &&(&str, u32)| known.0.eq_ignore_ascii_case(tag);
        let found = self.tags.iter().find(is_this).map(|(_, context)| *context);
        let own = || self.name.eq_ignore_ascii_case(tag).then_some(self.tags.first()?.1);
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
    /// See [`Known::header`].
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

/// By any of its names, with the context that it was made for.
///
/// # Errors
/// [`UnknownModel`] with the nearest names.
pub fn find(name: &str) -> Result<(Known, u32), UnknownModel> {
    let tagged = |tag: &str| KNOWN.into_iter().find_map(|known| Some((known, known.tagged(tag)?)));
    let of_catalog = || tagged(names::named(name)?.named.name);
    let found = tagged(name.trim()).or_else(of_catalog);
    found.ok_or_else(|| {
        let tags = KNOWN.iter().flat_map(|known| known.tags.iter().map(|(tag, _)| *tag));
        let names: BTreeMap<&str, ()> = tags.map(|tag| (tag, ())).collect();
        UnknownModel { name: name.to_owned(), near: nearest(name, names.into_keys(), 3) }
    })
}

/// All of them, the smallest first.
pub const KNOWN: [Known; 32] = [
    known(
        "SmolLM2-135M-Instruct",
        &[("smollm2:135m", 8_192), ("smollm2", 8_192)],
        dimensions::smollm2,
        0,
        &[Voice],
    ),
    known("Gemma-3-270M", &[("gemma3:270m", 32_768)], dimensions::gemma3_270m, 0, &[Voice]),
    known("Qwen3-0.6B", &[("qwen3:0.6b", 40_960)], dimensions::qwen3_600m, 0, &[Voice]),
    known("Llama-3.2-1B", &[("llama3.2:1b", 131_072)], dimensions::llama32_1b, 0, &[Voice]),
    known(
        "Qwen2.5-Coder-1.5B",
        &[("qwen2.5-coder:1.5b", 32_768)],
        dimensions::qwen25_1_5b,
        0,
        &[Code, Voice],
    ),
    known("Qwen3-1.7B", &[("qwen3:1.7b", 40_960)], dimensions::qwen3_1_7b, 0, &[Chat, Voice]),
    known(
        "Llama-3.2-3B",
        &[("llama3.2:3b", 131_072), ("llama3.2", 131_072)],
        dimensions::llama32_3b,
        0,
        &[Chat, Voice],
    ),
    known("Qwen3-4B", &[("qwen3:4b", 40_960)], dimensions::qwen3_4b, 0, &[Chat, Voice]),
    known("Gemma-3-4B", &[("gemma3:4b", 131_072)], dimensions::gemma3_4b, 417_000_000, &[Chat]),
    known(
        "Qwen3.5-4B",
        &[("qwen3.5:4b", 262_144)],
        dimensions::qwen35_4b,
        333_514_240,
        &[Chat, Voice, Long],
    ),
    known(
        "Qwen2.5-7B",
        &[("qwen2.5-coder:7b", 32_768), ("deepseek-r1:7b", 131_072)],
        dimensions::qwen25_7b,
        0,
        &[Code],
    ),
    known(
        "Llama-3.1-8B",
        &[("llama3.1:8b", 131_072), ("llama3.1:latest", 131_072)],
        dimensions::llama31_8b,
        0,
        &[Chat],
    ),
    known("Qwen3-8B", &[("qwen3:8b", 40_960)], dimensions::qwen3_8b, 0, &[Chat, Code]),
    known(
        "Qwen3-VL-8B",
        &[("qwen3-vl:8b", 262_144), ("qwen3-vl:8b-instruct", 262_144), ("qwen3-vl", 262_144)],
        dimensions::qwen3_vl_8b,
        576_388_336,
        &[Chat, Long],
    ),
    known(
        "Qwen3.5-9B",
        &[("qwen3.5:9b", 262_144), ("qwen3.5:latest", 262_144), ("qwen3.5", 262_144)],
        dimensions::qwen35_9b,
        456_010_480,
        &[Chat, Code, Long],
    ),
    known("Gemma-3-12B", &[("gemma3:12b", 131_072)], dimensions::gemma3_12b, 417_000_000, &[Chat]),
    known("Phi-4", &[("phi4:14b", 16_384), ("phi4", 16_384)], dimensions::phi4, 0, &[Chat]),
    known(
        "DeepSeek-R1-Distill-Qwen-14B",
        &[("deepseek-r1:14b", 131_072)],
        dimensions::r1_14b,
        0,
        &[Chat, Code],
    ),
    known("Qwen3-14B", &[("qwen3:14b", 40_960)], dimensions::qwen3_14b, 0, &[Chat, Code]),
    known(
        "DeepSeek-V2-Lite",
        &[("deepseek-v2-lite", 163_840)],
        dimensions::deepseek_v2_lite,
        0,
        &[Chat],
    ),
    known(
        "gpt-oss-20b",
        &[("gpt-oss:20b", 131_072), ("gpt-oss", 131_072)],
        dimensions::gpt_oss_20b,
        0,
        &[Chat, Code, Voice],
    ),
    known(
        "Mistral-Small-24B",
        &[("mistral-small:24b", 32_768)],
        dimensions::mistral_small,
        0,
        &[Chat],
    ),
    known("LFM2-24B-A2B", &[("lfm2:24b-a2b", 128_000)], dimensions::lfm2_24b, 0, &[Chat, Voice]),
    known("Gemma-3-27B", &[("gemma3:27b", 131_072)], dimensions::gemma3_27b, 423_060_336, &[Chat]),
    known(
        "Qwen3.5-27B",
        &[("qwen3.5:27b", 262_144)],
        dimensions::qwen35_27b,
        460_730_096,
        &[Chat, Code, Long],
    ),
    known("Qwen3-30B-A3B", &[("qwen3:30b-a3b", 40_960)], dimensions::qwen3_30b, 0, &[Chat]),
    known(
        "Qwen3-Coder-30B-A3B",
        &[("qwen3-coder:30b-a3b", 262_144)],
        dimensions::qwen3_30b,
        0,
        &[Code, Long],
    ),
    known("Qwen3-32B", &[("qwen3:32b", 40_960)], dimensions::qwen3_32b, 0, &[Chat, Code]),
    known(
        "Qwen3.5-35B-A3B",
        &[
            ("qwen3.5:35b-a3b", 262_144),
            ("qwen3.5-abl:35b-a3b", 262_144),
            ("qwen3.5-abliterated:35b-a3b", 262_144),
            ("qwen3.5-opus-distill", 262_144),
        ],
        dimensions::qwen35_35b,
        446_571_248,
        &[Chat, Code, Long],
    ),
    known("Mixtral-8x7B", &[("mixtral:8x7b", 32_768)], dimensions::mixtral, 0, &[Chat]),
    known("Llama-3.3-70B", &[("llama3.3:70b", 131_072)], dimensions::llama33_70b, 0, &[Chat]),
    known("gpt-oss-120b", &[("gpt-oss:120b", 131_072)], dimensions::gpt_oss_120b, 0, &[Chat, Code]),
];

const fn known(
    name: &'static str,
    tags: &'static [(&'static str, u32)],
    dimensions: fn() -> Dimensions,
    tower_elements: u64,
    good_for: &'static [Purpose],
) -> Known {
    Known { name, tags, dimensions, tower_elements, good_for }
}

#[cfg(test)]
mod tests;
