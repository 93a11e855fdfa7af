//! A transcription model on a server: recordings are sent, and errors and times of their transcripts are measured.
//! The clips are a set of recordings, or sentences that the server's own speech model speaks first.

mod cell;
mod clips;
mod normalise;
mod request;
mod section;
mod spoken;
mod word_errors;

use std::sync::Arc;

pub use clips::{Clip, ClipError, ClipSet};
pub(crate) use normalise::is_english;
pub use normalise::{NORMALISER, normalised_words};
pub use spoken::{SENTENCES, SpokenClips};
pub use word_errors::WordErrors;

use cell::{TranscriptionCell, TranscriptionSession};

use crate::drive::Arrivals;
use crate::record::Record;
use crate::runs::BenchError;
use crate::session::{MeasuringSession as _, measure_in_turns};
use crate::speech::Streaming;
use crate::target::Target;
use crate::workbench::{OtherServer, Workbench};

/// Clips to transcribe, and how to ask for their text.
#[derive(Clone, Debug)]
pub struct TranscriptionWorkload {
    pub clips: ClipSource,
    /// Added noise in dB below the speech; None is the clip as it is.
    pub noise: Vec<Option<f64>>,
    pub streaming: Vec<Streaming>,
    /// A second server that gets the same clips alternately, in the order A B B A.
    pub other: Option<Box<OtherServer>>,
}

/// Where the clips come from.
#[derive(Clone, Debug)]
pub enum ClipSource {
    Set(Arc<ClipSet>),
    /// The first server speaks them.
    Spoken(SpokenClips),
}

impl ClipSource {
    /// # Errors
    /// The server cannot speak the sentences.
    pub(crate) fn clips(&self, target: &Target) -> Result<Arc<ClipSet>, BenchError> {
        match self {
            ClipSource::Set(set) => Ok(Arc::clone(set)),
            ClipSource::Spoken(spoken) => spoken.speak(target).map(Arc::new),
        }
    }
}

impl TranscriptionWorkload {
    /// These clips as they are, for one server that sends each text as a whole.
    pub fn new(clips: ClipSource) -> TranscriptionWorkload {
        let (noise, streaming) = (vec![None], vec![Streaming::Declined]);
        TranscriptionWorkload { clips, noise, streaming, other: None }
    }

    /// Measures each noise level, streamed and whole as configured, for each number of users. With a second server there are two records
    /// of each cell, the first server's first.
    ///
    /// # Errors
    /// The server cannot speak the sentences, or a record cannot be stored.
    pub(crate) fn measure(
        &self,
        bench: &mut Workbench<'_>,
        arrivals: &[Arrivals],
        rounds: usize,
    ) -> Result<Vec<Record>, BenchError> {
        let clean = self.clips.clips(&bench.target)?;
        let mut session = TranscriptionSession::new(bench.asker(), self.other.as_deref());
        let mut records = Vec::new();
        for noise in &self.noise {
            let noisy = noise.map(|snr_db| Arc::new(clean.with_noise(snr_db)));
            let set = noisy.unwrap_or_else(|| Arc::clone(&clean));
            for streaming in &self.streaming {
                for users in arrivals.iter().map(Arrivals::connections) {
                    if bench.is_stopped() {
                        return Ok(records);
                    }
                    let cell =
                        TranscriptionCell::new(Arc::clone(&set), *streaming, (users, rounds));
                    let cells = session.on_each_server(cell);
                    let name = session.name(&cells[0]);
                    let named = (name.as_str(), &cells[..]);
                    measure_in_turns(bench, &mut session, named, &mut records, |_| ())?;
                }
            }
        }
        Ok(records)
    }

    /// Limits the workload to the noise and delivery of one record.
    pub(crate) fn narrow_to(&mut self, record: &Record) {
        let Some(stt) = &record.stt else { return };
        self.noise = vec![stt.snr_db];
        let is_streamed = stt.stream == Some(true);
        self.streaming = vec![if is_streamed { Streaming::Requested } else { Streaming::Declined }];
    }
}
