//! Fields of a request that have no effect where a team answers: its agents ask their models with their own settings.
//! The header `x-hob-ignored` names them, as it does for other models.

use hob_core::ChatRequest;
use hob_core::chat::OutputFormat;

/// Notes the fields in the trace. A limit of tokens is not among them, because the server sets one itself.
pub(super) fn note(request: &ChatRequest) {
    let (sampling, output) = (&request.sampling, &request.output);
    let fields = [
        ("temperature", sampling.temperature.is_some()),
        ("top_p", sampling.top_p.is_some()),
        ("top_k", sampling.top_k.is_some()),
        ("min_p", sampling.min_p.is_some()),
        ("repeat_penalty", sampling.repeat_penalty.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("seed", sampling.seed.is_some()),
        ("logit_bias", !sampling.logit_bias.is_empty()),
        ("ignore_eos", sampling.ignore_eos.is_some()),
        ("stop", !request.stop.is_empty()),
        ("logprobs", request.logprobs.is_some()),
        ("reasoning_effort", request.thinking.effort.is_some()),
        (output.field(), *output != OutputFormat::Text),
    ];
    let ignored = fields.into_iter().filter(|(_, is_set)| *is_set);
    request.trace.note(|data| data.dropped.extend(ignored.map(|(name, _)| name.to_owned())));
}
