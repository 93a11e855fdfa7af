//! The engine's loop: follows orders, and computes the window that the scheduler chooses.
//! Orders are followed between two steps, so a cancel costs at most the running step.

use std::time::Instant;

use hob_core::WordTiming;
use hob_speech::Lexicon;

use super::ServeError;
use super::voicing::{OpenStreams, Speaking, Voicing};
use crate::speech::protocol::{
    AUDIO_SAMPLES_MAX, AnySpeechOrder, Begin, SpeechOrder, SpeechReport, WORDS_MAX,
};
use crate::speech::scheduler::{NextWindow, WindowScheduler};
use crate::speech::synthesiser::{SynthesisError, Synthesiser};
use crate::speech::units::UnitSource;
use crate::worker::protocol::{CommonOrder, Report, StreamFailure, WorkerMessage, WorkerStats};
use crate::worker::{Inbox, Outlet, Polled};

pub(super) struct Engine<S: Synthesiser, U: UnitSource> {
    synthesiser: S,
    units: U,
    sample_rate_hz: u32,
    streams: OpenStreams<U::Text, S::Utterance>,
    scheduler: WindowScheduler,
    outlet: Outlet,
    windows: u64,
}

/// Whether a stream goes on after a step.
enum Step {
    Continues,
    Ends(Report),
}

impl<S: Synthesiser, U: UnitSource> Engine<S, U> {
    pub(super) fn new(
        synthesiser: S,
        units: U,
        scheduler: WindowScheduler,
        outlet: Outlet,
    ) -> Engine<S, U> {
        Engine {
            sample_rate_hz: synthesiser.sample_rate_hz(),
            synthesiser,
            units,
            streams: OpenStreams::new(),
            scheduler,
            outlet,
            windows: 0,
        }
    }

    /// Returns when the socket is closed, even if streams are open.
    pub(super) fn run(mut self, inbox: &Inbox<(u32, AnySpeechOrder)>) -> Result<(), ServeError> {
        loop {
            match inbox.poll()? {
                Polled::Order((stream, order)) => {
                    self.obey(stream, order)?;
                    continue;
                }
                Polled::Closed => return Ok(()),
                Polled::Empty => {}
            }
            let now = Instant::now();
            if let Some(turn) = self.scheduler.pick(now) {
                match self.take_pair(turn, now) {
                    Some(pair) => self.render_pair(pair)?,
                    None => self.take_turn(turn)?,
                }
            } else if let Some((stream, order)) = inbox.wait()? {
                self.obey(stream, order)?;
            } else {
                return Ok(());
            }
        }
    }

    fn obey(&mut self, stream: u32, order: AnySpeechOrder) -> Result<(), ServeError> {
        match order {
            WorkerMessage::Model(SpeechOrder::Begin(begin)) => self.begin_stream(stream, begin),
            WorkerMessage::Model(SpeechOrder::Text(piece)) => self.push(stream, &piece),
            WorkerMessage::Model(SpeechOrder::EndText) => self.finish(stream),
            WorkerMessage::Common(CommonOrder::Cancel) => self.remove(stream),
            WorkerMessage::Common(CommonOrder::Credit(samples)) => self.grant(stream, samples),
            WorkerMessage::Common(CommonOrder::Ping) => {
                let stats = WorkerStats { streams: self.streams.len() as u32, steps: self.windows };
                self.outlet.report(stream, &Report::Stats(stats))?;
            }
        }
        Ok(())
    }

    fn begin_stream(&mut self, stream: u32, mut begin: Begin) {
        // The server has checked it.
        let lexicon = Lexicon::new(std::mem::take(&mut begin.lexicon)).unwrap_or_default();
        if let Some(folder) = begin.dictionary.take() {
            self.units.use_dictionary(begin.language, folder);
        }
        let text = self.units.open(begin.language, lexicon);
        self.scheduler.add(stream, begin.pace);
        self.streams.insert(stream, Voicing::new(begin, text));
    }

