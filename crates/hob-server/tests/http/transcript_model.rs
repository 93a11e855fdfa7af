//! A transcription model whose every event the test chooses, a server with this model, and forms to send to it.
//! Tests that do not need single events use the scripted model of `hob-core`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use hob_core::scripted::ScriptedTranscript;
use hob_core::{
    Admission, HeardWord, ModelError, ModelState, RegisteredModel, Segment, TranscriptEvent,
    TranscriptModel, TranscriptRequest, TranscriptStream, TranscriptSummary, Transcription,
};
use hob_server::ServerOptions;
use tokio::sync::mpsc;

use crate::client::post_with;
use crate::server::Server;

pub(crate) type Event = Result<TranscriptEvent, ModelError>;

/// Returns the events that are sent into the other end.
pub(crate) struct StagedTranscript(Mutex<VecDeque<mpsc::Receiver<Event>>>);

impl StagedTranscript {
    /// A model for one request.
    pub(crate) fn new() -> (Arc<StagedTranscript>, mpsc::Sender<Event>) {
        let (sender, receiver) = mpsc::channel(1);
        (Arc::new(StagedTranscript(Mutex::new([receiver].into()))), sender)
    }
}

impl TranscriptModel for StagedTranscript {
    fn state(&self) -> ModelState {
        ModelState::Cold
    }

    fn transcribe(
        &self,
        _request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        let staged = self.0.lock().expect("no test panics here").pop_front();
        async {
            let Some(mut receiver) = staged else { return std::future::pending().await };
            Ok(stream::poll_fn(move |context| receiver.poll_recv(context)).boxed())
        }
        .boxed()
    }
}

pub(crate) fn delta(text: &str) -> Event {
    Ok(TranscriptEvent::Delta(text.to_owned()))
}

pub(crate) fn segment(text: &str, start_s: f64, end_s: f64) -> Event {
    let text = text.to_owned();
    Ok(TranscriptEvent::Segment(Segment { text, start_s, end_s, ..Segment::default() }))
}

pub(crate) fn word(word: &str, start_s: f64, end_s: f64) -> Event {
    Ok(TranscriptEvent::Word(HeardWord { word: word.to_owned(), start_s, end_s }))
}

pub(crate) fn done(duration_s: f64) -> Event {
    Ok(TranscriptEvent::Done(TranscriptSummary { duration_s, ..TranscriptSummary::default() }))
}

pub(crate) fn scripted(
    answers: impl IntoIterator<Item = Result<Vec<Event>, ModelError>>,
) -> Arc<ScriptedTranscript> {
    Arc::new(ScriptedTranscript::new(answers))
}

/// A server whose voice is `kokoro` and whose transcription model is `whisper`, or `ears`.
pub(crate) async fn serve(model: Arc<impl TranscriptModel + 'static>) -> Server {
    serve_with(model, ServerOptions::default()).await
}

pub(crate) async fn serve_with(
    model: Arc<impl TranscriptModel + 'static>,
    options: ServerOptions,
) -> Server {
    Server::start_models(options, |registry| {
        let admission = Admission::new(1, 1.0);
        registry.add(RegisteredModel::<Transcription>::new("whisper", model, admission));
        registry.add_alias("ears", "whisper");
    })
    .await
}

/// One part of a form: its name, its file name, and its bytes.
pub(crate) type Part<'a> = (&'a str, Option<&'a str>, &'a [u8]);

pub(crate) const FILE: Part<'static> = ("file", Some("a.wav"), b"RIFF....");

const BOUNDARY: &str = "the-boundary";

/// The body of a form.
pub(crate) fn body(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, bytes) in parts {
        let file = file.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

pub(crate) fn form_headers() -> String {
    format!("Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n")
}

pub(crate) fn form_to(path: &str, parts: &[Part<'_>]) -> Vec<u8> {
    post_with(path, &form_headers(), body(parts))
}

pub(crate) fn form(parts: &[Part<'_>]) -> Vec<u8> {
    form_to("/v1/audio/transcriptions", parts)
}

/// A form with the file and these fields.
pub(crate) fn form_with(fields: &[(&str, &str)]) -> Vec<u8> {
    let fields = fields.iter().map(|(name, text)| (*name, None, text.as_bytes()));
    form(&[FILE].into_iter().chain(fields).collect::<Vec<_>>())
}
