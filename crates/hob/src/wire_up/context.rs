//! Decides the context length of a chat model, and its number of slots, before it is loaded.
//! A configured context is used as it is; otherwise the memory decides.

use hob_core::fit::{FitError, Model, OffloadFlags, Pool, Setup, SetupEstimate};
use hob_core::footprint::{Windows, longest_context};
use hob_core::machine::{Gpu, GpuMemory, Machine};
use hob_core::{ContextPlan, KvTypes};
use hob_engines::chat::scheduler::DRAFT_TOKENS_MAX;
use hob_engines::chat::{CardUse, EngineDevice};

use crate::config::Speculation;
use crate::settings::ChatSettings;

/// Numbers of slots to try if none is configured, most first.
const PARALLEL: [u32; 3] = [4, 2, 1];

/// The number of slots is reduced until each has at least this much context. Open WebUI sends 7,029
/// tokens of tools with every message, and Home Assistant 5,621.
const CONTEXT_TOKENS_ENOUGH: u32 = 16_384;

/// The layers of a model are divided between cards and system memory for a context of this length.
const CONTEXT_TOKENS_LAID_OUT: u32 = 4_096;

/// Without cards, numbers of layers mean nothing.
pub(super) fn offload_flags(settings: &ChatSettings) -> OffloadFlags {
    match settings.device {
        CardUse::Avoided => OffloadFlags { gpu_layers: Some(0), cpu_moe_layers: None },
        CardUse::Allowed | CardUse::Only(_) => OffloadFlags {
            gpu_layers: settings.gpu_layers.map(u32::from),
            cpu_moe_layers: settings.cpu_moe_layers.map(u32::from),
        },
    }
}

/// Whether the settings name the layers on cards. `device = "cpu"` leaves none to name.
pub(super) fn is_placed(settings: &ChatSettings) -> bool {
    let is_counted = settings.gpu_layers.is_some() || settings.cpu_moe_layers.is_some();
    is_counted && settings.device != CardUse::Avoided
}

/// Why settings of graphics cards have no effect, and what to do. `None`: they have one, or there are none.
pub(super) fn ignored_offload(settings: &ChatSettings, has_kernels: bool) -> Option<String> {
    let OffloadFlags { gpu_layers, cpu_moe_layers } = offload_flags(settings);
    let named = [("gpu_layers", gpu_layers), ("cpu_moe_layers", cpu_moe_layers)];
    let (name, count) =
        named.into_iter().find_map(|(name, count)| Some((name, count.filter(|n| *n > 0)?)))?;
    (!has_kernels).then(|| {
        format!(
            "{name} = {count} has no effect, because this hob was built for the processor only: build one with \
             `make build FEATURES=vulkan` (or cuda), or remove the setting"
        )
    })
}

/// Why layers for a card are not on one, in a build for cards. `None`: there are none, or hob or the engine sees a card. The
/// engine is asked only if nothing else answers.
pub(super) fn missing_cards(
    settings: &ChatSettings,
    machine: &Machine,
    listed: impl FnOnce() -> Vec<EngineDevice>,
) -> Option<String> {
    let count = offload_flags(settings).gpu_layers.filter(|count| *count > 0)?;
    (machine.gpus.is_empty() && listed().is_empty()).then(|| {
        format!(
            "gpu_layers = {count} has no effect, because the engine finds no graphics card: `hob doctor` \
             says what its driver lacks"
        )
    })
}

