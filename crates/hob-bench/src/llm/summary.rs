//! What a cell came to: a record with its figures, its samples, and everything that speaks against it.
//! A figure is the median of runs; percentiles are over all requests, where there are enough of them.

use hob_core::statistics::Sample;
use jiff::Timestamp;
use uuid::Uuid;

use super::cell::{CellRun, runs};
use super::{Prompts, Thinking, VERSION};
use crate::record::{
    Cache, Client, ClientImpl, Confidence, Connection, CountSource, Dispatch, Doubt, Engine,
    Harness, Host, Kind, Label, Loop, Metrics, Model, PromptTokens, RawSample, Reasoning, Record,
    Source, SourceType, Span, Spread, Stall, Status, Tokens, Workload,
};
use crate::target::Target;
use crate::terms::Metric;
use crate::timeline::{Figures, Flag};

const RUNS_MIN: usize = 6;
const STARTS_MIN: u32 = 2;
const HALF_WIDTH_PCT_MAX: f64 = 5.0;
const PSI_PCT_MAX: f64 = 10.0;
const EXPIRES_DAYS: i64 = 90;
/// A template may write so many tokens before the first word of a message, and they are always known.
const TEMPLATE_TOKENS_MAX: u32 = 16;
/// Of a prompt that counts as cached.
const CACHED_SHARE: f64 = 0.9;

/// Where and with what it was measured.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    pub target: &'a Target,
    pub host: Host,
    pub argv: Vec<String>,
    pub seed: u64,
    pub started: Timestamp,
    pub ended: Timestamp,
}

/// A record and the samples beside it.
#[derive(Clone, Debug)]
pub struct Summary {
    pub record: Record,
    pub samples: Vec<RawSample>,
}

