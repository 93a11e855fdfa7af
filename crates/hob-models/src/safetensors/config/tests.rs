//! Published configurations, shortened, against dimensions that were checked elsewhere.

use hob_core::ModelShape;
use hob_core::weights::Weights;
use proptest::prelude::*;

use super::*;
use crate::known;
use crate::recipe::QuantMix;

fn shape(json: &str) -> ModelShape {
    let config = Config::parse(json.as_bytes()).expect("known");
    let shape = config.dimensions.bare().shape_around(|_| Weights::default());
    shape.unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// A tag of the table of known models, and what its publisher's `config.json` says.
const SAME: [(&str, &str); 8] = [
    (
        "qwen3:8b",
        r#"{"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "head_dim": 128,
            "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vocab_size": 151936, "max_position_embeddings": 40960, "sliding_window": null,
            "use_sliding_window": false, "max_window_layers": 36}"#,
    ),
    (
        "llama3.1:8b",
        r#"{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
            "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vocab_size": 128256, "max_position_embeddings": 131072}"#,
    ),
    (
        "qwen3:30b-a3b",
        r#"{"model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048,
            "head_dim": 128, "num_attention_heads": 32, "num_key_value_heads": 4,
            "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
            "intermediate_size": 6144, "vocab_size": 151936, "max_position_embeddings": 40960}"#,
    ),
    (
        "qwen3.5:9b",
        r#"{"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text",
            "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 12288,
            "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256,
            "vocab_size": 248320, "max_position_embeddings": 262144, "full_attention_interval": 4,
            "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
            "linear_num_value_heads": 32, "linear_value_head_dim": 128}}"#,
    ),
    (
        "gemma3:4b",
        r#"{"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
            "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
            "sliding_window": 1024}}"#,
    ),
    (
        "gpt-oss:20b",
        r#"{"model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880,
            "intermediate_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
            "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4,
            "vocab_size": 201088, "max_position_embeddings": 131072, "sliding_window": 128}"#,
    ),
    (
        "deepseek-v2-lite",
        r#"{"model_type": "deepseek_v2", "num_hidden_layers": 27, "hidden_size": 2048,
            "intermediate_size": 10944, "num_attention_heads": 16, "num_key_value_heads": 16,
            "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64,
            "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
            "first_k_dense_replace": 1, "vocab_size": 102400, "max_position_embeddings": 163840}"#,
    ),
    (
        "mixtral:8x7b",
        r#"{"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
            "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
            "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
            "max_position_embeddings": 32768, "sliding_window": null}"#,
    ),
];

#[test]
fn a_configuration_is_the_shape_of_its_header() {
    for (tag, json) in SAME {
        let (known, context) = known::find(tag).expect("known");
        let mix = QuantMix::named("F16").expect("a quant");
        let header = known.header(mix, context).and_then(|header| header.shape());
        let expected = ModelShape { weights: Weights::default(), ..header.expect("a shape") };
        let got = shape(json);
        let widest = got.feed_forward_length.max(expected.feed_forward_length);
        // A length that no layer uses is said in some configurations.
        let same = |of: ModelShape| ModelShape { feed_forward_length: widest, ..of };
        assert_eq!(same(got), same(expected), "{tag}");
    }
}

#[test]
fn a_configuration_that_says_nothing_is_tied_as_its_family_is() {
    let gemma = SAME[4].1;
    let untied = gemma.replacen('{', r#"{"tie_word_embeddings": false, "#, 1);
    let gpt2 = r#"{"model_type": "gpt2", "n_layer": 12, "n_positions": 1024, "n_embd": 768,
        "vocab_size": 50257, "n_head": 12}"#;
    for (json, expected) in [(SAME[0].1, false), (gemma, true), (gpt2, true), (&*untied, false)] {
        let config = Config::parse(json.as_bytes()).expect("known");
        assert_eq!(config.is_tied, expected, "{json}");
    }
    for name in families::TIED {
        let is_known = families::ARCHITECTURES.iter().any(|(_, known)| *known == name);
        assert!(is_known, "{name}");
    }
}

