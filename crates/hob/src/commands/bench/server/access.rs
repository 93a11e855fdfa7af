//! What is known of a server before it is asked: its address, its protocol, and whose key it gets.
//! hob's own key goes to a hob, a server's to that server.

use hob_bench::plan::PlanApi;
use hob_bench::target::Api;
use hob_upstream::UpstreamKind;

use super::ServerArgs;
use crate::config::{LoadedConfig, UpstreamSection, quoted};
use crate::failure::{CliResult, Failure};
use crate::settings::gateway::secret;
use crate::settings::{Environment, Secret};

#[derive(Debug)]
pub(super) struct ServerAccess {
    pub(super) url: String,
    pub(super) api: Option<Api>,
    pub(super) key: Key,
}

#[derive(Debug)]
pub(super) enum Key {
    OfServer(Option<Secret>),
    /// hob's own, if a hob is there.
    Own,
}

impl ServerArgs {
    pub(super) fn access(
        &self,
        target: &str,
        written: &LoadedConfig,
        environment: &Environment,
    ) -> CliResult<ServerAccess> {
        let said = match self.api {
            PlanApi::Auto => None,
            PlanApi::Openai => Some(Api::OpenAi),
            PlanApi::Ollama => Some(Api::Ollama),
            PlanApi::Hob => Some(Api::Hob),
        };
        let named = self.key_env.as_ref().map(|variable| {
            let key = environment.secrets.get(variable).cloned();
            key.ok_or_else(|| {
                Failure::usage(format!("the environment variable {variable} is not set"))
                    .hint("export it with the server's key, or leave out --key-env")
            })
        });
        let named = named.transpose()?;
        if target.contains("://") {
            let key = named.map_or(Key::Own, |key| Key::OfServer(Some(key)));
            return Ok(ServerAccess { url: target.to_owned(), api: said, key });
        }
        let server = written.config.upstream.get(target).ok_or_else(|| {
            Failure::usage(format!("no server is called '{target}' in hob.toml"))
                .hint("give an address, such as http://127.0.0.1:8484")
        })?;
        let kind = server.kind.unwrap_or_default().0;
        let url = server.url.clone().or(kind.url().map(str::to_owned));
        let url = url.ok_or_else(|| {
            Failure::usage(format!("the server '{target}' has no url in hob.toml"))
                .hint("add url = \"http://…\" to its table")
        })?;
        let key = match named {
            Some(key) => Some(key),
            None => key_of(target, server, written, environment)?,
        };
        Ok(ServerAccess { url, api: said.or(api_of(kind)), key: Key::OfServer(key) })
    }
}

/// The key of an upstream, as the gateway finds it.
fn key_of(
    target: &str,
    server: &UpstreamSection,
    written: &LoadedConfig,
    environment: &Environment,
) -> CliResult<Option<Secret>> {
    let key = server.key.as_deref().map(|source| secret(source, written, environment));
    key.transpose().map_err(|reason| {
        let place = format!("upstream.{}.key", quoted(target));
        Failure::usage(format!("{}: {place}: {reason}", written.place(&place)))
    })
}

/// The API, if the kind decides it. Otherwise hob asks the server.
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

    fn access(target: &str, api: PlanApi, key_env: Option<&str>) -> Result<String, String> {
        let config = toml::from_str(FILE).expect("a good file");
        let path = Some(PathBuf::from("hob.toml"));
        let written = LoadedConfig { config, path, text: FILE.to_owned(), seen: None };
        let secret = |key: &str| Secret::new(key.to_owned());
        let mut environment =
            Environment { hob_api_key: Some(secret("own")), ..Environment::default() };
        environment.secrets.insert("ROUTER".to_owned(), secret("router's"));
        environment.secrets.insert("OTHER".to_owned(), secret("other's"));
        let key_env = key_env.map(str::to_owned);
        let args = ServerArgs { api, key_env, ..ServerArgs::of(target, None) };
        let access =
            args.access(target, &written, &environment).map_err(|failure| failure.sentence)?;
        let key = match &access.key {
            Key::OfServer(key) => key.as_ref().map_or("none", Secret::expose),
            Key::Own => "own, if a hob is there",
        };
        Ok(format!("{} {:?} {key}", access.url, access.api))
    }

    #[test]
    fn every_server_gets_its_own_key_and_no_other() {
        let auto = PlanApi::Auto;
        let rows = [
            ("http://box:1", auto, None, "http://box:1 None own, if a hob is there"),
            ("http://box:1", auto, Some("OTHER"), "http://box:1 None other's"),
            ("router", auto, None, "https://openrouter.ai/api/v1 Some(OpenAi) router's"),
            (
                "router",
                PlanApi::Hob,
                Some("OTHER"),
                "https://openrouter.ai/api/v1 Some(Hob) other's",
            ),
            ("gpu", auto, None, "http://gpu:1 None none"),
            ("nas", auto, None, "http://nas:1 Some(Hob) none"),
        ];
        for (target, api, key_env, expected) in rows {
            assert_eq!(access(target, api, key_env), Ok(expected.to_owned()), "{target}");
        }
    }

    #[test]
    fn a_target_without_address_or_key_is_refused() {
        let rows = [
            ("missing", None, "no server is called 'missing'"),
            ("nowhere", None, "the server 'nowhere' has no url"),
            (
                "bad",
                None,
                "hob.toml:11:1: upstream.bad.key: the environment variable NOPE is not set",
            ),
            ("gpu", Some("NOPE"), "the environment variable NOPE is not set"),
        ];
        for (target, key_env, expected) in rows {
            let sentence = access(target, PlanApi::Auto, key_env).expect_err(target);
            assert!(sentence.starts_with(expected), "{sentence}");
        }
    }
}
