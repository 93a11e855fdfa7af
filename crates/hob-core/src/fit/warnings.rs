//! Warnings about a plan, each with an action.
//! A warning names this model on this machine; general advice belongs to the docs.

use super::layout::{ComputeSite, Placement, Pool};
use super::{Engine, FitOptions, Model, Plan};
use crate::footprint::{KvType, KvTypes};
use crate::machine::{Basis, GpuApi, Machine};
use crate::shape::Recurrence;
use crate::weights::Part;

/// Default context of Ollama, tokens.
const OLLAMA_CONTEXT_TOKENS: u32 = 4_096;
/// With less free memory than this share, other programs may push weights out.
const TIGHT_SHARE: f64 = 0.03;
/// Bits per weight below which answers are noticeably worse.
const BITS_MIN: f64 = 4.0;
/// Code of the warning that a speed on the CPU rests on other CPUs, although the integrated GPU looks slower.
pub const UNMEASURED_PROCESSOR: &str = "unmeasured_processor";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// For programs; stable.
    pub code: &'static str,
    pub text: String,
    pub action: String,
}

/// Warnings about one plan.
pub fn warnings(
    machine: &Machine,
    model: &Model,
    options: &FitOptions,
    plan: &Plan,
) -> Vec<Warning> {
    let all = [
        too_slow(options, plan),
        longer_than_trained(model, options),
        silently_cut(plan),
        spill(machine, plan),
        split(plan),
        missing_kernels(machine, model, plan),
        few_bits(model),
        coarse_keys(plan),
        tower(model, plan),
        unknown_speed(plan),
        guessed_speed(plan),
    ];
    all.into_iter().flatten().collect()
}

fn warning(code: &'static str, text: String, action: &str) -> Option<Warning> {
    Some(Warning { code, text, action: action.to_owned() })
}

fn too_slow(options: &FitOptions, plan: &Plan) -> Option<Warning> {
    let (floor, rate) = (options.tok_s_min?, plan.decode_requested.as_ref()?);
    let text = format!("{:.1} tokens/s are expected, fewer than the requested {floor}", rate.tok_s);
    (rate.tok_s < floor)
        .then(|| warning("too_slow", text, "choose a smaller model or a smaller quant"))?
}

fn longer_than_trained(model: &Model, options: &FitOptions) -> Option<Warning> {
    let trained = model.shape.trained_context_tokens;
    let wished = options.context_tokens.filter(|wished| *wished > trained)?;
    let text = format!(
        "the requested context of {wished} tokens is longer than the {trained} tokens that the model was trained with"
    );
    warning("longer_than_trained", text, "choose a model with a longer context")
}

/// Ollama cuts a prompt that exceeds its context, without a message.
fn silently_cut(plan: &Plan) -> Option<Warning> {
    let is_cut = plan.engine == Engine::Ollama && plan.context_tokens > OLLAMA_CONTEXT_TOKENS;
    let text = format!(
        "Ollama cuts prompts at {OLLAMA_CONTEXT_TOKENS} tokens without an error, unless num_ctx is set"
    );
    is_cut.then(|| warning("context_cut", text, "set num_ctx as printed"))?
}

/// Some drivers move data that does not fit into system memory, which makes everything many times slower.
fn spill(machine: &Machine, plan: &Plan) -> Option<Warning> {
    let is_tight = |used: &&super::Use| {
        let taken = used.needed_bytes.saturating_add(used.margin_bytes);
        let left = used.free_bytes.saturating_sub(taken);
        used.pool != Pool::Ram
            && used.fits()
            && (left as f64) < used.free_bytes as f64 * TIGHT_SHARE
    };
    // A divided model fills the card on purpose.
    let used = plan.uses.iter().filter(|_| plan.placement == Placement::Vram).find(is_tight)?;
    let spills = machine.os.as_deref() == Some("windows");
    let what = if spills {
        "the driver silently moves data into RAM, which is much slower"
    } else {
        "loading fails"
    };
    let text =
        format!("the model nearly fills {}; if another program uses it too, {what}", used.pool);
    warning("spill_cliff", text, "use a shorter context or a quantized cache")
}

