//! What becomes of a server as the context grows: of each length new prompts, and the same ones again at once.
//! Reading what is new and finding what is known are two figures and two records, and never one mean.

mod limit;

use jiff::Timestamp;

use crate::calibrate::{Calibration, Pace};
use crate::drive::Arrivals;
use crate::launch::{LaunchError, Running};
use crate::llm::{Cell, Lab, Prompt, Prompts, Shape, Thinking, ThinkingWish, room};
use crate::record::{Kind, Record, Status, sha256_hex};
use crate::runs::{Account, BenchError, Block, Reply, Runs, Step, WARMUP_BLOCKS_MAX};
use crate::server::Started;
use crate::terms::Metric;
use crate::turns::{Both, Turns, run};
use crate::workbench::Workbench;

/// Longer prompts are warmed up once: it takes minutes, and the first of them reads all there is to read.
const WARM_TOKENS_MAX: u32 = 8192;

/// Behind a prompt that is new, it is asked again so often at least.
pub const AGAIN_MIN: usize = 2;

/// What is wanted to be measured.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Tokens of the prompt, of each cell.
    pub lengths: Vec<u32>,
    /// Tokens that are written behind it.
    pub answer: u32,
    /// Requests that find their prompt known, behind each that does not.
    pub cached: usize,
    pub thinking: ThinkingWish,
    pub room: Room,
}

/// The context of a server that was started for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The same for all lengths.
    AsStarted,
    /// What `{ctx}` stands for, of each length as much as it needs: then its memory is that length's.
    OfEach,
}

/// Measures each length, the shortest first, and keeps it once it is done. It ends where the server says that no more
/// fits, and with a record of what failed where it only shows it.
///
/// # Errors
/// The server does not answer as a chat model does, or a record cannot be kept.
pub fn measure(bench: &mut Workbench<'_>, wish: &Wish) -> Result<Vec<Record>, BenchError> {
    let mut lengths = wish.lengths.clone();
    lengths.sort_unstable();
    lengths.dedup();
    let whole = crate::llm::Wish {
        shapes: lengths.iter().map(|length| shape(*length, wish.answer)).collect(),
        arrivals: vec![Arrivals::Closed { users: 1 }],
        thinking: wish.thinking,
        prompts: Prompts::Cold,
        rounds: 1,
        span_s: 0.0,
    };
    let mut lab = Lab::prepare(bench.asker(), &whole)?;
    let mut records = Vec::new();
    for thinking in lab.thinkings() {
        let sweep = Sweep { wish, thinking, lengths: &lengths };
        records.extend(sweep.measure(bench, &mut lab)?);
    }
    Ok(records)
}

fn shape(length: u32, answer: u32) -> Shape {
    Shape { name: "ctx", prompt_tokens: length, max_tokens: answer, tools: 0, question: None }
}

/// All lengths, asked in one way.
struct Sweep<'w> {
    wish: &'w Wish,
    thinking: Thinking,
    lengths: &'w [u32],
}

