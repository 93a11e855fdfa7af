//! Prints data to stdout, and everything else to stderr.
//! Colours are dropped by anstream when the stream is not a terminal or `NO_COLOR` is set.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use comfy_table::{ColumnConstraint, Table, Width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::failure::{CliResult, Exit, Failure};
use crate::sink::PipeState;

pub(crate) use hob_core::count_text;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
const FAINT: Style = Style::new().dimmed();

/// How often a spinner moves.
const TICK: Duration = Duration::from_millis(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Volume {
    Normal,
    ErrorsOnly,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    volume: Volume,
}

impl Printer {
    pub(crate) fn new(volume: Volume) -> Printer {
        Printer { volume }
    }

    /// Prints one or more lines of data. A closed reader (`| head`) is not an error.
    pub(crate) fn data(&self, text: impl Display) -> CliResult<()> {
        let text = text.to_string();
        let text = if io::stdout().is_terminal() { coloured(&text) } else { text };
        match writeln!(anstream::stdout(), "{text}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::io("cannot write to stdout", &error))
            }
            _ => Ok(()),
        }
    }

    /// Prints a value as JSON.
    pub(crate) fn json(&self, value: &(impl Serialize + ?Sized)) -> CliResult<()> {
        let json = serde_json::to_string_pretty(value);
        self.data(json.map_err(Failure::internal)?)
    }

    /// Prints the result of a command: as JSON if the user asked for it, otherwise as text.
    pub(crate) fn report<T: Display>(
        &self,
        is_json: bool,
        value: &(impl Serialize + ?Sized),
        text: impl FnOnce() -> T,
    ) -> CliResult<Exit> {
        if is_json {
            self.json(value)?
        } else {
            self.data(text())?
        }
        Ok(Exit::Done)
    }

    /// Prints a piece of an answer at once, without a line end.
    pub(crate) fn piece(&self, text: &str) -> CliResult<PipeState> {
        let mut stdout = io::stdout().lock();
        let text = if stdout.is_terminal() { harmless(text) } else { Cow::Borrowed(text) };
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(PipeState::Open),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(PipeState::Closed),
            Err(error) => Err(Failure::io("cannot write to stdout", &error)),
        }
    }

    /// Prints a piece of additional output, such as thinking, on stderr.
    pub(crate) fn aside(&self, text: &str) {
        if self.volume == Volume::Normal {
            let text = harmless(text);
            // A closed stderr cannot report its own error.
            let _nobody_reads = write!(anstream::stderr(), "{FAINT}{text}{FAINT:#}");
        }
    }

    /// A note on stderr.
    pub(crate) fn note(&self, text: impl Display) {
        if self.volume == Volume::Normal {
            stderr_line(text);
        }
    }

    /// A less important note, dimmed.
    pub(crate) fn faint(&self, text: impl Display) {
        self.note(format_args!("{FAINT}{text}{FAINT:#}"));
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        stderr_line(format_args!("{BAD}hob:{BAD:#} {}", harmless(&failure.to_string())));
        if let Some(hint) = &failure.hint {
            stderr_line(format_args!("     {FAINT}→{FAINT:#} {}", harmless(hint)));
        }
    }

    /// A bar with `length` steps and indicatif's `template`. Hidden when stderr is not a terminal.
    pub(crate) fn bar(&self, length: u64, template: &str) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(length), self.target());
        bar.set_style(style(template));
        bar
    }

    /// A spinner, for work of unknown length.
    pub(crate) fn spinner(&self, message: impl Display) -> ProgressBar {
        let spinner = ProgressBar::with_draw_target(None, self.target());
        spinner.set_style(style("{spinner} {msg}"));
        spinner.set_message(message.to_string());
        spinner.enable_steady_tick(TICK);
        spinner
    }

    /// Whether bars are visible.
    pub(crate) fn draws(&self) -> bool {
        !self.target().is_hidden()
    }

    fn target(&self) -> ProgressDrawTarget {
        match self.volume {
            Volume::Normal => ProgressDrawTarget::stderr(),
            Volume::ErrorsOnly => ProgressDrawTarget::hidden(),
        }
    }
}

