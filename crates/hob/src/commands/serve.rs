//! `hob serve`: binds the address first, then loads models, and serves until it receives a signal.
//! Until a model is loaded, its requests get an error with `Retry-After`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use futures::future::join_all;
use hob_agents::{Prices, ScriptModel};
use hob_core::{Kind, ModelError, ModelLifecycle, RegisteredModel, Registry, TurnTaking, task};
use hob_server::{BenchmarkFiles, Listeners, ReloadableState, ServerOptions};
use hob_speech::Lexicon;
use hob_upstream::Gateway;
use tokio::net::TcpListener;

use crate::app::{App, block_on};
use crate::benchmarks::{BenchmarkPages, RecordsFolder};
use crate::config::{LoadAt, LoadedConfig};
use crate::failure::{CliResult, Exit, Failure};
use crate::globals::Globals;
use crate::listen::remedy;
use crate::port_owner;
use crate::printer::Printer;
use crate::pulled::PulledModels;
use crate::reload::{ConfigWatcher, NewState, key_files};
use crate::remote::Remote;
use crate::settings::{ChatSettings, ModelChoice, Overrides, Settings, TlsSettings};
use crate::signals::{StopSignals, interrupted};
use crate::teams::{OtherMachines, RegistryModels, TeamFiles, TeamModels, TeamRuns};
use crate::wire_up::{self, Chat, FitData, Memory, Speech, StoredTurnTaking, Transcription};

/// Serve the web page and the OpenAI-compatible API until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    flags: Overrides,
}

const AFTER_HELP: &str = "\
Examples:
  hob serve
  hob serve --listen 127.0.0.1:9000
  hob serve --chat-model ~/models/qwen3-8b.gguf --context 16384
  HOB_API_KEY=… hob serve --listen 0.0.0.0:8484 --allow-host nas.lan
  HOB_API_KEY=… hob serve --listen 0.0.0.0:8484 --tls

Then open the address it prints, or:
  curl http://127.0.0.1:8484/v1/audio/speech --output hello.mp3 \\
    -H 'Content-Type: application/json' \\
    -d '{\"model\":\"tts-1\",\"voice\":\"alloy\",\"input\":\"Good evening.\"}'";

pub(crate) fn run(args: &ServeArgs, globals: &Globals, printer: &Printer) -> CliResult<Exit> {
    // Bodies of requests are large blocks.
    hob_engines::memory::return_large_blocks();
    let app = App::open(globals, args.flags.clone(), printer)?;
    block_on(serve(&app))
}

async fn serve(app: &App<'_>) -> CliResult<Exit> {
    let mut signals = StopSignals::listen()?;
    check_exposure(app)?;
    let certificates = wire_up::certificates(app)?;
    wire_up::check_wyoming_exposure(app)?;
    let listener = bind(app.settings.server.listen.0, &app.settings).await?;
    let pipelines = wire_up::pipelines_listener(app).await?;
    let models = Models::start(app)?;
    let begun = models.renew(app, &app.written, &Gateway::default())?;
    let wyoming = wire_up::wyoming_ports(app, &begun.registry).await?;
    // Opened last, so that a server that fails to start leaves no file behind.
    let has_keys = !begun.keys.is_empty();
    let pages = BenchmarkPages::new(RecordsFolder::of(app), app.settings.ledger_file());
    let pages = Arc::new(pages);
    // A server with keys hides how long requests waited, because a page cannot send a key.
    if has_keys {
        pages.hide_ledger();
    }
    let turn_taking = Arc::new(StoredTurnTaking::new(app));
    let options = ServerOptions {
        benchmarks: Some(Arc::clone(&pages) as Arc<dyn BenchmarkFiles>),
        fit: Some(Arc::new(FitData::new(app))),
        teams: Some(Arc::new(TeamRuns::new(Arc::clone(&models.teams)))),
        pipelines: Some(Arc::new(TeamFiles::new(Arc::clone(&models.teams)))),
        certificates,
        keys: begun.keys,
        ledger: wire_up::open_ledger(app),
        turn_taking: Some(Arc::clone(&turn_taking) as Arc<dyn TurnTaking>),
        default_chat: models.default_chat(),
        kept_voices: Arc::new(wire_up::kept_voices(&app.settings)?),
        ..wire_up::server_options(&app.settings)
    };
    announce(&listener, app)?;
    wire_up::note_default_key(app);
    let announcement = wire_up::announce_wyoming(&wyoming, app)?;
    models.use_state(begun.lexicon, begun.team_models);
    let live = ReloadableState::from(begun.registry);
    let renew = |written: &LoadedConfig, old: &Gateway| models.renew(app, written, old);
    let following = ConfigWatcher {
        app,
        live: live.clone(),
        gateway: begun.gateway,
        pulled: &models.pulled,
        teams: models.teams.teams(),
        has_keys,
        key_files: begun.key_files,
        on_first_key: &|| pages.hide_ledger(),
        use_state: &|lexicon, team_models| models.use_state(lexicon, team_models),
        renew: &renew,
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    // Resolves when the sender is used, and when it is dropped.
    let shutdown = async { drop(stopped.await) };
    let listeners = Listeners { http: listener, pipelines, wyoming };
    let serving = hob_server::serve(listeners, live, options, shutdown);
    let stopping = async {
        signals.next().await;
        app.printer.note("stopping; press Ctrl-C again to stop at once");
        // The server may have ended already.
        let _server_ended = stop.send(());
        signals.next().await;
    };
    tokio::select! {
        served = serving => served.map_err(|error| Failure::io("the server stopped", &error))?,
        () = stopping => return Err(interrupted()),
        // Requests are served while models load, and also if a load fails.
        never = models.load(&turn_taking, app) => match never {},
        never = following.follow() => match never {},
        never = models.pulled.follow() => match never {},
    }
    drop(announcement);
    // Workers may take seconds to end.
    signals.or(models.end()).await
}

/// The models that this hob serves. Models that are not stored are left out, with a note.
pub(super) struct Models<'a> {
    speech: Option<Speech>,
    registered_speech: Option<Arc<RegisteredModel<task::Speech>>>,
    hearing: Option<Transcription>,
    registered_hearing: Option<Arc<RegisteredModel<task::Transcription>>>,
    /// The model of `[chat]` first, if it is stored.
    chats: Vec<ServedChat>,
    has_default: bool,
    scripts: Vec<Arc<ScriptModel>>,
    scripted: Vec<Arc<RegisteredModel<task::Chat>>>,
    teams: Arc<TeamModels>,
    /// All other stored models.
    pulled: PulledModels<'a>,
    memory: Arc<Memory>,
}

