//! Measures two servers alternately with the same words, in the order A B B A, so other load affects both alike.
//! Each cell gives two records of one campaign, which can be compared run by run.

use hob_core::statistics::SeededRandom;
use jiff::Timestamp;

use crate::chat::{ChatCell, ChatSession, ChatWorkload, Prompt, nonce};
use crate::client_check::{CheckLoad, ClientCheck};
use crate::drive::Arrivals;
use crate::record::{Record, RecordKind, sha256_hex};
use crate::runs::{BenchError, CellSummary, RecordContext, Run, Runs};
use crate::session::{MeasuringSession, RunSize, measure_in_turns};
use crate::terms::Metric;
use crate::workbench::{Asker, OtherServer, Workbench};

/// Measures every cell on the workbench's own server and on `other`. Returns two records of each cell. A server that fails
/// before the first run leaves a record of that.
///
/// # Errors
/// One of the servers does not answer chat requests, or a record cannot be stored.
pub fn side_by_side(
    bench: &mut Workbench<'_>,
    other: &OtherServer,
    (chat, arrivals, run_size): (&ChatWorkload, Arrivals, RunSize),
) -> Result<Vec<Record>, BenchError> {
    let asker = Asker { target: other.target.clone(), ..bench.asker() };
    let own = ChatSession::prepare_with_context(bench.asker(), chat, run_size);
    let own = recorded(bench, own)?;
    let others = ChatSession::prepare_with_context(asker, chat, run_size);
    let own_context = std::mem::replace(&mut bench.context, other.context.clone());
    let others = recorded(bench, others);
    bench.context = own_context;
    let sessions = [own, others?];
    let [own, others] = [0, 1].map(|server: usize| sessions[server].cells(&[arrivals]));
    let mut records = Vec::new();
    let mut both = TwoServers {
        sessions,
        context: other.context.clone(),
        random: SeededRandom::new(bench.context.seed),
        asked: Vec::new(),
        prompts: Default::default(),
    };
    for pair in own.into_iter().zip(others) {
        let cells = [(0, pair.0), (1, pair.1)];
        let name = both.name(&cells[0]);
        both.asked.clear();
        measure_in_turns(bench, &mut both, (&name, &cells), &mut records, |_| ())?;
    }
    Ok(records)
}

/// Stores a record of a failure of the workbench's server.
fn recorded<T>(
    bench: &mut Workbench<'_>,
    prepared: Result<T, BenchError>,
) -> Result<T, BenchError> {
    if let Err(error) = &prepared {
        bench.keep_failure(RecordKind::Llm, error)?;
    }
    prepared
}

struct TwoServers<'a> {
    sessions: [ChatSession<'a>; 2],
    /// Context of the second server.
    context: RecordContext,
    random: SeededRandom,
    /// Words of all prompts, without the first word of each.
    asked: Vec<String>,
    /// What each server gets in this turn.
    prompts: [Vec<Prompt>; 2],
}

impl MeasuringSession for TwoServers<'_> {
    /// The index of the server, and the cell.
    type Cell = (usize, ChatCell);

    fn name(&self, (_, cell): &(usize, ChatCell)) -> String {
        cell.name()
    }

    fn begin_turn(&mut self, (_, cell): &(usize, ChatCell)) {
        let prompts = self.sessions[0].next_prompts(*cell);
        self.asked.extend(prompts.iter().map(|prompt| prompt.user.clone()));
        // Both addresses may belong to one server, so another first word keeps the prompt out of its cache.
        let others: Vec<Prompt> = prompts
            .iter()
            .map(|prompt| Prompt { system: nonce(&mut self.random), user: prompt.user.clone() })
            .collect();
        self.prompts = [prompts, others];
    }

    fn measure_run(
        &mut self,
        (server, cell): &(usize, ChatCell),
        client_check: Option<&ClientCheck>,
    ) -> Result<Run, BenchError> {
        self.sessions[*server].ask(*cell, &self.prompts[*server], client_check)
    }

    fn leading(&self, (_, cell): &(usize, ChatCell)) -> &'static [Metric] {
        cell.leading()
    }

    fn pace(&self, (_, cell): &(usize, ChatCell), warm: &Run) -> Option<CheckLoad> {
        cell.pace(warm)
    }

    fn summarise<'r>(
        &mut self,
        (server, cell): &(usize, ChatCell),
        runs: &'r Runs,
        started: Timestamp,
    ) -> CellSummary<'r> {
        let prompts_sha256 = sha256_hex(self.asked.join("\n").as_bytes());
        self.sessions[*server].summarise(*cell, runs, started, prompts_sha256)
    }

    fn context(&self, (server, _): &(usize, ChatCell)) -> Option<&RecordContext> {
        (*server == 1).then_some(&self.context)
    }
}
