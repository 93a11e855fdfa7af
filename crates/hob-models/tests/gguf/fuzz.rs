//! Any bytes give a header or an error, never a panic, and never more work or memory than the limits allow.

use std::io::Cursor;

use hob_core::footprint::{ContextPlan, Footprint};
use hob_core::weights::Repack;
use hob_models::Gguf;
use hob_models::gguf::sample::SampleGguf;
use proptest::prelude::*;

/// Everything that hob reads from a file.
fn ask_everything(bytes: &[u8]) -> bool {
    let Ok(gguf) = Gguf::read(Cursor::new(bytes)) else { return false };
    let _ = (gguf.quantization(), gguf.parameters(), gguf.sampling());
    let _ = (gguf.bos_token(), gguf.infills(), gguf.name(), gguf.card(Some(9)));
    let Ok(shape) = gguf.shape() else { return false };
    Footprint::estimate(&shape, &ContextPlan::single(4_096), Repack::None).is_ok()
}

fn varied() -> SampleGguf {
    SampleGguf::llama()
        .text("tokenizer.chat_template", "{{ messages }}")
        .i32s("llama.attention.head_count_kv", &[1])
        .flags("llama.attention.sliding_window_pattern", &[true])
        .u32("llama.attention.sliding_window", 128)
        .u32("llama.expert_count", 4)
        .u32("llama.expert_used_count", 2)
        .u32("llama.ssm.conv_kernel", 4)
        .u32("general.alignment", 32)
}

#[test]
fn the_file_that_is_mutated_below_is_sound() {
    assert!(ask_everything(&varied().bytes()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        ask_everything(&bytes);
    }

    #[test]
    fn arbitrary_bytes_behind_a_sound_beginning_are_answered(
        version in 2..4_u32, tensors in 0..4_u64, keys in 0..4_u64,
        rest in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let head = [tensors, keys].map(u64::to_le_bytes).concat();
        ask_everything(&[b"GGUF", &version.to_le_bytes()[..], &head, &rest].concat());
    }

    #[test]
    fn a_sound_file_with_other_bytes_in_it_is_answered(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = varied().bytes();
        // Only in the header: what the weights are is not looked at.
        let header = 9_000.min(bytes.len());
        for (index, byte) in changes {
            bytes[index.index(header)] = byte;
        }
        ask_everything(&bytes);
    }

    #[test]
    fn numbers_that_were_made_absurd_are_answered(
        at in any::<prop::sample::Index>(), number in prop_oneof![Just(u64::MAX), any::<u64>()],
    ) {
        let mut bytes = varied().bytes();
        let at = at.index(9_000.min(bytes.len() - 8));
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        ask_everything(&bytes);
    }

    #[test]
    fn any_value_of_any_key_is_answered(
        key in prop_oneof![
            Just("llama.block_count"), Just("llama.embedding_length"), Just("llama.context_length"),
            Just("llama.attention.head_count"), Just("llama.attention.head_count_kv"),
            Just("llama.attention.key_length"), Just("llama.attention.value_length"),
            Just("llama.attention.sliding_window"), Just("llama.expert_count"),
            Just("llama.feed_forward_length"), Just("llama.wkv.head_size"),
            Just("llama.kda.head_dim"), Just("llama.ssm.conv_kernel"), Just("llama.shortconv.l_cache"),
            Just("llama.full_attention_interval"), Just("llama.nextn_predict_layers"),
        ],
        architecture in prop_oneof![
            Just("llama"), Just("qwen35"), Just("mamba"), Just("gemma3n"), Just("minimax-01"),
        ],
        value in prop_oneof![0..4_u32, any::<u32>()],
    ) {
        let key = key.replace("llama.", &format!("{architecture}."));
        let sample = SampleGguf::llama().text("general.architecture", architecture);
        let required = ["block_count", "context_length", "embedding_length"];
        let sample = required.iter().fold(sample, |sample, name| {
            sample.u32(&format!("{architecture}.{name}"), 32)
        });
        ask_everything(&sample.u32(&key, value).bytes());
    }

    #[test]
    fn a_real_looking_file_cut_anywhere_is_refused(at in any::<prop::sample::Index>()) {
        let bytes = varied().bytes();
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert!(Gguf::read(Cursor::new(cut)).is_err());
    }
}
