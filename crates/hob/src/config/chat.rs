//! `[chat]`, `[model.NAME]` and `[dev]` of hob.toml.
//! Words and times are parsed here, so that the error for a wrong one names its line.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::str::FromStr;

use hob_core::KeepAlive;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Named;
use super::device::DeviceText;
use super::text_or_number::text_or_number;
use super::time::{TimeText, span};
use super::words::KvTypeName;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ChatSection {
    /// The chat model: a name that `hob models` lists, or the path of a GGUF file, relative to this
    /// file.
    pub(crate) model: Option<String>,
    /// Context length in tokens: prompt and answer together, for each slot. Default: the length that the
    /// model was trained with, as far as the memory allows. A default context takes at most half of the memory
    /// that the model leaves free.
    pub(crate) context_tokens: Option<NonZeroU32>,
    /// Data type of the KV cache: `f16`, or `q8_0` and `q4_0`, which take about a half and about a
    /// quarter of the memory and cost some quality.
    pub(crate) kv_type: Option<KvTypeName>,
    /// CPU threads of the chat engine; 0 lets hob choose.
    pub(crate) threads: Option<u16>,
    /// Number of slots: answers that are computed at the same time, each with a context of its own. Further
    /// requests wait in the queue. Default: 4, or 2 or 1 if each slot would otherwise have less than 16,384
    /// tokens.
    pub(crate) parallel: Option<NonZeroU16>,
    /// Maximum tokens in one step. A long prompt is read in pieces of this size, so that other answers
    /// continue between them.
    pub(crate) batch_tokens: Option<NonZeroU32>,
    /// Graphics cards that the model may use: names that `hob doctor` lists, such as `Vulkan0` or `CUDA0,CUDA1`; `cpu` for
    /// none, or `all`, which has integrated graphics only if there is no other card. `hob fit`'s ranking then chooses among
    /// these and the processor. Between several cards, layers are divided in proportion to the memory that is free there,
    /// which cannot be changed.
    #[schemars(with = "Option<String>")]
    pub(crate) device: Option<DeviceText>,
    /// Number of layers on the graphics card, the output layer included; with 0, the model takes nothing of a card. Default:
    /// what `hob fit` recommends, if hob was built for a graphics card.
    pub(crate) gpu_layers: Option<u16>,
    /// Number of layers whose experts stay in the system's memory (mixture-of-experts models only).
    /// Default: what `hob fit` recommends, or 0 if `gpu_layers` is set.
    pub(crate) cpu_moe_layers: Option<u16>,
    /// How long the model stays loaded after its last request: `30s`, `5m`, `2h`, a number of seconds,
    /// or `forever`. A request may set another time, until the next unload.
    pub(crate) keep_alive: Option<KeepAliveText>,
    /// When the model is loaded: at the `start` of `hob serve`, or at the `first_request`.
    pub(crate) load: Option<LoadAt>,
    /// Never unload this model to make room for another one. Together with `keep_alive = "forever"` the
    /// model stays loaded until hob ends.
    pub(crate) pinned: Option<bool>,
    /// Maximum tokens of thinking before the answer, for requests that do not set it. Default: no
    /// limit.
    pub(crate) thinking_tokens_max: Option<u32>,
    /// Maximum tokens of an answer, thinking included, for requests that set no limit, such as those for
    /// titles and tags. Default: until the context is full.
    pub(crate) answer_tokens_max: Option<NonZeroU32>,
    /// Guess tokens and check several in one pass: `auto` where it makes an answer faster, or `off`. The answer
    /// stays the same.
    pub(crate) speculation: Option<Speculation>,
    /// A smaller model of the same family that guesses what the chat model says, as `model` names one. It takes
    /// memory of its own, and must have the same tokens. It guesses while one answer runs alone, and where the text
    /// and the format give no guess. Default: none.
    pub(crate) draft_model: Option<String>,
    /// Maximum concurrent chat requests, waiting ones included. Further ones get `503` with
    /// `Retry-After`.
    pub(crate) requests_max: Option<NonZeroU16>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DevSection {
    /// Answer requests for unknown models with a fixed text instead of an error. Only for tests of client
    /// libraries.
    pub(crate) mock_unknown_models: Option<bool>,
    /// Chat models that answer as a script says, by name: a file of JSON lines, relative to this file. Only for tests of
    /// teams and of other programs; see `docs/guides/teams.md`.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub(crate) scripts: Named<PathBuf>,
}

/// When a model is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoadAt {
    #[default]
    Start,
    FirstRequest,
}

/// Whether tokens are guessed before the model computes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Speculation {
    #[default]
    Auto,
    Off,
}

/// A time such as `30s`, `5m`, `2h`, seconds, or `forever`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepAliveText(pub(crate) KeepAlive);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a time; write 30s, 5m, 2h, a number of seconds, or forever")]
pub(crate) struct NotAKeepAlive(String);

impl FromStr for KeepAliveText {
    type Err = NotAKeepAlive;

    fn from_str(text: &str) -> Result<KeepAliveText, NotAKeepAlive> {
        let keep_alive = match text {
            "forever" => Some(KeepAlive::Forever),
            text => span(text).map(KeepAlive::For),
        };
        keep_alive.map(KeepAliveText).ok_or_else(|| NotAKeepAlive(text.to_owned()))
    }
}

impl std::fmt::Display for KeepAliveText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            KeepAlive::Forever => f.write_str("forever"),
            KeepAlive::For(time) if time.is_zero() => f.write_str("0s"),
            KeepAlive::For(time) => TimeText(time).fmt(f),
        }
    }
}

text_or_number!(KeepAliveText, "a time such as \"5m\", a number of seconds, or \"forever\"");

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let seconds = |seconds| Some(KeepAlive::For(Duration::from_secs(seconds)));
        let rows = [
            ("30s", seconds(30), "30s"),
            ("90", seconds(90), "90s"),
            ("5m", seconds(300), "5m"),
            ("2h", seconds(7200), "2h"),
            ("120m", seconds(7200), "2h"),
            ("0", seconds(0), "0s"),
            ("0ms", seconds(0), "0s"),
            ("250ms", Some(KeepAlive::For(Duration::from_millis(250))), "250ms"),
            ("forever", Some(KeepAlive::Forever), "forever"),
            ("", None, ""),
            ("-1", None, ""),
            ("5 m", None, ""),
            ("m", None, ""),
            ("1d", None, ""),
            ("99999999999999999999h", None, ""),
            ("18446744073709551615h", None, ""),
        ];
        for (text, expected, written) in rows {
            let read = text.parse::<KeepAliveText>().ok();
            assert_eq!(read.map(|read| read.0), expected, "{text:?}");
            if let Some(read) = read {
                assert_eq!(read.to_string(), written);
                assert_eq!(written.parse(), Ok(read));
            }
        }
    }

    #[test]
    fn a_file_may_say_seconds_as_a_number() {
        let read = |value: &str| toml::from_str::<ChatSection>(&format!("keep_alive = {value}"));
        let minute = Some(KeepAliveText(KeepAlive::For(Duration::from_secs(60))));
        for value in ["60", "\"60\"", "\"1m\""] {
            assert_eq!(read(value).map(|section| section.keep_alive), Ok(minute), "{value}");
        }
        for value in ["-1", "true", "\"soon\""] {
            let message = read(value).expect_err(value).message().to_owned();
            assert!(message.contains("forever"), "{value} gave {message}");
        }
    }
}
