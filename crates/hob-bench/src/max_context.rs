//! Finds the longest context by bisection, with a restart of the server for each attempt.
//! A context counts only if the server is known to have it, and can fill it and still generate tokens.

mod attempt;
mod attempt_result;
mod reported_context;
mod search;
mod symptom;
mod trend;

use std::time::Duration;

use jiff::Timestamp;

pub use attempt::PLACE;
use attempt::{AttemptOutcome, DECODED_TOKENS, FREE_TOKENS, Trial};
pub use attempt_result::{AttemptResultAt, ServerMemory};
pub use search::{ContextRange, Search};

use crate::client_check::{CheckLoad, ClientCheck, check_client};
use crate::question::Questions;
use crate::record::{
    Attempt, AttemptResult, Connection, ContextProof, CountSource, Doubt, Label, MaxContext,
    PromptTokens, Record, RecordKind, RecordedWorkload, RunStatus, VramUse,
};
use crate::runs::{BenchError, CellSummary, Reply, Run, Runs, Step, those_that_apply};
use crate::terms::Metric;
use crate::workbench::Workbench;

/// The range of the search, and the requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct MaxContextOptions {
    pub range: ContextRange,
    pub criterion: ContextCriterion,
    /// Bytes of memory for each token of context, if known; otherwise it is learnt.
    pub bytes_per_token: Option<f64>,
}

/// When a context counts as working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextCriterion {
    /// The server starts with it.
    Load,
    /// It can be filled, and the model still generates tokens.
    Usable,
}

/// Searches, and stores the result as one record, also if the search was stopped.
///
/// # Errors
/// The server cannot be restarted, no request can be sent, or the record cannot be stored.
pub(crate) fn measure(
    bench: &mut Workbench<'_>,
    options: &MaxContextOptions,
) -> Result<Vec<Record>, BenchError> {
    let begun = Timestamp::now();
    let mut found = MaxContextRun::new(options);
    found.search(bench)?;
    let summary = found.summarise(begun);
    let record = bench.close(summary, |record| found.fill_in(record))?;
    Ok(record.into_iter().collect())
}

/// A search and its results so far.
#[derive(Debug)]
struct MaxContextRun<'w> {
    options: &'w MaxContextOptions,
    search: Search,
    tested: Vec<AttemptOutcome>,
    runs: Runs,
}

