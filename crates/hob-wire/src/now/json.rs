//! The JSON of `now.rs`: every field is always there, and null where nothing is known.
//! Only what belongs to the end of a request is left out until then.

use std::time::Duration;

use hob_core::statistics::Sample;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::{FailedView, Produced, RequestEnd, RequestView, Stage};

/// A request that runs or ended.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ShownRequest<'a> {
    id: String,
    started_unix_ms: u64,
    route: &'static str,
    alias: &'a str,
    target: Option<&'a str>,
    /// `waiting`, `loading`, `asking`, `answering` or `ended`.
    stage: &'static str,
    ready_in_s: Option<f64>,
    key: Option<&'a str>,
    streamed: bool,
    warm: bool,
    total_ms: f64,
    ttft_ms: Option<f64>,
    tokens: Option<u64>,
    audio_ms: Option<u64>,
    attempts: usize,
    failed: &'a [FailedView],
    ignored: &'a [String],
    thought_anyway: bool,
    counted_here: bool,
    #[serde(flatten)]
    end: Option<&'a RequestEnd>,
}

/// In milliseconds.
#[derive(JsonSchema, Serialize)]
pub(super) struct Percentiles {
    p50: Option<f64>,
    p95: Option<f64>,
    n: usize,
}

/// A median and the number of measurements.
#[derive(JsonSchema, Serialize)]
pub(super) struct Median {
    p50: Option<f64>,
    n: usize,
}

pub(super) fn shown_requests<S: Serializer>(
    views: &[RequestView],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(views.iter().map(shown_request))
}

pub(super) fn shown_request(view: &RequestView) -> ShownRequest<'_> {
    let (stage, ready_in_s) = match view.stage {
        Stage::Waiting => ("waiting", None),
        Stage::Loading { ready_in } => ("loading", Some(tenths(ready_in.as_secs_f64()))),
        Stage::Asking => ("asking", None),
        Stage::Answering => ("answering", None),
        Stage::Ended => ("ended", None),
    };
    let (tokens, audio_ms) = match view.made {
        Produced::Tokens(tokens) => (Some(tokens), None),
        Produced::Sound(sound) => (None, Some(sound.as_millis() as u64)),
        Produced::Nothing => (None, None),
    };
    ShownRequest {
        id: format!("hob-{}", view.id),
        started_unix_ms: view.started_unix_ms,
        route: view.route,
        alias: &view.alias,
        target: view.target.as_deref(),
        stage,
        ready_in_s,
        key: view.key.as_deref(),
        streamed: view.is_streamed,
        warm: view.is_warm,
        total_ms: milliseconds(view.took),
        ttft_ms: view.first.map(milliseconds),
        tokens,
        audio_ms,
        attempts: view.failed.len() + usize::from(view.target.is_some()),
        failed: &view.failed,
        ignored: &view.dropped,
        thought_anyway: view.thought_anyway,
        counted_here: view.counted_here,
        end: view.end.as_ref(),
    }
}

pub(super) fn percentiles<S: Serializer>(sample: &Sample, to: S) -> Result<S::Ok, S::Error> {
    let (p50, p95) = (sample.p50().map(tenths), sample.p95().map(tenths));
    Percentiles { p50, p95, n: sample.count() }.serialize(to)
}

pub(super) fn median<S: Serializer>(sample: &Sample, to: S) -> Result<S::Ok, S::Error> {
    Median { p50: sample.p50().map(tenths), n: sample.count() }.serialize(to)
}

pub(super) fn in_ms<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    milliseconds(*time).serialize(to)
}

fn milliseconds(time: Duration) -> f64 {
    tenths(time.as_secs_f64() * 1e3)
}

/// Rounded to a tenth: more digits help no reader.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

pub(super) fn in_tenths<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    value.map(tenths).serialize(to)
}

/// For the one number that is often below a tenth.
pub(super) fn in_thousandths<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    value.map(|value| (value * 1e3).round() / 1e3).serialize(to)
}
