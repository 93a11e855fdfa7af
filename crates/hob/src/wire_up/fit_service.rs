//! The data behind `/api/fit`: the chat models of this hob, the models that are known by their
//! dimensions, this machine, and machines with built-in profiles. Each request reads file headers again.
//! Names from HTTP requests are never used as paths.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hob_core::fit::{ComputeSite, Location, Model, Warning, alternatives, assess};
use hob_core::{locked, nearest};
use hob_engines::timing::engine_version;
use hob_machine::{MachineFacts, MachineStore, Stamp, probe, profile};
use hob_models::known::{self, KNOWN, KnownModel};
use hob_models::recipe::variants;
use hob_models::{Gguf, QuantMix};
use hob_server::{FitService, Unanswerable};
use hob_wire::{FitAnswer, FitModel, FitRequest};

use super::hidden_cards::HiddenCards;
use super::memory::used_cards;
use super::visible_cards::{leave_out_hidden_cards, other_build};
use crate::app::App;
use crate::capability::suggest_smaller_model;
use crate::model_store::ModelStore;
use crate::published;
use crate::settings::ModelChoice;

/// Name of the machine that hob runs on.
const HERE: &str = "this machine";
/// Maximum age of the free memory: drivers answer slowly, and the page's sliders ask often.
const SEEN: Duration = Duration::from_secs(5);

/// Machines and models that `/api/fit` can assess.
#[derive(Debug)]
pub(crate) struct FitData {
    store: ModelStore,
    /// By the names under which this hob serves them.
    configured: BTreeMap<String, ModelChoice>,
    max_bytes: Option<u64>,
    /// Measurements of this machine.
    kept: MachineStore,
    hidden: HiddenCards,
    seen: Mutex<Option<(Instant, Described)>>,
}

#[derive(Clone, Debug)]
struct Described {
    facts: MachineFacts,
    /// Why models cannot use cards of this machine.
    warnings: Vec<Warning>,
}

impl FitData {
    pub(crate) fn new(app: &App<'_>) -> FitData {
        let settings = &app.settings;
        let named = settings.models.iter().map(|(name, chat)| (name.clone(), chat.model.clone()));
        let own = (settings.chat.model.name(), settings.chat.model.clone());
        FitData {
            store: ModelStore::open(app),
            configured: named.chain([own]).collect(),
            max_bytes: settings.memory.max_bytes(),
            kept: crate::machine::machine_store(app),
            hidden: HiddenCards::of(app),
            seen: Mutex::default(),
        }
    }

    /// Models with stored files.
    fn installed(&self) -> BTreeMap<String, ModelChoice> {
        let pulled = self.store.chat_names().into_iter();
        let pulled = pulled.map(|name| (name.clone(), ModelChoice::Named(name)));
        let configured = self.configured.iter().map(|(name, one)| (name.clone(), one.clone()));
        let mut all: BTreeMap<String, ModelChoice> = pulled.chain(configured).collect();
        all.retain(|_, choice| match choice {
            ModelChoice::Named(name) => self.store.chat_file(name).is_ok(),
            ModelChoice::File(path) => path.is_file(),
        });
        all
    }

    fn header(&self, name: &str, choice: &ModelChoice) -> Result<Gguf, Unanswerable> {
        let path = match choice {
            ModelChoice::File(path) => path.clone(),
            ModelChoice::Named(stored) => {
                self.store.chat_file(stored).map_err(|failure| unreadable(name, &failure))?.0
            }
        };
        Gguf::open(&path).map_err(|error| unreadable(name, &error))
    }

    fn listed(&self, name: &str, choice: &ModelChoice) -> Option<FitModel> {
        let header = self.header(name, choice).ok()?;
        let quant = header.quantization().to_owned();
        let trained = header.shape().ok().map(|shape| shape.trained_context_tokens);
        let (name, quants) = (name.to_owned(), vec![quant.clone()]);
        Some(FitModel { name, installed: true, quant, quants, trained_context: trained })
    }

