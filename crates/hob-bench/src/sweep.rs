//! Measures a server as the context grows: for each length new prompts, then the same prompts again.
//! New and cached prompts have separate figures and records.

mod limit;

use jiff::Timestamp;

use crate::chat::{
    ChatCell, ChatSession, ChatWorkload, Prompts, Shape, ThinkingChoice, ThinkingMode,
    context_needed,
};
use crate::drive::Arrivals;
use crate::launch::{LaunchError, Running};
use crate::record::{Record, RecordKind, RunStatus};
use crate::runs::{BenchError, Reply, Run, Runs, Step};
use crate::server::StartedServer;
use crate::session::{RunSize, run_in_turns, store_record};
use crate::workbench::Workbench;

/// Least number of repetitions of a new prompt.
pub const AGAIN_MIN: usize = 2;

/// The lengths of a sweep.
#[derive(Clone, Debug)]
pub struct ContextOptions {
    /// Prompt tokens of each cell.
    pub lengths: Vec<u32>,
    /// Tokens of the answer.
    pub answer: u32,
    /// Repetitions of each new prompt, which find it cached.
    pub cached: usize,
    pub context: ServerContext,
}

/// The context of a server that hob starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerContext {
    /// One context for all lengths.
    AsStarted,
    /// Restarts with the `{ctx}` that each length needs, so that memory is measured for each length.
    ForEachLength,
}

/// Measures each length, the shortest first, and stores its records. It ends at the server's reported limit, or at the first
/// failure, which is recorded.
///
/// # Errors
/// The server does not answer chat requests, or a record cannot be stored.
pub(crate) fn measure(
    bench: &mut Workbench<'_>,
    thinking: ThinkingChoice,
    options: &ContextOptions,
) -> Result<Vec<Record>, BenchError> {
    let mut lengths = options.lengths.clone();
    lengths.sort_unstable();
    lengths.dedup();
    let chat = ChatWorkload {
        shapes: lengths.iter().map(|length| Shape::of_sweep(*length, options.answer)).collect(),
        thinking,
        prompts: Prompts::Cold,
    };
    let run_size = RunSize { rounds: 1, span_s: 0.0 };
    let mut session = ChatSession::prepare(bench.asker(), &chat, run_size)?;
    let mut records = Vec::new();
    for thinking in session.thinking_modes() {
        let sweep = Sweep { options, thinking, lengths: &lengths };
        records.extend(sweep.measure(bench, &mut session)?);
    }
    Ok(records)
}

/// All lengths with one thinking mode.
struct Sweep<'w> {
    options: &'w ContextOptions,
    thinking: ThinkingMode,
    lengths: &'w [u32],
}

