//! The chat engine, and the worker process that runs it.
//! Only `client` and `worker` know that there are two processes.

pub mod client;
pub mod constraint;
pub(crate) mod cpu;
pub mod decoder;
pub mod dialect;
mod failures;
mod json_context;
pub mod llama;
pub mod protocol;
pub mod sampler;
pub mod scheduler;
pub mod slots;
mod stop;
pub mod template;
pub mod tokens;
pub mod worker;

pub use client::ChatWorker;
pub use llama::{
    CardUse, DeviceReport, EngineDevice, LlamaError, LlamaOptions, NotCardUse, UnknownDevice,
    WeightStorage, card_api, has_card_kernels, try_devices,
};
pub use worker::{ServeChatError, ServeChatOptions, serve_chat, try_grammars};
