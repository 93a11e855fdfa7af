//! Accepts connections within a limit, and stops without cutting off running answers.
//! HTTP/1.1 only: every client of this API supports it. With one answer per connection,
//! "client gone" and "answer failed" are visible as the end of a socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use futures::StreamExt;
use futures::stream::{self, BoxStream, select_all};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::ServerOptions;
use crate::connections::{ConnectionLimit, ConnectionSlot};
use crate::context::Services;
use crate::metrics::Metrics;
use crate::pipelines::answer_root;
use crate::reloadable_state::ReloadableState;
use crate::router::router_with;
use crate::socket::Socket;
use crate::tls::{Certificates, OpenedConnection, open, plain_remote_routes};
use crate::wyoming::{WyomingPort, WyomingPortContext, wyoming_connection};

/// Histograms keep raw samples until they are folded, also if `/metrics` is never requested.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Time for sending an error to clients whose answers are cut off.
const LAST_WORD_TIME_MAX: Duration = Duration::from_millis(500);

/// Pause before the next try if the system has no free socket (too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The addresses on which a server answers.
#[derive(Debug)]
pub struct Listeners {
    pub http: TcpListener,
    /// A second address with the same routes.
    pub pipelines: Option<TcpListener>,
    pub wyoming: Vec<WyomingPort>,
}

impl From<TcpListener> for Listeners {
    fn from(http: TcpListener) -> Listeners {
        Listeners { http, pipelines: None, wyoming: Vec::new() }
    }
}

/// What serves the connections of one listener.
#[derive(Clone)]
enum Protocol {
    Http(Service),
    Wyoming(Arc<WyomingPortContext>),
}

/// What every HTTP connection needs.
#[derive(Clone)]
struct Service {
    app: Router,
    tls: Option<Tls>,
    header_time_max: Duration,
    stall_time_max: Duration,
    stop: CancellationToken,
}

#[derive(Clone)]
struct Tls {
    certificates: Arc<dyn Certificates>,
    /// For connections without encryption from other machines.
    plain_remote: Router,
}

/// Answers on all listeners until `shutdown` resolves; then lets running answers finish for
/// `options.drain_time_max` and cuts off the rest, which their clients see as an error.
///
/// # Errors
/// An HTTP listener has no address, which means that it was not bound.
pub async fn serve(
    listeners: impl Into<Listeners>,
    state: impl Into<ReloadableState>,
    options: ServerOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (Listeners { http, pipelines, wyoming }, state) = (listeners.into(), state.into());
    let metrics = Arc::new(Metrics::new());
    let (cut_off, stop) = (CancellationToken::new(), CancellationToken::new());
    let services = Arc::new(Services::new(options, Arc::clone(&metrics), cut_off.clone()));
    let options = &services.options;
    let tls = options
        .certificates
        .clone()
        .map(|certificates| Tls { plain_remote: plain_remote_routes(&certificates), certificates });
    let service = Service {
        tls,
        header_time_max: options.header_time_max,
        stall_time_max: options.stall_time_max,
        stop: stop.clone(),
        app: router_with(state.clone(), http.local_addr()?.ip(), Arc::clone(&services)),
    };
    let second = pipelines.map(|listener| {
        // Each address has its own allowed host names.
        let listen = listener.local_addr()?.ip();
        let app =
            router_with(state.clone(), listen, Arc::clone(&services)).layer(from_fn(answer_root));
        io::Result::Ok((listener, Protocol::Http(Service { app, ..service.clone() })))
    });
    let limit = ConnectionLimit::new(options.connections_max);
    let mut connections = JoinSet::new();
    let mut upkeep = interval(METRICS_UPKEEP);
    tokio::pin!(shutdown);
    let wyoming = wyoming.into_iter().map(|WyomingPort { listener, service, model }| {
        let (state, services) = (state.clone(), Arc::clone(&services));
        let (stall_time_max, stop) = (options.stall_time_max, stop.clone());
        let context = WyomingPortContext { service, model, state, services, stall_time_max, stop };
        (listener, Protocol::Wyoming(Arc::new(context)))
    });
    let http = (http, Protocol::Http(service));
    let listeners = std::iter::once(http).chain(second.transpose()?).chain(wyoming);
    // A stream keeps an accepted connection that waits for its slot, also over turns of the loop.
    let mut accepting =
        select_all(listeners.map(|(listener, protocol)| accepted(listener, protocol, &limit)));
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            _ = upkeep.tick() => metrics.fold(),
            Some((socket, slot, protocol)) = accepting.next() => {
                match protocol {
                    Protocol::Http(service) => connections.spawn(connection(socket, slot, service)),
                    Protocol::Wyoming(port) => {
                        connections.spawn(wyoming_connection(socket, slot, port))
                    }
                };
            }
        }
    }
    drop(accepting);
    stop.cancel();
    services.sessions.stop(LAST_WORD_TIME_MAX).await;
    drain(connections, options.drain_time_max, &cut_off).await;
    Ok(())
}

