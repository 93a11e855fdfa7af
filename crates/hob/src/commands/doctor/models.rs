//! Checks every stored model against its checksums, and reports default models that are not stored.
//! Every file is read completely, because a disk can damage a file that exists.

use std::time::Instant;

use tokio::task::spawn_blocking;

use super::Check;
use crate::app::App;
use crate::failure::{CliResult, Failure};
use crate::model_store::{ModelStore, StoreRow, StoreState};

/// On a thread of its own, so that Ctrl-C ends hob also while a large file is read.
pub(super) async fn checks(app: &App<'_>) -> Vec<Check> {
    let store = ModelStore::open(app);
    let checking = spawn_blocking(move || -> CliResult<Vec<Check>> {
        Ok(store.entries()?.iter().map(|entry| check(entry, &store)).collect())
    });
    let checked = checking.await.unwrap_or_else(|error| Err(Failure::internal(error)));
    checked.unwrap_or_else(|failure| vec![Check::failed("models", failure)])
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