/// The engine's setup: as configured, or else with the longest context that fits.
///
/// # Errors
/// The engine does not accept these KV types for this model, or the model has no layers.
pub(super) fn set_up(
    settings: &ChatSettings,
    model: &Model,
    machine: &Machine,
) -> Result<(Setup, SetupEstimate), FitError> {
    let parallel = settings.parallel.map(|parallel| u32::from(parallel.get()));
    let trained = model.shape.trained_context_tokens.max(1);
    let setup = match settings.context_tokens {
        // If it does not fit, loading rejects it with the numbers.
        Some(asked) => {
            let sequences = parallel.unwrap_or(PARALLEL[0]);
            let plan = plan(settings, asked.get().min(trained), sequences);
            Setup::new(machine, model, plan, offload_flags(settings))?
        }
        None => {
            let choices = parallel.map_or(PARALLEL.to_vec(), |parallel| vec![parallel]);
            longest(settings, model, machine, &choices)?
        }
    };
    let expected = setup.estimate(machine, model)?;
    Ok((setup, expected))
}

/// The setup of a model with a second one that guesses for it. The estimate has the memory of both.
///
/// # Errors
/// As [`set_up`], for one of them.
pub(super) fn set_up_both(
    settings: &ChatSettings,
    (model, draft): (&Model, &Model),
    machine: &Machine,
) -> Result<(Setup, SetupEstimate), FitError> {
    let mut left = machine.clone();
    let draft_bytes = draft.shape.weights.bytes();
    let take = |free_bytes: &mut u64| *free_bytes = free_bytes.saturating_sub(draft_bytes);
    take(&mut left.memory.available_bytes);
    // Layers are divided between several cards by what is really free there.
    if let [Gpu { memory: GpuMemory::Own { free_bytes, .. }, .. }] = &mut left.gpus[..] {
        take(free_bytes);
    }
    let (mut setup, _) = set_up(settings, model, &left)?;
    if settings.context_tokens.is_none() {
        // A default context leaves room for that of the second model, which is as long.
        let with = |plan: &ContextPlan| Setup { plan: *plan, ..setup.clone() };
        let fits = |plan: &ContextPlan| {
            Ok::<_, FitError>(estimate_both(&with(plan), (model, draft), machine)?.fits())
        };
        if let Some(plan) = longest_context(&setup.plan, fits)? {
            setup.plan = plan;
        }
    }
    let expected = estimate_both(&setup, (model, draft), machine)?;
    Ok((setup, expected))
}

/// The memory of a model with this setup, and of the one that guesses for it.
///
/// # Errors
/// As [`set_up`], for one of them.
pub(super) fn estimate_both(
    setup: &Setup,
    (model, draft): (&Model, &Model),
    machine: &Machine,
) -> Result<SetupEstimate, FitError> {
    let drafted = setup.of_second(machine, draft).estimate(machine, draft)?;
    Ok(setup.estimate(machine, model)?.with(drafted, machine))
}

/// Takes the first number of slots that leaves each enough context, or else the last.
fn longest(
    settings: &ChatSettings,
    model: &Model,
    machine: &Machine,
    choices: &[u32],
) -> Result<Setup, FitError> {
    let trained = model.shape.trained_context_tokens.max(1);
    let enough = trained.min(CONTEXT_TOKENS_ENOUGH);
    let mut found = None;
    for &sequences in choices {
        // Layers go to a card as for a short context. The rest of the card is used for a longer one.
        let usual = plan(settings, trained.min(CONTEXT_TOKENS_LAID_OUT), sequences);
        let short = Setup::new(machine, model, usual, offload_flags(settings))?;
        let is_whole = short.offload_flags() == OffloadFlags::default();
        let is_on_one_of_several = is_whole && short.device(machine).is_some();
        let each = |setup: &Setup| setup.plan.context_tokens / sequences;
        let mut setup = extended(settings, model, machine, short)?;
        if is_on_one_of_several && each(&setup) < enough {
            // All cards together have more memory.
            let all = OffloadFlags { gpu_layers: Some(u32::MAX), cpu_moe_layers: None };
            let divided = Setup::new(machine, model, usual, all)?;
            let divided = extended(settings, model, machine, divided)?;
            if each(&divided) > each(&setup) {
                setup = divided;
            }
        }
        let is_enough = each(&setup) >= enough;
        found = Some(setup);
        if is_enough {
            break;
        }
    }
    found.ok_or(FitError::NoLayers)
}

