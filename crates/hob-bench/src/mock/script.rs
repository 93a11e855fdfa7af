//! What the mock server does: its times, its counts, its limits, and how it fails.
//! A script is `name=value` pairs, so a flag, a header and a model's name can set the same things.

use std::str::FromStr;

use super::faults::MockFault;
use crate::thinking_switch::ThinkingSwitch;

/// Longer times are typing errors, and would overflow where times are added.
const MS_MAX: f64 = 3_600_000.0;

/// One row per key: field, type, default, parser. The key in a script is the field's name.
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
                let unfit =
                    || ScriptError::InvalidValue { name: name.to_owned(), value: value.to_owned() };
                match name {
                    $(stringify!($name) => {
                        let parse: fn(&str) -> Option<$kind> = $parse;
                        self.$name = parse(value).ok_or_else(unfit)?;
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
    reasoning_tokens: u32 = 0, parsed;
    /// Thinking is part of the text, between tags, and is not counted separately: like a server without a reasoning parser.
    think_tags: bool = false, parsed;
    /// The only request field that turns thinking off.
    switch: Option<ThinkingSwitch> =
        Some(ThinkingSwitch::ReasoningEffort), |value| named_value(value, &SWITCHES);
    /// Length of one pause in the middle of the answer; 0 for none.
    stall_ms: f64 = 0.0, number;
    /// The stall comes before this token.
    stall_at: u32 = 32, parsed;
    /// Begins a stream with an event that has only the role.
    role_first: bool = true, parsed;
    /// Number of events without text before the first token.
    empty_chunks: u32 = 0, parsed;
    /// Sends comment lines of server-sent events between tokens.
    comments: bool = false, parsed;
    usage: UsageReport = UsageReport::Late, |value| named_value(value, &USAGES);
    /// Reports which part of a prompt an earlier request had sent.
    cache: bool = false, parsed;
    /// Delay of the first token for each prompt token that is not cached.
    prefill_us_per_token: f64 = 0.0, number;
    /// A longer prompt is rejected.
    context_tokens: u32 = 1 << 20, positive;
    /// Number of chunks in one write.
    coalesce: u32 = 1, positive;
    /// Cuts each write inside a character; the rest follows 1 ms later.
    split_utf8: bool = false, parsed;
    /// The connection ends before this token.
    drop_at: Option<u32> = None, |value| parsed(value).map(Some);
    /// The connection ends after status 200 and the header.
    crash: bool = false, parsed;
    status: u16 = 200, |value| parsed(value).filter(|status| (200..600).contains(status));
    /// Never answers.
    hang: bool = false, parsed;
    /// Sends bytes that are not an answer.
    garbage: bool = false, parsed;
    /// Answers a chat request as this fault does, see [`MockFault`].
    fault: Option<MockFault> = None, |value| MockFault::by_name(value).map(Some);
    /// Extra delay of the server's first request.
    cold_ms: f64 = 0.0, number;
    /// Requests that are answered at the same time; the others wait. 0: no limit.
    slots: u32 = 0, parsed;
    /// Each further request at the same time makes a token this much longer, as a fraction of `itl_ms`.
    crowding: f64 = 0.0, number;
    audio: AudioDelivery = AudioDelivery::Streamed, |value| named_value(value, &AUDIOS);
    audio_ms_per_char: f64 = 60.0, number;
    /// Seconds of computing for each second of sound.
    audio_rtf: f64 = 0.1, number;
    /// Length of the sound in one write.
    audio_chunk_ms: f64 = 200.0, |value| number(value).filter(|ms| *ms >= 1.0);
    /// Silence at the beginning.
    audio_silence_ms: f64 = 0.0, number;
    /// The transcript of every recording: words with `_` between them, each of which takes `itl_ms`.
    heard: String = "hello_world".to_owned(), |value| Some(value.to_owned());
    seed: u64 = 7, parsed;
    /// Tokens of context above which the server does not start.
    load_max: u32 = u32::MAX, positive;
    /// Tokens of a prompt above which the server ends.
    prefill_max: u32 = u32::MAX, positive;
    /// Tokens of prompt and answer together above which the server ends.
    decode_max: u32 = u32::MAX, positive;
    /// Tokens of context above which the server is four times slower.
    spill_max: u32 = u32::MAX, positive;
    /// Whether `/props` reports the context length.
    tells_context: bool = false, parsed;
    /// Cuts a prompt that is too long, without an error.
    truncates: bool = false, parsed;
}

/// What the server reports about the number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageReport {
    /// In an event of its own after the last one, as OpenAI does.
    Late,
    /// With the event that has the finish reason.
    Last,
    /// Nothing.
    Nothing,
    /// Twice the true number.
    Double,
}

/// When the sound of a text is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioDelivery {
    Streamed,
    /// In one piece, when all of it is computed.
    HoldAll,
    /// One piece for each sentence.
    PerSentence,
}

/// A pair that a script does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("'{pair}' is not a script setting (expected NAME=VALUE)")]
    NotAPair { pair: String },
    #[error("unknown script setting '{name}' (expected one of {})", all_names().join(", "))]
    Unknown { name: String },
    #[error("{name} cannot be '{value}'{}", expected(name))]
    InvalidValue { name: String, value: String },
}

/// Every key of a script.
pub fn all_names() -> &'static [&'static str] {
    NAMES
}

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
const USAGES: [(&str, UsageReport); 4] = [
    ("late", UsageReport::Late),
    ("last", UsageReport::Last),
    ("nothing", UsageReport::Nothing),
    ("double", UsageReport::Double),
];
const AUDIOS: [(&str, AudioDelivery); 3] = [
    ("streamed", AudioDelivery::Streamed),
    ("hold_all", AudioDelivery::HoldAll),
    ("per_sentence", AudioDelivery::PerSentence),
];

fn expected(name: &str) -> String {
    let words: Vec<&str> = match name {
        "switch" => SWITCHES.iter().map(|(word, _)| *word).collect(),
        "usage" => USAGES.iter().map(|(word, _)| *word).collect(),
        "audio" => AUDIOS.iter().map(|(word, _)| *word).collect(),
        "fault" => MockFault::ALL.iter().map(|fault| fault.name()).collect(),
        "tokens" | "tokens_per_chunk" | "context_tokens" | "coalesce" | "load_max"
        | "prefill_max" | "decode_max" | "spill_max" => {
            return " (expected a whole number above 0)".to_owned();
        }
        "reasoning_tokens" | "stall_at" | "empty_chunks" | "drop_at" | "slots" | "seed" => {
            return " (expected a whole number)".to_owned();
        }
        "status" => return " (expected 200 to 599)".to_owned(),
        "audio_chunk_ms" => return format!(" (expected a number from 1 to {MS_MAX})"),
        "think_tags" | "role_first" | "comments" | "cache" | "split_utf8" | "crash" | "hang"
        | "garbage" | "tells_context" | "truncates" => {
            return " (expected true or false)".to_owned();
        }
        _ => return format!(" (expected a number from 0 to {MS_MAX})"),
    };
    format!(" (expected one of {})", words.join(", "))
}

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

fn parsed<T: FromStr>(value: &str) -> Option<T> {
    value.parse().ok()
}

fn positive(value: &str) -> Option<u32> {
    parsed(value).filter(|count| *count > 0)
}

fn number(value: &str) -> Option<f64> {
    parsed(value).filter(|amount| (0.0..=MS_MAX).contains(amount))
}

fn named_value<T: Copy>(value: &str, words: &[(&str, T)]) -> Option<T> {
    words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning)
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
