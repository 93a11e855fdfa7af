//! Tests on the real weights: is it the right voice, and do windows sound like the whole?
//! They need the models and the oracle that `make test` installs, and say so if these are missing.

mod agreement;
mod residual;
mod voice_statistics;
mod windows;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Mutex;

use hob_core::locked;
use hob_models::Sha256;

use super::{Kokoro, KokoroOptions, files};
use crate::test_home;

/// The stored model of the test home.
fn stored() -> PathBuf {
    test_home::stored("kokoro")
}

/// Models that no test uses now. A load takes seconds, and some tests only look at the model.
static UNUSED: Mutex<Vec<Kokoro>> = Mutex::new(Vec::new());

/// A model that a test leaves to the next one.
struct Lent(Option<Kokoro>);

impl Deref for Lent {
    type Target = Kokoro;

    fn deref(&self) -> &Kokoro {
        self.0.as_ref().expect("it is there until the end")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Kokoro {
        self.0.as_mut().expect("it is there until the end")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        locked(&UNUSED).extend(self.0.take());
    }
}

/// With one thread, because as many tests run at the same time as there are cores. Two threads take a sixth more processor time.
fn kokoro() -> Lent {
    let unused = locked(&UNUSED).pop();
    Lent(Some(unused.unwrap_or_else(|| kokoro_on(1))))
}

fn kokoro_on(threads: usize) -> Kokoro {
    Kokoro::load(&stored(), KokoroOptions { threads }).expect("the stored model loads")
}

#[test]
fn a_model_with_a_changed_byte_in_a_voice_is_not_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let voice = format!("{}/af_heart.bin", files::VOICES);
    let manifest = serde_json::json!({
        "format": 1, "name": "kokoro", "title": "Kokoro", "version": "1", "licences": [],
        "sources": [], "transform_version": 1,
        "files": [{"path": voice, "bytes": 5, "sha256": Sha256::of(b"hello")}],
    });
    std::fs::create_dir(folder.path().join(files::VOICES)).expect("a folder");
    std::fs::write(folder.path().join("model.json"), manifest.to_string()).expect("written");
    std::fs::write(folder.path().join(&voice), "hellO").expect("written");
    let damaged = Kokoro::load(folder.path(), KokoroOptions { threads: 1 }).expect_err("damaged");
    assert!(damaged.to_string().contains("af_heart.bin has the SHA-256 "), "{damaged}");
}
