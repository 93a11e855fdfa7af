//! llama.cpp's models and contexts with a callback for each tensor, which the safe bindings do not offer.
//! Each type frees what it owns.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_sys_2 as sys;

use super::{QuantizeError, c_path};
use crate::backends;

/// llama.cpp, started. A process can start it once.
pub(super) fn start() -> Result<LlamaBackend, QuantizeError> {
    let backend =
        LlamaBackend::init().map_err(|error| QuantizeError::Backend(error.to_string()))?;
    backends::load();
    Ok(backend)
}

/// A model in memory.
#[derive(Debug)]
pub(super) struct RawModel(NonNull<sys::llama_model>);

impl RawModel {
    pub(super) fn load(path: &Path) -> Result<RawModel, QuantizeError> {
        // SAFETY: the call takes nothing and returns a plain struct.
        let params = unsafe { sys::llama_model_default_params() };
        RawModel::load_with(path, params)
    }

    /// A model without its weights, which only counts tokens.
    pub(super) fn load_vocabulary(path: &Path) -> Result<RawModel, QuantizeError> {
        // SAFETY: the call takes nothing and returns a plain struct.
        let mut params = unsafe { sys::llama_model_default_params() };
        params.vocab_only = true;
        RawModel::load_with(path, params)
    }

    fn load_with(path: &Path, params: sys::llama_model_params) -> Result<RawModel, QuantizeError> {
        let name = c_path(path)?;
        // SAFETY: the name is a text that ends with a zero; llama.cpp was started by the caller.
        let model = unsafe { sys::llama_model_load_from_file(name.as_ptr(), params) };
        NonNull::new(model).map(RawModel).ok_or_else(|| QuantizeError::Load {
            path: path.display().to_string(),
            reason: "it is not a model that this llama.cpp knows".to_owned(),
        })
    }

    fn vocab(&self) -> *const sys::llama_vocab {
        // SAFETY: the model lives; its vocabulary lives as long.
        unsafe { sys::llama_model_get_vocab(self.0.as_ptr()) }
    }

    /// Number of tokens in the vocabulary.
    pub(super) fn vocab_size(&self) -> usize {
        // SAFETY: the vocabulary lives as long as the model.
        usize::try_from(unsafe { sys::llama_vocab_n_tokens(self.vocab()) }).unwrap_or_default()
    }

    /// The token that begins a text (BOS), if texts of this model begin with one.
    pub(super) fn bos_token(&self) -> Option<i32> {
        // SAFETY: the vocabulary lives as long as the model.
        let (adds, token) = unsafe {
            (sys::llama_vocab_get_add_bos(self.vocab()), sys::llama_vocab_bos(self.vocab()))
        };
        (adds && token >= 0).then_some(token)
    }

    /// The tokens of a text, with the one that begins it.
    pub(super) fn tokenize(&self, text: &str) -> Vec<i32> {
        let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
        let tokenize = |tokens: &mut [i32]| {
            let room = i32::try_from(tokens.len()).unwrap_or(i32::MAX);
            // SAFETY: text and room are those of the slices.
            unsafe {
                sys::llama_tokenize(
                    self.vocab(),
                    text.as_ptr().cast(),
                    length,
                    tokens.as_mut_ptr(),
                    room,
                    true,
                    false,
                )
            }
        };
        // Without room, llama.cpp returns the needed number of tokens as a negative number.
        let needed = tokenize(&mut []).unsigned_abs() as usize;
        let mut tokens = vec![0; needed];
        let count = usize::try_from(tokenize(&mut tokens)).unwrap_or_default();
        tokens.truncate(count);
        tokens
    }
}

impl Drop for RawModel {
    fn drop(&mut self) {
        // SAFETY: it was loaded, and nothing uses it any more: contexts borrow it.
        unsafe { sys::llama_model_free(self.0.as_ptr()) }
    }
}

