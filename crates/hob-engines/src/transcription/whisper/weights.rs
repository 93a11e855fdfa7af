//! The weights of a Whisper model as ggml tensors, and the caches that its computations share.
//! Matrices of floats are stored with 8 bits: a CPU multiplies them more than twice as fast.

use std::collections::HashMap;

use super::convert::{Conversion, convert};
use super::file::{Sizes, WhisperFile, WhisperFileError};
use super::ggml::{Backends, NoBackend, Store, Tensor, Type};
use crate::worker::LoadError;
use crate::worker::protocol::DeviceShortage;

const MB: u64 = 1_000_000;

/// A matrix and its bias. A key has no bias.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear<'a> {
    pub(super) weight: Tensor<'a>,
    pub(super) bias: Option<Tensor<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Norm<'a> {
    pub(super) weight: Tensor<'a>,
    pub(super) bias: Tensor<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Attention<'a> {
    pub(super) norm: Norm<'a>,
    pub(super) query: Linear<'a>,
    pub(super) key: Linear<'a>,
    pub(super) value: Linear<'a>,
    pub(super) out: Linear<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) attention: Attention<'a>,
    /// Absent in encoder blocks.
    pub(super) cross: Option<Attention<'a>>,
    pub(super) mlp_norm: Norm<'a>,
    pub(super) mlp: [Linear<'a>; 2],
}

/// Keys and values of one decoder block.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyValues<'a> {
    pub(super) key: Tensor<'a>,
    pub(super) value: Tensor<'a>,
}

/// All tensors. They point into `stores`. Their lifetime is written as `'static`, because a struct cannot borrow from its
/// own field; no tensor is handed out of `whisper`.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) encoder_position: Tensor<'static>,
    pub(super) conv: [Linear<'static>; 2],
    pub(super) encoder: Vec<Block<'static>>,
    pub(super) encoder_norm: Norm<'static>,
    pub(super) token: Tensor<'static>,
    pub(super) decoder_position: Tensor<'static>,
    pub(super) decoder: Vec<Block<'static>>,
    pub(super) decoder_norm: Norm<'static>,
    /// Caches of the self-attention, for the text so far.
    pub(super) self_caches: Vec<KeyValues<'static>>,
    /// Caches of the cross-attention, for the sound.
    pub(super) cross_caches: Vec<KeyValues<'static>>,
    stores: [Store; 2],
}

impl Weights {
    pub(super) fn load(
        file: &mut WhisperFile,
        sizes: &Sizes,
        backends: &Backends,
        threads: usize,
    ) -> Result<Weights, WhisperLoadError> {
        let names = names(sizes);
        let mut found = HashMap::new();
        while let Some(tensor) = file.next_tensor()? {
            let Some(dims) = names.get(&tensor.name) else { continue };
            found.insert(tensor.name.clone(), Conversion::new(tensor, *dims)?);
        }
        if found.len() < names.len() {
            return Err(WhisperFileError::Incomplete(names.len() - found.len()).into());
        }
        // A disk is fastest if it is read from the beginning to the end.
        let mut conversions: Vec<Conversion> = found.into_values().collect();
        conversions.sort_unstable_by_key(|conversion| conversion.at);
        let mut store = Store::new(conversions.len());
        let tensors: Vec<Tensor<'static>> =
            conversions.iter().map(|tensor| store.tensor(tensor.to, tensor.dims)).collect();
        if !store.allocate(backends) {
            return Err(no_room(&store, backends));
        }
        let write = |index: usize, at, bytes: &[u8]| store.fill(tensors[index], at, bytes);
        convert(file, &conversions, threads, write)?;
        let names = conversions.into_iter().map(|conversion| conversion.name);
        let named = Named(names.zip(tensors).collect());
        let (caches, self_caches, cross_caches) = caches(sizes, backends)?;
        Weights::from(&named, sizes, self_caches, cross_caches, [store, caches])
            // Unreachable: all names were checked above.
            .ok_or_else(|| WhisperFileError::Incomplete(1).into())
    }

    fn from(
        named: &Named,
        sizes: &Sizes,
        self_caches: Vec<KeyValues<'static>>,
        cross_caches: Vec<KeyValues<'static>>,
        stores: [Store; 2],
    ) -> Option<Weights> {
        let blocks = |side: &str, count: usize, has_cross: bool| -> Option<Vec<Block<'static>>> {
            (0..count)
                .map(|number| named.block(&format!("{side}.blocks.{number}"), has_cross))
                .collect()
        };
        Some(Weights {
            encoder_position: named.tensor("encoder.positional_embedding")?,
            conv: [named.linear("encoder.conv1")?, named.linear("encoder.conv2")?],
            encoder: blocks("encoder", sizes.audio_layers, false)?,
            encoder_norm: named.norm("encoder.ln_post")?,
            token: named.tensor("decoder.token_embedding.weight")?,
            decoder_position: named.tensor("decoder.positional_embedding")?,
            decoder: blocks("decoder", sizes.text_layers, true)?,
            decoder_norm: named.norm("decoder.ln")?,
            self_caches,
            cross_caches,
            stores,
        })
    }

    /// Bytes of all tensors.
    pub(super) fn bytes(&self) -> u64 {
        self.stores.iter().map(Store::bytes).sum()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WhisperLoadError {
    #[error(transparent)]
    File(#[from] WhisperFileError),
    #[error(
        "there is not enough memory for the model's weights; use a smaller model or unload others"
    )]
    Memory,
    #[error(
        "{} has no room for {} MB of the model, with {} MB free before it; use a smaller model or unload others",
        .0.device, .0.needed_bytes.div_ceil(MB), .0.free_bytes / MB
    )]
    DeviceMemory(DeviceShortage),
    #[error(transparent)]
    Device(#[from] NoBackend),
}

