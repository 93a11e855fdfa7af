//! Blocks that only one kind of record has: slowdown, speech, transcription, voice, the longest context.
//! Also what the run took of the machine.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::figures::Spread;

/// Latency per user under concurrent load, against one user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// Users at once
    pub n: u32,
    /// The run of one user that this is compared with
    pub versus: Option<Uuid>,
    pub ttft_x: Option<f64>,
    pub tpot_x: Option<f64>,
    pub ttfa_x: Option<f64>,
    /// Throughput against n times that of one
    pub scaling: Option<f64>,
    /// Of the first ratio that is there
    pub ci95: Option<[f64; 2]>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    pub rss_peak_mb: Option<f64>,
    /// The speech engine alone: the worker of a hob that was started here
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech_rss_peak_mb: Option<f64>,
    /// Of all graphics cards together
    pub vram_mb: Option<VramUse>,
    pub energy_j: Option<f64>,
    pub load_s: Option<f64>,
    /// The first request of a new process
    pub cold_first_ms: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VramUse {
    /// Before the server was started
    pub idle: Option<f64>,
    /// When it was ready
    pub loaded: Option<f64>,
    /// When it had answered
    pub peak: Option<f64>,
}

/// Less than that is what others do with a card meanwhile.
const VRAM_MB_MIN: f64 = 64.0;

impl Resources {
    /// What the server took at most: of the cards where it took any of theirs, else of the machine.
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
    /// What the request said of streaming; null where it said nothing
    pub stream: Option<bool>,
    pub rate_hz: Option<u32>,
    pub audio_s: Option<f64>,
    pub wall_s: Option<f64>,
    pub rtf: Option<f64>,
    pub ttfb_ms: Option<f64>,
    pub ttfa_ms: Option<f64>,
    pub last_ms: Option<f64>,
    /// Of the answer, as it was sent
    pub bytes: Option<u64>,
    /// Reads that brought sound
    pub chunks: Option<u64>,
    pub spread: Option<f64>,
    pub verdict: Option<StreamVerdict>,
    pub underrun_ms: Option<f64>,
    /// 1: under 3 s, 2: under 7 s, 3: slower; said with the third of the three texts
    pub tier: Option<u8>,
    /// Of the answer's bytes, those of the first request of the last run
    pub audio_sha256: Option<String>,
}

impl Tts {
    /// Of the mean of the three texts' times: it keeps up with a talk, it is waited for, or it is for later.
    pub fn tier_of(mean_s: f64) -> u8 {
        match mean_s {
            ..3.0 => 1,
            3.0..7.0 => 2,
            _ => 3,
        }
    }
}

/// Whether sound comes while it is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamVerdict {
    TooShort,
    Fake,
    Partial,
    /// It streams, and slower than it plays
    Interrupted,
    Streaming,
}

/// Speech, written down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stt {
    pub corpus_sha256: Option<String>,
    /// What was done to both texts before they were compared
    pub normaliser: Option<String>,
    pub utterances: Option<u64>,
    /// Share of wrong words
    pub wer: Option<f64>,
    /// Share of wrong characters
    pub cer: Option<f64>,
    pub rtf: Option<f64>,
    pub first_partial_ms: Option<f64>,
}

/// From the last word of a question to the first sound of the answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoiceFigures {
    pub turns: Option<u64>,
    pub ttfa_ms: Option<Spread>,
    /// `endpoint`, `stt`, `llm_ttfat`, `sentence`, `tts_ttfa`: medians
    pub stages_ms: BTreeMap<String, f64>,
    pub verdict: Option<VoiceVerdict>,
    /// Until the voice falls silent when it is interrupted
    pub barge_in_ms: Option<f64>,
}

/// Half of the turns under 1.5 s, the best under 0.8 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VoiceVerdict {
    Pass,
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
    pub granule: Option<u64>,
    /// The longest with which the server starts
    pub load: Option<u64>,
    /// The longest that can be filled and still answers
    pub usable: Option<u64>,
    /// Times that the longest worked
    pub confirmed: Option<u32>,
    /// What the shortest that did not work came to; only memory is a ceiling of this machine
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<AttemptResult>,
    /// How it is known that the server had the context which it was started with
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_by: Option<ContextProof>,
    pub attempts: Vec<Attempt>,
}

/// How it is known which context a server really has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextProof {
    /// The server reports it
    #[serde(alias = "told")]
    Reported,
    /// It counted a prompt that long, and answered it
    Filled,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    pub ctx: u64,
    pub result: AttemptResult,
    pub vram_mb: Option<f64>,
    /// In the machine's own memory
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_mb: Option<f64>,
    /// How long it took
    pub s: Option<f64>,
    /// Why it did not work, in the server's words
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    Ok,
    OomLoad,
    OomPrefill,
    OomDecode,
    /// It ran, at less than half of what the trend promised
    Spill,
    Timeout,
    /// The model or the engine takes no context that long, whatever the memory
    Unsupported,
    /// Not this server answered but one that was started before; it says nothing of this context
    Stale,
    /// Something else went wrong
    Failed,
}

impl AttemptResult {
    /// As a person reads it.
    pub fn name(self) -> &'static str {
        match self {
            AttemptResult::Ok => "works",
            AttemptResult::OomLoad => "is out of memory when it loads",
            AttemptResult::OomPrefill => "is out of memory when it reads",
            AttemptResult::OomDecode => "is out of memory when it writes",
            AttemptResult::Spill => "is slow: memory has spilled",
            AttemptResult::Timeout => "takes too long",
            AttemptResult::Unsupported => "is more than the model or its engine takes",
            AttemptResult::Stale => "is unknown: a server of an earlier start answered",
            AttemptResult::Failed => "failed",
        }
    }
}
