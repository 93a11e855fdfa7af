//! One cell: warmed up until two runs agree, the client held to a truth, and then run until it is sure.
//! A run is a block of requests, and the unit of every statistic here.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hob_core::statistics::Sample;

use super::prompt::Prompt;
use super::request::Form;
use super::{Cell, Lab, LlmError, Prompts, Thinking};
use crate::calibrate::{Calibration, Pace, calibrate};
use crate::drive::{Driven, Exchange};
use crate::record::sha256_hex;
use crate::timeline::{Fault, Figures, Timeline, figures, timeline};

const WARMUP_BLOCKS_MAX: usize = 5;
/// Two runs that differ by less are warm.
const WARM_SHARE: f64 = 0.03;

/// What is told while it goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    Warmed { block: usize },
    Calibrated(&'a Calibration),
    Ran { run: usize, half_width_pct: Option<f64> },
}

/// One run: what came of its requests.
#[derive(Clone, Debug)]
pub struct Block {
    pub exchanges: Vec<(Exchange, Timeline)>,
    pub figures: Vec<Figures>,
    pub faults: Vec<Fault>,
    /// Tokens per second while every user was being served.
    pub throughput_tok_s: Option<f64>,
    pub requests_s: Option<f64>,
    pub cpu: Duration,
    pub cpu_busiest: Duration,
    pub wall: Duration,
}

/// All that was done for a cell.
#[derive(Clone, Debug)]
pub struct CellRun {
    pub cell: Cell,
    pub blocks: Vec<Block>,
    pub warmup_requests: usize,
    /// None where the server failed before there was a pace to rehearse.
    pub calibration: Option<Calibration>,
    pub prompts_sha256: String,
    pub rounds: usize,
    pub cache: Prompts,
    pub ignores_eos: bool,
    /// Somebody stopped it.
    pub was_stopped: bool,
}

