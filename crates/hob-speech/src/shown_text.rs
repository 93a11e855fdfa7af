//! A text as it is shown, in subtitles: without pauses, and without the phonemes that the user wrote for a word.
//! Every byte of the user's text has a place in it, so the times of words can be moved there.

use std::ops::Range;

use crate::markdown::pronunciation_mark;
use crate::segment::pause_mark;

/// A text without the marks that only say how it is spoken: `[pause:1s]`, and what is around the word in
/// `[word](/phonemes/)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownText {
    text: String,
    /// The bytes of each mark in the user's text, and how many bytes of marks stand before it.
    marks: Vec<(Range<usize>, usize)>,
}

impl ShownText {
    pub fn new(written: &str) -> ShownText {
        let mut shown = ShownText::default();
        let (mut from, mut hidden) = (0, 0);
        for mark in marks(written) {
            shown.text.push_str(&written[from..mark.start]);
            from = mark.end;
            let length = mark.len();
            shown.marks.push((mark, hidden));
            hidden += length;
        }
        shown.text.push_str(&written[from..]);
        shown
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The place of a byte of the user's text. A byte of a mark has the place of what follows the mark.
    pub fn place(&self, byte: usize) -> usize {
        let before = self.marks.partition_point(|(mark, _)| mark.start < byte);
        match self.marks[..before].last() {
            Some((mark, hidden)) => byte - (hidden + byte.min(mark.end) - mark.start),
            None => byte,
        }
    }
}

/// The bytes of all marks, in order.
fn marks(written: &str) -> Vec<Range<usize>> {
    let mut marks: Vec<Range<usize>> = Vec::new();
    let mut passed = 0;
    for (at, _) in written.match_indices('[') {
        if at < passed {
            continue;
        }
        if let Ok(Some(pause)) = pause_mark(written, at, true) {
            passed = at + pause.bytes;
            marks.push(at..passed);
        } else if let Some((word, bytes)) = pronunciation_mark(&written[at..])
            && !is_escaped(&written[..at])
        {
            passed = at + bytes;
            marks.extend([at..at + word.start, at + word.end..passed]);
        }
    }
    marks
}

/// Whether the backslash before a mark makes it text. Two backslashes are one that is text itself.
fn is_escaped(before: &str) -> bool {
    let backslashes = before.len() - before.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expect: &str) {
        assert_eq!(ShownText::new(written).as_str(), expect, "{written}");
    }

    #[test]
    fn a_text_is_shown_without_its_pauses() {
        check("[pause:1s]One[x] [pause:9ms]é.[pause:", "One[x] é.[pause:");
        check("no mark", "no mark");
    }

    #[test]
    fn a_word_is_shown_without_its_phonemes() {
        check("A [GIF](/ʤˈɪf/), [Ms Ng](/mˈɪz ˈɪŋ/)[pause:1s].", "A GIF, Ms Ng.");
        check("[a [é](/b/)[c](/b/)", "[a éc");
        for text in
            ["[page](https://x.org)", "[1] (/b/)", "[](/b/)", r"\[a](/b/)", "[a](/b/", "[a](/1/)"]
        {
            check(text, text);
        }
        check(r"\\[a](/b/)", r"\\a");
    }

    #[test]
    fn every_byte_has_its_place() {
        let shown = ShownText::new("a [é](/b/) c[pause:1s]");
        assert_eq!(shown.as_str(), "a é c");
        // The word, what follows it, a byte of a mark, the last word, and the end.
        let places = [0, 3, 5, 8, 12, 13, 23].map(|byte| shown.place(byte));
        assert_eq!(places, [0, 2, 4, 4, 5, 6, 6]);
    }
}
