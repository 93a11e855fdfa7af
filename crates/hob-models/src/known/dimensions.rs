//! Dimensions of each known model, with the keys of GGUF headers.
//! A model whose layers are alike is one `Dense`.

pub(super) mod gemma;

use crate::recipe::Dimensions;

/// Dimensions of a model whose layers are alike.
struct Dense {
    architecture: &'static str,
    layers: u64,
    embedding: u64,
    feed_forward: u64,
    heads: u64,
    kv_heads: u64,
    head: u64,
    vocabulary: u64,
}

impl Dense {
    fn dimensions(&self) -> Dimensions {
        Dimensions::new(self.architecture)
            .with("block_count", self.layers)
            .with("embedding_length", self.embedding)
            .with("feed_forward_length", self.feed_forward)
            .with("attention.head_count", self.heads)
            .with("attention.head_count_kv", self.kv_heads)
            .with("attention.key_length", self.head)
            .with("attention.value_length", self.head)
            .with("vocab_size", self.vocabulary)
    }
}

/// Three of four layers are recurrent; the fourth has attention.
fn hybrid(of: Dense, inner: u64, steps: u64) -> Dimensions {
    of.dimensions()
        .with("rope.dimension_count", 64)
        .with("full_attention_interval", 4)
        .with("ssm.conv_kernel", 4)
        .with("ssm.inner_size", inner)
        .with("ssm.state_size", 128)
        .with("ssm.group_count", 16)
        .with("ssm.time_step_rank", steps)
}

fn with_experts(dimensions: Dimensions, count: u64, used: u64, length: u64) -> Dimensions {
    dimensions
        .with("expert_count", count)
        .with("expert_used_count", used)
        .with("expert_feed_forward_length", length)
}

pub(super) fn smollm2() -> Dimensions {
    let of = Dense {
        architecture: "llama",
        layers: 30,
        embedding: 576,
        feed_forward: 1_536,
        heads: 9,
        kv_heads: 3,
        head: 64,
        vocabulary: 49_152,
    };
    of.dimensions().tied()
}

pub(super) fn qwen25_1_5b() -> Dimensions {
    let of = Dense {
        architecture: "qwen2",
        layers: 28,
        embedding: 1_536,
        feed_forward: 8_960,
        heads: 12,
        kv_heads: 2,
        head: 128,
        vocabulary: 151_936,
    };
    of.dimensions().tied()
}

pub(super) fn qwen25_7b() -> Dimensions {
    let of = Dense {
        architecture: "qwen2",
        layers: 28,
        embedding: 3_584,
        feed_forward: 18_944,
        heads: 28,
        kv_heads: 4,
        head: 128,
        vocabulary: 152_064,
    };
    of.dimensions()
}

const QWEN25_14B: Dense = Dense {
    architecture: "qwen2",
    layers: 48,
    embedding: 5_120,
    feed_forward: 13_824,
    heads: 40,
    kv_heads: 8,
    head: 128,
    vocabulary: 152_064,
};

pub(super) fn qwen25_3b() -> Dimensions {
    let of = Dense {
        layers: 36,
        embedding: 2_048,
        feed_forward: 11_008,
        heads: 16,
        kv_heads: 2,
        vocabulary: 151_936,
        ..QWEN25_14B
    };
    of.dimensions().tied()
}

pub(super) fn qwen25_14b() -> Dimensions {
    QWEN25_14B.dimensions()
}

pub(super) fn qwen25_32b() -> Dimensions {
    Dense { layers: 64, feed_forward: 27_648, ..QWEN25_14B }.dimensions()
}

const MISTRAL_7B: Dense = Dense {
    architecture: "llama",
    layers: 32,
    embedding: 4_096,
    feed_forward: 14_336,
    heads: 32,
    kv_heads: 8,
    head: 128,
    vocabulary: 32_768,
};

pub(super) fn mistral_7b() -> Dimensions {
    MISTRAL_7B.dimensions()
}

pub(super) fn mistral_nemo() -> Dimensions {
    Dense { layers: 40, embedding: 5_120, vocabulary: 131_072, ..MISTRAL_7B }.dimensions()
}

pub(super) fn llama2_7b() -> Dimensions {
    Dense { feed_forward: 11_008, kv_heads: 32, vocabulary: 32_000, ..MISTRAL_7B }.dimensions()
}

pub(super) fn llama31_8b() -> Dimensions {
    let of = Dense {
        architecture: "llama",
        layers: 32,
        embedding: 4_096,
        feed_forward: 14_336,
        heads: 32,
        kv_heads: 8,
        head: 128,
        vocabulary: 128_256,
    };
    of.dimensions()
}

