//! The table of routes against the router: every route is documented, and every documented route is there.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use hob_server::{ServerOptions, router};
use hob_wire::operations::{OPERATIONS, Operation};
use serde_json::Value;

use crate::client::request;
use crate::server::Server;

/// Routes that hob answers only with an option that these tests do not set.
const OPTIONAL: [&str; 6] =
    ["/api/fit", "/benchmarks", "/v1/teams", "/v1/runs", "/v1/pipelines", "/v1/{id}"];

fn is_optional(operation: &&Operation) -> bool {
    OPTIONAL.iter().any(|path| operation.path.starts_with(path))
}

fn paths(operations: impl Iterator<Item = &'static Operation>) -> BTreeSet<String> {
    let both = |operation: &'static Operation| {
        [Some(operation.path), operation.path.strip_prefix("/v1")].into_iter().flatten()
    };
    operations.flat_map(both).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_router_has_the_routes_of_the_table_and_no_others() {
    let registry = hob_core::Registry::default();
    let router = router(registry, &ServerOptions::default(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    // The router says which paths it has only in its debug text.
    let text = format!("{router:?}");
    let paths_of_text = text.split('"').filter(|part| part.starts_with('/'));
    let real = paths_of_text.filter(|path| *path != "/{*__private__axum_fallback}");
    let real: BTreeSet<String> = real.map(str::to_owned).collect();
    let documented = paths(OPERATIONS.iter().filter(|operation| !is_optional(operation)));
    assert_eq!(real, documented);
}

#[tokio::test]
async fn a_path_takes_the_methods_of_the_table_and_no_others() {
    let server = Server::start().await;
    let here = || OPERATIONS.iter().filter(|operation| !is_optional(operation));
    for operation in here().filter(|operation| operation.method.name() != "DELETE") {
        let path = operation.path.replace("{*", "{").replace(['{', '}'], "");
        let answer = server.ask(request("TRACE", &path, "")).await;
        assert_eq!(answer.status(), 405, "{path}");
        let same = here().filter(|other| other.path == operation.path);
        // Only a server with `mock_unknown_models` deletes models.
        let same =
            same.filter(|other| other.path != "/v1/models/{*id}" || other.method.name() == "GET");
        let expected: BTreeSet<&str> = same.map(|other| other.method.name()).collect();
        let allowed = answer.header("allow").unwrap_or_default().to_owned();
        let allowed: BTreeSet<&str> = allowed.split(',').filter(|name| *name != "HEAD").collect();
        assert_eq!(allowed, expected, "{path}");
    }
}

#[tokio::test]
async fn the_document_is_served_without_a_key() {
    let server = Server::start().await;
    let answer = server.get("/openapi.json").await;
    assert_eq!((answer.status(), answer.header("content-type")), (200, Some("application/json")));
    let document: Value = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document, hob_wire::openapi());
}
