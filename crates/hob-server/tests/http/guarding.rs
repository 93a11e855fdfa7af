//! Host names, origins and keys, as browsers and clients send them.

use hob_server::ServerOptions;

use crate::client::{post_with, request};
use crate::keys::with_key;
use crate::model::sound;
use crate::server::Server;

#[tokio::test]
async fn names_that_are_not_ours_are_refused_everywhere() {
    let options = ServerOptions { allowed_hosts: vec!["hob.lan".to_owned()], ..Default::default() };
    let server = Server::start_with(options).await;
    let rows = [
        ("Host: localhost:8484\r\n", 200),
        ("Host: hob.lan\r\n", 200),
        ("Host: hob.lan\r\nOrigin: http://hob.lan:80\r\n", 200),
        ("Host: localhost\r\nOrigin: http://127.0.0.1:8484\r\n", 200),
        ("Host: evil.example\r\n", 421),
        ("Host: localhost\r\nHost: evil.example\r\n", 421),
        ("Host: \r\n", 421),
        ("Host: localhost\r\nOrigin: http://evil.example\r\n", 403),
        ("Host: localhost\r\nOrigin: null\r\n", 403),
    ];
    for path in ["/health", "/v1/models", "/"] {
        for (headers, status) in rows {
            let answer = server.ask(request("GET", path, headers)).await;
            assert_eq!(answer.status(), status, "{path} {headers}");
        }
    }
    let absolute = request("GET", "http://evil.example/health", "Host: localhost\r\n");
    let answer = server.ask(absolute).await;
    assert_eq!(answer.status(), 421);
    let message = answer.json()["error"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("'evil.example' is not an allowed host name"), "{message}");
}

#[tokio::test]
async fn a_foreign_page_cannot_make_it_speak() {
    let server = Server::start().await;
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let foreign_form = format!("{form}Referer: https://evil.example/\r\n");
    for headers in
        ["Origin: https://evil.example\r\n", "Content-Type: text/plain\r\n", &foreign_form]
    {
        let answer = server.ask(post_with("/v1/audio/speech", headers, r#"{"input":"Hi"}"#)).await;
        assert!([403, 415].contains(&answer.status()), "{headers}");
    }
    assert_eq!(server.model.asked(), []);
}

/// Browsers ask with `OPTIONS` first, and show the page an answer only if it names the page's origin.
#[tokio::test]
async fn pages_of_this_computer_and_of_allowed_hosts_read_answers() {
    let allowed_hosts = vec!["hob.lan".to_owned()];
    let server =
        Server::start_with(ServerOptions { allowed_hosts, ..with_key("My API Key") }).await;
    let sent = "Access-Control-Request-Method: POST\r\n\
        Access-Control-Request-Headers: authorization,content-type,x-stainless-os\r\n";
    for (origin, status, may_read) in [
        ("http://localhost:5173", 204, true),
        ("http://127.0.0.1:3000", 204, true),
        ("https://hob.lan", 204, true),
        ("https://evil.example", 403, false),
        ("http://203.0.113.5", 403, false),
    ] {
        let reader = may_read.then_some(origin);
        let page = format!("Host: localhost\r\nOrigin: {origin}\r\n");
        let asked = request("OPTIONS", "/v1/chat/completions", &format!("{page}{sent}"));
        let answer = server.ask(asked).await;
        assert_eq!(answer.status(), status, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), reader);
        if may_read {
            let names = answer.header("access-control-allow-headers");
            assert_eq!(names, Some("authorization,content-type,x-stainless-os"));
            let methods = answer.header("access-control-allow-methods");
            assert_eq!(methods, Some("GET, HEAD, POST, DELETE"));
        }
        let answer = server.ask(request("GET", "/v1/models", &page)).await;
        assert_eq!(answer.header("access-control-allow-origin"), reader, "{origin}");
        assert_eq!(answer.header("access-control-expose-headers"), reader.map(|_| "*"));
        assert_eq!(answer.header("vary"), reader.map(|_| "origin"));
    }
    let plain = server.get("/v1/models").await;
    assert_eq!(plain.header("access-control-allow-origin"), None);
    let options = request("OPTIONS", "/v1/models", "Host: localhost\r\n");
    assert_eq!(server.ask(options).await.status(), 405);
    let every_name = ServerOptions { allowed_hosts: vec!["*".to_owned()], ..Default::default() };
    let server = Server::start_with(every_name).await;
    let page = format!("Host: localhost\r\nOrigin: https://evil.example\r\n{sent}");
    let answer = server.ask(request("OPTIONS", "/v1/models", &page)).await;
    assert_eq!((answer.status(), answer.header("access-control-allow-origin")), (405, None));
}

#[tokio::test]
async fn a_key_opens_what_costs_and_lists_stay_open() {
    let server = Server::start_with(with_key("My API Key")).await;
    let open =
        ["/health", "/ready", "/models", "/v1/models", "/v1/audio/voices", "/v1/audio/models", "/"];
    for path in open {
        assert_eq!(server.get(path).await.status(), 200, "{path}");
    }
    for path in ["/metrics", "/v1/metrics", "/v1/models/kokoro"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status(), 401, "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert_eq!(answer.json()["error"]["code"], "invalid_api_key");
        assert_eq!(answer.json()["error"]["type"], "authentication_error");
    }
    for (authorization, status) in [
        ("", 401),
        ("Authorization: Bearer My API Kez\r\n", 401),
        ("Authorization: Bearer\r\n", 401),
        ("Authorization: Basic My API Key\r\n", 401),
        ("x-api-key: My API Kez\r\n", 401),
        ("api-key:\r\n", 401),
        ("Authorization: Bearer My API Kez\r\nx-api-key: My API Key\r\n", 401),
        ("Authorization: Bearer My API Key\r\n", 200),
        ("authorization: bearer My API Key\r\n", 200),
        ("x-api-key: My API Key\r\n", 200),
        ("API-Key: My API Key \r\n", 200),
        ("Authorization: Basic dTpw\r\nX-Api-Key: My API Key\r\n", 200),
    ] {
        if status == 200 {
            server.model.stage_all([sound(0.1, 100)]);
        }
        let body = r#"{"input":"Hi"}"#;
        let answer = server.ask(post_with("/audio/speech", authorization, body)).await;
        assert_eq!(answer.status(), status, "{authorization}");
    }
}
