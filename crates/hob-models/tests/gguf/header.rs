//! Headers without their data, and models in several files.

use std::io::Cursor;

use hob_models::gguf::sample::SampleGguf;
use hob_models::{Gguf, GgufError};

/// As far as the header goes.
fn beginning(bytes: &[u8]) -> &[u8] {
    let data = 4 * (32 * 259 + 32 * 2 + 32 * (32 + 16 + 16 + 32) + 3 * 32 * 64);
    &bytes[..bytes.len() - data]
}

#[test]
fn a_header_tells_the_same_without_its_data() {
    let bytes = SampleGguf::llama().bytes();
    let whole = Gguf::read(Cursor::new(&bytes)).expect("a sound file");
    let header = Gguf::header(Cursor::new(beginning(&bytes)), bytes.len() as u64).expect("enough");
    assert_eq!((header.shape(), header.missing_bytes()), (whole.shape(), 0));
    assert_eq!(header, whole);
}

#[test]
fn what_is_missing_of_the_data_is_counted() {
    let bytes = SampleGguf::llama().bytes();
    let cut = &bytes[..bytes.len() - 1_000];
    let header = Gguf::header(Cursor::new(cut), cut.len() as u64).expect("the header is there");
    assert_eq!(header.missing_bytes(), 1_000);
    assert!(matches!(Gguf::read(Cursor::new(cut)), Err(GgufError::CutShort { .. })));
    assert!(header.shape().is_ok());
}

#[test]
fn a_beginning_that_is_too_short_is_refused() {
    let bytes = SampleGguf::llama().bytes();
    let error = Gguf::header(Cursor::new(&bytes[..300]), bytes.len() as u64).expect_err("cut");
    assert!(matches!(error, GgufError::Unreadable { .. }), "{error}");
}

fn parts() -> [Gguf; 2] {
    let read = |sample: SampleGguf| Gguf::read(Cursor::new(sample.bytes())).expect("a sound part");
    SampleGguf::llama_in_two().map(read)
}

#[test]
fn parts_are_one_model() {
    let [first, second] = parts();
    assert_eq!(first.shape(), Err(GgufError::Split { count: 2 }));
    let bytes = first.file_bytes() + second.file_bytes();
    let whole = Gguf::joined(vec![first, second]).expect("two parts");
    assert_eq!((whole.tensors().len(), whole.file_bytes(), whole.missing_bytes()), (12, bytes, 0));
    let shape = whole.shape().expect("a shape");
    assert!(!shape.weights.is_tied());
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let [first, second] = parts();
    let error = Gguf::joined(vec![first.clone()]).expect_err("one is missing");
    assert_eq!(error, GgufError::PartsDiffer { found: 11, expected: 12 });
    let error = Gguf::joined(vec![first.clone(), first, second]).expect_err("one is there twice");
    assert!(matches!(error, GgufError::Duplicate { .. }), "{error}");
    assert_eq!(Gguf::joined(Vec::new()), Err(GgufError::NoWeights));
}
