//! The target of a measurement: address, API and model of a server.
//! Requests find out what is unknown, and the record keeps the results.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::ask::{AskError, WholeResponse, ask, client_headers};
use crate::drive::{Endpoint, EndpointError};
use crate::timeline::Protocol;

/// Timeout of lists and versions.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum length of a version.
const VERSION_BYTES_MAX: usize = 100;
/// Maximum number of models that an error names.
const NAMED_MAX: usize = 20;

const SPEECH_MODELS: &str = "/v1/audio/models";

/// Engines with OpenAI's API: `owned_by` in their list of models, name, and path of their version.
const ENGINES: [(&str, &str, &str); 3] = [
    ("vllm", VLLM, "/version"),
    ("tensorrt_llm", "TensorRT-LLM", "/version"),
    ("sglang", SGLANG, "/get_server_info"),
];
const VLLM: &str = "vLLM";
const SGLANG: &str = "SGLang";

/// The API of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    OpenAi,
    Ollama,
    /// OpenAI's API with hob's extensions.
    Hob,
}

impl Api {
    pub fn protocol(self) -> Protocol {
        match self {
            Api::OpenAi | Api::Hob => Protocol::OpenAi,
            Api::Ollama => Protocol::Ollama,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Target {
    pub endpoint: Endpoint,
    pub api: Api,
    pub model: String,
    pub key: Option<String>,
    /// Name of the engine, if the server reports it.
    pub engine: Option<String>,
    pub version: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("{server} rejects the key (status {status})")]
    Key { server: String, status: u16 },
    #[error("{server} has no list of models at {paths} (status {status})")]
    NoApi { server: String, paths: &'static str, status: u16 },
    #[error("{server} has several models: {}", named(models))]
    WhichModel { server: String, models: Vec<String> },
    #[error("{server} has no model {model}; it lists {}", named(models))]
    NotListed { server: String, model: String, models: Vec<String> },
    #[error("{server} has no model")]
    NoModel { server: String },
}

impl Target {
    /// The only speech model of a server that lists speech models separately, as hob does.
    pub fn only_speech_model(url: &str, key: Option<&str>) -> Option<String> {
        only_listed(&Endpoint::parse(url).ok()?, key, SPEECH_MODELS, models)
    }

    /// The only model of a kind, such as `chat`, on a server that lists the kinds of its models, as hob does.
    pub fn only_of_kind(url: &str, key: Option<&str>, kind: &str) -> Option<String> {
        let endpoint = Endpoint::parse(url).ok()?;
        only_listed(&endpoint, key, "/v1/models", |body| models_of_kind(body, kind))
    }

    /// See [`Target::only_speech_model`].
    pub fn speech_model(&self) -> Option<String> {
        only_listed(&self.endpoint, self.key.as_deref(), SPEECH_MODELS, models)
    }

    /// A whole POST request with a body of JSON. `id` is its `x-request-id`.
    pub(crate) fn post(&self, path: &str, body: &str, id: Option<usize>) -> Bytes {
        let id = id.map_or(String::new(), |id| format!("x-request-id: {id}\r\n"));
        let headers = format!("{}accept: */*\r\n{id}", client_headers(self.key.as_deref()));
        self.endpoint.post(path, &headers, body)
    }

    /// The body of an answer with status 200 to a GET request, or to a POST request if there is a body.
    pub(crate) fn body_of(&self, path: &str, body: Option<Value>) -> Option<Vec<u8>> {
        let body = body.map(|body| body.to_string());
        let asked =
            ask(&self.endpoint, path, self.key.as_deref(), body.as_deref(), ANSWER_TIME_MAX);
        asked.ok().filter(|asked| asked.status == 200).map(|asked| asked.body)
    }

    /// The body that [`Self::body_of`] returns, as JSON. Null without a body.
    pub(crate) fn json_of(&self, path: &str, body: Option<Value>) -> Value {
        let body = self.body_of(path, body);
        body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default()
    }

    /// Refuses a model that a server with OpenAI's API does not list, because some servers answer with another model
    /// then. A server that lists no models may have any. A hob itself refuses models that it does not have.
    ///
    /// # Errors
    /// The server does not answer, or lists only other models.
    pub fn check_listed(&self) -> Result<(), TargetError> {
        if self.api != Api::OpenAi || self.engine.as_deref() == Some("hob") {
            return Ok(());
        }
        let asked = ask(&self.endpoint, "/v1/models", self.key.as_deref(), None, ANSWER_TIME_MAX)?;
        let models = models(&asked.body);
        if models.is_empty() || models.contains(&self.model) {
            return Ok(());
        }
        let (server, model) = (self.endpoint.authority(), self.model.clone());
        Err(TargetError::NotListed { server, model, models })
    }

    /// Finds out API and engine of a server. Without a model's name, the server must have exactly one model.
    ///
    /// # Errors
    /// The server does not answer, rejects the key, lists no models, or lists several.
    pub fn find(
        url: &str,
        api: Option<Api>,
        model: Option<&str>,
        key: Option<&str>,
    ) -> Result<Target, TargetError> {
        let endpoint = Endpoint::parse(url)?;
        let server = endpoint.authority();
        let get = |path: &str| ask(&endpoint, path, key, None, ANSWER_TIME_MAX);
        let listed = match api {
            Some(Api::Ollama) => get("/api/tags")?,
            _ => get("/v1/models")?,
        };
        let is_hob = says_hob(&get);
        let asked_for = api;
        let (api, listed) = match (api, listed) {
            (_, WholeResponse { status: status @ (401 | 403), .. }) => {
                return Err(TargetError::Key { server, status });
            }
            (Some(api), listed) => (api, listed),
            (None, listed) if listed.status == 200 && is_hob => (Api::Hob, listed),
            (None, listed) if listed.status == 200 => (api_of(&get)?, listed),
            (None, _) => (Api::Ollama, get("/api/tags")?),
        };
        if listed.status != 200 {
            let paths = match asked_for {
                None => "/v1/models or /api/tags",
                Some(Api::Ollama) => "/api/tags",
                Some(Api::OpenAi | Api::Hob) => "/v1/models",
            };
            return Err(TargetError::NoApi { server, paths, status: listed.status });
        }
        let model = match model {
            Some(model) => model.to_owned(),
            None => only(server, models(&listed.body))?,
        };
        let (engine, version) = match api {
            // hob's `/api/version` is the version of the imitated Ollama.
            _ if is_hob => (Some("hob"), text_field(&get, "/health", "version")),
            Api::Hob => (None, None),
            Api::Ollama => (Some("ollama"), text_field(&get, "/api/version", "version")),
            Api::OpenAi => engine_and_version(&get, owner(&listed.body, &model).as_deref()),
        };
        let engine = engine.map(str::to_owned);
        let key = key.map(str::to_owned);
        Ok(Target { endpoint, api, model, key, engine, version })
    }
}

/// The model, if the list at `path` has exactly one.
fn only_listed(
    endpoint: &Endpoint,
    key: Option<&str>,
    path: &str,
    listed: impl Fn(&[u8]) -> Vec<String>,
) -> Option<String> {
    let asked =
        ask(endpoint, path, key, None, ANSWER_TIME_MAX).ok().filter(|asked| asked.status == 200)?;
    <[String; 1]>::try_from(listed(&asked.body)).ok().map(|[model]| model)
}

/// Whether the server is a hob. The check sends no key, because only a hob may get the user's key.
pub fn is_hob(url: &str) -> bool {
    let Ok(endpoint) = Endpoint::parse(url) else { return false };
    says_hob(&|path| ask(&endpoint, path, None, None, ANSWER_TIME_MAX))
}

/// Whether `/health` and `/api/hob/now` answer as those of a hob. Other servers have one of these paths. Some answer 200 to
/// every path, so the bodies are checked too.
fn says_hob(get: &impl Fn(&str) -> Result<WholeResponse, AskError>) -> bool {
    let json =
        |asked: &WholeResponse| serde_json::from_slice::<Value>(&asked.body).unwrap_or_default();
    let health = get("/health").ok().filter(|asked| asked.status == 200);
    let says_version = health
        .as_ref()
        .map(json)
        .is_some_and(|health| health["status"] == "ok" && health["version"].is_string());
    says_version
        && get("/api/hob/now").is_ok_and(|asked| match asked.status {
            200 => json(&asked)["requests"].is_array(),
            status => status == 401,
        })
}

/// Ollama also has OpenAI's API, but counts tokens more exactly in its own.
fn api_of(get: &impl Fn(&str) -> Result<WholeResponse, AskError>) -> Result<Api, AskError> {
    let root = get("/")?;
    let is_ollama = root.status == 200 && root.body.starts_with(b"Ollama is running");
    Ok(if is_ollama { Api::Ollama } else { Api::OpenAi })
}

/// A text field of an answer; None without a valid answer.
fn text_field(
    get: &impl Fn(&str) -> Result<WholeResponse, AskError>,
    path: &str,
    field: &str,
) -> Option<String> {
    let asked = get(path).ok().filter(|asked| asked.status == 200)?;
    let said: Value = serde_json::from_slice(&asked.body).ok()?;
    let version = said[field].as_str()?.trim();
    (1..=VERSION_BYTES_MAX).contains(&version.len()).then(|| version.to_owned())
}

/// Name and version of an engine with OpenAI's API. llama-server reports only a version, at `/props`. For other engines, `owned_by`
/// decides, because several engines and gateways have a `/version`. Without an owner, a version that starts with a digit means vLLM.
fn engine_and_version(
    get: &impl Fn(&str) -> Result<WholeResponse, AskError>,
    owner: Option<&str>,
) -> (Option<&'static str>, Option<String>) {
    let llama_server = text_field(get, "/props", "build_info");
    if llama_server.is_some() {
        return (None, llama_server);
    }
    let known = ENGINES.iter().find(|(owns, ..)| Some(*owns) == owner);
    if let Some((_, name, path)) = known {
        return (Some(name), text_field(get, path, "version"));
    }
    if let Some(version) = text_field(get, "/version", "version") {
        let is_vllm = owner.is_none() && version.starts_with(|c: char| c.is_ascii_digit());
        return (is_vllm.then_some(VLLM), Some(version));
    }
    let version = text_field(get, "/get_server_info", "version");
    (version.is_some().then_some(SGLANG), version)
}

/// `owned_by` of a model, or of the first one if the model is not listed.
fn owner(listed: &[u8], model: &str) -> Option<String> {
    let listed: Value = serde_json::from_slice(listed).unwrap_or_default();
    let entries = listed["data"].as_array()?;
    let entry = entries.iter().find(|entry| entry["id"] == model).or(entries.first())?;
    entry["owned_by"].as_str().filter(|owner| !owner.is_empty()).map(str::to_owned)
}

fn models(body: &[u8]) -> Vec<String> {
    let listed: Value = serde_json::from_slice(body).unwrap_or_default();
    let entries = listed["data"].as_array().or(listed["models"].as_array());
    let name = |entry: &Value| entry["id"].as_str().or(entry["name"].as_str()).map(str::to_owned);
    entries.into_iter().flatten().filter_map(name).collect()
}

/// The models as an error lists them.
fn named(models: &[String]) -> String {
    let more = models.len().saturating_sub(NAMED_MAX);
    let names = models[..models.len() - more].join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

fn only(server: String, models: Vec<String>) -> Result<String, TargetError> {
    match <[String; 1]>::try_from(models) {
        Ok([model]) => Ok(model),
        Err(models) if models.is_empty() => Err(TargetError::NoModel { server }),
        Err(models) => Err(TargetError::WhichModel { server, models }),
    }
}

fn models_of_kind(body: &[u8], kind: &str) -> Vec<String> {
    let listed: Value = serde_json::from_slice(body).unwrap_or_default();
    let entries = listed["data"].as_array().into_iter().flatten();
    let of_kind = entries.filter(|entry| entry["hob"]["kind"] == kind);
    of_kind.filter_map(|entry| entry["id"].as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
impl Target {
    /// A server with the model `m` and the key `k`, of which nothing else is known.
    pub(crate) fn for_tests(url: &str, api: Api) -> Target {
        let endpoint = Endpoint::parse(url).expect("an address");
        let (model, key) = ("m".to_owned(), Some("k".to_owned()));
        Target { endpoint, api, model, key, engine: None, version: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canned_server::CannedServer;

    #[test]
    fn models_are_read_from_either_list() {
        assert_eq!(models(br#"{"data":[{"id":"a"},{"id":"b"}]}"#), ["a", "b"]);
        assert_eq!(models(br#"{"models":[{"name":"c:1"}]}"#), ["c:1"]);
        assert_eq!(models(b"<html>"), [""; 0]);
        let kinds = br#"{"data":[{"id":"a","hob":{"kind":"chat"}},{"id":"b","hob":{"kind":"speech"}},{"id":"c"}]}"#;
        assert_eq!(models_of_kind(kinds, "chat"), ["a"]);
        assert_eq!(models_of_kind(b"<html>", "chat"), [""; 0]);
    }

    #[test]
    fn a_hob_is_recognised_by_two_signs() {
        let version = r#"{"status":"ok","version":"0.1.0"}"#;
        let rows =
            [(version, 200, true), (version, 401, true), (version, 404, false), ("", 200, false)];
        for (health, now, expected) in rows {
            let server = CannedServer::start(move |path| match path {
                "/health" => (200, health.to_owned()),
                _ => (now, r#"{"requests":[]}"#.to_owned()),
            });
            assert_eq!(is_hob(&server.url()), expected, "{health} {now}");
            let asked = server.end().concat();
            // Without the first sign there is no request for the second.
            assert_eq!(asked.contains("/api/hob/now"), !health.is_empty(), "{asked}");
            assert!(!asked.contains("authorization"), "{asked}");
        }
    }

    /// The target found at a server with only these answers, and the requested paths.
    fn found(answers: &[(&'static str, &'static str)]) -> (Target, Vec<String>) {
        let answers = answers.to_vec();
        let server = CannedServer::start(move |path| {
            let said = answers.iter().find(|(at, _)| *at == path);
            said.map_or((404, String::new()), |(_, body)| (200, (*body).to_owned()))
        });
        let target = Target::find(&server.url(), None, None, None).expect("a server");
        let path = |request: &String| request.split(' ').nth(1).map(str::to_owned);
        (target, server.end().iter().filter_map(path).collect())
    }

    const LIST: &str = "/v1/models";
    const NO_OWNER: (&str, &str) = (LIST, r#"{"data":[{"id":"m"}]}"#);
    const BEFORE: [&str; 4] = [LIST, "/health", "/", "/props"];

    #[test]
    fn the_owner_decides_where_the_version_is() {
        let vllm = (LIST, r#"{"data":[{"id":"m","owned_by":"vllm"}]}"#);
        let sglang = (LIST, r#"{"data":[{"id":"m","owned_by":"sglang"}]}"#);
        let tensorrt = (LIST, r#"{"data":[{"id":"m","owned_by":"tensorrt_llm"}]}"#);
        let other = (LIST, r#"{"data":[{"id":"m","owned_by":"other"}]}"#);
        let version = ("/version", r#"{"version":"0.11.0"}"#);
        let info = ("/get_server_info", r#"{"tp_size":1,"version":"0.5.3"}"#);
        let rows = [
            (vec![vllm, version], Some("vLLM"), Some("0.11.0")),
            (vec![vllm], Some("vLLM"), None),
            (vec![NO_OWNER, version], Some("vLLM"), Some("0.11.0")),
            (vec![tensorrt, version], Some("TensorRT-LLM"), Some("0.11.0")),
            (vec![other, version], None, Some("0.11.0")),
            (vec![NO_OWNER, ("/version", r#"{"version":"v3.1 (a1)"}"#)], None, Some("v3.1 (a1)")),
            (vec![sglang, version, info], Some("SGLang"), Some("0.5.3")),
            (vec![NO_OWNER, info], Some("SGLang"), Some("0.5.3")),
            (vec![NO_OWNER], None, None),
        ];
        for (answers, engine, expected) in rows {
            let (target, _) = found(&answers);
            let got = (target.engine.as_deref(), target.version.as_deref());
            assert_eq!(got, (engine, expected), "{answers:?}");
        }
    }

    #[test]
    fn an_invalid_answer_is_no_version() {
        let long = r#"{"version":"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789."}"#;
        for body in ["<html>", r#"{"version":3}"#, r#"{"version":" "}"#, r#"["0.1"]"#, "", long] {
            let (target, asked) = found(&[NO_OWNER, ("/version", body)]);
            assert_eq!((target.engine, target.version), (None, None), "{body}");
            assert_eq!(asked, [&BEFORE[..], &["/version", "/get_server_info"]].concat());
        }
    }

    #[test]
    fn a_server_that_answers_200_to_everything_is_no_hob() {
        let version = r#"{"status":"ok","version":"9"}"#;
        let rows = [
            ([NO_OWNER, ("/health", "ok"), ("/api/hob/now", "ok")], None),
            ([NO_OWNER, ("/health", version), ("/api/hob/now", version)], None),
            ([NO_OWNER, ("/health", version), ("/api/hob/now", r#"{"requests":[]}"#)], Some("hob")),
        ];
        for (answers, expected) in rows {
            let (target, _) = found(&answers);
            assert_eq!(target.engine.as_deref(), expected, "{answers:?}");
        }
    }

    #[test]
    fn a_known_engine_gets_no_further_requests() {
        let props = ("/props", r#"{"build_info":"b9001"}"#);
        let (target, asked) = found(&[NO_OWNER, props, ("/version", r#"{"version":"1"}"#)]);
        assert_eq!((target.engine, target.version.as_deref()), (None, Some("b9001")));
        assert_eq!(asked, BEFORE);
        let ollama = ("/", "Ollama is running");
        let (target, asked) = found(&[NO_OWNER, ollama, ("/api/version", r#"{"version":"0.12"}"#)]);
        assert_eq!(target.engine.as_deref(), Some("ollama"));
        assert_eq!(asked, [LIST, "/health", "/", "/api/version"]);
    }

    #[test]
    fn a_missing_list_of_models_is_named_by_its_path() {
        let rows = [
            (None, "/v1/models or /api/tags"),
            (Some(Api::OpenAi), "/v1/models"),
            (Some(Api::Ollama), "/api/tags"),
        ];
        for (api, paths) in rows {
            let server = CannedServer::start(|_| (404, String::new()));
            let error = Target::find(&server.url(), api, None, None).expect_err("no list");
            let expected = format!("has no list of models at {paths} (status 404)");
            assert!(error.to_string().ends_with(&expected), "{error}");
            server.end();
        }
    }

    #[test]
    fn one_model_need_not_be_named() {
        let only =
            |models: &[&str]| only("s".to_owned(), models.iter().map(|&m| m.to_owned()).collect());
        assert_eq!(only(&["a"]).expect("one"), "a");
        assert!(matches!(only(&[]), Err(TargetError::NoModel { .. })));
        let several = |models: &[&str]| only(models).expect_err("several").to_string();
        assert_eq!(several(&["a", "b"]), "s has several models: a, b");
        let many = several(&["m"; NAMED_MAX + 2]);
        assert!(many.ends_with("m, m and 2 more"), "{many}");
    }
}
