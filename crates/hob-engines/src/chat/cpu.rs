//! Checks the vector units that llama.cpp was compiled for. It uses them without a test, so on a processor without them the
//! process would crash at the first such instruction, without a message.

/// ggml's defaults, which every build uses that loads no libraries.
const ALWAYS: [&str; 4] = ["avx2", "fma", "f16c", "bmi2"];

/// The units that the engine of this build uses and this processor lacks.
pub(super) fn missing_units() -> Vec<&'static str> {
    missing_of(&units()).collect()
}

/// How to get a hob for a processor that lacks these units.
pub(super) fn advice_for(missing: &[&str]) -> &'static str {
    match missing.iter().any(|unit| ALWAYS.contains(unit)) {
        true => "use the archive or the wheel of `make dist`, which run on every processor",
        false => "build it here, or with `make build PORTABLE=yes`",
    }
}

/// Vector units that the build uses in addition to those of every build.
pub(crate) fn chosen_units() -> Vec<&'static str> {
    units().into_iter().map(|(unit, _)| unit).filter(|unit| !ALWAYS.contains(unit)).collect()
}

/// The units of this build, and whether this processor has them.
fn units() -> Vec<(&'static str, bool)> {
    // A portable build loads the library that suits this processor. There is one for each.
    if cfg!(feature = "dynamic") { Vec::new() } else { built_units() }
}

/// Units that the build sets. The Makefile reads them from the processor that it runs on.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! wanted {
    ($is_there:ident, $($variable:literal: $unit:tt),* $(,)?) => {
        [$((option_env!($variable), ($unit, $is_there!($unit)))),*]
            .into_iter()
            .filter(|(set, _)| *set == Some("ON"))
            .map(|(_, unit)| unit)
    };
}

#[cfg(target_arch = "x86_64")]
fn built_units() -> Vec<(&'static str, bool)> {
    let wanted = wanted![
        is_x86_feature_detected,
        "GGML_AVX512": "avx512f",
        "GGML_AVX512_VBMI": "avx512vbmi",
        "GGML_AVX512_VNNI": "avx512vnni",
        "GGML_AVX512_BF16": "avx512bf16",
        "GGML_AVX_VNNI": "avxvnni",
    ];
    let always = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("f16c", is_x86_feature_detected!("f16c")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
    ];
    always.into_iter().chain(wanted).collect()
}

#[cfg(target_arch = "aarch64")]
fn built_units() -> Vec<(&'static str, bool)> {
    use std::arch::is_aarch64_feature_detected;

    let wanted = wanted![
        is_aarch64_feature_detected,
        "GGML_ARM_DOTPROD": "dotprod",
        "GGML_ARM_FP16": "fp16",
        "GGML_ARM_I8MM": "i8mm",
    ];
    wanted.collect()
}

/// On other architectures the engine is built for the oldest supported processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn built_units() -> Vec<(&'static str, bool)> {
    Vec::new()
}

fn missing_of(units: &[(&'static str, bool)]) -> impl Iterator<Item = &'static str> {
    units.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_that_are_not_there_are_named() {
        let units = [("avx2", true), ("avx512f", false), ("avx512vnni", false)];
        assert_eq!(missing_of(&units).collect::<Vec<_>>(), ["avx512f", "avx512vnni"]);
    }

    #[test]
    fn a_build_for_every_processor_is_advised_where_no_other_one_runs() {
        let rows: [(&[&str], &str); 4] = [
            (&["avx512f", "avx512vnni"], "`make build PORTABLE=yes`"),
            (&["avx2", "avx512f"], "`make dist`"),
            (&["fma"], "`make dist`"),
            (&["dotprod"], "`make build PORTABLE=yes`"),
        ];
        for (missing, expected) in rows {
            assert!(advice_for(missing).contains(expected), "{missing:?}");
        }
    }

    #[test]
    fn the_processor_that_runs_the_tests_has_what_they_were_built_for() {
        assert_eq!(missing_units(), [""; 0]);
    }
}
