//! Makes the record of a cell: figures, samples, and every doubt.
//! A figure is the median of the runs; percentiles are over all requests, if there are enough.

use hob_core::statistics::Sample;
use jiff::Timestamp;
use uuid::Uuid;

use super::{BenchError, Reply, Runs};
use crate::client_check::{ClientCheck, DISPATCH_MS_MAX, percentile_or_max};
use crate::host::PSI_PCT_MAX;
use crate::launch::LaunchError;
use crate::record::{
    Client, ClientImpl, Confidence, CountSource, Dispatch, Doubt, Harness, Host, Label, Metrics,
    RawSample, Record, RecordKind, RecordSource, RecordedEngine, RecordedModel, RecordedTokens,
    RecordedWorkload, RunStatus, RunTime, SourceType, Spread, Stall,
};
use crate::terms::Metric;
use crate::timeline::{Flag, RequestFault, SoundFault};

const RUNS_MIN: usize = 6;
const STARTS_MIN: u32 = 2;
const HALF_WIDTH_PCT_MAX: f64 = 5.0;
const EXPIRES_DAYS: i64 = 90;
/// If a larger share of answers came in one piece, the measurement is invalid: it has no time per token.
const NOT_STREAMED_SHARE_MAX: f64 = 0.05;

/// Machine, server, model and client of a measurement.
#[derive(Clone, Debug, Default)]
pub struct RecordContext {
    pub host: Host,
    pub engine: RecordedEngine,
    pub model: RecordedModel,
    pub argv: Vec<String>,
    pub seed: u64,
    /// The client's commit, and whether it was built with uncommitted changes.
    pub git: Option<String>,
    pub dirty: Option<bool>,
}

/// The runs of a cell, with the properties that only its kind of measurement knows.
#[derive(Clone, Debug)]
pub struct CellSummary<'a> {
    pub kind: RecordKind,
    pub runs: &'a Runs,
    pub started: Timestamp,
    pub workload: RecordedWorkload,
    /// The figures of the stopping rule.
    pub stopping_metrics: &'a [Metric],
    pub count_source: Option<CountSource>,
    /// Why the measurement is invalid, in addition to the reasons that all kinds share.
    pub more_invalid_reasons: Vec<String>,
    /// Doubts that only this kind of measurement knows.
    pub doubts: Vec<Doubt>,
}

/// A record and its samples.
#[derive(Clone, Debug)]
pub struct CellRecord {
    pub record: Record,
    pub samples: Vec<RawSample>,
}

impl RecordContext {
    /// A record of a failed measurement, with the reason.
    pub fn failed(
        &self,
        kind: RecordKind,
        workload: RecordedWorkload,
        error: &BenchError,
    ) -> Record {
        let mut record = self.record(kind);
        record.time = RunTime { started: Some(Timestamp::now()), ended: Some(Timestamp::now()) };
        record.status = match error {
            BenchError::Launch(LaunchError::Ended { is_out_of_memory: true, .. }) => RunStatus::Oom,
            BenchError::Launch(LaunchError::NotReady { .. })
            | BenchError::Fault(RequestFault::Silent { .. } | RequestFault::TooSlow { .. })
            | BenchError::Sound(SoundFault::Answer(
                RequestFault::Silent { .. } | RequestFault::TooSlow { .. },
            )) => RunStatus::Timeout,
            _ => RunStatus::Failed,
        };
        record.invalid_reasons = vec![error.to_string()];
        record.workload = workload;
        record.harness = Some(self.harness());
        record
    }

    /// Program and command line; nothing of the client's accuracy.
    fn harness(&self) -> Harness {
        Harness {
            git: self.git.clone(),
            dirty: self.dirty,
            argv: self.argv.clone(),
            seed: self.seed,
            ..Harness::default()
        }
    }

