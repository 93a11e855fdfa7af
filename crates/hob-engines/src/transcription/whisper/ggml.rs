//! The few parts of ggml that Whisper needs, with lifetimes: weights, graphs and the backends that compute them.
//! With `custom.rs`, all `unsafe` of the transcription engine.

#![expect(unsafe_code, reason = "ggml has a C interface")]

mod custom;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use hob_kernels::Activation;
use llama_cpp_sys_2 as sys;

use super::TranscribeError;
use crate::backends::{self, BackendDevice};
use crate::chat::{CardUse, UnknownDevice};
use crate::worker::protocol::DeviceShortage;

/// Maximum nodes of a graph. Whisper large's decoder has about 2,000.
const NODES_MAX: usize = 8192;

/// A data type of ggml. The constants are the types that this engine creates; a file may contain others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type(sys::ggml_type);

impl Type {
    pub(super) const F32: Type = Type(sys::GGML_TYPE_F32);
    pub(super) const F16: Type = Type(sys::GGML_TYPE_F16);
    pub(super) const Q8_0: Type = Type(sys::GGML_TYPE_Q8_0);
    const I32: Type = Type(sys::GGML_TYPE_I32);
    const I16: Type = Type(sys::GGML_TYPE_I16);

    /// The type with this number in a file, if it is one for weights: F32, F16, BF16, Q4_0 to Q8_0 and K-quants.
    pub(super) fn of_file(number: i32) -> Option<Type> {
        let number = u32::try_from(number).ok()?;
        matches!(number, 0..=3 | 6..=8 | 10..=14 | 30).then_some(Type(number))
    }

    /// Bytes of a row of `width` values, or `None` if the type cannot hold such a row.
    pub(super) fn row_bytes(self, width: usize) -> Option<usize> {
        // SAFETY: the number is one of ggml's types.
        let block = unsafe { sys::ggml_blck_size(self.0) } as usize;
        let width_i = i64::try_from(width).ok()?;
        // SAFETY: as above.
        (block > 0 && width.is_multiple_of(block))
            .then(|| unsafe { sys::ggml_row_size(self.0, width_i) })
    }

    /// The values as floats.
    pub(super) fn to_floats(self, bytes: &[u8], count: usize) -> Option<Vec<f32>> {
        if self.row_bytes(count)? != bytes.len() {
            return None;
        }
        if self == Type::F32 {
            let (values, _) = bytes.as_chunks::<4>();
            return Some(values.iter().map(|value| f32::from_le_bytes(*value)).collect());
        }
        // SAFETY: the traits of a valid type are static.
        let to_float = unsafe { (*sys::ggml_get_type_traits(self.0)).to_float }?;
        let mut floats = vec![0.0; count];
        // SAFETY: `bytes` holds `count` values of this type (checked above), and `floats` has room for them.
        unsafe { to_float(bytes.as_ptr().cast(), floats.as_mut_ptr(), count as i64) };
        Some(floats)
    }

    /// Rows of `width` floats in this type.
    pub(super) fn quantized(self, floats: &[f32], width: usize) -> Option<Vec<u8>> {
        let rows = floats.len() / width;
        let mut bytes = vec![0; self.row_bytes(width)? * rows];
        // SAFETY: source and target hold `rows` rows of `width` values, and this type needs no importance matrix.
        let written = unsafe {
            sys::ggml_quantize_chunk(
                self.0,
                floats.as_ptr(),
                bytes.as_mut_ptr().cast(),
                0,
                rows as i64,
                width as i64,
                ptr::null(),
            )
        };
        (written == bytes.len()).then_some(bytes)
    }
}

/// A tensor of a [`Store`] or of a [`Graph`]. It must not outlive either.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tensor<'a>(NonNull<sys::ggml_tensor>, PhantomData<&'a ()>);