/// Sees tensors while they are computed.
pub(super) trait WatchTensors {
    fn wants(&self, tensor: &TensorView<'_>) -> bool;
    fn see(&mut self, tensor: &TensorView<'_>);
}

/// A context for one text at a time.
#[derive(Debug)]
pub(super) struct RawContext<'a> {
    context: NonNull<sys::llama_context>,
    batch: sys::llama_batch,
    tokens_max: usize,
    vocab_size: usize,
    _model: PhantomData<&'a RawModel>,
}

impl<'a> RawContext<'a> {
    /// Makes a context of `tokens_max` tokens. The thread that computes calls `watcher`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new<W: WatchTensors>(
        model: &'a RawModel,
        tokens_max: usize,
        threads: usize,
        watcher: Option<&'a mut W>,
    ) -> Result<RawContext<'a>, QuantizeError> {
        let (size, threads) = (
            u32::try_from(tokens_max).unwrap_or(u32::MAX),
            i32::try_from(threads.max(1)).unwrap_or(i32::MAX),
        );
        // SAFETY: the call takes nothing and returns a plain struct.
        let mut params = unsafe { sys::llama_context_default_params() };
        (params.n_ctx, params.n_batch, params.n_seq_max) = (size, size, 1);
        (params.n_threads, params.n_threads_batch) = (threads, threads);
        params.no_perf = true;
        if let Some(watcher) = watcher {
            params.cb_eval = Some(watch::<W>);
            params.cb_eval_user_data = std::ptr::from_mut(watcher).cast::<c_void>();
        }
        // SAFETY: the model lives as long as `'a`, and so does the watcher.
        let context = unsafe { sys::llama_init_from_model(model.0.as_ptr(), params) };
        let context = NonNull::new(context).ok_or_else(|| QuantizeError::Load {
            path: "a context".to_owned(),
            reason: format!(
                "there is not enough memory for {tokens_max} tokens; end programs that use memory, and try again"
            ),
        })?;
        // SAFETY: the batch is freed once, when the context is dropped.
        let batch =
            unsafe { sys::llama_batch_init(i32::try_from(tokens_max).unwrap_or(i32::MAX), 0, 1) };
        let vocab_size = model.vocab_size();
        Ok(RawContext { context, batch, tokens_max, vocab_size, _model: PhantomData })
    }

    /// Computes a text from its beginning, and returns the logits after each token from number `from` on, one row of the
    /// vocabulary's size after the other.
    ///
    /// # Errors
    /// The text is too long, or llama.cpp fails.
    pub(super) fn compute(&mut self, tokens: &[i32], from: usize) -> Result<&[f32], QuantizeError> {
        let failed = |code| QuantizeError::Decode { tokens: tokens.len(), code };
        if tokens.len() > self.tokens_max {
            // 0: llama.cpp was not called, so it returned no code.
            return Err(failed(0));
        }
        self.batch.n_tokens = i32::try_from(tokens.len()).unwrap_or(i32::MAX);
        for (at, token) in tokens.iter().enumerate() {
            // SAFETY: the batch has room for `tokens_max` tokens with one sequence each.
            unsafe {
                *self.batch.token.add(at) = *token;
                *self.batch.pos.add(at) = at as i32;
                *self.batch.n_seq_id.add(at) = 1;
                **self.batch.seq_id.add(at) = 0;
                *self.batch.logits.add(at) = i8::from(at >= from);
            }
        }
        // SAFETY: context and batch are owned by this value.
        let code = unsafe {
            let memory = sys::llama_get_memory(self.context.as_ptr());
            sys::llama_memory_clear(memory, true);
            sys::llama_decode(self.context.as_ptr(), self.batch)
        };
        if code != 0 {
            return Err(failed(code));
        }
        // SAFETY: llama.cpp keeps one row for each token that asked for logits, until the next call, which needs `&mut self`.
        Ok(unsafe {
            let rows = sys::llama_get_logits(self.context.as_ptr());
            std::slice::from_raw_parts(rows, (tokens.len() - from) * self.vocab_size)
        })
    }
}

impl Drop for RawContext<'_> {
    fn drop(&mut self) {
        // SAFETY: both were made by this value, and are freed once.
        unsafe {
            sys::llama_batch_free(self.batch);
            sys::llama_free(self.context.as_ptr());
        }
    }
}

/// llama.cpp calls this twice for each tensor: before, to ask whether to stop at it, and after it was computed.
unsafe extern "C" fn watch<W: WatchTensors>(
    tensor: *mut sys::ggml_tensor,
    is_question: bool,
    watcher: *mut c_void,
) -> bool {
    // SAFETY: llama.cpp passes a tensor that lives during the call, and the watcher that `RawContext::new` was given.
    let (watcher, view) = unsafe { (&mut *watcher.cast::<W>(), TensorView(&*tensor)) };
    if is_question {
        return watcher.wants(&view);
    }
    watcher.see(&view);
    true
}

/// A tensor during a computation.
pub(super) struct TensorView<'a>(&'a sys::ggml_tensor);

impl TensorView<'_> {
    pub(super) fn operation(&self) -> sys::ggml_op {
        self.0.op
    }

    /// Number of elements in each dimension, the fastest first.
    pub(super) fn sizes(&self) -> [usize; 4] {
        self.0.ne.map(|size| usize::try_from(size).unwrap_or_default())
    }

    pub(super) fn strides(&self) -> [usize; 4] {
        self.0.nb
    }

    pub(super) fn is_f32(&self) -> bool {
        self.0.type_ == sys::GGML_TYPE_F32
    }

    /// The name, without the device that some backends add: `CPU#blk.0.attn_q.weight#0`.
    pub(super) fn name(&self) -> String {
        // SAFETY: ggml ends each name with a zero.
        let name = unsafe { CStr::from_ptr(self.0.name.as_ptr()) }.to_string_lossy();
        let inner = name.split('#').nth(1);
        inner.unwrap_or(&name).to_owned()
    }

    /// An input of the operation.
    pub(super) fn source(&self, number: usize) -> Option<TensorView<'_>> {
        // SAFETY: a source that is not null lives as long as the tensor that is computed from it.
        unsafe { self.0.src.get(number)?.as_ref() }.map(TensorView)
    }

    /// The bytes, from wherever they are.
    pub(super) fn bytes(&self) -> Vec<u8> {
        // SAFETY: `ggml_nbytes` says how many there are, and the buffer has room for them.
        unsafe {
            let count = sys::ggml_nbytes(self.0);
            let mut bytes = vec![0_u8; count];
            sys::ggml_backend_tensor_get(self.0, bytes.as_mut_ptr().cast(), 0, count);
            bytes
        }
    }
}
