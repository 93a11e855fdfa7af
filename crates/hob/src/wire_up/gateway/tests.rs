//! A gateway whose servers never answer: views come from memory, and the servers get no requests.
//! The sockets show whether a server was contacted, because the kernel accepts every connection.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use hob_core::Registry;
use hob_core::UpstreamResolver;
use hob_server::{ReloadableState, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// Time limit for an answer that takes milliseconds, on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(2);

/// Accepts connections and never sends anything.
struct Silent(TcpListener);

impl Silent {
    fn new() -> Silent {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("it does not wait");
        Silent(listener)
    }

    /// Number of connections since the last call.
    fn asked(&self) -> usize {
        let mut count = 0;
        loop {
            match self.0.accept() {
                Ok(_) => count += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn over(servers: &[Silent]) -> Gateway {
    let kinds = ["openai", "ollama", "auto"];
    let upstream = |(server, kind): (&Silent, &str)| {
        let address = server.0.local_addr().expect("an address");
        format!(
            "[upstream.{kind}]\nkind = \"{kind}\"\nurl = \"http://{address}\"\nlist_models = true\n"
        )
    };
    let mut text: String = servers.iter().zip(kinds).map(upstream).collect();
    text += "[alias.fast]\nto = [\"openai/m\", \"ollama/m\", \"auto/m\"]\n";
    let config = toml::from_str(&text).expect("a good file");
    let written = LoadedConfig { config, path: None, text, seen: None };
    gateway(&written, &Environment::default(), &Registry::default(), None).expect("a gateway")
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    answer
}

#[tokio::test]
async fn lists_come_from_memory_while_servers_are_down() {
    let servers = [Silent::new(), Silent::new(), Silent::new()];
    let gateway = Arc::new(over(&servers));
    let mut registry = Registry::default();
    gateway.add_aliases(&mut registry);
    registry.set_upstreams(Arc::clone(&gateway) as Arc<dyn UpstreamResolver>);
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let here = listener.local_addr().expect("an address");
    let never = std::future::pending();
    let serving = hob_server::serve(
        listener,
        ReloadableState::from(registry),
        ServerOptions::default(),
        never,
    );
    let views = async {
        for has_looked in [false, true] {
            if has_looked {
                gateway.refresh_lists().await;
                let asked = servers.iter().map(Silent::asked);
                assert!(
                    asked.into_iter().all(|count| count > 0),
                    "hob asked each server, which never answers"
                );
            }
            for path in ["/v1/models", "/api/tags", "/v1/models/fast", "/health"] {
                let started = Instant::now();
                let answer = get(here, path).await;
                assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
                assert!(path == "/health" || answer.contains("\"fast"), "{path}: {answer}");
                assert!(started.elapsed() < TIME_MAX, "{path}: {:?}", started.elapsed());
            }
            let asked: Vec<usize> = servers.iter().map(Silent::asked).collect();
            assert_eq!(asked, [0, 0, 0], "looked: {has_looked}");
        }
    };
    tokio::select! {
        ended = serving => panic!("the server ended: {ended:?}"),
        () = views => {}
    }
}
