//! Shapes whose parts are counted by hand, on machines whose figures are round.

mod classes;
mod launch;
mod prompts;

use super::*;
use crate::machine::{Constants, Cpu, Device, Fact, GpuApi, Kernel, Link, Memory, Vendor};
use crate::shape::{KvShape, LayerShape, Recurrence};
use crate::weights::{Part, Quant, Repack, WeightGroup, Weights};

const GB: u64 = 1_000_000_000;

fn fact(bytes_s: f64) -> Option<Fact<f64>> {
    Some(Fact { value: bytes_s, basis: Basis::Stated, source: "by hand".to_owned() })
}

/// A machine with 100 GB/s of RAM and no card.
fn bare(ram_gb: u64) -> Machine {
    let bytes = ram_gb * GB;
    Machine {
        cpu: Cpu {
            cores: 8,
            threads: 16,
            device: Device { bandwidth: fact(100e9), constants: None },
            ..Cpu::default()
        },
        memory: Memory { total_bytes: bytes, available_bytes: bytes },
        ..Machine::default()
    }
}

fn card(free_gb: f64) -> Gpu {
    let free_bytes = (free_gb * GB as f64) as u64;
    let memory = GpuMemory::Own { total_bytes: free_bytes, free_bytes };
    Gpu {
        compute_capability: Some((8, 9)),
        link: Some(Link { name: "PCIe 4.0 x8".to_owned(), bytes_s: 15e9, basis: Basis::Stated }),
        device: Device { bandwidth: fact(250e9), constants: None },
        ..Gpu::new("a card", Vendor::Nvidia, GpuApi::Cuda, memory)
    }
}

fn with_card(ram_gb: u64, vram_gb: f64) -> Machine {
    Machine { gpus: vec![card(vram_gb)], ..bare(ram_gb) }
}

fn group(layer: Option<u32>, part: Part, bytes: u64) -> WeightGroup {
    let quant = Quant("Q4_K");
    let elements = bytes * 16 / 9;
    WeightGroup { layer, part, quant, elements, bytes, in_eights_bytes: bytes, rows: 0 }
}

/// Ten layers of 400 MB each, an output of 200 MB, 8 KB a token in each layer.
fn dense() -> Model {
    let kv = KvShape { heads: 16, key_length: 128, value_length: 128 };
    let layer = LayerShape { heads: 16, kv: Some(kv), ..LayerShape::default() };
    let layers = (0..10).map(|layer| group(Some(layer), Part::Dense, 400_000_000));
    let outer =
        [group(None, Part::TokenEmbedding, 200_000_000), group(None, Part::Output, 200_000_000)];
    model(ModelShape {
        layers: vec![layer; 10],
        weights: Weights(layers.chain(outer).collect()),
        ..shape()
    })
}

/// The same with 300 MB of each layer in 100 experts, of which 10 are used.
fn experts() -> Model {
    let Model { shape, .. } = dense();
    let split = |group: &WeightGroup| match group.part {
        Part::Dense => vec![
            WeightGroup { bytes: 100_000_000, ..*group },
            WeightGroup { part: Part::Experts, bytes: 300_000_000, ..*group },
        ],
        _ => vec![*group],
    };
    let weights = Weights(shape.weights.0.iter().flat_map(split).collect());
    model(ModelShape { weights, experts: 100, experts_used: 10, ..shape })
}

fn shape() -> ModelShape {
    ModelShape {
        architecture: "llama".to_owned(),
        embedding_length: 2_048,
        feed_forward_length: 8_192,
        vocab_size: 100_000,
        trained_context_tokens: 131_072,
        ..ModelShape::default()
    }
}

fn model(shape: ModelShape) -> Model {
    Model {
        name: "model".to_owned(),
        format: Format::Gguf,
        quant: "Q4_K_M".to_owned(),
        shape,
        basis: Basis::Measured,
        location: Location::default(),
    }
}

fn options(context_tokens: u32) -> FitOptions {
    FitOptions {
        context_tokens: Some(context_tokens),
        engine: Some(Engine::LlamaCpp),
        ..FitOptions::default()
    }
}

fn planner<'a>(machine: &'a Machine, model: &'a Model, options: &'a FitOptions) -> Planner<'a> {
    let engine = Engine::LlamaCpp;
    Planner { machine, model, options, engine, profile: engine.profile() }
}