impl Tensor<'_> {
    fn raw(self) -> *mut sys::ggml_tensor {
        self.0.as_ptr()
    }

    /// Size of a dimension, of which there are four.
    pub(super) fn dim(self, number: usize) -> usize {
        // SAFETY: the tensor lives as long as its store or graph.
        unsafe { self.0.as_ref() }.ne[number] as usize
    }

    pub(super) fn kind(self) -> Type {
        // SAFETY: as above.
        Type(unsafe { self.0.as_ref() }.type_)
    }

    fn stride(self, number: usize) -> usize {
        // SAFETY: as above.
        unsafe { self.0.as_ref() }.nb[number]
    }

    fn bytes(self) -> usize {
        // SAFETY: as above.
        unsafe { sys::ggml_nbytes(self.raw()) }
    }
}

/// Owns a ggml context.
#[derive(Debug)]
struct Context(NonNull<sys::ggml_context>);

// SAFETY: a context is plain memory without thread-local state; only its owner uses it.
unsafe impl Send for Context {}

impl Context {
    fn new(tensors: usize, graphs: usize) -> Context {
        // SAFETY: these functions only compute sizes.
        let mem_size = unsafe {
            sys::ggml_tensor_overhead() * tensors
                + graphs * sys::ggml_graph_overhead_custom(NODES_MAX, false)
        };
        let params =
            sys::ggml_init_params { mem_size, mem_buffer: ptr::null_mut(), no_alloc: true };
        // SAFETY: ggml allocates `mem_size` bytes, and aborts if there are none.
        let context = unsafe { sys::ggml_init(params) };
        #[expect(clippy::expect_used, reason = "ggml aborts the process before it returns null")]
        Context(NonNull::new(context).expect("a context"))
    }

    fn raw(&self) -> *mut sys::ggml_context {
        self.0.as_ptr()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { sys::ggml_free(self.raw()) }
    }
}

#[expect(clippy::expect_used, reason = "ggml aborts the process before it returns null")]
fn tensor<'a>(raw: *mut sys::ggml_tensor) -> Tensor<'a> {
    Tensor(NonNull::new(raw).expect("a tensor"), PhantomData)
}

/// The devices that compute: a graphics card if this build has kernels for one, and the CPU.
#[derive(Debug)]
pub(super) struct Backends {
    sched: sys::ggml_backend_sched_t,
    /// In order of preference; the CPU is the last.
    all: Vec<sys::ggml_backend_t>,
    /// Whether the card has failed. On Metal, it then computes nothing more in this process.
    pub(super) is_broken: bool,
}

// SAFETY: backends are used by one thread at a time, the owner's.
unsafe impl Send for Backends {}

/// A device that must compute does not.
#[derive(Debug, thiserror::Error)]
pub enum NoBackend {
    #[error("this build of ggml has no CPU backend")]
    Cpu,
    #[error(transparent)]
    Unknown(#[from] UnknownDevice),
    #[error(
        "{0} does not start; update its driver, or set transcription.device to another card or to cpu"
    )]
    Card(String),
}

impl Backends {
    /// If several cards are named, the first one computes.
    ///
    /// # Errors
    /// ggml lists no card of a name, or a device does not start.
    pub(super) fn new(threads: u32, card_use: &CardUse) -> Result<Backends, NoBackend> {
        let mut all = Vec::new();
        backends::load();
        let named = card_use.numbers_here()?;
        // SAFETY: devices are static, and the numbers are those of devices. A null device is not initialised.
        unsafe {
            let card = match named.as_deref() {
                None => sys::ggml_backend_dev_by_type(sys::GGML_BACKEND_DEVICE_TYPE_GPU),
                Some([]) => ptr::null_mut(),
                Some([number, ..]) => sys::ggml_backend_dev_get(*number),
            };
            if !card.is_null() {
                let backend = sys::ggml_backend_dev_init(card, ptr::null());
                if backend.is_null() {
                    return Err(NoBackend::Card(BackendDevice::of(card).to_string()));
                }
                all.push(backend);
            }
        }
        let cpu = backends::new_processor();
        if cpu.is_null() {
            return Err(NoBackend::Cpu);
        }
        backends::set_threads(cpu, threads.max(1) as i32);
        all.push(cpu);
        let count = all.len() as i32;
        // SAFETY: `all` holds `count` backends, which are freed after the scheduler.
        let sched = unsafe {
            sys::ggml_backend_sched_new(
                all.as_mut_ptr(),
                ptr::null_mut(),
                count,
                NODES_MAX,
                false,
                true,
            )
        };
        Ok(Backends { sched, all, is_broken: false })
    }

