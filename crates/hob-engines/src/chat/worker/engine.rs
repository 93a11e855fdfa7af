//! The loop of the chat worker: receives orders, computes the step that the scheduler plans, sends the results.
//! Orders are followed between two steps, so a cancelled request costs at most one more step.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use hob_core::chat::ChatEvent;

use super::answering::AnswerError;
use super::draft_model::DraftModel;
use super::off_engine::OffEngineStreams;
use super::running::{Prepared, Running, StepOutput};
use super::{BUSY, EmbedEnd, EngineSetup, Incoming, Job, Outputs, ServeChatError};
use crate::chat::decoder::{BatchToken, DecodeFailed, Decoder};
use crate::chat::protocol::{AnyChatOrder, ChatOrder, ChatReport, Refusal};
use crate::chat::scheduler::{Demand, DraftOffer, StepPlan, TokenScheduler};
use crate::chat::slots::{SlotAssignment, Slots};
use crate::worker::protocol::{CommonOrder, Report, WorkerMessage, WorkerStats};
use crate::worker::{Inbox, Outlet, Polled};

pub(super) struct Engine<D: Decoder> {
    decoder: D,
    slots: Slots,
    scheduler: TokenScheduler,
    outlet: Outlet,
    jobs: SyncSender<Job>,
    queue_max: usize,
    off_engine: OffEngineStreams,
    /// Requests that wait for a slot, the oldest first.
    queue: VecDeque<(u32, Prepared)>,
    /// Requests in slots, the oldest first.
    running: Vec<Running>,
    steps: u64,
    can_draft: bool,
    draft_model: Option<DraftModel<D>>,
}

impl<D: Decoder> Engine<D> {
    pub(super) fn new(setup: EngineSetup<D>, outputs: Outputs) -> Engine<D> {
        let EngineSetup { decoder, draft_model, scheduler, queue_max } = setup;
        let Outputs { outlet, jobs, off_engine } = outputs;
        Engine {
            slots: Slots::new(decoder.parallel()),
            // A wrong guess must be removed from the cache.
            can_draft: scheduler.can_draft() && decoder.can_truncate(),
            draft_model,
            decoder,
            scheduler,
            outlet,
            jobs,
            queue_max,
            off_engine,
            queue: VecDeque::new(),
            running: Vec::new(),
            steps: 0,
        }
    }

    /// Returns when the socket is closed, whatever is still open.
    pub(super) fn run(mut self, inbox: Inbox<Incoming>) -> Result<(), ServeChatError> {
        loop {
            match inbox.poll()? {
                Polled::Order(incoming) => {
                    self.receive(incoming)?;
                    continue;
                }
                Polled::Closed => return Ok(()),
                Polled::Empty => {}
            }
            self.fill_slots();
            let demands = self.demands();
            if demands.is_empty() {
                match inbox.wait()? {
                    Some(incoming) => self.receive(incoming)?,
                    None => return Ok(()),
                }
            } else {
                self.step(&demands)?;
            }
        }
    }

    fn receive(&mut self, incoming: Incoming) -> io::Result<()> {
        match incoming {
            Incoming::Order { stream, order } => self.obey(stream, order),
            Incoming::Prepared { stream, prepared } => self.enqueue(stream, *prepared),
            Incoming::Embedded { stream, vector } => {
                if !self.off_engine.contains(stream) {
                    return Ok(());
                }
                self.outlet.send(stream, &ChatReport::Embedded(vector))
            }
            Incoming::EmbeddedAll { stream, ended } => {
                if !self.off_engine.remove(stream) {
                    return Ok(());
                }
                match ended {
                    Ok(()) => self.outlet.report(stream, &Report::Done),
                    Err(EmbedEnd::Refused(refusal)) => self.refuse(stream, refusal),
                    Err(EmbedEnd::Failed(error)) => self.fail(stream, &error.0),
                }
            }
        }
    }

    fn obey(&mut self, stream: u32, order: AnyChatOrder) -> io::Result<()> {
        match order {
            WorkerMessage::Model(order) => self.prepare(stream, order),
            WorkerMessage::Common(CommonOrder::Cancel) => {
                self.cancel(stream);
                Ok(())
            }
            WorkerMessage::Common(CommonOrder::Credit(amount)) => {
                self.grant(stream, amount);
                Ok(())
            }
            WorkerMessage::Common(CommonOrder::Ping) => {
                let streams = self.running.len() + self.queue.len() + self.off_engine.len();
                let stats = WorkerStats { streams: streams as u32, steps: self.steps };
                self.outlet.report(stream, &Report::Stats(stats))
            }
        }
    }

    fn prepare(&mut self, stream: u32, order: ChatOrder) -> io::Result<()> {
        let job = Job { stream, order, received: Instant::now() };
        let is_full = self.queue.len() + self.off_engine.len() >= self.queue_max;
        // Before the send, because the receiver checks that the request is still open.
        self.off_engine.insert(stream);
        let taken = if is_full { Err(TrySendError::Full(job)) } else { self.jobs.try_send(job) };
        match taken {
            Ok(()) => Ok(()),
            Err(_) => {
                self.off_engine.remove(stream);
                self.refuse(stream, BUSY)
            }
        }
    }

