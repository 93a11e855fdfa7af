//! `hob fit`: predictions from a header and from known dimensions, for this and another machine; and rejected input.

use hob_models::gguf::sample::SampleGguf;

use crate::{Has, User};

/// Small enough for any machine. Its figures are known for this one.
const ON: &str = "--machine rtx-4070-laptop";

#[test]
fn a_file_is_asked_about_by_its_header_alone() {
    let user = User::new();
    std::fs::write(user.path("work/model.gguf"), SampleGguf::llama().bytes()).expect("a file");
    let answer = user.json(format!("fit model.gguf --json {ON}"));
    assert_eq!(answer["fits"], true);
    let plan = &answer["plans"][0];
    assert_eq!((&plan["placement"]["kind"], &plan["engine"]), (&"vram".into(), &"hob".into()));
    let terms = plan["memory"]["terms"].as_array().expect("terms");
    let weights = terms.iter().find(|term| term["name"] == "weights").expect("weights");
    assert_eq!(weights["basis"], "measured");
    user.prints(format!("fit model.gguf {ON}")).has(&[
        "fits in VRAM with a context of 512 tokens",
        "llama-server -m",
        "-ngl 999",
    ]);
}

#[test]
fn a_model_trained_in_a_quant_is_assessed_in_the_one_that_is_recommended() {
    let user = User::new();
    let answer = user.json("fit gpt-oss:20b --json --machine m4-pro-48gb");
    let recommended = user.json("fit --recommend --json --machine m4-pro-48gb");
    let ranked = recommended.as_array().expect("models");
    let same = ranked.iter().find(|one| one["name"] == "gpt-oss:20b").expect("it fits");
    assert_eq!(answer["model"]["quant"], "MXFP4", "{answer}");
    assert_eq!(same["answer"]["model"]["quant"], answer["model"]["quant"]);
    let alternatives = answer["alternatives"].to_string();
    assert!(!alternatives.contains("Q8_0") && !alternatives.contains("Q2_K"), "{alternatives}");
}

#[test]
fn a_ranking_has_no_options_of_one_model() {
    let user = User::new();
    user.fails("fit --recommend --require", 2, "cannot be used with");
    user.fails("fit --recommend --dimensions block_count=32", 2, "cannot be used with");
    let engine = "fit --recommend --engine";
    let reason = "vLLM does not read GGUF; hob, llama.cpp, Ollama would";
    user.fails(format!("{engine} vllm"), 2, reason);
    let reason = "Ollama keeps keys and values in one type";
    user.fails(format!("{engine} ollama --kv q8_0/q4_0"), 2, reason);
}

#[test]
fn the_verdict_doubts_a_speed_that_rests_on_other_processors() {
    let user = User::new();
    let on = |machine: &str| {
        let said = user.prints(format!("fit qwen3.5:35b-a3b --machine {machine}"));
        said.lines().next().expect("a verdict").to_owned()
    };
    let doubted = on("ryzen-5800u");
    // Published for this machine: 4.65 tokens/s, on the integrated GPU.
    let doubt = "), a guess from other CPUs (4.6 on the integrated GPU). The longest context";
    assert!(doubted.contains("fits in RAM") && doubted.contains(doubt), "{doubted}");
    assert!(!on("ddr5-desktop").contains("guess"), "a CPU without graphics has no other figure");
}

