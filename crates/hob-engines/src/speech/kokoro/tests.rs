//! Tests on the real weights: is it the right voice, and do windows sound like the whole?
//! They need the models and the oracle that `make test` installs, and say so if these are missing.

mod agreement;
mod voice_statistics;
mod windows;

use std::env;
use std::path::PathBuf;

use super::{Kokoro, KokoroOptions};

/// The stored model of the test home.
fn stored() -> PathBuf {
    let home = setting("HOB_TEST_HOME");
    let models = home.join("models/kokoro");
    let folder = std::fs::read_dir(&models)
        .ok()
        .and_then(|entries| entries.flatten().map(|entry| entry.path()).find(|path| path.is_dir()));
    folder.unwrap_or_else(|| panic!("no model in {}: run `make models`", models.display()))
}

/// With one thread, because as many tests run at the same time as there are cores. Two threads take a sixth more processor time.
fn kokoro() -> Kokoro {
    kokoro_on(1)
}

fn kokoro_on(threads: usize) -> Kokoro {
    Kokoro::load(&stored(), KokoroOptions { threads }).expect("the stored model loads")
}

#[expect(clippy::disallowed_methods, reason = "tests have no settings to read it for them")]
fn setting(name: &str) -> PathBuf {
    let set = env::var_os(name).map(PathBuf::from);
    set.unwrap_or_else(|| panic!("{name} is not set: `make test` sets it"))
}
