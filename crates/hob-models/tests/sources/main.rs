//! Tests that models are found by each of their names, and that their files are found in each kind of source: a URL,
//! a repository, Ollama, packages, this disk. Everything is on this machine: no test reaches a network or an installed program.

mod executable;
mod find;
mod located;
mod loopback;
mod pull;
mod server;
