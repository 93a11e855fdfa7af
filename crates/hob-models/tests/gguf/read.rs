//! What a header says, read as it stands.

use std::io::Cursor;

use hob_core::ChatCard;
use hob_core::chat::Sampling;
use hob_models::Gguf;
use hob_models::gguf::sample::SampleGguf;
use hob_models::gguf::{Scalar, Value, card};

pub(crate) fn read(sample: &SampleGguf) -> Gguf {
    Gguf::read(Cursor::new(sample.bytes())).expect("a header")
}

#[test]
fn every_type_of_value_is_read() {
    let check = |kind: u32, bytes: &[u8], expected| {
        let gguf = read(&SampleGguf::empty().raw("key", kind, bytes));
        assert_eq!(gguf.value("key"), Some(&Value::Scalar(expected)), "type {kind}");
    };
    check(0, &[200], Scalar::Unsigned(200));
    check(1, &[0xff], Scalar::Signed(-1));
    check(2, &500_u16.to_le_bytes(), Scalar::Unsigned(500));
    check(3, &(-500_i16).to_le_bytes(), Scalar::Signed(-500));
    check(4, &70_000_u32.to_le_bytes(), Scalar::Unsigned(70_000));
    check(5, &(-70_000_i32).to_le_bytes(), Scalar::Signed(-70_000));
    check(6, &0.5_f32.to_le_bytes(), Scalar::Float(0.5));
    check(7, &[1], Scalar::Bool(true));
    check(10, &u64::MAX.to_le_bytes(), Scalar::Unsigned(u64::MAX));
    check(11, &i64::MIN.to_le_bytes(), Scalar::Signed(i64::MIN));
    check(12, &0.1_f64.to_le_bytes(), Scalar::Float(0.1));
}

#[test]
fn texts_and_short_lists_of_numbers_are_kept_and_other_lists_counted() {
    let tokens = ["a", "b", "c"].map(str::to_owned);
    let gguf = read(
        &SampleGguf::empty()
            .version(2)
            .text("text", "Grüße")
            .flags("flags", &[true, false])
            .texts("tokens", &tokens)
            .f32s("scores", &[0.0; 1_025])
            .u32("after", 7),
    );
    assert_eq!(gguf.version(), 2);
    assert_eq!(gguf.text("text"), Some("Grüße"));
    let flags = Value::Scalars(vec![Scalar::Bool(true), Scalar::Bool(false)]);
    assert_eq!(gguf.value("flags"), Some(&flags));
    let texts = Value::Texts { elements: 3, infill_marks: [false; 3] };
    assert_eq!(gguf.value("tokens"), Some(&texts));
    assert_eq!(gguf.value("scores"), Some(&Value::Array { elements: 1_025 }));
    assert_eq!((gguf.number("after"), gguf.text("after")), (Some(7), None));
    assert_eq!((gguf.number("text"), gguf.value("absent")), (None, None));
}

#[test]
fn tensors_have_their_bytes() {
    let gguf =
        read(&SampleGguf::empty().tensor("a", &[3, 5]).raw_tensor("b", &[64, 2], 2, (64, 72)));
    let found: Vec<_> = gguf.tensors().iter().map(|t| (&*t.name, t.kind.name, t.bytes)).collect();
    assert_eq!(found, [("a", "F32", 60), ("b", "Q4_0", 72)]);
    assert_eq!(gguf.parameters(), 15 + 128);
}

#[test]
fn a_smaller_alignment_moves_the_data() {
    let packed = SampleGguf::empty()
        .u32("general.alignment", 8)
        .raw_tensor("a", &[2], 0, (0, 8))
        .raw_tensor("b", &[2], 0, (8, 8));
    assert_eq!(read(&packed).tensors()[1].offset, 8);
}

#[test]
fn the_quantization_is_what_the_file_says_or_else_the_commonest_type() {
    let check = |sample: &SampleGguf, expected| assert_eq!(read(sample).quantization(), expected);
    check(&SampleGguf::llama().u32("general.file_type", 15), "Q4_K_M");
    check(&SampleGguf::llama().u32("general.file_type", 1_024 + 7), "Q8_0");
    check(&SampleGguf::llama().without("general.file_type"), "F32");
    check(&SampleGguf::llama().u32("general.file_type", 999), "F32");
    check(&SampleGguf::empty(), "unknown");
}

