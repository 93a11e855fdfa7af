//! One connection and its thread: it takes the next job, waits until it is due, sends it, and time-stamps the answer.
//! A time stamp is the kernel's, or is taken right after the read. Only the end of the answer is parsed meanwhile.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::endpoint::BenchConnection;
use super::recording::Recording;
use super::{Drive, End, Exchange};
use crate::head;
use crate::http_response::HttpResponse;
use crate::socket::is_pause;

/// Size of the read buffer. A small one would split one arrival into several reads.
const READ_BYTES: usize = 64 << 10;
/// Assumed least number of bytes of a read, to allocate memory for the time stamps.
const BYTES_PER_READ: usize = 64;
/// Longest wait of a connection for its next request. A server may close one that waits longer: a hob does after 10 s.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// Longest single sleep before a due time, so a stop is noticed.
const NAP: Duration = Duration::from_millis(100);
/// Size of a request's last write, small enough to be sent at once.
const LAST_BYTES: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct User<'a> {
    drive: &'a Drive,
    stop: &'a AtomicBool,
    /// None if the connection broke or was never opened.
    connection: Option<BenchConnection>,
    /// Time to open the connection, until its first request.
    connect: Option<Duration>,
    buffer: Vec<u8>,
}

/// The results of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadResult {
    pub(super) exchanges: Vec<Exchange>,
    pub(super) cpu: Duration,
}

impl<'a> User<'a> {
    pub(super) fn connect(drive: &'a Drive, stop: &'a AtomicBool) -> User<'a> {
        let mut user =
            User { drive, stop, connection: None, connect: None, buffer: vec![0; READ_BYTES] };
        // The first request reports a failed connection.
        let _refused = user.reconnect();
        user
    }

    fn reconnect(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        self.connection = None;
        self.connection = Some(self.drive.endpoint.connect(self.drive.limits.connect)?);
        self.connect = Some(begun.elapsed());
        Ok(())
    }

    /// Works until no job is left.
    pub(super) fn work(
        &mut self,
        start: Instant,
        schedule: Option<&[Duration]>,
        next: &AtomicUsize,
    ) -> ThreadResult {
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
        ThreadResult { exchanges, cpu: thread_cpu().saturating_sub(before) }
    }

    fn exchange(&mut self, job: usize, start: Instant, due: Option<Duration>) -> Exchange {
        let room = self.drive.answer_bytes;
        let mut recording = Recording::with_room(room, room / BYTES_PER_READ);
        if let Some(due) = due {
            let fresh_from = start + due.saturating_sub(IDLE_MAX);
            if Instant::now() < fresh_from {
                self.wait(fresh_from);
                // If it is refused, the request tries again and reports it.
                let _refused = self.reconnect();
            }
            self.wait(start + due);
        }
        let reached = if self.connection.is_some() { Ok(()) } else { self.reconnect() };
        let connect = self.connect.take();
        // In a closed loop a request is due when there is a connection.
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
            Ok(()) => self.send_job(job, start, &mut exchange.sent, &mut recording),
            Err(error) => End::Unreachable { cause: error.to_string() },
        };
        if exchange.end != End::Whole || hangs_up(&recording) {
            self.connection = None;
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

    fn send_job(
        &mut self,
        job: usize,
        start: Instant,
        sent: &mut Duration,
        recording: &mut Recording,
    ) -> End {
        let Some(connection) = &mut self.connection else { return End::CutOff };
        let job = &self.drive.jobs[job];
        let (ahead, last) = job.split_at(job.len().saturating_sub(LAST_BYTES));
        let ahead = connection.write_all(ahead).and_then(|()| connection.flush());
        // Before the last write: the server that it wakes may take this thread's core, and would then seem faster.
        *sent = start.elapsed();
        let written =
            ahead.and_then(|()| connection.write_all(last)).and_then(|()| connection.flush());
        if written.is_err() {
            return End::CutOff;
        }
        let limits = self.drive.limits;
        let (mut answer, mut unread) = (HttpResponse::expected(), BytesMut::new());
        let mut last_bytes_at = *sent;
        loop {
            let read = connection.read(&mut self.buffer);
            let returned = start.elapsed();
            // Times must not decrease, even if a clock was set.
            let at = if read.is_ok() {
                returned.saturating_sub(connection.read_delay()).max(last_bytes_at)
            } else {
                returned
            };
            match read {
                Ok(0) if answer.ends_with_connection() => return End::Whole,
                Ok(0) => return End::CutOff,
                Ok(bytes) => {
                    last_bytes_at = at;
                    recording.push(at, &self.buffer[..bytes]);
                    unread.extend_from_slice(&self.buffer[..bytes]);
                    if answer.push(&mut unread, |_| ()).is_err() {
                        return End::Unreadable;
                    }
                    if answer.is_over() {
                        return End::Whole;
                    }
                    if recording.bytes.len() > limits.bytes_max {
                        return End::TooLong;
                    }
                }
                Err(error) if is_pause(&error) => {}
                Err(_) => return End::CutOff,
            }
            if self.stop.load(Ordering::Relaxed) {
                return End::Stopped;
            }
            if at.saturating_sub(last_bytes_at) > limits.silence {
                return End::Silent;
            }
            if at.saturating_sub(*sent) > limits.total {
                return End::TooSlow;
            }
        }
    }
}

/// Processor time of the current thread.
pub(crate) fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Whether the server closes the connection after this answer.
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

#[cfg(test)]
mod tests {
    use super::super::{Arrivals, Endpoint, RequestLimits};
    use super::*;
    use crate::canned_server::CannedServer;

    #[test]
    fn a_request_that_is_due_late_gets_a_connection_of_its_own() {
        // This server closes each connection after its answer, and does not say so.
        let server = CannedServer::start(|_| (200, String::new()));
        let endpoint = Endpoint::parse(&server.url()).expect("an address");
        let job = endpoint.post("/", "", "");
        let arrivals = Arrivals::Constant { per_second: 0.4, connections: 1 };
        let jobs = vec![job.clone(), job];
        let limits = RequestLimits::default();
        let drive = Drive { endpoint, jobs, arrivals, seed: 7, limits, answer_bytes: 0 };
        let driven = drive.run(&AtomicBool::new(false)).expect("a drive");
        let ends: Vec<End> = driven.exchanges.into_iter().map(|exchange| exchange.end).collect();
        assert_eq!(ends, [End::Whole, End::Whole]);
        assert_eq!(server.end().len(), 2);
    }
}
