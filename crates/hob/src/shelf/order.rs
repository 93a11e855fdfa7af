//! From what somebody types behind `hob pull` to a model on the disk: found first, then fetched.
//! Everything here blocks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hob_core::fit::Model;
use hob_models::catalog::names::canonical;
use hob_models::catalog::{self, Part, Purpose};
use hob_models::{
    Arrival, Fetcher, FindError, Located, Progress, PullOptions, Pulled, Puller, SourceKind, Watch,
};

use super::{MB, Shelf};
use crate::failure::{Failure, Outcome};
use crate::finding;
use crate::storing::transform_for;

/// What is to be fetched, as it was typed.
#[derive(Clone, Debug)]
pub(crate) struct OrderOptions {
    /// A name, a repository, an Ollama tag, an address, a path.
    pub(crate) asked: String,
    /// The name that it is stored under, if not the usual one.
    pub(crate) name: Option<String>,
    /// Instead of all sources.
    pub(crate) from: Option<PathBuf>,
    /// Only this kind of source.
    pub(crate) only: Option<SourceKind>,
    /// Looked at between two chunks.
    pub(crate) cancel: Arc<AtomicBool>,
}

/// A model that can be fetched: its files are found, and their headers read.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) entry: catalog::Entry,
    /// None of what is not a chat model, and of the catalog's own.
    pub(crate) model: Option<Model>,
    pub(crate) notes: Vec<String>,
    /// It is here, and no source could be asked for a newer one.
    is_offline: bool,
}

impl Shelf {
    /// Finds what is wished for, wherever it is. Blocks.
    ///
    /// # Errors
    /// It is found nowhere, is not for this hob, or is the owner's to give.
    pub(crate) fn order(&self, options: &OrderOptions) -> Outcome<Order> {
        let name = canonical(&options.asked);
        if let (Ok(entry), None) = (self.catalog.find(&name), &options.name) {
            let (entry, notes) = (entry.clone(), Vec::new());
            return Ok(Order { entry, model: None, notes, is_offline: false });
        }
        let (asked, stored_as) = match &options.from {
            Some(path) => {
                (path.display().to_string(), Some(options.name.as_ref().unwrap_or(&name)))
            }
            None => (options.asked.clone(), options.name.as_ref()),
        };
        match self.finder.locate(&asked, stored_as.map(String::as_str)) {
            Ok(Located { entry, model, notes }) => {
                self.check_name(&entry)?;
                Ok(Order { entry, model: Some(model), notes, is_offline: false })
            }
            Err(error) if error.is_of_network() => {
                self.here(&self.store.meant(&options.asked)).ok_or_else(|| not_found(error))
            }
            Err(error) => Err(not_found(error)),
        }
    }

    /// What the catalog pins is fetched as the catalog says, and by no other way.
    fn check_name(&self, entry: &catalog::Entry) -> Outcome<()> {
        match self.catalog.find(&entry.name) {
            Err(_) => Ok(()),
            Ok(_) => Err(Failure::usage(format!("'{}' is the name of another model", entry.name))
                .hint("give it a name of its own: hob pull … --as NAME")),
        }
    }

    /// As it is stored, where no source can be asked.
    fn here(&self, name: &str) -> Option<Order> {
        let stored = self.store.find(name).ok()?;
        let entry = catalog::Entry {
            name: name.to_owned(),
            title: stored.manifest.title.clone(),
            purpose: Purpose::Chat,
            version: stored.manifest.version.clone(),
            licences: stored.licences().to_vec(),
            parts: Vec::new(),
        };
        let note = "no source can be reached, so whether there is a newer version is not known";
        Some(Order { entry, model: None, notes: vec![note.to_owned()], is_offline: true })
    }

    /// Whether it is here in exactly this version.
    pub(crate) fn has(&self, order: &Order) -> bool {
        let stored = self.store.find(&order.entry.name);
        stored.is_ok_and(|stored| stored.manifest.version == order.entry.version)
    }

    /// What fetching would do, for people.
    pub(crate) fn plan(&self, order: &Order) -> String {
        let entry = &order.entry;
        let name = &entry.name;
        if self.has(order) {
            let source = self.origin(name).unwrap_or_default();
            return format!("{name} is here already, from {source}");
        }
        let parts: Vec<String> = entry.parts.iter().map(plan_of).collect();
        let megabytes = entry.bytes().div_ceil(MB);
        let place = self.place().display();
        format!("{name}: {megabytes} MB into {place}\n{}", parts.join("\n"))
    }

    /// Whether the disk has room for it.
    pub(crate) fn check_room(&self, order: &Order) -> Outcome<()> {
        match self.has(order) {
            true => Ok(()),
            false => Ok(self.store.check_room(&order.entry)?),
        }
    }

    /// Fetches, verifies and stores what is not here yet. Blocks.
    pub(crate) fn pull(
        &self,
        order: &Order,
        options: &OrderOptions,
        tell: &mut dyn FnMut(Progress),
    ) -> Outcome<Pulled> {
        let entry = &order.entry;
        let mut watch = Watch::new(tell, &options.cancel);
        if order.is_offline {
            let model = self.store.find(&entry.name)?;
            self.store.verify(&model, &mut watch)?;
            return Ok(Pulled { model, arrival: Arrival::WasHere });
        }
        // What was located has its path in its only source.
        let from = options.from.clone().filter(|_| order.model.is_none());
        let options = PullOptions { from, only: options.only.into_iter().collect() };
        let (hub, token) = (self.finder.hub.clone(), self.finder.token.clone());
        let fetcher = Fetcher { hub, token, ..Fetcher::default() };
        let puller = Puller { store: &self.store, fetcher: &fetcher, options: &options };
        let storing = transform_for(entry.purpose, self.threads)?;
        Ok(puller.pull(entry, &*storing, &mut watch)?)
    }
}

fn plan_of(part: &Part) -> String {
    let sources = part
        .sources
        .iter()
        .map(|source| format!("  {}, {} MB", source, source.bytes().div_ceil(MB)));
    format!("{}, from the first of\n{}", part.name, sources.collect::<Vec<_>>().join("\n"))
}

fn not_found(error: FindError) -> Failure {
    match error {
        FindError::Unknown { .. } => finding::failure(error)
            .hint("`hob models` lists names; hob pull also takes owner/name:Q4_K_M of the hub, Ollama's tags, addresses and files"),
        error => finding::failure(error),
    }
}
