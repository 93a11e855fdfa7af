//! Checks hob's benchmark client before a measurement: it measures the built-in mock server, whose true times are known,
//! under the same load. If the client cannot keep up, its figures would show its own delay, so they are rejected.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use hob_core::statistics::Sample;

use crate::drive::{
    Arrivals, Drive, DriveError, DriveResult, Endpoint, EndpointError, RequestLimits,
};
use crate::mock::{MockServer, Script, ScriptError, Truth};
use crate::record::{ErrorSpread, RecordedClientCheck};
use crate::terms::Metric;
use crate::timeline::{Protocol, RequestFigures, figures, timeline};

/// An error up to this is always allowed, however short the time is.
const ALLOWED_ERROR_MS_MIN: f64 = 0.2;
/// Allowed error as a share of the figure.
const ALLOWED_ERROR_SHARE: f64 = 0.01;
/// Maximum processor time as a share of one core.
const CPU_SHARE_MAX: f64 = 0.7;
/// Maximum delay between due time and sending, at the 95th percentile.
pub(crate) const DISPATCH_MS_MAX: f64 = 5.0;
/// Allowed delay of a chunk at the 95th percentile, as a share of the gap between chunks. A client that reads late sees several chunks together.
const ALLOWED_LATE_SHARE: f64 = 0.5;
const ALLOWED_LATE_MS_MIN: f64 = 10.0;
const LATE_PERCENTILE: f64 = 0.95;
/// Minimum share of the mock server's chunks per second that the client must read.
const READ_SHARE_MIN: f64 = 0.9;
const REQUESTS_MIN: usize = 6;
/// Maximum checks, the first one included. A slow client fails each of them; a short delay of the machine does not last.
const CHECKS_MAX: usize = 3;
const BYTES_PER_CHUNK: usize = 256;
/// Assumed gap between the chunks of a server that sends everything in one piece.
const GAP_MS_ASSUMED: f64 = 20.0;

/// Load and pace of a check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckLoad {
    pub users: usize,
    /// Requests of each user.
    pub requests_per_user: usize,
    pub ttft_ms: f64,
    pub itl_ms: f64,
    pub tokens: u32,
    /// A pause in the middle of each answer.
    pub stall_ms: f64,
}

impl CheckLoad {
    /// A load with these medians, limited so that the check takes only a few seconds. `gap_ms` is the time between two chunks, if
    /// it is known.
    pub fn with_medians(users: usize, ttft_ms: f64, gap_ms: Option<f64>) -> CheckLoad {
        let itl_ms = gap_ms.unwrap_or(GAP_MS_ASSUMED).clamp(0.5, 50.0);
        let ttft_ms = ttft_ms.clamp(5.0, 200.0);
        let tokens = (800.0 / itl_ms).clamp(16.0, 256.0) as u32;
        // Enough requests for a median on a busy machine.
        let requests = REQUESTS_MIN.div_ceil(users).max(2);
        CheckLoad { users, requests_per_user: requests, ttft_ms, itl_ms, tokens, stall_ms: 0.0 }
    }
}

/// The client's errors, and the processor time that it took.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientCheck {
    pub load: CheckLoad,
    /// Absolute error of each request's first token, compared with the mock server's own time stamps.
    pub ttft_err_ms: Sample,
    /// Signed error of each request's mean gap, which is the error of its time per token.
    pub tpot_err_ms: Sample,
    /// Absolute error of each gap.
    pub gap_err_ms: Sample,
    pub gaps_ms: Sample,
    /// Absolute error of the time from the first chunk to each later chunk.
    pub late_ms: Sample,
    pub chunks_per_s: f64,
    /// The rate at which the mock server sent them.
    pub chunks_per_s_true: f64,
    /// Share of one core, all reading threads together.
    pub cpu_share: f64,
    pub cpu: Duration,
    pub dispatch_p95_ms: f64,
    pub stalls: usize,
    pub requests: usize,
}

