//! The measured server: one that is already running or one that hob starts, with its engine and model.
//! hob restarts only a server that it started.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::import::values::quant;
use crate::launch::{Launch, LaunchError, Running};
use crate::record::{RecordedEngine, RecordedModel, Resources, VramUse, hex};
use crate::target::{Api, Target};

const BYTES_PER_MB: f64 = 1e6;
/// Bytes that are hashed at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Maximum bytes of a list of weights in several files.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// Formats of weights, by file extension.
const FORMATS: [&str; 3] = ["gguf", "onnx", "safetensors"];

/// A server that hob started.
#[derive(Debug)]
pub struct StartedServer {
    pub launch: Launch,
    pub places: BTreeMap<String, String>,
    /// The file of its weights, if known.
    pub weights: Option<PathBuf>,
    /// None while the server is stopped.
    running: Option<Running>,
    peak_bytes: u64,
    speech_peak_bytes: u64,
    vram: VramUse,
    load: Duration,
}

impl StartedServer {
    /// # Errors
    /// See [`Launch::start`].
    pub fn begin(
        launch: Launch,
        places: BTreeMap<String, String>,
        stop: &AtomicBool,
    ) -> Result<StartedServer, LaunchError> {
        let mut started = StartedServer {
            launch,
            places,
            weights: None,
            running: None,
            peak_bytes: 0,
            speech_peak_bytes: 0,
            vram: VramUse::default(),
            load: Duration::ZERO,
        };
        started.start(stop)?;
        Ok(started)
    }

    fn start(&mut self, stop: &AtomicBool) -> Result<(), LaunchError> {
        self.vram.idle = vram_mb();
        let running = self.launch.start(&self.places, stop)?;
        self.vram.loaded = vram_mb();
        self.load = running.load;
        self.running = Some(running);
        Ok(())
    }

    /// Restarts the server.
    ///
    /// # Errors
    /// The server does not end or does not start.
    pub fn restart(&mut self, stop: &AtomicBool) -> Result<(), LaunchError> {
        self.end()?;
        self.start(stop)
    }

    /// Restarts the server, and resets its peak memory.
    ///
    /// # Errors
    /// The server does not end or does not start.
    pub fn renew(&mut self, stop: &AtomicBool) -> Result<(), LaunchError> {
        self.end()?;
        (self.peak_bytes, self.speech_peak_bytes, self.vram.peak) = (0, 0, None);
        self.start(stop)
    }

    /// # Errors
    /// Its port stays open.
    pub fn end(&mut self) -> Result<(), LaunchError> {
        self.update_peaks();
        self.running.take().map_or(Ok(()), Running::end)
    }

    pub fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }

    /// Load time of the last start.
    pub fn load(&self) -> Duration {
        self.load
    }

    /// Updates the peaks. The system records the peak of RAM; engines keep card memory until they end.
    fn update_peaks(&mut self) {
        let Some(running) = &self.running else { return };
        self.peak_bytes = self.peak_bytes.max(running.peak_bytes().unwrap_or(0));
        let speech_peak_bytes = running.speech_peak_bytes().unwrap_or(0);
        self.speech_peak_bytes = self.speech_peak_bytes.max(speech_peak_bytes);
        self.vram.peak = [self.vram.peak, vram_mb()].into_iter().flatten().reduce(f64::max);
    }

    /// Peak memory and load time over all starts.
    pub fn resources(&mut self) -> Resources {
        self.update_peaks();
        let mb = |bytes: u64| (bytes > 0).then(|| bytes as f64 / BYTES_PER_MB);
        Resources {
            rss_peak_mb: mb(self.peak_bytes),
            speech_rss_peak_mb: mb(self.speech_peak_bytes),
            vram_mb: self.vram.peak.map(|_| self.vram),
            load_s: Some(self.load.as_secs_f64()),
            ..Resources::default()
        }
    }
}

/// Used memory of all cards, by all programs; None if no card reports it.
fn vram_mb() -> Option<f64> {
    hob_machine::vram().map(|vram| vram.used_bytes as f64 / BYTES_PER_MB)
}

