//! `hob upstreams`: shows the state of the other servers of the configuration.
//! It asks the running hob, which knows their latest answers. Without one it asks each server for its models.

use clap::Args;
use hob_core::UpstreamResolver;
use hob_wire::{UpstreamList, UpstreamState};

use super::route::{reasons, status};
use crate::app::App;
use crate::failure::{CliResult, Exit};
use crate::printer::{Column, harmless, rows};
use crate::remote::Remote;
use crate::running_server::ServerOption;
use crate::wire_up;

/// Show the state of the other servers
#[derive(Debug, Args)]
pub(crate) struct UpstreamsArgs {
    /// List the models of each server
    #[arg(long)]
    models: bool,
    #[command(flatten)]
    server: ServerOption,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &UpstreamsArgs, app: &App<'_>) -> CliResult<Exit> {
    let upstreams = args.server.ask(app, async |remote| find(args, remote, app).await)?;
    if args.json {
        app.printer.json(&upstreams)?;
    } else if upstreams.is_empty() {
        app.printer.note("no other server is configured; add an [upstream.NAME] table to hob.toml");
    } else {
        app.printer.data(harmless(&upstream_table(&upstreams)))?;
        if args.models {
            app.printer.data(harmless(&models(&upstreams)))?;
        }
    }
    Ok(Exit::Done)
}

async fn find(
    args: &UpstreamsArgs,
    remote: &Remote,
    app: &App<'_>,
) -> CliResult<Vec<UpstreamState>> {
    match remote.upstreams().await {
        Err(failure) if args.server.is_missing(&failure) => {
            if app.written.config.upstream.is_empty() {
                return Ok(Vec::new());
            }
            app.printer.note("no hob is running on this machine; this is what the servers report");
            let gateway = wire_up::looked_up(app).await?;
            Ok(UpstreamList::of(gateway.upstreams()).upstreams)
        }
        answered => answered.map(|list| list.upstreams),
    }
}

fn upstream_table(upstreams: &[UpstreamState]) -> String {
    let columns: &[Column<'_, UpstreamState>] = &[
        ("upstream", &|u| u.name.clone()),
        ("kind", &|u| u.kind.clone()),
        ("state", &|u| {
            let took = u.took_ms.map(|took| format!(" ({took:.0} ms)")).unwrap_or_default();
            format!("{}{took}", u.state)
        }),
        ("models", &|u| u.models.len().to_string()),
        ("in flight", &in_flight),
        ("address", &|u| u.url.clone()),
        ("problem", &trouble),
    ];
    rows(columns, upstreams).trim_fmt()
}

fn in_flight(upstream: &UpstreamState) -> String {
    let slots = upstream.slots.map(|slots| format!("/{slots}")).unwrap_or_default();
    let waiting = match upstream.waiting {
        0 => String::new(),
        waiting => format!(", {waiting} wait"),
    };
    format!("{}{slots}{waiting}", upstream.in_flight)
}

/// Each fault once: the server's own, and then what else is wrong with its targets.
fn trouble(upstream: &UpstreamState) -> String {
    let mut said: Vec<String> = upstream.reason.clone().into_iter().collect();
    let mut parts = said.clone();
    for target in &upstream.troubled {
        let state = format!("{} {}", target.name, status(target));
        let reasons = reasons(target, &mut said);
        parts.push(match reasons.is_empty() {
            true => state,
            false => format!("{state}: {}", reasons.join("; ")),
        });
    }
    parts.join("; ")
}

fn models(upstreams: &[UpstreamState]) -> String {
    let each = upstreams.iter().flat_map(|upstream| {
        upstream.models.iter().map(move |model| format!("{}/{model}", upstream.name))
    });
    each.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_is_printed_once_for_a_server_and_its_targets() {
        let target = |name: &str, message: &str| {
            json!({"name": name, "status": "standby", "state": "down", "in_flight": 0,
                "state_reason": "connection refused",
                "last_failure": {"message": message, "ago_s": 3.0}})
        };
        let upstream: UpstreamState = serde_json::from_value(json!({
            "name": "gpu", "kind": "openai", "url": "http://gpu:1", "state": "down",
            "reason": "connection refused", "models": [], "in_flight": 0, "waiting": 0,
            "troubled": [target("gpu/x", "gpu/x: connection refused"), target("gpu/y", "cut off")],
        }))
        .expect("an upstream");
        assert_eq!(
            trouble(&upstream),
            "connection refused; gpu/x standby; gpu/y standby: 3 s ago: cut off"
        );
    }
}
