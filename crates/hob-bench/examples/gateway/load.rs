//! One block of load: clients that repeat one request as soon as they have its answer.
//! hob-bench's own client sends the requests, so figures have the same definitions as `hob bench`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hob_bench::drive::{Arrivals, Drive, End, Endpoint, Exchange, RequestLimits};
use hob_bench::process::ProcessUsage;
use hob_bench::terms::Metric;
use hob_bench::timeline::{Protocol, RequestFault, Timeline, figures, timeline};
use hob_core::statistics::Sample;
use serde::Serialize;
use serde_json::json;

/// More requests than any server here answers in a second.
const REQUESTS_PER_S_MAX: f64 = 100_000.0;
/// Tokens in a complete stream. A gateway that drops some is not faster for it.
const TOKENS: usize = 64;
/// Events of a stream without a token: role, finish reason, usage, and `[DONE]`.
const OTHER_EVENTS: usize = 4;
/// Expected size of a stream.
const ANSWER_BYTES: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// An answer in one piece.
    Whole,
    /// An answer as a stream of events.
    Stream,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Load {
    /// HOST:PORT of the server
    #[arg(long)]
    pub(crate) address: String,
    #[arg(long)]
    pub(crate) mode: Mode,
    #[arg(long)]
    pub(crate) model: String,
    /// API key
    #[arg(long)]
    pub(crate) key: Option<String>,
    #[arg(long, default_value_t = 1)]
    pub(crate) concurrency: usize,
    #[arg(long, default_value_t = 2.0)]
    pub(crate) seconds: f64,
    /// Process whose CPU time and memory are read, its children's included
    #[arg(long)]
    pub(crate) pid: Option<u32>,
}

/// The result of a block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Block {
    mode: Mode,
    concurrency: usize,
    pub(crate) requests: usize,
    pub(crate) errors: usize,
    wall_s: f64,
    requests_per_s: f64,
    pub(crate) events: usize,
    events_per_s: f64,
    pub(crate) latency_us: Option<Spread>,
    /// From the request to the first token.
    pub(crate) ttft_us: Option<Spread>,
    /// The largest pause between two chunks of an answer.
    gap_us: Option<Spread>,
    /// One per answer, in no order: a percentile over several blocks needs them all.
    pub(crate) ttfts_us: Vec<f64>,
    /// Processor time of the process under test for one answer.
    cpu_us_per_request: Option<f64>,
    rss_bytes: Option<u64>,
    /// The share of one core that the load itself took. Near 1, the load was measured instead of the server.
    client_cpu_share: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) n: usize,
    min: Option<f64>,
    p50: Option<f64>,
    /// Absent with too few values.
    p99: Option<f64>,
    max: Option<f64>,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Spread> {
        let sample = Sample::new(values.iter().copied());
        let at = |part| sample.percentile(part).map(|at| at.value);
        (!values.is_empty()).then(|| Spread {
            n: values.len(),
            min: sample.min(),
            p50: sample.median(),
            p99: at(0.99),
            max: sample.max(),
        })
    }
}

