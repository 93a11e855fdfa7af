//! The settings of the test environment, and the models that `make models` has stored for tests.
//! Tests of this crate share it, also those in `tests`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, fs};

#[expect(clippy::disallowed_methods, reason = "tests have no settings to read it for them")]
pub(crate) fn optional_setting(name: &str) -> Option<OsString> {
    env::var_os(name)
}

pub(crate) fn setting(name: &str) -> PathBuf {
    let set = optional_setting(name).map(PathBuf::from);
    set.ok_or_else(|| format!("{name} is not set: `make test` sets it")).expect("a setting")
}

/// A folder of a model in the test home. Most models have only one.
pub(crate) fn stored(model: &str) -> PathBuf {
    let models = setting("HOB_TEST_HOME").join("models").join(model);
    let mut entries = fs::read_dir(&models).into_iter().flatten().flatten();
    let folder = entries.find_map(|entry| Some(entry.path()).filter(|path| path.is_dir()));
    folder
        .ok_or_else(|| format!("no model in {}: run `make models`", models.display()))
        .expect("a stored model")
}

pub(crate) fn smollm2() -> PathBuf {
    let mut files = fs::read_dir(stored("smollm2")).expect("a folder").flatten();
    let is_model = |path: &PathBuf| path.extension().is_some_and(|end| end == "gguf");
    files.find_map(|file| Some(file.path()).filter(is_model)).expect("a model")
}
