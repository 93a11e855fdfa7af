//! Compares predicted memory with allocations of llama.cpp b11434, with published figures, and with sums made by hand.
//! Properties hold for any model and any plan.

use proptest::prelude::*;

use super::*;
use crate::shape::{KvShape, LayerShape};
use crate::weights::{Part, Quant, WeightGroup, Weights};

const MIB: f64 = 1024.0 * 1024.0;

fn full(heads: u32, kv_heads: u32, length: u32) -> LayerShape {
    let kv = KvShape { heads: kv_heads, key_length: length, value_length: length };
    LayerShape { heads, kv: Some(kv), ..LayerShape::default() }
}

fn uniform(layers: usize, layer: LayerShape) -> ModelShape {
    ModelShape { layers: vec![layer; layers], ..ModelShape::default() }
}

fn smollm2() -> ModelShape {
    ModelShape {
        embedding_length: 576,
        feed_forward_length: 1_536,
        vocab_size: 49_152,
        weights: Weights::of_bytes(96_576_768),
        ..uniform(30, full(9, 3, 64))
    }
}

/// This many bytes of weights, some of them of a type that kernels want in another order.
fn repacked(bytes: u64, in_eights_bytes: u64) -> Weights {
    let (part, quant) = (Part::Dense, Quant("Q4_K"));
    let all = Weights::of_bytes(bytes - in_eights_bytes).0.into_iter();
    let empty = WeightGroup::empty(None, part, quant);
    let taken = WeightGroup { bytes: in_eights_bytes, in_eights_bytes, ..empty };
    Weights(all.chain([taken]).collect())
}

/// Every sixth layer sees everything.
fn gemma3_270m() -> ModelShape {
    let mut shape = uniform(18, full(4, 1, 256));
    for (index, layer) in shape.layers.iter_mut().enumerate() {
        layer.window_tokens = (index % 6 < 5).then_some(512);
    }
    ModelShape {
        embedding_length: 640,
        feed_forward_length: 2_048,
        vocab_size: 262_144,
        weights: repacked(246_587_904, 13_271_040),
        ..shape
    }
}

/// The machine that the engine's allocations were read on.
const REPACK: Repack = Repack::Avx512;

/// The engine's default setup.
fn usual(context_tokens: u32, kv: KvType) -> ContextPlan {
    let single = ContextPlan::single(context_tokens);
    ContextPlan { kv: KvTypes::both(kv), outputs_max: 2_048, ..single }
}

fn footprint(shape: &ModelShape, plan: &ContextPlan) -> Footprint {
    Footprint::estimate(shape, plan, REPACK).expect("suits")
}

#[track_caller]
fn allocated(shape: &ModelShape, plan: ContextPlan, kv_mib: f64, compute_mib: f64) {
    let predicted = footprint(shape, &plan);
    let kv = predicted.kv_bytes as f64 / MIB;
    assert!((kv - kv_mib).abs() < 0.006, "KV {kv}, allocated {kv_mib}");
    let ratio = predicted.compute_bytes as f64 / MIB / compute_mib;
    assert!((1.0..1.02).contains(&ratio), "computation is {ratio} of what was allocated");
}

#[test]
fn the_engine_s_allocation_for_smollm2_is_predicted() {
    let shape = smollm2();
    allocated(&shape, usual(4_096, KvType::F16), 90.0, 106.77);
    allocated(&shape, usual(8_192, KvType::Q8_0), 95.62, 109.68);
    let small_step = ContextPlan { step_tokens: 256, ..usual(8_192, KvType::F16) };
    allocated(&shape, small_step, 180.0, 54.82);
    let few_logits = ContextPlan { outputs_max: 4, ..usual(2_048, KvType::F16) };
    allocated(&shape, few_logits, 45.0, 16.64);
}

#[test]
fn the_engine_s_allocation_for_a_model_with_windows_is_predicted() {
    let shape = gemma3_270m();
    allocated(&shape, usual(4_096, KvType::F16), 12.0 + 15.0, 524.53);
    allocated(&shape, usual(16_384, KvType::Q8_0), 25.5 + 7.97, 535.81);
    let small_step = ContextPlan { step_tokens: 256, ..usual(4_096, KvType::F16) };
    allocated(&shape, small_step, 12.0 + 11.25, 262.14);
}