#[test]
fn a_model_too_large_for_the_card_is_divided() {
    let user = User::new();
    let answer = user.json(format!("fit qwen3.5:27b --json {ON}"));
    let smaller = answer["plans"][0]["warnings"].to_string();
    assert!(smaller.contains("qwen3.5:9b lies on the card alone, and is faster"), "{smaller}");
    let kinds: Vec<&str> = answer["plans"]
        .as_array()
        .expect("plans")
        .iter()
        .filter_map(|plan| plan["placement"]["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["split", "ram", "vram"]);
    let moe = user.json(format!("fit qwen3:30b-a3b --json {ON}"));
    assert_eq!(moe["plans"][0]["placement"]["kind"], "experts_in_ram");
    let flags = moe["plans"][0]["flags"].to_string();
    assert!(flags.contains("--n-cpu-moe"), "{flags}");
}

#[test]
fn a_model_that_fits_in_few_bits_alone_names_that_quant_once_with_a_warning() {
    let user = User::new();
    let said = user.prints("fit qwen3.5:27b --machine n100");
    let named = said.lines().filter(|line| line.trim_start().starts_with("fits "));
    assert_eq!(named.count(), 1, "{said}");
    assert!(said.contains("answers are noticeably worse"), "{said}");
}

#[test]
fn a_model_that_does_not_fit_names_the_shortage_and_exits_with_1_on_request() {
    let user = User::new();
    let large = format!("fit llama3.3:70b {ON} --pool gpu0=1GB --pool ram=2GB");
    user.prints(&large).has(&[
        "does not fit with 8,192 tokens of context",
        "the most capable known model that fits",
    ]);
    user.refusal(format!("{large} --require"), 1);
    user.prints(format!("fit smollm2:135m --require {ON}"));
}

#[test]
fn an_impossible_question_is_answered_with_one_sentence() {
    let user = User::new();
    user.write("cut.gguf", "GGUF");
    user.write("text.gguf", "hello, this is no model");
    let rows = [
        ("cut.gguf", 2, "cut.gguf: "),
        ("", 2, "which model?"),
        ("", 2, "such as hob fit qwen3:8b"),
        ("qwen3:8b --context many", 2, "'many' is not a number of tokens"),
        ("qwen3:8b --engine none", 2, "expected one of hob, llama.cpp"),
        ("qwen3:8", 4, "did you mean qwen3:8b"),
        ("./none.gguf", 2, "there is no such file or folder"),
        ("text.gguf", 2, "this is not a GGUF file"),
        ("qwen3:8b --engine vLLM", 2, "vLLM does not read GGUF; hob, llama.cpp, Ollama would"),
        (
            "qwen3:8b --engine hob --kv q8_0/q4_0",
            2,
            "hob keeps keys and values in one type: both must be q8_0 or both q4_0",
        ),
        ("qwen3:8b --quant Q9", 2, "unknown quant 'Q9'"),
        ("qwen3:8b --min-tok-s nan", 2, "'nan' is not a speed"),
        ("qwen3:8b --min-tok-s -1", 2, "unexpected argument '-1'"),
        ("qwen3:8b --machine cray-1", 2, "there is no profile \"cray-1\""),
        ("--dimensions block_count=1,heads=2", 2, "there is no dimension 'heads'"),
    ];
    for (args, code, expected) in rows {
        user.fails(format!("fit {args}"), code, expected);
    }
}

#[test]
fn names_are_taken_as_people_write_them_and_each_memory_is_one_row() {
    let user = User::new();
    for quant in ["EXL3", "4.00bpw", "EXL3 4.00bpw"] {
        let said = user.prints(format!("fit qwen3.5:9b --quant '{quant}' {ON}"));
        assert!(said.contains("tabbyAPI"), "{quant}: {said}");
    }
    let mla = "fit deepseek-v2-lite --engine llama.cpp --machine ddr5-desktop";
    assert!(user.prints(mla).contains("fits in RAM"));
    let said = user.prints("fit qwen3:8b --machine m4-pro-48gb");
    let rows = said.lines().filter(|line| line.contains("RAM") && line.contains(" weights "));
    assert_eq!(rows.count(), 1, "{said}");
    assert!(said.contains("published"), "{said}");
    // The card and the processor share this memory, and each has weights there.
    let answer = user.json("fit qwen3:8b --machine m4-pro-48gb --json");
    let terms = answer["plans"][0]["memory"]["terms"].as_array().expect("terms");
    assert_eq!(terms.iter().filter(|term| term["name"] == "weights").count(), 1, "{answer}");
    let answer = user.json("fit gemma3:4b --machine n100 --json");
    let terms = answer["plans"][0]["decode"][0]["terms"].as_array().expect("terms");
    let weights = terms.iter().find(|term| term["name"] == "weights, CPU").expect("weights");
    let constant = |name: &str| {
        let all = answer["constants"].as_array().expect("constants").iter();
        let found = all.clone().find(|one| one["name"] == name && one["device"] == "CPU");
        found.and_then(|one| one["value"].as_f64()).expect("a figure")
    };
    // hob does not load the vision weights, and no engine reads them for text.
    let memory = answer["plans"][0]["memory"]["terms"].as_array().expect("terms");
    let stored = memory.iter().find(|term| term["name"] == "weights").expect("weights");
    let stored_gb = stored["bytes"].as_f64().expect("a size") / 1e9;
    assert!((2.4..2.6).contains(&stored_gb), "{stored_gb}");
    let us = weights["us"].as_f64().expect("a time");
    let read_gb = us / 1e6 * constant("bandwidth") * constant("bandwidth efficiency") / 1e9;
    assert!((2.4..2.6).contains(&read_gb), "{read_gb}");
}

#[test]
fn words_are_explained_and_models_recommended() {
    let user = User::new();
    user.prints("fit explain 'kv cache'").has(&["What attention stores for each token"]);
    user.fails("fit explain 'KV cash'", 2, "try KV cache");
    let said = user.prints("fit --recommend --for code --machine rtx-4090");
    let row = said.lines().find(|line| line.contains("qwen3.5:27b")).expect("it is known");
    assert!(row.contains("VRAM") && row.contains("suits"), "{said}");
    assert!(said.starts_with("For code: first what has room for 16384 tokens"), "{said}");
}

#[test]
fn the_model_of_speed_is_held_to_what_was_published() {
    let user = User::new();
    let report = user.json("fit validate --json");
    let lines = report["lines"].as_array().expect("lines");
    assert!(lines.iter().filter(|line| line["part"] == "decode").count() >= 15, "{report}");
    user.prints("fit validate").has(&["qwen3-coder:30b-a3b", "from one row"]);
}
