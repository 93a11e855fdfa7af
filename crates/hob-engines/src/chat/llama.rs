//! llama.cpp as a [`Decoder`]: a model file in memory, and one context that computes batches.
//! Every call blocks. Only the worker's engine thread uses the context.

mod card_use;
mod devices;
mod draft;
mod log;

use std::ffi::CString;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_core::KvType;
use hob_core::machine::{GpuApi, Vendor};
use hob_models::{StoreError, check_changed};
use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;

use super::cpu::{advice_for, missing_units};
use super::decoder::{BatchToken, DecodeFailed, Decoder};
use super::tokens::{Beginning, Special, Token, TokenTable, Tokenizer};
use crate::backends::{self, BackendDevice};
use crate::worker::protocol::DeviceShortage;

pub use card_use::{CardUse, EngineDevice, NotCardUse, UnknownDevice};
pub use devices::{DeviceReport, try_devices};

#[derive(Clone, Debug)]
pub struct LlamaOptions {
    pub path: PathBuf,
    /// Tokens that one sequence may hold.
    pub context_tokens: u32,
    /// Sequences that are computed at the same time.
    pub parallel: u32,
    pub kv_type: KvType,
    /// Threads for steps of few tokens, whose speed depends on memory.
    pub threads: u32,
    /// Threads for steps of many tokens, whose speed depends on computation.
    pub threads_batch: u32,
    /// Tokens of one step.
    pub batch_tokens: u32,
    /// Layers on graphics cards, if this hob was built for them. The output counts as one layer. `None` means all.
    pub gpu_layers: Option<u32>,
    /// Number of layers whose experts stay in the system's memory.
    pub cpu_moe_layers: u32,
    pub card_use: CardUse,
    pub weights: WeightStorage,
}

/// Where the weights for the CPU are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightStorage {
    /// In pages of the mapped file, which the kernel may drop and read again.
    Mapped,
    /// In allocated memory. Reading is faster if the system provides large pages.
    Copied,
}

#[derive(Debug, thiserror::Error)]
pub enum LlamaError {
    #[error(
        "this hob was built for a processor with {}, which this one lacks; {}",
        .0.join(", "), advice_for(.0)
    )]
    Processor(Vec<&'static str>),
    #[error(transparent)]
    Damaged(#[from] StoreError),
    #[error(transparent)]
    Device(#[from] UnknownDevice),
    #[error("llama.cpp does not start: {0}")]
    Backend(String),
    #[error("llama.cpp does not load {path}: {reason}", path = .path.display())]
    Load { path: PathBuf, reason: String },
    #[error(
        "llama.cpp makes no context of {context_tokens} tokens for each of {parallel} sequences: {reason}"
    )]
    Context { context_tokens: u32, parallel: u32, reason: String },
    /// A graphics card has no room for the weights, or for the context.
    #[error(
        "{device} has no room for {} MB: {} of its {} MB are free; fewer layers there (chat.gpu_layers), a shorter \
         context (chat.context_tokens) or a smaller KV type (chat.kv_type) need less, and `hob fit` ranks what fits",
        needed_bytes.div_ceil(MB), free_bytes / MB, total_bytes / MB
    )]
    DeviceMemory { device: String, needed_bytes: u64, free_bytes: u64, total_bytes: u64 },
    #[error(
        "{path} cannot guess for this model: {reason}; set chat.draft_model to a smaller model of the same \
         family, or remove it",
        path = .path.display()
    )]
    Draft { path: PathBuf, reason: String },
}

impl LlamaError {
    /// The memory that a graphics card could not give, if that is the reason.
    pub(crate) fn device_shortage(&self) -> Option<DeviceShortage> {
        let LlamaError::DeviceMemory { device, needed_bytes, free_bytes, .. } = self else {
            return None;
        };
        let (needed_bytes, free_bytes) = (*needed_bytes, *free_bytes);
        Some(DeviceShortage { device: device.clone(), needed_bytes, free_bytes })
    }
}

/// A model in memory.
#[derive(Debug)]
pub struct Llama {
    backend: Arc<LlamaBackend>,
    model: LlamaModel,
    options: LlamaOptions,
}

impl Llama {
    /// Loads the weights. Calls `progress` with the loaded fraction, 0 to 1.
    ///
    /// # Errors
    /// See [`LlamaError`]. A process can load only once.
    pub fn load(
        options: LlamaOptions,
        progress: impl FnMut(f32) + 'static,
    ) -> Result<Llama, LlamaError> {
        Llama::load_with(start()?, options, progress)
    }

