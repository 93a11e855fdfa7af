//! Facts in the header besides dimensions: template, quantization, special tokens.
//! Also the sampling that the publisher recommends.

use std::collections::BTreeMap;

use hob_core::chat::Sampling;

use super::Gguf;
use super::value::{Scalar, Value};

/// Set in `general.file_type` if the converter guessed the type.
const GUESSED: u64 = 1_024;

impl Gguf {
    pub fn name(&self) -> Option<&str> {
        self.text("general.name")
    }

    /// The Jinja template of conversations.
    pub fn chat_template(&self) -> Option<&str> {
        self.text("tokenizer.chat_template").filter(|template| !template.trim().is_empty())
    }

    /// Name of the quant, such as `Q4_K_M`: as the file states, or the type of most elements.
    pub fn quantization(&self) -> &'static str {
        let said =
            self.number("general.file_type").map(|id| id & !GUESSED).and_then(quant_of_file_type);
        said.unwrap_or_else(|| self.commonest_type())
    }

    /// Elements of all tensors.
    pub fn parameters(&self) -> u64 {
        self.tensors().iter().fold(0, |sum, tensor| sum.saturating_add(tensor.elements()))
    }

    pub fn bos_token(&self) -> Option<u32> {
        self.token("bos")
    }

    /// Whether the model fills in a text between two others. It needs three marks for that. llama.cpp finds a mark by its key, by
    /// the older name of this key, or by its text in the vocabulary.
    pub fn infills(&self) -> bool {
        let listed = match self.value("tokenizer.ggml.tokens") {
            Some(Value::Texts { infill_marks, .. }) => *infill_marks,
            _ => [false; 3],
        };
        let keys = [["fim_pre", "prefix"], ["fim_suf", "suffix"], ["fim_mid", "middle"]];
        let has_key = |names: [&str; 2]| names.iter().any(|name| self.token(name).is_some());
        keys.into_iter().zip(listed).all(|(names, is_listed)| is_listed || has_key(names))
    }

    /// The publisher's recommendation, without values that are out of range.
    pub fn sampling(&self) -> Sampling {
        let key = |name: &str| self.scalar(&format!("general.sampling.{name}"));
        let within = |name, max: f64| {
            let number = key(name).and_then(Scalar::float)?;
            (0.0..=max).contains(&number).then_some(number as f32)
        };
        Sampling {
            temperature: within("temp", 2.0),
            top_p: within("top_p", 1.0),
            min_p: within("min_p", 1.0),
            top_k: key("top_k").and_then(Scalar::whole).and_then(|top_k| top_k.try_into().ok()),
            repeat_penalty: within("penalty_repeat", 2.0),
            ..Sampling::default()
        }
    }

    fn token(&self, name: &str) -> Option<u32> {
        self.number(&format!("tokenizer.ggml.{name}_token_id"))?.try_into().ok()
    }

    fn commonest_type(&self) -> &'static str {
        let mut elements = BTreeMap::<_, u64>::new();
        for tensor in self.tensors() {
            let sum = elements.entry(tensor.kind).or_default();
            *sum = sum.saturating_add(tensor.elements());
        }
        let commonest = elements.into_iter().max_by_key(|(_, elements)| *elements);
        commonest.map_or("unknown", |(kind, _)| kind.name)
    }
}

/// Quants of llama.cpp, by their number in `general.file_type`.
fn quant_of_file_type(id: u64) -> Option<&'static str> {
    Some(match id {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        19 => "IQ2_XXS",
        20 => "IQ2_XS",
        21 => "Q2_K_S",
        22 => "IQ3_XS",
        23 => "IQ3_XXS",
        24 => "IQ1_S",
        25 => "IQ4_NL",
        26 => "IQ3_S",
        27 => "IQ3_M",
        28 => "IQ2_S",
        29 => "IQ2_M",
        30 => "IQ4_XS",
        31 => "IQ1_M",
        32 => "BF16",
        36 => "TQ1_0",
        37 => "TQ2_0",
        38 => "MXFP4_MOE",
        39 => "NVFP4",
        40 => "Q1_0",
        41 => "Q2_0",
        _ => return None,
    })
}
