//! Recognises faults of graphics cards in what a dying worker writes. ggml's backends throw or abort then, so a message
//! on standard error is all that remains.

use crate::worker::protocol::DeviceShortage;

/// The driver does not answer any more. From ggml's Vulkan backend, from Vulkan's C++ exceptions, from CUDA, where every error
/// but a full memory makes the process's context unusable, and from Metal.
const LOST: [&str; 6] = [
    "ggml_vulkan: device lost",
    "ErrorDeviceLost",
    "DeviceLostError",
    "CUDA error",
    "ROCm error",
    "kIOGPUCommandBufferCallbackError",
];

/// The card has no memory left during a step. Only messages of an end: a buffer that is refused while the model loads may
/// go elsewhere, or is reported with numbers. The fourth and the fifth are from cuBLAS, which needs memory of its own at the
/// first prompt: since CUDA 12, and before. The last is from Metal.
const FULL: [&str; 6] = [
    "vk::OutOfDeviceMemoryError'",
    "CUDA error: out of memory",
    "ROCm error: out of memory",
    "CUDA error: the resource allocation failed",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED",
    "Insufficient Memory (00000008",
];

/// Maximum bytes of a driver's message in an error.
const SAID_BYTES_MAX: usize = 160;

/// Why a worker that computed on a graphics card ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeviceFault {
    Lost {
        said: String,
    },
    Full {
        said: String,
        /// `None`: the driver named no numbers.
        shortage: Option<DeviceShortage>,
    },
}

impl DeviceFault {
    /// The fault that a line reports, if it reports one.
    pub(super) fn read(line: &str) -> Option<DeviceFault> {
        if let Some(said) = from_mark(line, &FULL) {
            return Some(DeviceFault::Full { said, shortage: None });
        }
        from_mark(line, &LOST).map(|said| DeviceFault::Lost { said })
    }
}

/// The line from the mark on: before it are a time, a level and colours.
fn from_mark(line: &str, marks: &[&str]) -> Option<String> {
    let from = marks.iter().find_map(|mark| line.find(mark))?;
    let said = &line[from..];
    Some(
        said[..said.floor_char_boundary(SAID_BYTES_MAX)]
            .trim_end_matches([':', ' ', '\''])
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_and_other_lines_are_not() {
        let lost = |said: &str| Some(DeviceFault::Lost { said: said.to_owned() });
        let full = |said: &str| Some(DeviceFault::Full { said: said.to_owned(), shortage: None });
        let rows = [
            (
                "10:00 ERROR llama-cpp: ggml_vulkan: device lost on AMD Radeon 780M",
                lost("ggml_vulkan: device lost on AMD Radeon 780M"),
            ),
            ("  what():  vk::Queue::submit: ErrorDeviceLost", lost("ErrorDeviceLost")),
            (
                "CUDA error: unspecified launch failure",
                lost("CUDA error: unspecified launch failure"),
            ),
            ("ggml-cuda.cu:109: CUDA error", lost("CUDA error")),
            ("CUDA error: out of memory", full("CUDA error: out of memory")),
            (
                "ERROR llama-cpp: CUDA error: the resource allocation failed",
                full("CUDA error: the resource allocation failed"),
            ),
            (
                "CUDA error: CUBLAS_STATUS_ALLOC_FAILED",
                full("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"),
            ),
            (
                "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
                full("Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"),
            ),
            (
                "error: Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)",
                lost("kIOGPUCommandBufferCallbackErrorHang)"),
            ),
            (
                "terminate called after throwing an instance of 'vk::OutOfDeviceMemoryError'",
                full("vk::OutOfDeviceMemoryError"),
            ),
            (
                "Failed to allocate pinned memory (vk::Device::allocateMemory: ErrorOutOfDeviceMemory)",
                None,
            ),
            ("ggml_vulkan: Found 1 Vulkan devices:", None),
            ("panicked at src/a.rs:1", None),
        ];
        for (line, expected) in rows {
            assert_eq!(DeviceFault::read(line), expected, "{line}");
        }
    }
}
