//! One entry of `model_list`: a name, and a model of some server that answers to it.
//! Several entries of one name are one alias; `group` puts them together.

use hob_core::chat::Effort;

use super::provider::{Name, Resolved, resolve};
use crate::import::draft::{KeepAlive, Parameters, Seconds, Target, UpstreamKind};
use crate::import::parameters;
use crate::import::reading::Place;
use crate::import::secret::WrittenKey;
use crate::import::upstreams::{Base, Upstreams, Wish, address, host_name, say_key};

/// Parameters that a deployment gives where a request has none.
const DEFAULTS: [&str; 23] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_completion_tokens",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "repeat_penalty",
    "seed",
    "stop",
    "n",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "chat_template_kwargs",
    "thinking",
    "user",
];

const NO_ADDRESS: &str = "its address is none that hob can ask; it begins with http://";

pub(super) struct Deployment<'a> {
    pub(super) name: String,
    pub(super) target: Target,
    /// `litellm_params`: what the group decides is read there, once all of it is known.
    pub(super) params: Place<'a>,
    pub(super) name_place: Place<'a>,
    pub(super) first_token: Option<Said<'a, Seconds>>,
    pub(super) total: Option<Said<'a, Seconds>>,
    pub(super) retries: Option<Said<'a, u32>>,
    pub(super) cooldown: Option<Said<'a, Seconds>>,
    pub(super) effort: Option<Said<'a, Effort>>,
    pub(super) keep_alive: Option<Said<'a, KeepAlive>>,
}

/// A value, and where the source says it.
pub(super) struct Said<'a, T> {
    pub(super) value: T,
    pub(super) place: Place<'a>,
}

/// None, with a note, if hob cannot ask this model.
pub(super) fn read<'a>(item: &Place<'a>, upstreams: &mut Upstreams) -> Option<Deployment<'a>> {
    let (Some(name_place), Some(params)) = (item.get("model_name"), item.get("litellm_params"))
    else {
        item.drop("a deployment has a model_name and litellm_params");
        return None;
    };
    let name = name_place.text()?;
    let (resolved, upstream) = match server(&params, upstreams) {
        Ok(server) => server,
        Err(why) => {
            item.drop(&why);
            return None;
        }
    };
    if name.contains('*') || resolved.model.contains('*') {
        name_place.change(&format!("hob knows no patterns: ask for {upstream}/MODEL instead"));
        return None;
    }
    let target = target(item, &params, &resolved, &upstream);
    Some(Deployment {
        name,
        target,
        first_token: said(&params, &["stream_timeout"], Place::seconds),
        total: said(&params, &["timeout"], Place::seconds),
        retries: said(&params, &["num_retries", "max_retries"], Place::count),
        cooldown: said(&params, &["cooldown_time"], Place::seconds),
        effort: said(&params, &["reasoning_effort"], effort),
        keep_alive: said(&params, &["keep_alive"], keep_alive),
        params,
        name_place,
    })
}

fn said<'a, T>(
    params: &Place<'a>,
    keys: &[&str],
    read: impl Fn(&Place<'a>) -> Option<T>,
) -> Option<Said<'a, T>> {
    let place = keys.iter().find_map(|key| params.get(key))?;
    Some(Said { value: read(&place)?, place })
}

/// Whose model it is, and hob's name of the server.
fn server(params: &Place<'_>, upstreams: &mut Upstreams) -> Result<(Resolved, String), String> {
    let model = params.get("model").and_then(|place| place.text()).ok_or("it names no model")?;
    let custom = params.get("custom_llm_provider").and_then(|place| place.text());
    let written =
        base(params).map(|place| address(&place, Base::BelowV1).ok_or(NO_ADDRESS)).transpose()?;
    let resolved = resolve(&model, custom.as_deref(), written.is_some())?;
    let url = written.or_else(|| resolved.url.map(str::to_owned));
    let preferred = match (&resolved.name, &url) {
        (Name::Word(word), _) => word.clone(),
        (Name::OfHost, Some(url)) => host_name(url),
        (Name::OfHost, None) => resolved.kind.name().to_owned(),
    };
    let place = params.get("api_key");
    let said = place.as_ref().and_then(Place::text).map(|text| WrittenKey::litellm(&text));
    let unsaid = || resolved.key.map(|name| WrittenKey::Variable(name.to_owned()));
    let key = said.clone().or_else(unsaid).filter(|key| *key != WrittenKey::Placeholder);
    let name = upstreams.named(&preferred, Wish { kind: resolved.kind, url, key });
    if let (Some(key), Some(place)) = (&said, &place) {
        say_key(key, &name, place);
    }
    Ok((resolved, name))
}

/// LiteLLM takes either word.
fn base<'a>(params: &Place<'a>) -> Option<Place<'a>> {
    params.get("api_base").or_else(|| params.get("base_url"))
}

fn target(item: &Place<'_>, params: &Place<'_>, resolved: &Resolved, upstream: &str) -> Target {
    Target {
        name: format!("{upstream}/{}", resolved.model),
        context: context(item, params, resolved.kind),
        set: params.get("extra_body").map(|place| parameters::read(&place)).unwrap_or_default(),
        drop: params.get("additional_drop_params").map(|place| dropped(&place)).unwrap_or_default(),
        default: defaults(params),
        weight: None,
    }
}

fn context(item: &Place<'_>, params: &Place<'_>, kind: UpstreamKind) -> Option<u32> {
    let info = item.get("model_info").filter(Place::is_table);
    let said = info.and_then(|info| info.get("max_input_tokens")?.count());
    match kind {
        // Ollama is told how long a context to make, and hob tells it the target's.
        UpstreamKind::Ollama => params.get("num_ctx").and_then(|place| place.count()).or(said),
        _ => said,
    }
}

fn defaults(params: &Place<'_>) -> Parameters {
    let given = DEFAULTS.into_iter().filter_map(|name| Some((name, params.get(name)?)));
    given.filter_map(|(name, place)| Some((name.to_owned(), place.parameter()?))).collect()
}

fn dropped(place: &Place<'_>) -> Vec<String> {
    let plain = |(name, place): (String, Place<'_>)| {
        let is_path = name.contains(['.', '[', '*']);
        if is_path {
            place.drop("hob drops whole parameters, not parts of them");
        }
        (!is_path).then_some(name)
    };
    place.texts().into_iter().filter_map(plain).collect()
}

fn effort(place: &Place<'_>) -> Option<Effort> {
    let word = place.parameter()?;
    let effort = parameters::word(&word);
    if effort.is_none() {
        place.drop("effort is none, minimal, low, medium, high, xhigh or max");
    }
    effort
}

/// Ollama's spans: `5m`, seconds, or anything negative for ever.
fn keep_alive(place: &Place<'_>) -> Option<KeepAlive> {
    let text = place.text()?;
    if text.starts_with('-') {
        return Some(KeepAlive::Forever);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let number = text[..digits].parse::<u64>().ok();
    let seconds = number.zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    if seconds.is_none() {
        place.drop("a time is 30s, 5m, 2h or a number of seconds");
    }
    seconds.map(|seconds| KeepAlive::For(Seconds(seconds)))
}
