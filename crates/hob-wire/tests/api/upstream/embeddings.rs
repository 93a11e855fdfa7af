//! Texts to vectors at another server, in both protocols.
//! Whatever the server made of them, they come back in order and of length 1.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::chat::EmbedInput;
use hob_core::{EmbedRequest, Embeddings, Fault, KeepAlive};
use hob_wire::{
    UnsupportedField, ollama_embed_request, openai_embed_request, parse_ollama_vectors,
    parse_openai_vectors,
};
use proptest::prelude::*;

fn texts(texts: &[&str]) -> EmbedRequest {
    let inputs = texts.iter().map(|text| EmbedInput::Text((*text).to_owned())).collect();
    EmbedRequest { inputs, ..EmbedRequest::default() }
}

fn two() -> EmbedRequest {
    texts(&["a", "b"])
}

fn made(vectors: &[&[f32]], prompt_tokens: u32) -> Result<Embeddings, Fault> {
    let vectors = vectors.iter().map(|vector| vector.to_vec()).collect();
    Ok(Embeddings { vectors, prompt_tokens })
}

#[test]
fn requests_are_as_each_server_reads_them() {
    let keep_alive = Some(KeepAlive::For(Duration::from_secs(60)));
    let all = EmbedRequest { dimensions: Some(256), keep_alive, ..two() };
    let tokens = EmbedRequest { inputs: vec![EmbedInput::Tokens(vec![1, 2])], ..all.clone() };
    let bodies = [
        openai_embed_request(&two(), "m"),
        openai_embed_request(&all, "m"),
        openai_embed_request(&tokens, "m"),
        ollama_embed_request(&two(), "m", None).expect("texts"),
        ollama_embed_request(&all, "m", Some(2048)).expect("texts"),
    ];
    insta::assert_snapshot!(bodies.join("\n"), @r#"
    {"model":"m","input":["a","b"],"encoding_format":"float"}
    {"model":"m","input":["a","b"],"encoding_format":"float","dimensions":256}
    {"model":"m","input":[[1,2]],"encoding_format":"float","dimensions":256}
    {"model":"m","input":["a","b"],"truncate":false}
    {"model":"m","input":["a","b"],"truncate":false,"dimensions":256,"keep_alive":60,"options":{"num_ctx":2048}}
    "#);
    let refused = ollama_embed_request(&tokens, "m", None);
    assert_eq!(refused, Err(UnsupportedField { field: "input" }));
}

#[test]
fn vectors_come_in_the_order_of_the_texts() {
    for body in [
        r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[3,4]},
            {"object":"embedding","index":1,"embedding":[0,-2.0]}],"usage":{"prompt_tokens":5,"total_tokens":6}}"#,
        r#"{"data":[{"index":1,"embedding":[0,-2]},{"index":0,"embedding":[3,4]}],"usage":{"total_tokens":5}}"#,
        r#"{"data":[{"embedding":[3,4]},{"embedding":[0,-1e9]}],"usage":{"prompt_tokens":5},"error":null}"#,
        r#"{"data":[{"index":0,"embedding":[3,4]},{"index":0,"embedding":[0,-1]}],"usage":{"prompt_tokens":5}}"#,
        // 3, 4 and 0, -2 as 32-bit floats.
        r#"{"data":[{"index":0,"embedding":"AABAQAAAgEA="},{"index":1,"embedding":"AAAAAAAAAMA="}],
            "usage":{"prompt_tokens":5}}"#,
    ] {
        let expected = made(&[&[0.6, 0.8], &[0.0, -1.0]], 5);
        assert_eq!(parse_openai_vectors(body.as_bytes(), &two()), expected, "{body}");
    }
    let body =
        r#"{"model":"m","embeddings":[[3,4],[0,-2]],"total_duration":1,"prompt_eval_count":5}"#;
    let expected = made(&[&[0.6, 0.8], &[0.0, -1.0]], 5);
    assert_eq!(parse_ollama_vectors(body.as_bytes(), &two()), expected);
}

#[test]
fn vectors_are_cut_where_the_server_did_not() {
    let asked = EmbedRequest { dimensions: Some(2), ..texts(&["a"]) };
    let body = r#"{"data":[{"embedding":[3,4,12]}]}"#;
    assert_eq!(parse_openai_vectors(body.as_bytes(), &asked), made(&[&[0.6, 0.8]], 0));
    let body = r#"{"embeddings":[[3,4,12]]}"#;
    assert_eq!(parse_ollama_vectors(body.as_bytes(), &asked), made(&[&[0.6, 0.8]], 0));
}

#[test]
fn anything_else_makes_no_sense() {
    for body in [
        "<html>",
        "{}",
        "[]",
        r#"{"data":null}"#,
        r#"{"data":[{"embedding":[1]}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1]},{"embedding":[1]}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":[]}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":[0,0]}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":[null]}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":[1e300]}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":"AABA"}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":"no base64"}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":{"a":1}}]}"#,
        r#"{"data":[{"embedding":[1]},{"object":"embedding"}]}"#,
    ] {
        let made = parse_openai_vectors(body.as_bytes(), &two());
        assert!(matches!(made, Err(Fault::InvalidAnswer { .. })), "{body}: {made:?}");
    }
    for body in ["<html>", "{}", r#"{"embeddings":null}"#, r#"{"embeddings":[[1]]}"#] {
        let made = parse_ollama_vectors(body.as_bytes(), &two());
        assert!(matches!(made, Err(Fault::InvalidAnswer { .. })), "{body}: {made:?}");
    }
}

#[test]
fn an_error_with_a_good_status_is_one() {
    let body = r#"{"error":{"message":"the input length exceeds the context length"}}"#;
    let fault = parse_openai_vectors(body.as_bytes(), &two());
    assert!(matches!(fault, Err(Fault::TooLong { .. })), "{fault:?}");
    let fault = parse_ollama_vectors(br#"{"error":"busy"}"#, &two());
    assert_eq!(fault, Err(Fault::Reported { message: "busy".to_owned() }));
}

proptest! {
    #[test]
    fn both_ways_to_write_a_vector_are_one(numbers in prop::collection::vec(-1e6f32..1e6, 1..64)) {
        prop_assume!(numbers.iter().any(|number| number.abs() > 1e-3));
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let encoded = STANDARD.encode(bytes);
        let body = |embedding: String| format!(r#"{{"data":[{{"embedding":{embedding}}}]}}"#);
        let asked = texts(&["a"]);
        let listed = serde_json::to_string(&numbers).expect("numbers");
        let plain = parse_openai_vectors(body(listed).as_bytes(), &asked).expect("a vector");
        let packed = body(format!("\"{encoded}\""));
        prop_assert_eq!(&parse_openai_vectors(packed.as_bytes(), &asked).expect("a vector"), &plain);
        let length: f32 = plain.vectors[0].iter().map(|number| number * number).sum();
        prop_assert!((length - 1.0).abs() < 1e-4, "{}", length);
    }
}
