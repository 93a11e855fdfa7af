//! Another Ollama, asked through its own API: its `/v1` takes neither `num_ctx` nor `keep_alive`.
//! By default Ollama shortens prompts and drops their beginning; hob's requests switch that off.

pub(super) mod line;
mod messages;
mod reader;
mod request;

pub use reader::OllamaReader;
pub use request::{ollama_path, ollama_request};
