//! Short names of models, and the repository from which hob fetches each.
//! The hub states which files a repository has, with lengths and checksums.

use std::sync::LazyLock;

use hob_core::fit::Location;

use super::whisper;
use crate::gguf::PartName;
use crate::recipe::QuantMix;

/// The quant of a name that states none.
pub const USUAL_QUANT: &str = "Q4_K_M";

/// Prefixes of names of Hugging Face's repositories.
pub(crate) const HUB_PREFIXES: [&str; 3] = ["hf:", "hf.co/", "huggingface.co/"];

/// A short name and the repository that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRepo {
    /// The name under which hob stores it.
    pub name: &'static str,
    /// Other names of the model.
    pub also: Vec<&'static str>,
    /// `owner/name` on the hub.
    pub repo: &'static str,
    /// SPDX identifier of the weights' licence.
    pub licence: &'static str,
}

impl NamedRepo {
    /// The model's location for engine flags, before it is fetched.
    pub(crate) fn location(&self) -> Location {
        Location::Catalog { name: self.name.to_owned(), repo: self.repo.to_owned() }
    }
}

/// A short name as typed: the model, and the quant if one was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortName {
    pub named: &'static NamedRepo,
    pub quant: Option<QuantMix>,
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
        let quant = QuantMix::named(&bare[at + 1..]).ok()?;
        Some(ShortName { named, quant: Some(quant) })
    })
}

fn exactly(name: &str) -> Option<&'static NamedRepo> {
    NAMED.iter().find(|named| named.name == name || named.also.contains(&name))
}

/// The publisher's name without the maker before it: `meta-llama_Llama-3.2-1B` becomes `Llama-3.2-1B`.
pub(crate) fn without_maker(name: &str) -> &str {
    const MAKERS: [&str; 12] = [
        "meta-llama_",
        "meta-",
        "mistralai_",
        "google_",
        "google-",
        "microsoft_",
        "microsoft-",
        "qwen_",
        "openai_",
        "deepseek-ai_",
        "liquidai_",
        "huggingfacetb_",
    ];
    let is_first =
        |maker: &&&str| name.get(..maker.len()).is_some_and(|it| it.eq_ignore_ascii_case(maker));
    MAKERS.iter().find(is_first).map_or(name, |maker| &name[maker.len()..])
}

/// The short name of a model by its publisher's name: `Mistral-Nemo-Instruct-2407` is `mistral-nemo:12b`.
pub(crate) fn published(name: &str) -> Option<&'static str> {
    fn model(repo: &str) -> &str {
        without_maker(repo.strip_suffix("-GGUF").unwrap_or(repo))
    }
    let is_this = |named: &&NamedRepo| {
        let repo = named.repo.rsplit('/').next().unwrap_or(named.repo);
        model(repo).eq_ignore_ascii_case(model(name))
    };
    NAMED.iter().find(is_this).map(|named| named.name)
}

/// The name under which a model is stored, from any of its names.
pub fn canonical(asked: &str) -> String {
    let asked = asked.trim();
    if let Some(name) = of_catalog(asked) {
        return name;
    }
    if let Some(found) = named(asked) {
        return with_quant(found);
    }
    let bare = HUB_PREFIXES.iter().find_map(|prefix| asked.strip_prefix(prefix));
    let name = bare.unwrap_or(asked);
    let name = name.strip_suffix(":latest").unwrap_or(name);
    match name.matches('/').count() {
        0 => return name.to_owned(),
        1 => return with_quant_as_listed(name),
        _ => {}
    }
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let stem = file.strip_suffix(".gguf").unwrap_or(file);
    let stem = PartName::parse(file).map_or(stem.to_owned(), |part| part.stem().to_owned());
    format!("{folder}/{stem}")
}

/// `owner/name:q8_0` is `owner/name:Q8_0`, so that no model is stored twice.
pub(crate) fn with_quant_as_listed(name: &str) -> String {
    let listed = name.split_once(':').and_then(|(repo, quant)| {
        let listed = QuantMix::named(quant).ok()?.name();
        listed.eq_ignore_ascii_case(quant).then(|| format!("{repo}:{listed}"))
    });
    listed.unwrap_or_else(|| name.to_owned())
}

/// Names of the catalog's models: the default ones need no size, and `whisper:small` is `whisper-small`.
fn of_catalog(asked: &str) -> Option<String> {
    let asked = asked.to_ascii_lowercase();
    match asked.strip_suffix(":latest").unwrap_or(&asked) {
        "smollm2" | "smollm2:135m" => Some("smollm2".to_owned()),
        "kokoro" => Some("kokoro".to_owned()),
        "smart-turn" => Some("smart-turn".to_owned()),
        "whisper" => Some("whisper-base".to_owned()),
        name => {
            let size = name.strip_prefix("whisper:").or_else(|| name.strip_prefix("whisper-"))?;
            let size = match size {
                "large" => "large-v3",
                "turbo" => "large-v3-turbo",
                size => size,
            };
            whisper::is_published(size).then(|| format!("whisper-{size}"))
        }
    }
}

