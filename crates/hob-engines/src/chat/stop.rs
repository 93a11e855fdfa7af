//! Stop texts: an answer ends before the first of them, wherever its tokens were cut.
//! Text that may begin a stop text is held back, and so are the bytes of an incomplete character.

use super::dialect::begun_len;

/// Looks for stop texts in a text that comes in pieces.
#[derive(Clone, Debug)]
pub(super) struct StopScanner {
    stops: Vec<String>,
    /// What may be the beginning of a stop text.
    held: String,
}

/// Text that is no part of a stop text, and whether a stop text follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scanned {
    pub(super) text: String,
    pub(super) has_stopped: bool,
}

impl StopScanner {
    pub(super) fn new(stops: Vec<String>) -> StopScanner {
        let stops = stops.into_iter().filter(|stop| !stop.is_empty()).collect();
        StopScanner { stops, held: String::new() }
    }

    pub(super) fn push(&mut self, piece: &str) -> Scanned {
        if self.stops.is_empty() {
            return Scanned { text: piece.to_owned(), has_stopped: false };
        }
        self.held.push_str(piece);
        if let Some(at) = self.first_stop() {
            self.held.truncate(at);
            return Scanned { text: std::mem::take(&mut self.held), has_stopped: true };
        }
        let keep = self.stops.iter().map(|stop| begun_len(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        Scanned { text: std::mem::replace(&mut self.held, rest), has_stopped: false }
    }

    /// The text that was held back. No more will come.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// The beginning of the stop text that ends first. So the result does not depend on how the text is cut into pieces.
    fn first_stop(&self) -> Option<usize> {
        let found = self.stops.iter().filter_map(|stop| {
            let at = self.held.find(stop)?;
            Some((at + stop.len(), at))
        });
        found.min().map(|(_, at)| at)
    }
}

/// Joins the bytes of tokens to characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Characters {
    /// Up to three bytes of an incomplete character.
    begun: Vec<u8>,
}

impl Characters {
    /// The characters that are complete now. Invalid bytes become U+FFFD.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.begun.extend(bytes);
        let mut text = String::new();
        for chunk in self.begun.utf8_chunks() {
            text.push_str(chunk.valid());
            // The last bytes may be an incomplete character. Then this sign is removed below.
            if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        let begun = unfinished(&self.begun);
        if begun > 0 {
            text.pop();
        }
        self.begun.drain(..self.begun.len() - begun);
        text
    }
}

/// Bytes at the end that may be the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = bytes.utf8_chunks().last().map_or(&[][..], |last| last.invalid());
    let is_begun = str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
    if is_begun { tail.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Pushes `text` in pieces that end at `cuts`; what came out, and whether it stopped.
    fn scan(stops: &[&str], text: &str, cuts: &[usize]) -> (String, bool) {
        let mut scanner = StopScanner::new(stops.iter().map(|&stop| stop.to_owned()).collect());
        let mut out = String::new();
        let mut from = 0;
        for &cut in cuts.iter().chain([&text.len()]) {
            let to = text.floor_char_boundary(cut).max(from);
            let scanned = scanner.push(&text[from..to]);
            out.push_str(&scanned.text);
            if scanned.has_stopped {
                return (out, true);
            }
            from = to;
        }
        out.push_str(&scanner.finish());
        (out, false)
    }

    #[test]
    fn the_answer_ends_before_the_first_stop() {
        for (stops, text, expected) in [
            (&["\n\n"][..], "one\ntwo\n\nthree", ("one\ntwo", true)),
            (&["b", "abc"], "xabcd", ("xa", true)),
            (&["END"], "the EN", ("the EN", false)),
            (&[""], "text", ("text", false)),
            (&[], "text", ("text", false)),
            (&["é!"], "café!", ("caf", true)),
        ] {
            assert_eq!(scan(stops, text, &[]), (expected.0.to_owned(), expected.1), "{text}");
        }
    }

    #[test]
    fn only_what_may_be_a_stop_is_held_back() {
        let mut scanner = StopScanner::new(vec!["</s>".to_owned()]);
        assert_eq!(scanner.push("a <").text, "a ");
        assert_eq!(scanner.push("b").text, "<b");
    }

    #[test]
    fn bytes_wait_for_the_rest_of_their_character() {
        let mut characters = Characters::default();
        let fire = "🔥".as_bytes();
        assert_eq!(characters.push(&fire[..2]), "");
        assert_eq!(characters.push(&fire[2..]), "🔥");
        assert_eq!(characters.push(&[0xFF, b'a', 0xC3]), "\u{FFFD}a");
        assert_eq!(characters.push(&[0xA9]), "é");
    }

    proptest! {
        #[test]
        fn where_the_text_is_cut_does_not_matter(text in "[abé ]{0,30}", cuts in vec(0_usize..40, 0..9)) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= text.len()).collect();
            cuts.sort_unstable();
            let stops = ["ab é", "bb", "é a"];
            prop_assert_eq!(scan(&stops, &text, &cuts), scan(&stops, &text, &[]));
        }

        #[test]
        fn no_character_is_lost(text in "\\PC{0,20}", size in 1_usize..5) {
            let mut characters = Characters::default();
            let joined: String =
                text.as_bytes().chunks(size).map(|bytes| characters.push(bytes)).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
