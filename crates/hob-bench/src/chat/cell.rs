//! Measures one cell: sends new or repeated prompts, in a closed loop or at a rate.
//! A run is a group of requests that is measured as one unit. Only figures are kept, not the texts.

use std::time::Duration;

use super::prompt::Prompt;
use super::request::RequestTemplate;
use super::{ChatCell, ChatSession, Prompts, ThinkingMode};
use bytes::Bytes;
use hob_core::count_text;
use jiff::Timestamp;

use crate::client_check::{CheckLoad, ClientCheck};
use crate::drive::{Arrivals, DriveResult, Exchange};
use crate::record::sha256_hex;
use crate::runs::{BenchError, CellSummary, Reply, Run, Runs, WARMUP_RUNS_MAX};
use crate::session::MeasuringSession;
use crate::terms::Metric;
use crate::timeline::{Flag, RequestFigures, Timeline, figures, timeline};

const OPEN_REQUESTS_MIN: usize = 8;
/// Longer prompts warm up once: each takes minutes, and the first of them reads all weights.
const WARM_TOKENS_MAX: u32 = 8192;

impl MeasuringSession for ChatSession<'_> {
    type Cell = ChatCell;

    fn name(&self, cell: &ChatCell) -> String {
        cell.name()
    }

    fn measure_run(
        &mut self,
        cell: &ChatCell,
        client_check: Option<&ClientCheck>,
    ) -> Result<Run, BenchError> {
        let prompts = self.next_prompts(*cell);
        let texts = prompts.iter().map(Prompt::text);
        match self.asked.iter_mut().find(|(other, _)| other == cell) {
            Some((_, asked)) => asked.extend(texts),
            None => self.asked.push((*cell, texts.collect())),
        }
        self.ask(*cell, &prompts, client_check)
    }

    fn leading(&self, cell: &ChatCell) -> &'static [Metric] {
        cell.leading()
    }

    fn pace(&self, cell: &ChatCell, warm: &Run) -> Option<CheckLoad> {
        cell.pace(warm)
    }

    fn summarise<'r>(
        &mut self,
        cell: &ChatCell,
        runs: &'r Runs,
        started: Timestamp,
    ) -> CellSummary<'r> {
        let place = self.asked.iter().position(|(other, _)| other == cell);
        let asked = place.map(|place| self.asked.swap_remove(place).1).unwrap_or_default();
        let prompts_sha256 = sha256_hex(asked.join("\n").as_bytes());
        ChatSession::summarise(self, *cell, runs, started, prompts_sha256)
    }

    fn warmups_max(&self, cell: &ChatCell) -> usize {
        if cell.shape.prompt_tokens > WARM_TOKENS_MAX { 1 } else { WARMUP_RUNS_MAX }
    }
}

impl ChatCell {
    /// Maximum number of connections at the same time.
    pub fn users(&self) -> usize {
        self.arrivals.connections()
    }

    /// The figures of the stopping rule: time per token, and time to the first token. In an open loop the latter counts from the due time.
    pub fn leading(&self) -> &'static [Metric] {
        match self.arrivals {
            Arrivals::Closed { .. } => &[Metric::TpotMs, Metric::TtftMs],
            Arrivals::Constant { .. } | Arrivals::Poisson { .. } => {
                &[Metric::TpotMs, Metric::TtftSchedMs]
            }
        }
    }

    /// A mock server's pace that is like this server's. A run at a rate never has more users than requests.
    pub(crate) fn pace(&self, warm: &Run) -> Option<CheckLoad> {
        let ttft_ms = warm.figure(Metric::TtftMs)?;
        let users = self.users().min(warm.replies.len());
        Some(CheckLoad::with_medians(users, ttft_ms, warm.figure(Metric::TpotMs)))
    }

    /// The cell's name in progress lines.
    pub fn name(&self) -> String {
        let load = match self.arrivals {
            Arrivals::Closed { users } => format!("× {}", count_text(users, "user")),
            Arrivals::Constant { per_second, .. } => format!("at {per_second} a second"),
            Arrivals::Poisson { per_second, .. } => format!("at about {per_second} a second"),
        };
        let thinking = match self.thinking {
            ThinkingMode::AsIs { thinks: false } => String::new(),
            ThinkingMode::AsIs { thinks: true } => ", thinking".to_owned(),
            ThinkingMode::Off(switch) => format!(", no thinking by {}", switch.name()),
            ThinkingMode::CannotDisable => ", thinking that cannot be turned off".to_owned(),
        };
        format!("{} {load}{thinking}", self.shape.name)
    }
}

