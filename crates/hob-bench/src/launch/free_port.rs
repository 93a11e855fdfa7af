//! A port for a server that must know it before it starts, in tests.
//! The system gives the ports from 32768 (Linux) or 49152 (macOS) on to all programs that ask for any, also while a test runs.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};

const ATTEMPTS_MAX: usize = 1_000;

pub(crate) fn free_port() -> u16 {
    // `RandomState` is the only source of chance in the standard library.
    let drawn = |attempt| 20_000 + (RandomState::new().hash_one(attempt) % 12_000) as u16;
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (0..ATTEMPTS_MAX).map(drawn).find(is_free).expect("a free port")
}
