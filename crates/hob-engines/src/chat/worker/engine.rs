//! The engine's loop: take in what was said, compute the step that the scheduler deals, say what it
//! gave, repeat. Orders are obeyed between any two steps, so who leaves costs at most one step more.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use hob_core::chat::ChatEvent;

use super::elsewhere::Elsewhere;
use super::running::{Prepared, Running, Spoken};
use super::{EmbedEnd, Incoming, Job, Outputs, ServeChatError};
use crate::chat::decoder::{BatchToken, DecodeFailed, Decoder};
use crate::chat::protocol::{AnyChatOrder, ChatOrder, ChatReport, Refusal};
use crate::chat::scheduler::{Scheduler, Step, Wish};
use crate::chat::slots::{Place, Slots};
use crate::worker::protocol::{Message, Order, Report, WorkerStats};
use crate::worker::{Inbox, Outlet, Polled};

/// How long whoever finds the queue full is told to stay away.
const RETRY_AFTER_MS: u64 = 2000;

pub(super) struct Engine<D: Decoder> {
    decoder: D,
    slots: Slots,
    scheduler: Scheduler,
    outlet: Outlet,
    jobs: SyncSender<Job>,
    queue_max: usize,
    elsewhere: Elsewhere,
    /// Requests that wait for a slot, the oldest first.
    queue: VecDeque<(u32, Prepared)>,
    /// Requests in slots, the oldest first.
    running: Vec<Running>,
    steps: u64,
}

impl<D: Decoder> Engine<D> {
    pub(super) fn new(
        decoder: D,
        scheduler: Scheduler,
        outputs: Outputs,
        queue_max: usize,
    ) -> Engine<D> {
        let Outputs { outlet, jobs, elsewhere } = outputs;
        Engine {
            slots: Slots::new(decoder.parallel()),
            decoder,
            scheduler,
            outlet,
            jobs,
            queue_max,
            elsewhere,
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
            let wishes = self.wishes();
            if wishes.is_empty() {
                match inbox.wait()? {
                    Some(incoming) => self.receive(incoming)?,
                    None => return Ok(()),
                }
            } else {
                self.step(&wishes)?;
            }
        }
    }