const QWEN3_8B: Dense = Dense {
    architecture: "qwen3",
    layers: 36,
    embedding: 4_096,
    feed_forward: 12_288,
    heads: 32,
    kv_heads: 8,
    head: 128,
    vocabulary: 151_936,
};

pub(super) fn qwen3_8b() -> Dimensions {
    QWEN3_8B.dimensions()
}

/// The same with a vision tower.
pub(super) fn qwen3_vl_8b() -> Dimensions {
    Dense { architecture: "qwen3vl", ..QWEN3_8B }.dimensions()
}

pub(super) fn qwen35_4b() -> Dimensions {
    let of = Dense {
        architecture: "qwen35",
        layers: 32,
        embedding: 2_560,
        feed_forward: 9_216,
        heads: 16,
        kv_heads: 4,
        head: 256,
        vocabulary: 248_320,
    };
    hybrid(of, 4_096, 32).tied()
}

pub(super) fn qwen35_9b() -> Dimensions {
    let of = Dense {
        architecture: "qwen35",
        layers: 32,
        embedding: 4_096,
        feed_forward: 12_288,
        heads: 16,
        kv_heads: 4,
        head: 256,
        vocabulary: 248_320,
    };
    hybrid(of, 4_096, 32)
}

pub(super) fn qwen35_27b() -> Dimensions {
    let of = Dense {
        architecture: "qwen35",
        layers: 64,
        embedding: 5_120,
        feed_forward: 17_408,
        heads: 24,
        kv_heads: 4,
        head: 256,
        vocabulary: 248_320,
    };
    hybrid(of, 6_144, 48)
}

pub(super) fn qwen35_35b() -> Dimensions {
    let of = Dense {
        architecture: "qwen35moe",
        layers: 40,
        embedding: 2_048,
        feed_forward: 0,
        heads: 16,
        kv_heads: 2,
        head: 256,
        vocabulary: 248_320,
    };
    with_experts(hybrid(of, 4_096, 32), 256, 8, 512).with("expert_shared_feed_forward_length", 512)
}

pub(super) fn qwen3_30b() -> Dimensions {
    let of = Dense {
        architecture: "qwen3moe",
        layers: 48,
        embedding: 2_048,
        feed_forward: 0,
        heads: 32,
        kv_heads: 4,
        head: 128,
        vocabulary: 151_936,
    };
    with_experts(of.dimensions(), 128, 8, 768)
}

pub(super) fn mixtral() -> Dimensions {
    let of = Dense {
        architecture: "llama",
        layers: 32,
        embedding: 4_096,
        feed_forward: 14_336,
        heads: 32,
        kv_heads: 8,
        head: 128,
        vocabulary: 32_000,
    };
    of.dimensions().with("expert_count", 8).with("expert_used_count", 2)
}

pub(super) fn lfm2_24b() -> Dimensions {
    let of = Dense {
        architecture: "lfm2moe",
        layers: 40,
        embedding: 2_048,
        feed_forward: 11_776,
        heads: 32,
        kv_heads: 8,
        head: 64,
        vocabulary: 65_536,
    };
    let attends = |layer: u64| if layer % 4 == 2 { 8 } else { 0 };
    let kv_heads: Vec<u64> = (0..40).map(attends).collect();
    with_experts(of.dimensions(), 64, 4, 1_536)
        .with_each("attention.head_count_kv", &kv_heads)
        .with("shortconv.l_cache", 3)
        .with("leading_dense_block_count", 2)
        .tied()
}

pub(super) fn deepseek_v2_lite() -> Dimensions {
    let of = Dense {
        architecture: "deepseek2",
        layers: 27,
        embedding: 2_048,
        feed_forward: 10_944,
        heads: 16,
        kv_heads: 1,
        head: 576,
        vocabulary: 102_400,
    };
    with_experts(of.dimensions(), 64, 6, 1_408)
        .with("attention.value_length", 512)
        .with("attention.kv_lora_rank", 512)
        .with("attention.key_length_mla", 192)
        .with("attention.value_length_mla", 128)
        .with("rope.dimension_count", 64)
        .with("leading_dense_block_count", 1)
        .with("expert_shared_count", 2)
}

pub(super) fn deepseek_v3() -> Dimensions {
    let of = Dense {
        architecture: "deepseek2",
        layers: 61,
        embedding: 7_168,
        feed_forward: 18_432,
        heads: 128,
        kv_heads: 1,
        head: 576,
        vocabulary: 129_280,
    };
    with_experts(of.dimensions(), 256, 8, 2_048)
        .with("attention.value_length", 512)
        .with("attention.q_lora_rank", 1_536)
        .with("attention.kv_lora_rank", 512)
        .with("attention.key_length_mla", 192)
        .with("attention.value_length_mla", 128)
        .with("rope.dimension_count", 64)
        .with("leading_dense_block_count", 3)
        .with("expert_shared_count", 1)
}

