//! The server from outside: sockets on loopback, and a model whose every event the test gives.
//! No sleeps: what must happen is awaited, and what must not is made impossible first.

mod client;
mod guarding;
mod listing;
mod model;
mod refusing;
mod server;
mod speaking;
mod stopping;