    /// Adds text to a stream. An order for a stream that has ended does nothing: the server sent it before it knew of the end.
    fn push(&mut self, stream: u32, piece: &str) {
        if let Some(voicing) = self.streams.get_mut(&stream) {
            self.units.push(&mut voicing.text, piece);
            voicing.may_have_unit = true;
        }
        self.refresh(stream);
    }

    fn finish(&mut self, stream: u32) {
        if let Some(voicing) = self.streams.get_mut(&stream) {
            self.units.finish(&mut voicing.text);
            voicing.text_has_ended = true;
            voicing.may_have_unit = true;
        }
        self.refresh(stream);
    }

    fn grant(&mut self, stream: u32, samples: u32) {
        if let Some(voicing) = self.streams.get_mut(&stream) {
            voicing.grant(samples);
        }
        self.refresh(stream);
    }

    fn remove(&mut self, stream: u32) {
        self.streams.remove(&stream);
        self.scheduler.remove(stream);
    }

    fn refresh(&mut self, stream: u32) {
        if let Some(voicing) = self.streams.get(&stream) {
            self.scheduler.set_ready(stream, voicing.is_ready(), Instant::now());
        }
    }

    /// One step of a stream. Its state is taken out during the step, so that the engine's other fields can be borrowed.
    fn take_turn(&mut self, turn: NextWindow) -> Result<(), ServeError> {
        if let Some(speaking) = Speaking::take(&mut self.streams, turn) {
            return self.render(speaking);
        }
        let stream = turn.stream;
        let Some(mut voicing) = self.streams.remove(&stream) else {
            return Ok(());
        };
        let step = self.begin_unit(&mut voicing, stream)?;
        self.put_back(stream, voicing, step)
    }

    /// The stream of this turn, and another one with a window that is computed at the same time. With `None`, no stream
    /// was taken.
    fn take_pair(
        &mut self,
        first: NextWindow,
        now: Instant,
    ) -> Option<[Speaking<U::Text, S::Utterance>; 2]> {
        if self.streams.len() < 2 || !self.synthesiser.can_pair() {
            return None;
        }
        let left_s = |stream: u32| {
            let utterance = self.streams.get(&stream)?.utterance.as_ref()?;
            Some(self.synthesiser.seconds_left(utterance))
        };
        let second = self.scheduler.pick_second(first, left_s, now)?;
        Speaking::take_pair(&mut self.streams, [first, second])
    }

    fn render_pair(
        &mut self,
        mut pair: [Speaking<U::Text, S::Utterance>; 2],
    ) -> Result<(), ServeError> {
        let started = Instant::now();
        let windows =
            pair.each_mut().map(|speaking| (&mut speaking.utterance, speaking.turn.window_s));
        let rendered = self.synthesiser.render_pair(windows);
        let took = started.elapsed();
        // A window that failed has no length to learn from.
        if let [Ok(first), Ok(second)] = &rendered {
            self.scheduler.rendered_pair(self.seconds(first.len() + second.len()), took);
        }
        for (speaking, samples) in pair.into_iter().zip(rendered) {
            self.end_turn(speaking, samples)?;
        }
        Ok(())
    }

    fn put_back(
        &mut self,
        stream: u32,
        voicing: Voicing<U::Text, S::Utterance>,
        step: Step,
    ) -> Result<(), ServeError> {
        match step {
            Step::Continues => {
                self.streams.insert(stream, voicing);
                self.refresh(stream);
            }
            Step::Ends(report) => {
                self.scheduler.remove(stream);
                self.outlet.report(stream, &report)?;
            }
        }
        Ok(())
    }

