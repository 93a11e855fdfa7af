//! All metrics of `/metrics`: type, labels and meaning.
//! The help texts of the metrics and the table in the reference are made of it, so they cannot differ.

use metrics::{describe_counter, describe_gauge, describe_histogram};

use super::*;

/// A metric as Prometheus sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMetric {
    pub name: &'static str,
    pub kind: MetricType,
    pub labels: &'static [&'static str],
    /// Half a sentence in Markdown.
    pub meaning: &'static str,
}

/// The types of Prometheus's text format that hob uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

impl MetricType {
    /// The name in Prometheus's text format.
    pub fn name(self) -> &'static str {
        match self {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        }
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    meaning: &'static str,
) -> ServerMetric {
    ServerMetric { name, kind: MetricType::Counter, labels, meaning }
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    meaning: &'static str,
) -> ServerMetric {
    ServerMetric { name, kind: MetricType::Gauge, labels, meaning }
}

const fn histogram(name: &'static str, meaning: &'static str) -> ServerMetric {
    ServerMetric { name, kind: MetricType::Histogram, labels: &["model"], meaning }
}

/// In the order of the reference page.
pub const METRICS: [ServerMetric; 28] = [
    counter(REQUESTS, &["route", "status"], "HTTP requests"),
    counter(
        KEY_REFUSED,
        &["key", "reason"],
        "Rejected requests with a valid key; `reason` is the error code",
    ),
    histogram(TTFT, "Time from the headers of a chat request to its first token"),
    counter(CHAT_ANSWERS, &["model", "outcome"], "Chat answers that started"),
    counter(
        CHAT_TOKENS,
        &["model", "kind"],
        "Tokens; `kind` is `prompt`, `cached`, `completion`, `reasoning` or `embedded`",
    ),
    counter(DRAFT_TOKENS, &["model"], "Guessed tokens that the model checked"),
    counter(ACCEPTED_TOKENS, &["model"], "Guessed tokens that were right"),
    gauge(CHAT_IN_FLIGHT, &["model"], "Chat requests in flight"),
    gauge(CHAT_IN_FLIGHT_MAX, &["model"], "Maximum number of chat requests in flight"),
    gauge(CHAT_BACKLOG, &["model"], "Tokens that the chat requests in flight still need"),
    histogram(TTFA, "Time from the headers of a speech request to its first audio"),
    counter(ANSWERS, &["model", "outcome"], "Speech answers that started"),
    counter(SOUND, &["model"], "Generated audio in milliseconds"),
    gauge(IN_FLIGHT, &["model"], "Speech requests in flight"),
    gauge(IN_FLIGHT_MAX, &["model"], "Maximum number of speech requests in flight"),
    gauge(BACKLOG, &["model"], "Audio that the speech requests in flight still need, in seconds"),
    counter(TRANSCRIPT_ANSWERS, &["model", "outcome"], "Transcripts that started"),
    counter(HEARD, &["model"], "Transcribed audio in milliseconds"),
    gauge(TRANSCRIPT_IN_FLIGHT, &["model"], "Transcriptions in flight"),
    gauge(TRANSCRIPT_IN_FLIGHT_MAX, &["model"], "Maximum number of transcriptions in flight"),
    gauge(
        TRANSCRIPT_BACKLOG,
        &["model"],
        "Audio that the transcriptions in flight still need to process, in seconds",
    ),
    gauge(
        STATE,
        &["model", "state"],
        "1 for the current state of the model, 0 for the others; `state` is `cold`, `loading`, `warm` or `down`",
    ),
    counter(
        FALLBACKS,
        &["alias", "from", "to", "reason"],
        "Failed attempts after which hob tried another target; `to` is `nobody` if there was none",
    ),
    counter(
        RETRIES,
        &["alias", "from", "reason"],
        "Failed attempts after which hob tried the same target again",
    ),
    counter(REPAIRED, &["what"], "Faults that hob repaired in the answers of upstreams"),
    gauge(
        COOL_DOWN,
        &["target"],
        "Time until hob tries a failed target again; 0 if it may be tried now",
    ),
    ServerMetric {
        name: TURN_STAGES,
        kind: MetricType::Histogram,
        labels: &["stage"],
        meaning: "Stages of a realtime session's turn, from the end of the user's speech to the first sound",
    },
    counter(LEDGER_LOST, &[], "Rows that the ledger could not store"),
];

/// Gives the recorder the help texts.
pub(super) fn describe() {
    for ServerMetric { name, kind, meaning, .. } in METRICS {
        match kind {
            MetricType::Counter => describe_counter!(name, meaning),
            MetricType::Gauge => describe_gauge!(name, meaning),
            MetricType::Histogram => describe_histogram!(name, meaning),
        }
    }
}
