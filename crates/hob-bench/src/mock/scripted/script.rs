//! What a scripted server is told: its times, its counts, and how it fails.
//! Written as `name=value` pairs, so that a flag, a header and a model's name can say the same.

use std::str::FromStr;

use super::limits::{self, Limits};
use crate::thinking_switch::ThinkingSwitch;

/// One behaviour. Times count from when a request was read to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub ttft_ms: f64,
    pub itl_ms: f64,
    /// Each token comes up to this much earlier or later, by the seed.
    pub jitter_ms: f64,
    /// Of an answer whose request names no limit.
    pub tokens: u32,
    pub tokens_per_chunk: u32,
    /// Of the answer's tokens, the first so many are thought.
    pub reasoning_tokens: u32,
    /// Thought stands in the text, in tags, and is not counted apart: a server that does not look for it.
    pub think_tags: bool,
    /// The one way to ask that turns thinking off.
    pub switch: Option<ThinkingSwitch>,
    pub stall_ms: f64,
    /// The token before which the stall is.
    pub stall_at: u32,
    pub role_first: bool,
    /// Events without any text before the first token.
    pub empty_chunks: u32,
    /// Comments between tokens.
    pub comments: bool,
    pub usage: UsageSays,
    /// Says of a prompt what it was told before of it.
    pub cache: bool,
    /// Added to the first token for each prompt token that is not cached.
    pub prefill_us_per_token: f64,
    /// A longer prompt is refused.
    pub context_tokens: u32,
    /// Chunks that are written at once.
    pub coalesce: u32,
    /// Each write is cut inside a character, and the rest follows 1 ms later.
    pub split_utf8: bool,
    /// The connection ends before this token.
    pub drop_at: Option<u32>,
    /// After 200 and the head there is nothing but the end.
    pub crash: bool,
    pub status: u16,
    /// Nothing is ever answered.
    pub hang: bool,
    /// Bytes that are no answer.
    pub garbage: bool,
    /// More for the first request of all.
    pub cold_ms: f64,
    /// Requests that are worked on at once; the others wait. 0: all.
    pub slots: u32,
    /// Each request beside another makes a token this much longer, as a part of `itl_ms`.
    pub crowding: f64,
    pub audio: AudioComes,
    pub audio_ms_per_char: f64,
    /// Time taken for each second of sound.
    pub audio_rtf: f64,
    /// Sound in one write.
    pub audio_chunk_ms: f64,
    /// Silence at the beginning.
    pub audio_silence_ms: f64,
    pub seed: u64,
    pub limits: Limits,
}

/// What is said of how many tokens there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageSays {
    /// In an event of its own after the last, as OpenAI does.
    Late,
    /// With the event that says why it ended.
    Last,
    /// Nothing.
    Nothing,
    /// Twice as many as there were.
    Double,
}

/// When the sound of a text comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioComes {
    Streamed,
    /// All at once, when all of it is made.
    HoldAll,
    /// Each sentence at once.
    PerSentence,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            ttft_ms: 100.0,
            itl_ms: 20.0,
            jitter_ms: 0.0,
            tokens: 64,
            tokens_per_chunk: 1,
            reasoning_tokens: 0,
            think_tags: false,
            switch: Some(ThinkingSwitch::ReasoningEffort),
            stall_ms: 0.0,
            stall_at: 32,
            role_first: true,
            empty_chunks: 0,
            comments: false,
            usage: UsageSays::Late,
            cache: false,
            prefill_us_per_token: 0.0,
            context_tokens: 1 << 20,
            coalesce: 1,
            split_utf8: false,
            drop_at: None,
            crash: false,
            status: 200,
            hang: false,
            garbage: false,
            cold_ms: 0.0,
            slots: 0,
            crowding: 0.0,
            audio: AudioComes::Streamed,
            audio_ms_per_char: 60.0,
            audio_rtf: 0.1,
            audio_chunk_ms: 200.0,
            audio_silence_ms: 0.0,
            seed: 7,
            limits: Limits::default(),
        }
    }
}

/// A pair that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("'{pair}' is no NAME=VALUE")]
    NoPair { pair: String },
    #[error("no part of a script is called '{name}'; there are {}", all_names().join(", "))]
    Unknown { name: String },
    #[error("{name} cannot be '{value}'{}", listed(name))]
    Unfit { name: String, value: String },
}