    fn receive(&mut self, incoming: Incoming) -> io::Result<()> {
        match incoming {
            Incoming::Order { stream, order } => self.obey(stream, order),
            Incoming::Prepared { stream, prepared } => self.enqueue(stream, *prepared),
            Incoming::Embedded { stream, vector } => {
                if !self.elsewhere.contains(stream) {
                    return Ok(());
                }
                self.outlet.send(stream, &ChatReport::Embedded(vector))
            }
            Incoming::EmbeddedAll { stream, ended } => {
                if !self.elsewhere.remove(stream) {
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
            Message::Model(order) => self.prepare(stream, order),
            Message::Common(Order::Cancel) => {
                self.cancel(stream);
                Ok(())
            }
            Message::Common(Order::Credit(amount)) => {
                self.grant(stream, amount);
                Ok(())
            }
            Message::Common(Order::Ping) => {
                let streams = self.running.len() + self.queue.len() + self.elsewhere.len();
                let stats = WorkerStats { streams: streams as u32, windows: self.steps };
                self.outlet.report(stream, &Report::Stats(stats))
            }
        }
    }

    fn prepare(&mut self, stream: u32, order: ChatOrder) -> io::Result<()> {
        let job = Job { stream, order, received: Instant::now() };
        let is_full = self.queue.len() + self.elsewhere.len() >= self.queue_max;
        // Before it is sent: who takes it looks whether it is still there.
        self.elsewhere.insert(stream);
        let taken = if is_full { Err(TrySendError::Full(job)) } else { self.jobs.try_send(job) };
        match taken {
            Ok(()) => Ok(()),
            Err(_) => {
                self.elsewhere.remove(stream);
                self.refuse(stream, Refusal::Busy { retry_after_ms: RETRY_AFTER_MS })
            }
        }
    }

    fn enqueue(&mut self, stream: u32, prepared: Result<Prepared, Refusal>) -> io::Result<()> {
        if !self.elsewhere.remove(stream) {
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
        self.elsewhere.remove(stream);
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
            *credit = credit.saturating_add(amount);
        }
    }

    /// Lets those who wait have the slots that are free.
    fn fill_slots(&mut self) {
        while self.slots.has_free()
            && let Some((stream, prepared)) = self.queue.pop_front()
        {
            // There is one that is free.
            let Some(mut place) = self.slots.take(&prepared.prompt) else { return };
            if prepared.echo.is_scored() {
                // How likely a token is comes of computing it, so none is taken from the cache.
                place = Place { keep: 0, copy_from: None, ..place };
            }
            let kept = match place.copy_from {
                Some(donor) => self.decoder.copy(donor, place.slot, place.keep),
                None => self.decoder.truncate(place.slot, place.keep),
            };
            self.slots.extend(place.slot, &prepared.prompt[..kept]);
            self.running.push(Running::begin(stream, prepared, place, kept));
        }
    }

    /// The streams that want something computed, by their place among the running.
    fn wishes(&self) -> Vec<(usize, Wish)> {
        let running = self.running.iter().enumerate();
        running.filter_map(|(index, running)| Some((index, running.wish()?))).collect()
    }

    fn step(&mut self, wishes: &[(usize, Wish)]) -> io::Result<()> {
        let dealt: Vec<Wish> = wishes.iter().map(|(_, wish)| *wish).collect();
        let Step { answers, prompts } = self.scheduler.deal(&dealt);
        // An answer that ends with its pass leaves the running, so they are known by stream from here.
        let stream = |index: usize| self.running[wishes[index].0].stream;
        let answers: Vec<(u32, usize)> = answers.iter().map(|index| (stream(*index), 1)).collect();
        let prompts: Vec<(u32, usize)> =
            prompts.iter().map(|(index, share)| (stream(*index), *share)).collect();
        self.steps += 1;
        if let Some(took) = self.pass(&answers)? {
            self.scheduler.learn_answers(took);
        }
        if let Some(took) = self.pass(&prompts)? {
            self.scheduler.learn_prompts(prompts.iter().map(|(_, share)| share).sum(), took);
        }
        Ok(())
    }

    /// Computes so many tokens of each stream in one batch, and says what it gave. Returns the time
    /// that the computation took, if there was one and it succeeded.
    fn pass(&mut self, shares: &[(u32, usize)]) -> io::Result<Option<Duration>> {
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
            self.lose(&shares, &error)?;
            return Ok(None);
        }
        let took = started.elapsed();
        for (stream, said) in self.speak(&shares) {
            self.say(stream, said)?;
        }
        Ok(Some(took))
    }

    /// Moves the streams of a pass on; what those have to say whose turn it is.
    fn speak(&mut self, shares: &[(usize, usize)]) -> Vec<(u32, Result<Spoken, String>)> {
        let mut spoken = Vec::new();
        let mut begin = 0;
        for &(index, count) in shares {
            let running = &mut self.running[index];
            let logits = |at: usize| self.decoder.logits(begin + at);
            let echoed = running.echo(count, logits);
            let slot = running.slot;
            self.slots.extend(slot, running.computed(count));
            let said = echoed.and_then(|echoed| {
                let said = match running.may_speak() {
                    true => running.speak(logits(count - 1))?,
                    false => Spoken::default(),
                };
                Ok(Spoken { events: [echoed, said.events].concat(), end: said.end })
            });
            begin += count;
            let has_more = |said: &Spoken| !said.events.is_empty() || said.end.is_some();
            if running.may_speak() || said.as_ref().is_err() || said.as_ref().is_ok_and(has_more) {
                spoken.push((running.stream, said));
            }
        }
        spoken
    }

    fn say(&mut self, stream: u32, said: Result<Spoken, String>) -> io::Result<()> {
        let Spoken { events, end } = match said {
            Ok(spoken) => spoken,
            Err(detail) => {
                self.leave(stream);
                return self.fail(stream, &detail);
            }
        };
        let sent = events.len() as u32;
        for event in events {
            self.outlet.send(stream, &ChatReport::Event(event))?;
        }
        let Some(completion) = end else {
            if let Some(running) = self.running.iter_mut().find(|open| open.stream == stream) {
                running.credit = running.credit.saturating_sub(sent);
            }
            return Ok(());
        };
        self.leave(stream);
        self.outlet.send(stream, &ChatReport::Event(ChatEvent::Done(completion)))?;
        self.outlet.report(stream, &Report::Done)
    }

    /// The pass failed: its streams end, and what their slots hold is not to be trusted.
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
