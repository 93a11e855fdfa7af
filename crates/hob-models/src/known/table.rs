//! Popular models and their names.
//! Dimensions are in `dimensions.rs`. Release dates are those of the publishers.

use super::Purpose::{Chat, Code, Long, Voice};
use super::{KnownModel, Purpose, dimensions};
use crate::recipe::Dimensions;

/// All known models, the smallest first.
pub const KNOWN: [KnownModel; 50] = [
    known(
        "SmolLM2-135M-Instruct",
        202_411,
        &[("smollm2:135m", 8_192), ("smollm2", 8_192)],
        dimensions::smollm2,
        &[Voice],
    ),
    known(
        "Gemma-3-270M",
        202_508,
        &[("gemma3:270m", 32_768)],
        dimensions::gemma::v3_270m,
        &[Voice],
    ),
    known("Qwen3-0.6B", 202_504, &[("qwen3:0.6b", 40_960)], dimensions::qwen3_600m, &[Voice]),
    known("Gemma-3-1B", 202_503, &[("gemma3:1b", 32_768)], dimensions::gemma::v3_1b, &[Voice]),
    known("Llama-3.2-1B", 202_409, &[("llama3.2:1b", 131_072)], dimensions::llama32_1b, &[Voice]),
    known(
        "Qwen2.5-Coder-1.5B",
        202_409,
        &[("qwen2.5-coder:1.5b", 32_768), ("qwen2.5:1.5b", 32_768)],
        dimensions::qwen25_1_5b,
        &[Code, Voice],
    ),
    known("Qwen3-1.7B", 202_504, &[("qwen3:1.7b", 40_960)], dimensions::qwen3_1_7b, &[Chat, Voice]),
    known("Gemma-2-2B", 202_407, &[("gemma2:2b", 8_192)], dimensions::gemma::v2_2b, &[Chat, Voice]),
    known(
        "Qwen2.5-3B",
        202_409,
        &[("qwen2.5:3b", 32_768), ("qwen2.5-coder:3b", 32_768)],
        dimensions::qwen25_3b,
        &[Chat, Code, Voice],
    ),
    known(
        "Llama-3.2-3B",
        202_409,
        &[("llama3.2:3b", 131_072), ("llama3.2", 131_072)],
        dimensions::llama32_3b,
        &[Chat, Voice],
    ),
    known(
        "Phi-4-mini",
        202_502,
        &[("phi4-mini:3.8b", 131_072), ("phi4-mini", 131_072)],
        dimensions::phi4_mini,
        &[Chat, Voice],
    ),
    known("Qwen3-4B", 202_504, &[("qwen3:4b", 40_960)], dimensions::qwen3_4b, &[Chat, Voice]),
    known(
        "Gemma-3-4B",
        202_503,
        &[("gemma3:4b", 131_072), ("gemma3", 131_072)],
        dimensions::gemma::v3_4b,
        &[Chat],
    )
    .with_tower(417_000_000),
    known(
        "Qwen3.5-4B",
        202_602,
        &[("qwen3.5:4b", 262_144)],
        dimensions::qwen35_4b,
        &[Chat, Voice, Long],
    )
    .with_tower(333_514_240),
    known(
        "Gemma-4-E2B",
        202_604,
        &[("gemma4:e2b", 131_072)],
        dimensions::gemma::v4_e2b,
        &[Chat, Voice, Long],
    ),
    known(
        "Llama-2-7B",
        202_307,
        &[("llama2:7b", 4_096), ("llama2", 4_096)],
        dimensions::llama2_7b,
        &[Chat],
    ),
    known(
        "Mistral-7B",
        202_405,
        &[("mistral:7b", 32_768), ("mistral", 32_768)],
        dimensions::mistral_7b,
        &[Chat],
    ),
    known(
        "Gemma-4-E4B",
        202_604,
        &[("gemma4:e4b", 131_072), ("gemma4", 131_072)],
        dimensions::gemma::v4_e4b,
        &[Chat, Voice, Long],
    ),
    known(
        "Qwen2.5-7B",
        202_409,
        &[
            ("qwen2.5-coder:7b", 32_768),
            ("qwen2.5-coder", 32_768),
            ("qwen2.5:7b", 32_768),
            ("qwen2.5", 32_768),
            ("deepseek-r1:7b", 131_072),
        ],
        dimensions::qwen25_7b,
        &[Code],
    ),
    known(
        "Llama-3.1-8B",
        202_407,
        &[("llama3.1:8b", 131_072), ("llama3.1:latest", 131_072), ("llama3.1", 131_072)],
        dimensions::llama31_8b,
        &[Chat],
    ),
    known(
        "Qwen3-8B",
        202_504,
        &[
            ("qwen3:8b", 40_960),
            ("qwen3", 40_960),
            ("deepseek-r1:8b", 131_072),
            ("deepseek-r1", 131_072),
        ],
        dimensions::qwen3_8b,
        &[Chat, Code],
    ),
    known(
        "Qwen3-VL-8B",
        202_510,
        &[("qwen3-vl:8b", 262_144), ("qwen3-vl:8b-instruct", 262_144), ("qwen3-vl", 262_144)],
        dimensions::qwen3_vl_8b,
        &[Chat, Long],
    )
    .with_tower(576_388_336),
    known(
        "Qwen3.5-9B",
        202_602,
        &[("qwen3.5:9b", 262_144), ("qwen3.5:latest", 262_144), ("qwen3.5", 262_144)],
        dimensions::qwen35_9b,
        &[Chat, Code, Long],
    )
    .with_tower(456_010_480),
    known(
        "Gemma-2-9B",
        202_406,
        &[("gemma2:9b", 8_192), ("gemma2", 8_192)],
        dimensions::gemma::v2_9b,
        &[Chat],
    ),
    known("Gemma-3-12B", 202_503, &[("gemma3:12b", 131_072)], dimensions::gemma::v3_12b, &[Chat])
        .with_tower(417_000_000),
    known(
        "Mistral-Nemo-12B",
        202_407,
        &[("mistral-nemo:12b", 131_072), ("mistral-nemo", 131_072)],
        dimensions::mistral_nemo,
        &[Chat, Long],
    ),
    known("Phi-4", 202_412, &[("phi4:14b", 16_384), ("phi4", 16_384)], dimensions::phi4, &[Chat]),
    known(
        "Qwen2.5-14B",
        202_409,
        &[("qwen2.5-coder:14b", 32_768), ("qwen2.5:14b", 32_768)],
        dimensions::qwen25_14b,
        &[Chat, Code],
    ),
    known(
        "DeepSeek-R1-Distill-Qwen-14B",
        202_501,
        &[("deepseek-r1:14b", 131_072)],
        dimensions::qwen25_14b,
        &[Chat, Code],
    ),
    known("Qwen3-14B", 202_504, &[("qwen3:14b", 40_960)], dimensions::qwen3_14b, &[Chat, Code]),
    known(
        "DeepSeek-V2-Lite",
        202_405,
        &[("deepseek-v2-lite", 163_840), ("deepseek-v2:16b", 163_840)],
        dimensions::deepseek_v2_lite,
        &[Chat],
    ),
    known(
        "gpt-oss-20b",
        202_508,
        &[("gpt-oss:20b", 131_072), ("gpt-oss", 131_072)],
        dimensions::gpt_oss_20b,
        &[Chat, Code, Voice, Long],
    )
    .native("MXFP4"),
    known(
        "Mistral-Small-24B",
        202_501,
        &[("mistral-small:24b", 32_768), ("mistral-small", 32_768)],
        dimensions::mistral_small,
        &[Chat],
    ),
    known(
        "LFM2-24B-A2B",
        202_602,
        &[("lfm2:24b-a2b", 128_000), ("lfm2", 128_000)],
        dimensions::lfm2_24b,
        &[Chat, Voice],
    ),
    known(
        "Gemma-4-26B-A4B",
        202_604,
        &[("gemma4:26b-a4b", 262_144), ("gemma4:26b", 262_144)],
        dimensions::gemma::v4_26b,
        &[Chat, Code, Long],
    ),
    known("Gemma-2-27B", 202_406, &[("gemma2:27b", 8_192)], dimensions::gemma::v2_27b, &[Chat]),
    known("Gemma-3-27B", 202_503, &[("gemma3:27b", 131_072)], dimensions::gemma::v3_27b, &[Chat])
        .with_tower(423_060_336),
    known(
        "Qwen3.5-27B",
        202_602,
        &[("qwen3.5:27b", 262_144)],
        dimensions::qwen35_27b,
        &[Chat, Code, Long],
    )
    .with_tower(460_730_096),
    known(
        "Qwen3.6-27B",
        202_604,
        &[("qwen3.6:27b", 262_144)],
        dimensions::qwen35_27b,
        &[Chat, Code, Long],
    )
    .with_tower(460_730_096),
    known(
        "Qwen3-30B-A3B",
        202_504,
        &[("qwen3:30b-a3b", 40_960), ("qwen3:30b", 40_960)],
        dimensions::qwen3_30b,
        &[Chat, Code],
    ),
    known(
        "Qwen3-Coder-30B-A3B",
        202_507,
        &[("qwen3-coder:30b-a3b", 262_144), ("qwen3-coder:30b", 262_144), ("qwen3-coder", 262_144)],
        dimensions::qwen3_30b,
        &[Code, Long],
    ),
    known(
        "Gemma-4-31B",
        202_604,
        &[("gemma4:31b", 262_144)],
        dimensions::gemma::v4_31b,
        &[Chat, Code, Long],
    ),
    known(
        "Qwen2.5-32B",
        202_409,
        &[
            ("qwen2.5-coder:32b", 32_768),
            ("qwen2.5:32b", 32_768),
            ("deepseek-r1:32b", 131_072),
            ("qwq:32b", 40_960),
            ("qwq", 40_960),
        ],
        dimensions::qwen25_32b,
        &[Chat, Code],
    ),
    known("Qwen3-32B", 202_504, &[("qwen3:32b", 40_960)], dimensions::qwen3_32b, &[Chat, Code]),
    known(
        "Qwen3.5-35B-A3B",
        202_602,
        &[
            ("qwen3.5:35b-a3b", 262_144),
            ("qwen3.5:35b", 262_144),
            ("qwen3.5-abl:35b-a3b", 262_144),
            ("qwen3.5-abliterated:35b-a3b", 262_144),
            ("qwen3.5-opus-distill", 262_144),
        ],
        dimensions::qwen35_35b,
        &[Chat, Code, Long],
    )
    .with_tower(446_571_248),
    known(
        "Qwen3.6-35B-A3B",
        202_604,
        &[("qwen3.6:35b-a3b", 262_144), ("qwen3.6:35b", 262_144), ("qwen3.6", 262_144)],
        dimensions::qwen35_35b,
        &[Chat, Code, Long],
    )
    .with_tower(446_571_248),
    known(
        "Mixtral-8x7B",
        202_312,
        &[("mixtral:8x7b", 32_768), ("mixtral", 32_768)],
        dimensions::mixtral,
        &[Chat],
    ),
    known(
        "Llama-3.3-70B",
        202_412,
        &[("llama3.3:70b", 131_072), ("llama3.3", 131_072), ("llama3.1:70b", 131_072)],
        dimensions::llama33_70b,
        &[Chat, Long],
    ),
    known(
        "gpt-oss-120b",
        202_508,
        &[("gpt-oss:120b", 131_072)],
        dimensions::gpt_oss_120b,
        &[Chat, Code, Long],
    )
    .native("MXFP4"),
    known(
        "DeepSeek-V3",
        202_412,
        &[("deepseek-v3:671b", 163_840), ("deepseek-v3", 163_840), ("deepseek-r1:671b", 163_840)],
        dimensions::deepseek_v3,
        &[Chat, Code, Long],
    ),
];

const fn known(
    name: &'static str,
    released: u32,
    tags: &'static [(&'static str, u32)],
    dimensions: fn() -> Dimensions,
    good_for: &'static [Purpose],
) -> KnownModel {
    KnownModel { name, tags, dimensions, released, native_quant: None, tower_elements: 0, good_for }
}

impl KnownModel {
    const fn native(self, quant: &'static str) -> KnownModel {
        KnownModel { native_quant: Some(quant), ..self }
    }

    const fn with_tower(self, elements: u64) -> KnownModel {
        KnownModel { tower_elements: elements, ..self }
    }
}
