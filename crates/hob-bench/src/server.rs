//! Who is measured: a server that is there, or one that is started for it, and what is known of what runs there.
//! What is started here can be started anew; a server of somebody else's is left as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::ask::ask;
use crate::import::values::quant;
use crate::launch::{Launch, LaunchError, Running};
use crate::record::{RecordedEngine, RecordedModel, Resources, VramUse, hex};
use crate::target::{Api, Target};

const ASK_WITHIN: Duration = Duration::from_secs(10);
const BYTES_PER_MB: f64 = 1e6;
/// Of a file that is hashed, at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Of weights, told by the ending of their file.
const FORMATS: [&str; 3] = ["gguf", "onnx", "safetensors"];

/// A server that was started here.
#[derive(Debug)]
pub struct StartedServer {
    pub launch: Launch,
    pub places: BTreeMap<String, String>,
    /// The file of its weights, where it is known.
    pub weights: Option<PathBuf>,
    /// None while it is down.
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

    /// Ends the one that runs, if one does, and starts another.
    ///
    /// # Errors
    /// It does not end, or does not come back.
    pub fn again(&mut self, stop: &AtomicBool) -> Result<(), LaunchError> {
        self.end()?;
        self.start(stop)
    }

    /// The same, and what it took until now is forgotten.
    ///
    /// # Errors
    /// It does not end, or does not come back.
    pub fn renew(&mut self, stop: &AtomicBool) -> Result<(), LaunchError> {
        self.end()?;
        (self.peak_bytes, self.speech_peak_bytes, self.vram.peak) = (0, 0, None);
        self.start(stop)
    }

    /// # Errors
    /// Its port stays open.
    pub fn end(&mut self) -> Result<(), LaunchError> {
        self.look();
        self.running.take().map_or(Ok(()), Running::end)
    }

    pub fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }

    /// Until the last one was ready.
    pub fn load(&self) -> Duration {
        self.load
    }

    /// The system keeps the peak of memory; of a card's, engines keep what they once took until they end.
    fn look(&mut self) {
        let Some(running) = &self.running else { return };
        self.peak_bytes = self.peak_bytes.max(running.peak_bytes().unwrap_or(0));
        let speech_peak_bytes = running.speech_peak_bytes().unwrap_or(0);
        self.speech_peak_bytes = self.speech_peak_bytes.max(speech_peak_bytes);
        self.vram.peak = [self.vram.peak, vram_mb()].into_iter().flatten().reduce(f64::max);
    }

    /// What all of them took, at most.
    pub fn resources(&mut self) -> Resources {
        self.look();
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

/// Of all cards together, whoever uses them; none where no card tells.
fn vram_mb() -> Option<f64> {
    hob_machine::vram().map(|vram| vram.used_bytes as f64 / BYTES_PER_MB)
}

/// What is known of what answers, before it is asked anything.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub engine: RecordedEngine,
    pub model: RecordedModel,
}

impl Facts {
    /// As the server tells them; what a file or a command line adds, is added by whoever knows it.
    pub fn told(target: &Target) -> Facts {
        let engine = RecordedEngine {
            name: target.engine.clone(),
            version: target.version.clone(),
            ..RecordedEngine::default()
        };
        let model = RecordedModel { name: target.model.clone(), ..RecordedModel::default() };
        let facts = Facts { engine, model };
        let mut facts = match target.api {
            Api::Ollama => facts.of_ollama(target),
            Api::OpenAi => facts.of_llama_server(target),
            Api::Hob => facts,
        };
        facts.model.quant = facts.model.quant.take().or_else(|| quant(&target.model));
        facts
    }

    fn of_ollama(mut self, target: &Target) -> Facts {
        let listed = asked(target, "/api/tags", None);
        let entries = listed["models"].as_array().cloned().unwrap_or_default();
        let is_this = |entry: &&Value| entry["name"].as_str() == Some(&target.model);
        let entry = entries.iter().find(is_this).cloned().unwrap_or_default();
        let said = |value: &Value| value.as_str().filter(|s| !s.is_empty()).map(str::to_owned);
        self.model.sha256 =
            said(&entry["digest"]).map(|sha| sha.trim_start_matches("sha256:").to_owned());
        self.model.bytes = entry["size"].as_u64();
        let shown = asked(target, "/api/show", Some(json!({ "model": target.model })));
        let details = &shown["details"];
        self.model.family = said(&details["family"]);
        self.model.format = said(&details["format"]);
        self.model.quant = said(&details["quantization_level"]);
        self
    }