fn placements(machine: &Machine, model: &Model, options: &FitOptions) -> Vec<(Placement, bool)> {
    let assessed = assess(machine, model, options).expect("an answer");
    assessed.plans.iter().map(|plan| (plan.placement, plan.fits())).collect()
}

#[test]
fn a_model_lives_where_it_fits_and_is_fastest() {
    use Placement::{ExpertsOffloaded, Ram, Split, Vram};
    let rows: [(&str, Machine, Model, Placement); 5] = [
        ("all on the card", with_card(64, 8.0), dense(), Vram),
        ("no card", bare(64), dense(), Ram),
        ("not enough of the card", with_card(64, 4.0), dense(), Split { gpu_layers: 5 }),
        ("experts aside", with_card(64, 4.0), experts(), ExpertsOffloaded { layers: 8 }),
        ("a card that is full", with_card(64, 0.5), dense(), Ram),
    ];
    for (name, machine, model, expected) in rows {
        let found = placements(&machine, &model, &options(4_096));
        assert_eq!(found.first(), Some(&(expected, true)), "{name}: {found:?}");
    }
    let found = placements(&bare(4), &dense(), &options(4_096));
    assert_eq!(found, [(Ram, false)]);
}

#[test]
fn one_memory_is_counted_once() {
    let mut gpu = card(0.0);
    gpu.memory = GpuMemory::Unified { limit_bytes: 8 * GB };
    gpu.link = None;
    let machine = Machine { gpus: vec![gpu], ..bare(12) };
    let assessed = assess(&machine, &dense(), &options(4_096)).expect("an answer");
    let plan = assessed.best().expect("it fits");
    assert_eq!((plan.placement, plan.uses.len()), (Placement::Unified, 1));
    assert_eq!((plan.uses[0].pool, plan.uses[0].free_bytes), (Pool::Ram, 8 * GB));
}

#[test]
fn a_token_takes_what_it_reads() {
    let machine = with_card(64, 8.0);
    let model = dense();
    let layout = Layout::whole(&model.shape, ComputeSite::Gpu(0));
    let profile = Engine::LlamaCpp.profile();
    let kv = KvTypes::default();
    let estimate =
        SpeedEstimate { model: &model, machine: &machine, layout: &layout, kv, profile: &profile };
    // 4.2 GB at 83 % of 250 GB/s, ten layers of 43 µs; 80 KB a token at 63 %.
    let expected_ms = |context: f64| 4.2 / 207.5 * 1e3 + 0.43 + context * 81_920.0 / 157.5e9 * 1e3;
    for context in [512, 16_384] {
        let rate = estimate.decode(context).expect("known");
        let ms = 1e3 / rate.tok_s;
        assert!((ms / expected_ms(context.into()) - 1.0).abs() < 1e-6, "{context}: {ms}");
        assert!(rate.low < rate.tok_s && rate.tok_s < rate.high);
        assert_eq!(rate.basis, Basis::Prior);
    }
}

#[test]
fn staged_keys_are_read_three_times() {
    let machine = with_card(64, 8.0);
    let model = dense();
    let layout = Layout::whole(&model.shape, ComputeSite::Gpu(0));
    let profile = Engine::TabbyApi.profile();
    let kv = KvTypes::both(KvType::Q8_0);
    let estimate =
        SpeedEstimate { model: &model, machine: &machine, layout: &layout, kv, profile: &profile };
    let us =
        |rate: &Rate| rate.terms.iter().find(|(name, _)| name.contains("KV")).map(|(_, us)| *us);
    let staged = us(&estimate.decode(4_096).expect("known")).expect("a cache");
    let in_place = EngineProfile { copies_cache: false, ..profile };
    let in_place =
        us(&SpeedEstimate { profile: &in_place, ..estimate }.decode(4_096).expect("known"));
    let ratio = staged / in_place.expect("a cache");
    assert!((ratio - (1.0625 + 4.0) / 1.0625).abs() < 1e-9, "{ratio}");
}

#[test]
fn a_longer_context_never_needs_less_and_is_never_faster() {
    for machine in [bare(64), with_card(64, 8.0), with_card(64, 4.0)] {
        for model in [dense(), experts()] {
            let layout =
                Layout::split(&model.shape, 0, if machine.gpus.is_empty() { 0 } else { 5 });
            let mut before = (0, f64::INFINITY);
            for context in [256, 4_096, 40_000, 131_072] {
                let options = options(context);
                let planner = planner(&machine, &model, &options);
                let plan = planner.plan(layout.clone(), KvTypes::default()).expect("a plan");
                let needed = plan.uses.iter().map(|used| used.needed_bytes).sum::<u64>();
                let tok_s = plan.decode_requested.expect("known").tok_s;
                assert!(needed > before.0 && tok_s < before.1, "{context}");
                before = (needed, tok_s);
            }
        }
    }
}