    /// The model, and the same in other quants.
    fn model(&self, request: &FitRequest) -> Result<(Model, Vec<Model>), Unanswerable> {
        match self.installed().get(&request.model) {
            Some(choice) => self.of_file(request, choice),
            None => self.of_table(request),
        }
    }

    /// A file has one quant.
    fn of_file(
        &self,
        request: &FitRequest,
        choice: &ModelChoice,
    ) -> Result<(Model, Vec<Model>), Unanswerable> {
        let name = &request.model;
        let header = self.header(name, choice)?;
        let quant = header.quantization();
        if let Some(asked) =
            request.quant.as_ref().filter(|asked| !asked.eq_ignore_ascii_case(quant))
        {
            return Err(unknown("quant", asked, vec![quant.to_owned()]));
        }
        let mut model = header.model(name).map_err(|error| unreadable(name, &error))?;
        // Flags must name an existing file.
        model.location = match choice {
            ModelChoice::File(path) => Location::File(path.display().to_string()),
            ModelChoice::Named(name) => {
                let found = self.store.chat_file(name);
                let (path, _) = found.map_err(|failure| unreadable(name, &failure))?;
                model.name.clone_from(name);
                Location::Installed(path.display().to_string())
            }
        };
        Ok((model, variants(&header, name)))
    }

    /// Computes the weights from dimensions and the rules of the quant.
    fn of_table(&self, request: &FitRequest) -> Result<(Model, Vec<Model>), Unanswerable> {
        let (known, context_tokens) = known::find(&request.model).map_err(|not| {
            let installed = self.installed();
            let own = nearest(&not.name, installed.keys().map(String::as_str), 3);
            unknown("model", &not.name, own.into_iter().chain(not.near).collect())
        })?;
        let mix = QuantMix::named(request.quant.as_deref().unwrap_or(known.default_quant()))
            .map_err(|not| unknown("quant", &not.name, not.near))?;
        let model = known.model(mix, context_tokens);
        let model = model.map_err(|error| unreadable(&known.name, &error))?;
        Ok((model, known.variants(mix, context_tokens)))
    }

    fn machine(&self, name: Option<&str>) -> Result<Described, Unanswerable> {
        let name = match name {
            None | Some(HERE) => return Ok(self.here()),
            Some(name) => name,
        };
        let facts = profile::builtin(name).map_err(|_| {
            let names = self.machines();
            unknown("machine", name, nearest(name, names.iter().map(String::as_str), 3))
        })?;
        Ok(Described { facts, warnings: Vec::new() })
    }

    /// This machine, with free memory of at most [`SEEN`] ago.
    fn here(&self) -> Described {
        // A panic while reading leaves no partial value behind.
        let mut seen = locked(&self.seen);
        match &*seen {
            Some((at, here)) if at.elapsed() < SEEN => here.clone(),
            _ => seen.insert((Instant::now(), self.look())).1.clone(),
        }
    }

    fn look(&self) -> Described {
        let mut facts = probe();
        self.kept.merge_into(&mut facts, &engine_version());
        let hidden = leave_out_hidden_cards(&mut facts, &self.hidden);
        let is_used = used_cards(&facts.machine.gpus).next().is_some();
        let other = other_build(&facts.machine.gpus, is_used);
        let hidden = hidden.map(hidden_cards_warning);
        let warnings = hidden.into_iter().chain(other.map(other_build_warning)).collect();
        facts.machine.memory.limit_models(self.max_bytes);
        Described { facts, warnings }
    }
}

impl FitService for FitData {
    fn machines(&self) -> Vec<String> {
        [HERE].into_iter().chain(profile::names()).map(str::to_owned).collect()
    }

    fn models(&self) -> Vec<FitModel> {
        let installed = self.installed();
        let files = installed.iter().filter_map(|(name, choice)| self.listed(name, choice));
        files.chain(KNOWN.iter().map(of_known)).collect()
    }

    fn is_published(&self, model: &str) -> bool {
        known::find(model).is_ok() && !self.installed().contains_key(model)
    }

