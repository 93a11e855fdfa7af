//! Fields of a request that have no effect where a team answers: its agents ask their models with their own settings.
//! The header `x-hob-ignored` names them, as it does for other models.

use hob_core::ChatRequest;
use hob_core::chat::OutputFormat;

/// Notes the fields in the trace. A limit of tokens is not among them, because the server sets one itself, and neither is a
/// value without effect, such as a penalty of 0.
pub(super) fn note(request: &ChatRequest) {
    let (sampling, output) = (&request.sampling, &request.output);
    let changes = |value: Option<f32>, neutral: f32| value.is_some_and(|value| value != neutral);
    let fields = [
        ("temperature", sampling.temperature.is_some()),
        ("top_p", sampling.top_p.is_some()),
        ("top_k", sampling.top_k.is_some()),
        ("min_p", sampling.min_p.is_some()),
        ("repeat_penalty", changes(sampling.repeat_penalty, 1.0)),
        ("presence_penalty", changes(sampling.presence_penalty, 0.0)),
        ("frequency_penalty", changes(sampling.frequency_penalty, 0.0)),
        ("seed", sampling.seed.is_some()),
        ("logit_bias", !sampling.logit_bias.is_empty()),
        ("ignore_eos", sampling.ignore_eos == Some(true)),
        ("stop", !request.stop.is_empty()),
        ("logprobs", request.logprobs.is_some()),
        ("reasoning_effort", request.thinking.effort.is_some()),
        ("thinking_budget_tokens", request.thinking.tokens_max.is_some()),
        (output.field(), *output != OutputFormat::Text),
    ];
    let ignored = fields.into_iter().filter(|(_, is_set)| *is_set);
    request.trace.note(|data| data.dropped.extend(ignored.map(|(name, _)| name.to_owned())));
}
