//! The transcription worker. One thread owns the engine and all streams, which take turns part by part.
//! It ends when the supervisor closes the socket, after one more decoder step at most.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use hob_core::{TranscriptEvent, VoiceDetector};

use super::parts::SoundPart;
use super::pause_watch::PauseWatch;
use super::protocol::{AboutTranscription, AnyTranscriptOrder, TranscriptOrder, TranscriptReport};
use super::recording::{PeekReason, Recording, Task};
use super::transcriber::Transcriber;
use super::turns::{Turn, Turns};
use super::vad::VadError;
use super::whisper::{WhisperLoadError, WhisperOptions, WhisperText};
use crate::worker::protocol::{
    CommonOrder, DeviceShortage, Report, StreamFailure, WorkerMessage, WorkerStats,
};
use crate::worker::{Inbox, InboxError, LoadError, Outlet, Polled, WorkerConnection};

/// An engine that still computes this long after the server has gone is aborted.
const ORPHAN_LIMIT: Duration = Duration::from_secs(30);

/// Events of one report, so that a part with many words fits into a frame.
const EVENTS_MAX: usize = 4096;

/// Why a transcription worker ended without its supervisor's request.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptionWorkerError {
    #[error("the model does not load: {0}")]
    Load(#[from] WhisperLoadError),
    #[error("the voice detector does not load: {0}")]
    Detector(#[from] VadError),
    #[error("the model loads but cannot transcribe: {0}")]
    WarmUp(String),
    #[error("the graphics card failed, and computes nothing more in this process")]
    Broken,
    #[error(transparent)]
    Inbox(#[from] InboxError),
    #[error("the server cannot be reached: {0}")]
    Io(#[from] io::Error),
}

impl LoadError for TranscriptionWorkerError {
    fn device_shortage(&self) -> Option<DeviceShortage> {
        match self {
            TranscriptionWorkerError::Load(error) => error.device_shortage(),
            _ => None,
        }
    }
}

/// Loads the model, warms up, reports that it is ready, and serves until the supervisor closes the socket.
///
/// # Errors
/// See [`TranscriptionWorkerError`]. The supervisor also gets the reason of a failed load.
pub fn serve_transcription<T: Transcriber, V: VoiceDetector + Clone>(
    socket: UnixStream,
    load: impl FnOnce() -> Result<(T, V), TranscriptionWorkerError>,
) -> Result<(), TranscriptionWorkerError> {
    let WorkerConnection { inbox, mut outlet } =
        WorkerConnection::start(&socket, AnyTranscriptOrder::of_stream, ORPHAN_LIMIT)?;
    let (transcriber, vad) = outlet.loaded(get_ready(load))?;
    outlet.ready(
        transcriber.card_bytes(),
        &AboutTranscription { languages: transcriber.languages() },
    )?;
    let inbox = PatientInbox { inbox, arrived: RefCell::default() };
    let (streams, turns, last) = (BTreeMap::new(), Turns::default(), LastTurns::default());
    Engine { transcriber, vad, streams, turns, last, outlet, parts_heard: 0 }.run(&inbox)
}

fn get_ready<T: Transcriber, V>(
    load: impl FnOnce() -> Result<(T, V), TranscriptionWorkerError>,
) -> Result<(T, V), TranscriptionWorkerError> {
    let (mut transcriber, vad) = load()?;
    transcriber.warm_up().map_err(TranscriptionWorkerError::WarmUp)?;
    crate::memory::give_back();
    Ok((transcriber, vad))
}

type Arrived = (u32, AnyTranscriptOrder);

/// The orders, which can also be looked at while the engine computes.
struct PatientInbox {
    inbox: Inbox<Arrived>,
    arrived: RefCell<VecDeque<Result<Option<Arrived>, InboxError>>>,
}

impl PatientInbox {
    /// Whether `stream` was cancelled, or the server has gone.
    fn has_left(&self, stream: u32) -> bool {
        self.has_arrived(|to, order| {
            to == stream && matches!(order, WorkerMessage::Common(CommonOrder::Cancel))
        })
    }

    /// Whether the sound of this stream has ended, or without one that of any stream: its listener waits for the text.
    fn is_awaited(&self, stream: Option<u32>) -> bool {
        self.has_arrived(|to, order| {
            stream.is_none_or(|stream| stream == to)
                && matches!(order, WorkerMessage::Model(TranscriptOrder::EndSound))
        })
    }

    /// Lets the watch hear the sound of `stream` that has arrived since it listened last. Whether it has found a pause.
    fn is_paused<V: VoiceDetector>(&self, stream: u32, watch: &mut PauseWatch<V>) -> bool {
        let arrived = self.arrived.borrow();
        for order in arrived.iter().skip(watch.orders_heard).flatten().flatten() {
            if let (to, WorkerMessage::Model(TranscriptOrder::Samples(samples))) = order
                && *to == stream
            {
                watch.hear(samples);
            }
        }
        watch.orders_heard = arrived.len();
        watch.has_found()
    }

    /// Reads what has arrived. Whether there is such an order, or the server has gone.
    fn has_arrived(&self, is_meant: impl Fn(u32, &AnyTranscriptOrder) -> bool) -> bool {
        let mut arrived = self.arrived.borrow_mut();
        while !matches!(arrived.back(), Some(Ok(None) | Err(_))) {
            match self.inbox.poll() {
                Ok(Polled::Order(order)) => arrived.push_back(Ok(Some(order))),
                Ok(Polled::Empty) => break,
                Ok(Polled::Closed) => arrived.push_back(Ok(None)),
                Err(error) => arrived.push_back(Err(error)),
            }
        }
        arrived.iter().any(|order| match order {
            Ok(Some((to, order))) => is_meant(*to, order),
            Ok(None) | Err(_) => true,
        })
    }

    fn poll(&self) -> Result<Polled<Arrived>, InboxError> {
        match self.arrived.borrow_mut().pop_front() {
            Some(Ok(Some(order))) => Ok(Polled::Order(order)),
            Some(Ok(None)) => Ok(Polled::Closed),
            Some(Err(error)) => Err(error),
            None => self.inbox.poll(),
        }
    }
}

struct Engine<T, V> {
    transcriber: T,
    vad: V,
    streams: BTreeMap<u32, Recording<V>>,
    turns: Turns,
    last: LastTurns,
    outlet: Outlet,
    parts_heard: u64,
}

/// The streams that had the last turn. They are two, so that a stream that goes first does not change who is next among
/// the others.
#[derive(Debug, Default)]
struct LastTurns {
    awaited: u32,
    other: u32,
}

impl<T: Transcriber, V: VoiceDetector + Clone> Engine<T, V> {
    /// Returns when the socket is closed, even if streams are open, or when the engine is broken.
    fn run(mut self, inbox: &PatientInbox) -> Result<(), TranscriptionWorkerError> {
        loop {
            match inbox.poll()? {
                Polled::Order((stream, order)) => {
                    self.obey(stream, order)?;
                    continue;
                }
                Polled::Closed => return Ok(()),
                Polled::Empty => {}
            }
            if let Some((stream, turn)) = self.next_stream() {
                self.take(stream, turn, inbox)?;
                if self.transcriber.is_broken() {
                    return Err(TranscriptionWorkerError::Broken);
                }
            } else if let Some((stream, order)) = inbox.inbox.wait()? {
                self.obey(stream, order)?;
            } else {
                return Ok(());
            }
        }
    }

    /// The next stream with something to do, in turn. Those with a listener who waits for the last text go first, for at
    /// most [`PASSED_OVER_MAX`](super::turns::PASSED_OVER_MAX) at a time.
    fn next_stream(&mut self) -> Option<(u32, Turn)> {
        let awaited = self.next_of(self.last.awaited, Recording::is_awaited);
        let is_other = |recording: &Recording<V>| recording.is_ready() && !recording.is_awaited();
        let other = self.next_of(self.last.other, is_other);
        let (stream, turn) = self.turns.next(awaited, other, Instant::now())?;
        let last = &mut self.last;
        let kind = if awaited == Some(stream) { &mut last.awaited } else { &mut last.other };
        *kind = stream;
        Some((stream, turn))
    }

    /// The next stream of this kind, in turn.
    fn next_of(&self, last: u32, is_meant: fn(&Recording<V>) -> bool) -> Option<u32> {
        let meant =
            |(stream, recording): (&u32, &Recording<V>)| is_meant(recording).then_some(*stream);
        let after = self.streams.range(last.saturating_add(1)..).find_map(meant);
        after.or_else(|| self.streams.iter().find_map(meant))
    }

    fn obey(&mut self, stream: u32, order: AnyTranscriptOrder) -> io::Result<()> {
        match order {
            WorkerMessage::Model(TranscriptOrder::Begin(begin)) => {
                self.streams.insert(stream, Recording::new(begin, self.vad.clone()));
            }
            WorkerMessage::Model(TranscriptOrder::File(bytes)) => {
                if let Some(recording) = self.streams.get_mut(&stream) {
                    recording.push_file(&bytes);
                }
            }
            WorkerMessage::Model(TranscriptOrder::Samples(samples)) => {
                let pushed = self.streams.get_mut(&stream).map(|one| one.push_samples(&samples));
                if let Some(Err(detail)) = pushed {
                    self.end(stream, &Report::failed(&detail))?;
                }
            }
            WorkerMessage::Model(TranscriptOrder::EndSound) => {
                let ended = self.streams.get_mut(&stream).map(Recording::end);
                if let Some(Err(reason)) = ended {
                    self.refuse(stream, reason)?;
                }
            }
            WorkerMessage::Common(CommonOrder::Cancel) => drop(self.streams.remove(&stream)),
            WorkerMessage::Common(CommonOrder::Credit(_)) => {}
            WorkerMessage::Common(CommonOrder::Ping) => {
                let streams = self.streams.len() as u32;
                let stats = WorkerStats { streams, steps: self.parts_heard };
                self.outlet.report(stream, &Report::Stats(stats))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, stream: u32, turn: Turn, inbox: &PatientInbox) -> io::Result<()> {
        let Some(recording) = self.streams.get_mut(&stream) else { return Ok(()) };
        let task = recording.next_task();
        if let Task::Refuse(reason) = task {
            return self.refuse(stream, reason);
        }
        if !std::mem::replace(&mut recording.has_started, true) {
            self.outlet.send(stream, &TranscriptReport::Started)?;
        }
        if let Some(samples) = recording.take_report() {
            self.outlet.send(stream, &TranscriptReport::Read(samples))?;
        }
        match task {
            Task::Wait | Task::Refuse(_) => Ok(()),
            Task::Keep(part, text) => self.add(stream, |recording| recording.add_part(&part, text)),
            Task::Hear(part) => {
                let options = recording.options(part.spoken_samples());
                let has_left = || inbox.has_left(stream);
                let text = self.text(stream, (&part, &options), &has_left)?;
                let Some(text) = text else { return Ok(()) };
                self.add(stream, |recording| recording.add_part(&part, text))
            }
            Task::Peek(part, reason) => {
                let options = recording.peek_options(part.spoken_samples(), reason);
                let watch = recording.pause_watch(&part, reason).map(RefCell::new);
                let is_paused = || {
                    watch.as_ref().is_some_and(|one| inbox.is_paused(stream, &mut one.borrow_mut()))
                };
                // A listener waits for the last pass over sound that has ended. A pass in a pause may be that pass, but
                // only if no speech and no other pause follow.
                let awaited = (turn == Turn::Overdue).then_some(stream);
                let is_over = || {
                    inbox.has_left(stream)
                        || reason == PeekReason::Progress && inbox.is_awaited(awaited)
                        || is_paused()
                };
                let text = self.text(stream, (&part, &options), &is_over)?;
                let Some(text) = text else { return Ok(()) };
                self.add(stream, |recording| recording.peeked(part, reason, text))
            }
            Task::Finish => {
                let done = TranscriptEvent::Done(recording.done());
                self.outlet.send(stream, &TranscriptReport::Events(vec![done]))?;
                self.end(stream, &Report::Done)
            }
        }
    }

    /// The text of a part. `None` if it was not needed any more: the reason is among the orders that have arrived.
    fn text(
        &mut self,
        stream: u32,
        (part, options): (&SoundPart, &WhisperOptions),
        is_over: &dyn Fn() -> bool,
    ) -> io::Result<Option<WhisperText>> {
        let heard = self.transcriber.transcribe(&part.samples, options, is_over);
        self.parts_heard += 1;
        match heard {
            _ if is_over() => Ok(None),
            Ok(text) => Ok(Some(text)),
            Err(detail) => {
                self.end(stream, &Report::failed(&detail))?;
                Ok(None)
            }
        }
    }

    fn add(
        &mut self,
        stream: u32,
        text: impl FnOnce(&mut Recording<V>) -> Vec<TranscriptEvent>,
    ) -> io::Result<()> {
        let Some(recording) = self.streams.get_mut(&stream) else { return Ok(()) };
        let events = text(recording);
        self.send(stream, &events)
    }

    fn send(&mut self, stream: u32, events: &[TranscriptEvent]) -> io::Result<()> {
        for some in events.chunks(EVENTS_MAX) {
            self.outlet.send(stream, &TranscriptReport::Events(some.to_vec()))?;
        }
        Ok(())
    }

    fn refuse(&mut self, stream: u32, reason: String) -> io::Result<()> {
        self.outlet.send(stream, &TranscriptReport::Refused(reason))?;
        self.end(stream, &Report::Failed(StreamFailure::Empty))
    }

    fn end(&mut self, stream: u32, report: &Report) -> io::Result<()> {
        self.streams.remove(&stream);
        self.outlet.report(stream, report)
    }
}

#[cfg(test)]
mod tests;
