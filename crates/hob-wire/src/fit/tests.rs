//! Answers and requests, whole.

use hob_core::fit::{Alternative, Engine, Format, Location, Toward, assess};
use hob_core::machine::{
    Basis, Constants, Cpu, Device, Fact, Gpu, GpuApi, GpuMemory, Link, Memory, Vendor,
};
use hob_core::shape::{KvShape, LayerShape};
use hob_core::weights::{Part, Quant, WeightGroup, Weights};
use hob_core::{KvType, ModelShape};

use super::*;
use crate::WireError;

const GB: u64 = 1_000_000_000;

fn known(bytes_s: f64) -> Device {
    let source = "by hand".to_owned();
    let bandwidth = Some(Fact { value: bytes_s, basis: Basis::Stated, source });
    let constants = fitted(0.70, 0.60, 37.12e12);
    Device { bandwidth, constants: Some(Constants { recurrent_us: 120.0, ..constants }) }
}

/// Written out here, because the usual constants are refitted from time to time.
fn fitted(
    bandwidth_efficiency: f64,
    kv_bandwidth_efficiency: f64,
    prefill_flops: f64,
) -> Constants {
    Constants {
        basis: Basis::Prior,
        bandwidth_efficiency,
        kv_bandwidth_efficiency,
        layer_us: 10.0,
        recurrent_us: 60.0,
        experts_us: 0.0,
        token_us: 0.0,
        prefill_flops: Some(prefill_flops),
        kernels: Vec::new(),
        steadiness: 1.0,
    }
}

fn machine() -> Machine {
    let memory = GpuMemory::Own { total_bytes: 8 * GB, free_bytes: 7 * GB };
    let card = Gpu {
        driver: Some("570.86".to_owned()),
        compute_capability: Some((8, 9)),
        link: Some(Link { name: "PCIe 4.0 x8".to_owned(), bytes_s: 15e9, basis: Basis::Stated }),
        device: known(256e9),
        ..Gpu::new("RTX 4070 Laptop", Vendor::Nvidia, GpuApi::Cuda, memory)
    };
    Machine { name: "laptop".to_owned(), os: Some("linux".to_owned()), gpus: vec![card], ..bare() }
}

/// A machine with memory of unknown speed.
fn bare() -> Machine {
    Machine {
        name: "this machine".to_owned(),
        cpu: Cpu {
            cores: 8,
            threads: 16,
            features: vec!["avx2".to_owned()],
            device: Device { bandwidth: None, constants: Some(fitted(0.45, 0.30, 0.48e12)) },
            ..Cpu::default()
        },
        memory: Memory { total_bytes: 32 * GB, available_bytes: 24 * GB },
        ..Machine::default()
    }
}

/// Two layers of 1.5 GB each, and 100 MB of embedding that makes the scores too.
fn model() -> Model {
    let kv = KvShape { heads: 8, key_length: 128, value_length: 128 };
    let layer = LayerShape { heads: 32, kv: Some(kv), ..LayerShape::default() };
    let group = |layer, part, bytes: u64| WeightGroup {
        layer,
        part,
        quant: Quant("Q4_K"),
        elements: bytes * 16 / 9,
        bytes,
        in_eights_bytes: bytes,
        rows: 0,
    };
    let weights = Weights(vec![
        group(Some(0), Part::Dense, 3 * GB / 2),
        group(Some(1), Part::Dense, 3 * GB / 2),
        group(None, Part::TokenEmbedding, GB / 10),
    ]);
    let shape = ModelShape {
        architecture: "llama".to_owned(),
        layers: vec![layer; 2],
        embedding_length: 4_096,
        feed_forward_length: 14_336,
        vocab_size: 128_000,
        trained_context_tokens: 8_192,
        weights,
        ..ModelShape::default()
    };
    let (name, quant) = ("llama-test".to_owned(), "Q4_K_M".to_owned());
    let (basis, location) = (Basis::Measured, Location::default());
    Model { name, format: Format::Gguf, quant, shape, basis, location }
}

