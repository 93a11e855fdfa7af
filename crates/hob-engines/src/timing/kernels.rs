//! Times ggml's multiplications on the processor: weights of a type with one vector, and with many.
//! Weights are stored as llama.cpp stores them: in the layout of the vector units, if the type has one.
#![expect(unsafe_code, reason = "ggml's C functions have no safe wrapper for single operations")]

use std::ffi::c_void;
use std::mem::transmute;
use std::ops::ControlFlow;
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use llama_cpp_sys_2 as sys;

use super::{EngineTiming, best_and_median};
use crate::backends;

/// Elements of a row. A multiple of every block size.
const WIDTH: i64 = 4096;
/// Rows with data of their own. The other rows repeat them.
const MADE_ROWS: i64 = 8;
const PASSES_MIN: usize = 5;
const PASSES_MAX: usize = 12;
/// Time for one figure. Slow kernels take longer, because each runs `PASSES_MIN` times at least.
const FIGURE_TIME: Duration = Duration::from_millis(120);
const PROMPT_TIME: Duration = Duration::from_millis(60);

/// The most common types first, so that a short run covers them.
pub(super) const QUANTS: [(&str, sys::ggml_type); 22] = [
    ("Q4_K", sys::GGML_TYPE_Q4_K),
    ("Q6_K", sys::GGML_TYPE_Q6_K),
    ("Q8_0", sys::GGML_TYPE_Q8_0),
    ("Q4_0", sys::GGML_TYPE_Q4_0),
    ("F16", sys::GGML_TYPE_F16),
    ("Q5_K", sys::GGML_TYPE_Q5_K),
    ("Q5_0", sys::GGML_TYPE_Q5_0),
    ("Q4_1", sys::GGML_TYPE_Q4_1),
    ("IQ4_NL", sys::GGML_TYPE_IQ4_NL),
    ("IQ4_XS", sys::GGML_TYPE_IQ4_XS),
    ("MXFP4", sys::GGML_TYPE_MXFP4),
    ("Q3_K", sys::GGML_TYPE_Q3_K),
    ("Q2_K", sys::GGML_TYPE_Q2_K),
    ("BF16", sys::GGML_TYPE_BF16),
    ("Q5_1", sys::GGML_TYPE_Q5_1),
    ("IQ3_S", sys::GGML_TYPE_IQ3_S),
    ("IQ3_XXS", sys::GGML_TYPE_IQ3_XXS),
    ("IQ2_S", sys::GGML_TYPE_IQ2_S),
    ("IQ2_XS", sys::GGML_TYPE_IQ2_XS),
    ("IQ2_XXS", sys::GGML_TYPE_IQ2_XXS),
    ("IQ1_S", sys::GGML_TYPE_IQ1_S),
    ("IQ1_M", sys::GGML_TYPE_IQ1_M),
];

/// Threads that multiply with one vector, as when answers are written, and with many, as when prompts are read.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    pub decode: u32,
    pub prefill: u32,
}

/// Size of a multiplication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) weight_bytes: usize,
    /// Rows of a prompt's multiplication, for each thread. A cache may hold all of them.
    pub(super) rows: i64,
    pub(super) columns: i64,
}

/// With one vector, twice what the largest usual cache holds.
const SIZES: Sizes = Sizes { weight_bytes: 128 << 20, rows: 256, columns: 64 };

/// The first `count` types, on all threads and on one.
pub fn time_kernels(
    threads: Threads,
    count: usize,
    report: &mut dyn FnMut(EngineTiming) -> ControlFlow<()>,
) {
    let names: Vec<&str> = QUANTS.iter().take(count).map(|(name, _)| *name).collect();
    time_all(&names, threads, SIZES, report);
}

pub(super) fn time_all(
    names: &[&str],
    threads: Threads,
    sizes: Sizes,
    report: &mut dyn FnMut(EngineTiming) -> ControlFlow<()>,
) {
    let Some(processor) = Processor::start() else { return };
    for (name, kind) in QUANTS.iter().filter(|(name, _)| names.contains(name)) {
        for timed in processor.figures(name, *kind, threads, sizes) {
            if report(timed).is_break() {
                return;
            }
        }
    }
}

/// ggml's backend of this machine's cores.
struct Processor {
    backend: sys::ggml_backend_t,
}

impl Processor {
    fn start() -> Option<Processor> {
        let backend = backends::new_processor();
        (!backend.is_null()).then_some(Processor { backend })
    }

