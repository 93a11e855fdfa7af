//! Timings of machines with known constants: the fit must return these constants.
//! Timings of busy machines must be rejected.

use super::*;
use hob_machine::profile;
use hob_models::{QuantMix, known};

const THREADS: u32 = 8;

fn memory(most: f64, median: f64) -> Measured {
    Measured {
        most,
        median,
        passes: 12,
        threads: 8,
        buffer_bytes: 1 << 30,
        stolen_share: None,
        waiting_percent: None,
    }
}

fn kernel(quant: &str, threads: u32, bytes_s: f64) -> EngineTiming {
    EngineTiming::Kernel {
        quant: quant.to_owned(),
        threads,
        bytes_s,
        median_bytes_s: 0.95 * bytes_s,
    }
}

/// 3 GB/s a core of `Q4_K`, 8 of `Q6_K` and `F16`, of which all cores together get 54.
fn kernels() -> Vec<EngineTiming> {
    let both = [("Q4_K", 3e9, 24e9), ("Q6_K", 8e9, 54e9), ("F16", 8e9, 54e9)];
    let timed = both.map(|(quant, one, all)| [kernel(quant, THREADS, all), kernel(quant, 1, one)]);
    let prompts = [("Q4_K", 400e9), ("Q6_K", 160e9)];
    let prompts = prompts.map(|(quant, flop_s)| EngineTiming::Prompt {
        quant: quant.to_owned(),
        threads: THREADS,
        flop_s,
    });
    timed.into_iter().flatten().chain(prompts).collect()
}

/// The constants of these kernels.
fn of_core() -> Vec<Kernel> {
    let all = [("Q4_K", 3e9, Some(50e9)), ("Q6_K", 8e9, Some(20e9)), ("F16", 8e9, None)];
    all.map(|(quant, bytes_s, flop_s)| Kernel { quant, bytes_s, flop_s }).to_vec()
}

fn model(name: &str) -> Model {
    let (known, context_tokens) = known::find(name).expect("a known model");
    let mix = QuantMix::named("Q4_K_M").expect("a quant");
    known.model(mix, context_tokens).expect("a model")
}

/// A machine of 90 GB/s that reaches 60 % of it, and whose layers take 60 µs.
fn truth() -> Machine {
    let mut machine = profile::builtin("ddr5-desktop").expect("a profile").machine;
    machine.cpu.device.bandwidth =
        Some(Fact { value: 90e9, basis: Basis::Measured, source: "a copy".to_owned() });
    machine.cpu.device.constants = Some(Constants {
        basis: Basis::Calibrated,
        bandwidth_efficiency: 0.6,
        kv_bandwidth_efficiency: 0.6,
        layer_us: 60.0,
        recurrent_us: 0.0,
        experts_us: 0.0,
        token_us: 0.0,
        prefill_flops: None,
        kernels: of_core(),
        steadiness: 1.0,
    });
    machine
}

fn rates(machine: &Machine, model: &Model, slowed: f64) -> Vec<EngineTiming> {
    rates_on(ComputeSite::Cpu, machine, model, slowed)
}

fn rates_on(site: ComputeSite, machine: &Machine, model: &Model, slowed: f64) -> Vec<EngineTiming> {
    let profile = Engine::Hob.profile();
    let layout = Layout::whole(&model.shape, site);
    let estimate = SpeedEstimate {
        model,
        machine,
        layout: &layout,
        kv: KvTypes::default(),
        profile: &profile,
    };
    let of = |context_tokens| {
        let tok_s = estimate.decode(context_tokens).expect("a rate").tok_s;
        let median_tok_s = slowed * tok_s;
        EngineTiming::Decode { context_tokens, threads: THREADS, tok_s, median_tok_s }
    };
    let prefill = estimate.prefill(512);
    let prefill =
        prefill.map(|rate| EngineTiming::Prefill { prompt_tokens: 512, tok_s: rate.tok_s });
    [of(64), of(4_096)].into_iter().chain(prefill).collect()
}