    fn enqueue(&mut self, stream: u32, prepared: Result<Prepared, Refusal>) -> io::Result<()> {
        if !self.off_engine.remove(stream) {
            return Ok(());
        }
        match prepared {
            Ok(mut prepared) => {
                let ignored = std::mem::take(&mut prepared.ignored);
                self.queue.push_back((stream, prepared));
                self.outlet.send(stream, &ChatReport::Accepted { ignored })
            }
            Err(refusal) => self.refuse(stream, refusal),
        }
    }

    fn refuse(&mut self, stream: u32, refusal: Refusal) -> io::Result<()> {
        self.outlet.send(stream, &ChatReport::Refused(refusal))?;
        self.outlet.report(stream, &Report::Done)
    }

    fn fail(&mut self, stream: u32, detail: &str) -> io::Result<()> {
        self.outlet.report(stream, &Report::failed(detail))
    }

    fn cancel(&mut self, stream: u32) {
        self.off_engine.remove(stream);
        self.queue.retain(|(queued, _)| *queued != stream);
        self.leave(stream);
    }

    /// Frees the stream's slot.
    fn leave(&mut self, stream: u32) {
        if let Some(at) = self.running.iter().position(|running| running.stream == stream) {
            self.slots.release(self.running.remove(at).slot);
        }
    }

    fn grant(&mut self, stream: u32, amount: u32) {
        let running = self.running.iter_mut().map(|running| (running.stream, &mut running.credit));
        let queued = self.queue.iter_mut().map(|(stream, queued)| (*stream, &mut queued.credit));
        if let Some((_, credit)) = running.chain(queued).find(|(open, _)| *open == stream) {
            *credit = credit.saturating_add(i64::from(amount));
        }
    }

    /// Gives free slots to waiting requests.
    fn fill_slots(&mut self) {
        while self.slots.has_free()
            && let Some((stream, mut prepared)) = self.queue.pop_front()
        {
            // A slot is free.
            let Some(mut assignment) = self.slots.take(&prepared.prompt) else { return };
            if prepared.echo.is_scored() {
                // The probability of a token is known only if it is computed, so the cache is not used.
                assignment = SlotAssignment { keep: 0, copy_from: None, ..assignment };
            }
            // The same holds for one token of a message that is judged. A cache that cannot be cut there would be lost.
            prepared.judged_at = prepared.judged_at.filter(|_| self.decoder.can_truncate());
            assignment.keep = assignment.keep.min(prepared.judged_at.unwrap_or(usize::MAX));
            let kept = match assignment.copy_from {
                Some(donor) => self.decoder.copy(donor, assignment.slot, assignment.keep),
                None => self.decoder.truncate(assignment.slot, assignment.keep),
            };
            self.slots.extend(assignment.slot, &prepared.prompt[..kept]);
            self.running.push(Running::begin(stream, prepared, assignment, kept));
        }
    }

    /// The streams that need a step, with their index among the running.
    fn demands(&self) -> Vec<(usize, Demand)> {
        let running = self.running.iter().enumerate();
        let demands = running.filter_map(|(index, running)| Some((index, running.demand()?)));
        let mut demands: Vec<(usize, Demand)> = demands.collect();
        // The reader may want the cores now. A step for others takes them anyway, so it has the next token of this answer, too.
        let is_alone = demands.len() == 1;
        demands.retain(|(index, _)| !(is_alone && self.running[*index].is_ahead()));
        demands
    }

    fn step(&mut self, demands: &[(usize, Demand)]) -> Result<(), ServeChatError> {
        let dealt: Vec<Demand> = demands.iter().map(|(_, demand)| *demand).collect();
        let StepPlan { answers, prompts } = self.scheduler.deal(&dealt);
        let answering: Vec<usize> = answers.iter().map(|index| demands[*index].0).collect();
        let drafts = self.draft(&answering);
        let pending = answers.iter().map(|index| dealt[*index].pending);
        let lengths: Vec<usize> =
            pending.zip(&drafts).map(|(count, draft)| count + draft).collect();
        // Answers that end with the first pass change the indices, so streams identify them from here on.
        let stream = |index: usize| self.running[demands[index].0].stream;
        let answers: Vec<(u32, usize)> =
            answers.iter().map(|index| stream(*index)).zip(lengths.iter().copied()).collect();
        let prompts: Vec<(u32, usize)> =
            prompts.iter().map(|(index, share)| (stream(*index), *share)).collect();
        self.steps += 1;
        if let Some(took) = self.pass(&answers)? {
            self.scheduler.learn_answers(&lengths, took);
        }
        if let Some(took) = self.pass(&prompts)? {
            self.scheduler.learn_prompts(prompts.iter().map(|(_, share)| share).sum(), took);
        }
        Ok(())
    }

