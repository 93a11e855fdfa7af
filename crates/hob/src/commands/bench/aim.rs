//! Which server is measured: an address, the name of one in `hob.toml`, or one that is started for it.
//! The key comes from the environment or from the file, and is kept nowhere.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hob_bench::drive::{Endpoint, EndpointError};
use hob_bench::launch::{Launch, LaunchError};
use hob_bench::server::{Facts, Started};
use hob_bench::target::{Api, Target, TargetError};

use crate::app::App;
use crate::cli::Globals;
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::Printer;
use crate::settings::{ModelChoice, Overrides};
use crate::shelf::Shelf;

#[derive(Debug, Args)]
pub(crate) struct AimArgs {
    /// The server: its address, or the name of an [upstream.NAME] of hob.toml; without it, a hob is
    /// started and ended again
    #[arg(long, value_name = "NAME|URL", help_heading = "Target")]
    target: Option<String>,
    /// Which of its models; not needed where there is only one
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    model: Option<String>,
    /// Whose protocol it speaks
    #[arg(long, value_enum, default_value_t = ApiName::Auto, help_heading = "Target")]
    api: ApiName,
    /// The variable that holds its key
    #[arg(long, value_name = "VARIABLE", help_heading = "Target")]
    key_env: Option<String>,
    /// The command line that starts it: it is started anew for half of the runs, and ended after them
    #[arg(long, value_name = "COMMAND", requires = "target", help_heading = "Target")]
    launch: Option<String>,
    /// What answers 200 once it is ready
    #[arg(long, value_name = "PATH", default_value = "/v1/models", help_heading = "Target")]
    ready: String,
    /// A server that is not ready after so long has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 300, help_heading = "Target")]
    ready_s: u64,
    /// How long a context it is started with: what {ctx} stands for in its command line
    #[arg(long, value_name = "TOKENS", help_heading = "Target")]
    context: Option<u64>,
    /// The file of its weights, to be hashed: figures of unknown weights stay soft
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    model_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ApiName {
    Auto,
    Openai,
    Ollama,
    Hob,
}

/// What the server is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Chat,
    Speech,
}

/// Where to, in the words of the library; nobody has been asked yet.
#[derive(Debug)]
pub(crate) struct Aim {
    purpose: Purpose,
    url: String,
    api: Option<Api>,
    model: Option<String>,
    key: Option<String>,
    launch: Option<Launch>,
    places: BTreeMap<String, String>,
    model_file: Option<PathBuf>,
    /// How it is started, as a record says it.
    argv: Vec<String>,
}

/// What a hob is started with.
#[derive(Debug)]
struct Own {
    model: String,
    flag: Option<String>,
    weights: Option<PathBuf>,
    /// Where another address says it than everywhere.
    ready: Option<String>,
}

/// Who is there.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) target: Target,
    pub(crate) started: Option<Started>,
    pub(crate) facts: Facts,
}

impl AimArgs {
    pub(crate) fn settle(&self, globals: &Globals, printer: &Printer) -> Outcome<Aim> {
        self.settle_for(Purpose::Chat, globals, printer)
    }

    pub(crate) fn settle_for(
        &self,
        purpose: Purpose,
        globals: &Globals,
        printer: &Printer,
    ) -> Outcome<Aim> {
        let app = App::open(globals, Overrides::default(), printer)?;
        let api = match self.api {
            ApiName::Auto => None,
            ApiName::Openai => Some(Api::OpenAi),
            ApiName::Ollama => Some(Api::Ollama),
            ApiName::Hob => Some(Api::Hob),
        };
        let (key, model, model_file) =
            (self.key(&app)?, self.model.clone(), self.model_file.clone());
        let Some(target) = &self.target else { return self.own(purpose, app, globals) };
        let url = url(target, &app)?;
        let launch = self.launch.as_ref().map(|command| self.launch(command.clone(), &url));
        let launch = launch.transpose().map_err(Failure::usage)?;
        let argv = self.launch.iter().cloned().collect();
        let places = self.places();
        Ok(Aim { purpose, url, api, model, key, launch, places, model_file, argv })
    }

    fn launch(&self, command: String, url: &str) -> Result<Launch, EndpointError> {
        Ok(Launch {
            command,
            endpoint: Endpoint::parse(url)?,
            ready: self.ready.clone(),
            patience: Duration::from_secs(self.ready_s),
        })
    }

