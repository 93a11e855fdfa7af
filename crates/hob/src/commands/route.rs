//! `hob route`: shows which target would answer a request for a name now, and why not another one.
//! It asks the running hob. Without one it reads the configuration and asks the servers in it.

use clap::Args;
use hob_core::{Kind, UpstreamResolver};
use hob_wire::{AliasRoute, RouteTarget};

use crate::app::App;
use crate::failure::{CliResult, Exit, Failure};
use crate::printer::{Column, harmless, or_dash, rows};
use crate::remote::Remote;
use crate::running_server::ServerOption;
use crate::wire_up;

/// Show which target would answer a request for a name now, and why
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RouteArgs {
    /// An alias, a model, or UPSTREAM/MODEL
    name: String,
    #[command(flatten)]
    server: ServerOption,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  hob route fast
  hob route openrouter/qwen/qwen3-coder";

pub(crate) fn run(args: &RouteArgs, app: &App<'_>) -> CliResult<Exit> {
    let route = args.server.ask(app, async |remote| find(args, remote, app).await)?;
    app.printer.report(args.json, &route, || harmless(&route_text(&route)).into_owned())
}

async fn find(args: &RouteArgs, remote: &Remote, app: &App<'_>) -> CliResult<AliasRoute> {
    match remote.route(&args.name).await {
        Err(failure) if args.server.is_missing(&failure) => {
            app.printer
                .note("no hob is running on this machine; this is the configuration's state");
            from_configuration(&args.name, app).await
        }
        answered => answered,
    }
}

async fn from_configuration(name: &str, app: &App<'_>) -> CliResult<AliasRoute> {
    let gateway = wire_up::looked_up(app).await?;
    let view = UpstreamResolver::route(&gateway, name).ok_or_else(|| no_route(name, app))?;
    Ok(AliasRoute::of(view))
}

fn no_route(name: &str, app: &App<'_>) -> Failure {
    let locals = wire_up::placeholder_models(app);
    if Kind::ALL.into_iter().any(|kind| locals.find_any(kind, name).is_some()) {
        return Failure::server(format!("'{name}' is a model of this hob, which does not run"))
            .hint("start a server with `hob serve`");
    }
    let near = hob_core::nearest(name, app.written.config.alias.keys().map(String::as_str), 3);
    let failure = Failure::usage(format!("no alias, model or upstream model is called '{name}'"));
    match &near[..] {
        [] => failure.hint("add an [alias.NAME] table to hob.toml"),
        near => failure.hint(format!("did you mean {}?", near.join(", "))),
    }
}

fn route_text(route: &AliasRoute) -> String {
    let head = head(route);
    let columns: &[Column<'_, RouteTarget>] = &[
        ("target", &|target| target.name.clone()),
        ("", &status),
        ("state", &|target| target.state.clone()),
        ("context", &|target| or_dash(target.context_length.map(|tokens| tokens.to_string()))),
        ("in flight", &|target| target.in_flight.to_string()),
        ("why", &|target| reasons(target, &mut Vec::new()).join("; ")),
    ];
    let table = rows(columns, &route.targets);
    let strategy = match route.strategy.as_str() {
        "order" => "targets are tried in the listed order".to_owned(),
        strategy => format!("strategy {strategy}"),
    };
    format!("{head} ({strategy})\n\n{}", table.trim_fmt())
}

/// The target that would answer, and the one that would be tried before it.
fn head(route: &AliasRoute) -> String {
    let of = |status: &str| route.targets.iter().find(|target| target.status == status);
    match (of("active"), of("half_open")) {
        (Some(answers), Some(tried)) => format!(
            "{} would be answered by {}; {} is tried first, and answers if it works again",
            route.alias, answers.name, tried.name
        ),
        (Some(answers), None) => format!("{} would be answered by {}", route.alias, answers.name),
        (None, Some(tried)) => {
            format!("{} has no working target; {} would be tried", route.alias, tried.name)
        }
        (None, None) => format!("no target of {} would answer now", route.alias),
    }
}

pub(super) fn status(target: &RouteTarget) -> String {
    match (target.status.as_str(), target.open_for_s) {
        ("active", _) => "answers".to_owned(),
        ("open", Some(left)) => format!("circuit open for {left:.0} s"),
        ("half_open", _) => "would be tried".to_owned(),
        _ => "standby".to_owned(),
    }
}

/// What is wrong with a target, apart from the faults in `said`. Adds its own to them.
pub(super) fn reasons(target: &RouteTarget, said: &mut Vec<String>) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(failure) = &target.last_failure
        && is_new(&failure.message, said)
    {
        reasons.push(format!("{:.0} s ago: {}", failure.ago_s, failure.message));
    }
    if let Some(reason) = &target.state_reason
        && is_new(reason, said)
    {
        reasons.push(reason.clone());
    }
    if target.thinks_anyway {
        reasons.push("it thinks although thinking is switched off".to_owned());
    }
    reasons
}

/// A request and the list of models report one fault in more or fewer words: the shorter text is part of the longer one.
fn is_new(fault: &str, said: &mut Vec<String>) -> bool {
    let is_known = said.iter().any(|known| known.contains(fault) || fault.contains(known.as_str()));
    if !is_known {
        said.push(fault.to_owned());
    }
    !is_known
}