    fn load_with(
        backend: Arc<LlamaBackend>,
        options: LlamaOptions,
        mut progress: impl FnMut(f32) + 'static,
    ) -> Result<Llama, LlamaError> {
        check_changed(&options.path)?;
        let mut params = LlamaModelParams::default().with_progress_callback(move |part| {
            progress(part);
            true
        });
        if options.weights == WeightStorage::Copied {
            params = params.with_use_mmap(false);
        }
        if let Some(layers) = options.gpu_layers {
            params = params.with_n_gpu_layers(layers);
        }
        if let Some(cards) = options.card_use.numbers_here()? {
            let chosen = params.with_devices(&cards);
            params = chosen.map_err(|error| LlamaError::Backend(error.to_string()))?;
        }
        let mut params = std::pin::pin!(params);
        let experts = experts_of(options.cpu_moe_layers);
        if let Some(experts) = &experts {
            params.as_mut().add_cpu_buft_override(experts);
        }
        let model = load_model(&backend, &options.path, &params)?;
        Ok(Llama { backend, model, options })
    }

    pub fn options(&self) -> &LlamaOptions {
        &self.options
    }

    /// The vocabulary, token by token.
    pub fn tokens(&self) -> TokenTable {
        let vocab = self.model.vocab();
        let tokens = vocab.tokens().map(|token| Token {
            bytes: vocab.token_to_piece(token, false, None),
            control: vocab
                .is_control(token)
                .then(|| vocab.token_to_piece(token, true, None))
                .and_then(|name| String::from_utf8(name).ok()),
            ends: vocab.is_eog(token),
        });
        TokenTable::new(tokens.collect(), vocab.eos().0 as u32)
    }

    /// Texts of the BOS and EOS tokens, for templates.
    pub fn begin_and_end(&self) -> (String, String) {
        let vocab = self.model.vocab();
        let text = |token: LlamaToken| {
            // A vocabulary without one says -1.
            if token.0 < 0 { Vec::new() } else { vocab.token_to_piece(token, true, None) }
        };
        let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (lossy(text(vocab.bos())), lossy(text(vocab.eos())))
    }

    /// The tokens for a text to be filled in: before the prefix, the suffix and the gap.
    pub fn infill_marks(&self) -> Option<[u32; 3]> {
        let vocab = self.model.vocab();
        let [before, after, gap] = [vocab.fim_pre(), vocab.fim_suf(), vocab.fim_mid()];
        let known = |token: LlamaToken| u32::try_from(token.0).ok();
        Some([known(before)?, known(after)?, known(gap)?])
    }

    /// A text from the file's header.
    pub fn header_text(&self, key: &str) -> Option<String> {
        self.model.meta_val_str(key).ok()
    }

    pub fn vocabulary_size(&self) -> usize {
        usize::try_from(self.model.n_vocab()).unwrap_or(0)
    }

    /// Whether a sequence's state is a cache of tokens, which can be cut and copied. The state of a recurrent model cannot.
    pub fn has_token_cache(&self) -> bool {
        !self.model.is_recurrent() && !self.model.is_hybrid()
    }

    /// # Errors
    /// [`LlamaError::Context`]
    pub fn decoder(&self) -> Result<LlamaDecoder<'_>, LlamaError> {
        let LlamaOptions { context_tokens, parallel, .. } = self.options;
        let params = self
            .params(context_tokens.saturating_mul(parallel), parallel)
            .with_n_batch(self.options.batch_tokens)
            .with_n_ubatch(self.options.batch_tokens.min(UBATCH_TOKENS_MAX));
        let context = self.context(params, context_tokens)?;
        Ok(LlamaDecoder {
            context,
            batch: LlamaBatch::new(self.options.batch_tokens as usize, 1),
            options: &self.options,
            can_share: self.has_token_cache(),
            is_broken: false,
        })
    }

    /// A context that turns texts of up to `tokens_max` tokens into vectors.
    ///
    /// # Errors
    /// [`LlamaError::Context`]
    pub fn embedder(&self, tokens_max: u32) -> Result<LlamaEmbedder<'_>, LlamaError> {
        // A text is pooled within one physical batch, so that batch holds the longest.
        let params = self
            .params(tokens_max, 1)
            .with_n_batch(tokens_max)
            .with_n_ubatch(tokens_max)
            .with_embeddings(true)
            .with_pooling_type(self.pooling());
        let context = self.context(params, tokens_max)?;
        Ok(LlamaEmbedder { context, batch: LlamaBatch::new(tokens_max as usize, 1) })
    }

    /// The pooling that the file names. Otherwise the mean, for chat models.
    fn pooling(&self) -> LlamaPoolingType {
        let architecture = self.model.meta_val_str("general.architecture").unwrap_or_default();
        match self.model.meta_val_str(&format!("{architecture}.pooling_type")) {
            Ok(_) => LlamaPoolingType::Unspecified,
            Err(_) => LlamaPoolingType::Mean,
        }
    }

    fn params(&self, cells: u32, sequences: u32) -> LlamaContextParams {
        let kv_type = match self.options.kv_type {
            KvType::F16 => KvCacheType::F16,
            KvType::Q8_0 => KvCacheType::Q8_0,
            KvType::Q4_0 => KvCacheType::Q4_0,
        };
        LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(cells))
            .with_n_seq_max(sequences)
            // Otherwise each token would be compared with the tokens of all sequences.
            .with_kv_unified(false)
            .with_type_k(kv_type)
            .with_type_v(kv_type)
            .with_n_threads(threads(self.options.threads))
            .with_n_threads_batch(threads(self.options.threads_batch))
            .with_no_perf(true)
    }

    fn context(
        &self,
        params: LlamaContextParams,
        context_tokens: u32,
    ) -> Result<LlamaContext<'_>, LlamaError> {
        let parallel = params.n_seq_max();
        let (made, refused) = log::watch(|| self.model.new_context(&self.backend, params));
        made.map_err(|error| {
            let reason = error.to_string();
            out_of_device_memory(refused).unwrap_or(LlamaError::Context {
                context_tokens,
                parallel,
                reason,
            })
        })
    }
}

