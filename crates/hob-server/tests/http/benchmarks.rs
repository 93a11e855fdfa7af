//! `/benchmarks`: a folder of static files, with a policy that runs only scripts of that folder.

use std::sync::Arc;

use bytes::Bytes;
use hob_server::{BenchmarkFiles, ServerOptions};

use crate::server::Server;

#[derive(Debug)]
struct Two;

impl BenchmarkFiles for Two {
    fn file(&self, path: &str) -> Option<Bytes> {
        match path {
            "index.html" => Some(Bytes::from_static(b"<p>all")),
            "model/a.html" => Some(Bytes::from_static(b"<p>one")),
            _ => None,
        }
    }
}

#[tokio::test]
async fn pages_are_served_below_a_folder_of_their_own() {
    let options = ServerOptions { benchmarks: Some(Arc::new(Two)), ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let index = server.get("/benchmarks/").await;
    assert_eq!((index.status(), index.text()), (200, "<p>all"));
    assert_eq!(index.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = index.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("script-src 'self';") && policy.contains("default-src 'none'"),
        "{policy}"
    );
    assert_eq!(server.get("/benchmarks/model/a.html").await.text(), "<p>one");
    // Without the slash, relative links would point to another folder.
    let bare = server.get("/benchmarks").await;
    assert_eq!((bare.status(), bare.header("location")), (308, Some("/benchmarks/")));
    for path in ["/benchmarks/none.html", "/benchmarks/..%2Findex.html", "/benchmarks/model/"] {
        assert_eq!(server.get(path).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn without_pages_there_is_nothing() {
    assert_eq!(Server::start().await.get("/benchmarks/").await.status(), 404);
}