    /// Computes each figure when it is asked for: memory is taken for one type at a time.
    fn figures<'a>(
        &'a self,
        name: &'a str,
        kind: sys::ggml_type,
        threads: Threads,
        sizes: Sizes,
    ) -> impl Iterator<Item = EngineTiming> + 'a {
        let rows = (sizes.weight_bytes / row_bytes(kind)) as i64;
        let product = Product::new(self, kind, rows, 1);
        let counts = if threads.decode > 1 { vec![threads.decode, 1] } else { vec![1] };
        let kernels = counts.into_iter().filter_map(move |threads| {
            let (best, median) = self.timed(product.as_ref()?, threads, FIGURE_TIME)?;
            let bytes = rows as f64 * row_bytes(kind) as f64;
            let (bytes_s, median_bytes_s) = (bytes / best, bytes / median);
            Some(EngineTiming::Kernel { quant: name.to_owned(), threads, bytes_s, median_bytes_s })
        });
        let prompt = std::iter::once_with(move || {
            let threads = threads.prefill.max(1);
            let (rows, columns) = (sizes.rows * i64::from(threads), sizes.columns);
            let product = Product::new(self, kind, rows, columns)?;
            let (best, _) = self.timed(&product, threads, PROMPT_TIME)?;
            let flop_s = 2.0 * WIDTH as f64 * rows as f64 * columns as f64 / best;
            Some(EngineTiming::Prompt { quant: name.to_owned(), threads, flop_s })
        });
        kernels.chain(prompt.flatten())
    }

    /// Seconds of a multiplication.
    fn timed(&self, product: &Product, threads: u32, within: Duration) -> Option<(f64, f64)> {
        let threads = i32::try_from(threads).ok()?;
        backends::set_threads(self.backend, threads);
        // The first pass meets cold pages and starts threads.
        self.computed(product)?;
        let started = Instant::now();
        let mut seconds = Vec::with_capacity(PASSES_MAX);
        while seconds.len() < PASSES_MIN
            || (seconds.len() < PASSES_MAX && started.elapsed() < within)
        {
            let pass = Instant::now();
            self.computed(product)?;
            seconds.push(pass.elapsed().as_secs_f64());
        }
        best_and_median(&mut seconds)
    }

    fn computed(&self, product: &Product) -> Option<()> {
        // SAFETY: the graph's tensors lie in buffers that `product` owns; one thread computes at a time.
        let status = unsafe { sys::ggml_backend_graph_compute(self.backend, product.graph) };
        (status == sys::GGML_STATUS_SUCCESS).then_some(())
    }

    /// Memory layouts for weights, the preferred first: those of vector units, then the plain one.
    fn places(&self) -> Vec<sys::ggml_backend_buffer_type_t> {
        type Extra =
            unsafe extern "C" fn(sys::ggml_backend_dev_t) -> *mut sys::ggml_backend_buffer_type_t;
        let extra = backends::function(self.backend, c"ggml_backend_dev_get_extra_bufts");
        let mut places = Vec::new();
        // SAFETY: the device is static. ggml documents the function behind this name as `Extra`, and its answer as a list
        // that ends with null.
        unsafe {
            let device = sys::ggml_backend_get_device(self.backend);
            if let Some(extra) = extra {
                let mut next = transmute::<NonNull<c_void>, Extra>(extra)(device);
                while !next.is_null() && !(*next).is_null() {
                    places.push(*next);
                    next = next.add(1);
                }
            }
            places.push(sys::ggml_backend_dev_buffer_type(device));
        }
        places
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        // SAFETY: made by `start`, and every product that uses it is dropped before it.
        unsafe { sys::ggml_backend_free(self.backend) };
    }
}

/// Weights, vectors, and the graph that multiplies them. Buffers are freed before the contexts that describe them.
struct Product {
    graph: *mut sys::ggml_cgraph,
    _buffers: [Buffer; 2],
    _contexts: [Context; 2],
}

impl Product {
    /// Uses the first layout that has a kernel for the type.
    fn new(
        processor: &Processor,
        kind: sys::ggml_type,
        rows: i64,
        columns: i64,
    ) -> Option<Product> {
        let mut places = processor.places().into_iter();
        places.find_map(|place| Product::at(place, processor, kind, [rows, columns]))
    }

