//! A transcription model on a server: recordings are sent, and errors and times of their transcripts are measured.
//! The clips are a set of recordings, or sentences that the server's own speech model speaks first.

mod cell;
mod clips;
mod normalise;
mod request;
mod spoken;
mod wav;
mod word_errors;

use std::sync::Arc;

pub use cell::Cell;
pub use clips::{Clip, ClipError, ClipSet};
pub use normalise::{NORMALISER, normalised_words};
pub use spoken::{SENTENCES, SpokenClips};
pub use word_errors::WordErrors;

use crate::drive::Arrivals;
use crate::record::Record;
use crate::runs::BenchError;
use crate::speech::Streaming;
use crate::workbench::Asker;

/// Clips to transcribe, and how to ask for their text.
#[derive(Clone, Debug)]
pub struct TranscriptionWorkload {
    pub clips: ClipSource,
    /// Added noise in dB below the speech; None is the clip as it is.
    pub noise: Vec<Option<f64>>,
    pub streaming: Vec<Streaming>,
}

/// Where the clips come from.
#[derive(Clone, Debug)]
pub enum ClipSource {
    Set(Arc<ClipSet>),
    Spoken(SpokenClips),
}

impl TranscriptionWorkload {
    /// The built-in sentences without noise.
    pub fn spoken() -> TranscriptionWorkload {
        let clips = ClipSource::Spoken(SpokenClips::default());
        TranscriptionWorkload { clips, noise: vec![None], streaming: vec![Streaming::Declined] }
    }

    /// The clips in each noise. Spoken clips are made now.
    ///
    /// # Errors
    /// The server does not speak.
    pub(crate) fn sets(&self, asker: &Asker<'_>) -> Result<Vec<Arc<ClipSet>>, BenchError> {
        let clean = match &self.clips {
            ClipSource::Set(set) => Arc::clone(set),
            ClipSource::Spoken(spoken) => Arc::new(spoken.speak(&asker.target)?),
        };
        let with = |noise: &Option<f64>| match noise {
            Some(snr_db) => Arc::new(clean.with_noise(*snr_db)),
            None => Arc::clone(&clean),
        };
        Ok(self.noise.iter().map(with).collect())
    }

    /// Limits the workload to the noise and delivery of one record.
    pub(crate) fn narrow_to(&mut self, record: &Record) {
        let Some(stt) = &record.stt else { return };
        self.noise = vec![stt.snr_db];
        let is_streamed = stt.stream == Some(true);
        self.streaming = vec![if is_streamed { Streaming::Requested } else { Streaming::Declined }];
    }

    /// Every noise, asked for in every way, for each number of users.
    pub(crate) fn cells(
        &self,
        sets: &[Arc<ClipSet>],
        arrivals: &[Arrivals],
        rounds: usize,
    ) -> Vec<Cell> {
        let mut cells = Vec::new();
        for set in sets {
            let sha256 = set.sha256();
            for streaming in &self.streaming {
                cells.extend(arrivals.iter().map(|arrivals| Cell {
                    set: Arc::clone(set),
                    sha256: sha256.clone(),
                    streaming: *streaming,
                    users: arrivals.connections(),
                    rounds,
                }));
            }
        }
        cells
    }
}

/// A transcription model on one server.
#[derive(Debug)]
pub struct TranscriptionSession<'a> {
    asker: Asker<'a>,
}

impl<'a> TranscriptionSession<'a> {
    pub(crate) fn new(asker: Asker<'a>) -> TranscriptionSession<'a> {
        TranscriptionSession { asker }
    }
}
