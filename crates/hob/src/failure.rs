//! Errors of the command line: an exit code, one sentence, and a hint.
//! Libraries have error types of their own, which are converted here.

use std::fmt;
use std::io;
use std::process::ExitCode;

use hob_core::ModelError;
use hob_speech::encode::EncodeError;

pub(crate) type CliResult<T> = Result<T, Failure>;

/// The engine in errors about a remote server or the connection to it.
pub(crate) const REMOTE_ENGINE: &str = "remote";

/// Exit codes. They are part of hob's interface, because scripts test for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Internal,
    Usage,
    ModelMissing,
    Source,
    Server,
    Engine,
    Unhealthy,
    /// Has the same code as `Internal`: a failed gate exits with 1, and a gate has no other failure with that code.
    Regressed,
    Incomparable,
    Interrupted,
    /// The code of a command that `hob worker supervise` ran. Not in [`Exit::ALL`]: users do not see it.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only Linux has sandboxes with a supervisor")
    )]
    Command(u8),
}

impl Exit {
    pub(crate) const ALL: [Exit; 11] = [
        Exit::Done,
        Exit::Regressed,
        Exit::Internal,
        Exit::Usage,
        Exit::ModelMissing,
        Exit::Source,
        Exit::Server,
        Exit::Engine,
        Exit::Unhealthy,
        Exit::Incomparable,
        Exit::Interrupted,
    ];

    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Internal | Exit::Regressed => 1,
            Exit::Usage => 2,
            Exit::ModelMissing => 3,
            Exit::Source => 4,
            Exit::Server => 5,
            Exit::Engine => 6,
            Exit::Unhealthy => 7,
            Exit::Incomparable => 8,
            Exit::Interrupted => 130,
            Exit::Command(code) => code,
        }
    }

    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Internal => "a file or disk error, or a bug in hob",
            Exit::Usage => "the command, the request or the configuration is wrong",
            Exit::ModelMissing => "a model is not stored, or is damaged",
            Exit::Source => "no source delivered the model",
            Exit::Server => {
                "the address is in use, or the server is silent or busy (408, 429, 5xx)"
            }
            Exit::Engine => "the engine, the player or the recorder failed",
            Exit::Unhealthy => "hob doctor found a problem",
            Exit::Regressed => {
                "hob bench compare --fail-on-regression: a figure became worse; \
                 hob fit --require: the model does not fit"
            }
            Exit::Incomparable => "no measurements could be compared",
            Exit::Interrupted => "interrupted (Ctrl-C)",
            Exit::Command(_) => "the exit code of a command",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// What went wrong, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) sentence: String,
    pub(crate) hint: Option<String>,
    /// The server would refuse the same request again.
    pub(crate) is_permanent: bool,
}

impl Failure {
    pub(crate) fn new(exit: Exit, sentence: impl fmt::Display) -> Failure {
        Failure { exit, sentence: sentence.to_string(), hint: None, is_permanent: false }
    }

    pub(crate) fn usage(sentence: impl fmt::Display) -> Failure {
        Failure::new(Exit::Usage, sentence)
    }

    pub(crate) fn internal(sentence: impl fmt::Display) -> Failure {
        Failure::new(Exit::Internal, sentence)
    }

    pub(crate) fn model_missing(sentence: impl fmt::Display) -> Failure {
        Failure::new(Exit::ModelMissing, sentence)
    }

    pub(crate) fn server(sentence: impl fmt::Display) -> Failure {
        Failure::new(Exit::Server, sentence)
    }

