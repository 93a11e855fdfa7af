//! What the mock server does: its times, its counts, its limits, and how it fails.
//! A script is `name=value` pairs, so a flag, a header and a model's name can set the same things.

use std::str::FromStr;

use hob_core::enum_table;

use super::faults::MockFault;
use crate::thinking_switch::ThinkingSwitch;

/// Longer times are typing errors, and would overflow where times are added.
const MS_MAX: f64 = 3_600_000.0;

/// One row per key: field, type, default, parser. The key in a script is the field's name. A parser's error says what it
/// expects.
macro_rules! script {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr, $parse:expr;)*) => {
        /// One behaviour. Times count from the moment when the request was read to its end.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Script {
            $($(#[$doc])* pub $name: $kind),*
        }

        impl Default for Script {
            fn default() -> Script {
                Script { $($name: $default),* }
            }
        }

        const NAMES: &[&str] = &[$(stringify!($name)),*];

        impl Script {
            fn set(&mut self, name: &str, value: &str) -> Result<(), ScriptError> {
                let unfit = |expected| {
                    let (name, value) = (name.to_owned(), value.to_owned());
                    ScriptError::InvalidValue { name, value, expected }
                };
                match name {
                    $(stringify!($name) => {
                        let parse: fn(&str) -> Result<$kind, String> = $parse;
                        self.$name = parse(value).map_err(unfit)?;
                    })*
                    _ => return Err(ScriptError::Unknown { name: name.to_owned() }),
                }
                Ok(())
            }
        }
    };
}

script! {
    /// Time to the first token.
    ttft_ms: f64 = 100.0, number;
    itl_ms: f64 = 20.0, number;
    /// Each token is up to this much earlier or later. The seed decides.
    jitter_ms: f64 = 0.0, number;
    /// Length of an answer if the request sets no limit.
    tokens: u32 = 64, positive;
    tokens_per_chunk: u32 = 1, positive;
    /// How many of the answer's first tokens are thinking.
    reasoning_tokens: u32 = 0, whole;
    /// Thinking is part of the text, between tags, and is not counted separately: like a server without a reasoning parser.
    think_tags: bool = false, flag;
    /// The only request field that turns thinking off.
    switch: Option<ThinkingSwitch> = SWITCHES[0].1,
        |value| named(value, &SWITCHES, |switch| switch.0).map(|switch| switch.1);
    /// Length of one pause in the middle of the answer; 0 for none.
    stall_ms: f64 = 0.0, number;
    /// The stall comes before this token.
    stall_at: u32 = 32, whole;
    /// Begins a stream with an event that has only the role.
    role_first: bool = true, flag;
    /// Number of events without text before the first token.
    empty_chunks: u32 = 0, whole;
    /// Sends comment lines of server-sent events between tokens.
    comments: bool = false, flag;
    usage: UsageReport = UsageReport::Late, |value| named(value, &UsageReport::ALL, UsageReport::name);
    /// Reports which part of a prompt an earlier request had sent.
    cache: bool = false, flag;
    /// Delay of the first token for each prompt token that is not cached.
    prefill_us_per_token: f64 = 0.0, number;
    /// A longer prompt is rejected.
    context_tokens: u32 = 1 << 20, positive;
    /// Number of chunks in one write.
    coalesce: u32 = 1, positive;
    /// Cuts each write inside a character; the rest follows 1 ms later.
    split_utf8: bool = false, flag;
    /// The connection ends before this token.
    drop_at: Option<u32> = None, |value| whole(value).map(Some);
    /// The connection ends after status 200 and the header.
    crash: bool = false, flag;
    status: u16 = 200, status;
    /// Never answers.
    hang: bool = false, flag;
    /// Sends bytes that are not an answer.
    garbage: bool = false, flag;
    /// Answers a chat request as this fault does, see [`MockFault`].
    fault: Option<MockFault> = None,
        |value| named(value, &MockFault::ALL, MockFault::name).map(Some);
    /// Extra delay of the server's first request.
    cold_ms: f64 = 0.0, number;
    /// Requests that are answered at the same time; the others wait. 0: no limit.
    slots: u32 = 0, whole;
    /// Each further request at the same time makes a token this much longer, as a fraction of `itl_ms`.
    crowding: f64 = 0.0, number;
    audio: AudioDelivery = AudioDelivery::Streamed, |value| named(value, &AudioDelivery::ALL, AudioDelivery::name);
    audio_ms_per_char: f64 = 60.0, number;
    /// Seconds of computing for each second of sound.
    audio_rtf: f64 = 0.1, number;
    /// Length of the sound in one write.
    audio_chunk_ms: f64 = 200.0, |value| number_from(1.0, value);
    /// Silence at the beginning.
    audio_silence_ms: f64 = 0.0, number;
    /// The transcript of every recording: words with `_` between them, each of which takes `itl_ms`.
    heard: String = "hello_world".to_owned(), |value| Ok(value.to_owned());
    seed: u64 = 7, whole;
    /// Tokens of context above which the server does not start.
    load_max: u32 = u32::MAX, positive;
    /// Tokens of a prompt above which the server ends.
    prefill_max: u32 = u32::MAX, positive;
    /// Tokens of prompt and answer together above which the server ends.
    decode_max: u32 = u32::MAX, positive;
    /// Tokens of context above which the server is four times slower.
    spill_max: u32 = u32::MAX, positive;
    /// Whether `/props` reports the context length.
    tells_context: bool = false, flag;
    /// Cuts a prompt that is too long, without an error.
    truncates: bool = false, flag;
}

