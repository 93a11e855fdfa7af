//! Short names of models, and the repository from which hob fetches each.
//! The hub states which files a repository has, with lengths and checksums.

use hob_core::fit::Location;

use crate::gguf::PartName;
use crate::recipe::Mixture;

/// The quant of a name that states none.
pub const USUAL_QUANT: &str = "Q4_K_M";

/// A short name and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name under which hob stores it.
    pub name: &'static str,
    /// Other names of the model.
    pub also: &'static [&'static str],
    /// `owner/name` on the hub.
    pub repo: &'static str,
    /// SPDX identifier of the weights' licence.
    pub licence: &'static str,
}

impl Named {
    /// The model's location for engine flags, before it is fetched.
    pub(crate) fn location(&self) -> Location {
        Location::Catalog { name: self.name.to_owned(), repo: self.repo.to_owned() }
    }
}

/// A short name as typed: the model, and the quant if one was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortName {
    pub named: &'static Named,
    pub quant: Option<Mixture>,
}

/// Finds the model of a short name: `qwen3`, `qwen3:latest`, `qwen3:8b`, `qwen3:8b-q8_0`.
pub fn named(asked: &str) -> Option<ShortName> {
    let asked = asked.trim().to_ascii_lowercase();
    let bare = asked.strip_suffix(":latest").unwrap_or(&asked);
    if let Some(named) = exactly(bare) {
        return Some(ShortName { named, quant: None });
    }
    bare.match_indices('-').find_map(|(at, _)| {
        let named = exactly(&bare[..at])?;
        let quant = Mixture::named(&bare[at + 1..]).ok()?;
        Some(ShortName { named, quant: Some(quant) })
    })
}

fn exactly(name: &str) -> Option<&'static Named> {
    NAMED.iter().find(|named| named.name == name || named.also.contains(&name))
}

/// The name under which a model is stored, from any of its names.
pub fn canonical(asked: &str) -> String {
    let asked = asked.trim();
    if let Some(name) = of_catalog(asked) {
        return name.to_owned();
    }
    if let Some(found) = named(asked) {
        return with_quant(found);
    }
    let bare =
        ["hf:", "hf.co/", "huggingface.co/"].iter().find_map(|prefix| asked.strip_prefix(prefix));
    let name = bare.unwrap_or(asked);
    let name = name.strip_suffix(":latest").unwrap_or(name);
    if name.matches('/').count() < 2 {
        return name.to_owned();
    }
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let stem = file.strip_suffix(".gguf").unwrap_or(file);
    let stem = PartName::parse(file).map_or(stem.to_owned(), |part| part.stem().to_owned());
    format!("{folder}/{stem}")
}

/// The default models have names without a size.
fn of_catalog(asked: &str) -> Option<&'static str> {
    match asked.to_ascii_lowercase().as_str() {
        "smollm2" | "smollm2:latest" | "smollm2:135m" => Some("smollm2"),
        "kokoro" | "kokoro:latest" => Some("kokoro"),
        _ => None,
    }
}

fn with_quant(found: ShortName) -> String {
    let name = found.named.name;
    match found.quant.map(|mixture| mixture.name()) {
        None | Some(USUAL_QUANT) => name.to_owned(),
        Some(quant) => format!("{name}-{}", quant.to_ascii_lowercase()),
    }
}

/// All other names of the model that is stored as `name`.
pub fn others(name: &str) -> Vec<&'static str> {
    if name == "smollm2" {
        return vec!["smollm2:135m"];
    }
    NAMED.iter().find(|named| named.name == name).map_or(Vec::new(), |named| named.also.to_vec())
}

const APACHE: &str = "Apache-2.0";
const MIT: &str = "MIT";
const GEMMA: &str = "LicenseRef-Gemma";
const LLAMA: &str = "LicenseRef-Llama";

