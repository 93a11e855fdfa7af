//! The fault matrix: what a client of a gateway must receive for each fault, in each case.
//! Each row is a promise of hob; changing a row changes the promise.

use std::fmt;

use super::client::Received;
use super::{Backing, Case};
use crate::mock::WORDS;

/// What a client must receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The complete answer, once, and nothing of another.
    Answer,
    /// An answer without content.
    Empty,
    /// An error status, with the server's `Retry-After` in seconds if it sent one.
    Refused { status: u16, retry_after: Option<u64> },
    /// 502 or 504: the gateway gives up an endless answer because of its length or its silence, whichever comes first.
    GivenUp,
    /// The first words, then an error event, and no `[DONE]`.
    Broken,
}

/// One fault and the expected results.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// A fault of the mock server, or `refused`: no server listens.
    pub fault: &'static str,
    stream: Expected,
    whole: Expected,
    stream_backed: Expected,
    whole_backed: Expected,
    /// Requests that reach the target for one request of the client. None: not checked.
    requests: Option<usize>,
    /// Further fields of the request.
    pub extra: &'static str,
    /// The gateway continues a stream that breaks off, with one more request to the target.
    pub continues: bool,
}

impl Row {
    pub fn expected(&self, case: Case) -> Expected {
        match case {
            Case::StreamAlone => self.stream,
            Case::WholeAlone => self.whole,
            Case::StreamBacked => self.stream_backed,
            Case::WholeBacked => self.whole_backed,
        }
    }

    pub(super) fn requests(&self, case: Case) -> Option<usize> {
        self.requests.map(|requests| requests + usize::from(self.requests_the_rest(case)))
    }

    fn requests_the_rest(&self, case: Case) -> bool {
        self.continues && case.streams()
    }

    /// The fallback answers instead.
    pub(super) fn falls_back(&self, case: Case) -> bool {
        self.expected(case) == Expected::Answer
            && self.whole != Expected::Answer
            && !self.requests_the_rest(case)
    }

    pub fn is_unreachable(&self) -> bool {
        self.fault == "refused"
    }
}

/// The failure comes before the first word: the fallback answers.
const fn before(fault: &'static str, status: u16, requests: usize) -> Row {
    let refused = Expected::Refused { status, retry_after: None };
    Row {
        fault,
        stream: refused,
        whole: refused,
        stream_backed: Expected::Answer,
        whole_backed: Expected::Answer,
        requests: Some(requests),
        extra: "",
        continues: false,
    }
}

const fn waits(fault: &'static str, status: u16, retry_after: u64) -> Row {
    let refused = Expected::Refused { status, retry_after: Some(retry_after) };
    Row { stream: refused, whole: refused, ..before(fault, status, 1) }
}

/// The failure comes after the first word: a stream has reached the client, a whole answer can still be repeated.
const fn after(fault: &'static str, status: u16) -> Row {
    Row { stream: Expected::Broken, stream_backed: Expected::Broken, ..before(fault, status, 1) }
}

/// Like [`after`], and the target sends the rest when the gateway requests it.
const fn continues(fault: &'static str, status: u16) -> Row {
    let answer = Expected::Answer;
    Row { stream: answer, stream_backed: answer, continues: true, ..after(fault, status) }
}

/// The gateway repairs the fault, or the answer has no fault.
const fn fine(fault: &'static str) -> Row {
    let answer = Expected::Answer;
    Row { stream: answer, whole: answer, ..before(fault, 200, 1) }
}

const fn given_up(fault: &'static str) -> Row {
    Row { stream: Expected::GivenUp, whole: Expected::GivenUp, ..before(fault, 502, 1) }
}

/// The request itself is wrong: the gateway tries no fallback.
const fn request_fault(fault: &'static str, status: u16) -> Row {
    let refused = Expected::Refused { status, retry_after: None };
    Row { stream_backed: refused, whole_backed: refused, ..before(fault, status, 1) }
}

pub const ROWS: &[Row] = &[
    fine("fine"),
    Row { requests: Some(0), ..before("refused", 502, 0) },
    waits("503", 503, 7),
    // The gateway retries once while the server's retry budget lasts.
    Row { requests: None, ..before("503-bare", 503, 2) },
    before("500", 502, 1),
    waits("429", 429, 30),
    before("401", 502, 1),
    before("400-too-long", 400, 1),
    request_fault("400", 400),
    Row { requests: Some(2), extra: r#","min_p":0.1"#, ..fine("400-min-p") },
    before("early-error", 502, 1),
    before("hang", 504, 1),
    before("hang-body", 504, 1),
    after("error-mid", 502),
    after("cut-mid", 502),
    after("stall-mid", 504),
    continues("cut-once", 502),
    continues("stall-once", 504),
    Row { continues: true, ..after("cut-changed", 502) },
    fine("bad-line"),
    after("bad-lines", 502),
    fine("no-done"),
    before("eof", 502, 1),
    after("eof-mid", 502),
    fine("no-finish"),
    Row { stream: Expected::Empty, whole: Expected::Empty, ..before("empty", 200, 1) },
    before("html", 502, 1),
    before("redirect", 502, 1),
    fine("packed"),
    fine("split"),
    fine("crlf"),
    fine("long-line"),
    given_up("endless"),
    given_up("giant-event"),
    before("pings", 504, 1),
    fine("no-usage"),
    fine("unstreamed"),
];

impl Expected {
    pub(super) fn is_met_by(self, received: &Received, backing: Backing) -> bool {
        match (self, received) {
            (Expected::Answer, Received::Answer { text, .. }) if backing == Backing::Real => {
                !text.is_empty()
            }
            (Expected::Answer, Received::Answer { text, finish }) => {
                *text == WORDS.concat() && finish == "stop"
            }
            (Expected::Empty, Received::Answer { text, finish }) => {
                text.is_empty() && finish == "stop"
            }
            (
                Expected::Refused { status, retry_after },
                Received::Refused { status: got, retry_after: wait, code },
            ) => status == *got && !code.is_empty() && retry_after.is_none_or(|r| Some(r) == *wait),
            (Expected::GivenUp, Received::Refused { status: 502 | 504, .. }) => true,
            (Expected::Broken, Received::Broken { text, code }) => {
                WORDS.concat().starts_with(text) && !text.is_empty() && !code.is_empty()
            }
            _ => false,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Answer => f.write_str("the complete answer"),
            Expected::Empty => f.write_str("an answer without content"),
            Expected::Refused { status, retry_after: None } => write!(f, "status {status}"),
            Expected::Refused { status, retry_after: Some(wait) } => {
                write!(f, "status {status}, retry after {wait} s")
            }
            Expected::GivenUp => f.write_str("status 502 or 504"),
            Expected::Broken => f.write_str("an error event"),
        }
    }
}