pub fn summary(run: &CellRun, context: &Context<'_>) -> Summary {
    let all: Vec<&Figures> = run.blocks.iter().flat_map(|block| &block.figures).collect();
    let source = Source {
        r#type: SourceType::Native,
        tool: "hob".to_owned(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        ..Source::default()
    };
    let (cache, cache_verified) = cache(run, &all);
    let mut record = Record::new(Uuid::now_v7(), Kind::Llm, source);
    record.time = Span { started: Some(context.started), ended: Some(context.ended) };
    record.invalid_reasons = invalid(run, &all, cache);
    record.status = status(run, &all);
    record.host = context.host.clone();
    record.harness = Some(harness(run, context));
    let Target { engine, version, model, .. } = context.target;
    record.engine = Engine { name: engine.clone(), version: version.clone(), ..Engine::default() };
    record.model = Model { name: model.clone(), ..Model::default() };
    record.workload = workload(run, &all, cache, cache_verified);
    record.count_source = count_source(&all);
    record.metrics = metrics(run, &all);
    record.confidence = confidence(run, &record);
    Summary { record, samples: samples(run) }
}

fn status(run: &CellRun, all: &[&Figures]) -> Status {
    match (run.was_stopped, all.is_empty()) {
        (true, _) => Status::Aborted,
        (false, true) => Status::Failed,
        (false, false) => Status::Ok,
    }
}

/// Why it is no measurement; the first fault stands for those that are like it.
fn invalid(run: &CellRun, all: &[&Figures], cache: Cache) -> Vec<String> {
    let limits = run.calibration.iter().flat_map(crate::calibrate::Calibration::limits);
    let mut reasons: Vec<String> = limits.map(|limit| limit.to_string()).collect();
    if run.calibration.is_none() && !all.is_empty() {
        reasons.push("the client could not be held to a known server".to_owned());
    }
    let faults: Vec<_> = run.blocks.iter().flat_map(|block| &block.faults).collect();
    if let Some(fault) = faults.first() {
        let requests = faults.len() + all.len();
        reasons.push(format!("{} of {requests} requests failed: {fault}", faults.len()));
    }
    if all.iter().any(|figures| figures.flags.contains(&Flag::CountsImpossible)) {
        reasons.push("the server's count of tokens cannot be true".to_owned());
    }
    if all.iter().any(|figures| figures.flags.contains(&Flag::NotStreamed)) {
        reasons.push("the answer came in one piece, so there is no pace of it".to_owned());
    }
    if run.cell.thinking == Thinking::CannotDisable {
        reasons.push("thinking cannot be turned off".to_owned());
    }
    if cache == Cache::Mixed
        && run.calibration.is_some()
        && all.iter().any(|f| f.tokens.cached.is_some())
    {
        reasons.push("some of the prompts were cached and some were not".to_owned());
    }
    reasons
}

/// What the server's own counts prove.
fn cache(run: &CellRun, all: &[&Figures]) -> (Cache, bool) {
    let counts: Option<Vec<(u32, u32)>> =
        all.iter().map(|figures| figures.tokens.cached.zip(figures.tokens.prompt)).collect();
    let wished = match run.cache {
        Prompts::Cold => Cache::Cold,
        Prompts::Cached => Cache::Cached,
    };
    let Some(counts) = counts.filter(|counts| !counts.is_empty()) else { return (wished, false) };
    let is_so = |(cached, prompt): &(u32, u32)| match wished {
        Cache::Cold => *cached <= TEMPLATE_TOKENS_MAX.min(prompt / 4),
        Cache::Cached | Cache::Mixed => f64::from(*cached) >= CACHED_SHARE * f64::from(*prompt),
    };
    if counts.iter().all(is_so) { (wished, true) } else { (Cache::Mixed, false) }
}

fn harness(run: &CellRun, context: &Context<'_>) -> Harness {
    let wall: f64 = run.blocks.iter().map(|block| block.wall.as_secs_f64()).sum();
    let cpu: f64 = run.blocks.iter().map(|block| block.cpu.as_secs_f64()).sum();
    let busiest: f64 = run.blocks.iter().map(|block| block.cpu_busiest.as_secs_f64()).sum();
    let dispatch = pooled(run, |figures| Some(figures.dispatch_ms));
    let late = |part: f64| dispatch.percentile(part).map(|at| at.value).or(dispatch.max());
    Harness {
        git: None,
        dirty: None,
        argv: context.argv.clone(),
        seed: context.seed,
        client: Client {
            r#impl: ClientImpl::Threads,
            cpu_s: Some(cpu),
            max_core_pct: (wall > 0.0).then(|| busiest / wall * 100.0),
            dispatch_ms: dispatch.median().zip(late(0.95)).map(|(p50, p95)| Dispatch { p50, p95 }),
        },
        selftest: run.calibration.as_ref().map(crate::calibrate::Calibration::record),
    }
}

fn workload(run: &CellRun, all: &[&Figures], cache: Cache, verified: bool) -> Workload {
    let shape = run.cell.shape;
    let prompt = Sample::new(all.iter().filter_map(|figures| figures.tokens.prompt.map(f64::from)));
    let whole = |value: Option<f64>| value.map(|value| value as u64);
    let (reasoning, lever) = match run.cell.thinking {
        Thinking::AsIs { thinks: true } => (Some(Reasoning::Enabled), None),
        Thinking::AsIs { thinks: false } => (None, None),
        Thinking::Off(lever) => (Some(Reasoning::Disabled), Some(lever.name().to_owned())),
        Thinking::CannotDisable => (Some(Reasoning::CannotDisable), None),
    };
    Workload {
        shape: Some(shape.name.to_owned()),
        version: Some(VERSION),
        prompts_sha256: Some(run.prompts_sha256.clone()),
        prompt_tokens: Some(PromptTokens {
            target: Some(shape.prompt_tokens.into()),
            min: whole(prompt.min()),
            p50: whole(prompt.median()),
            max: whole(prompt.max()),
        }),
        max_tokens: Some(shape.max_tokens.into()),
        ignore_eos: Some(run.ignores_eos),
        temperature: Some(0.0),
        reasoning,
        reasoning_lever: lever,
        tools: Some(shape.tools),
        r#loop: Some(Loop::Closed),
        concurrency: u32::try_from(run.cell.users).ok(),
        rate: None,
        arrival: None,
        requests: Some(run.blocks.iter().map(|block| block.exchanges.len() as u64).sum()),
        warmup: Some(run.warmup_requests as u64),
        cache: Some(cache),
        cache_verified: Some(verified),
        connection: Some(Connection::Reused),
    }
}

fn count_source(all: &[&Figures]) -> Option<CountSource> {
    let is_counted = |figures: &&Figures| figures.count_source == Some(CountSource::Usage);
    match all {
        [] => None,
        all if all.iter().all(is_counted) => Some(CountSource::Usage),
        _ => Some(CountSource::Chunks),
    }
}

type Pick = fn(&Figures) -> Option<f64>;

const PICKS: [(Metric, Pick); 17] = [
    (Metric::TtfbMs, |figures| Some(figures.ttfb_ms)),
    (Metric::TtftMs, |figures| Some(figures.ttft_ms)),
    (Metric::TtfatMs, |figures| figures.ttfat_ms),
    (Metric::SilenceMs, |figures| figures.silence_ms),
    (Metric::DispatchMs, |figures| Some(figures.dispatch_ms)),
    (Metric::ConnectMs, |figures| figures.connect_ms),
    (Metric::E2eMs, |figures| Some(figures.e2e_ms)),
    (Metric::TpotMs, |figures| figures.tpot_ms),
    (Metric::DecodeTokS, |figures| figures.decode_tok_s),
    (Metric::ReasoningTokS, |figures| figures.reasoning_tok_s),
    (Metric::ContentTokS, |figures| figures.content_tok_s),
    (Metric::PrefillTokS, |figures| figures.prefill_tok_s),
    (Metric::PromptTokens, |figures| figures.tokens.prompt.map(f64::from)),
    (Metric::CachedTokens, |figures| figures.tokens.cached.map(f64::from)),
    (Metric::CompletionTokens, |figures| Some(f64::from(figures.tokens.completion))),
    (Metric::ReasoningTokens, |figures| Some(f64::from(figures.tokens.reasoning))),
    (Metric::ContentTokens, |figures| Some(f64::from(figures.tokens.content))),
];

fn metrics(run: &CellRun, all: &[&Figures]) -> Metrics {
    let mut metrics = Metrics::default();
    for (metric, pick) in PICKS {
        let spread = spread(&runs(&run.blocks, pick), &pooled(run, pick));
        metrics.spreads.extend(spread.map(|spread| (metric, spread)));
    }
    if !metrics.spreads.contains_key(&Metric::PrefillTokS) {
        let pick = |figures: &Figures| estimate(run, figures);
        let estimated = spread(&runs(&run.blocks, pick), &pooled(run, pick));
        let method = Some("client_estimate".to_owned());
        metrics
            .spreads
            .extend(estimated.map(|spread| (Metric::PrefillTokS, Spread { method, ..spread })));
    }
    let gaps = Sample::new(all.iter().flat_map(|figures| figures.gaps_ms.iter().copied()));
    let gap_runs = Sample::new(run.blocks.iter().filter_map(|block| {
        Sample::new(block.figures.iter().flat_map(|figures| figures.gaps_ms.iter().copied()))
            .median()
    }));
    metrics.spreads.extend(spread(&gap_runs, &gaps).map(|spread| (Metric::IcgMs, spread)));
    let rates = [
        (
            Metric::ThroughputTokS,
            Sample::new(run.blocks.iter().filter_map(|block| block.throughput_tok_s)),
        ),
        (Metric::RequestsS, Sample::new(run.blocks.iter().filter_map(|block| block.requests_s))),
    ];
    for (metric, rate) in rates {
        metrics.spreads.extend(spread(&rate, &rate).map(|spread| (metric, spread)));
    }
    let stalls = all.iter().map(|figures| figures.stalls);
    metrics.stall = (!all.is_empty()).then(|| Stall {
        count: stalls.clone().map(|stalls| stalls.count as u64).sum(),
        worst_ms: stalls.map(|stalls| stalls.worst_ms).fold(0.0, f64::max),
    });
    let silent = all.iter().filter(|figures| figures.flags.contains(&Flag::NoAnswer)).count();
    metrics.no_answer = Some(silent as u64);
    metrics.errors = Some(run.blocks.iter().map(|block| block.faults.len() as u64).sum());
    metrics
}

/// Where the engine does not say how long the prompt took.
fn estimate(run: &CellRun, figures: &Figures) -> Option<f64> {
    let error_ms = run.calibration.as_ref()?.ttft_err_ms.mean()?;
    figures.prefill_estimate(figures.connect_ms.unwrap_or_default(), error_ms)
}

fn pooled(run: &CellRun, pick: impl Fn(&Figures) -> Option<f64>) -> Sample {
    Sample::new(run.blocks.iter().flat_map(|block| &block.figures).filter_map(pick))
}

fn spread(runs: &Sample, pooled: &Sample) -> Option<Spread> {
    let part = |part: f64| pooled.percentile(part).map(|at| at.value);
    Some(Spread {
        n: Some(pooled.count() as u64),
        min: pooled.min(),
        p50: Some(runs.median()?),
        p95: part(0.95),
        p99: part(0.99),
        max: pooled.max(),
        mean: pooled.mean(),
        ci95: runs.median_interval(),
        method: None,
    })
}

fn confidence(run: &CellRun, record: &Record) -> Confidence {
    let half_width = |pick: Pick| runs(&run.blocks, pick).half_width_pct();
    let first = half_width(|figures| Some(figures.ttft_ms));
    let pace = half_width(|figures| figures.tpot_ms);
    let ci_half_width_pct = first.map(|first| pace.map_or(first, |pace| pace.max(first)));
    let mut reasons = Vec::new();
    let mut doubt = |is_so: bool, doubt| {
        if is_so {
            reasons.push(doubt);
        }
    };
    let starts = 1;
    doubt(run.blocks.len() < RUNS_MIN, Doubt::FewRuns);
    doubt(starts < STARTS_MIN, Doubt::OneStart);
    doubt(ci_half_width_pct.is_none_or(|pct| pct > HALF_WIDTH_PCT_MAX), Doubt::WideCi);
    doubt(record.host.noise.psi_cpu.is_none_or(|pct| pct >= PSI_PCT_MAX), Doubt::NoisyHost);
    doubt(record.host.noise.throttled == Some(true), Doubt::Throttled);
    doubt(record.host.noise.on_battery == Some(true), Doubt::OnBattery);
    let passed = record.harness.as_ref().and_then(|harness| harness.selftest.as_ref());
    doubt(passed.is_none_or(|selftest| !selftest.pass), Doubt::ClientError);
    doubt(record.count_source != Some(CountSource::Usage), Doubt::CountsNotUsage);
    doubt(record.workload.cache_verified != Some(true), Doubt::CacheUnverified);
    let thought = record.metrics.figure(Metric::ReasoningTokens).unwrap_or_default() > 0.0;
    let should_not = matches!(run.cell.thinking, Thinking::Off(_) | Thinking::CannotDisable);
    doubt(should_not && thought, Doubt::ReasoningUnverified);
    doubt(true, Doubt::NoProvenance);
    let expires = record.time.started.map(|time| {
        let day = time.to_zoned(jiff::tz::TimeZone::UTC).date();
        day.saturating_add(jiff::Span::new().days(EXPIRES_DAYS))
    });
    let label = if reasons.is_empty() { Label::Hard } else { Label::Soft };
    let runs = u32::try_from(run.blocks.len()).ok();
    Confidence { label, reasons, runs, server_starts: Some(starts), ci_half_width_pct, expires }
}

fn samples(run: &CellRun) -> Vec<RawSample> {
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let whole = |ms: f64| (ms * 1e3).round() as u64;
    let mut samples = Vec::new();
    for (number, block) in (0..).zip(&run.blocks) {
        for (exchange, timeline) in &block.exchanges {
            let figures = crate::timeline::figures(timeline, Some(run.cell.shape.max_tokens));
            let of = |pick: fn(&Figures) -> Option<f64>| figures.as_ref().and_then(pick).map(whole);
            let tokens = figures.as_ref().map(|figures| figures.tokens);
            samples.push(RawSample {
                run: number,
                start: 0,
                t_sched_us: Some(micros(exchange.sched)),
                dispatch_us: Some(micros(exchange.sent.saturating_sub(exchange.sched))),
                connect_us: exchange.connect.map(micros),
                ttfb_us: of(|figures| Some(figures.ttfb_ms)),
                ttft_us: of(|figures| Some(figures.ttft_ms)),
                ttfat_us: of(|figures| figures.ttfat_ms),
                ttfa_us: None,
                e2e_us: of(|figures| Some(figures.e2e_ms)),
                gaps_us: figures
                    .iter()
                    .flat_map(|f| f.gaps_ms.iter().map(|ms| whole(*ms)))
                    .collect(),
                tokens: Tokens {
                    prompt: tokens.and_then(|tokens| tokens.prompt.map(u64::from)),
                    cached: tokens.and_then(|tokens| tokens.cached.map(u64::from)),
                    reasoning: tokens.map(|tokens| tokens.reasoning.into()),
                    content: tokens.map(|tokens| tokens.content.into()),
                },
                finish: timeline.finish.clone(),
                error: timeline.fault.as_ref().map(ToString::to_string),
            });
        }
    }
    samples
}
