//! Tests that profiles are written and read back, and that errors in them are reported.
//! Also reads every built-in profile, so that a mistake in one fails here.

use super::*;
use crate::facts::Stamp;
use hob_core::machine::{Constants, Fact, GpuApi, Kernel};

const SMALL: &str =
    "schema = \"machine/1\"\nname = \"a box\"\n[cpu]\ncores = 4\n[memory]\nmemory_gb = 16.0\n";

fn error(text: &str) -> String {
    let known = parsed(text, "box.toml").and_then(|file| file.facts("box.toml"));
    known.expect_err("no profile").to_string()
}

#[test]
fn every_built_in_one_is_whole() {
    for name in names() {
        let known = builtin(name).expect(name);
        let machine = &known.machine;
        assert!(machine.memory.available_bytes <= machine.memory.total_bytes, "{name}");
        assert!(machine.cpu.device.bandwidth.is_some() && machine.cpu.name.is_some(), "{name}");
        assert!(machine.gpus.iter().all(|gpu| gpu.device.bandwidth.is_some()), "{name}");
        assert!(known.cpu.source.contains("profile") && known.cpu.basis == Basis::Stated, "{name}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    for name in names() {
        let mut known = builtin(name).expect(name);
        known.machine.gpus.iter_mut().for_each(|gpu| gpu.is_in_processor = true);
        known.machine.cpu.device.constants = Some(Constants {
            basis: Basis::Calibrated,
            bandwidth_efficiency: 0.61,
            kv_bandwidth_efficiency: 0.3,
            layer_us: 12.5,
            recurrent_us: 60.0,
            experts_us: 0.0,
            token_us: 0.0,
            prefill_flops: Some(120e9),
            kernels: vec![
                Kernel { quant: "Q4_K", bytes_s: 8.25e9, flop_s: Some(55e9) },
                Kernel { quant: "Q8_0", bytes_s: 11e9, flop_s: None },
            ],
            steadiness: 0.875,
        });
        known.cpu_stamp =
            Some(Stamp { engine_version: "b1".to_owned(), date: "2026-07-31".to_owned() });
        known.machine.cpu.device.bandwidth = Some(Fact {
            value: 51_234_567_890.0,
            basis: Basis::Measured,
            source: "a copy".to_owned(),
        });
        let text = MachineFile::of(&known).to_toml().expect("TOML");
        let again = parsed(&text, name).and_then(|file| file.facts(name)).expect(&text);
        assert_eq!(again.machine, known.machine, "{text}");
        assert_eq!(again.cpu_stamp, known.cpu_stamp);
    }
}

#[test]
fn a_little_is_enough() {
    let known = parsed(SMALL, "box").and_then(|file| file.facts("box")).expect("a profile");
    let machine = known.machine;
    assert_eq!((machine.cpu.cores, machine.cpu.threads), (4, 4));
    assert_eq!(machine.memory.available_bytes, 16_000_000_000);
    assert_eq!(machine.cpu.device.bandwidth, None);
}

#[test]
fn graphics_of_a_processor_read_the_system_s_memory() {
    let gpu = "bandwidth = { gb_s = 90.0 }\n[[gpu]]\nname = \"Vega\"\nvendor = \"amd\"\napi = \"vulkan\"\nunified_gb = 8.0\n";
    let known = parsed(&format!("{SMALL}{gpu}"), "box").and_then(|file| file.facts("box"));
    let machine = known.expect("a profile").machine;
    assert_eq!(machine.gpus[0].api, GpuApi::Vulkan);
    assert_eq!(machine.gpus[0].device.bandwidth, machine.cpu.device.bandwidth);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let gpu = "[[gpu]]\nname = \"x\"\nvendor = \"amd\"\napi = \"vulkan\"\n";
    let constants = "[cpu.constants]\nbasis = \"stated\"\nbandwidth_efficiency = 0.5\nkv_bandwidth_efficiency = 0.5\nlayer_us = 1.0\n";
    let rows = [
        (
            SMALL.replace("memory_gb", "memry_gb"),
            "line 6: there is no \"memry_gb\"; the nearest is \"memory_gb\"",
        ),
        (SMALL.replace("machine/1", "machine/9"), "\"machine/9\" (expected \"machine/1\")"),
        (SMALL.replace("16.0", "-1.0"), "memory_gb is -1"),
        (SMALL.replace("16.0", "nan"), "memory_gb is NaN"),
        (SMALL.replace("16.0", "1e300"), "which is impossible for a machine"),
        (SMALL.replace("cores = 4", "cores = -4"), "not a machine profile"),
        (format!("{SMALL}{gpu}"), "or else unified_gb"),
        (format!("{SMALL}{gpu}memory_gb = 8.0\nunified_gb = 8.0\n"), "or else unified_gb"),
        (format!("{SMALL}{gpu}memory_gb = 8.0\nlink = \"a cable\"\n"), "PCIe 4.0 x8"),
        (format!("{SMALL}{gpu}memory_gb = 8.0\ncompute_capability = \"8\"\n"), "\"8.9\""),
        (
            SMALL.replace(
                "[memory]",
                &format!("{constants}kernels_gb_s = {{ Q4_KK = 1.0 }}\n[memory]"),
            ),
            "the nearest is Q4_K",
        ),
        (
            SMALL.replace(
                "[memory]",
                &format!("{constants}kernels_gflop_s = {{ Q4_K = 1.0 }}\n[memory]"),
            ),
            "has Q4_K, and kernels_gb_s does not",
        ),
        (
            SMALL.replace("[memory]", &format!("{constants}steadiness = 1.1\n[memory]")),
            "steadiness is 1.1",
        ),
        (
            SMALL.replace(
                "[memory]",
                &format!(
                    "{}[memory]",
                    constants.replace(
                        "bandwidth_efficiency = 0.5\nkv",
                        "bandwidth_efficiency = 7.0\nkv"
                    )
                ),
            ),
            "bandwidth_efficiency is 7",
        ),
        ("\0\0".to_owned(), "not a machine profile"),
        (String::new(), "not a machine profile"),
    ];
    for (text, expected) in rows {
        let got = error(&text);
        assert!(got.contains(expected), "{got}\n{text}");
    }
}

#[test]
fn a_name_that_nobody_knows_lists_those_that_are() {
    let unknown = named("rtx-9999").expect_err("no profile").to_string();
    assert!(unknown.contains("ryzen-5800u") && unknown.contains("rtx-9999"), "{unknown}");
    let folder = tempfile::tempdir().expect("a folder");
    let missing = read(&folder.path().join("no.toml")).expect_err("no file").to_string();
    assert!(missing.contains("cannot be read"), "{missing}");
    let path = folder.path().join("box.toml");
    fs_err::write(&path, SMALL).expect("a file");
    assert_eq!(named(&path.display().to_string()).expect("a profile").machine.name, "a box");
}

#[test]
fn a_file_that_is_too_long_is_refused_and_not_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.toml");
    fs_err::write(&path, format!("{SMALL}#{}", "x".repeat(BYTES_MAX as usize))).expect("a file");
    let error = read(&path).expect_err("a file that is too long").to_string();
    assert!(error.ends_with("it has more than 1048576 bytes"), "{error}");
}
