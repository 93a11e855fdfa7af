//! Loaded models of a running hob, and requests to load or unload one.
//! Only hob has these routes; any other server answers that it does not know them.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hob_core::KeepAlive;
use hob_wire::{PieceKind, Pieces, ResidentModel, ResidentModels};
use serde::{Deserialize, Serialize, Serializer};

use super::events::{detail, events, invalid};
use super::{CONNECT_TIME_MAX, Chunks, Key, Refused, Remote, TEXT_BYTES_MAX, chunks, whole};
use crate::failure::{CliResult, Failure};

/// Maximum bytes of one line of progress.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The model to load, and for how long.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LoadOptions {
    pub(crate) model: String,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub(crate) keep_alive: Option<KeepAlive>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoadStep {
    /// Still loading. The expected time is known from earlier loads.
    Loading {
        ready_in: Option<Duration>,
    },
    Ready(Box<ResidentModel>),
}

#[derive(Serialize)]
struct LoadRequest {
    #[serde(flatten)]
    options: LoadOptions,
    stream: bool,
}

#[derive(Serialize)]
struct UnloadRequest<'a> {
    model: &'a str,
}

#[derive(Deserialize)]
struct LoadingLine {
    ready_in_s: Option<f64>,
}

impl Remote {
    pub(crate) async fn residents(&self) -> CliResult<Vec<ResidentModel>> {
        let residents: ResidentModels =
            self.get("/api/hob/ps", CONNECT_TIME_MAX, Key::Sent).await?;
        Ok(residents.models)
    }

    /// Loads a model and reports progress. The last step is [`LoadStep::Ready`], or a failure.
    pub(crate) async fn load(
        &self,
        options: LoadOptions,
    ) -> CliResult<BoxStream<'static, CliResult<LoadStep>>> {
        let request = LoadRequest { options, stream: true };
        let chunks = self.stream("/api/hob/load", &request).await?;
        Ok(steps(chunks, self.clone()))
    }

    /// Unloads a model, or lets it leave after its answers.
    pub(crate) async fn unload(&self, model: &str) -> CliResult<ResidentModel> {
        let response = self.post("/api/hob/unload", &UnloadRequest { model }).await?;
        let body = whole(chunks(response), TEXT_BYTES_MAX).await;
        let body = body.map_err(|reason| self.silent(reason))?;
        serde_json::from_str(&body).map_err(|_| self.not_hob())
    }
}

/// The steps of a load, one for each line. The last one is a failure or [`LoadStep::Ready`].
fn steps(chunks: Chunks, remote: Remote) -> BoxStream<'static, CliResult<LoadStep>> {
    let server = remote.clone();
    let steps = events(chunks, Pieces::new(PieceKind::Line, LINE_BYTES_MAX), move |line, said| {
        let line = line.ok_or_else(|| invalid("its answer ended before the model was loaded"))?;
        let step = step(line, &server);
        let is_over = !matches!(step, Ok(LoadStep::Loading { .. }));
        said.push(step);
        Ok(is_over)
    });
    steps.map(move |step| step.unwrap_or_else(|fault| Err(remote.silent(detail(fault))))).boxed()
}

fn step(line: &str, remote: &Remote) -> CliResult<LoadStep> {
    if let Ok(refused) = serde_json::from_str::<Refused>(line) {
        return Err(Failure::server(refused.error.message));
    }
    if let Ok(resident) = serde_json::from_str(line) {
        return Ok(LoadStep::Ready(Box::new(resident)));
    }
    let LoadingLine { ready_in_s } = serde_json::from_str(line).map_err(|_| remote.not_hob())?;
    let ready_in = ready_in_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(LoadStep::Loading { ready_in })
}

/// Seconds, as the API expects them. A negative number means for ever.
fn seconds<S: Serializer>(options: &Option<KeepAlive>, serializer: S) -> Result<S::Ok, S::Error> {
    match options {
        Some(KeepAlive::For(time)) => serializer.serialize_f64(time.as_secs_f64()),
        Some(KeepAlive::Forever) => serializer.serialize_i64(-1),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::executor::block_on_stream;
    use futures::stream;
    use serde_json::json;

    use super::*;

    fn reported(lines: &str) -> Vec<CliResult<LoadStep>> {
        let bytes = Bytes::copy_from_slice(lines.as_bytes());
        let chunks = stream::iter([Ok(bytes)]).boxed();
        block_on_stream(steps(chunks, Remote::at("nas:1", None))).collect()
    }

    #[test]
    fn a_load_is_reported_to_its_end() {
        let ready = ResidentModel {
            name: "m".to_owned(),
            kind: "chat".to_owned(),
            state: "warm".to_owned(),
            ready_in_s: None,
            resident_bytes: Some(9),
            predicted_bytes: None,
            vram_bytes: 0,
            pools: Vec::new(),
            placement_note: None,
            in_flight: 0,
            expires_at: None,
            context_length: Some(2048),
            load_ms: Some(3),
        };
        let loading = |ready_in| Ok(LoadStep::Loading { ready_in });
        let steps = reported(
            "{\"state\":\"loading\",\"ready_in_s\":null}\n{\"state\":\"loading\",\"ready_in_s\":1.5}\n\
             {\"name\":\"m\",\"kind\":\"chat\",\"state\":\"warm\",\"resident_bytes\":9,\
             \"vram_bytes\":0,\"in_flight\":0,\"context_length\":2048,\"load_ms\":3}\n",
        );
        let half = Some(Duration::from_millis(1500));
        assert_eq!(steps, [loading(None), loading(half), Ok(LoadStep::Ready(Box::new(ready)))]);
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
            let steps = reported(&format!("{line}{end}"));
            assert_eq!(steps.len(), 2);
            assert_eq!(steps[1].clone().expect_err(sentence).sentence, sentence);
        }
    }

    #[test]
    fn a_time_goes_over_the_wire_as_seconds() {
        let wire = |keep_alive| {
            serde_json::to_value(LoadOptions { model: "m".to_owned(), keep_alive }).expect("JSON")
        };
        let minute = Some(KeepAlive::For(Duration::from_secs(60)));
        assert_eq!(wire(None), json!({ "model": "m" }));
        assert_eq!(wire(minute), json!({ "model": "m", "keep_alive": 60.0 }));
        assert_eq!(wire(Some(KeepAlive::Forever)), json!({ "model": "m", "keep_alive": -1 }));
    }
}
