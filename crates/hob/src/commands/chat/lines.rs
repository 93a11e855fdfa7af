//! Lines of input, edited as in a shell.
//! There is no history file, because lines may be private.

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::task;

use super::terminal::Terminal;
use crate::failure::{CliResult, Failure};

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
}

/// The source of lines: a person, or a test.
pub(super) trait Lines {
    fn next(&mut self, prompt: &'static str) -> impl Future<Output = CliResult<Input>>;
}

/// Reads lines from a terminal.
pub(super) struct Keyboard {
    /// `None` while a thread reads with it.
    editor: Option<DefaultEditor>,
    /// Restores the terminal's mode, also when hob ends while the user types.
    _terminal: Terminal,
}

impl Keyboard {
    pub(super) fn open() -> CliResult<Keyboard> {
        let _terminal = Terminal::remember();
        let editor = DefaultEditor::new().map_err(unreadable)?;
        Ok(Keyboard { editor: Some(editor), _terminal })
    }
}

impl Lines for Keyboard {
    async fn next(&mut self, prompt: &'static str) -> CliResult<Input> {
        let Some(mut editor) = self.editor.take() else { return Ok(Input::End) };
        let read = task::spawn_blocking(move || {
            let read = editor.readline(prompt);
            if let Ok(line) = &read {
                // A line that is not saved in the history is still sent.
                let _forgotten = editor.add_history_entry(line.as_str());
            }
            (read, editor)
        });
        let (read, editor) = read.await.map_err(Failure::internal)?;
        self.editor = Some(editor);
        match read {
            Ok(line) => Ok(Input::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Input::Interrupt),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(error) => Err(unreadable(error)),
        }
    }
}

fn unreadable(error: ReadlineError) -> Failure {
    let error = match error {
        ReadlineError::Io(error) => error,
        other => std::io::Error::other(other.to_string()),
    };
    Failure::io("cannot read from the terminal", &error)
}