#[test]
fn the_longest_context_fits_and_the_next_does_not() {
    let (machine, model, options) = (with_card(64, 6.5), dense(), options(4_096));
    let assessed = assess(&machine, &model, &options).expect("an answer");
    let plan = assessed.best().expect("it fits");
    let planner = planner(&machine, &model, &options);
    for (kv, longest) in &assessed.longest {
        let tokens = longest.context_tokens.expect("some");
        assert_eq!(longest.limit, ContextLimit::Memory(Pool::Vram(0)));
        assert!(planner.fits(&plan.layout, *kv, tokens).expect("suits"));
        assert!(!planner.fits(&plan.layout, *kv, tokens + 256).expect("suits"));
    }
    let tokens: Vec<_> =
        assessed.longest.iter().map(|(_, longest)| longest.context_tokens).collect();
    assert!(tokens.is_sorted() && tokens[0] < tokens[2], "{tokens:?}");
}

#[test]
fn formats_and_engines_that_do_not_go_together_are_named() {
    let exl3 = Model { format: Format::Exl3, ..dense() };
    let rows = [
        (bare(64), options(4_096), "llama.cpp does not read EXL3; tabbyAPI would"),
        (
            bare(64),
            FitOptions::default(),
            "tabbyAPI runs EXL3 on NVIDIA cards from compute capability 7.5, and this machine has no card",
        ),
    ];
    for (machine, options, expected) in rows {
        let error = assess(&machine, &exl3, &options).expect_err("no engine");
        assert_eq!(error.to_string(), expected);
    }
    let amd =
        Gpu { vendor: Vendor::Amd, api: GpuApi::Rocm, compute_capability: None, ..card(16.0) };
    let awq = Model { format: Format::Awq, ..dense() };
    let error = assess(&Machine { gpus: vec![amd], ..bare(64) }, &awq, &FitOptions::default());
    assert!(error.expect_err("no card of AMD").to_string().contains("this machine has a card"));
    assert!(assess(&with_card(64, 16.0), &awq, &FitOptions::default()).is_ok());
}

#[test]
fn surprising_plans_have_warnings() {
    let codes = |machine: &Machine, model: &Model, options: &FitOptions| {
        let assessed = assess(machine, model, options).expect("an answer");
        assessed.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>()
    };
    let mut recurrent = dense();
    recurrent.shape.layers[0].recurrence = Some(Recurrence::Matrix);
    let vulkan = Gpu { api: GpuApi::Vulkan, vendor: Vendor::Amd, ..card(8.0) };
    let vulkan = Machine { gpus: vec![vulkan], ..bare(64) };
    let unknown = Machine { cpu: Cpu::default(), ..bare(64) };
    let ollama = FitOptions { engine: Some(Engine::Ollama), ..options(8_192) };
    let floor = FitOptions { tok_s_min: Some(1e4), ..options(4_096) };
    let intel = Gpu { api: GpuApi::Vulkan, vendor: Vendor::Intel, ..card(8.0) };
    let intel = Machine { gpus: vec![intel], ..bare(64) };
    let rows: [(&Machine, &Model, &FitOptions, &[&str]); 8] = [
        (&with_card(64, 8.0), &dense(), &options(4_096), &[]),
        (&with_card(64, 8.0), &dense(), &options(500_000), &["longer_than_trained", "split"]),
        (&with_card(64, 8.0), &dense(), &ollama, &["context_cut"]),
        (&with_card(64, 4.0), &dense(), &options(4_096), &["split"]),
        (&vulkan, &recurrent, &options(4_096), &["missing_kernels"]),
        (&intel, &dense(), &options(4_096), &["guessed_speed"]),
        (&unknown, &dense(), &options(4_096), &["unknown_speed"]),
        (&with_card(64, 8.0), &dense(), &floor, &["too_slow"]),
    ];
    for (machine, model, options, expected) in rows {
        assert_eq!(codes(machine, model, options), expected);
    }
}

