//! The server that is measured: an address, the name of one in `hob.toml`, or one that is started for the measurement.
//! hob's own key goes to a hob only, and a server's key to that server only. Records keep no key.

mod access;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use hob_bench::drive::{Endpoint, EndpointError};
use hob_bench::launch::{AwaitedModel, Launch, LaunchError};
use hob_bench::max_context::PLACE;
use hob_bench::plan::PlanApi;
use hob_bench::record::CPU_BACKEND;
use hob_bench::runs::BenchError;
use hob_bench::server::{ServerFacts, StartedServer};
use hob_bench::target::{Api, Target, TargetError, is_hob};
use hob_bench::timeline::RequestFault;
use hob_core::Kind;
use hob_engines::chat::has_card_kernels;

use crate::app::App;
use crate::arguments::one_of;
use crate::config::LoadAt;
use crate::failure::{CliResult, Failure};
use crate::globals::Globals;
use crate::model_store::ModelStore;
use crate::printer::Printer;
use crate::settings::{ModelChoice, Overrides, Secret};
use crate::signals::interrupted;
use access::{Key, ServerAccess};

/// The default path that answers 200 when a server is ready.
pub(crate) const READY: &str = "/v1/models";
pub(crate) const READY_S: u64 = 300;
const CHAT_ON_DEMAND: &str = "--chat-on-demand";

#[derive(Clone, Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server: its address, or the name of an [upstream.NAME] of hob.toml; without it, hob starts a server and
    /// ends it again
    #[arg(long, value_name = "NAME|URL", help_heading = "Target")]
    pub(crate) target: Option<String>,
    /// The model to measure; not needed if the server has only one
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    pub(crate) model: Option<String>,
    /// The API of the server
    #[arg(long, value_parser = one_of(APIS), default_value = "auto", help_heading = "Target")]
    pub(crate) api: PlanApi,
    /// The environment variable with the server's key [default: the upstream's key in hob.toml; for a hob, HOB_API_KEY]
    #[arg(long, value_name = "VARIABLE", requires = "target", help_heading = "Target")]
    pub(crate) key_env: Option<String>,
    /// The command line that starts the server. hob restarts the server after half of the runs, and stops
    /// it at the end
    #[arg(long, value_name = "COMMAND", requires = "target", help_heading = "Target")]
    pub(crate) launch: Option<String>,
    /// The path that answers 200 when the server is ready; with a hob server, hob also waits for the model under test
    #[arg(long, value_name = "PATH", default_value = READY, requires = "launch", help_heading = "Target")]
    pub(crate) ready: String,
    /// Time after which a server that is not ready counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = READY_S, help_heading = "Target")]
    pub(crate) ready_s: u64,
    /// Context length to start the server with; it replaces {ctx} in the command line
    #[arg(long, value_name = "TOKENS", help_heading = "Target")]
    pub(crate) context: Option<u64>,
    /// The file of its weights; the record keeps its hash, and without one the figures stay unverified
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    pub(crate) model_file: Option<PathBuf>,
}

const APIS: [(&str, &str, PlanApi); 4] = [
    ("auto", "", PlanApi::Auto),
    ("openai", "", PlanApi::Openai),
    ("ollama", "", PlanApi::Ollama),
    ("hob", "", PlanApi::Hob),
];

/// The address and protocol, in the library's types. No request has been sent yet.
#[derive(Debug)]
pub(crate) struct ServerPlan {
    purpose: Kind,
    url: String,
    api: Option<Api>,
    model: Option<String>,
    key: Key,
    own_key: Option<Secret>,
    launch: Option<Launch>,
    /// Keeps the port of a hob from others until it is started: it may have to wait for its turn.
    port: Option<TcpListener>,
    places: BTreeMap<String, String>,
    model_file: Option<PathBuf>,
    /// The command that starts the server, as a record says it.
    argv: Vec<String>,
    /// The backend that computes, if it is known before the server answers.
    backend: Option<&'static str>,
}

