//! One connection: events of the client in order, one request at a time, and answers in order.
//! While a request runs, its input is read and a ping is answered. The next request waits for its end.

use std::io;
use std::sync::Arc;

use hob_wire::{WyomingAnswer, WyomingEvent, WyomingInfo, WyomingTranscribe, WyomingVoice};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::event_reader::EventReader;
use super::programs::AskedModel;
use super::request::{Answers, RequestInput};
use super::speech::{SpokenText, TextInput};
use super::transcription::SoundInput;
use super::{WyomingPortContext, WyomingService, programs, speech, transcription};
use crate::api_error::ApiError;
use crate::connections::ConnectionSlot;
use crate::context::RequestContext;

/// Writes all answers, and closes the connection after the last one.
pub(super) async fn write(
    mut socket: impl AsyncWrite + Unpin,
    mut unsent: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(bytes) = unsent.recv().await {
        socket.write_all(&bytes).await?;
        socket.flush().await?;
    }
    socket.shutdown().await
}

/// What ended the input of a request.
enum InputEnd {
    ClientLeft,
    NextRequest(WyomingEvent),
}

/// Whether the connection goes on.
enum Next {
    Event,
    Close,
}

pub(super) struct Conversation<R> {
    reader: EventReader<R>,
    answers: Answers,
    slot: ConnectionSlot,
    port: Arc<WyomingPortContext>,
    /// The program that the client has chosen.
    selected: Option<String>,
    /// The settings of the latest `transcribe` event, until its sound comes.
    transcribe: WyomingTranscribe,
    /// An event that waits for the end of the running request.
    held: Option<WyomingEvent>,
}

impl<R: AsyncRead + Unpin> Conversation<R> {
    pub(super) fn new(
        socket: R,
        answers: mpsc::Sender<Vec<u8>>,
        slot: ConnectionSlot,
        port: Arc<WyomingPortContext>,
    ) -> Conversation<R> {
        Conversation {
            reader: EventReader::new(socket, Arc::clone(&port.services)),
            answers: Answers::new(answers),
            slot,
            port,
            selected: None,
            transcribe: WyomingTranscribe::default(),
            held: None,
        }
    }

    /// Ends when the client leaves, the server stops, or after an error. Home Assistant ignores errors, so it learns
    /// of one by the end of the connection.
    pub(super) async fn run(mut self) {
        if let Err(error) = self.requests().await {
            tracing::debug!(error = error.summary().as_str(), "a Wyoming connection ends");
            self.answers.send(WyomingAnswer::Error(&error.body())).await;
        }
    }

    async fn requests(&mut self) -> Result<(), ApiError> {
        while let Some(event) = self.next_event().await? {
            if let Next::Close = self.handle(event).await? {
                break;
            }
        }
        Ok(())
    }

    /// `None` if the client has left, or the server stops.
    async fn next_event(&mut self) -> Result<Option<WyomingEvent>, ApiError> {
        if self.port.stop.is_cancelled() {
            return Ok(None);
        }
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        let next = self.port.stop.run_until_cancelled(self.reader.next(None));
        next.await.unwrap_or(Ok(None))
    }

    async fn handle(&mut self, event: WyomingEvent) -> Result<Next, ApiError> {
        use WyomingService::{Speech, Transcription};
        match (self.port.service, event) {
            (_, WyomingEvent::SelectProgram { name }) => self.selected = Some(name),
            (Speech, WyomingEvent::Synthesize { text, voice }) => {
                return self.speak(Some(text), voice).await;
            }
            (Speech, WyomingEvent::SynthesizeStart { voice }) => {
                return self.speak(None, voice).await;
            }
            (Transcription, WyomingEvent::Transcribe(settings)) => self.transcribe = settings,
            (
                Transcription,
                event @ (WyomingEvent::AudioStart(_) | WyomingEvent::AudioChunk { .. }),
            ) => return self.transcribe(event).await,
            (Speech, other @ (WyomingEvent::Transcribe(_) | WyomingEvent::AudioStart(_))) => {
                return Err(unexpected(&other, "this port is for speech"));
            }
            (
                Transcription,
                other @ (WyomingEvent::Synthesize { .. } | WyomingEvent::SynthesizeStart { .. }),
            ) => return Err(unexpected(&other, "this port is for transcription")),
            (_, other) => self.answer_without_model(&other).await,
        }
        Ok(Next::Event)
    }