/// Engine and model of a server.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    pub engine: RecordedEngine,
    pub model: RecordedModel,
}

impl ServerFacts {
    /// What the server reports. The caller adds facts from files or a command line.
    pub fn reported(target: &Target) -> ServerFacts {
        let engine = RecordedEngine {
            name: target.engine.clone(),
            version: target.version.clone(),
            ..RecordedEngine::default()
        };
        let model = RecordedModel { name: target.model.clone(), ..RecordedModel::default() };
        let facts = ServerFacts { engine, model };
        let mut facts = match target.api {
            Api::Ollama => facts.of_ollama(target),
            Api::OpenAi => facts.of_llama_server(target),
            Api::Hob => facts,
        };
        facts.model.quant = facts.model.quant.take().or_else(|| quant(&target.model));
        facts
    }

    fn of_ollama(mut self, target: &Target) -> ServerFacts {
        let listed = target.json_of("/api/tags", None);
        let entries = listed["models"].as_array().cloned().unwrap_or_default();
        let is_this = |entry: &&Value| entry["name"].as_str() == Some(&target.model);
        let entry = entries.iter().find(is_this).cloned().unwrap_or_default();
        let said = |value: &Value| value.as_str().filter(|s| !s.is_empty()).map(str::to_owned);
        self.model.sha256 =
            said(&entry["digest"]).map(|sha| sha.trim_start_matches("sha256:").to_owned());
        self.model.bytes = entry["size"].as_u64();
        let shown = target.json_of("/api/show", Some(json!({ "model": target.model })));
        let details = &shown["details"];
        self.model.family = said(&details["family"]);
        self.model.format = said(&details["format"]);
        self.model.quant = said(&details["quantization_level"]);
        self
    }

    /// The weights are hashed if their file is on this machine.
    fn of_llama_server(mut self, target: &Target) -> ServerFacts {
        let props = target.json_of("/props", None);
        let Some(file) = props["model_path"].as_str() else { return self };
        self.engine.name = self.engine.name.or_else(|| Some("llama.cpp".to_owned()));
        self.engine.params.ctx = props["default_generation_settings"]["n_ctx"].as_u64();
        let slots = props["total_slots"].as_u64();
        self.engine.params.parallel = slots.and_then(|slots| u32::try_from(slots).ok());
        self.add_quant(Path::new(file));
        // Without a readable file the hash stays unknown.
        let _unreadable = self.add_file(Path::new(file));
        self
    }

    /// Adds hash, size and format of the weights' file, or of hob's list of several files.
    ///
    /// # Errors
    /// The file cannot be read; then nothing is added.
    pub fn add_file(&mut self, file: &Path) -> std::io::Result<()> {
        let (sha256, bytes) = hashed(file)?;
        let listed = if ending(file) == "json" { WeightsInParts::read(file)? } else { None };
        self.model.sha256 = Some(sha256);
        self.model.bytes = Some(listed.as_ref().map_or(bytes, |listed| listed.bytes));
        let format = listed.map_or_else(|| Some(ending(file)), |listed| listed.format);
        let format = format.filter(|format| FORMATS.contains(&format.as_str()));
        self.model.format = self.model.format.take().or(format);
        self.add_quant(file);
        Ok(())
    }

    /// Prefers the server's report to the file's name, and that to the model's name, which may be freely chosen.
    fn add_quant(&mut self, file: &Path) {
        let guessed = quant(&self.model.name);
        if self.model.quant.is_none() || self.model.quant == guessed {
            let name = file.file_name().map(|name| name.to_string_lossy());
            self.model.quant = name.and_then(|name| quant(&name)).or(guessed);
        }
    }
}

/// Weights in several files, from the list that hob stores with a model.
#[derive(Debug, PartialEq, Eq)]
struct WeightsInParts {
    bytes: u64,
    format: Option<String>,
}

