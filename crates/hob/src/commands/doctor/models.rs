//! Checks every stored model against its checksums, and reports default models that are not stored.
//! Every file is read completely, because a disk can damage a file that exists.

use std::time::Instant;

use super::Check;
use crate::app::App;
use crate::model_store::{ModelStore, StoreRow, StoreState};

pub(super) fn checks(app: &App<'_>) -> Vec<Check> {
    let store = ModelStore::open(app);
    match store.entries() {
        Ok(entries) => entries.iter().map(|entry| check(entry, &store)).collect(),
        Err(failure) => vec![Check::failed("models", failure)],
    }
}

fn check(entry: &StoreRow, store: &ModelStore) -> Check {
    if entry.condition == StoreState::NotStored {
        let to_do = format!("hob pull {}", entry.name);
        return Check::fail(&entry.name, "it is not stored", to_do);
    }
    let started = Instant::now();
    match store.verify(&entry.name) {
        Ok(()) => {
            let took_ms = started.elapsed().as_millis();
            Check::ok(&entry.name, format!("all checksums match, read in {took_ms} ms"))
        }
        Err(failure) => Check::failed(&entry.name, failure),
    }
}
