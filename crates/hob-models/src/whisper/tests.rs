//! Conversion and headers of a tiny model: what is written is read back, and damaged files are refused.

use std::io::Cursor;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::convert::ConvertError;
use super::tiny_model::{DIMS, VOCABULARY, ctranslate2};
use super::*;
use crate::Sha256;
use crate::progress::Watch;

fn converted(model: &[u8], vocabulary: &str) -> Result<Vec<u8>, ConvertError> {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("out.bin");
    let cancel = AtomicBool::new(false);
    let mut unheard = |_| {};
    let mut watch = Watch::new(&mut unheard, &cancel);
    let sum = convert(Cursor::new(model), vocabulary, &to, &mut watch)?;
    let written = std::fs::read(&to).expect("written");
    assert_eq!(sum, Sha256::of(&written));
    Ok(written)
}

fn refused(model: &[u8], vocabulary: &str) -> WhisperError {
    match converted(model, vocabulary) {
        Err(ConvertError::Model(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn header(file: &[u8]) -> Result<WhisperHeader, WhisperError> {
    WhisperHeader::read_from(Cursor::new(file))
}

/// The bytes of a tensor in a ggml file.
fn tensor<'f>(file: &'f [u8], name: &str, bytes: usize) -> &'f [u8] {
    let at = file.windows(name.len()).position(|window| window == name.as_bytes());
    let from = at.expect(name) + name.len();
    &file[from..from + bytes]
}

fn halves(from: u16, count: u16) -> Vec<u8> {
    (from..from + count).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn a_converted_model_has_the_dimensions_and_tensors_of_its_source() {
    let file = converted(&ctranslate2(&DIMS), VOCABULARY).expect("converted");
    let header = header(&file).expect("a header");
    assert_eq!((header.dims, header.quant), (DIMS, "F16"));
    assert_eq!(header.file_bytes, file.len() as u64);
    assert!(header.q8_bytes < header.weights_bytes);
    // 4 × 32 and 6 × 32 numbers of the positions come before.
    let first = 4 * 32 + 6 * 32 + 1;
    assert_eq!(tensor(&file, "decoder.token_embedding.weight", 320), halves(first, 5 * 32));
    let query = tensor(&file, "decoder.blocks.0.attn.query.weight", 2_048);
    let value = tensor(&file, "decoder.blocks.0.attn.value.weight", 2_048);
    let number = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
    assert_eq!(number(value) - number(query), 2 * 32 * 32, "the third of three joined matrices");
}

#[test]
fn a_file_that_is_no_such_model_is_refused_with_the_reason() {
    let model = ctranslate2(&DIMS);
    let short = &model[..model.len() - 9];
    assert!(matches!(refused(short, VOCABULARY), WhisperError::CutShort { .. }));
    assert_eq!(refused(b"GGUF\x0c\0nothing else", VOCABULARY), WhisperError::NotCTranslate2);
    assert_eq!(refused(&model, "a\n"), WhisperError::Vocabulary { found: 1, expected: 5 });
    let eight_bits = replaced(&model, b"embeddings/weight\0\x02", 8, &[1]);
    let bytes = WhisperError::TensorBytes {
        name: "decoder/embeddings/weight".to_owned(),
        found: 320,
        expected: 160,
    };
    assert_eq!(refused(&eight_bits, VOCABULARY), bytes);
    let other_name = replaced(&model, b"encoder/conv2/weight", 0, b"");
    let at = other_name.windows(20).position(|window| window == b"encoder/conv2/weight");
    let mut other_name = other_name;
    other_name[at.expect("a name")] = b'E';
    let missing = WhisperError::Missing { name: "encoder/conv2/weight".to_owned() };
    assert_eq!(refused(&other_name, VOCABULARY), missing);
}

#[test]
fn a_bias_of_keys_is_refused() {
    let model = ctranslate2(&DIMS);
    // A rank, a dimension, a type and a length precede the numbers: 32 of the query, then those of the key.
    let biased = replaced(&model, b"decoder/layer_0/self_attention/linear_0/bias\0", 10 + 64, &[1]);
    let name = "decoder/layer_0/self_attention/linear_0/bias".to_owned();
    assert_eq!(refused(&biased, VOCABULARY), WhisperError::KeyBias { name });
}

/// The file with other bytes this far behind a text.
fn replaced(file: &[u8], after: &[u8], offset: usize, bytes: &[u8]) -> Vec<u8> {
    let at = file.windows(after.len()).position(|window| window == after).expect("the text");
    let from = at + after.len() + offset;
    let mut file = file.to_vec();
    file[from..from + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn a_ggml_file_that_the_engine_would_not_load_is_refused() {
    let file = converted(&ctranslate2(&DIMS), VOCABULARY).expect("converted");
    assert_eq!(header(b"GGUF and more"), Err(WhisperError::NotGgml));
    assert_eq!(header(b"lm"), Err(WhisperError::NotGgml));
    let (needed_bytes, file_bytes) = (file.len() as u64, file.len() as u64 - 1);
    let short = header(&file[..file.len() - 1]);
    assert_eq!(short, Err(WhisperError::CutShort { needed_bytes, file_bytes }));
    let last = b"encoder.ln_post.bias";
    let at = file.windows(last.len()).position(|window| window == last).expect("the last");
    let missing = WhisperError::Missing { name: "encoder.ln_post.bias".to_owned() };
    // The head of a tensor with one dimension has four numbers.
    assert_eq!(header(&file[..at - 16]), Err(missing));
    let twice = [&file[..], &file[at - 16..]].concat();
    let surplus = WhisperError::Surplus { name: "encoder.ln_post.bias".to_owned() };
    assert_eq!(header(&twice), Err(surplus));
    let mut wide = file.clone();
    wide[12..16].copy_from_slice(&33_u32.to_le_bytes());
    let odd = WhisperError::NotAMultiple { what: "the width", value: 33, of: 2 };
    assert_eq!(header(&wide), Err(odd));
}

proptest! {
    #[test]
    fn damaged_files_are_answered(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        length in any::<prop::sample::Index>(), is_cut: bool,
    ) {
        let damaged = |mut file: Vec<u8>, end: usize| {
            // Only in the heads: the numbers are not looked at.
            changes.iter().for_each(|(at, byte)| file[at.index(end)] = *byte);
            if is_cut {
                file.truncate(length.index(file.len()));
            }
            file
        };
        let model = ctranslate2(&DIMS);
        let _ = converted(&damaged(model.clone(), 600), VOCABULARY);
        let file = converted(&model, VOCABULARY).expect("converted");
        let _ = header(&damaged(file.clone(), 100));
        let _ = header(&damaged(file, 3_000));
    }
}
