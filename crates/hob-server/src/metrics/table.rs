//! All metrics of `/metrics`: type, labels and meaning.
//! The help texts of the metrics and the table in the reference are made of it, so they cannot differ.

use metrics::{describe_counter, describe_gauge, describe_histogram};

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

/// The name of each metric as a constant, and the table of all.
macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $meaning:literal;)*) => {
        $(pub(super) const $constant: &str = $name;)*

        /// In the order of the reference page.
        pub const METRICS: &[ServerMetric] = &[$(ServerMetric {
            name: $name,
            kind: MetricType::$kind,
            labels: &[$($label),*],
            meaning: $meaning,
        }),*];
    };
}

metrics! {
    REQUESTS: Counter "hob_requests_total" ["route", "status"] "HTTP requests";
    KEY_REFUSED: Counter "hob_key_refused_total" ["key", "reason"]
        "Rejected requests with a valid key; `reason` is the error code";
    TTFT: Histogram "hob_chat_ttft_seconds" ["model"]
        "Time from the headers of a chat request to its first token";
    CHAT_ANSWERS: Counter "hob_chat_answers_total" ["model", "outcome"] "Chat answers that started";
    CHAT_TOKENS: Counter "hob_chat_tokens_total" ["model", "kind"]
        "Tokens; `kind` is `prompt`, `cached`, `completion`, `reasoning` or `embedded`";
    // The names of vLLM, with hob's prefix.
    DRAFT_TOKENS: Counter "hob_spec_decode_num_draft_tokens_total" ["model"]
        "Guessed tokens that the model checked";
    ACCEPTED_TOKENS: Counter "hob_spec_decode_num_accepted_tokens_total" ["model"]
        "Guessed tokens that were right";
    CHAT_IN_FLIGHT: Gauge "hob_chat_in_flight" ["model"] "Chat requests in flight";
    CHAT_IN_FLIGHT_MAX: Gauge "hob_chat_in_flight_max" ["model"]
        "Maximum number of chat requests in flight";
    CHAT_BACKLOG: Gauge "hob_chat_backlog_tokens" ["model"]
        "Tokens that the chat requests in flight still need";
    TTFA: Histogram "hob_speech_ttfa_seconds" ["model"]
        "Time from the headers of a speech request to its first audio";
    ANSWERS: Counter "hob_speech_answers_total" ["model", "outcome"] "Speech answers that started";
    SOUND: Counter "hob_speech_audio_ms_total" ["model"] "Generated audio in milliseconds";
    IN_FLIGHT: Gauge "hob_speech_in_flight" ["model"] "Speech requests in flight";
    IN_FLIGHT_MAX: Gauge "hob_speech_in_flight_max" ["model"]
        "Maximum number of speech requests in flight";
    BACKLOG: Gauge "hob_speech_backlog_seconds" ["model"]
        "Audio that the speech requests in flight still need, in seconds";
    TRANSCRIPT_ANSWERS: Counter "hob_transcript_answers_total" ["model", "outcome"]
        "Transcripts that started";
    HEARD: Counter "hob_transcript_audio_ms_total" ["model"] "Transcribed audio in milliseconds";
    TRANSCRIPT_IN_FLIGHT: Gauge "hob_transcript_in_flight" ["model"] "Transcriptions in flight";
    TRANSCRIPT_IN_FLIGHT_MAX: Gauge "hob_transcript_in_flight_max" ["model"]
        "Maximum number of transcriptions in flight";
    TRANSCRIPT_BACKLOG: Gauge "hob_transcript_backlog_seconds" ["model"]
        "Audio that the transcriptions in flight still need to process, in seconds";
    STATE: Gauge "hob_model_state" ["model", "state"]
        "1 for the current state of the model, 0 for the others; `state` is `cold`, `loading`, `warm` or `down`";
    FALLBACKS: Counter "hob_fallbacks_total" ["alias", "from", "to", "reason"]
        "Failed attempts after which hob tried another target; `to` is `nobody` if there was none";
    RETRIES: Counter "hob_retries_total" ["alias", "from", "reason"]
        "Failed attempts after which hob tried the same target again";
    REPAIRED: Counter "hob_repaired_total" ["what"]
        "Faults that hob repaired in the answers of upstreams";
    COOL_DOWN: Gauge "hob_target_cool_down_seconds" ["target"]
        "Time until hob tries a failed target again; 0 if it may be tried now";
    TURN_STAGES: Histogram "hob_turn_stage_seconds" ["stage"]
        "Stages of a realtime session's turn, from the end of the user's speech to the first sound";
    LEDGER_LOST: Counter "hob_ledger_lost_total" [] "Rows that the ledger could not store";
}

/// Gives the recorder the help texts.
pub(super) fn describe() {
    for &ServerMetric { name, kind, meaning, .. } in METRICS {
        match kind {
            MetricType::Counter => describe_counter!(name, meaning),
            MetricType::Gauge => describe_gauge!(name, meaning),
            MetricType::Histogram => describe_histogram!(name, meaning),
        }
    }
}
