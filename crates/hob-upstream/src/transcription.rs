//! A transcription model of another server: the file is forwarded as it came, the text comes back whole or
//! in pieces. Retries and fallbacks are the route's task.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::{
    Fault, LiveSound, ModelError, ModelState, Sound, SoundFile, TranscriptEvent, TranscriptModel,
    TranscriptRequest, TranscriptStream, TranscriptTask, wav_header,
};
use hob_wire::{
    PieceError, PieceKind, Pieces, RequestedFormat, TranscriptReader, parse_transcript, sound_name,
    transcript_fields, transcript_path,
};

use crate::UpstreamKind;
use crate::client::media_type;
use crate::http::{Form, HttpResponse};
use crate::upstream_model::UpstreamModel;

/// Bytes of one event.
const PIECE_BYTES_MAX: usize = 8 << 20;
/// Seconds of live sound that are collected.
const LIVE_S_MAX: usize = 600;
/// Malformed events that are skipped.
const MALFORMED_MAX: u32 = 3;
/// Left out for models that return text only.
const VERBOSE: &str = "verbose_json";

/// One transcription model of one server.
#[derive(Debug)]
pub(crate) struct UpstreamTranscription(pub(crate) Arc<UpstreamModel>);

impl UpstreamTranscription {
    async fn ask(&self, request: TranscriptRequest) -> Result<TranscriptStream, ModelError> {
        let UpstreamTranscription(served) = self;
        let kind = served.upstream.kind().await;
        if !kind.has_audio() {
            return Err(served.incapable("transcription"));
        }
        let file = file(&request.sound).await?;
        let shape = self.shape(&request, kind);
        let mut answered = self.post(&request, &file, shape).await;
        // Newer models of OpenAI's say only text, and say so. Only a client that reads a whole transcript insists on times.
        if let Err(Fault::Refused { message }) = &answered
            && shape == RequestedFormat::Verbose
            && (request.reading.is_streamed() || !request.timestamps.any())
            && (message.contains(VERBOSE) || message.contains("response_format"))
        {
            served.leave_out(VERBOSE);
            answered = self.post(&request, &file, self.shape(&request, kind)).await;
        }
        let response = answered.map_err(|fault| served.failed(fault))?;
        let answer = TranscriptAnswer::new(Arc::clone(served), response);
        Ok(answer.map_err(|fault| served.failed(fault))?.into_stream())
    }

    /// Text comes in pieces for clients that stream. Times come only with the whole transcript, except from hob.
    fn shape(&self, request: &TranscriptRequest, kind: UpstreamKind) -> RequestedFormat {
        let is_streamed = request.reading.is_streamed();
        let is_verbose = !self.0.fields_left_out().iter().any(|field| field == VERBOSE);
        if is_streamed && kind == UpstreamKind::Hob {
            RequestedFormat::TimedEvents
        } else if request.timestamps.any() && (is_verbose || !is_streamed) {
            RequestedFormat::Verbose
        } else if is_streamed && request.task == TranscriptTask::Transcribe {
            RequestedFormat::Events
        } else if !is_verbose {
            RequestedFormat::Short
        } else {
            RequestedFormat::Verbose
        }
    }

    async fn post(
        &self,
        request: &TranscriptRequest,
        file: &SoundFile,
        shape: RequestedFormat,
    ) -> Result<HttpResponse, Fault> {
        let UpstreamTranscription(served) = self;
        let without = served.fields_left_out();
        let fields = transcript_fields(request, &served.model, shape).into_iter();
        let fields = fields.filter(|(name, _)| !without.iter().any(|field| field == name));
        let form = fields.fold(form(file), |form, (name, text)| form.text(name, &text));
        let path = transcript_path(request.task);
        served.upstream.post_form(path, form, request.trace.hops()).await
    }
}

fn form(file: &SoundFile) -> Form {
    let (name, kind) = sound_name(file);
    Form::new().file("file", &name, kind, file.bytes.clone())
}

/// Samples are sent as a WAV file; live sound too, when it is complete.
async fn file(sound: &Sound) -> Result<SoundFile, ModelError> {
    let bytes = match sound {
        Sound::File(file) => return Ok(file.clone()),
        Sound::Samples(samples) => wav(samples),
        Sound::Live(live) => wav(&whole_sound(live).await?),
    };
    Ok(SoundFile { bytes, name: None })
}