    fn record(&self, kind: RecordKind) -> Record {
        let source = RecordSource {
            r#type: SourceType::Native,
            tool: "hob".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            ..RecordSource::default()
        };
        let mut record = Record::new(Uuid::now_v7(), kind, source);
        record.host = self.host.clone();
        record.engine = self.engine.clone();
        record.model = self.model.clone();
        record
    }
}

impl<'a> CellSummary<'a> {
    /// Runs in which a server counts no tokens, and about which only the doubts of all kinds are possible.
    pub fn new(
        kind: RecordKind,
        workload: RecordedWorkload,
        runs: &'a Runs,
        started: Timestamp,
        stopping_metrics: &'a [Metric],
    ) -> CellSummary<'a> {
        CellSummary {
            kind,
            runs,
            started,
            workload,
            stopping_metrics,
            count_source: None,
            more_invalid_reasons: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Makes the record.
    pub fn into_record(self, context: &RecordContext) -> CellRecord {
        let mut record = context.record(self.kind);
        record.time = RunTime { started: Some(self.started), ended: Some(Timestamp::now()) };
        record.status = status(self.runs);
        record.harness = Some(harness(self.runs, context));
        record.metrics = metrics(self.runs);
        record.count_source = self.count_source;
        // A longest context is not a time, so timing errors of the client do not make its record invalid.
        let is_time = self.kind != RecordKind::MaxContext;
        record.invalid_reasons = client_faults(self.runs).filter(|_| is_time).collect();
        record.invalid_reasons.extend(invalid_reasons(self.runs));
        record.invalid_reasons.extend(self.more_invalid_reasons);
        let is_open = self.workload.rate.is_some();
        record.invalid_reasons.extend(late_dispatch_reason(&record).filter(|_| is_open));
        record.confidence = confidence(self.runs, self.stopping_metrics, &record, self.doubts);
        record.workload = RecordedWorkload {
            requests: Some(self.runs.replies().count() as u64),
            warmup: Some(self.runs.warmup_requests as u64),
            ..self.workload
        };
        CellRecord { record, samples: samples(self.runs) }
    }
}

fn status(runs: &Runs) -> RunStatus {
    match (runs.was_stopped, runs.answered().next()) {
        (true, _) => RunStatus::Aborted,
        (false, None) => RunStatus::Failed,
        (false, Some(_)) => RunStatus::Ok,
    }
}

/// Why this client's times are wrong.
fn client_faults(runs: &Runs) -> impl Iterator<Item = String> + '_ {
    let limits = runs.client_check.iter().flat_map(ClientCheck::exceeded_limits);
    let is_unknown = runs.client_check.is_none() && runs.answered().next().is_some();
    let unknown =
        is_unknown.then(|| "the client could not be checked with the mock server".to_owned());
    limits.map(|limit| limit.to_string()).chain(unknown)
}

/// Why the measurement is invalid, with the first fault as an example.
fn invalid_reasons(runs: &Runs) -> Vec<String> {
    let mut reasons = Vec::new();
    let faults: Vec<&String> = runs.replies().filter_map(|reply| reply.fault.as_ref()).collect();
    if let Some(fault) = faults.first() {
        let requests = runs.replies().count();
        reasons.push(format!("{} of {requests} requests failed: {fault}", faults.len()));
    }
    reasons.extend(runs.broken.clone());
    let answers = runs.answered().count();
    let impossible = flagged(runs, Flag::CountsImpossible);
    if impossible > 0 {
        reasons.push(format!(
            "the server's token count is impossible for {impossible} of {answers} answers: it is below the number of chunks, above the token limit, or above the number of characters"
        ));
    }
    let whole = flagged(runs, Flag::NotStreamed);
    if whole as f64 > NOT_STREAMED_SHARE_MAX * answers as f64 {
        reasons.push(format!(
            "{whole} of {answers} answers came in one piece, so their pace is unknown"
        ));
    }
    reasons
}

