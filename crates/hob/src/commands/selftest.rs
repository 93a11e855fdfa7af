//! `hob selftest gateway`: tests hob against a server that fails in every known way.
//! It reports what a client receives for each fault. With `--alias` the alias' own targets are the fallbacks.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use hob_bench::mock::{MockServer, Script};
use hob_bench::selftest::{self, CaseResult};
use hob_core::{Registry, Resolve, UpstreamResolver, nearest, one_line, task};
use hob_server::{ReloadableState, ServerOptions};
use hob_upstream::{
    AliasOptions, AttemptTimeouts, Gateway, GatewayOptions, OnInterruption, TargetOptions,
    UpstreamKind, UpstreamOptions, WhileLoading,
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};

use crate::app::{App, run_until_stopped};
use crate::commands::serve::Models;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Column, rows};
use crate::settings::gateway::gateway as gateway_settings;
use crate::wire_up;

/// Test how hob handles failing servers
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SelftestArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Test fallbacks: a server that fails in every way, then a good one
    Gateway {
        /// Use the targets of this alias as the good server; they receive real requests
        #[arg(long, value_name = "NAME")]
        alias: Option<String>,
        /// Print the results as JSON
        #[arg(long)]
        json: bool,
    },
}

const AFTER_HELP: &str = "\
Examples:
  hob selftest gateway                every fault, alone and with a good target behind it
  hob selftest gateway --alias fast   the same for the targets of `fast`, a few words each";

/// Short, so that tests of silence do not take minutes. Long enough for the good answers of a machine that does much else.
const TIMEOUTS: AttemptTimeouts = AttemptTimeouts {
    connect: Some(Duration::from_secs(1)),
    first_token: Some(Duration::from_secs(1)),
    idle: Some(Duration::from_secs(1)),
    total: Some(Duration::from_secs(20)),
    load: None,
};
/// Real targets may be slow.
const TIMEOUTS_REAL: AttemptTimeouts =
    AttemptTimeouts { first_token: None, idle: None, total: None, ..TIMEOUTS };

const MOCK: &str = "selftest";
const UNREACHABLE: &str = "selftest-unreachable";

pub(crate) fn run(args: &SelftestArgs, app: &App<'_>) -> CliResult<Exit> {
    let What::Gateway { alias, json } = &args.what;
    let results = run_until_stopped(test(app, alias.as_deref()))?;
    let failed = results.iter().filter(|result| !result.passed).count();
    let rows: Vec<Value> = results.iter().map(case_json).collect();
    app.printer.report(*json, &rows, || result_table(&results))?;
    if failed > 0 {
        let all = results.len();
        return Err(Failure::server(format!("{failed} of {all} cases failed"))
            .hint("each row shows what was expected; please report the failed cases"));
    }
    app.printer.note(format_args!("all {} cases passed", results.len()));
    Ok(Exit::Done)
}

async fn test(app: &App<'_>, alias: Option<&str>) -> CliResult<Vec<CaseResult>> {
    let models = alias.map(|_| Models::start(app)).transpose()?;
    let results = test_with(app, alias, models.as_ref()).await;
    if let Some(models) = models {
        models.shutdown().await;
    }
    results
}

