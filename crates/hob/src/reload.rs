//! Reads the configuration again when its file or a file with a key changes, completely or not at all.
//! Aliases, upstreams, `[defaults]`, prices, keys and pronunciations change at once; running requests keep the old ones.
//! Other changes need a restart, and hob says so.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hob_core::Registry;
use hob_server::{KeyOptions, ReloadableState};
use hob_speech::Lexicon;
use hob_upstream::Gateway;
use tokio::time::sleep;

use crate::app::App;
use crate::config::{ConfigFile, Fingerprint, LoadedConfig, Named, SpeechSection, fingerprint};
use crate::failure::{CliResult, Failure};
use crate::pulled::PulledModels;
use crate::settings::gateway::secret_files;
use crate::teams::{RegistryModels, Teams};

/// Interval between two checks of the file: a change takes effect within a second.
const EVERY: Duration = Duration::from_millis(300);

/// Watches the configuration file of a running server.
pub(crate) struct ConfigWatcher<'a> {
    pub(crate) app: &'a App<'a>,
    pub(crate) live: ReloadableState,
    /// The gateway in use.
    pub(crate) gateway: Arc<Gateway>,
    /// Whether hob has had keys at any time since its start. It then never serves without keys.
    pub(crate) has_keys: bool,
    /// The files with the keys in use.
    pub(crate) key_files: KeyFiles,
    /// Called when the first key appears.
    pub(crate) on_first_key: &'a (dyn Fn() + Sync),
    /// Reports when models were pulled or removed.
    pub(crate) pulled: &'a PulledModels<'a>,
    /// Reports when a team file has changed.
    pub(crate) teams: &'a Teams,
    /// Gives the speech model its pronunciations, and teams their models.
    pub(crate) use_state: &'a (dyn Fn(Lexicon, Arc<RegistryModels>) + Sync),
    /// Turns a configuration into a new state, and changes nothing.
    pub(crate) renew: &'a (dyn Fn(&LoadedConfig, &Gateway) -> CliResult<NewState> + Sync),
}

/// What a valid configuration makes of the server.
pub(crate) struct NewState {
    pub(crate) registry: Registry,
    pub(crate) keys: Vec<KeyOptions>,
    pub(crate) key_files: KeyFiles,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) lexicon: Lexicon,
    pub(crate) team_models: Arc<RegistryModels>,
}

/// Files that hold keys, and their fingerprints before they were read.
pub(crate) type KeyFiles = Vec<(Option<Fingerprint>, PathBuf)>;

pub(crate) fn key_files(app: &App<'_>, written: &LoadedConfig) -> KeyFiles {
    let of_server = app.settings.server.api_key.file();
    let files = secret_files(written, &app.environment).into_iter().chain(of_server);
    files.map(|path| (fingerprint(&path), path)).collect()
}

/// Resolves when one of these files was added, changed or removed.
async fn keys_changed(files: &[(Option<Fingerprint>, PathBuf)]) {
    while files.iter().all(|(seen, path)| fingerprint(path) == *seen) {
        sleep(EVERY).await;
    }
}

/// What of `[speech]` needs a restart.
fn without_lexicon(config: &ConfigFile) -> SpeechSection {
    SpeechSection { lexicon: Named::new(), ..config.speech.clone() }
}

/// Resolves when the file has changed. An editor may remove the old file before it writes the new one, and some write
/// it piece by piece. So a missing file does not count as a change, and a file that still changes is not read yet.
async fn changed(path: Option<&Path>, seen: Option<Fingerprint>) -> (PathBuf, Fingerprint) {
    let Some(path) = path else { return std::future::pending().await };
    let mut last = seen;
    loop {
        sleep(EVERY).await;
        let now = fingerprint(path);
        match now {
            Some(changed) if now != seen && now == last => return (path.to_owned(), changed),
            _ => last = now,
        }
    }
}