#[track_caller]
fn per_token(shape: &ModelShape, f16: u64, q8_0: u64, q4_0: u64) {
    let bytes = KvType::ALL.map(|kv| KvTypes::both(kv).bytes_per_token(shape));
    assert_eq!(bytes, [f16, q8_0, q4_0]);
}

#[test]
fn bytes_per_token_are_the_published_ones() {
    per_token(&smollm2(), 23_040, 12_240, 6_480);
    per_token(&gemma3_270m(), 3_072, 1_632, 864);
    per_token(&uniform(36, full(32, 8, 128)), 147_456, 78_336, 41_472);
    per_token(&uniform(48, full(32, 4, 128)), 98_304, 52_224, 27_648);
    // Keys and values of DeepSeek-V2-Lite are one compressed row of 576.
    let kv = KvShape { heads: 1, key_length: 576, value_length: 0 };
    let layer = LayerShape { heads: 16, kv: Some(kv), ..LayerShape::default() };
    per_token(&uniform(27, layer), 31_104, 16_524, 8_748);
    let mixed = KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 };
    assert_eq!(mixed.bytes_per_token(&uniform(36, full(32, 8, 128))), 59_904);
}

#[test]
fn recurrent_layers_keep_the_same_however_long_the_context() {
    let mut shape = uniform(10, full(16, 2, 256));
    let state_bytes = 4 * (3 * (4_096 + 2 * 16 * 128) + 128 * 4_096);
    shape.layers.extend([LayerShape { state_bytes, ..LayerShape::default() }; 30]);
    assert_eq!(shape.state_bytes(), 65_863_680, "Qwen3.5-35B-A3B");
    let plan = ContextPlan { sequences: 3, ..ContextPlan::single(1_024) };
    assert_eq!(footprint(&shape, &plan).state_bytes, 3 * 65_863_680);
}

#[test]
fn sequences_with_parts_of_their_own_are_each_padded() {
    let three = ContextPlan { sequences: 3, ..ContextPlan::single(1_000) };
    assert_eq!(footprint(&smollm2(), &three).kv_bytes, 3 * 512 * 23_040);
}

fn context_that_fits(shape: &ModelShape, plan: &ContextPlan, available_bytes: u64) -> Option<u32> {
    let fits = |plan: &ContextPlan| {
        Ok::<_, Unsuitable>(
            Footprint::estimate(shape, plan, REPACK)?.needed_bytes() <= available_bytes,
        )
    };
    longest_context(plan, fits).expect("it suits").map(|plan| plan.context_tokens)
}

#[test]
fn a_setup_that_the_engine_refuses_is_rejected_with_the_reason() {
    let check = |shape: &ModelShape, plan: &ContextPlan, expected| {
        assert_eq!(Footprint::estimate(shape, plan, REPACK), Err(expected));
    };
    let odd = uniform(2, full(4, 4, 80));
    let not_whole = Unsuitable::HeadNotWhole { kv: KvType::Q4_0, head_length: 80 };
    check(&odd, &usual(1_024, KvType::Q4_0), not_whole);
    assert!(not_whole.to_string().contains("32 elements at a time"), "{not_whole}");
    let kv = KvShape { heads: 1, key_length: 576, value_length: 0 };
    let one = uniform(1, LayerShape { heads: 16, kv: Some(kv), ..LayerShape::default() });
    let (keys, values) = (KvType::Q8_0, KvType::F16);
    let mixed = ContextPlan { kv: KvTypes { keys, values }, ..ContextPlan::single(1_024) };
    check(&one, &mixed, Unsuitable::NotTheSame { keys, values });
}

#[test]
fn a_small_model_takes_this_term_by_term() {
    let footprint = footprint(&smollm2(), &usual(8_192, KvType::Q8_0));
    let [weights, repacked, kv, state, computed, process] =
        footprint.terms().map(|(_, bytes)| bytes.div_ceil(1_000_000));
    assert_eq!((weights, repacked, kv, state, computed), (97, 0, 101, 0, 117));
    assert!((80..120).contains(&process), "{process}");
}

#[test]
fn names_of_kv_types_are_read_back_and_others_refused() {
    for kv in KvType::ALL {
        assert_eq!(kv.to_string().parse(), Ok(kv));
    }
    let unknown = "q5_1".parse::<KvType>().expect_err("no type").to_string();
    assert_eq!(unknown, "'q5_1' is not a KV cache type (expected f16, q8_0 or q4_0)");
}

