//! A load that costs little: kept connections in a closed loop on one thread, and what was felt on them.
//! Whatever stands in front of the mock gets the same bytes from here, so that blocks can be compared.
//! Stamps are taken right after a read; only then is looked at what came.

mod connection;
mod events;
mod process;
mod spread;

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::timeout;

use connection::{Connection, Sample};
pub use process::{Usage, peak_bytes_of};
pub use spread::Spread;

/// On top of a block's own time: for answers that are being read when it is over, and for who hangs.
const GRACE: Duration = Duration::from_secs(30);
/// On one connection; more say that something is wrong, and no more about it.
const ERRORS_MAX: usize = 20;

/// What is asked for, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// An answer in one piece.
    Whole,
    /// An answer in events; the model decides how fast they come.
    Stream,
}

/// Who is asked for what, and how the key is shown.
#[derive(Clone, Debug)]
pub struct Target {
    /// `HOST:PORT`, plain HTTP.
    pub address: String,
    pub model: String,
    pub key: Option<String>,
    pub mode: Mode,
}

/// One block: as many clients as `concurrency`, each asking again when it has its answer.
#[derive(Clone, Debug)]
pub struct Load {
    pub target: Target,
    pub concurrency: usize,
    /// No request is begun after this time.
    pub lasting: Duration,
    /// Whose processor time and memory are read, its children's included.
    pub pid: Option<u32>,
}

/// What a block came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    pub mode: Mode,
    pub concurrency: usize,
    pub requests: usize,
    pub errors: usize,
    pub wall_s: f64,
    pub requests_per_s: f64,
    pub events: usize,
    pub events_per_s: f64,
    pub latency_us: Option<Spread>,
    /// From the request to the first event that says something.
    pub ttft_us: Option<Spread>,
    /// The largest pause between two events of an answer.
    pub gap_us: Option<Spread>,
    /// Each answer's, in no order: percentiles of several blocks need them all.
    pub ttfts_us: Vec<f64>,
    /// Of the process under test, for one answer.
    pub cpu_us_per_request: Option<f64>,
    pub rss_bytes: Option<u64>,
    /// What the load itself took of one core: near 1, it is what was measured.
    pub client_cpu_share: Option<f64>,
}

/// There is nothing to measure.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{address} does not let itself be asked: {cause}")]
    Unasked { address: String, cause: io::Error },
    #[error("process {pid} cannot be looked at: {cause}")]
    Unseen { pid: u32, cause: io::Error },
    #[error("a block of {seconds} s was not over {} s later", GRACE.as_secs())]
    Stuck { seconds: f64 },
}

/// Connects, asks once on each connection, which is not counted, and then for as long as it lasts.
///
/// # Errors
/// The first request of a connection fails, the process cannot be looked at, or nothing ends.
pub async fn run(load: &Load) -> Result<Block, LoadError> {
    let stuck = |_| LoadError::Stuck { seconds: load.lasting.as_secs_f64() };
    timeout(load.lasting + GRACE, measure(load)).await.map_err(stuck)?
}

async fn measure(load: &Load) -> Result<Block, LoadError> {
    let connections = opened(load).await?;
    let (before, own_before) = (usage(load.pid)?, Usage::of(std::process::id()).ok());
    let begun = Instant::now();
    let until = begun + load.lasting;
    let users = together(connections, |connection| closed_loop(connection, until)).await;
    let wall = begun.elapsed();
    let (after, own_after) = (usage(load.pid)?, Usage::of(std::process::id()).ok());
    let mut block = block(load, wall, users);
    if let (Some(before), Some(after)) = (before, after) {
        let cpu = after.cpu.saturating_sub(before.cpu);
        block.cpu_us_per_request = Some(cpu.as_secs_f64() * 1e6 / block.requests.max(1) as f64);
        block.rss_bytes = Some(after.rss_bytes);
    }
    let own = own_before.zip(own_after).map(|(before, after)| after.cpu.saturating_sub(before.cpu));
    block.client_cpu_share = own.map(|own| own.as_secs_f64() / wall.as_secs_f64());
    Ok(block)
}

fn usage(pid: Option<u32>) -> Result<Option<Usage>, LoadError> {
    let look = |pid| Usage::of(pid).map_err(|cause| LoadError::Unseen { pid, cause });
    pid.map(look).transpose()
}

/// Connections that have had an answer each.
async fn opened(load: &Load) -> Result<Vec<Connection>, LoadError> {
    let targets = vec![load.target.clone(); load.concurrency];
    let opened = together(targets, |target| async move {
        let mut connection = Connection::open(&target).await?;
        connection.ask().await.map(|_| connection)
    });
    let unasked = |cause| LoadError::Unasked { address: load.target.address.clone(), cause };
    opened.await.into_iter().collect::<io::Result<_>>().map_err(unasked)
}

/// All at once, each as a task of its own, so that only who has something to read is woken.
async fn together<I, F, T>(items: Vec<I>, work: impl Fn(I) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut tasks: JoinSet<T> = items.into_iter().map(work).collect();
    let mut results = Vec::new();
    while let Some(result) = tasks.join_next().await {
        results.extend(result);
    }
    results
}

/// What one connection felt.
#[derive(Debug, Default)]
struct Felt {
    samples: Vec<Sample>,
    errors: usize,
}

async fn closed_loop(mut connection: Connection, until: Instant) -> Felt {
    let mut felt = Felt::default();
    while Instant::now() < until && felt.errors < ERRORS_MAX {
        match connection.ask().await {
            Ok(sample) => felt.samples.push(sample),
            Err(_) => {
                felt.errors += 1;
                if connection.reopen().await.is_err() {
                    felt.errors = ERRORS_MAX;
                }
            }
        }
    }
    felt
}

fn block(load: &Load, wall: Duration, users: Vec<Felt>) -> Block {
    let errors = users.iter().map(|felt| felt.errors).sum();
    let samples: Vec<Sample> = users.into_iter().flat_map(|felt| felt.samples).collect();
    let events = samples.iter().map(|sample| sample.events).sum();
    let each = |figure: fn(&Sample) -> Option<Duration>| -> Vec<f64> {
        samples.iter().filter_map(figure).map(|time| time.as_secs_f64() * 1e6).collect()
    };
    let ttfts_us = each(|sample| sample.ttft);
    Block {
        mode: load.target.mode,
        concurrency: load.concurrency,
        requests: samples.len(),
        errors,
        wall_s: wall.as_secs_f64(),
        requests_per_s: samples.len() as f64 / wall.as_secs_f64(),
        events,
        events_per_s: events as f64 / wall.as_secs_f64(),
        latency_us: Spread::of(each(|sample| Some(sample.latency))),
        ttft_us: Spread::of(ttfts_us.clone()),
        gap_us: Spread::of(each(|sample| sample.gap)),
        ttfts_us,
        cpu_us_per_request: None,
        rss_bytes: None,
        client_cpu_share: None,
    }
}
