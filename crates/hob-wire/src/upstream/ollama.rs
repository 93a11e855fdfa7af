//! Requests to an Ollama server use its own API, because its `/v1` accepts neither `num_ctx` nor `keep_alive`.
//! By default Ollama cuts off the beginning of a long prompt; hob's requests switch that off.

pub(super) mod line;
mod messages;
mod reader;
mod request;

pub use reader::OllamaReader;
pub use request::{ollama_path, ollama_request};
