//! The one model that hob will run itself: which of llama-swap's it is, and how.
//! The first that is loaded at the start, else the first of the file that hob can run.

use hob_core::KvType;
use hob_core::chat::Effort;

use super::command::Command;
use crate::import::draft::{Chat, KeepAlive, Load, Parameters, Seconds};
use crate::import::node::Node;
use crate::import::reading::Place;

/// Flags for samplers, and the parameters of requests that they stand for.
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

/// What hob does anyway, or needs no word for.
const ANYWAY: [&[&str]; 6] = [
    &["--port"],
    &["--host"],
    &["-fa", "--flash-attn"],
    &["--jinja"],
    &["-m", "--model"],
    &["--no-webui"],
];

const KEY_TYPE: &[&str] = &["-ctk", "--cache-type-k"];
const VALUE_TYPE: &[&str] = &["-ctv", "--cache-type-v"];

pub(super) struct Embedded<'a> {
    pub(super) id: &'a str,
    pub(super) model: Place<'a>,
    /// What hob calls it: its file's name.
    pub(super) name: String,
    pub(super) default: Parameters,
    pub(super) effort: Option<Effort>,
    chat: Chat,
}

pub(super) fn choose<'a>(
    models: &[(&'a str, Place<'a>)],
    preloaded: &[(String, Place<'_>)],
) -> Option<Embedded<'a>> {
    let first = |id: &str| preloaded.iter().position(|(name, _)| name == id);
    let mut ranked: Vec<_> = models.iter().collect();
    ranked.sort_by_key(|(id, _)| first(id).unwrap_or(usize::MAX));
    ranked.into_iter().find_map(|(id, model)| embedded(id, model))
}

