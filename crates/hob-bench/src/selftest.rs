//! A rehearsal of everything that goes wrong with servers, asked of a gateway as a client would.
//! Each fault comes alone and with a good target behind it, streamed and whole, and what is expected of
//! each is written down beside it.

mod client;
mod rows;

use std::fmt;
use std::time::{Duration, Instant};

use crate::mock::Mock;
use client::{Client, Heard};

pub use rows::{Expected, ROWS, Row};

/// How one request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    StreamAlone,
    WholeAlone,
    StreamBacked,
    WholeBacked,
}

impl Case {
    pub const ALL: [Case; 4] =
        [Case::StreamAlone, Case::WholeAlone, Case::StreamBacked, Case::WholeBacked];

    pub fn name(self) -> &'static str {
        match self {
            Case::StreamAlone => "stream",
            Case::WholeAlone => "whole",
            Case::StreamBacked => "stream-backed",
            Case::WholeBacked => "whole-backed",
        }
    }

    pub fn streams(self) -> bool {
        matches!(self, Case::StreamAlone | Case::StreamBacked)
    }

    /// A good target stands behind the faulty one.
    pub fn is_backed(self) -> bool {
        matches!(self, Case::StreamBacked | Case::WholeBacked)
    }
}

/// What stands behind the faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A good model of the mock, whose words are known.
    Mock,
    /// Somebody's own targets: whatever they say is an answer.
    Real,
}

/// One alias that the gateway must have for the rehearsal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    pub name: String,
    /// The mock's model; each case has one of its own, so that none suffers from another's rest.
    pub model: String,
    pub is_backed: bool,
    /// Nobody listens there.
    pub is_unreachable: bool,
    /// An answer that breaks off is to be gone on with, and the server is of a kind that does.
    pub goes_on: bool,
}

/// Every alias that [`run`] asks for.
pub fn aliases() -> Vec<Alias> {
    let of = |row: &Row| {
        let (fault, is_unreachable, goes_on) = (row.fault, row.is_unreachable(), row.goes_on);
        Case::ALL.map(|case| Alias {
            name: alias(fault, case),
            model: model(fault, case),
            is_backed: case.is_backed(),
            is_unreachable,
            goes_on,
        })
    };
    ROWS.iter().flat_map(of).chain(special_aliases()).collect()
}

/// What came of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub fault: &'static str,
    pub case: &'static str,
    pub expected: String,
    pub got: String,
    pub holds: bool,
    /// Requests that reached the faulty target.
    pub hits: usize,
    pub took: Duration,
}

