//! Failures of other servers, sorted by what may help.
//! This file knows no HTTP: the upstream client converts statuses and invalid bytes.

use std::time::Duration;

use crate::enum_table;

/// Why another server gave no answer, or only part of one. Messages come from that server, shortened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// No such host, connection refused, TLS failed, or closed before the first byte.
    #[error("cannot be reached: {detail}")]
    Unreachable { detail: String },
    #[error("{} within {} s", clock.failing(), seconds(*after))]
    TimedOut { clock: Clock, after: Duration },
    #[error("is overloaded: {message}")]
    Overloaded { message: String, retry_after: Option<Duration> },
    #[error("limits the request rate: {message}")]
    Limited { message: String, retry_after: Option<Duration> },
    #[error("failed: {message}")]
    Failed { message: String },
    #[error("does not accept hob's key: {message}")]
    KeyRefused { message: String },
    #[error("requires payment: {message}")]
    NoCredit { message: String },
    #[error("does not have this model: {message}")]
    NoSuchModel { message: String },
    /// With the server's numbers, if it named them.
    #[error("the prompt is too long for it: {message}")]
    TooLong { message: String, needed: Option<u32>, available: Option<u32> },
    #[error("does not take '{field}': {message}")]
    UnknownParameter { field: String, message: String },
    /// The request itself is at fault, or its content is not allowed: no other target is tried.
    #[error("refused the request: {message}")]
    Refused { message: String },
    /// The request passed through too many hob servers: an upstream points back to one of them.
    #[error("forwards requests in a circle: {message}")]
    Circular { message: String },
    /// The server reported it in an answer that had begun without an error.
    #[error("broke off with an error: {message}")]
    Reported { message: String },
    #[error("the answer was cut off")]
    CutOff,
    #[error("the answer was empty")]
    Empty,
    /// HTML, lines without an end, JSON of another shape.
    #[error("the answer is invalid: {detail}")]
    InvalidAnswer { detail: String },
}

enum_table! {
    /// The time limit that was exceeded. `failing` says what the server did not do in time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Clock: failing {
        /// From the start of the attempt until the connection is open.
        Connect = "did not accept the connection",
        /// From the last byte of the request to the first content.
        FirstToken = "said nothing",
        /// Between two pieces of content.
        Idle = "said no more",
        /// From the arrival of the request to the end of the answer.
        Total = "was not done",
    }
}

impl Fault {
    /// The fault in one word, for metrics and for the ledger.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Unreachable { .. } => "unreachable",
            Fault::TimedOut { clock: Clock::Connect, .. } => "connect_timeout",
            Fault::TimedOut { clock: Clock::FirstToken, .. } => "first_token_timeout",
            Fault::TimedOut { clock: Clock::Idle, .. } => "idle_timeout",
            Fault::TimedOut { clock: Clock::Total, .. } => "total_timeout",
            Fault::Overloaded { .. } => "overloaded",
            Fault::Limited { .. } => "rate_limited",
            Fault::Failed { .. } => "failed",
            Fault::KeyRefused { .. } => "key_refused",
            Fault::NoCredit { .. } => "no_credit",
            Fault::NoSuchModel { .. } => "no_such_model",
            Fault::TooLong { .. } => "too_long",
            Fault::UnknownParameter { .. } => "unknown_parameter",
            Fault::Refused { .. } => "refused",
            Fault::Circular { .. } => "loop_detected",
            Fault::Reported { .. } => "reported",
            Fault::CutOff => "cut_off",
            Fault::Empty => "empty_answer",
            Fault::InvalidAnswer { .. } => "invalid_answer",
        }
    }

    /// The fault without the server's own words, which may repeat a user's prompt.
    pub fn summary(&self) -> String {
        match self {
            Fault::UnknownParameter { .. } => "does not take a parameter".to_owned(),
            // These texts are hob's own.
            Fault::Unreachable { .. } | Fault::TimedOut { .. } => self.to_string(),
            other => {
                let wordless = other.clone().with_words(|_| String::new()).to_string();
                wordless.trim_end_matches(": ").to_owned()
            }
        }
    }

    /// Edits the server's words.
    #[must_use]
    pub fn with_words(mut self, edit: impl Fn(&str) -> String) -> Fault {
        match &mut self {
            Fault::Unreachable { detail: words }
            | Fault::Overloaded { message: words, .. }
            | Fault::Limited { message: words, .. }
            | Fault::Failed { message: words }
            | Fault::KeyRefused { message: words }
            | Fault::NoCredit { message: words }
            | Fault::NoSuchModel { message: words }
            | Fault::TooLong { message: words, .. }
            | Fault::UnknownParameter { message: words, .. }
            | Fault::Refused { message: words }
            | Fault::Circular { message: words }
            | Fault::Reported { message: words }
            | Fault::InvalidAnswer { detail: words } => *words = edit(words),
            Fault::TimedOut { .. } | Fault::CutOff | Fault::Empty => {}
        }
        self
    }
}

/// Puts the words of another server on one line. Control characters and marks that change the direction of
/// writing become spaces, so that a terminal does not obey them.
pub fn one_line(words: &str) -> String {
    let is_unsafe = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    words.chars().map(|c| if is_unsafe(c) { ' ' } else { c }).collect()
}

/// `45`, `0.25`.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_edited_and_the_rest_stays() {
        let refused = Fault::KeyRefused { message: "no sk-1".to_owned() };
        let edited = refused.with_words(|words| words.replace("sk-1", "…"));
        assert_eq!(edited, Fault::KeyRefused { message: "no …".to_owned() });
        assert_eq!(Fault::CutOff.with_words(|_| panic!("it has none")), Fault::CutOff);
    }

    #[test]
    fn a_summary_leaves_out_the_server_s_words() {
        let said = || "you asked: my secret".to_owned();
        for (fault, summary) in [
            (Fault::Failed { message: said() }, "failed"),
            (Fault::Overloaded { message: said(), retry_after: None }, "is overloaded"),
            (Fault::Reported { message: said() }, "broke off with an error"),
            (Fault::InvalidAnswer { detail: said() }, "the answer is invalid"),
            (
                Fault::UnknownParameter { field: said(), message: said() },
                "does not take a parameter",
            ),
            (
                Fault::Unreachable { detail: "Connection refused".to_owned() },
                "cannot be reached: Connection refused",
            ),
            (Fault::CutOff, "the answer was cut off"),
        ] {
            assert_eq!(fault.summary(), summary);
        }
    }

    #[test]
    fn words_of_servers_stay_on_one_line_and_steer_no_terminal() {
        assert_eq!(one_line("a\r\nWARN b\u{1b}[2J\u{9b}c\u{202e}d"), "a  WARN b [2J c d");
        assert_eq!(one_line("Größe 世 😀"), "Größe 世 😀");
    }

    #[test]
    fn an_exceeded_time_is_named_with_its_limit() {
        let after = Duration::from_millis(250);
        for (clock, said) in [
            (Clock::Connect, "did not accept the connection within 0.25 s"),
            (Clock::FirstToken, "said nothing within 0.25 s"),
            (Clock::Idle, "said no more within 0.25 s"),
            (Clock::Total, "was not done within 0.25 s"),
        ] {
            assert_eq!(Fault::TimedOut { clock, after }.to_string(), said);
        }
    }
}