    fn assess(&self, request: &FitRequest) -> Result<FitAnswer, Unanswerable> {
        let Described { mut facts, warnings } = self.machine(request.machine.as_deref())?;
        let used = published::apply(&mut facts.machine);
        let machine = &facts.machine;
        let (model, others) = self.model(request)?;
        let options = &request.options;
        let mut assessed = assess(machine, &model, options)
            .map_err(|error| Unanswerable::Impossible { model: model.name.clone(), error })?;
        assessed.alternatives = alternatives(machine, &model, &others, options, &assessed);
        suggest_smaller_model(machine, &others, options, &mut assessed);
        assessed.warnings.extend(warnings);
        let answer = FitAnswer::of(machine, &model, &assessed, options);
        let answer = used.iter().fold(answer, |answer, used| answer.sourced(used.site, &used.text));
        Ok(stamps(&facts).fold(answer, |answer, (site, stamp)| {
            answer.stamped(site, &stamp.engine_version, &stamp.date)
        }))
    }
}

fn hidden_cards_warning(text: String) -> Warning {
    let action = "unset the variable, and start hob again".to_owned();
    Warning { code: "hidden_cards", text, action }
}

fn other_build_warning((text, action): (String, String)) -> Warning {
    Warning { code: "other_build", text, action }
}

/// Calibrations by site.
fn stamps(facts: &MachineFacts) -> impl Iterator<Item = (ComputeSite, &Stamp)> {
    let cards = (0..).map(ComputeSite::Gpu).zip(&facts.gpu_stamps);
    let all = [(ComputeSite::Cpu, &facts.cpu_stamp)].into_iter().chain(cards);
    all.filter_map(|(site, stamp)| Some((site, stamp.as_ref()?)))
}

fn of_known(known: &KnownModel) -> FitModel {
    FitModel {
        name: known.name.clone(),
        installed: false,
        quant: known.default_quant().to_owned(),
        quants: QuantMix::names().into_iter().map(str::to_owned).collect(),
        trained_context: known.tags.first().map(|(_, context_tokens)| *context_tokens),
    }
}

fn unknown(field: &'static str, name: &str, near: Vec<String>) -> Unanswerable {
    Unanswerable::Unknown { field, name: name.to_owned(), near }
}