    pub(crate) fn engine(sentence: impl fmt::Display) -> Failure {
        Failure::new(Exit::Engine, sentence)
    }

    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }

    /// The sentence and the hint, where there is room for one text only.
    pub(crate) fn into_text(self) -> String {
        match self.hint {
            Some(hint) => format!("{}; {hint}", self.sentence),
            None => self.sentence,
        }
    }

    /// Joins several failures: one stays as it is, several become a list.
    pub(crate) fn together(failures: Vec<Failure>) -> Option<Failure> {
        let count = failures.len();
        let mut failures = failures.into_iter();
        let first = failures.next()?;
        if count == 1 {
            return Some(first);
        }
        let exit = first.exit;
        let line = |Failure { sentence, hint, .. }: Failure| match hint {
            Some(hint) => format!("\n  {sentence}\n    {hint}"),
            None => format!("\n  {sentence}"),
        };
        let lines: String = std::iter::once(first).chain(failures).map(line).collect();
        Some(Failure::new(exit, format!("{count} problems:{lines}")))
    }

    /// An I/O error: what could not be done, and the system's reason.
    pub(crate) fn io(doing: impl fmt::Display, error: &io::Error) -> Failure {
        let failure = Failure::internal(format!("{doing}: {error}"));
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failure.hint("free some space, or write to another disk")
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                failure.hint("choose a folder that you may write to")
            }
            _ => failure,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Failure {
        let (exit, hint) = match &error {
            ModelError::UnknownVoice { .. } => (Exit::Usage, Some("`hob say --voices` lists them")),
            ModelError::SpeechPartMissing { .. } => {
                (Exit::Usage, Some("`hob say --voices` lists the voices that can be spoken now"))
            }
            ModelError::TextTooLong { .. } => (
                Exit::Usage,
                Some("speak it in parts, or as an audiobook: hob say book.txt -o book.m4b"),
            ),
            ModelError::TooLong { .. } => {
                (Exit::Usage, Some("shorten the prompt, or raise --context or chat.context_tokens"))
            }
            ModelError::NoTemplate => (Exit::Usage, Some("choose another model with --model")),
            ModelError::OutOfMemory { .. } => (
                Exit::Engine,
                Some(
                    "choose a smaller model; for chat also a lower chat.context_tokens or another chat.kv_type",
                ),
            ),
            ModelError::NoRoom { .. } => {
                (Exit::Engine, Some("`hob ps` lists loaded models, and `hob unload` unloads one"))
            }
            ModelError::EmptyText
            | ModelError::MissingField { .. }
            | ModelError::InvalidField { .. } => (Exit::Usage, None),
            ModelError::Busy { .. } | ModelError::Loading { .. } | ModelError::Resting { .. } => {
                (Exit::Server, None)
            }
            ModelError::Upstream { .. }
            | ModelError::Unanswered { .. }
            | ModelError::NoneCapable { .. }
            | ModelError::Incapable { .. } => {
                (Exit::Server, Some("`hob upstreams` shows which servers answer"))
            }
            ModelError::EngineFailed { engine: REMOTE_ENGINE, .. } => {
                (Exit::Server, Some("check that `hob serve` still runs there"))
            }
            ModelError::NotBuilt { .. } => {
                (Exit::Engine, Some("this build of hob does not contain it"))
            }
            ModelError::WorkerLost { .. } | ModelError::EngineFailed { .. } => {
                (Exit::Engine, Some("`hob doctor` checks every part"))
            }
        };
        let failure = Failure::new(exit, error);
        Failure { hint: hint.map(str::to_owned), ..failure }
    }
}

impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Failure {
        let exit = match error {
            EncodeError::UnsupportedRate { .. }
            | EncodeError::TooLongForWav { .. }
            | EncodeError::NotBuilt { .. } => Exit::Usage,
            EncodeError::NotFinite { .. } => Exit::Engine,
            EncodeError::WrongLength { .. } | EncodeError::Codec { .. } => Exit::Internal,
        };
        Failure::new(exit, error)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::Shortage;
    use hob_core::fit::Pool;

    use super::*;

    #[test]
    fn each_kind_has_a_code_of_its_own_except_a_failed_gate() {
        let mut codes: Vec<u8> = Exit::ALL.into_iter().map(Exit::code).collect();
        codes.sort_unstable();
        assert_eq!(codes, [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 130]);
    }

    fn no_room() -> ModelError {
        let shortage =
            Shortage { pool: Pool::Ram, needed_bytes: 2, available_bytes: 1, held: Vec::new() };
        ModelError::NoRoom { shortage, retry_after: None }
    }

    #[test]
    fn the_person_who_can_act_decides_the_exit_code() {
        let retry_after = Duration::from_secs(3);
        let rows = [
            (ModelError::EmptyText, Exit::Usage),
            (ModelError::UnknownVoice { voice: "x".into(), near: Vec::new() }, Exit::Usage),
            (ModelError::TooLong { needed: 9000, available: 8192 }, Exit::Usage),
            (ModelError::NoTemplate, Exit::Usage),
            (
                ModelError::OutOfMemory { needed_bytes: 2, available_bytes: 1, what_fits: None },
                Exit::Engine,
            ),
            (no_room(), Exit::Engine),
            (ModelError::Busy { retry_after }, Exit::Server),
            (ModelError::Loading { retry_after }, Exit::Server),
            (ModelError::NotBuilt { engine: "speech" }, Exit::Engine),
            (ModelError::EngineFailed { engine: REMOTE_ENGINE, detail: "".into() }, Exit::Server),
            (ModelError::WorkerLost { engine: "speech", detail: "9".into() }, Exit::Engine),
        ];
        for (error, exit) in rows {
            assert_eq!(Failure::from(error.clone()).exit, exit, "{error}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_for_the_own_engine_says_what_to_do() {
        let failure = Failure::from(ModelError::TextTooLong { chars: 2, chars_max: 1 });
        let hint = "speak it in parts, or as an audiobook: hob say book.txt -o book.m4b";
        assert_eq!((failure.exit, failure.hint.as_deref()), (Exit::Usage, Some(hint)));
    }

    #[test]
    fn a_full_disk_says_what_to_do() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let failure = Failure::io("cannot write a.mp3", &full);
        assert_eq!(failure.hint.as_deref(), Some("free some space, or write to another disk"));
    }
}
