//! What is measured: a workload along an axis. Every verb and every cell of a plan is one of these.
//! An experiment leads to cells, each cell to runs, and the runs of a cell to one record.

mod cells;
mod concurrency;
mod side_by_side;

pub use concurrency::{gain, scaling_verdict};
pub use side_by_side::side_by_side;

use crate::chat::{ChatSession, ChatWorkload, Prompts, Shape, ThinkingChoice};
use crate::cold::StartOptions;
use crate::drive::Arrivals;
use crate::eval::EvalWorkload;
use crate::max_context::MaxContextOptions;
use crate::record::{Arrival, Cache, Reasoning, Record, RecordKind};
use crate::runs::BenchError;
pub use crate::session::RunSize;
use crate::speech::{OnRecord, SpeechSession, SpeechWorkload, Streaming, TEXTS};
use crate::sweep::ContextOptions;
use crate::timeline::SoundFormat;
use crate::transcription::TranscriptionWorkload;
use crate::voice::VoiceWorkload;
pub use crate::workbench::OtherServer;
use crate::workbench::Workbench;

/// A workload, and what varies from cell to cell.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub workload: Workload,
    pub axis: Axis,
    pub run_size: RunSize,
}

#[derive(Clone, Debug)]
pub enum Workload {
    Chat(ChatWorkload),
    Speech(SpeechWorkload),
    Transcription(TranscriptionWorkload),
    Voice(VoiceWorkload),
    Eval(EvalWorkload),
}

/// What varies from cell to cell.
#[derive(Clone, Debug)]
pub enum Axis {
    /// Users who wait for their answers, or requests at a rate.
    Load(Vec<Arrivals>),
    /// How sound arrives, for one user: streamed, or all of it at the end.
    Delivery,
    /// Concurrent users; each number is measured alternately with one user.
    Concurrency(Vec<usize>),
    /// Users at the same time. The server is restarted for each number, so memory is measured for each number.
    Batch(Vec<usize>),
    /// Tokens of the prompt: new prompts, then the same prompts again.
    Context(ContextOptions),
    /// The longest context, by bisection.
    MaxContext(MaxContextOptions),
    /// Starts of the server, with the weights on the disk or in memory.
    Start(StartOptions),
}

impl Experiment {
    /// An experiment with a chat model, in which each user sends one request in a run.
    pub fn of_chat(axis: Axis, thinking: ThinkingChoice) -> Experiment {
        let chat = ChatWorkload { shapes: Vec::new(), thinking, prompts: Prompts::Cold };
        let run_size = RunSize { rounds: 1, span_s: 0.0 };
        Experiment { workload: Workload::Chat(chat), axis, run_size }
    }

    /// The kind of its records.
    pub fn kind(&self) -> RecordKind {
        match (&self.axis, &self.workload) {
            (Axis::Load(_), Workload::Chat(_)) => RecordKind::Llm,
            (Axis::Load(_), Workload::Speech(_)) => RecordKind::Tts,
            (Axis::Start(_), _) => RecordKind::Cold,
            (_, Workload::Transcription(_)) => RecordKind::Stt,
            (_, Workload::Voice(_)) => RecordKind::Voice,
            (_, Workload::Eval(_)) => RecordKind::Eval,
            (Axis::Delivery, _) => RecordKind::Stream,
            (Axis::Concurrency(_), _) => RecordKind::Concurrency,
            (Axis::Batch(_), _) => RecordKind::Batch,
            (Axis::Context(_), _) => RecordKind::CtxSweep,
            (Axis::MaxContext(_), _) => RecordKind::MaxContext,
        }
    }

    /// Measures every cell. Each record is stored when its cell is done.
    ///
    /// # Errors
    /// The server does not answer the first requests, or a record cannot be stored.
    pub fn measure(&self, bench: &mut Workbench<'_>) -> Result<Vec<Record>, BenchError> {
        self.measure_and_show(bench, &mut |_, _| ())
    }

    /// Like [`Experiment::measure`]; `seen` also receives the arrival times of sound, which a record does not have.
    ///
    /// # Errors
    /// See [`Experiment::measure`].
    pub fn measure_and_show(
        &self,
        bench: &mut Workbench<'_>,
        seen: &mut OnRecord<'_>,
    ) -> Result<Vec<Record>, BenchError> {
        let arrivals = if let Axis::Load(arrivals) = &self.axis { &arrivals[..] } else { &[] };
        match (&self.axis, &self.workload) {
            (_, Workload::Eval(workload)) => workload.measure(bench),
            (Axis::MaxContext(options), _) => crate::max_context::measure(bench, options),
            (Axis::Start(options), _) => crate::cold::measure(bench, options),
            (Axis::Context(options), Workload::Chat(chat)) => {
                crate::sweep::measure(bench, chat.thinking, options)
            }
            (_, Workload::Chat(chat)) => {
                let mut session =
                    ChatSession::prepare_with_context(bench.asker(), chat, self.run_size)?;
                cells::chat(bench, &mut session, &self.axis)
            }
            (_, Workload::Speech(speech)) => {
                let mut session = SpeechSession::prepare(bench.asker(), speech)?;
                session.seen = Some(seen);
                cells::speech(bench, &mut session, &self.axis, self.run_size.rounds)
            }
            (_, Workload::Transcription(workload)) => {
                workload.measure(bench, arrivals, self.run_size.rounds)
            }
            (_, Workload::Voice(workload)) => {
                workload.measure(bench, arrivals, self.run_size.rounds)
            }
        }
    }