    fn at(
        place: sys::ggml_backend_buffer_type_t,
        processor: &Processor,
        kind: sys::ggml_type,
        [rows, columns]: [i64; 2],
    ) -> Option<Product> {
        let (of_weights, of_rest) = (Context::new()?, Context::new()?);
        // SAFETY: both contexts have room for these tensors and the graph, and live as long as the product.
        let (weights, vectors, sums, graph) = unsafe {
            let weights = sys::ggml_new_tensor_2d(of_weights.0, kind, WIDTH, rows);
            let float = sys::GGML_TYPE_F32;
            let vectors = sys::ggml_new_tensor_2d(of_rest.0, float, WIDTH, columns);
            let sums = sys::ggml_mul_mat(of_rest.0, weights, vectors);
            let graph = sys::ggml_new_graph(of_rest.0);
            sys::ggml_build_forward_expand(graph, sums);
            (weights, vectors, sums, graph)
        };
        // SAFETY: the tensors of each context have no memory yet; null is looked for.
        let (weight_buffer, rest_buffer) = unsafe {
            let device = sys::ggml_backend_get_device(processor.backend);
            let usual = sys::ggml_backend_dev_buffer_type(device);
            (
                Buffer::of(sys::ggml_backend_alloc_ctx_tensors_from_buft(of_weights.0, place))?,
                Buffer::of(sys::ggml_backend_alloc_ctx_tensors_from_buft(of_rest.0, usual))?,
            )
        };
        // SAFETY: an operation whose tensors have their buffers.
        if !unsafe { sys::ggml_backend_supports_op(processor.backend, sums) } {
            return None;
        }
        fill(weights, &made_rows(kind, rows)?);
        fill(vectors, &made_rows(sys::GGML_TYPE_F32, columns)?);
        Some(Product {
            graph,
            _buffers: [weight_buffer, rest_buffer],
            _contexts: [of_weights, of_rest],
        })
    }
}

/// Descriptions of tensors, without their data.
struct Context(*mut sys::ggml_context);

impl Context {
    fn new() -> Option<Context> {
        // SAFETY: the sizes are ggml's own; it allocates the memory itself.
        let context = unsafe {
            let mem_size = 8 * sys::ggml_tensor_overhead() + sys::ggml_graph_overhead();
            let mem_buffer = ptr::null_mut();
            sys::ggml_init(sys::ggml_init_params { mem_size, mem_buffer, no_alloc: true })
        };
        (!context.is_null()).then_some(Context(context))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        unsafe { sys::ggml_free(self.0) };
    }
}

/// Memory of tensors.
struct Buffer(sys::ggml_backend_buffer_t);

impl Buffer {
    fn of(buffer: sys::ggml_backend_buffer_t) -> Option<Buffer> {
        (!buffer.is_null()).then_some(Buffer(buffer))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by ggml, freed once.
        unsafe { sys::ggml_backend_buffer_free(self.0) };
    }
}

fn row_bytes(kind: sys::ggml_type) -> usize {
    // SAFETY: reads a table; `WIDTH` is a multiple of every block.
    unsafe { sys::ggml_row_size(kind, WIDTH) }.max(1)
}

/// Rows of a type, as in a model. Their numbers do not change how long a multiplication takes, unless all are zero or some are
/// not finite.
fn made_rows(kind: sys::ggml_type, rows: i64) -> Option<Vec<u8>> {
    let count = (MADE_ROWS * WIDTH) as usize;
    let number = |index: usize| ((index * 7919 + 13) % 2003) as f32 / 1001.5 - 1.0;
    let numbers: Vec<f32> = (0..count).map(number).collect();
    let importance = vec![1.0_f32; WIDTH as usize];
    let mut some = vec![0_u8; MADE_ROWS as usize * row_bytes(kind)];
    let target = some.as_mut_ptr().cast();
    // SAFETY: so many rows of numbers are there, and room for as many of the type.
    let written = unsafe {
        sys::ggml_quantize_chunk(
            kind,
            numbers.as_ptr(),
            target,
            0,
            MADE_ROWS,
            WIDTH,
            importance.as_ptr(),
        )
    };
    let bytes = usize::try_from(rows).ok()? * row_bytes(kind);
    // Copied in large pieces, because single bytes would take longer than what is timed.
    let mut all = Vec::with_capacity(bytes);
    while all.len() < bytes {
        all.extend_from_slice(&some[..some.len().min(bytes - all.len())]);
    }
    (written == some.len()).then_some(all)
}

fn fill(tensor: *mut sys::ggml_tensor, data: &[u8]) {
    // SAFETY: the tensor lies in a buffer, and is as large as the data was made for.
    unsafe { sys::ggml_backend_tensor_set(tensor, data.as_ptr().cast(), 0, data.len()) };
}
