//! One attempt: ends the old server, starts a new one with the context, fills the context, and generates tokens.
//! Every failure has a result type. Only a request that cannot be sent ends the search.

use std::thread;
use std::time::{Duration, Instant};

use hob_machine::{Vram, ram, vram};

use super::ContextCriterion;
use super::attempt_result::{AttemptResultAt, ServerMemory};
use super::reported_context::{mismatch, reported_context};
use super::search::Search;
use super::symptom::{Conclusion, Stage, of_fault, of_launch};
use super::trend::SpeedVerdict;
use crate::launch::{LaunchError, Running, speaks_of_memory};
use crate::question::{ParsedReply, Questions};
use crate::record::{Attempt, AttemptResult, ContextProof};
use crate::runs::{BenchError, Reply};
use crate::server::StartedServer;
use crate::terms::Metric;
use crate::timeline::RequestFault;

/// The placeholder in a start command.
pub const PLACE: &str = "ctx";
/// Tokens that the prompt leaves free, for the template and the answer.
pub(super) const FREE_TOKENS: u64 = 256;
pub(super) const DECODED_TOKENS: u32 = 64;
/// Least counted share of a prompt that was not cut.
const COUNTED_SHARE: f64 = 0.98;
/// With less memory in use, the server does not run on the card.
const CARD_BYTES_MIN: u64 = 64 << 20;
const BYTES_PER_MB: f64 = 1e6;
const SAID_CHARS_MAX: usize = 240;
/// Between two checks of a server that is loading or ending.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const END_WITHIN: Duration = Duration::from_secs(3);

/// All attempts of a search.
#[derive(Debug)]
pub(super) struct Trial<'t, 'a> {
    pub(super) started: &'t mut StartedServer,
    pub(super) questions: Questions<'a>,
    pub(super) criterion: ContextCriterion,
    /// The running server has not been tested yet.
    pub(super) is_fresh: bool,
    /// How long the running server answered that it was still loading.
    pub(super) waited: Duration,
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub(super) struct AttemptOutcome {
    pub(super) tried: AttemptResultAt,
    pub(super) attempt: Attempt,
    pub(super) proof: Option<ContextProof>,
    /// The answer to the last request.
    pub(super) reply: Option<Reply>,
    pub(super) load: Duration,
    pub(super) was_stopped: bool,
}

impl Trial<'_, '_> {
    /// Makes one attempt with a context of `ctx` tokens.
    ///
    /// # Errors
    /// No request can be sent.
    pub(super) fn attempt(
        &mut self,
        ctx: u64,
        search: &Search,
    ) -> Result<AttemptOutcome, BenchError> {
        let begun = Instant::now();
        let Conclusion { result, said, ctx_max, reply, proof } = self.run(ctx, search)?;
        let (memory, vram_mb, rss_mb) = self.memory();
        let decode_tok_s =
            reply.as_ref().and_then(|reply| reply.figures.get(&Metric::DecodeTokS).copied());
        let s = Some(begun.elapsed().as_secs_f64());
        Ok(AttemptOutcome {
            tried: AttemptResultAt { ctx, result, ctx_max, memory, decode_tok_s },
            attempt: Attempt { ctx, result, vram_mb, rss_mb, s, said: said.as_deref().map(brief) },
            proof,
            reply,
            load: self.started.load() + self.waited,
            was_stopped: self.is_stopped(),
        })
    }

