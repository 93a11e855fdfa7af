//! Measures one cell: every question in a session of its own, for one or more users at the same time.
//! A session of its own makes turns alike: each has the same prompt, and no turn waits for the end of the answer before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hob_core::count_text;
use jiff::Timestamp;

use super::conversation::{Conversation, TurnMarks};
use super::microphone::Question;
use super::{Manner, VoiceFault, VoiceWorkload};
use crate::client_check::{CheckLoad, ClientCheck};
use crate::drive::thread_cpu;
use crate::record::{Connection, Record, RecordKind, RecordedWorkload};
use crate::runs::{BenchError, CellSummary, Reply, Run, Runs};
use crate::session::MeasuringSession;
use crate::terms::Metric;
use crate::transcription::ClipSet;
use crate::wav::Wav;
use crate::workbench::Asker;

/// Sound arrives in pieces of 100 ms or less.
const GAP_MS_ASSUMED: f64 = 50.0;
/// When a person interrupts, counted from the first audible sample; turns take turns.
const INTERRUPT_AFTER_MS: [u64; 4] = [150, 400, 700, 1_100];
/// One run of a cell has many requests.
const WARMUP_RUNS: usize = 1;

/// Users who speak at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct VoiceCell {
    pub(super) users: usize,
    /// How often each user asks all questions in a run.
    pub(super) rounds: usize,
}

/// All runs on one server.
pub(super) struct VoiceRuns<'a> {
    asker: Asker<'a>,
    pub(super) workload: VoiceWorkload,
    pub(super) set: Arc<ClipSet>,
    questions: Vec<Option<Question>>,
}

/// One turn of a user.
struct Turn {
    sent: Instant,
    connect: Duration,
    outcome: Result<(TurnMarks, Option<Duration>), VoiceFault>,
}

impl<'a> VoiceRuns<'a> {
    pub(super) fn new(
        asker: Asker<'a>,
        workload: VoiceWorkload,
        set: &Arc<ClipSet>,
    ) -> VoiceRuns<'a> {
        let pause = workload.pause;
        let question = |wav: Wav| {
            let question = Question::new(&wav.samples, wav.rate_hz)?;
            Some(match pause {
                Some(pause) => question.with_pause(pause),
                None => question,
            })
        };
        let questions = set.clips.iter().map(|clip| Wav::read(&clip.wav).and_then(question));
        VoiceRuns { asker, workload, questions: questions.collect(), set: Arc::clone(set) }
    }

    /// One user's turns, and the processor time of its thread.
    fn user(&self, user: usize, rounds: usize) -> (Vec<Turn>, Duration) {
        let before = thread_cpu();
        let count = self.questions.len();
        // Users ask different questions at the same time.
        let turns = (0..count * rounds).map(|number| self.turn((number + user) % count));
        let mut all = Vec::new();
        for turn in turns {
            let is_stopped = matches!(turn.outcome, Err(VoiceFault::Stopped));
            all.push(turn);
            if is_stopped {
                break;
            }
        }
        (all, thread_cpu().saturating_sub(before))
    }

    fn turn(&self, number: usize) -> Turn {
        let Asker { target, stop, .. } = &self.asker;
        let began = Instant::now();
        let VoiceWorkload { turn_end, voice, .. } = &self.workload;
        let opened = Conversation::open(target, *turn_end, voice.as_deref(), stop);
        let connect = began.elapsed();
        let outcome = opened.and_then(|conversation| self.talk(conversation, number));
        let sent = outcome.as_ref().map_or(began, |(marks, _)| marks.said.end);
        Turn { sent, connect, outcome }
    }

    /// The questions, their pauses, and how they end.
    fn shape(&self) -> String {
        let VoiceWorkload { turn_end, pause, .. } = &self.workload;
        let pause = pause.map(|pause| format!(" with pauses of {} ms", pause.as_millis()));
        let pause = pause.unwrap_or_default();
        format!("{}{pause}, {}", self.set.workload_name(), turn_end.name())
    }

    fn talk(
        &self,
        mut conversation: Conversation<'_>,
        number: usize,
    ) -> Result<(TurnMarks, Option<Duration>), VoiceFault> {
        let question = |number: usize| {
            let question = &self.questions[number % self.questions.len()];
            question.as_ref().ok_or(VoiceFault::SilentQuestion)
        };
        let marks = conversation.ask(question(number)?)?;
        let silent = match self.workload.manner {
            Manner::Listens => None,
            Manner::Interrupts => {
                let after = INTERRUPT_AFTER_MS[number % INTERRUPT_AFTER_MS.len()];
                let after = Duration::from_millis(after);
                Some(conversation.interrupt(after, question(number + 1)?)?)
            }
        };
        conversation.close();
        Ok((marks, silent))
    }
}

