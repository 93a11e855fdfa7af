//! The fault matrix: what is expected of a gateway for each fault, in each case.
//! A row is a promise; whoever changes one changes what hob promises.

use std::fmt;

use super::client::Heard;
use super::{Backing, Case};
use crate::mock::WORDS;

/// What a client must hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The whole answer, once, and nothing of another.
    Answer,
    /// An answer without content.
    Empty,
    /// A status, and when to come again if the server said so.
    Refused { status: u16, retry_after: Option<u64> },
    /// 502 or 504: what never ends is given up for its length or for its silence, whichever comes first.
    GivenUp,
    /// What was said, then an error event, and no `[DONE]`.
    Broken,
}

/// One fault and what follows from it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// A model of the mock, or `refused`: nobody listens.
    pub fault: &'static str,
    stream: Expected,
    whole: Expected,
    stream_backed: Expected,
    whole_backed: Expected,
    /// Requests that reach the target, of one of the client's.
    hits: Option<usize>,
    /// Further fields of the request.
    pub extra: &'static str,
    /// A stream that breaks off is to go on: the target is asked once more.
    pub goes_on: bool,
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

    pub(super) fn hits(&self, case: Case) -> Option<usize> {
        self.hits.map(|hits| hits + usize::from(self.is_asked_for_the_rest(case)))
    }

    fn is_asked_for_the_rest(&self, case: Case) -> bool {
        self.goes_on && case.streams()
    }

    /// Whoever stands behind answers instead.
    pub(super) fn falls_back(&self, case: Case) -> bool {
        self.expected(case) == Expected::Answer
            && self.whole != Expected::Answer
            && !self.is_asked_for_the_rest(case)
    }

    pub fn is_unreachable(&self) -> bool {
        self.fault == "refused"
    }
}

/// Nothing is said before the failure: whoever stands behind answers.
const fn before(fault: &'static str, status: u16, hits: usize) -> Row {
    let refused = Expected::Refused { status, retry_after: None };
    Row {
        fault,
        stream: refused,
        whole: refused,
        stream_backed: Expected::Answer,
        whole_backed: Expected::Answer,
        hits: Some(hits),
        extra: "",
        goes_on: false,
    }
}

const fn waits(fault: &'static str, status: u16, retry_after: u64) -> Row {
    let refused = Expected::Refused { status, retry_after: Some(retry_after) };
    Row { stream: refused, whole: refused, ..before(fault, status, 1) }
}

/// Something was said: a stream is the client's, a whole answer can still be made again.
const fn after(fault: &'static str, status: u16) -> Row {
    Row { stream: Expected::Broken, stream_backed: Expected::Broken, ..before(fault, status, 1) }
}

/// The same, and a stream's rest is said when it is asked for.
const fn goes_on(fault: &'static str, status: u16) -> Row {
    let answer = Expected::Answer;
    Row { stream: answer, stream_backed: answer, goes_on: true, ..after(fault, status) }
}

/// It is mended, or was never wrong.
const fn fine(fault: &'static str) -> Row {
    let answer = Expected::Answer;
    Row { stream: answer, whole: answer, ..before(fault, 200, 1) }
}

const fn given_up(fault: &'static str) -> Row {
    Row { stream: Expected::GivenUp, whole: Expected::GivenUp, ..before(fault, 502, 1) }
}

/// The request's own fault: nobody else is asked.
const fn own(fault: &'static str, status: u16) -> Row {
    let refused = Expected::Refused { status, retry_after: None };
    Row { stream_backed: refused, whole_backed: refused, ..before(fault, status, 1) }
}

pub const ROWS: &[Row] = &[
    fine("fine"),
    Row { hits: Some(0), ..before("refused", 502, 0) },
    waits("503", 503, 7),
    // Asked once more, as long as the server has second tries left.
    Row { hits: None, ..before("503-bare", 503, 2) },
    before("500", 502, 1),
    waits("429", 429, 30),
    before("401", 502, 1),
    before("400-too-long", 400, 1),
    own("400", 400),
    Row { hits: Some(2), extra: r#","min_p":0.1"#, ..fine("400-min-p") },
    before("early-error", 502, 1),
    before("hang", 504, 1),
    before("hang-body", 504, 1),
    after("error-mid", 502),
    after("cut-mid", 502),
    after("stall-mid", 504),
    goes_on("cut-once", 502),
    goes_on("stall-once", 504),
    Row { goes_on: true, ..after("cut-anew", 502) },
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
    pub(super) fn holds(self, heard: &Heard, backing: Backing) -> bool {
        match (self, heard) {
            (Expected::Answer, Heard::Answer { text, .. }) if backing == Backing::Real => {
                !text.is_empty()
            }
            (Expected::Answer, Heard::Answer { text, finish }) => {
                *text == WORDS.concat() && finish == "stop"
            }
            (Expected::Empty, Heard::Answer { text, finish }) => {
                text.is_empty() && finish == "stop"
            }
            (Expected::Refused { status, retry_after }, Heard::Refused { .. }) => {
                let Heard::Refused { status: got, retry_after: wait, code } = heard else {
                    return false;
                };
                status == *got && !code.is_empty() && retry_after.is_none_or(|r| Some(r) == *wait)
            }
            (Expected::GivenUp, Heard::Refused { status: 502 | 504, .. }) => true,
            (Expected::Broken, Heard::Broken { text, code }) => {
                WORDS.concat().starts_with(text) && !text.is_empty() && !code.is_empty()
            }
            _ => false,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Answer => f.write_str("the whole answer"),
            Expected::Empty => f.write_str("an answer without content"),
            Expected::Refused { status, retry_after: None } => write!(f, "status {status}"),
            Expected::Refused { status, retry_after: Some(wait) } => {
                write!(f, "status {status}, come again in {wait} s")
            }
            Expected::GivenUp => f.write_str("status 502 or 504"),
            Expected::Broken => f.write_str("an error event"),
        }
    }
}
