//! A running server with one staged model, on its own port.

use std::net::SocketAddr;
use std::sync::Arc;

use hob_core::{Admission, RegisteredModel, Registry, SoundSeconds, Speech, Work};
use hob_server::{Listeners, ServerOptions, WyomingPort, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::client::{Answer, Client, get, no_hang, post};
use crate::model::{StagedSpeech, share};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) model: Arc<StagedSpeech>,
    pub(crate) admission: ModelLoad,
    stop: Option<oneshot::Sender<()>>,
    running: JoinSet<std::io::Result<()>>,
}

/// The requests in flight of a model, in whichever unit it counts its work.
pub(crate) struct ModelLoad {
    in_flight: Box<dyn Fn() -> usize + Send + Sync>,
    backlog: Box<dyn Fn() -> f64 + Send + Sync>,
}

impl ModelLoad {
    fn of<W: Work>(admission: Admission<W>) -> ModelLoad {
        let other = admission.clone();
        ModelLoad {
            in_flight: Box::new(move || admission.in_flight()),
            backlog: Box::new(move || other.backlog()),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        (self.in_flight)()
    }

    pub(crate) fn backlog(&self) -> f64 {
        (self.backlog)()
    }
}

/// One model, which speaks: `kokoro`.
pub(crate) fn registry_with_voice(
    model: &Arc<StagedSpeech>,
    admission: Admission<SoundSeconds>,
) -> Registry {
    let mut registry = Registry::default();
    registry.add(Arc::new(RegisteredModel::<Speech>::new("kokoro", share(model), admission)));
    registry
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::start_with(StagedSpeech::new(), ServerOptions::default()).await
    }

    pub(crate) async fn start_with(model: StagedSpeech, options: ServerOptions) -> Server {
        let model = Arc::new(model);
        let admission = Admission::new(2, 0.5);
        let mut registry = registry_with_voice(&model, admission.clone());
        registry.add_alias("narrator", "kokoro");
        Server::start_registry(registry, options, model, admission).await
    }

    pub(crate) async fn start_registry<W: Work>(
        registry: Registry,
        options: ServerOptions,
        model: Arc<StagedSpeech>,
        admission: Admission<W>,
    ) -> Server {
        Server::start_ports(registry, options, model, admission, Vec::new()).await
    }

    /// With ports for Wyoming, too.
    pub(crate) async fn start_ports<W: Work>(
        registry: Registry,
        options: ServerOptions,
        model: Arc<StagedSpeech>,
        admission: Admission<W>,
        wyoming: Vec<WyomingPort>,
    ) -> Server {
        let admission = ModelLoad::of(admission);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let mut running = JoinSet::new();
        let listeners = Listeners { http: listener, pipelines: None, wyoming };
        running.spawn(serve(listeners, registry, options, async move {
            // An error means that the test has ended, so the server stops too.
            stopped.await.unwrap_or_default();
        }));
        Server { address, model, admission, stop: Some(stop), running }
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