/// How hob starts a hob of its own.
#[derive(Debug)]
struct Own {
    model: String,
    flags: Vec<String>,
    weights: Option<PathBuf>,
    /// The path that tells when the server is ready, if it is not [`READY`].
    ready: Option<String>,
    /// Whether the start is over only when the model is in memory.
    is_loaded_at_start: bool,
}

/// A server that answers, and what it reports about itself.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) target: Target,
    pub(crate) started: Option<StartedServer>,
    pub(crate) facts: ServerFacts,
}

impl ServerArgs {
    /// A server that is there, with all else as usual.
    pub(crate) fn of(target: &str, model: Option<&String>) -> ServerArgs {
        ServerArgs {
            target: Some(target.to_owned()),
            model: model.cloned(),
            api: PlanApi::Auto,
            key_env: None,
            launch: None,
            ready: READY.to_owned(),
            ready_s: READY_S,
            context: None,
            model_file: None,
        }
    }

    /// Decides what is measured; no server is asked yet.
    ///
    /// # Errors
    /// The options do not fit together, or name no server.
    pub(crate) fn settle(
        &self,
        purpose: Kind,
        globals: &Globals,
        printer: &Printer,
    ) -> CliResult<ServerPlan> {
        let app = App::open(globals, Overrides::default(), printer)?;
        let Some(target) = &self.target else { return self.own(purpose, app, globals) };
        if self.launch.is_none() && self.ready_s != READY_S {
            let sentence = "--ready-s has no effect: hob does not start the server of --target";
            return Err(Failure::usage(sentence)
                .hint("give the command that starts it to --launch, or leave out --ready-s"));
        }
        let ServerAccess { url, api, key } = self.access(target, &app.written, &app.environment)?;
        let own_key = app.settings.server.api_key.read()?;
        let awaited = self.awaited(purpose, api, (&key, own_key.as_ref()));
        if let Some(secret) = self.launch.as_deref().and_then(secret) {
            let sentence = format!("--launch has a secret in it ({secret}), and records keep it");
            return Err(Failure::usage(sentence)
                .hint("export it as the variable that the server reads, such as LLAMA_API_KEY"));
        }
        let launch = |command: &String| self.launch(command.clone(), &url, Some(awaited));
        let launch = self.launch.as_ref().map(launch).transpose().map_err(Failure::usage)?;
        let (model, model_file) = (self.model.clone(), self.model_file.clone());
        let (places, argv) = (self.places(), self.launch.iter().cloned().collect());
        // A server that is already running does not say.
        let backend = None;
        Ok(ServerPlan {
            purpose,
            url,
            api,
            model,
            key,
            own_key,
            launch,
            port: None,
            places,
            model_file,
            argv,
            backend,
        })
    }

    /// The model under test, if the server is a hob. hob's own key goes to a server that is known as one.
    fn awaited(
        &self,
        purpose: Kind,
        api: Option<Api>,
        (key, own_key): (&Key, Option<&Secret>),
    ) -> AwaitedModel {
        let key = match key {
            Key::OfServer(key) => key.as_ref(),
            Key::Own => own_key.filter(|_| api == Some(Api::Hob)),
        };
        let key = key.map(|key| key.expose().to_owned());
        AwaitedModel { name: self.model.clone(), kind: purpose.name(), key }
    }

    fn launch(
        &self,
        command: String,
        url: &str,
        awaited: Option<AwaitedModel>,
    ) -> Result<Launch, EndpointError> {
        Ok(Launch {
            command,
            endpoint: Endpoint::parse(url)?,
            ready: self.ready.clone(),
            awaited,
            ready_time_max: Duration::from_secs(self.ready_s),
        })
    }

