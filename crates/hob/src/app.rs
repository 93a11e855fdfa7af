//! What every command gets: the flags, the environment, the file, and the settings made from them.
//! No command reads a file or the environment for its settings itself.

use std::path::PathBuf;

use hob_core::ModelLifecycle;

use crate::config::LoadedConfig;
use crate::failure::{CliResult, Failure};
use crate::globals::Globals;
use crate::printer::Printer;
use crate::programs;
use crate::settings::{Environment, Espeak, ModelChoice, Overrides, Settings};
use crate::signals::StopSignals;

#[derive(Debug)]
pub(crate) struct App<'a> {
    pub(crate) environment: Environment,
    pub(crate) written: LoadedConfig,
    pub(crate) settings: Settings,
    pub(crate) printer: &'a Printer,
}

impl<'a> App<'a> {
    /// # Errors
    /// The configuration cannot be read or has a mistake.
    pub(crate) fn open(
        globals: &Globals,
        flags: Overrides,
        printer: &'a Printer,
    ) -> CliResult<App<'a>> {
        let environment = Environment::read();
        let written = LoadedConfig::read(globals.config.as_deref(), &environment.folders)?;
        let flags = Overrides { home: globals.home.clone(), ..flags };
        let settings = Settings::resolve(&flags, &environment, &written)?;
        Ok(App { environment, written, settings, printer })
    }

    /// This app with another chat model: one of the configuration or of the catalog, or a file.
    pub(crate) fn with_chat_model(&self, model: &str) -> App<'a> {
        let folders = &self.environment.folders;
        let mut settings = self.settings.clone();
        match self.settings.models.get(model) {
            Some(configured) => settings.chat = configured.clone(),
            None => {
                settings.chat.model = ModelChoice::new(model, |path| folders.working.join(path));
            }
        }
        let (environment, written) = (self.environment.clone(), self.written.clone());
        App { environment, written, settings, printer: self.printer }
    }

    /// Whether other machines can reach this server, so that only keys protect it.
    pub(crate) fn reach(&self) -> Reach {
        let server = &self.settings.server;
        let mut all = std::iter::once(server.listen).chain(server.pipelines.listen);
        let is_loopback = all.all(|listen| listen.0.ip().to_canonical().is_loopback());
        let is_closed = is_loopback || server.allow_remote;
        if is_closed { Reach::Loopback } else { Reach::Network }
    }

    /// Loads a model, and shows that it loads.
    pub(crate) async fn load(&self, name: &str, model: &dyn ModelLifecycle) -> CliResult<()> {
        let loading = self.printer.spinner(format_args!("loading {name}"));
        let loaded = model.load().await;
        loading.finish_and_clear();
        loaded.map_err(Failure::from)
    }

    /// The espeak-ng to ask, if it is wanted and installed.
    pub(crate) fn espeak(&self) -> Option<PathBuf> {
        match &self.settings.speech.espeak {
            Espeak::Never => None,
            Espeak::Program(program) => programs::find(program, &self.environment.path),
        }
    }
}

/// Whether keys protect the server from other machines, or only separate one user's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Other machines can reach this server, and only a key protects it.
    Network,
    /// No other machine can reach it, or only those of a network that the user trusts (`allow_remote`).
    Loopback,
}

/// Runs the asynchronous part of a command. Tasks that still run when it returns are stopped, not
/// awaited: a thread that still reads from a slow server must not keep the process alive.
pub(crate) fn block_on<T>(future: impl Future<Output = CliResult<T>>) -> CliResult<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot start threads", &error))?;
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}

/// Runs the asynchronous part of a command until Ctrl-C or SIGTERM, which drop it.
pub(crate) fn run_until_stopped<T>(work: impl Future<Output = CliResult<T>>) -> CliResult<T> {
    block_on(async { StopSignals::listen()?.or(work).await })
}
