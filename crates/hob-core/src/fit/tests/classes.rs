//! What differs by class of device and kind of model: priors, ranges, pairs of types, doubts.

use super::*;

#[test]
fn a_layer_of_experts_costs_more_than_reading_its_bytes() {
    let machine = with_card(64, 8.0);
    let model = experts();
    let layout = Layout::whole(&model.shape, ComputeSite::Gpu(0));
    let profile = Engine::LlamaCpp.profile();
    let kv = KvTypes::default();
    let estimate =
        SpeedEstimate { model: &model, machine: &machine, layout: &layout, kv, profile: &profile };
    let rate = estimate.decode(512).expect("known");
    let layers = rate.terms.iter().find(|(name, _)| name == "layers, GPU 0").map(|(_, us)| *us);
    // Ten layers of 43 µs, and 45 µs for the experts of each.
    assert!((layers.expect("a term") - 10.0 * (43.0 + 45.0)).abs() < 1e-6, "{rate:?}");
}

#[test]
fn a_class_of_device_has_its_own_prior_and_range() {
    let gpu_class = |name: &str, api, vendor, capability: Option<(u32, u32)>, is_unified: bool| {
        let memory = match is_unified {
            true => GpuMemory::Unified { limit_bytes: 64 * GB },
            false => GpuMemory::Own { total_bytes: 64 * GB, free_bytes: 64 * GB },
        };
        let compute_capability = capability;
        let name = name.to_owned();
        let gpu = Gpu { name, api, vendor, compute_capability, memory, ..card(64.0) };
        let machine = Machine { gpus: vec![gpu], ..bare(64) };
        let model = dense();
        let layout = Layout::whole(&model.shape, ComputeSite::Gpu(0));
        let profile = Engine::LlamaCpp.profile();
        let kv = KvTypes::default();
        let estimate = SpeedEstimate {
            model: &model,
            machine: &machine,
            layout: &layout,
            kv,
            profile: &profile,
        };
        let rate = estimate.decode(512).expect("known");
        (rate.tok_s, rate.high / rate.tok_s, rate.basis)
    };
    let cuda = gpu_class("RTX 4090", GpuApi::Cuda, Vendor::Nvidia, Some((8, 9)), false);
    let pascal = gpu_class("GTX 1080", GpuApi::Cuda, Vendor::Nvidia, Some((6, 1)), false);
    assert!(pascal.0 < 0.6 * cuda.0 && pascal.1 > cuda.1, "{pascal:?} {cuda:?}");
    let small = gpu_class("Apple M4 Pro", GpuApi::Metal, Vendor::Apple, None, true);
    let old = gpu_class("Apple M2 Ultra", GpuApi::Metal, Vendor::Apple, None, true);
    let new = gpu_class("Apple M4 Max", GpuApi::Metal, Vendor::Apple, None, true);
    assert!(old.0 < new.0 && old.1 > small.1, "{old:?} {new:?} {small:?}");
    let vega = gpu_class("Radeon Vega 8", GpuApi::Vulkan, Vendor::Amd, None, true);
    let halo = gpu_class("Radeon 8060S", GpuApi::Vulkan, Vendor::Amd, None, true);
    assert!(vega.0 < halo.0 && halo.2 == Basis::Prior, "{vega:?} {halo:?}");
    let never = gpu_class("Arc B580", GpuApi::Vulkan, Vendor::Intel, None, false);
    assert_eq!((never.1, never.2), (1.5, Basis::Assumed));
}

/// Latent attention keeps no values apart, so that keys and values have one type: pairs that differ are not for it.
#[test]
fn a_pair_that_does_not_suit_leaves_the_others() {
    let mut latent = dense();
    for layer in &mut latent.shape.layers {
        layer.kv = Some(KvShape { heads: 1, key_length: 576, value_length: 0 });
    }
    let assessed = assess(&bare(64), &latent, &options(4_096)).expect("an answer");
    assert_eq!(assessed.best().map(|plan| plan.kv), Some(KvTypes::default()));
    let asked = FitOptions {
        kv: Some(KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 }),
        ..options(4_096)
    };
    let error = assess(&bare(64), &latent, &asked).expect_err("these were asked for");
    assert!(error.to_string().contains("q8_0"), "{error}");
}

