//! Other people's servers as models: asked over HTTP, measured by their answers, stood in for by others.
//! An alias is a model too: it asks its targets in turn until one really answers.

mod answer;
mod chat;
mod client;
mod gateway;
mod http;
mod kind;
mod lists;
pub mod options;
mod route;
mod secret;
mod served;
mod slots;
mod speech;
mod target;
mod transcript;

pub use client::{Upstream, UpstreamError};
pub use gateway::{Gateway, GatewayError};
pub use kind::{Kind, Local, Locals};
pub use lists::ServedList;
pub use options::{
    AliasOptions, Clocks, Commit, GatewayOptions, OnBreak, TargetOptions, UpstreamKind,
    UpstreamOptions, WhileLoading,
};
pub use route::Route;
pub use secret::Secret;
