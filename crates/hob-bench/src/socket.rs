//! A socket that reports how long before the end of a read its bytes had arrived.
//! Between programs of one machine the kernel knows this. A waiting thread wakes later, on a busy machine much later.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

/// Both clocks may drift by this much between two reads. With more, the system clock was set.
const SLEW_MAX: Duration = Duration::from_millis(1);

/// A connection, and the delay of its last read.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    is_stamped: bool,
    /// The steady clock and the system clock at the last read.
    clocks: (Instant, SystemTime),
    read_delay: Duration,
}

impl Socket {
    /// Uses the kernel's time stamps only within one machine. Packets from a network may arrive out of order; their stamp is then
    /// earlier than the time at which they can be read.
    pub(crate) fn new(stream: TcpStream) -> Socket {
        let both = stream.local_addr().and_then(|here| Ok((here.ip(), stream.peer_addr()?.ip())));
        let is_stamped = both.is_ok_and(|(here, there)| here == there) && kernel::stamp(&stream);
        let clocks = (Instant::now(), SystemTime::now());
        Socket { stream, is_stamped, clocks, read_delay: Duration::ZERO }
    }

    /// The time from the arrival of the last read's last bytes to its return; zero if the kernel does not report it.
    pub(crate) fn read_delay(&self) -> Duration {
        self.read_delay
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn since(&mut self, came: SystemTime) -> Duration {
        let now = (Instant::now(), SystemTime::now());
        let (before, then) = std::mem::replace(&mut self.clocks, now);
        let (steady, system) = (now.0 - before, now.1.duration_since(then).unwrap_or_default());
        let was_set = steady.abs_diff(system) > SLEW_MAX;
        if was_set { Duration::ZERO } else { now.1.duration_since(came).unwrap_or_default() }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_stamped {
            return self.stream.read(buffer);
        }
        let (bytes, came) = kernel::read(&self.stream, buffer)?;
        self.read_delay = came.map_or(Duration::ZERO, |came| self.since(came));
        Ok(bytes)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Whether a read failed only because no byte has arrived yet.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io::{self, IoSliceMut};
    use std::net::TcpStream;
    use std::os::fd::AsRawFd as _;
    use std::time::{Duration, SystemTime};

    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, cmsg_space, recvmsg, setsockopt, sockopt,
    };
    use nix::sys::time::TimeSpec;

    /// Buffer for one kernel message, aligned like a `cmsghdr`.
    #[repr(align(16))]
    struct Space([u8; cmsg_space::<TimeSpec>()]);

    /// Turns on time stamps for received bytes (`SO_TIMESTAMPNS`, socket(7)). False: the kernel cannot.
    pub(super) fn stamp(stream: &TcpStream) -> bool {
        setsockopt(stream, sockopt::ReceiveTimestampns, &true).is_ok()
    }

    /// Reads what has arrived. Returns its length, and when its last bytes arrived.
    pub(super) fn read(
        stream: &TcpStream,
        buffer: &mut [u8],
    ) -> io::Result<(usize, Option<SystemTime>)> {
        let mut space = Space([0; cmsg_space::<TimeSpec>()]);
        let mut places = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::empty();
        let got = recvmsg::<()>(stream.as_raw_fd(), &mut places, Some(&mut space.0), flags)?;
        let stamp = |message| match message {
            ControlMessageOwned::ScmTimestampns(time) => {
                SystemTime::UNIX_EPOCH.checked_add(Duration::from(time))
            }
            _ => None,
        };
        let came = got.cmsgs().ok().and_then(|mut messages| messages.find_map(stamp));
        Ok((got.bytes, came))
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io::{self, Read as _};
    use std::net::TcpStream;
    use std::time::SystemTime;

    pub(super) fn stamp(_: &TcpStream) -> bool {
        false
    }

    pub(super) fn read(
        mut stream: &TcpStream,
        buffer: &mut [u8],
    ) -> io::Result<(usize, Option<SystemTime>)> {
        Ok((stream.read(buffer)?, None))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let there = TcpStream::connect(listener.local_addr().expect("an address")).expect("there");
        let here = listener.accept().expect("here").0;
        (there, Socket::new(here))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_delay_of_a_late_read_is_reported() {
        let (mut there, mut here) = pair();
        let mut buffer = [0; 16];
        // The kernel starts to add time stamps shortly after the option is set, not at once.
        let begun = Instant::now();
        while here.read_delay() < Duration::from_millis(50)
            && begun.elapsed() < Duration::from_secs(60)
        {
            there.write_all(b"late").expect("written");
            std::thread::sleep(Duration::from_millis(60));
            assert_eq!(here.read(&mut buffer).expect("read"), 4);
        }
        let read_delay = here.read_delay();
        assert!(
            read_delay >= Duration::from_millis(50) && read_delay <= begun.elapsed(),
            "{read_delay:?}"
        );
    }

    #[test]
    fn a_read_without_bytes_is_a_pause_and_a_lost_connection_is_not() {
        use io::ErrorKind::{ConnectionReset, Interrupted, TimedOut, WouldBlock};
        assert!([Interrupted, TimedOut, WouldBlock].iter().all(|kind| is_pause(&(*kind).into())));
        assert!(!is_pause(&ConnectionReset.into()));
    }

    #[test]
    fn a_clock_that_was_set_gives_no_delay() {
        let (_there, mut here) = pair();
        here.clocks.1 -= Duration::from_secs(3600);
        assert_eq!(here.since(SystemTime::now() - Duration::from_millis(20)), Duration::ZERO);
        let read_delay = here.since(SystemTime::now() - Duration::from_millis(20));
        assert!(read_delay >= Duration::from_millis(20), "{read_delay:?}");
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(here.since(later), Duration::ZERO, "an arrival cannot be in the future");
    }
}