impl Tokenizer for Llama {
    fn tokenize(&self, text: &str, beginning: Beginning, special: Special) -> Vec<u32> {
        let vocab = self.model.vocab();
        let is_marked = beginning == Beginning::Marked;
        let tokens = vocab.tokenize(text.as_bytes(), is_marked, special == Special::Meant);
        tokens.into_iter().map(|token| token.0 as u32).collect()
    }
}

/// Maximum tokens that llama.cpp computes in one pass. More would only use memory.
const UBATCH_TOKENS_MAX: u32 = 512;

const MB: u64 = 1_000_000;

/// llama.cpp's number for a step that a backend did not compute. Metal computes no other one afterwards; the other backends for
/// cards end the process themselves.
const COMPUTATION_FAILED: i32 = -3;

/// Starts the engine in this process, which is possible once.
fn start() -> Result<Arc<LlamaBackend>, LlamaError> {
    let missing = missing_units();
    if !missing.is_empty() {
        return Err(LlamaError::Processor(missing));
    }
    log::start();
    if backends::devices().is_empty() {
        let reason =
            "it has no library for this machine: lib/hob must be next to the folder of the program";
        return Err(LlamaError::Backend(reason.to_owned()));
    }
    let backend = LlamaBackend::init();
    Ok(Arc::new(backend.map_err(|error| LlamaError::Backend(error.to_string()))?))
}

fn load_model(
    backend: &LlamaBackend,
    path: &Path,
    params: &LlamaModelParams,
) -> Result<LlamaModel, LlamaError> {
    let failed = |reason: String| LlamaError::Load { path: path.to_path_buf(), reason };
    if !path.is_file() {
        return Err(failed("there is no such file".to_owned()));
    }
    let (loaded, refused) = log::watch(|| LlamaModel::load_from_file(backend, path, params));
    loaded
        .map_err(|error| out_of_device_memory(refused).unwrap_or_else(|| failed(error.to_string())))
}

/// `None` if another memory than that of a graphics card was missing.
fn out_of_device_memory(refused: Option<log::FailedAllocation>) -> Option<LlamaError> {
    let refused = refused?;
    let is_full = |device: &BackendDevice| device.is_card && device.name == refused.device;
    let card = backends::devices().into_iter().find(is_full)?;
    let (free_bytes, total_bytes) = card.memory();
    Some(LlamaError::DeviceMemory {
        device: card.to_string(),
        needed_bytes: refused.bytes,
        free_bytes,
        total_bytes,
    })
}

/// A pattern for all tensors with experts in the first `layers` layers, like llama.cpp's `--n-cpu-moe`.
fn experts_of(layers: u32) -> Option<CString> {
    let numbers: Vec<String> = (0..layers).map(|layer| layer.to_string()).collect();
    let pattern = format!(r"blk\.({})\.ffn_(up|down|gate|gate_up)_(ch|)exps", numbers.join("|"));
    CString::new(pattern).ok().filter(|_| layers > 0)
}

/// llama-cpp-2 has Metal in every build for Apple's own processors.
const HAS_METAL: bool =
    cfg!(any(feature = "metal", all(target_os = "macos", target_arch = "aarch64")));

/// Whether this hob was built for graphics cards.
pub const fn has_card_kernels() -> bool {
    cfg!(any(feature = "cuda", feature = "vulkan")) || HAS_METAL
}

/// The interface through which this hob computes on a maker's cards. `None`: it was not built for them.
pub fn card_api(vendor: Vendor) -> Option<GpuApi> {
    match vendor {
        Vendor::Nvidia if cfg!(feature = "cuda") => Some(GpuApi::Cuda),
        Vendor::Apple if HAS_METAL => Some(GpuApi::Metal),
        Vendor::Nvidia | Vendor::Amd | Vendor::Intel | Vendor::Apple | Vendor::Other => {
            cfg!(feature = "vulkan").then_some(GpuApi::Vulkan)
        }
    }
}

