//! The settings of the transcription model.
//! A path on the command line is relative to the working folder; a path in the file is relative to the file.

use std::num::NonZeroU16;

use hob_core::KeepAlive;
use hob_engines::chat::CardUse;
use serde::Serialize;

use super::{
    DEFAULT_TRANSCRIPTION, Environment, ModelChoice, Overrides, Threads, as_keep_alive, as_text,
};
use crate::config::{LoadAt, LoadedConfig};

const DEFAULT_REQUESTS_MAX: NonZeroU16 = NonZeroU16::new(16).expect("not zero");

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TranscriptionSettings {
    pub(crate) model: ModelChoice,
    /// The user has chosen another model than the default one, so it is an error if it is missing.
    #[serde(skip)]
    pub(crate) is_chosen: bool,
    pub(crate) threads: Threads,
    #[serde(serialize_with = "as_text")]
    pub(crate) device: CardUse,
    #[serde(serialize_with = "as_keep_alive")]
    pub(crate) keep_alive: KeepAlive,
    pub(crate) load: LoadAt,
    pub(crate) requests_max: NonZeroU16,
}

impl TranscriptionSettings {
    pub(super) fn resolve(
        flags: &Overrides,
        environment: &Environment,
        written: &LoadedConfig,
        default_load: LoadAt,
    ) -> TranscriptionSettings {
        let file = &written.config.transcription;
        let folders = &environment.folders;
        let model = match (&flags.transcription_model, &file.model) {
            (Some(typed), _) => ModelChoice::new(typed, |path| folders.working.join(path)),
            (None, Some(named)) => ModelChoice::new(named, |path| written.resolve(path, folders)),
            (None, None) => ModelChoice::Named(DEFAULT_TRANSCRIPTION.to_owned()),
        };
        TranscriptionSettings {
            is_chosen: model != ModelChoice::Named(DEFAULT_TRANSCRIPTION.to_owned()),
            model,
            threads: Threads::new(file.threads.unwrap_or(0)),
            device: file.device.clone().map(|written| written.0).unwrap_or_default(),
            keep_alive: file.keep_alive.map_or(KeepAlive::Forever, |written| written.0),
            load: file.load.unwrap_or(default_load),
            requests_max: file.requests_max.unwrap_or(DEFAULT_REQUESTS_MAX),
        }
    }
}
