//! A model's `cmd`: the flags of llama-server as keys of `[model.NAME]`. Nothing is run.
//! Values of unknown flags are never repeated, because one may be a secret.

use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

use hob_core::KvType;
use hob_core::chat::Effort;

use crate::config::{ChatSection, EffortName, KvTypeName};

const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];

/// Flags of a server that does not chat.
const OTHER_KINDS: [&str; 5] =
    ["--embedding", "--embeddings", "--reranking", "--rerank", "--model-vocoder"];

/// Flags that hob needs no key for.
const UNNEEDED: &[&str] =
    &["--port", "--host", "-fa", "--flash-attn", "--jinja", "-m", "--model", "--no-webui"];

const SAMPLING: [(&[&str], &str); 8] = [
    (&["--temp", "--temperature"], "temperature"),
    (&["--top-p"], "top_p"),
    (&["--top-k"], "top_k"),
    (&["--min-p"], "min_p"),
    (&["--repeat-penalty"], "repeat_penalty"),
    (&["--presence-penalty"], "presence_penalty"),
    (&["--frequency-penalty"], "frequency_penalty"),
    (&["-s", "--seed"], "seed"),
];

/// What a `cmd` says.
pub(super) struct LlamaServer {
    pub(super) section: ChatSection,
    /// The file's name without its ending.
    pub(super) file: String,
    /// Parameters for requests that do not set them.
    pub(super) defaults: Option<toml::Table>,
    pub(super) effort: Option<EffortName>,
    pub(super) changed: Vec<String>,
    /// Names of flags that have no key.
    pub(super) unused: Vec<String>,
}

/// # Errors
/// Why hob cannot run this model itself.
pub(super) fn llama_server(cmd: &str) -> Result<LlamaServer, &'static str> {
    let words = shlex::split(cmd).ok_or("its cmd has a quote that is not closed")?;
    let program = words.first().map(String::as_str).unwrap_or_default();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    if program.is_empty() {
        return Err("it has no cmd");
    }
    if CONTAINERS.contains(&program) {
        return Err("its model is inside a container");
    }
    let mut flags = Flags::new(&words[1..]);
    if flags.0.iter().any(|(name, _)| OTHER_KINDS.contains(&name.as_str())) {
        return Err("it is not a chat model");
    }
    let path =
        flags.value(&["-m", "--model"]).filter(|path| path.to_ascii_lowercase().ends_with(".gguf"));
    let Some(path) = path.filter(|_| program.contains("llama")) else {
        return Err("its cmd is not llama-server with a GGUF file");
    };
    let mut changed = Vec::new();
    let model = ["${env.HOME}/", "$HOME/"].iter().find_map(|home| path.strip_prefix(home));
    let model = model.map_or_else(|| path.clone(), |rest| format!("~/{rest}"));
    if model.contains('$') {
        changed.push(
            "hob reads no variables in a path: write the path out in the model key".to_owned(),
        );
    }
    let file = path.rsplit(['/', '\\']).next().unwrap_or(&path);
    let file = file[..file.len() - ".gguf".len()].to_owned();
    let (thinking_tokens_max, effort) = match flags.take_as::<i64>(&["--reasoning-budget"]) {
        Some(0) => (None, Some(EffortName(Effort::None))),
        // Below 0 the model may think as long as it wants.
        budget => (budget.and_then(|tokens| u32::try_from(tokens).ok()), None),
    };
    let (context_tokens, parallel) = context(&mut flags, &mut changed);
    let section = ChatSection {
        model: Some(model),
        context_tokens,
        parallel,
        kv_type: kv_type(&mut flags),
        threads: flags.take_as(&["-t", "--threads"]),
        batch_tokens: flags.take_as(&["-b", "--batch-size"]),
        // A word or a negative number means all layers, as hob's default does.
        gpu_layers: flags
            .take(&["-ngl", "--n-gpu-layers", "--gpu-layers"])
            .and_then(|layers| layers.parse().ok()),
        thinking_tokens_max,
        ..ChatSection::default()
    };
    let defaults = sampling(&mut flags);
    flags.take(UNNEEDED);
    let unused = flags.0.into_iter().map(|(name, _)| name).collect();
    Ok(LlamaServer { section, file, defaults, effort, changed, unused })
}

