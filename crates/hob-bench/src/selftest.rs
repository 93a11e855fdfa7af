//! Tests a gateway as its client, with a server behind it that fails in every known way.
//! Each fault is tested alone and with a good target as fallback, streamed and whole.

mod client;
mod matrix;

use std::fmt;
use std::time::{Duration, Instant};

use hob_core::enum_table;

use crate::mock::MockServer;
use client::{Client, Received};

pub use matrix::{Expected, ROWS, Row};

enum_table! {
    /// How one request is made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Case: name {
        StreamAlone = "stream",
        WholeAlone = "whole",
        StreamBacked = "stream-with-fallback",
        WholeBacked = "whole-with-fallback",
    }
}

impl Case {
    pub fn streams(self) -> bool {
        matches!(self, Case::StreamAlone | Case::StreamBacked)
    }

    /// A good target is the fallback of the faulty one.
    pub fn is_backed(self) -> bool {
        matches!(self, Case::StreamBacked | Case::WholeBacked)
    }
}

/// The fallback of the faulty targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A good model of the mock server, whose words are known.
    Mock,
    /// The user's own targets: any text is an answer.
    Real,
}

/// One alias that the gateway must have for the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestAlias {
    pub name: String,
    /// The mock server's model. Each case has its own, so an open circuit breaker affects no other case.
    pub model: String,
    pub is_backed: bool,
    /// No server listens at the target's address.
    pub is_unreachable: bool,
    /// The gateway continues an answer that breaks off, at a server that supports it.
    pub continues: bool,
}

/// Every alias that [`run`] uses.
pub fn aliases() -> Vec<TestAlias> {
    let of = |row: &Row| {
        let (fault, is_unreachable, continues) = (row.fault, row.is_unreachable(), row.continues);
        Case::ALL.map(|case| TestAlias {
            name: alias(fault, case),
            model: model(fault, case),
            is_backed: case.is_backed(),
            is_unreachable,
            continues,
        })
    };
    ROWS.iter().flat_map(of).chain(special_aliases()).collect()
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    pub fault: &'static str,
    pub case: &'static str,
    pub expected: String,
    pub received: String,
    pub passed: bool,
    /// Requests that reached the faulty target.
    pub requests: usize,
    pub took: Duration,
}

/// Runs every case against the gateway at `base` (an address without `/v1`), one after the other.
///
/// # Errors
/// The HTTP client cannot be created.
pub async fn run(
    base: &str,
    mock: &MockServer,
    backing: Backing,
    mut on_result: impl FnMut(&CaseResult),
) -> Result<Vec<CaseResult>, NoHttpClient> {
    let client = Client::new(base)?;
    let mut results = Vec::new();
    for row in ROWS {
        for case in cases(row, backing) {
            let result = run_case(&client, mock, row, case, backing).await;
            on_result(&result);
            results.push(result);
        }
    }
    let specials = Special::ALL.iter().filter(|_| backing == Backing::Mock);
    for special in specials {
        let started = Instant::now();
        let outcome = special.check(&client, mock).await;
        let (passed, received) = match outcome {
            Ok(said) => (true, said),
            Err(said) => (false, said),
        };
        let result = CaseResult {
            fault: special.name(),
            case: "stream",
            expected: special.expected().to_owned(),
            received,
            passed,
            requests: mock.requests(special.model()),
            took: started.elapsed(),
        };
        on_result(&result);
        results.push(result);
    }
    Ok(results)
}

/// The HTTP client of the test cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot create an HTTP client: {0}")]
pub struct NoHttpClient(pub String);

/// The user's own targets are tested only as fallbacks; the other cases concern the mock server alone.
fn cases(row: &Row, backing: Backing) -> impl Iterator<Item = Case> {
    let all = Case::ALL.into_iter();
    let concerns = move |case: &Case| match backing {
        Backing::Mock => true,
        Backing::Real => case.is_backed() && row.falls_back(*case),
    };
    all.filter(concerns)
}

async fn run_case(
    client: &Client,
    mock: &MockServer,
    row: &Row,
    case: Case,
    backing: Backing,
) -> CaseResult {
    let started = Instant::now();
    let received = client.ask(&alias(row.fault, case), case.streams(), row.extra).await;
    let took = started.elapsed();
    let requests = mock.requests(&model(row.fault, case));
    let expected = row.expected(case);
    let passed = expected.is_met_by(&received, backing)
        && row.requests(case).is_none_or(|expected| expected == requests);
    let count = row.requests(case).map_or_else(String::new, |n| format!(", requests: {n}"));
    CaseResult {
        fault: row.fault,
        case: case.name(),
        expected: format!("{expected}{count}"),
        received: received.to_string(),
        passed,
        requests,
        took,
    }
}

fn alias(fault: &str, case: Case) -> String {
    format!("selftest-{fault}-{}", case.name())
}