/// The repositories come from published scripts and notes and were not checked. A repository that is gone costs one
/// request: hob asks Ollama's registry next.
pub const NAMED: [Named; 66] = [
    // Without a quant these names mean the pinned file of the catalog.
    row("smollm2:135m", &[], "bartowski/SmolLM2-135M-Instruct-GGUF", APACHE),
    row("smollm2:360m", &[], "bartowski/SmolLM2-360M-Instruct-GGUF", APACHE),
    row("smollm2:1.7b", &[], "bartowski/SmolLM2-1.7B-Instruct-GGUF", APACHE),
    row("gemma3:270m", &["gemma3:270m-it"], "unsloth/gemma-3-270m-it-GGUF", GEMMA),
    row("gemma3:1b", &["gemma3:1b-it"], "unsloth/gemma-3-1b-it-GGUF", GEMMA),
    row("gemma3:4b", &["gemma3", "gemma3:4b-it"], "unsloth/gemma-3-4b-it-GGUF", GEMMA),
    row("gemma3:12b", &["gemma3:12b-it"], "unsloth/gemma-3-12b-it-GGUF", GEMMA),
    row("gemma3:27b", &["gemma3:27b-it"], "unsloth/gemma-3-27b-it-GGUF", GEMMA),
    row("gemma2:2b", &["gemma2:2b-instruct"], "bartowski/gemma-2-2b-it-GGUF", GEMMA),
    row("gemma2:9b", &["gemma2", "gemma2:9b-instruct"], "bartowski/gemma-2-9b-it-GGUF", GEMMA),
    row("gemma2:27b", &["gemma2:27b-instruct"], "bartowski/gemma-2-27b-it-GGUF", GEMMA),
    row("gemma4:e2b", &[], "unsloth/gemma-4-E2B-it-GGUF", APACHE),
    row("gemma4:e4b", &["gemma4"], "unsloth/gemma-4-E4B-it-GGUF", APACHE),
    row("gemma4:26b", &["gemma4:26b-a4b"], "unsloth/gemma-4-26B-A4B-it-GGUF", APACHE),
    row("gemma4:31b", &[], "unsloth/gemma-4-31B-it-GGUF", APACHE),
    row("llama3.2:1b", &["llama3.2:1b-instruct"], "bartowski/Llama-3.2-1B-Instruct-GGUF", LLAMA),
    row(
        "llama3.2:3b",
        &["llama3.2", "llama3.2:3b-instruct"],
        "bartowski/Llama-3.2-3B-Instruct-GGUF",
        LLAMA,
    ),
    row(
        "llama3.1:8b",
        &["llama3.1", "llama3.1:8b-instruct"],
        "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
        LLAMA,
    ),
    row(
        "llama3.3:70b",
        &["llama3.3", "llama3.3:70b-instruct"],
        "bartowski/Llama-3.3-70B-Instruct-GGUF",
        LLAMA,
    ),
    row("qwen2.5:0.5b", &["qwen2.5:0.5b-instruct"], "bartowski/Qwen2.5-0.5B-Instruct-GGUF", APACHE),
    row(
        "qwen2.5:7b",
        &["qwen2.5", "qwen2.5:7b-instruct"],
        "bartowski/Qwen2.5-7B-Instruct-GGUF",
        APACHE,
    ),
    row("qwen2.5:14b", &["qwen2.5:14b-instruct"], "bartowski/Qwen2.5-14B-Instruct-GGUF", APACHE),
    row("qwen2.5:32b", &["qwen2.5:32b-instruct"], "bartowski/Qwen2.5-32B-Instruct-GGUF", APACHE),
    row(
        "qwen2.5-coder:1.5b",
        &["qwen2.5-coder:1.5b-instruct"],
        "bartowski/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        APACHE,
    ),
    row(
        "qwen2.5-coder:7b",
        &["qwen2.5-coder", "qwen2.5-coder:7b-instruct"],
        "bartowski/Qwen2.5-Coder-7B-Instruct-GGUF",
        APACHE,
    ),
    row("qwen3:0.6b", &[], "unsloth/Qwen3-0.6B-GGUF", APACHE),
    row("qwen3:1.7b", &[], "unsloth/Qwen3-1.7B-GGUF", APACHE),
    row("qwen3:4b", &[], "unsloth/Qwen3-4B-GGUF", APACHE),
    row("qwen3:8b", &["qwen3"], "Qwen/Qwen3-8B-GGUF", APACHE),
    row("qwen3:14b", &[], "Qwen/Qwen3-14B-GGUF", APACHE),
    row("qwen3:30b-a3b", &["qwen3:30b"], "Qwen/Qwen3-30B-A3B-GGUF", APACHE),
    row("qwen3:32b", &[], "Qwen/Qwen3-32B-GGUF", APACHE),
    row(
        "qwen3-coder:30b-a3b",
        &["qwen3-coder", "qwen3-coder:30b"],
        "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF",
        APACHE,
    ),
    row(
        "qwen3-vl:8b",
        &["qwen3-vl", "qwen3-vl:8b-instruct"],
        "unsloth/Qwen3-VL-8B-Instruct-GGUF",
        APACHE,
    ),
    row("qwen3.5:4b", &[], "unsloth/Qwen3.5-4B-GGUF", APACHE),
    row("qwen3.5:9b", &["qwen3.5"], "unsloth/Qwen3.5-9B-GGUF", APACHE),
    row("qwen3.5:27b", &[], "unsloth/Qwen3.5-27B-GGUF", APACHE),
    row("qwen3.5:35b-a3b", &["qwen3.5:35b"], "unsloth/Qwen3.5-35B-A3B-GGUF", APACHE),
    row(
        "qwen3.5-abliterated:35b-a3b",
        &["qwen3.5-abl:35b-a3b"],
        "mradermacher/Huihui-Qwen3.5-35B-A3B-abliterated-GGUF",
        APACHE,
    ),
    row("qwen3.6:27b", &["qwen3.6"], "unsloth/Qwen3.6-27B-GGUF", APACHE),
    row("qwen3.6:35b-a3b", &["qwen3.6:35b"], "unsloth/Qwen3.6-35B-A3B-GGUF", APACHE),
    row("phi4:14b", &["phi4"], "unsloth/phi-4-GGUF", MIT),
    row("deepseek-r1:7b", &[], "bartowski/DeepSeek-R1-Distill-Qwen-7B-GGUF", MIT),
    row("deepseek-r1:8b", &["deepseek-r1"], "unsloth/DeepSeek-R1-0528-Qwen3-8B-GGUF", MIT),
    row("deepseek-r1:14b", &[], "bartowski/DeepSeek-R1-Distill-Qwen-14B-GGUF", MIT),
    row(
        "deepseek-v2-lite",
        &["deepseek-v2:16b", "deepseek-v2"],
        "mradermacher/DeepSeek-V2-Lite-Chat-GGUF",
        "LicenseRef-DeepSeek",
    ),
    row("qwen2.5:1.5b", &[], "bartowski/Qwen2.5-1.5B-Instruct-GGUF", APACHE),
    row("qwen2.5:3b", &[], "bartowski/Qwen2.5-3B-Instruct-GGUF", "LicenseRef-Qwen-Research"),
    row(
        "qwen2.5-coder:3b",
        &[],
        "bartowski/Qwen2.5-Coder-3B-Instruct-GGUF",
        "LicenseRef-Qwen-Research",
    ),
    row("qwen2.5-coder:14b", &[], "bartowski/Qwen2.5-Coder-14B-Instruct-GGUF", APACHE),
    row("qwen2.5-coder:32b", &[], "bartowski/Qwen2.5-Coder-32B-Instruct-GGUF", APACHE),
    row("phi4-mini:3.8b", &["phi4-mini"], "unsloth/Phi-4-mini-instruct-GGUF", MIT),
    row("llama2:7b", &["llama2"], "TheBloke/Llama-2-7B-Chat-GGUF", LLAMA),
    row("llama3.1:70b", &[], "bartowski/Meta-Llama-3.1-70B-Instruct-GGUF", LLAMA),
    row("deepseek-r1:32b", &[], "bartowski/DeepSeek-R1-Distill-Qwen-32B-GGUF", MIT),
    row("qwq:32b", &["qwq"], "Qwen/QwQ-32B-GGUF", APACHE),
    row("deepseek-v3:671b", &["deepseek-v3"], "unsloth/DeepSeek-V3-GGUF", MIT),
    row("deepseek-r1:671b", &[], "unsloth/DeepSeek-R1-GGUF", MIT),
    row("mistral:7b", &["mistral"], "bartowski/Mistral-7B-Instruct-v0.3-GGUF", APACHE),
    row("mistral-nemo:12b", &["mistral-nemo"], "bartowski/Mistral-Nemo-Instruct-2407-GGUF", APACHE),
    row(
        "mistral-small:24b",
        &["mistral-small"],
        "bartowski/Mistral-Small-24B-Instruct-2501-GGUF",
        APACHE,
    ),
    row("mixtral:8x7b", &["mixtral"], "mradermacher/Mixtral-8x7B-Instruct-v0.1-GGUF", APACHE),
    row("lfm2:24b-a2b", &["lfm2", "lfm2:24b"], "LiquidAI/LFM2-24B-A2B-GGUF", "LicenseRef-LFM"),
    row("gpt-oss:20b", &["gpt-oss"], "ggml-org/gpt-oss-20b-GGUF", APACHE),
    row("gpt-oss:120b", &[], "ggml-org/gpt-oss-120b-GGUF", APACHE),
    row("tinyllama:1.1b", &["tinyllama"], "TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF", APACHE),
];

