//! Where a scripted server's memory ends: contexts that it does not start with, prompts that kill it.
//! Kept apart from the rest of a script, because what happens there ends the server and not an answer.

use super::script::{parsed, positive, put};

/// In tokens; nothing happens up to each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A longer context does not start.
    pub load_max: u32,
    /// A longer prompt kills it.
    pub prefill_max: u32,
    /// It dies once prompt and answer together are longer.
    pub decode_max: u32,
    /// With a longer context it writes at a quarter of its speed.
    pub spill_max: u32,
    /// Says at `/props` which context it has.
    pub tells_context: bool,
    /// A prompt that is too long is cut, and nobody told.
    pub truncates: bool,
}

pub(super) const NAMES: [&str; 6] =
    ["load_max", "prefill_max", "decode_max", "spill_max", "tells_context", "truncates"];

impl Default for Limits {
    fn default() -> Limits {
        let max = u32::MAX;
        Limits {
            load_max: max,
            prefill_max: max,
            decode_max: max,
            spill_max: max,
            tells_context: false,
            truncates: false,
        }
    }
}

impl Limits {
    /// See [`super::Script`]'s own.
    pub(super) fn taken(&mut self, name: &str, value: &str) -> Option<Option<()>> {
        Some(match name {
            "load_max" => put(&mut self.load_max, positive(value)),
            "prefill_max" => put(&mut self.prefill_max, positive(value)),
            "decode_max" => put(&mut self.decode_max, positive(value)),
            "spill_max" => put(&mut self.spill_max, positive(value)),
            "tells_context" => put(&mut self.tells_context, parsed(value)),
            "truncates" => put(&mut self.truncates, parsed(value)),
            _ => return None,
        })
    }

    /// The token before which it dies, of an answer behind so long a prompt.
    pub(super) fn dies_at(&self, prompt_tokens: u32, tokens: u32) -> Option<u32> {
        if prompt_tokens > self.prefill_max {
            return Some(0);
        }
        let left = self.decode_max.saturating_sub(prompt_tokens);
        (tokens > left).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_dies_where_memory_ends() {
        let limits = Limits { prefill_max: 100, decode_max: 110, ..Limits::default() };
        let rows = [(101, 1, Some(0)), (100, 10, None), (100, 11, Some(10)), (40, 64, None)];
        for (prompt, tokens, expected) in rows {
            assert_eq!(limits.dies_at(prompt, tokens), expected, "{prompt} {tokens}");
        }
    }
}
