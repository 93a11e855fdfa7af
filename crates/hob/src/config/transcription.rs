//! `[transcription]` of hob.toml.
//! Its keys mean what the keys of the same names mean in `[chat]`, but the model uses at most one graphics card.

use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chat::{KeepAliveText, LoadAt};
use super::device::DeviceText;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TranscriptionSection {
    /// The transcription model: a name that `hob models` lists, or the path of a Whisper file in whisper.cpp's
    /// format, relative to this file.
    pub(crate) model: Option<String>,
    /// CPU threads of the transcription engine; 0 lets hob choose.
    pub(crate) threads: Option<u16>,
    /// The graphics card that the model may use, as `chat.device` names it. If it names several, hob uses the first.
    /// `cpu`: no card.
    #[schemars(with = "Option<String>")]
    pub(crate) device: Option<DeviceText>,
    /// How long the model stays loaded after its last request: `30s`, `5m`, `2h`, a number of seconds,
    /// or `forever`.
    pub(crate) keep_alive: Option<KeepAliveText>,
    /// When the model is loaded: at the `start` of `hob serve` if it has room next to the other models, or at the
    /// `first_request`. Default: as in `[chat]`.
    pub(crate) load: Option<LoadAt>,
    /// Maximum concurrent transcription requests, waiting ones included. Further ones get `503` with
    /// `Retry-After`.
    pub(crate) requests_max: Option<NonZeroU16>,
}