/// A limit that the client exceeds, so that it cannot measure this load now.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ExceededLimit {
    #[error(
        "the client's time stamps of first tokens are off by {error_ms:.2} ms (at most {allowed_ms:.2} ms)"
    )]
    FirstToken { error_ms: f64, allowed_ms: f64 },
    #[error("the client's time per token is off by {error_ms:.3} ms (at most {allowed_ms:.3} ms)")]
    TokenTime { error_ms: f64, allowed_ms: f64 },
    #[error(
        "the client reads {late_ms:.0} ms late (at most {allowed_ms:.0} ms): stop other programs, or use fewer users"
    )]
    LateReads { late_ms: f64, allowed_ms: f64 },
    #[error("the client takes {percent:.0} % of a core (at most {max:.0} %): use fewer users, or a machine of its own", max = CPU_SHARE_MAX * 100.0)]
    Busy { percent: f64 },
    #[error(
        "the client sends {late_ms:.1} ms late (at most {DISPATCH_MS_MAX} ms): stop other programs, or use fewer users"
    )]
    LateDispatch { late_ms: f64 },
    #[error(
        "the client read {read_per_s:.0} of {sent_per_s:.0} chunks per second: stop other programs, or use fewer users"
    )]
    Throughput { read_per_s: f64, sent_per_s: f64 },
}

/// Why the check could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum ClientCheckError {
    #[error("cannot start the mock server: {0}")]
    Mock(#[from] io::Error),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Drive(#[from] DriveError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error("{failed} of {requests} requests to the mock server failed")]
    RequestsFailed { failed: usize, requests: usize },
}

/// Measures a mock server in this process. If the client fails, it is checked again; the last of at most three results counts.
///
/// # Errors
/// The mock server cannot be started, or its answers are incomplete.
pub fn check_client(pace: CheckLoad, stop: &AtomicBool) -> Result<ClientCheck, ClientCheckError> {
    let mut client_check = check(pace, stop)?;
    for _ in 1..CHECKS_MAX {
        if client_check.exceeded_limits().is_empty() {
            break;
        }
        let Ok(again) = check(pace, stop) else { break };
        client_check = again;
    }
    Ok(client_check)
}

fn check(pace: CheckLoad, stop: &AtomicBool) -> Result<ClientCheck, ClientCheckError> {
    let CheckLoad { ttft_ms, itl_ms, tokens, stall_ms, .. } = pace;
    let pairs = format!(
        "ttft_ms={ttft_ms},itl_ms={itl_ms},tokens={tokens},stall_ms={stall_ms},stall_at={}",
        tokens / 2
    );
    let script = Script::default().with(&pairs)?;
    let mock = MockServer::start_local(script)?;
    let drive = check_drive(pace, &Endpoint::parse(&mock.url())?);
    let driven = drive.run(stop)?;
    compare(pace, &driven, &mock.truths())
}

/// The requests of a check, for a mock server in another process.
pub fn check_drive(pace: CheckLoad, endpoint: &Endpoint) -> Drive {
    let jobs =
        (0..pace.users * pace.requests_per_user).map(|number| job(endpoint, number)).collect();
    Drive {
        endpoint: endpoint.clone(),
        jobs,
        arrivals: Arrivals::Closed { users: pace.users },
        seed: 0,
        limits: RequestLimits::default(),
        answer_bytes: pace.tokens as usize * BYTES_PER_CHUNK,
    }
}

fn job(endpoint: &Endpoint, number: usize) -> Bytes {
    let body = r#"{"model":"mock","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Say hello."}]}"#;
    endpoint.post("/v1/chat/completions", &format!("x-request-id: {number}\r\n"), body)
}

