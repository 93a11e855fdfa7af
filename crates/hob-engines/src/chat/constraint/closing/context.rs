//! Tracks whether the next byte of a JSON text is within a string, for the search for an end.
//! It is not a parser: it only separates strings from the text around them.

/// Whether the next byte is within a JSON string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Quoting {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl Quoting {
    fn after(self, text: &[u8]) -> Quoting {
        text.iter().fold(self, |quoting, byte| match (quoting, byte) {
            (Quoting::Outside, b'"') | (Quoting::Escaped, _) => Quoting::Inside,
            (Quoting::Inside, b'"') | (Quoting::Outside, _) => Quoting::Outside,
            (Quoting::Inside, b'\\') => Quoting::Escaped,
            (Quoting::Inside, _) => Quoting::Inside,
        })
    }
}

/// The context of the next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::chat::constraint) struct Context {
    pub(super) quoting: Quoting,
    /// The last byte that is not a space. A place is identified by it and by the possible continuations.
    pub(super) last: u8,
}

impl Context {
    pub(in crate::chat::constraint) fn after(self, text: &[u8]) -> Context {
        let last = text.iter().rev().find(|byte| **byte != b' ').copied();
        Context { quoting: self.quoting.after(text), last: last.unwrap_or(self.last) }
    }
}