    /// Whether a graphics card computes, and so holds the weights.
    pub(super) fn has_card(&self) -> bool {
        self.all.len() > 1
    }

    /// What the card has free, and what the store needs of it. `None` without a card.
    pub(super) fn card_shortage(&self, store: &Store) -> Option<DeviceShortage> {
        let card = *self.all.first().filter(|_| self.has_card())?;
        // SAFETY: the backend lives, and its device is static. The size is computed without an allocation.
        let (device, needed_bytes) = unsafe {
            let device = BackendDevice::of(sys::ggml_backend_get_device(card));
            let kind = sys::ggml_backend_get_default_buffer_type(card);
            let context = store.context.raw();
            (device, sys::ggml_backend_alloc_ctx_tensors_from_buft_size(context, kind))
        };
        let ((free_bytes, _), needed_bytes) = (device.memory(), needed_bytes as u64);
        Some(DeviceShortage { device: device.to_string(), needed_bytes, free_bytes })
    }

    /// Computes the graph after `set_inputs` has filled its inputs. A CPU stops after the operation during which
    /// `cancelled` becomes true; a graphics card computes the graph to its end.
    ///
    /// # Errors
    /// [`TranscribeError::Memory`], [`TranscribeError::Card`] and [`TranscribeError::Cancelled`].
    pub(super) fn compute(
        &mut self,
        graph: &Graph<'_>,
        cancelled: &dyn Fn() -> bool,
        set_inputs: impl FnOnce(&Inputs),
    ) -> Result<(), TranscribeError> {
        // SAFETY: the graph's tensors live as long as the graph. The scheduler forgets them at the next reset. ggml calls
        // `is_cancelled` on this thread during the computation only, so `cancelled` outlives its use.
        let status = unsafe {
            sys::ggml_backend_sched_reset(self.sched);
            if !sys::ggml_backend_sched_alloc_graph(self.sched, graph.raw) {
                return Err(TranscribeError::Memory);
            }
            set_inputs(&Inputs(()));
            self.abort_if(Some(is_cancelled), (&raw const cancelled).cast_mut().cast());
            let status = sys::ggml_backend_sched_graph_compute(self.sched, graph.raw);
            self.abort_if(None, ptr::null_mut());
            status
        };
        match status {
            sys::GGML_STATUS_SUCCESS => Ok(()),
            sys::GGML_STATUS_ABORTED => Err(TranscribeError::Cancelled),
            sys::GGML_STATUS_FAILED if self.has_card() => {
                self.is_broken = true;
                Err(TranscribeError::Card)
            }
            _ => Err(TranscribeError::Memory),
        }
    }

    fn abort_if(&self, callback: sys::ggml_abort_callback, data: *mut c_void) {
        let Some(cpu) = self.all.last() else { return };
        backends::set_abort_callback(*cpu, callback, data);
    }
}

/// Calls the closure to which `data` points.
unsafe extern "C" fn is_cancelled(data: *mut c_void) -> bool {
    // SAFETY: `compute` passes the address of such a reference, which lives until it returns.
    let cancelled = unsafe { *data.cast::<&dyn Fn() -> bool>() };
    cancelled()
}

impl Drop for Backends {
    fn drop(&mut self) {
        // SAFETY: this is the only owner. Stores are dropped before (they are declared first).
        unsafe {
            sys::ggml_backend_sched_free(self.sched);
            self.all.iter().for_each(|backend| sys::ggml_backend_free(*backend));
        }
    }
}

