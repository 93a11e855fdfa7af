//! Sentences in symbols → units that the model takes: long ones split at the best inner boundary,
//! very short ones joined, each with its pause.

use std::ops::Range;

use crate::alphabet::UNIT_PHONEMES_MAX;
use crate::phonemes::Sounds;
use crate::segment::End;
use crate::spoken::{SpokenUnit, SpokenWord};

/// Longer sentences fade towards their end and make the listener wait, so they are split at an
/// inner clause boundary, if there is one.
const CLAUSE_PHONEMES_MAX: usize = 250;

/// What has no clause boundary is split between words from here on.
const WORDS_PHONEMES_MAX: usize = 420;

/// Fewer symbols than this come out as noise when they stand alone.
pub(crate) const UNIT_PHONEMES_MIN: usize = 10;

/// Where a split part should not be shorter than this.
const PART_PHONEMES_MIN: usize = 40;

/// A first sentence longer than this gives its first clause away early, if it has one: the front
/// runs on the whole unit before the first sound, and its time grows with the unit.
const FIRST_PHONEMES_MAX: usize = 120;

/// Whether a listener still waits for the first sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    First,
    Later,
}

/// Cuts a sentence into units; the last one gets the pause of the sentence's own end.
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

/// Whether a unit this long can take `more` symbols and a space.
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

/// Behind the first clause of a long sentence: never less than [`PART_PHONEMES_MIN`], which is a
/// phrase with a melody of its own and not a few words.
fn first_clause(symbols: &[char]) -> Option<Split> {
    if symbols.len() <= FIRST_PHONEMES_MAX {
        return None;
    }
    let at = (PART_PHONEMES_MIN..FIRST_PHONEMES_MAX.min(symbols.len() - PART_PHONEMES_MIN))
        .find(|&at| symbols[at] == ' ' && clause_rank(symbols[at - 1]).is_some())?;
    Some(Split { at: at + 1, pause_ms: clause_pause_ms(symbols[at - 1]) })
}

/// Where to cut `range`, if it is too long: the parts come out about equally long.
fn split(symbols: &[char], range: Range<usize>) -> Option<Split> {
    let length = range.len();
    if length <= CLAUSE_PHONEMES_MAX {
        return None;
    }
    let ideal = range.start + length / length.div_ceil(CLAUSE_PHONEMES_MAX);
    let window = range.start + PART_PHONEMES_MIN
        ..(range.start + WORDS_PHONEMES_MAX).min(range.end - PART_PHONEMES_MIN);
    let boundary = |rank: fn(char) -> Option<usize>| {
        // A weaker mark must be that much nearer to the middle to be preferred.
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

/// The symbols of `range` without the spaces at its edges, and the words that begin in it. A word
/// that was cut through belongs to both parts.
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
