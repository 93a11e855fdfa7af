//! Loaded models of a running hob, and requests to load or unload one.
//! Only hob has these routes; any other server answers that it does not know them.

use std::io::BufRead;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hob_core::KeepAlive;
use serde::{Deserialize, Serialize, Serializer};
use tokio::sync::mpsc::Sender;
use tokio::task;

use super::lines::Lines;
use super::{CONNECT_TIME_MAX, Key, Refused, Remote};
use crate::failure::{Exit, Failure, Outcome};

/// A model that the server has loaded, or can load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteResident {
    pub(crate) name: String,
    /// `speech` or `chat`.
    pub(crate) kind: String,
    /// `warm`, `cold`, `loading` or `down`.
    pub(crate) state: String,
    pub(crate) resident_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) predicted_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) vram_bytes: u64,
    #[serde(default)]
    pub(crate) in_flight: u64,
    /// RFC 3339. `None`: never, or not loaded.
    pub(crate) expires_at: Option<String>,
    pub(crate) context_length: Option<u32>,
    pub(crate) load_ms: Option<u64>,
}

/// The model to load, and for how long.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LoadWish {
    pub(crate) model: String,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub(crate) keep_alive: Option<KeepAlive>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoadStep {
    /// Still loading. The expected time is known from earlier loads.
    Loading {
        ready_in: Option<Duration>,
    },
    Ready(RemoteResident),
}

#[derive(Serialize)]
struct LoadRequest {
    #[serde(flatten)]
    wish: LoadWish,
    stream: bool,
}

#[derive(Serialize)]
struct UnloadRequest<'a> {
    model: &'a str,
}

#[derive(Deserialize)]
struct Residents {
    models: Vec<RemoteResident>,
}

#[derive(Deserialize)]
struct LoadingLine {
    ready_in_s: Option<f64>,
}

impl Remote {
    pub(crate) async fn residents(&self) -> Outcome<Vec<RemoteResident>> {
        let body = self.get("/api/hob/ps", CONNECT_TIME_MAX, Key::Sent).await?;
        let residents: Residents = serde_json::from_str(&body).map_err(|_| self.not_hob())?;
        Ok(residents.models)
    }

    /// Loads a model and reports progress. The last step is [`LoadStep::Ready`], or a failure.
    pub(crate) async fn load(
        &self,
        wish: LoadWish,
    ) -> Outcome<BoxStream<'static, Outcome<LoadStep>>> {
        let remote = self.clone();
        let read = move |body, steps: &Sender<_>| tell(Lines::of(body), &remote, steps);
        let request = LoadRequest { wish, stream: true };
        Ok(self.stream("/api/hob/load", request, read).await?.boxed())
    }

    pub(crate) async fn unload(&self, model: &str) -> Outcome<()> {
        let (remote, model) = (self.clone(), model.to_owned());
        let asked = task::spawn_blocking(move || {
            remote.post("/api/hob/unload", &UnloadRequest { model: &model }).map(drop)
        });
        asked.await.unwrap_or_else(|error| Err(self.silent(error)))
    }
}

fn tell<R: BufRead>(mut lines: Lines<R>, remote: &Remote, steps: &Sender<Outcome<LoadStep>>) {
    loop {
        let step = match lines.next() {
            Ok(Some(line)) => step(&line, remote),
            Ok(None) => Err(remote.silent("its answer ended before the model was loaded")),
            Err(error) => Err(remote.silent(error)),
        };
        let ends = !matches!(step, Ok(LoadStep::Loading { .. }));
        let reader_left = steps.blocking_send(step).is_err();
        if ends || reader_left {
            return;
        }
    }
}

fn step(line: &str, remote: &Remote) -> Outcome<LoadStep> {
    if let Ok(refused) = serde_json::from_str::<Refused>(line) {
        return Err(Failure::new(Exit::Server, refused.error.message));
    }
    if let Ok(resident) = serde_json::from_str(line) {
        return Ok(LoadStep::Ready(resident));
    }
    let LoadingLine { ready_in_s } = serde_json::from_str(line).map_err(|_| remote.not_hob())?;
    let ready_in = ready_in_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(LoadStep::Loading { ready_in })
}

/// Seconds, as the API expects them. A negative number means for ever.
fn seconds<S: Serializer>(wish: &Option<KeepAlive>, serializer: S) -> Result<S::Ok, S::Error> {
    match wish {
        Some(KeepAlive::For(time)) => serializer.serialize_f64(time.as_secs_f64()),
        Some(KeepAlive::Forever) => serializer.serialize_i64(-1),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;

    fn told(lines: &str) -> Vec<Outcome<LoadStep>> {
        let (steps, mut heard) = mpsc::channel(64);
        tell(Lines::of_bytes(lines.as_bytes()), &Remote::at("nas:1", None), &steps);
        drop(steps);
        std::iter::from_fn(|| heard.blocking_recv()).collect()
    }

    #[test]
    fn a_load_is_told_to_its_end() {
        let ready = RemoteResident {
            name: "m".to_owned(),
            kind: "chat".to_owned(),
            state: "warm".to_owned(),
            resident_bytes: Some(9),
            predicted_bytes: None,
            vram_bytes: 0,
            in_flight: 0,
            expires_at: None,
            context_length: Some(2048),
            load_ms: Some(3),
        };
        let loading = |ready_in| Ok(LoadStep::Loading { ready_in });
        let steps = told(
            "{\"state\":\"loading\",\"ready_in_s\":null}\n{\"state\":\"loading\",\"ready_in_s\":1.5}\n\
             {\"name\":\"m\",\"kind\":\"chat\",\"state\":\"warm\",\"resident_bytes\":9,\
             \"vram_bytes\":0,\"context_length\":2048,\"load_ms\":3}\n",
        );
        let half = Some(Duration::from_millis(1500));
        assert_eq!(steps, [loading(None), loading(half), Ok(LoadStep::Ready(ready))]);
    }

    #[test]
    fn a_load_that_fails_is_never_ready() {
        let line = "{\"state\":\"loading\",\"ready_in_s\":null}\n";
        let rows = [
            ("", "http://nas:1 does not answer: its answer ended before the model was loaded"),
            ("{\"error\":{\"message\":\"too large\"}}\n", "too large"),
            ("what?\n", "the server at http://nas:1 is not a hob"),
        ];
        for (end, sentence) in rows {
            let steps = told(&format!("{line}{end}"));
            assert_eq!(steps.len(), 2);
            assert_eq!(steps[1].clone().expect_err(sentence).sentence, sentence);
        }
    }

    #[test]
    fn a_time_goes_over_the_wire_as_seconds() {
        let wire = |keep_alive| {
            serde_json::to_value(LoadWish { model: "m".to_owned(), keep_alive }).expect("JSON")
        };
        let minute = Some(KeepAlive::For(Duration::from_secs(60)));
        assert_eq!(wire(None), json!({ "model": "m" }));
        assert_eq!(wire(minute), json!({ "model": "m", "keep_alive": 60.0 }));
        assert_eq!(wire(Some(KeepAlive::Forever)), json!({ "model": "m", "keep_alive": -1 }));
    }
}
