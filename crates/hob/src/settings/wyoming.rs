//! The settings of the ports for Home Assistant.
//! A user who turns them on expects them where the server is, so the address is the server's.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::{LoadedConfig, Overrides, ServerSettings};

/// The ports that Home Assistant suggests.
const DEFAULT_SPEECH_PORT: u16 = 10_200;
const DEFAULT_TRANSCRIPTION_PORT: u16 = 10_300;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WyomingSettings {
    #[serde(rename = "enabled")]
    pub(crate) is_enabled: bool,
    pub(crate) listen: IpAddr,
    pub(crate) speech_port: u16,
    pub(crate) transcription_port: u16,
    pub(crate) speech_model: Option<String>,
    pub(crate) transcription_model: Option<String>,
    #[serde(rename = "announce")]
    pub(crate) announces: bool,
}

impl WyomingSettings {
    pub(super) fn resolve(
        flags: &Overrides,
        written: &LoadedConfig,
        server: &ServerSettings,
    ) -> WyomingSettings {
        let file = &written.config.wyoming;
        WyomingSettings {
            is_enabled: flags.wyoming || file.enabled.unwrap_or(false),
            listen: file.listen.unwrap_or(server.listen.0.ip()),
            speech_port: file.speech_port.unwrap_or(DEFAULT_SPEECH_PORT),
            transcription_port: file.transcription_port.unwrap_or(DEFAULT_TRANSCRIPTION_PORT),
            speech_model: file.speech_model.clone(),
            transcription_model: file.transcription_model.clone(),
            announces: file.announce.unwrap_or(true),
        }
    }

    pub(crate) fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.listen, port)
    }
}