#[test]
fn a_card_is_fitted_to_the_models_that_were_timed_on_it() {
    let known = profile::builtin("rtx-3090").expect("a profile");
    let mut truth = known.machine.clone();
    let usual = constants(&truth, ComputeSite::Gpu(0));
    let expected = Constants {
        bandwidth_efficiency: 0.8 * usual.bandwidth_efficiency,
        prefill_flops: usual.prefill_flops.map(|flops| 1.3 * flops),
        ..usual.clone()
    };
    truth.gpus[0].device.constants = Some(expected.clone());
    let mut figures = CalibrationFigures::new(memory(60e9, 59e9), kernels(), THREADS);
    for name in ["qwen3:0.6b", "qwen3:8b"] {
        let model = model(name);
        let rates = rates_on(ComputeSite::Gpu(0), &truth, &model, 0.98);
        figures.add(ComputeSite::Gpu(0), model, rates);
    }
    let (fitted, checked) = figures.fitted(&known).expect("plausible");
    let got = fitted.machine.gpus[0].device.constants.clone().expect("constants");
    let ratio = |got: f64, expected: f64| got / expected;
    let flops = ratio(got.prefill_flops.expect("known"), expected.prefill_flops.expect("known"));
    assert!((flops - 1.0).abs() < 0.02, "{flops}");
    let reach = ratio(got.bandwidth_efficiency, expected.bandwidth_efficiency);
    assert!((reach - 1.0).abs() < 0.05, "{reach}");
    assert_eq!(got.basis, Basis::Calibrated);
    assert_eq!(checked.len(), 4);
    for row in &checked {
        assert_eq!(row.device, "GPU 0");
        assert!((row.predicted / row.timed - 1.0).abs() < 0.05, "{row:?}");
        assert!((row.before / row.timed - 1.0).abs() > 0.05, "{row:?}");
    }
    assert!(!figures.has_model_on(ComputeSite::Cpu) && figures.has_model_on(ComputeSite::Gpu(0)));
    let cpu = fitted.machine.cpu.device.constants.expect("constants of the kernels");
    assert_eq!(cpu.basis, Basis::Prior);
}

fn known_machine() -> MachineFacts {
    let mut known = profile::builtin("ddr5-desktop").expect("a profile");
    known.set_bandwidth(memory(90e9, 85e9).fact());
    known
}

#[test]
fn the_fit_returns_the_true_constants() {
    let mut figures = CalibrationFigures::new(memory(90e9, 85e9), kernels(), THREADS);
    for (name, slowed) in [("qwen3:0.6b", 0.9), ("qwen3:8b", 0.97)] {
        let model = model(name);
        let rates = rates(&truth(), &model, slowed);
        figures.add(ComputeSite::Cpu, model, rates);
    }
    let (known, checked) = figures.fitted(&known_machine()).expect("plausible");
    let constants = known.machine.cpu.device.constants.expect("constants");
    assert_eq!((constants.basis, constants.prefill_flops), (Basis::Calibrated, Some(400e9)));
    assert_eq!(constants.steadiness, 0.9);
    for (got, expected) in constants.kernels.iter().zip(of_core()) {
        // Models move all of them a little together.
        assert!((got.bytes_s / expected.bytes_s - 1.0).abs() < 0.01, "{got:?}");
        assert_eq!(Kernel { bytes_s: expected.bytes_s, ..*got }, expected);
    }
    assert_eq!(checked.len(), 4);
    for row in &checked {
        assert!((row.predicted / row.timed - 1.0).abs() < 0.05, "{row:?}");
    }
    assert_eq!(figures.doubts(&checked), [""; 0]);
}