impl ChatSession<'_> {
    /// The prompts of one run.
    pub(crate) fn next_prompts(&mut self, cell: ChatCell) -> Vec<Prompt> {
        (0..self.requests(cell)).map(|_| self.next_prompt(cell)).collect()
    }

    /// Sends these prompts once.
    pub(crate) fn ask(
        &self,
        cell: ChatCell,
        prompts: &[Prompt],
        client_check: Option<&ClientCheck>,
    ) -> Result<Run, BenchError> {
        let form = self.form_of(cell);
        let jobs: Vec<Bytes> =
            prompts.iter().enumerate().map(|(number, prompt)| form.bytes(prompt, number)).collect();
        let driven = self.drive(jobs, cell.arrivals, cell.shape.max_tokens)?;
        Ok(self.decoded(cell, driven, client_check))
    }

    fn requests(&self, cell: ChatCell) -> usize {
        if let Prompts::Again(times) = cell.prompts {
            return times;
        }
        match cell.arrivals {
            Arrivals::Closed { users } => users * self.run_size.rounds,
            Arrivals::Constant { per_second, .. } | Arrivals::Poisson { per_second, .. } => {
                ((per_second * self.run_size.span_s).ceil() as usize).max(OPEN_REQUESTS_MIN)
            }
        }
    }

    fn form_of(&self, cell: ChatCell) -> RequestTemplate<'_> {
        RequestTemplate { switch: cell.thinking.switch(), ..self.request_template(cell.shape) }
    }

    fn next_prompt(&mut self, cell: ChatCell) -> Prompt {
        match cell.prompts {
            Prompts::Cold => {
                let prompt = self.prompt(cell.shape);
                self.latest = Some(prompt.clone());
                prompt
            }
            Prompts::Again(_) => self.latest.clone().unwrap_or_else(|| self.prompt(cell.shape)),
            Prompts::Cached => Prompt::new(cell.shape, self.token_rate, self.asker.seed, 0),
        }
    }

    fn decoded(
        &self,
        cell: ChatCell,
        driven: DriveResult,
        client_check: Option<&ClientCheck>,
    ) -> Run {
        let protocol = self.asker.target.api.protocol();
        let tokens_max = Some(cell.shape.max_tokens);
        let answers: Vec<ParsedAnswer<'_>> = driven
            .exchanges
            .iter()
            .map(|exchange| {
                let timeline = timeline(exchange, protocol);
                let figures = figures(&timeline, tokens_max);
                ParsedAnswer { exchange, timeline, figures }
            })
            .collect();
        let together = rates(&answers, cell);
        let error_ms = client_check.and_then(|client_check| client_check.ttft_err_ms.median());
        let mut replies: Vec<Reply> =
            answers.into_iter().map(|answer| answer.reply(cell, error_ms)).collect();
        if cell.shape.is_of_sweep() {
            replies.iter_mut().for_each(add_prompt_rate);
        }
        Run { together, ..Run::from_drive(&driven, replies) }
    }
}