#[test]
fn a_prompt_is_bound_by_arithmetic_and_copies() {
    let machine = with_card(64, 8.0);
    let model = dense();
    let profile = Engine::LlamaCpp.profile();
    let kv = KvTypes::default();
    let on_card = Layout::whole(&model.shape, ComputeSite::Gpu(0));
    let estimate =
        SpeedEstimate { model: &model, machine: &machine, layout: &on_card, kv, profile: &profile };
    let rate = estimate.prefill(2_048).expect("known");
    // Four steps of 512 tokens, 2 operations a weight, at 110 × 250e9.
    let elements = 10.0 * 400e6 * 16.0 / 9.0;
    let steps_us = 4.0 * 2.0 * elements * 512.0 / (110.0 * 250e9) * 1e6;
    assert!((rate.terms[0].1 / steps_us - 1.0).abs() < 1e-3, "{:?} and {steps_us}", rate.terms);
    let split = Layout::split(&model.shape, 0, 5);
    let slower = SpeedEstimate { layout: &split, ..estimate }.prefill(2_048).expect("known");
    assert!(slower.tok_s < rate.tok_s);
    assert!(
        slower.terms.iter().any(|(name, _)| name.contains("PCIe 4.0 x8")),
        "{:?}",
        slower.terms
    );
}

#[test]
fn narrow_rows_take_cores_longer_than_their_bytes() {
    let seconds = |repack, rows_per_gb: u64, bandwidth_efficiency| {
        let constants = Constants {
            basis: Basis::Calibrated,
            bandwidth_efficiency,
            kv_bandwidth_efficiency: 0.4,
            layer_us: 0.0,
            recurrent_us: 0.0,
            experts_us: 0.0,
            token_us: 0.0,
            prefill_flops: None,
            kernels: vec![Kernel { quant: "Q4_K", bytes_s: 10e9, flop_s: None }],
            steadiness: 1.0,
        };
        let mut machine = bare(64);
        machine.cpu.repack = repack;
        machine.cpu.device.constants = Some(constants);
        let mut model = dense();
        for group in &mut model.shape.weights.0 {
            group.rows = group.bytes / 1_000_000 * rows_per_gb / 1_000;
        }
        let layout = Layout::whole(&model.shape, ComputeSite::Cpu);
        let profile = Engine::Hob.profile();
        let (kv, machine, model) = (KvTypes::default(), &machine, &model);
        let rate =
            SpeedEstimate { model, machine, layout: &layout, kv, profile: &profile }.decode(1);
        rate.expect("known").tok_s.recip()
    };
    // 4.2 GB in rows of 4,096, as kernels are timed: 1.78e9 numbers are 434,000 rows a GB.
    let wide = seconds(Repack::None, 434_000, 1.0);
    // Rows of an eighth of that: 3.04 million more in each GB, at 15 ns, on 8 cores.
    let narrow = seconds(Repack::None, 8 * 434_000, 1.0);
    let expected = 4.2 * 3.038e6 * 15e-9 / 8.0;
    assert!((narrow - wide - expected).abs() < 0.01 * expected, "{narrow} {wide} {expected}");
    let together = seconds(Repack::Avx2, 8 * 434_000, 1.0);
    assert!((together - wide - expected / 8.0).abs() < 0.01 * expected, "{together} {wide}");
    // Who waits for memory has the time.
    let waiting = [434_000, 8 * 434_000].map(|rows| seconds(Repack::None, rows, 0.2));
    assert_eq!(waiting[0], waiting[1]);
}

