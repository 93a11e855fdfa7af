//! How fast prompts are read: by cores that were timed with each quant, and with a card that computes layers of the cores.
//! The tests look at single steps, because the last step of a prompt is seldom full.

use super::*;

/// Seconds that 8 cores take for the steps of a prompt, if only `kernel` was timed.
fn read_s(model: &Model, kernel: Kernel, tokens: u32) -> f64 {
    let mut machine = bare(64);
    let usual = constants(&machine, ComputeSite::Cpu);
    let kernels = vec![kernel];
    machine.cpu.device.constants =
        Some(Constants { kernels, prefill_flops: Some(800e9), steadiness: 0.8, ..usual });
    let layout = Layout::whole(&model.shape, ComputeSite::Cpu);
    let (kv, profile, machine) = (KvTypes::default(), &Engine::Hob.profile(), &machine);
    let rate = SpeedEstimate { model, machine, layout: &layout, kv, profile }.prefill(tokens);
    let rate = rate.expect("known");
    // The low end: a steadiness of 0.8, and the 0.25 by which a prior may be too high.
    assert!((rate.low / rate.tok_s - 0.75 * 0.8).abs() < 1e-9, "{rate:?}");
    rate.terms.iter().find(|(name, _)| name == "steps, CPU").expect("steps").1 * 1e-6
}

#[test]
fn prompts_are_computed_as_fast_as_cores_were_timed_with_their_type() {
    let near = |got: f64, expected: f64| (got / expected - 1.0).abs() < 1e-3;
    let timed = |quant, of_core| Kernel { quant, bytes_s: 10e9, flop_s: Some(of_core) };
    let mut model = dense();
    // As wide as kernels are timed.
    model.shape.weights.0.iter_mut().for_each(|group| group.rows = group.elements / 4_096);
    let unknown = read_s(&model, Kernel { flop_s: None, ..timed("Q4_K", 0.0) }, 512);
    // 8 cores at 25e9 each, and not 800e9.
    let slow = read_s(&model, timed("Q4_K", 25e9), 512);
    assert!(near(slow, 4.0 * unknown), "{slow} and {unknown}");
    // A quant that was not timed counts as slow as the slowest.
    assert!(near(read_s(&model, timed("Q5_1", 25e9), 512), slow));
    // A step that is not full takes no longer than its tokens.
    assert!(near(read_s(&model, timed("Q4_K", 25e9), 640), 1.25 * slow));
    // Rows of an eighth of the length: 7 more for each of the timed ones, in 10 layers, at 15 ns for each token.
    let mut narrow = model.clone();
    narrow.shape.weights.0.iter_mut().for_each(|group| group.rows *= 8);
    let elements = model.shape.weights.0[0].elements as f64;
    let more = 10.0 * elements * 7.0 / 4_096.0 * 15e-9 / 8.0 * 512.0;
    assert!(near(read_s(&narrow, timed("Q4_K", 25e9), 512), slow + more));
}

#[test]
fn experts_meet_each_token_by_itself() {
    let kernel = |of_core| Kernel { quant: "Q4_K", bytes_s: 2e9, flop_s: Some(of_core) };
    let mut model = experts();
    model.shape.weights.0.retain(|group| group.part == Part::Experts);
    model.shape.weights.0.iter_mut().for_each(|group| group.rows = group.elements / 4_096);
    // A tenth of 3 GB for each of 512 tokens, at 2 GB/s of 8 cores.
    let expected = 0.1 * 3e9 * 512.0 / 16e9;
    for of_core in [20e9, 90e9] {
        let got = read_s(&model, kernel(of_core), 512);
        assert!((got / expected - 1.0).abs() < 1e-3, "{got} and {expected}");
    }
}

#[test]
fn a_short_last_step_costs_less_than_a_full_one() {
    let model = dense();
    let machine = with_card(64, 8.0);
    let split = Layout::split(&model.shape, 0, 5);
    let (kv, profile) = (KvTypes::default(), Engine::LlamaCpp.profile());
    let estimate =
        SpeedEstimate { model: &model, machine: &machine, layout: &split, kv, profile: &profile };
    let step = profile.step_tokens;
    let terms = |tokens| estimate.prefill(tokens).expect("known").terms;
    let of_cores = |tokens| terms(tokens).iter().any(|(name, _)| name == "steps, CPU");
    // Fewer than 32 are not brought to the card: cores compute them.
    assert_eq!([step, step + 31, step + 32].map(of_cores), [false, true, false]);
}
