//! The file format of one benchmark run: these types are the format, and the reference page is generated from them.
//! Null means unknown. There is no field for prompts, answers, audio or keys.

mod eval;
mod figures;
mod kinds;
mod machine;
mod model;
mod pick;
mod samples;
mod seal;
mod setup;
mod store;
#[cfg(test)]
mod tests;
mod workload;

pub use eval::*;
pub use figures::*;
use std::collections::BTreeMap;

use hob_core::enum_table;
use jiff::Timestamp;
use jiff::civil::Date;
pub use kinds::*;
pub use machine::*;
pub use model::*;
pub use pick::*;
pub use samples::*;
use schemars::JsonSchema;
pub use seal::*;
use serde::{Deserialize, Serialize};
pub use setup::*;
pub use store::*;
use uuid::Uuid;
pub use workload::*;

/// The value of `schema` in files that this program writes and reads.
pub const SCHEMA: &str = "bench-run/1";

/// One run of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `bench-run/1`
    pub schema: String,
    /// UUID version 7; for an imported run derived from its original, so that it is always the same
    pub id: Uuid,
    /// Hash of the plan's cell: matrix point, engine version, model, harness and host
    pub cell_key: Option<String>,
    /// SHA-256 of everything else in this record, as JSON
    pub content_hash: String,
    /// The record that this one corrects
    pub supersedes: Option<Uuid>,
    pub status: RunStatus,
    /// Why the measurement is invalid, in sentences
    pub invalid_reasons: Vec<String>,
    pub kind: RecordKind,
    pub confidence: Confidence,
    pub source: RecordSource,
    pub time: RunTime,
    /// Null for an imported run
    pub harness: Option<Harness>,
    pub host: Host,
    pub engine: RecordedEngine,
    pub model: RecordedModel,
    pub workload: RecordedWorkload,
    pub count_source: Option<CountSource>,
    /// Null if only figures are known, or with more than 200,000 requests
    pub samples: Option<SampleFile>,
    pub metrics: Metrics,
    #[serde(alias = "degrade")]
    pub slowdown: Option<Slowdown>,
    pub resources: Resources,
    pub tts: Option<Tts>,
    pub stt: Option<Stt>,
    pub voice: Option<VoiceFigures>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval: Option<EvalFigures>,
    #[serde(alias = "ctx_ceiling")]
    pub max_context: Option<MaxContext>,
    /// What a plan says about the setup: `creator`, `power_cap_w`, `driver`, and labels of any name
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl Record {
    /// A record without results.
    pub fn new(id: Uuid, kind: RecordKind, source: RecordSource) -> Record {
        Record { schema: SCHEMA.to_owned(), id, kind, source, ..Record::default() }
    }

    /// Whether the measurement completed and is valid.
    pub fn is_valid(&self) -> bool {
        self.status == RunStatus::Ok && self.invalid_reasons.is_empty()
    }

    /// The last eight digits, which are random. The first digits are the time and are alike in a campaign.
    pub fn short_id(&self) -> String {
        let id = self.id.simple().to_string();
        id[id.len() - 8..].to_owned()
    }
}

/// How the run ended.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// All of it was measured
    #[default]
    Ok,
    /// The server or the measurement failed
    Failed,
    /// The server ran out of memory
    Oom,
    /// The server was not ready, or did not answer, in time
    Timeout,
    /// The user stopped the measurement
    Aborted,
}

enum_table! {
    /// What was measured.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum RecordKind: name {
        /// Chat: answers to prompts of one shape
        #[default]
        Llm = "llm",
        /// Chat along the length of the prompt
        CtxSweep = "ctx_sweep",
        /// The longest context with which a server works
        #[serde(alias = "ctx_ceiling")]
        MaxContext = "max_context",
        /// One user, and several at the same time
        #[serde(alias = "degrade")]
        Concurrency = "concurrency",
        /// Many requests at once
        Batch = "batch",
        /// Speech: whole texts
        Tts = "tts",
        /// Whether speech is sent while it is computed
        Stream = "stream",
        /// Requests right after a start
        Cold = "cold",
        /// Spoken conversations
        Voice = "voice",
        /// Transcription
        Stt = "stt",
        /// Items that a program checks: `hob eval`
        Eval = "eval",
    }
}

