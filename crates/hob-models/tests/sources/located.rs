//! Locates the files of models by each kind of name, and fetches them: from a hub that answers like Hugging Face,
//! from Ollama's registry and folder, from an address, from this disk.

mod fetched;
mod hub;
mod named;
mod refused;
mod stage;