#[test]
fn kernels_that_were_timed_while_the_machine_was_slower_spoil_no_context() {
    let slower = kernels().into_iter().map(|timed| match timed {
        EngineTiming::Kernel { quant, threads, bytes_s, .. } => {
            kernel(&quant, threads, 0.75 * bytes_s)
        }
        other => other,
    });
    let mut figures = CalibrationFigures::new(memory(90e9, 85e9), slower.collect(), THREADS);
    let model = model("qwen3:0.6b");
    let rates = rates(&truth(), &model, 1.0);
    figures.add(ComputeSite::Cpu, model, rates);
    let (_, checked) = figures.fitted(&known_machine()).expect("plausible");
    for row in &checked {
        assert!((row.predicted / row.timed - 1.0).abs() < 0.08, "{row:?}");
    }
    assert_eq!(checked.len(), 2);
}

#[test]
fn kernels_alone_say_what_is_reached_and_no_more() {
    let figures = CalibrationFigures::new(memory(40e9, 39e9), kernels(), THREADS);
    let (known, checked) = figures.fitted(&known_machine()).expect("plausible");
    assert!(checked.is_empty());
    let device = known.machine.cpu.device;
    let constants = device.constants.expect("constants");
    assert_eq!((constants.basis, constants.bandwidth_efficiency), (Basis::Prior, 0.6));
    let slow = CalibrationFigures::new(memory(40e9, 39e9), Vec::new(), THREADS);
    assert_eq!(slow.fitted(&known_machine()).expect_err("nothing"), Implausible::Nothing);
}

#[test]
fn memory_is_as_fast_as_the_fastest_kernel_at_least() {
    let figures = CalibrationFigures::new(memory(40e9, 39e9), kernels(), THREADS);
    let mut slow = known_machine();
    slow.set_bandwidth(memory(40e9, 39e9).fact());
    let (known, _) = figures.fitted(&slow).expect("plausible");
    assert_eq!(known.machine.cpu.device.bandwidth.map(|fact| fact.value), Some(54e9));
    assert_eq!(
        known.machine.cpu.device.constants.map(|constants| constants.bandwidth_efficiency),
        Some(1.0)
    );
}

#[test]
fn a_busy_machine_is_doubted() {
    let disturbed = kernels().into_iter().map(|timed| match timed {
        EngineTiming::Kernel { quant, threads, bytes_s, .. } => {
            EngineTiming::Kernel { quant, threads, bytes_s, median_bytes_s: 0.5 * bytes_s }
        }
        other => other,
    });
    let small = model("qwen3:0.6b");
    let uneven = rates(&truth(), &small, 0.5);
    let mut apart = CalibrationFigures::new(memory(90e9, 85e9), kernels(), THREADS);
    apart.add(ComputeSite::Cpu, small, uneven);
    let beside_others = vec![kernel("Q8_0", THREADS, 5e9), kernel("Q8_0", 1, 8e9)];
    let rows = [
        (CalibrationFigures::new(memory(90e9, 40e9), kernels(), THREADS), "copies of memory"),
        (
            CalibrationFigures::new(memory(90e9, 85e9), disturbed.collect(), THREADS),
            "3 of 3 kernels",
        ),
        (apart, "runs differ too much"),
        (CalibrationFigures::new(memory(90e9, 85e9), beside_others, THREADS), "1 of 1 kernels"),
    ];
    for (figures, expected) in rows {
        let doubts = figures.doubts(&[]);
        assert!(doubts.iter().any(|doubt| doubt.contains(expected)), "{doubts:?}");
    }
    let checked = |predicted: f64| Checked {
        model: "a model".to_owned(),
        device: "CPU".to_owned(),
        context_tokens: 64,
        timed: 10.0,
        predicted,
        before: 10.5,
    };
    let quiet = CalibrationFigures::new(memory(90e9, 85e9), kernels(), THREADS);
    assert!(quiet.doubts(&[checked(20.0)])[0].contains("worse"));
    // The prior happened to fit better, but the calibration is good too.
    assert_eq!(quiet.doubts(&[checked(10.8)]), [""; 0]);
}