/// Writes inputs of an allocated graph.
#[derive(Debug)]
pub(super) struct Inputs(());

impl Inputs {
    pub(super) fn floats(&self, tensor: Tensor<'_>, values: &[f32]) {
        set(tensor, values.as_ptr().cast(), size_of_val(values));
    }

    pub(super) fn ints(&self, tensor: Tensor<'_>, values: &[i32]) {
        set(tensor, values.as_ptr().cast(), size_of_val(values));
    }
}

fn set(tensor: Tensor<'_>, data: *const c_void, bytes: usize) {
    assert_eq!(bytes, tensor.bytes(), "the size of a tensor");
    // SAFETY: `data` holds as many bytes as the tensor, which is allocated.
    unsafe { sys::ggml_backend_tensor_set(tensor.raw(), data, 0, bytes) }
}

/// The values of a computed tensor.
pub(super) fn floats(tensor: Tensor<'_>) -> Vec<f32> {
    let bytes = tensor.bytes();
    let mut values = vec![0.0_f32; bytes / size_of::<f32>()];
    // SAFETY: an output is a contiguous F32 tensor that was computed, and `values` has its size.
    unsafe { sys::ggml_backend_tensor_get(tensor.raw(), values.as_mut_ptr().cast(), 0, bytes) };
    values
}

/// Tensors that stay: weights and caches.
#[derive(Debug)]
pub(super) struct Store {
    context: Context,
    buffer: sys::ggml_backend_buffer_t,
}

// SAFETY: the buffer is memory that only the owner's thread uses.
unsafe impl Send for Store {}

impl Store {
    /// Room for the descriptions of `tensors` tensors; their values come with [`Store::allocate`].
    pub(super) fn new(tensors: usize) -> Store {
        Store { context: Context::new(tensors + 1, 0), buffer: ptr::null_mut() }
    }

    /// The tensor lives as long as this store; the caller keeps both together.
    pub(super) fn tensor<'a>(&self, kind: Type, dims: [usize; 3]) -> Tensor<'a> {
        let [a, b, c] = dims.map(|dim| dim as i64);
        // SAFETY: the context has room for the tensors that were announced, and ggml aborts otherwise.
        tensor(unsafe { sys::ggml_new_tensor_3d(self.context.raw(), kind.0, a, b, c) })
    }

    /// Allocates all tensors, zeroed. False if the memory does not suffice.
    pub(super) fn allocate(&mut self, backends: &Backends) -> bool {
        // SAFETY: the first backend is the preferred one, and the tensors have no memory yet.
        unsafe {
            let kind = sys::ggml_backend_get_default_buffer_type(backends.all[0]);
            self.buffer = sys::ggml_backend_alloc_ctx_tensors_from_buft(self.context.raw(), kind);
            if !self.buffer.is_null() {
                sys::ggml_backend_buffer_clear(self.buffer, 0);
            }
        }
        !self.buffer.is_null()
    }

    pub(super) fn bytes(&self) -> u64 {
        if self.buffer.is_null() {
            return 0;
        }
        // SAFETY: the buffer is valid after `allocate`.
        unsafe { sys::ggml_backend_buffer_get_size(self.buffer) as u64 }
    }

    /// Writes into a tensor, from its byte `at` on.
    pub(super) fn fill(&self, tensor: Tensor<'_>, at: usize, bytes: &[u8]) {
        let (from, size) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the tensor is allocated, and ggml aborts if the bytes reach beyond it.
        unsafe { sys::ggml_backend_tensor_set(tensor.raw(), from, at, size) }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: this is the only owner; ggml accepts null.
        unsafe { sys::ggml_backend_buffer_free(self.buffer) }
    }
}

/// A computation that is described once and computed once.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    context: Context,
    raw: *mut sys::ggml_cgraph,
    weights: PhantomData<&'a ()>,
}

