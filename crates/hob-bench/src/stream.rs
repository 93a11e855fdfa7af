//! When the sound of a text comes: while it is made, sentence by sentence, or all of it at the end.
//! Asked for in a raw format and a packed one: an encoder that holds sound back would do it in one of them only.
//!
//! Nothing is read in pieces of 1 KiB, as a client would do whose reads wait until their buffer is full. A read here
//! returns with whatever is there, so that a smaller one would only cut the same moment into several.

use crate::record::{Kind, Record};
use crate::runs::BenchError;
use crate::speech::{Asking, Cell, Choice, Offer, Seen, Speaker, Text};
use crate::workbench::Workbench;

/// What is wanted to be measured.
#[derive(Clone, Debug)]
pub struct Wish {
    /// One sentence should be among them, before longer ones: these are held against it.
    pub texts: Vec<Text>,
    pub choice: Choice,
    pub asked: Vec<Asked>,
    /// Requests in a run, one after the other.
    pub rounds: usize,
}

/// Whether the server is to send sound as it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Yes, in the way in which it takes that.
    Streamed,
    Whole,
}

/// Measures every cell that is wished for; each is kept once it is done.
///
/// # Errors
/// The server does not speak, or a record cannot be kept.
pub fn measure(bench: &mut Workbench<'_>, wish: &Wish) -> Result<Vec<Record>, BenchError> {
    watch(bench, wish, &mut |_, _| ())
}

/// The same, and tells when the sound of each came, which a record has no place for.
///
/// # Errors
/// See [`measure`].
pub fn watch(
    bench: &mut Workbench<'_>,
    wish: &Wish,
    seen: &mut Seen<'_>,
) -> Result<Vec<Record>, BenchError> {
    let speaker = Speaker::prepare(bench.asker(), &wish.choice)?;
    speaker.measure(bench, &cells(&speaker, wish), seen)
}

fn cells(speaker: &Speaker<'_>, wish: &Wish) -> Vec<Cell> {
    let mut cells = Vec::new();
    for voice in &speaker.voices {
        for offer in &speaker.offers {
            for asking in wish.asked.iter().filter_map(|asked| asked.of(*offer)) {
                cells.extend(wish.texts.iter().map(|text| Cell {
                    kind: Kind::Stream,
                    text: *text,
                    format: offer.format,
                    voice: voice.clone(),
                    asking,
                    users: 1,
                    rounds: wish.rounds,
                }));
            }
        }
    }
    cells
}

impl Asked {
    /// None where the server takes no word about it, and the same would be asked twice.
    fn of(self, offer: Offer) -> Option<Asking> {
        match self {
            Asked::Streamed => Some(offer.asking),
            Asked::Whole => Some(Asking::Whole).filter(|_| offer.asking != Asking::AsIs),
        }
    }
}
