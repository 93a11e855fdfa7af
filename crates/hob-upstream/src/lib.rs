//! Models of other servers, asked over HTTP, and aliases, which fall back from one target to the next.
//! From above, both are models like any other.

mod chat;
mod chat_answer;
mod client;
mod gateway;
mod http;
pub mod options;
mod route;
mod secret;
mod slots;
mod speech;
mod target;
mod transcription;
mod upstream_model;

pub use client::{UpstreamError, names_version};
pub use gateway::{Gateway, GatewayError};
pub use http::{
    Fetched, GuardError, GuardOptions, HttpClient, HttpError, HttpResponse, TextSocket,
    TextSocketError, guarded_fetch,
};
pub use hyper::StatusCode;
pub use options::{
    AliasOptions, AttemptTimeouts, FallbackUntil, GatewayOptions, OnInterruption, TargetOptions,
    UpstreamKind, UpstreamOptions, WhileLoading,
};
pub use secret::Secret;
