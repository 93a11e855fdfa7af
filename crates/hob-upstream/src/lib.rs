//! Other people's servers as models: asked over HTTP, measured by their answers, stood in for by others.
//! An alias is a model too: it asks its targets in turn until one really answers.

mod answer;
mod chat;
mod client;
mod gateway;
mod lists;
pub mod options;
mod route;
mod secret;
mod slots;
mod target;

pub use client::{Upstream, UpstreamError};
pub use gateway::{Gateway, GatewayError, Local};
pub use lists::ServedList;
pub use options::{
    AliasOptions, Clocks, Commit, GatewayOptions, TargetOptions, UpstreamKind, UpstreamOptions,
    WhileLoading,
};
pub use route::Route;
pub use secret::Secret;
