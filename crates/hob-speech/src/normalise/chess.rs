//! Moves of chess: "Nf3", "Qxd5+", "exd5", "Rxe8#", "e8=Q".
//! A piece and its square can also be an element and its count ("Na2"). Then another move shows that it is chess.

use std::ops::Range;

use super::View;
use super::chemistry::is_element;
use super::item::{Item, Word};
use crate::reading::Reading;

/// The longest move: "Qa1xb2+".
const MOVE_BYTES_MAX: usize = 7;

/// A move that needs this reader. "e4" is read as other mixtures of letters and digits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Move<'a> {
    piece: Option<&'static str>,
    /// The file, rank or square that the piece leaves; empty if it is clear.
    from: &'a str,
    takes: bool,
    square: &'a str,
    promoted: Option<&'static str>,
    ending: Option<&'static str>,
}

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let found = parse(&word.text)?;
    let is_other = |other: &Word| other.text != word.text && is_certain(&other.text);
    if !is_certain(&word.text) && !view.items.iter().filter_map(Item::word).any(is_other) {
        return None;
    }
    say(found, &word.span(), out);
    Some(1)
}

fn parse(text: &str) -> Option<Move<'_>> {
    if !text.is_ascii() || text.len() > MOVE_BYTES_MAX {
        return None;
    }
    let (rest, ending) = match (text.strip_suffix('+'), text.strip_suffix('#')) {
        (Some(rest), _) => (rest, Some("check")),
        (None, Some(rest)) => (rest, Some("mate")),
        (None, None) => (text, None),
    };
    let (rest, promoted) = match rest.split_once('=') {
        Some((rest, piece)) => (rest, Some(piece_name(piece)?)),
        None => (rest, None),
    };
    let piece = rest.get(..1).and_then(piece_name);
    let rest = if piece.is_some() { &rest[1..] } else { rest };
    let (from, square) = rest.split_at(rest.len().checked_sub(2)?);
    let (from, takes) = from.strip_suffix('x').map_or((from, false), |from| (from, true));
    let is_clear = match piece {
        Some(_) => from.len() < 2 && from.bytes().all(|b| is_file(b) || is_rank(b)),
        None => from.bytes().all(is_file) && from.len() == usize::from(takes),
    };
    let is_needed = piece.is_some() || takes || promoted.is_some();
    let found = Move { piece, from, takes, square, promoted, ending };
    (is_square(square) && is_needed && is_clear).then_some(found)
}

/// Whether the text is a move and nothing else.
fn is_certain(text: &str) -> bool {
    let is_other = text.get(..2).is_some_and(is_element);
    parse(text).is_some_and(|found| found.takes || found.promoted.is_some() || !is_other)
}

fn is_file(b: u8) -> bool {
    (b'a'..=b'h').contains(&b)
}

fn is_rank(b: u8) -> bool {
    (b'1'..=b'8').contains(&b)
}

fn is_square(text: &str) -> bool {
    matches!(text.as_bytes(), [file, rank] if is_file(*file) && is_rank(*rank))
}

fn piece_name(letter: &str) -> Option<&'static str> {
    Some(match letter {
        "K" => "king",
        "Q" => "queen",
        "R" => "rook",
        "B" => "bishop",
        "N" => "knight",
        _ => return None,
    })
}

/// All words have the bytes of the move.
fn say(found: Move<'_>, span: &Range<usize>, out: &mut Reading) {
    out.say(span.clone(), found.piece.unwrap_or_default());
    place(found.from, span, out);
    out.say(span.clone(), if found.takes { "takes" } else { "" });
    place(found.square, span, out);
    out.say(span.clone(), found.promoted.unwrap_or_default());
    out.say(span.clone(), found.ending.unwrap_or_default());
}

/// A file by the letter's name, and a rank by its number.
fn place(text: &str, span: &Range<usize>, out: &mut Reading) {
    for part in text.split_inclusive(|_: char| true) {
        match part.starts_with(|c: char| c.is_ascii_digit()) {
            true => out.say(span.clone(), &super::cardinal::cardinal(part, false)),
            false => out.spell(span.clone(), part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_known_and_other_words_are_not() {
        for text in ["Nf3", "Qxd5+", "exd5", "Rxe8#", "e8=Q", "Bb5", "Qh7#", "Qad1", "N5xf3"] {
            assert!(is_certain(text), "{text}");
        }
        for text in ["Na2", "Re8", "Be2"] {
            assert!(parse(text).is_some() && !is_certain(text), "{text}");
        }
        for text in ["e4", "Nf9", "Fe3+", "B12", "b5+", "Kb", "d", "", "é4", "Nd10", "box5"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
