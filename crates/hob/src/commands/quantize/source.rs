//! The file that a name stands for: a stored chat model, a GGUF file, or a folder with one model; and its hash.
//! A name that stands for none of them gets an error that says what is there.

use std::path::{Path, PathBuf};

use hob_models::Sha256;
use hob_models::find::models_in;
use hob_models::gguf::PartName;
use tokio::task::spawn_blocking;

use crate::failure::{CliResult, Failure};
use crate::model_store::ModelStore;

/// The first file of the model.
///
/// # Errors
/// There is no such model, or the folder does not have exactly one.
pub(super) fn file_of(name: &str, store: &ModelStore) -> CliResult<PathBuf> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(path.to_owned());
    }
    match store.chat_file(name) {
        Ok((file, _)) => Ok(file),
        Err(_) if path.is_dir() => only_model(path),
        Err(_) if is_file_name(name) => Err(Failure::usage(format!("there is no file '{name}'"))),
        Err(missing) => Err(missing),
    }
}

/// Whether the name can only be that of a file. `owner/name/model.gguf` is also a file of a hub's repository.
fn is_file_name(name: &str) -> bool {
    let is_gguf = Path::new(name).extension().is_some_and(|end| end == "gguf");
    is_gguf && (name.starts_with(['.', '/']) || !name.contains('/'))
}

/// # Errors
/// The folder cannot be read, or has no GGUF model or several.
fn only_model(folder: &Path) -> CliResult<PathBuf> {
    let shown = folder.display();
    let models = models_in(folder);
    let models = models.map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    match &models[..] {
        [only] => Ok(folder.join(only)),
        [] => Err(Failure::usage(format!("the folder {shown} has no GGUF model")).hint(
            "hob quantizes GGUF files; llama.cpp's convert_hf_to_gguf.py makes one from safetensors",
        )),
        all => Err(Failure::usage(format!("the folder {shown} has {} models", all.len()))
            .hint(format!("name one of {}", all.join(", ")))),
    }
}

/// All files of a model, from its first.
pub(super) fn parts_of(first: &Path) -> Vec<PathBuf> {
    let name = first.file_name().and_then(|name| name.to_str());
    match name.and_then(PartName::parse) {
        Some(part) => part.all().map(|name| first.with_file_name(name)).collect(),
        None => vec![first.to_owned()],
    }
}

/// The hash of files, one after the other. On a thread of its own, so that Ctrl-C ends hob also while a large file is
/// read.
///
/// # Errors
/// A file cannot be read.
pub(super) async fn hash_of(files: Vec<PathBuf>) -> CliResult<Sha256> {
    let hash = spawn_blocking(move || Sha256::of_files(&files)).await;
    hash.map_err(Failure::internal)?.map_err(Failure::internal)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn a_model_is_hashed_with_all_its_parts_and_ctrl_c_need_not_wait_for_that() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] =
            ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"].map(|name| folder.path().join(name));
        std::fs::write(&first, "one, ").expect("a file");
        let made = Command::new("mkfifo").arg(&second).status().expect("mkfifo");
        assert!(made.success());
        let mut hash = pin!(hash_of(parts_of(&first)));
        assert!(futures::poll!(&mut hash).is_pending(), "the second part has no bytes yet");
        std::fs::write(&second, "two").expect("hob reads the FIFO");
        assert_eq!(hash.await, Ok(Sha256::of(b"one, two")));
        assert_eq!(parts_of(Path::new("a/m.gguf")), [Path::new("a/m.gguf")]);
    }

    #[test]
    fn a_folder_stands_for_its_only_model() {
        let home = tempfile::tempdir().expect("a folder");
        let store = ModelStore::in_home(&home.path().join("hob"));
        let folder = home.path().join("weights");
        std::fs::create_dir(&folder).expect("a folder");
        let asked = folder.display().to_string();
        let add = |name: &str| std::fs::write(folder.join(name), "").expect("a file");
        add("model.safetensors");
        let refused = file_of(&asked, &store).expect_err("no model");
        assert!(refused.sentence.ends_with("weights has no GGUF model"), "{}", refused.sentence);
        assert!(refused.hint.is_some_and(|hint| hint.contains("safetensors")));
        add("mmproj-F16.gguf");
        add("b-00002-of-00002.gguf");
        add("b-00001-of-00002.gguf");
        let found = file_of(&asked, &store).expect("one model in two files");
        assert_eq!(found, folder.join("b-00001-of-00002.gguf"));
        add("a.gguf");
        let refused = file_of(&asked, &store).expect_err("two models");
        assert!(refused.sentence.ends_with("weights has 2 models"), "{}", refused.sentence);
        let hint = refused.hint.expect("their names");
        assert_eq!(hint, "name one of a.gguf, b-00001-of-00002.gguf");
    }

    #[test]
    fn a_file_that_is_not_there_is_no_model_to_pull() {
        let home = tempfile::tempdir().expect("a folder");
        let store = ModelStore::in_home(home.path());
        for name in ["missing.gguf", "./sub/missing.gguf"] {
            let refused = file_of(name, &store).expect_err("no file");
            assert_eq!(refused.sentence, format!("there is no file '{name}'"));
        }
        let of_hub = file_of("owner/name/model.gguf", &store).expect_err("not stored");
        assert!(of_hub.sentence.contains("not stored"), "{}", of_hub.sentence);
    }
}