/// Declares operations with the signature of ggml's functions.
macro_rules! operations {
    ($($(#[$meta:meta])* $name:ident($($arg:ident: $kind:ty => $raw:expr),*) = $function:ident;)*) => {
        $($(#[$meta])*
        pub(super) fn $name(&self, $($arg: $kind),*) -> Tensor<'a> {
            // SAFETY: the arguments are tensors of this graph or of a store that outlives it. ggml checks shapes and
            // aborts the worker if they do not fit.
            tensor(unsafe { sys::$function(self.context.raw(), $($raw),*) })
        })*
    };
}

impl<'a> Graph<'a> {
    pub(super) fn new() -> Graph<'a> {
        let context = Context::new(NODES_MAX, 1);
        // SAFETY: the context has room for one graph of this size.
        let raw = unsafe { sys::ggml_new_graph_custom(context.raw(), NODES_MAX, false) };
        Graph { context, raw, weights: PhantomData }
    }

    operations! {
        mul_mat(a: Tensor<'a> => a.raw(), b: Tensor<'a> => b.raw()) = ggml_mul_mat;
        add(a: Tensor<'a> => a.raw(), b: Tensor<'a> => b.raw()) = ggml_add;
        mul(a: Tensor<'a> => a.raw(), b: Tensor<'a> => b.raw()) = ggml_mul;
        gelu(a: Tensor<'a> => a.raw()) = ggml_gelu;
        norm(a: Tensor<'a> => a.raw(), eps: f32 => eps) = ggml_norm;
        rows(a: Tensor<'a> => a.raw(), numbers: Tensor<'a> => numbers.raw()) = ggml_get_rows;
        scale(a: Tensor<'a> => a.raw(), by: f32 => by) = ggml_scale;
        cont(a: Tensor<'a> => a.raw()) = ggml_cont;
        transpose(a: Tensor<'a> => a.raw()) = ggml_transpose;
        cast(a: Tensor<'a> => a.raw(), to: Type => to.0) = ggml_cast;
        softmax(a: Tensor<'a> => a.raw()) = ggml_soft_max;
        copy(from: Tensor<'a> => from.raw(), to: Tensor<'a> => to.raw()) = ggml_cpy;
        /// Hides what comes after each token.
        mask_future(a: Tensor<'a> => a.raw(), past: usize => past as i32) = ggml_diag_mask_inf;
        reshape(a: Tensor<'a> => a.raw(), x: usize => x as i64, y: usize => y as i64, z: usize => z as i64)
            = ggml_reshape_3d;
        /// A convolution in one dimension whose output is as long as the input divided by the stride.
        conv(kernel: Tensor<'a> => kernel.raw(), a: Tensor<'a> => a.raw(), stride: i32 => stride, dilation: i32 => dilation)
            = ggml_conv_1d_ph;
    }

    /// Moves each dimension to the named place.
    pub(super) fn permute(&self, a: Tensor<'a>, places: [i32; 3]) -> Tensor<'a> {
        let [x, y, z] = places;
        // SAFETY: as for the operations.
        tensor(unsafe { sys::ggml_permute(self.context.raw(), a.raw(), x, y, z, 3) })
    }

    /// The attention of each head: its width by positions by heads. The result has the heads before the positions.
    pub(super) fn attention(
        &self,
        query: Tensor<'a>,
        key: Tensor<'a>,
        value: Tensor<'a>,
        scale: f32,
    ) -> Tensor<'a> {
        let (query, key, value) = (query.raw(), key.raw(), value.raw());
        let context = self.context.raw();
        // SAFETY: as for the operations; there is no mask.
        tensor(unsafe {
            sys::ggml_flash_attn_ext(context, query, key, value, ptr::null_mut(), scale, 0.0, 0.0)
        })
    }

    /// The rows of `x` in 16-bit integers, for [`Graph::product`].
    pub(super) fn narrow(&self, x: Tensor<'a>) -> Tensor<'a> {
        let size = [x.dim(0) + hob_kernels::SCALE_VALUES, x.dim(1)];
        self.custom(Type::I16, size, &mut [x.raw()], Some(custom::narrow))
    }

    /// A matrix in Q8_0 times narrow rows, plus the bias.
    pub(super) fn product(
        &self,
        weight: Tensor<'a>,
        rows: Tensor<'a>,
        bias: Option<Tensor<'a>>,
        activation: Activation,
    ) -> Tensor<'a> {
        let operation = match activation {
            Activation::None => custom::product,
            Activation::Gelu => custom::product_with_gelu,
        };
        let mut inputs = vec![weight.raw(), rows.raw()];
        inputs.extend(bias.map(Tensor::raw));
        self.custom(Type::F32, [weight.dim(1), rows.dim(1)], &mut inputs, Some(operation))
    }

    fn custom(
        &self,
        kind: Type,
        [x, y]: [usize; 2],
        inputs: &mut [*mut sys::ggml_tensor],
        operation: sys::ggml_custom_op_t,
    ) -> Tensor<'a> {
        let (list, count) = (inputs.as_mut_ptr(), inputs.len() as i32);
        let (context, nothing) = (self.context.raw(), ptr::null_mut());
        let (x, y) = (x as i64, y as i64);
        // SAFETY: as for the operations. ggml copies the list, and -1 means all threads.
        tensor(unsafe {
            sys::ggml_custom_4d(context, kind.0, x, y, 1, 1, list, count, operation, -1, nothing)
        })
    }

    pub(super) fn input_floats(&self, x: usize, y: usize) -> Tensor<'a> {
        self.input(Type::F32, x, y)
    }

    pub(super) fn input_ints(&self, count: usize) -> Tensor<'a> {
        self.input(Type::I32, count, 1)
    }

    fn input(&self, kind: Type, x: usize, y: usize) -> Tensor<'a> {
        // SAFETY: the context has room for every tensor of the graph.
        unsafe {
            let input = sys::ggml_new_tensor_2d(self.context.raw(), kind.0, x as i64, y as i64);
            sys::ggml_set_input(input);
            tensor(input)
        }
    }

    /// `x` by `y` values of a tensor, from `first` of its values in memory, with `row` values from row to row.
    pub(super) fn view(
        &self,
        a: Tensor<'a>,
        (x, y): (usize, usize),
        row: usize,
        first: usize,
    ) -> Tensor<'a> {
        let size = a.stride(0);
        // SAFETY: the callers stay within the tensor, which ggml asserts.
        tensor(unsafe {
            sys::ggml_view_2d(
                self.context.raw(),
                a.raw(),
                x as i64,
                y as i64,
                row * size,
                first * size,
            )
        })
    }

    /// Does what [`Graph::view`] does, with a third dimension whose slices are `slice` values apart.
    pub(super) fn view3(
        &self,
        a: Tensor<'a>,
        (x, y, z): (usize, usize, usize),
        (row, slice): (usize, usize),
        first: usize,
    ) -> Tensor<'a> {
        let size = a.stride(0);
        // SAFETY: as above.
        tensor(unsafe {
            sys::ggml_view_3d(
                self.context.raw(),
                a.raw(),
                x as i64,
                y as i64,
                z as i64,
                row * size,
                slice * size,
                first * size,
            )
        })
    }

    /// Adds a tensor that must be computed: its values are read afterwards, or it writes into a cache.
    pub(super) fn want(&self, a: Tensor<'a>) -> Tensor<'a> {
        // SAFETY: the tensor is of this graph.
        unsafe {
            sys::ggml_set_output(a.raw());
            sys::ggml_build_forward_expand(self.raw, a.raw());
        }
        a
    }

    /// Adds a write into a cache that must happen before tensors that are added later.
    pub(super) fn first(&self, a: Tensor<'a>) {
        // SAFETY: the tensor is of this graph.
        unsafe { sys::ggml_build_forward_expand(self.raw, a.raw()) }
    }
}