    fn is_stopped(&self) -> bool {
        self.questions.asker().stop.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Starts the server with this context, and uses it. An error ends the search, a failure only this attempt.
    fn run(&mut self, ctx: u64, search: &Search) -> Result<Conclusion, BenchError> {
        if let Some(failed) = self.begin(ctx) {
            return Ok(failed);
        }
        let first = self.wait_until_loaded()?;
        if first.fault().is_some() {
            return Ok(self.failure(first, Stage::Load));
        }
        let reported = reported_context(&self.questions.asker().target);
        if let Some(other) = reported.and_then(|reported| mismatch(ctx, reported, search)) {
            return Ok(other);
        }
        let proof = reported.map(|_| ContextProof::Reported);
        match self.criterion {
            ContextCriterion::Load => Ok(Conclusion::worked(first.reply(), proof)),
            ContextCriterion::Usable => self.fill(ctx, proof, search),
        }
    }

    /// Restarts the server. The old process has ended and its port is closed before the new one starts. None: it runs.
    fn begin(&mut self, ctx: u64) -> Option<Conclusion> {
        if std::mem::take(&mut self.is_fresh) {
            return None;
        }
        self.started.places.insert(PLACE.to_owned(), ctx.to_string());
        let error = self.started.restart(self.questions.asker().stop).err()?;
        let result = of_launch(&error, self.started.launch.endpoint.is_open());
        Some(Conclusion::failed(result, error.to_string()))
    }

    /// Sends a short request until the model is loaded. Some servers answer other requests before that.
    fn wait_until_loaded(&mut self) -> Result<ParsedReply, BenchError> {
        let (begun, ready_time_max) = (Instant::now(), self.started.launch.ready_time_max);
        self.waited = Duration::ZERO;
        loop {
            let answered = self.questions.ask_short(1)?;
            let loads = answered.fault().is_some_and(|fault| {
                matches!(fault, RequestFault::Refused { status: 503, .. })
                    && of_fault(fault, Stage::Load, None, false) == AttemptResult::Failed
            });
            let is_over = begun.elapsed() > ready_time_max || self.is_stopped();
            if !loads || is_over || self.end_error().is_some() {
                return Ok(answered);
            }
            thread::sleep(LOOK_EVERY);
            self.waited = begun.elapsed();
        }
    }

    /// Fills almost the whole context, then generates tokens.
    fn fill(
        &mut self,
        ctx: u64,
        proof: Option<ContextProof>,
        search: &Search,
    ) -> Result<Conclusion, BenchError> {
        let tokens = u32::try_from(ctx.saturating_sub(FREE_TOKENS)).unwrap_or(u32::MAX);
        let prompt = self.questions.of_tokens(tokens)?;
        let mut filled = self.questions.ask(&prompt, DECODED_TOKENS)?;
        if is_slow(&filled, ctx, search) {
            // Again, because other load on the machine may have slowed the server.
            let again = self.questions.ask(&prompt, DECODED_TOKENS)?;
            filled = if is_slow(&again, ctx, search) { filled } else { again };
        }
        if let Some(fault) = filled.fault() {
            let chunks = chunks_of(fault);
            let stage = if chunks == 0 { Stage::Prefill } else { Stage::Decode };
            return Ok(self.failure(filled, stage));
        }
        let counted = filled.timeline.counts.prompt.filter(|_| self.questions.is_counted());
        if let Some(counted) = counted
            && f64::from(counted) < f64::from(tokens) * COUNTED_SHARE
        {
            let said = format!(
                "the server counted {counted} of {tokens} prompt tokens: it cut the prompt"
            );
            let reply = Some(filled.reply());
            return Ok(Conclusion {
                reply,
                ..Conclusion::failed(AttemptResult::Unsupported, said)
            });
        }
        let proof = proof.or(counted.map(|_| ContextProof::Filled));
        Ok(Conclusion::worked(filled.reply(), proof))
    }

    fn failure(&mut self, answered: ParsedReply, stage: Stage) -> Conclusion {
        let ended = self.ended_soon(answered.fault());
        let speaks = self.started.running().is_some_and(|running| running.speaks_of_memory());
        let result = answered
            .fault()
            .map_or(AttemptResult::Failed, |fault| of_fault(fault, stage, ended.as_ref(), speaks));
        let fault = answered.fault().map(ToString::to_string).unwrap_or_default();
        let said = ended.map_or(fault.clone(), |ended| format!("{fault}; {ended}"));
        Conclusion { reply: Some(answered.reply()), ..Conclusion::failed(result, said) }
    }

    fn end_error(&mut self) -> Option<LaunchError> {
        self.started.running().and_then(Running::has_ended)
    }

    /// Waits a short time for the end of the process, because its connections close before it ends.
    fn ended_soon(&mut self, fault: Option<&RequestFault>) -> Option<LaunchError> {
        let begun = Instant::now();
        let is_lost =
            matches!(fault, Some(RequestFault::CutOff { .. } | RequestFault::Unreachable { .. }));
        loop {
            let ended = self.end_error();
            if ended.is_some() || !is_lost || begun.elapsed() > END_WITHIN {
                return ended;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Memory use on the card if there is much of it, otherwise in RAM; and both in MB for the record.
    fn memory(&mut self) -> (Option<ServerMemory>, Option<f64>, Option<f64>) {
        let resident = self.started.running().and_then(|running| running.resident_bytes());
        let card = vram().filter(|card| card.used_bytes > CARD_BYTES_MIN);
        let mb = |bytes: u64| bytes as f64 / BYTES_PER_MB;
        let on_card = card.map(|Vram { used_bytes, total_bytes }| ServerMemory {
            taken_bytes: used_bytes,
            left_bytes: total_bytes.saturating_sub(used_bytes),
        });
        let in_machine = resident.zip(ram()).map(|(taken_bytes, ram)| ServerMemory {
            taken_bytes,
            left_bytes: ram.available_bytes,
        });
        (on_card.or(in_machine), card.map(|card| mb(card.used_bytes)), resident.map(mb))
    }
}

/// The first line, and the log line with the cause. A record does not keep a whole log.
fn brief(said: &str) -> String {
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default();
    let cause = lines.clone().rev().find(|line| speaks_of_memory(line)).or(lines.next_back());
    let both = cause.map_or(first.to_owned(), |line| format!("{first} {}", line.trim()));
    both.chars().take(SAID_CHARS_MAX).collect()
}

/// Whether it is slower than shorter contexts predict.
fn is_slow(answered: &ParsedReply, ctx: u64, search: &Search) -> bool {
    let speed = answered.figures.as_ref().and_then(|figures| figures.get(Metric::DecodeTokS));
    speed.is_some_and(|speed| search.speed_verdict(ctx, speed) != SpeedVerdict::Fine)
}

fn chunks_of(fault: &RequestFault) -> usize {
    match fault {
        RequestFault::CutOff { chunks }
        | RequestFault::Silent { chunks }
        | RequestFault::TooSlow { chunks }
        | RequestFault::TooLong { chunks, .. } => *chunks,
        RequestFault::Unreachable { .. }
        | RequestFault::Refused { .. }
        | RequestFault::Garbage
        | RequestFault::Failed { .. }
        | RequestFault::Empty
        | RequestFault::Stopped => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_line_with_the_cause_is_kept() {
        let rows = [
            ("the answer did not end", "the answer did not end"),
            (
                "it ended; it said:\nloading\n failed to allocate 9 GB\nbye",
                "it ended; it said: failed to allocate 9 GB",
            ),
            ("it ended; it said:\nloading\nno such file", "it ended; it said: no such file"),
        ];
        for (said, expected) in rows {
            assert_eq!(brief(said), expected);
        }
    }
}