enum_table! {
    /// What the server reports about the number of tokens.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UsageReport: name {
        /// In an event of its own after the last one, as OpenAI does.
        Late = "late",
        /// With the event that has the finish reason.
        Last = "last",
        /// Nothing.
        Nothing = "nothing",
        /// Twice the true number.
        Double = "double",
    }
}

enum_table! {
    /// When the sound of a text is sent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AudioDelivery: name {
        Streamed = "streamed",
        /// In one piece, when all of it is computed.
        HoldAll = "hold_all",
        /// One piece for each sentence.
        PerSentence = "per_sentence",
    }
}

/// A pair that a script does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("'{pair}' is not a script setting (expected NAME=VALUE)")]
    NotAPair { pair: String },
    #[error("unknown script setting '{name}' (expected one of {})", all_names().join(", "))]
    Unknown { name: String },
    #[error("{name} cannot be '{value}' (expected {expected})")]
    InvalidValue { name: String, value: String, expected: String },
}

/// Every key of a script.
pub fn all_names() -> &'static [&'static str] {
    NAMES
}

/// The only request field that turns thinking off, by its name in a script.
const SWITCHES: [(&str, Option<ThinkingSwitch>); 8] = [
    ("reasoning_effort", Some(ThinkingSwitch::ReasoningEffort)),
    ("think", Some(ThinkingSwitch::Think)),
    ("enable_thinking", Some(ThinkingSwitch::EnableThinking)),
    ("thinking", Some(ThinkingSwitch::TemplateThinking)),
    ("thinking_budget", Some(ThinkingSwitch::ThinkingBudget)),
    ("reasoning_tokens", Some(ThinkingSwitch::ReasoningTokens)),
    ("no_think", Some(ThinkingSwitch::NoThink)),
    ("none", None),
];

