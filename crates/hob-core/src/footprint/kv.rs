//! Types in which keys and values can be stored, and their sizes.
//! Keys and values are counted separately: their lengths and types may differ.

use super::{ContextPlan, product};
use crate::{ModelShape, enum_table};

enum_table! {
    /// Number format of the KV cache. The names are those that people and the engine use.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum KvType: name or UnknownKvType("a KV cache type") {
        #[default]
        F16 = "f16",
        Q8_0 = "q8_0",
        Q4_0 = "q4_0",
    }
}

/// Types of keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvTypes {
    pub keys: KvType,
    pub values: KvType,
}

/// Why the engine does not accept these KV types for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuitable {
    #[error(
        "a KV cache of type {kv} stores {} elements at a time, and a head of this model has \
         {head_length}; f16 takes any", kv.block().0
    )]
    HeadNotWhole { kv: KvType, head_length: u32 },
    #[error("this model keeps keys and values in one: both must be {keys} or both {values}")]
    NotTheSame { keys: KvType, values: KvType },
}

impl KvType {
    /// Elements that are stored together, and their bytes: an f16 scale, and 8 or 4 bits per element.
    pub fn block(self) -> (u32, u32) {
        match self {
            KvType::F16 => (1, 2),
            KvType::Q8_0 => (32, 34),
            KvType::Q4_0 => (32, 18),
        }
    }

    fn bytes(self, elements: u64) -> u64 {
        let (block_elements, block_bytes) = self.block();
        product(&[elements.div_ceil(block_elements.into()), block_bytes.into()])
    }

    fn divides(self, head_length: u32) -> Result<(), Unsuitable> {
        if head_length.is_multiple_of(self.block().0) {
            Ok(())
        } else {
            Err(Unsuitable::HeadNotWhole { kv: self, head_length })
        }
    }
}

impl KvTypes {
    pub fn both(kv: KvType) -> KvTypes {
        KvTypes { keys: kv, values: kv }
    }

    /// Bytes of one token in the layers that keep the whole sequence.
    pub fn bytes_per_token(self, shape: &ModelShape) -> u64 {
        let growing = shape.kv_layers().filter(|(_, window)| window.is_none());
        growing.fold(0, |sum, (kv, _)| sum.saturating_add(self.bytes(kv)))
    }

    /// Checks that the engine accepts these types for this model.
    pub(super) fn check(self, shape: &ModelShape) -> Result<(), Unsuitable> {
        let KvTypes { keys, values } = self;
        shape.kv_layers().try_for_each(|(kv, _)| {
            if kv.value_length == 0 && keys != values {
                return Err(Unsuitable::NotTheSame { keys, values });
            }
            keys.divides(kv.key_length)?;
            values.divides(kv.value_length)
        })
    }

    /// Bytes of one token in one layer.
    pub fn bytes(self, kv: crate::shape::KvShape) -> u64 {
        let elements = |length: u32| product(&[kv.heads.into(), length.into()]);
        let keys = self.keys.bytes(elements(kv.key_length));
        keys.saturating_add(self.values.bytes(elements(kv.value_length)))
    }
}

/// Bytes of all cells that are allocated when the model is loaded.
pub(super) fn bytes(shape: &ModelShape, plan: &ContextPlan) -> u64 {
    let of_layer = |(kv, window): (_, Option<u32>)| {
        let cells = window.map_or(plan.cells(), |tokens| plan.window_cells(tokens));
        product(&[plan.kv.bytes(kv), cells.into(), plan.sequences.max(1).into()])
    };
    shape.kv_layers().fold(0, |sum, kept| sum.saturating_add(of_layer(kept)))
}