/// Asks the gateway at `base` (an address without `/v1`) everything, one after the other.
///
/// # Errors
/// The gateway cannot be asked at all.
pub async fn run(
    base: &str,
    mock: &Mock,
    backing: Backing,
    mut told: impl FnMut(&Verdict),
) -> Result<Vec<Verdict>, Unreachable> {
    let client = Client::new(base)?;
    let mut verdicts = Vec::new();
    for row in ROWS {
        for case in cases(row, backing) {
            let verdict = one(&client, mock, row, case, backing).await;
            told(&verdict);
            verdicts.push(verdict);
        }
    }
    let specials = SPECIALS.iter().filter(|_| backing == Backing::Mock);
    for special in specials {
        let started = Instant::now();
        let outcome = special.check(&client, mock).await;
        let (holds, got) = match outcome {
            Ok(said) => (true, said),
            Err(said) => (false, said),
        };
        let verdict = Verdict {
            fault: special.name(),
            case: "stream",
            expected: special.expected().to_owned(),
            got,
            holds,
            hits: mock.counts.hits(special.name()),
            took: started.elapsed(),
        };
        told(&verdict);
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

/// The gateway does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the gateway cannot be asked: {0}")]
pub struct Unreachable(pub String);

/// What only concerns the mock is not asked of somebody's own targets.
fn cases(row: &Row, backing: Backing) -> impl Iterator<Item = Case> {
    let all = Case::ALL.into_iter();
    let concerns = move |case: &Case| match backing {
        Backing::Mock => true,
        Backing::Real => case.is_backed() && row.falls_back(*case),
    };
    all.filter(concerns)
}

async fn one(client: &Client, mock: &Mock, row: &Row, case: Case, backing: Backing) -> Verdict {
    let started = Instant::now();
    let heard = client.ask(&alias(row.fault, case), case.streams(), row.extra).await;
    let took = started.elapsed();
    let hits = mock.counts.hits(&model(row.fault, case));
    let expected = row.expected(case);
    let holds =
        expected.holds(&heard, backing) && row.hits(case).is_none_or(|wanted| wanted == hits);
    let hits_wanted = row.hits(case).map_or_else(String::new, |hits| format!(", {hits} asked"));
    Verdict {
        fault: row.fault,
        case: case.name(),
        expected: format!("{expected}{hits_wanted}"),
        got: heard.to_string(),
        holds,
        hits,
        took,
    }
}

fn alias(fault: &str, case: Case) -> String {
    format!("selftest-{fault}-{}", case.name())
}

fn model(fault: &str, case: Case) -> String {
    format!("{fault}~{}", case.name())
}

/// What no single request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// A client that leaves takes the request to the server with it.
    ClientGone,
    /// A client that does not read is not read for.
    SlowReader,
    /// Every answer of a connection that is kept is whole.
    KeptConnection,
}

const SPECIALS: [Special; 3] = [Special::ClientGone, Special::SlowReader, Special::KeptConnection];

/// Bytes that may be on their way to a reader who reads none: sockets' buffers and the gateway's own.
const ON_THE_WAY_MAX: usize = 16 << 20;
/// For a server to hear that its reader has left.
const GONE_MAX: Duration = Duration::from_millis(250);

fn special_aliases() -> impl Iterator<Item = Alias> {
    SPECIALS.into_iter().map(|special| Alias {
        name: format!("selftest-{}", special.name()),
        model: special.model().to_owned(),
        is_backed: true,
        is_unreachable: false,
        goes_on: false,
    })
}

impl Special {
    fn name(self) -> &'static str {
        match self {
            Special::ClientGone => "client-gone",
            Special::SlowReader => "slow-reader",
            Special::KeptConnection => "kept-connection",
        }
    }

    fn model(self) -> &'static str {
        match self {
            Special::ClientGone => "stall-mid~client-gone",
            Special::SlowReader => "flood~slow-reader",
            Special::KeptConnection => "fine~kept-connection",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Special::ClientGone => "the server is let go within 250 ms, and nobody else is asked",
            Special::SlowReader => "the server is read no faster than the client reads",
            Special::KeptConnection => "twenty whole answers",
        }
    }

    async fn check(self, client: &Client, mock: &Mock) -> Result<String, String> {
        let alias = format!("selftest-{}", self.name());
        match self {
            Special::ClientGone => gone(client, mock, &alias, self.model()).await,
            Special::SlowReader => slow(client, mock, &alias).await,
            Special::KeptConnection => {
                for place in 0..20 {
                    let heard = client.ask(&alias, place % 2 == 0, "").await;
                    if !Expected::Answer.holds(&heard, Backing::Mock) {
                        return Err(format!("answer {place}: {heard}"));
                    }
                }
                Ok("twenty whole answers".to_owned())
            }
        }
    }
}

async fn gone(client: &Client, mock: &Mock, alias: &str, model: &str) -> Result<String, String> {
    let before = mock.counts.gone();
    client.begin(alias).await?;
    let left = Instant::now();
    while mock.counts.gone() == before {
        if left.elapsed() > GONE_MAX {
            return Err(format!("the server was still read {} ms later", GONE_MAX.as_millis()));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let hits = mock.counts.hits(model);
    if hits != 1 {
        return Err(format!("the server was asked {hits} times"));
    }
    Ok(format!("let go after {} ms", left.elapsed().as_millis()))
}

async fn slow(client: &Client, mock: &Mock, alias: &str) -> Result<String, String> {
    let before = mock.counts.bytes();
    let kept = client.hold(alias).await?;
    let mut taken = mock.counts.bytes();
    // Until the server is not read any more, or was read for a second.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = mock.counts.bytes();
        if now == taken {
            break;
        }
        taken = now;
    }
    drop(kept);
    let read = taken - before;
    if read > ON_THE_WAY_MAX {
        return Err(format!("{read} bytes were read from the server, and none by the client"));
    }
    Ok(format!("{} KiB were on their way", read >> 10))
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Heard::Answer { text, finish } => write!(f, "an answer ({finish}): {text:.60}"),
            Heard::Refused { status, code, retry_after } => {
                write!(f, "status {status} {code}")?;
                retry_after.map_or(Ok(()), |wait| write!(f, ", come again in {wait} s"))
            }
            Heard::Broken { text, code } => write!(f, "an error event ({code}) after: {text:.60}"),
            Heard::Odd(what) => write!(f, "{what}"),
        }
    }
}
