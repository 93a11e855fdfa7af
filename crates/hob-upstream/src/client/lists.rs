//! Lists of the models of a server. They are fetched in the background; no request waits for them.
//! A server that is down keeps its last list: its models still exist.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use hob_core::routing::{ListedModel, Reachable, TargetView, UpstreamView};
use hob_core::{Fault, ModelState, locked, one_line};
use hob_wire::{
    ServedModel, ollama_show_request, parse_anthropic_models, parse_llama_props, parse_ollama_ps,
    parse_ollama_show, parse_ollama_tags, parse_openai_models, parse_tabby_model, parse_voices,
};
use tokio::time::{sleep, timeout};

use super::Upstream;
use crate::options::UpstreamKind;

/// Time between two list requests. It varies by 20 %, so that hob does not ask all servers at the same time.
const EVERY: Duration = Duration::from_secs(30);
/// Time between two list requests while the server does not answer.
const EVERY_DOWN: Duration = Duration::from_secs(5);
/// Time limit of one list request.
const TIME_MAX: Duration = Duration::from_secs(3);
/// Bytes of a list: OpenRouter's has over a megabyte.
pub(super) const BYTES_MAX: usize = 16 << 20;
/// Maximum models of an Ollama server for which hob requests details, in one request each. For further models, hob
/// knows only what the server's lists say.
const DETAILED_MAX: usize = 64;

/// The last list, and the result of the last list request.
#[derive(Debug, Default)]
pub(crate) struct ServedList {
    models: Vec<ServedModel>,
    /// Places in `models` by name. Some servers list hundreds of models, and each request looks up its model several times.
    places: BTreeMap<String, usize>,
    /// Details of Ollama's models, by name.
    details: BTreeMap<String, ServedModel>,
    listing: Option<Listing>,
    contact: Option<Contact>,
}

/// The last list request: when it began and ended, and how long it took or why it failed.
#[derive(Debug)]
struct Listing {
    began: Instant,
    at: Instant,
    result: Result<Duration, String>,
}

/// The last contact with the server, by a client's request or a list request: whether any answer arrived.
#[derive(Debug)]
struct Contact {
    at: Instant,
    result: Result<(), String>,
}

impl ServedList {
    /// If several models have one name, the first one counts.
    fn set_models(&mut self, models: Vec<ServedModel>) {
        self.places.clear();
        for (place, ServedModel { id, .. }) in models.iter().enumerate() {
            // Users leave out the `:latest` of Ollama's names.
            let names = [Some(id.as_str()), id.strip_suffix(":latest")];
            for name in names.into_iter().flatten() {
                self.places.entry(name.to_owned()).or_insert(place);
            }
        }
        self.models = models;
    }

    fn find(&self, model: &str) -> Option<&ServedModel> {
        self.models.get(*self.places.get(model)?)
    }

    /// From the newest information, which a client's request or a list request gave.
    fn reachable(&self) -> Reachable {
        match (&self.contact, &self.listing) {
            (None, None) => Reachable::NotAsked,
            (Some(Contact { at, result: Err(reason) }), _) => {
                Reachable::No { reason: reason.clone(), ago: at.elapsed() }
            }
            // The list request got no answer in time, and no other answer has arrived since it began.
            (contact, Some(Listing { began, at, result: Err(reason) }))
                if contact.as_ref().is_none_or(|contact| contact.at < *began) =>
            {
                Reachable::No { reason: reason.clone(), ago: at.elapsed() }
            }
            (Some(Contact { at, .. }), Some(Listing { result: Err(reason), .. })) => {
                Reachable::Unlisted { reason: reason.clone(), ago: at.elapsed() }
            }
            (contact, listing) => {
                let at = contact.as_ref().map(|contact| contact.at);
                let took = listing.as_ref().and_then(|last| last.result.as_ref().ok()).copied();
                let at = at.or_else(|| listing.as_ref().map(|last| last.at));
                Reachable::Yes { ago: at.map(|at| at.elapsed()).unwrap_or_default(), took }
            }
        }
    }
}