impl Lab<'_> {
    /// Measures a cell, and tells of each step.
    ///
    /// # Errors
    /// It could not begin. A server that fails is a run with faults.
    pub fn run(&mut self, cell: Cell, mut tell: impl FnMut(Step<'_>)) -> Result<CellRun, LlmError> {
        let mut prompts = Vec::new();
        let (warmup_requests, warm) = self.warm_up(cell, &mut prompts, &mut tell)?;
        let mut run = CellRun {
            cell,
            blocks: Vec::new(),
            warmup_requests,
            calibration: None,
            prompts_sha256: String::new(),
            rounds: self.wish.rounds,
            cache: self.wish.prompts,
            ignores_eos: self.ignores_eos,
            was_stopped: false,
        };
        if let Some(warm) = warm.as_ref().filter(|warm| !warm.figures.is_empty()) {
            run.calibration = self.rehearse(cell, warm);
            run.calibration.iter().for_each(|calibration| tell(Step::Calibrated(calibration)));
        }
        let begun = Instant::now();
        while run.blocks.len() < self.wish.runs_max && !self.is_stopped() {
            let block = self.block(cell, &mut prompts)?;
            let has_failed = block.figures.is_empty();
            run.blocks.push(block);
            let half_width_pct = half_width_pct(&run.blocks);
            tell(Step::Ran { run: run.blocks.len(), half_width_pct });
            let is_sure = run.blocks.len() >= self.wish.runs_min
                && half_width_pct.is_some_and(|pct| pct < self.wish.half_width_pct);
            if has_failed || is_sure || begun.elapsed() > self.wish.cell_budget {
                break;
            }
        }
        run.was_stopped = self.is_stopped();
        if run.was_stopped {
            // The last was cut off in the middle.
            run.blocks.pop_if(|block| block.faults.contains(&Fault::Stopped));
        }
        run.prompts_sha256 = sha256_hex(prompts.join("\n").as_bytes());
        Ok(run)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// How many requests it took, and the last of its blocks.
    fn warm_up(
        &mut self,
        cell: Cell,
        prompts: &mut Vec<String>,
        tell: &mut impl FnMut(Step<'_>),
    ) -> Result<(usize, Option<Block>), LlmError> {
        let mut requests = 0;
        let mut before: Option<Block> = None;
        for number in 1..=WARMUP_BLOCKS_MAX {
            let block = self.block(cell, prompts)?;
            prompts.clear();
            requests += block.exchanges.len();
            tell(Step::Warmed { block: number });
            let is_over = block.figures.is_empty()
                || before.is_some_and(|before| are_alike(&before, &block))
                || self.is_stopped();
            before = Some(block);
            if is_over {
                break;
            }
        }
        Ok((requests, before))
    }

    fn rehearse(&self, cell: Cell, warm: &Block) -> Option<Calibration> {
        let ttft_ms = median(&warm.figures, |figures| Some(figures.ttft_ms))?;
        let tpot_ms = median(&warm.figures, |figures| figures.tpot_ms).unwrap_or(20.0);
        calibrate(Pace::like(cell.users, ttft_ms, tpot_ms), self.stop).ok()
    }

    fn block(&mut self, cell: Cell, prompts: &mut Vec<String>) -> Result<Block, LlmError> {
        let lever = match cell.thinking {
            Thinking::Off(lever) => Some(lever),
            Thinking::AsIs { .. } | Thinking::CannotDisable => None,
        };
        let form = Form { lever, ..self.form(cell.shape) };
        let count = cell.users * self.wish.rounds;
        let jobs: Vec<Bytes> = (0..count)
            .map(|number| {
                let prompt = self.next_prompt(cell);
                prompts.push(format!("{} {}", prompt.system, prompt.user));
                form.bytes(&prompt, number)
            })
            .collect();
        let driven = self.drive(jobs, cell.users, cell.shape.max_tokens)?;
        Ok(self.decoded(cell, driven))
    }

    fn next_prompt(&mut self, cell: Cell) -> Prompt {
        match self.wish.prompts {
            Prompts::Cold => self.prompt(cell.shape),
            Prompts::Cached => Prompt::new(cell.shape, self.measure, self.wish.seed, 0),
        }
    }

    fn decoded(&self, cell: Cell, driven: Driven) -> Block {
        let protocol = self.target.api.protocol();
        let exchanges: Vec<(Exchange, Timeline)> = driven
            .exchanges
            .into_iter()
            .map(|exchange| {
                let timeline = timeline(&exchange, protocol);
                // What is kept of it from here on are times; the words are nobody's business.
                (Exchange { tape: crate::drive::Tape::default(), ..exchange }, timeline)
            })
            .collect();
        let of =
            |(_, timeline): &(Exchange, Timeline)| figures(timeline, Some(cell.shape.max_tokens));
        let figures: Vec<Figures> = exchanges.iter().filter_map(of).collect();
        let faults = exchanges.iter().filter_map(|(_, timeline)| timeline.fault.clone()).collect();
        let (throughput_tok_s, requests_s) = rates(&exchanges, cell);
        let Driven { wall, cpu, cpu_busiest, .. } = driven;
        Block { exchanges, figures, faults, throughput_tok_s, requests_s, cpu, cpu_busiest, wall }
    }
}

/// Tokens and answers per second, from when all users were asking until the first had nothing left to ask.
fn rates(exchanges: &[(Exchange, Timeline)], cell: Cell) -> (Option<f64>, Option<f64>) {
    let mut sent: Vec<Duration> = exchanges.iter().map(|(exchange, _)| exchange.sent).collect();
    let end = |(exchange, timeline): &(Exchange, Timeline)| {
        timeline.chunks.last().map_or(exchange.sent, |chunk| exchange.sent + chunk.at)
    };
    let mut ends: Vec<Duration> = exchanges.iter().map(end).collect();
    sent.sort();
    ends.sort();
    let (Some(from), Some(until)) = (
        sent.get(cell.users - 1),
        ends.len().checked_sub(cell.users).and_then(|place| ends.get(place)),
    ) else {
        return (None, None);
    };
    let window_s = until.saturating_sub(*from).as_secs_f64();
    if window_s <= 0.0 {
        return (None, None);
    }
    let mut tokens = 0.0;
    for (exchange, timeline) in exchanges {
        let Some(figures) = figures(timeline, Some(cell.shape.max_tokens)) else { continue };
        let each = f64::from(figures.tokens.completion) / timeline.chunks.len() as f64;
        let within = |at: Duration| (*from..=*until).contains(&(exchange.sent + at));
        tokens += each * timeline.chunks.iter().filter(|chunk| within(chunk.at)).count() as f64;
    }
    let answers = ends.iter().filter(|end| *end <= until).count() as f64;
    (Some(tokens / window_s), Some(answers / window_s))
}

fn are_alike(before: &Block, after: &Block) -> bool {
    let pace = |block: &Block| {
        median(&block.figures, |figures| figures.tpot_ms)
            .or_else(|| median(&block.figures, |figures| Some(figures.e2e_ms)))
    };
    pace(before)
        .zip(pace(after))
        .is_some_and(|(before, after)| (after - before).abs() < before * WARM_SHARE)
}

/// Of the two figures that matter most, the wider.
fn half_width_pct(blocks: &[Block]) -> Option<f64> {
    let of = |figure: fn(&Figures) -> Option<f64>| runs(blocks, figure).half_width_pct();
    let first = of(|figures| Some(figures.ttft_ms))?;
    Some(of(|figures| figures.tpot_ms).map_or(first, |pace| pace.max(first)))
}

/// The medians of all runs.
pub(super) fn runs(blocks: &[Block], figure: impl Fn(&Figures) -> Option<f64> + Copy) -> Sample {
    Sample::new(blocks.iter().filter_map(|block| median(&block.figures, figure)))
}

fn median(figures: &[Figures], figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
    Sample::new(figures.iter().filter_map(figure)).median()
}
