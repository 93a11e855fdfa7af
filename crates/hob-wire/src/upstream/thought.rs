//! Thinking that a server left in the text: `<think>…</think>` at the beginning of an answer.
//! Elsewhere the tags are text: an answer may speak of them.

use hob_core::ChatEvent;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Takes the text of an answer as it comes and gives it back as thinking and text.
#[derive(Debug, Default)]
pub(crate) struct ThoughtSplitter {
    state: ThoughtState,
    /// What may be the beginning of a tag.
    held: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThoughtState {
    /// Nothing but blanks came.
    #[default]
    Beginning,
    /// Line breaks before the first thought say nothing.
    BeforeThought,
    Thinking,
    /// Blanks between thinking and text say nothing.
    BehindThinking,
    Text,
}

impl ThoughtSplitter {
    /// Nothing is known yet: there were blanks, or what may become a tag.
    pub(crate) fn is_undecided(&self) -> bool {
        self.state == ThoughtState::Beginning
    }

    pub(crate) fn is_thinking(&self) -> bool {
        self.state == ThoughtState::Thinking
    }

    pub(crate) fn push(&mut self, piece: &str, said: &mut Vec<ChatEvent>) {
        if self.state == ThoughtState::Text {
            say(ChatEvent::Text, piece, said);
            return;
        }
        let text = std::mem::take(&mut self.held) + piece;
        self.split(&text, said);
    }

    /// Text was held back in case it began a mark of thinking. At the end it is plain text.
    pub(crate) fn end(&mut self, said: &mut Vec<ChatEvent>) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            ThoughtState::Thinking => say(ChatEvent::Reasoning, &held, said),
            _ => say(ChatEvent::Text, &held, said),
        }
        self.state = ThoughtState::Text;
    }

    fn split(&mut self, text: &str, said: &mut Vec<ChatEvent>) {
        match self.state {
            ThoughtState::Beginning => {
                let begun = text.trim_start();
                if let Some(thought) = begun.strip_prefix(OPEN) {
                    self.state = ThoughtState::BeforeThought;
                    self.split(thought, said);
                } else if OPEN.starts_with(begun) {
                    text.clone_into(&mut self.held);
                } else {
                    self.state = ThoughtState::Text;
                    say(ChatEvent::Text, text, said);
                }
            }
            ThoughtState::BeforeThought => {
                let thought = text.trim_start_matches('\n');
                if !thought.is_empty() {
                    self.state = ThoughtState::Thinking;
                    self.split(thought, said);
                }
            }
            ThoughtState::Thinking => match text.split_once(CLOSE) {
                Some((thought, rest)) => {
                    say(ChatEvent::Reasoning, thought.trim_end_matches('\n'), said);
                    self.state = ThoughtState::BehindThinking;
                    self.split(rest, said);
                }
                None => {
                    let safe = text.len() - tail(text);
                    say(ChatEvent::Reasoning, &text[..safe], said);
                    text[safe..].clone_into(&mut self.held);
                }
            },
            ThoughtState::BehindThinking => {
                let rest = text.trim_start();
                if !rest.is_empty() {
                    self.state = ThoughtState::Text;
                    say(ChatEvent::Text, rest, said);
                }
            }
            ThoughtState::Text => say(ChatEvent::Text, text, said),
        }
    }
}

/// Bytes at the end of `text` that may belong to the closing tag, line breaks before it included.
fn tail(text: &str) -> usize {
    let begun = (1..CLOSE.len()).rev().find(|&length| text.ends_with(&CLOSE[..length]));
    let begun = begun.unwrap_or(0);
    let before = &text[..text.len() - begun];
    begun + before.len() - before.trim_end_matches('\n').len()
}

fn say(kind: fn(String) -> ChatEvent, text: &str, said: &mut Vec<ChatEvent>) {
    if !text.is_empty() {
        said.push(kind(text.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let (mut splitter, mut said) = (ThoughtSplitter::default(), Vec::new());
        for piece in pieces {
            splitter.push(piece, &mut said);
        }
        splitter.end(&mut said);
        let (mut thought, mut text) = (String::new(), String::new());
        for event in said {
            match event {
                ChatEvent::Reasoning(piece) => thought += &piece,
                ChatEvent::Text(piece) => text += &piece,
                other => panic!("{other:?}"),
            }
        }
        (thought, text)
    }

    #[test]
    fn thinking_is_taken_out_of_the_beginning_only() {
        for (whole, thought, text) in [
            ("Hello", "", "Hello"),
            ("<think>\nSo.\n</think>\n\nHi", "So.", "Hi"),
            ("\n<think></think>Hi", "", "Hi"),
            ("<think>\n\n</think>\n\nHi", "", "Hi"),
            ("<think>never closed", "never closed", ""),
            ("Say <think>x</think>", "", "Say <think>x</think>"),
            ("<thin", "", "<thin"),
            ("<think>a</thin", "a</thin", ""),
            (" x", "", " x"),
            ("", "", ""),
        ] {
            assert_eq!(split(&[whole]), (thought.to_owned(), text.to_owned()), "{whole:?}");
        }
    }

    proptest! {
        #[test]
        fn where_it_is_cut_does_not_matter(cuts in prop::collection::vec(0usize..60, 0..8)) {
            let whole = "<think>\nIs 1 < 2, or </this>?\n\n</think>\n\nYes </think> it is.";
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &whole[cut[0]..cut[1]]).collect();
            prop_assert_eq!(split(&pieces), split(&[whole]));
        }
    }
}