/// A chat model, and when it is loaded.
struct ServedChat {
    chat: Chat,
    /// Shared by all configurations, so that requests in flight still count after a reload.
    registered: Arc<RegisteredModel<task::Chat>>,
    load: LoadAt,
}

impl ServedChat {
    /// `None` if the model is not stored. A file that is named but missing is an error.
    fn start(
        memory: &Arc<Memory>,
        name: &str,
        settings: &ChatSettings,
        app: &App<'_>,
    ) -> CliResult<Option<ServedChat>> {
        let started = Chat::start_in(memory, name, settings, app);
        let chat = match settings.model {
            ModelChoice::File(_) => Some(started?),
            ModelChoice::Named(_) => present(started, app)?,
        };
        Ok(chat.map(|chat| {
            let registered = Arc::new(chat.registered(settings));
            ServedChat { chat, registered, load: settings.load }
        }))
    }
}

impl<'a> Models<'a> {
    pub(super) fn start(app: &'a App<'a>) -> CliResult<Models<'a>> {
        let settings = &app.settings;
        let memory = Memory::new(settings.memory.max_bytes());
        let speech = present(Speech::start_in(&memory, app), app)?;
        let hearing = Transcription::start_in(&memory, app);
        let hearing =
            if settings.transcription.is_chosen { Some(hearing?) } else { present(hearing, app)? };
        let default = ServedChat::start(&memory, &settings.chat.model.name(), &settings.chat, app)?;
        let has_default = default.is_some();
        let mut chats: Vec<ServedChat> = default.into_iter().collect();
        for (name, model) in &settings.models {
            chats.extend(ServedChat::start(&memory, name, model, app)?);
        }
        let scripts = wire_up::scripts(settings)?;
        let pulled = PulledModels::start(app, Arc::clone(&memory));
        let has_chats = !chats.is_empty() || !pulled.targets().is_empty();
        let has_sound = speech.is_some() || hearing.is_some();
        if !has_sound && !has_chats && !wire_up::has_others(app) {
            return Err(Failure::model_missing("no model is stored")
                .hint("run `hob pull` to download the default models"));
        }
        let registered = |speech: &Speech| Arc::new(speech.registered(settings));
        let registered_speech = speech.as_ref().map(registered);
        let registered =
            |hearing: &Transcription| Arc::new(hearing.registered(&settings.transcription));
        let registered_hearing = hearing.as_ref().map(registered);
        Ok(Models {
            speech,
            registered_speech,
            hearing,
            registered_hearing,
            chats,
            has_default,
            scripted: wire_up::scripted(&scripts, settings),
            scripts,
            teams: Arc::new(TeamModels::of(app)),
            pulled,
            memory,
        })
    }

    /// # Errors
    /// A script has steps that no request has used: a test did not do what it was meant to do.
    async fn end(&self) -> CliResult<Exit> {
        self.shutdown().await;
        let unused = self.scripts.iter().filter_map(|script| script.unused());
        let failures = unused.map(Failure::engine).collect();
        Failure::together(failures).map_or(Ok(Exit::Done), Err)
    }

    /// Serves requests that name no model.
    fn default_chat(&self) -> Option<String> {
        let first = self.chats.first().filter(|_| self.has_default);
        first.map(|held| held.chat.name.clone())
    }

    /// Answers for models that the agents of a team name and hob does not have.
    fn first_chat(&self) -> Option<String> {
        let held = self.chats.iter().map(|held| held.chat.name.clone());
        let scripted = self.scripted.iter().map(|scripted| scripted.name.clone());
        held.chain(self.pulled.targets().into_iter().map(|pulled| pulled.name.clone()))
            .chain(scripted)
            .next()
    }

    /// Converts a configuration into the state that the server uses.
    ///
    /// # Errors
    /// The configuration has a mistake. The old one stays in effect.
    fn renew(&self, app: &App<'_>, written: &LoadedConfig, old: &Gateway) -> CliResult<NewState> {
        let key_files = key_files(app, written);
        let lexicon = wire_up::lexicon(&written.config.speech.lexicon)?;
        let (environment, locals) = (&app.environment, self.locals(written));
        let gateway = Arc::new(wire_up::gateway(written, environment, &locals, Some(old))?);
        let mut registry = wire_up::registry(&app.settings, locals, &gateway);
        let facts = (Prices(written.config.price.clone()), OtherMachines::of(&written.config));
        let default = self.first_chat();
        let (team_models, mistakes) = self.teams.add_to(&mut registry, default.as_deref(), facts);
        for mistake in mistakes {
            app.printer.failure(&mistake.into());
        }
        let of_server = app.settings.server.api_key.read()?;
        let is_known =
            |name: &str| Kind::ALL.iter().any(|kind| registry.find_any(*kind, name).is_some());
        let keys = wire_up::keys(written, environment, (of_server, app.reach()), is_known)?;
        // A file without keys must not open a server that had keys.
        exposure(app, !keys.is_empty())?;
        Ok(NewState { registry, keys, key_files, gateway, lexicon, team_models })
    }

    /// Also finds the dictionaries that were pulled meanwhile.
    fn use_state(&self, lexicon: Lexicon, team_models: Arc<RegistryModels>) {
        self.teams.use_models(team_models);
        if let Some(speech) = &self.speech {
            speech.worker.use_lexicon(lexicon);
            speech.worker.look_for_dictionaries();
        }
    }

    /// The local models. An alias hides a pulled model of the same name: the alias was chosen here.
    pub(super) fn locals(&self, written: &LoadedConfig) -> Registry {
        let mut registry = Registry::default();
        self.registered_speech.iter().for_each(|speech| registry.add(Arc::clone(speech)));
        self.registered_hearing.iter().for_each(|hearing| registry.add(Arc::clone(hearing)));
        let mut pulled = self.pulled.targets();
        pulled.retain(|model| !written.config.alias.contains_key(&model.name));
        let held = self.chats.iter().map(|held| Arc::clone(&held.registered));
        let scripted = self.scripted.iter().map(Arc::clone);
        held.chain(scripted).chain(pulled).for_each(|model| registry.add(model));
        wire_up::add_other_names(&mut registry);
        registry
    }

    /// Loads the chat models of these names, one after the other.
    pub(super) async fn make_ready(&self, names: &[String], app: &App<'_>) {
        let held = self.chats.iter().map(|held| held.chat.clone());
        for Chat { name, worker, .. } in held.chain(self.pulled.chats()) {
            if names.contains(&name) {
                load(&name, ModelLifecycle::load(&*worker), app).await;
            }
        }
    }

    /// Requests for a model that is not ready wait, or get `Retry-After`. Never returns,
    /// so that it ends with the server.
    async fn load(&self, turn_taking: &StoredTurnTaking, app: &App<'_>) -> Infallible {
        let hears = app.settings.transcription.load == LoadAt::Start;
        if let Some(Transcription { name, worker }) = self.hearing.as_ref().filter(|_| hears) {
            let others = async {
                self.load_speech_and_chats(app).await;
                // A spoken conversation needs all of them.
                if self.speech.is_some() {
                    turn_taking.preload().await;
                }
            };
            let names: Vec<&str> = self.speech_and_chats().collect();
            let loading = load(name, ModelLifecycle::load(&**worker), app);
            if !self.memory.load_next_to((&names[..], others), (name, loading)).await {
                app.printer.note(format_args!(
                    "{name} is loaded by its first request: it has no room next to the other models"
                ));
            }
        } else {
            self.load_speech_and_chats(app).await;
        }
        std::future::pending().await
    }

    /// One after the other, so that the first model is ready early.
    async fn load_speech_and_chats(&self, app: &App<'_>) {
        if let Some(Speech { name, worker }) = &self.speech {
            load(name, worker.load(), app).await;
        }
        for Chat { name, worker, .. } in self.chats_at_start() {
            load(name, ModelLifecycle::load(&**worker), app).await;
        }
    }

    /// The names of these models.
    fn speech_and_chats(&self) -> impl Iterator<Item = &str> {
        let speech = self.speech.iter().map(|speech| speech.name.as_str());
        speech.chain(self.chats_at_start().map(|chat| chat.name.as_str()))
    }

    fn chats_at_start(&self) -> impl Iterator<Item = &Chat> {
        self.chats.iter().filter(|held| held.load == LoadAt::Start).map(|held| &held.chat)
    }

    pub(super) async fn shutdown(&self) {
        self.teams.detached.end().await;
        if let Some(speech) = &self.speech {
            speech.worker.shutdown().await;
        }
        if let Some(hearing) = &self.hearing {
            hearing.worker.shutdown().await;
        }
        join_all(self.chats.iter().map(|held| held.chat.worker.shutdown())).await;
        self.pulled.shutdown().await;
    }
}

