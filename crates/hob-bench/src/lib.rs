//! Measuring and rehearsing: a server that fails on purpose, the test of a gateway against it, and a load
//! that costs little. What is measured is asked for over HTTP, as any client would: nothing here looks inside.

mod answer;
pub mod ask;
pub mod calibrate;
mod cores;
pub mod drive;
pub mod families;
mod head;
pub mod host;
pub mod import;
pub mod launch;
mod lever;
pub mod llm;
pub mod load;
pub mod mock;
pub mod record;
pub mod runs;
pub mod selftest;
pub mod server;
pub mod site;
pub mod speech;
pub mod stream;
pub mod target;
pub mod terms;
pub mod timeline;
pub mod tts;
pub mod workbench;
pub mod written;