/// Says of every other model what to do about it.
pub(super) fn leave_others(models: &[(&str, Place<'_>)], embedded: Option<&Embedded<'_>>) {
    for (id, model) in models {
        if embedded.is_some_and(|embedded| embedded.id == *id) {
            continue;
        }
        let why = match (command(model).map(|command| command.model()), embedded) {
            (Some(Ok(_)), Some(embedded)) => {
                format!("hob runs one chat model itself, and that is '{}'", embedded.id)
            }
            (Some(Err(why)), _) => why.to_owned(),
            (Some(Ok(_)) | None, _) => "it has no cmd".to_owned(),
        };
        model.drop(&format!(
            "{why}; run its server on a port of its own, add an [upstream.NAME] with its url \
             (kind = \"llama-server\" if it is one), and an [alias] that leads to NAME/MODEL"
        ));
    }
}

fn command(model: &Place<'_>) -> Option<Command> {
    Some(Command::parse(&model.get("cmd")?.text()?))
}

fn embedded<'a>(id: &'a str, model: &Place<'a>) -> Option<Embedded<'a>> {
    let mut command = command(model)?;
    let path = command.model().ok()?;
    let place = model.get("cmd")?;
    let file = path.rsplit(['/', '\\']).next().unwrap_or(&path);
    let name = file[..file.len() - ".gguf".len()].to_owned();
    if path.contains('$') {
        place.change("hob reads no variables in a path; write it out in chat.model");
    }
    let (budget, effort) = thinking(&mut command);
    let chat = Chat {
        gpu_layers: gpu_layers(&mut command),
        kv_type: kv_type(&mut command),
        threads: command.take_as(&["-t", "--threads"]),
        batch_tokens: command.take_as(&["-b", "--batch-size"]).filter(|tokens| *tokens > 0),
        thinking_tokens_max: budget,
        ..with_context(&mut command, &place)
    };
    let default = sampling(&mut command);
    say_left(command, &place);
    Some(Embedded {
        id,
        model: model.clone(),
        name,
        default,
        effort,
        chat: Chat { model: path, ..chat },
    })
}

/// A context of llama-server's is for all its answers together, one of hob's for each.
fn with_context(command: &mut Command, place: &Place<'_>) -> Chat {
    let tokens: Option<u32> = command.take_as(&["-c", "--ctx-size"]).filter(|tokens| *tokens > 0);
    let parallel: Option<u16> = command.take_as(&["-np", "--parallel"]).filter(|many| *many > 0);
    let Some(tokens) = tokens else { return Chat { parallel, ..Chat::default() } };
    let at_once = parallel.unwrap_or(1);
    let how = match parallel {
        None => Some("parallel = 1, so that its context takes the memory that it took".to_owned()),
        Some(1) => None,
        Some(_) => Some(format!("context_tokens is for each answer: {tokens} / {at_once}")),
    };
    if let Some(how) = how {
        place.change(&how);
    }
    let context_tokens = Some((tokens / u32::from(at_once)).max(1));
    Chat { context_tokens, parallel: Some(at_once), ..Chat::default() }
}

/// A word, or a number below zero, is all of them, which is what hob does when nothing is said.
fn gpu_layers(command: &mut Command) -> Option<u16> {
    let layers = command.take(&["-ngl", "--n-gpu-layers", "--gpu-layers"])?;
    layers.parse().ok()
}

/// One type for both halves; two types are left, to be said.
fn kv_type(command: &mut Command) -> Option<KvType> {
    let mut trial = command.clone();
    let keys: KvType = trial.take_as(KEY_TYPE)?;
    let values: KvType = trial.take_as(VALUE_TYPE)?;
    (keys == values).then(|| {
        *command = trial;
        keys
    })
}

/// Below zero a model thinks as long as it wants; zero is not at all.
fn thinking(command: &mut Command) -> (Option<u32>, Option<Effort>) {
    match command.take_as::<i64>(&["--reasoning-budget"]) {
        Some(0) => (None, Some(Effort::None)),
        Some(tokens) => (u32::try_from(tokens).ok(), None),
        None => (None, None),
    }
}

fn sampling(command: &mut Command) -> Parameters {
    let mut parameters = Parameters::new();
    for (flags, name) in SAMPLING {
        let whole = command.take_as(flags).map(Node::Integer);
        let number = whole.or_else(|| command.take_as(flags).map(Node::Number));
        parameters.extend(number.map(|number| (name.to_owned(), number)));
    }
    parameters
}

/// By name only: what follows a flag may be a key.
fn say_left(mut command: Command, place: &Place<'_>) {
    for names in ANYWAY {
        command.take(names);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let left = command.left().into_iter();
    let left: Vec<&str> =
        left.map(|flag| flag.split(|c| !plain(c)).next().unwrap_or(flag)).collect();
    if !left.is_empty() {
        place.drop(&format!("[chat] has nothing like {}", left.join(", ")));
    }
}

impl Embedded<'_> {
    pub(super) fn into_chat(self, root: &Place<'_>, load: Load) -> Chat {
        let requests_max = self.model.get("concurrencyLimit").and_then(|place| limit(&place));
        Chat {
            keep_alive: keep_alive(&self.model, root),
            load: Some(load),
            requests_max,
            ..self.chat
        }
    }
}

/// Zero is llama-swap's own limit, and hob has its own too.
fn limit(place: &Place<'_>) -> Option<u16> {
    let limit = place.count()?;
    if limit > u32::from(u16::MAX) {
        place.drop("hob lets in 65535 at once at most");
    }
    u16::try_from(limit).ok().filter(|limit| *limit > 0)
}

/// Below zero, the file's own; zero is for ever.
fn keep_alive(model: &Place<'_>, root: &Place<'_>) -> Option<KeepAlive> {
    let read = |place: Place<'_>| place.number().filter(|seconds| *seconds >= 0.0);
    let own = model.get("ttl").and_then(read);
    let of_all = root.get("globalTTL").and_then(read);
    let seconds = own.or(of_all)?.ceil() as u64;
    Some(match seconds {
        0 => KeepAlive::Forever,
        seconds => KeepAlive::For(Seconds(seconds)),
    })
}
