//! Why a `config.json` does not describe a model that hob knows.
//! The reader of dimensions and the one of quantization both report it.

use hob_core::nearest_hint;

use crate::gguf::GgufError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration is not a JSON object: {detail}")]
    NotJson { detail: String },
    #[error("the configuration lacks '{key}'")]
    Missing { key: &'static str },
    #[error("hob does not know models of type '{name}'{}", nearest_hint(near))]
    UnknownType { name: String, near: Vec<String> },
    #[error("hob does not know the quantization '{method}'; known are {known}")]
    UnknownQuantization { method: String, known: &'static str },
    /// Names the GGUF key.
    #[error(transparent)]
    Dimensions(#[from] GgufError),
}
