//! Pulls whole models from each kind of source.
//! No test reaches a network, an installed `pip`, `uv` or `npm`, or a real model.

mod chat;
mod interrupted;
mod refused;
mod stage;
mod store;
mod together;
mod whole;