#[test]
fn constants_are_found_again_and_one_row_moves_the_bandwidth() {
    let truth = Constants {
        basis: Basis::Calibrated,
        bandwidth_efficiency: 0.55,
        kv_bandwidth_efficiency: 0.4,
        layer_us: 20.0,
        recurrent_us: 100.0,
        experts_us: 0.0,
        token_us: 0.0,
        prefill_flops: None,
        kernels: Vec::new(),
        steadiness: 1.0,
    };
    let mut known = with_card(64, 8.0);
    known.gpus[0].device.constants = Some(truth.clone());
    let unknown = with_card(64, 8.0);
    let mut small = dense();
    small.shape.weights.0.iter_mut().for_each(|group| group.bytes /= 20);
    let models = [dense(), small];
    let layouts = models.each_ref().map(|model| Layout::whole(&model.shape, ComputeSite::Gpu(0)));
    let profile = Engine::LlamaCpp.profile();
    let estimate = |machine, index: usize| SpeedEstimate {
        model: &models[index],
        machine,
        layout: &layouts[index],
        kv: KvTypes::default(),
        profile: &profile,
    };
    let timed = |index: usize, context_tokens: u32| TimedRun {
        estimate: estimate(&unknown, index),
        context_tokens,
        tok_s: estimate(&known, index).decode(context_tokens).expect("known").tok_s,
    };
    let rows = [timed(0, 512), timed(0, 65_536), timed(1, 512), timed(1, 65_536)];
    let found = fit_constants(&rows).expect("plausible");
    let near = |got: f64, expected: f64, share: f64| (got / expected - 1.0).abs() < share;
    assert!(near(found.bandwidth_efficiency, truth.bandwidth_efficiency, 0.04), "{found:?}");
    assert!(near(found.kv_bandwidth_efficiency, truth.kv_bandwidth_efficiency, 0.1), "{found:?}");
    // Layers are a small part of each of these rows, so that they move a little.
    assert!(found.layer_us > truth.layer_us && found.layer_us < 40.0, "{found:?}");
    let one = fit_constants(&rows[..1]).expect("plausible");
    assert!(near(one.bandwidth_efficiency, truth.bandwidth_efficiency, 0.02), "{one:?}");
    // If two runs contradict each other, neither is left out.
    let slowed = TimedRun { tok_s: 0.8 * rows[1].tok_s, ..rows[1] };
    let between = fit_constants(&[rows[0], slowed]).expect("plausible");
    for row in [rows[0], slowed] {
        let predicted = predicted_by(&row, &between).expect("known").tok_s;
        assert!(near(predicted, row.tok_s, 0.2), "{predicted} and {}", row.tok_s);
    }
    let slow = TimedRun { tok_s: 2.0, ..rows[0] };
    assert!(matches!(fit_constants(&[slow]), Err(Implausible::BandwidthEfficiency { .. })));
    assert_eq!(fit_constants(&[]), Err(Implausible::Nothing));
}

/// What four conversations of 4,096 tokens make of it.
fn set_up(machine: &Machine, model: &Model, told: OffloadFlags) -> Setup {
    let plan = ContextPlan { sequences: 4, outputs_max: 4, ..ContextPlan::single(4 * 4_096) };
    Setup::new(machine, model, plan, told).expect("a setup")
}

#[test]
fn a_model_that_is_set_up_takes_and_does_what_was_answered() {
    let rows =
        [(with_card(64, 8.0), dense()), (with_card(64, 4.0), experts()), (bare(64), dense())];
    for (machine, model) in rows {
        let kv = Some(KvTypes::default());
        let options = FitOptions { engine: Some(Engine::Hob), sequences: 4, kv, ..options(4_096) };
        let assessed = assess(&machine, &model, &options).expect("an answer");
        let best = assessed.best().expect("it fits");
        let setup = set_up(&machine, &model, OffloadFlags::default());
        let expected = setup.estimate(&machine, &model).expect("it suits");
        assert_eq!((&setup.layout, &expected.uses), (&best.layout, &best.uses));
        assert_eq!(expected.decode, best.decode_requested);
        assert!(expected.fits());
    }
}

#[test]
fn the_engine_s_flags_match_the_counted_layout() {
    let layers = |gpu_layers| OffloadFlags { gpu_layers: Some(gpu_layers), cpu_moe_layers: None };
    let machine = with_card(64, 8.0);
    for (count, on_card) in [(0, 0), (1, 200_000_000), (2, 600_000_000), (99, 4_200_000_000)] {
        let setup = set_up(&machine, &dense(), layers(count));
        assert_eq!(setup.layout.gpu_layers(), count.min(11));
        let expected = setup.estimate(&machine, &dense()).expect("it suits");
        let weights = |term: &&MemoryTerm| term.name == "weights" && term.pool == Pool::Vram(0);
        let found = expected.memory.iter().find(weights).map_or(0, |term| term.bytes);
        assert_eq!(found, on_card, "{count}");
    }
    let offloaded = OffloadFlags { gpu_layers: None, cpu_moe_layers: Some(3) };
    let setup = set_up(&machine, &experts(), offloaded);
    assert_eq!(setup.layout.placement(&machine), Placement::ExpertsOffloaded { layers: 3 });
    assert_eq!(setup.offload_flags(), OffloadFlags { gpu_layers: None, cpu_moe_layers: Some(3) });
    let too_many = OffloadFlags { gpu_layers: Some(99), cpu_moe_layers: Some(99) };
    assert_eq!(set_up(&machine, &experts(), too_many).layout.experts_in_ram, 10);
    assert_eq!(set_up(&machine, &dense(), too_many).layout.experts_in_ram, 0, "it has none");
    let nowhere = set_up(&bare(64), &dense(), layers(99));
    assert_eq!(nowhere.layout.placement(&bare(64)), Placement::Ram);
}

