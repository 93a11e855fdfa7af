//! Measuring and rehearsing: a server that fails on purpose, and the test of a gateway against it.
//! What is measured is asked for over HTTP, as any client would: nothing here looks inside.

pub mod mock;
pub mod selftest;
