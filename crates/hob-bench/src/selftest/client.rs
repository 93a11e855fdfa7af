//! The client of the self-test. It checks answers as strictly as the strictest SDK, and reports what it received.
//! A result that is neither an answer nor a proper error is `Invalid`, and the case fails.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use super::NoHttpClient;

/// Limit for one request, longer than any timeout of the gateway under test.
const TIME_MAX: Duration = Duration::from_secs(30);

/// What a client received. `Refused` is an error before any part of an answer, with `retry_after` in seconds. `Broken` is
/// the beginning of a stream, and then an event with an error.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Received {
    Answer { text: String, finish: String },
    Refused { status: u16, code: String, retry_after: Option<u64> },
    Broken { text: String, code: String },
    Invalid(String),
}

#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    pub(super) fn new(base: &str) -> Result<Client, NoHttpClient> {
        // reqwest needs a TLS provider although this client uses no TLS. An error means that one is installed.
        let _already_decided = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build();
        let http = http.map_err(|error| NoHttpClient(error.to_string()))?;
        Ok(Client { http, url: format!("{base}/v1/chat/completions") })
    }

    /// `extra` is added to the request's JSON: empty, or fields after a comma.
    pub(super) async fn ask(&self, model: &str, streams: bool, extra: &str) -> Received {
        let received = async {
            match self.send(model, streams, extra).await {
                Err(problem) => Received::Invalid(problem),
                Ok(response) if !response.status().is_success() => read_refusal(response).await,
                Ok(response) if streams => read_stream(response).await,
                Ok(response) => read_whole(response).await,
            }
        };
        let late = || Received::Invalid(format!("no answer within {} s", TIME_MAX.as_secs()));
        timeout(TIME_MAX, received).await.unwrap_or_else(|_| late())
    }

    /// Reads the first piece and disconnects.
    pub(super) async fn read_and_leave(&self, model: &str) -> Result<(), String> {
        let mut response = self.send(model, true, "").await?;
        let first = timeout(TIME_MAX, response.chunk()).await.map_err(|_| "no answer")?;
        first.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Requests an answer and reads none of it until it is dropped.
    pub(super) async fn send_unread(&self, model: &str) -> Result<Response, String> {
        self.send(model, true, "").await
    }

    async fn send(&self, model: &str, streams: bool, extra: &str) -> Result<Response, String> {
        let body = format!(
            r#"{{"model":"{model}","stream":{streams},"max_tokens":64,
                "messages":[{{"role":"user","content":"Say hello."}}]{extra}}}"#
        );
        let request = self.http.post(&self.url).header("content-type", "application/json");
        request.body(body).send().await.map_err(|error| format!("no answer: {error}"))
    }
}

async fn read_refusal(response: Response) -> Received {
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after");
    let retry_after = wait.and_then(|wait| wait.to_str().ok()?.parse().ok());
    let text = response.text().await.unwrap_or_default();
    match serde_json::from_str::<Value>(&text) {
        Ok(body) if body["error"]["message"].is_string() => {
            Received::Refused { status, code: error_code(&body["error"]), retry_after }
        }
        _ => Received::Invalid(format!("status {status} without an error object")),
    }
}

fn error_code(error: &Value) -> String {
    let code = error["code"].as_str().or_else(|| error["type"].as_str());
    code.unwrap_or_default().to_owned()
}

async fn read_whole(response: Response) -> Received {
    let text = match response.text().await {
        Ok(text) => text,
        Err(error) => return Received::Invalid(format!("a body that broke off: {error}")),
    };
    let Ok(body) = serde_json::from_str::<Value>(&text) else {
        return Received::Invalid("a body that is not JSON".to_owned());
    };
    let choice = &body["choices"][0];
    let usage = body["usage"]["total_tokens"].as_u64();
    match (choice["message"]["content"].as_str(), choice["finish_reason"].as_str(), usage) {
        (Some(text), Some(finish), Some(_)) => {
            Received::Answer { text: text.to_owned(), finish: finish.to_owned() }
        }
        _ => Received::Invalid("an answer without content, finish_reason or usage".to_owned()),
    }
}

async fn read_stream(response: Response) -> Received {
    let body = match response.text().await {
        Ok(body) => body,
        Err(error) => return Received::Invalid(format!("a stream that broke off: {error}")),
    };
    let mut reading = Reading::default();
    for line in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if let Err(problem) = reading.add_line(line) {
            return Received::Invalid(problem);
        }
    }
    reading.end()
}

#[derive(Default)]
struct Reading {
    id: Option<String>,
    text: String,
    finish: Option<String>,
    error: Option<String>,
    is_done: bool,
}

impl Reading {
    fn add_line(&mut self, line: &str) -> Result<(), String> {
        if self.is_done || self.error.is_some() {
            return Err("an event after the end".to_owned());
        }
        if line == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(line).map_err(|_| "a line that is not JSON")?;
        if !chunk["error"].is_null() {
            self.error = Some(error_code(&chunk["error"]));
            return Ok(());
        }
        let id = chunk["id"].as_str().map(str::to_owned);
        if self.id.is_some() && self.id != id {
            return Err("two answers in one stream".to_owned());
        }
        self.id = id;
        let choice = &chunk["choices"][0];
        self.text += choice["delta"]["content"].as_str().unwrap_or_default();
        if let Some(finish) = choice["finish_reason"].as_str() {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn end(self) -> Received {
        match (self.error, self.is_done, self.finish) {
            (Some(code), false, None) => Received::Broken { text: self.text, code },
            (None, true, Some(finish)) => Received::Answer { text: self.text, finish },
            (None, false, _) => Received::Invalid("a stream without an end or an error".to_owned()),
            (None, true, None) => Received::Invalid("[DONE] without a finish_reason".to_owned()),
            (Some(_), _, _) => Received::Invalid("an error after the end".to_owned()),
        }
    }
}
