//! ggml's backends, which compute on the processor or on a graphics card. A portable build (feature `dynamic`) has them as
//! libraries, and loads those that work on this machine. Every other build contains them.

#![expect(unsafe_code, reason = "ggml has a C interface")]

use std::ffi::{CStr, OsString, c_void};
use std::mem::transmute;
#[cfg(not(feature = "dynamic"))]
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::{fmt, fs};

use llama_cpp_sys_2 as sys;

#[cfg(feature = "dynamic")]
use dynamic::folder;

/// A device of ggml's, as its library names it.
#[derive(Debug)]
pub(crate) struct BackendDevice {
    /// Static, like its texts.
    device: sys::ggml_backend_dev_t,
    pub(crate) name: String,
    /// The driver's name for it.
    pub(crate) description: String,
    pub(crate) is_card: bool,
}

/// All devices, in ggml's order. No card is asked for its memory, because a CUDA card that is asked keeps hundreds of MB for
/// this process.
pub(crate) fn devices() -> Vec<BackendDevice> {
    load();
    // SAFETY: ggml has a device for each number below their count.
    unsafe {
        let numbers = 0..sys::ggml_backend_dev_count();
        numbers.map(|number| BackendDevice::of(sys::ggml_backend_dev_get(number))).collect()
    }
}

impl BackendDevice {
    /// # Safety
    /// `device` is one of ggml's, and not null.
    pub(crate) unsafe fn of(device: sys::ggml_backend_dev_t) -> BackendDevice {
        // SAFETY: the device and its texts are static.
        let (name, description, kind) = unsafe {
            (
                CStr::from_ptr(sys::ggml_backend_dev_name(device)),
                CStr::from_ptr(sys::ggml_backend_dev_description(device)),
                sys::ggml_backend_dev_type(device),
            )
        };
        BackendDevice {
            device,
            name: name.to_string_lossy().into_owned(),
            description: description.to_string_lossy().into_owned(),
            is_card: [sys::GGML_BACKEND_DEVICE_TYPE_GPU, sys::GGML_BACKEND_DEVICE_TYPE_IGPU]
                .contains(&kind),
        }
    }

    /// Free and total bytes of memory of the device.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let (mut free_bytes, mut total_bytes) = (0, 0);
        // SAFETY: the device is static. The pointers are valid for a write.
        unsafe {
            sys::ggml_backend_dev_memory(self.device, &raw mut free_bytes, &raw mut total_bytes);
        }
        (free_bytes as u64, total_bytes as u64)
    }
}

impl fmt::Display for BackendDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.description)
    }
}

/// Loads the libraries that work on this machine. Does nothing after the first time, and in a build that contains its backends.
pub(crate) fn load() {
    #[cfg(feature = "dynamic")]
    dynamic::load();
}

/// Names of the libraries for graphics cards that come with this hob, such as `vulkan`. A build that contains its backends has
/// none.
pub(crate) fn card_libraries() -> Vec<String> {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok());
    let files = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    let name = |file: OsString| Some(card_library(file.to_str()?)?.to_owned());
    let mut names: Vec<String> = files.filter_map(name).collect();
    names.sort();
    names
}

/// ggml names its libraries in this way. There is one for each kind of processor, and one that all others share.
fn card_library(file: &str) -> Option<&str> {
    let name = file.strip_prefix("libggml-")?.strip_suffix(".so")?;
    Some(name).filter(|name| *name != "base" && !name.starts_with("cpu"))
}

#[cfg(not(feature = "dynamic"))]
fn folder() -> Option<PathBuf> {
    None
}

/// A new backend of the processor, which the caller frees. Null if ggml finds none.
pub(crate) fn new_processor() -> sys::ggml_backend_t {
    load();
    // SAFETY: the devices of a type are static, and null stands for no parameters.
    unsafe { sys::ggml_backend_init_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU, ptr::null()) }
}

/// Sets how many threads a processor's backend computes with.
pub(crate) fn set_threads(processor: sys::ggml_backend_t, threads: i32) {
    type SetThreads = unsafe extern "C" fn(sys::ggml_backend_t, i32);
    let Some(function) = function(processor, c"ggml_backend_set_n_threads") else { return };
    // SAFETY: ggml documents the function behind this name as `SetThreads`.
    unsafe { transmute::<NonNull<c_void>, SetThreads>(function)(processor, threads) }
}

