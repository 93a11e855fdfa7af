//! `/v1/teams` and `/v1/runs`: starts runs of teams, follows them, and passes decisions on.
//! [`TeamService`] has teams and runs. This file decides which caller may see which.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::stream;
use hob_wire::{operations, parse_decision, parse_run_list, parse_start_run, run_event};
use tokio::time::{Instant, sleep};

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::KeyRule;
use crate::headers::{EVENTS, answer_headers, uncached_json};
use crate::observe::{NamePath, QueryPairs};
use crate::request_body::read_command;
use crate::team_service::{RunProgress, RunRefusal, RunStage, TeamService};

/// How often the events of a run are looked for.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);
/// How long a reader waits for a process that works on the run.
const IDLE_MAX: Duration = Duration::from_secs(5);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

type Service = Extension<Arc<dyn TeamService>>;
/// The id of a run, and what follows it.
type RunPath = NamePath<(String, String)>;

/// Without a service there are no routes.
pub(crate) fn routes(service: Option<&Arc<dyn TeamService>>) -> Router {
    let Some(service) = service else { return Router::new() };
    Router::new()
        .at(&operations::TEAMS, teams)
        .at(&operations::TEAM, team)
        .at(&operations::RUNS, runs)
        .at(&operations::START_RUN, start)
        .at(&operations::RUN, run)
        .at(&operations::RUN_EVENTS, events)
        .at(&operations::RUN_FILE, file)
        .at(&operations::DELETE_RUN, delete)
        .at(&operations::CANCEL_RUN, cancel)
        .at(&operations::RESUME_RUN, resume)
        .at(&operations::DECIDE_APPROVAL, decide)
        .layer(Extension(Arc::clone(service)))
        .route_layer(KeyRule::Required)
}

/// `GET /v1/teams`.
async fn teams(context: RequestContext, service: Service) -> Result<Response, ApiError> {
    let mut teams = blocking(&service, |service| Ok(service.teams())).await?;
    teams.retain(|team| context.caller.allows(&team.id));
    Ok(uncached_json(hob_wire::teams(&teams)))
}

/// `GET /v1/teams/{id}`.
async fn team(
    context: RequestContext,
    service: Service,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    context.caller.check(&id)?;
    let teams = blocking(&service, |service| Ok(service.teams())).await?;
    let team = teams.iter().find(|team| team.id == id);
    Ok(uncached_json(hob_wire::team(team.ok_or(RunRefusal::NoTeam { name: id })?)))
}

/// `GET /v1/runs`.
async fn runs(
    context: RequestContext,
    service: Service,
    QueryPairs(pairs): QueryPairs,
) -> Result<Response, ApiError> {
    let (limit, caller) = (parse_run_list(&pairs)?, context.caller);
    let runs = blocking(&service, move |service| service.runs(limit, &|team| caller.allows(team)));
    Ok(uncached_json(hob_wire::runs(&runs.await?)))
}

/// `POST /v1/runs`.
async fn start(service: Service, request: Request) -> Result<Response, ApiError> {
    let (context, new_run) = read_command(request, parse_start_run).await?;
    context.caller.check(new_run.team.as_deref().unwrap_or(service.default_team()))?;
    let spend = context.caller.count_run()?;
    let owner = context.caller.key().map(str::to_owned);
    let row = blocking(&service, move |service| service.start(&new_run, owner.as_deref(), spend));
    let row = row.await?;
    let location = [(LOCATION, format!("/v1/runs/{}", row.id))];
    Ok((StatusCode::ACCEPTED, location, uncached_json(row.to_json())).into_response())
}

/// `GET /v1/runs/{id}`.
async fn run(
    context: RequestContext,
    service: Service,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    check_run(&context, &service, &id).await?;
    run_answer(&service, id).await
}

/// `DELETE /v1/runs/{id}`.
async fn delete(
    context: RequestContext,
    service: Service,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    check_run(&context, &service, &id).await?;
    let deleted = id.clone();
    blocking(&service, move |service| service.delete(&deleted)).await?;
    Ok(uncached_json(hob_wire::run_deleted(&id)))
}

/// `POST /v1/runs/{id}/cancel`.
async fn cancel(
    context: RequestContext,
    service: Service,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    check_run(&context, &service, &id).await?;
    let ended = id.clone();
    blocking(&service, move |service| service.cancel(&ended)).await?;
    run_answer(&service, id).await
}

/// `POST /v1/runs/{id}/resume`.
async fn resume(
    context: RequestContext,
    service: Service,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    check_run(&context, &service, &id).await?;
    let spend = context.caller.count_run()?;
    let resumed = id.clone();
    blocking(&service, move |service| service.go_on(&resumed, None, spend)).await?;
    run_answer(&service, id).await
}