    /// This very program, on a port that is free, with the model that is asked for.
    fn own(&self, purpose: Kind, app: App<'_>, globals: &Globals) -> CliResult<ServerPlan> {
        let failed = |error| Failure::io("no server can be started here", &error);
        let program = std::env::current_exe().map_err(failed)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let own = match purpose {
            Kind::Chat => self.own_chat(&app),
            Kind::Speech => self.own_speech(&app)?,
            Kind::Transcription => self.own_transcription(&app)?,
        };
        let mut argv = vec!["serve".to_owned(), format!("--listen=127.0.0.1:{port}")];
        argv.extend(own.flags);
        let config = globals.config.iter().map(|file| format!("--config={}", file.display()));
        let home = globals.home.iter().map(|folder| format!("--home={}", folder.display()));
        let words = argv.iter().cloned().chain(config).chain(home).map(|word| shell_word(&word));
        let mut command = format!("exec {}", shell_word(&program.to_string_lossy()));
        words.for_each(|word| command.extend([" ", &word]));
        if self.context.is_some() {
            command.push_str(" --context={ctx}");
        }
        let url = format!("http://127.0.0.1:{port}");
        let own_key = app.settings.server.api_key.read()?;
        let awaited = self.awaited(purpose, Some(Api::Hob), (&Key::Own, own_key.as_ref()));
        let awaited = AwaitedModel { name: Some(own.model.clone()), ..awaited };
        let awaited = Some(awaited).filter(|_| own.is_loaded_at_start);
        let mut launch = self.launch(command, &url, awaited).map_err(Failure::usage)?;
        launch.ready = own.ready.unwrap_or(launch.ready);
        Ok(ServerPlan {
            purpose,
            url,
            api: Some(Api::Hob),
            model: Some(own.model),
            key: Key::Own,
            own_key,
            launch: Some(launch),
            port: Some(listener),
            places: self.places(),
            model_file: self.model_file.clone().or(own.weights),
            argv: ["hob".to_owned()].into_iter().chain(argv).collect(),
            backend: (!has_card_kernels()).then_some(CPU_BACKEND),
        })
    }

    fn own_chat(&self, app: &App<'_>) -> Own {
        let is_loaded_at_start = app.settings.chat.load == LoadAt::Start;
        let chosen = self.model.as_ref().map(|model| app.with_chat_model(model));
        let app = chosen.as_ref().unwrap_or(app);
        let chat = &app.settings.chat.model;
        let flags = vec![format!("--chat-model={}", chat.as_written())];
        Own { model: chat.name(), flags, weights: weights(app), ready: None, is_loaded_at_start }
    }

    /// Chat models load on demand: no request needs one, and its load would disturb the first runs.
    fn own_speech(&self, app: &App<'_>) -> CliResult<Own> {
        let store = ModelStore::open(app);
        let stored = match &self.model {
            Some(name) => store.speech_named(name)?,
            None => store.speech()?,
        };
        Ok(Own {
            flags: vec![format!("--speech-model={}", stored.name), CHAT_ON_DEMAND.to_owned()],
            weights: Some(stored.manifest()),
            model: stored.name,
            ready: Some("/ready".to_owned()),
            is_loaded_at_start: false,
        })
    }

    /// The speech model is loaded as well, because it speaks the clips where there is no set. No chat model is.
    fn own_transcription(&self, app: &App<'_>) -> CliResult<Own> {
        let typed = self.model.as_ref().map(|model| {
            ModelChoice::new(model, |path| app.environment.folders.working.join(path))
        });
        let choice = typed.as_ref().unwrap_or(&app.settings.transcription.model);
        let stored = ModelStore::open(app).transcription(choice)?;
        let flag = format!("--transcription-model={}", choice.as_written());
        Ok(Own {
            flags: vec![flag, CHAT_ON_DEMAND.to_owned()],
            weights: Some(stored.weights),
            model: stored.name,
            ready: None,
            is_loaded_at_start: false,
        })
    }

    fn places(&self) -> BTreeMap<String, String> {
        self.context.iter().map(|tokens| (PLACE.to_owned(), tokens.to_string())).collect()
    }
}

impl ServerArgs {
    /// The options as a person would type them; defaults are left out.
    pub(crate) fn words(&self) -> Vec<String> {
        let api = APIS.into_iter().find(|(_, _, api)| *api == self.api);
        let api = api.filter(|_| self.api != PlanApi::Auto).map(|(name, _, _)| name.to_owned());
        let ready = Some(&self.ready).filter(|ready| *ready != READY);
        let rows = [
            ("--target", self.target.clone()),
            ("--model", self.model.clone()),
            ("--api", api),
            ("--key-env", self.key_env.clone()),
            ("--launch", self.launch.clone()),
            ("--ready", self.launch.as_ref().and(ready).cloned()),
            ("--context", self.context.map(|tokens| tokens.to_string())),
            ("--model-file", self.model_file.as_ref().map(|file| file.display().to_string())),
        ];
        let said = rows.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        said.flatten().collect()
    }
}