/// llama-server's context is for all answers together, hob's for each answer.
fn context(
    flags: &mut Flags,
    changed: &mut Vec<String>,
) -> (Option<NonZeroU32>, Option<NonZeroU16>) {
    let parallel: Option<NonZeroU16> = flags.take_as(&["-np", "--parallel"]);
    let Some(tokens) = flags.take_as::<NonZeroU32>(&["-c", "--ctx-size"]) else {
        return (None, parallel);
    };
    let answers = parallel.unwrap_or(NonZeroU16::MIN);
    match parallel {
        None => changed
            .push("parallel = 1, so that the context needs no more memory than before".to_owned()),
        Some(answers) if answers.get() > 1 => {
            changed.push(format!("context_tokens is for each answer: {tokens} / {answers}"));
        }
        Some(_) => {}
    }
    let each = NonZeroU32::new(tokens.get() / u32::from(answers.get()));
    (each.or(Some(NonZeroU32::MIN)), Some(answers))
}

/// hob has one type for keys and values. Two different types stay, and are named as unused.
fn kv_type(flags: &mut Flags) -> Option<KvTypeName> {
    const KEYS: &[&str] = &["-ctk", "--cache-type-k"];
    const VALUES: &[&str] = &["-ctv", "--cache-type-v"];
    let keys: KvType = flags.value(KEYS)?.parse().ok()?;
    if flags.value(VALUES)?.parse() != Ok(keys) {
        return None;
    }
    flags.take(KEYS);
    flags.take(VALUES);
    Some(KvTypeName(keys))
}

fn sampling(flags: &mut Flags) -> Option<toml::Table> {
    let mut parameters = toml::Table::new();
    for (names, parameter) in SAMPLING {
        let whole = flags.take_as(names).map(toml::Value::Integer);
        let number = whole.or_else(|| flags.take_as(names).map(toml::Value::Float));
        parameters.extend(number.map(|number| (parameter.to_owned(), number)));
    }
    (!parameters.is_empty()).then_some(parameters)
}

/// Flags and their values; what is used is taken out.
struct Flags(Vec<(String, Option<String>)>);

impl Flags {
    fn new(words: &[String]) -> Flags {
        let mut flags: Vec<(String, Option<String>)> = Vec::new();
        for word in words {
            match (is_flag(word), flags.last_mut()) {
                (true, _) => match word.split_once('=') {
                    Some((name, value)) => flags.push((name.to_owned(), Some(value.to_owned()))),
                    None => flags.push((word.clone(), None)),
                },
                (false, Some((_, value @ None))) => *value = Some(word.clone()),
                (false, _) => {}
            }
        }
        Flags(flags)
    }

    /// If a flag is repeated, llama-server uses the last one.
    fn value(&self, names: &[&str]) -> Option<String> {
        let named = self.0.iter().rev().find(|(name, _)| names.contains(&name.as_str()))?;
        named.1.clone()
    }

    fn take(&mut self, names: &[&str]) -> Option<String> {
        let value = self.value(names);
        self.0.retain(|(name, _)| !names.contains(&name.as_str()));
        value
    }

    /// Takes the flag only if its value is a `T`; otherwise it is named as unused.
    fn take_as<T: FromStr>(&mut self, names: &[&str]) -> Option<T> {
        let value = self.value(names)?.parse().ok()?;
        self.take(names);
        Some(value)
    }
}

/// `-1` is a value.
fn is_flag(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.len() < word.len() && name.starts_with(|c: char| c.is_ascii_alphabetic())
}
