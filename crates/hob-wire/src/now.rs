//! The requests that run and that ended, as hob reports them over HTTP.
//! Names and numbers only: no field holds a text of a request or an answer.

mod json;

use std::time::Duration;

use hob_core::statistics::Sample;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::json::ShownRequest;
use self::json::shown_request;
use crate::error::json;
use crate::lifecycle::ResidentModel;
use crate::routes::UpstreamState;

/// The answer of `GET /api/hob/now`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "NowAnswer")]
pub struct NowView {
    /// Requests that run, the oldest first.
    #[serde(serialize_with = "json::shown_requests")]
    #[schemars(with = "Vec<ShownRequest>")]
    pub requests: Vec<RequestView>,
    /// Requests that ended, the latest first.
    #[serde(serialize_with = "json::shown_requests")]
    #[schemars(with = "Vec<ShownRequest>")]
    pub recent: Vec<RequestView>,
    pub aliases: Vec<AliasView>,
    pub models: Vec<ResidentModel>,
    pub upstreams: Vec<UpstreamState>,
    pub queue: QueueFigures,
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestView {
    pub id: u64,
    pub started_unix_ms: u64,
    /// `chat`, `speech`, `transcription` or `embeddings`.
    pub route: &'static str,
    pub alias: String,
    /// The target that is tried or answers. None between two attempts.
    pub target: Option<String>,
    pub stage: Stage,
    pub key: Option<String>,
    pub is_streamed: bool,
    pub is_warm: bool,
    /// Time since the request came, or until it ended.
    pub took: Duration,
    /// Time until the first token or sound.
    pub first: Option<Duration>,
    pub made: Produced,
    /// Targets that did not answer, in the order of the attempts.
    pub failed: Vec<FailedView>,
    /// Parameters that the target does not take.
    pub dropped: Vec<String>,
    pub thought_anyway: bool,
    pub counted_here: bool,
    /// None while the request runs.
    pub end: Option<RequestEnd>,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// Waits for its turn, for a target, or for the first content.
    Waiting,
    /// Waits until its model is in memory.
    Loading {
        ready_in: Duration,
    },
    /// A target has the request and has not answered.
    Asking,
    /// The first content has arrived.
    Answering,
    Ended,
}

/// How much of an answer exists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Produced {
    Tokens(u64),
    Sound(Duration),
    /// An answer that arrives in one piece.
    Nothing,
}

/// A target that did not answer.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FailedAttempt")]
pub struct FailedView {
    pub target: String,
    /// In one word.
    pub reason: &'static str,
    #[serde(rename = "ms", serialize_with = "json::in_ms")]
    #[schemars(with = "f64")]
    pub took: Duration,
}

/// Figures of a request that ended.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct RequestEnd {
    /// `complete`, `failed` or `abandoned`.
    pub outcome: &'static str,
    /// The error's code.
    pub error: Option<String>,
    #[serde(serialize_with = "json::in_tenths")]
    pub queue_ms: Option<f64>,
    #[serde(serialize_with = "json::in_tenths")]
    pub load_ms: Option<f64>,
    #[serde(serialize_with = "json::in_thousandths")]
    pub overhead_ms: Option<f64>,
    #[serde(serialize_with = "json::in_tenths")]
    pub tokens_per_s: Option<f64>,
    pub prompt_tokens: u32,
    pub cached_tokens: u32,
    pub reasoning_tokens: u32,
}

/// Figures of the last hour for one name.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "AliasFigures")]
pub struct AliasView {
    pub name: String,
    pub requests: usize,
    /// The hour had more requests, and these are the latest.
    #[serde(rename = "more")]
    pub had_more: bool,
    pub failed: usize,
    /// Time to first content with the model in memory.
    #[serde(rename = "ttft_warm", serialize_with = "json::percentiles")]
    #[schemars(with = "json::Percentiles")]
    pub warm: Sample,
    #[serde(rename = "ttft_cold", serialize_with = "json::percentiles")]
    #[schemars(with = "json::Percentiles")]
    pub cold: Sample,
    /// Time of complete answers.
    #[serde(serialize_with = "json::percentiles")]
    #[schemars(with = "json::Percentiles")]
    pub total: Sample,
    #[serde(serialize_with = "json::median")]
    #[schemars(with = "json::Median")]
    pub tokens_per_s: Sample,
}

/// Requests at the same time.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct QueueFigures {
    pub in_flight: usize,
    /// Requests in flight without a first content.
    pub waiting: usize,
    pub targets: Vec<TargetQueue>,
}

/// Requests at the same time to one target.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct TargetQueue {
    pub name: String,
    pub in_flight: usize,
    pub waiting: usize,
    /// The limit, for models of this hob.
    pub in_flight_max: Option<usize>,
}