/// Sets what a processor's backend asks, with `data`, after each operation of a graph.
pub(crate) fn set_abort_callback(
    processor: sys::ggml_backend_t,
    callback: sys::ggml_abort_callback,
    data: *mut c_void,
) {
    type SetAbort =
        unsafe extern "C" fn(sys::ggml_backend_t, sys::ggml_abort_callback, *mut c_void);
    let Some(function) = function(processor, c"ggml_backend_set_abort_callback") else { return };
    // SAFETY: ggml documents the function behind this name as `SetAbort`.
    unsafe { transmute::<NonNull<c_void>, SetAbort>(function)(processor, callback, data) }
}

/// A function of the library that a backend comes from. The program must not link to it, because it may not be loaded yet.
pub(crate) fn function(backend: sys::ggml_backend_t, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the callers pass a backend that lives. Its device and its registry are static.
    let found = unsafe {
        let registry = sys::ggml_backend_dev_backend_reg(sys::ggml_backend_get_device(backend));
        sys::ggml_backend_reg_get_proc_address(registry, name.as_ptr())
    };
    NonNull::new(found)
}

#[cfg(feature = "dynamic")]
mod dynamic {
    use std::path::{Path, PathBuf};
    use std::sync::Once;

    use llama_cpp_2::llama_backend::load_backends_from_path;

    static LOADED: Once = Once::new();

    pub(super) fn load() {
        LOADED.call_once(|| {
            if let Some(folder) = folder().filter(|folder| folder.to_str().is_some()) {
                load_backends_from_path(&folder);
            }
        });
    }

    /// The folder of the libraries: where archives and wheels put it, or for tests, where they were built.
    pub(super) fn folder() -> Option<PathBuf> {
        let program = std::env::current_exe().ok();
        let installed = program.and_then(|program| libraries_of(&program));
        let installed = installed.filter(|folder| folder.is_dir());
        let built = llama_cpp_sys_2::BACKENDS_DIR.filter(|_| cfg!(debug_assertions));
        installed.or_else(|| built.map(PathBuf::from))
    }

    /// `lib/hob` next to the folder of the program. The linker's search path names the same folder (see `make dist`).
    fn libraries_of(program: &Path) -> Option<PathBuf> {
        Some(program.parent()?.parent()?.join("lib/hob"))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_libraries_are_next_to_the_folder_of_the_program() {
            for (program, expected) in [
                ("/usr/local/bin/hob", Some("/usr/local/lib/hob")),
                ("/home/anna/venv/bin/hob", Some("/home/anna/venv/lib/hob")),
                ("/", None),
            ] {
                assert_eq!(libraries_of(Path::new(program)), expected.map(PathBuf::from));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_for_cards_are_known_by_their_names() {
        for (file, expected) in [
            ("libggml-vulkan.so", Some("vulkan")),
            ("libggml-cuda.so", Some("cuda")),
            ("libggml-cpu-haswell.so", None),
            ("libggml-base.so.0", None),
            ("libggml-base.so", None),
            ("libllama.so.0", None),
            ("libgomp.so.1", None),
        ] {
            assert_eq!(card_library(file), expected, "{file}");
        }
    }

    #[test]
    fn devices_are_listed_with_their_names_and_memory() {
        let devices = devices();
        let is_processor = |device: &&BackendDevice| device.name == "CPU" && !device.is_card;
        let processor = devices.iter().find(is_processor).expect("a processor");
        assert!(processor.to_string().starts_with("CPU ("), "{processor}");
        assert!(processor.memory().1 > 0);
    }

    #[test]
    fn the_processor_has_the_functions_that_are_called() {
        let processor = new_processor();
        assert!(!processor.is_null());
        for name in [c"ggml_backend_set_n_threads", c"ggml_backend_set_abort_callback"] {
            assert!(function(processor, name).is_some(), "{name:?}");
        }
        assert!(function(processor, c"ggml_backend_unheard_of").is_none());
        // SAFETY: made above, and freed once.
        unsafe { sys::ggml_backend_free(processor) };
    }
}
