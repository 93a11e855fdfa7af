//! Parts that only one kind of record has: slowdown, speech, transcription, voice, the longest context.
//! Also the resources that the run used.

use std::collections::BTreeMap;

use hob_core::enum_table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::figures::Spread;

/// Latency per user under concurrent load, against one user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// Users at the same time
    pub n: u32,
    /// The run of one user that this is compared with
    pub versus: Option<Uuid>,
    /// Time to the first token, as a multiple of that of one user
    pub ttft_x: Option<f64>,
    /// Time for each token, likewise
    pub tpot_x: Option<f64>,
    /// Time to the first sound, likewise
    pub ttfa_x: Option<f64>,
    /// Throughput divided by n times that of one user
    pub scaling: Option<f64>,
    /// 95 % interval of the first known ratio; null with a single pair of runs
    pub ci95: Option<[f64; 2]>,
}

/// Memory, energy and load time of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Peak memory of the server
    pub rss_peak_mb: Option<f64>,
    /// The speech engine alone: the worker of a hob that was started here
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech_rss_peak_mb: Option<f64>,
    /// Sum of all graphics cards
    pub vram_mb: Option<VramUse>,
    pub energy_j: Option<f64>,
    /// From the start of the server until it is ready
    pub load_s: Option<f64>,
    /// The first request of a new process
    pub cold_first_ms: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VramUse {
    /// Before the server was started
    pub idle: Option<f64>,
    /// When the server was ready
    pub loaded: Option<f64>,
    /// When the server had answered
    pub peak: Option<f64>,
}

/// A smaller difference may come from other programs.
const VRAM_MB_MIN: f64 = 64.0;

impl Resources {
    /// Peak memory of the server: of the cards if it uses them, otherwise of the machine.
    pub fn memory_mb(&self) -> Option<f64> {
        let taken = |vram: VramUse| Some(vram.peak? - vram.idle.unwrap_or(0.0));
        let vram = self.vram_mb.and_then(taken).filter(|mb| *mb >= VRAM_MB_MIN);
        vram.or(self.rss_peak_mb)
    }
}

/// One text, spoken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tts {
    pub text_sha256: Option<String>,
    pub chars: Option<u32>,
    pub voice: Option<String>,
    pub format: Option<String>,
    /// The request's `stream` field; null if absent
    pub stream: Option<bool>,
    /// Samples per second
    pub rate_hz: Option<u32>,
    pub audio_s: Option<f64>,
    /// From sending the text to the last byte
    pub wall_s: Option<f64>,
    pub rtf: Option<f64>,
    pub ttfb_ms: Option<f64>,
    pub ttfa_ms: Option<f64>,
    /// From sending the text to the last sound
    pub last_ms: Option<f64>,
    /// Bytes of the answer as sent
    pub bytes: Option<u64>,
    /// Reads that brought sound
    pub chunks: Option<u64>,
    pub spread: Option<f64>,
    pub verdict: Option<StreamVerdict>,
    pub underrun_ms: Option<f64>,
    /// 1: under 3 s, 2: under 7 s, 3: slower; known with the third of the three texts
    pub tier: Option<u8>,
    /// SHA-256 of the first answer of the last run
    pub audio_sha256: Option<String>,
}

impl Tts {
    /// The tier for the mean time of the three texts.
    pub fn tier_of(mean_s: f64) -> u8 {
        match mean_s {
            ..3.0 => 1,
            3.0..7.0 => 2,
            _ => 3,
        }
    }
}

/// Whether sound is sent while it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamVerdict {
    /// The sound is too short to judge
    TooShort,
    /// All of the sound is made before the first piece is sent
    Fake,
    /// The first sound of a long text comes much later than that of one sentence
    Partial,
    /// It streams more slowly than it plays
    Interrupted,
    /// It streams, and fast enough to play
    Streaming,
}

