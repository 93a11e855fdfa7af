//! `/api/fit` from outside, with a `FitService` that knows two models of the same shape and computes for one machine.
//! The tests also check the questions that it received.

use std::sync::{Arc, Mutex};

use hob_core::fit::{FitError, FitOptions, Format, Location, Model, assess};
use hob_core::machine::{Basis, Machine, Memory};
use hob_core::shape::LayerShape;
use hob_core::weights::Weights;
use hob_core::{KvType, KvTypes, ModelShape};
use hob_server::{FitService, KeyOptions, ServerOptions, Unanswerable};
use hob_wire::{FitAnswer, FitModel, FitRequest};
use serde_json::json;

use crate::client::post;
use crate::keys::{LAPTOP, PHONE, get_as, named, with_keys};
use crate::server::Server;

const GB: u64 = 1_000_000_000;

/// `qwen` is a known model, `mine` is a local file.
#[derive(Debug, Default)]
struct ScriptedFit(Mutex<Vec<FitRequest>>);

impl FitService for ScriptedFit {
    fn machines(&self) -> Vec<String> {
        vec!["this machine".to_owned(), "laptop".to_owned()]
    }

    fn models(&self) -> Vec<FitModel> {
        let model = |name: &str, installed, quants: &[&str]| FitModel {
            name: name.to_owned(),
            installed,
            quant: quants[quants.len() - 1].to_owned(),
            quants: quants.iter().map(|&quant| quant.to_owned()).collect(),
            trained_context: Some(8_192),
        };
        vec![model("mine", true, &["Q8_0"]), model("qwen", false, &["F16", "Q4_K_M"])]
    }

    fn is_published(&self, model: &str) -> bool {
        model == "qwen"
    }

    fn assess(&self, request: &FitRequest) -> Result<FitAnswer, Unanswerable> {
        self.0.lock().expect("no panic").push(request.clone());
        let model = Model {
            name: request.model.clone(),
            format: Format::Gguf,
            quant: "Q8_0".to_owned(),
            shape: shape(),
            basis: Basis::Measured,
            location: Location::default(),
        };
        let unknown = |field, name: &str| Unanswerable::Unknown {
            field,
            name: name.to_owned(),
            near: vec!["qwen".to_owned()],
        };
        match (request.model.as_str(), request.machine.as_deref()) {
            ("qwen" | "mine", None | Some("laptop")) => {}
            ("qwen" | "mine", Some(machine)) => return Err(unknown("machine", machine)),
            ("broken", _) => {
                let reason = "the file ends in its header".to_owned();
                return Err(Unanswerable::Unreadable { model: "broken".to_owned(), reason });
            }
            ("empty", _) => {
                let error = FitError::NoLayers;
                return Err(Unanswerable::Impossible { model: "empty".to_owned(), error });
            }
            ("panic", _) => std::panic::resume_unwind(Box::new("it does")),
            (name, _) => return Err(unknown("model", name)),
        }
        let assessment = assess(&machine(), &model, &request.options).expect("an answer");
        Ok(FitAnswer::of(&machine(), &model, &assessment, &request.options))
    }
}

fn machine() -> Machine {
    Machine {
        name: "laptop".to_owned(),
        memory: Memory { total_bytes: 32 * GB, available_bytes: 24 * GB },
        ..Machine::default()
    }
}

fn shape() -> ModelShape {
    ModelShape {
        layers: vec![LayerShape::default(); 2],
        trained_context_tokens: 8_192,
        weights: Weights::of_bytes(GB),
        ..ModelShape::default()
    }
}

async fn serve(options: ServerOptions) -> (Server, Arc<ScriptedFit>) {
    let fit_service = Arc::new(ScriptedFit::default());
    let fit = Some(Arc::clone(&fit_service) as Arc<dyn FitService>);
    let options = ServerOptions { fit, ..options };
    (Server::start_with(options).await, fit_service)
}

#[tokio::test]
async fn a_body_and_an_address_are_answered_alike() {
    let (server, fit_service) = serve(ServerOptions::default()).await;
    let asked = r#"{"model": "qwen", "context_tokens": 4096, "kv": "q8_0/q4_0", "machine": "laptop", "colour": 1}"#;
    let by_body = server.ask(post("/api/fit", asked)).await;
    let by_address = server
        .get("/api/fit?model=qwen&context_tokens=4096&kv=q8_0%2Fq4_0&machine=laptop&colour=1")
        .await;
    assert_eq!((by_body.status(), by_body.header("x-hob-ignored")), (200, Some("colour")));
    assert_eq!(by_body.json(), by_address.json());
    let answer = by_body.json();
    assert_eq!((&answer["fits"], &answer["machine"]["name"]), (&json!(true), &json!("laptop")));
    assert_eq!(answer["plans"][0]["decode_requested"]["tok_s"], json!(null));
    let options = FitOptions {
        context_tokens: Some(4_096),
        kv: Some(KvTypes { keys: KvType::Q8_0, values: KvType::Q4_0 }),
        sequences: 1,
        ..FitOptions::default()
    };
    let asked = fit_service.0.lock().expect("no panic");
    assert!(
        asked.len() == 2 && asked.iter().all(|request| request.options == options),
        "{asked:?}"
    );
}