impl WeightsInParts {
    /// None if the file is not such a list.
    fn read(file: &Path) -> std::io::Result<Option<WeightsInParts>> {
        let mut text = Vec::new();
        fs_err::File::open(file)?.take(LIST_BYTES_MAX).read_to_end(&mut text)?;
        let list: Value = serde_json::from_slice(&text).unwrap_or_default();
        Ok(list["files"].as_array().map(|files| {
            let endings = files.iter().filter_map(|file| file["path"].as_str());
            WeightsInParts {
                bytes: files.iter().filter_map(|file| file["bytes"].as_u64()).sum(),
                format: endings
                    .map(|path| ending(Path::new(path)))
                    .find(|ending| FORMATS.contains(&ending.as_str())),
            }
        }))
    }
}

fn ending(file: &Path) -> String {
    file.extension().map(|end| end.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn hashed(file: &Path) -> std::io::Result<(String, u64)> {
    // A server names the file. A device has no end, and opening a FIFO waits for a writer.
    if !fs_err::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut file = fs_err::File::open(file)?;
    let (mut digest, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((hex(&digest.finalize()), bytes));
        }
        digest.update(&piece[..read]);
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_of_several_files_is_described_by_their_list() {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = [
            ("model.gguf", "weights", 7, Some("gguf")),
            (
                "model.json",
                r#"{"files":[{"path":"voices/a.bin","bytes":30},{"path":"front.onnx","bytes":12}]}"#,
                42,
                Some("onnx"),
            ),
            ("notes.json", r#"{"a":1}"#, 7, None),
            ("model", "abc", 3, None),
        ];
        for (name, content, bytes, format) in rows {
            let (file, mut facts) = (folder.path().join(name), ServerFacts::default());
            std::fs::write(&file, content).expect("a file");
            facts.add_file(&file).expect("it is there");
            let RecordedModel { bytes: got, format: named, sha256, .. } = &facts.model;
            assert_eq!((*got, named.as_deref()), (Some(bytes), format), "{name}");
            assert_eq!(*sha256, Some(hex(&Sha256::digest(content))), "{name}");
        }
        for file in [folder.path().join("none"), PathBuf::from("/dev/zero")] {
            assert!(ServerFacts::default().add_file(&file).is_err(), "{}", file.display());
        }
    }

    #[test]
    fn a_quant_is_read_from_names_where_the_server_says_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = [
            // The server's report, the model's name, its file, and the result.
            (None, "qwen3", "qwen3-8b-Q4_K_M.gguf", Some("Q4_K_M")),
            (None, "qwen3-8b-q8_0", "qwen3-8b-Q4_K_M.gguf", Some("Q4_K_M")),
            (None, "qwen3-8b-Q4_K_M.gguf", "model.gguf", Some("Q4_K_M")),
            (Some("Q5_K_M"), "qwen3:8b", "qwen3-8b-Q4_K_M.gguf", Some("Q5_K_M")),
            (None, "Qwen/Qwen3-8B-AWQ", "model.safetensors", Some("AWQ")),
            (None, "whisper", "ggml-base-q5_1.bin", Some("Q5_1")),
            (None, "qwen3:8b", "model.gguf", None),
        ];
        for (said, name, file, expected) in rows {
            let model = RecordedModel {
                name: name.to_owned(),
                quant: said.map(str::to_owned).or_else(|| quant(name)),
                ..RecordedModel::default()
            };
            let mut facts = ServerFacts { model, ..ServerFacts::default() };
            let file = folder.path().join(file);
            std::fs::write(&file, "weights").expect("a file");
            facts.add_file(&file).expect("it is there");
            assert_eq!(facts.model.quant.as_deref(), expected, "{said:?} {name} {file:?}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_still_has_a_model_with_a_name() {
        let mut target = Target::for_tests("http://127.0.0.1:1", Api::Hob);
        target.model = "qwen3-8b-Q4_K_M.gguf".to_owned();
        assert_eq!(ServerFacts::reported(&target).model.quant.as_deref(), Some("Q4_K_M"));
    }
}
