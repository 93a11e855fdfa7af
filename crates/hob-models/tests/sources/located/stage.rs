//! A hub, a store, and small models that the engine would load.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hob_models::gguf::sample::SampleGguf;
use hob_models::{
    ChatTransform, Fetcher, FindError, Finder, Located, Progress, PullError, PullOptions, Pulled,
    Puller, Store, Watch,
};
use tempfile::TempDir;

use super::hub::Hub;
use crate::LIMITS;

pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) hub: Hub,
    pub(crate) token: Option<String>,
    pub(crate) store: Store,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path().join("home"));
        Stage { hub: Hub::start(), token: None, store, folder }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn write(&self, below: &str, bytes: &[u8]) -> String {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, bytes).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn finder(&self) -> Finder {
        Finder {
            hub: self.hub.address.clone(),
            token: self.token.clone(),
            registry: Some(self.hub.address.clone()),
            ollama: Some(self.path("ollama")),
            store: Some(self.store.clone()),
            limits: LIMITS,
        }
    }

    pub(crate) fn locate(&self, asked: &str) -> Result<Located, FindError> {
        self.finder().locate(asked, None)
    }

    pub(crate) fn pull(&self, located: &Located) -> Result<Pulled, PullError> {
        self.pull_watched(located, &mut |_| false)
    }

    /// Pulls until `enough` returns true.
    pub(crate) fn pull_watched(
        &self,
        located: &Located,
        enough: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Pulled, PullError> {
        let cancel = AtomicBool::new(false);
        let mut tell = |progress: Progress| {
            if enough(&progress) {
                cancel.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        };
        let (hub, token) = (self.hub.address.clone(), self.token.clone());
        let fetcher = Fetcher { hub, token, limits: LIMITS, ..Fetcher::default() };
        let options = PullOptions::default();
        let puller = Puller { store: &self.store, fetcher: &fetcher, options: &options };
        puller.pull(&located.entry, &ChatTransform::default(), &mut Watch::new(&mut tell, &cancel))
    }

    pub(crate) fn fetch(&self, asked: &str) -> Pulled {
        let located = self.locate(asked).expect(asked);
        self.pull(&located).expect(asked)
    }

    pub(crate) fn refused(&self, asked: &str) -> String {
        self.locate(asked).expect_err(asked).to_string()
    }
}

/// A model as large as a few chunks, so that its download can be cut off in the middle.
pub(crate) fn model() -> Vec<u8> {
    SampleGguf::llama()
        .u32("general.file_type", 15)
        .text("general.license", "apache-2.0")
        .tensor("blk.0.padding.weight", &[32, 4_096])
        .bytes()
}

/// Another model, or another quant of the same.
pub(crate) fn other() -> Vec<u8> {
    SampleGguf::llama().u32("general.file_type", 7).bytes()
}

/// A model in two files.
pub(crate) fn parts() -> [Vec<u8>; 2] {
    let [first, second] = SampleGguf::llama_in_two();
    [first.u32("general.file_type", 15).bytes(), second.bytes()]
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file")
}
