//! So many users at once, whatever they ask: what a measurement of many needs to know of the question.
//! Words and sound are such questions. Another kind of model becomes one by answering the same few things.

mod chatting;
mod listening;

use jiff::Timestamp;

use crate::calibrate::{Calibration, Pace};
use crate::llm::{Shape, ThinkingWish};
use crate::record::Record;
use crate::runs::{Account, BenchError, Block, Runs, Subject};
use crate::speech::{Choice, Text};
use crate::terms::Metric;
use crate::workbench::Workbench;

use chatting::Chatting;
use listening::Listening;

/// What is asked, and by how many.
#[derive(Clone, Debug)]
pub struct Wish {
    pub question: Question,
    /// Users at once, of each cell.
    pub users: Vec<usize>,
    /// Requests of each user in a run.
    pub rounds: usize,
}

#[derive(Clone, Debug)]
pub enum Question {
    Words { shape: Shape, thinking: ThinkingWish },
    Sound { text: Text, choice: Choice },
}

/// A question that many can ask at once.
pub(crate) trait Crowd {
    /// As it is told of.
    fn name(&self, users: usize) -> String;

    /// Asks once.
    ///
    /// # Errors
    /// It could not begin.
    fn block(
        &mut self,
        users: usize,
        calibration: Option<&Calibration>,
    ) -> Result<Block, BenchError>;

    /// What has to be sure.
    fn leading(&self) -> &'static [Metric];

    /// How a known server would have to answer to be like this one.
    fn pace(&self, users: usize, warm: &Block) -> Option<Pace>;

    /// What is to be said of its runs.
    fn account<'r>(&mut self, users: usize, runs: &'r Runs, started: Timestamp) -> Account<'r>;

    /// Adds to a record what only this question can say.
    fn add(&mut self, _users: usize, _runs: &Runs, _record: &mut Record) {}
}

/// What is done with so many users, of each.
pub(crate) type Each =
    fn(&mut Workbench<'_>, &mut dyn Crowd, &[usize]) -> Result<Vec<Record>, BenchError>;

/// Measures the question in every way in which it can be asked, one after the other.
///
/// # Errors
/// The server does not answer it, or `each` fails.
pub(crate) fn in_each_way(
    bench: &mut Workbench<'_>,
    wish: &Wish,
    each: Each,
) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    match &wish.question {
        Question::Words { shape, thinking } => {
            let mut chat = Chatting::prepare(bench.asker(), *shape, *thinking, wish)?;
            for thinking in chat.ways() {
                chat.thinking = thinking;
                records.extend(each(bench, &mut chat, &wish.users)?);
            }
        }
        Question::Sound { text, choice } => {
            let mut listening = Listening::prepare(bench.asker(), *text, choice, wish.rounds)?;
            for way in listening.ways() {
                listening.way = way;
                records.extend(each(bench, &mut listening, &wish.users)?);
            }
        }
    }
    Ok(records)
}

/// One number of users, asked again and again.
pub(crate) struct Together<'c> {
    pub(crate) crowd: &'c mut dyn Crowd,
    pub(crate) users: usize,
}

impl Subject for Together<'_> {
    fn block(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        self.crowd.block(self.users, calibration)
    }

    fn leading(&self) -> &[Metric] {
        self.crowd.leading()
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        self.crowd.pace(self.users, warm)
    }
}
