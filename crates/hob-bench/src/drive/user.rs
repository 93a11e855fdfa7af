//! One connection and the thread that reads it: takes the next job, waits until it is due, sends, and stamps.
//! The stamp is the kernel's of when bytes came, or comes right after the read. What is looked at afterwards is only where
//! the answer ends.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::endpoint::Line;
use super::recording::Recording;
use super::{Drive, End, Exchange, is_pause};
use crate::answer::Answer;
use crate::head;

/// A small one would cut what is there into several reads.
const READ_BYTES: usize = 64 << 10;
/// Of an answer's bytes, so many at least come with a read, when room for stamps is made.
const BYTES_PER_READ: usize = 64;
/// A request that is due later than this is waited for in steps, so that a stop is seen.
const NAP: Duration = Duration::from_millis(100);
/// Of a request, what is written last: so much usually goes out at once.
const LAST_BYTES: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct User<'a> {
    drive: &'a Drive,
    stop: &'a AtomicBool,
    /// None where it broke, or never stood.
    line: Option<Line>,
    /// What the connection took that is used for the first time.
    connect: Option<Duration>,
    buffer: Vec<u8>,
}

/// What one thread did.
#[derive(Debug, Default)]
pub(super) struct Worked {
    pub(super) exchanges: Vec<Exchange>,
    pub(super) cpu: Duration,
}

impl<'a> User<'a> {
    pub(super) fn connect(drive: &'a Drive, stop: &'a AtomicBool) -> User<'a> {
        let mut user = User { drive, stop, line: None, connect: None, buffer: vec![0; READ_BYTES] };
        // Whoever is not there is found out by the first request.
        let _refused = user.reconnect();
        user
    }

    fn reconnect(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        self.line = None;
        self.line = Some(self.drive.endpoint.connect(self.drive.patience.connect)?);
        self.connect = Some(begun.elapsed());
        Ok(())
    }

    /// Jobs until there are none.
    pub(super) fn work(
        &mut self,
        start: Instant,
        schedule: Option<&[Duration]>,
        next: &AtomicUsize,
    ) -> Worked {
        let mut exchanges = Vec::new();
        let before = thread_cpu();
        while !self.stop.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= self.drive.jobs.len() {
                break;
            }
            let due = schedule.map(|schedule| schedule[job]);
            exchanges.push(self.exchange(job, start, due));
        }
        Worked { exchanges, cpu: thread_cpu().saturating_sub(before) }
    }

    fn exchange(&mut self, job: usize, start: Instant, due: Option<Duration>) -> Exchange {
        let room = self.drive.answer_bytes;
        let mut recording = Recording::with_room(room, room / BYTES_PER_READ);
        if let Some(due) = due {
            self.wait(start + due);
        }
        let reached = if self.line.is_some() { Ok(()) } else { self.reconnect() };
        let connect = self.connect.take();
        // Who decides when to ask does so when there is a connection.
        let sched = due.unwrap_or_else(|| start.elapsed());
        let mut exchange = Exchange {
            job,
            sched,
            connect,
            sent: sched,
            recording: Recording::default(),
            end: End::Whole,
        };
        exchange.end = match reached {
            Ok(()) => self.ask(job, start, &mut exchange.sent, &mut recording),
            Err(error) => End::Unreachable { cause: error.to_string() },
        };
        if exchange.end != End::Whole || hangs_up(&recording) {
            self.line = None;
        }
        exchange.recording = recording;
        exchange
    }

    fn wait(&self, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stop.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(left.min(NAP));
        }
    }

    fn ask(
        &mut self,
        job: usize,
        start: Instant,
        sent: &mut Duration,
        recording: &mut Recording,
    ) -> End {
        let Some(line) = &mut self.line else { return End::CutOff };
        let job = &self.drive.jobs[job];
        let (ahead, last) = job.split_at(job.len().saturating_sub(LAST_BYTES));
        let ahead = line.write_all(ahead).and_then(|()| line.flush());
        // Not behind the last write: a server that it wakes may take this thread's core, and would seem the faster for it.
        *sent = start.elapsed();
        let written = ahead.and_then(|()| line.write_all(last)).and_then(|()| line.flush());
        if written.is_err() {
            return End::CutOff;
        }
        let patience = self.drive.patience;
        let (mut answer, mut unread) = (Answer::expected(), BytesMut::new());
        let mut heard = *sent;
        loop {
            let read = line.read(&mut self.buffer);
            let returned = start.elapsed();
            // What came later is not earlier, whatever a clock says.
            let at = if read.is_ok() {
                returned.saturating_sub(line.lay()).max(heard)
            } else {
                returned
            };
            match read {
                Ok(0) if answer.ends_here() => return End::Whole,
                Ok(0) => return End::CutOff,
                Ok(bytes) => {
                    heard = at;
                    recording.push(at, &self.buffer[..bytes]);
                    unread.extend_from_slice(&self.buffer[..bytes]);
                    if answer.take(&mut unread, |_| ()).is_err() {
                        return End::Unreadable;
                    }
                    if answer.is_over() {
                        return End::Whole;
                    }
                }
                Err(error) if is_pause(&error) => {}
                Err(_) => return End::CutOff,
            }
            if self.stop.load(Ordering::Relaxed) {
                return End::Stopped;
            }
            if at.saturating_sub(heard) > patience.silence {
                return End::Silent;
            }
            if at.saturating_sub(*sent) > patience.total {
                return End::TooSlow;
            }
        }
    }
}

/// Of the thread that asks.
fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The server says that this connection has had its last answer.
fn hangs_up(recording: &Recording) -> bool {
    let Some(bytes) = head::length(&recording.bytes) else { return true };
    let head = &recording.bytes[..bytes];
    let says = |word: &[u8]| {
        head::field(head, "connection").is_some_and(|value| value.eq_ignore_ascii_case(word))
    };
    let is_old = head.starts_with(b"HTTP/1.0") && !says(b"keep-alive");
    let is_endless =
        head::content_length(head).is_none() && head::field(head, "transfer-encoding").is_none();
    says(b"close") || is_old || is_endless
}