async fn test_with(
    app: &App<'_>,
    alias: Option<&str>,
    models: Option<&Models<'_>>,
) -> CliResult<Vec<CaseResult>> {
    let no_port = |error: io::Error| Failure::io("cannot open a port", &error);
    let mock = MockServer::start_local(Script::default()).map_err(no_port)?;
    let (_closed, unreachable) = closed_port().map_err(no_port)?;
    let options = options(app, alias, &mock.url(), &format!("http://{unreachable}"))?;
    let locals = models.map(|models| models.locals(&app.written)).unwrap_or_default();
    let gateway = Gateway::new(options, &locals, None);
    let gateway = Arc::new(gateway.map_err(|error| wire_up::placed(&app.written, &error))?);
    if let (Some(alias), Some(models)) = (alias, models) {
        models.make_ready(&targets(&gateway, alias)?, app).await;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(no_port)?;
    let here = listener.local_addr().map_err(no_port)?;
    let mut registry = Registry::default();
    gateway.add_aliases(&mut registry);
    registry.set_upstreams(Arc::clone(&gateway) as Arc<dyn UpstreamResolver>);
    let never = std::future::pending();
    let serving = hob_server::serve(
        listener,
        ReloadableState::from(registry),
        ServerOptions::default(),
        never,
    );
    let base = format!("http://{here}");
    let started = Instant::now();
    let on_result = |result: &CaseResult| {
        if !result.passed {
            let CaseResult { fault, case, .. } = result;
            let after = started.elapsed().as_secs();
            app.printer.note(format_args!("{fault} ({case}) failed after {after} s"));
        }
    };
    let backed = if alias.is_some() { selftest::Backing::Real } else { selftest::Backing::Mock };
    tokio::select! {
        served = serving => Err(match served {
            Err(error) => Failure::io("the server stopped", &error),
            Ok(()) => Failure::internal("the server stopped"),
        }),
        results = selftest::run(&base, &mock, backed, on_result) => {
            results.map_err(Failure::server)
        }
    }
}

/// The targets of the alias, those of nested aliases included.
fn targets(gateway: &Gateway, alias: &str) -> CliResult<Vec<String>> {
    let chats = Resolve::<task::Chat>::resolve(gateway, alias).is_some();
    let route = UpstreamResolver::route(gateway, alias).filter(|_| chats).ok_or_else(|| {
        Failure::usage(format!("alias '{alias}' does not lead to chat models"))
            .hint("only aliases of chat models can be tested")
    })?;
    Ok(route.targets.into_iter().map(|target| target.name).collect())
}

/// A port where nothing listens. While the socket exists, the system gives the port to no other program.
fn closed_port() -> io::Result<(TcpSocket, SocketAddr)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

/// The mock server's aliases. If the user named an alias, its targets are the fallbacks.
fn options(
    app: &App<'_>,
    alias: Option<&str>,
    mock: &str,
    unreachable: &str,
) -> CliResult<GatewayOptions> {
    let mut options = match alias {
        Some(_) => gateway_settings(&app.written, &app.environment)?,
        None => GatewayOptions::default(),
    };
    let own = alias.map(|name| attempts_of(&options, name)).transpose()?;
    options.upstreams.push(upstream(MOCK, UpstreamKind::OpenAi, mock));
    options.upstreams.push(upstream(UNREACHABLE, UpstreamKind::OpenAi, unreachable));
    for tested in selftest::aliases() {
        let (server, on_interruption) = match (tested.is_unreachable, tested.continues) {
            (true, _) => (UNREACHABLE, OnInterruption::Error),
            // The mock server as a kind that can continue answers. Each alias has its own upstream, so its own retry budget.
            (false, true) => (tested.name.as_str(), OnInterruption::Continue),
            (false, false) => (MOCK, OnInterruption::Error),
        };
        if tested.continues {
            options.upstreams.push(upstream(server, UpstreamKind::LlamaServer, mock));
        }
        let faulty = TargetOptions::plain(&format!("{server}/{}", tested.model));
        let good = alias.map_or_else(|| format!("{MOCK}/behind~fault=fine"), str::to_owned);
        let behind = tested.is_backed.then(|| TargetOptions::plain(&good));
        let timeouts = if alias.is_some() { TIMEOUTS_REAL } else { TIMEOUTS };
        let plain = AliasOptions::plain(&tested.name);
        options.aliases.push(AliasOptions {
            targets: [faulty].into_iter().chain(behind).collect(),
            timeouts: AttemptTimeouts { total: timeouts.total, ..AttemptTimeouts::default() },
            queue_timeout: Duration::ZERO,
            on_interruption,
            // As many attempts as the user's alias has, after two for the faulty target.
            attempts_max: own.map_or(plain.attempts_max, |attempts| attempts + 2),
            while_loading: if own.is_some() { WhileLoading::Wait } else { WhileLoading::Next },
            ..plain
        });
    }
    Ok(options)
}

/// The number of attempts of the user's alias.
fn attempts_of(options: &GatewayOptions, name: &str) -> CliResult<u32> {
    let alias = options.aliases.iter().find(|known| known.name == name);
    alias.map(|alias| alias.attempts_max).ok_or_else(|| {
        let near = nearest(name, options.aliases.iter().map(|known| known.name.as_str()), 3);
        let failure = Failure::usage(format!("there is no alias '{name}'"));
        match &near[..] {
            [] => failure.hint("add an [alias.NAME] table to hob.toml"),
            near => failure.hint(format!("did you mean {}?", near.join(", "))),
        }
    })
}

fn upstream(name: &str, kind: UpstreamKind, url: &str) -> UpstreamOptions {
    UpstreamOptions { timeouts: TIMEOUTS, ..UpstreamOptions::plain(name, kind, url) }
}

fn case_json(result: &CaseResult) -> Value {
    let CaseResult { fault, case, expected, received, passed, requests, took } = result;
    json!({
        "fault": fault, "case": case, "expected": expected, "received": received,
        "passed": passed, "requests": requests, "took_ms": took.as_millis() as u64,
    })
}

fn result_table(results: &[CaseResult]) -> String {
    let columns: &[Column<'_, CaseResult>] = &[
        ("fault", &|result| result.fault.to_owned()),
        ("request", &|result| result.case.to_owned()),
        ("", &|result| match result.passed {
            true => "ok".to_owned(),
            false => format!("failed: expected {}", result.expected),
        }),
        ("the client receives", &|result| one_line(&result.received)),
        ("took", &|result| format!("{} ms", result.took.as_millis())),
    ];
    rows(columns, results).trim_fmt()
}