#[test]
fn a_context_is_as_long_as_the_fullest_memory_allows() {
    for machine in [with_card(64, 7.0), bare(6)] {
        let setup =
            set_up(&machine, &dense(), OffloadFlags { gpu_layers: Some(99), cpu_moe_layers: None });
        let wished = Setup { plan: ContextPlan { context_tokens: 80_000, ..setup.plan }, ..setup };
        assert!(!wished.estimate(&machine, &dense()).expect("it suits").fits());
        let short = wished
            .with_longest_context(&machine, &dense())
            .expect("it suits")
            .expect("there is room");
        let of = |context_tokens| Setup {
            plan: ContextPlan { context_tokens, ..short.plan },
            ..short.clone()
        };
        let fits = |setup: Setup| setup.estimate(&machine, &dense()).expect("it suits").fits();
        assert!((1_024..80_000).contains(&short.plan.context_tokens), "{:?}", short.plan);
        assert!(fits(short.clone()) && !fits(of(short.plan.context_tokens + 1_024)));
    }
    let full = set_up(&bare(3), &dense(), OffloadFlags::default());
    assert_eq!(full.with_longest_context(&bare(3), &dense()), Ok(None));
}

#[test]
fn each_engine_s_flags_name_the_model() {
    let said = |location: Location| {
        let model = Model { location, ..dense() };
        let assessed = assess(&bare(64), &model, &options(4_096)).expect("an answer");
        let told = flags(&bare(64), &model, &assessed.plans[0], 1);
        told.into_iter().map(|flags| flags.text).collect::<Vec<_>>().join("\n")
    };
    let (file, quoted) = ("/models/my model.gguf", "-m '/models/my model.gguf'");
    let own = || file.to_owned();
    let repo = || "owner/name".to_owned();
    let hub = |quant| Location::Hub { repo: repo(), revision: None, file: None, quant };
    let (revision, path) = (|| Some("v2".to_owned()), || Some("x.gguf".to_owned()));
    let branch = Location::Hub { repo: repo(), revision: revision(), file: None, quant: None };
    let of_hub = Location::Hub { repo: repo(), revision: None, file: path(), quant: None };
    let of_branch = Location::Hub { repo: repo(), revision: revision(), file: path(), quant: None };
    let tag = Location::Ollama { tag: "model:8b".to_owned(), file: None };
    let catalog = Location::Catalog { name: "model:8b".to_owned(), repo: repo() };
    let (usual, low) = ("owner/name:Q4_K_M", "owner/name:UD-Q2");
    let (of_usual, of_low) = ("-hf owner/name:Q4_K_M", "-hf owner/name:UD-Q2");
    let (unknown, of_unknown) = ("model-Q4_K_M.gguf", "-m model-Q4_K_M.gguf");
    let rows = [
        (Location::File(own()), file, quoted, file),
        (Location::Installed(own()), "model", quoted, file),
        (hub(None), usual, of_usual, "hf.co/owner/name:Q4_K_M"),
        (hub(Some("UD-Q2".to_owned())), low, of_low, "hf.co/owner/name:UD-Q2"),
        (branch, "owner/name@v2:Q4_K_M", of_unknown, unknown),
        (of_hub, "hf:owner/name/x.gguf", "-hf owner/name -hff x.gguf", "hf.co/owner/name:x.gguf"),
        (of_branch, "hf:owner/name/x.gguf@v2", "-m x.gguf", "x.gguf"),
        (tag, "model:8b", of_unknown, "model:8b"),
        (catalog, "model:8b", of_usual, "hf.co/owner/name:Q4_K_M"),
        (Location::Unknown, unknown, of_unknown, unknown),
    ];
    for (location, model, llama, from) in rows {
        let is_named =
            matches!(location, Location::File(_) | Location::Installed(_) | Location::Unknown);
        let first = if is_named { String::new() } else { format!("# first: hob pull {model}\n") };
        let expected = [
            format!("{first}[chat]\nmodel = \"{model}\"\n"),
            format!("llama-server {llama} "),
            format!("FROM {from}\n"),
        ];
        let text = said(location);
        assert!(expected.iter().all(|part| text.contains(part)), "{expected:?}: {text}");
    }
}