impl<'w> MaxContextRun<'w> {
    fn new(options: &'w MaxContextOptions) -> MaxContextRun<'w> {
        let search = Search::new(options.range, options.bytes_per_token);
        MaxContextRun { options, search, tested: Vec::new(), runs: Runs::default() }
    }

    fn search(&mut self, bench: &mut Workbench<'_>) -> Result<(), BenchError> {
        let questions = Questions::new(bench.asker());
        let Some(started) = &mut bench.started else {
            return Err(BenchError::NotStarted { what: "a search for the longest context" });
        };
        let is_fresh = started.places.get(PLACE) == Some(&self.options.range.lo.to_string());
        let mut trial = Trial {
            started,
            questions,
            criterion: self.options.criterion,
            is_fresh,
            waited: Duration::ZERO,
        };
        while let Some(ctx) = self.search.next() {
            let tested = trial.attempt(ctx, &self.search)?;
            if tested.was_stopped {
                self.runs.was_stopped = true;
                break;
            }
            self.search.add(tested.tried);
            (bench.tell)("context", self.step(&tested.attempt));
            self.tested.push(tested);
            if self.runs.client_check.is_none() {
                self.runs.client_check = self.client_checked(bench.stop);
            }
        }
        self.runs.runs = self.runs();
        Ok(())
    }

    fn step<'a>(&self, attempt: &'a Attempt) -> Step<'a> {
        let MaxContextRun { search, .. } = self;
        let (lo_ok, hi_fail, left) =
            (search.longest_ok(), search.shortest_fail(), search.attempts_left());
        Step::Tried { attempt, lo_ok, hi_fail, left }
    }

    /// Checks the client at the pace of the first successful attempt.
    fn client_checked(&self, stop: &std::sync::atomic::AtomicBool) -> Option<ClientCheck> {
        let figures = &self.tested.last()?.reply.as_ref()?.figures;
        let (ttft_ms, tpot_ms) = (*figures.get(&Metric::TtftMs)?, figures.get(&Metric::TpotMs));
        check_client(CheckLoad::with_medians(1, ttft_ms, tpot_ms.copied()), stop).ok()
    }

    /// The runs of the longest context, because figures depend on it. Without a successful attempt: the last failure.
    fn runs(&self) -> Vec<Run> {
        let longest = self.search.longest_ok();
        let has_worked = |tested: &&AttemptOutcome| tested.tried.result == AttemptResult::Ok;
        let is_it =
            |tested: &&AttemptOutcome| Some(tested.tried.ctx) == longest && has_worked(tested);
        let of = |(start, tested): (u32, &AttemptOutcome)| {
            let mut run = Run { start, replies: Vec::new(), ..Run::default() };
            run.together.insert(Metric::LoadMs, tested.load.as_secs_f64() * 1e3);
            run.replies.extend(tested.reply.clone());
            run
        };
        let runs: Vec<Run> = (0..).zip(self.tested.iter().filter(is_it)).map(of).collect();
        match (runs.is_empty(), self.tested.last()) {
            (true, Some(last)) => {
                let fault =
                    last.attempt.said.clone().or(Some("the server did not start".to_owned()));
                vec![Run { replies: vec![Reply { fault, ..Reply::default() }], ..Run::default() }]
            }
            _ => runs,
        }
    }

    fn summarise(&self, started: Timestamp) -> CellSummary<'_> {
        let count_source = self.runs.count_source();
        let prompts = self.runs.answered().filter_map(|reply| reply.tokens?.prompt);
        let prompt = prompts.max().map(u64::from);
        let filled = self.longest_filled();
        let doubts = [
            (count_source == Some(CountSource::Chunks), Doubt::CountsNotUsage),
            (self.proof().is_none(), Doubt::NoProvenance),
        ];
        let target = filled.map(|ctx| ctx.saturating_sub(FREE_TOKENS));
        CellSummary {
            kind: RecordKind::MaxContext,
            runs: &self.runs,
            started,
            workload: RecordedWorkload {
                prompt_tokens: Some(PromptTokens { target, min: None, p50: prompt, max: prompt }),
                max_tokens: Some(u64::from(DECODED_TOKENS)).filter(|_| filled.is_some()),
                temperature: Some(0.0),
                ..RecordedWorkload::closed_loop(1, Connection::Fresh)
            },
            stopping_metrics: &[],
            count_source,
            more_invalid_reasons: self.invalid(),
            doubts: those_that_apply(doubts),
        }
    }

    /// The longest context that was filled. None if the server was only started.
    fn longest_filled(&self) -> Option<u64> {
        self.search.longest_ok().filter(|_| self.options.criterion == ContextCriterion::Usable)
    }

    /// The proof of the context, if every successful attempt has one.
    fn proof(&self) -> Option<ContextProof> {
        let ok = self.tested.iter().filter(|tested| tested.tried.result == AttemptResult::Ok);
        let proofs: Option<Vec<ContextProof>> = ok.map(|tested| tested.proof).collect();
        proofs?.last().copied()
    }

    fn invalid(&self) -> Vec<String> {
        let is_stale = |tested: &AttemptOutcome| tested.tried.result == AttemptResult::Stale;
        let reason =
            "a server of an earlier start answers repeatedly: stop the program that restarts it";
        let stale = self.tested.last().filter(|tested| is_stale(tested));
        stale.map(|_| reason.to_owned()).into_iter().collect()
    }

    /// Fills in the fields of this kind of record.
    fn fill_in(&self, record: &mut Record) {
        let MaxContextRun { options, search, tested, .. } = self;
        let (longest, fail) = (search.longest_ok(), search.shortest_fail());
        let started = search.tried().iter().filter(|tried| has_started(tried.result));
        record.engine.params.ctx = longest;
        record.max_context = Some(MaxContext {
            lo_ok: longest,
            hi_fail: fail,
            granule: Some(options.range.granule),
            load: started.map(|tried| tried.ctx).max(),
            usable: self.longest_filled(),
            confirmed: Some(search.confirmed()),
            limited_by: search.limited_by(),
            proven_by: self.proof().filter(|_| longest.is_some()),
            attempts: self.attempts(),
        });
        if let Some(best) = tested.iter().rev().find(|tested| Some(tested.tried.ctx) == longest) {
            record.resources.rss_peak_mb = best.attempt.rss_mb.or(record.resources.rss_peak_mb);
            let idle = record.resources.vram_mb.and_then(|vram| vram.idle);
            record.resources.vram_mb =
                best.attempt.vram_mb.map(|mb| VramUse { idle, loaded: Some(mb), peak: Some(mb) });
            record.resources.load_s = Some(best.load.as_secs_f64());
        }
        self.judge(record);
    }

    /// All attempts with their final results.
    fn attempts(&self) -> Vec<Attempt> {
        let pairs = self.tested.iter().zip(self.search.tried());
        let judged = |(tested, tried): (&AttemptOutcome, &AttemptResultAt)| Attempt {
            result: tried.result,
            ..tested.attempt.clone()
        };
        pairs.map(judged).collect()
    }

    /// A longest context is verified by repeated attempts at it and at the next longer one, not by an interval.
    fn judge(&self, record: &mut Record) {
        record.status = match (record.status, self.search.limited_by()) {
            (RunStatus::Failed, Some(AttemptResult::Timeout)) => RunStatus::Timeout,
            (RunStatus::Failed, Some(result)) if is_out_of_memory(result) => RunStatus::Oom,
            (status, _) => status,
        };
        let is_sure = self.search.is_confirmed() && !self.runs.was_stopped;
        let confidence = &mut record.confidence;
        confidence.server_starts = u32::try_from(self.tested.len()).ok();
        if is_sure {
            let needless = [Doubt::FewRuns, Doubt::WideCi, Doubt::OneStart];
            confidence.reasons.retain(|doubt| !needless.contains(doubt));
        }
        let is_verified = confidence.reasons.is_empty() && record.invalid_reasons.is_empty();
        confidence.label = if is_verified { Label::Verified } else { Label::Unverified };
    }
}

fn is_out_of_memory(result: AttemptResult) -> bool {
    use AttemptResult::{OomDecode, OomLoad, OomPrefill};
    matches!(result, OomLoad | OomPrefill | OomDecode)
}

/// Whether the server started with the context.
fn has_started(result: AttemptResult) -> bool {
    use AttemptResult::{Ok, OomDecode, OomPrefill, Spill};
    matches!(result, Ok | OomDecode | OomPrefill | Spill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmed_context_is_verified_unless_its_record_is_invalid() {
        let options = MaxContextOptions {
            range: ContextRange { lo: 2048, hi: 2048, granule: 256 },
            criterion: ContextCriterion::Load,
            bytes_per_token: None,
        };
        let mut found = MaxContextRun::new(&options);
        let tried = AttemptResultAt::new(2048, AttemptResult::Ok);
        (0..2).for_each(|_| found.search.add(tried));
        for (invalid, expected) in [(0, Label::Verified), (1, Label::Unverified)] {
            let invalid_reasons = vec!["a count is impossible".to_owned(); invalid];
            let kind = RecordKind::MaxContext;
            let mut record = Record { kind, invalid_reasons, ..Record::default() };
            found.judge(&mut record);
            assert_eq!(record.confidence.label, expected);
        }
    }
}
