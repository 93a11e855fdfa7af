//! Which server is measured: an address, or the name of one in `hob.toml`, and the key that it wants.
//! A key goes to whom it belongs to: hob's own to a hob, a server's to that server; none is kept.

use clap::{Args, ValueEnum};
use hob_bench::target::{Api, Target, TargetError, is_hob};
use hob_upstream::UpstreamKind;

use crate::app::App;
use crate::cli::Globals;
use crate::config::{UpstreamSection, Written};
use crate::failure::{Exit, Failure, Outcome};
use crate::printer::Printer;
use crate::settings::gateway::{quoted, secret};
use crate::settings::{Environment, Overrides, Secret};

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
    /// The variable that holds its key; without it, its own in hob.toml, or for a hob hob's
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

/// What is known of a server before it is asked.
#[derive(Debug)]
struct Place {
    url: String,
    api: Option<Api>,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Its(Option<Secret>),
    /// hob's own, if a hob is there.
    Own,
}

impl AimArgs {
    /// Asks who is there.
    pub(crate) fn find(&self, globals: &Globals, printer: &Printer) -> Outcome<Target> {
        let app = App::open(globals, Overrides::default(), printer)?;
        let place = self.place(&app.written, &app.environment)?;
        let key = match place.key {
            Key::Its(key) => key,
            Key::Own => match app.settings.server.api_key.read()? {
                Some(key) if place.api == Some(Api::Hob) || is_hob(&place.url) => Some(key),
                _ => None,
            },
        };
        let key = key.as_ref().map(Secret::expose);
        Target::find(&place.url, place.api, self.model.as_deref(), key).map_err(failure)
    }

    fn place(&self, written: &Written, environment: &Environment) -> Outcome<Place> {
        let said = match self.api {
            ApiName::Auto => None,
            ApiName::Openai => Some(Api::OpenAi),
            ApiName::Ollama => Some(Api::Ollama),
            ApiName::Hob => Some(Api::Hob),
        };
        let named = self.key_env.as_ref().map(|variable| {
            let key = environment.secrets.get(variable).cloned();
            key.ok_or_else(|| Failure::usage(format!("the variable {variable} holds no key")))
        });
        let named = named.transpose()?;
        if self.target.contains("://") {
            let key = named.map_or(Key::Own, |key| Key::Its(Some(key)));
            return Ok(Place { url: self.target.clone(), api: said, key });
        }
        let server = written.config.upstream.get(&self.target).ok_or_else(|| {
            Failure::usage(format!("no server is called '{}' in hob.toml", self.target))
                .hint("give an address, such as http://127.0.0.1:8484")
        })?;
        let kind = server.kind.unwrap_or_default().0;
        let url = server.url.clone().or(kind.url().map(str::to_owned));
        let url = url.ok_or_else(|| {
            Failure::usage(format!("the server '{}' has no url in hob.toml", self.target))
        })?;
        let key = match named {
            Some(key) => Some(key),
            None => self.key_of(server, written, environment)?,
        };
        Ok(Place { url, api: said.or(api_of(kind)), key: Key::Its(key) })
    }

    /// As the gateway finds it.
    fn key_of(
        &self,
        server: &UpstreamSection,
        written: &Written,
        environment: &Environment,
    ) -> Outcome<Option<Secret>> {
        let key = server.key.as_deref().map(|source| secret(source, written, environment));
        key.transpose().map_err(|reason| {
            let place = format!("upstream.{}.key", quoted(&self.target));
            Failure::usage(format!("{}: {place}: {reason}", written.place(&place)))
        })
    }
}

/// Where the kind says it; the others are asked.
fn api_of(kind: UpstreamKind) -> Option<Api> {
    match kind {
        UpstreamKind::Hob => Some(Api::Hob),
        UpstreamKind::Ollama => Some(Api::Ollama),
        UpstreamKind::OpenAi
        | UpstreamKind::LlamaServer
        | UpstreamKind::Vllm
        | UpstreamKind::Sglang
        | UpstreamKind::Tabby
        | UpstreamKind::OpenRouter => Some(Api::OpenAi),
        UpstreamKind::Auto | UpstreamKind::Anthropic => None,
    }
}

fn failure(error: TargetError) -> Failure {
    match error {
        TargetError::Endpoint(_) => Failure::usage(error),
        TargetError::WhichModel { .. } => Failure::usage(error).hint("choose one with --model"),
        TargetError::Key { .. } => {
            Failure::new(Exit::Server, error).hint("name the variable that holds it with --key-env; hob's own goes to a hob only, which --api hob says")
        }
        TargetError::Ask(_) | TargetError::NoApi { .. } | TargetError::NoModel { .. } => {
            Failure::new(Exit::Server, error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const FILE: &str = "\
        [upstream.router]\nkind = \"openrouter\"\nkey = \"env:ROUTER\"\n\
        [upstream.gpu]\nurl = \"http://gpu:1\"\n\
        [upstream.nas]\nkind = \"hob\"\nurl = \"http://nas:1\"\n\
        [upstream.bad]\nurl = \"http://bad:1\"\nkey = \"env:NOPE\"\n\
        [upstream.nowhere]\nkind = \"vllm\"\n";

    fn place(target: &str, api: ApiName, key_env: Option<&str>) -> Result<String, String> {
        let config = toml::from_str(FILE).expect("a good file");
        let path = Some(PathBuf::from("hob.toml"));
        let written = Written { config, path, text: FILE.to_owned(), seen: None };
        let secret = |key: &str| Secret::new(key.to_owned());
        let mut environment =
            Environment { hob_api_key: Some(secret("own")), ..Environment::default() };
        environment.secrets.insert("ROUTER".to_owned(), secret("router's"));
        environment.secrets.insert("OTHER".to_owned(), secret("other's"));
        let key_env = key_env.map(str::to_owned);
        let args = AimArgs { target: target.to_owned(), model: None, api, key_env };
        let place = args.place(&written, &environment).map_err(|failure| failure.sentence)?;
        let key = match &place.key {
            Key::Its(key) => key.as_ref().map_or("none", Secret::expose),
            Key::Own => "own, if a hob is there",
        };
        Ok(format!("{} {:?} {key}", place.url, place.api))
    }

    #[test]
    fn every_server_gets_its_own_key_and_no_other() {
        let auto = ApiName::Auto;
        let rows = [
            ("http://box:1", auto, None, "http://box:1 None own, if a hob is there"),
            ("http://box:1", auto, Some("OTHER"), "http://box:1 None other's"),
            ("router", auto, None, "https://openrouter.ai/api/v1 Some(OpenAi) router's"),
            (
                "router",
                ApiName::Hob,
                Some("OTHER"),
                "https://openrouter.ai/api/v1 Some(Hob) other's",
            ),
            ("gpu", auto, None, "http://gpu:1 None none"),
            ("nas", auto, None, "http://nas:1 Some(Hob) none"),
        ];
        for (target, api, key_env, expected) in rows {
            assert_eq!(place(target, api, key_env), Ok(expected.to_owned()), "{target}");
        }
    }

    #[test]
    fn who_cannot_be_meant_is_refused() {
        let rows = [
            ("nobody", None, "no server is called 'nobody'"),
            ("nowhere", None, "the server 'nowhere' has no url"),
            ("bad", None, "hob.toml:11:1: upstream.bad.key: the variable NOPE is not set"),
            ("gpu", Some("NOPE"), "the variable NOPE holds no key"),
        ];
        for (target, key_env, expected) in rows {
            let sentence = place(target, ApiName::Auto, key_env).expect_err(target);
            assert!(sentence.starts_with(expected), "{sentence}");
        }
    }
}