impl ConfigWatcher<'_> {
    /// Refreshes the lists of other servers and watches the file, for as long as it is polled.
    pub(crate) async fn follow(mut self) -> Infallible {
        let mut written = self.app.written.clone();
        let mut seen = written.seen;
        // Those of a configuration that was refused: with one of them, it may be right.
        let mut refused_files = KeyFiles::new();
        loop {
            let gateway = Arc::clone(&self.gateway);
            let (path, change) = tokio::select! {
                never = gateway.watch() => match never {},
                change = changed(written.path.as_deref(), seen) => change,
                () = keys_changed(&self.key_files) => {
                    // Now, so that a file that cannot be used is reported once.
                    self.key_files = key_files(self.app, &written);
                    self.apply_again(&written, "a file with a key changed, and its key is now in use");
                    continue;
                }
                () = keys_changed(&refused_files) => {
                    refused_files.clear();
                    // The file is read again.
                    seen = None;
                    continue;
                }
                () = self.pulled.changed() => {
                    self.apply_again(&written, "the list of installed models changed and is now served");
                    continue;
                }
                () = self.teams.changed() => {
                    self.apply_again(&written, "the team files changed and are now served");
                    continue;
                }
            };
            seen = Some(change);
            match self.read(&path, &mut refused_files) {
                Ok((new, renewed)) => {
                    seen = new.seen;
                    self.report_changes(&new.config);
                    if !renewed.keys.is_empty() && !self.has_keys {
                        self.has_keys = true;
                        (self.on_first_key)();
                    }
                    self.apply(renewed);
                    written = new;
                }
                Err(failure) => {
                    self.app.printer.failure(&failure);
                    self.app.printer.note("hob keeps using the previous configuration");
                }
            }
        }
    }

    /// Applies the same configuration with the models and teams that are stored now.
    fn apply_again(&mut self, written: &LoadedConfig, note: &str) {
        match (self.renew)(written, &self.gateway) {
            // hob does not open the server to clients without a key.
            Ok(renewed) if self.has_keys && renewed.keys.is_empty() => {
                self.app.printer.note(
                    "the file has no keys any more; hob will serve the new models and teams after a restart",
                );
            }
            Ok(renewed) => {
                self.apply(renewed);
                self.app.printer.note(note);
            }
            Err(failure) => self.app.printer.failure(&failure),
        }
    }

    fn apply(&mut self, new: NewState) {
        (self.gateway, self.key_files) = (new.gateway, new.key_files);
        (self.use_state)(new.lexicon, new.team_models);
        self.live.replace(new.registry, &new.keys);
    }

    /// # Errors
    /// The configuration is refused. If it could be read, `refused_files` are its files with keys.
    fn read(
        &self,
        path: &Path,
        refused_files: &mut KeyFiles,
    ) -> CliResult<(LoadedConfig, NewState)> {
        refused_files.clear();
        let written = LoadedConfig::read(Some(path), &self.app.environment.folders)?;
        *refused_files = key_files(self.app, &written);
        let renewed = (self.renew)(&written, &self.gateway)?;
        if self.has_keys && renewed.keys.is_empty() {
            return Err(Failure::usage(format!("{} has no keys any more", path.display()))
                .hint("a file may be half written; to serve without keys, restart hob"));
        }
        refused_files.clear();
        Ok((written, renewed))
    }

    /// Reports what changed, and which tables differ from those that hob was started with.
    fn report_changes(&self, new: &ConfigFile) {
        let old = &self.app.written.config;
        let tables = [
            ("home", old.home != new.home),
            ("[server]", old.server != new.server),
            ("[speech]", without_lexicon(old) != without_lexicon(new)),
            ("[chat]", old.chat != new.chat),
            ("[transcription]", old.transcription != new.transcription),
            ("[realtime]", old.realtime != new.realtime),
            ("[wyoming]", old.wyoming != new.wyoming),
            ("[memory]", old.memory != new.memory),
            ("[model]", old.model != new.model),
            ("[ledger]", old.ledger != new.ledger),
            ("[dev]", old.dev != new.dev),
        ];
        let waiting: Vec<&str> =
            tables.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect();
        let printer = self.app.printer;
        printer.note("hob applied the new aliases, upstreams, keys and pronunciations");
        if !waiting.is_empty() {
            printer
                .note(format_args!("the change in {} needs a restart of hob", waiting.join(", ")));
        }
    }
}