/// Number of answers with this flag.
fn flagged(runs: &Runs, flag: Flag) -> usize {
    runs.answered().filter(|reply| reply.flags.contains(&flag)).count()
}

/// The reason to reject an open loop whose requests were sent late: that delay is the client's and not the server's.
fn late_dispatch_reason(record: &Record) -> Option<String> {
    let late_ms = record.harness.as_ref()?.client.dispatch_ms?.p95;
    (late_ms > DISPATCH_MS_MAX).then(|| {
        format!("requests were sent {late_ms:.0} ms after they were due (at most {DISPATCH_MS_MAX} ms): this client was busy, or had no free connection")
    })
}

fn harness(runs: &Runs, context: &RecordContext) -> Harness {
    let seconds = |time: fn(&super::Run) -> std::time::Duration| -> f64 {
        runs.runs.iter().map(|run| time(run).as_secs_f64()).sum()
    };
    let wall = seconds(|run| run.wall);
    let dispatch = runs.pooled(Metric::DispatchMs);
    let p95 = percentile_or_max(&dispatch, 0.95);
    Harness {
        client: Client {
            r#impl: ClientImpl::Threads,
            cpu_s: Some(seconds(|run| run.cpu)),
            max_core_pct: (wall > 0.0).then(|| seconds(|run| run.cpu_busiest) / wall * 100.0),
            dispatch_ms: dispatch.median().map(|p50| Dispatch { p50, p95 }),
        },
        selftest: runs.client_check.as_ref().map(ClientCheck::record),
        ..context.harness()
    }
}

fn metrics(runs: &Runs) -> Metrics {
    let mut metrics = Metrics::default();
    for metric in Metric::ALL {
        let sample = runs.sample(*metric);
        if sample.count() > 0 {
            metrics.spreads.insert(*metric, spread(&sample, &runs.pooled(*metric)));
        }
    }
    let is_estimated = runs.answered().any(|r| r.flags.contains(&Flag::PrefillEstimated));
    if let Some(spread) = metrics.spreads.get_mut(&Metric::PrefillTokS).filter(|_| is_estimated) {
        spread.method = Some("client_estimate".to_owned());
    }
    metrics.stall = runs.answered().next().map(|_| Stall {
        count: runs.answered().map(|reply| reply.stalls.count as u64).sum(),
        worst_ms: runs.answered().map(|reply| reply.stalls.worst_ms).fold(0.0, f64::max),
    });
    let has_no_answer = |reply: &&Reply| reply.flags.contains(&Flag::NoAnswer);
    metrics.no_answer = Some(runs.replies().filter(has_no_answer).count() as u64);
    metrics.errors = Some(runs.replies().filter(|reply| reply.has_failed()).count() as u64);
    metrics
}

/// The median is one of the runs' figures, and all else is that of their requests.
pub(crate) fn spread(runs: &Sample, pooled: &Sample) -> Spread {
    let percentile = |share: f64| pooled.percentile(share).map(|at| at.value);
    Spread {
        n: Some(pooled.count() as u64),
        min: pooled.min(),
        p50: runs.median(),
        p95: percentile(0.95),
        p99: percentile(0.99),
        max: pooled.max(),
        mean: pooled.mean(),
        ci95: runs.median_interval(),
        method: None,
    }
}

