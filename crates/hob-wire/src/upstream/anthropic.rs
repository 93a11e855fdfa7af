//! Anthropic's Messages API from the asking side: `POST /v1/messages`, always streamed.
//! Its models differ in what they take more than its versions do, so that a request depends on the name.

mod event;
mod model;
mod reader;
mod request;
mod thinking;
mod turns;

pub use reader::AnthropicReader;
pub use request::{anthropic_continues, anthropic_drops, anthropic_request};
