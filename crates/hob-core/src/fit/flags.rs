//! The command line or configuration that makes an engine run a plan.
//! Settings that an engine lacks are left out, and so are engines that do not read the format.

use super::layout::{ComputeSite, Placement, Pool};
use super::setup::own_cards;
use super::{Engine, Location, Model, Plan, Use};
use crate::footprint::{KvType, KvTypes};
use crate::machine::{GpuMemory, Machine};

/// The quant of a catalog name that states none.
const USUAL_QUANT: &str = "Q4_K_M";
/// More layers than any model has. Engines also count the layers that only predict further tokens, so the number of layers
/// that decode would leave the first ones on the processor.
const ALL_LAYERS: u32 = 999;

/// A command, or lines of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchText {
    pub engine: Engine,
    pub text: String,
}

/// How to start each engine that reads the format. If the location is unknown, `NAME-QUANT.gguf` is used.
pub fn flags(machine: &Machine, model: &Model, plan: &Plan, sequences: u32) -> Vec<LaunchText> {
    let writer = LaunchWriter { machine, model, plan, sequences: sequences.max(1) };
    let text = |engine: Engine| match engine {
        _ if engine.takes(plan.kv).is_err() => None,
        Engine::Hob => Some(writer.hob()),
        Engine::LlamaCpp => Some(writer.llama_cpp()),
        Engine::Ollama => Some(writer.ollama()),
        Engine::Vllm => Some(writer.vllm()),
        Engine::TabbyApi => Some(writer.tabby()),
        Engine::MlxLm | Engine::Transformers => None,
    };
    let engines = model.format.engines().into_iter();
    engines.filter_map(|engine| Some(LaunchText { engine, text: text(engine)? })).collect()
}

struct LaunchWriter<'a> {
    machine: &'a Machine,
    model: &'a Model,
    plan: &'a Plan,
    sequences: u32,
}