/// A setup for a short context, with the longest one that fits.
fn extended(
    settings: &ChatSettings,
    model: &Model,
    machine: &Machine,
    short: Setup,
) -> Result<Setup, FitError> {
    let trained = model.shape.trained_context_tokens.max(1);
    let requested = Setup { plan: plan(settings, trained, short.plan.sequences), ..short.clone() };
    let roomy = half_of_the_rest(machine, &short, model)?;
    // A model that fits with no context is rejected with the numbers when it is loaded.
    Ok(requested.with_longest_context(&roomy, model)?.unwrap_or(short))
}

/// The machine with the system memory that the model needs without a context, plus half of
/// the rest. The other half is for other programs. Memory of cards is for models alone.
fn half_of_the_rest(machine: &Machine, setup: &Setup, model: &Model) -> Result<Machine, FitError> {
    let least = ContextPlan { context_tokens: setup.plan.sequences, ..setup.plan };
    let least = Setup { plan: least, ..setup.clone() }.estimate(machine, model)?;
    let least_bytes = least.kept_bytes(Pool::Ram);
    let mut machine = machine.clone();
    let available = &mut machine.memory.available_bytes;
    *available -= available.saturating_sub(least_bytes) / 2;
    Ok(machine)
}

fn plan(settings: &ChatSettings, each: u32, sequences: u32) -> ContextPlan {
    ContextPlan {
        context_tokens: each.saturating_mul(sequences),
        sequences,
        // The engine can go back to any point of a conversation.
        windows: Windows::Whole,
        kv: KvTypes::both(settings.kv_type.0),
        step_tokens: settings.batch_tokens.get(),
        // The logits of the guessed tokens of one answer are in memory, too.
        outputs_max: match settings.speculation {
            Speculation::Auto => sequences.saturating_add(DRAFT_TOKENS_MAX as u32),
            Speculation::Off => sequences,
        },
    }
}

#[cfg(test)]
mod tests {
    use hob_core::fit::{DriverBytes, Engine};
    use hob_core::machine::Memory;
    use hob_machine::profile;
    use hob_models::known;
    use hob_models::recipe::QuantMix;

    use super::*;
    use crate::settings::tests::chat_settings;

    const GB: u64 = 1_000_000_000;

    fn model(name: &str) -> Model {
        let (known, context) = known::find(name).expect("a known model");
        known.model(QuantMix::named("q4_k_m").expect("a quant"), context).expect("a model")
    }

    fn machine(free_bytes: u64) -> Machine {
        let memory = Memory { total_bytes: free_bytes, available_bytes: free_bytes };
        Machine { memory, ..Machine::default() }
    }

    /// Slots, and tokens for each of them, on a machine with this much free memory.
    fn set_up_with(config: &str, name: &str, free_bytes: u64) -> (u32, u32) {
        let settings = chat_settings(config);
        let (setup, expected) =
            set_up(&settings, &model(name), &machine(free_bytes)).expect("a setup");
        if free_bytes > GB {
            assert!(expected.kept_bytes(Pool::Ram) <= free_bytes, "{expected:?}");
        }
        (setup.plan.sequences, setup.plan.context_tokens / setup.plan.sequences)
    }

    #[test]
    fn settings_of_a_backend_that_was_not_built_say_what_to_do() {
        let said = |table: &str, has_kernels| ignored_offload(&chat_settings(table), has_kernels);
        let note = said("gpu_layers = 9", false).expect("a note");
        assert!(note.starts_with("gpu_layers = 9 has no effect"), "{note}");
        assert!(note.contains("FEATURES=vulkan"), "{note}");
        let note = said("cpu_moe_layers = 2", false).expect("a note");
        assert!(note.starts_with("cpu_moe_layers = 2 has no effect"), "{note}");
        assert_eq!(said("gpu_layers = 9", true), None);
        assert_eq!(said("gpu_layers = 0", false), None);
        assert_eq!(said("gpu_layers = 9\ndevice = \"cpu\"", false), None);
        assert_eq!(said("", false), None);
    }