    fn begin_unit(
        &mut self,
        voicing: &mut Voicing<U::Text, S::Utterance>,
        stream: u32,
    ) -> Result<Step, ServeError> {
        let started = Instant::now();
        let unit = self.units.next_unit(&mut voicing.text);
        // A sentence that cannot be read is an error of the answer, not a gap in it.
        if let Some(reason) = self.units.take_failure() {
            return Ok(Step::Ends(Report::failed(&reason)));
        }
        let Some(unit) = unit else {
            voicing.may_have_unit = false;
            return Ok(if voicing.text_has_ended { end(voicing) } else { Step::Continues });
        };
        if unit.phonemes.is_empty() {
            let pause = voicing.rest(&unit, self.sample_rate_hz);
            self.send_audio(voicing, stream, &vec![0.0; pause])?;
            return Ok(Step::Continues);
        }
        if !voicing.has_spoken() {
            self.scheduler.started(stream);
            self.outlet.send(stream, &SpeechReport::Started)?;
        }
        let pause = voicing.enter(&unit, self.sample_rate_hz);
        self.send_audio(voicing, stream, &vec![0.0; pause])?;
        match self.synthesiser.begin(&unit, &voicing.voice, voicing.speed) {
            Ok(utterance) => {
                self.scheduler.began(started.elapsed());
                let mut words = self.synthesiser.words(&utterance);
                voicing.place(&mut words, self.sample_rate_hz);
                self.send_words(stream, &words)?;
                voicing.utterance = Some(utterance);
                Ok(Step::Continues)
            }
            Err(error) => Ok(failed(&error)),
        }
    }

    fn render(&mut self, mut speaking: Speaking<U::Text, S::Utterance>) -> Result<(), ServeError> {
        let started = Instant::now();
        let samples = self.synthesiser.render(&mut speaking.utterance, speaking.turn.window_s);
        let count = samples.as_ref().map_or(0, Vec::len);
        self.scheduler.rendered(self.seconds(count), started.elapsed());
        self.end_turn(speaking, samples)
    }

    fn end_turn(
        &mut self,
        speaking: Speaking<U::Text, S::Utterance>,
        samples: Result<Vec<f32>, SynthesisError>,
    ) -> Result<(), ServeError> {
        let Speaking { turn, mut voicing, utterance } = speaking;
        let step = self.sent_window(&mut voicing, utterance, (turn.stream, samples))?;
        self.put_back(turn.stream, voicing, step)
    }

    /// Sends a window that was computed for a stream.
    fn sent_window(
        &mut self,
        voicing: &mut Voicing<U::Text, S::Utterance>,
        utterance: S::Utterance,
        (stream, samples): (u32, Result<Vec<f32>, SynthesisError>),
    ) -> Result<Step, ServeError> {
        let samples = match samples {
            Ok(samples) => samples,
            Err(error) => return Ok(failed(&error)),
        };
        self.windows += 1;
        self.send_audio(voicing, stream, &samples)?;
        if !samples.is_empty() && self.synthesiser.seconds_left(&utterance) > 0.0 {
            voicing.utterance = Some(utterance);
            return Ok(Step::Continues);
        }
        // Checked now and not at the next turn, because other streams may get turns before that. The answer would be
        // complete, and its client would still wait for the end.
        let is_done = self.units.is_done(&voicing.text);
        voicing.may_have_unit = !is_done;
        Ok(if is_done { end(voicing) } else { Step::Continues })
    }

    fn send_audio(
        &mut self,
        voicing: &mut Voicing<U::Text, S::Utterance>,
        stream: u32,
        samples: &[f32],
    ) -> Result<(), ServeError> {
        for part in samples.chunks(AUDIO_SAMPLES_MAX) {
            self.outlet.send(stream, &SpeechReport::Audio(part.to_vec()))?;
        }
        if !samples.is_empty() {
            voicing.count_sent(samples.len());
            self.scheduler.sent(stream, self.seconds(samples.len()), Instant::now());
        }
        Ok(())
    }

    fn send_words(&mut self, stream: u32, words: &[WordTiming]) -> Result<(), ServeError> {
        for part in words.chunks(WORDS_MAX) {
            self.outlet.send(stream, &SpeechReport::Words(part.to_vec()))?;
        }
        Ok(())
    }

    fn seconds(&self, samples: usize) -> f32 {
        samples as f32 / self.sample_rate_hz as f32
    }
}

fn end<Text, Utterance>(voicing: &Voicing<Text, Utterance>) -> Step {
    Step::Ends(if voicing.has_spoken() {
        Report::Done
    } else {
        Report::Failed(StreamFailure::Empty)
    })
}

fn failed(error: &SynthesisError) -> Step {
    Step::Ends(Report::failed(&error.to_string()))
}
