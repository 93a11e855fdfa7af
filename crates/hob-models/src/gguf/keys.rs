//! Reads numbers of a GGUF header below the name of an architecture, such as `llama.block_count`.
//! Each has a limit, because the engine aborts its process on some larger numbers.

use super::value::Value;
use super::{Gguf, GgufError, Scalar};

/// Keys that begin with `architecture.`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'g> {
    pub(crate) gguf: &'g Gguf,
    pub(crate) architecture: &'g str,
}

impl Keys<'_> {
    /// A required number from 1 to `max`.
    pub(crate) fn required(&self, name: &str, max: u32) -> Result<u32, GgufError> {
        match self.optional(name, max)? {
            Some(0) => Err(GgufError::wrong(&self.key(name), "must not be 0")),
            Some(number) => Ok(number),
            None => Err(GgufError::missing(&self.key(name))),
        }
    }

    pub(crate) fn optional(&self, name: &str, max: u32) -> Result<Option<u32>, GgufError> {
        let key = self.key(name);
        match self.gguf.value(&key) {
            None => Ok(None),
            Some(Value::Scalar(scalar)) => within(&key, *scalar, max).map(Some),
            Some(_) => Err(GgufError::wrong(&key, "must be one whole number")),
        }
    }

    /// One number for all layers, or one for each layer.
    pub(crate) fn per_layer(
        &self,
        name: &str,
        layers: usize,
        max: u32,
    ) -> Result<Option<Vec<u32>>, GgufError> {
        let key = self.key(name);
        match self.gguf.value(&key) {
            None => Ok(None),
            Some(Value::Scalar(scalar)) => Ok(Some(vec![within(&key, *scalar, max)?; layers])),
            Some(Value::Scalars(scalars)) if scalars.len() >= layers => {
                let numbers = scalars.iter().take(layers).map(|scalar| within(&key, *scalar, max));
                numbers.collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(GgufError::wrong(
                &key,
                format!("must have a number for each of {layers} layers"),
            )),
        }
    }

    pub(crate) fn has_list(&self, name: &str) -> bool {
        matches!(self.gguf.value(&self.key(name)), Some(Value::Scalars(_)))
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }
}

fn within(key: &str, scalar: Scalar, max: u32) -> Result<u32, GgufError> {
    let number = scalar.whole().and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| *number <= max);
    number.ok_or_else(|| GgufError::wrong(key, format!("must be a whole number up to {max}")))
}