/// Sends one request, which is not counted, and then requests for `seconds`.
///
/// # Errors
/// The first request fails, or the process does not exist.
pub(crate) fn run(load: &Load) -> Result<Block> {
    let first = drive(load, 1)?.run(&AtomicBool::new(false))?;
    if let Some(Err(error)) = first.exchanges.first().map(|exchange| check(exchange, load.mode)) {
        bail!("{} does not answer: {error}", load.address);
    }
    let usage = |pid: Option<u32>| pid.map(ProcessUsage::read).transpose();
    let lasting = Duration::try_from_secs_f64(load.seconds)?;
    let requests_max = (load.seconds * REQUESTS_PER_S_MAX).ceil() as usize;
    let (drive, stop) = (drive(load, requests_max)?, AtomicBool::new(false));
    let before = usage(load.pid)?;
    let driven = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(lasting);
            stop.store(true, Ordering::Relaxed);
        });
        drive.run(&stop)
    })?;
    let after = usage(load.pid)?;
    // An answer that was not complete at the end of the block is not an error.
    let ended = driven.exchanges.iter().filter(|exchange| exchange.end != End::Stopped);
    let checked: Vec<Result<Answered>> = ended.map(|exchange| check(exchange, load.mode)).collect();
    let errors = checked.iter().filter(|answer| answer.is_err()).count();
    let answers: Vec<Answered> = checked.into_iter().flatten().collect();
    let (requests, wall_s) = (answers.len(), driven.wall.as_secs_f64());
    let events = if load.mode == Mode::Stream { requests * (TOKENS + OTHER_EVENTS) } else { 0 };
    let ttfts_us: Vec<f64> = answers.iter().filter_map(|answer| answer.ttft_us).collect();
    let latencies_us: Vec<f64> = answers.iter().map(|answer| answer.latency_us).collect();
    let gaps_us: Vec<f64> = answers.iter().filter_map(|answer| answer.gap_us).collect();
    let cpu = before.zip(after).map(|(before, after)| after.cpu.saturating_sub(before.cpu));
    Ok(Block {
        mode: load.mode,
        concurrency: load.concurrency,
        requests,
        errors,
        wall_s,
        requests_per_s: requests as f64 / wall_s,
        events,
        events_per_s: events as f64 / wall_s,
        latency_us: Spread::of(&latencies_us),
        ttft_us: Spread::of(&ttfts_us),
        gap_us: Spread::of(&gaps_us),
        ttfts_us,
        cpu_us_per_request: cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / requests.max(1) as f64),
        rss_bytes: after.map(|after| after.rss_bytes),
        client_cpu_share: driven.cpu.as_secs_f64() / wall_s,
    })
}

fn drive(load: &Load, requests: usize) -> Result<Drive> {
    let endpoint = Endpoint::parse(&format!("http://{}", load.address))?;
    let messages = json!([{ "role": "user", "content": "Say hello." }]);
    let body = match load.mode {
        Mode::Whole => json!({ "model": load.model, "messages": messages }),
        Mode::Stream => json!({ "model": load.model, "messages": messages, "stream": true,
            "stream_options": { "include_usage": true } }),
    }
    .to_string();
    let key = load.key.as_ref().map(|key| format!("authorization: Bearer {key}\r\n"));
    let job = endpoint.post("/v1/chat/completions", &key.unwrap_or_default(), &body);
    Ok(Drive {
        endpoint,
        jobs: vec![job; requests],
        arrivals: Arrivals::Closed { users: load.concurrency },
        seed: 0,
        limits: RequestLimits { total: Duration::from_secs(60), ..RequestLimits::default() },
        answer_bytes: if load.mode == Mode::Stream { ANSWER_BYTES } else { 1 << 10 },
    })
}

#[derive(Debug)]
struct Answered {
    latency_us: f64,
    ttft_us: Option<f64>,
    gap_us: Option<f64>,
}

/// The times of a complete answer; anything else is an error and never a time.
fn check(exchange: &Exchange, mode: Mode) -> Result<Answered> {
    let timeline = timeline(exchange, Protocol::OpenAi);
    if let Some(fault) = &timeline.fault {
        bail!("{}", reason(fault, &timeline));
    }
    let Some(figures) = figures(&timeline, None) else { bail!("no figures") };
    let us = |metric| figures.get(metric).map(|ms| ms * 1e3);
    let last = us(Metric::E2eMs).context("no time of the whole answer")?;
    if mode == Mode::Whole {
        return Ok(Answered { latency_us: last, ttft_us: None, gap_us: None });
    }
    let chunks = timeline.chunks.len();
    ensure!(chunks == TOKENS, "{chunks} chunks instead of {TOKENS}");
    let gap_us = figures.gaps_ms.iter().copied().reduce(f64::max).map(|ms| ms * 1e3);
    Ok(Answered { latency_us: last, ttft_us: us(Metric::TtftMs), gap_us })
}

fn reason(fault: &RequestFault, timeline: &Timeline) -> String {
    format!("status {}: {fault}", timeline.status)
}
