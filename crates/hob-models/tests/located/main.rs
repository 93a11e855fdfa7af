//! Models that are found by whatever people call them, and fetched: from a hub that answers as the real one does,
//! from Ollama's registry and its folder, from an address, from this disk.

mod fetched;
mod hub;
mod named;
mod refused;
mod stage;