impl LoadError for WhisperLoadError {
    fn device_shortage(&self) -> Option<DeviceShortage> {
        match self {
            WhisperLoadError::DeviceMemory(shortage) => Some(shortage.clone()),
            WhisperLoadError::File(_) | WhisperLoadError::Memory | WhisperLoadError::Device(_) => {
                None
            }
        }
    }
}

/// The tensors by their names in the file.
struct Named(HashMap<String, Tensor<'static>>);

impl Named {
    fn tensor(&self, name: &str) -> Option<Tensor<'static>> {
        self.0.get(name).copied()
    }

    fn linear(&self, name: &str) -> Option<Linear<'static>> {
        let weight = self.tensor(&format!("{name}.weight"))?;
        Some(Linear { weight, bias: self.tensor(&format!("{name}.bias")) })
    }

    fn norm(&self, name: &str) -> Option<Norm<'static>> {
        let weight = self.tensor(&format!("{name}.weight"))?;
        Some(Norm { weight, bias: self.tensor(&format!("{name}.bias"))? })
    }

    fn attention(&self, block: &str, name: &str) -> Option<Attention<'static>> {
        let linear = |part: &str| self.linear(&format!("{block}.{name}.{part}"));
        Some(Attention {
            norm: self.norm(&format!("{block}.{name}_ln"))?,
            query: linear("query")?,
            key: linear("key")?,
            value: linear("value")?,
            out: linear("out")?,
        })
    }

    fn block(&self, block: &str, has_cross: bool) -> Option<Block<'static>> {
        let cross = if has_cross { Some(self.attention(block, "cross_attn")?) } else { None };
        Some(Block {
            attention: self.attention(block, "attn")?,
            cross,
            mlp_norm: self.norm(&format!("{block}.mlp_ln"))?,
            mlp: [self.linear(&format!("{block}.mlp.0"))?, self.linear(&format!("{block}.mlp.2"))?],
        })
    }
}

/// The names of all tensors and their dimensions.
fn names(sizes: &Sizes) -> HashMap<String, [usize; 3]> {
    let state = sizes.audio_state;
    let mut names = HashMap::new();
    let mut add = |name: String, dims: [usize; 3]| {
        names.insert(name, dims);
    };
    add("encoder.positional_embedding".to_owned(), [state, sizes.audio_ctx, 1]);
    for (conv, bands) in [("conv1", sizes.mels), ("conv2", state)] {
        add(format!("encoder.{conv}.weight"), [3, bands, state]);
        add(format!("encoder.{conv}.bias"), [1, state, 1]);
    }
    add("decoder.positional_embedding".to_owned(), [state, sizes.text_ctx, 1]);
    add("decoder.token_embedding.weight".to_owned(), [state, sizes.vocab, 1]);
    for name in ["encoder.ln_post", "decoder.ln"] {
        add(format!("{name}.weight"), [state, 1, 1]);
        add(format!("{name}.bias"), [state, 1, 1]);
    }
    for (side, layers) in [("encoder", sizes.audio_layers), ("decoder", sizes.text_layers)] {
        for layer in 0..layers {
            let block = format!("{side}.blocks.{layer}");
            let attentions: &[&str] =
                if side == "encoder" { &["attn"] } else { &["attn", "cross_attn"] };
            for attention in attentions {
                for part in ["query", "key", "value", "out"] {
                    add(format!("{block}.{attention}.{part}.weight"), [state, state, 1]);
                    if part != "key" {
                        add(format!("{block}.{attention}.{part}.bias"), [state, 1, 1]);
                    }
                }
                add(format!("{block}.{attention}_ln.weight"), [state, 1, 1]);
                add(format!("{block}.{attention}_ln.bias"), [state, 1, 1]);
            }
            add(format!("{block}.mlp_ln.weight"), [state, 1, 1]);
            add(format!("{block}.mlp_ln.bias"), [state, 1, 1]);
            add(format!("{block}.mlp.0.weight"), [state, 4 * state, 1]);
            add(format!("{block}.mlp.0.bias"), [4 * state, 1, 1]);
            add(format!("{block}.mlp.2.weight"), [4 * state, state, 1]);
            add(format!("{block}.mlp.2.bias"), [state, 1, 1]);
        }
    }
    names
}

type Caches = (Store, Vec<KeyValues<'static>>, Vec<KeyValues<'static>>);

fn caches(sizes: &Sizes, backends: &Backends) -> Result<Caches, WhisperLoadError> {
    let mut store = Store::new(sizes.text_layers * 4);
    let state = sizes.text_state;
    let of = |positions: usize| -> Vec<KeyValues<'static>> {
        let one = |_| store.tensor(Type::F16, [state * positions, 1, 1]);
        (0..sizes.text_layers)
            .map(|layer| KeyValues { key: one(layer), value: one(layer) })
            .collect()
    };
    let self_caches = of(sizes.text_cached_max());
    let cross_caches = of(sizes.audio_ctx);
    if store.allocate(backends) {
        Ok((store, self_caches, cross_caches))
    } else {
        Err(no_room(&store, backends))
    }
}

fn no_room(store: &Store, backends: &Backends) -> WhisperLoadError {
    backends.card_shortage(store).map_or(WhisperLoadError::Memory, WhisperLoadError::DeviceMemory)
}
