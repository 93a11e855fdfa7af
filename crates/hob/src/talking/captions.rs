//! What was said, as text: a line for each turn, written while it is spoken.
//! Text only grows, so nothing that is printed is taken back.

use crate::failure::CliResult;
use crate::printer::Printer;
use crate::sink::PipeState;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Person,
    Hob,
}

#[derive(Debug)]
pub(super) struct Captions<'a> {
    printer: &'a Printer,
    /// The speaker of the line that is not ended yet.
    open: Option<Speaker>,
}

impl<'a> Captions<'a> {
    pub(super) fn new(printer: &'a Printer) -> Captions<'a> {
        Captions { printer, open: None }
    }

    /// Adds to the speaker's line.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(super) fn add(&mut self, speaker: Speaker, text: &str) -> CliResult<PipeState> {
        if self.open == Some(speaker) {
            return self.printer.piece(text);
        }
        self.end()?;
        self.open = Some(speaker);
        let name = match speaker {
            Speaker::Person => "you",
            Speaker::Hob => "hob",
        };
        self.printer.piece(&format!("{name}: {}", text.trim_start()))
    }

    /// Ends the line that is open.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(super) fn end(&mut self) -> CliResult<PipeState> {
        match self.open.take() {
            Some(_) => self.printer.piece("\n"),
            None => Ok(PipeState::Open),
        }
    }

    /// Ends the line of an answer that was interrupted.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(super) fn interrupted(&mut self) -> CliResult<PipeState> {
        match self.open {
            Some(Speaker::Hob) => self.add(Speaker::Hob, " … (interrupted)")?,
            Some(Speaker::Person) | None => PipeState::Open,
        };
        self.end()
    }
}