/// `None`, with a note, if the model is not stored.
fn present<T>(started: CliResult<T>, app: &App<'_>) -> CliResult<Option<T>> {
    match started {
        Ok(started) => Ok(Some(started)),
        Err(failure) if failure.exit == Exit::ModelMissing => {
            app.printer.note(&failure.sentence);
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

async fn load(name: &str, loading: impl Future<Output = Result<(), ModelError>>, app: &App<'_>) {
    let started = Instant::now();
    app.printer.note(format_args!("loading {name}"));
    match loading.await {
        Ok(()) => {
            let ready_ms = started.elapsed().as_millis();
            app.printer.note(format_args!("{name} is ready after {ready_ms} ms"));
        }
        Err(error) => {
            let failure = Failure::from(error).hint("hob retries; run `hob doctor` for details");
            app.printer.failure(&failure);
        }
    }
}

fn announce(listener: &TcpListener, app: &App<'_>) -> CliResult<()> {
    let listen = listener.local_addr().map_err(|error| {
        Failure::io("cannot read the address that the server listens on", &error)
    })?;
    let remote = Remote::here(listen, None);
    app.printer
        .data(format_args!("hob listens on {0}/ (OpenAI clients: {0}/v1)", remote.base()))?;
    if !listen.ip().to_canonical().is_loopback() {
        app.printer.note(format_args!("other machines can connect to port {}", listen.port()));
        if app.settings.server.tls != TlsSettings::Off
            && let Some(address) = wire_up::network_address()
        {
            app.printer.note(format_args!(
                "from this network: https://{}/",
                SocketAddr::new(address, listen.port())
            ));
        }
    }
    Ok(())
}

/// Checked before anything is loaded or bound.
fn check_exposure(app: &App<'_>) -> CliResult<()> {
    let server = &app.settings.server;
    exposure(app, server.api_key.read()?.is_some() || !app.written.config.keys.is_empty())
}

fn exposure(app: &App<'_>, has_key: bool) -> CliResult<()> {
    let server = &app.settings.server;
    // A public key protects nothing.
    let has_key = has_key && !server.pipelines.accepts_default_key;
    for listen in std::iter::once(server.listen).chain(server.pipelines.listen) {
        hob_server::check_exposure(listen.0, has_key, server.allow_remote).map_err(|exposed| {
            Failure::usage(exposed)
                .hint("set HOB_API_KEY, or add --allow-remote if you trust the network")
        })?;
    }
    Ok(())
}

async fn bind(listen: SocketAddr, settings: &Settings) -> CliResult<TcpListener> {
    match TcpListener::bind(listen).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Err(taken(listen, settings).await)
        }
        Err(error) => {
            Err(Failure::server(format!("cannot listen on {listen}: {error}")).hint(remedy(&error)))
        }
    }
}

async fn taken(listen: SocketAddr, settings: &Settings) -> Failure {
    let key = settings.server.api_key.read().ok().flatten();
    let another_hob = Remote::here(listen, key).models().await.is_ok();
    let owner = match (another_hob, port_owner::find(listen)) {
        (true, Some(owner)) => format!("another hob, {owner}"),
        (true, None) => "another hob".to_owned(),
        (false, Some(owner)) => owner,
        (false, None) => "another program".to_owned(),
    };
    let next = listen.port().checked_add(1).unwrap_or(listen.port() - 1);
    Failure::server(format!("{listen} is in use by {owner}")).hint(format!(
        "stop it, or choose another port: hob serve --listen {}",
        SocketAddr::new(listen.ip(), next)
    ))
}
