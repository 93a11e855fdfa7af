//! The chat models that were pulled, as a running server has them: each in a worker of its own, loaded for its first
//! request. The store is looked at while the server runs, so that `hob pull` and `hob models rm` need no restart.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use hob_core::{RegisteredModel, task};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::app::App;
use crate::failure::Outcome;
use crate::settings::ModelChoice;
use crate::shelf::Shelf;
use crate::wire_up::{Chat, Memory};

/// Between two looks at the store: two folders are listed.
const EVERY: Duration = Duration::from_secs(1);

/// See the file's head.
pub(crate) struct PulledModels<'a> {
    app: &'a App<'a>,
    shelf: Shelf,
    memory: Arc<Memory>,
    /// Stored names that the configuration serves itself.
    configured: BTreeSet<String>,
    models: Mutex<BTreeMap<String, Pulled>>,
    changed: Notify,
}

/// One stored model. The same name with another folder is another model.
struct Pulled {
    folder: PathBuf,
    /// None: its file cannot be used, which was said once.
    chat: Option<(Chat, Arc<RegisteredModel<task::Chat>>)>,
}

impl fmt::Debug for PulledModels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PulledModels").field("names", &self.names()).finish_non_exhaustive()
    }
}

impl<'a> PulledModels<'a> {
    /// Those that are here now. Called inside a tokio runtime.
    pub(crate) fn start(app: &'a App<'a>, memory: Arc<Memory>) -> PulledModels<'a> {
        let shelf = Shelf::open(app);
        let settings = &app.settings;
        let choices =
            settings.models.values().map(|chat| &chat.model).chain([&settings.chat.model]);
        let stored = choices.filter_map(|choice| match choice {
            ModelChoice::Named(name) => Some(shelf.meant(name)),
            ModelChoice::File(_) => None,
        });
        // A name that the configuration gives to another model is not free either.
        let names = settings.models.keys().cloned().chain([settings.chat.model.name()]);
        let configured = stored.chain(names).collect();
        let (models, changed) = (Mutex::default(), Notify::new());
        let pulled = PulledModels { app, shelf, memory, configured, models, changed };
        pulled.look();
        pulled
    }

    pub(crate) fn targets(&self) -> Vec<Arc<RegisteredModel<task::Chat>>> {
        let models = self.models();
        models.values().filter_map(|one| Some(Arc::clone(&one.chat.as_ref()?.1))).collect()
    }

    /// Those that can be used.
    pub(crate) fn chats(&self) -> Vec<Chat> {
        let models = self.models();
        models.values().filter_map(|one| Some(one.chat.as_ref()?.0.clone())).collect()
    }

    fn names(&self) -> Vec<String> {
        self.models().keys().cloned().collect()
    }

    /// Resolves when there are others than before.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Looks at the store for as long as it is polled.
    pub(crate) async fn follow(&self) -> Infallible {
        loop {
            sleep(EVERY).await;
            let (left, is_changed) = self.look();
            if is_changed {
                self.changed.notify_one();
                // Until nobody is led to those that are gone.
                sleep(EVERY).await;
                end(left).await;
            }
        }
    }

    pub(crate) async fn shutdown(&self) {
        let models = std::mem::take(&mut *self.models());
        end(models.into_values().collect()).await;
    }

    /// Those that are gone, and whether anything is another than before.
    fn look(&self) -> (Vec<Pulled>, bool) {
        let mut stored = self.shelf.forms();
        stored.retain(|name, _| !self.configured.contains(name));
        let mut models = self.models();
        let is_gone = |name: &String, one: &Pulled| stored.get(name) != Some(&one.folder);
        let gone: Vec<String> = models
            .iter()
            .filter(|(name, one)| is_gone(name, one))
            .map(|(name, _)| name.clone())
            .collect();
        let left: Vec<Pulled> = gone.iter().filter_map(|name| models.remove(name)).collect();
        let mut is_changed = !left.is_empty();
        stored.retain(|name, _| !models.contains_key(name));
        for (name, folder) in stored {
            let chat = self.chat(&name);
            is_changed |= chat.is_some();
            models.insert(name, Pulled { folder, chat });
        }
        (left, is_changed)
    }

    /// None of models that do something else, and of those that cannot be used.
    fn chat(&self, name: &str) -> Option<(Chat, Arc<RegisteredModel<task::Chat>>)> {
        if !self.shelf.chat_names().iter().any(|chat| chat == name) {
            return None;
        }
        let settings = self.app.settings.chat.pulled(name);
        let started: Outcome<Chat> = Chat::start_in(&self.memory, name, &settings, self.app);
        match started {
            Ok(chat) => {
                let model = Arc::new(chat.registered(&settings));
                Some((chat, model))
            }
            Err(failure) => {
                self.app.printer.note(format_args!("{name} is left out: {failure}"));
                None
            }
        }
    }

    fn models(&self) -> MutexGuard<'_, BTreeMap<String, Pulled>> {
        // A panic leaves no model half in the table.
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn end(models: Vec<Pulled>) {
    let chats = models.iter().filter_map(|one| one.chat.as_ref());
    join_all(chats.map(|(chat, _)| chat.worker.shutdown())).await;
}
