//! Reads a block of calls: the marks, whose white space is ignored, and the calls between them.
//! Keeps the text that it has read, because it may be plain text until a call is certain.

use std::mem;

use super::answer_part::{AnswerPart, AnswerParts};
use super::call::{CallFeedResult, CallReader};
use super::{ToolDialect, ToolsOffered};

/// Effect of one more character on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockFeedResult {
    More,
    /// This character was the block's last.
    Over,
    /// The character does not belong to the block and was not taken. [`Block::into_text`] has the text that belongs to no
    /// call.
    Broken,
}

#[derive(Debug)]
pub(super) struct Block {
    tools: ToolDialect,
    offered: ToolsOffered,
    stage: Stage,
    /// What was read and belongs to no call so far.
    raw: String,
    /// The number of the present call, or else of the next.
    index: u32,
}

#[derive(Debug)]
enum Stage {
    /// The rest of `begin` that has not arrived, without white space.
    Begin(String),
    Call(CallReader),
    /// The part of `between` or `end` that has arrived, without white space.
    AfterCall(String),
}

impl Block {
    /// `before` is the text that was held back before the block. Calls are numbered from `index`.
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

    pub(super) fn feed(&mut self, c: char, pieces: &mut AnswerParts) -> BlockFeedResult {
        let fed = match &mut self.stage {
            Stage::Begin(_) => self.begin(c),
            Stage::Call(_) => return self.call(c, pieces),
            Stage::AfterCall(_) => self.after_call(c),
        };
        if fed != BlockFeedResult::Broken {
            self.raw.push(c);
        }
        fed
    }

    /// The number of the next call.
    pub(super) fn next_index(&self) -> u32 {
        self.index
    }

    /// Whether a call was returned, at least its beginning, and no other text followed.
    pub(super) fn ends_with_a_call(&self) -> bool {
        match &self.stage {
            Stage::Begin(_) => false,
            Stage::Call(reader) => reader.is_announced(),
            Stage::AfterCall(_) => true,
        }
    }

    /// The text that belongs to no call.
    pub(super) fn into_text(self) -> String {
        self.raw
    }

    fn begin(&mut self, c: char) -> BlockFeedResult {
        let Stage::Begin(rest) = &mut self.stage else { return BlockFeedResult::Broken };
        if c.is_ascii_whitespace() {
            return BlockFeedResult::More;
        }
        if !rest.starts_with(c) {
            return BlockFeedResult::Broken;
        }
        rest.drain(..c.len_utf8());
        self.enter_call_if_begun();
        BlockFeedResult::More
    }

    fn enter_call_if_begun(&mut self) {
        if matches!(&self.stage, Stage::Begin(rest) if rest.is_empty()) {
            self.enter_call();
        }
    }

    fn enter_call(&mut self) {
        self.stage = Stage::Call(CallReader::new(self.tools.call, self.offered.clone()));
    }

    fn call(&mut self, c: char, pieces: &mut AnswerParts) -> BlockFeedResult {
        let Stage::Call(reader) = &mut self.stage else { return BlockFeedResult::Broken };
        let was_streaming = reader.is_streaming();
        let Ok(fed) = reader.feed(c) else {
            // Only the envelope of an announced call was invalid, so the call stays and the next one has another number.
            self.index += u32::from(reader.is_announced());
            return BlockFeedResult::Broken;
        };
        if was_streaming {
            let (index, piece) = (self.index, reader.take_arguments());
            pieces.push(AnswerPart::Arguments { index, piece });
        } else {
            self.raw.push(c);
        }
        match fed {
            CallFeedResult::More => BlockFeedResult::More,
            CallFeedResult::Begun => {
                self.raw.clear();
                let arguments = reader.take_arguments();
                pieces.call(self.index, reader.name(), arguments);
                BlockFeedResult::More
            }
            CallFeedResult::Complete => {
                if !reader.is_announced() {
                    let arguments = reader.take_arguments();
                    pieces.call(self.index, reader.name(), arguments);
                }
                self.end_call()
            }
        }
    }

    fn end_call(&mut self) -> BlockFeedResult {
        self.index += 1;
        self.raw.clear();
        self.stage = Stage::AfterCall(String::new());
        if self.tools.end.is_empty() { BlockFeedResult::Over } else { BlockFeedResult::More }
    }

    fn after_call(&mut self, c: char) -> BlockFeedResult {
        let Stage::AfterCall(seen) = &mut self.stage else { return BlockFeedResult::Broken };
        if c.is_ascii_whitespace() {
            return BlockFeedResult::More;
        }
        seen.push(c);
        let end = without_space(self.tools.end);
        // If `between` is an end and a beginning, the next call is a separate block.
        let between = self.tools.between.map(without_space).filter(|mark| !mark.starts_with(&end));
        if *seen == end {
            return BlockFeedResult::Over;
        }
        if between.as_ref() == Some(seen) {
            // `feed` adds the last character.
            self.raw = mem::take(seen);
            self.raw.pop();
            self.enter_call();
            return BlockFeedResult::More;
        }
        let may_go_on = end.starts_with(seen.as_str())
            || between.is_some_and(|mark| mark.starts_with(seen.as_str()));
        if may_go_on { BlockFeedResult::More } else { BlockFeedResult::Broken }
    }
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_whitespace()).collect()
}