/// Speech, written down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stt {
    /// SHA-256 of the set of clips
    pub corpus_sha256: Option<String>,
    /// What was done to both texts before they were compared
    pub normaliser: Option<String>,
    /// Clips that were transcribed
    pub utterances: Option<u64>,
    /// Share of wrong words
    pub wer: Option<f64>,
    /// Share of wrong characters
    pub cer: Option<f64>,
    pub rtf: Option<f64>,
    pub first_partial_ms: Option<f64>,
    /// From the last sample to the whole text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_text_ms: Option<f64>,
    /// Length of all clips together
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_s: Option<f64>,
    /// The request's `stream` field
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Added white noise, in dB below the mean power of each clip
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snr_db: Option<f64>,
    /// The speech model that spoke the clips; null for recordings of people
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic_by: Option<String>,
    /// By ISO 639-1 code
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub languages: BTreeMap<String, LanguageErrors>,
    /// Empty for a set of more than 500 clips
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clips: Vec<TranscribedClip>,
}

/// The errors in all clips of a language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageErrors {
    pub utterances: u64,
    pub wer: Option<f64>,
    pub cer: Option<f64>,
}

/// One clip; counts are of all runs together, times are medians of the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TranscribedClip {
    /// Its file in the set, or its number
    pub name: String,
    pub language: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Where the clip comes from
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Noise that the recording already had
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<String>,
    pub audio_s: f64,
    /// Words of the reference
    pub words: u64,
    /// Words that became other words
    pub wrong: u64,
    /// Words that the transcript lacks
    pub missing: u64,
    /// Words that the reference lacks
    pub added: u64,
    pub cer: Option<f64>,
    pub final_text_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_partial_ms: Option<f64>,
}

/// From the last word of a question to the first sound of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoiceFigures {
    pub turns: Option<u64>,
    /// From the last sample of a question to the first audible sample of its answer
    pub ttfa_ms: Option<Spread>,
    /// `endpoint`, `stt`, `llm_ttfat`, `sentence`, `tts_ttfa`, `transport`: medians
    pub stages_ms: BTreeMap<String, f64>,
    pub verdict: Option<VoiceVerdict>,
    /// Until the voice falls silent when it is interrupted
    pub barge_in_ms: Option<f64>,
    /// Questions with a pause that the server took for finished in it, in percent
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_in_pct: Option<f64>,
}

/// How soon half of the turns are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VoiceVerdict {
    /// Under 0.8 s
    Best,
    /// Under 1.5 s
    Pass,
    /// 1.5 s or more
    Fail,
}

/// The longest context that fits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxContext {
    /// The longest that worked
    pub lo_ok: Option<u64>,
    /// The shortest that did not
    pub hi_fail: Option<u64>,
    /// Step of the search, in tokens
    pub granule: Option<u64>,
    /// The longest with which the server starts
    pub load: Option<u64>,
    /// The longest that can be filled and still answers
    pub usable: Option<u64>,
    /// Times that the longest worked
    pub confirmed: Option<u32>,
    /// Result of the shortest failed context; only out-of-memory is a limit of this machine
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<AttemptResult>,
    /// Proof that the server had the context of its start
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_by: Option<ContextProof>,
    pub attempts: Vec<Attempt>,
}

/// Proof of a server's real context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextProof {
    /// The server reports it
    #[serde(alias = "told")]
    Reported,
    /// It counted a prompt of this length, and answered it
    Filled,
}

/// One start of the server with a context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    pub ctx: u64,
    pub result: AttemptResult,
    /// Memory that it took of the cards
    pub vram_mb: Option<f64>,
    /// In the machine's own memory
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_mb: Option<f64>,
    /// How long it took
    pub s: Option<f64>,
    /// Why it failed, in the server's words
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum AttemptResult: name {
        /// It worked
        Ok = "works",
        /// Out of memory at the start
        OomLoad = "is out of memory when it loads",
        /// Out of memory while it read the prompt
        OomPrefill = "is out of memory when it reads",
        /// Out of memory while it wrote the answer
        OomDecode = "is out of memory when it writes",
        /// It ran at less than half of the expected speed
        Spill = "is slow: memory has spilled",
        /// It took too long
        Timeout = "takes too long",
        /// The model or the engine does not support a context of this length
        Unsupported = "is more than the model or its engine takes",
        /// A server of an earlier start answered, so nothing is known about this context
        Stale = "is unknown: a server of an earlier start answered",
        /// Another failure
        Failed = "failed",
    }
}