    /// Answers what needs no model, and ignores the rest: newer clients may send what hob does not know.
    async fn answer_without_model(&self, event: &WyomingEvent) {
        match event {
            WyomingEvent::Describe => self.answers.send(WyomingAnswer::Info(&self.info())).await,
            WyomingEvent::Ping { text } => {
                self.answers.send(WyomingAnswer::Pong { text: text.as_deref() }).await;
            }
            other => tracing::debug!(kind = other.kind(), "ignored an event of a Wyoming client"),
        }
    }

    fn info(&self) -> WyomingInfo {
        programs::info(self.port.service, &self.port.context(), self.port.model.as_deref())
    }

    /// The model: the request's own, or the client's choice, or the port's.
    fn asked(&self, context: &RequestContext, requested: Option<String>) -> AskedModel {
        let (context, own) = (context.clone(), self.port.model.clone());
        let name = requested.or_else(|| self.selected.clone()).or_else(|| own.clone());
        AskedModel { context, name, own }
    }

    async fn speak(&mut self, text: Option<String>, voice: WyomingVoice) -> Result<Next, ApiError> {
        let context = self.port.context();
        let (input, text) = match text {
            Some(text) => (TextInput::whole(), SpokenText::Whole(text)),
            None => TextInput::arriving(context.options().text_chars_max),
        };
        let asked = self.asked(&context, None);
        let work = Box::pin(speech::speak(asked, (text, voice), self.answers.clone()));
        self.run_request(&context, input, work).await
    }

    async fn transcribe(&mut self, first: WyomingEvent) -> Result<Next, ApiError> {
        let context = self.port.context();
        let mut settings = std::mem::take(&mut self.transcribe);
        let asked = self.asked(&context, settings.model.take());
        let (input, sound) = SoundInput::new(context.options().read_time_max);
        self.held = Some(first);
        let work = Box::pin(transcription::hear(asked, (settings, sound), self.answers.clone()));
        self.run_request(&context, input, work).await
    }

    /// Runs a request to its end while its input arrives. Its work is dropped when the client leaves.
    async fn run_request(
        &mut self,
        context: &RequestContext,
        input: impl RequestInput,
        work: impl Future<Output = Result<(), ApiError>>,
    ) -> Result<Next, ApiError> {
        let _busy = self.slot.begin_request();
        let route = match self.port.service {
            WyomingService::Speech => "wyoming/speech",
            WyomingService::Transcription => "wyoming/transcription",
        };
        let done = self.run_with_input(input, work).await;
        let status = done.as_ref().map_or_else(|error| error.status().as_u16(), |_| 200);
        context.services.metrics.request(route, status);
        // A request that reached a model has its own log line.
        if let Err(error) = &done
            && !context.services.in_flight.has(context.id)
        {
            let error = error.summary();
            tracing::info!(id = context.id, route, error = error.as_str(), "request");
        }
        done
    }

    async fn run_with_input(
        &mut self,
        input: impl RequestInput,
        work: impl Future<Output = Result<(), ApiError>>,
    ) -> Result<Next, ApiError> {
        tokio::pin!(work);
        let ended = tokio::select! {
            // An answer that is complete is not broken by what follows it.
            biased;
            done = &mut work => return done.map(|()| Next::Event),
            ended = self.read_input(input) => ended?,
        };
        match ended {
            InputEnd::ClientLeft => Ok(Next::Close),
            InputEnd::NextRequest(event) => {
                self.held = Some(event);
                work.await.map(|()| Next::Event)
            }
        }
    }

    /// Reads the input of the running request, and what comes after it.
    async fn read_input(&mut self, mut input: impl RequestInput) -> Result<InputEnd, ApiError> {
        loop {
            let event = match self.held.take() {
                Some(held) => held,
                None => match self.reader.next(input.silence_max()).await? {
                    Some(event) => event,
                    None => return Ok(InputEnd::ClientLeft),
                },
            };
            match event {
                WyomingEvent::Describe | WyomingEvent::Ping { .. } | WyomingEvent::Unknown => {
                    self.answer_without_model(&event).await;
                }
                event if input.silence_max().is_none() => return Ok(InputEnd::NextRequest(event)),
                event => input.take(event).await?,
            }
        }
    }
}

fn unexpected(event: &WyomingEvent, why: &'static str) -> ApiError {
    ApiError::UnexpectedEvent { event: event.kind(), why }
}