/// `GET /api/hob/now`.
pub fn now(view: &NowView) -> String {
    json(view)
}

/// `GET /api/hob/requests/{id}`.
pub fn request(view: &RequestView) -> String {
    json(&shown_request(view))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> RequestView {
        RequestView {
            id: 7,
            started_unix_ms: 1_793_491_200_000,
            route: "chat",
            alias: "fast".to_owned(),
            target: Some("gpu/qwen3".to_owned()),
            stage: Stage::Answering,
            key: Some("laptop".to_owned()),
            is_streamed: true,
            is_warm: true,
            took: Duration::from_micros(1_204_060),
            first: Some(Duration::from_millis(180)),
            made: Produced::Tokens(42),
            failed: vec![FailedView {
                target: "spare/qwen3".to_owned(),
                reason: "overloaded",
                took: Duration::from_millis(31),
            }],
            dropped: vec!["min_p".to_owned()],
            thought_anyway: false,
            counted_here: false,
            end: None,
        }
    }

    #[test]
    fn a_request_that_is_done_says_more_than_one_that_is_not() {
        let end = RequestEnd {
            outcome: "complete",
            queue_ms: Some(7.0),
            overhead_ms: Some(0.0417),
            prompt_tokens: 12,
            ..RequestEnd::default()
        };
        let done = RequestView { stage: Stage::Ended, end: Some(end), ..live() };
        let loading = RequestView {
            stage: Stage::Loading { ready_in: Duration::from_millis(1250) },
            target: None,
            first: None,
            made: Produced::Sound(Duration::ZERO),
            ..live()
        };
        insta::assert_snapshot!([live(), done, loading].map(|view| request(&view)).join("\n"), @r#"
        {"id":"hob-7","started_unix_ms":1793491200000,"route":"chat","alias":"fast","target":"gpu/qwen3","stage":"answering","ready_in_s":null,"key":"laptop","streamed":true,"warm":true,"total_ms":1204.1,"ttft_ms":180.0,"tokens":42,"audio_ms":null,"attempts":2,"failed":[{"target":"spare/qwen3","reason":"overloaded","ms":31.0}],"ignored":["min_p"],"thought_anyway":false,"counted_here":false}
        {"id":"hob-7","started_unix_ms":1793491200000,"route":"chat","alias":"fast","target":"gpu/qwen3","stage":"ended","ready_in_s":null,"key":"laptop","streamed":true,"warm":true,"total_ms":1204.1,"ttft_ms":180.0,"tokens":42,"audio_ms":null,"attempts":2,"failed":[{"target":"spare/qwen3","reason":"overloaded","ms":31.0}],"ignored":["min_p"],"thought_anyway":false,"counted_here":false,"outcome":"complete","error":null,"queue_ms":7.0,"load_ms":null,"overhead_ms":0.042,"tokens_per_s":null,"prompt_tokens":12,"cached_tokens":0,"reasoning_tokens":0}
        {"id":"hob-7","started_unix_ms":1793491200000,"route":"chat","alias":"fast","target":null,"stage":"loading","ready_in_s":1.3,"key":"laptop","streamed":true,"warm":true,"total_ms":1204.1,"ttft_ms":null,"tokens":null,"audio_ms":0,"attempts":1,"failed":[{"target":"spare/qwen3","reason":"overloaded","ms":31.0}],"ignored":["min_p"],"thought_anyway":false,"counted_here":false}
        "#);
    }

    #[test]
    fn everything_at_once() {
        let view = NowView {
            aliases: vec![AliasView {
                name: "fast".to_owned(),
                requests: 21,
                warm: Sample::new((1..=20).map(f64::from)),
                cold: Sample::new([812.5]),
                tokens_per_s: Sample::new([41.26]),
                ..AliasView::default()
            }],
            queue: QueueFigures {
                in_flight: 2,
                waiting: 1,
                targets: vec![TargetQueue {
                    name: "smol".to_owned(),
                    in_flight: 2,
                    waiting: 1,
                    in_flight_max: Some(16),
                }],
            },
            ..NowView::default()
        };
        insta::assert_snapshot!(now(&view), @r#"{"requests":[],"recent":[],"aliases":[{"name":"fast","requests":21,"more":false,"failed":0,"ttft_warm":{"p50":10.0,"p95":19.0,"n":20},"ttft_cold":{"p50":812.5,"p95":null,"n":1},"total":{"p50":null,"p95":null,"n":0},"tokens_per_s":{"p50":41.3,"n":1}}],"models":[],"upstreams":[],"queue":{"in_flight":2,"waiting":1,"targets":[{"name":"smol","in_flight":2,"waiting":1,"in_flight_max":16}]}}"#);
    }
}