impl ServerPlan {
    /// What is known before the server answers.
    pub(crate) fn facts(&self) -> ServerFacts {
        let mut facts = ServerFacts::default();
        facts.engine.argv.clone_from(&self.argv);
        facts.engine.backend = self.backend.map(str::to_owned);
        facts.model.name = self.model.clone().unwrap_or_default();
        facts
    }

    /// Starts the server if it has a start command, and asks which models it has.
    pub(crate) fn reach(self, stop: &AtomicBool) -> Result<Reached, BenchError> {
        drop(self.port);
        let started = self.launch.map(|launch| StartedServer::begin(launch, self.places, stop));
        let mut started = started.transpose()?;
        if let Some(started) = &mut started {
            started.weights.clone_from(&self.model_file);
        }
        let key = match self.key {
            Key::OfServer(key) => key,
            Key::Own => self.own_key.filter(|_| self.api == Some(Api::Hob) || is_hob(&self.url)),
        };
        let key = key.as_ref().map(Secret::expose);
        let speech =
            || (self.purpose == Kind::Speech).then(|| Target::only_speech_model(&self.url, key));
        let of_kind = || Target::only_of_kind(&self.url, key, self.purpose.name());
        let model = self.model.clone().or_else(|| speech().flatten()).or_else(of_kind);
        let target = Target::find(&self.url, self.api, model.as_deref(), key)?;
        let mut facts = ServerFacts::reported(&target);
        facts.engine.argv = self.argv;
        facts.engine.backend = facts.engine.backend.or(self.backend.map(str::to_owned));
        if let Some(file) = &self.model_file {
            let shown = file.display().to_string();
            let failed = |source| BenchError::Unreadable { file: shown, source };
            facts.add_file(file).map_err(failed)?;
        }
        Ok(Reached { target, started, facts })
    }
}

/// The file that `hob serve` will load. `None` if the model is not stored, which `hob serve` then reports.
fn weights(app: &App<'_>) -> Option<PathBuf> {
    match &app.settings.chat.model {
        ModelChoice::File(file) => Some(file.clone()),
        ModelChoice::Named(name) => {
            ModelStore::open(app).chat_file(name).ok().map(|(file, _)| file)
        }
    }
}

/// Quotes any text as one word for the shell.
fn shell_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The flag or variable before a secret value.
fn secret(command: &str) -> Option<&str> {
    const NAMES: [&str; 4] = ["key", "token", "secret", "password"];
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_secret = |name: &str| {
        let last = name.trim_start_matches('-').rsplit(['-', '_']).next().unwrap_or_default();
        NAMES.contains(&last.to_ascii_lowercase().as_str())
    };
    words.iter().enumerate().find_map(|(at, word)| {
        let (name, value) =
            word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
        let value = match value {
            None if name.starts_with("--") => {
                words.get(at + 1).copied().filter(|next| !next.starts_with('-'))
            }
            value => value,
        };
        // A placeholder for a variable of the environment is not a secret.
        let is_said = value.is_some_and(|value| !value.is_empty() && !value.starts_with('$'));
        (is_secret(name) && is_said).then_some(name)
    })
}

