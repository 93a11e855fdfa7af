//! The tensors that a model of given dimensions has, in the types that a quant would give them: for shapes that somebody
//! types, for published configurations, and for quants that nobody has made yet. Norms and biases are left out: under
//! 0.1 % of a model.

mod layers;
mod mixture;

use hob_core::fit::Model;
use hob_core::machine::Basis;
use hob_core::weights::Weights;

use crate::gguf::{Gguf, GgufError, Scalar, Tensor, Value};

pub use mixture::{Mixture, UnknownMixture};

/// Dimensions as a GGUF header names them, without a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimensions {
    architecture: String,
    keys: Vec<(String, Value)>,
    /// The embedding makes the scores too.
    is_tied: bool,
}

impl Dimensions {
    pub fn new(architecture: &str) -> Dimensions {
        Dimensions { architecture: architecture.to_owned(), keys: Vec::new(), is_tied: false }
    }

    /// A key without the architecture before it: `block_count`, `attention.head_count`.
    #[must_use]
    pub fn with(mut self, key: &str, value: u64) -> Dimensions {
        self.set(key, Value::Scalar(Scalar::Unsigned(value)));
        self
    }

    /// One number for each layer.
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

    /// As a header whose weights are stored as `mixture` says.
    ///
    /// # Errors
    /// A number that is needed is missing or absurd, or nobody knows this architecture's layers.
    pub fn header(&self, mixture: Mixture) -> Result<Gguf, GgufError> {
        let bare = self.bare();
        let tensors = layers::tensors(&bare, self.is_tied)?;
        let stored = mixture.stored(&bare, tensors)?;
        Ok(bare.with_tensors(stored))
    }

    /// The keys, without any weights.
    pub(crate) fn bare(&self) -> Gguf {
        let prefix = &self.architecture;
        let architecture = Value::Text(prefix.clone());
        let keys = self.keys.iter().map(|(key, value)| (format!("{prefix}.{key}"), value.clone()));
        let named = [("general.architecture".to_owned(), architecture)];
        Gguf::made(keys.chain(named).collect(), Vec::new())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(known, _)| known == key)
    }

    /// Of the weights alone.
    ///
    /// # Errors
    /// See [`Dimensions::header`].
    pub fn weights(&self, mixture: Mixture) -> Result<Weights, GgufError> {
        Ok(self.header(mixture)?.shape()?.weights)
    }
}

/// What is asked about where nobody says in which quant: from the most bits to the fewest that are still good.
pub const GOOD_QUANTS: [&str; 4] = ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"];

/// For machines that hold nothing better.
const POOR_QUANTS: [&str; 2] = ["Q3_K_M", "Q2_K"];

/// What a model that is in `quant` may be asked about beside it.
pub(crate) fn other_quants(quant: &str) -> impl Iterator<Item = &'static str> {
    GOOD_QUANTS.into_iter().chain(POOR_QUANTS).filter(move |other| *other != quant)
}

/// The model of a header as other quants would store it.
pub fn variants(gguf: &Gguf, name: &str) -> Vec<Model> {
    let stored = |quant| {
        let remade = remade(gguf.clone(), Mixture::named(quant).ok()?).ok()?;
        Some(Model { quant: quant.to_owned(), basis: Basis::Assumed, ..remade.model(name).ok()? })
    };
    other_quants(gguf.quantization()).filter_map(stored).collect()
}

/// A header with its weights stored in another way. Vectors, which are never quantized, stay as they are.
///
/// # Errors
/// A tensor cannot be stored like that.
pub fn remade(gguf: Gguf, mixture: Mixture) -> Result<Gguf, GgufError> {
    let is_matrix = |tensor: &&Tensor| tensor.dims.len() > 1;
    let matrices = gguf.tensors().iter().filter(is_matrix);
    let matrices = matrices
        .map(|tensor| layers::Matrix { name: tensor.name.clone(), dims: tensor.dims.clone() });
    let mut stored = mixture.stored(&gguf, matrices.collect())?;
    stored.extend(gguf.tensors().iter().filter(|tensor| !is_matrix(tensor)).cloned());
    Ok(gguf.with_tensors(stored))
}