/// `POST /v1/runs/{id}/approvals/{approval}`.
async fn decide(
    service: Service,
    NamePath((id, approval)): RunPath,
    request: Request,
) -> Result<Response, ApiError> {
    let (context, verdict) = read_command(request, parse_decision).await?;
    check_run(&context, &service, &id).await?;
    let asked = id.clone();
    let owner = blocking(&service, move |service| service.owner_of(&asked)).await?;
    context.caller.check_decides(owner.as_deref())?;
    let spend = context.caller.count_run()?;
    let decided = id.clone();
    blocking(&service, move |service| service.go_on(&decided, Some((&approval, verdict)), spend))
        .await?;
    run_answer(&service, id).await
}

/// `GET /v1/runs/{id}/files/{path}`. Agents wrote the file, so no browser may run it as a page of hob.
async fn file(
    context: RequestContext,
    service: Service,
    NamePath((id, path)): RunPath,
) -> Result<Response, ApiError> {
    check_run(&context, &service, &id).await?;
    let bytes = blocking(&service, move |service| service.file(&id, &path)).await?;
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, bytes).into_response())
}

/// `GET /v1/runs/{id}/events`. A reader that leaves does not end the run.
async fn events(
    context: RequestContext,
    service: Service,
    NamePath(id): NamePath,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    check_run(&context, &service, &id).await?;
    let seen = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.trim().parse().ok());
    let now = Instant::now();
    let follower = RunFollower {
        context,
        service,
        id,
        seen: seen.unwrap_or(0),
        last: 0,
        offset: 0,
        worked_at: now,
        written_at: now,
    };
    let events = stream::unfold(Some(follower), async |follower| {
        let mut follower = follower?;
        let next = follower.next().await;
        // The last piece of a stream that breaks off is an error.
        let (text, goes_on) = match next {
            Ok(text) => (text?, true),
            Err(error) => (hob_wire::chat_failed(&error.body()), false),
        };
        Some((Ok::<_, Infallible>(text), goes_on.then_some(follower)))
    });
    Ok((answer_headers(EVENTS), Body::from_stream(events)).into_response())
}

/// A reader of the events of a run.
struct RunFollower {
    context: RequestContext,
    service: Service,
    id: String,
    /// The reader has the stored events up to this one.
    seen: u64,
    /// Number of the last event that was read.
    last: u64,
    offset: u64,
    /// When a process was last seen to work on the run.
    worked_at: Instant,
    written_at: Instant,
}

impl RunFollower {
    /// The next events, or a sign of life. `None`: nothing follows.
    async fn next(&mut self) -> Result<Option<String>, ApiError> {
        loop {
            let (id, offset) = (self.id.clone(), self.offset);
            let news = blocking(&self.service, move |service| service.progress(&id, offset));
            let RunProgress { lines, offset, has_more, stage } = news.await?;
            self.offset = offset;
            let text = self.unseen(&lines);
            if !text.is_empty() {
                self.written_at = Instant::now();
                return Ok(Some(text));
            }
            match stage {
                _ if has_more => continue,
                RunStage::Stopped => return Ok(None),
                RunStage::Working => self.worked_at = Instant::now(),
                RunStage::Idle if self.worked_at.elapsed() > IDLE_MAX => return Ok(None),
                RunStage::Idle => {}
            }
            if self.written_at.elapsed() > self.context.options().keep_alive_every {
                self.written_at = Instant::now();
                return Ok(Some(": ping\n\n".to_owned()));
            }
            let cut_off = &self.context.services.cut_off;
            let waited = cut_off.run_until_cancelled(sleep(FOLLOW_EVERY)).await;
            waited.ok_or(ApiError::Stopping)?;
        }
    }

    /// What the reader does not have. After a crash, lower numbers follow higher ones; then all that follows is new.
    fn unseen(&mut self, lines: &[String]) -> String {
        let events = lines.iter().filter_map(|line| run_event(line));
        let unseen = events.filter_map(|(seq, text)| {
            if seq <= self.last {
                self.seen = 0;
            }
            self.last = seq;
            (seq > self.seen).then_some(text)
        });
        unseen.collect()
    }
}

/// # Errors
/// There is no such run, or the caller's key is not for its team.
async fn check_run(context: &RequestContext, service: &Service, id: &str) -> Result<(), ApiError> {
    let run = id.to_owned();
    let team = blocking(service, move |service| service.team_of(&run)).await?;
    // For this key, runs of other teams do not exist.
    match context.caller.allows(&team) {
        true => Ok(()),
        false => Err(RunRefusal::NoRun { id: id.to_owned() }.into()),
    }
}

async fn run_answer(service: &Service, id: String) -> Result<Response, ApiError> {
    Ok(uncached_json(hob_wire::run(&blocking(service, move |service| service.run(&id)).await?)))
}

/// # Errors
/// The call is refused, or panicked; the log has the message.
pub(crate) async fn blocking<S: ?Sized + Send + Sync + 'static, T: Send + 'static>(
    Extension(service): &Extension<Arc<S>>,
    work: impl FnOnce(&S) -> Result<T, RunRefusal> + Send + 'static,
) -> Result<T, ApiError> {
    let service = Arc::clone(service);
    let done = tokio::task::spawn_blocking(move || work(&*service)).await;
    let crashed = |_| RunRefusal::Failed("the request failed; see hob's log".to_owned());
    Ok(done.map_err(crashed)??)
}
