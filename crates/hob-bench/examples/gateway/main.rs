//! What `make bench-gateway` runs: the mock, the least that a gateway can be, and blocks of load.
//! Each in a process of its own, so that the time of one is not taken for another's.

mod floor;

use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use hob_bench::load::{self, Load, Target};
use hob_bench::mock::serve_quick;
use tokio::net::TcpListener;
use tokio::runtime;

#[derive(Debug, Parser)]
#[command(about)]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

/// What this process is.
#[derive(Debug, Subcommand)]
enum Role {
    /// The server behind every gateway; prints its address
    Mock(Listen),
    /// A relay that parses, rewrites the model's name, and passes the answer on; prints its address
    Floor {
        #[command(flatten)]
        listen: Listen,
        /// Where the mock listens
        #[arg(long)]
        upstream: SocketAddr,
    },
    /// One block of requests; prints what it came to as JSON
    Load(Block),
}

#[derive(Debug, Args)]
struct Listen {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[derive(Debug, Args)]
struct Block {
    /// HOST:PORT of who is asked
    #[arg(long)]
    address: String,
    #[arg(long)]
    mode: Mode,
    #[arg(long)]
    model: String,
    /// The API key to show
    #[arg(long)]
    key: Option<String>,
    #[arg(long, default_value_t = 1)]
    concurrency: usize,
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The process whose CPU time and memory are read, its children's included
    #[arg(long)]
    pid: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    Whole,
    Stream,
}

impl From<Mode> for load::Mode {
    fn from(mode: Mode) -> load::Mode {
        match mode {
            Mode::Whole => load::Mode::Whole,
            Mode::Stream => load::Mode::Stream,
        }
    }
}

fn main() -> Result<()> {
    // One thread each for what must not cost much; the floor has as many as any gateway in Rust.
    match Cli::parse().role {
        Role::Mock(listen) => block_on(&mut runtime::Builder::new_current_thread(), mock(listen)),
        Role::Floor { listen, upstream } => {
            block_on(&mut runtime::Builder::new_multi_thread(), relay(listen, upstream))
        }
        Role::Load(block) => block_on(&mut runtime::Builder::new_current_thread(), ask(block)),
    }
}

fn block_on(runtime: &mut runtime::Builder, work: impl Future<Output = Result<()>>) -> Result<()> {
    runtime.enable_all().build()?.block_on(work)
}

async fn mock(listen: Listen) -> Result<()> {
    let listener = bind(&listen).await?;
    Ok(serve_quick(listener).await?)
}

async fn relay(listen: Listen, upstream: SocketAddr) -> Result<()> {
    let listener = bind(&listen).await?;
    Ok(floor::serve(listener, upstream).await?)
}

async fn bind(Listen { listen }: &Listen) -> Result<TcpListener> {
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("listening on {listen}"))?;
    say(&listener.local_addr()?.to_string())?;
    Ok(listener)
}

async fn ask(block: Block) -> Result<()> {
    let Block { address, model, key, mode, .. } = block;
    let load = Load {
        target: Target { address, model, key, mode: mode.into() },
        concurrency: block.concurrency,
        lasting: Duration::try_from_secs_f64(block.seconds)?,
        pid: block.pid,
    };
    say(&serde_json::to_string(&load::run(&load).await?)?)
}

fn say(line: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}
