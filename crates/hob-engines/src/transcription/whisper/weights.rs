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
pub(super) struct Linear<T> {
    pub(super) weight: T,
    pub(super) bias: Option<T>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Norm<T> {
    pub(super) weight: T,
    pub(super) bias: T,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Attention<T> {
    pub(super) query: Linear<T>,
    pub(super) key: Linear<T>,
    pub(super) value: Linear<T>,
    pub(super) out: Linear<T>,
    pub(super) norm: Norm<T>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block<T> {
    pub(super) attention: Attention<T>,
    /// Absent in encoder blocks.
    pub(super) cross: Option<Attention<T>>,
    pub(super) mlp_norm: Norm<T>,
    pub(super) mlp: [Linear<T>; 2],
}

/// All tensors of the file. `T` is what stands for one.
#[derive(Debug)]
pub(super) struct Layers<T> {
    pub(super) encoder_position: T,
    pub(super) conv: [Linear<T>; 2],
    pub(super) decoder_position: T,
    pub(super) token: T,
    pub(super) encoder: Vec<Block<T>>,
    pub(super) decoder: Vec<Block<T>>,
    pub(super) encoder_norm: Norm<T>,
    pub(super) decoder_norm: Norm<T>,
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
    pub(super) layers: Layers<Tensor<'static>>,
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
        let names: HashMap<String, [usize; 3]> = names(sizes).into_iter().collect();
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
        let named: HashMap<String, Tensor<'static>> = names.zip(tensors).collect();
        // Each name was found above.
        let layers = layers(sizes, |name, _| named[&name]);
        let (caches, self_caches, cross_caches) = caches(sizes, backends)?;
        Ok(Weights { layers, self_caches, cross_caches, stores: [store, caches] })
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

/// The names of all tensors and their dimensions.
pub(super) fn names(sizes: &Sizes) -> Vec<(String, [usize; 3])> {
    let mut names = Vec::new();
    layers(sizes, |name, dims| names.push((name, dims)));
    names
}

/// All layers of a model. `tensor` gets the name of each tensor in the file, and its dimensions.
fn layers<T>(sizes: &Sizes, tensor: impl FnMut(String, [usize; 3]) -> T) -> Layers<T> {
    let state = sizes.audio_state;
    let mut reader = LayerReader { state, tensor };
    Layers {
        encoder_position: reader
            .tensor("encoder.positional_embedding", [state, sizes.audio_ctx, 1]),
        conv: [("encoder.conv1", sizes.mels), ("encoder.conv2", state)]
            .map(|(name, bands)| reader.linear(name, [3, bands, state], [1, state, 1])),
        decoder_position: reader.tensor("decoder.positional_embedding", [state, sizes.text_ctx, 1]),
        token: reader.tensor("decoder.token_embedding.weight", [state, sizes.vocab, 1]),
        encoder: (0..sizes.audio_layers)
            .map(|layer| reader.block(&format!("encoder.blocks.{layer}"), false))
            .collect(),
        decoder: (0..sizes.text_layers)
            .map(|layer| reader.block(&format!("decoder.blocks.{layer}"), true))
            .collect(),
        encoder_norm: reader.norm("encoder.ln_post"),
        decoder_norm: reader.norm("decoder.ln"),
    }
}

struct LayerReader<F> {
    state: usize,
    tensor: F,
}

impl<T, F: FnMut(String, [usize; 3]) -> T> LayerReader<F> {
    fn tensor(&mut self, name: &str, dims: [usize; 3]) -> T {
        (self.tensor)(name.to_owned(), dims)
    }

    fn linear(&mut self, name: &str, weight: [usize; 3], bias: [usize; 3]) -> Linear<T> {
        Linear {
            weight: self.tensor(&format!("{name}.weight"), weight),
            bias: Some(self.tensor(&format!("{name}.bias"), bias)),
        }
    }

    fn norm(&mut self, name: &str) -> Norm<T> {
        let dims = [self.state, 1, 1];
        Norm {
            weight: self.tensor(&format!("{name}.weight"), dims),
            bias: self.tensor(&format!("{name}.bias"), dims),
        }
    }

    fn attention(&mut self, name: &str) -> Attention<T> {
        let (weight, bias) = ([self.state, self.state, 1], [self.state, 1, 1]);
        Attention {
            query: self.linear(&format!("{name}.query"), weight, bias),
            key: Linear { weight: self.tensor(&format!("{name}.key.weight"), weight), bias: None },
            value: self.linear(&format!("{name}.value"), weight, bias),
            out: self.linear(&format!("{name}.out"), weight, bias),
            norm: self.norm(&format!("{name}_ln")),
        }
    }

    fn block(&mut self, block: &str, has_cross: bool) -> Block<T> {
        let (narrow, wide) = (self.state, 4 * self.state);
        Block {
            attention: self.attention(&format!("{block}.attn")),
            cross: has_cross.then(|| self.attention(&format!("{block}.cross_attn"))),
            mlp_norm: self.norm(&format!("{block}.mlp_ln")),
            mlp: [("mlp.0", narrow, wide), ("mlp.2", wide, narrow)].map(|(name, from, to)| {
                self.linear(&format!("{block}.{name}"), [from, to, 1], [to, 1, 1])
            }),
        }
    }
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
