//! Sentences in symbols → units that the model accepts.
//! Splits long sentences at the best inner boundary, joins very short ones, and gives each its pause.

use std::ops::Range;

use crate::alphabet::UNIT_PHONEMES_MAX;
use crate::phonemes::Sounds;
use crate::segment::End;
use crate::spoken::{SpokenUnit, SpokenWord};

/// Longer sentences lose quality towards their end and delay the sound, so they are split at an inner clause
/// boundary, if there is one.
const CLAUSE_PHONEMES_MAX: usize = 250;

/// A sentence without a clause boundary is split between words from this length on.
const WORDS_PHONEMES_MAX: usize = 420;

/// Fewer symbols than this sound like noise when they stand alone.
pub(crate) const UNIT_PHONEMES_MIN: usize = 10;

/// A part of a split sentence should not be shorter than this.
const PART_PHONEMES_MIN: usize = 40;

/// If the first sentence is longer than this, its first clause becomes a unit of its own. The front runs on the whole
/// unit before the first sound, so its time grows with the unit.
const FIRST_PHONEMES_MAX: usize = 120;

/// Whether a listener is still waiting for the first sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    First,
    Later,
}

/// Cuts a sentence into units. The last unit gets the pause of the sentence's end.
pub(crate) fn units(sounds: Sounds, end: End, turn: Turn) -> Vec<SpokenUnit> {
    let mut units = Vec::new();
    let mut rest = 0..sounds.symbols.len();
    if let Some(split) = first_clause(&sounds.symbols).filter(|_| turn == Turn::First) {
        units.push(part(&sounds, 0..split.at, split.pause_ms));
        rest.start = split.at;
    }
    while let Some(split) = split(&sounds.symbols, rest.clone()) {
        units.push(part(&sounds, rest.start..split.at, split.pause_ms));
        rest.start = split.at;
    }
    units.push(part(&sounds, rest, pause_ms(end, &sounds.symbols)));
    units.retain(|unit| !unit.words.is_empty());
    units
}

/// Appends `next` to a unit that is too short to stand alone.
pub(crate) fn joined(mut short: SpokenUnit, next: SpokenUnit) -> SpokenUnit {
    let gap = usize::from(!short.phonemes.ends_with(' '));
    let shift = short.phonemes.chars().count() + gap;
    if gap == 1 {
        short.phonemes.push(' ');
    }
    short.phonemes.push_str(&next.phonemes);
    short.words.extend(next.words.into_iter().map(|word| SpokenWord {
        phonemes: word.phonemes.start + shift..word.phonemes.end + shift,
        ..word
    }));
    short.pause_after_ms = next.pause_after_ms;
    short
}

pub(crate) fn length(unit: &SpokenUnit) -> usize {
    unit.phonemes.chars().count()
}

/// Whether a unit of this length has room for `more` symbols and a space.
pub(crate) fn has_room(unit: &SpokenUnit, more: usize) -> bool {
    length(unit) + 1 + more <= UNIT_PHONEMES_MAX
}

/// Comma < semicolon < full stop < line < paragraph.
fn pause_ms(end: End, symbols: &[char]) -> u32 {
    match end {
        End::Word => 0,
        End::Comma => 110,
        End::Clause => 170,
        End::Sentence if symbols.last() == Some(&'…') => 350,
        End::Sentence => 260,
        End::Line => 320,
        End::Paragraph => 600,
    }
}

struct Split {
    /// The first symbol of the next part.
    at: usize,
    pause_ms: u32,
}

/// The position after the first clause of a long sentence. The clause has at least [`PART_PHONEMES_MIN`] symbols,
/// which is a phrase with its own melody rather than a few words.
fn first_clause(symbols: &[char]) -> Option<Split> {
    if symbols.len() <= FIRST_PHONEMES_MAX {
        return None;
    }
    let at = (PART_PHONEMES_MIN..FIRST_PHONEMES_MAX.min(symbols.len() - PART_PHONEMES_MIN))
        .find(|&at| symbols[at] == ' ' && clause_rank(symbols[at - 1]).is_some())?;
    Some(Split { at: at + 1, pause_ms: clause_pause_ms(symbols[at - 1]) })
}

/// Where to cut `range` if it is too long. The parts get about equal lengths.
fn split(symbols: &[char], range: Range<usize>) -> Option<Split> {
    let length = range.len();
    if length <= CLAUSE_PHONEMES_MAX {
        return None;
    }
    let ideal = range.start + length / length.div_ceil(CLAUSE_PHONEMES_MAX);
    let window = range.start + PART_PHONEMES_MIN
        ..(range.start + WORDS_PHONEMES_MAX).min(range.end - PART_PHONEMES_MIN);
    let boundary = |rank: fn(char) -> Option<usize>| {
        // A weaker mark is preferred only if it is much nearer to the middle.
        let cost = |at: usize| Some(at.abs_diff(ideal) + rank(symbols[at - 1])?);
        window
            .clone()
            .filter(|&at| symbols[at] == ' ')
            .filter_map(|at| Some((cost(at)?, at)))
            .min()
            .map(|(_, at)| at)
    };
    if let Some(at) = boundary(clause_rank) {
        return Some(Split { at: at + 1, pause_ms: clause_pause_ms(symbols[at - 1]) });
    }
    if length <= WORDS_PHONEMES_MAX {
        return None;
    }
    let at = boundary(|_| Some(0)).map_or(range.start + WORDS_PHONEMES_MAX, |space| space + 1);
    Some(Split { at, pause_ms: 0 })
}

fn clause_rank(mark: char) -> Option<usize> {
    match mark {
        '.' | '!' | '?' | '…' => Some(0),
        ';' | ':' => Some(10),
        '—' | ')' => Some(40),
        ',' => Some(50),
        _ => None,
    }
}

fn clause_pause_ms(mark: char) -> u32 {
    match mark {
        '.' | '!' | '?' | '…' => 260,
        ';' | ':' => 170,
        _ => 110,
    }
}

/// The symbols of `range` without spaces at its edges, and the words that begin in it. A word that was cut belongs to
/// both parts.
fn part(sounds: &Sounds, range: Range<usize>, pause_after_ms: u32) -> SpokenUnit {
    let inside = &sounds.symbols[range.clone()];
    let lead = inside.iter().take_while(|c| **c == ' ').count();
    let trail = inside[lead..].iter().rev().take_while(|c| **c == ' ').count();
    let kept = range.start + lead..range.end - trail;
    let words = sounds.words.iter().filter_map(|word| {
        let start = word.phonemes.start.max(kept.start);
        let end = word.phonemes.end.min(kept.end);
        (start < end).then(|| SpokenWord {
            span: word.span.clone(),
            phonemes: start - kept.start..end - kept.start,
        })
    });
    SpokenUnit {
        phonemes: sounds.symbols[kept.clone()].iter().collect(),
        words: words.collect(),
        pause_after_ms,
    }
}
