//! One file per verb: its arguments, whose comments are its help, and its run.
//! What is shared by verbs is not here but has a noun's name one level up.

pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod config;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod fit;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod mock;
pub(crate) mod models;
pub(crate) mod ps;
pub(crate) mod pull;
pub(crate) mod route;
pub(crate) mod say;
pub(crate) mod selftest;
pub(crate) mod serve;
pub(crate) mod site;
pub(crate) mod unload;
pub(crate) mod upstreams;
pub(crate) mod worker;

/// Every progress bar's template, so that a test can see that each parses.
#[cfg(test)]
pub(crate) const TEMPLATES: [&str; 2] = [crate::speaking::BAR, pull::BAR];