#[test]
fn listed_layers_are_taken_as_listed() {
    let json = r#"{"model_type": "MODEL", "num_hidden_layers": 4, "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
        "max_position_embeddings": 512, "conv_L_cache": 3, "sliding_window": 128, MORE}"#;
    let kept = |model: &str, more: &str| -> Vec<(bool, Option<u32>, bool)> {
        let shape = shape(&json.replace("MODEL", model).replace("MORE", more));
        let kept = shape.layers.iter();
        kept.map(|l| (l.kv.is_some(), l.window_tokens, l.state_bytes > 0)).collect()
    };
    let (full, window) = ((true, None, false), (true, Some(128), false));
    let (state, nothing) = ((false, None, true), (false, None, false));
    let sliding =
        r#""layer_types": ["sliding_attention", "full_attention", "new", "full_attention"]"#;
    assert_eq!(kept("gemma2", sliding), [window, full, full, full]);
    let conv = r#""layer_types": ["conv", "full_attention", "conv", "full_attention"]"#;
    assert_eq!(kept("lfm2", conv), [state, full, state, full]);
    assert_eq!(kept("lfm2", r#""full_attn_idxs": [1, 3]"#), [state, full, state, full]);
    let hybrid = r#""hybrid_override_pattern": "M-*E""#;
    assert_eq!(kept("nemotron_h", hybrid), [state, nothing, full, nothing]);
}

#[test]
fn layers_that_see_everything_may_have_longer_heads() {
    let shape = shape(
        r#"{"model_type": "gemma4_text", "num_hidden_layers": 2, "hidden_size": 64,
            "num_attention_heads": 4, "num_key_value_heads": 4, "num_global_key_value_heads": 1,
            "head_dim": 16, "global_head_dim": 32, "vocab_size": 100, "sliding_window": 8,
            "max_position_embeddings": 512, "layer_types": ["sliding_attention", "full_attention"]}"#,
    );
    let kept: Vec<_> = shape.layers.iter().filter_map(|layer| layer.kv).collect();
    let of = |heads, length| hob_core::shape::KvShape {
        heads,
        key_length: length,
        value_length: length,
    };
    assert_eq!(kept, [of(4, 16), of(1, 32)]);
}

#[test]
fn what_is_wrong_is_named() {
    let rows = [
        ("[]", "not a JSON object"),
        ("{}", "lacks 'model_type'"),
        (r#"{"model_type": "quen3"}"#, "type 'quen3'; the nearest are qwen3"),
        (r#"{"model_type": "qwen3"}"#, "lacks 'num_hidden_layers'"),
        (r#"{"model_type": "qwen3", "num_hidden_layers": "36"}"#, "'num_hidden_layers'"),
    ];
    for (json, expected) in rows {
        let said = Config::parse(json.as_bytes()).expect_err("wrong").to_string();
        assert!(said.contains(expected), "{said}, and not {expected}");
    }
}

#[test]
fn every_type_is_an_architecture_of_the_engine() {
    for (name, _) in families::ARCHITECTURES {
        let json = SAME[0].1.replace("qwen3", name);
        assert!(!shape(&json).layers.is_empty(), "{name}");
    }
}

/// Shapes of what survives being parsed are made too: nothing may panic there either.
fn ask(json: &[u8]) {
    if let Ok(config) = Config::parse(json) {
        let _any = config.dimensions.bare().shape_around(|_| Weights::default());
        let _any = config.dimensions.header(QuantMix::named("Q4_K_M").expect("a quant"));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        ask(&bytes);
    }

    #[test]
    fn any_number_in_any_place_is_answered(
        which in 0..SAME.len(), at in any::<prop::sample::Index>(),
        number in prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..2_000_u64],
    ) {
        let json = SAME[which].1;
        let mut value: Value = serde_json::from_str(json).expect("JSON");
        let is_nested = value.get("text_config").is_some();
        let map = if is_nested { &mut value["text_config"] } else { &mut value };
        let map = map.as_object_mut().expect("an object");
        let key = map.keys().nth(at.index(map.len())).expect("a key").clone();
        map[&key] = number.into();
        ask(value.to_string().as_bytes());
    }
}