    /// This very program, on a port that is free, with the model that is asked for.
    fn own(&self, purpose: Purpose, app: App<'_>, globals: &Globals) -> Outcome<Aim> {
        let failed = |error| Failure::io("no server can be started here", &error);
        let program = std::env::current_exe().map_err(failed)?;
        let port = free_port().map_err(failed)?;
        let own = match purpose {
            Purpose::Chat => self.own_chat(&app),
            Purpose::Speech => self.own_speech(&app)?,
        };
        let mut argv = vec!["serve".to_owned(), format!("--listen=127.0.0.1:{port}")];
        argv.extend(own.flag);
        let config = globals.config.iter().map(|file| format!("--config={}", file.display()));
        let home = globals.home.iter().map(|folder| format!("--home={}", folder.display()));
        let words = argv.iter().cloned().chain(config).chain(home).map(|word| quoted(&word));
        let mut command = format!("exec {}", quoted(&program.to_string_lossy()));
        words.for_each(|word| command.extend([" ", &word]));
        if self.context.is_some() {
            command.push_str(" --context={ctx}");
        }
        let url = format!("http://127.0.0.1:{port}");
        let mut launch = self.launch(command, &url).map_err(Failure::usage)?;
        launch.ready = own.ready.unwrap_or(launch.ready);
        Ok(Aim {
            purpose,
            url,
            api: Some(Api::Hob),
            model: Some(own.model),
            key: app.environment.hob_api_key.as_ref().map(|key| key.expose().to_owned()),
            launch: Some(launch),
            places: self.places(),
            model_file: self.model_file.clone().or(own.weights),
            argv: ["hob".to_owned()].into_iter().chain(argv).collect(),
        })
    }

    fn own_chat(&self, app: &App<'_>) -> Own {
        let chosen = self.model.as_ref().map(|model| app.with_chat_model(model));
        let app = chosen.as_ref().unwrap_or(app);
        let chat = &app.settings.chat.model;
        let flag = Some(format!("--chat-model={}", chat.as_written()));
        Own { model: chat.name(), flag, weights: weights(app), ready: None }
    }

    /// The chat model beside it is loaded when somebody chats, and here nobody does.
    fn own_speech(&self, app: &App<'_>) -> Outcome<Own> {
        let stored = Shelf::open(app).speech()?;
        match &self.model {
            Some(model) if *model != stored.name => {
                let sentence =
                    format!("hob speaks with {} only, and not with {model}", stored.name);
                Err(Failure::usage(sentence).hint("another server is named by --target"))
            }
            _ => Ok(Own {
                flag: None,
                weights: Some(stored.manifest()),
                model: stored.name,
                ready: Some("/ready".to_owned()),
            }),
        }
    }

    fn places(&self) -> BTreeMap<String, String> {
        self.context.iter().map(|tokens| ("ctx".to_owned(), tokens.to_string())).collect()
    }

    fn key(&self, app: &App<'_>) -> Outcome<Option<String>> {
        let environment = &app.environment;
        let Some(variable) = &self.key_env else {
            // One's own server asks for one's own key.
            return Ok(environment.hob_api_key.as_ref().map(|key| key.expose().to_owned()));
        };
        let key = environment.secrets.get(variable).map(|key| key.expose().to_owned());
        let missing = || Failure::usage(format!("the variable {variable} holds no key"));
        key.map(Some).ok_or_else(missing)
    }
}

impl Aim {
    /// Starts it where that is wanted, and asks who is there.
    pub(crate) fn reach(self, stop: &AtomicBool) -> Outcome<Reached> {
        let started = self.launch.map(|launch| Started::begin(launch, self.places, stop));
        let started = started.transpose().map_err(unlaunched)?;
        let key = self.key.as_deref();
        let spoken = || (self.purpose == Purpose::Speech).then(|| Target::spoken(&self.url, key));
        let model = self.model.clone().or_else(|| spoken().flatten());
        let target = Target::find(&self.url, self.api, model.as_deref(), key).map_err(failure)?;
        let mut facts = Facts::told(&target);
        facts.engine.argv = self.argv;
        if let Some(file) = &self.model_file {
            let doing = format!("{} cannot be hashed", file.display());
            facts.add_file(file).map_err(|error| Failure::io(doing, &error))?;
        }
        Ok(Reached { target, started, facts })
    }
}

fn url(target: &str, app: &App<'_>) -> Outcome<String> {
    if target.contains("://") {
        return Ok(target.to_owned());
    }
    let servers = &app.written.config.upstream;
    let known = servers.get(target).and_then(|server| server.url.clone());
    known.ok_or_else(|| {
        Failure::usage(format!("no server is called '{target}' in hob.toml"))
            .hint("give an address, such as http://127.0.0.1:8484")
    })
}

/// What `hob serve` will load; none where nothing is there, which it says itself.
fn weights(app: &App<'_>) -> Option<PathBuf> {
    match &app.settings.chat.model {
        ModelChoice::File(file) => Some(file.clone()),
        ModelChoice::Named(name) => Shelf::open(app).chat_file(name).ok().map(|(file, _)| file),
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// One word for the shell, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

pub(crate) fn unlaunched(error: LaunchError) -> Failure {
    match error {
        LaunchError::Unfilled { .. } => Failure::usage(error),
        LaunchError::Taken { .. } => {
            Failure::new(Exit::Server, error).hint("stop it, or measure it without --launch")
        }
        _ => Failure::new(Exit::Server, error),
    }
}

fn failure(error: TargetError) -> Failure {
    match error {
        TargetError::Endpoint(_) => Failure::usage(error),
        TargetError::WhichModel { .. } => Failure::usage(error).hint("choose one with --model"),
        TargetError::Key { .. } => {
            Failure::new(Exit::Server, error).hint("name the variable that holds it with --key-env")
        }
        TargetError::Ask(_) | TargetError::NoApi { .. } | TargetError::NoModel { .. } => {
            Failure::new(Exit::Server, error)
        }
    }
}