impl Sweep<'_> {
    fn measure(
        &self,
        bench: &mut Workbench<'_>,
        lab: &mut Lab<'_>,
    ) -> Result<Vec<Record>, BenchError> {
        let mut records = Vec::new();
        for (number, length) in self.lengths.iter().enumerate() {
            if bench.is_stopped() {
                break;
            }
            let began = Timestamp::now();
            if let Err(error) = self.grow(bench, *length) {
                let failed = Found::not_started(*length, began, error)?;
                records.extend(self.keep(bench, lab, failed)?);
                break;
            }
            let fits = limit::limit(&bench.target);
            if let Some(limit) = fits.filter(|limit| length + self.wish.answer > *limit) {
                (bench.tell)("ctx_sweep", Step::LeftOut { why: &self.left_out(number, limit) });
                break;
            }
            let found = self.run(bench, lab, *length)?;
            let kept = self.keep(bench, lab, found)?;
            let has_failed = kept.iter().any(|record| record.status != Status::Ok);
            records.extend(kept);
            if has_failed {
                break;
            }
        }
        Ok(records)
    }

    /// A server that was started for this has the room of this length, and its memory is this length's.
    fn grow(&self, bench: &mut Workbench<'_>, length: u32) -> Result<(), BenchError> {
        let Some(started) = &mut bench.started else { return Ok(()) };
        let needs = room(length, self.wish.answer).to_string();
        let is_told = started.launch.command.contains("{ctx}") && self.wish.room == Room::OfEach;
        let ctx = started.places.get_mut("ctx").filter(|_| is_told);
        let has_grown = ctx.is_some_and(|ctx| std::mem::replace(ctx, needs.clone()) != needs);
        let is_first = Some(&length) == self.lengths.first();
        if has_grown || !is_first { bench.renew() } else { Ok(()) }
    }

    fn left_out(&self, number: usize, limit: u32) -> String {
        let lengths: Vec<String> = self.lengths[number..].iter().map(u32::to_string).collect();
        let (lengths, answer) = (lengths.join(", "), self.wish.answer);
        format!(
            "left out: {lengths}; the server holds {limit} tokens, and the answer takes {answer} of them"
        )
    }

    fn cell(&self, length: u32, prompts: Prompts) -> Cell {
        let (shape, arrivals) = (shape(length, self.wish.answer), Arrivals::Closed { users: 1 });
        Cell { shape, arrivals, thinking: self.thinking, prompts }
    }

    fn run(
        &self,
        bench: &mut Workbench<'_>,
        lab: &mut Lab<'_>,
        length: u32,
    ) -> Result<Found, BenchError> {
        let began = Timestamp::now();
        lab.make_room(room(length, self.wish.answer));
        lab.count_longer(length)?;
        let name = format!("{length} tokens, new and known");
        let (cold, cached) = (self.cell(length, Prompts::Cold), self.cell(length, Prompts::Cached));
        let mut texts = Vec::new();
        let turns = NewAndKnown {
            lab,
            cold,
            cached,
            again: self.wish.cached,
            prompt: None,
            texts: &mut texts,
        };
        let both = run(bench, &name, turns)?;
        let ended = bench.started.as_mut().and_then(Started::running).and_then(Running::has_ended);
        let prompts_sha256 = sha256_hex(texts.join("\n").as_bytes());
        Ok(Found { length, began, both, prompts_sha256, ended })
    }

    /// The cold one first. Of a length that could not be read there is nothing cached.
    fn keep(
        &self,
        bench: &mut Workbench<'_>,
        lab: &Lab<'_>,
        found: Found,
    ) -> Result<Vec<Record>, BenchError> {
        let Found { length, began, both, prompts_sha256, ended } = found;
        let (mut kept, ctx) = (Vec::new(), started_with(bench));
        for (prompts, runs) in [(Prompts::Cold, &both.first), (Prompts::Cached, &both.second)] {
            let cell = self.cell(length, prompts);
            let account = lab.account(cell, runs, began, prompts_sha256.clone());
            let record = bench.close_with(told(account, length), |record| {
                record.engine.params.ctx = ctx.or(record.engine.params.ctx);
                if let (Some(ended), false) = (&ended, record.status == Status::Ok) {
                    record.status = status(ended);
                    record.invalid_reasons.push(ended.to_string());
                }
            })?;
            kept.extend(record);
            if runs.answered().next().is_none() {
                break;
            }
        }
        Ok(kept)
    }
}

/// The context of a server that was started here and told it.
fn started_with(bench: &Workbench<'_>) -> Option<u64> {
    let started = bench.started.as_ref()?;
    let ctx = started.places.get("ctx").filter(|_| started.launch.command.contains("{ctx}"))?;
    ctx.parse().ok()
}

