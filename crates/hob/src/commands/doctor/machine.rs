//! Checks hob's version, the processor, the memory and the folder of models.
//! A bug report needs these facts first.

use std::path::Path;
use std::thread;

use hob_core::machine::Memory;
use hob_machine::{Ram, ram};
use hob_models::free_bytes;

use super::Check;
use crate::settings::Settings;

const MIB: u64 = 1 << 20;
/// Bytes that the default models need, with the files that they are made from and a margin.
const DISK_FREE_MIN: u64 = 1024 * MIB;
/// Bytes for server and speech worker (below 400 MB) and the system.
const MEMORY_FREE_MIN: u64 = 768 * MIB;

pub(super) fn checks(settings: &Settings) -> Vec<Check> {
    let home = home(&settings.home);
    vec![version(), processor(), memory(ram()), home]
}

fn version() -> Check {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    Check::ok("hob", format!("{} for {os} on {arch}", env!("CARGO_PKG_VERSION")))
}

fn processor() -> Check {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let features = features();
    let found = format!("{cores} cores, {}", features.join(" "));
    if !cfg!(target_arch = "x86_64") || features.contains(&"avx2") {
        return Check::ok("processor", found);
    }
    Check::warn("processor", found, "speech is several times slower without AVX2")
}

/// The instruction sets that matter to the engines; of other processors than x86, the architecture.
fn features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let known = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let known = [(std::env::consts::ARCH, true)];
    known.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

fn memory(ram: Option<Ram>) -> Check {
    let Some(ram) = ram else { return Check::ok("memory", "this system does not report it") };
    let Memory { total_bytes, available_bytes } = Memory::from(ram);
    let found = format!("{} MB, {} MB of it free", total_bytes / MIB, available_bytes / MIB);
    if available_bytes >= MEMORY_FREE_MIN {
        return Check::ok("memory", found);
    }
    Check::warn("memory", found, "close other programs; hob needs about 400 MB for speech")
}

fn home(home: &Path) -> Check {
    let place = home.display();
    if let Err(error) = writable(home) {
        let to_do = "choose a writable folder with --home, HOB_HOME, or home in hob.toml";
        return Check::fail("home", format!("cannot write to {place}: {error}"), to_do);
    }
    match free_bytes(home) {
        Ok(free) if free < DISK_FREE_MIN => {
            let found = format!("{place}, {} MB free", free / MIB);
            Check::warn(
                "home",
                found,
                "free some space, or set HOB_HOME to a folder on another disk",
            )
        }
        Ok(free) => Check::ok("home", format!("{place}, {} MB free", free / MIB)),
        Err(_) => Check::ok("home", place),
    }
}

/// Tests by writing a file, which covers permissions, quotas and read-only disks.
fn writable(home: &Path) -> std::io::Result<()> {
    fs_err::create_dir_all(home)?;
    tempfile::tempfile_in(home).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_home_that_is_a_file_fails_and_a_new_one_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs_err::write(&file, "").expect("a file");
        assert_eq!(home(&file).verdict, Verdict::Fail);
        let new = folder.path().join("a/b");
        assert_ne!(home(&new).verdict, Verdict::Fail);
        assert!(new.is_dir());
    }

    #[test]
    fn the_machine_has_cores_and_memory() {
        let text = format!("{} {}", processor(), memory(ram()));
        assert!(!text.contains(" 0 cores") && !text.contains(" 0 MB, "), "{text}");
        let limited = Ram {
            total_bytes: 64_000 * MIB,
            available_bytes: 500 * MIB,
            limit_bytes: Some(512 * MIB),
        };
        let check = memory(Some(limited));
        let found = "512 MB, 500 MB of it free";
        assert_eq!((check.verdict, check.found.as_str()), (Verdict::Warn, found));
    }
}