/// Adds prompt tokens per time to first token, which is often published as the prefill speed, as a figure of its own.
fn add_prompt_rate(reply: &mut Reply) {
    let of = |metric| reply.figures.get(&metric).copied();
    let pair = of(Metric::PromptTokens).zip(of(Metric::TtftMs).filter(|ms| *ms > 0.0));
    let rate = pair.map(|(tokens, ms)| tokens / ms * 1e3);
    reply.figures.extend(rate.map(|rate| (Metric::PromptTtftTokS, rate)));
}

/// One parsed answer.
struct ParsedAnswer<'a> {
    exchange: &'a Exchange,
    timeline: Timeline,
    figures: Option<RequestFigures>,
}

impl ParsedAnswer<'_> {
    /// `error_ms` is the client's own error, if it is known yet.
    fn reply(self, cell: ChatCell, error_ms: Option<f64>) -> Reply {
        let ParsedAnswer { exchange, timeline, mut figures } = self;
        if let (Some(figures), Some(error_ms)) = (&mut figures, error_ms)
            && figures.get(Metric::PrefillTokS).is_none()
            && let Some(estimate) = figures.prefill_estimate(error_ms)
        {
            figures.by_metric.insert(Metric::PrefillTokS, estimate);
            figures.flags.insert(Flag::PrefillEstimated);
        }
        let mut reply = Reply::in_words(exchange, &timeline, figures);
        if !matches!(cell.arrivals, Arrivals::Closed { .. }) {
            reply.count_from_due();
        }
        reply
    }

    fn end(&self) -> Duration {
        let last = self.timeline.chunks.last();
        last.map_or(self.exchange.sent, |chunk| self.exchange.sent + chunk.at)
    }
}

/// Tokens and answers per second while all users have a request running. In an open loop: from the first request to the
/// last answer.
fn rates(answers: &[ParsedAnswer<'_>], cell: ChatCell) -> std::collections::BTreeMap<Metric, f64> {
    let full = match cell.arrivals {
        Arrivals::Closed { users } => users,
        Arrivals::Constant { .. } | Arrivals::Poisson { .. } => 1,
    };
    let mut sent: Vec<Duration> = answers.iter().map(|answer| answer.exchange.sent).collect();
    let mut ends: Vec<Duration> = answers.iter().map(ParsedAnswer::end).collect();
    sent.sort();
    ends.sort();
    let until = ends.len().checked_sub(full).and_then(|place| ends.get(place));
    let (Some(from), Some(until)) = (sent.get(full - 1), until) else { return Default::default() };
    let window_s = until.saturating_sub(*from).as_secs_f64();
    if window_s <= 0.0 {
        return Default::default();
    }
    let mut tokens = 0.0;
    for answer in answers {
        let Some(figures) = &answer.figures else { continue };
        let chunks = &answer.timeline.chunks;
        let each = f64::from(figures.tokens.completion) / chunks.len() as f64;
        let within = |at: Duration| (*from..=*until).contains(&(answer.exchange.sent + at));
        tokens += each * chunks.iter().filter(|chunk| within(chunk.at)).count() as f64;
    }
    let is_over = |answer: &&ParsedAnswer<'_>| answer.figures.is_some() && answer.end() <= *until;
    let requests = answers.iter().filter(is_over).count() as f64;
    [(Metric::ThroughputTokS, tokens / window_s), (Metric::RequestsS, requests / window_s)].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::SHAPES;

    #[test]
    fn the_client_is_checked_with_no_more_users_than_requests() {
        let reply = Reply { figures: [(Metric::TtftMs, 50.0)].into(), ..Reply::default() };
        let warm = Run { replies: vec![reply; 8], ..Run::default() };
        let users = |arrivals| {
            let (shape, thinking) = (SHAPES[0], ThinkingMode::AsIs { thinks: false });
            let cell = ChatCell { shape, arrivals, thinking, prompts: Prompts::Cold };
            cell.pace(&warm).expect("a pace").users
        };
        let rate = Arrivals::Constant { per_second: 0.5, connections: 128 };
        assert_eq!((users(rate), users(Arrivals::Closed { users: 4 })), (8, 4));
    }
}