fn split(plan: &Plan) -> Option<Warning> {
    let Placement::Split { gpu_layers } = plan.placement else { return None };
    let layers = plan.layout.homes.len();
    let on = if plan.layout.cards().len() > 1 { "the cards" } else { "the card" };
    let text = format!(
        "{gpu_layers} of {layers} layers are on {on}, and the processor computes the others for every token"
    );
    warning("split", text, &format!("use a smaller model: one that fits on {on} is faster"))
}

fn missing_kernels(machine: &Machine, model: &Model, plan: &Plan) -> Option<Warning> {
    let is_recurrent =
        model.shape.layers.iter().any(|layer| layer.recurrence == Some(Recurrence::Matrix));
    let on_vulkan = plan.layout.sites().into_iter().any(|site| match site {
        ComputeSite::Gpu(number) => {
            machine.gpus.get(number).is_some_and(|gpu| gpu.api == GpuApi::Vulkan)
        }
        ComputeSite::Cpu => false,
    });
    let text = "an old Vulkan build computes the recurrent layers of this model on the CPU, which then takes \
                most of the time"
        .to_owned();
    (is_recurrent && on_vulkan).then(|| {
        warning(
            "missing_kernels",
            text,
            "use a recent build; its log shows `splits =` if layers moved",
        )
    })?
}

/// The CPU looks faster than the graphics that share its memory, but only by figures of other CPUs.
pub(super) fn unmeasured_processor(machine: &Machine, plans: &[Plan]) -> Option<Warning> {
    let plan = plans.first()?;
    let rate = plan.decode_requested.as_ref().filter(|_| plan.placement == Placement::Ram)?;
    let shared =
        plans.iter().find(|other| other.fits() && other.placement == Placement::Unified)?;
    let other = shared.decode_requested.as_ref()?;
    let is_doubtful = machine.cpu.device.constants.is_none() && other.tok_s < rate.tok_s;
    let text = format!(
        "{:.1} tokens/s on the CPU are based on measurements of other CPUs; {:.1} tokens/s are expected on the integrated \
         GPU, which Ollama and llama.cpp use by default",
        rate.tok_s, other.tok_s
    );
    is_doubtful.then(|| warning(UNMEASURED_PROCESSOR, text, "hob fit calibrate"))?
}

/// The warning about weights of so few bits that answers suffer.
pub fn few_bits(model: &Model) -> Option<Warning> {
    let bits = model.shape.weights.text_bits().filter(|bits| *bits < BITS_MIN)?;
    let text =
        format!("{bits:.1} bits per weight: answers are noticeably worse than with 4 bits or more");
    warning("few_bits", text, "use a smaller model with more bits per weight")
}

fn coarse_keys(plan: &Plan) -> Option<Warning> {
    let text =
        "a KV cache with q4_0 keys makes answers with long contexts noticeably worse".to_owned();
    let exact_keys = KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 };
    let action = if plan.engine.takes(exact_keys).is_ok() { "--kv q8_0/q4_0" } else { "--kv q8_0" };
    (plan.kv.keys == KvType::Q4_0).then(|| warning("coarse_keys", text, action))?
}

fn tower(model: &Model, plan: &Plan) -> Option<Warning> {
    if !plan.engine.profile().loads_tower {
        return None;
    }
    let bytes = model.shape.weights.sum(|group| group.part == Part::Tower);
    let text = format!(
        "{:.1} GB are for images or sound: they take memory, but do not slow down text",
        bytes as f64 / 1e9
    );
    (bytes > 0).then(|| warning("tower", text, "leave out --mmproj if you only need text"))?
}

fn unknown_speed(plan: &Plan) -> Option<Warning> {
    let text = "the memory bandwidth is unknown, so hob cannot predict a speed".to_owned();
    plan.decode_requested.is_none().then(|| warning("unknown_speed", text, "hob fit calibrate"))?
}

fn guessed_speed(plan: &Plan) -> Option<Warning> {
    let is_guessed =
        plan.decode_requested.as_ref().is_some_and(|rate| rate.basis == Basis::Assumed);
    let text =
        "no device of this kind was measured: the speed is a guess (0.5 to 1.5 times this figure)"
            .to_owned();
    is_guessed.then(|| warning("guessed_speed", text, "hob fit calibrate"))?
}
