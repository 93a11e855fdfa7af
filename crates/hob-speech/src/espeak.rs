//! Runs espeak-ng as a separate program that stays open: one word per line in, its IPA per line out.
//! Never linked, because espeak-ng is GPL-3 and hob is not. Every wait has a limit.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use thiserror::Error;

use crate::accent::Accent;

/// A word takes 1–4 ms, and several times as long on a loaded machine.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(700);
/// For the first word, which takes about 30 ms because the program starts.
const START_TIME_MAX: Duration = Duration::from_secs(2);

/// After this many failures in a row, espeak-ng is not used again.
const FAILURES_MAX: u32 = 3;

/// Longer words are cut. No word of any language is longer, and one line must stay one clause.
const WORD_CHARS_MAX: usize = 80;

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum EspeakError {
    #[error("cannot start {program}: {detail}")]
    NotStarted { program: String, detail: String },
    #[error("espeak-ng did not answer in time")]
    Silent,
    #[error("espeak-ng exited unexpectedly")]
    Ended,
    #[error("espeak-ng failed {FAILURES_MAX} times in a row and is not used again")]
    GivenUp,
}

/// The program, with its child process while one is running.
#[derive(Debug)]
pub(crate) struct Espeak {
    program: PathBuf,
    arguments: Vec<String>,
    running: Option<Running>,
    failures: u32,
}

#[derive(Debug)]
struct Running {
    child: Child,
    words: ChildStdin,
    answers: Receiver<String>,
}

impl Espeak {
    pub(crate) fn new(program: &Path, accent: Accent) -> Espeak {
        let voice = if accent == Accent::American { "en-us" } else { "en-gb" };
        Espeak::with_arguments(program, &["-q", "--ipa", "-v", voice])
    }

    fn with_arguments(program: &Path, arguments: &[&str]) -> Espeak {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Espeak { program: program.to_owned(), arguments, running: None, failures: 0 }
    }

    /// Returns the IPA of one word. Starts a new child process after one that died or hung.
    pub(crate) fn ipa(&mut self, word: &str) -> Result<String, EspeakError> {
        if self.failures >= FAILURES_MAX {
            return Err(EspeakError::GivenUp);
        }
        let answer = self.ask(word);
        match &answer {
            Ok(_) => self.failures = 0,
            Err(_) => {
                self.failures += 1;
                self.running = None;
            }
        }
        answer
    }

    fn ask(&mut self, word: &str) -> Result<String, EspeakError> {
        let is_new = self.running.is_none();
        let time_max = if is_new { START_TIME_MAX } else { ANSWER_TIME_MAX };
        if is_new {
            self.running = Some(start(&self.program, &self.arguments)?);
        }
        let running = self.running.as_mut().ok_or(EspeakError::Ended)?;
        let line = one_clause(word);
        writeln!(running.words, "{line}").map_err(|_| EspeakError::Ended)?;
        running.words.flush().map_err(|_| EspeakError::Ended)?;
        running.answers.recv_timeout(time_max).map_err(|error| match error {
            std::sync::mpsc::RecvTimeoutError::Timeout => EspeakError::Silent,
            std::sync::mpsc::RecvTimeoutError::Disconnected => EspeakError::Ended,
        })
    }
}

/// Keeps only letters and apostrophes, so that one input line gives one output line.
fn one_clause(word: &str) -> String {
    word.chars()
        .map(|c| if c.is_alphanumeric() || c == '\'' { c } else { ' ' })
        .take(WORD_CHARS_MAX)
        .collect()
}

fn start(program: &Path, arguments: &[String]) -> Result<Running, EspeakError> {
    let not_started = |error: std::io::Error| EspeakError::NotStarted {
        program: program.display().to_string(),
        detail: error.to_string(),
    };
    let kept = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "ESPEAK_DATA_PATH"];
    let mut child = Command::new(program)
        .args(arguments)
        // The environment may hold keys, which espeak-ng must not get.
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| kept.iter().any(|kept| name == *kept)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(not_started)?;
    let words = child.stdin.take().ok_or(EspeakError::Ended)?;
    let said = child.stdout.take().ok_or(EspeakError::Ended)?;
    // Only one word is in progress at a time, so a capacity of two is enough.
    let (answer, answers) = sync_channel(2);
    thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            if answer.send(line).is_err() {
                return;
            }
        }
    });
    Ok(Running { child, words, answers })
}

impl Drop for Running {
    /// Ends the child process. The reading thread ends with its pipe.
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            // The process was just killed, so this returns at once. An error means that it had ended before.
            self.child.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell script in espeak-ng's place.
    fn script(body: &str) -> Espeak {
        Espeak::with_arguments(Path::new("sh"), &["-c", body])
    }

    #[test]
    fn the_program_does_not_see_the_environment() {
        let mut espeak = script("read word; echo \"${CARGO_PKG_NAME-unset} ${PATH:+path}\"");
        assert_eq!(espeak.ipa("word"), Ok("unset path".to_owned()));
    }

    #[test]
    fn words_go_in_and_ipa_comes_out() {
        let mut espeak = script("while read word; do echo \"ipa of $word\"; done");
        assert_eq!(espeak.ipa("café"), Ok("ipa of café".to_owned()));
        assert_eq!(espeak.ipa("two\nlines"), Ok("ipa of two lines".to_owned()));
    }

    #[test]
    fn a_child_that_dies_is_replaced() {
        let mut espeak = script("read word; echo \"once $word\"");
        assert_eq!(espeak.ipa("one"), Ok("once one".to_owned()));
        assert_eq!(espeak.ipa("two"), Err(EspeakError::Ended));
        assert_eq!(espeak.ipa("three"), Ok("once three".to_owned()));
    }

    #[test]
    fn a_program_that_never_answers_is_given_up() {
        let mut espeak = script("exec sleep 60");
        for _ in 0..FAILURES_MAX {
            assert_eq!(espeak.ipa("word"), Err(EspeakError::Silent));
        }
        assert_eq!(espeak.ipa("word"), Err(EspeakError::GivenUp));
    }

    #[test]
    fn a_missing_program_is_named() {
        let mut espeak = Espeak::new(Path::new("no-such-program"), Accent::American);
        let error = espeak.ipa("word").expect_err("no such program");
        assert!(
            matches!(&error, EspeakError::NotStarted { program, .. } if program == "no-such-program")
        );
    }
}
