//! The server from outside: sockets on loopback, and a model whose every event the test chooses.
//! Tests wait for events. What a background task writes, such as the ledger's rows, they poll.

mod benchmarks;
mod bodies;
mod chat_errors;
mod chat_model;
mod chat_names;
mod chat_silences;
mod chatting;
mod client;
mod completing;
mod ears;
mod fit;
mod guarding;
mod hearing;
mod key_limits;
mod keys;
mod ledger;
mod lifecycle;
mod line;
mod listing;
mod log;
mod model;
mod now;
mod ollama;
mod one_path;
mod openapi;
mod pictures;
mod refusals;
mod refusing;
mod refusing_sound;
mod server;
mod speaking;
mod stopping;
mod tls;
mod upstream_names;
