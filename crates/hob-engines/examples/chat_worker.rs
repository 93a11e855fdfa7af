//! Runs a chat worker as a process, as `hob worker chat` does, with the model file that its argument names.
//! `tests/chat_template.rs` starts it.

use hob_core::KvType;
use hob_engines::chat::{
    CardUse, LlamaOptions, ServeChatError, ServeChatOptions, WeightStorage, serve_chat,
};
use hob_engines::worker::become_worker;

fn main() -> Result<(), ServeChatError> {
    let llama = LlamaOptions {
        path: std::env::args().nth(1).unwrap_or_default().into(),
        context_tokens: 256,
        parallel: 1,
        kv_type: KvType::F16,
        threads: 1,
        threads_batch: 1,
        batch_tokens: 64,
        gpu_layers: Some(0),
        cpu_moe_layers: 0,
        card_use: CardUse::Allowed,
        weights: WeightStorage::Mapped,
    };
    serve_chat(become_worker()?, &ServeChatOptions::new(llama))
}
