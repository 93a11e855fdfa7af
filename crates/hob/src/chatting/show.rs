//! Prints the pieces of an answer: its text on stdout, its thinking dimmed on stderr.
//! Each starts on a new line, so that neither runs into the other.

use crate::failure::CliResult;
use crate::printer::Printer;
use crate::sink::PipeState;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextShown {
    AsItComes,
    /// The caller prints it at the end.
    AtTheEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingShown {
    AsItComes,
    Never,
}

#[derive(Debug)]
pub(crate) struct Show<'a> {
    printer: &'a Printer,
    text: TextShown,
    thinking: ThinkingShown,
    line: LastLine,
}

/// The last line that was written, and whether it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLine {
    Ended,
    Thinking,
    Text,
}

impl<'a> Show<'a> {
    pub(crate) fn new(printer: &'a Printer, text: TextShown, thinking: ThinkingShown) -> Show<'a> {
        Show { printer, text, thinking, line: LastLine::Ended }
    }

    pub(super) fn thinking(&mut self, piece: &str) {
        if self.thinking == ThinkingShown::AsItComes && !piece.is_empty() {
            self.end_line_of(LastLine::Text);
            self.printer.aside(piece);
            self.line = if piece.ends_with('\n') { LastLine::Ended } else { LastLine::Thinking };
        }
    }

    pub(super) fn text(&mut self, piece: &str) -> CliResult<PipeState> {
        if self.text == TextShown::AtTheEnd || piece.is_empty() {
            return Ok(PipeState::Open);
        }
        self.end_line_of(LastLine::Thinking);
        self.line = if piece.ends_with('\n') { LastLine::Ended } else { LastLine::Text };
        self.printer.piece(piece)
    }

    /// Ends the last line if it is of the other sort. Also after text this is written to stderr, because stdout gets
    /// the answer only.
    fn end_line_of(&self, other: LastLine) {
        if self.line == other {
            self.printer.aside("\n");
        }
    }

    /// Ends the last line, also if the answer broke off.
    pub(crate) fn end(&mut self) -> CliResult<()> {
        match std::mem::replace(&mut self.line, LastLine::Ended) {
            LastLine::Ended => {}
            LastLine::Thinking => self.printer.aside("\n"),
            LastLine::Text => {
                self.printer.piece("\n")?;
            }
        }
        Ok(())
    }
}