/// Every name that a script knows.
pub fn all_names() -> Vec<&'static str> {
    [&NAMES[..], &limits::NAMES].concat()
}

/// In the order of the fields.
const NAMES: [&str; 33] = [
    "ttft_ms",
    "itl_ms",
    "jitter_ms",
    "tokens",
    "tokens_per_chunk",
    "reasoning_tokens",
    "think_tags",
    "switch",
    "stall_ms",
    "stall_at",
    "role_first",
    "empty_chunks",
    "comments",
    "usage",
    "cache",
    "prefill_us_per_token",
    "context_tokens",
    "coalesce",
    "split_utf8",
    "drop_at",
    "crash",
    "status",
    "hang",
    "garbage",
    "cold_ms",
    "slots",
    "crowding",
    "audio",
    "audio_ms_per_char",
    "audio_rtf",
    "audio_chunk_ms",
    "audio_silence_ms",
    "seed",
];

const LEVERS: [(&str, Option<ThinkingSwitch>); 5] = [
    ("reasoning_effort", Some(ThinkingSwitch::ReasoningEffort)),
    ("think", Some(ThinkingSwitch::Think)),
    ("enable_thinking", Some(ThinkingSwitch::EnableThinking)),
    ("no_think", Some(ThinkingSwitch::NoThink)),
    ("none", None),
];
const USAGES: [(&str, UsageSays); 4] = [
    ("late", UsageSays::Late),
    ("last", UsageSays::Last),
    ("nothing", UsageSays::Nothing),
    ("double", UsageSays::Double),
];
const AUDIOS: [(&str, AudioComes); 3] = [
    ("streamed", AudioComes::Streamed),
    ("hold_all", AudioComes::HoldAll),
    ("per_sentence", AudioComes::PerSentence),
];
/// Longer times are mistakes, and would not fit where times are added.
const MS_MAX: f64 = 3_600_000.0;

fn listed(name: &str) -> String {
    let words: Vec<&str> = match name {
        "switch" => LEVERS.iter().map(|(word, _)| *word).collect(),
        "usage" => USAGES.iter().map(|(word, _)| *word).collect(),
        "audio" => AUDIOS.iter().map(|(word, _)| *word).collect(),
        _ => return String::new(),
    };
    format!("; there are {}", words.join(", "))
}

impl Script {
    /// This script, but for what the pairs say; they are parted by commas or spaces.
    ///
    /// # Errors
    /// A pair is not understood.
    pub fn with(&self, pairs: &str) -> Result<Script, ScriptError> {
        let mut script = self.clone();
        for pair in pairs.split([',', ' ']).filter(|pair| !pair.is_empty()) {
            let parted = pair.split_once('=');
            let (name, value) =
                parted.ok_or_else(|| ScriptError::NoPair { pair: pair.to_owned() })?;
            script.set(name.trim(), value.trim())?;
        }
        Ok(script)
    }

