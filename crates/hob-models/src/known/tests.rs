//! Published numbers of parameters, and the bytes that were predicted for two quants of each.

use hob_core::footprint::{KvType, KvTypes};

use super::*;

/// Name, numbers of the text model without norms (within 0.1 %), bytes a token of the cache in f16, state, and weights
/// in 10^9 bytes with what of them a token reads: in Q4_K_M and in Q8_0.
type Row = (&'static str, u64, u64, u64, [f64; 2], [f64; 2]);

const ROWS: [Row; 13] = [
    ("qwen3:30b-a3b", 30_532_122_624, 98_304, 0, [18.551, 1.920], [32.478, 3.270]),
    ("qwen3:8b", 8_190_735_360, 147_456, 0, [5.022, 4.672], [8.704, 8.042]),
    ("qwen3-vl:8b", 8_190_735_360, 147_456, 0, [5.022, 4.672], [8.704, 8.042]),
    ("qwen3.5:35b-a3b", 34_660_610_688, 20_480, 65_863_680, [21.158, 1.978], [36.892, 3.195]),
    ("qwen3.5:4b", 4_205_751_296, 32_768, 52_690_944, [2.696, 2.696], [4.471, 4.471]),
    ("qwen3.5:9b", 8_953_803_264, 32_768, 52_690_944, [5.615, 5.043], [9.516, 8.436]),
    ("qwen3.5:27b", 26_895_998_464, 65_536, 156_893_184, [16.526, 15.811], [28.585, 27.234]),
    ("mixtral:8x7b", 46_702_792_704, 131_072, 0, [28.380, 7.827], [49.625, 13.548]),
    ("deepseek-r1:14b", 14_770_033_664, 196_608, 0, [8.981, 8.543], [15.694, 14.867]),
    ("qwen2.5-coder:7b", 7_615_616_512, 57_344, 0, [4.677, 4.370], [8.092, 7.513]),
    ("qwen2.5-coder:1.5b", 1_543_714_304, 28_672, 0, [0.980, 0.980], [1.640, 1.640]),
    ("llama3.1:8b", 8_030_261_248, 131_072, 0, [4.913, 4.617], [8.533, 7.975]),
    ("lfm2:24b-a2b", 23_843_661_440, 20_480, 491_520, [14.412, 1.433], [25.349, 2.487]),
];

#[test]
fn known_models_have_their_published_sizes() {
    for (name, elements, kv_bytes, state_bytes, q4_k_m, q8_0) in ROWS {
        let (model, context) = find(name).expect("known");
        for (quant, [whole, active]) in [("Q4_K_M", q4_k_m), ("Q8_0", q8_0)] {
            let mix = QuantMix::named(quant).expect("a quant");
            let header = model.header(mix, context).expect("its dimensions are whole");
            let near = |got: f64, expected: f64, share: f64, what: &str| {
                let off = got / expected - 1.0;
                assert!(off.abs() < share, "{name} {quant}: {what} {got} and not {expected}");
            };
            near(header.parameters() as f64, elements as f64, 0.001, "numbers");
            let shape = header.shape().expect("a shape");
            let f16 = KvTypes::both(KvType::F16);
            assert_eq!(f16.bytes_per_token(&shape), kv_bytes, "{name}");
            assert_eq!(shape.state_bytes(), state_bytes, "{name}");
            near(shape.weights.bytes() as f64 / 1e9, whole, 0.01, "weights");
            let share = shape.experts_share();
            let read = shape.weights.0.iter().map(|group| shape.weights.read_bytes(group, share));
            near(read.sum::<f64>() / 1e9, active, 0.02, "weights of a token");
        }
    }
}

#[test]
fn and_so_have_those_whose_files_nobody_listed() {
    let rows = [
        ("qwen3:0.6b", 596_049_920_u64),
        ("llama3.2:1b", 1_235_814_400),
        ("qwen3:1.7b", 1_720_574_976),
        ("llama3.2:3b", 3_212_749_824),
        ("qwen3:4b", 4_022_468_096),
        ("gemma3:4b", 3_880_099_328),
        ("gemma3:12b", 11_765_788_416),
        ("phi4", 14_659_507_200),
        ("qwen3:14b", 14_768_307_200),
        ("gpt-oss:20b", 20_914_757_184),
        ("mistral-small:24b", 23_572_403_200),
        ("qwen3:32b", 32_762_123_264),
        ("llama3.3:70b", 70_553_706_496),
        ("gpt-oss:120b", 116_829_156_672),
        ("llama2:7b", 6_738_149_376),
        ("mistral:7b", 7_247_757_312),
        ("mistral-nemo", 12_247_367_680),
        ("qwen2.5:3b", 3_085_697_024),
        ("qwen2.5:32b", 32_763_281_408),
        ("phi4-mini", 3_836_021_760),
        ("gemma2:2b", 2_614_222_848),
        ("gemma2:9b", 9_241_403_392),
        ("gemma2:27b", 27_226_750_976),
        ("gemma3:1b", 999_821_312),
        ("deepseek-v3", 671_026_419_200),
        // As llama.cpp prints them: 4.65 B, 7.52 B, 25.23 B and 30.70 B.
        ("gemma4:e2b", 4_650_000_000),
        ("gemma4:e4b", 7_520_000_000),
        ("gemma4:26b", 25_230_000_000),
        ("gemma4:31b", 30_700_000_000),
    ];
    for (name, elements) in rows {
        let (model, context) = find(name).expect("known");
        let mix = QuantMix::named("BF16").expect("a quant");
        let header = model.header(mix, context).expect("its dimensions are whole");
        let off = header.parameters() as f64 / elements as f64 - 1.0;
        assert!(off.abs() < 0.002, "{name}: {} and not {elements}", header.parameters());
    }
}

/// Files of Llama-3-70B in GiB (https://github.com/ggml-org/llama.cpp/pull/6745#issuecomment-2093892514), and of others as
/// llama.cpp prints them.
#[test]
fn small_quants_are_as_large_as_their_files() {
    let rows = [
        ("llama3.3:70b", "Q2_K", 24.56),
        ("llama3.3:70b", "Q3_K_S", 28.79),
        ("llama3.3:70b", "Q3_K_M", 31.91),
        ("llama3.3:70b", "IQ4_XS", 35.30),
        ("llama3.3:70b", "IQ4_NL", 37.30),
        ("llama3.3:70b", "Q4_K_S", 37.58),
        ("llama3.3:70b", "Q4_K_M", 39.60),
        ("llama3.3:70b", "Q5_K_S", 45.32),
        ("llama3.3:70b", "Q5_K_M", 46.52),
        ("llama3.3:70b", "Q6_K", 53.91),
        ("llama3.3:70b", "Q8_0", 69.83),
        ("llama3.1:8b", "Q4_K_S", 4.36),
        ("llama3.1:8b", "Q4_0", 4.33),
        ("llama3.1:8b", "Q4_K_M", 4.58),
        ("llama2:7b", "Q4_0", 3.56),
        ("qwen3:4b", "Q4_K_M", 2.32),
        ("gpt-oss:20b", "MXFP4", 11.27),
        ("gpt-oss:120b", "MXFP4", 59.02),
        ("qwen3:30b-a3b", "Q8_0", 30.25),
        ("gemma4:e2b", "Q4_K_M", 3.18),
        ("gemma4:31b", "BF16", 57.18),
        ("gemma4:26b", "BF16", 47.02),
    ];
    for (name, quant, gib) in rows {
        let (model, context) = find(name).expect("known");
        let mix = QuantMix::named(quant).expect("a quant");
        let header = model.header(mix, context).expect("its dimensions are whole");
        let has = header.shape().expect("a shape").weights.bytes() as f64 / (1_u64 << 30) as f64;
        let off = (has / gib - 1.0) * 100.0;
        assert!(off.abs() < 1.0, "{name} {quant}: {has:.2} and not {gib} GiB, {off:+.1} %");
    }
}

#[test]
fn quants_are_known_as_people_write_them() {
    let rows = [
        ("EXL3", "EXL3-4.0"),
        ("4.00bpw", "EXL3-4.0"),
        ("EXL3 4.00bpw", "EXL3-4.0"),
        ("exl3-3.5bpw", "EXL3-3.5"),
        ("AWQ 4-bit", "AWQ"),
        ("q4_k_m", "Q4_K_M"),
        ("Q4", "Q4_K_M"),
        ("fp16", "F16"),
        ("MLX 4-bit", "MLX-4bit"),
    ];
    for (written, expected) in rows {
        assert_eq!(QuantMix::named(written).map(|one| one.name()), Ok(expected), "{written}");
    }
    for unknown in ["EXL3 4.3bpw", "Q4_K_X", "bpw", ""] {
        assert!(QuantMix::named(unknown).is_err(), "{unknown}");
    }
}

#[test]
fn models_are_known_as_people_write_them() {
    let rows = [
        ("Qwen3.6", "Qwen3.6-35B-A3B"),
        ("Qwen2.5-14B-Instruct", "Qwen2.5-14B"),
        ("Qwen2.5-32B", "Qwen2.5-32B"),
        ("Mistral-7B", "Mistral-7B"),
        ("Mistral-Nemo", "Mistral-Nemo-12B"),
        ("Gemma-2", "Gemma-2-9B"),
        ("gemma-2-27b-it", "Gemma-2-27B"),
        ("Gemma-4", "Gemma-4-E4B"),
        ("gemma-4-31b-it", "Gemma-4-31B"),
        ("DeepSeek-V3", "DeepSeek-V3"),
        ("Llama-3.1", "Llama-3.1-8B"),
        ("phi-4-mini", "Phi-4-mini"),
        ("nemo", "Mistral-Nemo-12B"),
        ("Mistral-Nemo-Instruct", "Mistral-Nemo-12B"),
        ("Mistral-Nemo-Instruct-2407", "Mistral-Nemo-12B"),
        ("mistralai_Mistral-Nemo-Instruct-2407-GGUF", "Mistral-Nemo-12B"),
        ("Mistral-7B-Instruct-v0.3", "Mistral-7B"),
        ("Mistral-Small-24B-Instruct-2501", "Mistral-Small-24B"),
        ("Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B"),
        ("Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("google_gemma-3-4b-it", "Gemma-3-4B"),
        ("Qwen3-4B-Instruct-2507", "Qwen3-4B"),
        ("Qwen3-4B-Thinking-2507", "Qwen3-4B"),
    ];
    for (written, expected) in rows {
        let found = find(written).map(|(known, _)| known.name.as_str());
        assert_eq!(found.ok(), Some(expected), "{written}");
    }
    // The month alone tells these from models of other sizes, and tags and repositories have their own headers.
    let others = [
        "Mistral-Small-Instruct-2409",
        "mistral-nemo:12b-instruct",
        "mistralai/Mistral-Nemo-Instruct-2407",
        "gpt-4",
        "-2",
        "-it",
        "Gemma-",
        "",
    ];
    for name in others {
        assert!(find(name).is_err(), "{name}");
    }
}

#[test]
fn every_model_has_a_shape_in_every_quant() {
    assert!(!KNOWN.is_empty());
    for model in KNOWN.iter() {
        for name in QuantMix::names() {
            let mix = QuantMix::named(name).expect("a quant");
            for (_, context) in &model.tags {
                let shape = model.header(mix, *context).and_then(|header| header.shape());
                let shape = shape.unwrap_or_else(|error| panic!("{} {name}: {error}", model.name));
                assert!(shape.weights.bytes() > 0 && shape.trained_context_tokens == *context);
            }
        }
        assert!(!model.good_for.is_empty(), "{}", model.name);
        let (year, month) = (model.released / 100, model.released % 100);
        assert!((2023..2100).contains(&year) && (1..=12).contains(&month), "{}", model.name);
        let native = model.native_quant.as_deref().map(QuantMix::named);
        assert!(native.is_none_or(|quant| quant.is_ok()), "{}", model.name);
    }
}

#[test]
fn a_model_trained_in_a_quant_has_that_one_and_no_other_to_compare() {
    let (oss, context) = find("gpt-oss:20b").expect("known");
    assert_eq!(oss.default_quant(), "MXFP4");
    let others = |quant| {
        let variants = oss.variants(QuantMix::named(quant).expect("a quant"), context);
        variants.into_iter().map(|other| other.quant).collect::<Vec<_>>()
    };
    assert_eq!(others("MXFP4"), Vec::<String>::new());
    assert_eq!(others("Q8_0"), ["MXFP4"]);
    let (usual, _) = find("qwen3:8b").expect("known");
    assert_eq!(usual.default_quant(), "Q4_K_M");
}

#[test]
fn an_unknown_name_is_told_the_nearest() {
    let error = find("qwen3:8").expect_err("a misspelling");
    assert!(error.to_string().contains("qwen3:8b"), "{error}");
    assert!(QuantMix::named("Q4_K_X").expect_err("none").to_string().contains("Q4_K_M"));
}
