//! The model under test on a server that has several: whether it still loads.
//! Only a hob reports it. Another server is ready when it says so itself.

use std::time::{Duration, Instant};

use hob_wire::percent_encoded;
use serde_json::Value;

use super::ASK_WITHIN;
use crate::ask::ask;
use crate::drive::Endpoint;

/// A model that loads at the start may stay cold for this long after the server is ready: its load is about to begin.
const COLD_WITHIN: Duration = Duration::from_secs(1);

/// The model that must be in a hob's memory before it is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedModel {
    /// None: the only model of its kind.
    pub name: Option<String>,
    /// The kind of the model, as a hob lists it, such as `chat`.
    pub kind: &'static str,
    pub key: Option<String>,
}

impl AwaitedModel {
    /// Whether it is still loading, on a hob that reports ready because another model is. `cold_since` keeps the time since
    /// which it is cold. A model that loads with its first request, or failed to load, stays cold.
    pub(super) fn is_loading(&self, endpoint: &Endpoint, cold_since: &mut Option<Instant>) -> bool {
        match self.state(endpoint).as_deref() {
            Some("cold") => cold_since.get_or_insert_with(Instant::now).elapsed() < COLD_WITHIN,
            state => {
                *cold_since = None;
                state == Some("loading")
            }
        }
    }

    /// The state of the model, and `loading` while another one loads: that load may come first, and takes cores and memory from
    /// requests. None: the server does not say.
    fn state(&self, endpoint: &Endpoint) -> Option<String> {
        let get = |path: &str| {
            let asked = ask(endpoint, path, self.key.as_deref(), None, ASK_WITHIN).ok()?;
            let body = Some(asked.body).filter(|_| asked.status == 200)?;
            serde_json::from_slice::<Value>(&body).ok()
        };
        let listed = || {
            let listed = get("/v1/models").unwrap_or_default();
            listed["data"].as_array().cloned().unwrap_or_default()
        };
        let model = match &self.name {
            Some(name) => get(&format!("/v1/models/{}", percent_encoded(name)))?,
            None => {
                let is_this = |model: &Value| model["hob"]["kind"] == self.kind;
                let [only] = <[Value; 1]>::try_from(
                    listed().into_iter().filter(is_this).collect::<Vec<_>>(),
                )
                .ok()?;
                only
            }
        };
        let state = model["hob"]["state"].as_str()?;
        let loads = |model: &Value| model["hob"]["state"] == "loading";
        let is_disturbed = state != "loading" && listed().iter().any(loads);
        Some(if is_disturbed { "loading" } else { state }.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canned_server::CannedServer;

    const CHAT: &str = r#"{"id":"m","hob":{"kind":"chat","state":"warm"}}"#;
    const HEARING: &str = r#"{"id":"h","hob":{"kind":"transcription","state":"loading"}}"#;

    /// A server with these answers, each to a path, in this order.
    fn server(answers: Vec<(&'static str, String)>) -> (Endpoint, CannedServer) {
        let mut answers = answers.into_iter();
        let server = CannedServer::start(move |path| {
            let (expected, body) = answers.next().expect("no further request");
            assert_eq!(path, expected);
            (200, body)
        });
        (Endpoint::parse(&server.url()).expect("an address"), server)
    }

    /// Ends a server that got so many requests, each with the key.
    fn end(server: CannedServer, count: usize) {
        let asked = server.end();
        assert_eq!(asked.len(), count, "{asked:?}");
        let has_key = |request: &String| request.contains("authorization: Bearer k\r\n");
        assert!(asked.iter().all(has_key), "{asked:?}");
    }

    fn list(models: &[&str]) -> (&'static str, String) {
        ("/v1/models", format!(r#"{{"data":[{}]}}"#, models.join(",")))
    }

    fn awaited(name: Option<&str>, kind: &'static str) -> AwaitedModel {
        AwaitedModel { name: name.map(str::to_owned), kind, key: Some("k".to_owned()) }
    }

    #[test]
    fn a_model_that_loads_at_the_start_is_waited_for_and_not_long_while_it_is_cold() {
        let in_state =
            |state: &str| ("/v1/models/m", format!(r#"{{"id":"m","hob":{{"state":"{state}"}}}}"#));
        let (endpoint, server) = server(vec![
            in_state("cold"),
            list(&[HEARING]),
            in_state("cold"),
            list(&[CHAT]),
            in_state("loading"),
            in_state("warm"),
            list(&[CHAT, HEARING]),
            in_state("warm"),
            list(&[CHAT]),
            in_state("cold"),
            list(&[CHAT]),
            in_state("down"),
            list(&[CHAT]),
        ]);
        let (model, mut cold) = (awaited(Some("m"), "chat"), None);
        assert!(model.is_loading(&endpoint, &mut cold) && cold.is_none(), "another loads first");
        assert!(model.is_loading(&endpoint, &mut cold) && cold.is_some(), "it is about to load");
        assert!(model.is_loading(&endpoint, &mut cold) && cold.is_none(), "it loads");
        assert!(model.is_loading(&endpoint, &mut cold), "another takes cores and memory");
        assert!(!model.is_loading(&endpoint, &mut cold), "it is warm");
        let mut long = Instant::now().checked_sub(COLD_WITHIN);
        assert!(long.is_some() && !model.is_loading(&endpoint, &mut long), "it stays cold");
        assert!(long.is_some() && !model.is_loading(&endpoint, &mut None), "it is down");
        end(server, 13);
    }

    #[test]
    fn a_name_with_a_space_is_asked_for() {
        let answer = r#"{"id":"my model","hob":{"state":"loading"}}"#.to_owned();
        let (endpoint, server) = server(vec![("/v1/models/my%20model", answer)]);
        assert!(awaited(Some("my model"), "chat").is_loading(&endpoint, &mut None));
        end(server, 1);
    }

    #[test]
    fn without_a_name_the_only_model_of_the_kind_is_waited_for() {
        let two = || list(&[CHAT, HEARING]);
        let chat_alone = || list(&[CHAT]);
        let hearing_twice = || list(&[HEARING, HEARING]);
        let answers = vec![chat_alone(), chat_alone(), two(), two(), hearing_twice()];
        let (endpoint, server) = server(answers);
        let loads = |kind| awaited(None, kind).is_loading(&endpoint, &mut None);
        assert!(!loads("chat"), "it is warm");
        assert!(loads("transcription"));
        assert!(!loads("speech"), "no such model");
        assert!(!loads("transcription"), "it is not known which of the two");
        end(server, 5);
    }
}
