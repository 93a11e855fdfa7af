//! What `make bench-gateway` runs: the mock server, a minimal gateway, and blocks of load.
//! Each runs in its own process, so their processor times are separate.

mod floor;
mod load;

use std::io::{self, Write};
use std::net::SocketAddr;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use hob_bench::mock::{MockServer, Script};
use load::Load;
use tokio::net::TcpListener;
use tokio::runtime;

#[derive(Debug, Parser)]
#[command(about)]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The mock server behind every gateway; prints its address
    Mock(Listen),
    /// A relay that parses, rewrites the model's name, and passes the answer on; prints its address
    Floor {
        #[command(flatten)]
        listen: Listen,
        /// Where the mock listens
        #[arg(long)]
        upstream: SocketAddr,
    },
    /// One block of requests; prints the result as JSON
    Load(Load),
}

#[derive(Debug, Args)]
struct Listen {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

fn main() -> Result<()> {
    match Cli::parse().role {
        Role::Mock(listen) => {
            let mock = MockServer::start(listen.listen, Script::default())?;
            say(&mock.address.to_string())?;
            // The benchmark ends this process.
            loop {
                std::thread::park();
            }
        }
        Role::Floor { listen, upstream } => {
            let mut runtime = runtime::Builder::new_multi_thread();
            runtime.enable_all().build()?.block_on(relay(listen, upstream))
        }
        Role::Load(load) => say(&serde_json::to_string(&load::run(&load)?)?),
    }
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

fn say(line: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}
