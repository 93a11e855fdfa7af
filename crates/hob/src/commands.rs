//! One file for each command: its arguments, whose comments are its help, and its `run`.
//! Code that several commands share is in modules one level up.

pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod config;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod fit;
pub(crate) mod hear;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod mock;
pub(crate) mod models;
pub(crate) mod ps;
pub(crate) mod pull;
pub(crate) mod quantize;
pub(crate) mod route;
pub(crate) mod say;
pub(crate) mod selftest;
pub(crate) mod serve;
pub(crate) mod site;
pub(crate) mod talk;
pub(crate) mod team;
pub(crate) mod unload;
pub(crate) mod upstreams;
pub(crate) mod worker;

/// The templates of all progress bars, so that a test can check that each parses.
#[cfg(test)]
pub(crate) const TEMPLATES: [&str; 4] =
    [crate::speaking::BAR, crate::audiobook::BAR, pull::BAR, quantize::BAR];
