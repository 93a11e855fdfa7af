//! A spoken conversation on a server: questions with a known end are said, and the time to the first audible sample of the
//! answer is measured, with its stages as a client sees them.

mod audible;
mod cell;
mod conversation;
mod first_answer;
mod microphone;
mod section;

use std::io;
use std::time::Duration;

use cell::{VoiceCell, VoiceRuns};
pub(crate) use first_answer::{FirstAnswer, RepeatedQuestion};

use crate::drive::Arrivals;
use crate::record::Record;
use crate::runs::BenchError;
use crate::session::{MeasuringSession as _, measure_in_turns};
use crate::transcription::ClipSource;
use crate::workbench::Workbench;

/// Questions, and how they are asked.
#[derive(Clone, Debug)]
pub struct VoiceWorkload {
    pub questions: ClipSource,
    pub turn_end: TurnEnd,
    /// The voice of the answers; None: the server's default.
    pub voice: Option<String>,
    pub manner: Manner,
    /// The person thinks for so long in the middle of each question. The server may take it for finished, which is
    /// counted and no failure.
    pub pause: Option<Duration>,
}

/// How the server finds the end of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// A model hears whether the sentence is complete.
    Semantic,
    /// After this silence.
    Silence { ms: u32 },
}

/// What the person does when the answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Listens,
    /// Speaks the next question while the answer plays.
    Interrupts,
}

/// Why a turn has no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VoiceFault {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("the server refused the session with status {status}")]
    Refused { status: u16 },
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("the server closed the session: {0}")]
    Closed(String),
    #[error("the server answered with an error: {0}")]
    Server(String),
    #[error("the server ended the turn before the question was over")]
    CutIn,
    #[error("the server did not answer in time")]
    NoAnswer,
    #[error("the answer ended without audible sound: {0}")]
    Silent(String),
    #[error("the answer was not interrupted by speech")]
    NotInterrupted,
    #[error("sound of the answer followed after it was interrupted")]
    OldSound,
    #[error("a question is silent")]
    SilentQuestion,
    #[error("stopped")]
    Stopped,
}

impl VoiceWorkload {
    /// These questions, asked by people who listen to the answer.
    pub fn new(questions: ClipSource) -> VoiceWorkload {
        let (turn_end, manner) = (TurnEnd::Semantic, Manner::Listens);
        VoiceWorkload { questions, turn_end, voice: None, manner, pause: None }
    }

    /// Measures each number of users.
    ///
    /// # Errors
    /// The server cannot speak the questions, or a record cannot be stored.
    pub(crate) fn measure(
        &self,
        bench: &mut Workbench<'_>,
        arrivals: &[Arrivals],
        rounds: usize,
    ) -> Result<Vec<Record>, BenchError> {
        let set = self.questions.clips(&bench.target)?;
        let mut session = VoiceRuns::new(bench.asker(), self.clone(), &set);
        let mut records = Vec::new();
        for users in arrivals.iter().map(Arrivals::connections) {
            let cells = [VoiceCell { users, rounds }];
            let name = session.name(&cells[0]);
            measure_in_turns(bench, &mut session, (&name, &cells), &mut records, |_| ())?;
        }
        Ok(records)
    }

    /// Limits the workload to the manner of one record.
    pub(crate) fn narrow_to(&mut self, record: &Record) {
        let was_interrupted =
            record.voice.as_ref().is_some_and(|voice| voice.barge_in_ms.is_some());
        if was_interrupted {
            self.manner = Manner::Interrupts;
        }
    }
}

impl TurnEnd {
    pub fn name(self) -> String {
        match self {
            TurnEnd::Semantic => "semantic".to_owned(),
            TurnEnd::Silence { ms } => format!("{ms} ms of silence"),
        }
    }
}