/// The same model, stored in so many times the bytes.
fn stored(quant: &str, times: u64) -> Model {
    let Model { shape, .. } = dense();
    let scaled = |group: &WeightGroup| WeightGroup { bytes: group.bytes * times / 4, ..*group };
    let weights = Weights(shape.weights.0.iter().map(scaled).collect());
    Model { quant: quant.to_owned(), ..model(ModelShape { weights, ..shape }) }
}

#[test]
fn alternatives_are_faster_longer_or_better_and_fit() {
    let variants = [stored("Q8_0", 8), stored("Q4_K_M", 4), stored("Q2_K", 2)];
    let asked = |machine: &Machine, context, tok_s_min| {
        let (model, options) = (stored("Q6_K", 6), FitOptions { tok_s_min, ..options(context) });
        let assessed = assess(machine, &model, &options).expect("an answer");
        let said = alternatives(machine, &model, &variants, &options, &assessed);
        let named = said.iter().map(|Alternative { toward, quant, plan }| {
            format!("{} {quant} {} {}", toward.name(), plan.kv.keys, plan.placement)
        });
        assert!(said.iter().all(|one| one.plan.fits()));
        named.collect::<Vec<_>>()
    };
    // Where all of it lies on the card, fewer bytes are faster and more are better.
    let room = with_card(64, 24.0);
    assert_eq!(asked(&room, 4_096, None), ["faster Q4_K_M q8_0 VRAM", "better Q8_0 f16 VRAM"]);
    let quick = ["faster Q4_K_M q8_0 VRAM"];
    assert_eq!(asked(&room, 4_096, Some(25.0)), quick, "more bits would be too slow");
    // Where nothing good fits, what does is named once.
    assert_eq!(asked(&bare(4), 4_096, None), ["fits Q2_K f16 RAM"]);
    assert_eq!(asked(&bare(2), 4_096, None), Vec::<String>::new());
}

#[test]
fn a_vision_tower_does_not_make_few_bits_good() {
    let with_tower = |quant: &str, times: u64| {
        let mut model = stored(quant, times);
        let tower = WeightGroup { elements: 2 * GB, ..group(None, Part::Tower, 4 * GB) };
        model.shape.weights.0.push(tower);
        model
    };
    let (model, machine, options) = (with_tower("Q4_K_M", 4), with_card(64, 24.0), options(4_096));
    let assessed = assess(&machine, &model, &options).expect("an answer");
    let said = alternatives(&machine, &model, &[with_tower("Q2_K", 2)], &options, &assessed);
    assert!(said.iter().all(|one| one.quant != "Q2_K"), "{said:?}");
}

#[test]
fn several_cards_share_the_layers_by_what_is_free() {
    let machine = Machine { gpus: vec![card(6.0), card(3.0)], ..bare(64) };
    let homes = |gpu_layers| {
        let setup = set_up(&machine, &dense(), OffloadFlags { gpu_layers, cpu_moe_layers: None });
        let on = |site| setup.layout.homes.iter().filter(|home| **home == site).count();
        let shares = [ComputeSite::Cpu, ComputeSite::Gpu(0), ComputeSite::Gpu(1)].map(on);
        (shares, setup.layout.output, setup.offload_flags().gpu_layers)
    };
    // The output counts as a layer of the second card.
    assert_eq!(homes(Some(99)), ([0, 8, 2], ComputeSite::Gpu(1), None));
    assert_eq!(homes(Some(7)), ([4, 5, 1], ComputeSite::Gpu(1), Some(7)));
    assert_eq!(homes(Some(0)), ([10, 0, 0], ComputeSite::Cpu, Some(0)));
    let (shares, ..) = homes(None);
    assert!(shares[1] > shares[2] && shares[2] > 0, "as many as fit: {shares:?}");
}

#[test]
fn a_card_with_less_room_than_a_layer_has_no_layer_and_not_the_output() {
    let machine = Machine { gpus: vec![card(24.0), card(0.5)], ..bare(64) };
    let flags = OffloadFlags::default();
    assert_eq!(
        set_up(&machine, &dense(), flags).layout,
        Layout::whole(&dense().shape, ComputeSite::Gpu(0))
    );
}
