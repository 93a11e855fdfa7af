//! The pulled chat models of a running server: each has its own worker, which is loaded for its first
//! request. The server watches the store, so `hob pull` and `hob models rm` need no restart.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use hob_core::{RegisteredModel, locked, task};
use hob_models::StoredForm;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::app::App;
use crate::failure::CliResult;
use crate::model_store::{DICTIONARIES, ModelStore};
use crate::settings::ModelChoice;
use crate::wire_up::{Chat, Memory};

/// Interval between two checks of the store, which list two folders.
const EVERY: Duration = Duration::from_secs(1);

/// How long the answers of a removed model may take to end.
const ANSWERS_MAX: Duration = Duration::from_secs(600);

/// See the head of this file.
pub(crate) struct PulledModels<'a> {
    app: &'a App<'a>,
    store: ModelStore,
    memory: Arc<Memory>,
    /// Stored names that the configuration serves itself.
    configured: BTreeSet<String>,
    models: Mutex<BTreeMap<String, Pulled>>,
    changed: Notify,
}

/// One stored model. The same name with another form is another model.
struct Pulled {
    form: StoredForm,
    /// `None`: its file cannot be used; this was reported once.
    chat: Option<(Chat, Arc<RegisteredModel<task::Chat>>)>,
}

impl fmt::Debug for PulledModels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PulledModels").field("names", &self.names()).finish_non_exhaustive()
    }
}

impl<'a> PulledModels<'a> {
    /// Finds the stored models. Must be called inside a tokio runtime.
    pub(crate) fn start(app: &'a App<'a>, memory: Arc<Memory>) -> PulledModels<'a> {
        let store = ModelStore::open(app);
        let settings = &app.settings;
        let choices =
            settings.models.values().map(|chat| &chat.model).chain([&settings.chat.model]);
        let stored = choices.filter_map(|choice| match choice {
            ModelChoice::Named(name) => Some(store.stored_name(name)),
            ModelChoice::File(_) => None,
        });
        // A name that the configuration gives to another model is taken too.
        let names = settings.models.keys().cloned().chain([settings.chat.model.name()]);
        let configured = stored.chain(names).collect();
        let (models, changed) = (Mutex::default(), Notify::new());
        let pulled = PulledModels { app, store, memory, configured, models, changed };
        pulled.look();
        pulled
    }

    pub(crate) fn targets(&self) -> Vec<Arc<RegisteredModel<task::Chat>>> {
        let models = self.models();
        models.values().filter_map(|one| Some(Arc::clone(&one.chat.as_ref()?.1))).collect()
    }

    /// The models that can be used.
    pub(crate) fn chats(&self) -> Vec<Chat> {
        let models = self.models();
        models.values().filter_map(|one| Some(one.chat.as_ref()?.0.clone())).collect()
    }

    fn names(&self) -> Vec<String> {
        self.models().keys().cloned().collect()
    }

    /// Resolves when the set of models has changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Watches the store for as long as it is polled.
    pub(crate) async fn follow(&self) -> Infallible {
        let mut leaving: FuturesUnordered<_> = std::iter::empty().map(leave).collect();
        loop {
            tokio::select! {
                () = sleep(EVERY) => {}
                Some(()) = leaving.next() => continue,
            }
            let (left, is_changed) = self.look();
            if is_changed {
                self.changed.notify_one();
                leaving.extend(left.into_iter().map(leave));
            }
        }
    }

    pub(crate) async fn shutdown(&self) {
        let models = std::mem::take(&mut *self.models());
        end(models.into_values().collect()).await;
    }

    /// The removed models, and whether anything has changed.
    fn look(&self) -> (Vec<Pulled>, bool) {
        let mut stored = self.store.forms_by_name();
        stored.retain(|name, _| !self.configured.contains(name));
        let mut models = self.models();
        let is_gone = |name: &String, one: &Pulled| stored.get(name) != Some(&one.form);
        let gone: Vec<String> = models
            .iter()
            .filter(|(name, one)| is_gone(name, one))
            .map(|(name, _)| name.clone())
            .collect();
        let left: Vec<Pulled> = gone.iter().filter_map(|name| models.remove(name)).collect();
        let mut is_changed = !left.is_empty();
        stored.retain(|name, _| !models.contains_key(name));
        for (name, form) in stored {
            let chat = self.chat(&name);
            is_changed |= chat.is_some() || is_dictionary(&name);
            models.insert(name, Pulled { form, chat });
        }
        (left, is_changed)
    }

    /// `None` for models that do not chat, and for files that cannot be used.
    fn chat(&self, name: &str) -> Option<(Chat, Arc<RegisteredModel<task::Chat>>)> {
        if !self.store.chat_names().iter().any(|chat| chat == name) {
            return None;
        }
        let settings = self.app.settings.chat.pulled(name);
        let started: CliResult<Chat> = Chat::start_in(&self.memory, name, &settings, self.app);
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
        // A panic cannot leave a partial entry in the table.
        locked(&self.models)
    }
}

/// Whether voices need this stored name. The lists of voices change with it.
fn is_dictionary(name: &str) -> bool {
    DICTIONARIES.iter().any(|(_, dictionary)| *dictionary == name)
}

/// Ends a removed model after its answers.
async fn leave(model: Pulled) {
    let Some((chat, _)) = &model.chat else { return };
    // Waits until no new request can reach it.
    sleep(EVERY).await;
    let idle = async {
        while !chat.worker.unload_if_idle().await {
            sleep(EVERY).await;
        }
    };
    // The answers that are left are cut.
    let _is_idle = timeout(ANSWERS_MAX, idle).await;
    chat.worker.shutdown().await;
}

async fn end(models: Vec<Pulled>) {
    let chats = models.iter().filter_map(|one| one.chat.as_ref());
    join_all(chats.map(|(chat, _)| chat.worker.shutdown())).await;
}