/// All connections of one listener.
fn accepted<'a>(
    listener: TcpListener,
    protocol: Protocol,
    limit: &'a Arc<ConnectionLimit>,
) -> BoxStream<'a, (TcpStream, ConnectionSlot, Protocol)> {
    let next = move |(listener, protocol): (TcpListener, Protocol)| async move {
        let (socket, slot) = accept(&listener, limit).await;
        Some(((socket, slot, protocol.clone()), (listener, protocol)))
    };
    stream::unfold((listener, protocol), next).boxed()
}

/// Accepts the next connection and waits for a slot for it. One connection waits here, the others in the kernel.
async fn accept(
    listener: &TcpListener,
    limit: &Arc<ConnectionLimit>,
) -> (TcpStream, ConnectionSlot) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                // Small chunks must leave at once. A socket that refuses the option is only slower.
                if let Err(error) = socket.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY was refused");
                }
                return (socket, limit.take().await);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                limit.make_room();
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(socket: TcpStream, slot: ConnectionSlot, service: Service) {
    let wrap = |socket| Socket::new(socket, service.stall_time_max);
    let Some(tls) = &service.tls else {
        return answer(wrap(socket), &service.app, &slot, &service).await;
    };
    let opening = timeout(service.header_time_max, open(socket, wrap, &*tls.certificates));
    let opened = tokio::select! {
        opened = opening => opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
        () = slot.close.cancelled() => return,
        () = service.stop.cancelled() => return,
    };
    match opened {
        Ok(OpenedConnection::Encrypted(stream)) => {
            answer(*stream, &service.app, &slot, &service).await;
        }
        Ok(OpenedConnection::Plain(socket)) => answer(socket, &service.app, &slot, &service).await,
        Ok(OpenedConnection::PlainRemote(socket)) => {
            answer(socket, &tls.plain_remote, &slot, &service).await;
        }
        Err(error) => tracing::debug!(%error, "a connection could not be encrypted"),
    }
}

/// Answers the requests of one connection.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: &Router,
    slot: &ConnectionSlot,
    service: &Service,
) {
    let answering = service_fn(|request: hyper::Request<Incoming>| {
        let guard = slot.begin_request();
        let request = guard.while_read(request);
        let answer = TowerToHyperService::new(app.clone()).call(request);
        async move { answer.await.map(|response| guard.until_written(response)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(service.header_time_max)
        .serve_connection(TokioIo::new(stream), answering)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        // This connection is idle, and another one waits for a slot.
        () = slot.close.cancelled() => return,
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
    // A client that does not read the rest of its answer must not delay the stop.
    if timeout(LAST_WORD_TIME_MAX, all_of(&mut connections)).await.is_err() {
        connections.shutdown().await;
    }
}

async fn all_of(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}
