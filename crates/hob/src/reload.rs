//! The configuration, read anew when its file changes: whole or not at all.
//! Aliases, upstreams and keys follow; requests that run keep what they began with. What needs another
//! start of hob is said, and waits for it.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hob_core::Registry;
use hob_server::{KeyOptions, ReloadableState};
use hob_upstream::Gateway;
use tokio::time::sleep;

use crate::app::App;
use crate::config::{ConfigFile, Fingerprint, Written, fingerprint};
use crate::failure::{Failure, Outcome};
use crate::pulled::PulledModels;

/// Between two looks at the file: a change is in force within a second.
const EVERY: Duration = Duration::from_millis(300);

/// What a server needs to follow its configuration.
pub(crate) struct Following<'a> {
    pub(crate) app: &'a App<'a>,
    pub(crate) live: ReloadableState,
    /// In force.
    pub(crate) gateway: Arc<Gateway>,
    /// A key has been asked for since the start, or since a change of the file.
    pub(crate) has_keys: bool,
    /// Told when the first key comes.
    pub(crate) on_first_key: &'a (dyn Fn() + Sync),
    /// Models come and go while it runs.
    pub(crate) pulled: &'a PulledModels<'a>,
    /// Makes the rest of it anew.
    pub(crate) renew: &'a (dyn Fn(&Written, &Gateway) -> Outcome<Renewed> + Sync),
}

/// A configuration that is right.
pub(crate) struct Renewed {
    pub(crate) registry: Registry,
    pub(crate) keys: Vec<KeyOptions>,
    pub(crate) gateway: Arc<Gateway>,
}

/// Resolves when the file is another than it was. An editor may take the old one away before it puts the
/// new one there, and some write it piece by piece: a file that is not there is no other one, and one that
/// still changes is not read yet.
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

impl Following<'_> {
    /// Keeps other servers' lists fresh and looks at the file, for as long as it is polled.
    pub(crate) async fn follow(mut self) -> Infallible {
        let mut written = self.app.written.clone();
        let mut seen = written.seen;
        loop {
            let gateway = Arc::clone(&self.gateway);
            let (path, change) = tokio::select! {
                never = gateway.watch() => match never {},
                change = changed(written.path.as_deref(), seen) => change,
                () = self.pulled.changed() => {
                    self.renewed(&written);
                    continue;
                }
            };
            seen = Some(change);
            match self.read(&path) {
                Ok((new, renewed)) => {
                    seen = new.seen;
                    self.told(&written.config, &new.config);
                    self.gateway = renewed.gateway;
                    if !renewed.keys.is_empty() && !self.has_keys {
                        self.has_keys = true;
                        (self.on_first_key)();
                    }
                    self.live.replace(renewed.registry, &renewed.keys);
                    written = new;
                }
                Err(failure) => {
                    self.app.printer.failure(&failure);
                    self.app.printer.note("the configuration before it stays in force");
                }
            }
        }
    }

    /// The same configuration with the models that are here now.
    fn renewed(&mut self, written: &Written) {
        match (self.renew)(written, &self.gateway) {
            // The file of a key may be gone: what it closed stays closed.
            Ok(renewed) if self.has_keys && renewed.keys.is_empty() => {
                self.app.printer.note("the keys are gone, so pulled models wait for another start");
            }
            Ok(renewed) => {
                self.gateway = renewed.gateway;
                self.live.replace(renewed.registry, &renewed.keys);
                self.app.printer.note("the models that were pulled changed, and are in force");
            }
            Err(failure) => self.app.printer.failure(&failure),
        }
    }

    fn read(&self, path: &Path) -> Outcome<(Written, Renewed)> {
        let written = Written::read(Some(path), &self.app.environment.folders)?;
        let renewed = (self.renew)(&written, &self.gateway)?;
        if self.has_keys && renewed.keys.is_empty() {
            return Err(Failure::usage(format!("{} has no keys any more", path.display()))
                .hint("a file may be half written; to serve without keys, start hob again"));
        }
        Ok((written, renewed))
    }

    /// What changed, and what of it waits for another start.
    fn told(&self, old: &ConfigFile, new: &ConfigFile) {
        let tables = [
            ("home", old.home != new.home),
            ("[server]", old.server != new.server),
            ("[speech]", old.speech != new.speech),
            ("[chat]", old.chat != new.chat),
            ("[memory]", old.memory != new.memory),
            ("[model]", old.model != new.model),
            ("[ledger]", old.ledger != new.ledger),
            ("[dev]", old.dev != new.dev),
        ];
        let waiting: Vec<&str> =
            tables.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect();
        let printer = self.app.printer;
        printer.note("the configuration changed, and is in force");
        if !waiting.is_empty() {
            printer.note(format_args!("start hob again for {}", waiting.join(", ")));
        }
    }
}