    /// Limits the experiment to the cell of one record.
    pub fn narrow_to(&mut self, record: &Record) {
        let users = record.workload.concurrency.map(|users| users as usize);
        match &mut self.workload {
            Workload::Chat(chat) => chat.narrow_to(record),
            Workload::Speech(speech) => {
                speech.narrow_to(record, matches!(self.axis, Axis::Delivery))
            }
            Workload::Transcription(workload) => workload.narrow_to(record),
            Workload::Voice(workload) => workload.narrow_to(record),
            Workload::Eval(workload) => workload.narrow_to(record),
        }
        match &mut self.axis {
            Axis::Load(arrivals) => *arrivals = vec![arrivals_of(record)],
            // One user is measured alternately with each other number.
            Axis::Concurrency(all) if users != Some(1) => {
                all.clone_from(&users.into_iter().collect())
            }
            Axis::Batch(all) if users.is_some() => all.clone_from(&users.into_iter().collect()),
            Axis::Context(options) => {
                let target = record.workload.prompt_tokens.and_then(|tokens| tokens.target);
                let length = target.and_then(|tokens| u32::try_from(tokens).ok());
                options.lengths = length.map_or(options.lengths.clone(), |length| vec![length]);
            }
            Axis::Start(options) => {
                let shape = record.workload.shape.as_deref();
                options.states.retain(|state| Some(state.name()) == shape);
            }
            Axis::Concurrency(_) | Axis::Batch(_) | Axis::Delivery | Axis::MaxContext(_) => {}
        }
    }
}

/// Maximum connections that requests at a rate may use at the same time.
pub const OPEN_CONNECTIONS: usize = 128;

fn arrivals_of(record: &Record) -> Arrivals {
    let workload = &record.workload;
    let users = workload.concurrency.map_or(1, |users| users as usize);
    match (workload.rate, workload.arrival) {
        (None, _) => Arrivals::Closed { users },
        (Some(per_second), Some(Arrival::Constant)) => {
            Arrivals::Constant { per_second, connections: OPEN_CONNECTIONS }
        }
        (Some(per_second), _) => Arrivals::Poisson { per_second, connections: OPEN_CONNECTIONS },
    }
}

impl ChatWorkload {
    fn narrow_to(&mut self, record: &Record) {
        let workload = &record.workload;
        if let Some(shape) = workload.shape.as_deref().and_then(Shape::by_name) {
            self.shapes = vec![shape];
        }
        if workload.cache == Some(Cache::Cached) && record.kind == RecordKind::Llm {
            self.prompts = Prompts::Cached;
        }
        self.thinking = match workload.reasoning {
            Some(Reasoning::Disabled) => ThinkingChoice::Off,
            Some(Reasoning::Enabled) => ThinkingChoice::On,
            Some(Reasoning::CannotDisable) | None => self.thinking,
        };
    }
}

impl SpeechWorkload {
    /// A verdict on a text needs the shorter texts too, so `with_shorter` keeps them.
    fn narrow_to(&mut self, record: &Record, with_shorter: bool) {
        let Some(tts) = &record.tts else { return };
        let most = tts.chars.map_or(usize::MAX, |chars| chars as usize);
        let is_it = |text: &crate::speech::Text| Some(text.sha256()) == tts.text_sha256;
        if with_shorter {
            self.texts.retain(|text| text.chars() <= most);
        } else if let Some(text) = TEXTS.into_iter().find(is_it) {
            self.texts = vec![text];
        }
        if let Some(format) = tts.format.as_deref().and_then(SoundFormat::by_name) {
            self.formats = crate::speech::Formats::All(vec![format]);
        }
        self.voices = tts.voice.clone().into_iter().collect();
        let is_whole = tts.stream == Some(false);
        self.streaming = vec![if is_whole { Streaming::Declined } else { Streaming::Requested }];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Tts;
    use crate::speech::{Formats, Text};

    fn speech() -> Experiment {
        let texts = ["medium", "two_sentences", "long"].into_iter().filter_map(Text::by_name);
        let formats = Formats::Offered(vec![SoundFormat::Pcm, SoundFormat::Mp3]);
        let streaming = vec![Streaming::Requested, Streaming::Declined];
        let speech =
            SpeechWorkload { texts: texts.collect(), formats, voices: Vec::new(), streaming };
        let run_size = RunSize { rounds: 1, span_s: 0.0 };
        Experiment { workload: Workload::Speech(speech), axis: Axis::Delivery, run_size }
    }

    #[test]
    fn a_repeated_text_is_compared_with_the_same_sentence() {
        for (stream, expected) in
            [(Some(false), Streaming::Declined), (Some(true), Streaming::Requested)]
        {
            let (format, voice) = (Some("mp3".to_owned()), Some("ada".to_owned()));
            let tts = Tts { chars: Some(67), format, voice, stream, ..Tts::default() };
            let kind = RecordKind::Stream;
            let record = Record { kind, tts: Some(tts), ..Record::default() };
            let mut experiment = speech();
            experiment.narrow_to(&record);
            let Workload::Speech(speech) = experiment.workload else { panic!("speech") };
            let texts: Vec<_> = speech.texts.iter().map(|text| text.name).collect();
            assert_eq!(
                (texts, speech.streaming),
                (vec!["medium", "two_sentences"], vec![expected])
            );
            assert_eq!(speech.formats, Formats::All(vec![SoundFormat::Mp3]));
            assert_eq!(speech.voices, ["ada"]);
        }
    }
}