/// What a user can do about it.
pub(crate) fn failure(error: BenchError) -> Failure {
    match &error {
        BenchError::ToolsNeedChat { .. }
        | BenchError::NotAChoice { .. }
        | BenchError::NoLogprobs { .. } => Failure::usage(&error),
        BenchError::Launch(LaunchError::Stopped) | BenchError::Fault(RequestFault::Stopped) => {
            interrupted().hint("finished records are stored")
        }
        BenchError::Launch(LaunchError::Unfilled { .. })
        | BenchError::Drive(_)
        | BenchError::Target(TargetError::Endpoint(_)) => Failure::usage(error),
        BenchError::Launch(LaunchError::Taken { .. }) => {
            Failure::server(error).hint("stop it, or measure it without --launch")
        }
        BenchError::Target(TargetError::WhichModel { .. }) => {
            Failure::usage(error).hint("choose one with --model")
        }
        BenchError::Target(TargetError::Key { .. }) => {
            Failure::server(error).hint(
                "give the variable with the key to --key-env; hob sends HOB_API_KEY only to a hob: --api hob says that it is one",
            )
        }
        BenchError::Record(_) => {
            Failure::internal(error).hint("choose another folder with --out")
        }
        BenchError::NotStarted { .. } => Failure::usage(error)
            .hint("give --launch the command that starts it, or leave out --target: hob then starts a hob"),
        BenchError::NoVoice { .. } => Failure::usage(error).hint("choose one with --voice"),
        BenchError::NotSpoken { .. } | BenchError::NotWav { .. } => {
            Failure::server(error)
                .hint("name a model that speaks with --speech-model, or recordings with --set")
        }
        BenchError::NoWeights => Failure::usage(error).hint("give the file with --model-file"),
        BenchError::Weights(_) | BenchError::Unreadable { .. } => {
            Failure::internal(error)
        }
        BenchError::Launch(_)
        | BenchError::Target(_)
        | BenchError::Fault(_)
        | BenchError::Sound(_) => Failure::server(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_under_test_is_waited_for_with_the_key_that_is_its_server_s() {
        let secret = |key: &str| Secret::new(key.to_owned());
        let args = ServerArgs::of("http://127.0.0.1:1", Some(&"m".to_owned()));
        let own = secret("own");
        let awaited = |api, key: &Key| {
            let AwaitedModel { name, kind, key } =
                args.awaited(Kind::Speech, api, (key, Some(&own)));
            assert_eq!((name.as_deref(), kind), (Some("m"), "speech"));
            key
        };
        assert_eq!(awaited(None, &Key::OfServer(Some(secret("its")))).as_deref(), Some("its"));
        assert_eq!(awaited(Some(Api::Hob), &Key::Own).as_deref(), Some("own"));
        assert_eq!(awaited(None, &Key::Own), None, "it may be another server");
    }

    #[test]
    fn a_secret_in_a_command_line_is_found() {
        let rows = [
            ("llama-server -m a.gguf --api-key s3cret --port 1", Some("--api-key")),
            ("llama-server --api-key=s3cret", Some("--api-key")),
            ("env VLLM_API_KEY=abc vllm serve m", Some("VLLM_API_KEY")),
            ("HF_TOKEN=hf_abc serve", Some("HF_TOKEN")),
            ("serve --api-key $KEY", None),
            ("llama-server --api-key-file /run/key -m tokens.gguf", None),
            ("serve --max-tokens 5 --tokenizer x --top-k 3", None),
        ];
        for (command, expected) in rows {
            assert_eq!(secret(command), expected, "{command}");
        }
    }

    #[test]
    fn an_option_needs_the_server_or_the_start_that_it_is_for() {
        let kind = |options: &str| {
            let words = format!("hob bench llm {options}");
            let parsed = crate::cli::command().try_get_matches_from(words.split(' '));
            parsed.err().map(|error| error.kind())
        };
        let missing = Some(clap::error::ErrorKind::MissingRequiredArgument);
        for options in ["--key-env K", "--launch l", "--ready /r", "--target t --ready /r"] {
            assert_eq!(kind(options), missing, "{options}");
        }
        for options in ["--target t --launch l --ready /r --ready-s 9", "--ready-s 9"] {
            assert_eq!(kind(options), None, "{options}");
        }
    }

    #[test]
    fn a_plan_s_ready_path_is_repeated_only_with_the_command_that_needs_it() {
        let mut args = ServerArgs { ready: "/r".to_owned(), ..ServerArgs::of("t", None) };
        assert_eq!(args.words(), ["--target", "t"]);
        args.launch = Some("l".to_owned());
        assert_eq!(args.words(), ["--target", "t", "--launch", "l", "--ready", "/r"]);
    }
}