fn confidence(runs: &Runs, leading: &[Metric], record: &Record, own: Vec<Doubt>) -> Confidence {
    let ci_half_width_pct = runs.half_width_pct(leading);
    let (noise, starts) = (&record.host.noise, runs.starts());
    let harness = record.harness.as_ref();
    let selftest = harness.and_then(|harness| harness.selftest.as_ref());
    let rows = [
        (runs.runs.len() < RUNS_MIN, Doubt::FewRuns),
        (starts < STARTS_MIN, Doubt::OneStart),
        (ci_half_width_pct.is_none_or(|pct| pct > HALF_WIDTH_PCT_MAX), Doubt::WideCi),
        (noise.psi_cpu.is_some_and(|pct| pct >= PSI_PCT_MAX), Doubt::NoisyHost),
        (noise.psi_cpu.is_none(), Doubt::NoiseUnknown),
        (noise.throttled == Some(true), Doubt::Throttled),
        (noise.on_battery == Some(true), Doubt::OnBattery),
        (selftest.is_none_or(|selftest| !selftest.pass), Doubt::ClientError),
        (!is_traceable(record), Doubt::NoProvenance),
        (harness.is_some_and(|harness| harness.dirty == Some(true)), Doubt::DirtyBuild),
        (flagged(runs, Flag::NotStreamed) > 0, Doubt::NotStreamed),
        (leading.iter().any(|metric| runs.pooled(*metric).is_bimodal()), Doubt::Bimodal),
    ];
    let mut reasons = those_that_apply(rows);
    reasons.extend(own);
    reasons.sort();
    let expires = record.time.started.map(|time| {
        let day = time.to_zoned(jiff::tz::TimeZone::UTC).date();
        day.saturating_add(jiff::Span::new().days(EXPIRES_DAYS))
    });
    let is_verified = reasons.is_empty() && record.invalid_reasons.is_empty();
    let label = if is_verified { Label::Verified } else { Label::Unverified };
    let runs = u32::try_from(runs.runs.len()).ok();
    Confidence { label, reasons, runs, server_starts: Some(starts), ci_half_width_pct, expires }
}

pub(crate) fn those_that_apply(rows: impl IntoIterator<Item = (bool, Doubt)>) -> Vec<Doubt> {
    rows.into_iter().filter_map(|(is_so, doubt)| is_so.then_some(doubt)).collect()
}

/// Whether another person could repeat the measurement: program, start command, weights and client are known.
fn is_traceable(record: &Record) -> bool {
    let RecordedEngine { name, version, argv, .. } = &record.engine;
    let built = record.harness.as_ref().and_then(|harness| harness.git.as_ref());
    name.is_some()
        && version.is_some()
        && !argv.is_empty()
        && record.model.sha256.is_some()
        && built.is_some()
}

fn samples(runs: &Runs) -> Vec<RawSample> {
    let runs = (0..).zip(&runs.runs);
    let of_run = |(number, run): (u32, &super::Run)| {
        run.replies.iter().map(|reply| sample(number, run.start, reply)).collect::<Vec<_>>()
    };
    runs.flat_map(of_run).collect()
}

