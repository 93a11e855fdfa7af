//! Accepting connections under a limit, and stopping without cutting off who is being answered.
//! HTTP/1.1 only: every client of this API speaks it, and one stream per connection keeps
//! "client gone" and "answer failed" visible as the end of a socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::ServerOptions;
use crate::context::Services;
use crate::metrics::Metrics;
use crate::places::{Place, Places};
use crate::reloadable_state::ReloadableState;
use crate::router::router_with;
use crate::socket::Socket;

/// Histograms keep raw samples until they are folded; nobody may be asking for `/metrics`.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// For answers that are cut off to say so.
const LAST_WORD_TIME_MAX: Duration = Duration::from_millis(500);

/// When the system has no socket to give (too many open files), the next try waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What every connection needs.
#[derive(Clone)]
struct Service {
    app: Router,
    header_time_max: Duration,
    stall_time_max: Duration,
    stop: CancellationToken,
}

/// Answers on `listener` until `shutdown` resolves; then lets running answers finish for
/// `options.drain_time_max` and cuts off the rest, which their clients see as an error.
///
/// # Errors
/// The listener has no address, which means that it was not bound.
pub async fn serve(
    listener: TcpListener,
    state: impl Into<ReloadableState>,
    options: ServerOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let listen = listener.local_addr()?.ip();
    let metrics = Arc::new(Metrics::new());
    let cut_off = CancellationToken::new();
    let services = Services::new(&options, Arc::clone(&metrics), cut_off.clone());
    let service = Service {
        header_time_max: options.header_time_max,
        stall_time_max: options.stall_time_max,
        stop: CancellationToken::new(),
        app: router_with(state.into(), &options, listen, services),
    };
    let places = Places::new(options.connections_max);
    let mut connections = JoinSet::new();
    let mut upkeep = interval(METRICS_UPKEEP);
    tokio::pin!(shutdown);
    // Kept from turn to turn: a connection that was accepted and waits for its place is not let go.
    let mut accepting = Box::pin(accept(&listener, &places));
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            _ = upkeep.tick() => metrics.fold(),
            (socket, place) = &mut accepting => {
                connections.spawn(connection(socket, place, service.clone()));
                accepting = Box::pin(accept(&listener, &places));
            }
        }
    }
    drop(accepting);
    drop(listener);
    service.stop.cancel();
    drain(connections, options.drain_time_max, &cut_off).await;
    Ok(())
}

/// The next connection, once there is a place for it. One waits here, the others in the kernel.
async fn accept(listener: &TcpListener, places: &Arc<Places>) -> (TcpStream, Place) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => return (socket, places.take().await),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                places.make_room();
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(socket: TcpStream, place: Place, service: Service) {
    // Small chunks must leave at once; a socket that refuses the option is merely slower.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was refused");
    }
    let io = TokioIo::new(Socket::new(socket, service.stall_time_max));
    let answering = service_fn(|request: hyper::Request<Incoming>| {
        let busy = place.busy();
        let request = busy.while_read(request);
        let answer = TowerToHyperService::new(service.app.clone()).call(request);
        async move { answer.await.map(|response| busy.until_written(response)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(service.header_time_max)
        .serve_connection(io, answering);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        // It is idle, and others wait.
        () = place.leave.cancelled() => return,
        () = service.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn drain(mut connections: JoinSet<()>, time_max: Duration, cut_off: &CancellationToken) {
    if timeout(time_max, all_of(&mut connections)).await.is_ok() {
        return;
    }
    tracing::warn!(answers = connections.len(), "cut off answers that did not finish in time");
    cut_off.cancel();
    // Whoever does not read that is not waited for.
    if timeout(LAST_WORD_TIME_MAX, all_of(&mut connections)).await.is_err() {
        connections.shutdown().await;
    }
}

async fn all_of(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}
