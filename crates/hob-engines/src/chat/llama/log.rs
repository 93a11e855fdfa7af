//! Sends llama.cpp's log to tracing, and remembers which allocation failed.
//! Only the log says it: the functions that fail return a null pointer without a reason.

#![expect(unsafe_code, reason = "ggml has a C interface")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

use hob_core::locked;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};
use llama_cpp_sys_2 as sys;

/// Memory that a device could not allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedAllocation {
    /// ggml's name, such as `Vulkan0`.
    pub(super) device: String,
    pub(super) bytes: u64,
}

/// llama.cpp's log function before hob's: it sends the lines to tracing.
struct Next {
    callback: sys::ggml_log_callback,
    data: AtomicPtr<c_void>,
}

static NEXT: OnceLock<Next> = OnceLock::new();
static FAILED: Mutex<Option<FailedAllocation>> = Mutex::new(None);

/// Sends this process's log lines of llama.cpp to tracing, through [`note`].
pub(super) fn start() {
    send_logs_to_tracing(LogOptions::default());
    NEXT.get_or_init(|| {
        let (mut callback, mut data) = (None, ptr::null_mut());
        // SAFETY: both pointers are valid for a write.
        unsafe { sys::ggml_log_get(&raw mut callback, &raw mut data) };
        Next { callback, data: AtomicPtr::new(data) }
    });
    // SAFETY: `note` needs no data, and may be called by any thread.
    unsafe { sys::ggml_log_set(Some(note), ptr::null_mut()) };
}

/// Forgets earlier failures, and runs `attempt`. Returns its result, and the last allocation that failed during it.
pub(super) fn watch<T>(attempt: impl FnOnce() -> T) -> (T, Option<FailedAllocation>) {
    take();
    let result = attempt();
    (result, take())
}

fn take() -> Option<FailedAllocation> {
    locked(&FAILED).take()
}

unsafe extern "C" fn note(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if level == sys::GGML_LOG_LEVEL_ERROR && !text.is_null() {
        // SAFETY: ggml passes a text that ends with a null byte, and lives during the call.
        let text = unsafe { CStr::from_ptr(text) };
        if let Some(failed) = failed_allocation(&text.to_string_lossy()) {
            *locked(&FAILED) = Some(failed);
        }
    }
    if let Some(Next { callback: Some(callback), data }) = NEXT.get() {
        // SAFETY: the function gets the data that it was registered with, and what ggml passed.
        unsafe { callback(level, text, data.load(Ordering::Relaxed)) };
    }
}

/// Reads ggml's message about a buffer that could not be allocated.
fn failed_allocation(text: &str) -> Option<FailedAllocation> {
    let (_, rest) = text.split_once("failed to allocate ")?;
    let (device, bytes) = rest.trim_end().split_once(" buffer of size ")?;
    Some(FailedAllocation { device: device.to_owned(), bytes: bytes.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_allocation_is_read_from_the_log() {
        let found =
            |device: &str, bytes| Some(FailedAllocation { device: device.to_owned(), bytes });
        let rows = [
            (
                "alloc_buffer_n: failed to allocate Vulkan0 buffer of size 102858752\n",
                found("Vulkan0", 102_858_752),
            ),
            ("reserve: failed to allocate CUDA1 buffer of size 7", found("CUDA1", 7)),
            ("alloc: failed to allocate buffer of size 7\n", None),
            ("alloc: failed to allocate 7 bytes\n", None),
            ("alloc: failed to allocate CUDA1 buffer of size 1.5 GB\n", None),
            ("loaded\n", None),
        ];
        for (text, expected) in rows {
            assert_eq!(failed_allocation(text), expected, "{text}");
        }
    }
}
