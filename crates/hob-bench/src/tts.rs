//! How fast a server speaks: texts of known length, in formats and voices, by one user or several.
//! The load is not in it: each cell is warmed up first, and its first request is kept apart.

use crate::record::{Kind, Record};
use crate::runs::BenchError;
use crate::speech::{Cell, Choice, Speaker, Text};
use crate::workbench::Workbench;

/// What is wanted to be measured.
#[derive(Clone, Debug)]
pub struct Wish {
    pub texts: Vec<Text>,
    pub choice: Choice,
    /// Users at once; each waits for its answer.
    pub users: Vec<usize>,
    /// Requests of each user in a run.
    pub rounds: usize,
}

/// Measures every cell that is wished for; each is kept once it is done.
///
/// # Errors
/// The server does not speak, or a record cannot be kept.
pub fn measure(bench: &mut Workbench<'_>, wish: &Wish) -> Result<Vec<Record>, BenchError> {
    let speaker = Speaker::prepare(bench.asker(), &wish.choice)?;
    speaker.measure(bench, &cells(&speaker, wish), &mut |_, _| ())
}

/// All texts of one format before the next, so that what needs them all is known soon.
fn cells(speaker: &Speaker<'_>, wish: &Wish) -> Vec<Cell> {
    let mut cells = Vec::new();
    for voice in &speaker.voices {
        for offer in &speaker.offers {
            for users in &wish.users {
                cells.extend(wish.texts.iter().map(|text| Cell {
                    kind: Kind::Tts,
                    text: *text,
                    format: offer.format,
                    voice: voice.clone(),
                    asking: offer.asking,
                    users: *users,
                    rounds: wish.rounds,
                }));
            }
        }
    }
    cells
}
