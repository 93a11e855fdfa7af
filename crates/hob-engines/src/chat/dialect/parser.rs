//! Splits a model's answer into thinking, text and tool calls as it arrives.
//! The result does not depend on where the answer is cut. Stop texts are handled elsewhere.

use std::mem;

use super::answer_part::{AnswerPart, AnswerParts};
use super::block::{Block, BlockFeedResult};
use super::marks::{Opening, opening, settled_len};
use super::{ModelDialect, ThinkingMarks, ToolDialect, ToolsOffered, Trigger, TriggerPosition};

/// Splits one answer. It holds back at most one mark with the white space before it, or one call that is not certain yet. So
/// the answer's token limit also limits its memory.
pub struct AnswerParser {
    thinking: Option<ThinkingMarks>,
    tools: Option<(ToolDialect, ToolsOffered)>,
    state: State,
    /// Text that was read and not returned.
    held: String,
    /// Whether only white space was returned as text.
    at_start: bool,
    /// Whether only white space came since the last call.
    after_call: bool,
    /// Number of calls returned so far.
    calls: u32,
}

enum State {
    /// A thinking block may open.
    Start,
    Thinking {
        begun: bool,
    },
    /// Before the first letter of the answer. The marks from this one on may still come.
    BeforeAnswer {
        next_mark: usize,
    },
    Answer,
    Block(Box<Block>),
}

/// Result of a step: it changed the state, or needs more text.
#[derive(PartialEq, Eq)]
enum Step {
    Taken,
    Waits,
}

impl AnswerParser {
    /// `starts_in_thinking` comes from the rendered prompt. Without `offered`, no text is a call.
    pub fn new(
        dialect: &ModelDialect,
        starts_in_thinking: bool,
        offered: Option<ToolsOffered>,
    ) -> AnswerParser {
        AnswerParser {
            thinking: dialect.thinking,
            tools: offered.filter(|o| !o.names.is_empty()).map(|offered| (dialect.tools, offered)),
            state: match dialect.thinking {
                Some(_) if starts_in_thinking => State::Thinking { begun: false },
                Some(_) => State::Start,
                None => State::Answer,
            },
            held: String::new(),
            at_start: true,
            after_call: false,
            calls: 0,
        }
    }

    /// For a prompt that ends within the answer: thinking is over, and white space is part of the text.
    #[must_use]
    pub fn within_answer(self) -> AnswerParser {
        AnswerParser { state: State::Answer, at_start: false, ..self }
    }

    /// Whether the next text is thinking, judging by the text so far.
    pub fn is_thinking(&self) -> bool {
        matches!(self.state, State::Thinking { .. })
    }

    pub fn push(&mut self, text: &str) -> Vec<AnswerPart> {
        let mut pieces = AnswerParts::default();
        self.held.push_str(text);
        while self.step(&mut pieces) == Step::Taken {}
        pieces.into_list()
    }

    /// Ends the answer and returns the text that was held back.
    pub fn finish(mut self) -> Vec<AnswerPart> {
        let mut pieces = AnswerParts::default();
        let held = mem::take(&mut self.held);
        match self.state {
            State::Thinking { .. } => pieces.reasoning(&held),
            State::Block(block) if block.ends_with_a_call() => {}
            State::Block(block) => pieces.text(&block.into_text()),
            State::BeforeAnswer { .. } => pieces.text(held.trim()),
            State::Start | State::Answer if self.after_call && held.trim().is_empty() => {}
            State::Start | State::Answer => pieces.text(&held),
        }
        pieces.into_list()
    }

    fn step(&mut self, pieces: &mut AnswerParts) -> Step {
        match self.state {
            State::Start => self.start(),
            State::Thinking { begun } => self.think(begun, pieces),
            State::BeforeAnswer { next_mark } => self.before_answer(next_mark),
            State::Answer => self.answer(pieces),
            State::Block(_) => self.block(pieces),
        }
    }

    fn start(&mut self) -> Step {
        let Some(marks) = self.thinking else { return self.enter(State::Answer) };
        let text = self.held.trim_start();
        match opening(text, marks.open) {
            Opening::Perhaps => Step::Waits,
            Opening::Yes => {
                self.held = text[marks.open.len()..].to_owned();
                self.enter(State::Thinking { begun: false })
            }
            Opening::No if marks.before_answer.is_empty() => self.enter(State::Answer),
            Opening::No => self.enter(State::BeforeAnswer { next_mark: 0 }),
        }
    }

    fn enter(&mut self, state: State) -> Step {
        self.state = state;
        Step::Taken
    }