    /// Chooses how many guessed tokens of each of these answers the next pass checks.
    fn draft(&mut self, answering: &[usize]) -> Vec<usize> {
        if !self.can_draft {
            return vec![0; answering.len()];
        }
        let guess = |&index: &usize| self.running[index].guess();
        let mut offers: Vec<DraftOffer> = answering.iter().map(guess).collect();
        // The small model computes one answer at a time. Several answers would wait for each other's guesses.
        if let (&[index], [offer]) = (answering, offers.as_mut_slice())
            && self.running[index].is_guess_faint()
        {
            *offer = self.guess_with_model(index, *offer);
        }
        let drafts = self.scheduler.deal_drafts(&offers);
        for (&index, &count) in answering.iter().zip(&drafts) {
            self.running[index].check_guess(count);
        }
        drafts
    }

    /// Lets the small model guess for an answer, if there is one and it pays.
    fn guess_with_model(&mut self, index: usize, offer: DraftOffer) -> DraftOffer {
        let Some(model) = &mut self.draft_model else { return offer };
        let running = &mut self.running[index];
        let wished = self.scheduler.wished_draft(running.model_offer(), model.token_ms());
        if wished == 0 {
            return offer;
        }
        match model.guess(running.slot, running.tokens(), wished) {
            Ok(draft) => running.expect(draft),
            Err(error) => {
                tracing::warn!(%error, "the draft model does not compute, and is not used any more");
                self.draft_model = None;
                offer
            }
        }
    }

    /// Computes these shares of the streams in one batch, and sends the results. Returns the time of the
    /// computation, if there was one and it succeeded.
    fn pass(&mut self, shares: &[(u32, usize)]) -> Result<Option<Duration>, ServeChatError> {
        let running = self.running.iter().enumerate();
        let mut shares: Vec<(usize, usize)> = running
            .filter_map(|(index, running)| {
                let share = shares.iter().find(|(stream, _)| *stream == running.stream)?;
                Some((index, share.1))
            })
            .collect();
        if shares.is_empty() {
            return Ok(None);
        }
        // Sorted by slot, llama.cpp splits the batch into the fewest passes.
        shares.sort_by_key(|(index, _)| self.running[*index].slot);
        let batch: Vec<BatchToken> =
            shares.iter().flat_map(|(index, count)| self.running[*index].batch(*count)).collect();
        let started = Instant::now();
        if let Err(error) = self.decoder.decode(&batch) {
            if self.decoder.is_broken() {
                // The supervisor ends all streams, with what the driver said.
                return Err(ServeChatError::Broken(error));
            }
            self.lose(&shares, &error)?;
            return Ok(None);
        }
        let took = started.elapsed();
        for &(index, count) in &shares {
            self.running[index].count_pass(count, took);
        }
        for (stream, output) in self.advance(&shares) {
            self.send(stream, output)?;
        }
        Ok(Some(took))
    }

    /// Advances the streams of a pass, and returns what they send.
    fn advance(
        &mut self,
        shares: &[(usize, usize)],
    ) -> Vec<(u32, Result<StepOutput, AnswerError>)> {
        let mut outputs = Vec::new();
        let mut begin = 0;
        for &(index, count) in shares {
            let running = &mut self.running[index];
            let (slot, before) = (running.slot, running.computed());
            let output = running.advance(count, |at| self.decoder.logits(begin + at));
            begin += count;
            let computed = running.computed();
            self.slots.extend(slot, running.computed_since(before));
            let is_cut = computed < before + count;
            if is_cut && self.decoder.truncate(slot, computed) != computed {
                self.slots.forget(slot);
                running.compute_again();
            }
            let is_empty = |output: &StepOutput| output.events.is_empty() && output.end.is_none();
            if !output.as_ref().is_ok_and(is_empty) {
                outputs.push((running.stream, output));
            }
        }
        outputs
    }

    fn send(&mut self, stream: u32, output: Result<StepOutput, AnswerError>) -> io::Result<()> {
        let StepOutput { events, end } = match output {
            Ok(output) => output,
            Err(AnswerError::Engine(detail)) => {
                self.leave(stream);
                return self.fail(stream, &detail);
            }
            Err(AnswerError::Grammar(refusal)) => {
                self.leave(stream);
                return self.refuse(stream, refusal);
            }
        };
        let sent = events.len() as i64;
        for event in events {
            self.outlet.send(stream, &ChatReport::Event(event))?;
        }
        let Some(completion) = end else {
            if let Some(running) = self.running.iter_mut().find(|open| open.stream == stream) {
                running.credit -= sent;
            }
            return Ok(());
        };
        self.leave(stream);
        self.outlet.send(stream, &ChatReport::Event(ChatEvent::Done(completion)))?;
        self.outlet.report(stream, &Report::Done)
    }

    /// Ends the streams of a failed pass, and discards the caches of their slots.
    fn lose(&mut self, shares: &[(usize, usize)], error: &DecodeFailed) -> io::Result<()> {
        let lost: Vec<(u32, usize)> = shares
            .iter()
            .map(|(index, _)| (self.running[*index].stream, self.running[*index].slot))
            .collect();
        for (stream, slot) in lost {
            self.leave(stream);
            self.decoder.truncate(slot, 0);
            self.slots.forget(slot);
            self.fail(stream, &error.0)?;
        }
        Ok(())
    }
}