    /// The file is hashed if it can be read here, as that of a server on this machine can.
    fn of_llama_server(mut self, target: &Target) -> Facts {
        let props = asked(target, "/props", None);
        let Some(file) = props["model_path"].as_str() else { return self };
        self.engine.name = self.engine.name.or_else(|| Some("llama.cpp".to_owned()));
        self.engine.params.ctx = props["default_generation_settings"]["n_ctx"].as_u64();
        let slots = props["total_slots"].as_u64();
        self.engine.params.parallel = slots.and_then(|slots| u32::try_from(slots).ok());
        self.add_quant(Path::new(file));
        // A file elsewhere is no failure: its hash is not known then.
        let _elsewhere = self.add_file(Path::new(file));
        self
    }

    /// Adds what the weights' own file says; of several files, the list of them with their hashes.
    ///
    /// # Errors
    /// It cannot be read; then nothing is added.
    pub fn add_file(&mut self, file: &Path) -> std::io::Result<()> {
        let (sha256, bytes) = hashed(file)?;
        let listed = if ending(file) == "json" { Listed::read(file)? } else { None };
        self.model.sha256 = Some(sha256);
        self.model.bytes = Some(listed.as_ref().map_or(bytes, |listed| listed.bytes));
        let format = listed.map_or_else(|| Some(ending(file)), |listed| listed.format);
        let format = format.filter(|format| FORMATS.contains(&format.as_str()));
        self.model.format = self.model.format.take().or(format);
        self.add_quant(file);
        Ok(())
    }

    /// What a server says of it counts more than the name of a file, and that more than a model's, which anybody
    /// may choose.
    fn add_quant(&mut self, file: &Path) {
        let guessed = quant(&self.model.name);
        if self.model.quant.is_none() || self.model.quant == guessed {
            let name = file.file_name().map(|name| name.to_string_lossy());
            self.model.quant = name.and_then(|name| quant(&name)).or(guessed);
        }
    }
}

/// Weights in several files, as the list of them says that hob keeps beside a model.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    bytes: u64,
    format: Option<String>,
}

impl Listed {
    /// None of what is no such list.
    fn read(file: &Path) -> std::io::Result<Option<Listed>> {
        let list: Value = serde_json::from_slice(&fs_err::read(file)?).unwrap_or_default();
        Ok(list["files"].as_array().map(|files| {
            let endings = files.iter().filter_map(|file| file["path"].as_str());
            Listed {
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

/// Nothing where there is no answer.
fn asked(target: &Target, path: &str, body: Option<Value>) -> Value {
    let body = body.map(|body| body.to_string());
    let asked = ask(&target.endpoint, path, target.key.as_deref(), body.as_deref(), ASK_WITHIN);
    let answered = asked.ok().filter(|asked| asked.status == 200);
    answered.and_then(|asked| serde_json::from_slice(&asked.body).ok()).unwrap_or_default()
}

fn hashed(file: &Path) -> std::io::Result<(String, u64)> {
    use std::io::Read as _;
    let mut file = fs_err::File::open(PathBuf::from(file))?;
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
    fn a_model_of_several_files_is_known_by_the_list_of_them() {
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
            let (file, mut facts) = (folder.path().join(name), Facts::default());
            std::fs::write(&file, content).expect("a file");
            facts.add_file(&file).expect("it is there");
            let RecordedModel { bytes: got, format: named, sha256, .. } = &facts.model;
            assert_eq!((*got, named.as_deref()), (Some(bytes), format), "{name}");
            assert_eq!(*sha256, Some(hex(&Sha256::digest(content))), "{name}");
        }
        assert!(Facts::default().add_file(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_quant_is_read_from_names_where_the_server_says_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = [
            // What the server says, the model's name, its file, and what comes of it.
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
            let mut facts = Facts { model, ..Facts::default() };
            let file = folder.path().join(file);
            std::fs::write(&file, "weights").expect("a file");
            facts.add_file(&file).expect("it is there");
            assert_eq!(facts.model.quant.as_deref(), expected, "{said:?} {name} {file:?}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_still_has_a_model_with_a_name() {
        let target = Target {
            endpoint: crate::drive::Endpoint::parse("http://127.0.0.1:1").expect("an address"),
            api: Api::Hob,
            model: "qwen3-8b-Q4_K_M.gguf".to_owned(),
            key: None,
            engine: None,
            version: None,
        };
        assert_eq!(Facts::told(&target).model.quant.as_deref(), Some("Q4_K_M"));
    }
}