/// Compares the client's times with those of the mock server.
///
/// # Errors
/// Answers are missing or broken.
pub fn compare(
    pace: CheckLoad,
    driven: &DriveResult,
    truths: &[Truth],
) -> Result<ClientCheck, ClientCheckError> {
    let truths: BTreeMap<&str, &Truth> =
        truths.iter().map(|truth| (truth.id.as_str(), truth)).collect();
    let pairs: Vec<(RequestFigures, &Truth)> = driven
        .exchanges
        .iter()
        .filter_map(|exchange| {
            let figures = figures(&timeline(exchange, Protocol::OpenAi), None)?;
            Some((figures, *truths.get(exchange.job.to_string().as_str())?))
        })
        .collect();
    let requests = driven.exchanges.len();
    if pairs.is_empty() || pairs.len() < requests {
        return Err(ClientCheckError::RequestsFailed { failed: requests - pairs.len(), requests });
    }
    let errors = |of: fn(&RequestFigures, &Truth) -> Vec<f64>| {
        Sample::new(pairs.iter().flat_map(|(figures, truth)| of(figures, truth)))
    };
    let dispatch_ms = errors(|figures, _| figures.get(Metric::DispatchMs).into_iter().collect());
    let chunks: usize = pairs.iter().map(|(figures, _)| figures.gaps_ms.len() + 1).sum();
    let true_s: f64 = pairs.iter().map(|(_, truth)| last_us(truth) / 1e6).sum::<f64>();
    Ok(ClientCheck {
        load: pace,
        ttft_err_ms: errors(|figures, truth| {
            let both = figures.get(Metric::TtftMs).zip(truth.first_us());
            both.map(|(seen_ms, us)| (seen_ms - us / 1e3).abs()).into_iter().collect()
        }),
        tpot_err_ms: errors(|figures, truth| {
            let mean = |gaps_ms: &[f64]| Sample::new(gaps_ms.iter().copied()).mean();
            mean(&figures.gaps_ms)
                .zip(mean(&gaps_ms(truth)))
                .map(|(seen, true_)| seen - true_)
                .into_iter()
                .collect()
        }),
        gap_err_ms: errors(|figures, truth| {
            figures
                .gaps_ms
                .iter()
                .zip(gaps_ms(truth))
                .map(|(seen, true_)| (seen - true_).abs())
                .collect()
        }),
        gaps_ms: errors(|figures, _| figures.gaps_ms.clone()),
        late_ms: errors(|figures, truth| {
            let gaps = figures.gaps_ms.iter().zip(gaps_ms(truth));
            let late = gaps.scan(0.0, |late, (seen, true_)| {
                *late += seen - true_;
                Some(late.abs())
            });
            late.collect()
        }),
        chunks_per_s: chunks as f64 / driven.wall.as_secs_f64(),
        // Users run at the same time, so their times overlap.
        chunks_per_s_true: chunks as f64 / (true_s / pace.users as f64),
        cpu_share: driven.cpu.as_secs_f64() / driven.wall.as_secs_f64(),
        cpu: driven.cpu,
        dispatch_p95_ms: percentile_or_max(&dispatch_ms, 0.95),
        stalls: pairs.iter().map(|(figures, _)| figures.stalls.count).sum(),
        requests,
    })
}

impl ClientCheck {
    /// Every limit that the client exceeds; empty if it may measure.
    pub fn exceeded_limits(&self) -> Vec<ExceededLimit> {
        let mut limits = Vec::new();
        let allowed = |figure_ms: f64| (figure_ms * ALLOWED_ERROR_SHARE).max(ALLOWED_ERROR_MS_MIN);
        // A single request that the machine delayed affects only the 99th percentile, so the median decides.
        let error_ms = self.ttft_err_ms.median().unwrap_or(f64::INFINITY);
        let allowed_ms = allowed(self.load.ttft_ms);
        if error_ms > allowed_ms {
            limits.push(ExceededLimit::FirstToken { error_ms, allowed_ms });
        }
        let error_ms = self.tpot_err_ms.median().unwrap_or(f64::INFINITY).abs();
        let allowed_ms = allowed(self.load.itl_ms);
        if error_ms > allowed_ms {
            limits.push(ExceededLimit::TokenTime { error_ms, allowed_ms });
        }
        let late_ms = percentile_or_max(&self.late_ms, LATE_PERCENTILE);
        let allowed_ms = (self.load.itl_ms * ALLOWED_LATE_SHARE).max(ALLOWED_LATE_MS_MIN);
        if late_ms > allowed_ms {
            limits.push(ExceededLimit::LateReads { late_ms, allowed_ms });
        }
        if self.cpu_share > CPU_SHARE_MAX {
            limits.push(ExceededLimit::Busy { percent: self.cpu_share * 100.0 });
        }
        if self.dispatch_p95_ms > DISPATCH_MS_MAX {
            limits.push(ExceededLimit::LateDispatch { late_ms: self.dispatch_p95_ms });
        }
        let (read_per_s, sent_per_s) = (self.chunks_per_s, self.chunks_per_s_true);
        if read_per_s < sent_per_s * READ_SHARE_MIN {
            limits.push(ExceededLimit::Throughput { read_per_s, sent_per_s });
        }
        limits
    }

