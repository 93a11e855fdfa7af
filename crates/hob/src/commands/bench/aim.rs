//! Which server is measured: an address, or the name of one in `hob.toml`, and the key that it wants.
//! The key comes from the environment or from the file, and is kept nowhere.

use clap::{Args, ValueEnum};
use hob_bench::target::{Api, Target, TargetError};

use crate::app::App;
use crate::cli::Globals;
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::Printer;
use crate::settings::Overrides;

#[derive(Debug, Args)]
pub(crate) struct AimArgs {
    /// The server: its address, or the name of an [upstream.NAME] of hob.toml
    #[arg(long, value_name = "NAME|URL", help_heading = "Target")]
    target: String,
    /// Which of its models; not needed where there is only one
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    model: Option<String>,
    /// Whose protocol it speaks
    #[arg(long, value_enum, default_value_t = ApiName::Auto, help_heading = "Target")]
    api: ApiName,
    /// The variable that holds its key
    #[arg(long, value_name = "VARIABLE", help_heading = "Target")]
    key_env: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ApiName {
    Auto,
    Openai,
    Ollama,
    Hob,
}

impl AimArgs {
    /// Asks who is there.
    pub(crate) fn find(&self, globals: &Globals, printer: &Printer) -> Outcome<Target> {
        let app = App::open(globals, Overrides::default(), printer)?;
        let url = self.url(&app)?;
        let key = self.key(&app)?;
        let api = match self.api {
            ApiName::Auto => None,
            ApiName::Openai => Some(Api::OpenAi),
            ApiName::Ollama => Some(Api::Ollama),
            ApiName::Hob => Some(Api::Hob),
        };
        Target::find(&url, api, self.model.as_deref(), key.as_deref()).map_err(failure)
    }

    fn url(&self, app: &App<'_>) -> Outcome<String> {
        if self.target.contains("://") {
            return Ok(self.target.clone());
        }
        let servers = &app.written.config.upstream;
        let known = servers.get(&self.target).and_then(|server| server.url.clone());
        known.ok_or_else(|| {
            Failure::usage(format!("no server is called '{}' in hob.toml", self.target))
                .hint("give an address, such as http://127.0.0.1:8484")
        })
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
