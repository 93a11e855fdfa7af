//! Parses dimensions that the user types: `block_count=32,head_count_kv=8,…`, with the keys of GGUF headers.
//! The weights are computed as a quant would store them.

use hob_core::fit::Model;
use hob_core::nearest;

use crate::gguf::GgufError;
use crate::recipe::{self, Dimensions, QuantMix};

const TYPED: &str = "the typed shape";

/// What is wrong with typed dimensions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("'{word}' is not key=number")]
    NoPair { word: String },
    #[error("there is no dimension '{key}'{}", match near.is_empty() {
        true => format!("; it has {}", keys().collect::<Vec<_>>().join(", ")),
        false => format!("; did you mean {}?", near.join(" or ")),
    })]
    UnknownKey { key: String, near: Vec<String> },
    #[error("'{key}' is given twice")]
    Twice { key: String },
    #[error("the shape lacks {}", missing.join(", "))]
    Missing { missing: Vec<&'static str> },
    #[error(transparent)]
    Header(#[from] GgufError),
    #[error(transparent)]
    UnknownQuant(#[from] crate::recipe::UnknownQuant),
}

const ARCHITECTURE: &str = "llama";
const REQUIRED: [&str; 5] =
    ["block_count", "embedding_length", "attention.head_count", "vocab_size", "context_length"];
const FEED_FORWARD: [&str; 2] = ["feed_forward_length", "expert_feed_forward_length"];
const OPTIONAL: [&str; 27] = [
    "leading_dense_block_count",
    "expert_count",
    "expert_used_count",
    "expert_shared_count",
    "expert_shared_feed_forward_length",
    "nextn_predict_layers",
    "full_attention_interval",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.key_length_swa",
    "attention.value_length_swa",
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.kv_lora_rank",
    "attention.q_lora_rank",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.shared_kv_layers",
    "rope.dimension_count",
    "ssm.conv_kernel",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
    "ssm.group_count",
    "shortconv.l_cache",
    "wkv.head_size",
];

/// A model of typed dimensions in this quant, or in the usual one, and the same in other good quants.
///
/// # Errors
/// A key is unknown, missing or given twice, or a number is out of range.
pub fn typed(shape: &str, quant: Option<QuantMix>) -> Result<(Model, Vec<Model>), ShapeError> {
    let mix = match quant {
        Some(mix) => mix,
        None => QuantMix::named(super::USUAL_QUANT)?,
    };
    let words = shape.split(',').map(str::trim).filter(|word| !word.is_empty());
    let pairs = words.map(pair).collect::<Result<Vec<_>, _>>()?;
    let said = |wanted: &str| pairs.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
    let architecture = said("architecture").unwrap_or(ARCHITECTURE);
    let mut dimensions = Dimensions::new(architecture);
    for (key, value) in &pairs {
        dimensions = with(dimensions, key, value)?;
    }
    check(&dimensions)?;
    let header = dimensions.header(mix)?;
    let model = recipe::computed(TYPED.to_owned(), mix, header.shape()?);
    Ok((model, recipe::variants(&header, TYPED)))
}

fn pair(word: &str) -> Result<(&str, &str), ShapeError> {
    let pair = word.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    pair.ok_or_else(|| ShapeError::NoPair { word: word.to_owned() })
}

fn with(dimensions: Dimensions, said: &str, value: &str) -> Result<Dimensions, ShapeError> {
    let no_pair = || ShapeError::NoPair { word: format!("{said}={value}") };
    match (said, value) {
        ("architecture", _) | ("tied", "false") => return Ok(dimensions),
        ("tied", "true") => return Ok(dimensions.tied()),
        _ => (),
    }
    let is_it = |key: &&str| *key == said || key.strip_prefix("attention.") == Some(said);
    let key = keys().find(is_it).ok_or_else(|| ShapeError::UnknownKey {
        key: said.to_owned(),
        near: nearest(bare(said), keys().map(bare), 3),
    })?;
    if dimensions.has(key) {
        return Err(ShapeError::Twice { key: said.to_owned() });
    }
    Ok(dimensions.with(key, value.replace('_', "").parse().map_err(|_| no_pair())?))
}

fn bare(key: &str) -> &str {
    key.strip_prefix("attention.").unwrap_or(key)
}

fn keys() -> impl Iterator<Item = &'static str> {
    let others = ["architecture", "tied"];
    REQUIRED.into_iter().chain(FEED_FORWARD).chain(OPTIONAL).chain(others)
}

fn check(dimensions: &Dimensions) -> Result<(), ShapeError> {
    let mut missing: Vec<_> = REQUIRED.into_iter().filter(|key| !dimensions.has(key)).collect();
    if !FEED_FORWARD.iter().any(|key| dimensions.has(key)) {
        missing.push(FEED_FORWARD[0]);
    }
    if missing.is_empty() { Ok(()) } else { Err(ShapeError::Missing { missing }) }
}

#[cfg(test)]
mod tests {
    use hob_core::machine::Basis;

    use super::*;

    const LLAMA: &str = "block_count=32,embedding_length=4096,feed_forward_length=14_336,\
        head_count=32,attention.head_count_kv=8,vocab_size=128256,context_length=131072";

    #[test]
    fn a_typed_shape_is_the_known_one() {
        let (typed, variants) = typed(LLAMA, None).expect("a whole shape");
        let (known, context) = crate::known::find("llama3.1:8b").expect("known");
        let mix = QuantMix::named("Q4_K_M").expect("a quant");
        let shape = known.header(mix, context).and_then(|header| header.shape());
        assert_eq!(typed.shape, shape.expect("a shape"));
        assert_eq!((&*typed.quant, typed.basis), ("Q4_K_M", Basis::Assumed));
        let others = known.variants(mix, context).into_iter().map(|other| other.shape);
        let made = variants.into_iter().filter(|other| other.quant != "Q4_K_M");
        assert_eq!(made.map(|other| other.shape).collect::<Vec<_>>(), others.collect::<Vec<_>>());
    }

    #[test]
    fn a_tied_one_in_another_quant_is_smaller() {
        let mix = QuantMix::named("exl3-4.0").expect("a quant");
        let (tied, _) = typed(&format!("{LLAMA},tied=true"), Some(mix)).expect("a whole shape");
        let (whole, _) = typed(LLAMA, Some(mix)).expect("a whole shape");
        assert!(tied.shape.weights.is_tied() && !whole.shape.weights.is_tied());
        assert!(tied.shape.weights.bytes() < whole.shape.weights.bytes());
        assert_eq!(tied.quant, "EXL3 4.0bpw");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let rows = [
            ("block_count".to_owned(), "'block_count' is not key=number"),
            ("block_count=many".to_owned(), "'block_count=many' is not key=number"),
            ("block_counts=1".to_owned(), "did you mean block_count or"),
            ("head_count_k=8".to_owned(), "head_count_kv"),
            (format!("{LLAMA},head_count=3"), "'head_count' is given twice"),
            ("block_count=3,head_count=2".to_owned(), "lacks embedding_length, vocab_size"),
            (format!("{LLAMA},architecture=lama"), "architecture 'lama'"),
            (format!("{LLAMA},expert_count=99999"), "must be a whole number"),
            (LLAMA.replace("=32", "=0"), "must not be 0"),
        ];
        for (shape, expected) in rows {
            let said = typed(&shape, None).expect_err("wrong").to_string();
            assert!(said.contains(expected), "{said}, and not {expected}");
        }
    }
}