    /// The check as a part of a record.
    pub fn record(&self) -> RecordedClientCheck {
        RecordedClientCheck {
            ttft_err_ms: ErrorSpread {
                p50: self.ttft_err_ms.median().unwrap_or_default(),
                p99: percentile_or_max(&self.ttft_err_ms, 0.99),
            },
            gap_err_p99_ms: percentile_or_max(&self.gap_err_ms, 0.99),
            max_chunks_s: self.chunks_per_s,
            pass: self.exceeded_limits().is_empty(),
        }
    }
}

/// The percentile, or the maximum if there are too few values.
pub(crate) fn percentile_or_max(sample: &Sample, part: f64) -> f64 {
    sample.percentile(part).map(|at| at.value).or(sample.max()).unwrap_or_default()
}

fn last_us(truth: &Truth) -> f64 {
    truth.with_content().last().map_or(0.0, |write| write.at_us)
}

fn gaps_ms(truth: &Truth) -> Vec<f64> {
    let at: Vec<f64> = truth.with_content().map(|write| write.at_us / 1e3).collect();
    at.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean() -> ClientCheck {
        let pace = CheckLoad {
            users: 4,
            requests_per_user: 2,
            ttft_ms: 100.0,
            itl_ms: 20.0,
            tokens: 64,
            stall_ms: 0.0,
        };
        ClientCheck {
            load: pace,
            ttft_err_ms: Sample::new([0.1, 0.2]),
            tpot_err_ms: Sample::new([0.01, -0.01]),
            gap_err_ms: Sample::new([0.1]),
            gaps_ms: Sample::new([20.0]),
            late_ms: Sample::new([0.1]),
            chunks_per_s: 195.0,
            chunks_per_s_true: 200.0,
            cpu_share: 0.1,
            cpu: Duration::from_millis(100),
            dispatch_p95_ms: 0.1,
            stalls: 0,
            requests: 8,
        }
    }

    #[test]
    fn each_exceeded_limit_is_reported_alone() {
        assert_eq!(clean().exceeded_limits(), []);
        let rows = [
            (
                ClientCheck { ttft_err_ms: Sample::new([3.0]), ..clean() },
                "first tokens are off by 3.00 ms",
            ),
            (
                ClientCheck { tpot_err_ms: Sample::new([-0.5]), ..clean() },
                "per token is off by 0.500 ms",
            ),
            (ClientCheck { late_ms: Sample::new([80.0]), ..clean() }, "reads 80 ms late"),
            (ClientCheck { cpu_share: 0.8, ..clean() }, "takes 80 % of a core"),
            (ClientCheck { dispatch_p95_ms: 9.0, ..clean() }, "sends 9.0 ms late"),
            (ClientCheck { chunks_per_s: 100.0, ..clean() }, "read 100 of 200 chunks"),
        ];
        for (client_check, expected) in rows {
            let limits = client_check.exceeded_limits();
            assert_eq!(limits.len(), 1, "{limits:?}");
            assert!(limits[0].to_string().contains(expected), "{}", limits[0]);
            assert!(!client_check.record().pass);
        }
    }

    #[test]
    fn a_check_reads_every_chunk_and_sees_each_pause() {
        let pace = CheckLoad {
            users: 2,
            requests_per_user: 2,
            ttft_ms: 5.0,
            itl_ms: 1.0,
            tokens: 16,
            stall_ms: 1000.0,
        };
        let got = check_client(pace, &AtomicBool::new(false)).expect("a check");
        assert_eq!((got.requests, got.gaps_ms.count()), (4, 60));
        assert!(got.stalls >= 4 && got.gaps_ms.max() >= Some(975.0));
        let stopped = check_client(pace, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(ClientCheckError::RequestsFailed { requests: 0, .. })));
    }
}
