//! What hob is doing now, and what became of a request, as hob says it over HTTP.
//! Names and numbers only: nothing of what was asked or answered has a field here.

mod shapes;

use std::time::Duration;

use hob_core::routing::UpstreamView;
use hob_core::statistics::Sample;

use self::shapes::{everything, shown};
use crate::error::json;
use crate::lifecycle::ResidentEntry;

/// Everything that is looked at together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NowView {
    /// That are not done; the oldest first.
    pub requests: Vec<RequestView>,
    /// That are; the latest first.
    pub recent: Vec<RequestView>,
    pub aliases: Vec<AliasView>,
    pub models: Vec<ResidentEntry>,
    pub upstreams: Vec<UpstreamView>,
    pub queue: QueueView,
}

/// One request that a model was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestView {
    pub id: u64,
    pub started_unix_ms: u64,
    /// `chat`, `speech` or `embeddings`.
    pub route: &'static str,
    pub alias: String,
    /// Who is asked or answers; none between two of them.
    pub target: Option<String>,
    pub stage: Stage,
    pub key: Option<String>,
    pub is_streamed: bool,
    pub is_warm: bool,
    /// Since it came, or until it ended.
    pub took: Duration,
    /// Until the first token, or the first sound.
    pub first: Option<Duration>,
    pub made: Made,
    /// Those that did not answer, in the order in which they were asked.
    pub failed: Vec<FailedView>,
    /// Parameters that the target does not take.
    pub dropped: Vec<String>,
    pub thought_anyway: bool,
    pub counted_here: bool,
    /// None while it is not done.
    pub end: Option<EndView>,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// For its turn, for a target to be chosen, or for the first of the answer.
    Waiting,
    /// For its model to be in memory.
    Loading {
        ready_in: Duration,
    },
    /// A target was asked and has not answered.
    Asking,
    /// The first of the answer is there.
    Answering,
    Ended,
}

/// What there is of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Made {
    Tokens(u64),
    Sound(Duration),
    /// An answer that is there all at once, or not at all.
    Nothing,
}

/// A target that did not answer: how, in one word, and after how long.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedView {
    pub target: String,
    pub reason: &'static str,
    pub took: Duration,
}

/// What is known of a request only when it is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndView {
    /// `complete`, `failed` or `abandoned`.
    pub outcome: &'static str,
    /// The error's code.
    pub error: Option<String>,
    pub queue_ms: Option<f64>,
    pub load_ms: Option<f64>,
    pub overhead_ms: Option<f64>,
    pub tokens_per_s: Option<f64>,
    pub prompt_tokens: u32,
    pub cached_tokens: u32,
    pub reasoning_tokens: u32,
}

/// What the last hour's requests by one name took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AliasView {
    pub name: String,
    pub requests: usize,
    /// There were more in the hour, and these are the latest.
    pub had_more: bool,
    pub failed: usize,
    /// Of those that found their model in memory, in milliseconds.
    pub warm: Sample,
    pub cold: Sample,
    /// Of those that were completed, in milliseconds.
    pub total: Sample,
    pub tokens_per_s: Sample,
}

/// How many there are at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueView {
    pub in_flight: usize,
    /// Of those, without the first of an answer.
    pub waiting: usize,
    pub targets: Vec<QueuedView>,
}

/// The same of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueuedView {
    pub name: String,
    pub in_flight: usize,
    pub waiting: usize,
    /// Of those that have a limit here.
    pub in_flight_max: Option<usize>,
}

/// `GET /api/hob/now`.
pub fn now(view: &NowView) -> String {
    json(&everything(view))
}

/// `GET /api/hob/requests/{id}`.
pub fn request(view: &RequestView) -> String {
    json(&shown(view))
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
            made: Made::Tokens(42),
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
        let end = EndView {
            outcome: "complete",
            queue_ms: Some(7.0),
            overhead_ms: Some(0.0417),
            prompt_tokens: 12,
            ..EndView::default()
        };
        let done = RequestView { stage: Stage::Ended, end: Some(end), ..live() };
        let loading = RequestView {
            stage: Stage::Loading { ready_in: Duration::from_millis(1250) },
            target: None,
            first: None,
            made: Made::Sound(Duration::ZERO),
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
            queue: QueueView {
                in_flight: 2,
                waiting: 1,
                targets: vec![QueuedView {
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