    #[test]
    fn layers_for_a_card_that_the_engine_does_not_find_are_not_silently_elsewhere() {
        let card = EngineDevice {
            name: "Vulkan0".to_owned(),
            description: String::new(),
            backend: "Vulkan".to_owned(),
            is_card: true,
            free_bytes: 0,
            total_bytes: 0,
        };
        let said = |table: &str, cards: Vec<EngineDevice>| {
            missing_cards(&chat_settings(table), &Machine::default(), || cards)
        };
        let note = said("gpu_layers = 9", Vec::new()).expect("a note");
        assert!(note.starts_with("gpu_layers = 9 has no effect, because the engine "), "{note}");
        assert!(note.contains("`hob doctor`"), "{note}");
        assert_eq!(said("gpu_layers = 9", vec![card]), None);
        for table in ["", "gpu_layers = 0", "gpu_layers = 9\ndevice = \"cpu\""] {
            assert_eq!(said(table, Vec::new()), None, "{table}");
        }
    }

    #[test]
    fn the_default_is_what_the_model_was_trained_with_where_there_is_room() {
        assert_eq!(set_up_with("", "llama3.2:1b", 256 * GB), (4, 131_072));
        assert_eq!(set_up_with("parallel = 1", "qwen3:8b", 64 * GB), (1, 40_960));
    }

    #[test]
    fn less_memory_gives_fewer_answers_at_once_before_it_gives_a_context_too_short_for_tools() {
        let (parallel, context) = set_up_with("", "qwen3:4b", 12 * GB);
        assert!(parallel < 4 && context >= CONTEXT_TOKENS_ENOUGH, "{parallel} × {context}");
        let (parallel, context) = set_up_with("", "qwen3:8b", 8 * GB);
        assert!(parallel == 1 && (8_192..40_960).contains(&context), "{parallel} × {context}");
        let (parallel, context) = set_up_with("parallel = 4", "qwen3:8b", 8 * GB);
        assert!(parallel == 4 && context < 8_192, "{parallel} × {context}: as it is written");
    }

    #[test]
    fn a_draft_model_takes_memory_of_its_own() {
        let (machine, large, small) = (machine(16 * GB), model("qwen3:4b"), model("qwen3:0.6b"));
        let settings = chat_settings("parallel = 1\ncontext_tokens = 4096");
        let (_, alone) = set_up(&settings, &large, &machine).expect("a setup");
        let (setup, both) = set_up_both(&settings, (&large, &small), &machine).expect("a setup");
        let more = both.kept_bytes(Pool::Ram) - alone.kept_bytes(Pool::Ram);
        assert!(more > small.shape.weights.bytes(), "{more}: weights and cache");
        assert_eq!(setup.plan.context_tokens, 4_096);
        assert_eq!(both.decode, alone.decode);
    }

    #[test]
    fn a_draft_model_has_no_more_layers_on_a_card_than_its_model() {
        let machine = profile::builtin("rtx-4090").expect("a profile").machine;
        let (large, small) = (model("qwen3:4b"), model("qwen3:0.6b"));
        let on_card = |table: &str| {
            let settings = chat_settings(&format!("parallel = 1\ncontext_tokens = 4096\n{table}"));
            let (_, alone) = set_up(&settings, &large, &machine).expect("a setup");
            let both = set_up_both(&settings, (&large, &small), &machine).expect("a setup").1;
            [alone, both].map(|expected| expected.kept_bytes(Pool::Vram(0)))
        };
        assert_eq!(on_card("gpu_layers = 0"), [0, 0]);
        let [alone, both] = on_card("");
        assert!(alone > 0 && both > alone, "{both} > {alone}");
    }

