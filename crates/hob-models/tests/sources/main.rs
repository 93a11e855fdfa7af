//! Models by any of their names, and all files of a model from each kind of source: an address, a repository, Ollama,
//! packages, this disk. Everything is on this machine: no test reaches a network or an installed program.

mod find;
mod located;
mod loopback;
mod pull;