const fn row(
    name: &'static str,
    also: &'static [&'static str],
    repo: &'static str,
    licence: &'static str,
) -> Named {
    Named { name, also, repo, licence }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::known::KNOWN;

    #[test]
    fn each_of_a_model_s_names_leads_to_the_one_that_it_is_stored_under() {
        let rows = [
            ("qwen3", "qwen3:8b"),
            ("Qwen3:latest", "qwen3:8b"),
            (" qwen3:8b ", "qwen3:8b"),
            ("qwen3:8b-q4_K_M", "qwen3:8b"),
            ("qwen3:8b-q8_0", "qwen3:8b-q8_0"),
            ("llama3.1", "llama3.1:8b"),
            ("llama3.1:8b-instruct-q8_0", "llama3.1:8b-q8_0"),
            ("smollm2:135m", "smollm2"),
            ("smollm2:latest", "smollm2"),
            ("mine:latest", "mine"),
            ("Mine.Q4", "Mine.Q4"),
            ("hf:o/m:Q8_0", "o/m:Q8_0"),
            ("hf.co/o/m", "o/m"),
            ("hf:o/m/sub/m-Q8_0.gguf", "o/m/sub/m-Q8_0"),
            ("o/m/m-00002-of-00003.gguf", "o/m/m"),
            ("qwen3:9b", "qwen3:9b"),
        ];
        for (asked, expected) in rows {
            assert_eq!(canonical(asked), expected, "{asked}");
            assert_eq!(canonical(expected), expected, "{asked}");
        }
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut all = HashSet::new();
        for named in &NAMED {
            let names = [named.name].into_iter().chain(named.also.iter().copied());
            names.for_each(|name| assert!(all.insert(name), "{name} twice"));
            assert_eq!(named.repo.matches('/').count(), 1, "{}", named.repo);
            assert_eq!(named.name, named.name.to_ascii_lowercase());
        }
    }

    /// A name that `hob fit` knows can be fetched with `hob pull`.
    #[test]
    fn every_model_whose_dimensions_are_known_can_be_fetched_by_each_of_its_names() {
        for (tag, _) in KNOWN.iter().flat_map(|known| known.tags) {
            let is_default = *tag == "smollm2";
            let is_own_mix = *tag == "qwen3.5-opus-distill";
            assert!(is_default || is_own_mix || named(tag).is_some(), "{tag}");
        }
    }
}