impl Upstream {
    /// Refreshes the list for as long as it is polled.
    pub(crate) async fn watch(&self) -> Infallible {
        loop {
            self.refresh_list().await;
            let is_up = matches!(locked(&self.served).reachable(), Reachable::Yes { .. });
            let about = |time: Duration| time.mul_f64(0.8 + 0.4 * fastrand::f64());
            tokio::select! {
                () = sleep(about(if is_up { EVERY } else { EVERY_DOWN })) => {}
                () = self.lost.notified() => sleep(about(EVERY_DOWN)).await,
            }
        }
    }

    /// Records that an answer of any status arrived, or why none did.
    pub(crate) fn note_contact(&self, result: Result<(), &Fault>) {
        let result = result.map_err(|fault| one_line(&fault.to_string()));
        let is_lost = result.is_err();
        locked(&self.served).contact = Some(Contact { at: Instant::now(), result });
        if is_lost {
            self.lost.notify_one();
        }
    }

    /// Refreshes the list now.
    pub(crate) async fn refresh_list(&self) {
        let began = Instant::now();
        let list = timeout(TIME_MAX, self.list()).await;
        let list = list.unwrap_or_else(|_| {
            Err(Fault::Failed { message: format!("said nothing for {} s", TIME_MAX.as_secs()) })
        });
        self.learn_voices().await;
        let mut served = locked(&self.served);
        let result = match list {
            Ok(models) => {
                served.set_models(models);
                Ok(began.elapsed())
            }
            Err(fault) => Err(one_line(&self.scrubbed(&fault.to_string()))),
        };
        served.listing = Some(Listing { began, at: Instant::now(), result });
    }

    /// Requests the voices of another hob until they are known.
    async fn learn_voices(&self) {
        if self.known_kind() != UpstreamKind::Hob || self.voices.get().is_some() {
            return;
        }
        let Ok(Ok(list)) = timeout(TIME_MAX, self.fetch("audio/voices")).await else { return };
        let voices = parse_voices(list.as_bytes());
        if !voices.is_empty() {
            self.voices.get_or_init(|| voices);
        }
    }

    async fn list(&self) -> Result<Vec<ServedModel>, Fault> {
        match self.kind().await {
            UpstreamKind::Ollama => self.list_ollama().await,
            UpstreamKind::LlamaServer => {
                let mut models = self.list_openai().await?;
                let props = self.fetch("/props").await?;
                let props = parse_llama_props(props.as_bytes()).map_err(invalid_answer)?;
                // The server has one model, under the names of its list.
                for model in &mut models {
                    *model = ServedModel { id: std::mem::take(&mut model.id), ..props.clone() };
                }
                Ok(models)
            }
            UpstreamKind::Tabby => {
                let mut models = self.list_openai().await?;
                if let Ok(model) = self.fetch("model").await
                    && let Ok(loaded) = parse_tabby_model(model.as_bytes())
                {
                    models.retain(|model| model.id != loaded.id);
                    models.insert(0, loaded);
                }
                Ok(models)
            }
            UpstreamKind::Anthropic => {
                let list = self.fetch("models?limit=1000").await?;
                parse_anthropic_models(list.as_bytes()).map_err(invalid_answer)
            }
            _ => self.list_openai().await,
        }
    }

    async fn list_openai(&self) -> Result<Vec<ServedModel>, Fault> {
        let list = self.fetch("models").await?;
        parse_openai_models(list.as_bytes()).map_err(invalid_answer)
    }

