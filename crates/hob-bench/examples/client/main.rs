//! What `make bench-client` runs: the mock in one process, the client in another, and what it got wrong.
//! Two processes, so that the time of one is not taken for the other's.

mod gates;
mod process;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use hob_bench::ask::ask;
use hob_bench::client_check::{CheckLoad, ClientCheck, check_drive, compare};
use hob_bench::drive::Endpoint;
use hob_bench::mock::{MockServer, Script, Truth};
use hob_bench::process::ProcessUsage;
use serde_json::json;

/// For the mock to say what it did.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Parser)]
#[command(about)]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The server whose times are known; prints its address, and ends with its input
    Mock {
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// NAME=VALUE, parted by commas
        #[arg(long, default_value = "")]
        script: String,
    },
    /// One measurement; prints what it came to as JSON
    Measure(Measure),
    /// Everything that the client has to hold, row by row; fails where one is missed
    Gates {
        /// Repetitions, of which the median counts
        #[arg(long, default_value_t = 3)]
        n: usize,
    },
}

#[derive(Debug, Args)]
struct Measure {
    /// The mock's address, as it printed it
    #[arg(long)]
    url: String,
    #[arg(long, default_value_t = 64)]
    users: usize,
    /// Requests of each user
    #[arg(long, default_value_t = 4)]
    requests: usize,
    #[arg(long, default_value_t = 64)]
    tokens: u32,
    /// Time to the first token of the mock server's script
    #[arg(long, default_value_t = 100.0)]
    ttft_ms: f64,
    #[arg(long, default_value_t = 20.0)]
    itl_ms: f64,
}

fn main() -> Result<()> {
    match Cli::parse().role {
        Role::Mock { listen, script } => {
            let mock = MockServer::start(listen, Script::default().with(&script)?)?;
            let mut stdout = io::stdout();
            writeln!(stdout, "{}", mock.url())?;
            stdout.flush()?;
            io::read_to_string(io::stdin())?;
            Ok(())
        }
        Role::Measure(measure) => measured(&measure),
        Role::Gates { n } => gates::run(n),
    }
}

fn measured(measure: &Measure) -> Result<()> {
    let Measure { users, requests, ttft_ms, itl_ms, tokens, .. } = *measure;
    let endpoint = Endpoint::parse(&measure.url)?;
    ask(&endpoint, "/reset", None, None, ANSWER_TIME_MAX)?;
    let pace =
        CheckLoad { users, requests_per_user: requests, ttft_ms, itl_ms, tokens, stall_ms: 0.0 };
    let driven = check_drive(pace, &endpoint).run(&AtomicBool::new(false))?;
    let told = ask(&endpoint, "/truth", None, None, ANSWER_TIME_MAX)?.body;
    let told: serde_json::Value = serde_json::from_slice(&told)?;
    let truths: Vec<Truth> = serde_json::from_value(told["requests"].clone())?;
    writeln!(io::stdout(), "{}", errors_json(&compare(pace, &driven, &truths)?))?;
    Ok(())
}

fn errors_json(client_check: &ClientCheck) -> serde_json::Value {
    let part = |sample: &hob_core::statistics::Sample| sample.percentile(0.99).map(|at| at.value);
    let usage = ProcessUsage::read(std::process::id());
    json!({
        "requests": client_check.requests,
        "ttft_err_mean_ms": client_check.ttft_err_ms.mean(),
        "ttft_err_p99_ms": part(&client_check.ttft_err_ms).or(client_check.ttft_err_ms.max()),
        "tpot_err_mean_ms": client_check.tpot_err_ms.mean(),
        "gap_err_p99_ms": part(&client_check.gap_err_ms),
        "gap_p99_ms": part(&client_check.gaps_ms),
        "gap_max_ms": client_check.gaps_ms.max(),
        "stalls": client_check.stalls,
        "chunks_per_s": client_check.chunks_per_s,
        "chunks_per_s_true": client_check.chunks_per_s_true,
        "cpu_s": client_check.cpu.as_secs_f64(),
        "cpu_share": client_check.cpu_share,
        "dispatch_p95_ms": client_check.dispatch_p95_ms,
        "peak_rss_mib": usage.ok().map(|usage| usage.peak_bytes as f64 / 1_048_576.0),
        "limits": client_check.exceeded_limits().iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