    /// What a model's name says behind its `~`, or nothing.
    ///
    /// # Errors
    /// A pair is not understood.
    pub fn of_model(&self, model: &str) -> Result<Script, ScriptError> {
        model.split_once('~').map_or_else(|| Ok(self.clone()), |(_, pairs)| self.with(pairs))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ScriptError> {
        let unfit = || ScriptError::Unfit { name: name.to_owned(), value: value.to_owned() };
        self.taken(name, value)
            .ok_or_else(|| ScriptError::Unknown { name: name.to_owned() })?
            .ok_or_else(unfit)
    }

    /// None where nothing has this name; none within where the value does not fit.
    fn taken(&mut self, name: &str, value: &str) -> Option<Option<()>> {
        Some(match name {
            "ttft_ms" => put(&mut self.ttft_ms, amount(value)),
            "itl_ms" => put(&mut self.itl_ms, amount(value)),
            "jitter_ms" => put(&mut self.jitter_ms, amount(value)),
            "tokens" => put(&mut self.tokens, positive(value)),
            "tokens_per_chunk" => put(&mut self.tokens_per_chunk, positive(value)),
            "reasoning_tokens" => put(&mut self.reasoning_tokens, parsed(value)),
            "think_tags" => put(&mut self.think_tags, parsed(value)),
            "switch" => put(&mut self.switch, word(value, &LEVERS)),
            "stall_ms" => put(&mut self.stall_ms, amount(value)),
            "stall_at" => put(&mut self.stall_at, parsed(value)),
            "role_first" => put(&mut self.role_first, parsed(value)),
            "empty_chunks" => put(&mut self.empty_chunks, parsed(value)),
            "comments" => put(&mut self.comments, parsed(value)),
            "usage" => put(&mut self.usage, word(value, &USAGES)),
            "cache" => put(&mut self.cache, parsed(value)),
            "prefill_us_per_token" => put(&mut self.prefill_us_per_token, amount(value)),
            "context_tokens" => put(&mut self.context_tokens, positive(value)),
            "coalesce" => put(&mut self.coalesce, positive(value)),
            "split_utf8" => put(&mut self.split_utf8, parsed(value)),
            "drop_at" => put(&mut self.drop_at, parsed(value).map(Some)),
            "crash" => put(&mut self.crash, parsed(value)),
            "status" => put(
                &mut self.status,
                parsed(value).filter(|status: &u16| (200..600).contains(status)),
            ),
            "hang" => put(&mut self.hang, parsed(value)),
            "garbage" => put(&mut self.garbage, parsed(value)),
            "cold_ms" => put(&mut self.cold_ms, amount(value)),
            "slots" => put(&mut self.slots, parsed(value)),
            "crowding" => put(&mut self.crowding, amount(value)),
            "audio" => put(&mut self.audio, word(value, &AUDIOS)),
            "audio_ms_per_char" => put(&mut self.audio_ms_per_char, amount(value)),
            "audio_rtf" => put(&mut self.audio_rtf, amount(value)),
            "audio_chunk_ms" => {
                put(&mut self.audio_chunk_ms, amount(value).filter(|ms| *ms >= 1.0))
            }
            "audio_silence_ms" => put(&mut self.audio_silence_ms, amount(value)),
            "seed" => put(&mut self.seed, parsed(value)),
            _ => return self.limits.taken(name, value),
        })
    }
}

pub(super) fn put<T>(field: &mut T, value: Option<T>) -> Option<()> {
    *field = value?;
    Some(())
}

pub(super) fn parsed<T: FromStr>(value: &str) -> Option<T> {
    value.parse().ok()
}

pub(super) fn positive(value: &str) -> Option<u32> {
    parsed(value).filter(|count| *count > 0)
}

fn amount(value: &str) -> Option<f64> {
    parsed(value).filter(|amount| (0.0..=MS_MAX).contains(amount))
}

fn word<T: Copy>(value: &str, words: &[(&str, T)]) -> Option<T> {
    words.iter().find(|(word, _)| *word == value).map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_change_what_they_name() {
        let script = Script::default();
        let expected =
            Script { ttft_ms: 5.5, drop_at: Some(3), usage: UsageSays::Nothing, ..script.clone() };
        assert_eq!(script.with("ttft_ms=5.5, drop_at=3,usage=nothing"), Ok(expected.clone()));
        assert_eq!(script.of_model("small~ttft_ms=5.5,drop_at=3,usage=nothing"), Ok(expected));
        assert_eq!(script.of_model("small"), Ok(script));
    }

    #[test]
    fn every_name_is_known_and_no_other() {
        let mut script = Script::default();
        for name in all_names() {
            assert!(script.taken(name, "").is_some(), "{name}");
        }
        assert!(script.taken("ttft", "1").is_none());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let rows = [
            ("ttft_ms", "'ttft_ms' is no NAME=VALUE"),
            ("itl_ms=-1", "itl_ms cannot be '-1'"),
            ("itl_ms=NaN", "itl_ms cannot be 'NaN'"),
            ("tokens=0", "tokens cannot be '0'"),
            ("status=42", "status cannot be '42'"),
            ("audio=late", "audio cannot be 'late'; there are streamed, hold_all, per_sentence"),
        ];
        for (pairs, expected) in rows {
            let refused = Script::default().with(pairs).map_err(|error| error.to_string());
            assert_eq!(refused, Err(expected.to_owned()));
        }
    }
}