    fn think(&mut self, begun: bool, pieces: &mut AnswerParts) -> Step {
        let Some(marks) = self.thinking else { return self.enter(State::Answer) };
        if !begun {
            self.held = self.held.trim_start().to_owned();
        }
        if let Some(at) = self.held.find(marks.close) {
            pieces.reasoning(self.held[..at].trim_end());
            self.held.drain(..at + marks.close.len());
            return self.enter(State::BeforeAnswer { next_mark: 0 });
        }
        let settled = settled_len(&self.held, [marks.close].into_iter());
        pieces.reasoning(&self.held[..settled]);
        self.held.drain(..settled);
        self.state = State::Thinking { begun: begun || settled > 0 };
        Step::Waits
    }

    fn before_answer(&mut self, next_mark: usize) -> Step {
        let marks = self.thinking.map_or::<&[&str], _>(&[], |marks| marks.before_answer);
        let text = self.held.trim_start();
        for (at, mark) in marks.iter().enumerate().skip(next_mark) {
            match opening(text, mark) {
                Opening::Perhaps => return Step::Waits,
                Opening::Yes => {
                    self.held = text[mark.len()..].to_owned();
                    return self.enter(State::BeforeAnswer { next_mark: at + 1 });
                }
                Opening::No => {}
            }
        }
        if text.is_empty() {
            return Step::Waits;
        }
        self.held = text.to_owned();
        self.enter(State::Answer)
    }

    fn answer(&mut self, pieces: &mut AnswerParts) -> Step {
        let Some((tools, offered)) = &self.tools else {
            pieces.text(&mem::take(&mut self.held));
            return Step::Waits;
        };
        let Some((at, trigger)) = first_trigger(tools, &self.held, self.at_start) else {
            let settled = self.settled_answer_len(tools);
            self.give_text(settled, pieces);
            return Step::Waits;
        };
        let before_block = at + trigger.text.len() - trigger.opens.len();
        let text_len = self.held[..at].trim_end().len();
        let before = self.held[text_len..before_block].to_owned();
        let block = Block::new(*tools, offered.clone(), before, self.calls);
        self.give_text(text_len, pieces);
        self.held.drain(..before_block - text_len);
        self.enter(State::Block(Box::new(block)))
    }

    /// Length of the text that cannot be part of a trigger.
    fn settled_answer_len(&self, tools: &ToolDialect) -> usize {
        let text = self.held.trim_start();
        let may_open = |trigger: &Trigger| opening(text, trigger.text) == Opening::Perhaps;
        if self.at_start && tools.triggers.iter().any(may_open) {
            return 0;
        }
        settled_len(&self.held, anywhere(tools).map(|trigger| trigger.text))
    }

    fn give_text(&mut self, len: usize, pieces: &mut AnswerParts) {
        if len == 0 {
            return;
        }
        let text: String = self.held.drain(..len).collect();
        let is_blank = text.trim().is_empty();
        self.at_start &= is_blank;
        self.after_call &= is_blank;
        pieces.text(&text);
    }

    fn block(&mut self, pieces: &mut AnswerParts) -> Step {
        let State::Block(block) = &mut self.state else { return Step::Waits };
        let mut taken = 0;
        let mut fed = BlockFeedResult::More;
        for c in self.held.chars() {
            fed = block.feed(c, pieces);
            taken += if fed == BlockFeedResult::Broken { 0 } else { c.len_utf8() };
            if fed != BlockFeedResult::More {
                break;
            }
        }
        self.held.drain(..taken);
        if fed == BlockFeedResult::More { Step::Waits } else { self.leave_block(fed, pieces) }
    }

    fn leave_block(&mut self, fed: BlockFeedResult, pieces: &mut AnswerParts) -> Step {
        let State::Block(block) = mem::replace(&mut self.state, State::Answer) else {
            return Step::Waits;
        };
        self.after_call = block.ends_with_a_call();
        self.at_start = false;
        self.calls = block.next_index();
        let text = block.into_text();
        if fed == BlockFeedResult::Broken && !text.is_empty() {
            self.after_call &= text.trim().is_empty();
            pieces.text(&text);
        }
        Step::Taken
    }
}

hob_core::debug_fields!(AnswerParser: held.len(), calls);

fn anywhere(tools: &ToolDialect) -> impl Iterator<Item = &'static Trigger> {
    tools.triggers.iter().filter(|trigger| trigger.position == TriggerPosition::Anywhere)
}

/// The first trigger in `text`, with its position.
fn first_trigger(
    tools: &ToolDialect,
    text: &str,
    at_start: bool,
) -> Option<(usize, &'static Trigger)> {
    let indent = text.len() - text.trim_start().len();
    let at = |trigger: &'static Trigger| match trigger.position {
        TriggerPosition::Anywhere => text.find(trigger.text).map(|at| (at, trigger)),
        TriggerPosition::AnswerStart => {
            (at_start && text[indent..].starts_with(trigger.text)).then_some((indent, trigger))
        }
    };
    tools.triggers.iter().filter_map(at).min_by_key(|(at, _)| *at)
}
