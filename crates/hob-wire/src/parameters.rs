//! What an alias changes in a request before a target gets it: values to set, to drop, and defaults.
//! They have the names of the request's fields.

use hob_core::chat::{Sampling, Thinking};
use hob_core::{ChatRequest, JsonText, KeepAlive};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::WireError;
use crate::chat::{EffortOrBool, SamplingFields, effort_of};
use crate::fields::Fields;
use crate::keep_alive::keep_alive;
use crate::request_value::tokens;

/// A limit of 0 or below in an alias: until the context is full. It differs from an absent one, because it wins over others.
const NO_LIMIT: u32 = u32::MAX;

/// Checked when it was written, so that no request fails for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    set: ParameterValues,
    default: ParameterValues,
    drop: Vec<String>,
}

/// Parameters of a request. Absent ones are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
struct ParameterValues {
    sampling: Sampling,
    tokens_max: Option<u32>,
    stop: Vec<String>,
    thinking: Thinking,
    keep_alive: Option<KeepAlive>,
    /// For servers that know more than hob.
    extra: Map<String, Value>,
}

/// What an alias may set, apart from sampling. Other fields go on to servers that know them.
#[derive(Deserialize)]
struct AliasFields {
    #[serde(default, deserialize_with = "limit")]
    max_completion_tokens: Option<u32>,
    #[serde(default, deserialize_with = "limit")]
    max_tokens: Option<u32>,
    reasoning_effort: Option<EffortOrBool>,
    think: Option<EffortOrBool>,
    #[serde(default, deserialize_with = "tokens")]
    thinking_budget_tokens: Option<u32>,
    #[serde(default, deserialize_with = "keep_alive")]
    keep_alive: Option<KeepAlive>,
}

impl Parameters {
    /// `set` and `default` are JSON objects.
    ///
    /// # Errors
    /// A parameter has a value that no request could have.
    pub fn parse(set: &str, default: &str, drop: Vec<String>) -> Result<Parameters, WireError> {
        Ok(Parameters {
            set: ParameterValues::parse(set)?,
            default: ParameterValues::parse(default)?,
            drop,
        })
    }

    /// Drops fields first, then sets fields, then fills absent fields with defaults. Among several aliases, the
    /// last one wins.
    pub fn apply(several: &[Parameters], request: &mut ChatRequest) {
        if several.iter().all(Parameters::is_empty) {
            return;
        }
        several.iter().flat_map(|one| &one.drop).for_each(|name| leave_out(request, name));
        let mut values = ParameterValues::default();
        several.iter().rev().for_each(|one| values.fill_from(&one.set));
        values.fill_from(&ParameterValues::of(request));
        several.iter().rev().for_each(|one| values.fill_from(&one.default));
        values.put(request);
    }

    pub fn is_empty(&self) -> bool {
        *self == Parameters::default()
    }
}

impl ParameterValues {
    fn parse(json: &str) -> Result<ParameterValues, WireError> {
        let mut fields = Fields::parse(json.as_bytes())?;
        let mut ignored = Vec::new();
        let sent: AliasFields = fields.read()?;
        let mut sampling: SamplingFields = fields.read()?;
        let effort = sent.reasoning_effort.or(sent.think).map(effort_of);
        Ok(ParameterValues {
            sampling: sampling.sampling(&mut ignored)?,
            tokens_max: sent.max_completion_tokens.or(sent.max_tokens),
            stop: sampling.stop()?,
            thinking: Thinking { effort, tokens_max: sent.thinking_budget_tokens },
            keep_alive: sent.keep_alive,
            extra: object(fields.rest().as_ref()),
        })
    }

    fn of(request: &ChatRequest) -> ParameterValues {
        ParameterValues {
            sampling: request.sampling.clone(),
            // The limit of the key stands for no wish of the client.
            tokens_max: request.tokens_max.filter(|most| request.limit(None) != Some(*most)),
            stop: request.stop.clone(),
            thinking: request.thinking,
            keep_alive: request.keep_alive,
            extra: object(request.extra.as_ref()),
        }
    }

