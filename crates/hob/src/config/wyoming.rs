//! `[wyoming]` of hob.toml: the ports for Home Assistant.
//! They are off by default, because the protocol has no keys.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WyomingSection {
    /// Speak the Wyoming protocol of Home Assistant, on one port for speech and one for transcription. The protocol
    /// has no keys: an address that other machines can reach also needs `server.allow_remote`.
    pub(crate) enabled: Option<bool>,
    /// The IP address to listen on, such as `0.0.0.0`. Default: that of `server.listen`.
    #[schemars(with = "Option<String>")]
    pub(crate) listen: Option<IpAddr>,
    /// The port for speech; 0 takes any free one.
    pub(crate) speech_port: Option<u16>,
    /// The port for transcription; 0 takes any free one.
    pub(crate) transcription_port: Option<u16>,
    /// The model or alias that speaks. Default: the server's default speech model.
    pub(crate) speech_model: Option<String>,
    /// The model or alias that transcribes. Default: the server's default transcription model.
    pub(crate) transcription_model: Option<String>,
    /// Announce the ports in the local network by mDNS, so that Home Assistant discovers them. Loopback addresses are
    /// never announced.
    pub(crate) announce: Option<bool>,
}
