//! Benchmarks servers over HTTP: experiments, records, comparisons, plans, and a results page.
//! It also has a scripted mock server, and the self-test of a gateway against it.

pub mod ask;
#[cfg(test)]
mod canned_server;
pub mod chat;
pub mod client_check;
pub mod cold;
pub mod compare;
pub mod display;
pub mod drive;
pub mod eval;
pub mod experiment;
pub mod families;
mod head;
pub mod host;
mod http_response;
pub mod import;
pub mod launch;
pub mod listening;
pub mod max_context;
pub mod mock;
pub mod plan;
pub mod process;
mod question;
mod read_answer;
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
pub mod transcription;
pub mod voice;
mod wav;
pub mod workbench;