fn threads(count: u32) -> i32 {
    i32::try_from(count.max(1)).unwrap_or(i32::MAX)
}

/// Bytes that all programs use on the graphics cards that a model may use.
pub fn vram_bytes_taken(card_use: &CardUse) -> u64 {
    let devices = backends::devices().into_iter();
    let used = devices.filter(|device| device.is_card && card_use.allows(&device.name));
    used.map(|card| {
        let (free_bytes, total_bytes) = card.memory();
        total_bytes.saturating_sub(free_bytes)
    })
    .sum()
}

/// The context that computes answers.
#[derive(Debug)]
pub struct LlamaDecoder<'a> {
    context: LlamaContext<'a>,
    batch: LlamaBatch<'a>,
    options: &'a LlamaOptions,
    can_share: bool,
    is_broken: bool,
}

impl Decoder for LlamaDecoder<'_> {
    fn parallel(&self) -> usize {
        self.options.parallel as usize
    }

    fn context_tokens(&self) -> u32 {
        self.options.context_tokens
    }

    fn batch_tokens(&self) -> usize {
        self.options.batch_tokens as usize
    }

    fn decode(&mut self, tokens: &[BatchToken]) -> Result<(), DecodeFailed> {
        self.batch.clear();
        for token in tokens {
            let id = LlamaToken::new(token.id as i32);
            let sequence = [token.slot as i32];
            let added = self.batch.add(id, token.position as i32, &sequence, token.wants_logits);
            added.map_err(decode_failed)?;
        }
        let decoded = self.context.decode(&mut self.batch);
        self.is_broken |= decoded == Err(DecodeError::Unknown(COMPUTATION_FAILED));
        decoded.map_err(decode_failed)?;
        self.context.synchronize();
        Ok(())
    }

    fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn logits(&self, index: usize) -> &[f32] {
        self.context.get_logits_ith(index as i32)
    }

    fn truncate(&mut self, slot: usize, tokens: usize) -> usize {
        let cut = self.context.clear_kv_cache_seq(Some(slot as u32), Some(tokens as u32), None);
        if matches!(cut, Ok(true)) {
            return tokens;
        }
        // A cache that cannot be cut in the middle is cleared. Clearing a whole sequence never fails.
        let _whole = self.context.clear_kv_cache_seq(Some(slot as u32), None, None);
        0
    }

    fn can_truncate(&self) -> bool {
        self.can_share
    }

    fn copy(&mut self, from: usize, to: usize, tokens: usize) -> usize {
        if !self.can_share {
            return self.truncate(to, 0);
        }
        // llama.cpp copies only whole sequences, so the rest is cut off afterwards.
        self.truncate(to, 0);
        self.context.copy_cache(from as i32, to as i32, -1);
        self.truncate(to, tokens)
    }
}

/// The context that computes embeddings.
#[derive(Debug)]
pub struct LlamaEmbedder<'a> {
    context: LlamaContext<'a>,
    batch: LlamaBatch<'a>,
}

impl LlamaEmbedder<'_> {
    /// The vector of one text, of length 1.
    ///
    /// # Errors
    /// llama.cpp's error message.
    pub fn embed(&mut self, tokens: &[u32]) -> Result<Vec<f32>, DecodeFailed> {
        self.context.clear_kv_cache();
        self.batch.clear();
        for (position, &token) in tokens.iter().enumerate() {
            let added = self.batch.add(LlamaToken::new(token as i32), position as i32, &[0], true);
            added.map_err(decode_failed)?;
        }
        self.context.decode(&mut self.batch).map_err(decode_failed)?;
        let vector = self.context.embeddings_seq_ith(0).map_err(decode_failed)?;
        Ok(vector.to_vec())
    }
}

fn decode_failed(error: impl fmt::Display) -> DecodeFailed {
    DecodeFailed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_for_cards_computes_on_those_of_a_maker() {
        let vendors = [Vendor::Nvidia, Vendor::Amd, Vendor::Intel, Vendor::Apple];
        assert_eq!(vendors.into_iter().any(|one| card_api(one).is_some()), has_card_kernels());
        let vulkan = Some(GpuApi::Vulkan).filter(|_| cfg!(feature = "vulkan"));
        assert_eq!([Vendor::Amd, Vendor::Intel].map(card_api), [vulkan; 2]);
    }

    #[test]
    fn experts_of_the_first_layers_are_named_as_llama_cpp_names_them() {
        assert_eq!(experts_of(0), None);
        let of_two = c"blk\\.(0|1)\\.ffn_(up|down|gate|gate_up)_(ch|)exps";
        assert_eq!(experts_of(2).as_deref(), Some(of_two));
    }
}
