//! Tracks whether the next byte of a JSON text is within a string, for the search for a valid end of the answer.
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
    fn after(self, byte: u8) -> Quoting {
        match (self, byte) {
            (Quoting::Outside, b'"') | (Quoting::Escaped, _) => Quoting::Inside,
            (Quoting::Inside, b'"') | (Quoting::Outside, _) => Quoting::Outside,
            (Quoting::Inside, b'\\') => Quoting::Escaped,
            (Quoting::Inside, _) => Quoting::Inside,
        }
    }
}

/// The context of the next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::chat::constraint) struct Context {
    pub(super) quoting: Quoting,
    /// The last byte that is not a space. The search recognises a position of the grammar by this byte and by the bytes that
    /// may follow.
    pub(super) last: u8,
    /// Open lists and objects.
    pub(in crate::chat::constraint) depth: u32,
}

impl Context {
    /// Whether the next byte is not within a string.
    pub(in crate::chat::constraint) fn is_outside(self) -> bool {
        self.quoting == Quoting::Outside
    }

    pub(in crate::chat::constraint) fn after(self, text: &[u8]) -> Context {
        let mut next = self;
        for &byte in text {
            match (next.quoting, byte) {
                (Quoting::Outside, b'{' | b'[') => next.depth += 1,
                (Quoting::Outside, b'}' | b']') => next.depth = next.depth.saturating_sub(1),
                _ => {}
            }
            next.quoting = next.quoting.after(byte);
            next.last = if byte == b' ' { next.last } else { byte };
        }
        next
    }
}
