//! Another Ollama, asked through its own API: its `/v1` takes neither `num_ctx` nor `keep_alive`.
//! It shortens prompts and forgets their beginning unless it is told not to; hob tells it.

pub(super) mod line;
mod messages;
mod reader;
mod request;

pub use reader::OllamaReader;
pub use request::{ollama_path, ollama_request};
