//! Any bytes as headers and lists give an answer or an error: no panic, and no memory for a length that is only claimed.

use std::io::Cursor;

use hob_models::Gguf;
use hob_models::find::typed;
use hob_models::gguf::sample::SampleGguf;
use hob_models::safetensors::{Header, files_of_index};
use proptest::prelude::*;

use super::generated::{CONFIG, ROWS, find, finder, safetensors, write};

fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..length)
}

proptest! {
    #[test]
    fn any_beginning_is_answered(cut in any::<prop::sample::Index>(), total in any::<u64>()) {
        let sound = SampleGguf::llama().bytes();
        let beginning = &sound[..cut.index(sound.len())];
        if let Ok(gguf) = Gguf::header(Cursor::new(beginning), total) {
            let _any = gguf.shape();
            let _any = Gguf::joined(vec![gguf.clone(), gguf]);
        }
    }

    #[test]
    fn any_tensors_are_answered(length in any::<u64>(), rest in bytes(200)) {
        let _any = Header::read(&*[&length.to_le_bytes()[..], &rest].concat());
        let length = rest.len() as u64;
        let _any = Header::read(&*[&length.to_le_bytes()[..], &rest].concat());
    }

    #[test]
    fn sound_tensors_with_other_bytes_in_them_are_answered(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = safetensors(&ROWS, 0);
        for (index, byte) in changes {
            // The header has 576 bytes; the weights follow.
            let at = index.index(700);
            file[at] = byte;
        }
        let _any = Header::read(&*file);
    }

    #[test]
    fn any_index_is_answered(text in bytes(200)) {
        let _any = files_of_index(&text);
    }

    #[test]
    fn any_typed_shape_is_answered(
        layers in any::<u32>(), heads in any::<u64>(), length in any::<u32>(), junk in "[a-z=,0-9]{0,30}",
    ) {
        let shape = format!(
            "block_count={layers},head_count={heads},embedding_length={length},vocab_size={length},\
            context_length={layers},feed_forward_length={length},{junk}"
        );
        let _any = typed(&shape, None);
        let _any = typed(&junk, None);
    }
}

/// Numbers of tensors that no machine could hold, in a model that is sound otherwise.
#[test]
fn absurd_tensors_are_counted_without_wrapping() {
    let folder = tempfile::tempdir().expect("a folder");
    let entry =
        format!(r#"{{"dtype": "F32", "shape": [{0}, {0}], "data_offsets": [0, {0}]}}"#, u64::MAX);
    let json = format!(r#"{{"a": {entry}, "model.layers.0.b": {entry}, "lm_head.c": {entry}}}"#);
    let file = [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat();
    write(folder.path(), "config.json", CONFIG.as_bytes());
    write(folder.path(), "model.safetensors", &file);
    let found = find(&finder(), folder.path().to_str().expect("a path"));
    assert_eq!(found.model.shape.weights.bytes(), u64::MAX);
    assert!(found.notes[0].contains("are missing"), "{:?}", found.notes);
}