#[test]
fn a_model_too_large_for_two_cards_is_divided_over_both_as_it_is_loaded() {
    let machine = Machine { gpus: vec![card(4.0), card(4.0)], ..bare(64) };
    let engine = Some(Engine::Hob);
    let asked = FitOptions { engine, kv: Some(KvTypes::default()), ..options(4_096) };
    for model in [dense(), experts()] {
        let assessed = assess(&machine, &model, &asked).expect("an answer");
        let best = assessed.best().expect("it fits");
        // One card alone would hold five.
        assert_eq!(best.placement, Placement::Split { gpu_layers: 9 });
        assert_eq!(best.place, "split, 9 layers on GPU 0 and GPU 1");
        let warned = assessed.warnings.iter().find(|warning| warning.code == "split");
        assert!(warned.is_some_and(|warning| warning.text.contains("are on the cards, ")));
        let mut places: Vec<&str> = assessed.plans.iter().map(|plan| &*plan.place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), assessed.plans.len(), "{places:?}");
        let plan = ContextPlan::single(4_096);
        let loaded = Setup::new(&machine, &model, plan, OffloadFlags::default());
        assert_eq!(loaded.expect("a setup").layout, best.layout);
    }
}

#[test]
fn a_model_is_loaded_where_it_is_ranked_first_if_the_engine_s_name_of_that_card_is_known() {
    let kv = Some(KvTypes::default());
    let asked = FitOptions { engine: Some(Engine::Hob), kv, ..options(4_096) };
    let rows = [
        ([8.0, 24.0], true, "VRAM of GPU 0", Some("CUDA0")),
        ([4.0, 8.0], true, "VRAM of GPU 1", Some("CUDA1")),
        ([5.0, 5.0], true, "VRAM of GPU 0 and GPU 1", None),
        // The engine would divide it.
        ([4.0, 8.0], false, "VRAM of GPU 1", None),
    ];
    for (free_gb, is_named, place, device) in rows {
        let named = |number: usize| is_named.then(|| format!("CUDA{number}"));
        let gpus = free_gb.into_iter().enumerate();
        let gpus = gpus.map(|(number, gb)| Gpu { engine_name: named(number), ..card(gb) });
        let machine = Machine { gpus: gpus.collect(), ..bare(64) };
        let best = assess(&machine, &dense(), &asked).expect("an answer").plans.remove(0);
        let plan = ContextPlan::single(4_096);
        let setup = Setup::new(&machine, &dense(), plan, OffloadFlags::default());
        let setup = setup.expect("a setup");
        assert_eq!((&*best.place, setup.device(&machine)), (place, device), "{free_gb:?}");
        assert_eq!(setup.layout == best.layout, is_named, "{:?}", setup.layout);
        assert_eq!(setup.of_second(&machine, &dense()).layout, setup.layout, "{free_gb:?}");
    }
}

#[test]
fn layers_are_not_divided_between_a_card_and_graphics_in_the_processor() {
    let inside = Gpu { is_in_processor: true, link: None, ..card(96.0) };
    let machine = Machine { gpus: vec![card(4.0), inside], ..bare(64) };
    let asked = FitOptions { engine: Some(Engine::Hob), ..options(4_096) };
    let assessed = assess(&machine, &dense(), &asked).expect("an answer");
    for plan in assessed.plans {
        let sites = plan.layout.sites();
        let cards = sites.iter().filter(|site| **site != ComputeSite::Cpu);
        assert!(cards.count() < 2, "{sites:?}");
    }
}

#[test]
fn no_answer_names_types_that_its_engine_does_not_take() {
    let apart = KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 };
    // The system's memory is too small for the model.
    let (machine, model) = (with_card(2, 6.5), dense());
    let asked = |engine, kv| FitOptions { engine, kv, ..options(4_096) };
    let (ollama, llama) = (Some(Engine::Ollama), Some(Engine::LlamaCpp));
    for (engine, is_named) in [(None, false), (ollama, false), (llama, true)] {
        let options = asked(engine, None);
        let assessed = assess(&machine, &model, &options).expect("an answer");
        let listed = assessed.longest.iter().any(|(kv, _)| *kv == apart);
        let others = alternatives(&machine, &model, &[], &options, &assessed);
        let longer = others.iter().find(|one| one.toward == Toward::Longer);
        let chosen = longer.expect("a smaller cache").plan.kv == apart;
        assert_eq!((listed, chosen), (is_named, is_named), "{engine:?}");
    }
    let coarse = [(None, "--kv q8_0"), (llama, "--kv q8_0/q4_0")];
    for (engine, helps) in coarse {
        let asked = asked(engine, Some(KvTypes::both(KvType::Q4_0)));
        let warned = assess(&machine, &model, &asked).expect("an answer").warnings;
        let action = warned.iter().find(|one| one.code == "coarse_keys").map(|one| &*one.action);
        assert_eq!(action, Some(helps), "{engine:?}");
    }
    let two = asked(Some(Engine::Hob), Some(apart));
    let error = assess(&machine, &model, &two).expect_err("hob has one type").to_string();
    assert!(error.starts_with("hob keeps keys and values in one type: both must be "), "{error}");
}

