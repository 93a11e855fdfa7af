//! Benchmarks of servers over HTTP, as any client would ask them: experiments, records, comparisons, plans, and a page.
//! Also servers for tests: one with known times, one that fails on purpose, and the rehearsal of a gateway with it.

mod answer;
pub mod ask;
pub mod calibrate;
pub mod chat;
pub mod cold;
pub mod compare;
mod cores;
pub mod drive;
pub mod experiment;
pub mod families;
mod head;
pub mod host;
pub mod import;
pub mod launch;
pub mod load;
pub mod max_context;
pub mod mock;
pub mod plan;
mod question;
pub mod record;
pub mod runs;
pub mod selftest;
pub mod server;
mod session;
pub mod site;
mod socket;
pub mod speech;
pub mod sweep;
pub mod target;
pub mod terms;
mod thinking_switch;
pub mod timeline;
pub mod workbench;
pub mod written;