#[tokio::test]
async fn choices_are_listed() {
    let (server, _) = serve(ServerOptions::default()).await;
    let machines = json!({"machines": [{"name": "this machine"}, {"name": "laptop"}]});
    assert_eq!(server.get("/api/fit/machines").await.json(), machines);
    let models = server.get("/api/fit/models").await.json();
    let expected = json!({"models": [
        {"name": "mine", "installed": true, "quant": "Q8_0", "quants": ["Q8_0"], "trained_context": 8192},
        {"name": "qwen", "installed": false, "quant": "Q4_K_M", "quants": ["F16", "Q4_K_M"], "trained_context": 8192},
    ]});
    assert_eq!(models, expected);
}

#[tokio::test]
async fn refusals_say_what_is_wrong() {
    let (server, _) = serve(ServerOptions::default()).await;
    let rows = [
        ("", 400, json!({"message": "'model' is missing", "param": "model"})),
        (
            "model=qwen&context_tokens=many",
            400,
            json!({"message": "'context_tokens' must be a whole number, and is a string", "param": "context_tokens"}),
        ),
        (
            "model=qwne",
            404,
            json!({"message": "there is no model 'qwne' here; the nearest are qwen", "param": "model", "code": "model_not_found"}),
        ),
        (
            "model=qwen&machine=abacus",
            404,
            json!({"message": "there is no machine 'abacus' here; the nearest are qwen", "param": "machine"}),
        ),
        (
            "model=broken",
            400,
            json!({"message": "broken cannot be read: the file ends in its header", "param": "model"}),
        ),
        (
            "model=empty",
            400,
            json!({"message": "empty: the model has no layers that decode", "param": "model"}),
        ),
        ("model=panic", 500, json!({"message": "the request failed; see hob's log"})),
    ];
    for (query, status, expected) in rows {
        let answer = server.get(&format!("/api/fit?{query}")).await;
        assert_eq!(answer.status(), status, "{query}");
        let error = &answer.json()["error"];
        for field in ["message", "param", "code"] {
            assert_eq!(error[field], expected[field], "{query}");
        }
    }
    let wrong = server.ask(crate::client::request("DELETE", "/api/fit", "Host: localhost\r\n"));
    assert_eq!(wrong.await.status(), 405);
}

#[tokio::test]
async fn a_key_is_asked_for_and_decides_which_models_are_seen() {
    let phone = KeyOptions { aliases: Some(vec!["kokoro".to_owned()]), ..named("phone", PHONE) };
    let (server, fit_service) = serve(with_keys([named("laptop", LAPTOP), phone])).await;
    for path in ["/api/fit?model=qwen", "/api/fit/machines", "/api/fit/models"] {
        assert_eq!(server.get(path).await.status(), 401, "{path}");
    }
    assert_eq!(server.ask(post("/api/fit", r#"{"model": "qwen"}"#)).await.status(), 401);
    assert!(fit_service.0.lock().expect("no panic").is_empty());
    for (key, model, status) in [
        (LAPTOP, "mine", 200),
        (LAPTOP, "qwen", 200),
        (PHONE, "qwen", 200),
        (PHONE, "mine", 403),
        (PHONE, "missing", 403),
    ] {
        let answer = server.ask(get_as(key, &format!("/api/fit?model={model}"))).await;
        assert_eq!(answer.status(), status, "{key} {model}");
    }
    let listed = server.ask(get_as(PHONE, "/api/fit/models")).await.json();
    let names: Vec<_> =
        listed["models"].as_array().expect("a list").iter().map(|m| &m["name"]).collect();
    assert_eq!(names, ["qwen"]);
}

#[tokio::test]
async fn without_a_fit_service_the_routes_are_missing() {
    let server = Server::start().await;
    assert_eq!(server.get("/api/fit?model=qwen").await.status(), 404);
    assert_eq!(server.ask(post("/api/fit", r#"{"model": "qwen"}"#)).await.status(), 404);
}
