//! Tests that models are found by each of their names, and that their files are found in each kind of source: a URL,
//! a repository, Ollama, packages, this disk. Everything is on this machine: no test reaches a network or an installed program.

mod executable;
mod find;
mod located;
#[expect(dead_code, reason = "the tests of hob use more of it")]
mod loopback;
mod pull;
mod server;

use std::time::Duration;

use hob_models::FetchLimits;

const LIMITS: FetchLimits = FetchLimits {
    connect: Duration::from_secs(30),
    silence: Duration::from_secs(60),
    reconnects_max: 2,
};