#[test]
fn the_speed_of_a_processor_without_avx2_is_a_guess() {
    let rows: [(&[&str], bool); 4] =
        [(&["avx", "f16c"], true), (&["avx", "avx2"], false), (&["neon"], false), (&[], false)];
    for (features, expected) in rows {
        let mut machine = bare(64);
        machine.cpu.features = features.iter().map(|feature| (*feature).to_owned()).collect();
        let assessed = assess(&machine, &dense(), &options(4_096)).expect("an answer");
        let is_guess = assessed.warnings.iter().any(|warning| warning.code == "guessed_speed");
        assert_eq!(is_guess, expected, "{features:?}");
    }
}

/// Graphics that share a processor's memory, and were measured slower than the processor is guessed to be.
#[test]
fn an_unmeasured_processor_is_doubted_if_its_graphics_are_slower() {
    let mut gpu = Gpu { vendor: Vendor::Amd, api: GpuApi::Vulkan, link: None, ..card(0.0) };
    gpu.memory = GpuMemory::Unified { limit_bytes: 60 * GB };
    gpu.device.constants = Some(Constants {
        bandwidth_efficiency: 0.2,
        ..of_gpu(&Gpu { name: "Radeon Vega 8".to_owned(), ..gpu.clone() })
    });
    gpu.device.bandwidth = fact(100e9);
    let mut machine = Machine { gpus: vec![gpu], ..bare(64) };
    let codes = |machine: &Machine| {
        let assessed = assess(machine, &dense(), &options(4_096)).expect("an answer");
        assert_eq!(assessed.plans[0].placement, Placement::Ram);
        assessed.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>()
    };
    assert!(codes(&machine).contains(&"unmeasured_processor"));
    let calibrated = constants(&machine, ComputeSite::Cpu);
    machine.cpu.device.constants = Some(calibrated);
    assert!(!codes(&machine).contains(&"unmeasured_processor"));
}

#[test]
fn a_driver_takes_memory_on_its_card_and_in_the_process() {
    let taken = |machine: &Machine, site: ComputeSite| -> u64 {
        let model = dense();
        let layout = Layout::whole(&model.shape, site);
        let profile = Engine::Hob.profile();
        let plan = ContextPlan::single(4_096);
        let terms = terms(&model, machine, &layout, &plan, &profile).expect("it suits");
        let of_process = terms.iter().filter(|term| term.name == "process and vocabulary");
        of_process.map(|term| term.bytes).sum()
    };
    let mut vulkan = with_card(64, 8.0);
    vulkan.gpus[0].api = GpuApi::Vulkan;
    let alone = taken(&bare(64), ComputeSite::Cpu);
    // A card that is not used takes nothing.
    assert_eq!(taken(&with_card(64, 8.0), ComputeSite::Cpu), alone);
    assert_eq!(taken(&vulkan, ComputeSite::Gpu(0)), alone + (400 << 20));
    assert_eq!(taken(&with_card(64, 8.0), ComputeSite::Gpu(0)), alone + (400 << 20) + 420_000_000);
    assert_eq!(taken(&with_card(64, 85.0), ComputeSite::Gpu(0)), alone + (620 << 20) + 420_000_000);
}

#[test]
fn a_vision_tower_takes_memory_where_it_is_loaded_and_no_time() {
    let machine = with_card(64, 24.0);
    let mut seeing = dense();
    let tower = WeightGroup { elements: 2 * GB, ..group(None, Part::Tower, 4 * GB) };
    seeing.shape.weights.0.push(tower);
    for (engine, tower_bytes) in [(Engine::Hob, 0), (Engine::LlamaCpp, 4 * GB)] {
        let options = FitOptions { engine: Some(engine), ..options(4_096) };
        let found = |model: &Model| {
            let assessed = assess(&machine, model, &options).expect("an answer");
            let plan = assessed.best().expect("a plan");
            let warns = warnings(&machine, model, &options, plan);
            let bytes: u64 = plan.memory.iter().map(|term| term.bytes).sum();
            let tok_s = plan.decode_requested.as_ref().map(|rate| rate.tok_s);
            (bytes, tok_s, warns.iter().any(|warning| warning.code == "tower"))
        };
        let (blind, seeing) = (found(&dense()), found(&seeing));
        assert_eq!(seeing.0, blind.0 + tower_bytes, "{engine:?}");
        assert_eq!((seeing.1, seeing.2), (blind.1, tower_bytes > 0), "{engine:?}");
    }
}
