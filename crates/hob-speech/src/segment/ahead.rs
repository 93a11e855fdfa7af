//! Looks ahead in text that may still be arriving: present, at the end, or not known yet.
//! "Not known yet" is a value of its own, so no decision depends on where the text was cut.

/// The decision depends on text that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeedMore;

pub(super) type Known<T> = Result<T, NeedMore>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead<'a> {
    pub(super) text: &'a str,
    pub(super) ended: bool,
}

impl Ahead<'_> {
    /// The character at byte `at`; `None` at the end of the text.
    pub(super) fn char_at(self, at: usize) -> Known<Option<char>> {
        match self.text[at.min(self.text.len())..].chars().next() {
            Some(c) => Ok(Some(c)),
            None if self.ended => Ok(None),
            None => Err(NeedMore),
        }
    }

    /// Returns the first position at or after `at` whose character does not match; at most `bytes_max` further.
    pub(super) fn skip(
        self,
        mut at: usize,
        bytes_max: usize,
        fits: impl Fn(char) -> bool,
    ) -> Known<usize> {
        let limit = at + bytes_max;
        while at < limit {
            match self.char_at(at)? {
                Some(c) if fits(c) => at += c.len_utf8(),
                _ => break,
            }
        }
        Ok(at)
    }
}