/// Removes control characters: text of a model or another server must not move the cursor or change the
/// terminal.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let harms = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(harms) {
        Cow::Owned(text.replace(harms, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same for text in which hob has set colours. Names in lists, and in reports of other servers, come from others.
fn coloured(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut shown = harmless(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        shown.push(if sets_colour(part) { '\u{1b}' } else { '\u{fffd}' });
        shown += &harmless(part);
    }
    shown
}

/// Whether this follows an escape character in a sequence of hob's styles.
fn sets_colour(rest: &str) -> bool {
    ["[0m", "[1m", "[2m", "[31m", "[32m", "[33m"].iter().any(|code| rest.starts_with(code))
}

/// A template that does not parse is a mistake in this program; the bar is then plain.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A duration in the unit that reads best.
pub(crate) fn duration_text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// A cell of a table.
pub(crate) fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// A table without borders, which other programs can read too.
pub(crate) fn table(header: impl Into<comfy_table::Row>) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    table
}

/// The title of a column, and its cell in the row of an item.
pub(crate) type Column<'c, T> = (&'c str, &'c dyn Fn(&T) -> String);

/// A table with a row for each item.
pub(crate) fn rows<'r, T: 'r>(
    columns: &[Column<'_, T>],
    items: impl IntoIterator<Item = &'r T>,
) -> Table {
    let mut table = table(columns.iter().map(|(title, _)| *title));
    table.add_rows(items.into_iter().map(|item| columns.iter().map(move |(_, cell)| cell(item))));
    table
}

/// Wraps columns that are longer than this many characters, so that the terminal does not have to.
pub(crate) fn narrow<const N: usize>(table: &mut Table, columns: [(usize, u16); N]) {
    for (number, chars) in columns {
        let width = Width::Fixed(chars);
        let column = table.column_mut(number);
        column.map(|column| column.set_constraint(ColumnConstraint::UpperBoundary(width)));
    }
}

/// Prints a line of JSON for the process that has started this worker. If that reader is gone, no more lines are needed.
pub(crate) fn worker_line(report: &impl Serialize) -> ControlFlow<()> {
    let line = serde_json::to_string(report).unwrap_or_default();
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// Asks on stderr, also with `--quiet`, and reads the answer of a person from stdin. Without an answer it is no.
pub(crate) fn confirmed(question: &str) -> io::Result<bool> {
    let mut answer = String::new();
    write!(anstream::stderr(), "{} [y/N] ", harmless(question))?;
    io::stdin().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Prints one line on stderr, also with `--quiet`. Errors use this.
fn stderr_line(text: impl Display) {
    let text = coloured(&text.to_string());
    // A closed stderr cannot report its own error.
    let _nobody_reads = writeln!(anstream::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_parses() {
        for template in crate::commands::TEMPLATES {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn only_yes_is_yes() {
        assert!(["y\n", "Y", " yes", "Yes\r\n", "YES"].into_iter().all(is_yes));
        assert!(!["", "\n", "n", "yess", "no, yes"].into_iter().any(is_yes));
    }

    #[test]
    fn a_terminal_gets_no_control_sequences_from_a_model() {
        assert_eq!(harmless("a\n\tb é"), "a\n\tb é");
        assert_eq!(harmless("\u{1b}[2Jx\r\u{9b}"), "\u{fffd}[2Jx\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_terminal_gets_no_other_sequences_than_colours_of_hob() {
        for style in [GOOD, DOUBTFUL, BAD, FAINT] {
            let own = format!("{style}a{style:#}\n\tb");
            assert_eq!(coloured(&own), own);
        }
        for (name, shown) in [
            ("a\u{1b}]0;title\u{7}b", "a\u{fffd}]0;title\u{fffd}b"),
            ("\u{1b}[2J\u{1b}[1", "\u{fffd}[2J\u{fffd}[1"),
            ("\u{1b}[8mhidden", "\u{fffd}[8mhidden"),
            ("\u{1b}[?1049h\u{1b}", "\u{fffd}[?1049h\u{fffd}"),
            ("\u{9b}2J\r", "\u{fffd}2J\u{fffd}"),
        ] {
            assert_eq!(coloured(name), shown);
        }
    }
}