    async fn list_ollama(&self) -> Result<Vec<ServedModel>, Fault> {
        let tags = self.fetch("/api/tags").await?;
        let mut models = parse_ollama_tags(tags.as_bytes()).map_err(invalid_answer)?;
        // Servers with only Ollama's API may not report loaded models.
        let loaded = self.fetch("/api/ps").await.ok();
        let loaded = loaded.and_then(|loaded| parse_ollama_ps(loaded.as_bytes()).ok());
        for (place, model) in models.iter_mut().enumerate() {
            let running = loaded.iter().flatten().find(|running| running.id == model.id);
            let details =
                if place < DETAILED_MAX { self.model_details(&model.id).await } else { None };
            let details = details.unwrap_or_else(|| model.clone());
            let in_memory = running.and_then(|running| running.context_tokens);
            *model = ServedModel {
                id: std::mem::take(&mut model.id),
                is_loaded: loaded.as_ref().map(|_| running.is_some()),
                context_tokens: self.options.num_ctx.or(in_memory).or(details.context_tokens),
                ..details
            };
        }
        Ok(models)
    }

    /// Details of one Ollama model, requested once because they do not change.
    async fn model_details(&self, id: &str) -> Option<ServedModel> {
        if let Some(details) = locked(&self.served).details.get(id) {
            return Some(details.clone());
        }
        let mut answer = self.post("/api/show", ollama_show_request(id), 0).await.ok()?;
        let answer = self.whole(&mut answer, BYTES_MAX).await.ok()?;
        let details = parse_ollama_show(answer.as_bytes()).ok()?;
        locked(&self.served).details.insert(id.to_owned(), details.clone());
        Some(details)
    }

    pub(super) async fn fetch(&self, path: &str) -> Result<String, Fault> {
        self.whole(&mut self.get(path).await?, BYTES_MAX).await
    }

    /// Looks at the list entry of this model, if there is one. A request does so several times, so nothing is copied.
    pub(crate) fn with_listed<R>(
        &self,
        model: &str,
        look: impl FnOnce(&ServedModel) -> R,
    ) -> Option<R> {
        locked(&self.served).find(model).map(look)
    }

    /// From the last list and the last request. Sends nothing.
    pub(crate) fn state_of(&self, model: &str) -> ModelState {
        let served = locked(&self.served);
        if let Reachable::No { reason, .. } = served.reachable() {
            return ModelState::Down { reason };
        }
        match served.find(model).and_then(|model| model.is_loaded) {
            Some(false) => ModelState::Cold,
            Some(true) | None => ModelState::Ready,
        }
    }

    /// The models for conversations.
    pub(crate) fn listed(&self) -> Vec<ListedModel> {
        let ids: Vec<(String, Option<u32>)> = {
            let served = locked(&self.served);
            let models = served.models.iter().filter(|model| !model.hears);
            models.map(|model| (model.id.clone(), model.context_tokens)).collect()
        };
        let entry = |(id, context_tokens): (String, Option<u32>)| ListedModel {
            state: self.state_of(&id),
            name: format!("{}/{id}", self.name()),
            context_tokens,
        };
        ids.into_iter().map(entry).collect()
    }

    pub(crate) fn view(&self, troubled: Vec<TargetView>) -> UpstreamView {
        let served = locked(&self.served);
        UpstreamView {
            name: self.name().to_owned(),
            kind: self.known_kind().name(),
            url: self.url().to_owned(),
            reachable: served.reachable(),
            models: served.models.iter().map(|model| model.id.clone()).collect(),
            in_flight: self.slots.in_flight(),
            waiting: self.slots.waiting(),
            slots: self.options.slots,
            troubled,
        }
    }
}

fn invalid_answer(error: impl std::fmt::Display) -> Fault {
    Fault::InvalidAnswer { detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_its_name_and_without_latest() {
        let mut served = ServedList::default();
        let named = |id: &str| ServedModel { id: id.to_owned(), ..ServedModel::default() };
        served.set_models(["a:latest", "b:7b", "b", "a"].map(named).into());
        for (asked, expected) in [
            ("a", Some("a:latest")),
            ("a:latest", Some("a:latest")),
            ("b", Some("b")),
            ("b:7b", Some("b:7b")),
            ("b:latest", None),
            ("c", None),
        ] {
            assert_eq!(served.find(asked).map(|model| model.id.as_str()), expected, "{asked}");
        }
        served.set_models(vec![named("c")]);
        assert_eq!(served.find("a"), None, "the list was replaced");
    }
}
