//! A running server with one staged model, on its own port.

use std::net::SocketAddr;
use std::sync::Arc;

use hob_core::{Admission, AnyModel, RegisteredModel, Registry, Speech};
use hob_server::{KeyOptions, Listeners, ReloadableState, ServerOptions, WyomingPort, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::client::{Answer, Client, get, no_hang, post, until};
use crate::model::{StagedSpeech, share};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) model: Arc<StagedSpeech>,
    registry: Registry,
    state: ReloadableState,
    stop: Option<oneshot::Sender<()>>,
    running: JoinSet<std::io::Result<()>>,
}

/// One model, which speaks: `kokoro`.
pub(crate) fn registry_with_voice(model: &Arc<StagedSpeech>) -> Registry {
    let mut registry = Registry::default();
    registry.add(RegisteredModel::<Speech>::new("kokoro", share(model), Admission::new(2, 0.5)));
    registry
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::start_with(ServerOptions::default()).await
    }

    pub(crate) async fn start_with(options: ServerOptions) -> Server {
        Server::start_voice(StagedSpeech::new(), options).await
    }

    pub(crate) async fn start_voice(model: StagedSpeech, options: ServerOptions) -> Server {
        let model = Arc::new(model);
        let mut registry = registry_with_voice(&model);
        registry.add_alias("narrator", "kokoro");
        Server::start_ports(registry, options, model, Vec::new()).await
    }

    /// `kokoro`, and the models that are added.
    pub(crate) async fn start_models(
        options: ServerOptions,
        add: impl FnOnce(&mut Registry),
    ) -> Server {
        let model = Arc::new(StagedSpeech::new());
        let mut registry = registry_with_voice(&model);
        add(&mut registry);
        Server::start_ports(registry, options, model, Vec::new()).await
    }

    /// Without the staged model.
    pub(crate) async fn start_registry(registry: Registry, options: ServerOptions) -> Server {
        Server::start_ports(registry, options, Arc::new(StagedSpeech::new()), Vec::new()).await
    }

    /// With ports for Wyoming, too.
    pub(crate) async fn start_ports(
        registry: Registry,
        options: ServerOptions,
        model: Arc<StagedSpeech>,
        wyoming: Vec<WyomingPort>,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let mut running = JoinSet::new();
        let listeners = Listeners { http: listener, pipelines: None, wyoming };
        let state = ReloadableState::from(registry.clone());
        running.spawn(serve(listeners, state.clone(), options, async move {
            // An error means that the test has ended, so the server stops too.
            stopped.await.unwrap_or_default();
        }));
        Server { address, model, registry, state, stop: Some(stop), running }
    }

    /// Changes the models of requests that arrive from now on.
    pub(crate) fn reload(&self, change: impl FnOnce(&mut Registry)) {
        let mut registry = self.registry.clone();
        change(&mut registry);
        self.state.replace(registry, &[]);
    }

    /// Keeps the models. Requests need one of these keys from now on.
    pub(crate) fn require(&self, keys: &[KeyOptions]) {
        self.state.replace(self.registry.clone(), keys);
    }

    /// The requests of all models.
    pub(crate) fn in_flight(&self) -> usize {
        self.registry.all().map(AnyModel::in_flight).sum()
    }

    /// The remaining work of these requests.
    pub(crate) fn backlog(&self) -> f64 {
        self.registry.all().map(AnyModel::backlog).sum()
    }

    /// Resolves when this many requests are in flight.
    pub(crate) async fn until_in_flight(&self, count: usize) {
        until(async || (self.in_flight() == count).then_some(())).await;
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(get(path)).await
    }

    pub(crate) async fn post_speech(&self, json: impl AsRef<[u8]>) -> Answer {
        self.ask(post("/v1/audio/speech", json)).await
    }

    /// Sends a request on a new connection.
    pub(crate) async fn send(&self, request: impl AsRef<[u8]>) -> Client {
        let mut client = self.client().await;
        client.send(request).await;
        client
    }

    /// The same with `POST /v1/audio/speech`.
    pub(crate) async fn speak(&self, json: &str) -> Client {
        self.send(post("/v1/audio/speech", json)).await
    }

    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request).await.answer().await
    }

    pub(crate) fn ask_to_stop(&mut self) {
        let stop = self.stop.take().expect("asked once");
        stop.send(()).expect("a running server");
    }

    /// Resolves when the server has stopped.
    pub(crate) async fn stopped(&mut self) {
        let ended = no_hang(self.running.join_next()).await.expect("a server");
        ended.expect("no panic").expect("no error");
    }
}