    /// Takes from `other` what is absent here.
    fn fill_from(&mut self, other: &ParameterValues) {
        let (mine, theirs) = (&mut self.sampling, &other.sampling);
        mine.temperature = mine.temperature.or(theirs.temperature);
        mine.top_p = mine.top_p.or(theirs.top_p);
        mine.top_k = mine.top_k.or(theirs.top_k);
        mine.min_p = mine.min_p.or(theirs.min_p);
        mine.repeat_penalty = mine.repeat_penalty.or(theirs.repeat_penalty);
        mine.presence_penalty = mine.presence_penalty.or(theirs.presence_penalty);
        mine.frequency_penalty = mine.frequency_penalty.or(theirs.frequency_penalty);
        mine.seed = mine.seed.or(theirs.seed);
        mine.ignore_eos = mine.ignore_eos.or(theirs.ignore_eos);
        if mine.logit_bias.is_empty() {
            mine.logit_bias.clone_from(&theirs.logit_bias);
        }
        if self.stop.is_empty() {
            self.stop.clone_from(&other.stop);
        }
        self.tokens_max = self.tokens_max.or(other.tokens_max);
        self.thinking.effort = self.thinking.effort.or(other.thinking.effort);
        self.thinking.tokens_max = self.thinking.tokens_max.or(other.thinking.tokens_max);
        self.keep_alive = self.keep_alive.or(other.keep_alive);
        for (name, value) in &other.extra {
            self.extra.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    fn put(self, request: &mut ChatRequest) {
        let ParameterValues { sampling, tokens_max, stop, thinking, keep_alive, extra } = self;
        let extra = (!extra.is_empty()).then(|| JsonText::parsed(Value::Object(extra).to_string()));
        request.sampling = sampling;
        let tokens_max = tokens_max.filter(|tokens| *tokens != NO_LIMIT);
        request.tokens_max = request.limit(tokens_max);
        request.stop = stop;
        request.thinking = thinking;
        request.keep_alive = keep_alive;
        request.extra = extra;
    }
}

fn limit<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    let tokens = Option::<i64>::deserialize(value)?;
    Ok(tokens.map(|tokens| match u32::try_from(tokens) {
        Ok(0) | Err(_) => NO_LIMIT,
        Ok(tokens) => tokens,
    }))
}

/// Forgets one parameter, by the name that requests have for it.
fn leave_out(request: &mut ChatRequest, name: &str) {
    let sampling = &mut request.sampling;
    match name {
        "temperature" => sampling.temperature = None,
        "top_p" => sampling.top_p = None,
        "top_k" => sampling.top_k = None,
        "min_p" => sampling.min_p = None,
        "repeat_penalty" | "repetition_penalty" => sampling.repeat_penalty = None,
        "presence_penalty" => sampling.presence_penalty = None,
        "frequency_penalty" => sampling.frequency_penalty = None,
        "seed" => sampling.seed = None,
        "ignore_eos" => sampling.ignore_eos = None,
        "logit_bias" => sampling.logit_bias.clear(),
        "stop" => request.stop.clear(),
        "max_tokens" | "max_completion_tokens" => request.tokens_max = None,
        "reasoning_effort" | "think" => request.thinking.effort = None,
        "thinking_budget_tokens" => request.thinking.tokens_max = None,
        "logprobs" => request.logprobs = None,
        "keep_alive" => request.keep_alive = None,
        other => {
            let mut extra = object(request.extra.as_ref());
            if extra.remove(other).is_some() {
                request.extra =
                    (!extra.is_empty()).then(|| JsonText::parsed(Value::Object(extra).to_string()));
            }
        }
    }
}

fn object(json: Option<&JsonText>) -> Map<String, Value> {
    match json.and_then(|json| serde_json::from_str(json.as_str()).ok()) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use hob_core::chat::Effort;

    use super::*;

    fn request() -> ChatRequest {
        ChatRequest {
            sampling: Sampling { temperature: Some(0.9), min_p: Some(0.1), ..Sampling::default() },
            extra: Some(JsonText::parsed(r#"{"user":"me","logit_x":1}"#)),
            ..ChatRequest::default()
        }
    }

    #[test]
    fn what_is_set_wins_what_is_dropped_goes_and_defaults_come_last() {
        let parameters = Parameters::parse(
            r#"{"temperature":0.2,"reasoning_effort":"none","chat_style":"x"}"#,
            r#"{"temperature":1,"top_p":0.5,"min_p":0.7,"max_tokens":9,"user":"nobody"}"#,
            vec!["min_p".to_owned(), "logit_x".to_owned(), "stop".to_owned()],
        )
        .expect("good parameters");
        let general = r#"{"temperature":0.4,"seed":4}"#;
        let general = Parameters::parse(general, r#"{"top_p":0.1}"#, Vec::new()).expect("good");
        let mut changed = request();
        Parameters::apply(&[general, parameters], &mut changed);
        let Sampling { temperature, top_p, min_p, seed, .. } = changed.sampling;
        assert_eq!(seed, Some(4));
        assert_eq!((temperature, top_p, min_p), (Some(0.2), Some(0.5), Some(0.7)));
        assert_eq!((changed.tokens_max, changed.thinking.effort), (Some(9), Some(Effort::None)));
        let extra = changed.extra.expect("extra");
        assert_eq!(extra.as_str(), r#"{"chat_style":"x","user":"me"}"#);
    }

    #[test]
    fn a_limit_of_zero_means_until_the_context_is_full() {
        let answered = |set: &str, default: &str, tokens_max| {
            let parameters = Parameters::parse(set, default, Vec::new()).expect("good parameters");
            let other = Parameters::parse("{}", r#"{"max_tokens":5}"#, Vec::new()).expect("good");
            let mut changed = ChatRequest { tokens_max, ..request() };
            Parameters::apply(&[other, parameters], &mut changed);
            changed.tokens_max
        };
        for zero in [r#"{"max_tokens":0}"#, r#"{"max_completion_tokens":-1}"#] {
            assert_eq!(answered("{}", zero, None), None, "the other alias has a default of 5");
            assert_eq!(answered("{}", zero, Some(9)), Some(9));
            assert_eq!(answered(zero, "{}", Some(9)), None);
        }
        // A request that only reads its prompt.
        assert_eq!(answered("{}", r#"{"top_p":0.5}"#, Some(0)), Some(0));
    }

    #[test]
    fn the_limit_of_a_key_holds_whatever_an_alias_says() {
        for (set, drop, tokens_max) in [
            (r#"{"max_tokens":50}"#, vec![], Some(9)),
            (r#"{"max_tokens":0}"#, vec![], Some(9)),
            (r#"{"max_tokens":5}"#, vec![], Some(5)),
            ("{}", vec!["max_tokens".to_owned()], Some(9)),
        ] {
            let parameters = Parameters::parse(set, "{}", drop).expect("good parameters");
            let key_tokens_max = Some(9);
            let mut changed = ChatRequest { tokens_max: Some(7), key_tokens_max, ..request() };
            Parameters::apply(&[parameters], &mut changed);
            assert_eq!(changed.tokens_max, tokens_max, "{set}");
        }
    }

    #[test]
    fn defaults_hold_also_for_a_key_with_a_limit() {
        for (key_tokens_max, wanted, default, tokens_max) in [
            (Some(9), None, r#"{"max_tokens":5}"#, Some(5)),
            (Some(9), None, r#"{"max_tokens":50}"#, Some(9)),
            (Some(9), None, r#"{"top_p":0.5}"#, Some(9)),
            (Some(9), Some(20), r#"{"top_p":0.5}"#, Some(9)),
            (Some(100_000), None, r#"{"max_tokens":50}"#, Some(50)),
            (Some(100_000), None, r#"{"top_p":0.5}"#, None),
            (Some(100_000), Some(200_000), r#"{"max_tokens":50}"#, Some(100_000)),
        ] {
            let parameters = Parameters::parse("{}", default, Vec::new()).expect("good parameters");
            let mut changed = ChatRequest { key_tokens_max, ..request() };
            changed.tokens_max = changed.limit(wanted);
            Parameters::apply(&[parameters], &mut changed);
            assert_eq!(changed.tokens_max, tokens_max, "{default}");
        }
    }

    #[test]
    fn nothing_changes_nothing() {
        let mut unchanged = request();
        let nothing = Parameters::parse("{}", "{}", Vec::new()).expect("nothing");
        assert!(nothing.is_empty());
        Parameters::apply(&[nothing], &mut unchanged);
        assert!(unchanged == request());
    }

    #[test]
    fn a_value_that_no_request_could_have_is_refused_when_it_is_written() {
        for set in [r#"{"temperature":9}"#, r#"{"reasoning_effort":"much"}"#, "[]", "{"] {
            assert!(Parameters::parse(set, "{}", Vec::new()).is_err(), "{set}");
        }
    }
}