impl MeasuringSession for VoiceRuns<'_> {
    type Cell = VoiceCell;

    fn name(&self, cell: &VoiceCell) -> String {
        let interrupted = match self.workload.manner {
            Manner::Listens => "",
            Manner::Interrupts => ", interrupted",
        };
        let users = count_text(cell.users, "user");
        format!("{} × {users}{interrupted}", self.shape())
    }

    fn measure_run(
        &mut self,
        cell: &VoiceCell,
        _client_check: Option<&ClientCheck>,
    ) -> Result<Run, BenchError> {
        let began = Instant::now();
        let this = &*self;
        let turns: Vec<(Vec<Turn>, Duration)> = thread::scope(|scope| {
            let users: Vec<_> = (0..cell.users)
                .map(|user| scope.spawn(move || this.user(user, cell.rounds)))
                .collect();
            users.into_iter().filter_map(|user| user.join().ok()).collect()
        });
        let cpu_busiest = turns.iter().map(|(_, cpu)| *cpu).max().unwrap_or_default();
        let cpu = turns.iter().map(|(_, cpu)| *cpu).sum();
        let turns: Vec<Turn> = turns.into_iter().flat_map(|(turns, _)| turns).collect();
        let has_pauses = self.workload.pause.is_some();
        let replies = turns.iter().map(|turn| turn.reply(began, has_pauses)).collect();
        let cut_in = cut_in_pct(&turns).filter(|_| has_pauses);
        let together = cut_in.map(|pct| (Metric::CutInPct, pct)).into_iter().collect();
        Ok(Run { replies, together, cpu, cpu_busiest, wall: began.elapsed(), ..Run::default() })
    }

    fn leading(&self, _cell: &VoiceCell) -> &'static [Metric] {
        match self.workload.manner {
            Manner::Listens => &[Metric::TtfaMs],
            Manner::Interrupts => &[Metric::BargeInMs],
        }
    }

    fn pace(&self, cell: &VoiceCell, warm: &Run) -> Option<CheckLoad> {
        let ttfa_ms = warm.figure(Metric::TtfaMs)?;
        Some(CheckLoad::with_medians(cell.users, ttfa_ms, Some(GAP_MS_ASSUMED)))
    }

    fn summarise<'r>(
        &mut self,
        cell: &VoiceCell,
        runs: &'r Runs,
        started: Timestamp,
    ) -> CellSummary<'r> {
        let workload = RecordedWorkload {
            shape: Some(self.shape()),
            prompts_sha256: Some(self.set.sha256()),
            ..RecordedWorkload::closed_loop(cell.users, Connection::Fresh)
        };
        CellSummary::new(RecordKind::Voice, workload, runs, started, self.leading(cell))
    }

    fn fill_in(&self, _cell: &VoiceCell, runs: &Runs, record: &mut Record, _earlier: &[Record]) {
        record.voice = Some(super::section::section(runs));
    }

    fn warmups_max(&self, _cell: &VoiceCell) -> usize {
        WARMUP_RUNS
    }
}

/// The share of questions that the server took for finished before their end. None without turns.
fn cut_in_pct(turns: &[Turn]) -> Option<f64> {
    let is_cut = |turn: &&Turn| matches!(turn.outcome, Err(VoiceFault::CutIn));
    let share = turns.iter().filter(is_cut).count() as f64 / turns.len() as f64;
    share.is_finite().then_some(share * 100.0)
}

