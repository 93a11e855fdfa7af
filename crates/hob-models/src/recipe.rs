//! Computes the tensors of a model from its dimensions, in the types that a quant would give them. Used for
//! dimensions that the user gives with `--dimensions`, published configurations, and quants without a file.
//! Norms and biases are left out: under 0.1 % of a model.

mod layers;
mod quant_mix;

use std::collections::BTreeMap;

use hob_core::ModelShape;
use hob_core::fit::{Location, Model};
use hob_core::machine::Basis;

use crate::gguf::{Gguf, GgufError, GgufTensor, Scalar, TensorType, Value};

pub use quant_mix::{QuantMix, UnknownQuant};

/// Dimensions with the keys of a GGUF header, without a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimensions {
    architecture: String,
    keys: Vec<(String, Value)>,
    /// Whether the output layer uses the embedding's weights (tied).
    is_tied: bool,
}

impl Dimensions {
    pub fn new(architecture: &str) -> Dimensions {
        Dimensions { architecture: architecture.to_owned(), keys: Vec::new(), is_tied: false }
    }

    /// Sets a key without the architecture's prefix: `block_count`, `attention.head_count`.
    #[must_use]
    pub fn with(mut self, key: &str, value: u64) -> Dimensions {
        self.set(key, Value::Scalar(Scalar::Unsigned(value)));
        self
    }

    /// Sets one number for each layer.
    #[must_use]
    pub fn with_each(mut self, key: &str, values: &[u64]) -> Dimensions {
        let scalars = values.iter().map(|value| Scalar::Unsigned(*value)).collect();
        self.set(key, Value::Scalars(scalars));
        self
    }

    #[must_use]
    pub fn tied(mut self) -> Dimensions {
        self.is_tied = true;
        self
    }

    fn set(&mut self, key: &str, value: Value) {
        self.keys.retain(|(known, _)| known != key);
        self.keys.push((key.to_owned(), value));
    }

    /// A header whose weights are stored as `mix` says.
    ///
    /// # Errors
    /// A necessary number is missing or impossible, or the architecture's layers are unknown.
    pub fn header(&self, mix: QuantMix) -> Result<Gguf, GgufError> {
        let bare = self.bare();
        let tensors = layers::tensors(&bare, self.is_tied)?;
        let stored = mix.stored(&bare, tensors)?;
        Ok(bare.with_tensors(stored))
    }

    /// The keys, without tensors.
    pub(crate) fn bare(&self) -> Gguf {
        let prefix = &self.architecture;
        let architecture = Value::Text(prefix.clone());
        let keys = self.keys.iter().map(|(key, value)| (format!("{prefix}.{key}"), value.clone()));
        let named = [("general.architecture".to_owned(), architecture)];
        Gguf::from_metadata(keys.chain(named).collect())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(known, _)| known == key)
    }
}

/// Quants to try if none is given, from the most bits to the fewest that are still good.
pub const GOOD_QUANTS: [&str; 4] = ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"];

/// Quants of low quality, for machines with too little memory for the others.
const POOR_QUANTS: [&str; 2] = ["Q3_K_M", "Q2_K"];

/// Other quants to compare with `quant`.
pub(crate) fn other_quants(quant: &str) -> impl Iterator<Item = &'static str> {
    GOOD_QUANTS.into_iter().chain(POOR_QUANTS).filter(move |other| *other != quant)
}

/// A model whose weights were computed as a quant would store them.
pub(crate) fn computed(name: String, mix: QuantMix, shape: ModelShape) -> Model {
    let (format, quant) = (mix.format(), mix.label().to_owned());
    Model { name, format, quant, shape, basis: Basis::Assumed, location: Location::default() }
}

/// The model as other quants would store it.
pub fn variants(gguf: &Gguf, name: &str) -> Vec<Model> {
    let stored = |quant| {
        let requantized = requantized(gguf.clone(), QuantMix::named(quant).ok()?).ok()?;
        Some(Model {
            quant: quant.to_owned(),
            basis: Basis::Assumed,
            ..requantized.model(name).ok()?
        })
    };
    other_quants(gguf.quantization()).filter_map(stored).collect()
}

/// A header with its weights in another quant. Vectors are never quantized and stay.
///
/// # Errors
/// A tensor cannot be stored in that quant.
pub fn requantized(gguf: Gguf, mix: QuantMix) -> Result<Gguf, GgufError> {
    let is_matrix = |tensor: &&GgufTensor| tensor.dims.len() > 1;
    let matrices = gguf.tensors().iter().filter(is_matrix);
    let matrices = matrices
        .map(|tensor| layers::Matrix { name: tensor.name.clone(), dims: tensor.dims.clone() });
    let mut stored = mix.stored(&gguf, matrices.collect())?;
    stored.extend(gguf.tensors().iter().filter(|tensor| !is_matrix(tensor)).cloned());
    Ok(gguf.with_tensors(stored))
}

/// A header with other types for the named tensors; upper or lower case.
///
/// # Errors
/// A type is unknown, or the rows of a tensor do not fit it.
pub fn retyped(gguf: Gguf, types: &[(String, String)]) -> Result<Gguf, GgufError> {
    let types: BTreeMap<&str, &str> =
        types.iter().map(|(name, kind)| (name.as_str(), kind.as_str())).collect();
    let retyped = |tensor: &GgufTensor| {
        let Some(kind) = types.get(tensor.name.as_str()) else { return Ok(tensor.clone()) };
        let unknown = || {
            let (name, kind) = (tensor.name.clone(), (*kind).to_owned());
            GgufError::UnknownTypeName { name, kind }
        };
        let kind = TensorType::named(&kind.to_ascii_uppercase()).ok_or_else(unknown)?;
        GgufTensor::from_parts(tensor.name.clone(), tensor.dims.clone(), kind)
    };
    let tensors: Result<Vec<GgufTensor>, GgufError> = gguf.tensors().iter().map(retyped).collect();
    let tensors = tensors?;
    Ok(gguf.with_tensors(tensors))
}