#[test]
fn the_largest_context_is_found_to_the_step() {
    let (shape, wish) = (smollm2(), usual(8_192, KvType::F16));
    let of =
        |context_tokens| footprint(&shape, &ContextPlan { context_tokens, ..wish }).needed_bytes();
    let found = |available_bytes| context_that_fits(&shape, &wish, available_bytes);
    assert_eq!(found(u64::MAX), Some(8_192));
    assert_eq!(found(of(4_096)), Some(4_096));
    assert_eq!(found(of(4_096) - 1), Some(3_840));
    assert_eq!(found(of(256) - 1), None);
}

prop_compose! {
    fn any_shape()(
        layers in 1..40_usize, heads in 1..64_u32, kv_heads in 0..16_u32, blocks in 1..9_u32,
        window in proptest::option::of(1..5_000_u32), embedding_length in 1..9_000_u32,
        vocab_size in 1..300_000_u32, feed_forward_length in 0..30_000_u32,
    ) -> ModelShape {
        let mut shape = uniform(layers, full(heads, kv_heads, 32 * blocks));
        shape.layers[0].window_tokens = window;
        ModelShape { embedding_length, vocab_size, feed_forward_length, ..shape }
    }
}

prop_compose! {
    fn any_plan()(
        context_tokens in 1..200_000_u32, sequences in 1..20_u32, step_tokens in 1..2_000_u32,
        kv in prop_oneof![Just(KvType::F16), Just(KvType::Q8_0), Just(KvType::Q4_0)],
        outputs_max in 1..3_000_u32,
    ) -> ContextPlan {
        ContextPlan {
            context_tokens, sequences, step_tokens, outputs_max,
            kv: KvTypes::both(kv), windows: Windows::Rolling,
        }
    }
}

proptest! {
    #[test]
    fn more_context_never_needs_less_memory(
        shape in any_shape(), plan in any_plan(), more in 0..100_000_u32,
    ) {
        let longer = ContextPlan { context_tokens: plan.context_tokens + more, ..plan };
        let (short, long) = (footprint(&shape, &plan), footprint(&shape, &longer));
        prop_assert!(short.needed_bytes() <= long.needed_bytes());
    }

    #[test]
    fn smaller_kv_types_never_need_more(shape in any_shape(), plan in any_plan()) {
        let with = |kv| footprint(&shape, &ContextPlan { kv: KvTypes::both(kv), ..plan }).kv_bytes;
        prop_assert!(with(KvType::Q4_0) <= with(KvType::Q8_0));
        prop_assert!(with(KvType::Q8_0) <= with(KvType::F16));
    }

    #[test]
    fn the_longest_context_fits_and_one_step_more_does_not(
        shape in any_shape(), plan in any_plan(), available_bytes in 0..20_000_000_000_u64,
    ) {
        let fits = |context_tokens| {
            let plan = ContextPlan { context_tokens, ..plan };
            footprint(&shape, &plan).needed_bytes() <= available_bytes
        };
        let step = CACHE_STEP_TOKENS * plan.sequences;
        let found = context_that_fits(&shape, &plan, available_bytes).unwrap_or(0);
        prop_assert!(found <= plan.context_tokens);
        prop_assert!(found == 0 || fits(found));
        prop_assert!(found == plan.context_tokens || !fits(found + step));
    }

    #[test]
    fn absurd_headers_saturate(length: u32, layers in 1..512_usize, state_bytes: u64) {
        let mut shape = uniform(layers, full(length, length, length / 32 * 32));
        shape.layers[0].state_bytes = state_bytes;
        let shape = ModelShape {
            embedding_length: length, feed_forward_length: length, vocab_size: length,
            experts_used: length, weights: Weights::of_bytes(state_bytes), ..shape
        };
        for sequences in [1, u32::MAX] {
            let huge =
                ContextPlan { sequences, step_tokens: u32::MAX, ..ContextPlan::single(u32::MAX) };
            prop_assert!(footprint(&shape, &huge).needed_bytes() >= state_bytes);
        }
        let kv = KvShape { heads: length, key_length: length, value_length: length };
        prop_assert!(kv.elements() >= u64::from(length));
        let group = WeightGroup {
            elements: state_bytes, bytes: state_bytes,
            ..WeightGroup::empty(None, Part::Dense, Quant("unknown"))
        };
        prop_assert!(Weights(vec![group; 3]).text_bits().is_none_or(|bits| bits == 8.0));
    }
}