impl Turn {
    /// With pauses, a server that cuts in has not failed: how often it does is the figure.
    fn reply(&self, began: Instant, has_pauses: bool) -> Reply {
        let sent = self.sent.saturating_duration_since(began);
        let reply = Reply { sched: sent, sent, connect: Some(self.connect), ..Reply::default() };
        match &self.outcome {
            Ok((marks, silent)) => Reply { figures: figures(marks, *silent), ..reply },
            Err(VoiceFault::CutIn) if has_pauses => reply,
            Err(fault) => reply.failed(fault, matches!(fault, VoiceFault::Stopped)),
        }
    }
}

fn figures(marks: &TurnMarks, silent: Option<Duration>) -> BTreeMap<Metric, f64> {
    let ms = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e3;
    let whole = ms(marks.said.end, marks.audible);
    let mut stages = match &marks.reported {
        Some(reported) => vec![
            (Metric::EndpointMs, whole - reported.sum()),
            (Metric::TranscriptMs, reported.stt),
            (Metric::FirstTextMs, reported.llm_ttfat),
            (Metric::FirstClauseMs, reported.sentence),
            (Metric::FirstVoiceMs, reported.tts_ttfa),
            (Metric::TransportMs, reported.transport),
            // A turn that waits for its text ends before `speech_stopped`, so its parts are longer than what the client sees.
            (Metric::UnexplainedMs, (ms(marks.turn_end, marks.audible) - reported.sum()).max(0.0)),
        ],
        None => vec![
            (Metric::EndpointMs, ms(marks.said.end, marks.turn_end)),
            (Metric::TranscriptMs, ms(marks.turn_end, marks.transcript)),
            (Metric::FirstTextMs, ms(marks.transcript, marks.first_text)),
            (Metric::FirstVoiceMs, ms(marks.first_text, marks.audible)),
        ],
    };
    stages.push((Metric::TtfaMs, whole));
    stages.extend(silent.map(|time| (Metric::BargeInMs, time.as_secs_f64() * 1e3)));
    stages.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voice::conversation::ReportedStages;
    use crate::voice::microphone::SaidAt;

    #[test]
    fn the_stages_of_a_turn_add_up_to_the_time_to_the_first_sound() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let marks = TurnMarks {
            said: SaidAt { onset: at(0), end: at(1_000) },
            turn_end: at(1_250),
            transcript: at(1_260),
            first_text: at(1_330),
            audible: at(1_600),
            reported: None,
        };
        let reported = ReportedStages {
            stt: 15.0,
            llm_ttfat: 50.0,
            sentence: 20.0,
            tts_ttfa: 255.0,
            transport: 4.0,
        };
        let by_hob = |reported| figures(&TurnMarks { reported: Some(reported), ..marks }, None);
        let waits = by_hob(ReportedStages { stt: 30.0, ..reported });
        let by_hob = by_hob(reported);
        assert_eq!((by_hob[&Metric::FirstClauseMs], by_hob[&Metric::TransportMs]), (20.0, 4.0));
        assert_eq!((by_hob[&Metric::TtfaMs], by_hob[&Metric::EndpointMs]), (600.0, 256.0));
        assert_eq!(
            (by_hob[&Metric::UnexplainedMs], waits[&Metric::UnexplainedMs]),
            (6.0, 0.0),
            "the client sees 350 ms after the turn"
        );
        let figures = figures(&marks, Some(Duration::from_millis(340)));
        let stages =
            [Metric::EndpointMs, Metric::TranscriptMs, Metric::FirstTextMs, Metric::FirstVoiceMs];
        assert_eq!(stages.map(|stage| figures[&stage]), [250.0, 10.0, 70.0, 270.0]);
        assert_eq!((figures[&Metric::TtfaMs], figures[&Metric::BargeInMs]), (600.0, 340.0));
    }

    #[test]
    fn a_server_that_cuts_in_has_failed_unless_the_question_has_a_pause() {
        let sent = Instant::now();
        let turn = |fault| Turn { sent, connect: Duration::ZERO, outcome: Err(fault) };
        let turns = [turn(VoiceFault::CutIn), turn(VoiceFault::NoAnswer)];
        assert_eq!((cut_in_pct(&turns), cut_in_pct(&[])), (Some(50.0), None));
        let failed =
            |has_pauses| turns.each_ref().map(|turn| turn.reply(sent, has_pauses).has_failed());
        assert_eq!((failed(false), failed(true)), ([true, true], [false, true]));
    }
}