fn answer(machine: &Machine, options: &FitOptions) -> FitAnswer {
    let model = model();
    let assessment = assess(machine, &model, options).expect("an answer");
    FitAnswer::of(machine, &model, &assessment, options)
}

#[test]
fn a_model_on_a_card() {
    let options = FitOptions { context_tokens: Some(4_096), sequences: 1, ..FitOptions::default() };
    insta::assert_snapshot!(answer(&machine(), &options).to_json(), @r##"{"verdict":"llama-test Q4_K_M fits in VRAM with a context of 4,096 tokens (KV cache in f16), at about 57 tokens/s (43 to 71). The longest context that fits is 8,192 tokens, its trained length.","fits":true,"machine":{"name":"laptop","os":"linux","cpu":{"name":null,"cores":8,"threads":16,"features":["avx2"],"bandwidth":null},"memory":{"total":32000000000,"available":24000000000},"gpus":[{"name":"RTX 4070 Laptop","vendor":"NVIDIA","api":"CUDA","unified":false,"total":8000000000,"free":7000000000,"driver":"570.86","link":{"name":"PCIe 4.0 x8","bytes_s":15000000000.0,"basis":"stated"},"bandwidth":{"bytes_s":256000000000.0,"basis":"stated","source":"by hand"}}]},"model":{"name":"llama-test","format":"GGUF","quant":"Q4_K_M","architecture":"llama","layers":2,"experts":0,"experts_used":0,"bytes":3100000000,"trained_context":8192,"basis":"measured"},"plans":[{"quant":"Q4_K_M","format":"GGUF","engine":"hob","kv_k":"f16","kv_v":"f16","placement":{"kind":"vram","text":"VRAM"},"flags":[{"engine":"hob","text":"[chat]\nmodel = \"llama-test-Q4_K_M.gguf\"\ncontext_tokens = 4096\nkv_type = \"f16\"\nparallel = 1\ngpu_layers = 999"},{"engine":"llama.cpp","text":"llama-server -m llama-test-Q4_K_M.gguf -c 4096 -np 1 -ngl 999"},{"engine":"Ollama","text":"# to start it\nOLLAMA_NUM_PARALLEL=1 ollama serve\n# Modelfile\nFROM llama-test-Q4_K_M.gguf\nPARAMETER num_ctx 4096\nPARAMETER num_gpu 999"}],"fits":true,"memory":{"terms":[{"name":"weights","pool":"GPU 0","bytes":3100000000,"formula":"Σ elements / block × bytes, of every tensor that lies here","basis":"measured"},{"name":"KV cache","pool":"GPU 0","bytes":33554432,"formula":"Σ layers: kv heads × (key × bytes + value × bytes) × cells","basis":"measured"},{"name":"computation","pool":"GPU 0","bytes":134283264,"formula":"the most that one step has in memory at a time","basis":"prior"},{"name":"process and vocabulary","pool":"GPU 0","bytes":419430400,"formula":"the process, its vocabulary, and what the driver takes","basis":"prior"},{"name":"weights","pool":"RAM","bytes":100000000,"formula":"Σ elements / block × bytes, of every tensor that lies here","basis":"measured"},{"name":"computation","pool":"RAM","bytes":12582912,"formula":"the most that one step has in memory at a time","basis":"prior"},{"name":"process and vocabulary","pool":"RAM","bytes":588169472,"formula":"the process, its vocabulary, and what the driver takes","basis":"prior"}],"need":4388020480,"free":31000000000,"margin":1342177280,"pools":[{"pool":"RAM","name":"RAM","need":700752384,"reclaimable":0,"free":24000000000,"margin":268435456,"lacks":0,"fits":true},{"pool":"GPU 0","name":"RTX 4070 Laptop","need":3687268096,"reclaimable":0,"free":7000000000,"margin":1073741824,"lacks":0,"fits":true}]},"context":{"requested":4096,"max":8192,"limited_by":"trained"},"decode":[{"context":512,"tok_s":57.65,"low":43.24,"high":72.06,"terms":[{"name":"weights, GPU 0","us":17299.0},{"name":"KV cache, GPU 0","us":27.31},{"name":"layers, GPU 0","us":20.0}],"basis":"prior","confidence":"fair"},{"context":4096,"tok_s":57.02,"low":42.77,"high":71.28,"terms":[{"name":"weights, GPU 0","us":17299.0},{"name":"KV cache, GPU 0","us":218.5},{"name":"layers, GPU 0","us":20.0}],"basis":"prior","confidence":"fair"}],"decode_requested":{"context":4096,"tok_s":57.02,"low":42.77,"high":71.28,"terms":[{"name":"weights, GPU 0","us":17299.0},{"name":"KV cache, GPU 0","us":218.5},{"name":"layers, GPU 0","us":20.0}],"basis":"prior","confidence":"fair"},"prefill":[{"context":4096,"tok_s":3458.0,"low":2594.0,"high":4323.0,"terms":[{"name":"steps, GPU 0","us":1177011.0},{"name":"attention, GPU 0","us":7405.0}],"basis":"prior","confidence":"fair","first_token_ms":1184.0}],"warnings":[]},{"quant":"Q4_K_M","format":"GGUF","engine":"hob","kv_k":"f16","kv_v":"f16","placement":{"kind":"ram","text":"RAM"},"flags":[{"engine":"hob","text":"[chat]\nmodel = \"llama-test-Q4_K_M.gguf\"\ncontext_tokens = 4096\nkv_type = \"f16\"\nparallel = 1\ngpu_layers = 0"},{"engine":"llama.cpp","text":"llama-server -m llama-test-Q4_K_M.gguf -c 4096 -np 1 -ngl 0"},{"engine":"Ollama","text":"# to start it\nOLLAMA_NUM_PARALLEL=1 ollama serve\n# Modelfile\nFROM llama-test-Q4_K_M.gguf\nPARAMETER num_ctx 4096\nPARAMETER num_gpu 0"}],"fits":true,"memory":{"terms":[{"name":"weights","pool":"RAM","bytes":3100000000,"formula":"Σ elements / block × bytes, of every tensor that lies here","basis":"measured"},{"name":"KV cache","pool":"RAM","bytes":33554432,"formula":"Σ layers: kv heads × (key × bytes + value × bytes) × cells","basis":"measured"},{"name":"computation","pool":"RAM","bytes":134283264,"formula":"the most that one step has in memory at a time","basis":"prior"},{"name":"process and vocabulary","pool":"RAM","bytes":168169472,"formula":"the process, its vocabulary, and what the driver takes","basis":"prior"}],"need":3436007168,"free":24000000000,"margin":268435456,"pools":[{"pool":"RAM","name":"RAM","need":3436007168,"reclaimable":0,"free":24000000000,"margin":268435456,"lacks":0,"fits":true}]},"context":{"requested":4096,"max":8192,"limited_by":"trained"},"decode":[{"context":512,"tok_s":null,"low":null,"high":null,"terms":[],"basis":null,"confidence":null},{"context":4096,"tok_s":null,"low":null,"high":null,"terms":[],"basis":null,"confidence":null}],"decode_requested":{"context":4096,"tok_s":null,"low":null,"high":null,"terms":[],"basis":null,"confidence":null},"prefill":[{"context":4096,"tok_s":null,"low":null,"high":null,"terms":[],"basis":null,"confidence":null,"first_token_ms":null}],"warnings":[{"code":"unknown_speed","text":"the memory bandwidth is unknown, so hob cannot predict a speed","action":"hob fit calibrate"}]}],"longest":[{"kv_k":"f16","kv_v":"f16","max":8192,"limited_by":"trained"},{"kv_k":"q8_0","kv_v":"q8_0","max":8192,"limited_by":"trained"}],"alternatives":[],"constants":[{"name":"bandwidth","device":"GPU 0","value":256000000000.0,"unit":"bytes/s","basis":"stated","source":"by hand","engine_version":null,"date":null},{"name":"bandwidth efficiency","device":"GPU 0","value":0.7,"unit":"share","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"KV cache bandwidth efficiency","device":"GPU 0","value":0.6,"unit":"share","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"layer","device":"GPU 0","value":10.0,"unit":"us","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"recurrent layer","device":"GPU 0","value":120.0,"unit":"us","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"layer of experts","device":"GPU 0","value":0.0,"unit":"us","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"token","device":"GPU 0","value":0.0,"unit":"us","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"prefill","device":"GPU 0","value":37120000000000.0,"unit":"FLOP/s","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"steadiness","device":"GPU 0","value":null,"unit":"share","basis":null,"source":null,"engine_version":null,"date":null}]}"##);
}

#[test]
fn equal_cards_have_their_numbers() {
    let mut machine = machine();
    machine.gpus.push(machine.gpus[0].clone());
    let said = answer(&machine, &FitOptions::default()).to_json();
    for part in ["\"text\":\"VRAM of GPU 0\"", "\"name\":\"RTX 4070 Laptop (GPU 1)\""] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn what_nobody_knows_is_null() {
    let options = FitOptions { context_tokens: Some(1_024), ..FitOptions::default() };
    insta::assert_snapshot!(answer(&bare(), &options).to_json(), @r##"{"verdict":"llama-test Q4_K_M fits in RAM with a context of 1,024 tokens (KV cache in f16), at an unknown speed. The longest context that fits is 8,192 tokens, its trained length.","fits":true,"machine":{"name":"this machine","os":null,"cpu":{"name":null,"cores":8,"threads":16,"features":["avx2"],"bandwidth":null},"memory":{"total":32000000000,"available":24000000000},"gpus":[]},"model":{"name":"llama-test","format":"GGUF","quant":"Q4_K_M","architecture":"llama","layers":2,"experts":0,"experts_used":0,"bytes":3100000000,"trained_context":8192,"basis":"measured"},"plans":[{"quant":"Q4_K_M","format":"GGUF","engine":"hob","kv_k":"f16","kv_v":"f16","placement":{"kind":"ram","text":"RAM"},"flags":[{"engine":"hob","text":"[chat]\nmodel = \"llama-test-Q4_K_M.gguf\"\ncontext_tokens = 1024\nkv_type = \"f16\"\nparallel = 1\ngpu_layers = 0"},{"engine":"llama.cpp","text":"llama-server -m llama-test-Q4_K_M.gguf -c 1024 -np 1 -ngl 0"},{"engine":"Ollama","text":"# to start it\nOLLAMA_NUM_PARALLEL=1 ollama serve\n# Modelfile\nFROM llama-test-Q4_K_M.gguf\nPARAMETER num_ctx 1024\nPARAMETER num_gpu 0"}],"fits":true,"memory":{"terms":[{"name":"weights","pool":"RAM","bytes":3100000000,"formula":"Σ elements / block × bytes, of every tensor that lies here","basis":"measured"},{"name":"KV cache","pool":"RAM","bytes":8388608,"formula":"Σ layers: kv heads × (key × bytes + value × bytes) × cells","basis":"measured"},{"name":"computation","pool":"RAM","bytes":131137536,"formula":"the most that one step has in memory at a time","basis":"prior"},{"name":"process and vocabulary","pool":"RAM","bytes":168169472,"formula":"the process, its vocabulary, and what the driver takes","basis":"prior"}],"need":3407695616,"free":24000000000,"margin":268435456,"pools":[{"pool":"RAM","name":"RAM","need":3407695616,"reclaimable":0,"free":24000000000,"margin":268435456,"lacks":0,"fits":true}]},"context":{"requested":1024,"max":8192,"limited_by":"trained"},"decode":[{"context":512,"tok_s":null,"low":null,"high":null,"terms":[],"basis":null,"confidence":null},{"context":4096,"tok_s":null,"low":null,"high":null,"terms":[],"basis":null,"confidence":null}],"decode_requested":{"context":1024,"tok_s":null,"low":null,"high":null,"terms":[],"basis":null,"confidence":null},"prefill":[{"context":1024,"tok_s":null,"low":null,"high":null,"terms":[],"basis":null,"confidence":null,"first_token_ms":null}],"warnings":[{"code":"unknown_speed","text":"the memory bandwidth is unknown, so hob cannot predict a speed","action":"hob fit calibrate"}]}],"longest":[{"kv_k":"f16","kv_v":"f16","max":8192,"limited_by":"trained"},{"kv_k":"q8_0","kv_v":"q8_0","max":8192,"limited_by":"trained"}],"alternatives":[],"constants":[{"name":"bandwidth","device":"CPU","value":null,"unit":"bytes/s","basis":null,"source":null,"engine_version":null,"date":null},{"name":"bandwidth efficiency","device":"CPU","value":0.45,"unit":"share","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"KV cache bandwidth efficiency","device":"CPU","value":0.3,"unit":"share","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"layer","device":"CPU","value":10.0,"unit":"us","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"recurrent layer","device":"CPU","value":60.0,"unit":"us","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"layer of experts","device":"CPU","value":0.0,"unit":"us","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"token","device":"CPU","value":0.0,"unit":"us","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"prefill","device":"CPU","value":480000000000.0,"unit":"FLOP/s","basis":"prior","source":null,"engine_version":null,"date":null},{"name":"steadiness","device":"CPU","value":null,"unit":"share","basis":null,"source":null,"engine_version":null,"date":null}]}"##);
}

#[test]
fn what_would_be_longer_is_said_beside_the_answer() {
    let (machine, model, options) = (machine(), model(), FitOptions::default());
    let mut assessment = assess(&machine, &model, &options).expect("an answer");
    let plan = assessment.plans[0].clone();
    assessment.alternatives =
        vec![Alternative { toward: Toward::Longer, quant: "Q8_0".to_owned(), plan }];
    let said = FitAnswer::of(&machine, &model, &assessment, &options).to_json();
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let expected = serde_json::json!([{
        "toward": "longer", "quant": "Q8_0", "kv_k": "f16", "kv_v": "f16",
        "placement": said["plans"][0]["placement"], "tok_s": said["plans"][0]["decode_requested"]["tok_s"],
        "max": 8192, "bytes": said["plans"][0]["memory"]["need"],
    }]);
    assert_eq!(said["alternatives"], expected);
}

#[test]
fn what_was_calibrated_says_with_what_and_when() {
    let mut machine = machine();
    let usual = hob_core::fit::constants(&machine, ComputeSite::Gpu(0));
    machine.gpus[0].device.constants = Some(Constants { basis: Basis::Calibrated, ..usual });
    let answer = answer(&machine, &FitOptions::default());
    let stamped = answer.stamped(ComputeSite::Gpu(0), "llama.cpp b11434", "2026-11-20");
    let dated = |name: &str| {
        let row = stamped.constants.iter().find(|row| row.name == name).expect("a row");
        (row.engine_version.as_deref(), row.date.as_deref())
    };
    assert_eq!(dated("bandwidth efficiency"), (Some("llama.cpp b11434"), Some("2026-11-20")));
    assert_eq!(dated("bandwidth"), (None, None));
}

#[test]
fn a_verdict_is_a_sentence() {
    let small = |ram_gb: u64| Machine {
        memory: Memory { total_bytes: ram_gb * GB, available_bytes: ram_gb * GB },
        ..bare()
    };
    let options = |context_tokens, kv| FitOptions {
        context_tokens: Some(context_tokens),
        kv: Some(kv),
        ..FitOptions::default()
    };
    let apart = KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 };
    let rows = [
        (
            machine(),
            options(1_024, apart),
            "llama-test Q4_K_M fits in VRAM with a context of 1,024 tokens (KV cache in q8_0/q4_0), at about 58 tokens/s (43 to 72). The longest context that fits is 8,192 tokens, its trained length.",
        ),
        (
            bare(),
            options(8_192, KvTypes::default()),
            "llama-test Q4_K_M fits in RAM with a context of 8,192 tokens (KV cache in f16), at an unknown speed.",
        ),
        (
            small(2),
            options(8_192, KvTypes::default()),
            "llama-test Q4_K_M does not fit with 8,192 tokens of context: it needs 3.5 GB and 0.3 GB of margin of RAM, where 2.0 GB are free; no context is short enough.",
        ),
    ];
    for (machine, options, expected) in rows {
        assert_eq!(answer(&machine, &options).verdict, expected);
    }
}

fn request() -> FitRequest {
    FitRequest {
        model: "qwen3-8b".to_owned(),
        quant: None,
        machine: None,
        options: FitOptions { sequences: 1, ..FitOptions::default() },
        ignored: Vec::new(),
    }
}

#[test]
fn a_body_and_an_address_ask_the_same() {
    let body = r#"{"model": "qwen3-8b", "quant": "Q4_K_M", "machine": "laptop", "context_tokens": 16384,
        "kv": "q8_0/q4_0", "parallel": 2, "engine": "vllm", "tok_s_min": 7.5, "colour": "red"}"#;
    let address = [
        ("model", "qwen3-8b"),
        ("quant", "Q4_K_M"),
        ("machine", "laptop"),
        ("context_tokens", "16384"),
        ("kv", "q8_0/q4_0"),
        ("parallel", "2"),
        ("engine", "vllm"),
        ("tok_s_min", "7.5"),
        ("colour", "red"),
    ];
    let expected = FitRequest {
        quant: Some("Q4_K_M".to_owned()),
        machine: Some("laptop".to_owned()),
        options: FitOptions {
            context_tokens: Some(16_384),
            kv: Some(KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 }),
            sequences: 2,
            engine: Some(Engine::Vllm),
            tok_s_min: Some(7.5),
        },
        ignored: vec!["colour".to_owned()],
        ..request()
    };
    assert_eq!(parse_fit(body.as_bytes()), Ok(expected.clone()));
    assert_eq!(parse_fit_query(&owned(&address)), Ok(expected));
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn what_is_left_out_is_left_open() {
    assert_eq!(parse_fit(br#"{"model": "qwen3-8b", "kv": null}"#), Ok(request()));
    let address = owned(&[("model", "qwen3-8b"), ("kv", ""), ("context_tokens", " ")]);
    assert_eq!(parse_fit_query(&address), Ok(request()));
    // A name of digits stays a name.
    let named = parse_fit_query(&owned(&[("model", "7")])).expect("a request");
    assert_eq!(named.model, "7");
}

#[test]
fn refusals_name_the_field_and_what_it_takes() {
    let rows = r#"
        {} => 'model' is missing
        {"model": 7} => 'model' must be a string, and is a number
        {"model": "m", "context_tokens": 0} => 'context_tokens' must be from 1 to 67108864, and is 0
        {"model": "m", "context_tokens": "many"} => 'context_tokens' must be a whole number, and is a string
        {"model": "m", "kv": "q8_0/q5"} => 'kv' is a type or two, as q8_0 or q8_0/q4_0: 'q5' is not a KV cache type (expected f16, q8_0 or q4_0)
        {"model": "m", "engine": "exllama"} => 'engine' must be one of hob, llama.cpp, Ollama, tabbyAPI, vLLM, mlx-lm, transformers, and is 'exllama'
        {"model": "m", "tok_s_min": 0} => 'tok_s_min' must be more than 0 and at most 1000000, and is 0
        {"model": "m", "parallel": 4096} => 'parallel' must be from 1 to 1024, and is 4096
    "#;
    for row in rows.trim().lines() {
        let (body, expected) = row.trim().split_once(" => ").expect(row);
        let error: WireError = parse_fit(body.as_bytes()).expect_err("a refusal");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn lists_are_names() {
    let model = FitModel {
        name: "qwen3-8b".to_owned(),
        installed: false,
        quant: "Q4_K_M".to_owned(),
        quants: vec!["Q8_0".to_owned(), "Q4_K_M".to_owned()],
        trained_context: Some(40_960),
    };
    insta::assert_snapshot!(fit_models(&[model]) + &fit_machines(&["laptop".to_owned()]), @r#"{"models":[{"name":"qwen3-8b","installed":false,"quant":"Q4_K_M","quants":["Q8_0","Q4_K_M"],"trained_context":40960}]}{"machines":[{"name":"laptop"}]}"#);
}