impl LaunchWriter<'_> {
    fn context_tokens(&self) -> u32 {
        self.plan.context_tokens.saturating_mul(self.sequences)
    }

    fn gpu_layers(&self) -> u32 {
        let layout = &self.plan.layout;
        if layout.is_on_cards() { ALL_LAYERS } else { layout.gpu_layers() }
    }

    /// The one card that computes, where an engine would use others, too.
    fn card_of_several(&self) -> Option<usize> {
        let cards = self.plan.layout.cards();
        (cards.len() == 1 && own_cards(self.machine).len() > 1).then(|| cards[0])
    }

    fn file(&self) -> String {
        let Model { name, quant, location, .. } = self.model;
        match location {
            Location::File(file)
            | Location::Installed(file)
            | Location::Ollama { file: Some(file), .. } => file.clone(),
            Location::Hub { file: Some(path), .. } => {
                path.rsplit('/').next().unwrap_or(path).to_owned()
            }
            Location::Unknown
            | Location::Hub { .. }
            | Location::Ollama { file: None, .. }
            | Location::Catalog { .. } => format!("{name}-{quant}.gguf").replace(' ', "-"),
        }
    }

    /// The name that hub tools use for a model in one of several quants.
    fn tagged(&self, repo: &str) -> String {
        let quant = match &self.model.location {
            Location::Hub { quant: Some(quant), .. } => quant,
            _ => &self.model.quant,
        };
        format!("{repo}:{quant}")
    }

    /// The name that `hob pull` takes, if the model is not stored here.
    fn fetched_name(&self) -> Option<String> {
        let quant = &self.model.quant;
        match &self.model.location {
            Location::Hub { repo, revision, file, .. } => {
                let at = revision.as_ref().map_or(String::new(), |revision| format!("@{revision}"));
                Some(match file {
                    Some(file) => format!("hf:{repo}/{file}{at}"),
                    None => self.tagged(&format!("{repo}{at}")),
                })
            }
            Location::Ollama { tag, .. } => Some(tag.clone()),
            Location::Catalog { name, .. } if quant == USUAL_QUANT => Some(name.clone()),
            Location::Catalog { name, .. } => {
                Some(format!("{name}-{}", quant.to_ascii_lowercase()))
            }
            Location::Unknown | Location::File(_) | Location::Installed(_) => None,
        }
    }

    /// `owner/name` on the hub, for engines that take no revision.
    fn repo(&self) -> Option<&String> {
        match &self.model.location {
            Location::Hub { repo, revision: None, .. } | Location::Catalog { repo, .. } => {
                Some(repo)
            }
            Location::Hub { .. }
            | Location::Unknown
            | Location::File(_)
            | Location::Installed(_)
            | Location::Ollama { .. } => None,
        }
    }

    fn hob(&self) -> String {
        let kv = self.plan.kv.keys;
        let fetched = self.fetched_name();
        let first =
            fetched.as_ref().map_or(String::new(), |name| format!("# first: hob pull {name}\n"));
        let model = match &self.model.location {
            Location::Installed(_) => self.model.name.clone(),
            _ => fetched.unwrap_or_else(|| self.file()),
        };
        let experts = match self.plan.placement {
            Placement::ExpertsOffloaded { layers } => format!("\ncpu_moe_layers = {layers}"),
            _ => String::new(),
        };
        let alone = self.card_of_several().map_or(String::new(), |number| {
            format!(
                "\n# device: the name of GPU {number} in `hob doctor`, or else all cards are used"
            )
        });
        format!(
            "{first}[chat]\nmodel = {model:?}\ncontext_tokens = {}\nkv_type = \"{kv}\"\nparallel = {}\ngpu_layers = {}{experts}{alone}",
            self.plan.context_tokens,
            self.sequences,
            self.gpu_layers()
        )
    }

    fn llama_cpp(&self) -> String {
        let mut words = vec![
            "llama-server".to_owned(),
            match (&self.model.location, self.repo()) {
                (Location::Hub { file: Some(file), .. }, Some(repo)) => {
                    format!("-hf {repo} -hff {file}")
                }
                (_, Some(repo)) => format!("-hf {}", self.tagged(repo)),
                (_, None) => format!("-m {}", quoted(&self.file())),
            },
            format!("-c {} -np {}", self.context_tokens(), self.sequences),
            format!("-ngl {}", self.gpu_layers()),
        ];
        words.extend(self.card_of_several().map(|number| format!("-sm none -mg {number}")));
        if let Placement::ExpertsOffloaded { layers } = self.plan.placement {
            words.push(format!("--n-cpu-moe {layers}"));
        }
        let KvTypes { keys, values } = self.plan.kv;
        if self.plan.kv != KvTypes::default() {
            words.push(format!("-fa on -ctk {keys} -ctv {values}"));
        }
        words.join(" ")
    }

    fn ollama(&self) -> String {
        let Plan { context_tokens, kv, .. } = self.plan;
        let layers = self.gpu_layers();
        let sequences = self.sequences;
        let types = match kv.keys {
            KvType::F16 => String::new(),
            keys => format!("OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE={keys} "),
        };
        let from = match (&self.model.location, self.repo()) {
            (Location::Ollama { tag, .. }, _) => tag.clone(),
            (Location::Hub { file: Some(file), .. }, Some(repo)) if !file.contains('/') => {
                format!("hf.co/{repo}:{file}")
            }
            (Location::Hub { file: Some(_), .. }, _) => self.file(),
            (_, Some(repo)) => format!("hf.co/{}", self.tagged(repo)),
            (_, None) => self.file(),
        };
        format!(
            "# to start it\n{types}OLLAMA_NUM_PARALLEL={sequences} ollama serve\n\
             # Modelfile\nFROM {from}\nPARAMETER num_ctx {context_tokens}\nPARAMETER num_gpu {layers}"
        )
    }

    fn vllm(&self) -> String {
        let Plan { context_tokens, kv, .. } = self.plan;
        let model = match &self.model.location {
            Location::Hub { repo, revision: Some(revision), .. } => {
                format!("{repo} --revision {revision}")
            }
            Location::Hub { repo, .. } => repo.clone(),
            Location::File(_) | Location::Installed(_) | Location::Ollama { file: Some(_), .. } => {
                quoted(&self.file())
            }
            Location::Unknown | Location::Ollama { file: None, .. } | Location::Catalog { .. } => {
                self.model.name.clone()
            }
        };
        let mut words = vec![format!(
            "vllm serve {model} --max-model-len {context_tokens} --max-num-seqs {}",
            self.sequences
        )];
        let cards = self.plan.layout.cards().len();
        if cards > 1 {
            words.push(format!("--pipeline-parallel-size {cards}"));
        }
        words.extend(self.share().map(|share| format!("--gpu-memory-utilization {share:.2}")));
        if *kv != KvTypes::default() {
            words.push("--kv-cache-dtype fp8".to_owned());
        }
        let in_ram =
            self.plan.memory.iter().filter(|t| t.site == ComputeSite::Cpu && t.name == "weights");
        let offloaded: u64 = in_ram.map(|term| term.bytes).sum();
        if matches!(self.plan.placement, Placement::ExpertsOffloaded { .. }) {
            words.push(format!("--cpu-offload-gb {}", offloaded.div_ceil(1 << 30)));
        }
        words.join(" ")
    }

    /// Share of the card's memory that the plan needs: of the fullest one, if it uses several.
    fn share(&self) -> Option<f64> {
        let share = |used: &Use| {
            let Pool::Vram(number) = used.pool else { return None };
            let GpuMemory::Own { total_bytes, .. } = self.machine.gpus.get(number)?.memory else {
                return None;
            };
            Some(used.needed_bytes as f64 / total_bytes.max(1) as f64)
        };
        let fullest = self.plan.uses.iter().filter_map(share).max_by(f64::total_cmp)?;
        Some((fullest + 0.02).min(0.98))
    }

    fn tabby(&self) -> String {
        let bits = |kv| match kv {
            KvType::F16 => 16,
            KvType::Q8_0 => 8,
            KvType::Q4_0 => 4,
        };
        let KvTypes { keys, values } = self.plan.kv;
        let mode = match bits(keys) {
            16 => "FP16".to_owned(),
            keys => format!("{keys},{}", bits(values)),
        };
        format!(
            "model:\n  model_name: {}\n  max_seq_len: {}\n  cache_size: {}\n  cache_mode: {mode}",
            self.model.name,
            self.plan.context_tokens,
            self.context_tokens()
        )
    }
}

/// Quoted, so that a shell reads one word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:+@%,=".contains(c);
    match word.chars().all(is_plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