impl Script {
    /// A copy with these pairs changed. Commas or spaces separate the pairs.
    ///
    /// # Errors
    /// A pair is malformed, its name is unknown, or its value is out of range.
    pub fn with(&self, pairs: &str) -> Result<Script, ScriptError> {
        let mut script = self.clone();
        for pair in pairs.split([',', ' ']).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| ScriptError::NotAPair { pair: pair.to_owned() })?;
            // The key of `switch` in older scripts.
            let name = if name.trim() == "lever" { "switch" } else { name.trim() };
            script.set(name, value.trim())?;
        }
        Ok(script)
    }

    /// A copy with the pairs that follow `~` in a model's name.
    ///
    /// # Errors
    /// See [`Script::with`].
    pub fn of_model(&self, model: &str) -> Result<Script, ScriptError> {
        model.split_once('~').map_or_else(|| Ok(self.clone()), |(_, pairs)| self.with(pairs))
    }

    /// The token before which memory runs out, for an answer of `tokens` after a prompt of this length.
    pub(super) fn out_of_memory_at(&self, prompt_tokens: u32, tokens: u32) -> Option<u32> {
        if prompt_tokens > self.prefill_max {
            return Some(0);
        }
        let left = self.decode_max.saturating_sub(prompt_tokens);
        (tokens > left).then_some(left)
    }
}

fn whole<T: FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| "a whole number".to_owned())
}

fn positive(value: &str) -> Result<u32, String> {
    let count = value.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "a whole number above 0".to_owned())
}

fn status(value: &str) -> Result<u16, String> {
    let status = value.parse().ok().filter(|status| (200..600).contains(status));
    status.ok_or_else(|| "200 to 599".to_owned())
}

fn flag(value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| "true or false".to_owned())
}

fn number(value: &str) -> Result<f64, String> {
    number_from(0.0, value)
}

fn number_from(min: f64, value: &str) -> Result<f64, String> {
    let amount = value.parse().ok().filter(|amount| (min..=MS_MAX).contains(amount));
    amount.ok_or_else(|| format!("a number from {min} to {MS_MAX}"))
}

fn named<T: Copy>(value: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    let found = all.iter().copied().find(|one| name(*one) == value);
    found.ok_or_else(|| format!("one of {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_change_the_fields_that_they_name() {
        let script = Script::default();
        let expected = Script {
            ttft_ms: 5.5,
            drop_at: Some(3),
            usage: UsageReport::Nothing,
            ..script.clone()
        };
        assert_eq!(script.with("ttft_ms=5.5, drop_at=3,usage=nothing"), Ok(expected.clone()));
        assert_eq!(script.of_model("small~ttft_ms=5.5,drop_at=3,usage=nothing"), Ok(expected));
        assert_eq!(script.of_model("small"), Ok(script.clone()));
        assert_eq!(script.with("lever=think"), script.with("switch=think"));
        assert_eq!(script.with("fault=cut-mid").map(|s| s.fault), Ok(Some(MockFault::CutAfter)));
    }

    #[test]
    fn a_wrong_pair_is_rejected_with_the_expected_values() {
        let rows = [
            ("ttft_ms", "'ttft_ms' is not a script setting (expected NAME=VALUE)"),
            ("itl_ms=-1", "itl_ms cannot be '-1' (expected a number from 0 to 3600000)"),
            ("itl_ms=NaN", "itl_ms cannot be 'NaN' (expected a number from 0 to 3600000)"),
            ("comments=yes", "comments cannot be 'yes' (expected true or false)"),
            ("tokens=0", "tokens cannot be '0' (expected a whole number above 0)"),
            ("status=42", "status cannot be '42' (expected 200 to 599)"),
            (
                "audio=late",
                "audio cannot be 'late' (expected one of streamed, hold_all, per_sentence)",
            ),
        ];
        for (pairs, expected) in rows {
            let rejected = Script::default().with(pairs).map_err(|error| error.to_string());
            assert_eq!(rejected, Err(expected.to_owned()));
        }
        let unknown = Script::default().with("ttft=1").map_err(|error| error.to_string());
        assert!(unknown.is_err_and(|error| error.starts_with("unknown script setting 'ttft'")));
    }

    #[test]
    fn the_mock_ends_at_its_prefill_and_decode_limits() {
        let script = Script::default().with("prefill_max=100,decode_max=110").unwrap();
        let rows = [(101, 1, Some(0)), (100, 10, None), (100, 11, Some(10)), (40, 64, None)];
        for (prompt, tokens, expected) in rows {
            assert_eq!(script.out_of_memory_at(prompt, tokens), expected, "{prompt} {tokens}");
        }
    }
}
