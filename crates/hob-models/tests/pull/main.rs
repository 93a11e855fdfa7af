//! Pulling whole models, with every kind of source played by something on this machine.
//! No test reaches a network, an installed `pip`, `uv` or `npm`, or a real model.

mod chat;
mod interrupted;
mod refused;
mod server;
mod stage;
mod store;
mod together;
mod whole;
