//! Operations that ggml calls on each of its threads: the kernels of `hob_kernels`, on the memory of tensors.
//! A graph has them only on the processor, and only where `hob_kernels::is_faster` says so.

use std::ffi::c_void;
use std::slice;

use hob_kernels::{Activation, CHANNELS, Product, SCALE_VALUES};
use llama_cpp_sys_2 as sys;

/// Rounds each row of the only input to 16-bit numbers with a scale.
pub(super) unsafe extern "C" fn narrow(
    to: *mut sys::ggml_tensor,
    thread: i32,
    threads: i32,
    _: *mut c_void,
) {
    // SAFETY: ggml passes a tensor whose memory is allocated, and whose input `Graph::narrow` has set.
    let (to, from) = unsafe { (&*to, &*(*to).src[0]) };
    let width = from.ne[0] as usize;
    for row in own(from.ne[1], thread, threads) {
        // SAFETY: both tensors are contiguous, with these widths, and no other thread writes this row.
        unsafe {
            let values = from.data.cast::<f32>().add(row * width);
            let narrow = to.data.cast::<i16>().add(row * (width + SCALE_VALUES));
            hob_kernels::narrow(
                slice::from_raw_parts(values, width),
                slice::from_raw_parts_mut(narrow, width + SCALE_VALUES),
            );
        }
    }
}

/// Multiplies the inputs of `Graph::product`.
pub(super) unsafe extern "C" fn product(
    to: *mut sys::ggml_tensor,
    thread: i32,
    threads: i32,
    _: *mut c_void,
) {
    // SAFETY: as ggml calls it.
    unsafe { multiply(to, thread, threads, Activation::None) }
}

/// Multiplies the inputs of `Graph::product`, and applies GELU to the result.
pub(super) unsafe extern "C" fn product_with_gelu(
    to: *mut sys::ggml_tensor,
    thread: i32,
    threads: i32,
    _: *mut c_void,
) {
    // SAFETY: as ggml calls it.
    unsafe { multiply(to, thread, threads, Activation::Gelu) }
}

/// Multiplies a matrix with rows that `narrow` has rounded, and perhaps adds a bias.
unsafe fn multiply(to: *mut sys::ggml_tensor, thread: i32, threads: i32, activation: Activation) {
    // SAFETY: ggml passes a tensor whose memory is allocated, and whose inputs `Graph::product` has set. They are
    // contiguous, and nothing writes to them meanwhile.
    let (to, product) = unsafe {
        let to = &*to;
        let [weight, rows] = [&*to.src[0], &*to.src[1]];
        let bias = to.src[2].as_ref().map(|bias| {
            slice::from_raw_parts(bias.data.cast::<f32>(), sys::ggml_nelements(bias) as usize)
        });
        let weights = slice::from_raw_parts(weight.data.cast(), sys::ggml_nbytes(weight));
        let narrow = sys::ggml_nelements(rows) as usize;
        let narrow = slice::from_raw_parts(rows.data.cast::<i16>(), narrow);
        (to, Product { weights, width: weight.ne[0] as usize, rows: narrow, bias, activation })
    };
    let channels = to.ne[0] as usize;
    for panel in own((channels / CHANNELS) as i64, thread, threads) {
        let mut store = |position: usize, values: &[f32; CHANNELS]| {
            // SAFETY: the result has `channels` values for each position, and no other thread writes this panel.
            unsafe {
                let at = to.data.cast::<f32>().add(position * channels + panel * CHANNELS);
                at.copy_from_nonoverlapping(values.as_ptr(), CHANNELS);
            }
        };
        // SAFETY: the graph has this operation only if the processor has the instructions.
        unsafe { hob_kernels::multiply(&product, panel, &mut store) };
    }
}

/// The numbers below `count` that this thread computes.
fn own(count: i64, thread: i32, threads: i32) -> impl Iterator<Item = usize> {
    (thread.max(0) as usize..count.max(0) as usize).step_by(threads.max(1) as usize)
}