fn unreadable(model: &str, error: &impl Display) -> Unanswerable {
    Unanswerable::Unreadable { model: model.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use hob_core::KvTypes;
    use hob_core::fit::{Engine, FitOptions, Format, flags};

    use super::*;

    fn asked(model: &str) -> FitRequest {
        FitRequest {
            model: model.to_owned(),
            quant: None,
            machine: None,
            options: FitOptions::default(),
            ignored: Vec::new(),
        }
    }

    /// The service in a home with at most one file.
    fn service(file: Option<&[u8]>) -> (tempfile::TempDir, FitData) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.gguf");
        if let Some(bytes) = file {
            std::fs::write(&path, bytes).expect("a file");
        }
        let configured = BTreeMap::from([("mine".to_owned(), ModelChoice::File(path))]);
        let (store, kept) =
            (ModelStore::in_home(folder.path()), MachineStore::in_home(folder.path()));
        let (hidden, seen) = (HiddenCards::default(), Mutex::default());
        (folder, FitData { store, configured, max_bytes: None, kept, hidden, seen })
    }

    #[test]
    fn a_model_of_the_table_is_asked_for_by_any_of_its_names_in_any_quant() {
        let (_folder, service) = service(None);
        for (name, quant, said) in [
            ("Qwen3-8B", None, ("Qwen3-8B", "Q4_K_M", Format::Gguf)),
            ("qwen3:8b", Some("q8_0"), ("Qwen3-8B", "Q8_0", Format::Gguf)),
            ("qwen3:8b", Some("AWQ"), ("Qwen3-8B", "AWQ", Format::Awq)),
            ("gpt-oss:120b", None, ("gpt-oss-120b", "MXFP4", Format::Gguf)),
        ] {
            let quant = quant.map(str::to_owned);
            let (model, _) = service.model(&FitRequest { quant, ..asked(name) }).expect("a model");
            assert_eq!((&*model.name, &*model.quant, model.format), said);
        }
        assert!(service.is_published("qwen3:8b") && !service.is_published("mine"));
        let answer = service.assess(&asked("SmolLM2-135M-Instruct")).expect("an answer");
        assert!(answer.verdict.contains("SmolLM2-135M-Instruct Q4_K_M"), "{}", answer.verdict);
    }

    #[test]
    fn every_model_that_is_listed_can_be_asked_about() {
        let (_folder, service) = service(None);
        for listed in service.models() {
            let (model, others) = service.model(&asked(&listed.name)).expect("a model");
            assert!(others.iter().all(|other| other.quant != model.quant), "{others:?}");
            assert_eq!(Some(model.shape.trained_context_tokens), listed.trained_context);
            assert_eq!((model.name, model.quant), (listed.name, listed.quant));
        }
    }

    #[test]
    fn every_machine_that_is_listed_can_be_asked_about() {
        let (_folder, service) = service(None);
        for machine in service.machines() {
            let request = FitRequest { machine: Some(machine), ..asked("SmolLM2-135M-Instruct") };
            let answer = service.assess(&request).expect("an answer");
            assert!(answer.fits, "{}", answer.verdict);
        }
        assert_eq!(service.machines()[0], HERE);
    }

    #[test]
    fn the_configuration_that_is_shown_names_the_file_that_is_here() {
        let (folder, service) =
            service(Some(&hob_models::gguf::sample::SampleGguf::llama().bytes()));
        let (model, _) = service.model(&asked("mine")).expect("a model");
        let path = folder.path().join("mine.gguf").display().to_string();
        assert_eq!(model.location, Location::File(path.clone()));
        let options = FitOptions { kv: Some(KvTypes::default()), ..FitOptions::default() };
        let assessed = assess(&service.here().facts.machine, &model, &options).expect("an answer");
        let flags = flags(&service.here().facts.machine, &model, &assessed.plans[0], 1);
        let hob = flags.iter().find(|flags| flags.engine == Engine::Hob).expect("hob's own");
        let table: toml::Table = hob.text.parse().expect("TOML");
        assert_eq!(table["chat"]["model"].as_str(), Some(&*path));
    }

    #[test]
    fn cards_that_are_left_out_are_a_warning_on_this_machine() {
        let (_folder, service) = service(None);
        let text = "models may use 1 of 2 graphics cards".to_owned();
        let here = Described { warnings: vec![hidden_cards_warning(text)], ..service.here() };
        // Not looked at again, however slow this test is.
        let seen_at = Instant::now() + 100 * SEEN;
        *service.seen.lock().expect("no panic") = Some((seen_at, here));
        for (machine, is_said) in [(None, true), (Some(HERE), true), (Some("rtx-4090"), false)] {
            let machine = machine.map(str::to_owned);
            let request = FitRequest { machine, ..asked("SmolLM2-135M-Instruct") };
            let answer = service.assess(&request).expect("an answer").to_json();
            assert_eq!(answer.contains("models may use 1 of 2"), is_said, "{answer}");
        }
    }

    #[test]
    fn no_more_is_free_than_hob_may_take() {
        let (_folder, service) = service(None);
        let service = FitData { max_bytes: Some(1_000), ..service };
        assert_eq!(service.here().facts.machine.memory.available_bytes, 1_000);
    }

    #[test]
    fn an_unknown_model_is_an_error_with_the_known_ones() {
        let (_folder, service) = service(Some(b"GGUF\x03"));
        let machine =
            |name: &str| FitRequest { machine: Some(name.to_owned()), ..asked("qwen3:8b") };
        let quant = |name: &str| FitRequest { quant: Some(name.to_owned()), ..asked("qwen3:8b") };
        let rows = [
            (asked("qwen3:8"), "there is no model 'qwen3:8' here; the nearest are qwen3:8b"),
            (machine("rtx-4080"), "there is no machine 'rtx-4080' here; the nearest are rtx-4090"),
            (quant("Q4_K_X"), "there is no quant 'Q4_K_X' here; the nearest are Q4_K_M"),
            (asked("mine"), "mine cannot be read: "),
        ];
        for (request, expected) in rows {
            let said = service.assess(&request).expect_err("a refusal").to_string();
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
