//! A speech model on a server: texts, formats, voices, and the figures of its sound.
//! All measurements of speech use these requests.

mod cell;
mod request;
mod summary;
mod text;
mod verdict;
mod voice;

use bytes::Bytes;

use cell::Evidence;
pub use cell::SpeechCell;
pub(crate) use request::RequestParts;
pub use request::StreamField;
pub use summary::OnRecord;
pub use text::{Sentences, TEXTS, Text, VERSION};
pub use verdict::StreamingFinding;
pub(crate) use voice::chosen_voices;

use crate::drive::{Arrivals, DriveResult};
use crate::record::RecordKind;
use crate::runs::BenchError;
use crate::timeline::{PCM_RATE_HZ, RequestFault, SoundFault, SoundFormat, SoundTimeline, sound};
use crate::workbench::Asker;

/// Maximum bytes per character of raw samples at 24 kHz, spoken slowly.
const ANSWER_BYTES_PER_CHAR: usize = 4800;
/// Statuses that mean that the server does not offer a format.
const NOT_OFFERED: [u16; 4] = [400, 415, 422, 501];

/// Texts, formats and voices to measure.
#[derive(Clone, Debug)]
pub struct SpeechWorkload {
    pub texts: Vec<Text>,
    pub formats: Formats,
    /// Empty: the first that the server lists.
    pub voices: Vec<String>,
    pub streaming: Vec<Streaming>,
}

/// Whether the request asks for streaming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// By the field that the server accepts.
    Requested,
    Declined,
}

/// Formats in the order of measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formats {
    All(Vec<SoundFormat>),
    /// The formats of this list that the server offers.
    Offered(Vec<SoundFormat>),
    /// The first format of this list that the server offers.
    First(Vec<SoundFormat>),
}

/// A speech model on one server: its formats, how it wants to be asked for each, and its voices.
#[expect(missing_debug_implementations, reason = "one of its parts is a closure")]
pub struct SpeechSession<'a, 's> {
    asker: Asker<'a>,
    pub offers: Vec<Offer>,
    pub voices: Vec<String>,
    /// The server's sample rate, from a WAV header. Raw samples have no header.
    pcm_rate_hz: u32,
    /// Time of the session's first complete answer.
    pub first_ms: f64,
    texts: Vec<Text>,
    streaming: Vec<Streaming>,
    /// Receives when the sound of each cell arrived.
    pub(crate) seen: Option<&'s mut OnRecord<'s>>,
    /// Evidence of each cell's latest run since its last record.
    evidence: Vec<(SpeechCell, Evidence)>,
}

/// A format, and how to request streaming in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub format: SoundFormat,
    pub stream: StreamField,
}

impl<'a> SpeechSession<'a, '_> {
    /// Requests a short text in each format.
    ///
    /// # Errors
    /// The server has no speech, not a required format, or no known voice.
    pub(crate) fn prepare(asker: Asker<'a>, speech: &SpeechWorkload) -> Result<Self, BenchError> {
        let voices = chosen_voices(&speech.voices, &asker.target, 1)?;
        let mut session = SpeechSession {
            asker,
            offers: Vec::new(),
            voices,
            pcm_rate_hz: PCM_RATE_HZ,
            first_ms: 0.0,
            texts: speech.texts.clone(),
            streaming: speech.streaming.clone(),
            seen: None,
            evidence: Vec::new(),
        };
        session.find_offers(&speech.formats)?;
        Ok(session)
    }

    /// Every text in every voice and format. All texts of a format come before the next format, because they are compared.
    pub(crate) fn cells(
        &self,
        kind: RecordKind,
        users: &[usize],
        rounds: usize,
    ) -> Vec<SpeechCell> {
        let mut cells = Vec::new();
        for voice in &self.voices {
            for offer in &self.offers {
                for stream in self.streaming.iter().filter_map(|streaming| streaming.of(*offer)) {
                    for users in users {
                        cells.extend(self.texts.iter().map(|text| SpeechCell {
                            kind,
                            text: *text,
                            format: offer.format,
                            voice: voice.clone(),
                            stream,
                            users: *users,
                            rounds,
                        }));
                    }
                }
            }
        }
        cells
    }

    fn find_offers(&mut self, wished: &Formats) -> Result<(), BenchError> {
        let (Formats::All(formats) | Formats::Offered(formats) | Formats::First(formats)) = wished;
        if formats.contains(&SoundFormat::Pcm) {
            // Only WAV has the sample rate; without WAV hob assumes that of OpenAI.
            let _unsaid = self.unless_refused(SoundFormat::Wav)?;
        }
        let mut refused = None;
        for format in formats {
            match (self.unless_refused(*format)?, wished) {
                (Ok(offer), _) => self.offers.push(offer),
                (Err(fault), Formats::All(_)) => return Err(BenchError::Sound(fault)),
                (Err(fault), _) => refused = refused.or(Some(fault)),
            }
            if matches!(wished, Formats::First(_)) && !self.offers.is_empty() {
                break;
            }
        }
        match refused.filter(|_| self.offers.is_empty()) {
            Some(fault) => Err(BenchError::Sound(fault)),
            None => Ok(()),
        }
    }

    /// Returns a rejected format as a value, and other failures as errors.
    fn unless_refused(
        &mut self,
        format: SoundFormat,
    ) -> Result<Result<Offer, SoundFault>, BenchError> {
        match self.offer(format) {
            Ok(offer) => Ok(Ok(offer)),
            Err(BenchError::Sound(fault)) if is_refusal(&fault) => Ok(Err(fault)),
            Err(error) => Err(error),
        }
    }

    fn offer(&mut self, format: SoundFormat) -> Result<Offer, BenchError> {
        let streamed = Offer { format, stream: StreamField::True };
        let (offer, heard) = match self.listen(streamed)? {
            Err(fault) if is_refusal(&fault) => {
                let absent = Offer { format, stream: StreamField::Absent };
                (absent, self.listen(absent)?)
            }
            heard => (streamed, heard),
        };
        let heard = heard?;
        if format == SoundFormat::Wav {
            self.pcm_rate_hz = heard.rate_hz;
        }
        if self.first_ms == 0.0 {
            self.first_ms = heard.last_ms;
        }
        Ok(offer)
    }

    fn listen(&self, offer: Offer) -> Result<Result<SoundTimeline, SoundFault>, BenchError> {
        let Offer { format, stream } = offer;
        let text = TEXTS[0];
        let (target, voice) = (&self.asker.target, self.voices[0].as_str());
        let request = RequestParts { target, voice, format, stream }.bytes(text.words, 0);
        let driven = self.drive(vec![request], 1, text)?;
        let stopped = Err(SoundFault::STOPPED);
        let exchange = driven.exchanges.first();
        Ok(exchange.map_or(stopped, |exchange| sound(exchange, format, self.pcm_rate_hz)))
    }

    fn drive(&self, jobs: Vec<Bytes>, users: usize, text: Text) -> Result<DriveResult, BenchError> {
        let room = text.chars() * ANSWER_BYTES_PER_CHAR;
        self.asker.drive(jobs, Arrivals::Closed { users }, room)
    }
}

impl Streaming {
    /// None if the server ignores the field, because both requests would be equal.
    fn of(self, offer: Offer) -> Option<StreamField> {
        match self {
            Streaming::Requested => Some(offer.stream),
            Streaming::Declined => {
                Some(StreamField::False).filter(|_| offer.stream != StreamField::Absent)
            }
        }
    }
}

fn is_refusal(fault: &SoundFault) -> bool {
    matches!(fault, SoundFault::Answer(RequestFault::Refused { status, .. }) if NOT_OFFERED.contains(status))
}