pub(super) fn qwen3_600m() -> Dimensions {
    let of = Dense {
        architecture: "qwen3",
        layers: 28,
        embedding: 1_024,
        feed_forward: 3_072,
        heads: 16,
        kv_heads: 8,
        head: 128,
        vocabulary: 151_936,
    };
    of.dimensions().tied()
}

pub(super) fn qwen3_1_7b() -> Dimensions {
    let of = Dense {
        architecture: "qwen3",
        layers: 28,
        embedding: 2_048,
        feed_forward: 6_144,
        heads: 16,
        kv_heads: 8,
        head: 128,
        vocabulary: 151_936,
    };
    of.dimensions().tied()
}

pub(super) fn qwen3_4b() -> Dimensions {
    let of = Dense {
        architecture: "qwen3",
        layers: 36,
        embedding: 2_560,
        feed_forward: 9_728,
        heads: 32,
        kv_heads: 8,
        head: 128,
        vocabulary: 151_936,
    };
    of.dimensions().tied()
}

pub(super) fn qwen3_14b() -> Dimensions {
    let of = Dense {
        architecture: "qwen3",
        layers: 40,
        embedding: 5_120,
        feed_forward: 17_408,
        heads: 40,
        kv_heads: 8,
        head: 128,
        vocabulary: 151_936,
    };
    of.dimensions()
}

pub(super) fn qwen3_32b() -> Dimensions {
    let of = Dense {
        architecture: "qwen3",
        layers: 64,
        embedding: 5_120,
        feed_forward: 25_600,
        heads: 64,
        kv_heads: 8,
        head: 128,
        vocabulary: 151_936,
    };
    of.dimensions()
}

pub(super) fn llama32_1b() -> Dimensions {
    let of = Dense {
        architecture: "llama",
        layers: 16,
        embedding: 2_048,
        feed_forward: 8_192,
        heads: 32,
        kv_heads: 8,
        head: 64,
        vocabulary: 128_256,
    };
    of.dimensions().tied()
}

pub(super) fn llama32_3b() -> Dimensions {
    let of = Dense {
        architecture: "llama",
        layers: 28,
        embedding: 3_072,
        feed_forward: 8_192,
        heads: 24,
        kv_heads: 8,
        head: 128,
        vocabulary: 128_256,
    };
    of.dimensions().tied()
}

pub(super) fn llama33_70b() -> Dimensions {
    let of = Dense {
        architecture: "llama",
        layers: 80,
        embedding: 8_192,
        feed_forward: 28_672,
        heads: 64,
        kv_heads: 8,
        head: 128,
        vocabulary: 128_256,
    };
    of.dimensions()
}

pub(super) fn mistral_small() -> Dimensions {
    let of = Dense {
        architecture: "llama",
        layers: 40,
        embedding: 5_120,
        feed_forward: 32_768,
        heads: 32,
        kv_heads: 8,
        head: 128,
        vocabulary: 131_072,
    };
    of.dimensions()
}

pub(super) fn phi4() -> Dimensions {
    let of = Dense {
        architecture: "phi3",
        layers: 40,
        embedding: 5_120,
        feed_forward: 17_920,
        heads: 40,
        kv_heads: 10,
        head: 128,
        vocabulary: 100_352,
    };
    of.dimensions()
}

pub(super) fn phi4_mini() -> Dimensions {
    let of = Dense {
        architecture: "phi3",
        layers: 32,
        embedding: 3_072,
        feed_forward: 8_192,
        heads: 24,
        kv_heads: 8,
        head: 128,
        vocabulary: 200_064,
    };
    of.dimensions().tied()
}

/// Every second layer has a window of 128 tokens.
fn gpt_oss(layers: u64, experts: u64) -> Dimensions {
    let of = Dense {
        architecture: "gpt-oss",
        layers,
        embedding: 2_880,
        feed_forward: 0,
        heads: 64,
        kv_heads: 8,
        head: 64,
        vocabulary: 201_088,
    };
    with_experts(of.dimensions(), experts, 4, 2_880).with("attention.sliding_window", 128)
}

pub(super) fn gpt_oss_20b() -> Dimensions {
    gpt_oss(24, 32)
}

pub(super) fn gpt_oss_120b() -> Dimensions {
    gpt_oss(36, 128)
}
