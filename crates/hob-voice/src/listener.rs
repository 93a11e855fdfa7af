//! Cuts the user's sound into frames, and keeps what comes before speech.
//! Positions count samples at 16 kHz since the session began.

use std::collections::VecDeque;

use hob_core::{VOICE_FRAME_SAMPLES, VoiceDetector};

use crate::endpoint::{Endpoint, EndpointRules, Step};

pub(crate) struct Listener {
    detector: Box<dyn VoiceDetector>,
    pub(crate) endpoint: Endpoint,
    /// Samples of complete frames.
    pub(crate) position: u64,
    partial: Vec<f32>,
    /// The latest sound outside turns.
    recent: VecDeque<f32>,
}

/// Whether the sound may be speech of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hears {
    User,
    /// The assistant's own voice.
    Echo,
}

impl Listener {
    pub(crate) fn new(detector: Box<dyn VoiceDetector>) -> Listener {
        let (partial, recent) = (Vec::new(), VecDeque::new());
        Listener { detector, endpoint: Endpoint::default(), position: 0, partial, recent }
    }

    /// Adds sound, and returns its complete frames.
    pub(crate) fn frames(&mut self, samples: &[f32]) -> Vec<Vec<f32>> {
        self.partial.extend_from_slice(samples);
        let whole = self.partial.len() / VOICE_FRAME_SAMPLES * VOICE_FRAME_SAMPLES;
        let rest = self.partial.split_off(whole);
        let frames = std::mem::replace(&mut self.partial, rest);
        frames.chunks(VOICE_FRAME_SAMPLES).map(<[f32]>::to_vec).collect()
    }

    /// Hears one frame.
    pub(crate) fn hear(
        &mut self,
        frame: &[f32],
        rules: EndpointRules,
        hears: Hears,
    ) -> Option<Step> {
        self.position += frame.len() as u64;
        let probability = match hears {
            Hears::User => self.detector.probability(frame),
            Hears::Echo => {
                self.detector.reset();
                self.recent.clear();
                0.0
            }
        };
        self.endpoint.hear(probability, rules)
    }

    /// Keeps a frame outside turns, and the `kept` samples before it.
    pub(crate) fn remember(&mut self, frame: &[f32], kept: usize) {
        self.recent.extend(frame);
        let excess = self.recent.len().saturating_sub(kept);
        self.recent.drain(..excess);
    }

    /// The last `samples` samples, or fewer, for a turn that begins.
    pub(crate) fn take_recent(&mut self, samples: usize) -> Vec<f32> {
        let excess = self.recent.len().saturating_sub(samples);
        self.recent.drain(..excess);
        std::mem::take(&mut self.recent).into()
    }

    /// Skips sound that no detector hears.
    pub(crate) fn pass(&mut self, samples: &[f32]) {
        self.position += samples.len() as u64;
    }

    /// Takes an incomplete frame.
    pub(crate) fn take_partial(&mut self) -> Vec<f32> {
        std::mem::take(&mut self.partial)
    }

    /// A turn has ended.
    pub(crate) fn reset(&mut self) {
        self.detector.reset();
        self.endpoint = Endpoint::default();
        self.recent.clear();
    }
}

hob_core::debug_fields!(Listener: position);