impl Sweep<'_> {
    fn measure(
        &self,
        bench: &mut Workbench<'_>,
        session: &mut ChatSession<'_>,
    ) -> Result<Vec<Record>, BenchError> {
        let mut records = Vec::new();
        for (number, length) in self.lengths.iter().enumerate() {
            if bench.is_stopped() {
                break;
            }
            let began = Timestamp::now();
            if let Err(error) = self.grow(bench, *length) {
                let failed = LengthResult::not_started(*length, began, error)?;
                records.extend(self.store_length(bench, session, failed)?);
                break;
            }
            let fits = limit::limit(&bench.target);
            let needed = length.saturating_add(self.options.answer);
            if let Some(limit) = fits.filter(|limit| needed > *limit) {
                (bench.tell)("ctx_sweep", Step::LeftOut { why: &self.left_out(number, limit) });
                break;
            }
            let found = self.run(bench, session, *length)?;
            let kept = self.store_length(bench, session, found)?;
            let has_failed = kept.iter().any(|record| record.status != RunStatus::Ok);
            records.extend(kept);
            if has_failed {
                break;
            }
        }
        Ok(records)
    }

    /// Restarts a server that hob started with the context of this length.
    fn grow(&self, bench: &mut Workbench<'_>, length: u32) -> Result<(), BenchError> {
        let Some(started) = &mut bench.started else { return Ok(()) };
        let needs = context_needed(length, self.options.answer).to_string();
        let is_filled = started.launch.command.contains("{ctx}")
            && self.options.context == ServerContext::ForEachLength;
        let ctx = started.places.get_mut("ctx").filter(|_| is_filled);
        let has_grown = ctx.is_some_and(|ctx| std::mem::replace(ctx, needs.clone()) != needs);
        let is_first = Some(&length) == self.lengths.first();
        if has_grown || !is_first { bench.renew() } else { Ok(()) }
    }

    fn left_out(&self, number: usize, limit: u32) -> String {
        let lengths: Vec<String> = self.lengths[number..].iter().map(u32::to_string).collect();
        let (lengths, answer) = (lengths.join(", "), self.options.answer);
        format!(
            "left out: {lengths}; the server's context has {limit} tokens, of which the answer takes {answer}"
        )
    }

    /// A cell of new prompts, and a cell of repeated prompts.
    fn cells(&self, length: u32) -> [ChatCell; 2] {
        let (shape, arrivals) =
            (Shape::of_sweep(length, self.options.answer), Arrivals::Closed { users: 1 });
        let thinking = self.thinking;
        [Prompts::Cold, Prompts::Again(self.options.cached)].map(|prompts| ChatCell {
            shape,
            arrivals,
            thinking,
            prompts,
        })
    }

    fn run(
        &self,
        bench: &mut Workbench<'_>,
        session: &mut ChatSession<'_>,
        length: u32,
    ) -> Result<LengthResult, BenchError> {
        let began = Timestamp::now();
        session.set_context(context_needed(length, self.options.answer));
        session.measure_token_rate_for(length)?;
        let name = format!("{length} tokens, new and cached");
        let runs = run_in_turns(bench, &name, session, &self.cells(length))?;
        let ended =
            bench.started.as_mut().and_then(StartedServer::running).and_then(Running::has_ended);
        Ok(LengthResult { length, began, runs, ended })
    }

    /// Stores the cold cell first. If it failed, there is no cached cell.
    fn store_length(
        &self,
        bench: &mut Workbench<'_>,
        session: &mut ChatSession<'_>,
        found: LengthResult,
    ) -> Result<Vec<Record>, BenchError> {
        let LengthResult { length, began, runs, ended } = found;
        let (mut kept, ctx) = (Vec::new(), started_with(bench));
        for (cell, runs) in self.cells(length).iter().zip(&runs) {
            let first: Option<&Record> = kept.first();
            let prompts_sha256 = first.and_then(|first| first.workload.prompts_sha256.clone());
            store_record(bench, session, (cell, runs, began), &mut kept, |record| {
                record.kind = RecordKind::CtxSweep;
                record.workload.shape = Some(format!("ctx_{length}"));
                record.workload.prompts_sha256 =
                    prompts_sha256.or(record.workload.prompts_sha256.take());
                record.engine.params.ctx = ctx.or(record.engine.params.ctx);
                if let (Some(ended), false) = (&ended, record.status == RunStatus::Ok) {
                    record.status = status_of_end(ended);
                    record.invalid_reasons.push(ended.to_string());
                }
            })?;
            if runs.answered().next().is_none() {
                break;
            }
        }
        Ok(kept)
    }
}

/// The context that hob started the server with.
fn started_with(bench: &Workbench<'_>) -> Option<u64> {
    let started = bench.started.as_ref()?;
    let ctx = started.places.get("ctx").filter(|_| started.launch.command.contains("{ctx}"))?;
    ctx.parse().ok()
}

fn status_of_end(ended: &LaunchError) -> RunStatus {
    match ended {
        LaunchError::Ended { is_out_of_memory: true, .. } => RunStatus::Oom,
        LaunchError::NotReady { .. } => RunStatus::Timeout,
        _ => RunStatus::Failed,
    }
}

/// The result of one length.
struct LengthResult {
    length: u32,
    began: Timestamp,
    /// Runs of new prompts, and of cached ones if the new ones were answered.
    runs: Vec<Runs>,
    /// Why the server has ended, if it has.
    ended: Option<LaunchError>,
}

impl LengthResult {
    /// A server that does not start with this context is a result; a stop by the user is not.
    fn not_started(
        length: u32,
        began: Timestamp,
        error: BenchError,
    ) -> Result<LengthResult, BenchError> {
        let BenchError::Launch(error) = error else { return Err(error) };
        if matches!(error, LaunchError::Stopped | LaunchError::Unfilled { .. }) {
            return Err(error.into());
        }
        let reply =
            Reply { fault: Some("the server did not start".to_owned()), ..Reply::default() };
        let run = Run { replies: vec![reply], ..Run::default() };
        let first = Runs { runs: vec![run], ..Runs::default() };
        Ok(LengthResult { length, began, runs: vec![first], ended: Some(error) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_room_for_prompt_and_answer() {
        let rows = [(16, 16, 1024), (512, 512, 1096), (131_072, 512, 133_696)];
        for (length, answer, expected) in rows {
            assert_eq!(context_needed(length, answer), expected, "{length} and {answer}");
        }
    }

    #[test]
    fn a_server_that_did_not_start_has_a_status() {
        let ended = |is_out_of_memory| LaunchError::Ended {
            how: "with code 1".to_owned(),
            said: String::new(),
            is_out_of_memory,
        };
        assert_eq!(status_of_end(&ended(true)), RunStatus::Oom);
        assert_eq!(status_of_end(&ended(false)), RunStatus::Failed);
        let waited = std::time::Duration::from_secs(1);
        assert_eq!(
            status_of_end(&LaunchError::NotReady { waited, said: String::new() }),
            RunStatus::Timeout
        );
        let stopped = LengthResult::not_started(512, Timestamp::now(), LaunchError::Stopped.into());
        assert!(stopped.is_err(), "a stop is not a result");
    }
}
