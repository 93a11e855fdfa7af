//! A block of calls: the marks around calls, white space aside, and the calls between them.
//! Keeps what it has read as raw text, because until a call is certain it may be plain text.

use std::mem;

use super::call::{CallReader, Fed};
use super::parser::AnswerParts;
use super::{ToolDialect, ToolsOffered};

/// What one more character made of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockFed {
    More,
    /// This character was the block's last.
    Over,
    /// The character does not belong to it, and was not taken; [`Block::into_text`] has what does
    /// not belong to a call.
    Broken,
}

#[derive(Debug)]
pub(super) struct Block {
    tools: ToolDialect,
    offered: ToolsOffered,
    stage: Stage,
    raw: String,
    index: u32,
}

#[derive(Debug)]
enum Stage {
    /// This much of `begin`, white space not counted, is still to come.
    Begin(String),
    Call(CallReader),
    /// What has been seen, white space not counted, of `between` or `end`.
    AfterCall(String),
}

impl Block {
    /// `before` was held back in front of it; calls are numbered from `index`.
    pub(super) fn new(
        tools: ToolDialect,
        offered: ToolsOffered,
        before: String,
        index: u32,
    ) -> Block {
        let begin = without_space(tools.begin);
        let mut block = Block { tools, offered, stage: Stage::Begin(begin), raw: before, index };
        block.enter_call_if_begun();
        block
    }

    pub(super) fn feed(&mut self, c: char, pieces: &mut AnswerParts) -> BlockFed {
        let fed = match &mut self.stage {
            Stage::Begin(_) => self.begin(c),
            Stage::Call(_) => return self.call(c, pieces),
            Stage::AfterCall(_) => self.after_call(c),
        };
        if fed != BlockFed::Broken {
            self.raw.push(c);
        }
        fed
    }

    /// The number of the next call.
    pub(super) fn next_index(&self) -> u32 {
        self.index
    }

    /// A call was given out, and nothing after it but its marks.
    pub(super) fn has_ended_a_call(&self) -> bool {
        match &self.stage {
            Stage::Begin(_) => false,
            Stage::Call(reader) => reader.is_announced(),
            Stage::AfterCall(_) => true,
        }
    }

    /// What was read and is part of no call.
    pub(super) fn into_text(self) -> String {
        self.raw
    }

    fn begin(&mut self, c: char) -> BlockFed {
        let Stage::Begin(rest) = &mut self.stage else { return BlockFed::Broken };
        if c.is_ascii_whitespace() {
            return BlockFed::More;
        }
        if !rest.starts_with(c) {
            return BlockFed::Broken;
        }
        rest.drain(..c.len_utf8());
        self.enter_call_if_begun();
        BlockFed::More
    }

    fn enter_call_if_begun(&mut self) {
        if matches!(&self.stage, Stage::Begin(rest) if rest.is_empty()) {
            self.enter_call();
        }
    }

    fn enter_call(&mut self) {
        self.stage = Stage::Call(CallReader::new(self.tools.call, self.offered.clone()));
    }

    fn call(&mut self, c: char, pieces: &mut AnswerParts) -> BlockFed {
        let Stage::Call(reader) = &mut self.stage else { return BlockFed::Broken };
        let was_streaming = reader.is_streaming();
        let Ok(fed) = reader.feed(c) else {
            // The call stands, and only its envelope was broken: the next one has another number.
            self.index += u32::from(reader.is_announced());
            return BlockFed::Broken;
        };
        if was_streaming {
            pieces.arguments(self.index, &reader.take_arguments());
        } else {
            self.raw.push(c);
        }
        match fed {
            Fed::More => BlockFed::More,
            Fed::Begun => {
                self.raw.clear();
                pieces.call_begins(self.index, reader.name());
                pieces.arguments(self.index, &reader.take_arguments());
                BlockFed::More
            }
            Fed::Complete => {
                if !reader.is_announced() {
                    pieces.call_begins(self.index, reader.name());
                    pieces.arguments(self.index, &reader.take_arguments());
                }
                self.end_call()
            }
        }
    }

    fn end_call(&mut self) -> BlockFed {
        self.index += 1;
        self.raw.clear();
        self.stage = Stage::AfterCall(String::new());
        if self.tools.end.is_empty() { BlockFed::Over } else { BlockFed::More }
    }

    fn after_call(&mut self, c: char) -> BlockFed {
        let Stage::AfterCall(seen) = &mut self.stage else { return BlockFed::Broken };
        if c.is_ascii_whitespace() {
            return BlockFed::More;
        }
        seen.push(c);
        let end = without_space(self.tools.end);
        // Where `between` is an end and a beginning, the next call is a block of its own.
        let between = self.tools.between.map(without_space).filter(|mark| !mark.starts_with(&end));
        if *seen == end {
            return BlockFed::Over;
        }
        if between.as_ref() == Some(seen) {
            self.raw = mem::take(seen);
            self.raw.pop();
            self.enter_call();
            return BlockFed::More;
        }
        let may_go_on = end.starts_with(seen.as_str())
            || between.is_some_and(|mark| mark.starts_with(seen.as_str()));
        if may_go_on { BlockFed::More } else { BlockFed::Broken }
    }
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_whitespace()).collect()
}
