//! Shapes of published models, from the keys of their headers, with the known bytes per token of each.

use hob_core::ModelShape;
use hob_core::footprint::{ContextPlan, Footprint, KvType, KvTypes, Unsuitable, longest_context};
use hob_core::shape::{KvShape, LayerShape};
use hob_core::weights::Repack;
use hob_models::gguf::sample::SampleGguf;

use crate::read::read;

/// A header with these keys, after the prefix of its architecture.
fn header(architecture: &str, keys: &[(&str, u32)]) -> SampleGguf {
    let bare = SampleGguf::empty()
        .text("general.architecture", architecture)
        .u32(&format!("{architecture}.context_length"), 32_768)
        .u32(&format!("{architecture}.vocab_size"), 150_000)
        .tensor("token_embd.weight", &[8, 8]);
    keys.iter()
        .fold(bare, |sample, (key, value)| sample.u32(&format!("{architecture}.{key}"), *value))
}

fn attention(
    layers: u32,
    embedding: u32,
    (heads, kv_heads, length): (u32, u32, u32),
) -> [(&'static str, u32); 6] {
    [
        ("block_count", layers),
        ("embedding_length", embedding),
        ("attention.head_count", heads),
        ("attention.head_count_kv", kv_heads),
        ("attention.key_length", length),
        ("attention.value_length", length),
    ]
}

fn shape(sample: &SampleGguf) -> ModelShape {
    read(sample).shape().expect("a model")
}

fn bytes_per_token(shape: &ModelShape, kv: KvType) -> u64 {
    KvTypes::both(kv).bytes_per_token(shape)
}

#[track_caller]
fn takes(shape: &ModelShape, f16: u64, q8_0: u64, q4_0: u64) {
    assert_eq!(KvType::ALL.map(|kv| bytes_per_token(shape, kv)), [f16, q8_0, q4_0]);
}

#[test]
fn the_whole_shape_of_a_small_llama() {
    let kv = KvShape { heads: 1, key_length: 16, value_length: 16 };
    let layer = LayerShape { heads: 2, kv: Some(kv), ..LayerShape::default() };
    let got = shape(&SampleGguf::llama());
    assert_eq!(
        got.weights.bytes(),
        4 * (32 * 259 + 3 * 32 + 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64)
    );
    let expected = ModelShape {
        architecture: "llama".into(),
        layers: vec![layer],
        embedding_length: 32,
        feed_forward_length: 64,
        vocab_size: 259,
        trained_context_tokens: 512,
        experts: 0,
        experts_used: 0,
        weights: got.weights.clone(),
    };
    assert_eq!(got, expected);
}

#[test]
fn heads_share_keys_and_values() {
    takes(&shape(&header("qwen3", &attention(36, 4_096, (32, 8, 128)))), 147_456, 78_336, 41_472);
    // Without its own key, a head's length is its part of the embedding.
    let llama = &attention(32, 4_096, (32, 8, 0))[..4];
    takes(&shape(&header("llama", llama)), 131_072, 69_632, 36_864);
}

#[test]
fn experts_that_are_used_count_together() {
    let mixtral = [("feed_forward_length", 14_336), ("expert_count", 8), ("expert_used_count", 2)];
    let mixtral = [&attention(32, 4_096, (32, 8, 128))[..], &mixtral].concat();
    let shape_of = shape(&header("llama", &mixtral));
    let found = (shape_of.experts, shape_of.experts_used, shape_of.feed_forward_length);
    assert_eq!(found, (8, 2, 28_672));
    let qwen = [("expert_count", 256), ("expert_used_count", 8)];
    let feed_forward =
        [("expert_feed_forward_length", 512), ("expert_shared_feed_forward_length", 512)];
    let qwen = [&attention(40, 2_048, (16, 2, 256))[..], &qwen, &feed_forward].concat();
    assert_eq!(shape(&header("qwen3moe", &qwen)).feed_forward_length, 9 * 512);
}

#[test]
fn hybrid_models_keep_tokens_in_some_layers_and_a_state_in_the_others() {
    let ssm = [
        ("full_attention_interval", 4),
        ("ssm.conv_kernel", 4),
        ("ssm.inner_size", 4_096),
        ("ssm.state_size", 128),
        ("ssm.group_count", 16),
    ];
    let qwen = [&attention(40, 2_048, (16, 2, 256))[..], &ssm].concat();
    let qwen = shape(&header("qwen35moe", &qwen));
    takes(&qwen, 20_480, 10_880, 5_760);
    assert_eq!(qwen.state_bytes(), 65_863_680);

    let mut kv_heads = [0; 40];
    kv_heads.iter_mut().skip(2).step_by(4).for_each(|heads| *heads = 8);
    let lfm2 = [&attention(40, 2_048, (32, 0, 64))[..], &[("shortconv.l_cache", 3)]].concat();
    let lfm2 = header("lfm2moe", &lfm2).i32s("lfm2moe.attention.head_count_kv", &kv_heads);
    takes(&shape(&lfm2), 20_480, 10_880, 5_760);
    assert_eq!(shape(&lfm2).state_bytes(), 491_520);
    assert!(read(&lfm2).card(None).expect("a card").is_recurrent);
}

#[test]
fn layers_that_predict_ahead_or_use_the_keys_of_others_store_nothing() {
    let all = attention(10, 2_048, (16, 2, 128));
    let with = |name, count| shape(&header("qwen3", &[&all[..], &[(name, count)]].concat()));
    let of_ten = bytes_per_token(&shape(&header("qwen3", &all)), KvType::F16);
    assert_eq!(with("nextn_predict_layers", 1).layers.len(), 9);
    let shared = with("attention.shared_kv_layers", 4);
    assert_eq!(shared.layers.len(), 10);
    assert_eq!(bytes_per_token(&shared, KvType::F16), of_ten * 6 / 10);
}

#[test]
fn compressed_keys_and_values_are_one_row() {
    let keys = [
        ("block_count", 27),
        ("embedding_length", 2_048),
        ("attention.head_count", 16),
        ("attention.head_count_kv", 1),
        ("attention.key_length", 576),
        ("attention.value_length", 512),
        ("attention.key_length_mla", 192),
        ("attention.value_length_mla", 128),
    ];
    takes(&shape(&header("deepseek2", &keys)), 31_104, 16_524, 8_748);
    takes(&shape(&header("deepseek2", &keys[..6])), 58_752, 31_212, 16_524);
}

/// The layers without a window, which attend to the whole context.
fn full(architecture: &str, layers: u32, more: &[(&str, u32)]) -> Vec<usize> {
    let keys = [&attention(layers, 640, (4, 1, 256))[..], more].concat();
    full_layers(&shape(&header(architecture, &keys)))
}

fn full_layers(shape: &ModelShape) -> Vec<usize> {
    let full = shape.layers.iter().enumerate().filter(|(_, layer)| layer.window_tokens.is_none());
    full.map(|(index, _)| index).collect()
}

#[test]
fn layers_have_windows_where_the_header_or_the_architecture_says() {
    let window = ("attention.sliding_window", 512);
    let pattern = ("attention.sliding_window_pattern", 3);
    assert_eq!(full("gemma3", 18, &[window]), [5, 11, 17]);
    assert_eq!(full("gemma3", 8, &[window, pattern]), [2, 5]);
    assert_eq!(full("gemma3", 3, &[]), [0, 1, 2], "no window in the header");
    assert_eq!(full("gemma2", 4, &[]), [1, 3], "4,096 tokens by default");
    assert_eq!(full("cohere2moe", 8, &[window]), [0, 4]);
    assert_eq!(full("deepseek4", 2, &[window]), [0; 0]);
    assert_eq!(full("llama", 2, &[window]), [0, 1], "the engine ignores it");
    assert_eq!(full("exaone4", 4, &[window]), [0, 1, 2, 3], "only the larger model has windows");
    let keys = [&attention(4, 640, (4, 1, 256))[..], &[window]].concat();
    let listed = header("gemma4", &keys)
        .flags("gemma4.attention.sliding_window_pattern", &[true, false, true, true]);
    assert_eq!(full_layers(&shape(&listed)), [1]);
}

#[test]
fn gemma_3_27b_takes_what_was_published() {
    let keys = [&attention(62, 5_376, (32, 16, 128))[..], &[("attention.sliding_window", 1_024)]];
    let gemma = shape(&header("gemma3", &keys.concat()));
    takes(&gemma, 81_920, 43_520, 23_040);
    let kv_bytes = |context_tokens| {
        let footprint =
            Footprint::estimate(&gemma, &ContextPlan::single(context_tokens), Repack::None);
        footprint.expect("suits").kv_bytes
    };
    assert_eq!(kv_bytes(131_072), 131_072 * 81_920 + 1_536 * 425_984);
    let gib = kv_bytes(131_072) as f64 / f64::from(1 << 30);
    assert!((gib - 10.61).abs() < 0.005, "{gib} GiB");
    let plan = ContextPlan::single(131_072);
    let fits = |plan: &ContextPlan| {
        Ok(Footprint::estimate(&gemma, plan, Repack::None)?.needed_bytes() <= 6 << 30)
    };
    let found = longest_context::<Unsuitable>(&plan, fits).expect("suits").expect("some fits");
    assert!((50_000..131_072).contains(&found.context_tokens), "{found:?}");
}

#[test]
fn weights_that_kernels_want_in_another_order_count_twice() {
    let sample = SampleGguf::llama().without_tensors().raw_tensor(
        "token_embd.weight",
        &[256, 8],
        12,
        (0, 1_152),
    );
    let sample = sample.raw_tensor("blk.0.ffn_up.weight", &[256, 16], 12, (1_152, 2_304));
    let sample = sample.raw_tensor("blk.0.ffn_gate.weight", &[256, 9], 12, (3_456, 1_296));
    let shape = shape(&sample);
    let weights = shape.weights;
    assert_eq!((weights.bytes(), weights.repacked_bytes(Repack::Avx2)), (4_752, 2_304));
    assert_eq!(weights.repacked_bytes(Repack::None), 0);
}