    #[test]
    fn two_models_in_one_process_share_it_and_its_driver() {
        let machine = profile::builtin("rtx-4090").expect("a profile").machine;
        let (large, small) = (model("qwen3:4b"), model("qwen3:0.6b"));
        let settings = chat_settings("parallel = 1\ncontext_tokens = 4096");
        let (setup, alone) = set_up(&settings, &large, &machine).expect("a setup");
        let plan = ContextPlan { outputs_max: 1, ..setup.plan };
        let all = OffloadFlags { gpu_layers: Some(u32::MAX), cpu_moe_layers: None };
        let drafted = Setup::new(&machine, &small, plan, all).expect("a setup");
        let drafted = drafted.estimate(&machine, &small).expect("an estimate");
        let both = estimate_both(&setup, (&large, &small), &machine).expect("an estimate");
        let shared =
            |pool| alone.kept_bytes(pool) + drafted.kept_bytes(pool) - both.kept_bytes(pool);
        let driver = DriverBytes::of(&machine.gpus[0], &Engine::Hob.profile());
        assert_eq!(shared(Pool::Vram(0)), driver.on_card);
        assert!(driver.in_process > 0 && shared(Pool::Ram) > driver.in_process);
    }

    #[test]
    fn a_default_context_leaves_room_on_the_card_for_a_draft_model() {
        let machine = profile::builtin("rtx-4070-laptop").expect("a profile").machine;
        let (large, small) = (model("qwen3:4b"), model("qwen3:0.6b"));
        let settings = chat_settings("parallel = 1");
        let (alone, _) = set_up(&settings, &large, &machine).expect("a setup");
        let (setup, both) = set_up_both(&settings, (&large, &small), &machine).expect("a setup");
        assert!(both.fits(), "{:?}", both.uses);
        assert_eq!(setup.layout, alone.layout, "it stays on the card");
        let (short, long) = (setup.plan.context_tokens, alone.plan.context_tokens);
        assert!((CONTEXT_TOKENS_LAID_OUT..long).contains(&short), "{short} of {long}");
    }

    #[test]
    fn a_model_is_on_one_of_two_cards_only_if_a_context_long_enough_for_tools_fits_there() {
        let set_up_on = |free_bytes| {
            let mut machine = profile::builtin("rtx-4090").expect("a profile").machine;
            machine.gpus[0].memory = GpuMemory::Own { total_bytes: free_bytes, free_bytes };
            machine.gpus.push(machine.gpus[0].clone());
            for (gpu, name) in machine.gpus.iter_mut().zip(["CUDA0", "CUDA1"]) {
                gpu.engine_name = Some(name.to_owned());
            }
            let setup = set_up(&chat_settings(""), &model("qwen3:8b"), &machine);
            let setup = setup.expect("a setup").0;
            let context = setup.plan.context_tokens / setup.plan.sequences;
            assert!(context >= CONTEXT_TOKENS_ENOUGH, "{context}");
            (setup.plan.sequences, setup.device(&machine).map(str::to_owned))
        };
        assert_eq!(set_up_on(24 * GB), (4, Some("CUDA0".to_owned())));
        assert_eq!(set_up_on(12 * GB), (4, None));
    }

    #[test]
    fn a_default_context_leaves_half_of_the_rest_free() {
        let free = 40 * GB;
        let (machine, model) = (machine(free), model("llama3.1:8b"));
        let taken = |config: &str| {
            let setup = set_up(&chat_settings(config), &model, &machine);
            setup.expect("a setup").1.kept_bytes(Pool::Ram)
        };
        let least = taken("context_tokens = 256");
        let most = least + (free - least) / 2;
        let default = taken("");
        assert!(default <= most && default > most - GB, "{default} of {most}");
        assert!(
            taken("context_tokens = 131072") > free,
            "a wish is kept, and refused when it is loaded"
        );
    }

    #[test]
    fn a_model_without_any_room_keeps_a_short_context_to_be_refused_with() {
        assert_eq!(set_up_with("", "qwen3:8b", GB / 2), (1, CONTEXT_TOKENS_LAID_OUT));
    }
}
