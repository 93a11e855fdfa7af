//! Sends one request and reads the whole answer, for lists, versions and counts that are not timed.
//! It uses the measuring client, so a server that answers here can also be measured.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;

use crate::drive::{Arrivals, Drive, End, Endpoint, RequestLimits};
use crate::http_response::HttpResponse;

/// An answer in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeResponse {
    pub status: u16,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error("cannot connect to {server}: {cause}")]
    Unreachable { server: String, cause: String },
    #[error("{server} did not answer")]
    Unanswered { server: String },
}

/// Header lines with the client's name and key. A hob server leaves requests of this client out of its ledger.
pub fn client_headers(key: Option<&str>) -> String {
    let name = concat!("user-agent: hob-bench/", env!("CARGO_PKG_VERSION"), "\r\n");
    key.map_or(name.to_owned(), |key| format!("{name}authorization: Bearer {key}\r\n"))
}

/// Sends a GET request to a path, or a POST request if there is a body.
///
/// # Errors
/// The whole answer does not come in time. An error status is an answer.
pub fn ask(
    endpoint: &Endpoint,
    path: &str,
    key: Option<&str>,
    body: Option<&str>,
    within: Duration,
) -> Result<WholeResponse, AskError> {
    let (host, prefix, headers) = (endpoint.authority(), &endpoint.prefix, client_headers(key));
    let request = match body {
        None => {
            Bytes::from(format!("GET {prefix}{path} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n"))
        }
        Some(body) => endpoint.post(path, &headers, body),
    };
    let drive = Drive {
        endpoint: endpoint.clone(),
        jobs: vec![request],
        arrivals: Arrivals::Closed { users: 1 },
        seed: 0,
        limits: RequestLimits { silence: within, total: within, ..RequestLimits::default() },
        answer_bytes: 0,
    };
    let unanswered = || AskError::Unanswered { server: host.clone() };
    let driven = drive.run(&AtomicBool::new(false)).map_err(|_| unanswered())?;
    let exchange = driven.exchanges.into_iter().next().ok_or_else(unanswered)?;
    match exchange.end {
        End::Whole => {}
        End::Unreachable { cause } => return Err(AskError::Unreachable { server: host, cause }),
        _ => return Err(unanswered()),
    }
    let (answer, body, taken) = HttpResponse::recorded(&exchange.recording.bytes);
    taken.map(|()| WholeResponse { status: answer.status, body }).map_err(|_| unanswered())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{MockServer, Script};

    #[test]
    fn an_answer_without_end_is_no_answer() {
        let script = Script::default().with("fault=flood").expect("a script");
        let mock = MockServer::start_local(script).expect("a free port");
        let endpoint = Endpoint::parse(&mock.url()).expect("an address");
        let (path, body) = ("/v1/chat/completions", Some(r#"{"stream":true}"#));
        let asked = ask(&endpoint, path, None, body, Duration::from_millis(200));
        assert_eq!(asked, Err(AskError::Unanswered { server: endpoint.authority() }));
    }
}