fn with_quant(found: ShortName) -> String {
    let name = found.named.name;
    match found.quant.map(|mix| mix.name()) {
        None | Some(USUAL_QUANT) => name.to_owned(),
        Some(quant) => format!("{name}-{}", quant.to_ascii_lowercase()),
    }
}

/// The only model of this repository among the stored ones.
pub fn only_quant<'n>(repo: &str, stored: &'n [String]) -> Option<&'n str> {
    let begin = format!("{repo}:");
    let mut quants = stored.iter().filter(|name| repo.contains('/') && name.starts_with(&begin));
    let only = quants.next()?;
    quants.next().is_none().then_some(only.as_str())
}

/// All other names of the model that is stored as `name`.
pub fn others(name: &str) -> Vec<String> {
    match name {
        "smollm2" => return vec!["smollm2:135m".to_owned()],
        "whisper-base" => return vec!["whisper".to_owned()],
        name if name.contains('/') => return others_of_hub(name),
        _ => {}
    }
    let named = NAMED.iter().find(|named| named.name == name);
    named.map_or(Vec::new(), |named| named.also.iter().map(|&also| also.to_owned()).collect())
}

/// A model of a repository, or a file of one, with the hub's prefixes and the file's extension.
fn others_of_hub(name: &str) -> Vec<String> {
    let is_of_file = name.matches('/').count() > 1;
    let file = is_of_file.then(|| format!("{name}.gguf"));
    let prefixed = |name: &str| HUB_PREFIXES.map(|prefix| format!("{prefix}{name}"));
    let mut others = Vec::from(prefixed(name));
    others.extend(file.iter().flat_map(|file| prefixed(file)));
    others.extend(file);
    others
}

/// All short names, from `names.csv`. Its repositories come from published scripts and notes and were not checked. A
/// repository that is gone costs one request: hob asks Ollama's registry next. Without a quant, `smollm2:135m` means the
/// pinned file of the catalog.
pub static NAMED: LazyLock<Vec<NamedRepo>> =
    LazyLock::new(|| include_str!("names.csv").lines().skip(1).filter_map(row).collect());

fn row(line: &'static str) -> Option<NamedRepo> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[name, also, repo, licence] = fields.as_slice() else { return None };
    Some(NamedRepo { name, also: also.split_whitespace().collect(), repo, licence })
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
            ("whisper", "whisper-base"),
            ("Whisper:latest", "whisper-base"),
            ("whisper:tiny.en", "whisper-tiny.en"),
            ("whisper-large", "whisper-large-v3"),
            ("whisper:turbo", "whisper-large-v3-turbo"),
            ("Whisper-Mine", "Whisper-Mine"),
            ("mine:latest", "mine"),
            ("Mine.Q4", "Mine.Q4"),
            ("hf:o/m:Q8_0", "o/m:Q8_0"),
            ("hf.co/o/m:q4_k_m", "o/m:Q4_K_M"),
            ("o/m@main:q8_0", "o/m@main:Q8_0"),
            ("o/m:UD-q4_K_XL", "o/m:UD-q4_K_XL"),
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
    fn all_other_names_lead_back_to_the_stored_one() {
        for (stored, expected) in [
            ("smollm2", "smollm2:135m"),
            ("qwen3:8b", "qwen3"),
            ("o/m:Q8_0", "hf.co/o/m:Q8_0"),
            ("o/m/sub/m-Q8_0", "hf:o/m/sub/m-Q8_0.gguf"),
            ("o/m/sub/m-Q8_0", "o/m/sub/m-Q8_0.gguf"),
        ] {
            let others = others(stored);
            assert!(others.iter().any(|other| other == expected), "{stored}: {others:?}");
            assert!(others.iter().all(|other| canonical(other) == stored), "{stored}: {others:?}");
        }
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut all = HashSet::new();
        assert_eq!(NAMED.len(), include_str!("names.csv").lines().count() - 1);
        for named in NAMED.iter() {
            let names = [named.name].into_iter().chain(named.also.iter().copied());
            names.for_each(|name| assert!(all.insert(name), "{name} twice"));
            assert_eq!(named.repo.matches('/').count(), 1, "{}", named.repo);
            assert_eq!(named.name, named.name.to_ascii_lowercase());
        }
    }

    /// `hob fit` and `hob pull` mean the same model by a name.
    #[test]
    fn every_model_whose_dimensions_are_known_can_be_fetched_by_each_of_its_names() {
        for known in KNOWN.iter() {
            let is_tag = |name: &str| known.tags.iter().any(|(tag, _)| tag == name);
            for (tag, _) in &known.tags {
                let is_default = tag == "smollm2";
                let is_own_mix = tag == "qwen3.5-opus-distill";
                let is_same = named(tag).is_some_and(|found| is_tag(found.named.name));
                assert!(is_default || is_own_mix || is_same, "{tag} is not {}", known.name);
            }
        }
    }
}
