//! Runs espeak-ng as a separate program that stays open: a word or a clause per line in, its IPA per line out.
//! Never linked, because espeak-ng is GPL-3 and hob is not. Every wait has a limit.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use hob_core::Language;
use thiserror::Error;

use crate::accent::Accent;

/// A word takes 1–4 ms. On a loaded machine the program may wait for the processor for a second.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// For the first word, which takes about 30 ms because the program starts.
const START_TIME_MAX: Duration = Duration::from_secs(5);
/// For the list of voices, which is made from many files.
const VOICE_LIST_TIME_MAX: Duration = Duration::from_secs(10);

/// After this many failures in a row, espeak-ng is not used again.
const FAILURES_MAX: u32 = 3;

/// Longer words are cut. No word of any language is longer, and one line must stay one clause.
const WORD_CHARS_MAX: usize = 80;

/// Longest line of words. espeak-ng reads at most 1000 bytes of a line, and answers a longer clause in two lines.
pub(crate) const CLAUSE_BYTES_MAX: usize = 600;

/// The list of all voices has about 10 KB.
const VOICE_LIST_BYTES_MAX: u64 = 256 * 1024;

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
    start_time_max: Duration,
    answer_time_max: Duration,
}

#[derive(Debug)]
struct Running {
    child: Child,
    words: ChildStdin,
    answers: Receiver<String>,
}

impl Espeak {
    /// For single words of English.
    pub(crate) fn new(program: &Path, accent: Accent) -> Espeak {
        let voice = if accent == Accent::American { "en-us" } else { "en-gb" };
        Espeak::with_arguments(program, &["-q", "--ipa", "-v", voice])
    }

    /// For clauses in one of espeak-ng's languages. `^` ties the letters of one sound.
    pub(crate) fn for_clauses(program: &Path, voice: &str) -> Espeak {
        Espeak::with_arguments(program, &["-q", "--ipa", "--tie=^", "-v", voice])
    }

    pub(crate) fn with_arguments(program: &Path, arguments: &[&str]) -> Espeak {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Espeak {
            program: program.to_owned(),
            arguments,
            running: None,
            failures: 0,
            start_time_max: START_TIME_MAX,
            answer_time_max: ANSWER_TIME_MAX,
        }
    }

    /// Returns the IPA of one word. Starts a new child process after one that died or hung.
    pub(crate) fn ipa(&mut self, word: &str) -> Result<String, EspeakError> {
        self.line(&one_clause(word))
    }

    /// Returns the IPA of words with spaces between them, of at most [`CLAUSE_BYTES_MAX`] bytes. They hold at least one
    /// letter or digit, and no punctuation that ends a clause: one line must get one answer.
    pub(crate) fn line(&mut self, line: &str) -> Result<String, EspeakError> {
        if self.failures >= FAILURES_MAX {
            return Err(EspeakError::GivenUp);
        }
        let answer = self.ask(line);
        match &answer {
            Ok(_) => self.failures = 0,
            Err(_) => {
                self.failures += 1;
                self.running = None;
            }
        }
        answer
    }

    /// Forgets the failures, so that the program is used again.
    pub(crate) fn forgive(&mut self) {
        self.failures = 0;
    }

    fn ask(&mut self, line: &str) -> Result<String, EspeakError> {
        let is_new = self.running.is_none();
        // A program that hung once hangs again, and a listener waits.
        let is_first = is_new && self.failures == 0;
        let time_max = if is_first { self.start_time_max } else { self.answer_time_max };
        if is_new {
            self.running = Some(start(&self.program, &self.arguments)?);
        }
        let running = self.running.as_mut().ok_or(EspeakError::Ended)?;
        // What a late answer left must not be taken for this one.
        while running.answers.try_recv().is_ok() {}
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
    let mut child =
        command(program).args(arguments).stdin(Stdio::piped()).spawn().map_err(not_started)?;
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

/// The program with nothing of the environment that it does not need.
fn command(program: &Path) -> Command {
    let kept = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "ESPEAK_DATA_PATH"];
    let mut command = Command::new(program);
    command
        // The environment may hold keys, which espeak-ng must not get.
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| kept.iter().any(|kept| name == *kept)))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// The name by which espeak-ng knows a language that hob reads through it. `None`: hob does not read it so.
pub(crate) fn voice_of(language: Language) -> Option<&'static str> {
    match language {
        Language::Spanish => Some("es"),
        Language::French => Some("fr-fr"),
        Language::Hindi => Some("hi"),
        Language::Italian => Some("it"),
        Language::BrazilianPortuguese => Some("pt-br"),
        Language::AmericanEnglish
        | Language::BritishEnglish
        | Language::Japanese
        | Language::Mandarin => None,
    }
}

/// Whether hob reads a language only with espeak-ng. It can read English without it.
pub fn needs_espeak(language: Language) -> bool {
    voice_of(language).is_some()
}

/// The languages that hob reads through espeak-ng and for which this program has data. The list is empty if the
/// program does not start or does not answer in time.
pub fn espeak_languages(program: &Path) -> Vec<Language> {
    listed_languages(&voice_list(program).unwrap_or_default())
}

fn listed_languages(list: &str) -> Vec<Language> {
    let listed: Vec<&str> =
        list.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    let is_listed = |language: &Language| voice_of(*language).is_some_and(|v| listed.contains(&v));
    Language::ALL.into_iter().filter(is_listed).collect()
}

fn voice_list(program: &Path) -> Option<String> {
    let mut child = command(program).arg("--voices").stdin(Stdio::null()).spawn().ok()?;
    let said = child.stdout.take()?;
    let (answer, answers) = sync_channel(1);
    thread::spawn(move || {
        let mut list = String::new();
        if said.take(VOICE_LIST_BYTES_MAX).read_to_string(&mut list).is_ok() {
            // An error means that the list came too late.
            answer.send(list).ok();
        }
    });
    let list = answers.recv_timeout(VOICE_LIST_TIME_MAX).ok();
    // An error means that the program has ended.
    child.kill().ok();
    child.wait().ok();
    list
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

    /// A shell script in espeak-ng's place, with this limit for each answer.
    fn script_within(time_max: Duration, body: &str) -> Espeak {
        let espeak = Espeak::with_arguments(Path::new("sh"), &["-c", body]);
        Espeak { start_time_max: time_max, answer_time_max: time_max, ..espeak }
    }

    /// A shell script that answers, however much the machine does.
    fn script(body: &str) -> Espeak {
        script_within(Duration::from_secs(60), body)
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
        let mut espeak = script_within(Duration::from_millis(100), "exec sleep 60");
        for _ in 0..FAILURES_MAX {
            assert_eq!(espeak.ipa("word"), Err(EspeakError::Silent));
        }
        assert_eq!(espeak.ipa("word"), Err(EspeakError::GivenUp));
    }

    #[test]
    fn the_list_of_voices_says_which_languages_have_data() {
        let list =
            "Pty Language Age\n 5 es --/M Spanish\n 5 pt --/M Portugal\n 5 fr-fr --/M France\n";
        assert_eq!(listed_languages(list), [Language::Spanish, Language::French]);
        assert_eq!(listed_languages(""), []);
        assert_eq!(espeak_languages(Path::new("no-such-program")), []);
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