/// Whether a figure may be relied on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confidence {
    pub label: Label,
    /// Why it is unverified; empty where it is verified
    pub reasons: Vec<Doubt>,
    /// Number of runs; null where it was not published
    pub runs: Option<u32>,
    /// How often the server was started
    pub server_starts: Option<u32>,
    /// Half the width of the 95 % interval, in percent of the figure
    pub ci_half_width_pct: Option<f64>,
    /// From this day on it counts as unverified
    pub expires: Option<Date>,
}

/// Whether there is a reason to doubt the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// No reason to doubt them
    #[serde(alias = "hard")]
    Verified,
    /// `reasons` says why not to rely on them
    #[default]
    #[serde(alias = "soft")]
    Unverified,
}

enum_table! {
    /// Why a figure is unverified.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Doubt: meaning {
        FewRuns = "fewer than six runs",
        OneStart = "the server was started only once",
        WideCi = "the interval is wider than 5 % to each side",
        NoisyHost = "other work took 10 % of the processor or more",
        NoiseUnknown = "the load of other programs is unknown",
        Throttled = "the machine slowed itself down",
        OnBattery = "the machine ran on its battery",
        ClientError = "the client's own time stamps had too large errors",
        ClientBusy = "the client was too busy to measure",
        LateDispatch = "requests were sent too late",
        CountsNotUsage = "tokens were counted by the client and not by the server",
        CacheUnverified = "it is not proven what was cached",
        ReasoningUnverified = "it is not proven that reasoning was off",
        ShortAnswers = "answers ended before the requested length",
        NotStreamed = "some answers came in one piece",
        Bimodal = "the times lie in two groups, and the median is typical of neither",
        DirtyBuild = "hob was built with uncommitted changes",
        SetupUnverified = "the machine does not report the power limit or driver that the plan names",
        NoProvenance = "program, start command, weights or machine are not fully known",
        Imported = "measured by another program, or published by others",
        Stale = "older than 90 days, or driver or engine have changed since",
    }
}

/// The program that measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordSource {
    pub r#type: SourceType,
    /// The program that measured, or `published`
    pub tool: String,
    /// Version of that program
    pub version: Option<String>,
    /// SHA-256 of the original file; null for hob's own runs
    pub sha256: Option<String>,
    /// What the original or the run says and a record cannot store
    pub lossy: Vec<String>,
}

/// Who measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceType {
    /// hob
    #[default]
    Native,
    /// Another program, or other people
    Import,
}

/// Time of the run; null if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTime {
    /// Start of the first run
    pub started: Option<Timestamp>,
    /// End of the last run
    pub ended: Option<Timestamp>,
}

/// The measuring program, and its own accuracy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Commit of the build
    pub git: Option<String>,
    /// Whether the build had uncommitted changes
    pub dirty: Option<bool>,
    /// The command line; `hob bench rerun` repeats it
    pub argv: Vec<String>,
    /// Seed of the prompts
    pub seed: u64,
    pub client: Client,
    pub selftest: Option<RecordedClientCheck>,
}

/// The client that measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Client {
    pub r#impl: ClientImpl,
    /// Processor time of the client, in seconds
    pub cpu_s: Option<f64>,
    /// The busiest core of the client
    pub max_core_pct: Option<f64>,
    pub dispatch_ms: Option<Dispatch>,
}

/// How connections were read: with a thread each, or many by one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientImpl {
    /// A thread for each connection
    #[default]
    Threads,
    /// One thread for many connections
    Epoll,
}

/// How late requests were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dispatch {
    pub p50: f64,
    pub p95: f64,
}

/// The check of the client with the mock server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedClientCheck {
    /// Error of the time to the first token
    pub ttft_err_ms: ErrorSpread,
    /// Error of the time between two chunks: the 99th percentile
    pub gap_err_p99_ms: f64,
    /// Chunks per second that the client read
    pub max_chunks_s: f64,
    /// Whether all errors were within the limits
    pub pass: bool,
}

impl RecordedClientCheck {
    /// The result in words.
    pub fn summary(&self) -> String {
        let RecordedClientCheck {
            ttft_err_ms: ErrorSpread { p50, p99 }, gap_err_p99_ms, pass, ..
        } = self;
        let passed = if *pass { "passed" } else { "failed" };
        format!(
            "{passed}: off by {p50:.2} ms to the first token (99th percentile {p99:.2}), gaps by {gap_err_p99_ms:.2} ms"
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorSpread {
    pub p50: f64,
    pub p99: f64,
}