fn sample(run: u32, start: u32, reply: &Reply) -> RawSample {
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let whole = |ms: f64| (ms * 1e3).round() as u64;
    let micros_of = |metric| reply.figures.get(&metric).copied().map(whole);
    let tokens = reply.tokens;
    RawSample {
        run,
        start,
        t_sched_us: Some(micros(reply.sched)),
        dispatch_us: Some(micros(reply.sent.saturating_sub(reply.sched))),
        connect_us: reply.connect.map(micros),
        ttfb_us: micros_of(Metric::TtfbMs),
        ttft_us: micros_of(Metric::TtftMs).or(micros_of(Metric::FirstPartialMs)),
        ttfat_us: micros_of(Metric::TtfatMs),
        ttfa_us: micros_of(Metric::TtfaMs),
        e2e_us: micros_of(Metric::E2eMs)
            .or(micros_of(Metric::WallMs))
            .or(micros_of(Metric::FinalTextMs)),
        gaps_us: reply.gaps_ms.iter().map(|ms| whole(*ms)).collect(),
        tokens: RecordedTokens {
            prompt: tokens.and_then(|tokens| tokens.prompt.map(u64::from)),
            cached: tokens.and_then(|tokens| tokens.cached.map(u64::from)),
            reasoning: tokens.map(|tokens| tokens.reasoning.into()),
            content: tokens.map(|tokens| tokens.content.into()),
        },
        finish: reply.finish.clone(),
        error: reply.fault.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Run;

    /// The record of a cell about which nothing else is known.
    fn record_of(kind: RecordKind, runs: &Runs) -> Record {
        let workload = RecordedWorkload::default();
        let summary = CellSummary::new(kind, workload, runs, Timestamp::UNIX_EPOCH, &[]);
        summary.into_record(&RecordContext::default()).record
    }

    /// The record of answers of which some have this flag.
    fn record_with_flag(flag: Flag, flagged: usize, answers: usize) -> Record {
        let reply = |at: usize| Reply {
            figures: [(Metric::TtftMs, 5.0)].into(),
            flags: (at < flagged).then_some(flag).into_iter().collect(),
            ..Reply::default()
        };
        let run = Run { replies: (0..answers).map(reply).collect(), ..Run::default() };
        let runs = Runs { runs: vec![run], ..Runs::default() };
        record_of(RecordKind::MaxContext, &runs)
    }

    #[test]
    fn a_single_answer_in_one_piece_is_a_doubt_and_not_a_failure() {
        let one = record_with_flag(Flag::NotStreamed, 1, 384);
        assert_eq!(one.invalid_reasons, [""; 0]);
        assert!(one.confidence.reasons.contains(&Doubt::NotStreamed));
        let many = record_with_flag(Flag::NotStreamed, 20, 384);
        assert_eq!(
            many.invalid_reasons,
            ["20 of 384 answers came in one piece, so their pace is unknown"]
        );
        let none = record_with_flag(Flag::Coalesced, 20, 384);
        assert!(!none.confidence.reasons.contains(&Doubt::NotStreamed));
        let counted = record_with_flag(Flag::CountsImpossible, 2, 384);
        assert!(counted.invalid_reasons[0].contains("for 2 of 384 answers"));
    }

    #[test]
    fn a_server_that_does_not_answer_in_time_has_that_status() {
        let status = |error: BenchError| {
            let (kind, workload) = (RecordKind::Llm, RecordedWorkload::default());
            RecordContext::default().failed(kind, workload, &error).status
        };
        assert_eq!(status(RequestFault::Silent { chunks: 0 }.into()), RunStatus::Timeout);
        let sound = SoundFault::Answer(RequestFault::TooSlow { chunks: 3 });
        assert_eq!(status(sound.into()), RunStatus::Timeout);
        assert_eq!(status(RequestFault::Empty.into()), RunStatus::Failed);
    }

    #[test]
    fn times_in_two_groups_are_doubted() {
        let reply = |ms: f64| Reply { figures: [(Metric::TtftMs, ms)].into(), ..Reply::default() };
        let doubts = |high_ms: f64| {
            let times = (0..24).map(|at| if at % 2 == 0 { 100.0 + f64::from(at) } else { high_ms });
            let run = Run { replies: times.map(reply).collect(), ..Run::default() };
            let runs = Runs { runs: vec![run], ..Runs::default() };
            confidence(&runs, &[Metric::TtftMs], &Record::default(), Vec::new()).reasons
        };
        assert!(doubts(900.0).contains(&Doubt::Bimodal));
        assert!(!doubts(120.0).contains(&Doubt::Bimodal));
    }

    #[test]
    fn an_unchecked_client_invalidates_times_but_not_a_longest_context() {
        let reply = Reply { figures: [(Metric::TtftMs, 5.0)].into(), ..Reply::default() };
        let run = Run { replies: vec![reply], ..Run::default() };
        let runs = Runs { runs: vec![run], ..Runs::default() };
        let unknown = ["the client could not be checked with the mock server"];
        assert_eq!(record_of(RecordKind::Llm, &runs).invalid_reasons, unknown);
        let ceiling = record_of(RecordKind::MaxContext, &runs);
        assert_eq!(ceiling.invalid_reasons, [""; 0]);
        assert!(ceiling.confidence.reasons.contains(&Doubt::ClientError));
    }
}
