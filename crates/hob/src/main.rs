//! The binary `hob`: arguments in, an exit code out.
//! `settings` resolves everything that a command needs to know, and `wire_up` builds the server from it.

mod app;
mod arguments;
mod audiobook;
mod benchmarks;
mod bounded_file;
mod build;
mod capability;
mod certificates;
mod chatting;
mod cli;
mod commands;
mod config;
mod convert;
mod descriptors;
mod eval_setup;
#[cfg(test)]
#[path = "../../hob-models/tests/sources/executable.rs"]
mod executable;
mod failure;
mod finding;
mod folders;
mod globals;
mod listen;
mod logging;
mod machine;
mod machine_args;
mod model_store;
mod playback;
mod port_owner;
mod printer;
mod programs;
mod published;
mod pulled;
mod recording;
mod reference;
mod reload;
mod remote;
mod running_server;
mod settings;
mod signals;
mod sink;
mod speaking;
mod stdin_text;
mod subtitles;
mod talking;
mod teams;
mod wire_up;
mod worker_args;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