fn model(fault: &str, case: Case) -> String {
    let script = if fault == "refused" { String::new() } else { format!("~fault={fault}") };
    format!("{}-{fault}{script}", case.name())
}

enum_table! {
    /// Behaviour that takes more than one request to see.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Special: name {
        /// When a client leaves, the gateway cancels its request to the server.
        ClientGone = "client-gone",
        /// The gateway does not read ahead for a client that does not read.
        SlowReader = "slow-reader",
        /// Every answer on a reused connection is complete.
        KeptConnection = "kept-connection",
    }
}

/// Bytes that may be buffered for a client that does not read, in sockets and in the gateway.
const BUFFERED_BYTES_MAX: usize = 16 << 20;
/// Time until the server sees that its client has left.
const GONE_MAX: Duration = Duration::from_millis(250);
/// So many clients leave, and their median time counts: a busy machine may delay one of them.
const GONE_CLIENTS: usize = 3;
/// A client that is seen later than this was never seen.
const NEVER_GONE: Duration = Duration::from_secs(10);

fn special_aliases() -> impl Iterator<Item = TestAlias> {
    Special::ALL.into_iter().map(|special| TestAlias {
        name: format!("selftest-{}", special.name()),
        model: special.model().to_owned(),
        is_backed: true,
        is_unreachable: false,
        continues: false,
    })
}

impl Special {
    fn model(self) -> &'static str {
        match self {
            Special::ClientGone => "client-gone~fault=stall-mid",
            Special::SlowReader => "slow-reader~fault=flood",
            Special::KeptConnection => "kept-connection~fault=fine",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Special::ClientGone => {
                "the request to the server ends within 250 ms, and no other server gets it"
            }
            Special::SlowReader => "the gateway reads no faster than the client",
            Special::KeptConnection => "20 complete answers",
        }
    }

    async fn check(self, client: &Client, mock: &MockServer) -> Result<String, String> {
        let alias = format!("selftest-{}", self.name());
        match self {
            Special::ClientGone => check_disconnect(client, mock, &alias, self.model()).await,
            Special::SlowReader => slow(client, mock, &alias).await,
            Special::KeptConnection => {
                for place in 0..20 {
                    let received = client.ask(&alias, place % 2 == 0, "").await;
                    if !Expected::Answer.is_met_by(&received, Backing::Mock) {
                        return Err(format!("answer {place}: {received}"));
                    }
                }
                Ok("20 complete answers".to_owned())
            }
        }
    }
}

async fn check_disconnect(
    client: &Client,
    mock: &MockServer,
    alias: &str,
    model: &str,
) -> Result<String, String> {
    let mut times = Vec::with_capacity(GONE_CLIENTS);
    for _ in 0..GONE_CLIENTS {
        times.push(time_to_disconnect(client, mock, alias).await?);
    }
    times.sort_unstable();
    let took = times[GONE_CLIENTS / 2];
    if took > GONE_MAX {
        return Err(format!("the server was still read after {} ms", GONE_MAX.as_millis()));
    }
    let requests = mock.requests(model);
    if requests != GONE_CLIENTS {
        return Err(format!("the server got {requests} requests of {GONE_CLIENTS} clients"));
    }
    Ok(format!("ended after {} ms", took.as_millis()))
}

/// The time from a client's leaving to the end of the request at the server.
async fn time_to_disconnect(
    client: &Client,
    mock: &MockServer,
    alias: &str,
) -> Result<Duration, String> {
    let before = mock.disconnects();
    client.read_and_leave(alias).await?;
    let left = Instant::now();
    while mock.disconnects() == before {
        if left.elapsed() > NEVER_GONE {
            return Err(format!("the server was still read after {} s", NEVER_GONE.as_secs()));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(left.elapsed())
}

async fn slow(client: &Client, mock: &MockServer, alias: &str) -> Result<String, String> {
    let before = mock.bytes();
    let held = client.send_unread(alias).await?;
    let mut taken = mock.bytes();
    // Waits until the gateway reads no more, at most a second.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = mock.bytes();
        if now == taken {
            break;
        }
        taken = now;
    }
    drop(held);
    let read = taken - before;
    if read > BUFFERED_BYTES_MAX {
        return Err(format!("the gateway read {read} bytes, the client none"));
    }
    Ok(format!("{} KiB were buffered", read >> 10))
}

impl fmt::Display for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Received::Answer { text, finish } => write!(f, "an answer ({finish}): {text:.60}"),
            Received::Refused { status, code, retry_after } => {
                write!(f, "status {status} {code}")?;
                retry_after.map_or(Ok(()), |wait| write!(f, ", retry after {wait} s"))
            }
            Received::Broken { text, code } => {
                write!(f, "an error event ({code}) after: {text:.60}")
            }
            Received::Invalid(problem) => f.write_str(problem),
        }
    }
}
