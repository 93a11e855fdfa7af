//! The client of the rehearsal: asks, and says what it heard, as strictly as the strictest SDK.
//! What is neither an answer nor an error that a client can see is odd, and fails.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use super::Unreachable;

/// For one request: longer than any clock of the rehearsal.
const TIME_MAX: Duration = Duration::from_secs(30);

/// What a client heard.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    Answer { text: String, finish: String },
    Refused { status: u16, code: String, retry_after: Option<u64> },
    Broken { text: String, code: String },
    Odd(String),
}

#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    pub(super) fn new(base: &str) -> Result<Client, Unreachable> {
        // reqwest asks which arithmetic TLS uses, though nothing here uses TLS; the first to say so decides.
        let _already_decided = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build();
        let http = http.map_err(|error| Unreachable(error.to_string()))?;
        Ok(Client { http, url: format!("{base}/v1/chat/completions") })
    }

    pub(super) async fn ask(&self, model: &str, streams: bool, extra: &str) -> Heard {
        let asked = async {
            match self.send(model, streams, extra).await {
                Err(odd) => Heard::Odd(odd),
                Ok(response) if !response.status().is_success() => refused(response).await,
                Ok(response) if streams => streamed(response).await,
                Ok(response) => whole(response).await,
            }
        };
        let odd = || Heard::Odd(format!("nothing for {} s", TIME_MAX.as_secs()));
        timeout(TIME_MAX, asked).await.unwrap_or_else(|_| odd())
    }

    /// Reads the first piece, and leaves.
    pub(super) async fn begin(&self, model: &str) -> Result<(), String> {
        let mut response = self.send(model, true, "").await?;
        let first = timeout(TIME_MAX, response.chunk()).await.map_err(|_| "nothing came")?;
        first.map(|_| ()).map_err(|error| error.to_string())
    }

    /// An answer of which nothing is read, until it is dropped.
    pub(super) async fn hold(&self, model: &str) -> Result<Response, String> {
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

async fn refused(response: Response) -> Heard {
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after");
    let retry_after = wait.and_then(|wait| wait.to_str().ok()?.parse().ok());
    let text = response.text().await.unwrap_or_default();
    match serde_json::from_str::<Value>(&text) {
        Ok(body) if body["error"]["message"].is_string() => {
            Heard::Refused { status, code: word(&body["error"]), retry_after }
        }
        _ => Heard::Odd(format!("status {status} without an error's envelope")),
    }
}

fn word(error: &Value) -> String {
    let code = error["code"].as_str().or_else(|| error["type"].as_str());
    code.unwrap_or_default().to_owned()
}

async fn whole(response: Response) -> Heard {
    let text = match response.text().await {
        Ok(text) => text,
        Err(error) => return Heard::Odd(format!("a body that broke off: {error}")),
    };
    let Ok(body) = serde_json::from_str::<Value>(&text) else {
        return Heard::Odd("a body that is no JSON".to_owned());
    };
    let choice = &body["choices"][0];
    let usage = body["usage"]["total_tokens"].as_u64();
    match (choice["message"]["content"].as_str(), choice["finish_reason"].as_str(), usage) {
        (Some(text), Some(finish), Some(_)) => {
            Heard::Answer { text: text.to_owned(), finish: finish.to_owned() }
        }
        _ => Heard::Odd("an answer without content, finish_reason or usage".to_owned()),
    }
}

async fn streamed(response: Response) -> Heard {
    let body = match response.text().await {
        Ok(body) => body,
        Err(error) => return Heard::Odd(format!("a stream that broke off: {error}")),
    };
    let mut reading = Reading::default();
    for line in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if let Err(odd) = reading.take(line) {
            return Heard::Odd(odd);
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
    fn take(&mut self, line: &str) -> Result<(), String> {
        if self.is_done || self.error.is_some() {
            return Err("something after the end".to_owned());
        }
        if line == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(line).map_err(|_| "a line that is no JSON")?;
        if !chunk["error"].is_null() {
            self.error = Some(word(&chunk["error"]));
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

    fn end(self) -> Heard {
        match (self.error, self.is_done, self.finish) {
            (Some(code), false, None) => Heard::Broken { text: self.text, code },
            (None, true, Some(finish)) => Heard::Answer { text: self.text, finish },
            (None, false, _) => Heard::Odd("a stream that ended without a word".to_owned()),
            (None, true, None) => Heard::Odd("[DONE] without a finish_reason".to_owned()),
            (Some(_), _, _) => Heard::Odd("an error after the end".to_owned()),
        }
    }
}