/// Collects live sound, because other servers accept files only.
pub(crate) async fn whole_sound(live: &LiveSound) -> Result<Vec<f32>, ModelError> {
    let Some(mut pieces) = live.take() else {
        let detail = "the live sound was sent to another model before".to_owned();
        return Err(ModelError::EngineFailed { engine: "transcription", detail });
    };
    let mut whole = Vec::new();
    while let Some(samples) = pieces.next().await {
        whole.extend(samples);
        if whole.len() > LIVE_S_MAX * Sound::RATE_HZ as usize {
            let reason = format!("is longer than {LIVE_S_MAX} s of live sound");
            return Err(ModelError::InvalidField { field: "file", reason });
        }
    }
    Ok(whole)
}

fn wav(samples: &[f32]) -> Bytes {
    let pcm = samples.iter().map(|sample| (sample.clamp(-1.0, 1.0) * 32767.0).round() as i16);
    let mut file = wav_header(Sound::RATE_HZ, (samples.len() as u32).saturating_mul(2));
    file.extend(pcm.flat_map(i16::to_le_bytes));
    file.into()
}

/// A transcript that is being read.
struct TranscriptAnswer {
    served: Arc<UpstreamModel>,
    response: HttpResponse,
    body: Body,
    said: VecDeque<TranscriptEvent>,
    malformed: u32,
    is_over: bool,
}

enum Body {
    Events(Pieces, TranscriptReader),
    Whole,
}

impl TranscriptAnswer {
    /// # Errors
    /// The answer is a web page.
    fn new(served: Arc<UpstreamModel>, response: HttpResponse) -> Result<TranscriptAnswer, Fault> {
        let body = match media_type(&response)? {
            "text/event-stream" => {
                let pieces = Pieces::new(PieceKind::Event, PIECE_BYTES_MAX);
                Body::Events(pieces, TranscriptReader::default())
            }
            _ => Body::Whole,
        };
        let said = VecDeque::new();
        Ok(TranscriptAnswer { served, response, body, said, malformed: 0, is_over: false })
    }

    fn into_stream(self) -> TranscriptStream {
        let next = async |mut answer: Box<TranscriptAnswer>| Some((answer.next().await?, answer));
        stream::unfold(Box::new(self), next).boxed()
    }

    async fn next(&mut self) -> Option<Result<TranscriptEvent, ModelError>> {
        loop {
            if let Some(event) = self.said.pop_front() {
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            if let Err(fault) = self.read().await {
                self.is_over = true;
                return Some(Err(self.served.failed(fault)));
            }
        }
    }

    async fn read(&mut self) -> Result<(), Fault> {
        let upstream = &self.served.upstream;
        let Body::Events(pieces, reader) = &mut self.body else { return self.read_whole().await };
        let mut said = Vec::new();
        match pieces.next_piece() {
            Some(piece) => match reader.read(&piece, &mut said) {
                Err(PieceError::Failed(fault)) => return Err(fault),
                Err(PieceError::Malformed) if self.malformed >= MALFORMED_MAX => {
                    let detail = "its events are not JSON of a transcript".to_owned();
                    return Err(Fault::InvalidAnswer { detail });
                }
                Err(PieceError::Malformed) => self.malformed += 1,
                Ok(()) => {}
            },
            None => match self.response.chunk().await.map_err(|error| upstream.broken(&error))? {
                Some(bytes) => pieces
                    .push(&bytes)
                    .map_err(|error| Fault::InvalidAnswer { detail: error.to_string() })?,
                None => reader.end(&mut said)?,
            },
        }
        self.is_over = reader.is_over();
        self.said.extend(said);
        Ok(())
    }

    async fn read_whole(&mut self) -> Result<(), Fault> {
        let body = self.served.upstream.whole(&mut self.response, PIECE_BYTES_MAX).await?;
        self.is_over = true;
        self.said.extend(parse_transcript(&body)?);
        Ok(())
    }
}

impl TranscriptModel for UpstreamTranscription {
    fn state(&self) -> ModelState {
        self.0.upstream.state_of(&self.0.model)
    }

    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        self.ask(request).boxed()
    }
}