#[test]
fn special_tokens_and_recommended_sampling_are_read() {
    let id = |name: &str| format!("tokenizer.ggml.{name}_token_id");
    let gguf = read(
        &SampleGguf::llama()
            .u32(&id("eot"), 7)
            .u32(&id("eom"), 2)
            .flag("tokenizer.ggml.add_bos_token", true)
            .f32("general.sampling.temp", 0.5)
            .f32("general.sampling.top_p", 7.0)
            .u32("general.sampling.top_k", 20),
    );
    assert_eq!(gguf.bos_token(), Some(1));
    let expected = Sampling { temperature: Some(0.5), top_k: Some(20), ..Sampling::default() };
    assert_eq!(gguf.sampling(), expected, "a top_p of 7 is out of range");
}

#[test]
fn a_model_fills_texts_in_if_the_engine_finds_its_three_marks() {
    let with = |keys: &[&str], tokens: &[&str]| {
        let tokens: Vec<String> = tokens.iter().map(|&token| token.to_owned()).collect();
        let sample = SampleGguf::llama().texts("tokenizer.ggml.tokens", &tokens);
        let id = |name: &str| format!("tokenizer.ggml.{name}_token_id");
        read(&keys.iter().fold(sample, |sample, name| sample.u32(&id(name), 1))).infills()
    };
    let qwen = ["<|fim_prefix|>", "a", "<|fim_middle|>", "<|fim_suffix|>"];
    assert!(with(&["fim_pre", "fim_suf", "fim_mid"], &[]));
    assert!(with(&["prefix", "suffix", "middle"], &[]), "older names");
    assert!(with(&[], &qwen) && with(&[], &["▁<PRE>", "▁<SUF>", "▁<MID>"]));
    assert!(with(&[], &["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"]));
    assert!(with(&["fim_suf"], &qwen[..3]), "one by its key");
    assert!(!with(&["fim_pre", "fim_suf"], &["a", "<b>"]) && !with(&[], &qwen[..3]));
}

#[test]
fn a_card_tells_what_clients_want_to_know() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let bytes = SampleGguf::llama().bytes();
    std::fs::write(&path, &bytes).expect("a file");
    let found = card(&path, Some(100)).expect("a card");
    assert!(found.modified_unix_s > 1_700_000_000);
    let expected = ChatCard {
        context_tokens: 100,
        trained_context_tokens: 512,
        architecture: "llama".to_owned(),
        parameters: 32 * 259 + 3 * 32 + 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64,
        quantization: "F32".to_owned(),
        file_bytes: bytes.len() as u64,
        modified_unix_s: found.modified_unix_s,
        scores_prompts: true,
        ..ChatCard::default()
    };
    assert_eq!(found, expected);
    assert_eq!(card(&path, Some(1_000)).expect("a card").context_tokens, 512);
    assert!(card(&folder.path().join("absent"), None).is_err());
}

#[test]
fn a_model_whose_file_names_a_pooling_is_made_for_embeddings() {
    let sample = SampleGguf::llama();
    let pooled = sample.clone().u32("llama.pooling_type", 3);
    let is_embedder = |sample: &SampleGguf| read(sample).card(None).expect("a card").is_embedder;
    assert!(is_embedder(&pooled) && !is_embedder(&sample));
}

#[test]
fn a_model_with_a_template_takes_tools_and_may_think() {
    let check = |template: &str, expected| {
        let gguf = read(&SampleGguf::llama().text("tokenizer.chat_template", template));
        let card = gguf.card(None).expect("a card");
        let has_template = card.template.is_some();
        assert_eq!((has_template, card.calls_tools, card.thinks), expected, "{template}");
    };
    check("{{ messages[0].content }}", (true, true, false));
    check("{% if tools %}{% endif %}", (true, true, false));
    check("{% if enable_thinking %}<think>{% endif %}", (true, true, true));
    check("{{ message.reasoning_content }}", (true, true, true));
    check(" \n", (false, false, false));
}