/// The same account under the name that curves over the context have.
fn told(account: Account<'_>, length: u32) -> Account<'_> {
    let mut account = Account { kind: Kind::CtxSweep, ..account };
    account.workload.shape = Some(format!("ctx_{length}"));
    account
}

fn status(ended: &LaunchError) -> Status {
    match ended {
        LaunchError::Ended { is_out_of_memory: true, .. } => Status::Oom,
        LaunchError::NotReady { .. } => Status::Timeout,
        _ => Status::Failed,
    }
}

/// What came of one length.
struct Found {
    length: u32,
    began: Timestamp,
    both: Both,
    prompts_sha256: String,
    /// Why the server that was started for this is gone, if it is.
    ended: Option<LaunchError>,
}

impl Found {
    /// A server that does not start with so much context is a finding; one that was stopped from here is none.
    fn not_started(length: u32, began: Timestamp, error: BenchError) -> Result<Found, BenchError> {
        let BenchError::Launch(error) = error else { return Err(error) };
        if matches!(error, LaunchError::Stopped | LaunchError::Unfilled { .. }) {
            return Err(error.into());
        }
        let reply =
            Reply { fault: Some("the server did not start".to_owned()), ..Reply::default() };
        let block = Block { replies: vec![reply], ..Block::default() };
        let first = Runs { blocks: vec![block], ..Runs::default() };
        let both = Both { first, second: Runs::default() };
        let prompts_sha256 = sha256_hex(b"");
        Ok(Found { length, began, both, prompts_sha256, ended: Some(error) })
    }
}

/// A prompt that nobody has said before, and then the same again.
struct NewAndKnown<'s, 'a> {
    lab: &'s mut Lab<'a>,
    cold: Cell,
    cached: Cell,
    /// How often it is asked again.
    again: usize,
    prompt: Option<Prompt>,
    texts: &'s mut Vec<String>,
}

impl Turns for NewAndKnown<'_, '_> {
    fn first(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        let prompt = self.lab.prompt(self.cold.shape);
        self.texts.push(prompt.text());
        let block = self.lab.ask(self.cold, std::slice::from_ref(&prompt), calibration)?;
        self.prompt = Some(prompt);
        Ok(by_first_token(block))
    }

    fn second(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        let known: Vec<Prompt> = self.prompt.iter().cycle().take(self.again).cloned().collect();
        self.lab.ask(self.cached, &known, calibration).map(by_first_token)
    }

    fn leading(&self) -> &[Metric] {
        self.cold.leading()
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        self.cached.pace(warm)
    }

    fn warmups_max(&self) -> usize {
        if self.cold.shape.prompt_tokens > WARM_TOKENS_MAX { 1 } else { WARMUP_BLOCKS_MAX }
    }
}

/// Adds what is often published as the speed of reading, under its own name.
fn by_first_token(mut block: Block) -> Block {
    for reply in &mut block.replies {
        let of = |metric| reply.figures.get(&metric).copied();
        let pair = of(Metric::PromptTokens).zip(of(Metric::TtftMs).filter(|ms| *ms > 0.0));
        let rate = pair.map(|(tokens, ms)| tokens / ms * 1e3);
        reply.figures.extend(rate.map(|rate| (Metric::PromptTtftTokS, rate)));
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_room_for_prompt_and_answer() {
        let rows = [(16, 16, 1024), (512, 512, 1096), (131_072, 512, 133_696)];
        for (length, answer, expected) in rows {
            assert_eq!(room(length, answer), expected, "{length} and {answer}");
        }
    }

    #[test]
    fn a_server_that_did_not_start_has_a_status() {
        let ended = |is_out_of_memory| LaunchError::Ended {
            how: "with code 1".to_owned(),
            said: String::new(),
            is_out_of_memory,
        };
        assert_eq!(status(&ended(true)), Status::Oom);
        assert_eq!(status(&ended(false)), Status::Failed);
        let waited = std::time::Duration::from_secs(1);
        assert_eq!(status(&LaunchError::NotReady { waited, said: String::new() }), Status::Timeout);
        let stopped = Found::not_started(512, Timestamp::now(), LaunchError::Stopped.into());
        assert!(stopped.is_err(), "whoever stops it has found nothing");
    }
}
